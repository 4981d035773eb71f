//! Page values on their way to cells with two bits.
//!
//! There a page shares its cells with a later one of its block, and a power cut in the program of that one may destroy it. So a
//! page value that is moved there is a *copy* first: programmed, noted, and named by nothing. It waits in memory until it is
//! *settled*, which is when its partner has been programmed, at most four pages later with the usual schemes. Then its leaf is
//! programmed with the new address, once for all copies of that leaf that are settled.
//!
//! * **T16** A copy is named when it is settled, and its source superseded when the commit that names it is durable. Named
//!   before, a cut in the program of its partner would destroy a page that was acknowledged long ago, with its source erased.
//!   Superseded before, a cut would bring back an entry whose page is gone.
//! * **T17** Between the last look at what had to be programmed elsewhere and the commit, nothing is programmed in a block whose
//!   exposed pages that commit names. A program that fails there would leave the commit with the address of a page that is lost.
//!
//! What the user does meanwhile wins: a copy whose source is not what its key leads to any more is dropped. The list is in memory only; after
//! a cut the sources are what counts, and copies are pages to which nothing leads.
//!
//! The alternative, to name each page at once and leave its partner out, loses half of the block where every leaf has one page to be
//! moved, and a sixth with sixteen.

use nandu_media::features::MLC;
use nandu_media::journal::Change;
use nandu_media::notes::{NOTE_KEY_SIZE_MAX, Note};
use nandu_media::value::{PageValue, TAG_PAGE};
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::apply::Retire;
use crate::changes::UNSYNCED;
use crate::merge::Own;
use crate::pages::{Examined, Pages, Placement};
use crate::tree::Tree;
use nandu_cells::Cells;

/// Bytes of memory for a copy: where it comes from, where it is, its checksum, a flag, and the key with its size.
const COPY_SIZE: usize = 4 + 4 + 4 + 1 + 1 + NOTE_KEY_SIZE_MAX;

/// Fewest copies that are of use: more than can wait for their partners.
const COUNT_MIN: usize = 8;

/// How many times as many pages as may wait have to have room, for copies to wait at all.
const LISTS_LOW: usize = 4;

/// Most times that room is made by naming copies for one operation.
pub(crate) const SETTLED_MAX: u32 = 16;

/// Bytes of memory for so many copies.
pub(crate) const fn memory_size(copy_count: usize) -> usize {
    COPY_SIZE * if copy_count == 0 || copy_count >= COUNT_MIN { copy_count } else { COUNT_MIN }
}

/// A page value that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    /// Where it was and, until the copy is named, is.
    from: u32,
    crc: u32,
    /// The copy, and the key.
    note: Note,
}

impl Waiting {
    fn source(&self) -> PageValue {
        PageValue { page: self.from, crc: self.crc }
    }

    fn copy(&self) -> PageValue {
        PageValue { page: self.note.page, crc: self.crc }
    }
}

/// Copies that no commit names, the one that waits longest first.
pub(crate) struct Copies<'m> {
    memory: &'m mut [u8],
    count: usize,
}

