//! Changes going to their leaves, and finding out which are there already.

use core::ops::Range;

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::features::{BLOBS, FILES, GROUP, MLC};
use nandu_media::journal::{ChangeList, JournalBody, Older, SectionBody};
use nandu_media::section::SectionKind;
use nandu_media::value::{TAG_HERE, TAG_PAGE, TAG_RESIDENT};
use nandu_nand::PageAddr;

use crate::apply::Retire;
use crate::changes::{Changes, Home, UNSYNCED};
use crate::descent::{LeafFences, Seek};
use crate::journals::{LISTED_MAX, Listed, Node};
use crate::pages::{Pages, Placement};
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

/// Whether anything is merged: changes that wait, or what is moved with its leaf.
pub(crate) const MERGES: bool = GROUP || BLOBS || FILES;

/// Keys not below the first and below the second; `None` is no bound.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: Option<KeyBuf>,
    pub(crate) high: Option<KeyBuf>,
}

impl Span {
    /// Every key.
    pub(crate) const ALL: Span = Span { low: None, high: None };

    /// Takes these bounds from the path.
    pub(crate) fn put<C: Cells>(&mut self, cells: C, assembly: &[u8], fences: LeafFences) {
        for (bound, fence) in [(&mut self.low, fences.low), (&mut self.high, fences.high)] {
            match fence {
                Some(fence) => fence.copy(cells, assembly, bound.insert(KeyBuf::EMPTY)),
                None => *bound = None,
            }
        }
    }

    /// The changes of these keys.
    pub(crate) fn range(&self, changes: &Changes<'_>) -> Range<usize> {
        let start = self.low.as_ref().map_or(0, |key| changes.lower(key.as_slice()));
        let end = self.high.as_ref().map_or(changes.len(), |key| changes.lower(key.as_slice()));
        start..end.max(start)
    }
}

/// An edit that goes to a leaf with the changes of that leaf, and after them: a large value that is durable at once.
#[derive(Clone, Copy)]
pub(crate) struct OwnEdit<'a> {
    pub(crate) key: &'a [u8],
    /// What the leaf is to hold for the key, tag included.
    pub(crate) stored: &'a [u8],
    pub(crate) retire: Retire,
}

/// Page values that are moved with their leaf, after its changes are in it (T15).
#[derive(Clone, Copy)]
pub(crate) struct Evict<'a> {
    pub(crate) key: &'a [u8],
    /// The page of this key that is moved, if the key still leads there; others of its block in the same leaf are moved with it.
    pub(crate) page: u32,
    /// Most pages moved.
    pub(crate) count_max: u32,
}

