//! The block that is being emptied, page by page.

use nandu_media::features::MLC;
use nandu_nand::{BlockAddr, Cause, CellMode};

use crate::blocks::{Blocks, Flag, Stage};
use crate::heads::Heads;

/// Pages that are examined for each program that may be made.
const EXAMINED: u32 = 16;

/// Erases of a call in idle time, at most.
const IDLE_ERASES: u64 = 2;

/// Share of programs that levelling may take, in percent.
const LEVELLING_SHARE: u64 = 1;

/// What a call may do beside its own pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Pages that may be moved.
    pub(crate) programs: u32,
    /// Pages that are due to be moved, now or by the calls that follow.
    pub(crate) due: u32,
    /// Programs that one move may take.
    at_once: u32,
    /// Pages that may be examined.
    pub(crate) examinations: u32,
    /// Checkpoints and erases that may be made.
    pub(crate) steps: u32,
    /// Erases since the mount from which on no block is erased for the budget: the operation's own page may need one more.
    pub(crate) erases_max: Option<u64>,
    pub(crate) is_idle: bool,
    /// The block that comes next is free with the next commit.
    is_waiting: bool,
    /// Room in a block that is to be nobody's for it to be emptied for an operation that waits; 0 where the owner has chosen the block.
    pub(crate) dead_min: u16,
}

impl Budget {
    /// For idle time of an owner that chooses the blocks to be emptied ([`Choice`](crate::Choice)): so many programs at most, but for a checkpoint's. Besides blocks are emptied in which something is in danger.
    pub const fn chosen(programs: u32) -> Budget {
        Budget { dead_min: 0, ..Budget::idle(programs) }
    }

    /// Whether the owner has chosen the block.
    pub fn is_chosen(&self) -> bool {
        self.dead_min == 0
    }

    /// Whether an operation waits, which is not done before there is room.
    pub fn is_urgent(&self) -> bool {
        self.erases_max.is_none() && !self.is_idle
    }

    /// Pages that may be moved at once, where they take one more that leads to them: more than are due yet, as far as the call has room for them.
    pub fn moves(&self) -> u32 {
        self.at_once.saturating_sub(1).max(1)
    }

    /// Programs that may be made in all.
    pub(crate) fn at_once(&self) -> u32 {
        self.at_once
    }

    /// Whether a page may be moved, where a move takes so many programs: a call that has no room for them leaves it to the next one.
    pub(crate) fn has_move(&self, programs: u32) -> bool {
        self.programs > 0 && (self.erases_max.is_none() || self.is_idle || self.at_once >= programs)
    }

    /// Whether more is moved than is due, so that no operation has to wait.
    pub(crate) fn is_pressed(&self) -> bool {
        self.programs > self.due && !self.is_idle
    }

    /// Whether a commit does more for what is due than a move: with it a block is free.
    pub fn waits_for_commit(&self) -> bool {
        MLC && self.is_waiting && self.due > 0 && self.at_once > 0 && !self.is_idle
    }

    /// Pages that are due to be moved and were not: they are for the calls that follow.
    pub fn left_due(&self) -> u32 {
        self.due
    }

    /// For idle time: so many programs at most, but for a checkpoint's. Only blocks are emptied that yield much, so that idle time comes to rest.
    pub const fn idle(programs: u32) -> Budget {
        Budget {
            programs,
            due: 0,
            at_once: programs,
            examinations: programs * EXAMINED,
            steps: 1,
            erases_max: None,
            is_idle: true,
            is_waiting: false,
            dead_min: 1,
        }
    }

    /// For an operation that waits for room, from blocks with so many dead pages.
    pub const fn urgent(dead_min: u16) -> Budget {
        Budget { at_once: u32::MAX, steps: 0, is_idle: false, dead_min, ..Budget::idle(2) }
    }

