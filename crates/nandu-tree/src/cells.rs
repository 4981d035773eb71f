//! What differs between kinds of keys and values: how a node is packed into bytes.
//!
//! A node is a slice of bytes. [`Cells`] searches it, edits a leaf in place where that is cheap, and encodes a node
//! anew from a *run*: entries of old nodes with a change in the middle, seen as one sequence. So no step needs a
//! decoded copy of a node.

mod bytes;
mod fixed;

use core::ops::Range;

use nandu_index::KeyBuf;

pub use bytes::ByteCells;
pub use fixed::FixedCells;

/// Stands for "the page this node is in" where a page number is expected.
pub(crate) const SELF: u32 = u32::MAX;

/// In the field of an inner node that names its child in the same page: there is none.
pub(crate) const NO_PATH: u16 = u16::MAX;

/// A kind of cells. Implemented by [`FixedCells`] and [`ByteCells`] and by nobody else: the trait is public because
/// [`Tree`](crate::Tree) is generic in it, but its methods are not for callers.
pub trait Cells: Copy + sealed::Cells {}

impl<T: Copy + sealed::Cells> Cells for T {}

/// Where a change stands in a run of a leaf's entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEdit<'a> {
    /// Index in the run.
    pub(crate) at: usize,
    /// Whether it takes the place of an entry, or stands before it.
    pub(crate) replaces: bool,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Entries of a leaf, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'a> {
    node: &'a [u8],
    start: usize,
    count: usize,
}

impl<'a> Stretch<'a> {
    pub(crate) const NONE: Stretch<'static> = Stretch { node: &[], start: 0, count: 0 };

    /// These entries of a leaf.
    pub(crate) fn new(node: &'a [u8], entries: Range<usize>) -> Self {
        Stretch { node, start: entries.start, count: entries.len() }
    }

    pub(crate) fn whole<C: Cells>(cells: C, node: &'a [u8]) -> Self {
        Stretch { node, start: 0, count: cells.leaf_count(node) }
    }

    pub(crate) fn count(&self) -> usize {
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
    pub(crate) fn new(first: Stretch<'a>, second: Stretch<'a>, edit: Option<RunEdit<'a>>) -> Self {
        LeafRun { first, second, edit }
    }

    pub(crate) fn count(&self) -> usize {
        self.first.count + self.second.count + usize::from(self.edit.is_some_and(|edit| !edit.replaces))
    }

    /// Either the change, or an old node and the index of the entry in it.
    fn locate(&self, index: usize) -> Result<RunEdit<'a>, (&'a [u8], usize)> {
        let mut old = index;
        if let Some(edit) = self.edit {
            if index == edit.at {
                return Ok(edit);
            }
            old -= usize::from(index > edit.at && !edit.replaces);
        }
        let Stretch { node, start, count } = self.first;
        Err(if old < count { (node, start + old) } else { (self.second.node, self.second.start + old - count) })
    }

    pub(crate) fn key<C: Cells>(&self, cells: C, index: usize, out: &mut KeyBuf) {
        match self.locate(index) {
            Ok(edit) => {
                out.set(edit.key);
            }
            Err((node, index)) => cells.leaf_key(node, index, out),
        }
    }

    pub(crate) fn value<C: Cells>(&self, cells: C, index: usize) -> &'a [u8] {
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
    pub(crate) node: &'a [u8],
    /// Page that the old node is in.
    pub(crate) page: u32,
    /// First child replaced.
    pub(crate) at: usize,
    /// How many are replaced.
    pub(crate) removed: usize,
    /// What takes their place.
    pub(crate) pages: &'a [u32],
    /// Between the new children; one fewer than those.
    pub(crate) separators: &'a [KeyBuf],
    /// Bits of a page number.
    pub(crate) page_bits: u32,
}

