//! Values that stand in the journal page with which they become durable: **resident** values.
//!
//! A value too large for a leaf takes a page of its own, and a sync takes another one. Where both fit one page, the value is a change like
//! any other, but that its leaf comes to hold where it is and not what: the page stays. So a put of some kilobytes and a
//! sync are one program, not two.
//!
//! The page then lives for two reasons: for its changes, as long as it is on the list of journal pages, and for its value, as long as
//! a leaf or a change leads to it. It is superseded when the second of them ends, after the commit that ended it (T14, as for page
//! values). One page holds one such value, so that what replaces it need not look whether another one lives.
//!
//! The value becomes durable with the record that leads to it, in one program: no tear leaves one without the other. A value that is moved
//! is programmed again before the commit of its leaf that leads there (T13), in a page that is no commit.

use core::ops::Range;

use nandu_index::Edit;
use nandu_media::PageKind;
use nandu_media::features::FILES;
use nandu_media::journal::{Change, JournalBody, JournalFront, front_size};
use nandu_media::notes::Note;
use nandu_media::value::{Resident, TAG_HERE, TAG_RESIDENT};
use nandu_nand::PageAddr;

use crate::apply::Retire;
use crate::descent::Seek;
use crate::group::Room;
use crate::journals::Node;
use crate::merge::Own;
use crate::page_values::{PAGE_KEY_SIZE_MAX, small_change};
use crate::pages::{Examined, Pages, Placement};
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

/// Syncs without a resident value after which no memory is kept free for one any more.
const WISH_SYNCS: u8 = 16;

/// Part of the peak of what is synced at once, as a divisor, by which it fades with each sync: half is left after some twenty of them.
const PEAK_SHARE: usize = 32;

/// What is stored for a resident value, without its tag.
type Said = [u8; Resident::SIZE - 1];

/// Memory for changes that is to be free before the first change after a sync, so that a resident value fits beside the changes that
/// come with it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish {
    size: usize,
    syncs_left: u8,
}

