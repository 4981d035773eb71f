//! What the log did since the mount, and how it stands.

use nandu_nand::Cause;

use crate::blocks::{Blocks, Stage};
use crate::chip::Counters;
use crate::tail::{Tail, TailStats};

/// What the log did since the mount, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStats {
    /// Pages programmed, by the number of the cause.
    pub programs: [u64; Cause::COUNT],
    /// Blocks erased.
    pub erases: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Programs and erases that failed.
    pub failures: u64,
    /// Pages left out for the sake of those that share their cells.
    pub left_out: u32,
    /// Whether the mount found that the volume had not been unmounted, and recovered it.
    pub was_cut: bool,
    /// What the mount found of pages that only tags told of.
    pub tail: TailStats,
    /// Pages that are live, at most.
    pub live_pages: u32,
    /// Pages that may be live.
    pub capacity_pages: u32,
    /// Blocks that hold nothing.
    pub pool_blocks: u32,
    /// Blocks out of use; blocks kept because a page in them is live and cannot be read.
    pub bad_blocks: u32,
    /// See [`LogStats::bad_blocks`].
    pub damaged_blocks: u32,
    /// Erases of the least worn data block.
    pub erase_count_min: u32,
    /// Erases of the most worn data block.
    pub erase_count_max: u32,
    /// Erases of all data blocks.
    pub erase_count_sum: u64,
    /// Data blocks that are not bad.
    pub data_blocks: u32,
}

impl LogStats {
    /// What blocks, tail and chip say. Costs a pass over the block table in memory.
    pub(crate) fn of(blocks: &Blocks<'_>, tail: &Tail, counters: &Counters) -> LogStats {
        let (mut least, mut most, mut sum, mut count) = (u32::MAX, 0, 0, 0);
        for block in blocks.addresses() {
            if !matches!(blocks.state(block), Stage::Bad | Stage::Anchor) {
                let erases = blocks.erase_count(block);
                (least, most) = (least.min(erases), most.max(erases));
                (sum, count) = (sum + u64::from(erases), count + 1);
            }
        }
        LogStats {
            programs: counters.programs,
            erases: counters.erases,
            checkpoints: 0,
            failures: counters.failures.into(),
            left_out: 0,
            was_cut: false,
            tail: tail.mounted(),
            live_pages: blocks.live_total(),
            capacity_pages: 0,
            pool_blocks: blocks.pool(),
            bad_blocks: blocks.in_state(Stage::Bad),
            damaged_blocks: blocks.damaged(),
            erase_count_min: least.min(most),
            erase_count_max: most,
            erase_count_sum: sum,
            data_blocks: count,
        }
    }

    /// Erases of a data block in the mean, rounded down.
    pub fn erase_count_mean(&self) -> u32 {
        self.erase_count_sum.checked_div(self.data_blocks.into()).map_or(0, |mean| mean as u32)
    }

    /// Pages programmed for all causes.
    pub fn programs_total(&self) -> u64 {
        self.programs.iter().sum()
    }

    /// Pages programmed for one cause.
    pub fn programs_for(&self, cause: Cause) -> u64 {
        self.programs[cause as usize]
    }
}
