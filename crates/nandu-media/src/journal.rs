//! FORMAT: Journal page
//!
//! What a journal page holds behind the header that every page has: changes of a tree that no leaf holds yet.
//!
//! ```text
//! offset  size  field         meaning
//!      0     1  height        levels in the tree: 1..=8
//!      1     1  cells         kind of cells: 1 fixed width, 2 byte strings
//!      2     1  key_size      bytes of a key; 0 where keys have any length
//!      3     1  page_bits     bits of a page number in an inner node
//!      4     2  value_size    bytes of a value; 0 where values have any length
//!      6     1  older_count   older journal pages that are still needed: 0..=30
//!      7     1  flags         1: there are sections
//!      8     8  records       entries in the tree, these changes made
//!     16     4  root          page of the tree's root
//!     20     2  count         changes in this page: 0..=511
//!     22     2  reserved      zero, checked on read
//!   then        older         for each older page: page 4, its number of changes 2, 1 if its map is exact, else 0, 1,
//!                             reserved 1; then a map of one bit for each of its changes, low bit first: set while no
//!                             leaf and no newer journal page holds it; bits beyond the last change are zero
//!   then        changes       one after another
//!   then        sections      if the flag says so
//!    end        padding       erased bytes
//!
//! change:    1  kind          0 delete, 1 put, 3 put of a resident value, 4 put of a page value, 5 put of a resident value that
//!                             stands here; else refused
//!            1  key_length    only where keys have any length
//!            2  value_length  only of a put, and only where values have any length
//!               key
//!               value         only of a put; with 3 and 4 what its leaf is to hold, without the tag; with 5 the value, and its
//!                             leaf is to hold where that is
//! ```
//!
//! In a commit of the new heart 5 comes without a value, any number of times: what the key has, or that it has nothing, stands in its leaf, whatever older commits list of it.
//! At most one change of a page is of kind 5, and none of a page of the tree. Such a page is needed as long as a leaf or a change leads to
//! it, although nothing else in it may be.
//!
//! A page of the tree is a journal page too if it has a section of changes:
//!
//! ```text
//! offset  size  field         meaning
//!      0     4  base          newest journal page that is not one of the tree, plus one: what it holds and what it names is
//!                             needed as well; 0 if there is none
//!      4     2  count         changes in this page: 0..=511
//!      6     1  older_count   older journal pages, newer than `base`, that are still needed: 0..=30
//!      7     1  is_exact      1 if `maps` are exact, else 0
//!      8     2  maps_size     bytes of `maps`; 0 if what `base` says is all that is known
//!   then        older         as above
//!   then        maps          a map as above for the changes of `base` and for those of each page that it names, in its order
//!   then        changes       as above, up to the end of the section; none is of a key of the leaf in the page
//! ```
//!
//! The changes of a page stand in the order of their keys, and no two have the same. What `older` names is a page of the one kind or the other. A change is obsolete, whatever a map says, if the page that holds
//! the leaf of its key has a higher sequence than the journal page. Numbers are little-endian.

use core::ops::Range;

use crate::section::Sections;
use crate::tree::{CellFormat, HEIGHT_MAX, Malformed};
use crate::value::{TAG_HERE, TAG_INLINE, TAG_PAGE, TAG_RESIDENT};

/// Most journal pages that one names besides itself.
pub const OLDER_MAX: usize = 30;

/// Most changes in a journal page.
pub const CHANGE_COUNT_MAX: usize = 511;

const FRONT_SIZE: usize = 24;
const SECTION_FRONT_SIZE: usize = 10;
const OLDER_SIZE: usize = 8;

/// Flag of the front: there are sections.
const FLAG_SECTIONS: u8 = 1;

/// An older journal page that is still needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Older {
    /// Its page.
    pub page: u32,
    /// Changes in it.
    pub count: u16,
    /// Whether every change that its map shows is known to be needed.
    pub is_exact: bool,
}

