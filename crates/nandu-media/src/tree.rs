//! FORMAT: Tree page
//!
//! What a page of the tree holds behind the header that every page has.
//!
//! ```text
//! offset  size  field         meaning
//!      0     1  height        levels in the tree when the page was written: 1..=8
//!      1     1  lowest        lowest level present; leaves are at level 0
//!      2     1  levels        levels present: lowest, lowest + 1, ...
//!      3     1  cells         kind of cells: 1 fixed width, 2 byte strings
//!      4     1  key_size      bytes of a key; 0 where keys have any length
//!      5     1  page_bits     bits of a page number in an inner node
//!      6     2  value_size    bytes of a value; 0 where values have any length
//!      8     1  locator_size  bytes of `locator`; 0 in a page whose lowest node is a leaf
//!      9     1  table_high    highest byte of `table`; 0 unless the root is present
//!     10    2n  node_size     bytes of each node, lowest first
//!   then     8  records       only if the root is present: entries in the tree
//!   then     1  flags         only if the root is present: bit 0: values were put that have pages of their own, bit 1: there
//!                             are sections
//!   then     3  table         only if the root is present: lower bytes of the newest snapshot table's page number, plus
//!                             one; 0 if there is none. What a page says of it that was not a commit, or is not the
//!                             newest one, has no meaning
//!   then     4  journal       only if the root is present: newest journal page, plus one; 0 if there is none, all ones if
//!                             this page is it, as its section says. What a page says of it that was not a commit, or is
//!                             not the newest one, has no meaning
//!   then        locator       a key in the range of the lowest node, by which that node is found from the root
//!   then        leaf          if there is one
//!    end        nodes         inner nodes stand at the end of the page, the highest last
//! ```
//!
//! A leaf is those entries in its page whose keys are between the separators beside its page number in the nodes above: not below the
//! left one, below the right one. The entry in the middle, number `count / 2` counted from 0, is among them. Others went to
//! another page when the leaf was parted, and have no meaning.
//!
//! The root is present if and only if `lowest + levels = height`. Numbers are little-endian. Between the leaf, or where there
//! is none the locator, and the inner nodes stand sections, if the flag says so, and then erased bytes (`0xFF`).

use core::fmt;
use core::ops::Range;

use crate::section::{SectionKind, Sections};

/// No tree is higher.
pub const HEIGHT_MAX: usize = 8;

const FIXED_SIZE: usize = 10;
const ROOT_META_SIZE: usize = 16;

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The page ends before its content does.
    Short,
    /// Height, lowest level and number of levels do not fit each other.
    Levels,
    /// A reserved byte is not zero.
    Reserved,
    /// The nodes are larger than the page.
    NodeSizes,
    /// The page holds no node of the level that was looked for.
    LevelMissing,
    /// The content of a node contradicts its size.
    Node,
    /// A page number lies outside the chip.
    PageNumber,
    /// Cells of another kind or size than the tree has.
    Cells,
    /// The path from the root to a node does not fit a page.
    PathTooLarge,
    /// The checksum of a page value is another one.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Short => "it ends before its content does",
            Malformed::Levels => "its levels contradict each other",
            Malformed::Reserved => "a reserved byte is not zero",
            Malformed::NodeSizes => "its nodes are larger than the page",
            Malformed::LevelMissing => "it lacks the level looked for",
            Malformed::Node => "a node contradicts its size",
            Malformed::PageNumber => "a page number lies outside the chip",
            Malformed::Cells => "its cells are of another kind",
            Malformed::PathTooLarge => "the path to it does not fit a page",
            Malformed::Checksum => "its checksum is wrong",
        })
    }
}

/// Flag of a page with a root: values were put that have pages of their own.
const FLAG_VALUES: u8 = 1;

/// Flag of a page with a root: there are sections.
const FLAG_SECTIONS: u8 = 2;

