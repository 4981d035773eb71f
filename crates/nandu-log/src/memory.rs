//! The caller's memory, divided.
//!
//! What holds whole pages comes first: so in aligned memory, as a driver with DMA wants it, each page is aligned.

use core::mem::size_of;

use nandu_media::features::MLC;
use nandu_nand::{Geometry, TearScope};
use zerocopy::FromBytes;

use crate::block_table::{BlockEntry, TablePage};
use crate::options::LogOptions;
use crate::shape::{Shape, exposed_max, table_pages_max};
use crate::slots::Slot;

/// The parts of the caller's memory.
pub(crate) struct Parts<'m> {
    pub(crate) entries: &'m mut [BlockEntry],
    pub(crate) table_pages: &'m mut [TablePage],
    pub(crate) page: &'m mut [u8],
    /// Exposed pages of streams with two bits a cell, and what they hold.
    pub(crate) slots: &'m mut [Slot],
    pub(crate) copies: &'m mut [u8],
}

/// Pages whose content is kept, since a failed program may destroy them.
fn slot_count(shape: &Shape) -> usize {
    shape.exposed_max() as usize * (shape.streams - shape.first_mlc()) as usize
}

/// Bytes needed for a volume of this shape: 8 for each block, 8 for each page that the block table may take, one page; and 8 and a page
/// for each page that may be exposed at once. What a format may leave open makes no difference, so that a mount divides its memory before it
/// knows the volume.
const fn size(geometry: &Geometry, slot_count: usize) -> usize {
    geometry.block_count as usize * size_of::<BlockEntry>()
        + table_pages_max(geometry) as usize * size_of::<TablePage>()
        + geometry.page_size as usize
        + slot_count * (size_of::<Slot>() + geometry.page_size as usize)
}

/// Bytes needed for a volume of this shape.
pub(crate) fn required(shape: &Shape) -> usize {
    size(&shape.geometry, slot_count(shape))
}

/// Bytes needed for any volume with these options, whether the chip suits them or not.
pub(crate) const fn required_for(geometry: &Geometry, options: &LogOptions) -> usize {
    let has_exposed = MLC && options.mlc_streams > 0 && matches!(geometry.tear, TearScope::Pair);
    let slot_count = if has_exposed { exposed_max(geometry) as usize * options.mlc_streams as usize } else { 0 };
    size(geometry, slot_count)
}

/// Divides the memory; `None` if it is too small.
pub(crate) fn divide<'m>(shape: &Shape, memory: &'m mut [u8]) -> Option<Parts<'m>> {
    let block_count = shape.geometry.block_count as usize;
    let slots_size = slot_count(shape);
    let page_size = shape.geometry.page_size as usize;
    let (page, rest) = memory.split_at_mut_checked(page_size)?;
    let (copies, rest) = rest.split_at_mut_checked(slots_size * page_size)?;
    let (entries, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, block_count).ok()?;
    let (table_pages, rest) = <[TablePage]>::mut_from_prefix_with_elems(rest, shape.table_pages_max as usize).ok()?;
    let (slots, _) = <[Slot]>::mut_from_prefix_with_elems(rest, slots_size).ok()?;
    Some(Parts { entries, table_pages, page, slots, copies })
}