/// A change as a journal page holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The key it concerns.
    pub key: &'a [u8],
    /// The tag that a leaf of byte strings puts in front of the value; [`TAG_INLINE`] in other cells, and where there is no
    /// value.
    pub tag: u8,
    /// The value put there; `None` deletes the key.
    pub value: Option<&'a [u8]>,
}

impl<'a> Change<'a> {
    /// Bytes that it takes in a page.
    pub fn size(&self, format: &CellFormat) -> usize {
        let value_size = self.value.map_or(0, |value| value.len() + if has_lengths(format) { 2 } else { 0 });
        1 + usize::from(has_lengths(format)) + self.key.len() + value_size
    }

    /// Writes it to the front of `out`, which is large enough, and returns its size.
    pub fn write(&self, format: &CellFormat, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut write = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        write(&[self.value.map_or(0, |_| 1 + self.tag)]);
        if has_lengths(format) {
            write(&[self.key.len() as u8]);
            if let Some(value) = self.value {
                write(&(value.len() as u16).to_le_bytes());
            }
        }
        write(self.key);
        write(self.value.unwrap_or(&[]));
        at
    }

    /// Reads one from the front of `bytes`, and what follows it.
    pub fn parse(format: &CellFormat, bytes: &'a [u8]) -> Result<(Change<'a>, &'a [u8]), Malformed> {
        let (&kind, mut rest) = bytes.split_first().ok_or(Malformed::Short)?;
        let tag = kind.saturating_sub(1);
        if tag != TAG_INLINE && !(matches!(tag, TAG_RESIDENT | TAG_PAGE | TAG_HERE) && has_lengths(format)) {
            return Err(Malformed::Reserved);
        }
        let (mut key_size, mut value_size) = (usize::from(format.key_size), usize::from(format.value_size));
        if has_lengths(format) {
            let (&length, after) = rest.split_first().ok_or(Malformed::Short)?;
            (key_size, rest) = (usize::from(length), after);
            if kind > 0 {
                let (&length, after) = rest.split_first_chunk().ok_or(Malformed::Short)?;
                (value_size, rest) = (usize::from(u16::from_le_bytes(length)), after);
            }
        }
        let (key, rest) = rest.split_at_checked(key_size).ok_or(Malformed::Short)?;
        if kind == 0 {
            return Ok((Change { key, tag, value: None }, rest));
        }
        let (value, rest) = rest.split_at_checked(value_size).ok_or(Malformed::Short)?;
        Ok((Change { key, tag, value: Some(value) }, rest))
    }
}

/// Whether keys and values have any length, which each change then says.
const fn has_lengths(format: &CellFormat) -> bool {
    format.key_size == 0
}

impl Older {
    /// Reads one, and says where its map is.
    fn parse(page: &[u8], at: usize) -> Result<(Older, Range<usize>), Malformed> {
        let &[p0, p1, p2, p3, count_low, count_high, is_exact, reserved] =
            page.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed::Short)?;
        let count = u16::from_le_bytes([count_low, count_high]);
        if usize::from(count) > CHANGE_COUNT_MAX {
            return Err(Malformed::NodeSizes);
        }
        if is_exact > 1 || reserved != 0 {
            return Err(Malformed::Reserved);
        }
        let place = at + OLDER_SIZE..at + older_size(usize::from(count));
        let map = page.get(place.clone()).ok_or(Malformed::Short)?;
        if let (Some(last), used @ 1..) = (map.last(), count % 8)
            && last >> used != 0
        {
            return Err(Malformed::Reserved);
        }
        Ok((Older { page: u32::from_le_bytes([p0, p1, p2, p3]), count, is_exact: is_exact == 1 }, place))
    }
}

/// Bytes that naming an older page with so many changes takes.
pub const fn older_size(count: usize) -> usize {
    OLDER_SIZE + count.div_ceil(8)
}

