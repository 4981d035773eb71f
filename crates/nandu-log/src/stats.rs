//! What the log did, for reports.

use nandu_nand::Cause;

/// Counters kept in memory since the mount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) programs: [u64; Cause::COUNT],
    pub(crate) erases: u64,
    pub(crate) checkpoints: u64,
    pub(crate) levelling_checkpoints: u64,
    pub(crate) examinations: u64,
    pub(crate) program_failures: u64,
    pub(crate) erase_failures: u64,
    pub(crate) instalment_max: u32,
    pub(crate) skipped: u64,
    pub(crate) tail_pages: u64,
    /// A bit for each place.
    pub(crate) tail_lost: u16,
}

impl Stats {
    pub(crate) const ZERO: Stats = Stats {
        programs: [0; Cause::COUNT],
        erases: 0,
        checkpoints: 0,
        levelling_checkpoints: 0,
        examinations: 0,
        program_failures: 0,
        erase_failures: 0,
        instalment_max: 0,
        skipped: 0,
        tail_pages: 0,
        tail_lost: 0,
    };

    pub(crate) fn count(&mut self, cause: Cause) {
        self.programs[cause as usize] += 1;
    }

    pub(crate) fn programs(&self) -> u64 {
        self.programs.iter().sum()
    }
}

/// What the log did since the mount, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStats {
    /// Pages programmed, by the number of the cause.
    pub programs: [u64; Cause::COUNT],
    /// Blocks erased.
    pub erases: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Of these, those that list a worn block for pages that are moved to even out wear.
    pub levelling_checkpoints: u64,
    /// Pages the owner was asked about.
    pub examinations: u64,
    /// Programs that failed and were repeated elsewhere.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Most steps (examinations, pages that moves programmed beside the one moved, erases, checkpoints) that one instalment
    /// took, per page it was for.
    pub instalment_max: u32,
    /// Pages left out since their program could have damaged one that a commit names.
    pub skipped: u64,
    /// Pages of which only tags told after a cut, and that the owner took over ([`Log::due_page`](crate::Log::due_page)).
    pub tail_pages: u64,
    /// Of these, those that cannot be read, nor their tags: something that was synced is lost, and nobody can say what ([`Due::Lost`](crate::Due)).
    pub tail_lost: u32,
    /// Whether the mount found that the volume had not been unmounted, and recovered it.
    pub was_cut: bool,
    /// Pages that are live, at most.
    pub live_pages: u32,
    /// Pages that may be live.
    pub capacity_pages: u32,
    /// Blocks that hold nothing.
    pub pool_blocks: u32,
    /// Blocks out of use.
    pub bad_blocks: u32,
    /// Blocks kept because a page in them cannot be read and may be live.
    pub damaged_blocks: u32,
    /// Erases of the least worn data block.
    pub erase_count_min: u32,
    /// Erases of the most worn data block.
    pub erase_count_max: u32,
    /// Erases of all data blocks, over their number, rounded down.
    pub erase_count_mean: u32,
    /// Erases of all data blocks.
    pub erase_count_sum: u64,
    /// Data blocks that are not bad.
    pub data_blocks: u32,
}

impl LogStats {
    /// Pages programmed for all causes.
    pub fn programs_total(&self) -> u64 {
        self.programs.iter().sum()
    }

    /// Pages programmed for one cause.
    pub fn programs_for(&self, cause: Cause) -> u64 {
        self.programs[cause as usize]
    }
}
