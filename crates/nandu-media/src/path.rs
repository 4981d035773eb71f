//! FORMAT: Path page
//!
//! What a page of kind 12, a commit, or 13, a node page, holds behind the header that every page has: a path of the tree, or a part of one.
//! A commit is the state of the volume from the moment on that it is durable. A node page promises nothing: what is in it counts once a
//! commit leads to it.
//!
//! ```text
//! offset  size  field         meaning
//!      0     1  height        levels in the tree when the page was written: 1..=8
//!      1     1  lowest        lowest level present; leaves are at level 0. 0 in a bare commit
//!      2     1  levels        levels present: lowest, lowest + 1, ...; 0 in a bare commit and nowhere else
//!      3     1  cells         kind of cells: 1 fixed width, 2 byte strings
//!      4     1  key_size      bytes of a key; 0 where keys have any length
//!      5     1  page_bits     bits of a page number in an inner node
//!      6     2  value_size    bytes of a value; 0 where values have any length
//!      8     1  locator_size  bytes of `locator`; 0 in a page whose lowest node is a leaf, and in a bare commit
//!      9     1  flags         bit 0: sections stand behind the leaf, or the locator where there is none, up to the inner nodes; only in a commit
//!     10    2n  node_size     bytes of each node, lowest first
//!   then     8  records       only if the root is present, and in a bare commit: entries in the tree, 39 bits; how many pages of
//!                             values they name, 23 bits; whether there may be records of snapshots, 1 bit; whether some may
//!                             name pages of values, 1 bit
//!   then     4  root          only if the root is present, and in a bare commit: page that the root is in; all ones: this one
//!   then        locator       a key in the range of the lowest node, by which that node is found from the root
//!   then        leaf          if there is one
//!    end        nodes         inner nodes stand at the end of the page, the highest last
//! ```
//!
//! The root is present if and only if `lowest + levels = height`. A commit holds the root or is bare: then it holds no node, and `root` names a
//! page that holds the root and says the same height. `records` of a node page has no meaning once a commit follows. Numbers are little-endian.
//! What is between the nodes has no meaning, unless sections stand there. A commit has two kinds of them:
//!
//! ```text
//! changes    one after another up to the end of the section, as described under "Changes in a list": what the commit made durable and what older
//!            members of the window still wait with. Those of keys in the leaf of this page are among them
//! window     page 4 of each commit before this one whose changes are still needed, the oldest first: 0..=12
//! ```
//!
//! Who mounts makes the changes of the commits in `window` in memory, in their order, and then those of this one.

use core::ops::Range;

use crate::section::Sections;
use crate::tree::{CellFormat, HEIGHT_MAX, Malformed};
use crate::{NO_PAGE, PageKind};

const FIXED_SIZE: usize = 10;
const ROOT_META_SIZE: usize = 12;

/// Place of `flags` behind the header.
const FLAGS_AT: usize = 9;
const FLAG_SECTIONS: u8 = 1;

/// Most commits in the section `window`.
pub const WINDOW_MAX: usize = 12;

/// What the front of a path page says. All offsets count from the start of the page, header included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBody {
    height: u8,
    lowest: u8,
    levels: u8,
    format: CellFormat,
    records: u64,
    root: Option<u32>,
    locator: (u32, u32),
    /// Where each node is: offset and size, lowest first.
    nodes: [(u32, u32); HEIGHT_MAX],
    /// What is between the leaf, or the front, and the inner nodes: its start and its end.
    gap: (u32, u32),
    has_sections: bool,
}

impl PathBody {
    /// A page of which nothing is known.
    pub const EMPTY: PathBody = PathBody {
        height: 0,
        lowest: 0,
        levels: 0,
        format: CellFormat { cells: 0, key_size: 0, value_size: 0, page_bits: 0 },
        records: 0,
        root: None,
        locator: (0, 0),
        nodes: [(0, 0); HEIGHT_MAX],
        gap: (0, 0),
        has_sections: false,
    };

    /// Offset of the lowest node in a page with these levels; `says_root` is true where the root is present, and in a bare commit.
    pub const fn front(header_size: usize, levels: usize, says_root: bool, locator_size: usize) -> usize {
        let meta = if says_root { ROOT_META_SIZE } else { 0 };
        header_size + FIXED_SIZE + 2 * levels + meta + locator_size
    }

    /// Checks a page of this kind and finds its nodes. The content of the nodes is not looked at.
    pub fn parse(page: &[u8], header_size: usize, kind: PageKind) -> Result<PathBody, Malformed> {
        let mut body = PathBody::EMPTY;
        body.read(page, header_size, kind).map(|()| body)
    }