impl InnerRun<'_> {
    fn old_count<C: Cells>(&self, cells: C) -> usize {
        if self.node.is_empty() { 0 } else { cells.inner_count(self.node) }
    }

    pub(crate) fn count<C: Cells>(&self, cells: C) -> usize {
        self.old_count(cells) + self.pages.len() - self.removed
    }

    pub(crate) fn child<C: Cells>(&self, cells: C, index: usize) -> u32 {
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
    fn locate(&self, index: usize) -> Result<usize, usize> {
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
    pub(crate) fn separator<C: Cells>(&self, cells: C, index: usize, out: &mut KeyBuf) {
        match self.locate(index) {
            Ok(index) => *out = self.separators[index],
            Err(index) => cells.inner_separator(self.node, index, out),
        }
    }
}

pub(crate) mod sealed {
    use super::{InnerRun, KeyBuf, LeafRun, Range};

    /// The methods of a kind of cells. Nodes given to them passed `leaf_check` or `inner_check`, or were encoded here.
    pub trait Cells {
        /// Number of the kind in a page.
        const KIND: u8;

        /// Bytes of a key, 0 for any.
        fn key_size(&self) -> u8;
        /// Bytes of a value, 0 for any.
        fn value_size(&self) -> u16;
        /// Bytes that an entry takes in a leaf, at most.
        fn entry_size(&self, key: &[u8], value: &[u8]) -> usize;
        /// The key below every other.
        fn minimum(&self, out: &mut KeyBuf);
        /// Makes of a key the cheapest separator not above it that is above `below`, which is less than the key.
        fn separator(&self, below: &[u8], key: &mut KeyBuf);
        /// What a separator costs in the node that holds it; only the order of costs matters.
        fn separator_cost(&self, separator: &[u8]) -> u32;

        /// Whether the accessors may be used on this leaf.
        fn leaf_check(&self, node: &[u8]) -> bool;
        /// Entries in it.
        fn leaf_count(&self, node: &[u8]) -> usize;
        /// Index of a key, or where it would be.
        fn leaf_find(&self, node: &[u8], key: &[u8]) -> Result<usize, usize>;
        /// Copies a key out.
        fn leaf_key(&self, node: &[u8], index: usize, out: &mut KeyBuf);
        /// A value.
        fn leaf_value<'n>(&self, node: &'n [u8], index: usize) -> &'n [u8];
        /// Puts an entry into the leaf in `buf[..size]`, growing it, and returns its new size; `None`, with nothing
        /// changed, if there is no room or the leaf must be encoded anew.
        fn leaf_put(
            &self,
            buf: &mut [u8],
            size: usize,
            at: Result<usize, usize>,
            key: &[u8],
            value: &[u8],
        ) -> Option<usize>;
        /// Removes an entry and returns the new size.
        fn leaf_remove(&self, buf: &mut [u8], size: usize, index: usize) -> usize;
        /// Size that these entries take as a leaf.
        fn leaf_size(&self, run: &LeafRun<'_>, entries: Range<usize>) -> usize;
        /// Encodes these entries as a leaf at the front of `out` and returns its size; `None` if there is no room.
        fn leaf_encode(&self, run: &LeafRun<'_>, entries: Range<usize>, out: &mut [u8]) -> Option<usize>;

        /// Whether the accessors may be used on this inner node.
        fn inner_check(&self, node: &[u8], page_bits: u32) -> bool;
        /// Children in it.
        fn inner_count(&self, node: &[u8]) -> usize;
        /// Index of the child in the same page.
        fn inner_path(&self, node: &[u8]) -> Option<usize>;
        /// Index of the child whose range holds a key; with `before`, of the child whose range holds what is just
        /// before the key.
        fn inner_find(&self, node: &[u8], key: &[u8], before: bool) -> usize;
        /// Page of a child that is not in the same page.
        fn inner_child(&self, node: &[u8], index: usize, page_bits: u32) -> u32;
        /// Copies the separator between children `index` and `index + 1` out.
        fn inner_separator(&self, node: &[u8], index: usize, out: &mut KeyBuf);
        /// Writes where the child in the same page, if any, is from now on, and names another child as that.
        fn inner_repath(&self, node: &mut [u8], page: u32, path: Option<usize>, page_bits: u32);
        /// Size that these children take as an inner node.
        fn inner_size(&self, run: &InnerRun<'_>, children: Range<usize>) -> usize;
        /// Encodes these children as an inner node at the front of `out`; `None` if there is no room.
        fn inner_encode(&self, run: &InnerRun<'_>, children: Range<usize>, out: &mut [u8]) -> Option<usize>;
    }
}

#[inline(always)]
pub(crate) fn get_u16(node: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([node[at], node[at + 1]])
}

pub(crate) fn set_u16(node: &mut [u8], at: usize, value: u16) {
    node[at..at + 2].copy_from_slice(&value.to_le_bytes());
}
