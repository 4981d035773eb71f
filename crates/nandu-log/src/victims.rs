//! Which block is emptied next.

use nandu_media::features::FILES;
use nandu_nand::{BlockAddr, Cause, Nand};

use crate::block_table::{DAMAGED, INEXACT, REFRESH, State};
use crate::log::Log;

impl<N: Nand> Log<'_, N> {
    /// The block to count next. After a cut every count is an upper bound, so that blocks which are empty do not look so.
    /// When hardly a block is left to move pages to, or the chip looks full, counting finds them, and reads only: whatever
    /// is cut, it takes nothing away. A block that can be emptied into the blocks that are open is not counted first.
    pub(crate) fn pick_inexact(&self) -> Option<BlockAddr> {
        if self.blocks.inexact() == 0 || !(self.collector.wants_exact || self.blocks.pool() <= self.floor_host()) {
            return None;
        }
        let least = self
            .blocks
            .addresses()
            .filter(|&block| self.blocks.has(block, INEXACT) && self.is_victim(block))
            .min_by_key(|&block| self.blocks.live(block))?;
        let fits = u32::from(self.blocks.live(least)) <= self.open_room(self.blocks.is_bare(least));
        (self.collector.wants_exact || !fits).then_some(least)
    }

    /// Whether there is a block that the owner chose, and it can be emptied now.
    pub(crate) fn is_choice_possible(&self) -> bool {
        let can_be = |block| self.is_victim(block) && self.can_be_emptied(block);
        FILES && self.blocks.pool() > self.floor_host() && self.collector.chosen.is_some_and(can_be)
    }

    /// The block to empty next, and why: one that is in danger, then the one that the owner chose, unless there is no time for its wishes.
    /// In idle time no other than what comes to rest (L18).
    pub(crate) fn pick_next(&self, is_idle: bool) -> Option<(BlockAddr, Cause)> {
        let chosen = self.collector.chosen.filter(|_| self.is_choice_possible());
        let chosen = chosen.map(|block| (block, self.collector.chosen_cause));
        self.pick_endangered().or(chosen).or_else(|| self.pick_victim(is_idle))
    }

    /// A block in which a program failed, or whose bits begin to flip, if there is room to empty it.
    pub(crate) fn pick_endangered(&self) -> Option<(BlockAddr, Cause)> {
        if self.blocks.endangered() == 0 {
            return None;
        }
        let pool = self.blocks.pool();
        let failing = self.find_victim(|state, _| state == State::Failing);
        if let Some(block) = failing.filter(|_| pool > self.shape.floor_delete()) {
            return Some((block, Cause::Retire));
        }
        let flips = |_, block| self.blocks.has(block, REFRESH);
        let refreshed = if pool > self.floor_host() { self.find_victim(flips) } else { None };
        refreshed.map(|block| (block, Cause::Refresh))
    }

    /// The block to empty next, and why, where none is in danger: a block that is worn far less than others, under the cap; then the block with
    /// the best ratio of gain to cost.
    fn pick_victim(&self, is_idle: bool) -> Option<(BlockAddr, Cause)> {
        if is_idle && self.idle_programs() == 0 {
            return None;
        }
        let pool = self.blocks.pool();
        if pool > self.floor_host()
            && let Some(block) = self.levelling_victim()
        {
            return Some((block, Cause::Levelling));
        }
        if is_idle && !self.is_pool_low() {
            return None;
        }
        let to_mlc = self.can_move_to_mlc();
        let is_wanted = |block: BlockAddr| {
            let is_worth = if is_idle { self.is_worth_idling(block, to_mlc) } else { self.has_dead(block, to_mlc) };
            is_worth && self.is_victim(block) && self.can_be_emptied(block)
        };
        let all = self.blocks.addresses().filter(|&block| is_wanted(block));
        let best = if pool <= self.floor_host() {
            // What yields most at once: only this makes the bound of the instalments hold. But the owner may need more room to move a
            // page than there is, where another block's pages need less: then the next block is tried, not the same one for ever.
            let behind = |block: &BlockAddr| self.collector.left_behind >= Some(self.cost_of_emptying(*block));
            all.min_by_key(|&block| (behind(&block), self.cost_of_emptying(block)))
        } else {
            all.max_by_key(|&block| self.benefit(block, to_mlc))
        };
        best.map(|block| (block, Cause::Gc))
    }

    /// Whether the pages of a block take less room elsewhere.
    fn has_dead(&self, block: BlockAddr, to_mlc: bool) -> bool {
        self.blocks.live(block) < self.moved_max(block, to_mlc)
    }

    /// How much room its pages take elsewhere, and which of several blocks comes first.
    pub(crate) fn cost_of_emptying(&self, block: BlockAddr) -> (u32, BlockAddr) {
        (u32::from(self.blocks.live(block)) * self.weight(block), block)
    }

    /// Whether there is room to empty a block wholly. Where there are bare streams, its pages cannot go anywhere: bare ones need
    /// bare room, and room with headers for what names them at their new places, a page for each at most.
    /// Of other pages some may be named by pages that have to be programmed with them: a block that is emptied in part takes room and yields
    /// none, and blocks that are emptied so one after another use up the chip.
    pub(crate) fn can_be_emptied(&self, block: BlockAddr) -> bool {
        let live = u32::from(self.blocks.live(block));
        if !self.shape.has_bare() {
            return !self.collector.has_named_pages || 2 * live <= self.room_in_all();
        }
        // What has two bits a cell may have to go where there is one.
        let bare_pages = if self.can_open_mlc() { self.shape.mlc_pages() } else { self.shape.pages } - 1;
        let opens = |is_bare, pages: u16| live.saturating_sub(self.open_room(is_bare)).div_ceil(u32::from(pages));
        let opened =
            opens(false, self.shape.pages) + if self.blocks.is_bare(block) { opens(true, bare_pages) } else { 0 };
        opened <= self.blocks.pool()
    }

    pub(crate) fn is_victim(&self, block: BlockAddr) -> bool {
        self.blocks.state(block).is_closed()
            && !self.blocks.has(block, DAMAGED)
            && !self.blocks.is_pinned(block)
            && (self.blocks.live(block) > 0 || self.blocks.state(block) == State::Failing)
    }

    fn find_victim(&self, is_wanted: impl Fn(State, BlockAddr) -> bool) -> Option<BlockAddr> {
        self.blocks.addresses().find(|&block| self.is_victim(block) && is_wanted(self.blocks.state(block), block))
    }

    /// What emptying a block now is worth, in no unit: its age times what its share of live pages says, and times a weight
    /// by wear.
    ///
    /// Pages that die at the same rate leave of a full block of age `a` the share `p = exp(-rate * a)`. In a stream of such
    /// pages, one block more to wait in saves `rate / (1/p - 1 + ln p)` copies in the time unit, and copies are fewest where
    /// all streams save the same by it. So the block is emptied for which `(1/p - 1 + ln p) / rate` is greatest, and with
    /// the rate that its own age tells, that is `a * (x / ln(1 + x) - 1)` with `x = 1/p - 1`. The fraction is the logarithmic
    /// mean of 1 and `1/p`, and that is nearly `(4 * sqrt(1/p) + 1 + 1/p) / 6`. Among blocks of one age the emptiest
    /// comes first.
    fn benefit(&self, block: BlockAddr, to_mlc: bool) -> u64 {
        let live = u64::from(self.blocks.live(block)).max(1);
        // Times 2^16; a count that is too high may leave nothing of it.
        let inverse = ((u64::from(self.moved_max(block, to_mlc)) << 16) / live).max(1 << 16);
        let yields = 4 * (inverse << 16).isqrt() + inverse - (5 << 16);
        // A block that was open at a cut is rarely full, so its dead pages come cheap.
        let favour = if self.blocks.state(block) == State::Suspect { 4 } else { 1 };
        // The age has 20 bits, the yield 30, the favour 2 and the weight 10.
        yields * self.telling_age(block, inverse, yields) * favour * self.lag_weight(block)
    }

    /// The age of a block, as far as it tells the rate at which its pages die; one of which so much is left that `inverse` is `1/p` times
    /// 2^16.
    ///
    /// A block of four files of which two were deleted early says nothing of the other two. So the rate is that of
    /// all pages, corrected by what the block itself shows: with gamma-distributed rates of mean `1/r` and weight `k`, its inverse
    /// is `(a + k * r) / (ln(1/p) + k)` instead of `a / ln(1/p)`. With a great weight the emptiest block comes first. For `r`
    /// stands how long it takes to program as many pages as live. Pages with headers are mixed more: most die at
    /// once, and those that do not live as long as what they lead to; for them `r` is the geometric mean of both ages.
    fn telling_age(&self, block: BlockAddr, inverse: u64, yields: u64) -> u64 {
        let age = u64::from(self.age(block)) + 1;
        let doubt = if self.shape.has_bare() { self.runs.doubt(self.blocks.pages(block)) } else { 0 };
        let dead = inverse - (1 << 16);
        if doubt == 0 || dead == 0 {
            return age;
        }
        let all = u64::from(self.blocks.live_total()) >> self.shape.birth_shift;
        let usual = if self.blocks.is_bare(block) { all } else { (age * all).isqrt() };
        // The logarithmic mean of 1 and `1/p` is `x / ln(1 + x)`.
        let mean = (1 << 16) + yields / 6;
        dead * (16 * age + doubt * usual) / (16 * dead + doubt * mean)
    }
}
