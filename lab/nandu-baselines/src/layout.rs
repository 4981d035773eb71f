//! Where the nodes of a page lie: one node to a page in the B+-tree, halves of halves in the paper's mu-Tree.

use core::ops::Range;

use nandu_nand::Geometry;

use crate::BaselineError;
use crate::entry::{ENTRY_SIZE, Entry, decode, encode};

/// More levels than this no tree has: a node of a level holds a dozen entries and more, and keys have 32 bits.
pub(crate) const HEIGHT_MAX: u8 = 8;

/// Bytes of the bad-block mark at the beginning of the spare area, which stay as they are.
const MARK_SIZE: usize = 2;

/// Bytes of [`Facts`].
pub(crate) const FACTS_SIZE: usize = 2 + 2 * HEIGHT_MAX as usize;

/// Which tree is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// The mu-Tree of the paper: the whole path from the leaf to the root in one page, the leaf in half of it, each level
    /// above in half of the one below, the root in as much as its children.
    Mu,
    /// The wandering B+-tree of JFFS3: one node to a page, so that a change programs a page for each level.
    BPlus,
}

/// Which bytes of a page belong to what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) kind: TreeKind,
    /// Entries that fit the whole page: the paper's f.
    pub(crate) entry_count: usize,
    /// First column of the nodes.
    first_column: usize,
    /// First column of the facts.
    facts_column: usize,
    /// Bytes of a page that are programmed.
    pub(crate) size: usize,
}

impl Layout {
    /// Nodes take the whole main area, as in the paper; what a header would say stands in the spare area.
    pub(crate) fn without_header<E: core::error::Error + 'static>(
        kind: TreeKind,
        geometry: &Geometry,
    ) -> Result<Layout, BaselineError<E>> {
        if (geometry.spare_size as usize) < MARK_SIZE + FACTS_SIZE {
            return Err(BaselineError::Unsuitable { what: "the spare area is too small" });
        }
        Ok(Layout {
            kind,
            entry_count: geometry.page_size as usize / ENTRY_SIZE,
            first_column: 0,
            facts_column: geometry.page_size as usize + MARK_SIZE,
            size: geometry.column_count() as usize,
        })
    }

    /// Nodes lie behind a header of so many bytes, which has room for the facts at a column.
    pub(crate) fn with_header(kind: TreeKind, geometry: &Geometry, header_size: usize, facts_column: usize) -> Layout {
        let size = geometry.page_size as usize;
        Layout { kind, entry_count: (size - header_size) / ENTRY_SIZE, first_column: header_size, facts_column, size }
    }

    /// Entries that a node at a level, from 1, may hold in a tree of this height.
    pub(crate) fn capacity(&self, level: u8, height: u8) -> usize {
        match self.kind {
            TreeKind::BPlus => self.entry_count,
            // Twice what its halves may hold, or they would not fit the next size down when it is split.
            TreeKind::Mu if level == height => 2 * (self.entry_count >> level),
            TreeKind::Mu => self.entry_count >> level,
        }
    }

    /// Most levels that the tree can have.
    pub(crate) fn height_max(&self) -> u8 {
        match self.kind {
            TreeKind::BPlus => HEIGHT_MAX,
            // A root that begins with two entries must have room for a third, since it is split when it becomes full.
            TreeKind::Mu => (1..=HEIGHT_MAX).rev().find(|&height| self.capacity(height, height) >= 3).unwrap_or(1),
        }
    }

    /// Columns of a node's room.
    fn place(&self, level: u8, height: u8) -> Range<usize> {
        let first = match self.kind {
            TreeKind::BPlus => 0,
            TreeKind::Mu if level == height => 0,
            TreeKind::Mu => self.entry_count >> level,
        };
        let start = self.first_column + first * ENTRY_SIZE;
        start..start + self.capacity(level, height) * ENTRY_SIZE
    }

    /// Columns of a node's entries.
    pub(crate) fn node(&self, facts: &Facts, level: u8, height: u8) -> Option<Range<usize>> {
        if level == 0 || level > HEIGHT_MAX {
            return None;
        }
        let room = self.place(level, height);
        let count = usize::from(facts.counts[usize::from(level) - 1]);
        let holds = level >= facts.lowest && level <= facts.height && count <= self.capacity(level, height);
        holds.then_some(room.start..room.start + count * ENTRY_SIZE)
    }

    /// What a page says of its nodes.
    pub(crate) fn facts(&self, page: &[u8]) -> Facts {
        let bytes = &page[self.facts_column..self.facts_column + FACTS_SIZE];
        let mut counts = [0; HEIGHT_MAX as usize];
        for (count, pair) in counts.iter_mut().zip(bytes[2..].chunks_exact(2)) {
            *count = u16::from_le_bytes([pair[0], pair[1]]);
        }
        Facts { height: bytes[0], lowest: bytes[1], counts }
    }
}

