//! Choices made when a store is formatted or opened.

use nandu_log::{Log, LogOptions};
use nandu_nand::{Geometry, Nand};
use nandu_tree::Durability;

/// Choices made when a store is formatted or opened. What a volume was formatted with is found on the chip and need not
/// be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Choices of the log below.
    pub log: LogOptions,
    /// Bytes of memory for nodes of the tree that are kept. With room for all inner nodes, about three bytes for each
    /// leaf with integer keys, a lookup reads one page.
    pub cache_size: usize,
    /// Pages that one batch may replace and still tell the collector about each; at least 64, four bytes each.
    pub journal_pages: usize,
    /// When a change is durable: when the call returns, or at the next [`Store::sync`](crate::Store::sync). With the
    /// latter many changes cost few programs.
    pub durability: Durability,
    /// Bytes of memory for changes that are not in their place yet, of which 65,535 at most are used, and no more than three
    /// quarters of what the pages that a sync can name hold: 60 KB on pages of 4 KiB, a few KB on pages of 512 bytes. The more
    /// there are, the more changes go to their place with one program. There is no smallest number, 0 is one too: a change that needs more
    /// than half of them is durable at once, and those that wait go to their place first. Without [`Durability::OnSync`] it is needed only to open a volume that
    /// was used with it and not left by [`Store::settle`](crate::Store::settle): as many bytes as were given then are enough,
    /// with fewer the volume may be refused with [`Error::PendingSize`](crate::Error::PendingSize).
    pub pending_size: usize,
}

impl Options {
    /// 8 KiB of cache, everything else left open.
    pub const DEFAULT: Options = Options {
        log: LogOptions::DEFAULT,
        cache_size: 8192,
        journal_pages: 64,
        durability: Durability::Immediate,
        pending_size: 0,
    };

    /// These options with as large a cache as fits `memory_size` bytes in all; `None` if the store needs more than that
    /// even without one.
    pub fn fit<N: Nand>(self, geometry: &Geometry, memory_size: usize) -> Option<Options> {
        let without = Options { cache_size: 0, ..self };
        let cache_size = memory_size.checked_sub(without.memory_required::<N>(geometry))?;
        Some(Options { cache_size, ..self })
    }

    pub(crate) fn tree(&self) -> nandu_tree::Options {
        nandu_tree::Options {
            cache_size: self.cache_size,
            journal_pages: self.journal_pages,
            durability: self.durability,
            pending_size: self.pending_size,
            note_count: 0,
            copy_count: 0,
            parts_leaves: false,
        }
    }

    pub(crate) fn memory_required<N: Nand>(&self, geometry: &Geometry) -> usize {
        let tree = nandu_tree::memory_required(geometry.page_size as usize, &self.tree());
        Log::<N>::memory_required(geometry, &self.log) + tree
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
