//! Changes that become durable together: [`Durability::OnSync`](crate::Durability).
//!
//! A change goes to memory; a sync programs one *journal page* with all changes since the last one, which is a commit.
//! Changes go to their leaves later, many of one leaf with one program, when the memory for them is nearly full. So `k`
//! changes cost one program for the sync and a third or so of a program each for their leaves; with the alternative,
//! the leaves at each sync, they cost a program each.
//!
//! **The rule that makes it safe**: whenever a leaf is programmed, for whatever reason, all changes of its range go into
//! it; and if a leaf vanishes, the one that gets its range is programmed. So a change in a journal page is obsolete
//! exactly if the page of its leaf has a higher sequence. That is looked at
//! when the leaf is read anyway: until then a change found in a journal page is *unproved*.
//!
//! A second rule keeps a cut from leaving half a sync: what happens between two syncs, the merging into leaves and the
//! work of the collector, happens while all changes in memory are in journal pages. It changes where things are and not
//! what the tree holds, so a cut may undo it. Therefore it is done before the first change after a sync, and all changes
//! until the next sync fit one page.

use nandu_index::{Edit, KeyBuf};
use nandu_media::PageKind;
use nandu_media::journal::{Change, JournalFront, Older, front_size, older_size};
use nandu_media::section::{SECTION_FRONT_SIZE, SectionKind, SectionWriter};
use nandu_media::value::TAG_INLINE;
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::cells::Cells;
use crate::changes::{Changes, Home, UNSYNCED};
use crate::descent::Seek;
use crate::journals::{LISTED_MAX, Listed, tallies};
use crate::pages::{Need, Pages, Placement};
use crate::summaries::NotesPlace;
use crate::tree::Tree;

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

