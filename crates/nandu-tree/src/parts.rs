//! What an engine is put together from.

use core::fmt;

use nandu_cells::Cells;
use nandu_log::{Log, OWNER_MAX, Parts as LogParts};
use nandu_media::features::GROUP;
use nandu_nand::{Geometry, Nand};

use crate::error::{EngineError, Outcome};
use crate::options::{Broken, Durability, Memory, Options, memory_required};
use crate::shape::TreeShape;

/// What an engine is put together from: a chip that can hold a volume, and memory that suffices. Small, unlike an engine.
pub struct Parts<'m, N: Nand, C> {
    pub(crate) log: LogParts<'m, N>,
    pub(crate) shape: TreeShape<C>,
    pub(crate) memory: Memory<'m>,
    pub(crate) durability: Durability,
    pub(crate) has_parts: bool,
    pub(crate) broken: Broken,
}

impl<N: Nand, C> fmt::Debug for Parts<'_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl<'m, N: Nand, C: Cells> Parts<'m, N, C> {
    /// Divides the memory. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`EngineError::Memory`], [`EngineError::PageSize`], [`EngineError::NotCompiled`], those of [the log's parts](LogParts::new).
    pub fn new(nand: N, cells: C, options: &Options, memory: &'m mut [u8]) -> Outcome<Self, N> {
        if !GROUP && options.durability == Durability::OnSync {
            return Err(EngineError::NotCompiled { feature: &"group" });
        }
        let geometry = *nand.geometry();
        let required = memory_required::<N>(&geometry, options);
        if memory.len() < required {
            return Err(EngineError::Memory { required });
        }
        let sizes = (geometry.page_size as usize, Log::<N>::memory_required(&geometry, &options.log));
        let (memory, log) = Memory::divide(memory, sizes, options).ok_or(EngineError::Memory { required })?;
        let log = LogParts::new(nand, &options.log, log)?;
        let shape = shape_of::<N, C>(log.geometry(), log.header_size(), cells, options)?;
        let (durability, has_parts, broken) = (options.durability, options.has_parts, options.broken());
        Ok(Parts { log, shape, memory, durability, has_parts, broken })
    }
}

/// The shape of a tree on this log. It is another one once a volume was mounted that has another number of streams.
pub(crate) fn shape_of<N: Nand, C: Cells>(
    geometry: &Geometry,
    header_size: usize,
    cells: C,
    options: &Options,
) -> Outcome<TreeShape<C>, N> {
    let page_size = geometry.page_size as usize;
    let shape = TreeShape::new(cells, page_size, header_size, geometry.page_count(), options.cache_size);
    let owner_max = options.log.has_raw.then_some(OWNER_MAX);
    Ok(shape
        .ok_or(EngineError::PageSize(page_size))?
        .with_values(options.has_values)
        .with_raw(owner_max)
        .with_list_room(GROUP && options.durability == Durability::OnSync))
}
