//! What an index is made and opened with.

pub use nandu_media::inpage::record::Cells;

/// Where log records go in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Nodes from the first page on, log sectors from the last page back, one program for each sector. For chips that
    /// take partial programs in any order of pages and tear no more than the bytes being programmed.
    Sectors,
    /// Every program takes the next page. A log page holds records of the node that needs it and, as far as there is room,
    /// of others of the block.
    Pages,
}

/// How many log pages a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogPages {
    /// Always so many.
    Static(u8),
    /// So many are kept free for logs, and logs may take any other free page up to [`Options::log_pages_max`].
    Opportunistic(u8),
    /// As opportunistic, beginning with so many. Each merge decides anew by what the block saw since the last one; and a
    /// block whose log pages have cost more reads than a merge does is merged early.
    Adaptive(u8),
}

impl LogPages {
    /// Log pages of a block that nothing is known about.
    pub const fn first(self) -> u8 {
        match self {
            LogPages::Static(count) | LogPages::Opportunistic(count) | LogPages::Adaptive(count) => count,
        }
    }
}

/// How many blocks are filled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupSize {
    /// Always so many, 1 to 16.
    Fixed(u8),
    /// By the size of the index and the share of writes, at most so many.
    Dynamic(u8),
}

/// Which log pages are read with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogRead {
    /// As many as the block is granted, programmed or not.
    All,
    /// Those that are programmed.
    Used,
    /// Those that hold records of the node.
    Smart,
}

/// What leaves the buffer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// What was not used for longest.
    Lru,
    /// Of the window of units not used for longest, the oldest clean one; if there is none, the oldest.
    CleanFirst,
    /// As [`CleanFirst`](Policy::CleanFirst), and a unit with changes gives up what it read before it gives up its changes. Of the
    /// changed units those go first whose flushing causes no split.
    SemiClean,
}

/// When and how nodes are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Splits {
    /// As soon as a node is too large. The new node, its parent and the old node are written.
    EagerThree,
    /// When a node that is too large is flushed. The new node and its parent are written; what the old node no longer holds
    /// is hidden by its fence and dropped by the next merge.
    LazyTwo,
}

/// When changes are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When [`sync`](crate::InPage::sync) returns.
    OnSync,
    /// When the call returns. Needs a journal: a program for each change.
    Immediate,
}

/// Which index of the literature a volume is. Both are one engine; the format says which it is, so that a volume is not
/// opened with the habits of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// In-page logging.
    Ipl,
    /// Group round robin.
    Grr,
}

/// Times of the chip, for deciding when a merge pays. Their ratios matter, not their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    /// A page read, nanoseconds.
    pub read_ns: u32,
    /// A program, nanoseconds.
    pub program_ns: u32,
    /// An erase, nanoseconds.
    pub erase_ns: u32,
}

/// Switches that break an invariant, so that tests can show what it is good for.
#[cfg(feature = "_broken")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    /// I3: a sector is added to a block whose merge began.
    pub sector_after_merge: bool,
    /// I5: a block is erased before its last node stands elsewhere.
    pub erase_before_copy: bool,
    /// J1: nodes are programmed before the journal page with their changes.
    pub node_before_journal: bool,
    /// J3: the ring is erased before flash says that it is not needed.
    pub release_undeclared: bool,
    /// J4: the newest page is not copied before its changes are made again.
    pub replay_uncopied: bool,
}

#[cfg(feature = "_broken")]
impl Broken {
    /// Nothing is broken.
    pub const NONE: Broken = Broken {
        sector_after_merge: false,
        erase_before_copy: false,
        node_before_journal: false,
        release_undeclared: false,
        replay_uncopied: false,
    };
}