/// Bytes in front of the list of older pages.
pub const fn front_size(header_size: usize) -> usize {
    header_size + FRONT_SIZE
}

/// What a journal page is written from, but for its maps and changes.
#[derive(Clone, Copy, Debug)]
pub struct JournalFront<'a> {
    /// Levels in the tree.
    pub height: u8,
    /// Kind of the cells.
    pub format: CellFormat,
    /// Entries in the tree, all changes made.
    pub records: u64,
    /// Page of the tree's root.
    pub root: u32,
    /// Changes in the page.
    pub count: u16,
    /// Whether sections follow the changes.
    pub has_sections: bool,
    /// Older pages, at most [`OLDER_MAX`].
    pub older: &'a [Older],
}

impl JournalFront<'_> {
    /// Writes it behind the header, with all maps empty, and returns where it ends, which is where changes go.
    pub fn write(&self, page: &mut [u8], header_size: usize) -> usize {
        assert!(usize::from(self.count) <= CHANGE_COUNT_MAX, "within the format");
        let CellFormat { cells, key_size, value_size, page_bits } = self.format;
        let [value_low, value_high] = value_size.to_le_bytes();
        let front = &mut page[header_size..header_size + FRONT_SIZE];
        let (older_count, flags) = (self.older.len() as u8, if self.has_sections { FLAG_SECTIONS } else { 0 });
        let fixed = [self.height, cells, key_size, page_bits, value_low, value_high, older_count, flags];
        front[..8].copy_from_slice(&fixed);
        front[8..16].copy_from_slice(&self.records.to_le_bytes());
        front[16..20].copy_from_slice(&self.root.to_le_bytes());
        front[20..22].copy_from_slice(&self.count.to_le_bytes());
        front[22..24].fill(0);
        let at = front_size(header_size);
        at + write_older(self.older, &mut page[at..])
    }
}

/// What a section of changes is written from, but for its maps and changes.
#[derive(Clone, Copy, Debug)]
pub struct SectionFront<'a> {
    /// The newest journal page that is not one of the tree, if there is one. Never the last page number of all.
    pub base: Option<u32>,
    /// Changes in the section.
    pub count: u16,
    /// Older pages that are newer than that one, at most [`OLDER_MAX`].
    pub older: &'a [Older],
    /// Bytes of the maps of that one and of those that it names; 0 for no maps.
    pub maps_size: u16,
    /// Whether these are exact.
    pub is_exact: bool,
}

impl SectionFront<'_> {
    /// Writes it to the front of the content of the section, with all maps empty, and returns where it ends.
    pub fn write(&self, content: &mut [u8]) -> usize {
        assert!(usize::from(self.count) <= CHANGE_COUNT_MAX, "within the format");
        let [b0, b1, b2, b3] = self.base.map_or(0, |page| page.wrapping_add(1)).to_le_bytes();
        let [count_low, count_high] = self.count.to_le_bytes();
        let [size_low, size_high] = self.maps_size.to_le_bytes();
        let (older_count, is_exact) = (self.older.len() as u8, u8::from(self.is_exact));
        let front = [b0, b1, b2, b3, count_low, count_high, older_count, is_exact, size_low, size_high];
        content[..SECTION_FRONT_SIZE].copy_from_slice(&front);
        let at = SECTION_FRONT_SIZE + write_older(self.older, &mut content[SECTION_FRONT_SIZE..]);
        let end = at + usize::from(self.maps_size);
        content[at..end].fill(0);
        end
    }
}

/// Bytes in front of the list of older pages in a section of changes.
pub const fn section_front_size() -> usize {
    SECTION_FRONT_SIZE
}

/// Bytes of a list of older pages.
pub fn list_size(older: &[Older]) -> usize {
    older.iter().map(|older| older_size(usize::from(older.count))).sum()
}

