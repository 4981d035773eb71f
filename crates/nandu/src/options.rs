//! Choices made when a store is formatted or opened.

use nandu_log::{Log, LogOptions};
use nandu_nand::{ALIGNMENT, CellMode, Geometry, Nand};
use nandu_tree::Durability;

/// Choices made when a store is formatted or opened. What a volume was formatted with is found on the chip and need not
/// be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Id of the volume, which each of its pages states. Left open, a format draws it from `salt`, from the volume found on the chip, from
    /// the pages that stand first in its blocks, and from which blocks are bad; so it is another one each time. Given at an open, a volume with
    /// another one is refused.
    pub volume: Option<u32>,
    /// At format, what else the id is drawn from: something by chance, or what tells this chip from others, such as its serial number.
    /// Without it new chips of one kind with no bad block get the same id, and a page of one of them passes for one of the other where
    /// it has the same address.
    pub salt: u64,
    /// Streams that records are sorted into by how often they change, 2 to 8; left open: by the size of the chip.
    pub stream_count: Option<u8>,
    /// Longest list of blocks that are opened next, 3 to 14; left open: by the size of the chip. Longer means fewer checkpoints and more blocks
    /// that hold no data.
    pub ready_max: Option<u8>,
    /// Mode of the cells. `Mlc` is refused where a power cut may damage the partner of a page.
    pub mode: CellMode,
    /// Read the header of each page back after it was programmed: one more short read for each program, and a program that
    /// the chip reported and lost (fault F14) is repeated elsewhere instead of being found out when it is needed. An open after
    /// a cut reads twice what does not seem to be there, so that a read of something else (F15, F16) does not hide the newest page.
    pub read_back: bool,
    /// Reads of a block since its erase after which its pages are moved, since reading disturbs the pages beside the one
    /// read; left open: 131,072 with one bit a cell and 16,384 with two, about an eighth of what chips are rated for. Reads
    /// are estimated, not counted. 0: never.
    pub reads_max: Option<u32>,
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
    /// Whether buffers for whole pages lie at multiples of 32 from the beginning of the memory, for DMA on a processor with a data cache: takes up to 24
    /// bytes more. Otherwise they lie at multiples of 8.
    pub aligned: bool,
}

impl Options {
    /// 8 KiB of cache, everything else left open.
    pub const DEFAULT: Options = Options {
        volume: None,
        salt: 0,
        stream_count: None,
        ready_max: None,
        mode: CellMode::Slc,
        read_back: false,
        reads_max: None,
        cache_size: 8192,
        journal_pages: 64,
        durability: Durability::Immediate,
        pending_size: 0,
        aligned: false,
    };

    /// These options with as large a cache as fits `memory_size` bytes in all; `None` if the store needs more than that
    /// even without one.
    pub fn fit<N: Nand>(self, geometry: &Geometry, memory_size: usize) -> Option<Options> {
        let without = Options { cache_size: 0, ..self };
        let cache_size = memory_size.checked_sub(without.memory_required::<N>(geometry))?;
        Some(Options { cache_size, ..self })
    }

    pub(crate) const fn log(&self) -> LogOptions {
        LogOptions {
            volume: self.volume,
            salt: self.salt,
            stream_count: self.stream_count,
            ready_max: self.ready_max,
            mode: self.mode,
            read_back: self.read_back,
            reads_max: self.reads_max,
            ..LogOptions::DEFAULT
        }
    }

    pub(crate) const fn tree(&self) -> nandu_tree::Options {
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

    /// Bytes of memory for the log, a multiple of 8, rounded up if pages behind it are to be aligned as well.
    pub(crate) const fn log_memory<N: Nand>(&self, geometry: &Geometry) -> usize {
        let size = Log::<N>::memory_required(geometry, &self.log());
        if self.aligned { size.next_multiple_of(ALIGNMENT) } else { size }
    }

    pub(crate) const fn memory_required<N: Nand>(&self, geometry: &Geometry) -> usize {
        let tree = nandu_tree::memory_required(geometry.page_size as usize, &self.tree());
        self.log_memory::<N>(geometry) + tree
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
