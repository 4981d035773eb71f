//! Static wear levelling: now and then a block that is hardly worn, because what it holds never changes, is emptied so that
//! it takes its turn. Dynamic levelling is in the choice of blocks to erase: the least worn first.

use nandu_nand::{BlockAddr, Nand};

use crate::block_table::State;
use crate::log::Log;

/// Erases by which the most worn block may be ahead of a full one before that is emptied.
const SPREAD_MAX: u32 = 8;

/// Share of programs that levelling may take, in percent.
const SHARE_MAX: u64 = 1;

impl<N: Nand> Log<'_, N> {
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
