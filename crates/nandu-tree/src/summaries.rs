//! Summaries, and notes in commits: programming them, and finding whose a bare page is.

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::features::FILES;
use nandu_media::notes::{NOTE_SIZE_MAX, Note, NoteList, NotesPage, SUMMARIES_MAX, notes_size, write_notes};
use nandu_media::section::SECTION_FRONT_SIZE;
use nandu_media::value::PageValue;
use nandu_nand::PageAddr;

use crate::descent::Seek;
use crate::page_values::{Owner, PAGE_KEY_SIZE_MAX};
use crate::pages::{Examined, Pages, Placement, SummaryRead};
use crate::tree::{State, Tree};
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

/// Summaries that room for a page may take: of a block that ends, of one that has been begun, and of each other stream.
const SUMMARIES_FOR_ROOM: u32 = 8;

/// Most times that noted pages are gone through for one operation, each of which leaves fewer of them.
const RESCUES_MAX: u32 = 8;

/// Summaries named in commits, beyond which a block that one of them is in is emptied.
const SUMMARIES_WANTED: usize = SUMMARIES_MAX / 2;

/// Where the notes of a commit go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotesPlace {
    /// There are none.
    None,
    /// Into a section with so many bytes of content.
    Section(usize),
    /// Into a page behind it, which is the commit then.
    Page,
}

