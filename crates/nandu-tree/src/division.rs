//! FORMAT: Heads of large values
//!
//! A value that does not fit a leaf stands in pages of its own. The record of its key, the **head**, says which.
//!
//! ```text
//! head    7F 48 D6 9B; length u32: bytes of the value; page numbers, u32 each, exactly as many as a value of that length needs; the last bytes of the value,
//!         at most 96, if no page has them. No other record is such: a value that looks like one stands in a page itself
//! page    of the kind `Value`, as in "Pages of large values", with the stamp 0: what it belongs to, and bytes of the value
//! raw     7F 48 D6 9C; length u32; number u32 of a raw page, which has the bytes of the value and then FF; XXH32 u32 of that page, with seed 0
//! blob    7F 48 D6 9D; length u32; number u32 of a commit, whose section of the kind 3 has the bytes of the value, or FF FF FF FF in a list: the commit that lists it; XXH32 u32 of these
//! ```
//!
//! On a volume with raw pages each head is as one of the last two: a value has a page at most, and its key 11 bytes.
//! Where a head has room for the numbers of all pages, it has these, and what is left of the value beyond full pages if that is little: so a value as large as a page takes one. Else pages stand in groups, and the head has the number of each group's last page, its **leader**, which
//! has the numbers of the others behind its bytes. A full group has as many pages as 6 bytes of a page's content each, 292 at most. Pages are full in their order, but for the last
//! of the bytes; a leader may have none. Numbers are little-endian.

use core::ops::Range;

use nandu_media::features::FILES;

use nandu_media::value::FRONT_SIZE;

/// The first bytes of a head.
const MARK: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9B];

/// Those of a head that names a raw page.
const RAW_MARK: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9C];

/// Those of a head that names a commit.
const BLOB_MARK: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9D];

/// In place of the number of a commit: the one that lists the head.
pub(crate) const OWN_PAGE: u32 = u32::MAX;

/// Bytes of a head before page numbers.
const FRONT: usize = 8;

/// Bytes of a page number.
const NUMBER: usize = 4;

/// Pages of a full group, at most.
const GROUP_MAX: usize = 292;

/// Bytes of a value that its head has, at most.
const REST_MAX: usize = 96;

/// Bytes of the head of a value of one page, at most.
pub(crate) const SINGLE_MAX: usize = FRONT + NUMBER + REST_MAX;

/// Bytes of the largest value.
pub(crate) const VALUE_SIZE_MAX: usize = 16 << 20;

/// Bytes of memory for a value that is being put: a head, and the numbers of a group.
pub(crate) const fn memory_required(page_size: usize) -> usize {
    let group = 2 * page_size / 3;
    page_size / 4 + if group < NUMBER * GROUP_MAX { group } else { NUMBER * GROUP_MAX }
}

/// Where the bytes of a value stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In pages of values.
    Pages,
    /// In a raw page.
    Raw,
    /// In a commit.
    Blob,
}

impl Form {
    fn mark(self) -> &'static [u8; 4] {
        match self {
            Form::Pages => &MARK,
            Form::Raw => &RAW_MARK,
            Form::Blob => &BLOB_MARK,
        }
    }
}

/// How a value is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    length: usize,
    /// Bytes of content in a page.
    payload: usize,
    /// Pages of a full group; 1 where the head has the numbers of all.
    group: u16,
    /// Page numbers in the head.
    heads: usize,
    /// Bytes of the value in the head.
    rest: usize,
    form: Form,
}

impl Division {
    /// A value of so many bytes, where a page has so much room behind its header, a head takes so many bytes at most, and the key so many. `None` if there is no room for so large a
    /// value, or it has no bytes.
    pub(crate) fn new(room: usize, head_max: usize, key: usize, length: usize) -> Option<Division> {
        let payload = room.checked_sub(FRONT_SIZE + key)?;
        let group = (payload / 6).min(GROUP_MAX);
        if length > VALUE_SIZE_MAX || length == 0 || group < 2 {
            return None;
        }
        [(1, REST_MAX), (1, 0), (group, 0)].into_iter().find_map(|(group, rest_max)| {
            let size = group * payload - NUMBER * (group - 1);
            let heads = length.saturating_sub(rest_max).div_ceil(size).max(1);
            let rest = length.saturating_sub(heads * size);
            let division = Division { length, payload, group: group as u16, heads, rest, form: Form::Pages };
            (division.head_size() <= head_max).then_some(division)
        })
    }

