//! Choices made when a file system is formatted or mounted.

use nandu_log::LogOptions;
use nandu_nand::{Geometry, Nand};
#[cfg(feature = "mlc")]
use nandu_placement::{Hotness, PlacementOptions, Reference, WearPromise};
use nandu_tree::Durability;

use crate::open_files::OPEN_FILE_SIZE;
use crate::write_buffer::WriteBuffer;

/// Choices made when a file system is formatted or mounted. What a volume was formatted with is found on the chip and need not be
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Choices of the log below.
    pub log: LogOptions,
    /// Bytes of memory for nodes of the tree that are kept.
    pub cache_size: usize,
    /// Bytes of memory for changes that are not in their place yet. The more there are, the more changes go to their place with one program. With 0 none waits; else 600 at least are used. A volume takes as many to mount as it was last used with.
    pub pending_size: usize,
    /// Policies of where pages of files go on a volume with blocks of both modes ([`Options::both_modes`]), and of when they move; takes
    /// 2,560 bytes. `None`: they are written with one bit a cell, and move when the collector needs room.
    #[cfg(feature = "mlc")]
    pub placement: Option<PlacementOptions>,
    /// A lifetime to be promised, which bounds what is written with one bit a cell; with `placement` only.
    #[cfg(feature = "mlc")]
    pub wear: Option<WearPromise>,
    /// Files that may be open at a time, 12 bytes each.
    pub open_max: usize,
    /// Refuse every change. A mount after a power cut repairs what the cut left all the same.
    pub read_only: bool,
    /// Mount what there was when this snapshot was taken, to be read ([`Fs::snapshot`](crate::Fs::snapshot)).
    pub snapshot: Option<u32>,
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
    /// What tags tell of is not made again after a cut.
    pub without_tail: bool,
    /// Bits of the hash of a name that are zero, to make names collide.
    pub hash_zeros: u32,
}

impl Options {
    /// 4 KiB for nodes, 8 KiB for changes, 64 open files.
    pub const DEFAULT: Options = Options {
        log: LogOptions { has_tags: cfg!(feature = "tags"), ..LogOptions::DEFAULT },
        cache_size: 4096,
        pending_size: 8192,
        #[cfg(feature = "mlc")]
        placement: None,
        #[cfg(feature = "mlc")]
        wear: None,
        open_max: 64,
        read_only: false,
        snapshot: None,
        #[cfg(feature = "_broken")]
        broken: Broken {
            without_sync: false,
            name_first: false,
            replace_in_parts: false,
            without_orphans: false,
            without_tail: false,
            hash_zeros: 0,
        },
    };

    /// The same for a volume that uses both modes of a chip whose cells can hold two bits: everything that is acknowledged is written with
    /// one bit a cell, and pages of files move to two in idle time, as the policies say. Files have nearly the chip's whole capacity.
    #[cfg(feature = "mlc")]
    pub fn both_modes(self, geometry: &Geometry) -> Options {
        Options {
            log: LogOptions { has_mlc: true, ..self.log },
            placement: Some(PlacementOptions::for_geometry(geometry)),
            ..self
        }
    }

    /// Files that the policies of placement look at.
    pub(crate) const fn references(&self) -> usize {
        #[cfg(feature = "mlc")]
        if self.placement.is_some() {
            return Hotness::HOT_COUNT + Hotness::COLD_COUNT;
        }
        0
    }

    /// Bytes for them.
    pub(crate) const fn placing_memory(&self) -> usize {
        #[cfg(feature = "mlc")]
        return self.references() * size_of::<Reference>();
        #[cfg(not(feature = "mlc"))]
        self.references()
    }

    pub(crate) const fn engine(&self) -> nandu_tree::Options {
        // It has fields besides where the tree is built for its own tests.
        let mut options = nandu_tree::Options::DEFAULT;
        options.log = self.log;
        options.log.has_raw = true;
        options.cache_size = self.cache_size;
        options.pending_size = self.pending_size;
        options.durability = Durability::OnSync;
        options.has_values = true;
        options.has_snapshots = cfg!(feature = "snapshots");
        options.has_parts = true;
        options
    }

    /// Bytes for everything but log and tree.
    pub(crate) const fn own_memory(&self, page_size: usize) -> usize {
        WriteBuffer::memory_size(page_size) + OPEN_FILE_SIZE * self.open_max + self.placing_memory()
    }

    pub(crate) const fn memory_required<N: Nand>(&self, geometry: &Geometry) -> usize {
        nandu_tree::memory_required::<N>(geometry, &self.engine()) + self.own_memory(geometry.page_size as usize)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
