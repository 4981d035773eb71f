//! FORMAT: Sections
//!
//! What a commit carries besides its nodes, between leaf and inner nodes. A flag in the front of the page says that there are sections.
//!
//! ```text
//! offset  size  field     meaning
//!      0     1  kind      1 changes that wait for their leaves: as described under "Changes in a list"
//!                         3 a value that a record in the section of the kind 1 names
//!                         4 commits whose changes are still needed: as described under "Path page"
//!      1     1  reserved  zero, checked on read
//!      2     2  size      bytes of `content`
//!      4        content
//! ```
//!
//! They follow one another without a gap, kinds ascend, and the first byte behind the last is an erased one (`0xFF`), unless
//! fewer bytes than the front of a section are left; so are all others up to the end. Numbers are little-endian.

use core::ops::Range;

use crate::tree::Malformed;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SectionKind {
    /// Changes that no leaf holds yet.
    Changes = 1,
    /// Pages of the owner's bytes that nothing else describes.
    Notes = 2,
    /// A value that a record among the changes names.
    Value = 3,
    /// Commits whose changes are still needed.
    Window = 4,
}

/// Kinds that there are.
const KIND_COUNT: usize = 4;

/// Bytes in front of the content of a section.
pub const SECTION_FRONT_SIZE: usize = 4;

/// Where the sections of a page are. All offsets count from the start of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// Of each kind, where its content is: offset and size; 0 and 0 if there is none.
    contents: [(u32, u32); KIND_COUNT],
}

impl Sections {
    /// No sections.
    pub const NONE: Sections = Sections { contents: [(0, 0); KIND_COUNT] };

    /// Checks the sections in a part of a page. What they hold is not looked at.
    pub fn parse(page: &[u8], room: Range<usize>) -> Result<Sections, Malformed> {
        let bytes = page.get(room.clone()).ok_or(Malformed::Short)?;
        let mut sections = Sections::default();
        let mut at = 0;
        let mut last = 0;
        while let Some(&[kind, reserved, size_low, size_high]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            if kind == 0xFF {
                break;
            }
            if kind <= last || usize::from(kind) > KIND_COUNT || reserved != 0 {
                return Err(Malformed::Reserved);
            }
            let size = usize::from(u16::from_le_bytes([size_low, size_high]));
            at += SECTION_FRONT_SIZE;
            if size > bytes.len() - at {
                return Err(Malformed::Short);
            }
            sections.contents[usize::from(kind) - 1] = ((room.start + at) as u32, size as u32);
            at += size;
            last = kind;
        }
        if bytes[at..].iter().any(|&byte| byte != 0xFF) {
            return Err(Malformed::Reserved);
        }
        Ok(sections)
    }

    /// Where the content of a section is, if there is one of this kind.
    pub fn find(&self, kind: SectionKind) -> Option<Range<usize>> {
        let (offset, size) = self.contents[kind as usize - 1];
        (offset > 0).then_some(offset as usize..(offset + size) as usize)
    }
}

/// Bytes that sections take whose contents have these sizes.
pub fn sections_size(contents: &[usize]) -> usize {
    contents.iter().map(|size| SECTION_FRONT_SIZE + size).sum()
}

/// Writes sections into a part of a page, kinds ascending.
#[derive(Debug)]
pub struct SectionWriter<'a> {
    room: &'a mut [u8],
    at: usize,
    last: u8,
}

impl<'a> SectionWriter<'a> {
    /// Begins in front of this room.
    pub fn new(room: &'a mut [u8]) -> SectionWriter<'a> {
        SectionWriter { room, at: 0, last: 0 }
    }

    /// Bytes that the content of one more section may have; `None` if there is no room for one.
    pub fn size_max(&self) -> Option<usize> {
        let left = (self.room.len() - self.at).checked_sub(SECTION_FRONT_SIZE)?;
        Some(left.min(usize::from(u16::MAX)))
    }

    /// The place for the content of one more section, at most [`SectionWriter::size_max`] bytes. To ask for more, or for kinds
    /// in another order, is a bug.
    pub fn add(&mut self, kind: SectionKind, size: usize) -> &mut [u8] {
        assert!(self.size_max().is_some_and(|most| size <= most), "a section fits its page");
        assert!(kind as u8 > self.last, "kinds ascend");
        self.last = kind as u8;
        let [low, high] = (size as u16).to_le_bytes();
        let start = self.at + SECTION_FRONT_SIZE;
        self.room[self.at..start].copy_from_slice(&[kind as u8, 0, low, high]);
        self.at = start + size;
        &mut self.room[start..self.at]
    }

    /// Fills what is left with erased bytes.
    pub fn finish(self) {
        self.room[self.at..].fill(0xFF);
    }
}

#[cfg(test)]
mod tests {
    use super::{SectionKind, SectionWriter, Sections, sections_size};
    use crate::tree::Malformed;

    fn page() -> [u8; 24] {
        let mut page = [0xEE; 24];
        let mut writer = SectionWriter::new(&mut page[2..20]);
        assert_eq!(writer.size_max(), Some(14));
        writer.add(SectionKind::Changes, 3).copy_from_slice(&[7, 8, 9]);
        assert_eq!(writer.size_max(), Some(7));
        writer.add(SectionKind::Value, 2).copy_from_slice(&[5, 6]);
        writer.finish();
        page
    }

    #[test]
    fn the_bytes_of_sections_are_frozen() {
        let page = page();
        let expected = [1, 0, 3, 0, 7, 8, 9, 3, 0, 2, 0, 5, 6, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xEE];
        assert_eq!(page[2..21], expected);
        let sections = Sections::parse(&page, 2..20).unwrap();
        assert_eq!(sections.find(SectionKind::Changes), Some(6..9));
        assert_eq!(sections.find(SectionKind::Notes), None);
        assert_eq!(sections.find(SectionKind::Value), Some(13..15));
        assert_eq!(sections_size(&[3, 2]), 13);
    }

    #[test]
    fn a_section_may_fill_its_room_or_leave_less_than_a_front() {
        for left in 0..4 {
            let mut page = [0xEE; 16];
            let mut writer = SectionWriter::new(&mut page);
            writer.add(SectionKind::Notes, 12 - left).fill(1);
            assert_eq!(writer.size_max(), None.or(left.checked_sub(4)));
            writer.finish();
            let sections = Sections::parse(&page, 0..16).unwrap();
            assert_eq!(sections.find(SectionKind::Notes), Some(4..16 - left));
        }
        assert_eq!(Sections::parse(&[], 0..0), Ok(Sections::default()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let page = page();
        let with = |place: usize, value: u8| {
            let mut page = page;
            page[2 + place] = value;
            Sections::parse(&page, 2..20).map(|_| ())
        };
        assert_eq!(with(0, 0), Err(Malformed::Reserved));
        assert_eq!(with(0, 5), Err(Malformed::Reserved));
        assert_eq!(with(0, 3), Err(Malformed::Reserved), "kinds ascend");
        assert_eq!(with(1, 1), Err(Malformed::Reserved));
        assert_eq!(with(2, 15), Err(Malformed::Short));
        assert_eq!(with(0, 0xFF), Err(Malformed::Reserved), "what follows is not erased");
        assert_eq!(with(17, 0), Err(Malformed::Reserved));
        assert_eq!(Sections::parse(&page, 2..25), Err(Malformed::Short));
    }
}
