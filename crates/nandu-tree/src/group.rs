//! Changes that become durable together: [`Durability::OnSync`](crate::Durability).
//!
//! A change goes to memory; a sync programs one *journal page* with all changes since the last one, which is a commit.
//! Changes go to their leaves later, many of one leaf with one program, when the memory for them is nearly full. Then the page
//! of a sync is that of a leaf, with the changes of others in the gap between leaf and inner nodes. So `k` changes cost one
//! program, or a third or so of a program each where that is more; with the alternative, the leaves at each sync, they cost
//! a program each.
//!
//! **The rule that makes it safe**: whenever a leaf is programmed, for whatever reason, all changes of its range go into
//! it; and if a leaf vanishes, the one that gets its range is programmed. So a change in a journal page is obsolete
//! exactly if the page of its leaf has a higher sequence. That is looked at
//! when the leaf is read anyway: until then a change found in a journal page is *unproved*. A leaf of which a part stays in its page
//! is not programmed: the changes of that part wait on.
//!
//! A second rule keeps a cut from leaving half a sync: what happens between two syncs, the merging into leaves and the
//! work of the collector, happens while all changes in memory are in journal pages. It changes where things are and not
//! what the tree holds, so a cut may undo it. Therefore it is done before the first change after a sync, and all changes
//! until the next sync fit one page. A leaf that rides with a sync is no exception: its page is the one that holds them.

use core::ops::Range;

use nandu_index::{Edit, KeyBuf};
use nandu_media::journal::{Change, front_size};
use nandu_media::section::SECTION_FRONT_SIZE;
use nandu_media::value::TAG_INLINE;

use crate::TreeError;
use crate::changes::{Changes, UNSYNCED};
use crate::descent::{LeafFences, Seek};
use crate::draft::Draft;
use crate::journals::{LISTED_MAX, Tally, count_changes};
use crate::merge::Aim;
use crate::pages::{Need, Pages, Placement};
use crate::tree::Tree;
use nandu_cells::{Cells, LeafRun, Stretch};

/// Leaves looked at for the one with most changes. All of them would not make it much better.
const CANDIDATES: usize = 64;

/// Looking at them ends when so many pages were read for it, where the inner nodes are not all in memory: more reads cost more
/// than a fuller leaf saves.
const CANDIDATE_READS: u32 = 3;

/// Part of the memory, as a divisor, that is free at most when the first change after a sync comes. Free memory holds no changes
/// that could go to their leaves with others.
const FREE_SHARE: usize = 16;

/// Page values of one sync that are paid for in advance at most.
const GROUP_MAX: u32 = 64;

/// Part of the memory, as a divisor, that stays free for what sections hold: a mount finds the changes that the newest journal page
/// by itself names, as they were, and those of later sections too. With 24 KiB for changes, measured as in `core/groupcommit`
/// with k = 4, 0.363 programs for an update without it, 0.347 with it: a journal page by itself takes part in 80 updates, not in 10.
const RIDE_SHARE: usize = 28;

/// So many groups as the last must fit that part, for it to be of use.
const RIDES_MIN: usize = 4;

/// Groups of which so many fit a journal page are as a rule small enough for sections.
const SECTIONS_MIN: usize = 8;

/// Part of the memory, as a divisor, with which leaves begin to be merged at syncs, before they have to be between two of them.
/// Without it memory is found emptied enough now and then, and a page is programmed that holds no leaf.
const EARLY_SHARE: usize = 64;

/// How many times as large as the last group one before it was, for more like that to be expected.
const BURST_MIN: usize = 4;

/// Most journal pages that are named by sections. Each is a read for a mount; more than a few of them there rarely are.
const RECENT_MAX: usize = 4;

/// Leaves that are asked whether their page has room for changes of others.
const TRIES: usize = 3;

/// What a leaf with its changes leaves of its page.
enum Beside {
    /// Room for what must be in a journal page.
    Room,
    /// Less than that.
    Short,
    /// It is so full that a part of it goes to another page, which has room.
    Parted,
}

/// How the list of journal pages becomes shorter.
enum Shorter {
    /// Obsolete changes of this one are forgotten.
    Proved(u8),
    /// Two become one.
    Joined,
    /// Changes go to their leaf.
    Merged,
}

