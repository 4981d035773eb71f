//! What a log is put together from: a chip, and the caller's memory, divided.
//!
//! What holds a whole page comes first: so in aligned memory, as a driver with DMA wants it, the page is aligned.

use core::mem::size_of;

use nandu_nand::{Geometry, Nand};
use zerocopy::FromBytes;

use crate::blocks::{BlockEntry, TablePage};
use crate::error::LogError;
use crate::options::{Broken, LogOptions};
use crate::shape::{Shape, table_pages_max};

/// A chip that can hold a volume, and memory that suffices. Small, unlike a log.
#[derive(Debug)]
pub struct Parts<'m, N> {
    pub(crate) nand: N,
    pub(crate) shape: Shape,
    pub(crate) page: &'m mut [u8],
    pub(crate) entries: &'m mut [BlockEntry],
    pub(crate) table: &'m mut [TablePage],
    pub(crate) reads_back: bool,
    pub(crate) reads_max: Option<u32>,
    pub(crate) broken: Broken,
}

impl<'m, N: Nand> Parts<'m, N> {
    /// Holds the chip against the options, and divides the memory. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`LogError::Geometry`], [`LogError::Memory`] and [`LogError::Unsuitable`].
    pub fn new(nand: N, options: &LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        let shape = Shape::new(nand.geometry(), options)?;
        let required = memory_required(&shape.geometry);
        let (page, entries, table) = divide(&shape.geometry, memory).ok_or(LogError::Memory { required })?;
        let (reads_back, reads_max, broken) = (options.read_back, options.reads_max, options.broken());
        Ok(Parts { nand, shape, page, entries, table, reads_back, reads_max, broken })
    }

    /// The chip's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    /// Bytes at the front of a page that the log fills in, unless a volume that is mounted has another number of streams.
    pub fn header_size(&self) -> usize {
        self.shape.header_size()
    }
}

/// Bytes needed for any volume on a chip: one page, 6 for each block, and 8 for each page that the block table may take.
pub(crate) const fn memory_required(geometry: &Geometry) -> usize {
    geometry.page_size as usize
        + geometry.block_count as usize * size_of::<BlockEntry>()
        + table_pages_max(geometry) as usize * size_of::<TablePage>()
}

type Divided<'m> = (&'m mut [u8], &'m mut [BlockEntry], &'m mut [TablePage]);

/// Divides the memory; `None` if it is too small.
fn divide<'m>(geometry: &Geometry, memory: &'m mut [u8]) -> Option<Divided<'m>> {
    let (page, rest) = memory.split_at_mut_checked(geometry.page_size as usize)?;
    let (entries, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, geometry.block_count as usize).ok()?;
    let (table, _) = <[TablePage]>::mut_from_prefix_with_elems(rest, table_pages_max(geometry) as usize).ok()?;
    Some((page, entries, table))
}
