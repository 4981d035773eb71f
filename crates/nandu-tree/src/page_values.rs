//! Values of exactly a page, in bare pages.
//!
//! The page is programmed at once, and where it is becomes a change like any other: so a value that is put, then synced, costs
//! one program for itself and its share of the commit. The entry holds the checksum of the page, which every read checks,
//! since the page says nothing of itself.
//!
//! The order that makes it safe under cuts:
//!
//! * **T13** A page is programmed before the commit whose entry leads to it. In the other order a cut leaves an entry that leads to
//!   what stood in the page before.
//! * **T14** A page is superseded only when the commit that replaces its entry is durable. Else its block may be erased while a cut
//!   would still bring the entry back.
//! * **T15** A page is moved together with its leaf, which takes all its changes, and while no change waits for a sync: so a move states
//!   the newest state that is durable. A leaf programmed without them would look newer than changes that it lacks.
//!
//! Where pages are moved to cells with two bits, T16 and T17 come to these ([`copies`](crate::copies)).

use nandu_index::{Edit, KeyBuf};
use nandu_media::checksum::checksum;
use nandu_media::journal::Change;
use nandu_media::notes::{NOTE_KEY_SIZE_MAX, Note};
use nandu_media::tag::TAG_OWNER_SIZE;
use nandu_media::value::{PageValue, Resident, TAG_INLINE, TAG_PAGE};
use nandu_nand::PageAddr;

use crate::apply::Retire;
use crate::changes::UNSYNCED;
use crate::descent::{Place, Seek};
use crate::journals::Node;
use crate::merge::{Evict, Own};
use crate::pages::{Examined, Need, Pages, Placement};
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

/// Bytes of the longest key that a page value can have.
pub const PAGE_KEY_SIZE_MAX: usize = NOTE_KEY_SIZE_MAX;

/// Most pages that are moved with one program of their leaf; beyond 16 that counts as two examinations. More would be a longer wait and
/// save nothing: leaves hold some 80 pages on pages of 4 KiB, and of a block that is emptied a third is left, of more than one leaf.
const MOVES_MAX: u32 = 32;