impl NotesPlace {
    /// Bytes that the section takes in its page.
    pub(crate) fn size(self) -> usize {
        if let NotesPlace::Section(size) = self { SECTION_FRONT_SIZE + size } else { 0 }
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Makes room for one more bare page and for the note about it. Programs a Summary where only the last page of a block is left,
    /// or where there is no room for another note. False if that does not help. Uses the reading buffer.
    pub(crate) fn make_bare_room(
        &mut self,
        placement: Placement,
        is_reserve: bool,
    ) -> Result<bool, TreeError<P::Error>> {
        for _ in 0..SUMMARIES_FOR_ROOM {
            let stream = self.pages.bare_stream(placement);
            let room = self.pages.bare_room(stream);
            if room == 1 || (room > 1 && self.is_summary_due(stream)) {
                self.summarize(stream)?;
            } else if self.notes.has_room(is_reserve) {
                return Ok(true);
            } else if !self.summarize_any(false)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The same when nothing waits for a sync: pages are moved out of blocks to which no Summary is written, once more if the collector has
    /// made the blocks since that were missing for it.
    pub(crate) fn make_bare_room_at_last(&mut self, placement: Placement) -> Result<bool, TreeError<P::Error>> {
        if self.make_bare_room(placement, false)? {
            return Ok(true);
        }
        self.rescue()?;
        // What had room before a cut takes what is kept for moves.
        self.make_bare_room(placement, self.frees)
    }

    /// The notes about pages of the open block of a stream.
    fn open_notes(&self, stream: u8) -> impl Iterator<Item = Note> {
        self.notes.iter().filter(move |note| self.pages.bare_stream_of(PageAddr(note.page)) == Some(stream))
    }

    /// Whether a Summary has no room for one more page.
    fn is_summary_due(&self, stream: u8) -> bool {
        let size = notes_size(1, self.open_notes(stream));
        size + NOTE_SIZE_MAX > self.assembly.len() - self.header_size
    }

    /// Programs a Summary of an open block that has notes; false if there is none. `spares_pairs`: not in one whose pages share their
    /// cells with others.
    pub(crate) fn summarize_any(&mut self, spares_pairs: bool) -> Result<bool, TreeError<P::Error>> {
        let open = |note: Note| self.pages.bare_stream_of(PageAddr(note.page));
        let may = |stream: &u8| !(spares_pairs && self.pages.is_paired(*stream));
        let stream = self.notes.iter().filter_map(open).find(may);
        match stream {
            Some(stream) => self.summarize(stream),
            None => Ok(false),
        }
    }

    /// Programs a Summary of the notes about the open block of a stream, and drops these. If that fails they stay, and the block is
    /// closed. False if nothing was tried. Uses the reading buffer.
    pub(crate) fn summarize(&mut self, stream: u8) -> Result<bool, TreeError<P::Error>> {
        let is_of_block = |page: u32| self.pages.bare_stream_of(PageAddr(page)) == Some(stream);
        let before = self.notes.summaries().iter().copied().find(|&page| is_of_block(page));
        let is_last = self.pages.bare_room(stream) == 1 || self.pages.summary_due() == Some(stream);
        if !is_last && before.is_none() && self.notes.summaries().len() == SUMMARIES_MAX {
            // Commits could not name it.
            return Ok(false);
        }
        if !self.compose_summary(stream, before) {
            return Ok(false);
        }
        let Some(page) = self.pages.append_summary(self.reading.buf, stream)? else { return Ok(true) };
        let (pages, block) = (&self.pages, self.pages.block_of(page));
        let is_elsewhere = |other: u32| pages.block_of(PageAddr(other)) != block;
        self.notes.retain(is_elsewhere);
        self.notes.retain_summaries(is_elsewhere);
        self.notes.cached = self.notes.cached.filter(|&summary| summary != page.0);
        self.notes.unsummed = None;
        let behind = pages.last_of_block(page).0.saturating_sub(page.0) as usize;
        let ends_block = behind == 0 || (pages.bare_stream_of(page).is_none() && behind <= pages.exposed_max());
        if !ends_block {
            let is_named = self.notes.push_summary(page.0);
            assert!(is_named, "there is room for the name of a Summary");
        }
        Ok(true)
    }

    /// Puts a Summary of the notes about the open block of a stream together, in the reading buffer; false if they do not fit.
    #[inline(never)]
    fn compose_summary(&mut self, stream: u8, before: Option<u32>) -> bool {
        self.reading.forget();
        let notes = self.notes.iter().filter(|note| self.pages.bare_stream_of(PageAddr(note.page)) == Some(stream));
        let body = &mut self.reading.buf[self.header_size..];
        let Some(size) = write_notes(body, before.as_slice(), notes) else { return false };
        body[size..].fill(0xFF);
        true
    }

    /// Decides where the notes of a commit go in which so many bytes are free. Programs Summaries if they do not fit; if notes are
    /// left about blocks to which none can be written, the commit is a page behind. Uses the reading buffer then.
    pub(crate) fn place_notes(&mut self, room: usize) -> Result<NotesPlace, TreeError<P::Error>> {
        if self.notes.is_empty() {
            return Ok(NotesPlace::None);
        }
        let (pages, notes) = (&self.pages, &mut self.notes);
        notes.retain_summaries(|page| pages.is_bare(PageAddr(page)));
        for _ in 0..=SUMMARIES_FOR_ROOM {
            if self.notes.is_empty() {
                return Ok(NotesPlace::None);
            }
            let size = self.notes_size();
            if size <= room {
                return Ok(NotesPlace::Section(size - SECTION_FRONT_SIZE));
            }
            if !self.summarize_any(self.pages.promises_exposed())? {
                break;
            }
        }
        Ok(NotesPlace::Page)
    }

    /// Programs the page that is the commit for the sake of its notes, with this newest journal page. Uses the scratch buffer.
    pub(crate) fn append_notes(
        &mut self,
        journal: Option<u32>,
        placement: Placement,
    ) -> Result<u32, TreeError<P::Error>> {
        let State { root, height, records } = self.state;
        let front = NotesPage { root, records, height, has_values: self.pages.has_values(), journal };
        front.write(self.scratch, self.header_size);
        let body = &mut self.scratch[NotesPage::front(self.header_size)..];
        let size = self.notes.write(body, &self.journal);
        assert!(size.is_some(), "notes fit a page");
        body[size.unwrap_or(0)..].fill(0xFF);
        let page = self.pages.append(self.scratch, PageKind::Notes, placement, true)?.0;
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        Ok(page)
    }

    /// A commit is durable, and its notes are in this page, or in it.
    pub(crate) fn replace_notes_page(&mut self, page: Option<u32>) {
        if !FILES {
            return;
        }
        let before = core::mem::replace(&mut self.notes.page, page);
        if let Some(before) = before {
            self.pages.supersede(PageAddr(before));
        }
    }

    /// Finds out about a page that was a commit for the sake of its notes, and moves it if it still is.
    #[inline(never)]
    pub(crate) fn examine_notes(&mut self, page: PageAddr, moves: bool) -> Result<Examined, TreeError<P::Error>> {
        if self.notes.page != Some(page.0) {
            return Ok(Examined::Dead);
        }
        if !moves {
            return Ok(Examined::Live);
        }
        let new = self.append_notes(self.journals.newest_page(), Placement::Moved { from: page })?;
        self.replace_notes_page(Some(new));
        Ok(Examined::Moved)
    }

    /// Takes over the notes of the newest commit, a list in the reading buffer.
    pub(crate) fn take_notes(
        &mut self,
        commit: PageAddr,
        place: core::ops::Range<usize>,
    ) -> Result<(), TreeError<P::Error>> {
        let corrupt = |why| TreeError::Corrupt { page: commit, why };
        let list = NoteList::parse(&self.reading.buf[place]).map_err(corrupt)?;
        if !self.pages.has_bare() {
            return Err(corrupt(Malformed::Cells));
        }
        let mut pages = list.notes().map(|note| note.page).chain(list.summaries());
        if pages.any(|page| page >= self.page_count) {
            return Err(corrupt(Malformed::PageNumber));
        }
        self.pages.note_values();
        if self.notes.take(&list) { Ok(()) } else { Err(TreeError::NoteCount(list.notes().count())) }
    }

    /// Moves pages out of blocks to which nothing is appended any more and that have no Summary at their end: they were open at a
    /// cut, or a program failed there. So notes stay few. Moves at most the pages of such a block; what there is no room for
    /// stays noted, and is moved when the collector has made some: this comes before that, and if it took the blocks that the
    /// collector needs, cut after cut, nothing could be moved on the chip any more.
    pub(crate) fn rescue(&mut self) -> Result<(), TreeError<P::Error>> {
        if self.notes.is_empty() || self.notes.is_rescuing || self.changes.unsynced() > 0 {
            return Ok(());
        }
        self.notes.is_rescuing = true;
        let outcome = self.rescue_all();
        self.notes.is_rescuing = false;
        outcome
    }

    fn rescue_all(&mut self) -> Result<(), TreeError<P::Error>> {
        for _ in 0..RESCUES_MAX {
            let (notes, copies) = (self.notes.len(), self.copies.len());
            self.rescue_noted()?;
            self.rescue_named()?;
            if self.copies.len() <= copies {
                return Ok(());
            }
            // Until they are named, the pages that they come from stay noted, and may have left no room for the rest.
            self.name_copies()?;
            if self.notes.len() >= notes {
                return Ok(());
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn rescue_noted(&mut self) -> Result<(), TreeError<P::Error>> {
        let mut from = 0;
        while let Some(note) = self.notes.find_from(from) {
            from = note.page.saturating_add(1);
            if self.pages.bare_stream_of(PageAddr(note.page)).is_some() {
                continue;
            }
            if !self.pages.has_spare_blocks() {
                break;
            }
            if self.rescue_page(note.page)? {
                self.notes.remove(note.page);
            }
        }
        Ok(())
    }

    /// Empties a block that commits name a Summary of and to which nothing is appended any more, if they name many.
    #[inline(never)]
    fn rescue_named(&mut self) -> Result<(), TreeError<P::Error>> {
        let mut place = 0;
        while let Some(&summary) = self.notes.summaries().get(place) {
            place += 1;
            if self.notes.summaries().len() <= SUMMARIES_WANTED {
                return Ok(());
            }
            if self.pages.bare_stream_of(PageAddr(summary)).is_some() {
                continue;
            }
            match self.empty_named(summary) {
                Ok(true) => {
                    self.notes.retain_summaries(|other| other != summary);
                    return Ok(());
                }
                Ok(false) => return Ok(()),
                // What it names may live, so it stays named until its block is erased, and the next one is emptied.
                Err(TreeError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves the pages that a Summary names; false if some have to stay, an error if it cannot be read.
    fn empty_named(&mut self, summary: u32) -> Result<bool, TreeError<P::Error>> {
        let (mut from, mut is_empty) = (0, true);
        while let Some(page) = self.next_named(summary, from)? {
            from = page.saturating_add(1);
            is_empty &= self.pages.has_spare_blocks() && self.rescue_page(page)?;
        }
        Ok(is_empty)
    }

    /// Moves a page if it lives. False if it has to stay where it is.
    fn rescue_page(&mut self, page: u32) -> Result<bool, TreeError<P::Error>> {
        let page = PageAddr(page);
        match self.examine_bare(page, true) {
            Ok(outcome) => Ok(matches!(outcome, Examined::Dead | Examined::Moved)),
            Err(TreeError::Corrupt { page: corrupt, .. }) if corrupt == page => Ok(false),
            Err(TreeError::Pages(error)) => Ok(self.pages.excuse(page, error)? == Examined::Dead),
            Err(error) => Err(error),
        }
    }

    /// The first page from this one on that a Summary names, or one before it in its block. Reads all of them; an error if one cannot
    /// be read.
    fn next_named(&mut self, summary: u32, from: u32) -> Result<Option<u32>, TreeError<P::Error>> {
        let block = self.pages.block_of(PageAddr(summary));
        let mut at = summary;
        let mut first = None;
        loop {
            let is_in_scratch = self.values.is_building();
            if self.load_summary(at, is_in_scratch)? != SummaryRead::Summary {
                return Self::corrupt(at, Malformed::Checksum);
            }
            let buf = if is_in_scratch { &*self.scratch } else { &*self.values.buf };
            let corrupt = |why| TreeError::Corrupt { page: PageAddr(at), why };
            let list = NoteList::parse(&buf[self.header_size..]).map_err(corrupt)?;
            let mut pages = list.notes().map(|note| note.page);
            let is_wanted =
                |page: &u32| *page >= from && *page < self.page_count && self.pages.block_of(PageAddr(*page)) == block;
            first = pages.find(is_wanted).or(first);
            let before = list.summaries().next().filter(|&before| before < at);
            match before.filter(|&before| before >= from && self.pages.block_of(PageAddr(before)) == block) {
                Some(before) => at = before,
                None => return Ok(first),
            }
        }
    }

    /// Whose a bare page is. Reads the Summaries of its block from the last one on, unless the page is noted. Where they cannot be
    /// read, reads every leaf.
    pub(crate) fn owner_of(&mut self, page: PageAddr) -> Result<Owner, TreeError<P::Error>> {
        match self.named_by_summary(page)? {
            Owner::Unknown => self.adopt(page),
            owner => Ok(owner),
        }
    }

    /// Whose a bare page is by a note or a Summary; unknown if a Summary cannot be read.
    pub(crate) fn named_by_summary(&mut self, page: PageAddr) -> Result<Owner, TreeError<P::Error>> {
        let mut met_erased = false;
        match self.search_summaries(page, &mut met_erased)? {
            // A page that reads as erased may hold a Summary, if the read brought what was read before it (F16): so before a page
            // is given up, it is looked for once more.
            Owner::Nobody | Owner::Unknown if met_erased => self.search_summaries(page, &mut met_erased),
            owner => Ok(owner),
        }
    }

    #[inline(never)]
    fn search_summaries(&mut self, page: PageAddr, met_erased: &mut bool) -> Result<Owner, TreeError<P::Error>> {
        if let Some(note) = self.notes.find(page.0) {
            return Ok(Owner::Key(note));
        }
        let block = self.pages.block_of(page);
        if self.notes.adopted == Some(block) || self.notes.unsummed == Some((block, true)) {
            return Ok(Owner::Nobody);
        }
        let is_of_block = |other: u32| self.pages.block_of(PageAddr(other)) == block;
        let named = self.notes.summaries().iter().copied().find(|&summary| is_of_block(summary));
        if named.is_none() && self.pages.bare_stream_of(page).is_some() {
            return Ok(Owner::Nobody);
        }
        // Where there are two in a block, neighbours are in the same one.
        let cached = self.notes.cached.filter(|&at| is_of_block(at) && at > page.0);
        if cached.is_some()
            && let Ok(list) = NoteList::parse(&self.values.buf[self.header_size..])
            && let Some(note) = list.notes().find(|note| note.page == page.0)
        {
            return Ok(Owner::Key(note));
        }
        let mut at = named.unwrap_or(self.pages.last_of_block(page).0);
        // Behind the last Summary of a block the partners of pages that were promised stay erased.
        let mut erased_left = if named.is_none() { self.pages.exposed_max() } else { 0 };
        // Each Summary stands before the one that names it.
        while at > page.0 {
            let is_in_scratch = self.values.is_building();
            let read = self.load_summary(at, is_in_scratch)?;
            *met_erased |= read == SummaryRead::Erased;
            match read {
                SummaryRead::Summary => erased_left = 0,
                SummaryRead::Erased if erased_left > 0 => {
                    (at, erased_left) = (at - 1, erased_left - 1);
                    continue;
                }
                SummaryRead::Erased if named.is_none() => {
                    self.notes.unsummed = Some((block, self.notes.unsummed == Some((block, false))));
                    return Ok(Owner::Nobody);
                }
                SummaryRead::Erased | SummaryRead::Unclear => return Ok(Owner::Unknown),
            }
            let buf = if is_in_scratch { &*self.scratch } else { &*self.values.buf };
            let Ok(list) = NoteList::parse(&buf[self.header_size..]) else { return Ok(Owner::Unknown) };
            if let Some(note) = list.notes().find(|note| note.page == page.0) {
                return Ok(Owner::Key(note));
            }
            let before = list.summaries().next().filter(|&before| before < at);
            match before.filter(|&before| before < self.page_count && self.pages.block_of(PageAddr(before)) == block) {
                Some(before) => at = before,
                None => break,
            }
        }
        Ok(Owner::Nobody)
    }

    /// Visits the keys that the pages in the block of this page belong to or once did, as far as notes and Summaries say it. Reads the
    /// Summaries of the block, nearly always one.
    ///
    /// # Errors
    ///
    /// The medium's; a Summary that cannot be read is passed over.
    pub fn visit_owners(&mut self, page: PageAddr, visit: &mut dyn FnMut(&[u8])) -> Result<(), TreeError<P::Error>> {
        self.values.holds = None;
        let block = self.pages.block_of(page);
        let is_of_block = |pages: &P, other: u32| pages.block_of(PageAddr(other)) == block;
        let notes = self.notes.iter().filter(|note| is_of_block(&self.pages, note.page));
        notes.for_each(|note| visit(note.key()));
        let mut summaries = self.notes.summaries().iter().copied();
        let named = summaries.find(|&summary| is_of_block(&self.pages, summary));
        let last = self.pages.last_of_block(page).0;
        let (mut at, mut erased_left) = (named.unwrap_or(last), self.pages.exposed_max());
        loop {
            let is_in_scratch = self.values.is_building();
            let before = match self.load_summary(at, is_in_scratch)? {
                SummaryRead::Summary => {
                    erased_left = 0;
                    let buf = if is_in_scratch { &*self.scratch } else { &*self.values.buf };
                    let Ok(list) = NoteList::parse(&buf[self.header_size..]) else { return Ok(()) };
                    list.notes().for_each(|note| visit(note.key()));
                    list.summaries().next()
                }
                SummaryRead::Erased if erased_left > 0 => {
                    erased_left -= 1;
                    at.checked_sub(1)
                }
                SummaryRead::Erased | SummaryRead::Unclear => return Ok(()),
            };
            // Each Summary stands before the one that names it, so this ends.
            match before.filter(|&before| before < at && is_of_block(&self.pages, before)) {
                Some(before) => at = before,
                None => return Ok(()),
            }
        }
    }

    /// Reads a page that may be a Summary, to the value buffer if that is free, and keeps it there.
    fn load_summary(&mut self, at: u32, is_in_scratch: bool) -> Result<SummaryRead, TreeError<P::Error>> {
        if is_in_scratch {
            return Ok(self.pages.read_summary(PageAddr(at), self.scratch)?);
        }
        if self.notes.cached == Some(at) {
            return Ok(SummaryRead::Summary);
        }
        self.values.holds = None;
        self.notes.cached = None;
        let found = self.pages.read_summary(PageAddr(at), self.values.buf)?;
        self.notes.cached = (found == SummaryRead::Summary).then_some(at);
        Ok(found)
    }

    /// The last Summary of a block cannot be read: it was torn by a cut, or has decayed. Finds whose the pages of the block are by
    /// reading every leaf, and notes them, as far as there is room; when the last of them has been moved, nobody asks again.
    #[inline(never)]
    fn adopt(&mut self, page: PageAddr) -> Result<Owner, TreeError<P::Error>> {
        let block = self.pages.block_of(page);
        let mut is_whole = true;
        let (mut fence, mut key) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        let mut index = 0;
        while index < self.changes.len() {
            key.set(self.changes.key(index));
            // What a leaf has taken may lead to a page that is another key's by now.
            if self.find_change(key.as_slice())?.is_some() {
                let value = self.changes.stored(self.changes.lower(key.as_slice())).and_then(PageValue::parse);
                is_whole &= self.adopt_value(block, key.as_slice(), value);
            }
            // Changes before this one may be gone as well.
            index = self.changes.lower(key.as_slice());
            index += usize::from(self.changes.find(key.as_slice()).is_ok());
        }
        self.cells.minimum(&mut fence);
        for _ in 0..self.page_count {
            self.descend(Seek::At(fence.as_slice()), 1)?;
            let place = self.leaf_place(false)?;
            for index in self.unspent(self.bytes(&place)) {
                let leaf = self.bytes(&place);
                let value = PageValue::parse(self.cells.leaf_value(leaf, index));
                self.cells.leaf_key(leaf, index, &mut key);
                is_whole &= self.adopt_value(block, key.as_slice(), value);
            }
            let before = fence;
            if self.fence_above(0, &mut fence).is_none() {
                break;
            }
            if before.as_slice() >= fence.as_slice() {
                return Self::corrupt(self.state.root, Malformed::Node);
            }
        }
        if is_whole {
            self.notes.adopted = Some(block);
        }
        Ok(match self.notes.find(page.0) {
            Some(note) => Owner::Key(note),
            None if is_whole => Owner::Nobody,
            None => Owner::Unknown,
        })
    }

    /// Notes whose a page of this block is. False if there is no room for the note.
    fn adopt_value(&mut self, block: u32, key: &[u8], value: Option<PageValue>) -> bool {
        let is_there =
            |value: &PageValue| value.page < self.page_count && self.pages.block_of(PageAddr(value.page)) == block;
        match value.filter(is_there) {
            None => true,
            Some(_) if key.len() > PAGE_KEY_SIZE_MAX => true,
            Some(value) if self.notes.find(value.page).is_some() => true,
            Some(value) => {
                self.notes.has_room(false) && Note::new(value.page, key).is_some_and(|note| self.notes.push(&note))
            }
        }
    }
}
