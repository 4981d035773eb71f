//! What the options of a store mean to the new log and the new tree.

use nandu_nand::{CellMode, Geometry, Nand};

use super::BLOBS;
use crate::{Durability, Error, Options};

/// The tree's options.
pub(super) const fn engine(options: &Options) -> nandu_newtree::Options {
    // It has fields besides where the log is built for its own tests.
    let mut engine = nandu_newtree::Options::DEFAULT;
    engine.log.volume = options.volume;
    engine.log.salt = options.salt;
    engine.log.stream_count = options.stream_count;
    engine.log.ready_max = options.ready_max;
    engine.log.read_back = options.read_back;
    engine.log.reads_max = options.reads_max;
    engine.cache_size = options.cache_size;
    engine.pending_size = options.pending_size;
    engine.durability = match options.durability {
        Durability::Immediate => nandu_newtree::Durability::OnCall,
        Durability::OnSync => nandu_newtree::Durability::OnSync,
    };
    engine.has_values = BLOBS;
    engine.has_snapshots = cfg!(feature = "snapshots");
    engine
}

pub(super) const fn memory_required<N: Nand>(geometry: &Geometry, options: &Options) -> usize {
    nandu_newtree::memory_required::<N>(geometry, &engine(options))
}

/// Refuses what is not built yet.
pub(super) fn check<E: core::error::Error>(options: &Options) -> Result<(), Error<E>> {
    if options.mode != CellMode::Slc {
        return Err(Error::Unsuitable { what: "two bits a cell: the new heart does not have them yet" });
    }
    Ok(())
}