    /// As [`PathBody::parse`], of an empty body and where it stays: returned, it would be on the stack twice. After an error it means
    /// nothing.
    pub fn read(&mut self, page: &[u8], header_size: usize, kind: PageKind) -> Result<(), Malformed> {
        let body = page.get(header_size..).ok_or(Malformed::Short)?;
        let (fixed, rest) = body.split_first_chunk::<FIXED_SIZE>().ok_or(Malformed::Short)?;
        let &[height, lowest, levels, cells, key_size, page_bits, value_low, value_high, locator_size, flags] = fixed;
        if !(1..=HEIGHT_MAX as u8).contains(&height) || lowest >= height || levels > height - lowest {
            return Err(Malformed::Levels);
        }
        let is_bare = levels == 0;
        let says_root = is_bare || lowest + levels == height;
        let is_kind = match kind {
            PageKind::Commit => says_root,
            PageKind::Node => !is_bare,
            _ => false,
        };
        if !is_kind || (is_bare && lowest != 0) {
            return Err(Malformed::Levels);
        }
        if flags & !FLAG_SECTIONS != 0 || (flags != 0 && kind != PageKind::Commit) {
            return Err(Malformed::Reserved);
        }
        let count = levels as usize;
        let front = PathBody::front(header_size, count, says_root, locator_size as usize);
        if front > page.len() || (lowest == 0 && locator_size != 0) {
            return Err(Malformed::Short);
        }
        (self.records, self.root) = (0, None);
        if says_root {
            let meta = rest[2 * count..].first_chunk::<ROOT_META_SIZE>().ok_or(Malformed::Short)?;
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.records = number(&meta[..8]);
            let root = number(&meta[8..]) as u32;
            self.root = (root != NO_PAGE).then_some(root);
            if self.root.is_some() != is_bare {
                return Err(Malformed::Levels);
            }
        }
        let (mut start, mut end) = (front, page.len());
        for place in (0..count).rev() {
            let size = u16::from_le_bytes([rest[2 * place], rest[2 * place + 1]]) as usize;
            let is_leaf = place == 0 && lowest == 0;
            let offset = if is_leaf { front } else { end.checked_sub(size).ok_or(Malformed::NodeSizes)? };
            if offset < front || offset + size > end {
                return Err(Malformed::NodeSizes);
            }
            self.nodes[place] = (offset as u32, size as u32);
            if is_leaf {
                start = offset + size;
            } else {
                end = offset;
            }
        }
        (self.gap, self.has_sections) = ((start as u32, end as u32), flags != 0);
        self.format =
            CellFormat { cells, key_size, page_bits, value_size: u16::from_le_bytes([value_low, value_high]) };
        self.locator = ((front - locator_size as usize) as u32, u32::from(locator_size));
        (self.height, self.lowest, self.levels) = (height, lowest, levels);
        Ok(())
    }

    /// Levels in the tree when the page was written.
    pub const fn height(&self) -> u8 {
        self.height
    }

    /// Lowest level present.
    pub const fn lowest(&self) -> u8 {
        self.lowest
    }

    /// Number of levels present; 0 in a bare commit.
    pub const fn levels(&self) -> u8 {
        self.levels
    }

    /// Kind of the cells.
    pub const fn format(&self) -> CellFormat {
        self.format
    }

    /// Entries in the tree; 0 if the page neither holds nor names the root.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The page that a bare commit names.
    pub const fn named_root(&self) -> Option<u32> {
        self.root
    }

    /// Whether the root is in the page.
    pub const fn root_present(&self) -> bool {
        self.levels > 0 && self.lowest + self.levels == self.height
    }

    /// Where the node of a level is in the page.
    ///
    /// # Errors
    ///
    /// [`Malformed::LevelMissing`].
    pub fn node(&self, level: u8) -> Result<Range<usize>, Malformed> {
        if level < self.lowest || level >= self.lowest + self.levels {
            return Err(Malformed::LevelMissing);
        }
        let (offset, size) = self.nodes[(level - self.lowest) as usize];
        Ok(offset as usize..(offset + size) as usize)
    }

    /// Where the sections of this page are.
    ///
    /// # Errors
    ///
    /// [`Malformed::Reserved`] and [`Malformed::Short`] for sections that are none.
    pub fn sections(&self, page: &[u8]) -> Result<Sections, Malformed> {
        match self.has_sections {
            true => Sections::parse(page, self.gap.0 as usize..self.gap.1 as usize),
            false => Ok(Sections::NONE),
        }
    }