/// Writes a list of older pages with empty maps and returns its size.
fn write_older(older: &[Older], out: &mut [u8]) -> usize {
    assert!(older.len() <= OLDER_MAX, "within the format");
    let mut at = 0;
    for older in older {
        let size = older_size(usize::from(older.count));
        let bytes = &mut out[at..at + size];
        bytes.fill(0);
        bytes[0..4].copy_from_slice(&older.page.to_le_bytes());
        bytes[4..6].copy_from_slice(&older.count.to_le_bytes());
        bytes[6] = u8::from(older.is_exact);
        at += size;
    }
    at
}

/// Sets the bit of a change in the map of an older page; `list` begins with the list of them, as it was written.
pub fn mark(older: &[Older], list: &mut [u8], place: usize, change: usize) {
    let before = list_size(&older[..place]);
    list[before + OLDER_SIZE + change / 8] |= 1 << (change % 8);
}

/// Where the older pages and changes of a journal page are; both have been walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeList {
    /// Changes in the page.
    pub count: u16,
    format: CellFormat,
    older_count: u8,
    older: u32,
    changes: u32,
    resident: Option<(u32, u32)>,
}

impl ChangeList {
    /// Checks a list from `at` on, and returns where it ends.
    fn parse(
        page: &[u8],
        mut at: usize,
        format: CellFormat,
        older_count: u8,
        count: u16,
        maps_size: u16,
    ) -> Result<(ChangeList, usize), Malformed> {
        if usize::from(older_count) > OLDER_MAX || usize::from(count) > CHANGE_COUNT_MAX {
            return Err(Malformed::NodeSizes);
        }
        let older = at as u32;
        for _ in 0..older_count {
            at = Older::parse(page, at)?.1.end;
        }
        at += usize::from(maps_size);
        let mut list = ChangeList { count, format, older_count, older, changes: at as u32, resident: None };
        let mut rest = page.get(at..).ok_or(Malformed::Short)?;
        for _ in 0..count {
            let start = page.len() - rest.len();
            let (change, behind) = Change::parse(&format, rest)?;
            rest = behind;
            if change.tag == TAG_HERE && change.value.is_some() {
                let place = (start as u32, (page.len() - rest.len()) as u32);
                if list.resident.replace(place).is_some() {
                    return Err(Malformed::Reserved);
                }
            }
        }
        Ok((list, page.len() - rest.len()))
    }

    /// The older pages still needed, of the page that was parsed, and where the map of each is.
    pub fn older<'a>(&self, page: &'a [u8]) -> impl Iterator<Item = (Older, Range<usize>)> + use<'a> {
        let mut at = self.older as usize;
        (0..self.older_count).map_while(move |_| {
            let (older, map) = Older::parse(page, at).ok()?;
            at = map.end;
            Some((older, map))
        })
    }

    /// Where the change is whose value stands in the page, if there is one.
    pub fn resident(&self) -> Option<Range<usize>> {
        self.resident.map(|(start, end)| start as usize..end as usize)
    }

    /// That change, of the page that was parsed.
    pub fn resident_change<'a>(&self, page: &'a [u8]) -> Option<Change<'a>> {
        Change::parse(&self.format, page.get(self.resident()?)?).ok().map(|(change, _)| change)
    }

    /// The changes of the page that was parsed, in its order.
    pub fn changes<'a>(&self, page: &'a [u8]) -> impl Iterator<Item = Change<'a>> + use<'a> {
        let format = self.format;
        let mut rest = page.get(self.changes as usize..).unwrap_or(&[]);
        (0..self.count).map_while(move |_| {
            let (change, after) = Change::parse(&format, rest).ok()?;
            rest = after;
            Some(change)
        })
    }
}

/// What a journal page says that is not one of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBody {
    /// Levels in the tree.
    pub height: u8,
    /// Kind of the cells.
    pub format: CellFormat,
    /// Entries in the tree, all changes made.
    pub records: u64,
    /// Page of the tree's root.
    pub root: u32,
    /// Its changes, and the older pages.
    pub list: ChangeList,
    /// What else the page carries.
    pub sections: Sections,
}

