//! Which keys bare pages belong to, as far as no Summary says it.
//!
//! A bare page holds the user's bytes and nothing else, so whether it lives cannot be found out from the page. For each one
//! that lives, a **note** says which key it belongs to: in memory and in the newest commit, until a **Summary** in its own block
//! does. So the newest commit and the Summaries name every bare page that lives (T9), a mount reads none of the
//! latter, and the collector finds the Summaries of a block from its last page backwards: each names the one before it.
//! What a block has whose last page is no Summary yet, the commit names too.
//!
//! The alternative, to tell a page's owner from protected bytes of the spare area, needs bytes that many parts do not have (D2). Where there are
//! some they save commits ([`tail`](crate::tail)), not Summaries.

use crate::memory::Journal;
use nandu_media::features::FILES;
use nandu_media::notes::{
    NOTE_KEY_SIZE_MAX, NOTE_SIZE_MAX, Note, NoteList, NotesPage, SUMMARIES_MAX, notes_size, write_notes,
};

/// Bytes of memory for a note: page, size of the key, key.
const NOTE_SIZE: usize = 5 + NOTE_KEY_SIZE_MAX;

/// Bytes of memory for a page that is dead when what waits for a sync is durable.
const DOOMED_SIZE: usize = 4;

/// Notes that only moves of noted pages may take, so that a page can always be moved out of a block to which no Summary is written
/// any more.
const RESERVE: usize = 2;

/// Fewest notes that are of use.
const COUNT_MIN: usize = 8;

/// Bytes of memory for so many notes.
pub(crate) const fn memory_size(note_count: usize) -> usize {
    (NOTE_SIZE + DOOMED_SIZE) * used_count(note_count)
}

/// How many notes there are memory for.
const fn used_count(note_count: usize) -> usize {
    if note_count == 0 || note_count >= COUNT_MIN { note_count } else { COUNT_MIN }
}

pub(crate) struct Notes<'m> {
    /// Notes, by ascending page.
    memory: &'m mut [u8],
    count: usize,
    /// Pages of changes that a journal page holds and an unsynced change replaced: dead when that is durable.
    doomed: &'m mut [u8],
    doomed_count: usize,
    /// The newest Summary of each block whose last page is none.
    summaries: [u32; SUMMARIES_MAX],
    summary_count: usize,
    /// Bytes for a list of notes in a page of its own.
    size_max: usize,
    /// Pages that may have to be programmed elsewhere at any time, and be noted there.
    rescued_max: usize,
    /// A commit that is there for its notes.
    pub(crate) page: Option<u32>,
    /// The Summary that the value buffer holds.
    pub(crate) cached: Option<u32>,
    /// A block whose last Summary is lost, and all of whose pages that live are noted.
    pub(crate) adopted: Option<u32>,
    /// The block whose last page was last found erased, and whether it was so twice: nothing was appended to it since.
    pub(crate) unsummed: Option<(u32, bool)>,
    /// Whether pages are being moved out of blocks that are not written to any more.
    pub(crate) is_rescuing: bool,
    /// Page values appended since the last sync, and between the two before.
    pub(crate) appended: u32,
    pub(crate) group: u32,
}

impl<'m> Notes<'m> {
    /// `memory` has [`memory_size`] bytes.
    pub(crate) fn new(memory: &'m mut [u8]) -> Notes<'m> {
        let count = memory.len() / (NOTE_SIZE + DOOMED_SIZE);
        let (memory, doomed) = memory.split_at_mut(NOTE_SIZE * count);
        Notes {
            memory,
            count: 0,
            doomed,
            doomed_count: 0,
            summaries: [0; SUMMARIES_MAX],
            summary_count: 0,
            rescued_max: 0,
            size_max: 0,
            page: None,
            cached: None,
            adopted: None,
            unsummed: None,
            is_rescuing: false,
            appended: 0,
            group: 0,
        }
    }

    /// Takes over what the medium says of itself: pages of a block that may have to be programmed elsewhere among it.
    pub(crate) fn configure(&mut self, page_size: usize, header_size: usize, rescued_max: usize) {
        self.rescued_max = rescued_max;
        self.size_max = page_size.saturating_sub(NotesPage::front(header_size)).min(u16::MAX.into());
    }

    /// Notes that there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.len() / NOTE_SIZE
    }

