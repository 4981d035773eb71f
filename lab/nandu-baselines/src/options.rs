//! How a tree of the paper is set up, and what it counts.

use crate::TreeKind;

/// What is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The paper's two caches, in pages: one for what was read, least recently used first out, and one for what is to be
    /// programmed, in the order of allocation. The latter is programmed in bulk at the end of the operation that
    /// overflowed it, so that up to `write_pages` pages of acknowledged changes are in memory alone.
    Pages {
        /// Pages of the read cache.
        read_pages: usize,
        /// Pages of the write cache; 0 makes each change durable when it returns.
        write_pages: usize,
    },
    /// Nodes as they are on flash, charged for the bytes they use and 8 more. Each change is programmed when it is made.
    /// Leaves are the first to leave, then the level above them, and so on; the root stays.
    Nodes {
        /// Bytes in all.
        bytes: usize,
    },
    /// The same, but a node is charged for the whole page it was read from.
    WholePages {
        /// Bytes in all.
        bytes: usize,
    },
}

impl Cache {
    /// Nothing is kept, but for the page read last within an operation.
    pub const NONE: Cache = Cache::Pages { read_pages: 0, write_pages: 0 };

    /// The paper's pair "R+W", both sizes in KiB, on pages of this many bytes.
    pub const fn paper(read_kib: usize, write_kib: usize, page_size: u32) -> Cache {
        let page_size = page_size as usize;
        Cache::Pages { read_pages: read_kib * 1024 / page_size, write_pages: write_kib * 1024 / page_size }
    }

    pub(crate) const fn write_pages(&self) -> usize {
        match *self {
            Cache::Pages { write_pages, .. } => write_pages,
            Cache::Nodes { .. } | Cache::WholePages { .. } => 0,
        }
    }
}

/// How a tree of the paper is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperOptions {
    /// Which tree.
    pub kind: TreeKind,
    /// What is kept in memory.
    pub cache: Cache,
    /// Blocks are freed when fewer than this are free; 2 to 4.
    pub free_blocks_min: u32,
    /// Whether a change of the mu-Tree allocates its page before it descends, as line 1 of the paper's algorithm 3 does.
    /// The allocation drops the flushed pages, the root among them, so that it has to be read again.
    pub alloc_before_descent: bool,
}

impl PaperOptions {
    /// As the paper did it, with this cache.
    pub const fn paper(kind: TreeKind, cache: Cache) -> PaperOptions {
        PaperOptions { kind, cache, free_blocks_min: 3, alloc_before_descent: true }
    }
}

/// What a tree did since it was made. Take a copy before a phase and [`since`](Stats::since) after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Array reads.
    pub reads: u64,
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Blocks freed by garbage collection.
    pub gc_runs: u64,
    /// Pages moved for it.
    pub gc_moves: u64,
    /// Leaves split.
    pub leaf_splits: u64,
    /// Nodes above the leaves split, the root among them.
    pub index_splits: u64,
    /// Nodes that vanished because they were empty.
    pub nodes_removed: u64,
}

impl Stats {
    /// What was counted since `before` was copied.
    pub const fn since(&self, before: &Stats) -> Stats {
        Stats {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
            gc_runs: self.gc_runs - before.gc_runs,
            gc_moves: self.gc_moves - before.gc_moves,
            leaf_splits: self.leaf_splits - before.leaf_splits,
            index_splits: self.index_splits - before.index_splits,
            nodes_removed: self.nodes_removed - before.nodes_removed,
        }
    }
}
