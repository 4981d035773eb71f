//! FORMAT: Notes of bare pages
//!
//! A bare page holds a value of exactly a page and nothing else, so it does not say whose it is. The entry of its key says where
//! it is, and *notes* say the reverse: which key a page belongs to. They stand in three places, in one form: in a Summary, a page
//! among the bare pages of a block, for pages of that block; in a section of a page that is a commit, for those that no
//! Summary names yet; and, where such a section has no room, in a page of their own that is the commit.
//!
//! ```text
//! offset  size  field      meaning
//!      0     1  summaries  Summaries named. In a Summary: 0, or 1 for the one before it in its block. In a commit: the newest
//!                          Summary of each block whose last page is none
//!      1     1  reserved   zero
//!      2     2  size       bytes of the notes
//!      4    4n  pages      of these Summaries
//!   then        notes      one after another, by ascending page
//!
//! note:    1  skip         pages from the last page noted to this one; 0: the page follows, u32, as in the first note
//!          1  more         pages behind this one that are noted too, each with the key behind the one before: the next one of the
//!                          same length, as a big-endian number
//!          1  key_sizes    low 4 bits: bytes of the key that the last key begins with, too; high 4 bits: bytes that follow
//!             key          the rest of the key
//! ```

use crate::tree::Malformed;

/// Bytes of the longest key that a page value can have.
pub const NOTE_KEY_SIZE_MAX: usize = 12;

/// Bytes that a note takes at most.
pub const NOTE_SIZE_MAX: usize = 7 + NOTE_KEY_SIZE_MAX;

/// Bytes that a list of notes takes at most without its notes.
pub const NOTES_FRONT_MAX: usize = FRONT_SIZE + 4 * SUMMARIES_MAX;

/// Most Summaries that a list names.
pub const SUMMARIES_MAX: usize = 8;

const FRONT_SIZE: usize = 4;

/// Which key a bare page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The page.
    pub page: u32,
    key: [u8; NOTE_KEY_SIZE_MAX],
    key_size: u8,
}

impl Note {
    /// `None` for a key that is too long.
    pub fn new(page: u32, key: &[u8]) -> Option<Note> {
        let mut note = Note { page, key: [0; NOTE_KEY_SIZE_MAX], key_size: key.len() as u8 };
        note.key.get_mut(..key.len())?.copy_from_slice(key);
        Some(note)
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key[..usize::from(self.key_size)]
    }

    /// The note of the next page if that has the next key; `None` if there is no next one.
    fn successor(&self) -> Option<Note> {
        let mut next = Note { page: self.page.checked_add(1)?, ..*self };
        for byte in next.key[..usize::from(self.key_size)].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return Some(next);
            }
        }
        None
    }
}

/// Notes that are stored as one: the first of them, how many more, and the last one before them.
struct Run {
    first: Note,
    more: u8,
    before: Option<Note>,
}

impl Run {
    /// Pages from the last one noted; 0 if the page has to be stored as it is.
    fn skip(&self) -> u8 {
        self.before.and_then(|before| u8::try_from(self.first.page.wrapping_sub(before.page)).ok()).unwrap_or(0)
    }

    /// Bytes of the key that the last key begins with, too.
    fn shared(&self) -> usize {
        let before = self.before.as_ref().map_or(&[][..], Note::key);
        self.first.key().iter().zip(before).take_while(|(one, other)| one == other).count()
    }

    fn size(&self) -> usize {
        3 + if self.skip() == 0 { 4 } else { 0 } + self.first.key().len() - self.shared()
    }

    /// Writes it to the front of `out` and returns its size.
    fn write(&self, out: &mut [u8]) -> Option<usize> {
        let (skip, shared) = (self.skip(), self.shared());
        let rest = &self.first.key()[shared..];
        *out.first_mut()? = skip;
        let mut at = 1;
        if skip == 0 {
            out.get_mut(at..at + 4)?.copy_from_slice(&self.first.page.to_le_bytes());
            at += 4;
        }
        out.get_mut(at..at + 2)?.copy_from_slice(&[self.more, shared as u8 | (rest.len() as u8) << 4]);
        at += 2;
        out.get_mut(at..at + rest.len())?.copy_from_slice(rest);
        Some(at + rest.len())
    }
}

