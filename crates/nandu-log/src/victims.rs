//! Which block is emptied next.

use nandu_nand::{BlockAddr, Cause};

use crate::blocks::{Blocks, Flag, Stage};
use crate::collector::Budget;
use crate::reserve::{FLOOR, OPENED_FLOOR};
use crate::room::{IDLE_LIVE_SHARE, IDLE_SHARE, WORTH_SHARE};

/// Erases by which the most worn block may be ahead of a full one before that is emptied.
const SPREAD_MAX: u32 = 8;

/// Erases by which a block may be ahead of the mean before it is emptied only for want of others. More saves copies and wears less evenly: under a 95/5 load
/// 8 instead of 6 saves nothing to speak of and has levelling take ten times as many programs; 4 costs 5 to 6 % more programs.
const LEAD_MAX: u32 = 6;

/// Looks for a block to empty.
pub(crate) struct Victims<'v, 'm> {
    pub(crate) blocks: &'v Blocks<'m>,
    /// The block that was done with last.
    pub(crate) skipped: Option<BlockAddr>,
}

impl<'v, 'm> Victims<'v, 'm> {
    /// A block in which a program failed, or whose bits begin to flip, if there is room to empty it.
    pub(crate) fn endangered(&self) -> Option<(BlockAddr, Cause)> {
        if self.blocks.endangered() == 0 || self.blocks.pool() < FLOOR {
            return None;
        }
        let failing = self.all().find(|&block| self.blocks.state(block) == Stage::Failing);
        let failing = failing.map(|block| (block, Cause::Retire));
        let flips = || self.all().find(|&block| self.blocks.has(block, Flag::Refresh));
        failing.or_else(|| flips().map(|block| (block, Cause::Refresh)))
    }

    /// The least worn block with data, if it lags so far behind that it should be emptied.
    pub(crate) fn levelling(&self) -> Option<(BlockAddr, Cause)> {
        let in_use = |block: &BlockAddr| !matches!(self.blocks.state(*block), Stage::Bad | Stage::Anchor);
        let most = self.blocks.addresses().filter(in_use).map(|block| self.blocks.erase_count(block)).max()?;
        let least = self.all().min_by_key(|&block| self.blocks.erase_count(block))?;
        (most > self.blocks.erase_count(least) + SPREAD_MAX).then_some((least, Cause::Levelling))
    }

    /// The block whose emptying gains most in the long run, of those with so many dead pages.
    pub(crate) fn best(&self, dead_min: u16) -> Option<(BlockAddr, Cause)> {
        debug_assert!(dead_min > 0, "a block that is full of live pages yields nothing");
        let best = self
            .all()
            .filter(|&block| self.blocks.dead_room(block) >= dead_min)
            .max_by_key(|&block| self.benefit(block));
        best.map(|block| (block, Cause::Gc))
    }

    /// The block with most dead pages, if so many: it yields most at once; or with two bits a cell, where pages take more room or less, that with most room for each page that is moved. The one that was done with last has to wait, unless there is no other.
    ///
    /// Pages that lead to those that were moved die when their neighbours are moved. So a block that moves filled may be the emptiest one again and again, and
    /// emptying it yield nothing, while others yield something.
    pub(crate) fn emptiest(&self, dead_min: u16) -> Option<(BlockAddr, Cause)> {
        debug_assert!(dead_min > 0, "a block that is full of live pages yields nothing");
        let emptiest = |victims: &Self| {
            let worth = victims.all().filter(|&block| self.blocks.dead_room(block) >= dead_min);
            worth.max_by_key(|&block| self.yields(block))
        };
        let block = emptiest(self).or_else(|| emptiest(&Victims { skipped: None, ..*self }))?;
        Some((block, Cause::Gc))
    }

    /// The block that is emptied within this budget, if none has to be for the sake of what is in it; the pool may be full.
    pub(crate) fn next(&self, budget: &Budget, is_full: bool) -> Option<(BlockAddr, Cause)> {
        let (pool, pages) = (self.blocks.pool(), self.blocks.units());
        match () {
            () if budget.is_idle && is_full => None,
            () if budget.is_idle => {
                let live_max = (self.blocks.live_total() / IDLE_LIVE_SHARE).min(u32::from(pages - pages / IDLE_SHARE));
                self.best(pages - live_max as u16)
            }
            // An operation waits, or the next one will.
            () if budget.erases_max.is_none() || pool <= OPENED_FLOOR || budget.is_pressed() => {
                self.emptiest(budget.dead_min)
            }
            () if is_full => None,
            () => self.best((pages / WORTH_SHARE).max(1)),
        }
    }

    /// Room that emptying a block yields, or where pages take more room or less for each page that is moved, in no unit.
    fn yields(&self, block: BlockAddr) -> u32 {
        let room = u32::from(self.blocks.dead_room(block));
        if self.blocks.has_mlc() { (room << 12) / u32::from(self.blocks.live(block)).max(1) } else { room }
    }

    /// Blocks that can be emptied.
    fn all(&self) -> impl Iterator<Item = BlockAddr> + use<'_, 'v, 'm> {
        self.blocks.addresses().filter(|&block| {
            self.blocks.state(block).is_closed()
                && self.blocks.live(block) > 0
                && !self.blocks.has(block, Flag::Damaged)
                && self.skipped != Some(block)
        })
    }

    /// What emptying a block now is worth, in no unit: its age times what its share of live pages says, and times a weight by wear.
    ///
    /// Pages that die at the same rate leave of a full block of age `a` the share `p = exp(-rate * a)`. In a stream of such pages, one block more to wait in
    /// saves `rate / (1/p - 1 + ln p)` copies in the time unit, and copies are fewest where all streams save the same by it. So the block is emptied for
    /// which `(1/p - 1 + ln p) / rate` is greatest, and with the rate that its own age tells, that is `a * (x / ln(1 + x) - 1)` with `x = 1/p - 1`. The
    /// fraction is the logarithmic mean of 1 and `1/p`, and that is nearly `(4 * sqrt(1/p) + 1 + 1/p) / 6`. Among blocks of one age the emptiest comes first.
    fn benefit(&self, block: BlockAddr) -> u64 {
        let (live, all) = self.blocks.room_taken(block);
        let live = u64::from(live).max(1);
        // Times 2^16; a count that is too high may leave nothing of it.
        let inverse = ((u64::from(all) << 16) / live).max(1 << 16);
        let yields = 4 * (inverse << 16).isqrt() + inverse - (5 << 16);
        let age = u64::from(self.blocks.age(block)) + 1;
        // The age has 6 bits, the yield 30 and the weight 10.
        yields * age * self.lag_weight(block)
    }

    /// How much a block's wear speaks for emptying it: the square of its distance to what is too much. By differences, not
    /// ratios, so that the spread is the same in the first thousand erases as in the last. 10 bits.
    fn lag_weight(&self, block: BlockAddr) -> u64 {
        let weight = (self.blocks.erase_count_mean() + LEAD_MAX).saturating_sub(self.blocks.erase_count(block));
        u64::from(weight.clamp(1, 4 * LEAD_MAX).pow(2))
    }
}
