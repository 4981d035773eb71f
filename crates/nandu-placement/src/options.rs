//! Parameters of placement, and which of its policies are on.

/// Which policies are on. Each can be switched for itself, so that an experiment shows what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Pages are migrated in idle time. Without it, only when blocks run short.
    pub background: bool,
    /// The share of pages that go to SLC blocks follows the idle time. Without it, all do.
    pub dynamic: bool,
    /// Hot files are told from others.
    pub locality: bool,
    /// A promised lifetime bounds the share.
    pub wear: bool,
    /// The share is capped so that free blocks last. The paper has no cap.
    pub cap: bool,
    /// Pages of hot files have an SLC block of their own. In the paper they share one with others.
    pub split_heads: bool,
}

impl Policy {
    /// Nothing but migration when blocks run short.
    pub const BASELINE: Policy =
        Policy { background: false, dynamic: false, locality: false, wear: false, cap: true, split_heads: true };
    /// Background migration as well.
    pub const BACKGROUND: Policy = Policy { background: true, ..Policy::BASELINE };
    /// Dynamic allocation as well.
    pub const DYNAMIC: Policy = Policy { dynamic: true, ..Policy::BACKGROUND };
    /// Locality as well.
    pub const LOCALITY: Policy = Policy { locality: true, ..Policy::DYNAMIC };
    /// Everything: what a product uses.
    pub const ALL: Policy = Policy { wear: true, ..Policy::LOCALITY };

    /// The same as the paper has it: without a cap, and with one SLC block for hot and cold pages.
    pub const fn published(self) -> Policy {
        Policy { cap: false, split_heads: false, ..self }
    }
}

/// Parameters of placement: of the chip, and choices with their defaults. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementOptions {
    /// Which policies are on.
    pub policy: Policy,
    /// Idle time before background work begins (`Twait`).
    pub wait_us: u64,
    /// Time from the beginning of a step of background work to that of the next (`Ttrig`): how much of the idle time is used. At 15 ms
    /// it is about 10 % on the chip of the paper, and one request in ten finds a step under way.
    pub step_period_us: u64,
    /// How long changes wait until background work makes them durable, if nobody asks for that and nothing is to be moved. It costs a
    /// commit, which takes the room of two pages in MLC blocks, and these lose the partners of the pages that wait for theirs; so not for each
    /// burst. The default is how old Linux lets pages become that nobody synced.
    pub write_back_us: u64,
    /// Pages of the host in a window of dynamic allocation (`Np`).
    pub window_pages: u32,
    /// Free blocks below which the host has to wait until there are more (`Nthr`).
    pub free_blocks_min: u32,
    /// Free blocks below which MLC blocks are collected in idle time. With fewer than the minimum and what a window in SLC blocks and one
    /// in MLC blocks take, dynamic allocation gives less to SLC blocks than idle time permits; so it is that many by default.
    pub gc_free_blocks: u32,
    /// Writes to a file that are closer together count as one.
    pub correlation_us: u64,
    /// Time to erase a block in SLC mode.
    pub slc_erase_us: u64,
    /// Pages of a block in SLC mode.
    pub slc_pages_per_block: u32,
    /// Pages of a block in MLC mode.
    pub mlc_pages_per_block: u32,
    /// Erases that a block stands.
    pub endurance: u32,
}

impl PlacementOptions {
    /// The defaults, with the chip of the FlexFS paper.
    pub const DEFAULT: PlacementOptions = PlacementOptions {
        policy: Policy::ALL,
        wait_us: 1_000_000,
        step_period_us: 15_000,
        write_back_us: 30_000_000,
        window_pages: 1024,
        free_blocks_min: 5,
        gc_free_blocks: 29,
        correlation_us: 1_000_000,
        slc_erase_us: 872,
        slc_pages_per_block: 64,
        mlc_pages_per_block: 128,
        endurance: 10_000,
    };
}

impl PlacementOptions {
    /// The defaults for a chip: with its blocks. Times are still those of the paper's chip, since geometry does not state them.
    pub fn for_geometry(geometry: &nandu_nand::Geometry) -> PlacementOptions {
        PlacementOptions {
            slc_pages_per_block: geometry.pages_in_mode(nandu_nand::CellMode::Slc),
            mlc_pages_per_block: geometry.pages_in_mode(nandu_nand::CellMode::Mlc),
            endurance: geometry.endurance,
            ..PlacementOptions::DEFAULT
        }
    }
}

impl Default for PlacementOptions {
    fn default() -> PlacementOptions {
        PlacementOptions::DEFAULT
    }
}