    /// Where the locator is in the page.
    pub fn locator(&self) -> Range<usize> {
        self.locator.0 as usize..(self.locator.0 + self.locator.1) as usize
    }
}

/// What the front of a path page is written from.
#[derive(Clone, Copy, Debug)]
pub struct PathFront<'a> {
    /// Levels in the tree.
    pub height: u8,
    /// Lowest level present; 0 in a bare commit.
    pub lowest: u8,
    /// Kind of the cells.
    pub format: CellFormat,
    /// Entries in the tree; written if the root is present or named.
    pub records: u64,
    /// The page that a bare commit names; `None` in every other page.
    pub root: Option<u32>,
    /// A key in the range of the lowest node; empty if that is a leaf.
    pub locator: &'a [u8],
    /// Size of each node present, lowest first; none in a bare commit.
    pub sizes: &'a [u16],
}

impl PathFront<'_> {
    /// Writes it behind the header and returns where it ends, which is where a leaf goes.
    pub fn write(&self, page: &mut [u8], header_size: usize) -> usize {
        let levels = self.sizes.len();
        let is_bare = levels == 0;
        let says_root = is_bare || self.lowest as usize + levels == self.height as usize;
        assert!(self.lowest as usize + levels <= self.height as usize, "levels fit the height");
        assert!(self.lowest > 0 || self.locator.is_empty(), "a leaf is found by its own keys");
        assert!(self.root.is_some() == is_bare && self.root != Some(NO_PAGE), "a bare commit names the root");
        let front = PathBody::front(header_size, levels, says_root, self.locator.len());
        let (body, locator) = page[header_size..front].split_at_mut(front - header_size - self.locator.len());
        locator.copy_from_slice(self.locator);
        let CellFormat { cells, key_size, value_size, page_bits } = self.format;
        let [value_low, value_high] = value_size.to_le_bytes();
        let locator_size = self.locator.len() as u8;
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
            0,
        ];
        body[..FIXED_SIZE].copy_from_slice(&fixed);
        let (sizes, meta) = body[FIXED_SIZE..].split_at_mut(2 * levels);
        for (place, size) in sizes.chunks_exact_mut(2).zip(self.sizes) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        if says_root {
            meta[..8].copy_from_slice(&self.records.to_le_bytes());
            meta[8..].copy_from_slice(&self.root.unwrap_or(NO_PAGE).to_le_bytes());
        }
        front
    }
}

/// Says in the front of a page, which was written, that sections stand in it.
pub fn flag_sections(page: &mut [u8], header_size: usize) {
    page[header_size + FLAGS_AT] = FLAG_SECTIONS;
}

#[cfg(test)]
mod tests {
    use super::{PathBody, PathFront, flag_sections};
    use crate::PageKind::{Commit, Node, Value};
    use crate::section::{SectionKind, SectionWriter};
    use crate::tree::{CellFormat, Malformed};