    /// So many moves are due, and so many at once or none, for a call that has room for so many programs, and so many erases, where so many were made since the mount.
    pub(crate) fn share((due, urgent): (u32, u32), at_once: u32, erases: u32, made: u64) -> Budget {
        let steps = u32::from(erases > 0);
        let erases_max = Some(made + u64::from(erases));
        let programs = due.max(urgent).min(at_once);
        Budget { due, at_once, erases_max, steps, is_idle: false, ..Budget::idle(programs) }
    }
}

/// All that lives in the block that comes next dies with the next commit. Where pages have two bits a cell, many calls go by without one.
pub(crate) fn wait_for_commit(budget: &mut Budget, heads: &Heads) {
    budget.is_waiting = heads.raw(CellMode::Mlc).is_some() && heads.room(0) > 0 && !budget.is_urgent();
}

/// Whether a commit is to be made for that; then the call has one program less.
pub fn takes_commit(budget: &mut Budget) -> bool {
    let takes = budget.waits_for_commit();
    spend(budget, 0, takes.into());
    budget.is_waiting = false;
    takes
}

/// A call in idle time has no more erases than any other, where so many were made since the mount.
pub(crate) fn rest(budget: &mut Budget, made: u64) {
    budget.erases_max = budget.erases_max.or(budget.is_idle.then_some(made + IDLE_ERASES));
    debug_assert!(budget.erases_max.is_some() || budget.is_urgent(), "only who waits has no end");
}

/// What is left of a budget when so many pages were moved with so many programs.
pub(crate) fn spend(budget: &mut Budget, pages: u32, programs: u32) {
    budget.at_once = budget.at_once.saturating_sub(programs);
    budget.due = budget.due.saturating_sub(pages);
    budget.programs = if budget.at_once == 0 { 0 } else { budget.programs.saturating_sub(pages) };
}

/// No more programs than these may be made. Returns how many may be.
pub(crate) fn limit(budget: &mut Budget, programs: u32) -> u32 {
    budget.at_once = budget.at_once.min(programs);
    debug_assert!(budget.at_once <= programs, "a call makes no more");
    programs
}

/// A block is given up in which so many pages stay: the next one may be no better, and then this one comes again.
pub(crate) fn give_up(budget: &mut Budget, left: u16) {
    budget.examinations = budget.examinations.saturating_sub(if left > 0 { EXAMINED } else { 0 });
}

/// A block that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Emptying {
    block: BlockAddr,
    /// Erases of the block when this began. The rest of its pages may die while nobody asks for the next one, and the block be erased and
    /// filled again; then what was found out says nothing of it.
    erases: u32,
    cause: Cause,
    /// It was begun for an operation that waits.
    is_urgent: bool,
    cursor: u16,
    /// Pages that stay, some of them since they cannot be read. One that was handed out stays until it is answered for.
    left: u16,
    is_damaged: bool,
    /// Pages cannot be read of which nobody knows: the count says whether they live.
    has_lost: bool,
}

impl Emptying {
    /// Whether the block still holds what it held when this began.
    fn is_current(&self, blocks: &Blocks<'_>) -> bool {
        blocks.state(self.block).is_closed() && blocks.erase_count(self.block) == self.erases
    }
}

/// Moves that weigh as much as all before them.
const MOVES_WEIGHED: u32 = 256;

/// Moves of which some are taken for granted until so many were made.
const MOVES_GRANTED: u64 = MOVES_WEIGHED as u64 / 8;

/// Pages of a block that are taken to be moved with one page that leads to them, at most.
const SHARED_MAX: u32 = 3;

/// Moves of late, and programs that they took.
#[derive(Clone, Copy, Debug)]
struct Toll {
    moves: u32,
    programs: u32,
}

impl Toll {
    const NONE: Toll = Toll { moves: 0, programs: 0 };

    /// Programs that moving so many pages takes. As long as few were moved, some of one program are taken for granted.
    fn of_pages(self, pages: u32) -> u64 {
        let missing = MOVES_GRANTED.saturating_sub(self.moves.into());
        let programs = u64::from(self.programs.max(self.moves)) + missing;
        u64::from(pages) * programs / (u64::from(self.moves) + missing)
    }

