//! The mu-Tree store on the chip of an image: what it is opened in, and what it has to say.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use nandu::{Error, Options, Store};

use crate::flash::{Flash, FlashError};
use crate::{kind, session};

/// Memory for nodes of the tree where nobody said how much.
const CACHE_SIZE: u32 = 65_536;

const CACHE_SIZE_MAX: i64 = 1 << 30;

/// The memory that a store is opened in.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CacheArgs {
    /// Memory for nodes of the tree; more of it means fewer page reads
    #[arg(long, value_name = "BYTES", default_value_t = CACHE_SIZE, value_parser = clap::value_parser!(u32).range(..=CACHE_SIZE_MAX))]
    pub(crate) cache: u32,
}

/// Memory for changes that a program left waiting: as much as any may have had.
const PENDING_SIZE: usize = 65_535;

impl CacheArgs {
    /// What a verb takes that does not ask.
    pub(crate) const DEFAULT: CacheArgs = CacheArgs { cache: CACHE_SIZE };

    pub(crate) fn options(self) -> Options {
        Options { cache_size: self.cache as usize, pending_size: PENDING_SIZE, ..Options::DEFAULT }
    }
}

/// A store on a chip that somebody else holds.
pub(crate) type Records<'m> = Store<'m, &'m mut Flash>;

/// What goes wrong in it.
pub(crate) type StoreError = nandu::Error<FlashError>;

/// Memory for a store on this chip.
pub(crate) fn memory(flash: &Flash, options: &Options) -> Vec<u8> {
    vec![0; Store::<Flash>::memory_required(&flash.chip().geometry, options)]
}

/// What a store has to say, for someone who gave it an image.
pub(crate) fn explain(image: &Path, error: StoreError) -> anyhow::Error {
    let name = image.display();
    match error {
        Error::OtherFormat { what: "format version" } => kind::format_one(image),
        Error::NotFormatted => anyhow!("{name}: not formatted: run 'nandu kv format {name}'"),
        Error::Full => anyhow!("{name}: full: no block can be freed{}", session::as_it_was(image)),
        Error::TooHigh => {
            let as_it_was = session::as_it_was(image);
            anyhow!("{name}: the tree cannot become higher: too many keys of this length{as_it_was}")
        }
        Error::OtherFormat { what: "cells" | "raw pages" } => {
            anyhow!("{name}: holds a file system and no records: 'nandu fs ls {name}' shows it")
        }
        other => anyhow!("{name}: {other}"),
    }
}