    const FORMAT: CellFormat = CellFormat { cells: 1, key_size: 4, value_size: 0x0102, page_bits: 15 };
    const FRONT: PathFront<'static> = PathFront {
        height: 3,
        lowest: 0,
        format: FORMAT,
        records: 0x0A0B,
        root: None,
        locator: &[],
        sizes: &[5, 4, 3],
    };

    #[test]
    fn the_bytes_of_a_page_with_the_root_are_frozen() {
        let mut page = [0xEE_u8; 64];
        assert_eq!(FRONT.write(&mut page, 8), 36);
        let expected =
            [3, 0, 3, 1, 4, 15, 2, 1, 0, 0, 5, 0, 4, 0, 3, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!((&page[8..36], page[36]), (&expected[..], 0xEE));
        for kind in [Commit, Node] {
            let body = PathBody::parse(&page, 8, kind).unwrap();
            assert_eq!((body.records(), body.named_root(), body.root_present()), (0x0A0B, None, true));
            assert_eq!([0, 1, 2].map(|level| body.node(level).unwrap()), [36..41, 57..61, 61..64]);
            assert_eq!((body.node(3), body.format()), (Err(Malformed::LevelMissing), FORMAT));
        }
        assert_eq!(PathBody::parse(&page, 8, Value), Err(Malformed::Levels));
    }

    #[test]
    fn the_bytes_of_a_bare_commit_are_frozen() {
        let mut page = [0xEE_u8; 64];
        let front = PathFront { root: Some(0x0102), sizes: &[], ..FRONT };
        assert_eq!(front.write(&mut page, 8), 30);
        let expected = [3, 0, 0, 1, 4, 15, 2, 1, 0, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0];
        assert_eq!(page[8..30], expected);
        let body = PathBody::parse(&page, 8, Commit).unwrap();
        assert_eq!((body.height(), body.levels(), body.records()), (3, 0, 0x0A0B));
        assert_eq!((body.named_root(), body.root_present()), (Some(0x0102), false));
        assert_eq!(body.node(0), Err(Malformed::LevelMissing));
        assert_eq!(PathBody::parse(&page, 8, Node), Err(Malformed::Levels), "only a commit is bare");
        page[9] = 1;
        assert_eq!(PathBody::parse(&page, 8, Commit), Err(Malformed::Levels));
        page[9] = 0;
        page[26..30].fill(0xFF);
        assert_eq!(PathBody::parse(&page, 8, Commit), Err(Malformed::Levels), "it names the root");
    }

    #[test]
    fn sections_stand_between_leaf_and_inner_nodes() {
        let mut page = [0xEE_u8; 64];
        FRONT.write(&mut page, 8);
        let mut writer = SectionWriter::new(&mut page[41..57]);
        writer.add(SectionKind::Changes, 2).copy_from_slice(&[0, 7]);
        writer.add(SectionKind::Window, 4).copy_from_slice(&[9, 0, 0, 0]);
        writer.finish();
        assert!(
            PathBody::parse(&page, 8, Commit).unwrap().sections(&page).unwrap().find(SectionKind::Changes).is_none()
        );
        flag_sections(&mut page, 8);
        assert_eq!((page[17], &page[41..57]), (1, &[1, 0, 2, 0, 0, 7, 4, 0, 4, 0, 9, 0, 0, 0, 0xFF, 0xFF][..]));
        let sections = PathBody::parse(&page, 8, Commit).unwrap().sections(&page).unwrap();
        assert_eq!(sections.find(SectionKind::Changes), Some(45..47));
        assert_eq!(sections.find(SectionKind::Window), Some(51..55));
        assert_eq!(PathBody::parse(&page, 8, Node), Err(Malformed::Reserved), "what promises nothing lists nothing");
    }

    #[test]
    fn the_bytes_of_a_node_by_itself_are_frozen() {
        let mut page = [0xEE_u8; 40];
        let front = PathFront { lowest: 1, locator: b"key", sizes: &[5], ..FRONT };
        assert_eq!(front.write(&mut page, 8), 23);
        assert_eq!(page[8..23], [3, 1, 1, 1, 4, 15, 2, 1, 3, 0, 5, 0, b'k', b'e', b'y']);
        let body = PathBody::parse(&page, 8, Node).unwrap();
        assert_eq!((body.lowest(), body.records(), body.locator(), body.node(1)), (1, 0, 20..23, Ok(35..40)));
        assert_eq!(PathBody::parse(&page, 8, Commit), Err(Malformed::Levels), "a commit holds or names the root");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut page = [0_u8; 64];
        PathFront { height: 2, sizes: &[9, 9], records: 0, ..FRONT }.write(&mut page, 8);
        let with = |place: usize, value: u8| {
            let mut page = page;
            page[place] = value;
            PathBody::parse(&page, 8, Commit)
        };
        assert_eq!(with(8, 0), Err(Malformed::Levels));
        assert_eq!(with(8, 9), Err(Malformed::Levels));
        assert_eq!(with(9, 2), Err(Malformed::Levels));
        assert_eq!(with(10, 3), Err(Malformed::Levels));
        assert_eq!(with(10, 1), Err(Malformed::Levels));
        assert_eq!(with(16, 1), Err(Malformed::Short));
        assert_eq!(with(17, 2), Err(Malformed::Reserved));
        assert_eq!(with(19, 1), Err(Malformed::NodeSizes));
        assert_eq!(with(20, 60), Err(Malformed::NodeSizes));
        assert_eq!(with(30, 1), Err(Malformed::Levels), "a commit with nodes names no other page");
        assert_eq!(PathBody::parse(&page[..12], 8, Commit), Err(Malformed::Short));
        assert_eq!(PathBody::parse(&page[..31], 8, Commit), Err(Malformed::Short));
        assert_eq!(PathBody::parse(&page[..7], 8, Commit), Err(Malformed::Short));
    }
}
