//! The tree between two operations: room, commits, moves, counting. Operations on top say what they need and what they made.

use nandu_cells::Cells;
use nandu_index::KeyBuf;
use nandu_log::{Budget, Claim, Claimed, Fate, LogError, Victim, Whose, takes_commit};
use nandu_media::features::{BLOBS, MLC};
use nandu_media::path::WINDOW_MAX;
use nandu_nand::{CellMode, Nand, PageAddr};

use crate::commit::{commit, commit_bare, seal, tell, write, write_sealed};
use crate::debt::{Debt, Most};
use crate::error::{EngineError, Outcome, corrupt_page};
use crate::large::{self, HeadCounts, Namer, find_namer};
use crate::list::{HEAD_MEMORY, List, Waiting, changes_max, choose, has_head_room, members_left, merged_is_in_leaf};
use crate::numbers::Numbers;
use crate::relocate::{copy, lift, lives};
use crate::replay::load_newest;
use crate::settling::{copy_later, end_named, name_copy, rescue};
use crate::shape::{Counts, TreeState};
use crate::siblings::MOVED_MAX;
use crate::tree::{Tree, Visit};
use crate::unsettled::{COPIES_MAX, RawCopy};
use crate::values::Values;
use crate::walk::visit_all;
use crate::window::Leaf;
use crate::writer::{Asked, Change, DEATHS, Need, Pen};

/// How often room is asked for before an operation is refused. Each time pages were moved, deaths were made to count, or live pages were counted.
pub(crate) const CLAIMS_MAX: u32 = 4096;

/// Deaths that moving several pages at once may tell besides: those, and a leader.
const MOVED: usize = MOVED_MAX + 1;

/// The tree, what waits for it, and where both stand.
pub(crate) struct Keeper<'m, N: Nand, C> {
    tree: Tree<'m, N, C>,
    waiting: Waiting<'m>,
    values: Values<'m>,
    /// The tree of the newest path that was programmed, commit or not, with the entries of the newest commit.
    working: TreeState,
    /// The newest commit, if it is bare and no member of the window.
    bare: Option<PageAddr>,
    /// Of the user's call under way.
    debt: Debt,
    /// Pages may have been appended since the newest commit.
    is_unburied: bool,
    /// Pages may count as live that are not.
    is_miscounted: bool,
    /// A commit failed, so that deaths may have been told that did not happen.
    is_broken: bool,
    /// A member of the window stands in a block that is to be emptied.
    is_held: bool,
    /// Pages of values that records name more once what is unsynced is durable.
    more_pages: i32,
}

impl<'m, N: Nand, C> Keeper<'m, N, C> {
    pub(crate) fn tree(&self) -> &Tree<'m, N, C> {
        &self.tree
    }
}

impl<'m, N: Nand, C: Cells> Keeper<'m, N, C> {
    pub(crate) fn new(tree: Tree<'m, N, C>, waiting: Waiting<'m>, values: Values<'m>) -> Self {
        debug_assert!(waiting.window.is_empty() && waiting.changes.is_empty(), "nothing waits of what was not opened");
        Keeper {
            tree,
            waiting,
            values,
            working: TreeState::NONE,
            bare: None,
            debt: Debt::NONE,
            is_unburied: false,
            is_miscounted: false,
            is_broken: false,
            is_held: false,
            more_pages: 0,
        }
    }