fn runs(notes: impl Iterator<Item = Note>) -> impl Iterator<Item = Run> {
    let mut notes = notes;
    let mut next = notes.next();
    let mut before = None;
    core::iter::from_fn(move || {
        let first = next?;
        let (mut last, mut more) = (first, 0);
        next = notes.next();
        while more < u8::MAX
            && let Some(note) = next.filter(|note| last.successor() == Some(*note))
        {
            (last, more) = (note, more + 1);
            next = notes.next();
        }
        let run = Run { first, more, before };
        before = Some(last);
        Some(run)
    })
}

/// Bytes that a list of notes takes.
pub fn notes_size(summary_count: usize, notes: impl Iterator<Item = Note>) -> usize {
    FRONT_SIZE + 4 * summary_count + runs(notes).map(|run| run.size()).sum::<usize>()
}

/// Writes a list of notes to the front of `out` and returns how many bytes it takes; `None` if it does not fit, and then `out` holds
/// anything. Notes ascend by page; more than [`SUMMARIES_MAX`] Summaries are a bug.
pub fn write_notes(out: &mut [u8], summaries: &[u32], notes: impl Iterator<Item = Note>) -> Option<usize> {
    assert!(summaries.len() <= SUMMARIES_MAX, "within the format");
    let start = FRONT_SIZE + 4 * summaries.len();
    for (place, page) in out.get_mut(FRONT_SIZE..start)?.chunks_exact_mut(4).zip(summaries) {
        place.copy_from_slice(&page.to_le_bytes());
    }
    let mut at = start;
    for run in runs(notes) {
        at += run.write(&mut out[at..])?;
    }
    let size = u16::try_from(at - start).ok()?.to_le_bytes();
    out[..FRONT_SIZE].copy_from_slice(&[summaries.len() as u8, 0, size[0], size[1]]);
    Some(at)
}

/// A list of notes that has been walked.
#[derive(Clone, Copy, Debug)]
pub struct NoteList<'a> {
    summaries: &'a [u8],
    notes: &'a [u8],
}

impl<'a> NoteList<'a> {
    /// Checks what stands at the front of `bytes`: every size, and that pages ascend.
    ///
    /// # Errors
    ///
    /// [`Malformed::Short`], [`Malformed::Reserved`], [`Malformed::NodeSizes`].
    pub fn parse(bytes: &'a [u8]) -> Result<NoteList<'a>, Malformed> {
        let (&[count, reserved, low, high], rest) = bytes.split_first_chunk().ok_or(Malformed::Short)?;
        if reserved != 0 {
            return Err(Malformed::Reserved);
        }
        if usize::from(count) > SUMMARIES_MAX {
            return Err(Malformed::NodeSizes);
        }
        let (summaries, rest) = rest.split_at_checked(4 * usize::from(count)).ok_or(Malformed::Short)?;
        let notes = rest.get(..usize::from(u16::from_le_bytes([low, high]))).ok_or(Malformed::Short)?;
        let list = NoteList { summaries, notes };
        let (mut rest, mut last) = (notes, None);
        while !rest.is_empty() {
            let (first, more, after) = parse_note(rest, last)?;
            let mut note = first;
            for _ in 0..more {
                note = note.successor().ok_or(Malformed::NodeSizes)?;
            }
            (rest, last) = (after, Some(note));
        }
        Ok(list)
    }

    /// The Summaries named.
    pub fn summaries(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.summaries.as_chunks().0.iter().map(|page| u32::from_le_bytes(*page))
    }

    /// The notes, by ascending page.
    pub fn notes(&self) -> impl Iterator<Item = Note> + use<'a> {
        let mut rest = self.notes;
        let mut left = 0;
        let mut last: Option<Note> = None;
        core::iter::from_fn(move || {
            if left > 0 {
                left -= 1;
                last = last?.successor();
                return last;
            }
            let (note, more, after) = parse_note(rest, last).ok()?;
            (rest, left, last) = (after, more, Some(note));
            last
        })
    }
}

