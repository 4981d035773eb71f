//! Choices made when a file system is formatted or mounted.

use nandu_log::{Log, LogOptions};
use nandu_nand::{ALIGNMENT, Geometry, Nand};
use nandu_tree::Durability;

use crate::open_files::OPEN_FILE_SIZE;
#[cfg(feature = "mlc")]
use crate::placement::{Hotness, PlacementOptions, Reference, WearPromise};
use crate::write_buffer::WriteBuffer;

/// Least bytes that a page of a file takes in a leaf.
const PAGE_ENTRY_SIZE_MIN: usize = 12;

/// Least bytes that a page of a file that is deleted takes in memory until its leaf says so.
const PAGE_CHANGE_SIZE_MIN: usize = 18;

/// Most of the memory for changes that is used.
const PENDING_SIZE_MAX: usize = 65_535;

/// Pages that one operation replaces besides those of files.
const JOURNAL_PAGES: usize = 64;

/// Choices made when a file system is formatted or mounted. What a volume was formatted with is found on the chip and need not be
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Choices of the log below. It has bare streams, one or more, for the pages of files.
    pub log: LogOptions,
    /// Bytes of memory for nodes of the tree that are kept.
    pub cache_size: usize,
    /// Pages that one operation may replace and still tell the collector about each, four bytes each; as many as a leaf can hold, as many as
    /// changes can delete, and 64 at least.
    pub journal_pages: usize,
    /// Bytes of memory for changes that are not in their place yet, of which 65,535 at most are used. The more there are, the
    /// more changes go to their place with one program; a few, or none, will do. A volume takes as many to mount as it was last used with.
    pub pending_size: usize,
    /// Pages of files that may wait to be named by a Summary in their block, 21 bytes each; best as many as a block has pages.
    pub note_count: usize,
    /// Pages of files that may be on their way to blocks with two bits a cell, 26 bytes each; without such blocks none are.
    pub copy_count: usize,
    /// Policies of where pages of files go on a volume with blocks of both modes ([`Options::both_modes`]), and of when they move; takes
    /// 2,560 bytes. `None`: they are written with one bit a cell, and move when the collector needs room.
    #[cfg(feature = "mlc")]
    pub placement: Option<PlacementOptions>,
    /// A lifetime to be promised, which bounds what is written with one bit a cell; with `placement` only.
    #[cfg(feature = "mlc")]
    pub wear: Option<WearPromise>,
    /// Files that may be open at a time, 12 bytes each.
    pub open_max: usize,
    /// Whether buffers for whole pages lie at multiples of 32 from the beginning of the memory, for DMA on a processor with a data cache: takes up to 24
    /// bytes more. Otherwise they lie at multiples of 8.
    pub aligned: bool,
    /// Refuse every change. A mount after a power cut repairs what the cut left all the same.
    pub read_only: bool,
    /// Test switches.
    #[cfg(feature = "_broken")]
    pub broken: Broken,
}

/// Rules of the name space to be left out, so that a test can show that it fails without them.
#[cfg(feature = "_broken")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// S11: a rename, link, mkdir or symlink returns before it is durable.
    pub without_sync: bool,
    /// S12: a name comes in another commit than its inode.
    pub name_first: bool,
    /// S13: a replaced name goes in another commit than the new one comes.
    pub replace_in_parts: bool,
    /// S14: the inode of a deleted file goes, and its pages later, with nothing that says so.
    pub without_orphans: bool,
    /// T13, T14 and T15 of the pages of files, which the tree keeps.
    pub tree: nandu_tree::Broken,
    /// What tags tell of is not written again after a cut.
    pub without_tail: bool,
    /// Bits of the hash of a name that are zero, to make names collide.
    pub hash_zeros: u32,
}

impl Options {
    /// What fits 32 KiB on `w25n01gv`: 4 KiB for nodes, 4 KiB for changes, 64 open files.
    pub const DEFAULT: Options = Options {
        log: LogOptions { bare_streams: 2, tags: cfg!(feature = "tags"), ..LogOptions::DEFAULT },
        cache_size: 4096,
        journal_pages: 64,
        pending_size: 4096,
        note_count: 64,
        copy_count: 64,
        #[cfg(feature = "mlc")]
        placement: None,
        #[cfg(feature = "mlc")]
        wear: None,
        open_max: 64,
        aligned: false,
        read_only: false,
        #[cfg(feature = "_broken")]
        broken: Broken {
            without_sync: false,
            name_first: false,
            replace_in_parts: false,
            without_orphans: false,
            tree: nandu_tree::Broken::NONE,
            without_tail: false,
            hash_zeros: 0,
        },
    };

    /// The same for a volume that uses both modes of a chip whose cells can hold two bits: everything that is acknowledged is written with
    /// one bit a cell, and pages of files move to two in idle time, as the policies say. Files have nearly the chip's whole capacity.
    #[cfg(feature = "mlc")]
    pub fn both_modes(self, geometry: &Geometry) -> Options {
        Options {
            log: LogOptions { bare_streams: 3, mlc_streams: 1, ..self.log },
            placement: Some(PlacementOptions::for_geometry(geometry)),
            ..self
        }
    }

    pub(crate) const fn tree(&self, page_size: usize) -> nandu_tree::Options {
        // Were a leaf full of pages of one file to go with more of them than can be told of, the rest would stay counted as live.
        // Leaves that become empty one after another go with one program, and with all that is deleted of them.
        let pending = if self.pending_size < PENDING_SIZE_MAX { self.pending_size } else { PENDING_SIZE_MAX };
        let least = page_size / PAGE_ENTRY_SIZE_MIN + pending / PAGE_CHANGE_SIZE_MIN + JOURNAL_PAGES;
        let journal_pages = if self.journal_pages > least { self.journal_pages } else { least };
        nandu_tree::Options {
            cache_size: self.cache_size,
            journal_pages,
            durability: Durability::OnSync,
            pending_size: self.pending_size,
            note_count: self.note_count,
            copy_count: if self.log.mlc_streams > 0 { self.copy_count } else { 0 },
            parts_leaves: true,
        }
    }

    /// Bytes of memory for policies of placement.
    pub(crate) const fn placing_memory(&self) -> usize {
        #[cfg(feature = "mlc")]
        if self.placement.is_some() {
            return size_of::<Reference>() * (Hotness::HOT_COUNT + Hotness::COLD_COUNT);
        }
        0
    }

    /// Bytes for everything but log and tree.
    pub(crate) const fn own_memory(&self, page_size: usize) -> usize {
        WriteBuffer::memory_size(page_size) + OPEN_FILE_SIZE * self.open_max + self.placing_memory()
    }

    /// Bytes for the log, a multiple of 8, rounded up if pages behind it are to be aligned as well.
    pub(crate) const fn log_memory<N: Nand>(&self, geometry: &Geometry) -> usize {
        let size = Log::<N>::memory_required(geometry, &self.log);
        if self.aligned { size.next_multiple_of(ALIGNMENT) } else { size }
    }

    pub(crate) const fn memory_required<N: Nand>(&self, geometry: &Geometry) -> usize {
        let page_size = geometry.page_size as usize;
        let tree = nandu_tree::memory_required(page_size, &self.tree(page_size));
        self.log_memory::<N>(geometry) + tree + self.own_memory(page_size)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
