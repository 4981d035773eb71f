//! What may be chosen.

/// When the bucket of a directory learns where a file's inode went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParentUpdate {
    /// With each inode that is programmed: the literal reading of the paper. One program more for each fsync.
    Each,
    /// When the file is closed, at a checkpoint, or when too many wait. A cut in between loses nothing: the next mount finds the inode
    /// in its area.
    Close,
}

/// Switches that break an order, so that tests can show what it is good for.
#[cfg(feature = "_broken")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    /// O1: a new directory's bucket is programmed before its inode.
    pub parent_before_directory: bool,
    /// O2: the chain leads to a virtual directory before that is programmed.
    pub link_before_virtual: bool,
    /// O3: an entry that fills a hole is taken out of its old place first.
    pub hole_last: bool,
    /// O4: a file's inode is programmed before its last page of data.
    pub inode_before_data: bool,
    /// O5: a rename takes the old name away first.
    pub removal_first: bool,
    /// O6: collected blocks are used again before a checkpoint says so.
    pub erase_before_checkpoint: bool,
    /// O7: a checkpoint is programmed before the pages of the map that it names.
    pub checkpoint_before_map: bool,
    /// O9: recovery does not program the newest inode again.
    pub newest_not_copied: bool,
    /// O10: recovery leaves an entry that stands in two pages of a chain.
    pub doubles_kept: bool,
    /// O11: recovery leaves the old name of a rename.
    pub rename_not_finished: bool,
    /// O12: blocks that were being filled at a cut are filled on.
    pub heads_kept: bool,
    /// O13: data newer than the checkpoint does not keep its block from being used.
    pub data_unclaimed: bool,
}

/// How a volume is laid out and how it behaves. Only [`directory_max`](Options::directory_max) is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Logical numbers: one for each directory and each further page of one. Four bytes of memory each; at most 32,768. The map of them
    /// fits one block.
    pub directory_max: u32,
    /// When a bucket learns where its file's inode went.
    pub parent_update: ParentUpdate,
    /// Pages of inodes between two checkpoints: after a cut, a mount reads that many a few times over.
    pub checkpoint_interval: u32,
    /// Blocks kept free for the collector: 7 in the paper; at least 6. More are kept where an operation and a recovery could need more.
    pub reserve_blocks: u32,
    /// Files whose inodes are in memory, each with a page of data: two pages of memory each. At least 3.
    pub open_files: u32,
    /// Files whose bucket may be behind, at least 2.
    pub lag_max: u32,
    /// Pages of inodes that are kept after they were read or programmed.
    pub cache_pages: u32,
    /// What a format draws the id of the volume from: something by chance, or what tells this chip from others.
    pub salt: u64,
    /// Breaks an order.
    #[cfg(feature = "_broken")]
    pub broken: Broken,
}

impl Options {
    /// What suits a chip of the paper.
    pub const DEFAULT: Options = Options {
        directory_max: 8192,
        parent_update: ParentUpdate::Close,
        checkpoint_interval: 512,
        reserve_blocks: 9,
        open_files: 6,
        lag_max: 64,
        cache_pages: 16,
        salt: 0,
        #[cfg(feature = "_broken")]
        broken: Broken {
            parent_before_directory: false,
            link_before_virtual: false,
            hole_last: false,
            inode_before_data: false,
            removal_first: false,
            erase_before_checkpoint: false,
            checkpoint_before_map: false,
            newest_not_copied: false,
            doubles_kept: false,
            rename_not_finished: false,
            heads_kept: false,
            data_unclaimed: false,
        },
    };

    /// Whether a switch of [`Broken`] is set; never, where there are none.
    #[cfg(feature = "_broken")]
    pub(crate) fn is_broken(&self, which: fn(&Broken) -> bool) -> bool {
        which(&self.broken)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// Whether an order is left out, by its switch.
#[cfg(feature = "_broken")]
macro_rules! broken {
    ($fs:expr, $switch:ident) => {
        $fs.options.is_broken(|broken| broken.$switch)
    };
}

/// No order is left out.
#[cfg(not(feature = "_broken"))]
macro_rules! broken {
    ($fs:expr, $switch:ident) => {
        false
    };
}

pub(crate) use broken;