    /// A value of so many bytes in a raw page of this size. `None` if it does not fit, or has no bytes.
    pub(crate) fn raw(page_size: usize, length: usize) -> Option<Division> {
        let division = Division { length, payload: page_size, group: 1, heads: 1, rest: 0, form: Form::Raw };
        (1..=page_size).contains(&length).then_some(division)
    }

    /// The same of one whose head has this form: in one page, or none.
    pub(crate) fn in_form(self, form: Form) -> Option<Division> {
        let is_it = (self.form == Form::Pages) == (form == Form::Pages);
        is_it.then_some(Division { form, ..self })
    }

    /// Whether the value is in a raw page, or in a commit: then its head has a checksum of it.
    pub(crate) fn has_check(&self) -> bool {
        FILES && self.form != Form::Pages
    }

    /// Whether the value is in a raw page.
    pub(crate) fn is_raw(&self) -> bool {
        FILES && self.form == Form::Raw
    }

    /// Whether the value is in a commit.
    pub(crate) fn is_blob(&self) -> bool {
        FILES && self.form == Form::Blob
    }

    /// Bytes of the value.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Bytes of the head.
    pub(crate) fn head_size(&self) -> usize {
        FRONT + NUMBER * self.heads + self.rest + if self.has_check() { CHECK.end - CHECK.start } else { 0 }
    }

    /// Which bytes of the value its head has.
    pub(crate) fn rest(&self) -> Range<usize> {
        self.length - self.rest..self.length
    }

    /// Page numbers in the head.
    pub(crate) fn heads(&self) -> usize {
        self.heads
    }

    pub(crate) fn is_grouped(&self) -> bool {
        self.group > 1
    }

    fn group_size(&self) -> usize {
        let group = usize::from(self.group);
        group * self.payload - NUMBER * (group - 1)
    }

    /// Bytes of the value in a group.
    fn bytes_of(&self, group: usize) -> usize {
        (self.length - group * self.group_size()).min(self.group_size())
    }

    /// Pages of a group.
    pub(crate) fn pages_of(&self, group: usize) -> usize {
        if self.is_grouped() {
            (self.bytes_of(group).saturating_sub(NUMBER)).div_ceil(self.payload - NUMBER).max(1)
        } else {
            1
        }
    }

    /// Pages of the value.
    pub(crate) fn pages(&self) -> usize {
        (self.heads - 1) * usize::from(self.group) + self.pages_of(self.heads - 1)
    }

    /// The group of a page, and its place there.
    pub(crate) fn place(&self, page: usize) -> (usize, usize) {
        debug_assert!(page < self.pages(), "a page of the value");
        (page / usize::from(self.group), page % usize::from(self.group))
    }

    /// Whether a page's number stands in the head.
    pub(crate) fn is_leader(&self, page: usize) -> bool {
        let (group, place) = self.place(page);
        place + 1 == self.pages_of(group)
    }

    /// What a page has of the value.
    pub(crate) fn part(&self, page: usize) -> Range<usize> {
        let (group, place) = self.place(page);
        debug_assert!(group < self.heads, "the head has its number, or its leader's");
        let bytes = self.bytes_of(group);
        let from = (place * self.payload).min(bytes);
        let to = (from + self.payload).min(bytes);
        let at = group * self.group_size();
        at + from..at + to
    }

    /// The page that has a byte of the value.
    pub(crate) fn page_at(&self, offset: usize) -> usize {
        debug_assert!(offset < self.rest().start, "a byte in a page");
        let (group, rest) = (offset / self.group_size(), offset % self.group_size());
        group * usize::from(self.group) + (rest / self.payload).min(self.pages_of(group) - 1)
    }
}

/// Bytes of the value that a head says it has, if a record begins as one, and where they stand.
pub(crate) fn length_in(value: &[u8]) -> Option<(usize, Form)> {
    let (mark, rest) = value.split_first_chunk()?;
    let form = [Form::Pages, Form::Raw, Form::Blob].into_iter().find(|form| form.mark() == mark)?;
    Some((u32::from_le_bytes(*rest.first_chunk()?) as usize, form))
}

/// Whether a head names the commit that lists it.
pub(crate) fn names_own_page(value: &[u8]) -> bool {
    value.len() == RAW_HEAD_SIZE && value.starts_with(&BLOB_MARK) && number_in(value, 0) == OWN_PAGE
}