    fn moved(&mut self, pages: u32, programs: u32) {
        (self.moves, self.programs) = (self.moves + pages, self.programs + programs);
        if self.moves >= MOVES_WEIGHED {
            (self.moves, self.programs) = (self.moves / 2, self.programs / 2);
        }
    }
}

/// What a page is that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It has what leads to it with it: a program, or two where that does not fit.
    Node,
    /// What names it is in another page, which has to be programmed, too: for one of its pages, or for several at once.
    Value,
}

/// What is being emptied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector {
    emptying: Option<Emptying>,
    /// The block that was done with last: the next one is another, if there is another. What lived in it may still be dying.
    skipped: Option<BlockAddr>,
    /// Pages moved for levelling, or that could have been when nothing was to be levelled.
    levelled: u64,
    nodes: Toll,
    /// Of raw pages to two bits a cell, with what names them.
    raws: Toll,
    /// Such copies for the page that was asked about.
    copies: u32,
    /// Programs for the page that was asked about.
    programs: u32,
}

impl Collector {
    pub(crate) const IDLE: Collector = Collector {
        emptying: None,
        skipped: None,
        levelled: 0,
        nodes: Toll::NONE,
        raws: Toll::NONE,
        copies: 0,
        programs: 0,
    };

    /// Programs that moving so many pages takes, of which so many are of values and so many of these stand together, in blocks of so many. What names pages of values is in one of the others, which is
    /// programmed for so many of them; the fewer of those there are, the more pages of a block each names.
    pub(crate) fn toll(&self, pages: u32, (values, together): (u32, u32), block_pages: u32) -> u32 {
        let values = values.min(pages);
        let nodes = pages - values;
        let shared = (block_pages / nodes.max(1)).max(together).clamp(1, SHARED_MAX);
        self.nodes.of_pages(nodes) as u32 + values + values.div_ceil(shared)
    }

    /// The same of so many pages with headers, where values are in raw pages: what names those stands in other blocks, among pages that die soon.
    pub(crate) fn toll_of_raw(&self, nodes: u32, raws: u32) -> u32 {
        self.nodes.of_pages(nodes) as u32 + raws
    }

    /// Programs for which a call has room before a page is moved that may be of a value, or is none: those of most moves of late.
    pub(crate) fn programs_of_move(&self, has_values: bool) -> u32 {
        match has_values {
            // A page, and the leaf that names it, which may need a page for what leads to it.
            true => 3,
            false => self.nodes.of_pages(MOVES_WEIGHED).div_ceil((MOVES_WEIGHED + MOVES_WEIGHED / 4).into()) as u32,
        }
    }

    /// Programs that moving so many pages of a block takes, with what names them or leads to them.
    pub(crate) fn weigh(&self, pages: u32, is_raw: bool) -> u32 {
        let toll = if is_raw { self.raws } else { self.nodes };
        let programs = toll.of_pages(pages) as u32;
        debug_assert!(programs >= pages, "each page takes one");
        programs
    }

    /// Programs that moving so many raw pages to two bits a cell takes beyond those of the copies.
    pub(crate) fn names(&self, pages: u32) -> u32 {
        (self.raws.of_pages(pages) as u32).saturating_sub(pages)
    }

    /// A copy has so many bits in a cell.
    pub(crate) fn copied(&mut self, mode: CellMode) {
        self.copies = (self.copies + u32::from(mode == CellMode::Mlc)).min(self.programs);
    }

    /// The copies with two bits a cell for the page that was asked about.
    pub(crate) fn take_copies(&mut self) -> u32 {
        core::mem::take(&mut self.copies)
    }

