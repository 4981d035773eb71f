//! The caller's memory, divided.

#![cfg_attr(not(feature = "_broken"), expect(unreachable_pub, reason = "tests alone see what is left out"))]

use core::mem::size_of;

use nandu_cells::plan::PARTS_MAX;
use nandu_index::KeyBuf;
use nandu_log::{Log, LogOptions};
use nandu_media::features::{BLOBS, SNAPSHOTS};
use nandu_nand::{Geometry, Nand};
use zerocopy::FromBytes;

use crate::division;

/// When changes are durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    #[default]
    Immediate,
    /// When [`Engine::sync`](crate::Engine::sync) returns, all together. Before that some may be, in their order.
    OnSync,
}

/// How an engine uses memory, and what its log is made with.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes for nodes kept in memory; may be 0. Where all inner nodes fit, a lookup reads one page.
    pub cache_size: usize,
    /// When changes are durable.
    pub durability: Durability,
    /// Bytes for changes that wait, with [`Durability::OnSync`]; at most 65,535 are used where keys and values have any length. A change takes its key, its value and
    /// 1 byte, or 6 where they have any length. A change of more than half of it does not wait. With 0 none does; else 600 bytes at least are used.
    pub pending_size: usize,
    /// Whether calls are parts of calls of their user, who says when one of these ends ([`Engine::end_call`](crate::Engine::end_call)): shares of collecting are paid then.
    pub has_parts: bool,
    /// Whether values may be larger than an entry, where keys and values have any length. With raw pages ([`LogOptions::has_raw`]) such a value has a page at most, and its key 11 bytes.
    pub has_values: bool,
    /// Whether there may be snapshots, where keys have any length. Takes memory of half a page, or 1,120 bytes where that is more.
    pub has_snapshots: bool,
    /// Test switches.
    #[cfg(feature = "_broken")]
    pub broken: Broken,
    /// Choices of the log.
    pub log: LogOptions,
}

impl Options {
    /// 8 KiB of nodes, changes that are durable at once, and a log as it comes.
    pub const DEFAULT: Options = Options {
        cache_size: 8192,
        durability: Durability::Immediate,
        pending_size: 0,
        has_parts: false,
        has_values: false,
        has_snapshots: false,
        #[cfg(feature = "_broken")]
        broken: Broken::NOTHING,
        log: LogOptions::DEFAULT,
    };

    /// Which rules a test leaves out.
    pub(crate) const fn broken(&self) -> Broken {
        #[cfg(feature = "_broken")]
        return self.broken;
        #[cfg(not(feature = "_broken"))]
        return Broken::NOTHING;
    }
}

/// Rules that a test leaves out; none, in a build without the feature for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// W1: a commit does not list changes of the leaf in its page.
    pub lists_others_only: bool,
    /// W2: members leave although changes still wait that they list.
    pub skips_carrying: bool,
    /// W3: a batch that does not fit a commit becomes durable in parts.
    pub splits_batches: bool,
    /// W4: what is merged takes no memory.
    pub forgets_merged: bool,
    /// W5: a member dies with its leaf.
    pub members_die: bool,
    /// W6: a mount does not heed that a head is in its leaf.
    pub hides_heads: bool,
    /// W7: a page is tagged although something waits.
    pub tags_unsynced: bool,
    /// W8: a commit dies when it leaves the window although a head names the value in it.
    pub blobs_leave: bool,
    /// K1: what stood at a key is kept behind the change that takes its place.
    pub keeps_late: bool,
    /// K4: what a snapshot kept that was released goes, whoever needs it.
    pub forgets_heirs: bool,
}

impl Broken {
    /// Every rule is kept.
    pub const NOTHING: Broken = Broken {
        lists_others_only: false,
        skips_carrying: false,
        splits_batches: false,
        forgets_merged: false,
        members_die: false,
        hides_heads: false,
        tags_unsynced: false,
        blobs_leave: false,
        keeps_late: false,
        forgets_heirs: false,
    };