impl JournalBody {
    /// Checks a page and every size in it.
    pub fn parse(page: &[u8], header_size: usize) -> Result<JournalBody, Malformed> {
        let front =
            page.get(header_size..).and_then(|body| body.first_chunk::<FRONT_SIZE>()).ok_or(Malformed::Short)?;
        let [height, cells, key_size, page_bits, value_low, value_high, older_count, flags, ..] = *front;
        let number = |place: Range<usize>| front[place].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        if !(1..=HEIGHT_MAX as u8).contains(&height) {
            return Err(Malformed::Levels);
        }
        if flags > FLAG_SECTIONS || number(22..24) != 0 {
            return Err(Malformed::Reserved);
        }
        let format = CellFormat { cells, key_size, page_bits, value_size: u16::from_le_bytes([value_low, value_high]) };
        let (list, end) =
            ChangeList::parse(page, front_size(header_size), format, older_count, number(20..22) as u16, 0)?;
        let sections = match flags {
            FLAG_SECTIONS => Sections::parse(page, end..page.len())?,
            _ => Sections::default(),
        };
        Ok(JournalBody { height, format, records: number(8..16), root: number(16..20) as u32, list, sections })
    }
}

/// What a section of changes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionBody {
    /// The newest journal page that is not one of the tree, if there is one.
    pub base: Option<u32>,
    /// Its changes, and the older pages that are newer than that one.
    pub list: ChangeList,
    /// Where the maps of that one and of those that it names are; empty if there are none.
    pub maps: (u32, u32),
    /// Whether these are exact.
    pub is_exact: bool,
}

