//! Changes going to their leaves, and finding out which are there already.

use core::ops::Range;

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::journal::JournalBody;
use nandu_media::value::TAG_PAGE;
use nandu_nand::PageAddr;

use crate::apply::Retire;
use crate::cells::Cells;
use crate::changes::{Changes, Home};
use crate::descent::Seek;
use crate::journals::Listed;
use crate::pages::{Pages, Placement};
use crate::tree::Tree;
use crate::{Malformed, TreeError};

/// Keys not below the first and below the second; `None` is no bound.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: Option<KeyBuf>,
    pub(crate) high: Option<KeyBuf>,
}

impl Span {
    fn widen(&mut self, other: &Span) {
        self.low = self.low.zip(other.low).map(|(a, b)| if a.as_slice() <= b.as_slice() { a } else { b });
        self.high = self.high.zip(other.high).map(|(a, b)| if a.as_slice() >= b.as_slice() { a } else { b });
    }

    /// The changes of these keys.
    pub(crate) fn range(&self, changes: &Changes<'_>) -> Range<usize> {
        let start = self.low.map_or(0, |key| changes.lower(key.as_slice()));
        let end = self.high.map_or(changes.len(), |key| changes.lower(key.as_slice()));
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

/// Page values that are moved with their leaf, after its changes are in it (R7).
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
}

/// How bringing changes to leaves ended.
#[expect(clippy::large_enum_variant, reason = "a key on the stack, once for each merge")]
enum Applied {
    /// These are in the buffers, or in pages not committed yet. `existed` says whether the key of the own edit was there.
    These { range: Range<usize>, existed: bool },
    /// It has to be known first whether the change of this key is obsolete.
    Unproved(KeyBuf),
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// The keys of the path's leaf.
    pub(crate) fn leaf_span(&self) -> Span {
        let (mut low, mut high) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        let has_low = self.fence_below(0, &mut low).is_some();
        let has_high = self.fence_above(0, &mut high).is_some();
        Span { low: has_low.then_some(low), high: has_high.then_some(high) }
    }

    /// Programs the leaf of this key with every change of its range; that is a commit. A neighbour that is programmed
    /// with it, since the leaf overflows, takes its own changes too.
    pub(crate) fn merge_at(&mut self, key: &KeyBuf, placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        self.merge_with(key.as_slice(), None, placement).map(|_| ())
    }

    /// As [`Tree::merge_at`], with an edit made after the changes, of which it returns whether its key was there. Nothing may be
    /// unsynced.
    pub(crate) fn merge_with(
        &mut self,
        key: &[u8],
        own: Option<Own<'_>>,
        placement: Option<Placement>,
    ) -> Result<bool, TreeError<P::Error>> {
        // Each turn but the last proves a change.
        for _ in 0..=self.changes.unproved {
            self.descend(Seek::At(key), 1)?;
            self.prove_path()?;
            let records = self.state.records;
            match self.lend_changes(|tree, changes| tree.apply_changes(changes, own)) {
                Ok(Applied::These { range, existed }) => {
                    // Where a change is does not matter for how many entries there are.
                    let is_new = matches!(own, Some(Own::Edit(_))) && !existed;
                    self.state.records = records + u64::from(is_new);
                    return self.conclude_merge(range, placement).map(|()| existed);
                }
                Ok(Applied::Unproved(key)) => {
                    self.undo();
                    self.descend(Seek::At(key.as_slice()), 1)?;
                    self.prove_path()?;
                }
                Err(error) => {
                    self.undo();
                    return Err(error);
                }
            }
        }
        Self::corrupt(self.state.root, Malformed::Node)
    }

    fn conclude_merge(&mut self, range: Range<usize>, placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        let is_last = self.changes.len() == range.len();
        if is_last {
            self.journals.named = None;
        }
        let outcome = self.conclude(Ok(()), placement);
        if outcome.is_err() {
            self.journals.named = self.journals.newest_page();
            return outcome;
        }
        for index in range.rev() {
            self.changes.remove(index);
        }
        if is_last {
            self.journals.newest = None;
            for listed in core::mem::take(&mut self.journals.listed).into_iter().flatten() {
                self.pages.supersede(PageAddr(listed.page));
            }
        }
        Ok(())
    }

    /// Makes the changes of the path's leaf in the buffers, and those of any other leaf that comes to be programmed.
    fn apply_changes(&mut self, changes: &Changes<'_>, own: Option<Own<'_>>) -> Result<Applied, TreeError<P::Error>> {
        let mut span = self.leaf_span();
        let first = span.range(changes).start;
        let mut done = first..first;
        let mut own_left = own;
        let is_stale = self.broken.moves_stale() && matches!(own, Some(Own::Evict(_) | Own::Name(_)));
        let mut existed = false;
        self.pending.rewritten = None;
        self.pending.at_end = false;
        loop {
            let wanted = if is_stale { done.clone() } else { span.range(changes) };
            let index = if done.end < wanted.end {
                done.end += 1;
                done.end - 1
            } else if wanted.start < done.start {
                done.start -= 1;
                done.start
            } else if let Some(own) = own_left.take() {
                match own {
                    Own::Edit(OwnEdit { key, stored, retire }) => existed = self.edit(key, Some(stored), retire)?,
                    Own::Evict(evict) => self.evict(&evict)?,
                    Own::Name(key) => self.link_copies(key)?,
                }
                self.widen(&mut span);
                continue;
            } else {
                break;
            };
            let change = changes.change(index);
            if changes.home(index).is_unproved {
                return Ok(Applied::Unproved(KeyBuf::new(change.key).unwrap_or(KeyBuf::EMPTY)));
            }
            self.edit(change.key, changes.stored(index), Retire::Noted)?;
            if self.pending.lowest > 0 {
                // The leaf vanished. The one that its keys belong to now has to be newer than what was known of them.
                self.take_heir(change.key)?;
            }
            self.widen(&mut span);
        }
        if !self.pending.dirty && self.pending.appended == 0 {
            // Nothing of it made a difference; the leaf has to be newer than the changes all the same.
            self.touch(0)?;
        }
        Ok(Applied::These { range: done, existed })
    }

