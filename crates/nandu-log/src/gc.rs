//! Garbage collection in instalments.
//!
//! The owner knows what lives, the log knows what should be emptied; so the log hands out work. Before each operation the
//! owner takes a [`Budget`] and asks [`Log::next_work`] until it says `None`. Erases and checkpoints the log does by itself;
//! what comes back is a page to examine, which the owner moves if it lives.

use nandu_media::Malformed;
use nandu_media::features::FILES;
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::access::Probe;
use crate::block_table::{COPIED, DAMAGED, INEXACT, REFRESH, State};
use crate::collector::{INSTALMENT_MAX, READY_MIN};
use crate::error::LogError;
use crate::log::{Condition, Log};

/// Pages that an operation examines for each page it appends, however much room there is, while blocks wait whose bits begin to
/// flip, that were read too often, or in which a program failed.
const ENDANGERED_SHARE: u32 = 2;

/// Bare pages that may be moved together for one examination; each further so many, begun, count as another one.
const MOVED_TOGETHER: u32 = 16;

/// Part of a block's pages, as a divisor, that may be live for its owner to put off moving them: each time costs the rest of an
/// instalment, and the block yields the others.
const WAITING_SHARE: u16 = 4;

/// Blocks that wait so until operations take a share, where the owner empties blocks in idle time: as long as operations have not appended
/// as many pages as the chip has since then.
const ENDANGERED_PATIENCE: u32 = 4;

/// How much work may be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Pages that may be examined.
    examinations: u32,
    /// Erases and checkpoints that may be made.
    steps: u32,
    purpose: Purpose,
}

/// What work is done for, which says what may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// An operation pays its share, which is counted against the bound.
    Instalment,
    /// An operation waits for room, whatever that takes.
    Room,
    /// Nobody waits (L18).
    Idle,
    /// Nobody waits: only blocks are emptied that the owner chose, when every block that can be opened is erased.
    Chosen,
}

impl Budget {
    /// For idle time: up to this many examinations, and as many erases and checkpoints; and no more than what operations would have to do,
    /// so that there is nothing left to do at some time (L18).
    pub const fn idle(examinations: u32) -> Budget {
        Budget { examinations, steps: examinations, purpose: Purpose::Idle }
    }

    /// For an operation that waits for room ([`Log::reserve`]): up to this many examinations, and as many erases and checkpoints.
    pub const fn room(examinations: u32) -> Budget {
        Budget { examinations, steps: examinations, purpose: Purpose::Room }
    }

    /// For idle time of an owner that says what is emptied ([`Log::empty_next`]): so many examinations, of the block that is being
    /// emptied and the one that was chosen; and as many erases and checkpoints. Every block of the ready list is erased, not only those
    /// at its ends, so that operations find what they open erased.
    pub const fn chosen(examinations: u32) -> Budget {
        Budget { examinations, steps: examinations, purpose: Purpose::Chosen }
    }

    /// For idle time in which nothing may be moved: so many erases and checkpoints, of every block of the ready list.
    pub const fn ahead(steps: u32) -> Budget {
        Budget { examinations: 0, steps, purpose: Purpose::Chosen }
    }

    /// For an operation that waits for erased blocks only: so many erases and checkpoints, and no page is examined.
    pub const fn steps(steps: u32) -> Budget {
        Budget { examinations: 0, steps, purpose: Purpose::Room }
    }

    fn is_instalment(&self) -> bool {
        self.purpose == Purpose::Instalment
    }

    /// Only owners of raw pages choose.
    fn is_chosen(&self) -> bool {
        FILES && self.purpose == Purpose::Chosen
    }

    /// Whether nobody waits for what is done.
    fn is_idle(&self) -> bool {
        self.purpose == Purpose::Idle || self.is_chosen()
    }
}

/// For which kind of operation room is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It may need more pages than it frees.
    Grows,
    /// It frees at least as many pages as it needs, as a delete does: allowed on a full chip.
    Shrinks,
}

/// A page that the owner is asked about.
#[must_use = "the log waits for the answer"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examine {
    /// The page.
    pub page: PageAddr,
    /// Whether the owner is to move the page if it is live: append its content with
    /// [`Placement::Survivor`](crate::Placement::Survivor) and supersede it. If not, it is only asked whether the page
    /// lives: after a cut, blocks are counted before any is emptied when there is hardly room to move something.
    pub moves: bool,
    /// Whether the owner may say [`Examined::Later`] once.
    pub may_wait: bool,
    /// To what the owner books reading and moving it.
    pub cause: Cause,
}

