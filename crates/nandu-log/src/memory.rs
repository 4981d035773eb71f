//! The caller's memory, divided.

use core::mem::size_of;

use nandu_nand::Geometry;
use zerocopy::FromBytes;

use crate::block_table::{BlockEntry, TablePage};
use crate::options::LogOptions;
use crate::shape::Shape;

/// The parts of the caller's memory.
pub(crate) struct Parts<'m> {
    pub(crate) entries: &'m mut [BlockEntry],
    pub(crate) table_pages: &'m mut [TablePage],
    pub(crate) page: &'m mut [u8],
}

/// Bytes needed for a volume of this shape: 8 for each block, 8 for each page of the block table, one page.
pub(crate) fn required(shape: &Shape) -> usize {
    shape.geometry.block_count as usize * size_of::<BlockEntry>()
        + shape.table_pages as usize * size_of::<TablePage>()
        + shape.geometry.page_size as usize
}

/// As [`required`], most that any volume on the chip can need if the options leave something open.
pub(crate) fn required_for(geometry: &Geometry, options: &LogOptions) -> usize {
    Shape::new(geometry, options).map_or(0, |shape| required(&shape))
}

/// Divides the memory; `None` if it is too small.
pub(crate) fn divide<'m>(shape: &Shape, memory: &'m mut [u8]) -> Option<Parts<'m>> {
    let block_count = shape.geometry.block_count as usize;
    let (entries, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(memory, block_count).ok()?;
    let (table_pages, rest) = <[TablePage]>::mut_from_prefix_with_elems(rest, shape.table_pages as usize).ok()?;
    let page = rest.get_mut(..shape.geometry.page_size as usize)?;
    Some(Parts { entries, table_pages, page })
}