/// A leaf in a block that is being emptied, which a sync may take along.
#[derive(Clone, Copy)]
pub(crate) struct Lift {
    pub(crate) page: u32,
    /// A key of it.
    pub(crate) key: KeyBuf,
}

/// What changes need in memory and in a journal page.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    memory: usize,
    journal: usize,
    count: usize,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Makes every change so far durable, in order. Programs one page, or nothing if there is no change since the last
    /// sync; two or three if a leaf that goes with it overflows, or leaves no room for the changes of other leaves, and as many as
    /// it takes if that leaf becomes many.
    pub fn sync(&mut self) -> Result<(), TreeError<P::Error>> {
        if self.changes.unsynced() == 0 {
            return Ok(());
        }
        self.note_group();
        self.before_commit()?;
        if self.changes.residents() > 0 {
            // The page of a leaf has no room for it.
            self.write_journal(Placement::Update { supersedes: None })?;
            self.bury_doomed();
            return Ok(());
        }
        let is_due = self.is_merge_due();
        let lifted = self.ride_lifted();
        if self.unless_lost(lifted)? == Some(true) {
            // The collector need not move it.
        } else if self.merge_one_leaf(is_due)? {
            // It held all of them.
        } else if !is_due || !self.try_ride()? {
            // If a leaf is going to have to be programmed before the next change, its page may be the one that is programmed now; a
            // leaf that cannot be read is no reason to lose what is to be made durable.
            self.write_journal(Placement::Update { supersedes: None })?;
        }
        self.bury_doomed();
        Ok(())
    }

    #[inline(never)]
    fn merge_one_leaf(&mut self, is_due: bool) -> Result<bool, TreeError<P::Error>> {
        match self.one_leaf_to_merge(is_due)? {
            Some(index) => self.merge_roomy(index).map(|()| true),
            None => Ok(false),
        }
    }

    /// As [`Tree::ride`]; `false` if it failed and the medium can be programmed all the same.
    fn try_ride(&mut self) -> Result<bool, TreeError<P::Error>> {
        let outcome = self.ride();
        Ok(self.unless_lost(outcome)?.is_some())
    }

    /// What could be done without, if the medium can be programmed all the same.
    fn unless_lost<T>(&self, outcome: Result<T, TreeError<P::Error>>) -> Result<Option<T>, TreeError<P::Error>> {
        match outcome {
            Err(error) if self.pages.is_lost() => Err(error),
            outcome => Ok(outcome.ok()),
        }
    }

    /// Whether memory is so full that leaves have to be merged soon. As long as it is not, changes that stay gather more of their
    /// leaf, so that fewer leaves are programmed, and fewer pages die here and there that somebody has to collect.
    fn is_merge_due(&self) -> bool {
        // Many changes at once, among syncs of few, find room then: the leaves that they would displace have ridden before.
        let burst = if self.group_peak > BURST_MIN * self.group_size { self.group_peak } else { 0 };
        self.can_ride() && self.changes.free() < self.free_wanted(0) + self.used_max() / EARLY_SHARE + burst
    }

    /// Whether a page that holds a leaf and changes of others has a place in the list of journal pages.
    fn can_ride(&self) -> bool {
        self.journals.recent_count() < RECENT_MAX && self.journals.count() + 1 < self.journals.listed_max
    }

    /// Programs the leaf that the collector waits for, if its page has room for what is to be made durable. That is a commit.
    #[inline(never)]
    fn ride_lifted(&mut self) -> Result<bool, TreeError<P::Error>> {
        let Some(lift) = self.lift.get().copied().filter(|_| self.can_ride()) else { return Ok(false) };
        self.descend(Seek::At(lift.key.as_slice()), 1)?;
        if self.child(0) != lift.page {
            self.lift.clear();
            return Ok(false);
        }
        match self.room_beside(Aim::Key(lift.key.as_slice()))? {
            (Beside::Room, _) => {
                self.lift.clear();
                self.merge_at(lift.key.as_slice(), None)?;
                self.stats.lifted += 1;
                Ok(true)
            }
            (Beside::Short | Beside::Parted, _) => Ok(false),
        }
    }

    fn is_group_small(&self) -> bool {
        SECTIONS_MIN * self.group_size <= self.journals.capacity
    }

    /// Bytes of memory that changes may take: what is beyond the list of journal pages accounts for stays free.
    fn used_max(&self) -> usize {
        let journals = &self.journals;
        let for_sections = if self.is_group_small() { journals.recent_memory } else { 0 };
        self.changes.size().min(journals.memory_max - for_sections)
    }

    /// Bytes of memory that are to be free when the first change after a sync comes.
    fn free_wanted(&self, memory: usize) -> usize {
        // As many changes as came before one of the last syncs fit, and as many again; with less room they would be synced in parts.
        let (size, used_max) = (self.changes.size(), self.used_max());
        let mut reserve = memory.max((2 * self.group_peak).min(used_max / FREE_SHARE));
        let for_rides = used_max / RIDE_SHARE;
        if RIDES_MIN * self.group_size <= for_rides {
            reserve += for_rides;
        }
        reserve += self.resident_room(size);
        (size - used_max + reserve).min(size)
    }

    /// Brings every change to its leaf, so that no journal page is needed: then the tree can be opened without memory
    /// for changes. Programs about one page for each leaf concerned, on a full medium too.
    pub fn settle(&mut self) -> Result<(), TreeError<P::Error>> {
        self.sync()?;
        // Journal pages whose changes are all obsolete need a commit that says so.
        while !self.changes.is_empty() || !self.journals.is_empty() {
            self.prepare_waiting(false)?;
            self.merge_change(0)?;
        }
        Ok(())
    }

    /// Changes in memory that no leaf holds yet, synced or not.
    pub fn pending_count(&self) -> usize {
        self.changes.len()
    }

    /// Makes changes in memory, all to be synced together. `None` if they are too large for that.
    pub(crate) fn change(&mut self, edits: &[Edit<'_>]) -> Result<Option<bool>, TreeError<P::Error>> {
        let room = self.room_of(edits.iter().map(|edit| Change { key: edit.key, tag: TAG_INLINE, value: edit.value }));
        if !self.can_wait(&room) {
            return Ok(None);
        }
        let mut records = self.state.records;
        let (mut existed, mut shrinks) = (false, true);
        for edit in edits {
            existed = self.contains(edit.key)?;
            shrinks &= edit.value.is_none();
            match edit.value {
                Some(_) => records += u64::from(!existed),
                None => records = records.saturating_sub(u64::from(existed)),
            }
        }
        let changes_nothing = shrinks && records == self.state.records;
        if changes_nothing {
            return Ok(Some(existed));
        }
        self.make_room_for_doomed(edits.iter().map(|edit| edit.key))?;
        self.make_room(room, shrinks || self.frees)?;
        for edit in edits {
            self.replace_change(&Change { key: edit.key, tag: TAG_INLINE, value: edit.value });
        }
        // Where a change that fails goes back to.
        self.committed.records = records;
        self.state.records = records;
        Ok(Some(existed))
    }

    /// Whether changes wait for a sync.
    pub fn has_unsynced(&self) -> bool {
        self.changes.unsynced() > 0
    }

    /// What changes need to wait together.
    pub(crate) fn room_of<'c>(&self, changes: impl Iterator<Item = Change<'c>>) -> Room {
        changes.fold(Room::default(), |room, change| Room {
            memory: room.memory + self.changes.required(&change),
            journal: room.journal + self.changes.journal_size(&change),
            count: room.count + 1,
        })
    }

    /// Whether changes that need this are small enough to wait.
    pub(crate) fn can_wait(&self, room: &Room) -> bool {
        room.memory <= self.changes.size() / 2 && self.journals.fit(room.count, room.journal)
    }

    /// Bytes of memory for changes that need this, if a journal page has room for them beside those that wait, and for notes.
    pub(crate) fn memory_for(&self, room: &Room) -> Option<usize> {
        let size = self.changes.unsynced_size() + room.journal;
        let beside = front_size(self.header_size) + self.journals.list_size() + self.notes_size();
        let fits = self.journals.fit(self.changes.unsynced() + room.count, size) && beside + size <= self.scratch.len();
        (fits && self.can_wait(room)).then_some(room.memory)
    }

    /// Whether the tree holds a key.
    pub(crate) fn contains(&mut self, key: &[u8]) -> Result<bool, TreeError<P::Error>> {
        if let Some(index) = self.find_change(key)? {
            return Ok(self.changes.change(index).value.is_some());
        }
        self.descend(Seek::At(key), 1)?;
        let place = self.leaf_place(false)?;
        Ok(self.cells.leaf_find(self.bytes(&place), key).is_ok())
    }

    /// The index of a change of this key that no leaf holds.
    pub(crate) fn find_change(&mut self, key: &[u8]) -> Result<Option<usize>, TreeError<P::Error>> {
        if self.changes.is_empty() {
            return Ok(None);
        }
        match self.changes.find(key) {
            Err(_) => Ok(None),
            Ok(index) if !self.changes.home(index).is_unproved => Ok(Some(index)),
            Ok(_) => {
                self.descend(Seek::At(key), 1)?;
                self.prove_path()?;
                Ok(self.changes.find(key).ok())
            }
        }
    }

    pub(crate) fn make_room(&mut self, room: Room, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        let Room { memory, journal, count } = room;
        let fits = self.changes.free() >= memory
            && self.journals.fit(self.changes.unsynced() + count, self.changes.unsynced_size() + journal)
            && (shrinks || self.has_room_to_wait(count));
        if !fits {
            self.sync()?;
        }
        if self.changes.unsynced() == 0 { self.begin(&room, shrinks) } else { Ok(()) }
    }

    /// Before the first change after a sync: makes room in memory, in the list of journal pages and on the medium.
    fn begin(&mut self, room: &Room, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        let free = self.free_wanted(room.memory);
        while self.changes.free() < free {
            self.prepare_waiting(shrinks)?;
            self.merge_densest()?;
        }
        if !shrinks && !self.has_room_to_wait(room.count) {
            // Not only as many as have to: else each that comes would bring another leaf.
            while !self.changes.is_empty() && !self.has_room_to_wait(self.changes.len() + room.count) {
                self.prepare_waiting(shrinks)?;
                self.merge_densest()?;
            }
        }
        while self.journals.is_crowded(self.is_group_small()) {
            self.shorten_list(shrinks)?;
        }
        self.prepare_merge(shrinks)
    }

    fn prepare_merge(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        // The leaf, what a split of it takes, and a journal page where the leaf leaves no room for what has to be in one.
        let pages_max = self.split_pages_max() + 2;
        // Each change that waits has room for a page of its own already ([`Tree::has_room_to_wait`]). Beside page values, those who put
        // them say what they need ([`Tree::growth_pages_max`]).
        let live_max = if self.pages.has_bare() { pages_max } else { 0 };
        // Page values are appended while others wait, when nothing can be moved: as many as the last time are paid for now.
        let pages = 1 + self.notes.group.min(GROUP_MAX);
        self.prepare(Need { pages, pages_max, live_max, shrinks })
    }

    /// The same for changes that wait already: they were promised room, so that they take what is kept for deletions where there is no other.
    fn prepare_waiting(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        match self.prepare_merge(shrinks) {
            Err(TreeError::Pages(error)) if self.pages.is_full(&error) => self.prepare_merge(true),
            outcome => outcome,
        }
    }

    /// Makes two journal pages one, or merges a leaf on the way to that: the densest, since pages that do not become one are full
    /// of changes, and any leaf takes some from each of them.
    #[inline(never)]
    fn shorten_list(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        self.prepare_waiting(shrinks)?;
        match self.shorter_list() {
            Some(Shorter::Proved(place)) => self.prove_journal(place),
            Some(Shorter::Joined) => self.write_journal(Placement::Split),
            Some(Shorter::Merged) => self.merge_densest(),
            None => Ok(()),
        }
    }

    /// What makes the list of journal pages shorter. Apart from who does it, so that what it counts is off the stack then.
    #[inline(never)]
    fn shorter_list(&self) -> Option<Shorter> {
        let mut tallies = [Tally::default(); LISTED_MAX + 1];
        count_changes(&self.changes, &(0..0), &mut tallies);
        let least = |but: Option<usize>| {
            let listed = (0..LISTED_MAX).filter(|&place| self.journals.listed[place].is_some() && Some(place) != but);
            listed.min_by_key(|&place| tallies[place].size)
        };
        let first = least(None)?;
        let second = least(Some(first))?;
        if let Some(place) = [first, second].into_iter().find(|&place| tallies[place].unproved > 0) {
            return Some(Shorter::Proved(place as u8));
        }
        let [one, other] = [tallies[first], tallies[second]];
        // As the page is drafted: with room for notes. Else one of them would become another page for ever.
        let is_fitting = self.journals.fit(one.count + other.count, one.size + other.size + self.notes_size());
        Some(if is_fitting { Shorter::Joined } else { Shorter::Merged })
    }

    /// A change of the leaf that all changes since the last sync belong to, if its page is the best one for the sync: where leaves are parted
    /// one that is due has room for them to ride; else it has room for the notes, without which a Summary would come first.
    #[inline(never)]
    fn one_leaf_to_merge(&mut self, is_due: bool) -> Result<Option<usize>, TreeError<P::Error>> {
        if is_due && self.parts_leaves() {
            return Ok(None);
        }
        let Some(index) = self.unsynced_in_one_leaf()? else { return Ok(None) };
        if self.parts_leaves() {
            return Ok(Some(index));
        }
        let (index, fits) = self.fit_with_notes(index)?;
        Ok(Some(index).filter(|_| fits))
    }

    /// Whether the page of the leaf of a change, with its changes, has room for the notes; and the first of these changes, since obsolete ones
    /// are forgotten.
    #[inline(never)]
    fn fit_with_notes(&mut self, index: usize) -> Result<(usize, bool), TreeError<P::Error>> {
        if self.notes.is_empty() {
            return Ok((index, true));
        }
        let merged = self.changes_at(Aim::Change(index))?;
        let size = self.merged_size(&merged)? + self.notes_size();
        Ok((merged.start, self.front() + size <= self.tail()))
    }

    /// Programs the leaf of a change with its changes, or, where that would leave no room for the notes, a part of it: else a Summary would
    /// come first, and that is a program more.
    #[inline(never)]
    fn merge_roomy(&mut self, index: usize) -> Result<(), TreeError<P::Error>> {
        let (index, fits) = self.fit_with_notes(index)?;
        if fits { self.merge_change(index) } else { self.merge_in_part(index) }
    }

    /// A change of the leaf that all changes since the last sync belong to, if there is one such leaf.
    fn unsynced_in_one_leaf(&mut self) -> Result<Option<usize>, TreeError<P::Error>> {
        let is_unsynced = |&index: &usize| self.changes.home(index).journal == UNSYNCED;
        let Some(first) = (0..self.changes.len()).find(is_unsynced) else { return Ok(None) };
        let last = (0..self.changes.len()).rfind(is_unsynced).unwrap_or(first);
        if first == last {
            return Ok(Some(first));
        }
        self.descend_to(Aim::Change(first))?;
        Ok(Some(first).filter(|_| last < self.path_changes().end))
    }

    /// Programs the leaf with most changes among some, with these.
    #[inline(never)]
    fn merge_densest(&mut self) -> Result<(), TreeError<P::Error>> {
        let [(_, first), ..] = self.find_dense()?;
        self.merge_roomy(first)
    }

    /// Of some leaves those with most changes, the one with most first: how many, and the first of them.
    #[inline(never)]
    fn find_dense(&mut self) -> Result<[(usize, usize); TRIES], TreeError<P::Error>> {
        self.lend_changes(Self::find_dense_in)
    }

    #[inline(never)]
    fn find_dense_in(&mut self, changes: &Changes<'_>) -> Result<[(usize, usize); TRIES], TreeError<P::Error>> {
        let count = changes.len();
        let mut best = [(0, 0); TRIES];
        if count == 0 {
            return Ok(best);
        }
        let mut at = self.sweep.get().map_or(0, |key| changes.lower(key.as_slice()));
        let reads = self.reading.reads;
        let mut seen = 0;
        for _ in 0..CANDIDATES {
            if best[0].0 > 0 && self.reading.reads.wrapping_sub(reads) >= CANDIDATE_READS || seen >= count {
                break;
            }
            at = if at < count { at } else { 0 };
            self.descend(Seek::At(changes.key(at)), 1)?;
            let end = self.changes_between(changes, LeafFences { low: None, ..self.leaf_fences() }).end;
            // Separators that do not ascend would keep it at one place.
            let end = end.max(at + 1);
            if let Some(place) = best.iter().position(|other| end - at > other.0) {
                best[place..].rotate_right(1);
                best[place] = (end - at, at);
            }
            seen += end - at;
            at = end;
        }
        if let Some(key) = self.sweep.insert(KeyBuf::EMPTY) {
            key.set(changes.key(if at < count { at } else { 0 }));
        }
        Ok(best)
    }

    /// Programs a leaf with many changes, if there is one whose page has room for those of other leaves that no journal page
    /// holds; else one that has not, and a journal page by itself. That is a commit.
    #[inline(never)]
    fn ride(&mut self) -> Result<(), TreeError<P::Error>> {
        let (index, has_room) = self.choose_ride()?;
        if has_room { self.merge_change(index) } else { self.merge_in_part(index) }
    }

    /// A change of the leaf to ride on, and whether its page has room.
    #[inline(never)]
    fn choose_ride(&mut self) -> Result<(usize, bool), TreeError<P::Error>> {
        let mut best = self.find_dense()?;
        for place in 0..TRIES {
            let (count, first) = best[place];
            // One with far fewer saves no program, since the densest has to be merged all the same.
            let is_near = count + 1 >= best[0].0 || 4 * count >= 3 * best[0].0;
            let waiting = self.changes.len();
            if !is_near || count == 0 || first >= waiting {
                continue;
            }
            let (beside, found) = self.room_beside(Aim::Change(first))?;
            if !matches!(beside, Beside::Short) {
                return Ok((found, matches!(beside, Beside::Room)));
            }
            // Those that the leaf turned out to hold are gone.
            let gone = waiting - self.changes.len();
            best.iter_mut()
                .filter(|(_, other)| *other > first)
                .for_each(|(_, other)| *other = other.saturating_sub(gone));
        }
        // Not to merge it would leave it the densest one, without room, for the next sync.
        Ok((best[0].1, false))
    }

    /// Whether the page of a leaf will have room for what must be in a journal page; and the first change of the leaf, since obsolete ones are
    /// forgotten. Reads that leaf.
    #[inline(never)]
    fn room_beside(&mut self, aim: Aim<'_>) -> Result<(Beside, usize), TreeError<P::Error>> {
        let merged = self.changes_at(aim)?;
        let first = merged.start;
        let size = self.merged_size(&merged)? + SECTION_FRONT_SIZE + self.notes_size();
        let Some(room) = self.tail().checked_sub(self.front() + size) else { return Ok((Beside::Parted, first)) };
        self.journals.set_riding(Some(merged));
        let mut draft = Draft::EMPTY;
        let fits = self.draft_section(room, &mut draft);
        self.journals.set_riding(None);
        Ok((if fits { Beside::Room } else { Beside::Short }, first))
    }

    /// The changes of a leaf, to which the path leads then.
    pub(crate) fn changes_at(&mut self, aim: Aim<'_>) -> Result<Range<usize>, TreeError<P::Error>> {
        self.descend_to(aim)?;
        self.prove_path()?;
        Ok(self.path_changes())
    }

    /// Bytes of the path's leaf with these changes in it, at most. Reads it.
    pub(crate) fn merged_size(&mut self, merged: &Range<usize>) -> Result<usize, TreeError<P::Error>> {
        let place = self.leaf_place(false)?;
        let leaf = self.bytes(&place);
        let growth = |index| {
            let key = self.changes.key(index);
            match (self.changes.stored(index), self.cells.leaf_find(leaf, key)) {
                (None, _) => 0,
                (Some(stored), Err(_)) => self.cells.entry_size(key, stored),
                (Some(stored), Ok(at)) => stored.len().saturating_sub(self.cells.leaf_value(leaf, at).len()),
            }
        };
        let entries = self.unspent(leaf);
        let size = if entries == (0..self.cells.leaf_count(leaf)) {
            leaf.len()
        } else {
            let count = entries.len();
            let run = LeafRun::new(Stretch::new(leaf, entries), Stretch::NONE, None);
            self.cells.leaf_size(&run, 0..count)
        };
        Ok(size + merged.clone().map(growth).sum::<usize>())
    }

    /// The memory for changes, for as long as leaves are edited with what is in it.
    pub(crate) fn lend_changes<T>(&mut self, with: impl FnOnce(&mut Self, &Changes<'_>) -> T) -> T {
        let changes = core::mem::take(&mut self.changes);
        let result = with(self, &changes);
        self.changes = changes;
        result
    }
}