/// Kind and sizes of the cells of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellFormat {
    /// 1 fixed width, 2 byte strings.
    pub cells: u8,
    /// Bytes of a key; 0 where keys have any length.
    pub key_size: u8,
    /// Bytes of a value; 0 where values have any length.
    pub value_size: u16,
    /// Bits of a page number in an inner node.
    pub page_bits: u8,
}

/// Where the newest journal page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalAt {
    /// In this page, which has a section of changes.
    Here,
    /// In another page.
    Page(u32),
}

impl JournalAt {
    fn number(self) -> u32 {
        match self {
            JournalAt::Here => u32::MAX,
            JournalAt::Page(page) => page.wrapping_add(1),
        }
    }

    fn from_number(number: u32) -> Option<JournalAt> {
        match number {
            0 => None,
            u32::MAX => Some(JournalAt::Here),
            _ => Some(JournalAt::Page(number - 1)),
        }
    }
}

/// What the front of a tree page says. All offsets count from the start of the page, header included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeBody {
    /// Levels in the tree when the page was written.
    pub height: u8,
    /// Lowest level present.
    pub lowest: u8,
    /// Number of levels present.
    pub levels: u8,
    /// Kind of the cells.
    pub format: CellFormat,
    /// Entries in the tree; 0 if the root is not present.
    pub records: u64,
    /// Whether values were put that have pages of their own; false if the root is not present.
    pub has_values: bool,
    /// The newest journal page when this one was written, if there was one; `None` if the root is not present.
    pub journal: Option<JournalAt>,
    /// The snapshot table when this page was written, if there was one; `None` if the root is not present.
    pub table: Option<u32>,
    /// What else the page carries.
    pub sections: Sections,
    /// Where the locator is.
    pub locator: (u32, u32),
    /// Where each node is: offset and size, lowest first.
    nodes: [(u32, u32); HEIGHT_MAX],
}

impl TreeBody {
    /// Offset of the lowest node in a page with these levels.
    pub const fn front(header_size: usize, levels: usize, root_present: bool, locator_size: usize) -> usize {
        let meta = if root_present { ROOT_META_SIZE } else { 0 };
        header_size + FIXED_SIZE + 2 * levels + meta + locator_size
    }

    /// Whether the root is in the page.
    pub const fn root_present(&self) -> bool {
        self.lowest + self.levels == self.height
    }

    /// A page of which nothing is known.
    pub const EMPTY: TreeBody = TreeBody {
        height: 0,
        lowest: 0,
        levels: 0,
        format: CellFormat { cells: 0, key_size: 0, value_size: 0, page_bits: 0 },
        records: 0,
        has_values: false,
        journal: None,
        table: None,
        sections: Sections::NONE,
        locator: (0, 0),
        nodes: [(0, 0); HEIGHT_MAX],
    };

    /// Checks a page and finds its nodes. The content of the nodes is not looked at.
    pub fn parse(page: &[u8], header_size: usize) -> Result<TreeBody, Malformed> {
        let mut body = TreeBody::EMPTY;
        body.read(page, header_size).map(|()| body)
    }