    pub(crate) fn waiting(&self) -> &Waiting<'m> {
        &self.waiting
    }

    pub(crate) fn parts(&mut self) -> (&mut Tree<'m, N, C>, &mut Waiting<'m>) {
        (&mut self.tree, &mut self.waiting)
    }

    pub(crate) fn parts_with_values(&mut self) -> (&mut Tree<'m, N, C>, &mut Waiting<'m>, &mut Values<'m>) {
        (&mut self.tree, &mut self.waiting, &mut self.values)
    }

    pub(crate) fn values(&self) -> &Values<'m> {
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> &mut Values<'m> {
        &mut self.values
    }

    /// The snapshots that there are; from here on commits say whether there may be records of some.
    pub(crate) fn change_numbers(&mut self, change: impl FnOnce(&mut Numbers)) {
        change(self.values.snapshots_mut());
        self.working.counts.has_snapshots = !self.values.snapshots().is_empty();
        self.tree.path.count(self.working.counts);
    }

    /// The tree, what waits, and a value that is to be put: this one, or the head of the value under way.
    pub(crate) fn with_head<'k>(
        &'k mut self,
        value: Option<&'k [u8]>,
    ) -> (&'k mut Tree<'m, N, C>, &'k mut Waiting<'m>, &'k [u8]) {
        let Keeper { tree, waiting, values, .. } = self;
        (tree, waiting, value.unwrap_or_else(|| values.head()))
    }

    pub(crate) fn into_tree(self) -> Tree<'m, N, C> {
        self.tree
    }

    pub(crate) fn working(&self) -> TreeState {
        self.working
    }

    /// Entries with all changes, durable or not.
    pub(crate) fn records(&self) -> u64 {
        self.working.counts.records.saturating_add_signed(self.waiting.changes.gain())
    }

    /// Whether something was programmed that no commit leads to.
    pub(crate) fn is_unburied(&self) -> bool {
        self.is_unburied
    }

    /// Whether a sync has something to make durable. Where pages have tags, moves do not count: a commit for each would be one for each page.
    pub(crate) fn is_owed(&self) -> bool {
        self.waiting.is_owed || !self.tree.log.has_tags() && self.waiting.changes.unsynced() > 0
    }

    /// What is in memory is not to become durable.
    pub(crate) fn breaks(&mut self, is_broken: bool) {
        self.is_broken |= is_broken;
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Goes on from the newest commit.
    pub(crate) fn load(&mut self, committed: PageAddr) -> Outcome<(), N> {
        (self.working, self.bare) = load_newest(&mut self.tree, &mut self.waiting, committed)?;
        Ok(())
    }

    pub(crate) fn check_writable(&self) -> Outcome<(), N> {
        if self.is_broken { Err(EngineError::Log(LogError::Poisoned)) } else { Ok(()) }
    }

    /// An operation begins: what a failed one left is counted, and of each member it is known whether it dies when it leaves.
    pub(crate) fn ready(&mut self) -> Outcome<(), N> {
        debug_assert!(!self.tree.path.is_dirty(), "the operation before has ended");
        self.check_writable()?;
        self.resolve()?;
        if self.is_miscounted {
            self.recount()?;
        }
        Ok(())
    }

    /// Programs and erases of the user's call under way.
    pub(crate) fn spent(&self) -> Most {
        self.debt.spent(&self.tree.log)
    }

    /// A call of the user's begins.
    pub(crate) fn begin(&mut self) {
        self.debt.begin(&self.tree.log);
    }

    /// It ends, and may take so many programs and erases: its share of collecting is done. What it changed stays changed if
    /// the chip fails meanwhile; the next call finds that out.
    pub(crate) fn end(&mut self, most: Most) {
        let is_sound = !self.is_broken && !self.is_miscounted;
        let owed = if is_sound { self.debt.instalment(&mut self.tree.log, most) } else { None };
        if let Some(mut budget) = owed {
            let _ = self.collect(&mut budget);
            self.debt.collected(&budget);
        }
        self.begin();
    }

    /// Asks for room. `None` if something else had to be done for it: what was in the buffers is forgotten, and is to be made again.
    pub(crate) fn claim(&mut self, need: Need) -> Outcome<Option<Change>, N> {
        self.claim_for(need, None)
    }

    /// The same where one of the pages may be a raw one with so many bits in a cell.
    pub(crate) fn claim_for(&mut self, need: Need, raw: Option<CellMode>) -> Outcome<Option<Change>, N> {
        let Need { want, pages, live, deaths } = need;
        // What is listed may not fit beside the path, and then has a page of its own. With a raw page there is no path.
        let pages = pages + u32::from(raw.is_none() && !self.waiting.is_idle());
        // Members take no room from what is there.
        let live = if want == Claim::Grow { live + members_left(&self.waiting) + self.reserve() } else { live };
        if self.tree.log.dying_room() < deaths + self.waiting.window.len() {
            self.tree.path.begin(self.working);
            self.bury()?;
            return Ok(None);
        }
        self.weigh(self.values.with_next());
        let raws = u32::from(raw.is_some());
        let claimed = match self.tree.log.claim_with(want, (pages - raws, raw), live - raws) {
            // How much moves take is not known yet: that is counted before anything is refused.
            Err(LogError::Full) if want == Claim::Grow && self.is_guessed() => Claimed::Recount,
            claimed => claimed?,
        };
        if let Claimed::Granted(grant) = claimed {
            return Ok(Some(Change::new(grant, pages)));
        }
        self.tree.path.begin(self.working);
        match claimed {
            Claimed::Recount => self.recount()?,
            Claimed::Collect(mut budget) => {
                // What moved may have to count before more can move, and members that are in the way have to leave; where that takes a block, not as long as something moves.
                let before = self.tree.log.spent().0;
                let has_asked = self.collect(&mut budget)?;
                let has_moved = self.tree.log.spent().0 != before;
                if MLC && !has_moved && !self.values.copies().is_empty() {
                    self.settle_copies(false)?;
                    self.bury()?;
                } else if !has_asked || self.is_held && (!has_moved || self.tree.log.buries_in_place()) {
                    self.bury()?;
                }
            }
            _ => self.bury()?,
        }
        debug_assert!(!self.tree.path.is_dirty(), "the change is to be made again");
        Ok(None)
    }

    /// An operation was not granted room, however often it asked.
    pub(crate) fn refuse(&mut self, want: Claim) -> EngineError<N::Error> {
        let error = if want == Claim::Grow { LogError::Full } else { self.tree.log.refuse() };
        self.undo(EngineError::Log(error))
    }

    /// Whether so many pages of values more may live, and so many others. Only the truth says no.
    pub(crate) fn has_room(&mut self, values: u32, others: u32) -> Outcome<bool, N> {
        let is_guessed = !self.tree.log.is_exact() || self.values.is_unknown() || self.values.may_reserve_less();
        if !self.is_room_for(values, others) && is_guessed {
            self.recount()?;
        }
        Ok(self.is_room_for(values, others))
    }

    /// The same as far as is known.
    pub(crate) fn is_room_for(&mut self, values: u32, others: u32) -> bool {
        self.weigh(values);
        self.tree.log.has_room(values + others + self.reserve())
    }

    /// Whether what moves take, or what snapshots keep, may be less than it seems.
    fn is_guessed(&self) -> bool {
        self.working.counts.may_have_heads() && self.values.is_unknown() || self.values.may_reserve_less()
    }

    /// Pages that growth leaves for what snapshots keep.
    fn reserve(&self) -> u32 {
        self.values.reserve(self.tree.log.live_pages().saturating_sub(self.working.counts.value_pages))
    }

    /// Work on parts of the keeper appended so many pages that no commit leads to yet.
    pub(crate) fn appended(&mut self, pages: u32) {
        self.debt.appended(pages);
        self.is_unburied = true;
    }

    /// Tells the log how many pages of values there will be, with so many more.
    fn weigh(&mut self, more: u32) {
        if BLOBS {
            let pages = self.working.counts.value_pages.saturating_add_signed(self.more_pages) + more;
            self.tree.log.weigh(pages, self.values.together());
        }
    }

    /// The value under way is in its leaf.
    pub(crate) fn end_value(&mut self) {
        debug_assert!(self.values.part().is_none(), "it is whole");
        self.values.close();
    }

    /// The value under way is given up: its pages are nobody's.
    pub(crate) fn give_up_value(&mut self) {
        self.is_miscounted |= self.values.close();
    }

    /// As [`large::head_dies`].
    pub(crate) fn head_dies(&mut self, key: &[u8]) -> Outcome<(), N> {
        let Keeper { tree, waiting, .. } = self;
        let (fewer, is_all) = large::head_dies(tree, waiting, (key, DEATHS))?;
        self.more_pages -= fewer as i32;
        self.is_miscounted |= !is_all;
        Ok(())
    }

    /// The head of the value under way waits, which is not under way any more; so many pages more are named.
    pub(crate) fn head_waits(&mut self, more: u8) {
        self.end_value();
        self.more_pages += i32::from(more);
        self.working.counts.has_heads = true;
        self.count_pages((0, 0));
    }

    /// What is in the buffers has so many entries, with what is unsynced or without, and so many pages of values more and fewer.
    pub(crate) fn count(&mut self, is_synced: bool, pages: (u32, u32)) {
        let before = self.working.counts;
        let (records, waits) = if is_synced { (self.records(), self.more_pages) } else { (before.records, 0) };
        self.tree.path.count(Counts { records, ..self.counts_with(pages, waits) });
    }

    /// What is in the buffers has so many pages of values more and fewer.
    pub(crate) fn count_pages(&mut self, pages: (u32, u32)) {
        let records = self.tree.path.state().counts.records;
        self.tree.path.count(Counts { records, ..self.counts_with(pages, 0) });
    }

    fn counts_with(&self, (more, fewer): (u32, u32), waits: i32) -> Counts {
        let Counts { has_heads, value_pages, .. } = self.working.counts;
        let value_pages = (value_pages + more).saturating_add_signed(waits).saturating_sub(fewer);
        Counts { has_heads: has_heads || more > 0, value_pages, ..self.working.counts }
    }

    /// What a commit lists in so much room, behind what the path replaces, beside a value if it has one.
    fn choose<'b>(&mut self, room: usize, blob: &'b [u8]) -> Option<List<'b>> {
        let told = self.tree.path.replaced().as_slice().len() + usize::from(self.bare.is_some());
        let max = changes_max(self.tree.path.shape().bare_room());
        choose(&mut self.waiting, (room, max), (self.tree.log.dying_room().saturating_sub(told), blob))
    }

    /// Commits what a change left in the buffers and what is unsynced, or undoes it.
    pub(crate) fn conclude<T>(&mut self, change: Change, outcome: Outcome<T, N>) -> Outcome<T, N> {
        self.conclude_with(change, outcome, &[])
    }

    /// The same with a value in the commit, which has no path then.
    pub(crate) fn conclude_with<T>(
        &mut self,
        mut change: Change,
        outcome: Outcome<T, N>,
        blob: &[u8],
    ) -> Outcome<T, N> {
        let sealed = outcome.and_then(|value| Ok((value, self.seal(&mut change, blob)?)));
        let (value, list) = match sealed {
            Ok(sealed) => sealed,
            Err(error) => {
                self.give_up(change);
                return Err(self.undo(error));
            }
        };
        let appended = change.appended();
        if !self.tree.path.is_dirty() && appended == 0 && list.is_empty() && list.leaving() == 0 {
            // There was nothing to change, and no member lists what is not so any more.
            merged_is_in_leaf(&mut self.waiting);
            return Ok(value);
        }
        self.debt.appended(appended + self.tree.log.commit_pages());
        self.commit(change, list)?;
        Ok(value)
    }

    /// Puts the page together that is to be the commit. Where the path leaves no room for what it lists, that goes into a page without one.
    fn seal<'b>(&mut self, change: &mut Change, blob: &'b [u8]) -> Outcome<List<'b>, N> {
        if self.tree.path.is_dirty() {
            let room = seal(&mut self.tree, &mut Pen::Change(change))?;
            if let Some(list) = self.choose(room, blob) {
                return Ok(list);
            }
            write_sealed(&mut self.tree, &mut Pen::Change(change))?;
        }
        let room = self.tree.path.shape().bare_room();
        self.choose(room, blob).ok_or(EngineError::Log(LogError::Full))
    }

    /// A change under way is not committed: nothing leads to what was appended, and it counts as live.
    fn give_up(&mut self, change: Change) {
        self.is_unburied = true;
        self.is_miscounted |= change.appended() > 0;
    }

    /// Programs the commit.
    fn commit(&mut self, change: Change, list: List<'_>) -> Outcome<(), N> {
        let bare = self.bare.take();
        let Keeper { tree, waiting, .. } = self;
        let done = match tree.path.is_dirty() {
            true => commit(tree, waiting, change, (bare, list)).map(|all| (None, all)),
            // The last edits of a batch changed nothing more, or there is no path.
            false => commit_bare(tree, waiting, change, (bare, list)),
        };
        match done {
            Ok((bare, is_all)) => {
                self.bare = bare;
                self.working = self.tree.path.state();
                self.is_unburied = false;
                self.is_held = false;
                self.more_pages = 0;
                self.is_miscounted |= !is_all;
                debug_assert!(!self.tree.log.has_dying() && !self.tree.path.is_dirty(), "all that was told counts");
                Ok(())
            }
            Err(error) => {
                self.is_broken = true;
                Err(self.undo(error))
            }
        }
    }

    /// Programs what a change left in the buffers as a page that promises nothing, and goes on from there: what it merged is in its leaf once a commit follows. Nothing of it was unsynced.
    pub(crate) fn keep(&mut self, mut change: Change, outcome: Outcome<(), N>) -> Outcome<(), N> {
        let written = outcome.and_then(|()| match self.tree.path.is_dirty() {
            true => write(&mut self.tree, &mut Pen::Change(&mut change)),
            false => Ok(()),
        });
        if let Err(error) = written {
            self.give_up(change);
            return Err(self.undo(error));
        }
        self.debt.appended(change.appended());
        self.is_unburied |= change.appended() > 0;
        let Keeper { tree, waiting, .. } = self;
        debug_assert!(!tree.path.is_dirty() && !waiting.changes.has_merged_unsynced(), "it is on flash, and listed");
        self.is_miscounted |= !tell(tree, waiting, None);
        merged_is_in_leaf(waiting);
        self.working = tree.path.state();
        Ok(())
    }

    /// Back to what was before. Nothing on flash belongs to that but what was programmed for it.
    pub(crate) fn undo(&mut self, error: EngineError<N::Error>) -> EngineError<N::Error> {
        self.tree.path.begin(self.working);
        self.waiting.changes.undo();
        debug_assert!(!self.tree.path.is_dirty() && self.tree.path.replaced().as_slice().is_empty(), "undone");
        // It may hold nodes of pages that never became part of the tree.
        self.tree.reader.clear();
        error
    }

    /// Commits without a path, so that what was moved counts and every change is durable, and lets members leave whose changes it has room for. 1 program.
    pub(crate) fn bury(&mut self) -> Outcome<(), N> {
        debug_assert!(!self.tree.path.is_dirty(), "a change is not made to count in passing");
        self.check_writable()?;
        let Claimed::Granted(grant) = self.tree.log.claim(Claim::Bury, 1, 1)? else {
            return Err(EngineError::Log(LogError::Full));
        };
        self.count(true, (0, 0));
        let list = self.choose(self.tree.path.shape().bare_room(), &[]);
        let list = list.ok_or(EngineError::Log(LogError::Full))?;
        self.commit(Change::new(grant, 1), list)
    }

    /// Finds out of the members that the volume was opened with whether anything else lives in their pages. Reads about 2 pages for each, once.
    pub(crate) fn resolve(&mut self) -> Outcome<(), N> {
        while let Some(page) = self.waiting.window.unknown() {
            let leaf = match lives(&mut self.tree, PageAddr(page)) {
                Ok(None) if !large::waits_for(&self.tree, &self.waiting.changes, page) => Leaf::Dead,
                Ok(_) => Leaf::Lives,
                Err(error) => {
                    let error = self.undo(error);
                    // Of what cannot be read nothing is given up.
                    corrupt_page(&error).map(|_| Leaf::Lives).ok_or(error)?
                }
            };
            self.waiting.window.resolve(page, leaf);
        }
        Ok(())
    }

    /// Moves what the log asks about, as far as the budget goes. Returns whether it asked about anything, or counted pages. Unless an operation waits all leaves are read once at most: for counts that a cut left too high, or for the owners of a group of raw pages.
    pub(crate) fn collect(&mut self, budget: &mut Budget) -> Outcome<bool, N> {
        self.resolve()?;
        let (mut any, mut has_walked) = (false, false);
        loop {
            if takes_commit(budget) || self.tree.log.dying_room() < DEATHS + MOVED + self.waiting.window.len() {
                self.bury()?;
                any = true;
            }
            let victim = match self.tree.log.victim(budget)? {
                Some(victim) => victim,
                None if budget.waits_for_commit() => continue,
                None => return Ok(any),
            };
            any = true;
            let asked = Asked { victim: &victim, most: budget.moves() as usize, may_begin: !budget.is_urgent() };
            let mut outcome = self.fate(&asked);
            if matches!(outcome, Ok(Fate::Later)) && (!has_walked || budget.is_urgent()) {
                has_walked = true;
                let known = self.find_out().and_then(|()| self.fate(&asked));
                outcome = known.map(|fate| if fate == Fate::Later { Fate::Unreadable } else { fate });
            }
            self.tree.log.answer(victim, outcome.as_ref().map_or(Fate::Stays, |&fate| fate), budget);
            if outcome? == Fate::Later {
                return Ok(any);
            }
        }
    }

    /// What becomes of a page of a block that is emptied: it is dead, or it is copied. A member of the window stays until it leaves (W5), and only its leaf is copied.
    fn fate(&mut self, asked: &Asked<'_>) -> Outcome<Fate, N> {
        let Asked { victim, most, .. } = *asked;
        let page = victim.page();
        if self.bare == Some(page) {
            // It dies with the next commit.
            return Ok(Fate::Stays);
        }
        if BLOBS && self.tree.log.is_raw(page) {
            return self.fate_of_owned(asked, true);
        }
        let is_member = self.waiting.window.contains(page.0) && !self.waiting.broken.is(|it| it.members_die);
        self.is_held |= is_member;
        let level = match lives(&mut self.tree, page) {
            Ok(None) if is_member => return Ok(Fate::Stays),
            Ok(Some(level)) => level,
            Ok(None) | Err(_) if BLOBS && self.tree.reader.has_value(&mut self.tree.log, page.0) => {
                return self.fate_of_owned(asked, false);
            }
            Ok(None) => return Ok(Fate::Dead),
            Err(error) => {
                let error = self.undo(error);
                return match corrupt_page(&error) {
                    Some(lost) if lost == page && !is_member && self.tree.log.is_exact() => Ok(Fate::Lost),
                    Some(lost) if lost == page && !is_member => Ok(Fate::Later),
                    Some(_) => Ok(Fate::Unreadable),
                    None => Err(error),
                };
            }
        };
        match self.move_page(victim, level, if is_member { 1 } else { most }) {
            Ok(_) if is_member => Ok(Fate::Kept),
            Ok(moved) => Ok(Fate::Copied(moved)),
            Err(error) => self.not_moved(error),
        }
    }

    /// Programs a page that lives elsewhere, and others of its block with it, so many in all at most; returns how many. Where no block may be opened for that, it goes into the stream of commits,
    /// as one: no cut takes it back. 1 program; 1 more if its leaf does not fit beside its ancestors, or if changes are unsynced that such a commit would have to list.
    fn move_page(&mut self, victim: &Victim, level: u8, most: usize) -> Outcome<u32, N> {
        let by_commit = self.tree.log.moves_by_commit(victim);
        if by_commit && self.waiting.changes.unsynced() > 0 {
            self.bury()?;
        }
        lift(&mut self.tree, level, victim.page())?;
        if by_commit && self.tree.path.place_leaf() {
            if let Some(list) = self.tree.path.compose().and_then(|room| self.choose(room, &[])) {
                let Claimed::Granted(grant) = self.tree.log.claim(Claim::Bury, 1, 1)? else {
                    return Err(EngineError::Log(LogError::Full));
                };
                self.commit(Change::new(grant, 1), list)?;
                self.tree.path.stats_mut().moved_by_commit += 1;
                return Ok(1);
            }
            // What members list that have to leave does not fit beside it.
            self.tree.path.begin(self.working);
            lives(&mut self.tree, victim.page())?;
            lift(&mut self.tree, level, victim.page())?;
        }
        self.is_unburied = true;
        let before = self.tree.log.spent().0;
        let Keeper { tree, waiting, .. } = self;
        let moved = copy(tree, waiting, (victim, most));
        // Copies but the first may be nobody's.
        self.is_miscounted |= moved.is_err() && self.tree.log.spent().0 > before + 1;
        let moved = moved?;
        self.working = self.tree.path.state();
        Ok(moved)
    }

    /// A page stays where it is.
    fn not_moved(&mut self, error: EngineError<N::Error>) -> Outcome<Fate, N> {
        let error = self.undo(error);
        match (corrupt_page(&error), &error) {
            (Some(_), _) => Ok(Fate::Unreadable),
            (None, EngineError::Log(LogError::Full)) => Ok(Fate::Stays),
            _ => Err(error),
        }
    }

    /// What becomes of a page that a key owns: a raw one, or one of a value, which was read last.
    fn fate_of_owned(&mut self, asked: &Asked<'_>, is_raw: bool) -> Outcome<Fate, N> {
        let mut key = KeyBuf::EMPTY;
        if is_raw { self.fate_of_raw(asked, &mut key) } else { self.fate_of_value(asked, &mut key) }
    }

    /// What becomes of a page in a block of raw pages. Where a cut left nothing that says whose those are, only the leaves do.
    fn fate_of_raw(&mut self, asked: &Asked<'_>, key: &mut KeyBuf) -> Outcome<Fate, N> {
        let victim = asked.victim;
        if self.values.has_raw(victim.page().0) {
            return Ok(Fate::Stays);
        }
        debug_assert!(!self.tree.path.is_dirty(), "nothing is under way");
        if MLC && self.values.copies().concerns(victim.page().0) {
            return self.fate_of_copied(asked);
        }
        match self.tree.log.whose(victim)? {
            Whose::Of(owner) => {
                key.set(owner.key().unwrap_or_default());
                self.fate_of_named(asked, key, 0)
            }
            Whose::Nobodys => Ok(Fate::Dead),
            Whose::Unknown => Ok(Fate::Later),
        }
    }

    /// What becomes of a page of a value, which was read last, where so many programs are left. One of the value under way stays.
    fn fate_of_value(&mut self, asked: &Asked<'_>, key: &mut KeyBuf) -> Outcome<Fate, N> {
        let page = asked.victim.page().0;
        if MLC && self.values.copies().concerns(page) {
            return self.fate_of_copied(asked);
        }
        let sequence = self.tree.reader.value_sequence(page);
        let fate = match large::key_of(&mut self.tree, page, key) {
            Ok(Some(number)) => self.fate_of_named(asked, key, number)?,
            Ok(None) => Fate::Dead,
            Err(error) => self.not_moved(error)?,
        };
        let is_open = fate == Fate::Dead && self.values.since().is_some_and(|since| sequence >= Some(since));
        Ok(if is_open { Fate::Stays } else { fate })
    }

    /// What becomes of a page of a value, which is this one of this key's.
    fn fate_of_named(&mut self, asked: &Asked<'_>, key: &mut KeyBuf, number: usize) -> Outcome<Fate, N> {
        let Asked { victim, most, .. } = *asked;
        let (page, mut is_room_made) = (victim.page().0, false);
        let named = loop {
            let Keeper { tree, waiting, values, .. } = self;
            match find_namer(tree, (&waiting.changes, values.snapshots()), (page, number), key) {
                Ok(Some(Namer::Change)) if !is_room_made => {
                    // A commit may let the change leave memory.
                    let size = waiting.changes.listing(key.as_slice());
                    self.make_list_room(size)?;
                    is_room_made = true;
                }
                Ok(Some(Namer::Leaf(_))) if !is_room_made && has_head_room(waiting, tree.path.shape(), false) => {
                    self.make_list_room(HEAD_MEMORY)?;
                    is_room_made = true;
                }
                Ok(Some(named)) => break named,
                Ok(None) => return Ok(Fate::Dead),
                Err(error) => return self.not_moved(error),
            }
        };
        if MLC && self.tree.log.has_mlc() && self.tree.path.shape().has_raw() {
            return self.copy_later(asked, (key.as_slice(), named));
        }
        let Keeper { tree, waiting, .. } = self;
        debug_assert!(!tree.path.is_dirty(), "nothing is under way");
        let waits = is_room_made && has_head_room(waiting, tree.path.shape(), false);
        let before = tree.log.spent().0;
        // Its leaf may take two programs.
        let copied = large::copy(tree, waiting, (key, named, waits), (victim, (most - 1).max(1)));
        self.is_unburied |= tree.log.spent().0 != before;
        match copied {
            Ok(pages) => {
                self.working = self.tree.path.state();
                Ok(Fate::Values(pages))
            }
            Err(error) => {
                // Some copies may be nobody's.
                self.is_miscounted |= self.tree.log.spent().0 != before;
                self.not_moved(error)
            }
        }
    }

    /// Copies a raw page, which is named so, to two bits a cell; and names the copies that may be named.
    fn copy_later(&mut self, asked: &Asked<'_>, of: (&[u8], Namer)) -> Outcome<Fate, N> {
        let before = self.tree.log.spent().0;
        let Keeper { tree, waiting, values, .. } = self;
        let copied = copy_later(tree, (waiting, values), of, asked.victim).and_then(|()| rescue(tree, waiting, values));
        self.is_unburied |= self.tree.log.spent().0 != before;
        if let Err(error) = copied {
            self.is_miscounted |= self.tree.log.spent().0 != before;
            return self.not_moved(error);
        }
        self.name_copies((Some(asked.victim), asked.may_begin), None)?;
        Ok(Fate::Kept)
    }

    /// What becomes of a page of which a copy waits, or of the copy: that may be settled since, by what was appended.
    fn fate_of_copied(&mut self, asked: &Asked<'_>) -> Outcome<Fate, N> {
        self.name_copies((Some(asked.victim), asked.may_begin), Some(asked.victim.page()))?;
        Ok(if self.values.copies().concerns(asked.victim.page().0) { Fate::Stays } else { Fate::Kept })
    }

    /// Names the copies that may be named, or gives them up. Where a page is moved and that takes a leaf, only those of one leaf: that of the copy that this page is or has, or, where there is none, of any once no other copy has a place. The longer they wait, the more of them a leaf names.
    fn name_copies(&mut self, (victim, may_begin): (Option<&Victim>, bool), of: Option<PageAddr>) -> Outcome<(), N> {
        loop {
            let takes_leaf = victim.is_some() && !has_head_room(&self.waiting, self.tree.path.shape(), may_begin);
            if takes_leaf && of.is_none() && !self.values.copies().is_full() {
                return Ok(());
            }
            let Keeper { tree, values, .. } = self;
            let is_meant = |copy: &RawCopy| !takes_leaf || of.is_none_or(|PageAddr(page)| copy.concerns(page));
            let settled = values.copies_mut().take(|copy| is_meant(copy) && tree.log.is_settled(PageAddr(copy.page)));
            let Some(copy) = settled else { return Ok(()) };
            if let Err(error) = self.name_settled(&copy, victim, may_begin) {
                self.values.copies_mut().set_named(|_| false);
                self.tree.log.forget(PageAddr(copy.page));
                self.not_moved(error)?;
            }
            end_named(&mut self.tree, &mut self.values);
        }
    }

    /// Names a copy: by a change that waits, if one may; else in its leaf, which is moved for that, or committed where nothing is moved.
    fn name_settled(&mut self, copy: &RawCopy, victim: Option<&Victim>, may_begin: bool) -> Outcome<(), N> {
        if self.tree.log.dying_room() < DEATHS + self.waiting.window.len() + COPIES_MAX {
            self.bury()?;
        }
        // A change that waits already names it, too. A commit may let that leave memory.
        self.make_list_room(HEAD_MEMORY)?;
        let may_wait = has_head_room(&self.waiting, self.tree.path.shape(), may_begin);
        let Keeper { tree, waiting, values, .. } = self;
        name_copy(tree, (waiting, values), (copy, may_wait), victim)?;
        if self.tree.path.is_dirty() {
            let Claimed::Granted(grant) = self.tree.log.claim(Claim::Bury, 3, 1)? else {
                return Err(EngineError::Log(LogError::Full));
            };
            self.count(true, (0, 0));
            return self.conclude(Change::new(grant, 3), Ok(()));
        }
        self.working = self.tree.path.state();
        Ok(())
    }

    /// No copy waits for its pair any more: what shares its cells is left out, and what names the source names the copy. Changes may begin to wait for that, or not.
    pub(crate) fn settle_copies(&mut self, may_begin: bool) -> Outcome<(), N> {
        if MLC {
            self.tree.log.settle_copies();
            self.name_copies((None, may_begin), None)?;
        }
        debug_assert!(self.values.copies().is_empty(), "each was named or given up");
        Ok(())
    }

    /// The next commit has room to list so many bytes more: what waits is carried into fewer members, until there is room for that of the one that has to leave, too.
    pub(crate) fn make_list_room(&mut self, size: usize) -> Outcome<(), N> {
        let max = changes_max(self.tree.path.shape().bare_room());
        debug_assert!(size <= max, "a page has room for what is to be listed");
        for _ in 0..WINDOW_MAX {
            if self.waiting.listed_next() + size <= max {
                break;
            }
            self.bury()?;
        }
        Ok(())
    }

    /// Visits each live page once. Returns how many heads of values there are. Reads the inner nodes that are not in memory.
    pub(crate) fn visit_live(&mut self, visit: Visit<'_, N>) -> Outcome<HeadCounts, N> {
        visit_all(&mut self.tree, (&self.waiting, &self.values, self.bare), visit)
    }

    /// Finds out what only all leaves say: whose the pages are of the group that is emptied, and how many live, where that may be too high since a cut. Nothing is found out if a leaf cannot be read.
    fn find_out(&mut self) -> Outcome<(), N> {
        let found = match self.is_miscounted {
            // Pages may be dying of which the log was not told.
            true => self.recount(),
            false => self.find_all(!self.tree.log.is_exact()).map(drop),
        };
        found.or_else(|error| corrupt_page(&error).map(drop).ok_or(error))
    }

    /// Names every live page to the log, and finds out what records name. Reads the inner nodes that are not in memory; a commit comes first if pages were moved since the newest one.
    pub(crate) fn recount(&mut self) -> Outcome<(), N> {
        self.resolve()?;
        if self.is_unburied || self.tree.log.has_dying() {
            self.bury()?;
        }
        let heads = self.find_all(true)?;
        debug_assert!(!self.tree.log.has_dying() && !self.is_unburied, "nothing died while pages were counted");
        // What is said from here on of whether there are heads.
        let counts = self.working.counts;
        (self.working.counts, self.more_pages) =
            (Counts { has_heads: heads.count > 0, value_pages: heads.pages, ..counts }, 0);
        self.values.counted(heads.count, heads.pages);
        self.values.counted_leaves(heads.leaves, heads.kept);
        self.count_pages((0, 0));
        Ok(())
    }

    /// Names every live page to the log, and has them counted if that is wanted. The log knows all that dies with the next commit.
    fn find_all(&mut self, counts: bool) -> Outcome<HeadCounts, N> {
        if counts {
            self.tree.path.stats_mut().recounts += 1;
            self.tree.log.recount_begin();
        }
        let found = self.visit_live(&mut |log, page, key| log.found(page, key));
        self.tree.log.found_all(found.is_ok());
        self.is_miscounted &= !counts;
        found.map_err(|error| self.undo(error))
    }
}