/// What would stand in a page's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Levels of the tree when the page was made. The page need not hold them all.
    pub(crate) height: u8,
    /// The lowest level in the page.
    pub(crate) lowest: u8,
    /// Entries of the node at each level.
    counts: [u16; HEIGHT_MAX as usize],
}

/// A page being put together.
#[derive(Debug)]
pub(crate) struct Image {
    layout: Layout,
    pub(crate) bytes: Vec<u8>,
}

impl Image {
    /// A page without nodes.
    pub(crate) fn new(layout: &Layout) -> Image {
        let mut bytes = vec![0xFF; layout.size];
        bytes[layout.facts_column..layout.facts_column + FACTS_SIZE].fill(0);
        Image { layout: *layout, bytes }
    }

    /// Puts a node in. Levels come from the bottom up; `height` is the tree's once the operation is done.
    pub(crate) fn set(&mut self, level: u8, height: u8, entries: &[Entry]) {
        debug_assert!(entries.len() <= self.layout.capacity(level, height), "a node is larger than its room");
        let room = self.layout.place(level, height);
        encode(entries, &mut self.bytes[room]);
        let facts = &mut self.bytes[self.layout.facts_column..][..FACTS_SIZE];
        facts[0] = height;
        if facts[1] == 0 {
            facts[1] = level;
        }
        let at = 2 * usize::from(level);
        facts[at..at + 2].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    }

    /// Entries of a node put in before.
    #[cfg(test)]
    fn get(&self, level: u8, height: u8) -> Vec<Entry> {
        let facts = self.layout.facts(&self.bytes);
        self.layout.node(&facts, level, height).map(|range| decode(&self.bytes[range]).collect()).unwrap_or_default()
    }
}

/// All entries of a node, in a vector that is used again.
pub(crate) fn decode_into(node: &[u8], entries: &mut Vec<Entry>) {
    entries.clear();
    entries.extend(decode(node));
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandu_nand::NandErrorKind;
    use nandu_sim::Chip;

    fn paper() -> Layout {
        Layout::without_header::<NandErrorKind>(TreeKind::Mu, &Chip::PAPER_MLC.geometry).unwrap()
    }

    #[test]
    fn levels_take_the_shares_of_the_page_that_the_paper_gives_them() {
        let layout = paper();
        assert_eq!(layout.place(1, 1), 0..4096);
        assert_eq!((layout.place(1, 2), layout.place(2, 2)), (2048..4096, 0..2048));
        assert_eq!([1, 2, 3].map(|level| layout.place(level, 3)), [2048..4096, 1024..2048, 0..1024]);
        assert_eq!([1, 2, 3, 4].map(|level| layout.place(level, 4)), [2048..4096, 1024..2048, 512..1024, 0..512]);
        assert_eq!([1, 2, 3].map(|level| layout.capacity(level, 3)), [256, 128, 128]);
        assert_eq!(layout.height_max(), 8);
    }

    #[test]
    fn a_node_is_found_where_it_was_put_even_when_the_tree_has_grown() {
        let layout = paper();
        let run = |from: u32, count: u32| -> Vec<Entry> {
            (from..from + count).map(|key| Entry { key, value: !key }).collect()
        };
        let mut image = Image::new(&layout);
        image.set(1, 3, &run(0, 256));
        image.set(2, 3, &run(1000, 128));
        image.set(3, 3, &run(2000, 127));
        assert_eq!(image.get(3, 3), run(2000, 127));
        assert_eq!((image.get(1, 4), image.get(2, 4)), (run(0, 256), run(1000, 128)));
        let facts = layout.facts(&image.bytes);
        assert_eq!((facts.height, facts.lowest), (3, 1));
        assert!(layout.node(&facts, 4, 4).is_none(), "there is no fourth level in this page");
    }
}