    /// A raw page that was asked about took so many such copies, and so many programs in all.
    pub(crate) fn raw_goes(&mut self, (copies, programs): (u32, u32)) {
        debug_assert!(copies <= programs, "a copy is a program");
        self.raws.moved(copies, programs);
    }

    /// A page was programmed for a move.
    pub(crate) fn programmed(&mut self) {
        self.programs += 1;
    }

    /// The programs that were made for the page that was asked about.
    pub(crate) fn take_programs(&mut self) -> u32 {
        core::mem::take(&mut self.programs)
    }

    pub(crate) fn block(&self) -> Option<BlockAddr> {
        self.emptying.map(|emptying| emptying.block)
    }

    /// Pages that stay in the block that is emptied.
    pub(crate) fn pages_left(&self) -> u16 {
        self.emptying.map_or(0, |emptying| emptying.left)
    }

    /// Whether that was begun for an operation that waits.
    pub(crate) fn is_urgent(&self) -> bool {
        self.emptying.is_some_and(|emptying| emptying.is_urgent)
    }

    pub(crate) fn skipped(&self) -> Option<BlockAddr> {
        self.skipped
    }

    pub(crate) fn is_levelling(&self) -> bool {
        self.emptying.is_some_and(|emptying| emptying.cause == Cause::Levelling)
    }

    /// Whether a block of so many pages may be emptied for levelling after so many programs.
    pub(crate) fn may_level(&self, programs: u64, pages: u16) -> bool {
        (self.levelled + u64::from(pages)) * 100 <= programs * LEVELLING_SHARE
    }

    /// Nothing lags behind: the next time is a block's share of programs away, so that no more than a block is moved at once.
    pub(crate) fn passes_levelling(&mut self, programs: u64) {
        self.levelled = self.levelled.max(programs * LEVELLING_SHARE / 100);
    }

    pub(crate) fn begin(&mut self, blocks: &Blocks<'_>, (block, cause): (BlockAddr, Cause), is_urgent: bool) {
        debug_assert!(self.emptying.is_none(), "one block is emptied at a time");
        let erases = blocks.erase_count(block);
        self.emptying =
            Some(Emptying { block, erases, cause, is_urgent, cursor: 0, left: 0, is_damaged: false, has_lost: false });
    }

    /// The next page of the block that is being emptied, by its place there; `None` if it is done with. So many of its pages die with the next
    /// commit. The page counts as one that stays until it is answered for: an owner that fails meanwhile gives no answer.
    pub(crate) fn next(
        &mut self,
        blocks: &Blocks<'_>,
        dying: impl Fn(BlockAddr) -> u16,
    ) -> Option<(BlockAddr, u16, Cause)> {
        let emptying = self.emptying.as_mut()?;
        let block = emptying.block;
        let has_live = emptying.is_current(blocks) && blocks.live(block) > dying(block) + emptying.left;
        if !has_live || emptying.cursor >= blocks.pages_of(block) {
            return None;
        }
        emptying.cursor += 1;
        debug_assert!(emptying.cursor <= blocks.pages_of(block) && emptying.left < emptying.cursor);
        emptying.left += 1;
        Some((block, emptying.cursor - 1, emptying.cause))
    }

    /// The page that was asked about does not stay: it is dead, or was moved, with so many pages of its block in all and so many programs.
    pub(crate) fn goes(&mut self, (moved, programs): (u32, u32), weight: Weight) {
        let Some(emptying) = &mut self.emptying else { return };
        debug_assert!(emptying.left > 0, "a page is answered for that was not handed out");
        emptying.left = emptying.left.saturating_sub(1);
        self.levelled += if emptying.cause == Cause::Levelling { u64::from(moved) } else { 0 };
        if weight == Weight::Node {
            self.nodes.moved(moved, programs);
        }
    }

