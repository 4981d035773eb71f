//! Statistics of a volume.

use nandu::LogStats;

/// `nandu_stats` of the header.
#[repr(C)]
pub(crate) struct CStats {
    pub(crate) programs: u64,
    pub(crate) erases: u64,
    pub(crate) checkpoints: u64,
    pub(crate) failures: u64,
    pub(crate) live_pages: u32,
    pub(crate) capacity_pages: u32,
    pub(crate) free_blocks: u32,
    pub(crate) bad_blocks: u32,
    pub(crate) erase_count_min: u32,
    pub(crate) erase_count_max: u32,
    pub(crate) was_cut: u32,
    pub(crate) reserved: u32,
}

impl CStats {
    pub(crate) fn of(stats: &LogStats) -> CStats {
        CStats {
            programs: stats.programs_total(),
            erases: stats.erases,
            checkpoints: stats.checkpoints,
            failures: stats.failures,
            live_pages: stats.live_pages,
            capacity_pages: stats.capacity_pages,
            free_blocks: stats.pool_blocks,
            bad_blocks: stats.bad_blocks,
            erase_count_min: stats.erase_count_min,
            erase_count_max: stats.erase_count_max,
            was_cut: stats.was_cut.into(),
            reserved: 0,
        }
    }
}
