//! Static wear levelling: now and then a block that is hardly worn, because what it holds never changes, is emptied so that
//! it takes its turn. Dynamic levelling is in the choice of blocks to erase: the least worn first.

use nandu_nand::{BlockAddr, Nand};

use crate::block_table::State;
use crate::log::Log;

/// Erases by which the most worn block may be ahead of a full one before that is emptied.
const SPREAD_MAX: u32 = 8;

/// Erases by which a block may be ahead of the mean before it is emptied only for want of others. More saves copies and
/// wears less evenly: under a 95/5 load 8 instead of 6 saves nothing to speak of and has levelling take ten times as many
/// programs; 4 costs 5 to 6 % more programs.
const LEAD_MAX: u32 = 6;

/// Share of programs that levelling may take, in percent.
const SHARE_MAX: u64 = 1;

impl<N: Nand> Log<'_, N> {
    /// How much a block's wear speaks for emptying it: the square of its distance to what is too much. By differences, not
    /// ratios, so that the spread is the same in the first thousand erases as in the last. 10 bits.
    pub(crate) fn lag_weight(&self, block: BlockAddr) -> u64 {
        let wear = self.blocks.erase_count(block);
        let weight = (self.blocks.erase_count_mean() + LEAD_MAX).saturating_sub(wear);
        u64::from(weight.clamp(1, 4 * LEAD_MAX).pow(2))
    }

    /// The least worn block with data, if it lags so far behind that it should be emptied, and the cap allows it.
    pub(crate) fn levelling_victim(&self) -> Option<BlockAddr> {
        let next = self.collector.levelled + u64::from(self.shape.pages);
        if next * 100 > self.stats.programs() * SHARE_MAX {
            return None;
        }
        let erases = |block: BlockAddr| self.blocks.erase_count(block);
        let most = self
            .blocks
            .addresses()
            .filter(|&block| !matches!(self.blocks.state(block), State::Bad | State::Anchor))
            .map(erases)
            .max()?;
        let least = self
            .blocks
            .addresses()
            .filter(|&block| self.blocks.state(block) == State::Full && self.blocks.live(block) > 0)
            .filter(|&block| !self.blocks.is_pinned(block))
            .min_by_key(|&block| erases(block))?;
        (most - erases(least).min(most) > SPREAD_MAX).then_some(least)
    }
}
