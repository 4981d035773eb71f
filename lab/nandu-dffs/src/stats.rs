//! What was done since the mount.

use crate::blocks::Area;

/// Counts since the format or the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Programs by area, by the number of [`Area`]; those of summaries count as data.
    pub programs: [u64; 8],
    /// Programs of these that the collector asked for.
    pub collector_programs: [u64; 8],
    /// Pages read: those found in memory are not.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks collected, by area.
    pub collected: [u64; 8],
    /// Blocks collected by asking the inodes of all files, since no summary said whose their pages were.
    pub scans: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Blocks that were found or became bad.
    pub retired: u64,
    /// Whether the volume was not left in order before the last mount.
    pub was_cut: bool,
    /// Pages that the last mount found newer than its checkpoint.
    pub replayed: u64,
}

impl Stats {
    /// Programs in an area.
    pub const fn programs_of(&self, area: Area) -> u64 {
        self.programs[area as usize]
    }

    /// All programs.
    pub fn program_count(&self) -> u64 {
        self.programs.iter().sum()
    }

    /// All programs of the collector.
    pub fn collector_program_count(&self) -> u64 {
        self.collector_programs.iter().sum()
    }
}

/// How much room there is, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Pages that can hold inodes and data.
    pub pages: u64,
    /// Pages that hold some.
    pub used: u64,
    /// Logical numbers that are free: directories there can still be.
    pub directories_free: u64,
}

/// A block, as a map of the chip shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockUse {
    /// What it is used for.
    pub area: Area,
    /// Pages in it that live.
    pub live: u32,
    /// How often it was erased.
    pub erase_count: u32,
    /// Whether pages are being appended to it.
    pub is_head: bool,
    /// Whether it was collected and waits for a checkpoint.
    pub is_pending: bool,
}