/// A note from the front of `bytes`, how many more pages it is about, and what follows it.
fn parse_note(bytes: &[u8], last: Option<Note>) -> Result<(Note, u8, &[u8]), Malformed> {
    let (&skip, mut rest) = bytes.split_first().ok_or(Malformed::Short)?;
    let page = match (skip, last) {
        (0, _) => {
            let (page, after) = rest.split_first_chunk().ok_or(Malformed::Short)?;
            rest = after;
            u32::from_le_bytes(*page)
        }
        (_, None) => return Err(Malformed::NodeSizes),
        (skip, Some(last)) => last.page.checked_add(skip.into()).ok_or(Malformed::NodeSizes)?,
    };
    if last.is_some_and(|last| last.page >= page) {
        return Err(Malformed::NodeSizes);
    }
    let (&[more, sizes], rest) = rest.split_first_chunk().ok_or(Malformed::Short)?;
    let (shared, size) = (usize::from(sizes & 15), usize::from(sizes >> 4));
    let (suffix, rest) = rest.split_at_checked(size).ok_or(Malformed::Short)?;
    let before = last.as_ref().map_or(&[][..], Note::key);
    if shared > before.len() || shared + size > NOTE_KEY_SIZE_MAX {
        return Err(Malformed::NodeSizes);
    }
    let mut key = [0; NOTE_KEY_SIZE_MAX];
    key[..shared].copy_from_slice(&before[..shared]);
    key[shared..shared + size].copy_from_slice(suffix);
    Ok((Note { page, key, key_size: (shared + size) as u8 }, more, rest))
}

/// What a page says that is a commit for the sake of its notes.
///
/// ```text
/// offset  size  field     meaning
///      0     4  root      page of the root of the tree
///      4     8  records   entries in the tree
///     12     1  height    levels in it, 1 to 8
///     13     1  flags     1: values were put that have pages of their own
///     14     2  reserved  zero
///     16     4  journal   newest journal page that is still needed, plus one; 0 if there is none
///     20     4  reserved  zero
///     24        notes     a list of notes
///   then        filling   erased bytes (0xFF) to the end of the page
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotesPage {
    /// Page of the root of the tree.
    pub root: u32,
    /// Entries in the tree.
    pub records: u64,
    /// Levels in it.
    pub height: u8,
    /// Whether values were put that have pages of their own.
    pub has_values: bool,
    /// The newest journal page that is still needed. Never the last page number of all.
    pub journal: Option<u32>,
}

const PAGE_FRONT_SIZE: usize = 24;

impl NotesPage {
    /// Where the list of notes begins.
    pub const fn front(header_size: usize) -> usize {
        header_size + PAGE_FRONT_SIZE
    }

    /// Checks the front; the list that follows it is parsed by itself.
    ///
    /// # Errors
    ///
    /// [`Malformed::Short`], [`Malformed::Levels`], [`Malformed::Reserved`].
    pub fn parse(page: &[u8], header_size: usize) -> Result<NotesPage, Malformed> {
        let front = page.get(header_size..).and_then(|body| body.first_chunk::<PAGE_FRONT_SIZE>());
        let front = front.ok_or(Malformed::Short)?;
        let number = |at: usize, size: usize| front[at..at + size].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        let (height, flags) = (front[12], front[13]);
        if !(1..=crate::tree::HEIGHT_MAX as u8).contains(&height) {
            return Err(Malformed::Levels);
        }
        if flags > 1 || number(14, 2) != 0 || number(20, 4) != 0 {
            return Err(Malformed::Reserved);
        }
        Ok(NotesPage {
            root: number(0, 4) as u32,
            records: number(4, 8),
            height,
            has_values: flags == 1,
            journal: (number(16, 4) as u32).checked_sub(1),
        })
    }