/// What is done to a leaf after its changes.
#[derive(Clone, Copy)]
pub(crate) enum Own<'a> {
    Edit(OwnEdit<'a>),
    Evict(Evict<'a>),
    /// Copies of pages are named, that of this key and others of its leaf.
    Name(&'a [u8]),
    /// The resident value of this key is moved out of this page, if it is still there.
    Reside(&'a [u8], u32),
}

/// What a journal page says, by itself or one of the tree.
pub(crate) struct Journal {
    pub(crate) list: ChangeList,
    base: Option<u32>,
    /// Where the maps of the base and of those that it names are; empty if what that says is all.
    maps: Range<usize>,
    is_exact: bool,
}

/// Which leaf is meant.
#[derive(Clone, Copy)]
pub(crate) enum Aim<'k> {
    /// That of this key.
    Key(&'k [u8]),
    /// That of the change at this place, or of the last one if there are fewer; of the first key if there is none. So no key is on the stack.
    Change(usize),
}

/// Whether a leaf may be parted. Between syncs that saves nothing: the changes of the part that stays take another program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Never,
    OnOverflow,
    Now,
}

/// How bringing changes to leaves ended.
enum Applied {
    /// These are in the buffers, or in pages not committed yet. `existed` says whether the key of the own edit was there.
    These { range: Range<usize>, existed: bool },
    /// It has to be known first whether this change is obsolete.
    Unproved(usize),
    /// The leaf does not take them all, and may be parted.
    Overflow,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// The changes of the path's leaf.
    pub(crate) fn path_changes(&self) -> Range<usize> {
        self.changes_between(&self.changes, self.leaf_fences())
    }

    /// The changes of a leaf between these fences, with one key on the stack at a time.
    #[inline(never)]
    pub(crate) fn changes_between(&self, changes: &Changes<'_>, fences: LeafFences) -> Range<usize> {
        if changes.is_empty() {
            return 0..0;
        }
        let mut key = KeyBuf::EMPTY;
        let mut lower = |fence| {
            self.fence_key(fence, &mut key);
            changes.lower(key.as_slice())
        };
        let start = fences.low.map_or(0, &mut lower);
        let end = fences.high.map_or(changes.len(), lower);
        start..end.max(start)
    }

    /// Programs the leaf of this key with every change of its range; that is a commit. A neighbour that is programmed
    /// with it, since the leaf overflows, takes its own changes too.
    pub(crate) fn merge_at(&mut self, key: &[u8], placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        self.merge_with(key, None, placement).map(|_| ())
    }

    /// As [`Tree::merge_at`], with an edit made after the changes, of which it returns whether its key was there. Changes of other
    /// leaves that no journal page holds become durable with it.
    pub(crate) fn merge_with(
        &mut self,
        key: &[u8],
        own: Option<Own<'_>>,
        placement: Option<Placement>,
    ) -> Result<bool, TreeError<P::Error>> {
        self.merge_aimed(Aim::Key(key), own, placement)
    }

    fn merge_aimed(
        &mut self,
        aim: Aim<'_>,
        own: Option<Own<'_>>,
        placement: Option<Placement>,
    ) -> Result<bool, TreeError<P::Error>> {
        let may = own.is_none() && placement.is_none() && self.changes.unsynced() > 0;
        self.merge_parts(aim, own, placement, if may { Parts::OnOverflow } else { Parts::Never })
    }

    /// As [`Tree::merge_at`], of the leaf of a change.
    pub(crate) fn merge_change(&mut self, index: usize) -> Result<(), TreeError<P::Error>> {
        self.merge_aimed(Aim::Change(index), None, None).map(|_| ())
    }

    /// Programs a part of the leaf of this change that leaves room in its page, if the leaf can be parted, else all of it, with the changes
    /// of what is programmed; that is a commit.
    pub(crate) fn merge_in_part(&mut self, index: usize) -> Result<(), TreeError<P::Error>> {
        self.merge_parts(Aim::Change(index), None, None, Parts::Now).map(|_| ())
    }

    /// Leads the path to a leaf.
    pub(crate) fn descend_to(&mut self, aim: Aim<'_>) -> Result<(), TreeError<P::Error>> {
        match aim {
            Aim::Key(key) => self.descend(Seek::At(key), 1),
            Aim::Change(index) => self.lend_changes(|tree, changes| match changes.len().checked_sub(1) {
                Some(last) => tree.descend(Seek::At(changes.key(index.min(last))), 1),
                None => tree.descend_first(),
            }),
        }
    }

    #[inline(never)]
    fn descend_first(&mut self) -> Result<(), TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        self.cells.minimum(&mut key);
        self.descend(Seek::At(key.as_slice()), 1)
    }

    fn merge_parts(
        &mut self,
        mut aim: Aim<'_>,
        own: Option<Own<'_>>,
        placement: Option<Placement>,
        parts: Parts,
    ) -> Result<bool, TreeError<P::Error>> {
        // Each turn but the last proves a change.
        for _ in 0..=self.changes.unproved() {
            self.descend_to(aim)?;
            self.prove_path()?;
            let records = self.state.records;
            // What is to be moved may not stay in its page, and trees of snapshots hold what is shared whole.
            let parts = if self.parts_leaves() && self.snapshots.is_empty() { parts } else { Parts::Never };
            self.pending.may_part = parts == Parts::OnOverflow;
            self.pending.is_moved = matches!(placement, Some(Placement::Moved { .. }));
            let mut applied = match parts {
                // On a full medium room for what rides is not worth a page.
                Parts::Now if self.pages.has_capacity(1, false) => Ok(Applied::Overflow),
                Parts::Now | Parts::OnOverflow | Parts::Never => {
                    self.lend_changes(|tree, changes| tree.apply_changes(changes, own))
                }
            };
            self.pending.may_part = false;
            self.pending.is_moved = false;
            if FILES && let Ok(Applied::Overflow) = applied {
                self.state.records = records;
                applied =
                    self.part_leaf().and_then(|()| self.lend_changes(|tree, changes| tree.apply_changes(changes, own)));
            }
            match applied {
                Ok(Applied::Overflow) => {}
                Ok(Applied::These { range, existed }) => {
                    // Where a change is does not matter for how many entries there are.
                    let is_new = matches!(own, Some(Own::Edit(_))) && !existed;
                    self.state.records = records + u64::from(is_new);
                    return self.conclude_merge(range, placement).map(|()| existed);
                }
                Ok(Applied::Unproved(index)) => {
                    self.undo();
                    let waiting = self.changes.len();
                    self.prove_beside(index)?;
                    if let Aim::Change(aimed) = &mut aim
                        && index < *aimed
                    {
                        *aimed = aimed.saturating_sub(waiting - self.changes.len());
                    }
                }
                Err(error) => {
                    self.undo();
                    return Err(error);
                }
            }
        }
        Self::corrupt(self.state.root, Malformed::Node)
    }

    /// Proves a change, and the others of its leaf.
    #[inline(never)]
    fn prove_beside(&mut self, index: usize) -> Result<(), TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        key.set(self.changes.key(index));
        self.descend(Seek::At(key.as_slice()), 1)?;
        self.prove_path()
    }

    #[inline(never)]
    fn conclude_merge(&mut self, range: Range<usize>, placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        let is_last = self.changes.len() == range.len();
        let is_unsynced = |index| self.changes.home(index).journal == UNSYNCED;
        let unsynced_left = self.changes.unsynced() - range.clone().filter(|&index| is_unsynced(index)).count();
        if is_last {
            self.journals.set_named(None);
        } else if unsynced_left > 0 || self.journals.forced().is_some() {
            self.journals.set_riding(Some(range.clone()));
        }
        let count = self.changes.len();
        let outcome = self.conclude(Ok(()), placement);
        debug_assert_eq!(self.changes.len(), count, "no change goes while a merge has some by index");
        self.journals.set_riding(None);
        if outcome.is_err() {
            self.journals.set_named(self.journals.newest_page());
            return outcome;
        }
        for index in range.rev() {
            self.changes.remove(index);
        }
        if is_last {
            self.drop_every_listed();
        }
        Ok(())
    }

    /// A commit left out every journal page.
    #[inline(never)]
    fn drop_every_listed(&mut self) {
        let mut dropped = [None; LISTED_MAX];
        for (dropped, listed) in dropped.iter_mut().zip(&self.journals.listed) {
            *dropped = listed.as_ref().map(Listed::stood);
        }
        self.journals.clear();
        for stood in dropped.iter().flatten() {
            self.drop_listed(stood);
        }
    }

    /// Makes the changes of the path's leaf in the buffers, and those of any other leaf that comes to be programmed.
    fn apply_changes(&mut self, changes: &Changes<'_>, own: Option<Own<'_>>) -> Result<Applied, TreeError<P::Error>> {
        let mut all = self.changes_between(changes, self.leaf_fences());
        let mut done = all.start..all.start;
        let mut own_left = own;
        let is_stale = self.broken.moves_stale() && matches!(own, Some(Own::Evict(_) | Own::Name(_)));
        let mut existed = false;
        self.pending.rewritten.clear();
        self.pending.at_end = false;
        loop {
            let wanted = if is_stale { done.clone() } else { all.clone() };
            let index = if done.end < wanted.end {
                done.end += 1;
                done.end - 1
            } else if wanted.start < done.start {
                done.start -= 1;
                done.start
            } else if let Some(own) = own_left.take() {
                match own {
                    Own::Edit(OwnEdit { key, stored, retire }) => existed = self.edit(key, Some(stored), retire)?,
                    Own::Evict(evict) if FILES => self.evict(&evict)?,
                    Own::Name(key) if MLC => self.link_copies(key)?,
                    Own::Reside(key, page) if FILES => self.evict_resident(key, page)?,
                    Own::Evict(_) | Own::Name(_) | Own::Reside(..) => {}
                }
                self.widen(changes, &mut all);
                continue;
            } else if self.join(changes)? {
                self.widen(changes, &mut all);
                continue;
            } else {
                break;
            };
            let change = changes.change(index);
            assert!(
                change.tag != TAG_HERE,
                "a value that is to stand in a journal page is there before its leaf takes it"
            );
            if changes.home(index).is_unproved {
                return Ok(Applied::Unproved(index));
            }
            self.edit(change.key, changes.stored(index), Retire::Noted)?;
            if self.pending.overflowed {
                return Ok(Applied::Overflow);
            }
            if self.pending.lowest > 0 {
                // The leaf vanished. The one that its keys belong to now has to be newer than what was known of them.
                self.take_heir(change.key)?;
            }
            self.widen(changes, &mut all);
        }
        if !self.pending.dirty && self.pending.appended == 0 {
            // Nothing of it made a difference; the leaf has to be newer than the changes all the same.
            self.touch(0)?;
        }
        Ok(Applied::These { range: done, existed })
    }

    /// Says that an edit rewrites all keys of the path's leaf; only those who merge ask.
    #[inline]
    pub(crate) fn note_rewritten(&mut self) {
        if MERGES {
            self.note_leaf();
        }
    }

    /// Says that an edit rewrites all keys of the path's leaf and of its neighbour on this side.
    #[inline]
    pub(crate) fn note_rewritten_with(&mut self, right: bool) {
        if MERGES {
            self.note_pair(right);
        }
    }

    fn note_leaf(&mut self) {
        self.note_span(self.leaf_fences());
    }

    fn note_pair(&mut self, right: bool) {
        let (own, other) = (self.leaf_fences(), self.neighbour_fences(right));
        let (low, high) = if right { (own.low, other.high) } else { (other.low, own.high) };
        self.note_span(LeafFences { low, high });
    }

    #[inline(never)]
    fn note_span(&mut self, fences: LeafFences) {
        if let Some(span) = self.pending.rewritten.insert(Span::ALL) {
            span.put(self.cells, self.assembly, fences);
        }
    }

    /// After an edit: the leaf of the path, and what was rewritten with it, are going to be programmed, with all their changes.
    #[inline(never)]
    fn widen(&mut self, changes: &Changes<'_>, all: &mut Range<usize>) {
        let own = self.changes_between(changes, self.leaf_fences());
        let rewritten = self.pending.rewritten.get().map_or(own.clone(), |span| span.range(changes));
        all.start = all.start.min(own.start).min(rewritten.start);
        all.end = all.end.max(own.end).max(rewritten.end);
        self.pending.rewritten.clear();
    }

    /// Puts the leaf that a key belongs to, since the one before vanished, into the buffers as it is.
    #[inline(never)]
    pub(crate) fn take_heir(&mut self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        if self.pending.lowest == 1 {
            // It may stand in for the one that vanished; then many that vanish one after another cost one program.
            let slot = self.path[1];
            self.path[1].index = self.cells.inner_find(&self.assembly[slot.range()], key, false);
            if self.load_leaf(self.child(0))?.is_some() {
                self.pending.lowest = 0;
                return Ok(());
            }
        }
        self.flush(false, Placement::Split)?;
        self.descend(Seek::At(key), 1)?;
        self.touch(0)
    }

    /// Finds out which unproved changes of the path's leaf it holds already, and forgets those. Reads at most 1 page.
    pub(crate) fn prove_path(&mut self) -> Result<(), TreeError<P::Error>> {
        if self.changes.unproved() == 0 {
            return Ok(());
        }
        let range = self.path_changes();
        if !range.clone().any(|index| self.changes.home(index).is_unproved) {
            return Ok(());
        }
        let page = self.child(0);
        let sequence = self.fetch(page)?.sequence;
        for index in range.rev() {
            let home = self.changes.home(index);
            if !home.is_unproved {
                continue;
            }
            if self.is_newer(index, sequence) {
                self.changes.set_home(index, Home { is_unproved: false, ..home });
            } else {
                self.changes.remove(index);
            }
        }
        Ok(())
    }

    /// Whether the path's leaf, which is the one of an unproved change, lacks it. Reads at most 1 page.
    pub(crate) fn is_missing(&mut self, index: usize) -> Result<bool, TreeError<P::Error>> {
        let page = self.child(0);
        let sequence = self.fetch(page)?.sequence;
        Ok(self.is_newer(index, sequence))
    }

    /// Whether the journal page of a change is newer than a page with this sequence.
    fn is_newer(&self, index: usize, sequence: u64) -> bool {
        let journal = self.journals.listed.get(usize::from(self.changes.home(index).journal)).copied().flatten();
        journal.is_some_and(|journal| sequence < journal.sequence)
    }

    /// Proves every change of a journal page. Reads at most a page for each.
    pub(crate) fn prove_journal(&mut self, place: u8) -> Result<(), TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        let mut index = 0;
        while self.changes.unproved() > 0 && index < self.changes.len() {
            let home = self.changes.home(index);
            if home.journal != place || !home.is_unproved {
                index += 1;
                continue;
            }
            key.set(self.changes.key(index));
            self.descend(Seek::At(key.as_slice()), 1)?;
            self.prove_path()?;
            // Changes of the leaf in front of this one may be gone as well; none of another leaf is to be passed over.
            index = self.changes.lower(key.as_slice());
        }
        Ok(())
    }

    /// Takes the changes of a journal page, and of those that it names, to memory. `is_newest` if nothing was
    /// committed after it. Reads each of them once.
    pub(crate) fn replay(&mut self, page: u32, is_newest: bool) -> Result<(), TreeError<P::Error>> {
        let found = self.load_journal(page)?;
        let sequence = self.list(page, &found.list, None, is_newest)?;
        self.journals.set_newest(0, page);
        self.scratch.copy_from_slice(self.reading.buf);
        let mut memory = self.take_changes(page, &found.list, None, !is_newest)?;
        memory += self.replay_older(&found.list, sequence, is_newest, None)?;
        if self.is_by_itself(page) {
            self.journals.rebase(0, memory);
            return Ok(());
        }
        let recent_count = self.journals.recent_count();
        if recent_count < self.journals.count() {
            return Self::corrupt(page, Malformed::PageNumber);
        }
        let Some(base) = found.base else { return Ok(()) };
        let memory = self.replay_base(base, &found, sequence, is_newest)?;
        let Some(place) = self.journals.place_of(base).filter(|_| self.is_by_itself(base)) else {
            return Self::corrupt(base, Malformed::PageNumber);
        };
        self.journals.rebase(place, memory);
        // They were listed first.
        for listed in self.journals.listed.iter_mut().flatten().take(recent_count) {
            listed.is_recent = true;
        }
        Ok(())
    }

    /// Takes the changes of the newest journal page by itself, and of those that it names, to memory: those that it says are
    /// needed, or those that a section in the scratch buffer says are. Returns how much memory a mount needs for them that
    /// goes by the former.
    fn replay_base(
        &mut self,
        base: u32,
        section: &Journal,
        before: u64,
        is_newest: bool,
    ) -> Result<usize, TreeError<P::Error>> {
        let found = self.load_journal(base)?;
        let sequence = self.list(base, &found.list, Some(before), false)?;
        if section.maps.is_empty() {
            self.scratch.copy_from_slice(self.reading.buf);
            let memory = self.take_changes(base, &found.list, None, true)?;
            return Ok(memory + self.replay_older(&found.list, sequence, false, None)?);
        }
        let size = usize::from(found.list.count).div_ceil(8);
        let others: usize = found.list.older(self.reading.buf).map(|(_, map)| map.len()).sum();
        if section.maps.len() != size + others {
            return Self::corrupt(base, Malformed::NodeSizes);
        }
        let is_exact = is_newest && section.is_exact;
        let own = section.maps.start..section.maps.start + size;
        self.take_changes(base, &found.list, Some(own.clone()), !is_exact)?;
        self.replay_older(&found.list, sequence, is_exact, Some(own.end))?;
        // More than there is: not to be gone by again.
        Ok(usize::MAX / 2)
    }

    /// Takes the changes of the pages in the list of the page in the reading buffer, which are older than a sequence, to memory. Their maps are
    /// in the scratch buffer, in the list or, one after another, from `maps` on. Returns how much memory they take if each is taken.
    #[inline(never)]
    fn replay_older(
        &mut self,
        list: &ChangeList,
        before: u64,
        is_newest: bool,
        mut maps: Option<usize>,
    ) -> Result<usize, TreeError<P::Error>> {
        let mut memory = 0;
        let mut listed = [const { (Older { page: 0, count: 0, is_exact: false }, 0) }; LISTED_MAX];
        let older = list.older(self.reading.buf).map(|(older, map)| (older, map.start));
        let count = listed.iter_mut().zip(older).map(|(place, older)| *place = older).count();
        for (index, (older, map)) in listed[..count].iter().enumerate() {
            let found = self.load_journal(older.page)?.list;
            if found.count != older.count {
                return Self::corrupt(older.page, Malformed::PageNumber);
            }
            self.list(older.page, &found, Some(before), false)?;
            let size = usize::from(older.count).div_ceil(8);
            let (map, is_exact) = match &mut maps {
                None => (*map..map + size, older.is_exact),
                Some(at) => {
                    *at += size;
                    (*at - size..*at, true)
                }
            };
            memory += self.take_changes(older.page, &found, Some(map), !is_newest || !is_exact)?;
            if let Some(listed) = self.journals.find_mut(older.page) {
                listed.order = index as u8 + 1;
            }
        }
        Ok(memory)
    }

    fn is_by_itself(&self, page: u32) -> bool {
        let place = self.journals.place_of(page).map(usize::from);
        place.and_then(|place| self.journals.listed[place]).is_some_and(|listed| listed.is_by_itself)
    }

    /// Puts the page in the reading buffer on the list of journal pages, and returns its sequence.
    fn list(
        &mut self,
        page: u32,
        list: &ChangeList,
        before: Option<u64>,
        is_newest: bool,
    ) -> Result<u64, TreeError<P::Error>> {
        let found = self.fetch(page)?;
        let is_late = before.is_some_and(|before| found.sequence >= before);
        let is_known = self.journals.place_of(page).is_some();
        let place = self.journals.count();
        if is_late || is_known || place >= self.journals.listed_max {
            return Self::corrupt(page, Malformed::PageNumber);
        }
        let is_by_itself = found.kind == PageKind::Journal;
        let node = match is_by_itself {
            true if list.resident().is_none() => Node::Absent,
            // The page with the newest root lives, and so does a value that nothing came after.
            _ if is_newest => Node::Live,
            _ => Node::Unknown,
        };
        let (sequence, count) = (found.sequence, list.count);
        let listed = Listed { page, sequence, count, node, is_by_itself, is_recent: !is_by_itself, order: 0 };
        self.journals.listed[place] = Some(listed);
        if self.journals.list_size() > self.journals.list_size_max {
            return Self::corrupt(page, Malformed::NodeSizes);
        }
        Ok(found.sequence)
    }

    /// Reads a journal page.
    pub(crate) fn load_journal(&mut self, page: u32) -> Result<Journal, TreeError<P::Error>> {
        let kind = self.fetch(page)?.kind;
        let corrupt = |why| TreeError::Corrupt { page: PageAddr(page), why };
        let found = match (kind, &self.reading.body) {
            (PageKind::Journal, _) => {
                let body = JournalBody::parse(self.reading.buf, self.header_size).map_err(corrupt)?;
                if body.format != self.format {
                    return Err(corrupt(Malformed::Cells));
                }
                Journal { list: body.list, base: None, maps: 0..0, is_exact: false }
            }
            (PageKind::Tree, Some(body)) => {
                let section = body.sections.find(SectionKind::Changes).ok_or(corrupt(Malformed::LevelMissing))?;
                let body = SectionBody::parse(self.reading.buf, section, self.format).map_err(corrupt)?;
                let maps = body.maps.0 as usize..body.maps.1 as usize;
                Journal { list: body.list, base: body.base, maps, is_exact: body.is_exact }
            }
            _ => return Err(corrupt(Malformed::LevelMissing)),
        };
        if usize::from(found.list.count) > self.journals.count_max {
            return Err(corrupt(Malformed::NodeSizes));
        }
        Ok(found)
    }

    /// Takes the changes of the journal page in the reading buffer to memory, those whose bits are set in a map of the
    /// page in the scratch buffer. Returns how much memory these take if none of their keys is there already.
    fn take_changes(
        &mut self,
        page: u32,
        list: &ChangeList,
        map: Option<Range<usize>>,
        is_unproved: bool,
    ) -> Result<usize, TreeError<P::Error>> {
        let corrupt = |_| TreeError::Corrupt { page: PageAddr(page), why: Malformed::Node };
        let place = self.journals.place_of(page).unwrap_or(0);
        let (mut size, mut memory) = (0, 0);
        let mut has_pages = false;
        for (index, change) in list.changes(self.reading.buf).enumerate() {
            let is_needed = |map: &Range<usize>| self.scratch[map.clone()][index / 8] >> (index % 8) & 1 == 1;
            size += self.changes.journal_size(&change);
            if !map.as_ref().is_none_or(is_needed) {
                continue;
            }
            let resident = Self::resident_of(page, &change);
            let change = resident.as_ref().map_or(change, |bytes| Self::as_stored(change.key, bytes));
            memory += self.changes.required(&change);
            if self.changes.find(change.key).is_ok() {
                continue;
            }
            self.check_key(change.key).map_err(corrupt)?;
            match change.value {
                Some(value) if change.tag == TAG_RESIDENT => {
                    self.check_resident(value).map_err(corrupt)?;
                    has_pages = true;
                }
                Some(value) if change.tag == TAG_PAGE => {
                    self.check_page_value(change.key, value).map_err(corrupt)?;
                    has_pages = true;
                }
                Some(value) => self.check_value(change.key, value).map_err(corrupt)?,
                None => {}
            }
            let home = Home { journal: place, index: index as u16, is_unproved };
            if !self.changes.set(&change, home) {
                return Err(TreeError::PendingSize);
            }
        }
        if has_pages {
            self.pages.note_values();
        }
        if size > self.journals.capacity { Self::corrupt(page, Malformed::NodeSizes) } else { Ok(memory) }
    }
}
