//! Choices made when a store is formatted or opened.

use nandu_nand::{Geometry, Nand};
use nandu_tree::Durability;

/// Whether large values are compiled. A store that has some is refused where they are not.
const BLOBS: bool = cfg!(feature = "blobs");

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
    /// Read the header of each page back after it was programmed: one more short read for each program, and a program that
    /// the chip reported and lost (fault F14) is repeated elsewhere instead of being found out when it is needed. An open after
    /// a cut reads twice what does not seem to be there, so that a read of something else (F15, F16) does not hide the newest page.
    pub read_back: bool,
    /// Program each commit twice, one page after the other. The newest page may become unreadable after its program, or the supply may sag so that it was never sound (F25). After a cut
    /// nothing tells such a page from one that the cut tore: what it made durable is gone without an error. With this the page before it says the same. Costs one program more for each
    /// change, or each sync; a file is synced by a commit then, and not by the page itself.
    pub commit_twice: bool,
    /// Reads of a block since its erase after which its pages are moved, since reading disturbs the pages beside the one
    /// read; left open: 131,072 with one bit a cell and 16,384 with two, about an eighth of what chips are rated for. Reads
    /// are estimated, not counted. 0: never.
    pub reads_max: Option<u32>,
    /// Bytes of memory for nodes of the tree that are kept. With room for all inner nodes, about three bytes for each
    /// leaf with integer keys, a lookup reads one page.
    pub cache_size: usize,
    /// When a change is durable: when the call returns, or at the next [`Store::sync`](crate::Store::sync). With the
    /// latter many changes cost few programs.
    pub durability: Durability,
    /// Bytes of memory for changes that are not in their place yet, of which 65,535 at most are used, and no more than three
    /// quarters of what the pages that a sync can name hold: 60 KB on pages of 4 KiB, a few KB on pages of 512 bytes. The more
    /// there are, the more changes go to their place with one program. With 0 none waits; else 600 at least
    /// are used, so that a change may be durable at once beside those that wait: one that needs more than half of them is. Without [`Durability::OnSync`] it is needed only to open a volume that
    /// was used with it and not left by [`Store::merge`](crate::Store::merge): as many bytes as were given then are enough,
    /// with fewer the volume may be refused with [`Error::PendingSize`](crate::Error::PendingSize).
    pub pending_size: usize,
    /// Test switches: rules of the tree, and of the log, that are left out.
    #[cfg(feature = "_broken")]
    pub broken: (nandu_tree::Broken, nandu_log::Broken),
}

impl Options {
    /// 8 KiB of cache, everything else left open.
    pub const DEFAULT: Options = Options {
        volume: None,
        salt: 0,
        stream_count: None,
        ready_max: None,
        read_back: false,
        commit_twice: false,
        reads_max: None,
        cache_size: 8192,
        durability: Durability::Immediate,
        pending_size: 0,
        #[cfg(feature = "_broken")]
        broken: (nandu_tree::Broken::NOTHING, nandu_log::Broken::NOTHING),
    };

    /// These options with as large a cache as fits `memory_size` bytes in all; `None` if the store needs more than that
    /// even without one.
    pub fn fit<N: Nand>(self, geometry: &Geometry, memory_size: usize) -> Option<Options> {
        let without = Options { cache_size: 0, ..self };
        let cache_size = memory_size.checked_sub(without.memory_required::<N>(geometry))?;
        Some(Options { cache_size, ..self })
    }

    /// The tree's options.
    pub(crate) const fn engine(&self) -> nandu_tree::Options {
        // It has fields besides where the log is built for its own tests.
        let mut engine = nandu_tree::Options::DEFAULT;
        engine.log.volume = self.volume;
        engine.log.salt = self.salt;
        engine.log.stream_count = self.stream_count;
        engine.log.ready_max = self.ready_max;
        engine.log.read_back = self.read_back;
        engine.log.commit_twice = self.commit_twice;
        engine.log.reads_max = self.reads_max;
        engine.cache_size = self.cache_size;
        engine.pending_size = self.pending_size;
        engine.durability = self.durability;
        engine.has_values = BLOBS;
        engine.has_snapshots = cfg!(feature = "snapshots");
        #[cfg(feature = "_broken")]
        {
            (engine.broken, engine.log.broken) = self.broken;
        }
        engine
    }

    pub(crate) const fn memory_required<N: Nand>(&self, geometry: &Geometry) -> usize {
        nandu_tree::memory_required::<N>(geometry, &self.engine())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