    /// Writes it behind the header.
    pub fn write(&self, page: &mut [u8], header_size: usize) {
        let front = &mut page[header_size..header_size + PAGE_FRONT_SIZE];
        front[..4].copy_from_slice(&self.root.to_le_bytes());
        front[4..12].copy_from_slice(&self.records.to_le_bytes());
        front[12..16].copy_from_slice(&[self.height, u8::from(self.has_values), 0, 0]);
        front[16..20].copy_from_slice(&self.journal.map_or(0, |page| page.wrapping_add(1)).to_le_bytes());
        front[20..24].fill(0);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::{NOTE_SIZE_MAX, NOTES_FRONT_MAX, Note, NoteList, NotesPage, SUMMARIES_MAX, notes_size, write_notes};
    use crate::tree::Malformed;

    fn note(page: u32, key: &[u8]) -> Note {
        Note::new(page, key).unwrap()
    }

    #[test]
    fn the_bytes_of_a_list_are_frozen() {
        let notes = [
            note(0x0102, &[7, 0, 0xFE]),
            note(0x0103, &[7, 0, 0xFF]),
            note(0x0104, &[7, 1, 0]),
            note(0x0106, &[7, 1, 9]),
            note(0x0900, b""),
        ];
        let mut out = [0xEE; 40];
        let size = write_notes(&mut out, &[0x0A0B], notes.into_iter()).unwrap();
        let expected = [
            1, 0, 21, 0, 0x0B, 0x0A, 0, 0, // front
            0, 2, 1, 0, 0, 2, 0x30, 7, 0, 0xFE, // three pages in a row with keys in a row
            2, 0, 0x12, 9, // two pages on, with a key that differs in its last byte
            0, 0, 9, 0, 0, 0, 0, 0xEE, // far away, without a key
        ];
        assert_eq!(out[..size], expected[..29]);
        assert_eq!(size, 29);
        let list = NoteList::parse(&out).unwrap();
        assert_eq!(list.summaries().collect::<Vec<_>>(), [0x0A0B]);
        assert_eq!(list.notes().collect::<Vec<_>>(), notes);
    }

    #[test]
    fn what_is_written_is_read_and_takes_no_more_than_is_said() {
        let mut random = 1_u32;
        for count in 0..200_usize {
            let mut page = 5;
            let notes: Vec<Note> = (0..count)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    page += 1 + (random >> 30);
                    let key = [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, (random >> 9) as u8, (random >> 16) as u8 & 3];
                    note(page, &key[..12 - (random >> 27) as usize % 3])
                })
                .collect();
            let mut out = std::vec![0; NOTES_FRONT_MAX + NOTE_SIZE_MAX * count];
            let size = write_notes(&mut out, &[1], notes.iter().copied()).unwrap();
            assert_eq!(size, notes_size(1, notes.iter().copied()));
            let list = NoteList::parse(&out).unwrap();
            assert_eq!(list.notes().collect::<Vec<_>>(), notes);
            assert_eq!(write_notes(&mut out[..size - 1], &[1], notes.iter().copied()), None);
            assert_eq!(write_notes(&mut out[..size], &[1], notes.iter().copied()), Some(size));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let mut out = [0; 40];
        let size = write_notes(&mut out, &[3], [note(7, &[1, 0xFD]), note(8, &[1, 0xFE])].into_iter()).unwrap();
        let with = |at: usize, value: u8| {
            let mut out = out;
            out[at] = value;
            NoteList::parse(&out[..size]).map(|_| ())
        };
        assert_eq!(with(0, SUMMARIES_MAX as u8 + 1), Err(Malformed::NodeSizes));
        assert_eq!(with(1, 1), Err(Malformed::Reserved));
        assert_eq!(with(2, 200), Err(Malformed::Short));
        assert_eq!(with(8, 1), Err(Malformed::NodeSizes), "the first page is not relative to any");
        assert_eq!(with(14, 0x21), Err(Malformed::NodeSizes), "nothing is shared with no key");
        assert_eq!(with(14, 0x70), Err(Malformed::Short));
        assert_eq!(with(14, 0xF0), Err(Malformed::Short));
        let mut none = out;
        (none[13], none[15]) = (255, 0xFF);
        assert_eq!(NoteList::parse(&none[..size]).map(|_| ()), Err(Malformed::NodeSizes), "no key follows the last");
        assert_eq!(NoteList::parse(&out[..3]).map(|_| ()), Err(Malformed::Short));
        // Every byte, with every value: refused or read, without end in neither case.
        for at in 0..size {
            for value in 0..=255 {
                let mut out = out;
                out[at] = value;
                if let Ok(list) = NoteList::parse(&out[..size]) {
                    assert!(list.notes().count() <= 256 * size);
                }
            }
        }
    }

    #[test]
    fn the_bytes_of_a_page_are_frozen() {
        let mut page = [0xEE; 32];
        let notes = NotesPage { root: 0x0102, records: 0x0304, height: 3, has_values: true, journal: Some(0x0506) };
        notes.write(&mut page, 4);
        let expected = [2, 1, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 7, 5, 0, 0, 0, 0, 0, 0];
        assert_eq!(page[4..28], expected);
        assert_eq!(NotesPage::parse(&page, 4), Ok(notes));
        let with = |at: usize, value: u8| {
            let mut page = page;
            page[at] = value;
            NotesPage::parse(&page, 4)
        };
        assert_eq!(with(16, 0), Err(Malformed::Levels));
        assert_eq!(with(16, 9), Err(Malformed::Levels));
        assert_eq!(with(17, 2), Err(Malformed::Reserved));
        assert_eq!(with(18, 1), Err(Malformed::Reserved));
        assert_eq!(with(24, 1), Err(Malformed::Reserved));
        assert_eq!(NotesPage::parse(&page[..20], 4), Err(Malformed::Short));
    }
}