    /// As [`TreeBody::parse`], of an empty body and where it stays: returned, it would be on the stack twice. After an error it means
    /// nothing.
    pub fn read(&mut self, page: &[u8], header_size: usize) -> Result<(), Malformed> {
        let body = page.get(header_size..).ok_or(Malformed::Short)?;
        let (fixed, rest) = body.split_first_chunk::<FIXED_SIZE>().ok_or(Malformed::Short)?;
        let &[height, lowest, levels, cells, key_size, page_bits, value_low, value_high, locator_size, table_high] =
            fixed;
        if !(1..=HEIGHT_MAX as u8).contains(&height) || lowest >= height || levels == 0 || levels > height - lowest {
            return Err(Malformed::Levels);
        }
        let root_present = lowest + levels == height;
        if table_high != 0 && !root_present {
            return Err(Malformed::Reserved);
        }
        let count = levels as usize;
        let front = TreeBody::front(header_size, count, root_present, locator_size as usize);
        if front > page.len() || (lowest == 0 && locator_size != 0) {
            return Err(Malformed::Short);
        }
        let mut has_sections = false;
        if root_present {
            let meta = rest[2 * count..].first_chunk::<ROOT_META_SIZE>().ok_or(Malformed::Short)?;
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            if meta[8] > FLAG_VALUES | FLAG_SECTIONS {
                return Err(Malformed::Reserved);
            }
            self.records = number(&meta[..8]);
            self.has_values = meta[8] & FLAG_VALUES != 0;
            has_sections = meta[8] & FLAG_SECTIONS != 0;
            self.table = u32::from_le_bytes([meta[9], meta[10], meta[11], table_high]).checked_sub(1);
            self.journal = JournalAt::from_number(number(&meta[12..]) as u32);
        }
        let mut end = page.len();
        let mut gap_start = front;
        for place in (0..count).rev() {
            let size = u16::from_le_bytes([rest[2 * place], rest[2 * place + 1]]) as usize;
            let is_leaf = place == 0 && lowest == 0;
            let offset = if is_leaf { front } else { end.checked_sub(size).ok_or(Malformed::NodeSizes)? };
            if offset < front || offset + size > end {
                return Err(Malformed::NodeSizes);
            }
            self.nodes[place] = (offset as u32, size as u32);
            if is_leaf {
                gap_start = offset + size;
            } else {
                end = offset;
            }
        }
        self.format =
            CellFormat { cells, key_size, page_bits, value_size: u16::from_le_bytes([value_low, value_high]) };
        if has_sections {
            self.sections = Sections::parse(page, gap_start..end)?;
        }
        if self.journal == Some(JournalAt::Here) && self.sections.find(SectionKind::Changes).is_none() {
            return Err(Malformed::Levels);
        }
        self.locator = ((front - locator_size as usize) as u32, u32::from(locator_size));
        (self.height, self.lowest, self.levels) = (height, lowest, levels);
        Ok(())
    }

    /// Where the node of a level is in the page.
    pub fn node(&self, level: u8) -> Result<Range<usize>, Malformed> {
        if level < self.lowest || level >= self.lowest + self.levels {
            return Err(Malformed::LevelMissing);
        }
        let (offset, size) = self.nodes[(level - self.lowest) as usize];
        Ok(offset as usize..(offset + size) as usize)
    }

    /// Where the locator is in the page.
    pub fn locator(&self) -> Range<usize> {
        self.locator.0 as usize..(self.locator.0 + self.locator.1) as usize
    }
}

/// What the front of a tree page is written from.
#[derive(Clone, Copy, Debug)]
pub struct TreeFront<'a> {
    /// Levels in the tree.
    pub height: u8,
    /// Lowest level present.
    pub lowest: u8,
    /// Kind of the cells.
    pub format: CellFormat,
    /// Entries in the tree; written if the root is present.
    pub records: u64,
    /// Whether values were ever put that have pages of their own; written if the root is present.
    pub has_values: bool,
    /// The newest journal page, if there is one; written if the root is present. Never one of the last two page numbers of all.
    pub journal: Option<JournalAt>,
    /// The snapshot table, if there is one; written if the root is present. Never the last page number of all.
    pub table: Option<u32>,
    /// Whether sections follow the leaf, or the locator where there is none; written if the root is present.
    pub has_sections: bool,
    /// A key in the range of the lowest node; empty if that is a leaf.
    pub locator: &'a [u8],
    /// Size of each node present, lowest first.
    pub sizes: &'a [u16],
}