    /// After an edit: the leaf of the path, and what was rewritten with it, are going to be programmed.
    fn widen(&mut self, span: &mut Span) {
        span.widen(&self.leaf_span());
        if let Some(rewritten) = self.pending.rewritten.take() {
            span.widen(&rewritten);
        }
    }

    /// Puts the leaf that a key belongs to, since the one before vanished, into the buffers as it is.
    fn take_heir(&mut self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        if self.pending.lowest == 1 {
            // It may stand in for the one that vanished; then many that vanish one after another cost one program.
            let slot = self.path[1];
            self.path[1].index = self.cells.inner_find(&self.assembly[slot.range()], key, false);
            if self.load_leaf(self.child(0))? {
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
        if self.changes.unproved == 0 {
            return Ok(());
        }
        let range = self.leaf_span().range(&self.changes);
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
            let journal = self.journals.listed.get(usize::from(home.journal)).copied().flatten();
            if journal.is_some_and(|journal| sequence < journal.sequence) {
                self.changes.set_home(index, Home { is_unproved: false, ..home });
            } else {
                self.changes.remove(index);
            }
        }
        Ok(())
    }

    /// Proves every change of a journal page. Reads at most a page for each.
    pub(crate) fn prove_journal(&mut self, place: u8) -> Result<(), TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        let mut index = 0;
        while self.changes.unproved > 0 && index < self.changes.len() {
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
        let newest = self.load_journal(page)?;
        let newest_sequence = self.fetch(page)?.sequence;
        if newest.older_count >= self.journals.listed_max {
            return Self::corrupt(page, Malformed::NodeSizes);
        }
        self.scratch.copy_from_slice(self.reading.buf);
        self.journals.newest = Some(0);
        self.journals.named = Some(page);
        self.list(0, page, &newest)?;
        self.take_changes(page, 0, &newest, None, !is_newest)?;
        for (index, older) in newest.older().iter().enumerate() {
            let body = self.load_journal(older.page)?;
            let is_twice = self.journals.place_of(older.page).is_some();
            if is_twice || body.count != older.count || self.fetch(older.page)?.sequence >= newest_sequence {
                return Self::corrupt(older.page, Malformed::PageNumber);
            }
            let place = 1 + index as u8;
            self.list(place, older.page, &body)?;
            let is_unproved = !is_newest || !older.is_exact;
            self.take_changes(older.page, place, &body, Some(newest.map(index)), is_unproved)?;
        }
        Ok(())
    }

    fn list(&mut self, place: u8, page: u32, body: &JournalBody) -> Result<(), TreeError<P::Error>> {
        let sequence = self.fetch(page)?.sequence;
        self.journals.listed[usize::from(place)] = Some(Listed { page, sequence, count: body.count });
        Ok(())
    }

    fn load_journal(&mut self, page: u32) -> Result<JournalBody, TreeError<P::Error>> {
        if self.fetch(page)?.kind != PageKind::Journal {
            return Self::corrupt(page, Malformed::LevelMissing);
        }
        let corrupt = |why| TreeError::Corrupt { page: PageAddr(page), why };
        let body = JournalBody::parse(self.reading.buf, self.header_size).map_err(corrupt)?;
        if body.format != self.format {
            return Err(corrupt(Malformed::Cells));
        }
        if usize::from(body.count) > self.journals.count_max {
            return Err(corrupt(Malformed::NodeSizes));
        }
        Ok(body)
    }

    /// Takes the changes of the journal page in the reading buffer to memory, those whose bits are set in a map of the
    /// page in the scratch buffer.
    fn take_changes(
        &mut self,
        page: u32,
        place: u8,
        body: &JournalBody,
        map: Option<Range<usize>>,
        is_unproved: bool,
    ) -> Result<(), TreeError<P::Error>> {
        let corrupt = |_| TreeError::Corrupt { page: PageAddr(page), why: Malformed::Node };
        let mut size = 0;
        let mut has_pages = false;
        for (index, change) in body.changes(self.reading.buf).enumerate() {
            let is_needed = |map: &Range<usize>| self.scratch[map.clone()][index / 8] >> (index % 8) & 1 == 1;
            size += self.changes.journal_size(&change);
            if !map.as_ref().is_none_or(is_needed) || self.changes.find(change.key).is_ok() {
                continue;
            }
            self.check_key(change.key).map_err(corrupt)?;
            match change.value {
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
        if size > self.journals.capacity { Self::corrupt(page, Malformed::NodeSizes) } else { Ok(()) }
    }
}