/// How a page value is put, and what is changed together with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagePut<'a> {
    /// Which of the medium's bare streams it goes to, counted from 0; `None`: wherever the medium likes.
    pub stream: Option<u8>,
    /// The tag of a page that says what its owner changes together with it ([`Tree::put_page_tagged`]).
    pub owner: Option<&'a [u8; TAG_OWNER_SIZE]>,
    /// Changes of small values that become durable in the same commit as the page, in ascending order and of other keys.
    pub edits: &'a [Edit<'a>],
    /// The owner promises that all of it leaves no less room than it found, as where a page replaces a page: then it is allowed on a full
    /// medium.
    pub frees: bool,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Puts a value of exactly a page at a key of at most [`PAGE_KEY_SIZE_MAX`] bytes; returns whether the key was there. Programs
    /// the page at once, one program; that the key leads to it is a change as a put of a small value is, durable when this returns or
    /// at the next [`sync`](Tree::sync), in order with all others. Until then the value before stays.
    ///
    /// A sixtieth or so of a program more is for Summaries, with which the collector finds out whose a page is. Where the medium runs
    /// short of room, it syncs by itself.
    ///
    /// # Errors
    ///
    /// [`TreeError::NoPageValues`]; [`TreeError::KeySize`], [`TreeError::ValueSize`]; [`TreeError::NotesFull`] or the medium's
    /// error if there is no room, and then nothing has changed.
    pub fn put_page(&mut self, key: &[u8], page: &[u8]) -> Result<bool, TreeError<P::Error>> {
        self.put_page_to(key, page, None)
    }

    /// As [`put_page`](Tree::put_page), to this one of the medium's bare streams, counted from 0; `None`: wherever the medium likes. If
    /// there is no memory for the change to wait in, the page is durable when this returns, and goes where the medium likes.
    ///
    /// # Errors
    ///
    /// As [`put_page`](Tree::put_page).
    pub fn put_page_to(&mut self, key: &[u8], page: &[u8], stream: Option<u8>) -> Result<bool, TreeError<P::Error>> {
        self.put_page_with(key, page, &PagePut { stream, ..PagePut::default() })
    }

    /// As [`put_page_to`](Tree::put_page_to), with changes that become durable in the same commit as the page, so that a cut leaves all of
    /// it or nothing.
    ///
    /// # Errors
    ///
    /// As [`put_page`](Tree::put_page) and [`batch`](Tree::batch).
    pub fn put_page_with(&mut self, key: &[u8], page: &[u8], put: &PagePut<'_>) -> Result<bool, TreeError<P::Error>> {
        if put.owner.is_some() {
            self.tail.length = 0;
        }
        self.frees = put.frees;
        let outcome = self.put_page_as(key, page, put);
        self.frees = false;
        outcome
    }

    fn put_page_as(&mut self, key: &[u8], page: &[u8], put: &PagePut<'_>) -> Result<bool, TreeError<P::Error>> {
        self.check_key(key)?;
        self.check_edits(put.edits)?;
        if key.len() > PAGE_KEY_SIZE_MAX {
            return Err(TreeError::KeySize(key.len()));
        }
        if page.len() != self.assembly.len() {
            return Err(TreeError::ValueSize(page.len()));
        }
        if self.tag_size() == 0 || self.notes.capacity() == 0 || !self.pages.has_bare() {
            return Err(TreeError::NoPageValues);
        }
        self.discard_value();
        self.pages.note_values();
        if self.is_grouped()
            && let Some(existed) = self.put_page_later(key, page, put)?
        {
            return Ok(existed);
        }
        if !self.changes.is_empty() || !self.journals.is_empty() {
            self.settle()?;
        }
        let pages_max = self.split_pages_max() + 4;
        let beside = if put.edits.is_empty() { None } else { Some(self.batch_need(put.edits)?) };
        let (more, more_max) = beside.map_or((0, 0), |beside| (beside.pages, beside.pages_max));
        self.prepare(Need {
            pages: 2 + more,
            pages_max: pages_max + more_max,
            live_max: pages_max + more_max,
            shrinks: self.frees,
        })?;
        let placement = self.place_page(key, None)?;
        if !self.make_bare_room_at_last(placement)? {
            return Err(TreeError::NotesFull);
        }
        let outcome = self.append_page(Some(page), None, key, placement);
        let outcome = outcome.and_then(|value| {
            self.journal.append(value.page);
            let existed = self.edit(key, Some(&value.to_bytes()), Retire::All)?;
            put.edits.iter().try_for_each(|edit| self.edit_inline(edit.key, edit.value).map(|_| ()))?;
            Ok(existed)
        });
        self.conclude(outcome, None)
    }

    /// Puts a page value as a change that waits for a sync, with those that come with it. `None` if there is no memory for them.
    fn put_page_later(
        &mut self,
        key: &[u8],
        page: &[u8],
        put: &PagePut<'_>,
    ) -> Result<Option<bool>, TreeError<P::Error>> {
        let unknown = PageValue { page: 0, crc: 0 }.to_bytes();
        let change = Change { key, tag: TAG_PAGE, value: Some(&unknown[1..]) };
        let room = self.room_of(core::iter::once(change).chain(put.edits.iter().map(small_change)));
        if !self.can_wait(&room) {
            return Ok(None);
        }
        let existed = self.contains(key)?;
        let records = self.records_with(put.edits)? + u64::from(!existed);
        // Changes that wait keep the collector from moving anything.
        let pages = self.split_pages_max() + 4;
        if self.changes.unsynced() > 0 && !self.pages.has_room(pages)? {
            self.sync()?;
        }
        self.make_room_for_doomed(core::iter::once(key).chain(put.edits.iter().map(|edit| edit.key)))?;
        self.make_room(room, self.frees)?;
        let placement = self.place_page(key, put.stream)?;
        if !self.make_bare_room(placement, false)? {
            // With nothing that waits, pages are moved out of blocks to which no Summary is written.
            self.sync()?;
            self.make_room(room, self.frees)?;
            if !self.make_bare_room_at_last(placement)? {
                return Err(TreeError::NotesFull);
            }
        }
        if self.broken.commits_first() {
            self.commit_first(key, checksum(page), placement)?;
        }
        let value = self.append_page(Some(page), put.owner, key, placement)?.to_bytes();
        // No sync comes between the first of these changes and the last, so that one commit has them all.
        self.replace_change(&Change { key, tag: TAG_PAGE, value: Some(&value[1..]) });
        self.replace_small(put.edits, records);
        self.notes.appended += 1;
        Ok(Some(existed))
    }

    /// Puts changes of small values into memory, where there is room for them; then the tree has so many records.
    pub(crate) fn replace_small(&mut self, edits: &[Edit<'_>], records: u64) {
        for edit in edits {
            self.replace_change(&small_change(edit));
        }
        self.state.records = records;
        // Where a change that fails goes back to.
        self.committed.records = records;
    }

    /// Records that there are after some changes.
    pub(crate) fn records_with(&mut self, edits: &[Edit<'_>]) -> Result<u64, TreeError<P::Error>> {
        let mut records = self.state.records;
        for edit in edits {
            let existed = self.contains(edit.key)?;
            match edit.value {
                Some(_) => records += u64::from(!existed),
                None => records = records.saturating_sub(u64::from(existed)),
            }
        }
        Ok(records)
    }

    /// Test switch: commits where the page is going to be, which holds something else yet.
    fn commit_first(&mut self, key: &[u8], crc: u32, placement: Placement) -> Result<(), TreeError<P::Error>> {
        self.reading.forget();
        self.reading.buf.fill(0);
        let value = PageValue { crc, ..self.append_page(None, None, key, placement)? }.to_bytes();
        self.replace_change(&Change { key, tag: TAG_PAGE, value: Some(&value[1..]) });
        self.sync()?;
        self.make_bare_room(placement, false).map(|_| ())
    }

    fn place_page(&mut self, key: &[u8], stream: Option<u8>) -> Result<Placement, TreeError<P::Error>> {
        if let Some(stream) = stream {
            return Ok(Placement::Chosen { stream });
        }
        let supersedes = self.page_value(key)?.map(|before| PageAddr(before.page));
        Ok(Placement::Update { supersedes })
    }

    /// The page value that a key has now, if it has one.
    pub(crate) fn page_value(&mut self, key: &[u8]) -> Result<Option<PageValue>, TreeError<P::Error>> {
        if self.tag_size() == 0 || !self.pages.has_bare() {
            return Ok(None);
        }
        if let Some(index) = self.find_change(key)? {
            return Ok(self.changes.stored(index).and_then(PageValue::parse));
        }
        self.leaf_page_value(key)
    }

    /// The page value that the leaf of a key holds for it.
    fn leaf_page_value(&mut self, key: &[u8]) -> Result<Option<PageValue>, TreeError<P::Error>> {
        self.descend(Seek::At(key), 1)?;
        let place = self.leaf_place(false)?;
        Ok(self.page_value_in(&place, key))
    }

    pub(crate) fn page_value_in(&self, place: &Place, key: &[u8]) -> Option<PageValue> {
        let leaf = self.bytes(place);
        let index = self.cells.leaf_find(leaf, key).ok()?;
        PageValue::parse(self.cells.leaf_value(leaf, index))
    }

    /// Checks what a journal page says of a page value.
    pub(crate) fn check_page_value(&self, key: &[u8], value: &[u8]) -> Result<(), TreeError<P::Error>> {
        let page = value.first_chunk().map(|page| u32::from_le_bytes(*page));
        let is_sound = value.len() + 1 == PageValue::SIZE && page.is_some_and(|page| page < self.page_count);
        if !is_sound || key.len() > PAGE_KEY_SIZE_MAX || !self.pages.has_bare() {
            return Err(TreeError::ValueSize(value.len()));
        }
        Ok(())
    }

    /// Copies a part of a page value. One read, of the whole page, since nothing less proves it.
    pub(crate) fn read_page_value(
        &mut self,
        value: PageValue,
        offset: usize,
        out: &mut [u8],
    ) -> Result<usize, TreeError<P::Error>> {
        let page_size = self.assembly.len();
        if value.page >= self.page_count {
            return Self::corrupt(value.page, Malformed::PageNumber);
        }
        let is_whole = offset == 0 && out.len() >= page_size;
        let bytes = if is_whole { &mut out[..page_size] } else { &mut *self.scratch };
        self.pages.read_bare(PageAddr(value.page), bytes)?;
        if checksum(bytes) != value.crc {
            return Self::corrupt(value.page, Malformed::Checksum);
        }
        if is_whole {
            return Ok(page_size);
        }
        let rest = self.scratch.get(offset..).unwrap_or_default();
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    /// Programs a bare page and notes whose it is, for which there is room. Without bytes it is what the reading buffer holds.
    pub(crate) fn append_page(
        &mut self,
        bytes: Option<&[u8]>,
        owner: Option<&[u8; TAG_OWNER_SIZE]>,
        key: &[u8],
        placement: Placement,
    ) -> Result<PageValue, TreeError<P::Error>> {
        let bytes = bytes.unwrap_or(self.reading.buf);
        let crc = checksum(bytes);
        let length = self.pages.tail_len();
        let page = match owner {
            Some(owner) => self.pages.append_tagged(bytes, owner, placement)?.0,
            None => self.pages.append_bare(bytes, placement)?.0,
        };
        if owner.is_some() {
            self.note_tagged(length);
        }
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        self.begin_block(page);
        let is_noted = Note::new(page, key).is_some_and(|note| self.notes.push(&note));
        assert!(is_noted, "there is room for the note");
        let mut own = Some(page);
        self.take_rescued(&mut own)?;
        Ok(PageValue { page: own.unwrap_or(page), crc })
    }

    /// Forgets what was known of a block when it was written to before.
    pub(crate) fn begin_block(&mut self, page: u32) {
        let block = self.pages.block_of(PageAddr(page));
        let (pages, notes) = (&self.pages, &mut self.notes);
        let is_elsewhere = |other: u32| pages.block_of(PageAddr(other)) != block || other < page;
        notes.retain_summaries(is_elsewhere);
        notes.cached = notes.cached.filter(|&summary| is_elsewhere(summary));
        notes.adopted = notes.adopted.filter(|&adopted| adopted != block);
        notes.unsummed = notes.unsummed.filter(|&(unsummed, _)| unsummed != block);
    }

    /// Says that a page is needed no longer.
    pub(crate) fn bury_page(&mut self, page: u32) {
        self.notes.remove(page);
        match self.journals.find_mut(page) {
            // A resident value: what else the page holds is still needed.
            Some(listed) => listed.node = Node::Dead,
            None => self.pages.supersede(PageAddr(page)),
        }
    }

    /// Syncs where the changes of these keys would replace more pages than can be remembered until the next sync, and none of those that wait
    /// would be forgotten then.
    pub(crate) fn make_room_for_doomed<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<(), TreeError<P::Error>> {
        if self.changes.unsynced() == 0 || self.tag_size() == 0 {
            return Ok(());
        }
        let replaces_page = |key: &&[u8]| {
            let index = self.changes.find(key).ok().filter(|&index| self.changes.home(index).journal != UNSYNCED);
            index.is_some_and(|index| self.changes.stored(index).and_then(page_of).is_some())
        };
        let count = keys.filter(replaces_page).count();
        if self.notes.can_doom(count) { Ok(()) } else { self.sync() }
    }

    /// Puts a change into memory, where there is room for it. The page of one that it replaces is dead: at once if nothing durable
    /// leads to it, else when this one is durable (T14).
    pub(crate) fn replace_change(&mut self, change: &Change<'_>) {
        if let Ok(index) = self.changes.find(change.key)
            && let Some(before) = self.changes.stored(index).and_then(page_of)
            && self.tag_size() > 0
        {
            if self.changes.home(index).journal == UNSYNCED || self.broken.supersedes_first() {
                self.bury_page(before);
            } else if !self.notes.doom(before) {
                self.pages.doubt();
            }
        }
        let is_set = self.changes.set(change, crate::changes::Home::NONE);
        assert!(is_set, "there is room for the change");
    }

    /// All changes are durable: the pages that they replaced are dead.
    pub(crate) fn bury_doomed(&mut self) {
        while let Some(page) = self.notes.take_doomed() {
            self.bury_page(page);
        }
        if self.notes.appended > 0 {
            (self.notes.group, self.notes.appended) = (self.notes.appended, 0);
        }
    }

    /// Notes the page of a value that is going to be replaced as dead once the change commits.
    pub(crate) fn retire_page_value(
        &mut self,
        stored: PageValue,
        value: Option<&[u8]>,
        retire: Retire,
    ) -> Result<(), TreeError<P::Error>> {
        let stays = value.and_then(PageValue::parse).is_some_and(|new| new.page == stored.page);
        if stays || stored.page >= self.page_count {
            return Ok(());
        }
        if retire == Retire::All && !self.journal.has_room() {
            return Err(TreeError::JournalFull);
        }
        self.journal.supersede(stored.page);
        Ok(())
    }

    /// Finds out about a bare page, and moves it if it lives, with others of its leaf in the same block.
    #[inline(never)]
    pub(crate) fn examine_bare(&mut self, page: PageAddr, moves: bool) -> Result<Examined, TreeError<P::Error>> {
        if self.is_copy(page.0) {
            return Ok(Examined::Live);
        }
        let note = match self.owner_of(page)? {
            Owner::Key(note) => note,
            Owner::Nobody => return Ok(Examined::Dead),
            Owner::Unknown => return Ok(Examined::Live),
        };
        let key = note.key();
        if self.check_key(key).is_err() || self.tag_size() == 0 {
            return Ok(Examined::Dead);
        }
        let Some(is_hidden) = self.lead_to(page, key)? else {
            // What an unsynced change replaces is needed until that is durable (T14).
            return Ok(if self.is_doomed(page) { Examined::Live } else { Examined::Dead });
        };
        if !moves || self.changes.unsynced() > 0 {
            return Ok(Examined::Live);
        }
        let placement = Some(Placement::Moved { from: page });
        if is_hidden {
            // The leaf is going to lose this value, and whatever programs the leaf takes that change along.
            self.merge_at(key, placement)?;
            return Ok(Examined::Dead);
        }
        if self.pages.has_pairs() {
            let value = self.page_value(key)?;
            return match value.filter(|value| value.page == page.0) {
                Some(value) => self.copy_out(key, value),
                None => Ok(Examined::Dead),
            };
        }
        // One is moved even into what is kept for that, as pages of the tree are: a block is not emptied without it.
        let count_max = self.pages.move_room().clamp(1, MOVES_MAX);
        let evict = Evict { key, page: page.0, count_max };
        match self.merge_with(key, Some(Own::Evict(evict)), placement) {
            Ok(_) => Ok(Examined::Moved),
            Err(TreeError::NotesFull) => Ok(Examined::Live),
            Err(error) => Err(error),
        }
    }

    /// Whether something leads to a page from this key; true if a leaf does that is going to lose this value.
    #[inline(never)]
    fn lead_to(&mut self, page: PageAddr, key: &[u8]) -> Result<Option<bool>, TreeError<P::Error>> {
        let is_this = |value: Option<PageValue>| value.is_some_and(|value| value.page == page.0);
        let change = self.find_change(key)?;
        if change.is_some_and(|index| is_this(self.changes.stored(index).and_then(PageValue::parse))) {
            return Ok(Some(false));
        }
        Ok(is_this(self.leaf_page_value(key)?).then_some(change.is_some()))
    }

    fn is_doomed(&self, page: PageAddr) -> bool {
        self.notes.doomed().any(|doomed| doomed == page.0)
    }

    /// Appends a page value again, and then others of the path's leaf that stand in the same block; the leaf, which holds its
    /// changes, leads to where they are then.
    #[inline(never)]
    pub(crate) fn evict(&mut self, evict: &Evict<'_>) -> Result<(), TreeError<P::Error>> {
        let block = self.pages.block_of(PageAddr(evict.page));
        let place = self.edited_leaf(evict.key)?;
        let value = self.page_value_in(&place, evict.key);
        let Some(value) = value.filter(|value| value.page == evict.page) else { return Ok(()) };
        self.copy_page(evict.key, value)?;
        self.relink_page(evict.key, value)?;
        let mut count = 1;
        let mut index = 0;
        while count < evict.count_max && self.path[0].present && self.pending.staged.is_none() {
            let leaf = &self.assembly[self.path[0].range()];
            if index >= self.cells.leaf_count(leaf) {
                break;
            }
            let stored = PageValue::parse(self.cells.leaf_value(leaf, index));
            let is_there =
                |value: &PageValue| value.page < self.page_count && self.pages.block_of(PageAddr(value.page)) == block;
            index += 1;
            let Some(value) = stored.filter(is_there) else { continue };
            let Some(note) = self.note_of(index - 1, value.page) else { continue };
            // What cannot be read is left for its own turn.
            if !self.journal.has_room() {
                break;
            }
            match self.copy_page(note.key(), value) {
                Err(error) if self.pages.is_lost() => return Err(error),
                Err(_) => break,
                Ok(()) => {}
            }
            self.relink_page(note.key(), value)?;
            count += 1;
        }
        Ok(())
    }

    /// Which key of the path's leaf a page belongs to; `None` if the key is longer than that of a page value.
    #[inline(never)]
    fn note_of(&self, index: usize, page: u32) -> Option<Note> {
        let mut key = KeyBuf::EMPTY;
        self.cells.leaf_key(&self.assembly[self.path[0].range()], index, &mut key);
        Note::new(page, key.as_slice())
    }

    /// Reads a page value to the reading buffer, after room was made for its copy and for the note about it.
    pub(crate) fn copy_page(&mut self, key: &[u8], value: PageValue) -> Result<(), TreeError<P::Error>> {
        if key.len() > PAGE_KEY_SIZE_MAX {
            return Self::corrupt(value.page, Malformed::Node);
        }
        // The note about the page that is moved goes with the commit, so it leaves a place.
        let is_noted = self.notes.find(value.page).is_some();
        if !self.make_bare_room(Placement::Moved { from: PageAddr(value.page) }, is_noted)? {
            return Err(TreeError::NotesFull);
        }
        self.reading.forget();
        self.pages.read_bare(PageAddr(value.page), self.reading.buf)?;
        if checksum(self.reading.buf) != value.crc {
            return Self::corrupt(value.page, Malformed::Checksum);
        }
        Ok(())
    }

    /// Appends the page in the reading buffer and puts where it is into its leaf.
    fn relink_page(&mut self, key: &[u8], value: PageValue) -> Result<(), TreeError<P::Error>> {
        let placement = Placement::Moved { from: PageAddr(value.page) };
        let new = self.append_page(None, None, key, placement)?;
        self.journal.append(new.page);
        self.journal.supersede(value.page);
        self.edit(key, Some(&new.to_bytes()), Retire::Nothing).map(|_| ())
    }
}

/// The change that an edit of a small value is.
pub(crate) fn small_change<'a>(edit: &Edit<'a>) -> Change<'a> {
    Change { key: edit.key, tag: TAG_INLINE, value: edit.value }
}

/// The page that what a leaf holds leads to, if it is a page value or a resident one.
fn page_of(stored: &[u8]) -> Option<u32> {
    let resident = || Resident::parse(stored).map(|value| value.page);
    PageValue::parse(stored).map(|value| value.page).or_else(resident)
}

/// What is known of a bare page.
pub(crate) enum Owner {
    /// If anything leads to it, then this key.
    Key(Note),
    /// Nothing leads to it.
    Nobody,
    /// Something may lead to it.
    Unknown,
}