impl TreeFront<'_> {
    /// Writes it behind the header and returns where it ends, which is where a leaf goes.
    pub fn write(&self, page: &mut [u8], header_size: usize) -> usize {
        let levels = self.sizes.len();
        let root_present = self.lowest as usize + levels == self.height as usize;
        assert!(levels > 0 && self.lowest as usize + levels <= self.height as usize, "levels fit the height");
        assert!(self.lowest > 0 || self.locator.is_empty(), "a leaf is found by its own keys");
        assert!(root_present || !self.has_sections, "what a page carries is found beside the root");
        let front = TreeBody::front(header_size, levels, root_present, self.locator.len());
        let (body, locator) = page[header_size..front].split_at_mut(front - header_size - self.locator.len());
        locator.copy_from_slice(self.locator);
        let CellFormat { cells, key_size, value_size, page_bits } = self.format;
        let [value_low, value_high] = value_size.to_le_bytes();
        let locator_size = self.locator.len() as u8;
        let table = self.table.filter(|_| root_present).map_or(0, |page| page.wrapping_add(1)).to_le_bytes();
        let fixed = [
            self.height,
            self.lowest,
            levels as u8,
            cells,
            key_size,
            page_bits,
            value_low,
            value_high,
            locator_size,
            table[3],
        ];
        body[..FIXED_SIZE].copy_from_slice(&fixed);
        let rest = &mut body[FIXED_SIZE..];
        for (place, size) in self.sizes.iter().enumerate() {
            rest[2 * place..2 * place + 2].copy_from_slice(&size.to_le_bytes());
        }
        if root_present {
            rest[2 * levels..2 * levels + 8].copy_from_slice(&self.records.to_le_bytes());
            let journal = self.journal.map_or(0, JournalAt::number);
            let values = if self.has_values { FLAG_VALUES } else { 0 };
            rest[2 * levels + 8] = values | if self.has_sections { FLAG_SECTIONS } else { 0 };
            rest[2 * levels + 9..2 * levels + 12].copy_from_slice(&table[..3]);
            rest[2 * levels + 12..].copy_from_slice(&journal.to_le_bytes());
        }
        front
    }
}

#[cfg(test)]
mod tests {
    use super::{CellFormat, JournalAt, Malformed, TreeBody, TreeFront};
    use crate::section::{SectionKind, SectionWriter};

    const FORMAT: CellFormat = CellFormat { cells: 1, key_size: 4, value_size: 0x0102, page_bits: 15 };

    #[test]
    fn the_bytes_of_a_page_with_the_root_are_frozen() {
        let mut page = [0xEE_u8; 64];
        let front = TreeFront {
            height: 3,
            lowest: 0,
            format: FORMAT,
            records: 0x0A0B,
            has_values: true,
            journal: Some(JournalAt::Page(0x0102)),
            table: Some(0x0102_0304),
            has_sections: false,
            locator: &[],
            sizes: &[5, 4, 3],
        };
        assert_eq!(front.write(&mut page, 8), 40);
        let expected =
            [3, 0, 3, 1, 4, 15, 2, 1, 0, 1, 5, 0, 4, 0, 3, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 1, 5, 3, 2, 3, 1, 0, 0];
        assert_eq!(page[8..40], expected);
        let body = TreeBody::parse(&page, 8).unwrap();
        assert_eq!((body.records, body.has_values, body.journal), (0x0A0B, true, Some(JournalAt::Page(0x0102))));
        assert_eq!(body.table, Some(0x0102_0304));
        assert_eq!([0, 1, 2].map(|level| body.node(level).unwrap()), [40..45, 57..61, 61..64]);
        assert_eq!(body.node(3), Err(Malformed::LevelMissing));
    }