    /// Whether one more note can be added, so that memory and a page that is a commit for notes still have room for all.
    pub(crate) fn has_room(&self, is_reserve: bool) -> bool {
        let more = if is_reserve { 1 } else { 1 + RESERVE };
        let summaries = 4 * (SUMMARIES_MAX - self.summary_count);
        let size = self.size(|_| false) + summaries + more * NOTE_SIZE_MAX;
        let rescued = if is_reserve { 0 } else { self.rescued_max };
        self.count + more + rescued <= self.capacity() && size <= self.size_max
    }

    /// Bytes that the list takes in a commit, but for the notes of pages that are dead with it.
    pub(crate) fn size(&self, is_dead: impl Fn(u32) -> bool) -> usize {
        notes_size(self.summary_count, self.iter().filter(|note| !is_dead(note.page)))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        if FILES { self.count } else { 0 }
    }

    /// Without the feature `files` there never is a note.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.summaries().is_empty()
    }

    fn page_at(&self, index: usize) -> u32 {
        let bytes = &self.memory[NOTE_SIZE * index..];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn note_at(&self, index: usize) -> Option<Note> {
        let bytes = &self.memory[NOTE_SIZE * index..NOTE_SIZE * (index + 1)];
        Note::new(self.page_at(index), &bytes[5..5 + usize::from(bytes[4])])
    }

    /// The index of a page, or where it would be.
    fn place(&self, page: u32) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.page_at(middle).cmp(&page) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Equal => return Ok(middle),
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    pub(crate) fn find(&self, page: u32) -> Option<Note> {
        self.note_at(self.place(page).ok()?)
    }

    /// The first note of this page or of one behind it.
    pub(crate) fn find_from(&self, page: u32) -> Option<Note> {
        let (Ok(index) | Err(index)) = self.place(page);
        if index < self.count { self.note_at(index) } else { None }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Note> + use<'_, 'm> {
        (0..self.count).filter_map(|index| self.note_at(index))
    }

    /// Adds a note, in place of one about the same page. False if there is no memory for it.
    pub(crate) fn push(&mut self, note: &Note) -> bool {
        let index = match self.place(note.page) {
            Ok(index) => index,
            Err(_) if self.count == self.capacity() => return false,
            Err(index) => {
                self.memory.copy_within(NOTE_SIZE * index..NOTE_SIZE * self.count, NOTE_SIZE * (index + 1));
                self.count += 1;
                index
            }
        };
        let key = note.key();
        let bytes = &mut self.memory[NOTE_SIZE * index..NOTE_SIZE * (index + 1)];
        bytes[..4].copy_from_slice(&note.page.to_le_bytes());
        bytes[4] = key.len() as u8;
        bytes[5..5 + key.len()].copy_from_slice(key);
        true
    }

    /// A page is elsewhere.
    pub(crate) fn move_page(&mut self, from: u32, to: u32) {
        if let Some(note) = self.find(from) {
            self.remove(from);
            Note::new(to, note.key()).map(|note| self.push(&note));
        }
    }

    /// Drops the note about a page, if there is one.
    pub(crate) fn remove(&mut self, page: u32) {
        if let Ok(index) = self.place(page) {
            self.count -= 1;
            self.memory.copy_within(NOTE_SIZE * (index + 1)..NOTE_SIZE * (self.count + 1), NOTE_SIZE * index);
        }
    }

    /// Drops the notes about pages that are not to be kept.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(u32) -> bool) {
        let mut kept = 0;
        for index in 0..self.count {
            if keeps(self.page_at(index)) {
                self.memory.copy_within(NOTE_SIZE * index..NOTE_SIZE * (index + 1), NOTE_SIZE * kept);
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// The Summaries that commits name.
    #[inline]
    pub(crate) fn summaries(&self) -> &[u32] {
        &self.summaries[..if FILES { self.summary_count } else { 0 }]
    }

    /// Names a Summary. False if there are too many.
    pub(crate) fn push_summary(&mut self, page: u32) -> bool {
        match self.summaries.get_mut(self.summary_count) {
            Some(place) => *place = page,
            None => return false,
        }
        self.summary_count += 1;
        true
    }

    /// Drops Summaries that are not to be named any more.
    pub(crate) fn retain_summaries(&mut self, mut keeps: impl FnMut(u32) -> bool) {
        let mut kept = 0;
        for index in 0..self.summary_count {
            if keeps(self.summaries[index]) {
                self.summaries[kept] = self.summaries[index];
                kept += 1;
            }
        }
        self.summary_count = kept;
    }

    /// Writes what a commit says, but for the notes of pages that are dead with it, and returns its size; `None` if there is no
    /// room.
    #[inline(never)]
    pub(crate) fn write(&self, out: &mut [u8], superseded: &Journal<'_>) -> Option<usize> {
        write_notes(out, self.summaries(), self.iter().filter(|note| !superseded.is_old(note.page)))
    }

    /// Takes over what a commit says. False if there is no memory for it.
    pub(crate) fn take(&mut self, list: &NoteList<'_>) -> bool {
        list.notes().all(|note| self.push(&note)) && list.summaries().all(|page| self.push_summary(page))
    }

    /// Notes a page that is dead at the next sync. False without room: it stays counted as live.
    #[must_use]
    pub(crate) fn doom(&mut self, page: u32) -> bool {
        let place = self.doomed.get_mut(DOOMED_SIZE * self.doomed_count..DOOMED_SIZE * (self.doomed_count + 1));
        let Some(place) = place else { return false };
        place.copy_from_slice(&page.to_le_bytes());
        self.doomed_count += 1;
        true
    }

    /// Whether so many pages more can be noted as dead at the next sync.
    pub(crate) fn can_doom(&self, count: usize) -> bool {
        DOOMED_SIZE * (self.doomed_count + count) <= self.doomed.len()
    }

    /// Pages that are dead at the next sync.
    pub(crate) fn doomed(&self) -> impl Iterator<Item = u32> + use<'_, 'm> {
        let bytes = &self.doomed[..DOOMED_SIZE * self.doomed_count];
        bytes.as_chunks().0.iter().map(|page| u32::from_le_bytes(*page))
    }

    /// Takes this one out, if it is among them.
    pub(crate) fn spare(&mut self, page: u32) {
        let Some(place) = self.doomed().position(|doomed| doomed == page) else { return };
        let last = DOOMED_SIZE * (self.doomed_count - 1);
        self.doomed.copy_within(last..last + DOOMED_SIZE, DOOMED_SIZE * place);
        self.doomed_count -= 1;
    }

    /// Takes one of them out.
    pub(crate) fn take_doomed(&mut self) -> Option<u32> {
        let page = self.doomed().last()?;
        self.doomed_count -= 1;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::{Notes, memory_size};
    use nandu_media::notes::Note;

    #[test]
    fn notes_are_what_was_noted_last() {
        let mut memory = [0; memory_size(40)];
        let mut notes = Notes::new(&mut memory);
        notes.configure(4096, 44, 0);
        let mut model: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut refused = 0;
        for step in 0..20_000_u32 {
            let random = step.wrapping_mul(0x9E37_79B1) >> 9;
            let page = random % 70;
            match random / 128 % 3 {
                0 => {
                    notes.remove(page);
                    model.remove(&page);
                }
                _ => {
                    let key = &random.to_le_bytes()[..random as usize / 1024 % 5];
                    if notes.push(&Note::new(page, key).unwrap()) {
                        model.insert(page, key.to_vec());
                    } else {
                        refused += 1;
                        notes.retain(|page| page % 3 > 0);
                        model.retain(|page, _| page % 3 > 0);
                    }
                }
            }
            assert_eq!(notes.find(page).map(|note| note.key().to_vec()), model.get(&page).cloned());
            let found: Vec<_> = notes.iter().map(|note| (note.page, note.key().to_vec())).collect();
            assert_eq!(found, model.iter().map(|(&page, key)| (page, key.clone())).collect::<Vec<_>>());
        }
        assert!(refused > 50, "{refused}");
    }
}
