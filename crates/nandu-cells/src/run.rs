//! Runs: entries of old nodes with a change in the middle, seen as one sequence.

use core::ops::Range;

use nandu_index::KeyBuf;

use crate::cells::Cells;

/// Stands for "the page this node is in" where a page number is expected.
pub const SELF: u32 = u32::MAX;

/// In the field of an inner node that names its child in the same page: there is none.
pub(crate) const NO_PATH: u16 = u16::MAX;

/// Where a change stands in a run of a leaf's entries.
#[derive(Clone, Copy, Debug)]
pub struct RunEdit<'a> {
    /// Index in the run.
    pub at: usize,
    /// Whether it takes the place of an entry, or stands before it.
    pub replaces: bool,
    /// Key of the entry.
    pub key: &'a [u8],
    /// Its value, as the leaf has it.
    pub value: &'a [u8],
}

/// Entries of a leaf, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    node: &'a [u8],
    start: usize,
    count: usize,
}

impl<'a> Stretch<'a> {
    /// No entries.
    pub const NONE: Stretch<'static> = Stretch { node: &[], start: 0, count: 0 };

    /// These entries of a leaf.
    pub fn new(node: &'a [u8], entries: Range<usize>) -> Self {
        Stretch { node, start: entries.start, count: entries.len() }
    }

    /// All entries of a leaf.
    pub fn whole<C: Cells>(cells: C, node: &'a [u8]) -> Self {
        Stretch { node, start: 0, count: cells.leaf_count(node) }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Entries of one or two neighbouring leaves with a change in the middle.
#[derive(Clone, Copy, Debug)]
pub struct LeafRun<'a> {
    first: Stretch<'a>,
    second: Stretch<'a>,
    edit: Option<RunEdit<'a>>,
}

impl<'a> LeafRun<'a> {
    /// The entries of both, the first before the second, with the change among them.
    pub fn new(first: Stretch<'a>, second: Stretch<'a>, edit: Option<RunEdit<'a>>) -> Self {
        LeafRun { first, second, edit }
    }

    /// Entries in it.
    pub fn count(&self) -> usize {
        self.first.count + self.second.count + usize::from(self.edit.is_some_and(|edit| !edit.replaces))
    }

    /// Either the change, or an old node and the index of the entry in it.
    pub(crate) fn locate(&self, index: usize) -> Result<RunEdit<'a>, (&'a [u8], usize)> {
        self.stretch(index, index + 1).map_err(|(node, entries)| (node, entries.start))
    }

    /// Either the change, or an old node and its entries from there on that follow each other up to `end`.
    pub(crate) fn stretch(&self, index: usize, end: usize) -> Result<RunEdit<'a>, (&'a [u8], Range<usize>)> {
        let (mut old, mut count) = (index, end - index);
        if let Some(edit) = self.edit {
            match edit.at.checked_sub(index) {
                Some(0) => return Ok(edit),
                Some(before) => count = count.min(before),
                None => old -= usize::from(!edit.replaces),
            }
        }
        let (stretch, at) = match old.checked_sub(self.first.count) {
            Some(at) => (self.second, at),
            None => (self.first, old),
        };
        let start = stretch.start + at;
        Err((stretch.node, start..start + count.min(stretch.count - at)))
    }

    /// Copies the key of an entry out.
    pub fn key<C: Cells>(&self, cells: C, index: usize, out: &mut KeyBuf) {
        match self.locate(index) {
            Ok(edit) => {
                out.set(edit.key);
            }
            Err((node, index)) => cells.leaf_key(node, index, out),
        }
    }

    /// The value of an entry.
    pub fn value<C: Cells>(&self, cells: C, index: usize) -> &'a [u8] {
        match self.locate(index) {
            Ok(edit) => edit.value,
            Err((node, index)) => cells.leaf_value(node, index),
        }
    }
}

/// The children of an inner node, some neighbours among them replaced by others. Children are absolute page numbers,
/// or [`SELF`] for at most one of the new ones.
#[derive(Clone, Copy, Debug)]
pub struct InnerRun<'a> {
    /// The old node; empty for a node that did not exist.
    pub node: &'a [u8],
    /// Page that the old node is in.
    pub page: u32,
    /// First child replaced.
    pub at: usize,
    /// How many are replaced.
    pub removed: usize,
    /// What takes their place.
    pub pages: &'a [u32],
    /// Between the new children; one fewer than those.
    pub separators: &'a [KeyBuf],
    /// Bits of a page number.
    pub page_bits: u32,
}

impl InnerRun<'_> {
    fn old_count<C: Cells>(&self, cells: C) -> usize {
        if self.node.is_empty() { 0 } else { cells.inner_count(self.node) }
    }

    /// Children in it.
    pub fn count<C: Cells>(&self, cells: C) -> usize {
        self.old_count(cells) + self.pages.len() - self.removed
    }

    /// Page of a child, or [`SELF`].
    pub fn child<C: Cells>(&self, cells: C, index: usize) -> u32 {
        let new_count = self.pages.len();
        let old = if index < self.at {
            index
        } else if index < self.at + new_count {
            return self.pages[index - self.at];
        } else {
            index + self.removed - new_count
        };
        if cells.inner_path(self.node) == Some(old) {
            return self.page;
        }
        cells.inner_child(self.node, old, self.page_bits)
    }

    /// Where the separator between children `index` and `index + 1` is: among the new ones, or else in the old node. The range of a child
    /// removed goes to its right neighbour, or of the last child to its left one.
    pub(crate) fn locate(&self, index: usize) -> Result<usize, usize> {
        let new_count = self.pages.len();
        if index < self.at {
            Err(index)
        } else if index + 1 < self.at + new_count {
            Ok(index - self.at)
        } else {
            Err(index + self.removed - new_count)
        }
    }

    /// Copies that separator out.
    pub fn separator<C: Cells>(&self, cells: C, index: usize, out: &mut KeyBuf) {
        match self.locate(index) {
            Ok(index) => *out = self.separators[index],
            Err(index) => cells.inner_separator(self.node, index, out),
        }
    }
}