    #[test]
    fn a_page_without_leaf_carries_a_locator_and_no_count() {
        let mut page = [0xEE_u8; 40];
        let front = TreeFront {
            height: 3,
            lowest: 1,
            format: FORMAT,
            records: 9,
            has_values: true,
            journal: Some(JournalAt::Page(1)),
            table: Some(0x0102_0304),
            has_sections: false,
            locator: b"key",
            sizes: &[5],
        };
        assert_eq!(front.write(&mut page, 8), 23);
        assert_eq!(page[8..23], [3, 1, 1, 1, 4, 15, 2, 1, 3, 0, 5, 0, b'k', b'e', b'y']);
        let body = TreeBody::parse(&page, 8).unwrap();
        assert_eq!((body.records, body.journal, body.locator(), body.node(1)), (0, None, 20..23, Ok(35..40)));
        assert_eq!(body.table, None);
        page[17] = 1;
        assert_eq!(TreeBody::parse(&page, 8), Err(Malformed::Reserved));
    }

    #[test]
    fn sections_stand_between_the_leaf_and_the_inner_nodes() {
        let mut page = [0xEE_u8; 64];
        let mut front = TreeFront {
            height: 2,
            lowest: 0,
            format: FORMAT,
            records: 3,
            has_values: false,
            journal: Some(JournalAt::Here),
            table: None,
            has_sections: true,
            locator: &[],
            sizes: &[5, 4],
        };
        let end = front.write(&mut page, 8) + 5;
        let mut writer = SectionWriter::new(&mut page[end..60]);
        writer.add(SectionKind::Changes, 2).fill(7);
        writer.finish();
        assert_eq!((page[30], &page[34..38], &page[43..50]), (2, &[0xFF; 4][..], &[1, 0, 2, 0, 7, 7, 0xFF][..]));
        let body = TreeBody::parse(&page, 8).unwrap();
        assert_eq!((body.journal, body.sections.find(SectionKind::Changes)), (Some(JournalAt::Here), Some(47..49)));
        page[43..49].fill(0xFF);
        assert_eq!(TreeBody::parse(&page, 8), Err(Malformed::Levels), "the journal is said to be here");

        (front.height, front.lowest) = (3, 1);
        front.locator = b"key";
        let end = front.write(&mut page, 8);
        let mut writer = SectionWriter::new(&mut page[end..55]);
        writer.add(SectionKind::Changes, 10).fill(7);
        writer.finish();
        let body = TreeBody::parse(&page, 8).unwrap();
        assert_eq!(body.sections.find(SectionKind::Changes), Some(45..55));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut page = [0_u8; 64];
        let front = TreeFront {
            height: 2,
            lowest: 0,
            format: FORMAT,
            records: 0,
            has_values: false,
            journal: None,
            table: None,
            has_sections: false,
            locator: &[],
            sizes: &[9, 9],
        };
        front.write(&mut page, 8);
        let with = |place: usize, value: u8| {
            let mut page = page;
            page[place] = value;
            TreeBody::parse(&page, 8)
        };
        assert_eq!(with(8, 0), Err(Malformed::Levels));
        assert_eq!(with(8, 9), Err(Malformed::Levels));
        assert_eq!(with(9, 2), Err(Malformed::Levels));
        assert_eq!(with(10, 0), Err(Malformed::Levels));
        assert_eq!(with(10, 3), Err(Malformed::Levels));
        assert_eq!(with(16, 1), Err(Malformed::Short));
        assert_eq!(with(19, 1), Err(Malformed::NodeSizes));
        assert_eq!(with(20, 60), Err(Malformed::NodeSizes));
        assert_eq!(with(30, 1).map(|body| (body.has_values, body.journal)), Ok((true, None)));
        assert_eq!(with(30, 2), Err(Malformed::Reserved), "sections that are none");
        assert_eq!(with(30, 4), Err(Malformed::Reserved));
        assert_eq!(with(31, 1).map(|body| body.table), Ok(Some(0)));
        assert_eq!(with(17, 1).map(|body| body.table), Ok(Some((1 << 24) - 1)));
        assert_eq!(with(34, 1).map(|body| (body.has_values, body.journal)), Ok((false, Some(JournalAt::Page(0)))));
        assert_eq!(TreeBody::parse(&page[..12], 8), Err(Malformed::Short));
    }
}
