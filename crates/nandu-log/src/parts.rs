//! What a log is put together from: a chip, and the caller's memory, divided.
//!
//! What holds a whole page comes first: so in aligned memory, as a driver with DMA wants it, the page is aligned.

use core::fmt;
use core::mem::size_of;

use nandu_media::features::MLC;
use nandu_nand::{Geometry, Nand};
use zerocopy::FromBytes;

use crate::blocks::{BlockEntry, TablePage};
use crate::error::LogError;
use crate::options::{Broken, LogOptions};
use crate::partners::exposed_max;
use crate::raw::{Owner, groups};
use crate::shape::{Shape, owners_max, table_pages_max};

/// A chip that can hold a volume, and memory that suffices. Small, unlike a log.
pub struct Parts<'m, N> {
    pub(crate) nand: N,
    pub(crate) shape: Shape,
    pub(crate) page: &'m mut [u8],
    /// Bytes of pages with two bits a cell that nobody else has.
    pub(crate) exposed: &'m mut [u8],
    pub(crate) entries: &'m mut [BlockEntry],
    pub(crate) table: &'m mut [TablePage],
    /// Of the groups of raw pages that are filled, and of the one that is emptied.
    pub(crate) owners: &'m mut [Owner],
    pub(crate) reads_back: bool,
    pub(crate) reads_max: Option<u32>,
    pub(crate) broken: Broken,
}

impl<N> fmt::Debug for Parts<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<'m, N: Nand> Parts<'m, N> {
    /// Holds the chip against the options, and divides the memory. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`LogError::Geometry`], [`LogError::Memory`] and [`LogError::Unsuitable`].
    pub fn new(nand: N, options: &LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        let shape = Shape::new(nand.geometry(), options)?;
        let required = memory_required(&shape.geometry, options);
        let divided = divide(&shape.geometry, options, memory).ok_or(LogError::Memory { required })?;
        let ((page, exposed), entries, table, owners) = divided;
        let (reads_back, reads_max, broken) = (options.read_back, options.reads_max, options.broken());
        Ok(Parts { nand, shape, page, exposed, entries, table, owners, reads_back, reads_max, broken })
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

/// Bytes needed for any volume on a chip: one page, 6 for each block, 8 for each page that the block table may take; and where there are raw pages 24 for each of a group and 24 more. With two bits a cell 36
/// for each page of a block, and a few pages.
pub(crate) const fn memory_required(geometry: &Geometry, options: &LogOptions) -> usize {
    geometry.page_size as usize
        + exposed_size(geometry, options)
        + geometry.block_count as usize * size_of::<BlockEntry>()
        + table_pages_max(geometry) as usize * size_of::<TablePage>()
        + owners(geometry, options) * size_of::<Owner>()
}

/// Places for the owners of groups, and for which each is.
const fn owners(geometry: &Geometry, options: &LogOptions) -> usize {
    let groups = if options.has_raw { groups(options.has_mlc) } else { 0 };
    groups * (owners_max(geometry, options.has_mlc) + 1)
}

/// Room for pages with two bits a cell that an owner appended and whose partner is to be programmed, and for one that is programmed elsewhere.
const fn exposed_size(geometry: &Geometry, options: &LogOptions) -> usize {
    if MLC && options.has_mlc { (exposed_max(geometry) + 1) * geometry.page_size as usize } else { 0 }
}

type Divided<'m> = ((&'m mut [u8], &'m mut [u8]), &'m mut [BlockEntry], &'m mut [TablePage], &'m mut [Owner]);

/// Divides the memory; `None` if it is too small.
fn divide<'m>(geometry: &Geometry, options: &LogOptions, memory: &'m mut [u8]) -> Option<Divided<'m>> {
    let (page, rest) = memory.split_at_mut_checked(geometry.page_size as usize)?;
    let (exposed, rest) = rest.split_at_mut_checked(exposed_size(geometry, options))?;
    let (entries, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, geometry.block_count as usize).ok()?;
    let (table, rest) = <[TablePage]>::mut_from_prefix_with_elems(rest, table_pages_max(geometry) as usize).ok()?;
    let (owners, _) = <[Owner]>::mut_from_prefix_with_elems(rest, owners(geometry, options)).ok()?;
    owners.fill(Owner::NOBODY);
    Some(((page, exposed), entries, table, owners))
}
