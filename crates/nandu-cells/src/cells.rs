//! What a kind of cells can do.

use core::ops::Range;

use nandu_index::KeyBuf;

use crate::run::{InnerRun, LeafRun};

pub(crate) mod sealed {
    /// Keeps other crates from making kinds of cells, which would be formats of their own.
    pub trait Sealed {}
}

/// A kind of cells. Implemented by [`FixedCells`](crate::FixedCells) and [`ByteCells`](crate::ByteCells) and by nobody else.
///
/// Nodes given to the methods passed [`Cells::leaf_check`] or [`Cells::inner_check`], or were encoded here; others make them panic.
pub trait Cells: Copy + sealed::Sealed {
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

    /// Copies a leaf to the front of `out`, each of its keys with these bytes before it, and returns its size; `None` if there is no room, or keys cannot become longer.
    fn leaf_prefixed(&self, node: &[u8], before: &[u8], out: &mut [u8]) -> Option<usize>;

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