/// What the owner found about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// Not needed.
    Dead,
    /// It was needed, and has been appended elsewhere and superseded.
    Moved,
    /// It is needed, and has been appended to a stream with two bits a cell, where no commit can name it yet
    /// ([`Log::is_settled`]). Until one does, this page is needed, and its block is left alone when the collector has been through. Both pages count as
    /// live meanwhile: an owner that hears [`LogError::Full`] names its copies, after [`Log::seal`], and asks again.
    Copied,
    /// It is needed, and the owner is going to supersede it with what it programs next anyway, as likely as not. The page is asked about again with
    /// the next instalment. Only where [`Examine::may_wait`] says so.
    Later,
    /// It is needed and was left where it is: because it was not to be moved, or because the append said
    /// [`LogError::Full`].
    Live,
    /// It cannot be read, for this reason, so nobody knows.
    Unreadable(Malformed),
}

/// Whether a page that its owner could not read may be live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// It cannot.
    None,
    /// It cannot, and neither can those behind it in its block, which were never programmed.
    End,
    /// It can be read now, so it may; the block can be emptied another time.
    Passing,
    /// It may, and nobody will find out.
    Lasting,
}

/// What the log can do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnStep {
    Checkpoint,
    Erase(BlockAddr),
}

impl<N: Nand> Log<'_, N> {
    /// Says how many pages the owner may program to move one, 1 unless it says so; a mount forgets it. All of the pages of a
    /// block may be moved before it is free, so that for each page beyond the first a block is held in reserve: data has no room
    /// there, and instalments begin that much earlier, but no operation waits for it.
    pub fn expect_moves_of(&mut self, pages: u32) {
        self.collector.beside_max = pages.saturating_sub(1);
    }

    /// Says how many pages must be able to live for the owner to change anything where it holds nothing, 1 unless it says so; a mount forgets it.
    /// Where the good blocks hold fewer, deleting makes no room, so the chip is worn out and not full. Without the feature `files` it is 1.
    pub fn expect_changes_of(&mut self, pages: u32) {
        self.collector.change_min = pages;
    }

    /// Says that some pages are named by others, which are programmed again when those are moved; a mount forgets it.
    pub fn expect_named_pages(&mut self) {
        self.collector.has_named_pages = true;
    }

    /// The share of garbage collection of an operation that appends this many pages: nothing while the pool of empty
    /// blocks is full, up to [`INSTALMENT_MAX`] examinations for each page when it is nearly empty; at most one erase or
    /// one checkpoint for each page.
    pub fn instalment(&mut self, pages: u32) -> Budget {
        self.stats.instalment_max = self.stats.instalment_max.max(self.collector.instalment_steps());
        self.collector.taken = 0;
        self.collector.debt = 0;
        self.collector.is_put_off = false;
        self.collector.pages = pages.max(1);
        let block_pages = u32::from(self.shape.pages);
        let high = (self.shape.pool_high(self.blocks.good()) + self.collector.beside_max) * block_pages;
        let low = self.floor_host() * block_pages;
        let room = self.frontiers[0]
            .map_or(0, |frontier| if frontier.is_closed { 0 } else { block_pages - u32::from(frontier.next) });
        let pool = self.blocks.pool() * block_pages + room;
        let share =
            if pool >= high { 0 } else { (INSTALMENT_MAX * (high - pool)).div_ceil(high - low).min(INSTALMENT_MAX) };
        // Bits flip for months before they are lost, so that idle time comes first; but it may have come for the last time.
        self.collector.idle_trust = self.collector.idle_trust.saturating_sub(pages);
        let patience = if self.collector.idle_trust > 0 { ENDANGERED_PATIENCE } else { 0 };
        let share = if self.blocks.endangered() > patience { share.max(ENDANGERED_SHARE) } else { share };
        // A mount stays short: what is due for the pages of a tail that it takes over, the changes behind it pay.
        let share = if self.has_due_tail() { 0 } else { share };
        Budget { examinations: share * pages, steps: pages, purpose: Purpose::Instalment }
    }

    /// Whether an operation that appends this many pages has room, without a checkpoint in its middle. `Ok(false)`: after
    /// more work; take [`Budget::room`], call [`Log::next_work`], and ask again.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`]: there is no work that would make room. Nothing was changed. [`LogError::ReadOnly`],
    /// [`LogError::Poisoned`].
    pub fn reserve(&mut self, pages: u32, growth: Growth) -> Result<bool, LogError<N::Error>> {
        self.reserve_growing(pages, pages, growth)
    }

    /// As [`Log::reserve`], by an operation after which at most `live` pages more live than before: it may append more, and supersede as
    /// many.
    pub fn reserve_growing(&mut self, pages: u32, live: u32, growth: Growth) -> Result<bool, LogError<N::Error>> {
        self.check_writable()?;
        self.collector.wants_exact = false;
        // Without what the owner's moves ask for: a good chip may be too small for those, and then nothing grows.
        let usable = self.usable_blocks_alone();
        let holds = usable * u32::from(self.shape.mlc_pages());
        let needed = if FILES { self.collector.change_min * self.shape.headed_weight() } else { 1 };
        let is_worn_out = holds < needed || (!self.shape.has_mlc() && holds <= self.blocks.summaries());
        if is_worn_out {
            // So many blocks are bad that no change has room beside the reserve, whatever is deleted. With a checkpoint, as far as one can be
            // made: the next mount has to know of them, too.
            return match self.write_checkpoint(false) {
                Ok(()) | Err(LogError::ReadOnly) => {
                    self.condition = Condition::ReadOnly;
                    Err(LogError::ReadOnly)
                }
                Err(error) => Err(error),
            };
        }
        let floor = match growth {
            Growth::Grows => self.shape.floor_host(),
            Growth::Shrinks => self.shape.floor_delete(),
        };
        if growth == Growth::Grows && !self.has_capacity_for(live) {
            // After a cut the counts are upper bounds. Only exact ones may refuse.
            if self.blocks.inexact() == 0 {
                return Err(LogError::Full);
            }
            self.collector.wants_exact = true;
            if self.shape.has_bare() {
                return self.wait_for_work();
            }
            // Moving pages makes no count exact, so that a chip is not worn for it.
            let is_counting = self.collector.victim.is_some_and(|block| self.blocks.has(block, INEXACT));
            let can_count = is_counting || self.pick_inexact().is_some();
            return if can_count { Ok(false) } else { Err(LogError::Full) };
        }
        // One more than are opened, for recovery. What does not fit the longest list has its checkpoint in the middle. Some of the
        // pages may be bare, and open a block of their own.
        let blocks = pages.div_ceil(u32::from(self.shape.pages)) + u32::from(self.shape.has_bare());
        let wanted = (blocks as usize + 1).clamp(READY_MIN, self.shape.others_max());
        self.collector.ready_wanted = wanted;
        let ready = self.ready.remaining();
        self.collector.is_urgent = false;
        let has_blocks = ready >= wanted || (ready >= READY_MIN && !self.needs_checkpoint());
        if self.blocks.pool() >= floor && has_blocks {
            return Ok(true);
        }
        self.collector.is_urgent = !has_blocks;
        self.wait_for_work()
    }

    fn wait_for_work(&self) -> Result<bool, LogError<N::Error>> {
        let can_move = self.blocks.pool() > 0 || (0..self.shape.streams).any(|stream| self.has_room(stream));
        let has_work = self.needs_checkpoint()
            || self.pick_inexact().is_some()
            || (can_move && (self.collector.victim.is_some() || self.pick_next(false).is_some()));
        if has_work { Ok(false) } else { Err(LogError::Full) }
    }

    /// Does the next piece of work that the budget allows: erases and checkpoints by itself; a page to examine is handed
    /// out and has to be answered with [`Log::examined`]. `None`: nothing to do, or the budget is used up.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn next_work(&mut self, budget: &mut Budget) -> Result<Option<Examine>, LogError<N::Error>> {
        self.check_writable()?;
        budget.examinations = budget.examinations.saturating_sub(core::mem::take(&mut self.collector.debt));
        if budget.is_chosen() {
            self.collector.idle_trust = self.shape.geometry.page_count();
        }
        loop {
            if budget.steps > 0
                && let Some(step) = self.own_step(budget)
            {
                budget.steps -= 1;
                self.collector.taken += u32::from(budget.is_instalment());
                match step {
                    OwnStep::Checkpoint => self.write_checkpoint(false)?,
                    OwnStep::Erase(block) => self.erase_listed(block)?,
                }
                continue;
            }
            let is_put_off = budget.is_instalment() && self.collector.is_put_off;
            if budget.examinations == 0 || is_put_off || (!budget.is_instalment() && self.has_waited_enough()) {
                return Ok(None);
            }
            let Some(mut examine) = self.next_examination(budget) else { return Ok(None) };
            examine.may_wait = budget.is_instalment() && self.may_wait(&examine);
            budget.examinations -= 1;
            self.collector.taken += u32::from(budget.is_instalment());
            self.collector.is_instalment = budget.is_instalment();
            self.collector.is_idle = budget.is_idle();
            self.collector.programs_before = self.stats.programs();
            self.stats.examinations += 1;
            return Ok(Some(examine));
        }
    }

    /// Whether an operation waited for ready blocks alone, and they are there. With two bits a cell in reach there is always
    /// something that could be moved, and moving it would take them again.
    fn has_waited_enough(&self) -> bool {
        let is_ready = self.ready.remaining() >= self.collector.ready_wanted;
        self.shape.has_mlc() && self.collector.is_urgent && !self.collector.wants_exact && is_ready
    }

    /// Whether the ready list is too short, and a checkpoint would make it longer.
    fn needs_checkpoint(&self) -> bool {
        self.ready.remaining() < self.collector.ready_wanted && self.can_list_others()
    }

    /// The erase or checkpoint that is due.
    fn own_step(&self, budget: &Budget) -> Option<OwnStep> {
        if self.needs_checkpoint() {
            return Some(OwnStep::Checkpoint);
        }
        // An operation that waits erases what it opens, and nothing ahead.
        let is_ahead = budget.is_chosen() || !self.collector.is_urgent;
        if !is_ahead || (budget.is_idle() && !self.may_idle_erase()) {
            return None;
        }
        self.erase_ahead().or_else(|| if budget.is_chosen() { self.erase_any() } else { None }).map(OwnStep::Erase)
    }

    /// The next page of the victim; a new victim if there is none and one is wanted, which the owner may have to choose.
    fn next_examination(&mut self, budget: &Budget) -> Option<Examine> {
        if self.collector.pending.take().is_some() {
            // The owner was asked about it and failed on the way to the answer, over another page maybe: so it may live.
            self.collector.left += 1;
        }
        // An emptied victim is followed by another one; each of them has pages, so the second round returns.
        for _ in 0..2 {
            let victim = match self.collector.victim {
                Some(victim) => victim,
                None if budget.is_chosen() && self.pick_endangered().is_none() && !self.is_choice_possible() => {
                    self.collector.chosen = None;
                    return None;
                }
                None => self.take_victim(budget.is_idle())?,
            };
            if self.collector.cursor < self.blocks.pages(victim) && self.blocks.live(victim) > 0 {
                let page = self.nth_page(victim, self.collector.cursor);
                self.collector.cursor += 1;
                self.collector.pending = Some(page);
                let moves = !self.collector.counts_only;
                return Some(Examine { page, moves, may_wait: false, cause: self.collector.cause });
            }
            self.finish_victim(victim);
        }
        None
    }

    /// Whether the owner may put off moving a page: few live beside it, and blocks are not scarce.
    fn may_wait(&self, examine: &Examine) -> bool {
        let live = self.blocks.live(self.shape.geometry.block_of(examine.page));
        let is_scarce = self.blocks.pool() <= self.floor_host() + 1;
        examine.moves && examine.cause == Cause::Gc && live <= self.shape.pages / WAITING_SHARE && !is_scarce
    }

    fn take_victim(&mut self, is_idle: bool) -> Option<BlockAddr> {
        self.close_endangered();
        let count = self.pick_inexact();
        let (victim, cause) = match count {
            Some(block) => (block, Cause::Recovery),
            None => self.pick_next(is_idle)?,
        };
        if self.collector.chosen == Some(victim) {
            self.collector.chosen = None;
        }
        self.collector.victim = Some(victim);
        self.collector.cursor = 0;
        self.collector.cause = cause;
        self.collector.is_damaged = false;
        self.collector.counts_only = count.is_some();
        self.collector.left = 0;
        Some(victim)
    }

    /// No more pages for blocks that are open and wait to be emptied.
    fn close_endangered(&mut self) {
        if self.blocks.endangered() == 0 || self.blocks.pool() <= self.shape.floor_host() + 1 {
            return;
        }
        for stream in 0..self.shape.streams {
            let frontier = self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed);
            if frontier.is_some_and(|frontier| self.blocks.has(frontier.block, REFRESH)) {
                self.close(stream, State::Suspect);
            }
        }
    }

    /// Every page of the victim was examined, or nothing in it is live.
    fn finish_victim(&mut self, victim: BlockAddr) {
        self.collector.victim = None;
        let left = self.collector.left.min(self.blocks.live(victim));
        if self.collector.is_damaged && left > 0 && !self.collector.counts_only {
            self.blocks.set(victim, DAMAGED, true);
            self.blocks.set(victim, REFRESH, false);
        }
        self.blocks.set_live(victim, left);
        self.blocks.set(victim, INEXACT, false);
        if !self.collector.counts_only {
            self.collector.left_behind = (left > 0).then(|| self.cost_of_emptying(victim));
        }
        if left == 0 {
            self.blocks.set(victim, REFRESH, false);
            if self.blocks.state(victim) == State::Failing {
                self.condemn(victim);
            }
        }
    }

    /// Tells the log what became of a page that it asked about.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`] where an unreadable page has to be looked at more closely: at most two reads.
    pub fn examined(&mut self, examine: Examine, outcome: Examined) -> Result<(), LogError<N::Error>> {
        self.collector.pending = None;
        // What a move programs beside the page counts as if it had been examined, so that an instalment has a bound.
        let beside = self.stats.programs().saturating_sub(self.collector.programs_before + 1);
        self.collector.debt = (beside.min(u64::from(self.collector.beside_max))) as u32;
        if self.is_bare(examine.page) {
            // Others were moved with it, and what names them.
            self.collector.debt += (beside / u64::from(MOVED_TOGETHER + 1)) as u32;
        }
        if self.collector.is_instalment {
            self.collector.taken += self.collector.debt;
        }
        if self.collector.is_idle && !matches!(self.collector.cause, Cause::Refresh | Cause::Retire) {
            self.spend_idle_programs();
        }
        match outcome {
            Examined::Dead => {}
            Examined::Later if examine.may_wait => {
                self.collector.cursor = self.collector.cursor.saturating_sub(1);
                self.collector.is_put_off = true;
                return Ok(());
            }
            Examined::Live | Examined::Later => self.collector.left += 1,
            Examined::Moved if examine.cause == Cause::Levelling => {
                // A bare page and what names it.
                self.collector.levelled += 1 + u64::from(self.is_bare(examine.page));
            }
            Examined::Moved => {}
            Examined::Copied => {
                self.collector.left += 1;
                self.blocks.set(self.shape.geometry.block_of(examine.page), COPIED, true);
                if examine.cause == Cause::Levelling {
                    self.collector.levelled += 2;
                }
            }
            // Nothing in the page or behind it tells whether it was acknowledged: its owner knows its pages by name, and knows this
            // one.
            Examined::Unreadable(_) if self.is_bare(examine.page) => {
                self.collector.is_damaged = true;
                self.collector.left += 1;
            }
            Examined::Unreadable(_) => match self.for_cause(examine.cause, |log| log.look_closer(examine.page))? {
                Doubt::None => {}
                Doubt::End => self.collector.cursor = u16::MAX,
                Doubt::Passing => self.collector.left += 1,
                Doubt::Lasting => {
                    self.collector.is_damaged = true;
                    self.collector.left += 1;
                }
            },
        }
        // At once, not with the next examination: until then the block could be erased and filled with something else.
        if let Some(victim) = self.collector.victim
            && self.collector.cursor >= self.blocks.pages(victim)
        {
            self.finish_victim(victim);
        }
        Ok(())
    }

    /// Whether a step for what the owner chose ([`Budget::chosen`]) would examine pages: a block is being emptied, was chosen
    /// ([`Log::empty_next`]), or begins to lose bits. Costs a pass over the block table in memory at most.
    pub fn has_chosen_work(&self) -> bool {
        self.collector.victim.is_some() || self.pick_endangered().is_some() || self.is_choice_possible()
    }

    /// Whether an unreadable page may have been acknowledged. The last page programmed in a block that was closed early is
    /// torn or failed, and was not; those behind it are erased. A page with a valid one behind it, or the last one of a full
    /// block, has decayed, or its program never arrived.
    fn look_closer(&mut self, page: PageAddr) -> Result<Doubt, LogError<N::Error>> {
        let is_erased = match self.probe(page)? {
            Probe::Valid => return Ok(Doubt::Passing),
            Probe::Erased => true,
            Probe::Garbage => false,
        };
        let block = self.shape.geometry.block_of(page);
        let behind = (0..self.shape.pages).map(|nth| self.shape.data_page(block, nth)).find(|&other| other > page);
        Ok(match behind {
            Some(next) => match self.probe(next)? {
                Probe::Valid => Doubt::Lasting,
                // Blocks are programmed in the order of their pages: the end, unless two programs in a row were lost.
                Probe::Erased if is_erased => Doubt::End,
                Probe::Erased | Probe::Garbage => Doubt::None,
            },
            None if self.blocks.state(block) == State::Full && !is_erased => Doubt::Lasting,
            None => Doubt::None,
        })
    }
}