/// What changes need in memory and in a journal page.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    memory: usize,
    journal: usize,
    count: usize,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Makes every change so far durable, in order. Programs one page, or nothing if there is no change since the last
    /// sync; two or three if all changes are in one leaf, which overflows.
    pub fn sync(&mut self) -> Result<(), TreeError<P::Error>> {
        if self.changes.unsynced > 0 {
            self.group_size = self.changes.unsynced_size;
            self.before_commit()?;
        }
        match self.unsynced_in_one_leaf()? {
            _ if self.changes.unsynced == 0 => {}
            Some(key) => self.merge_at(&key, None)?,
            None => self.write_journal(Placement::Update { supersedes: None }, None)?,
        }
        self.bury_doomed();
        Ok(())
    }

    /// Brings every change to its leaf, so that no journal page is needed: then the tree can be opened without memory
    /// for changes. Programs about one page for each leaf concerned.
    pub fn settle(&mut self) -> Result<(), TreeError<P::Error>> {
        self.settle_with(false)
    }

    /// The same with the room that is kept for deletions, since what was deleted is counted as live until its leaf says so.
    pub fn settle_freeing(&mut self) -> Result<(), TreeError<P::Error>> {
        self.settle_with(true)
    }

    fn settle_with(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        self.sync()?;
        // Journal pages whose changes are all obsolete need a commit that says so.
        while !self.changes.is_empty() || self.journals.newest.is_some() {
            self.prepare_merge(shrinks)?;
            let mut key = KeyBuf::EMPTY;
            self.cells.minimum(&mut key);
            if !self.changes.is_empty() {
                key.set(self.changes.key(0));
            }
            self.merge_at(&key, None)?;
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
        self.make_room(room, shrinks || self.frees)?;
        for edit in edits {
            self.replace_change(&Change { key: edit.key, tag: TAG_INLINE, value: edit.value });
        }
        // Where a change that fails goes back to.
        self.committed.records = records;
        self.state.records = records;
        Ok(Some(existed))
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
            && self.journals.fit(self.changes.unsynced + count, self.changes.unsynced_size + journal);
        if !fits {
            self.sync()?;
        }
        if self.changes.unsynced == 0 { self.begin(memory, shrinks) } else { Ok(()) }
    }

    /// Before the first change after a sync: makes room in memory, in the list of journal pages and on the medium.
    fn begin(&mut self, memory: usize, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        // As many changes as came before the last sync fit, and as many again; with less room they would be synced in parts.
        let size = self.changes.size();
        let used_max = size.min(self.journals.memory_max);
        let reserve = memory.max((2 * self.group_size).min(used_max / FREE_SHARE));
        // Memory beyond what the list of journal pages accounts for stays free.
        let free = (size - used_max + reserve).min(size);
        while self.changes.free() < free {
            self.prepare_merge(shrinks)?;
            self.merge_densest()?;
        }
        while self.journals.count() >= self.journals.wanted_max {
            self.shorten_list(shrinks)?;
        }
        self.prepare_merge(shrinks)
    }

    fn prepare_merge(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        let pages_max = self.split_pages_max() + 1;
        // Page values are appended while others wait, when nothing can be moved: as many as the last time are paid for now.
        let pages = 1 + self.notes.group.min(GROUP_MAX);
        self.prepare(Need { pages, pages_max, shrinks })
    }

    /// Makes two journal pages one, or merges a leaf on the way to that: the densest, since pages that do not become one are full
    /// of changes, and any leaf takes some from each of them.
    fn shorten_list(&mut self, shrinks: bool) -> Result<(), TreeError<P::Error>> {
        self.prepare_merge(shrinks)?;
        let tallies = tallies(&self.changes);
        let least = |but: Option<usize>| {
            let listed = (0..LISTED_MAX).filter(|&place| self.journals.listed[place].is_some() && Some(place) != but);
            listed.min_by_key(|&place| tallies[place].size)
        };
        let Some(first) = least(None) else { return Ok(()) };
        let Some(second) = least(Some(first)) else { return Ok(()) };
        for place in [first, second] {
            if tallies[place].unproved > 0 {
                return self.prove_journal(place as u8);
            }
        }
        let [one, other] = [tallies[first], tallies[second]];
        // As the page is drafted: with room for notes. Else one of them would become another page for ever.
        if self.journals.fit(one.count + other.count, one.size + other.size + self.notes_size()) {
            return self.write_journal(Placement::Split, None);
        }
        self.merge_densest()
    }

    /// A key in the leaf that all changes since the last sync belong to, if there is one such leaf.
    fn unsynced_in_one_leaf(&mut self) -> Result<Option<KeyBuf>, TreeError<P::Error>> {
        let is_unsynced = |&index: &usize| self.changes.home(index).journal == UNSYNCED;
        let Some(first) = (0..self.changes.len()).find(is_unsynced) else { return Ok(None) };
        let last = (0..self.changes.len()).rfind(is_unsynced).unwrap_or(first);
        let mut key = KeyBuf::EMPTY;
        key.set(self.changes.key(first));
        if first != last {
            self.descend(Seek::At(key.as_slice()), 1)?;
            let mut fence = KeyBuf::EMPTY;
            if self.fence_above(0, &mut fence).is_some() && self.changes.key(last) >= fence.as_slice() {
                return Ok(None);
            }
        }
        Ok(Some(key))
    }

    /// Programs a journal page with every change that none holds, those of `forced`, and those of as many other journal
    /// pages as it has room for; these are needed no longer.
    pub(crate) fn write_journal(
        &mut self,
        placement: Placement,
        forced: Option<u8>,
    ) -> Result<(), TreeError<P::Error>> {
        let moved = self.choose_moved(forced);
        let notes = self.place_journal_notes(&moved)?;
        let is_moved = |place: u8| moved[usize::from(place)];
        let tallies = tallies(&self.changes);
        let mut older = [Older::default(); LISTED_MAX];
        let mut place_in_list = [0; LISTED_MAX];
        let mut older_count = 0;
        for (place, listed) in self.journals.listed.iter().enumerate() {
            if let (Some(Listed { page, count, .. }), false) = (*listed, moved[place]) {
                place_in_list[place] = older_count;
                older[older_count] = Older { page, count, is_exact: tallies[place].unproved == 0 };
                older_count += 1;
            }
        }
        let moved_count: usize =
            tallies.iter().zip(moved).filter(|(_, moved)| *moved).map(|(tally, _)| tally.count).sum();
        let front = JournalFront {
            height: self.state.height,
            format: self.format,
            records: self.state.records,
            root: self.state.root,
            count: moved_count as u16,
            has_sections: notes.size() > 0,
            older: &older[..older_count],
        };
        let mut at = front.write(self.scratch, self.header_size);
        for index in 0..self.changes.len() {
            let home = self.changes.home(index);
            if is_moved(home.journal) {
                at += self.changes.change(index).write(&self.format, &mut self.scratch[at..]);
            } else {
                let place = place_in_list[usize::from(home.journal)];
                front.mark(self.scratch, self.header_size, place, usize::from(home.index));
            }
        }
        let mut writer = SectionWriter::new(&mut self.scratch[at..]);
        if let NotesPlace::Section(size) = notes {
            self.notes.write(writer.add(SectionKind::Notes, size), |page| self.journal.is_old(page));
        }
        writer.finish();
        let is_commit = notes != NotesPlace::Page;
        let page = self.pages.append(self.scratch, PageKind::Journal, placement, is_commit)?.0;
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        let notes_page = if is_commit { Ok(None) } else { self.append_notes(Some(page), placement).map(Some) };
        match notes_page {
            Ok(notes_page) => {
                self.note_journal(page, moved_count as u16, &moved);
                self.replace_notes_page(notes_page);
                Ok(())
            }
            Err(error) => {
                self.pages.supersede(PageAddr(page));
                Err(error)
            }
        }
    }

    /// Where the notes go beside the changes that a journal page is going to hold.
    fn place_journal_notes(&mut self, moved: &[bool; LISTED_MAX + 1]) -> Result<NotesPlace, TreeError<P::Error>> {
        if self.notes.is_empty() {
            return Ok(NotesPlace::None);
        }
        let tallies = tallies(&self.changes);
        let mut used = front_size(self.header_size);
        for (place, is_moved) in moved.iter().enumerate() {
            used += match self.journals.listed.get(place).copied().flatten() {
                _ if *is_moved => tallies[place].size,
                Some(listed) => older_size(usize::from(listed.count)),
                None => 0,
            };
        }
        self.place_notes(self.scratch.len().saturating_sub(used))
    }

    /// Bytes of a journal page that the section of all notes takes.
    fn notes_size(&self) -> usize {
        if self.notes.is_empty() { 0 } else { SECTION_FRONT_SIZE + self.notes.size(|_| false) }
    }

    /// Which journal pages' changes go into the next one; the last stands for no page.
    fn choose_moved(&self, forced: Option<u8>) -> [bool; LISTED_MAX + 1] {
        let tallies = tallies(&self.changes);
        let mut moved = [false; LISTED_MAX + 1];
        let (mut count, mut size) = (0, 0);
        let notes_size = self.notes_size();
        for place in forced.into_iter().chain([UNSYNCED]).map(usize::from) {
            moved[place] = true;
            count += tallies[place].count;
            size += tallies[place].size;
        }
        assert!(self.journals.fit(count, size), "what must go into a journal page fits it");
        loop {
            // An unproved change may be obsolete, which a newer page would hide.
            let others = (0..LISTED_MAX)
                .filter(|&at| self.journals.listed[at].is_some() && !moved[at] && tallies[at].unproved == 0);
            let Some(least) = others.min_by_key(|&place| tallies[place].size) else { break };
            // Rather a page more in the list than a Summary.
            if !self.journals.fit(count + tallies[least].count, size + tallies[least].size + notes_size) {
                break;
            }
            moved[least] = true;
            count += tallies[least].count;
            size += tallies[least].size;
        }
        moved
    }

    /// A journal page is durable, and holds the changes of these others.
    fn note_journal(&mut self, page: u32, count: u16, moved: &[bool; LISTED_MAX + 1]) {
        let free = (0..LISTED_MAX).find(|&place| moved[place] || self.journals.listed[place].is_none());
        let Some(place) = free else { return };
        let mut index = 0;
        for at in 0..self.changes.len() {
            if moved[usize::from(self.changes.home(at).journal)] {
                self.changes.set_home(at, Home { journal: place as u8, index, is_unproved: false });
                index += 1;
            }
        }
        self.committed = self.state;
        let mut dropped = self.journals.listed;
        for (at, listed) in dropped.iter_mut().enumerate() {
            if moved[at] {
                self.journals.listed[at] = None;
            } else {
                *listed = None;
            }
        }
        // Only what a mount finds has to be proved, so the sequence is not needed here.
        self.journals.listed[place] = Some(Listed { page, sequence: u64::MAX, count });
        self.journals.newest = Some(place as u8);
        self.journals.named = Some(page);
        for listed in dropped.into_iter().flatten() {
            self.pages.supersede(PageAddr(listed.page));
        }
        self.drop_empty_table();
    }

    /// Programs the leaf with most changes among some, with these.
    fn merge_densest(&mut self) -> Result<(), TreeError<P::Error>> {
        let count = self.changes.len();
        if count == 0 {
            return Ok(());
        }
        let mut at = self.changes.lower(self.sweep.as_slice());
        let (mut key, mut fence) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        let mut best = (0, KeyBuf::EMPTY);
        let reads = self.reading.reads;
        for _ in 0..CANDIDATES {
            if best.0 > 0 && self.reading.reads.wrapping_sub(reads) >= CANDIDATE_READS {
                break;
            }
            at = if at < count { at } else { 0 };
            key.set(self.changes.key(at));
            self.descend(Seek::At(key.as_slice()), 1)?;
            let end = self.fence_above(0, &mut fence).map_or(count, |()| self.changes.lower(fence.as_slice()));
            if end.saturating_sub(at) > best.0 {
                best = (end - at, key);
            }
            // Separators that do not ascend would keep it at one place.
            at = end.max(at + 1);
        }
        self.sweep.set(self.changes.key(if at < count { at } else { 0 }));
        self.merge_at(&best.1, None)
    }

    /// A listed journal page is to leave its block: its changes go into a new one.
    pub(crate) fn move_journal(&mut self, place: u8, from: PageAddr) -> Result<(), TreeError<P::Error>> {
        self.prove_journal(place)?;
        self.write_journal(Placement::Moved { from }, Some(place))
    }

    /// The memory for changes, for as long as leaves are edited with what is in it.
    pub(crate) fn lend_changes<T>(&mut self, with: impl FnOnce(&mut Self, &Changes<'_>) -> T) -> T {
        let changes = core::mem::take(&mut self.changes);
        let result = with(self, &changes);
        self.changes = changes;
        result
    }
}
