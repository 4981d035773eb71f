//! What the log did and how it stands, added up.

use nandu_nand::Nand;

use crate::block_table::State;
use crate::log::Log;
use crate::stats::LogStats;

impl<N: Nand> Log<'_, N> {
    /// What the log did since the mount, and how it stands. Costs a pass over the block table in memory.
    pub fn stats(&self) -> LogStats {
        let mut min = u32::MAX;
        let mut max = 0;
        let mut sum = 0_u64;
        let mut count = 0_u64;
        for block in self.blocks.addresses() {
            if !matches!(self.blocks.state(block), State::Bad | State::Anchor) {
                let erases = self.blocks.erase_count(block);
                min = min.min(erases);
                max = max.max(erases);
                sum += u64::from(erases);
                count += 1;
            }
        }
        LogStats {
            programs: self.stats.programs,
            erases: self.stats.erases,
            checkpoints: self.stats.checkpoints,
            levelling_checkpoints: self.stats.levelling_checkpoints,
            examinations: self.stats.examinations,
            program_failures: self.stats.program_failures,
            erase_failures: self.stats.erase_failures,
            instalment_max: self.stats.instalment_max.max(self.collector.instalment_steps()),
            skipped: self.stats.skipped,
            tail_pages: self.stats.tail_pages,
            tail_lost: self.stats.tail_lost.count_ones(),
            was_cut: self.was_cut,
            live_pages: self.blocks.live_total(),
            capacity_pages: self.capacity_pages(),
            pool_blocks: self.blocks.pool(),
            bad_blocks: self.blocks.count(State::Bad),
            damaged_blocks: self.blocks.damaged(),
            erase_count_min: min.min(max),
            erase_count_max: max,
            erase_count_mean: (sum / count.max(1)) as u32,
            erase_count_sum: sum,
            data_blocks: count as u32,
        }
    }
}
