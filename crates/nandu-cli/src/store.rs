//! The mu-Tree store on the chip of an image: what it is opened in, and what it has to say.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use nandu::{Error, Options, Store};
use nandu_sim::{Sim, SimError};

const CACHE_SIZE_MAX: i64 = 1 << 30;

/// The memory that a store is opened in.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CacheArgs {
    /// Memory for nodes of the tree; more of it means fewer page reads
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(..=CACHE_SIZE_MAX))]
    pub(crate) cache: u32,
}

/// Memory for changes that a program left waiting: as much as any may have had.
const PENDING_SIZE: usize = 65_535;

impl CacheArgs {
    pub(crate) fn options(self) -> Options {
        Options { cache_size: self.cache as usize, pending_size: PENDING_SIZE, ..Options::DEFAULT }
    }
}

/// A store on a chip that somebody else holds.
pub(crate) type Records<'m> = Store<'m, &'m mut Sim>;

/// What goes wrong in it.
pub(crate) type StoreError = nandu::Error<SimError>;

/// Memory for a store on this chip.
pub(crate) fn memory(sim: &Sim, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&sim.chip().geometry, options)]
}

/// What a store has to say, for someone who gave it an image.
pub(crate) fn explain(image: &Path, error: StoreError) -> anyhow::Error {
    let name = image.display();
    match error {
        Error::NotFormatted => anyhow!("{name}: not formatted: run 'nandu kv format {name}'"),
        Error::Full => anyhow!("{name}: full: no block can be freed; the image is as it was"),
        Error::TooHigh => {
            anyhow!("{name}: the tree cannot become higher: too many keys of this length; the image is as it was")
        }
        Error::OtherFormat { what: "cells" | "bare streams" } => {
            anyhow!("{name}: holds a file system and no records: 'nandu fs ls {name}' shows it")
        }
        other => anyhow!("{name}: {other}"),
    }
}