impl SectionBody {
    /// Checks the section of changes at this place of a page, and every size in it.
    pub fn parse(page: &[u8], content: Range<usize>, format: CellFormat) -> Result<SectionBody, Malformed> {
        let page = page.get(..content.end).ok_or(Malformed::Short)?;
        let &[b0, b1, b2, b3, count_low, count_high, older_count, is_exact, size_low, size_high] =
            page.get(content.start..).and_then(|content| content.first_chunk()).ok_or(Malformed::Short)?;
        let count = u16::from_le_bytes([count_low, count_high]);
        let maps_size = u16::from_le_bytes([size_low, size_high]);
        let base = u32::from_le_bytes([b0, b1, b2, b3]).checked_sub(1);
        if is_exact > 1 || maps_size > 0 && base.is_none() {
            return Err(Malformed::Reserved);
        }
        let at = content.start + SECTION_FRONT_SIZE;
        let (list, end) = ChangeList::parse(page, at, format, older_count, count, maps_size)?;
        if end != content.end {
            return Err(Malformed::NodeSizes);
        }
        if list.resident.is_some() {
            return Err(Malformed::Reserved);
        }
        let maps = (list.changes - u32::from(maps_size), list.changes);
        Ok(SectionBody { base, list, maps, is_exact: is_exact == 1 })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::{Change, JournalBody, JournalFront, Older, SectionBody, SectionFront, mark};
    use crate::section::{SectionKind, SectionWriter};
    use crate::tree::{CellFormat, Malformed};

    const FIXED: CellFormat = CellFormat { cells: 1, key_size: 2, value_size: 1, page_bits: 15 };
    const BYTES: CellFormat = CellFormat { cells: 2, key_size: 0, value_size: 0, page_bits: 15 };
    const PUT: Change<'_> = Change { key: &[1, 2], tag: 0, value: Some(&[9]) };
    const DELETE: Change<'_> = Change { key: &[1, 3], tag: 0, value: None };

    fn page(format: CellFormat) -> [u8; 64] {
        let mut page = [0xFF; 64];
        let older = [Older { page: 0x0A0B, count: 9, is_exact: true }];
        let front =
            JournalFront { height: 2, format, records: 7, root: 0x0C0D, count: 2, has_sections: false, older: &older };
        let mut at = front.write(&mut page, 4);
        mark(&older, &mut page[28..], 0, 0);
        mark(&older, &mut page[28..], 0, 8);
        for change in [PUT, DELETE] {
            let size = change.write(&format, &mut page[at..]);
            assert_eq!(size, change.size(&format));
            at += size;
        }
        page
    }

    #[test]
    fn the_bytes_of_a_page_are_frozen() {
        let page = page(FIXED);
        let expected = [
            2, 1, 2, 15, 1, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0x0D, 0x0C, 0, 0, 2, 0, 0, 0, // front
            0x0B, 0x0A, 0, 0, 9, 0, 1, 0, 1, 1, // an older page
            1, 1, 2, 9, 0, 1, 3, 0xFF, // changes
        ];
        assert_eq!(page[4..4 + expected.len()], expected);
        let body = JournalBody::parse(&page, 4).unwrap();
        assert_eq!((body.height, body.records, body.root, body.list.count), (2, 7, 0x0C0D, 2));
        let older = Older { page: 0x0A0B, count: 9, is_exact: true };
        assert_eq!(body.list.older(&page).collect::<Vec<_>>(), [(older, 36..38)]);
        assert_eq!(page[36..38], [1, 1]);
        assert_eq!(body.list.changes(&page).collect::<Vec<_>>(), [PUT, DELETE]);
    }

    #[test]
    fn changes_of_any_length_say_it() {
        let page = page(BYTES);
        assert_eq!(page[38..50], [1, 2, 1, 0, 1, 2, 9, 0, 2, 1, 3, 0xFF]);
        let body = JournalBody::parse(&page, 4).unwrap();
        assert_eq!(body.list.changes(&page).collect::<Vec<_>>(), [PUT, DELETE]);
    }

    #[test]
    fn the_bytes_of_a_section_are_frozen() {
        let mut page = [0xEE; 44];
        let older = [Older { page: 0x0A0B, count: 9, is_exact: true }];
        let content = &mut page[4..];
        let front = SectionFront { base: Some(0x0C0D), count: 2, older: &older, maps_size: 2, is_exact: true };
        let mut at = front.write(content);
        mark(&older, &mut content[10..], 0, 8);
        for change in [PUT, DELETE] {
            at += change.write(&FIXED, &mut content[at..]);
        }
        let expected = [
            0x0E, 0x0C, 0, 0, 2, 0, 1, 1, 2, 0, // front
            0x0B, 0x0A, 0, 0, 9, 0, 1, 0, 0, 1, // an older page
            0, 0, // maps
            1, 1, 2, 9, 0, 1, 3, // changes
        ];
        assert_eq!(content[..at], expected);
        let end = 4 + at;
        let body = SectionBody::parse(&page, 4..end, FIXED).unwrap();
        assert_eq!((body.base, body.list.count, body.maps, body.is_exact), (Some(0x0C0D), 2, (24, 26), true));
        assert_eq!(body.list.older(&page).collect::<Vec<_>>(), [(older[0], 22..24)]);
        assert_eq!(body.list.changes(&page).collect::<Vec<_>>(), [PUT, DELETE]);
        // It ends where its changes do, and nowhere else.
        assert_eq!(SectionBody::parse(&page, 4..end + 1, FIXED), Err(Malformed::NodeSizes));
        assert_eq!(SectionBody::parse(&page, 4..end - 1, FIXED), Err(Malformed::Short));
        assert_eq!(SectionBody::parse(&page, 4..50, FIXED), Err(Malformed::Short));
        page[11] = 2;
        assert_eq!(SectionBody::parse(&page, 4..end, FIXED), Err(Malformed::Reserved));
        page[11] = 1;
        page[4..8].fill(0);
        assert_eq!(SectionBody::parse(&page, 4..end, FIXED), Err(Malformed::Reserved), "maps without a base");
    }

    #[test]
    fn sections_follow_the_changes() {
        let mut page = page(FIXED);
        page[11] = 1;
        assert_eq!(JournalBody::parse(&page, 4).unwrap().sections.find(SectionKind::Notes), None);
        let mut writer = SectionWriter::new(&mut page[45..]);
        writer.add(SectionKind::Notes, 2).fill(9);
        writer.finish();
        assert_eq!(JournalBody::parse(&page, 4).unwrap().sections.find(SectionKind::Notes), Some(49..51));
        page[47] = 16;
        assert_eq!(JournalBody::parse(&page, 4), Err(Malformed::Short));
    }

    #[test]
    fn the_bytes_of_a_page_value_are_frozen() {
        let change = Change { key: b"k", tag: 3, value: Some(&[8, 7, 6, 5, 4, 3, 2, 1]) };
        let mut out = [0; 14];
        assert_eq!((change.size(&BYTES), change.write(&BYTES, &mut out)), (13, 13));
        assert_eq!(out, [4, 1, 8, 0, b'k', 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(Change::parse(&BYTES, &out), Ok((change, &[0][..])));
        assert_eq!(Change::parse(&FIXED, &out), Err(Malformed::Reserved));
        for kind in [2, 6] {
            out[0] = kind;
            assert_eq!(Change::parse(&BYTES, &out), Err(Malformed::Reserved), "{kind}");
        }
    }

    #[test]
    fn the_bytes_of_a_resident_value_are_frozen() {
        let here = Change { key: b"k", tag: 4, value: Some(b"value") };
        let front =
            JournalFront { height: 2, format: BYTES, records: 7, root: 9, count: 2, has_sections: false, older: &[] };
        let mut page = [0xFF; 64];
        let mut at = front.write(&mut page, 4);
        at += Change { key: b"j", tag: 2, value: Some(&[4, 3, 2, 1, 5, 0]) }.write(&BYTES, &mut page[at..]);
        let start = at;
        at += here.write(&BYTES, &mut page[at..]);
        let expected = [3, 1, 6, 0, b'j', 4, 3, 2, 1, 5, 0, 5, 1, 5, 0, b'k', b'v', b'a', b'l', b'u', b'e'];
        assert_eq!(page[28..at], expected);
        let list = JournalBody::parse(&page, 4).unwrap().list;
        assert_eq!((list.resident(), list.resident_change(&page)), (Some(start..at), Some(here)));
        // One page holds one of them.
        page[28] = 5;
        assert_eq!(JournalBody::parse(&page, 4), Err(Malformed::Reserved));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let page = page(FIXED);
        let with = |place: usize, value: u8| {
            let mut page = page;
            page[4 + place] = value;
            JournalBody::parse(&page, 4)
        };
        assert_eq!(with(0, 0), Err(Malformed::Levels));
        assert_eq!(with(0, 9), Err(Malformed::Levels));
        assert_eq!(with(6, 31), Err(Malformed::NodeSizes));
        assert_eq!(with(6, 30), Err(Malformed::Reserved));
        assert_eq!(with(7, 2), Err(Malformed::Reserved));
        assert_eq!(with(20, 200), Err(Malformed::Reserved));
        assert_eq!(with(21, 2), Err(Malformed::NodeSizes));
        assert_eq!(with(22, 1), Err(Malformed::Reserved));
        assert_eq!(with(28, 255), Err(Malformed::Short));
        assert_eq!(with(29, 2), Err(Malformed::NodeSizes));
        assert_eq!(with(30, 2), Err(Malformed::Reserved));
        assert_eq!(with(33, 2), Err(Malformed::Reserved));
        assert_eq!(with(34, 2), Err(Malformed::Reserved));
        assert_eq!(JournalBody::parse(&page[..20], 4), Err(Malformed::Short));
    }
}