impl<'m> Copies<'m> {
    /// `memory` has [`memory_size`] bytes.
    pub(crate) fn new(memory: &'m mut [u8]) -> Copies<'m> {
        Copies { memory, count: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.memory.len() / COPY_SIZE
    }

    /// Without the feature `mlc` there never is a copy.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        if MLC { self.count } else { 0 }
    }

    fn is_full(&self) -> bool {
        self.count == self.capacity()
    }

    fn bytes(&self, index: usize) -> &[u8] {
        &self.memory[COPY_SIZE * index..COPY_SIZE * (index + 1)]
    }

    fn word(&self, index: usize, at: usize) -> u32 {
        let bytes = &self.bytes(index)[at..];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn get(&self, index: usize) -> Option<Waiting> {
        let bytes = self.bytes(index);
        let note = Note::new(self.word(index, 4), &bytes[14..14 + usize::from(bytes[13])])?;
        Some(Waiting { from: self.word(index, 0), crc: self.word(index, 8), note })
    }

    fn push(&mut self, copy: &Waiting) {
        let at = COPY_SIZE * self.count;
        let bytes = &mut self.memory[at..at + COPY_SIZE];
        bytes[..4].copy_from_slice(&copy.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&copy.note.page.to_le_bytes());
        bytes[8..12].copy_from_slice(&copy.crc.to_le_bytes());
        let key = copy.note.key();
        (bytes[12], bytes[13]) = (0, key.len() as u8);
        bytes[14..14 + key.len()].copy_from_slice(key);
        self.count += 1;
    }

    fn remove(&mut self, index: usize) {
        self.memory.copy_within(COPY_SIZE * (index + 1)..COPY_SIZE * self.count, COPY_SIZE * index);
        self.count -= 1;
    }

    /// Where the copies are.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u32> + use<'_, 'm> {
        (0..self.len()).map(|index| self.word(index, 4))
    }

    fn position_of(&self, page: u32) -> Option<usize> {
        self.pages().position(|copy| copy == page)
    }

    /// Whether a page was copied and waits for a commit that names the copy.
    fn has_source(&self, page: u32) -> bool {
        (0..self.len()).any(|index| self.word(index, 0) == page)
    }

    fn set_page(&mut self, index: usize, page: u32) {
        self.memory[COPY_SIZE * index + 4..][..4].copy_from_slice(&page.to_le_bytes());
    }

    /// Says whether the buffers lead to the copy, which a commit then names.
    fn set_linked(&mut self, index: usize, is_linked: bool) {
        self.memory[COPY_SIZE * index + 12] = is_linked.into();
    }

    fn unlink_all(&mut self) {
        (0..self.count).for_each(|index| self.set_linked(index, false));
    }

    /// Drops the copies that a commit names now.
    fn drop_linked(&mut self) {
        for index in (0..self.count).rev() {
            if self.bytes(index)[12] == 1 {
                self.remove(index);
            }
        }
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Whether a page is a copy that waits for a commit that names it: needed, although nothing leads to it.
    pub(crate) fn is_copy(&self, page: u32) -> bool {
        self.copies.position_of(page).is_some()
    }

    /// Copies a page value, which this key leads to, to cells with two bits. Programs it, sometimes a Summary, and, when many copies wait,
    /// a leaf for some of those.
    pub(crate) fn copy_out(&mut self, key: &[u8], value: PageValue) -> Result<Examined, TreeError<P::Error>> {
        if self.copies.has_source(value.page) || self.copies.capacity() == 0 {
            return Ok(Examined::Live);
        }
        if self.copies.is_full() && !self.name_some()? {
            self.name_copies()?;
        }
        if !self.append_copy(key, value)? {
            return Ok(Examined::Live);
        }
        // A leaf for each page copied, if need be, and no more, so that an examination has a bound.
        if self.copies.len() > self.copies_wanted() {
            self.name_some()?;
        }
        Ok(if self.copies.has_source(value.page) { Examined::Copied } else { Examined::Moved })
    }

    /// Programs the copy. False if there is no room for its note.
    #[inline(never)]
    fn append_copy(&mut self, key: &[u8], value: PageValue) -> Result<bool, TreeError<P::Error>> {
        let mut outcome = self.copy_page(key, value);
        while matches!(outcome, Err(TreeError::NotesFull)) && !self.copies.is_empty() {
            // Each of them has two notes.
            self.name_for_room()?;
            outcome = self.copy_page(key, value);
        }
        match outcome {
            Err(TreeError::NotesFull) => return Ok(false),
            outcome => outcome?,
        }
        let copy = self.append_page(None, None, key, Placement::Moved { from: PageAddr(value.page) })?;
        match Note::new(copy.page, key) {
            Some(note) => self.copies.push(&Waiting { from: value.page, crc: value.crc, note }),
            None => return Self::corrupt(value.page, crate::Malformed::Node),
        }
        Ok(true)
    }

    /// Copies that may wait so that others of their leaves come to them: few where the medium is short of room, since both they and
    /// their sources take some.
    fn copies_wanted(&self) -> usize {
        let is_short = (self.pages.move_room() as usize) < LISTS_LOW * self.copies.capacity();
        if is_short { self.copies.capacity() / 4 } else { self.copies.capacity() * 3 / 4 }
    }

    /// Programs the leaf of the first copy that is settled with the addresses of all that are. False if none is. Nothing may be unsynced.
    pub(crate) fn name_some(&mut self) -> Result<bool, TreeError<P::Error>> {
        self.take_rescued(&mut None)?;
        let is_ready = |index: &usize| self.is_nameable(self.copies.word(*index, 4));
        let Some(index) = (0..self.copies.len()).find(is_ready) else { return Ok(false) };
        let Some(copy) = self.copies.get(index) else { return Ok(false) };
        let key = copy.note.key();
        if self.page_value(key)? != Some(copy.source()) {
            // Overwritten or deleted since.
            self.copies.remove(index);
            self.bury_page(copy.note.page);
            return Ok(true);
        }
        let placement = Some(Placement::Moved { from: PageAddr(copy.from) });
        let outcome = self.merge_with(key, Some(Own::Name(key)), placement);
        let count = self.copies.len();
        match outcome {
            Ok(_) => self.copies.drop_linked(),
            Err(_) => self.copies.unlink_all(),
        }
        if outcome.is_ok() && self.copies.len() == count {
            // A change that went to the leaf just now replaced the source.
            self.copies.remove(index);
            self.bury_page(copy.note.page);
        }
        if self.copies.is_empty() {
            self.pages.forget_copied();
        }
        outcome.map(|_| true)
    }

    /// Whether a commit may name a copy (T16).
    fn is_nameable(&self, page: u32) -> bool {
        self.broken.names_exposed() || self.pages.is_settled(PageAddr(page))
    }

    /// Names all copies that are settled. Programs a leaf for each that they are in. Does nothing where changes wait for a sync.
    pub fn name_settled(&mut self) -> Result<(), TreeError<P::Error>> {
        while self.changes.unsynced() == 0 && self.name_some()? {}
        Ok(())
    }

    /// Copies of page values that wait for a commit that names them.
    pub fn copy_count(&self) -> usize {
        self.copies.len()
    }

    /// Names the copies of one leaf that are settled; false if there are none. Programs that leaf. Does nothing where changes wait for a
    /// sync.
    ///
    /// # Errors
    ///
    /// The medium's.
    pub fn name_leaf(&mut self) -> Result<bool, TreeError<P::Error>> {
        if self.changes.unsynced() > 0 { Ok(false) } else { self.name_some() }
    }

    /// Makes fewer copies wait: names those that are settled, and only if there are none the others.
    pub(crate) fn name_for_room(&mut self) -> Result<(), TreeError<P::Error>> {
        let count = self.copies.len();
        self.name_settled()?;
        if self.copies.len() == count { self.name_copies() } else { Ok(()) }
    }

    /// Names every copy, those that are not settled at the price of the pages that would have been their partners: for when
    /// the room of their sources is needed. Nothing may be unsynced.
    pub(crate) fn name_copies(&mut self) -> Result<(), TreeError<P::Error>> {
        while !self.copies.is_empty() {
            for index in 0..self.copies.len() {
                self.pages.settle(PageAddr(self.copies.word(index, 4)));
            }
            self.before_commit()?;
            if !self.name_some()? {
                // It had to be programmed elsewhere, and there is no room for that.
                let page = self.copies.word(0, 4);
                self.copies.remove(0);
                self.bury_page(page);
            }
        }
        self.pages.forget_copied();
        Ok(())
    }

    /// Gives up every copy: their sources are what counts.
    pub(crate) fn drop_copies(&mut self) {
        while !self.copies.is_empty() {
            let page = self.copies.word(self.copies.len() - 1, 4);
            self.copies.remove(self.copies.len() - 1);
            self.bury_page(page);
        }
        self.pages.forget_copied();
    }

    /// Puts the addresses of copies into the leaf of this key, which has its changes: of that key, and of others in the same leaf.
    #[inline(never)]
    pub(crate) fn link_copies(&mut self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        self.copies.unlink_all();
        let place = self.edited_leaf(key)?;
        let first = self.page_value_in(&place, key);
        for index in 0..self.copies.len() {
            let Some(copy) = self.copies.get(index) else { continue };
            let is_first = copy.note.key() == key && first == Some(copy.source());
            if is_first && self.is_nameable(copy.note.page) {
                self.link_copy(index, &copy)?;
                break;
            }
        }
        for index in 0..self.copies.len() {
            if !self.path[0].present || self.pending.staged.is_some() || !self.journal.has_room() {
                break;
            }
            let Some(copy) = self.copies.get(index) else { continue };
            let leaf = &self.assembly[self.path[0].range()];
            let entry = self.cells.leaf_find(leaf, copy.note.key()).ok();
            let value = entry.and_then(|entry| PageValue::parse(self.cells.leaf_value(leaf, entry)));
            if value == Some(copy.source()) && self.is_nameable(copy.note.page) {
                self.link_copy(index, &copy)?;
            }
        }
        Ok(())
    }

    fn link_copy(&mut self, index: usize, copy: &Waiting) -> Result<(), TreeError<P::Error>> {
        self.journal.supersede(copy.from);
        self.copies.set_linked(index, true);
        self.edit(copy.note.key(), Some(&copy.copy().to_bytes()), Retire::Nothing).map(|_| ())
    }

    /// Before what a commit says is put together: finds out which pages are elsewhere, and writes the Summary of a block that would have
    /// no page left for one. Uses the reading buffer.
    pub(crate) fn before_commit(&mut self) -> Result<(), TreeError<P::Error>> {
        if !self.pages.has_pairs() {
            return Ok(());
        }
        self.take_rescued(&mut None)?;
        if !self.notes.has_room(true) && self.summarize_any(false)? {
            self.take_rescued(&mut None)?;
        }
        while let Some(stream) = self.pages.summary_due() {
            if !self.summarize(stream)? {
                break;
            }
            self.take_rescued(&mut None)?;
        }
        Ok(())
    }

    /// Corrects the address of each page that had to be programmed elsewhere since the program of its partner failed: such a page
    /// is a change that waits for a sync, a copy, or the page at hand; what a commit names has no partner that is programmed. What there is
    /// no room for stays where the medium has it, which refuses commits until then.
    #[inline(never)]
    pub(crate) fn take_rescued(&mut self, own: &mut Option<u32>) -> Result<(), TreeError<P::Error>> {
        while self.pages.has_pairs() && self.notes.has_room(true) {
            let (from, to) = match self.pages.rescue() {
                Ok(Some((from, to))) => (from.0, to.0),
                Ok(None) => break,
                Err(error) if self.pages.is_full(&error) => break,
                Err(error) => return Err(error.into()),
            };
            self.reading.forget_page(to);
            self.begin_block(to);
            if *own == Some(from) {
                *own = Some(to);
                self.notes.move_page(from, to);
            } else if let Some(index) = self.copies.position_of(from) {
                self.copies.set_page(index, to);
                if let Some(copy) = self.copies.get(index) {
                    self.notes.remove(from);
                    self.notes.push(&copy.note);
                }
            } else {
                self.correct_change(from, to);
            }
        }
        Ok(())
    }

    /// The page of a change that waits for a sync is elsewhere.
    fn correct_change(&mut self, from: u32, to: u32) {
        for index in 0..self.changes.len() {
            let value = self.changes.stored(index).and_then(PageValue::parse).filter(|value| value.page == from);
            let (Some(value), UNSYNCED) = (value, self.changes.home(index).journal) else { continue };
            let (Some(note), home) = (Note::new(to, self.changes.key(index)), self.changes.home(index)) else {
                continue;
            };
            let bytes = PageValue { page: to, ..value }.to_bytes();
            let change = Change { key: note.key(), tag: TAG_PAGE, value: Some(&bytes[1..]) };
            let is_set = self.changes.set(&change, home);
            assert!(is_set, "a change takes the place of one of its size");
            self.notes.remove(from);
            self.notes.push(&note);
            return;
        }
        // Nothing leads to it: it was given up, or replaced before anything durable led to it.
        self.bury_page(to);
    }
}
