//! What the options of a store mean to the new log and the new tree.

use nandu_nand::{CellMode, Geometry, Nand};
use nandu_newlog::LogOptions;

use super::BLOBS;
use crate::{Durability, Error, Options};

/// The tree's options.
pub(super) const fn engine(options: &Options) -> nandu_newtree::Options {
    // It has fields besides where the log is built for its own tests.
    let mut log = LogOptions::DEFAULT;
    log.volume = options.volume;
    log.salt = options.salt;
    log.stream_count = options.stream_count;
    log.ready_max = options.ready_max;
    log.read_back = options.read_back;
    log.reads_max = options.reads_max;
    let mut engine = nandu_newtree::Options::DEFAULT;
    engine.cache_size = options.cache_size;
    engine.pending_size = options.pending_size;
    engine.durability = match options.durability {
        Durability::Immediate => nandu_newtree::Durability::OnCall,
        Durability::OnSync => nandu_newtree::Durability::OnSync,
    };
    engine.has_values = BLOBS;
    engine.log = log;
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