    /// Whether a test leaves this rule out. Known to the compiler where there are no such tests.
    pub(crate) fn is(&self, rule: impl FnOnce(&Broken) -> bool) -> bool {
        cfg!(feature = "_broken") && rule(self)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// The keys between new children of a node.
pub(crate) type Separators = [KeyBuf; PARTS_MAX - 1];

/// Buffers of a page each: the path, what leaves it, and what is read.
const BUFFERS: usize = 3;

/// Bytes of memory that an engine needs on this chip. Nothing else is allocated. Buffers for pages come first, so that each is as aligned as the memory, to 32 bytes and more.
pub const fn memory_required<N: Nand>(geometry: &Geometry, options: &Options) -> usize {
    BUFFERS * geometry.page_size as usize
        + options.cache_size
        + pending_size(options)
        + size_of::<Separators>()
        + values_size(geometry.page_size as usize, options)
        + kept_size(geometry.page_size as usize, options)
        + Log::<N>::memory_required(geometry, &options.log)
}

/// Bytes of memory for changes that wait, if any may: then one of the longest key may go to its leaf beside them (W6). With fewer, all that waits would have to go first.
pub(crate) const PENDING_MIN: usize = 600;

/// Bytes for changes that wait.
const fn pending_size(options: &Options) -> usize {
    match options.pending_size {
        0 => 0,
        size if size < PENDING_MIN => PENDING_MIN,
        size => size,
    }
}

/// Bytes for a large value that is being put.
const fn values_size(page_size: usize, options: &Options) -> usize {
    match options.has_values {
        true if BLOBS && options.log.has_raw => division::SINGLE_MAX,
        true if BLOBS => division::memory_required(page_size),
        _ => 0,
    }
}

/// Bytes for what a snapshot is to keep: two of the largest entries, or what a step of a file's removal deletes.
const fn kept_size(page_size: usize, options: &Options) -> usize {
    match SNAPSHOTS && options.has_snapshots {
        true if page_size / 2 > KEPT_MIN => page_size / 2,
        true => KEPT_MIN,
        false => 0,
    }
}

/// Bytes of the heads of 32 pages of a file with their keys, which a step of its removal deletes at most.
const KEPT_MIN: usize = 1120;

/// The memory of an engine, divided.
pub(crate) struct Memory<'m> {
    pub(crate) path: &'m mut [u8],
    pub(crate) side: &'m mut [u8],
    pub(crate) reading: &'m mut [u8],
    pub(crate) cache: &'m mut [u8],
    pub(crate) pending: &'m mut [u8],
    pub(crate) values: &'m mut [u8],
    pub(crate) kept: &'m mut [u8],
    pub(crate) keys: &'m mut Separators,
}

impl<'m> Memory<'m> {
    /// That of the tree, and so many bytes for the log; `None` if it is too small, which [`memory_required`] tells. The log's page comes behind those of the tree.
    pub(crate) fn divide(
        memory: &'m mut [u8],
        (page_size, log_size): (usize, usize),
        options: &Options,
    ) -> Option<(Self, &'m mut [u8])> {
        let (path, rest) = memory.split_at_mut_checked(page_size)?;
        let (side, rest) = rest.split_at_mut_checked(page_size)?;
        let (reading, rest) = rest.split_at_mut_checked(page_size)?;
        let (log, rest) = rest.split_at_mut_checked(log_size)?;
        let (cache, rest) = rest.split_at_mut_checked(options.cache_size)?;
        let (pending, rest) = rest.split_at_mut_checked(pending_size(options))?;
        let (keys, rest) = Separators::mut_from_prefix(rest).ok()?;
        keys.fill(KeyBuf::EMPTY);
        let (values, rest) = rest.split_at_mut_checked(values_size(page_size, options))?;
        let (kept, _) = rest.split_at_mut_checked(kept_size(page_size, options))?;
        Some((Memory { path, side, reading, cache, pending, values, kept, keys }, log))
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, Options, PENDING_MIN};

    #[test]
    fn memory_is_divided_without_overlap_and_pages_come_first() {
        let mut memory = [0; 3 * 256 + 100 + PENDING_MIN + 512 + 50];
        let start = memory.as_ptr().addr();
        let options = Options { cache_size: 100, pending_size: 30, ..Options::DEFAULT };
        let (parts, log) = Memory::divide(&mut memory, (256, 50), &options).unwrap();
        let sizes = [parts.path.len(), parts.side.len(), parts.reading.len(), parts.cache.len(), log.len()];
        assert_eq!((sizes, parts.pending.len()), ([256, 256, 256, 100, 50], PENDING_MIN));
        let pages = [parts.path.as_ptr(), parts.side.as_ptr(), parts.reading.as_ptr(), log.as_ptr()];
        assert_eq!(pages.map(|at| at.addr() - start), [0, 256, 512, 768]);
        assert!(Memory::divide(&mut [0; 3 * 256 + 512 + 129], (256, 50), &options).is_none());
    }
}