/// How an index is laid out and how it behaves.
///
/// Kind, layout, cells, pages of a node, sector size and most log pages are part of the format: [`open`](crate::InPage::open) refuses others
/// than the volume was made with. The rest may differ each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which index the volume is.
    pub kind: Kind,
    /// Where log records go.
    pub layout: Layout,
    /// Kind of keys and values.
    pub cells: Cells,
    /// Pages of a node, 1 to 8: more where pages are small and keys are mostly read in order. A node costs so many reads and so
    /// many programs, and a log page is as many pages.
    pub node_pages: u8,
    /// Bytes of the records that are collected for a node, with their header. With [`Layout::Sectors`] a multiple of the
    /// chip's program unit. Divides the page.
    pub sector_size: u32,
    /// Log pages of a block, each of as many pages as a node.
    pub log_pages: LogPages,
    /// Most log pages of a block: 1 to 16, divided by the pages of a node.
    pub log_pages_max: u8,
    /// Blocks filled together.
    pub group: GroupSize,
    /// Log pages read with a node.
    pub log_read: LogRead,
    /// What leaves the buffer first.
    pub policy: Policy,
    /// Share of the buffer in which units may be chosen to leave, percent.
    pub window_percent: u8,
    /// Share of the buffer that inner nodes have for themselves, percent.
    pub inner_percent: u8,
    /// Share of the buffer that changes without their nodes may take, percent. 100: no bound.
    pub dirty_max_percent: u8,
    /// When and how nodes are split.
    pub splits: Splits,
    /// Blocks of the write-ahead ring, at most 8. 0: there is none, a sync programs every changed node, and batches are refused.
    pub journal_blocks: u8,
    /// When changes are durable.
    pub durability: Durability,
    /// Whether a merge takes along the changes of other leaves of the block that are in memory, which need no program of their own
    /// then.
    pub absorb: bool,
    /// When the most erased block was erased so many times more than one that holds nodes, that one is merged, so that it wears too.
    pub levelling_gap: Option<u32>,
    /// Bytes for nodes and changes in memory.
    pub buffer_size: usize,
    /// Hundredths of a node that each log page of a group takes from the buffer. 0 but to find out what the paper measured: its hit
    /// ratios fall as if log pages took memory.
    pub log_reserve: u16,
    /// Most nodes there is memory for; as many as the chip has pages if nothing is said.
    pub node_count_max: Option<u32>,
    /// Read back what was programmed, and the first page of what was erased: one more read each. A program or an erase that the
    /// chip reported and lost is then made elsewhere, instead of being found out when it is needed.
    pub read_back: bool,
    /// Times of the chip.
    pub times: Times,
    /// What a format draws the id of the volume from, beside the volume found on the chip and its bad blocks: something by chance, or what tells
    /// this chip from others. Opening does not look at it.
    pub salt: u64,
    /// Breaks an invariant.
    #[cfg(feature = "_broken")]
    pub broken: Broken,
}

impl Options {
    /// Group round robin as a product: whole pages, log pages as needed, only log pages that matter are read.
    pub const DEFAULT: Options = Options {
        kind: Kind::Grr,
        layout: Layout::Pages,
        cells: Cells::Bytes,
        node_pages: 1,
        sector_size: 512,
        log_pages: LogPages::Adaptive(4),
        log_pages_max: 8,
        group: GroupSize::Dynamic(16),
        log_read: LogRead::Smart,
        policy: Policy::SemiClean,
        window_percent: 75,
        inner_percent: 25,
        dirty_max_percent: 100,
        splits: Splits::LazyTwo,
        journal_blocks: 0,
        durability: Durability::OnSync,
        absorb: false,
        levelling_gap: Some(1000),
        buffer_size: 64 * 1024,
        log_reserve: 0,
        node_count_max: None,
        read_back: false,
        times: Times { read_ns: 80_000, program_ns: 200_000, erase_ns: 1_500_000 },
        salt: 0,
        #[cfg(feature = "_broken")]
        broken: Broken::NONE,
    };

    /// Group round robin as it is published: eight blocks in turn, four log pages in each.
    pub const GRR: Options = Options {
        layout: Layout::Sectors,
        cells: Cells::Fixed { key: 8, value: 8 },
        log_pages: LogPages::Static(4),
        group: GroupSize::Fixed(8),
        log_read: LogRead::Used,
        levelling_gap: None,
        ..Options::DEFAULT
    };

    /// In-page logging as it is published: one block after the other, one log page in each, LRU.
    pub const IPL: Options = Options {
        kind: Kind::Ipl,
        log_pages: LogPages::Static(1),
        group: GroupSize::Fixed(1),
        policy: Policy::Lru,
        splits: Splits::EagerThree,
        ..Options::GRR
    };
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}