impl Wish {
    fn renew(&mut self, size: usize) {
        *self = Wish { size, syncs_left: WISH_SYNCS };
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Whether a value of so many bytes, too large for a leaf, would stand in the page of the next sync if it was put now: then it costs no
    /// program of its own. So it is where changes wait for a sync, the medium has page values, and no other such value waits, and the page
    /// has room beside what waits already. Costs nothing.
    pub fn can_reside(&mut self, key: &[u8], length: usize) -> bool {
        self.resident_space(key, length, &[]).is_some()
    }

    /// What such a value and the changes that come with it need, if it would stand there.
    fn resident_space(&mut self, key: &[u8], length: usize, edits: &[Edit<'_>]) -> Option<Room> {
        let is_possible = FILES
            && self.is_grouped()
            && self.snapshots.is_empty()
            && self.notes.capacity() > 0
            && self.pages.has_bare()
            && self.is_large(key, length)
            && length < self.scratch.len().min(usize::from(u16::MAX));
        if !is_possible || key.len() > self.limits.key_size_max.min(PAGE_KEY_SIZE_MAX) {
            return None;
        }
        if self.changes.resident().is_some_and(|index| self.changes.key(index) != key) {
            return None;
        }
        // Only how long it is matters; the scratch buffer is longer.
        let change = Change { key, tag: TAG_HERE, value: Some(&self.scratch[..length]) };
        let room = self.room_of(core::iter::once(change).chain(edits.iter().map(small_change)));
        let memory = self.memory_for(&room)?;
        if self.changes.unsynced() > 0 && self.changes.free() < memory {
            self.wish.renew(memory);
            return None;
        }
        Some(room)
    }

    /// Puts a value that is too large for a leaf into the page of the next sync. `None` if it has no room there.
    pub(crate) fn put_resident(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, TreeError<P::Error>> {
        self.put_resident_with(key, value, &[])
    }

    /// Puts a value that is too large for a leaf into the page of the next sync ([`Tree::can_reside`]), with changes of small values, in
    /// ascending order and of other keys, that become durable with it. `None` if it has no room there, and then nothing has changed.
    ///
    /// # Errors
    ///
    /// As [`put`](Tree::put) and [`batch`](Tree::batch).
    #[inline(never)]
    pub fn put_resident_with(
        &mut self,
        key: &[u8],
        value: &[u8],
        edits: &[Edit<'_>],
    ) -> Result<Option<bool>, TreeError<P::Error>> {
        self.check_key(key)?;
        self.check_edits(edits)?;
        let Some(room) = self.resident_space(key, value.len(), edits) else { return Ok(None) };
        self.discard_value();
        self.pages.note_values();
        let existed = self.contains(key)?;
        let records = self.records_with(edits)? + u64::from(!existed);
        self.make_room_for_doomed(edits.iter().map(|edit| edit.key))?;
        self.make_room(room, self.frees)?;
        self.replace_change(&Change { key, tag: TAG_HERE, value: Some(value) });
        self.replace_small(edits, records);
        self.stats.residents += 1;
        Ok(Some(existed))
    }

    /// What the sync that begins has to make durable.
    pub(crate) fn note_group(&mut self) {
        self.group_size = self.changes.unsynced_size();
        match self.changes.resident() {
            Some(index) => {
                let change = self.changes.change(index);
                // Others are going to come as this one did; and what stays of it is small.
                self.group_size -= change.value.map_or(0, |value| value.len().saturating_sub(Resident::SIZE));
                let size = self.changes.required(&change);
                self.wish.renew(size);
            }
            None => self.wish.syncs_left = self.wish.syncs_left.saturating_sub(1),
        }
        let fading = if self.parts_leaves() { self.group_peak - self.group_peak.div_ceil(PEAK_SHARE) } else { 0 };
        self.group_peak = self.group_size.max(fading);
    }

    /// Bytes of memory for changes, of so many, that are kept free for a resident value.
    pub(crate) fn resident_room(&self, size: usize) -> usize {
        if self.wish.syncs_left > 0 { self.wish.size.min(size / 2) } else { 0 }
    }

    /// The value that waited stands in this page now: memory holds where. Returns whether there was one.
    #[inline(never)]
    pub(crate) fn settle_resident(&mut self, page: u32) -> bool {
        let Some(index) = self.changes.resident() else { return false };
        let home = self.changes.home(index);
        let change = self.changes.change(index);
        let Some((bytes, note)) = Self::resident_of(page, &change).zip(Note::new(page, change.key)) else {
            return false;
        };
        let is_set = self.changes.set(&Self::as_stored(note.key(), &bytes), home);
        assert!(is_set, "where a value is takes less room than the value");
        true
    }

    /// What a leaf is to hold, without its tag, for a change of a journal page whose value stands there.
    pub(crate) fn resident_of(page: u32, change: &Change<'_>) -> Option<Said> {
        let value = change.value.filter(|_| change.tag == TAG_HERE)?;
        let [_, said @ ..] = Resident { page, length: value.len() as u16 }.to_bytes();
        Some(said)
    }

    /// The change that memory holds for it.
    pub(crate) fn as_stored<'a>(key: &'a [u8], said: &'a Said) -> Change<'a> {
        Change { key, tag: TAG_RESIDENT, value: Some(said) }
    }

    /// Checks what a journal page says of a resident value.
    pub(crate) fn check_resident(&self, value: &[u8]) -> Result<(), TreeError<P::Error>> {
        let page = value.first_chunk().map(|page| u32::from_le_bytes(*page));
        let is_sound = value.len() + 1 == Resident::SIZE && page.is_some_and(|page| page < self.page_count);
        if is_sound && self.pages.has_bare() { Ok(()) } else { Err(TreeError::ValueSize(value.len())) }
    }

    /// Copies a part of a resident value; `None` if the key has none. One read.
    pub(crate) fn read_resident(
        &mut self,
        key: &[u8],
        offset: usize,
        out: &mut [u8],
    ) -> Result<Option<usize>, TreeError<P::Error>> {
        if self.tag_size() == 0 || !self.pages.has_bare() {
            return Ok(None);
        }
        let copy = |value: &[u8], out: &mut [u8]| {
            let rest = value.get(offset..).unwrap_or_default();
            let size = rest.len().min(out.len());
            out[..size].copy_from_slice(&rest[..size]);
            size
        };
        if let Some(index) = self.find_change(key)? {
            let change = self.changes.change(index);
            if let Some(value) = change.value.filter(|_| change.tag == TAG_HERE) {
                return Ok(Some(copy(value, out)));
            }
        }
        let Some(resident) = self.resident_now(key)? else { return Ok(None) };
        let place = self.load_resident(key, resident)?;
        Ok(Some(copy(&self.reading.buf[place], out)))
    }

    /// Where the value of a key is, if that is a resident one and in a page.
    fn resident_now(&mut self, key: &[u8]) -> Result<Option<Resident>, TreeError<P::Error>> {
        match self.find_change(key)? {
            Some(index) => Ok(self.changes.stored(index).and_then(Resident::parse)),
            None => self.leaf_resident(key),
        }
    }

    /// The resident value that the leaf of a key holds for it.
    fn leaf_resident(&mut self, key: &[u8]) -> Result<Option<Resident>, TreeError<P::Error>> {
        self.descend(Seek::At(key), 1)?;
        let place = self.leaf_place(false)?;
        let leaf = self.bytes(&place);
        let Ok(index) = self.cells.leaf_find(leaf, key) else { return Ok(None) };
        Ok(Resident::parse(self.cells.leaf_value(leaf, index)))
    }

    /// Reads the page of a resident value to the reading buffer and returns where its bytes are.
    fn load_resident(&mut self, key: &[u8], value: Resident) -> Result<Range<usize>, TreeError<P::Error>> {
        if value.page >= self.page_count {
            return Self::corrupt(value.page, Malformed::PageNumber);
        }
        let kind = self.fetch(value.page)?.kind;
        let found = match JournalBody::parse(self.reading.buf, self.header_size) {
            Ok(body) if kind == PageKind::Journal && body.format == self.format => body.list.resident(),
            _ => None,
        };
        let change = found.clone().and_then(|place| Change::parse(&self.format, &self.reading.buf[place]).ok());
        match (found, change) {
            (Some(place), Some((Change { key: owner, value: Some(bytes), .. }, _)))
                if owner == key && bytes.len() == usize::from(value.length) =>
            {
                Ok(place.end - bytes.len()..place.end)
            }
            _ => Self::corrupt(value.page, Malformed::Node),
        }
    }

    /// Whether a resident value is where its entry says.
    pub(crate) fn is_resident_sound(&mut self, key: &[u8], value: Resident) -> Result<bool, TreeError<P::Error>> {
        match self.load_resident(key, value) {
            Err(TreeError::Corrupt { .. }) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Visits the page of a resident value, unless it was visited as a journal page.
    pub(crate) fn visit_resident(&self, page: u32, live: &mut dyn FnMut(PageAddr)) {
        if self.journals.place_of(page).is_none() {
            live(PageAddr(page));
        }
    }

    /// Notes the page of a value that is going to be replaced as dead once the change commits.
    pub(crate) fn retire_resident(
        &mut self,
        before: Resident,
        value: Option<&[u8]>,
        retire: Retire,
    ) -> Result<(), TreeError<P::Error>> {
        let stays = value.and_then(Resident::parse).is_some_and(|new| new.page == before.page);
        if stays || before.page >= self.page_count {
            return Ok(());
        }
        if retire == Retire::All && !self.journal.has_room() {
            return Err(TreeError::JournalFull);
        }
        self.journal.supersede(before.page);
        Ok(())
    }

    /// The key of the value that stands in a journal page; `None` if there is no value. Reads the page.
    #[inline(never)]
    fn resident_key(&mut self, page: PageAddr) -> Result<Option<Note>, TreeError<P::Error>> {
        if self.fetch(page.0)?.kind != PageKind::Journal || self.tag_size() == 0 || !self.pages.has_bare() {
            return Ok(None);
        }
        let body = JournalBody::parse(self.reading.buf, self.header_size);
        let body = body.map_err(|why| TreeError::Corrupt { page, why })?;
        let change = body.list.resident_change(self.reading.buf).filter(|_| body.format == self.format);
        let Some(change) = change.filter(|change| self.check_key(change.key).is_ok()) else { return Ok(None) };
        match Note::new(page.0, change.key) {
            None => Self::corrupt(page.0, Malformed::Node),
            note => Ok(note),
        }
    }

    /// Whether anything leads to a value in a journal page, or will until the next sync. Reads the page and at most the path to the leaf of
    /// the value.
    pub(crate) fn is_resident_needed(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        let Some(note) = self.resident_key(page)? else { return Ok(false) };
        // What an unsynced change replaces is needed until that is durable (T14).
        if self.notes.doomed().any(|doomed| doomed == page.0) {
            return Ok(true);
        }
        let leads = |value: Option<Resident>| value.is_some_and(|value| value.page == page.0);
        let change = self.changes.find(note.key()).ok();
        let change = change.filter(|&index| leads(self.changes.stored(index).and_then(Resident::parse)));
        if change.is_some_and(|index| !self.changes.home(index).is_unproved) {
            return Ok(true);
        }
        // A change that waits may hide what the leaf holds.
        if leads(self.leaf_resident(note.key())?) {
            return Ok(true);
        }
        // An unproved change counts if the leaf lacks it. It stays: a merge that concludes has its changes by index.
        match change {
            Some(index) => self.is_missing(index),
            None => Ok(false),
        }
    }

    /// Finds out about a journal page that is not on the list, and moves its value if that lives.
    #[inline(never)]
    pub(crate) fn examine_resident(&mut self, page: PageAddr, moves: bool) -> Result<Examined, TreeError<P::Error>> {
        if !self.is_resident_needed(page)? {
            return Ok(Examined::Dead);
        }
        if !moves || self.changes.unsynced() > 0 {
            return Ok(Examined::Live);
        }
        Ok(if self.move_resident(page)? { Examined::Moved } else { Examined::Dead })
    }

    /// Moves the value of a page that is needed for it, with its leaf, which takes all its changes (T15): so they state the newest state
    /// that is durable. False if a change that waited for the leaf was all that hid that nothing leads to it.
    fn move_resident(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        let Some(note) = self.resident_key(page)? else { return Ok(false) };
        let leads = self.resident_now(note.key())?.is_some_and(|value| value.page == page.0);
        let own = leads.then_some(Own::Reside(note.key(), page.0));
        self.merge_with(note.key(), own, Some(Placement::Moved { from: page }))?;
        self.stats.moved_residents += u64::from(leads);
        Ok(leads)
    }

    /// Moves the value out of a page that is on the list of journal pages, if it holds one that lives. Returns whether nothing in the page
    /// is needed any more.
    pub(crate) fn move_listed_resident(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        let node = self.journals.find_mut(page.0).map_or(Node::Absent, |listed| listed.node);
        let is_needed = match node {
            Node::Absent | Node::Dead => return Ok(false),
            Node::Live => true,
            Node::Unknown => self.is_resident_needed(page)?,
        };
        if is_needed {
            self.move_resident(page)?;
        }
        if let Some(listed) = self.journals.find_mut(page.0) {
            listed.node = Node::Dead;
        }
        Ok(self.journals.place_of(page.0).is_none())
    }

    /// Appends the value of a key again, if it is in this page, in one that holds nothing else, and puts into the path's leaf where it is.
    #[inline(never)]
    pub(crate) fn evict_resident(&mut self, key: &[u8], page: u32) -> Result<(), TreeError<P::Error>> {
        let place = self.edited_leaf(key)?;
        let leaf = self.bytes(&place);
        let stored = self.cells.leaf_find(leaf, key).ok().map(|index| self.cells.leaf_value(leaf, index));
        let Some(value) = stored.and_then(Resident::parse).filter(|value| value.page == page) else { return Ok(()) };
        let bytes = self.load_resident(key, value)?;
        // The copy is put together where it was read: the other buffers hold the path.
        let front = JournalFront {
            height: self.state.height,
            format: self.format,
            records: self.state.records,
            root: self.committed.root,
            count: 1,
            has_sections: false,
            older: &[],
        };
        let size = Change { key, tag: TAG_HERE, value: Some(&self.reading.buf[bytes.clone()]) }.size(&self.format);
        let at = front_size(self.header_size);
        self.reading.buf.copy_within(bytes.end - size..bytes.end, at);
        self.reading.buf[at + size..].fill(0xFF);
        self.reading.forget();
        front.write(self.reading.buf, self.header_size);
        let placement = Placement::Moved { from: PageAddr(page) };
        let new = self.pages.append(self.reading.buf, PageKind::Journal, placement, false)?.0;
        assert!(new < self.page_count, "the medium keeps to its own size");
        self.journal.append(new);
        self.edit(key, Some(&Resident { page: new, ..value }.to_bytes()), Retire::All).map(|_| ())
    }
}