    /// A page of the block that was kept is dead with the next commit after all.
    pub(crate) fn goes_late(&mut self, (block, nth): (BlockAddr, u16)) {
        let is_asked = |it: &&mut Emptying| it.block == block && nth < it.cursor;
        if let Some(emptying) = self.emptying.as_mut().filter(is_asked) {
            debug_assert!(emptying.left > 0, "it was kept");
            emptying.left = emptying.left.saturating_sub(1);
        }
    }

    /// The page that was asked about stays, and cannot be read.
    pub(crate) fn is_damaged(&mut self) {
        if let Some(emptying) = &mut self.emptying {
            emptying.is_damaged = true;
        }
    }

    /// Nobody knows whether the page stays that was asked about: it is asked about again, or cannot be read, and the count says it.
    pub(crate) fn is_unknown(&mut self, again: bool) {
        let Some(emptying) = &mut self.emptying else { return };
        debug_assert!(0 < emptying.left && emptying.left <= emptying.cursor, "it was handed out");
        emptying.left = emptying.left.saturating_sub(1);
        emptying.cursor -= u16::from(again);
        emptying.has_lost |= !again;
    }

    /// Another block comes first. What was found out of the pages of this one is found out again.
    pub(crate) fn leave(&mut self) {
        if let Some(emptying) = self.emptying.take() {
            self.skipped = Some(emptying.block);
        }
        debug_assert!(self.emptying.is_none());
    }

    /// The block is done with: every page of it was examined, or none lives any more but those that die with the next commit, so many. Returns
    /// whether its count agrees with what the owner said. If not, one of both is wrong: the block is kept until the pages are counted anew.
    #[must_use]
    pub(crate) fn finish(&mut self, blocks: &mut Blocks<'_>, is_exact: bool, dying: impl Fn(BlockAddr) -> u16) -> bool {
        let Some(emptying) = self.emptying.take() else { return true };
        let Emptying { block, cursor, left, is_damaged, has_lost, .. } = emptying;
        self.skipped = Some(block);
        if !emptying.is_current(blocks) {
            // It was empty, and a checkpoint listed it. Since then it may have been filled again, with pages that nobody was asked about.
            return true;
        }
        if left > 0 {
            if is_damaged {
                blocks.set(block, Flag::Damaged, true);
                blocks.set(block, Flag::Refresh, false);
            }
            return true;
        }
        let dying = dying(block);
        if cursor >= blocks.pages_of(block) {
            if is_exact && blocks.live(block) != dying {
                // Pages that live cannot be read. Or a damaged tree leads to pages that it says are dead, or an image brought a count that is too high. Nothing is erased on the word of either.
                blocks.set(block, Flag::Damaged, true);
                return has_lost;
            }
            blocks.set_live(block, dying);
        }
        blocks.set(block, Flag::Refresh, false);
        true
    }

    /// A block in which a program failed and nothing lives.
    pub(crate) fn condemned(blocks: &Blocks<'_>) -> Option<BlockAddr> {
        if blocks.in_state(Stage::Failing) == 0 {
            return None;
        }
        blocks.addresses().find(|&block| blocks.state(block) == Stage::Failing && blocks.live(block) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;

    #[test]
    fn a_move_that_takes_two_programs_makes_what_lives_weigh_more() {
        let mut collector = Collector::IDLE;
        let mut moves = |count, programs| {
            for _ in 0..count {
                collector.nodes.moved(1, programs);
            }
            collector.toll(100, (0, 1), 64)
        };
        assert_eq!(moves(0, 1), 100);
        assert!((190..=200).contains(&moves(500, 2)));
        assert!(moves(2_000, 1) <= 101);
        assert_eq!(Collector::IDLE.toll(100, (40, 1), 64), 140, "what names a page of a value is moved, too");
        assert!((132..=133).contains(&Collector::IDLE.toll(100, (96, 1), 64)), "four pages name all of them");
        assert_eq!(Collector::IDLE.toll(100, (40, 2), 64), 120, "two are moved at once");
        assert_eq!(Collector::IDLE.toll_of_raw(60, 40), 100, "what names them is elsewhere");
    }
}
