//! The caller's memory, divided.
//!
//! What holds a whole page comes first: so in aligned memory, as a driver with DMA wants it, the page is aligned.

use core::mem::size_of;

use nandu_nand::Geometry;
use zerocopy::FromBytes;

use crate::blocks::{BlockEntry, TablePage};
use crate::shape::table_pages_max;

pub(crate) struct Parts<'m> {
    pub(crate) page: &'m mut [u8],
    pub(crate) entries: &'m mut [BlockEntry],
    pub(crate) table: &'m mut [TablePage],
}

/// Bytes needed for any volume on a chip: one page, 8 for each block, and 8 for each page that the block table may take.
pub(crate) const fn required(geometry: &Geometry) -> usize {
    geometry.page_size as usize
        + geometry.block_count as usize * size_of::<BlockEntry>()
        + table_pages_max(geometry) as usize * size_of::<TablePage>()
}

/// Divides the memory; `None` if it is too small.
pub(crate) fn divide<'m>(geometry: &Geometry, memory: &'m mut [u8]) -> Option<Parts<'m>> {
    let (page, rest) = memory.split_at_mut_checked(geometry.page_size as usize)?;
    let (entries, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, geometry.block_count as usize).ok()?;
    let (table, _) = <[TablePage]>::mut_from_prefix_with_elems(rest, table_pages_max(geometry) as usize).ok()?;
    Some(Parts { page, entries, table })
}