/// Writes what stands before the numbers in a head.
pub(crate) fn begin_head(head: &mut [u8], division: &Division) {
    debug_assert!((1..=VALUE_SIZE_MAX).contains(&division.length), "a value that can be divided");
    head[..MARK.len()].copy_from_slice(division.form.mark());
    head[MARK.len()..FRONT].copy_from_slice(&(division.length as u32).to_le_bytes());
}

/// Bytes of a head that names a raw page.
pub(crate) const RAW_HEAD_SIZE: usize = CHECK.end;

/// The head of a value of so many bytes in a raw page, which has this number and this checksum.
pub(crate) fn raw_head(length: usize, named: (u32, u32)) -> [u8; RAW_HEAD_SIZE] {
    let mut head = [0; RAW_HEAD_SIZE];
    head[MARK.len()..FRONT].copy_from_slice(&(length as u32).to_le_bytes());
    name_raw(&mut head, named);
    head
}

/// The head of a value of so many bytes with this checksum in the commit that lists it.
pub(crate) fn blob_head(length: usize, check: u32) -> [u8; RAW_HEAD_SIZE] {
    let mut head = raw_head(length, (OWN_PAGE, check));
    head[..MARK.len()].copy_from_slice(&BLOB_MARK);
    debug_assert!(names_own_page(&head), "it says so");
    head
}

/// A head of a value in one page names a raw page, with this number and this checksum.
pub(crate) fn name_raw(head: &mut [u8], (page, check): (u32, u32)) {
    debug_assert!(head.len() == RAW_HEAD_SIZE, "a value in one page");
    head[..MARK.len()].copy_from_slice(&RAW_MARK);
    set_number(head, page);
    head[CHECK].copy_from_slice(&check.to_le_bytes());
}

/// Where the checksum of a raw page stands in a head.
pub(crate) const CHECK: Range<usize> = FRONT + NUMBER..FRONT + 2 * NUMBER;

/// Where a page number stands in a head.
pub(crate) fn number_at(index: usize) -> Range<usize> {
    FRONT + NUMBER * index..FRONT + NUMBER * (index + 1)
}

/// A page number of a head.
pub(crate) fn number_in(head: &[u8], index: usize) -> u32 {
    number(&head[number_at(index)])
}

/// The bytes of the value that a head has.
pub(crate) fn rest_in<'h>(head: &'h [u8], division: &Division) -> &'h [u8] {
    &head[number_at(division.heads()).start..]
}

/// The head of a value of one page names this one.
pub(crate) fn set_number(head: &mut [u8], page: u32) {
    head[number_at(0)].copy_from_slice(&page.to_le_bytes());
}

/// Where the numbers stand that a leader has in so many bytes of content, of so many pages.
pub(crate) fn numbers_of(content: &Range<usize>, pages: usize) -> Option<Range<usize>> {
    let start = content.end.checked_sub(NUMBER * (pages - 1)).filter(|&start| start >= content.start)?;
    Some(start..content.end)
}

/// A number from its bytes.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(u32::MAX, |&bytes| u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::{Division, NUMBER, VALUE_SIZE_MAX, memory_required};

    /// Every byte stands in one place, in order, and no page has more than it takes.
    #[test]
    fn every_byte_of_a_value_has_one_place() {
        for (room, head, key) in [(460, 85, 16), (1990, 420, 8), (1990, 200, 228), (8140, 1900, 62)] {
            let mut length = 1;
            let (mut grouped, mut direct) = (0, 0);
            while let Some(division) = Division::new(room, head, key, length) {
                grouped += usize::from(division.is_grouped());
                direct += usize::from(!division.is_grouped());
                assert!(division.head_size() <= head);
                let mut at = 0;
                for page in 0..division.pages() {
                    let part = division.part(page);
                    assert_eq!(part.start, at, "{room} {head} {key} {length} {page}");
                    let (group, _) = division.place(page);
                    let numbers = if division.is_leader(page) { division.pages_of(group) - 1 } else { 0 };
                    assert!(part.len() + NUMBER * numbers <= room - 16 - key, "{length} {page}");
                    if let Some(last) = part.end.checked_sub(1).filter(|_| !part.is_empty()) {
                        assert_eq!((division.page_at(part.start), division.page_at(last)), (page, page));
                    }
                    at = part.end;
                }
                assert_eq!(division.rest(), at..length);
                length += 1 + length / 61;
            }
            assert!(grouped > 5 && direct > 20, "{grouped} {direct}");
        }
        assert!(Division::new(8140, 1900, 62, VALUE_SIZE_MAX).is_some() && memory_required(2048) == 512 + 1168);
    }
}
