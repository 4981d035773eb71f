//! The store on the chip of an image: opened, used, left.
//!
//! A verb that changes records works on an open image, leaves the store cleanly and commits the image once. A verb that
//! only looks opens the store on a copy in memory: what a recovery after a power cut repairs there is not committed,
//! and the image is as it was.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use nandu::{LogError, Options, Store, TreeError};
use nandu_sim::{Sim, SimError};

use crate::failure::usage;
use crate::session::{self, Session, SessionArgs};

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

/// Opens the store of an image, changes it, leaves it cleanly and commits the image. Nothing is committed if something
/// of it fails.
pub(crate) fn change<T>(
    args: &SessionArgs,
    cache: CacheArgs,
    work: impl FnOnce(&mut Records<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    change_with(args, cache.options(), work)
}

/// As [`change`], with options that the verb has chosen.
pub(crate) fn change_with<T>(
    args: &SessionArgs,
    options: Options,
    work: impl FnOnce(&mut Records<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut session = Session::open(args)?;
    session.sim.power_on();
    let mut memory = memory(&session.sim, &options);
    let mut store = Store::open(&mut session.sim, options, &mut memory).map_err(|error| explain(&args.image, error))?;
    let result = work(&mut store)?;
    store.unmount().map_err(|error| explain(&args.image, error))?;
    session.finish()?;
    Ok(result)
}

/// Opens the store of an image to look at it; the image stays as it is.
pub(crate) fn look<T>(
    image: &Path,
    cache: CacheArgs,
    work: impl FnOnce(&mut Records<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut sim = session::look(&image.to_path_buf())?;
    sim.power_on();
    let options = cache.options();
    let mut memory = memory(&sim, &options);
    let mut store = Store::open(&mut sim, options, &mut memory).map_err(|error| explain(image, error))?;
    work(&mut store)
}

/// What a store has to say, for someone who gave it an image.
pub(crate) fn explain(image: &Path, error: StoreError) -> anyhow::Error {
    let name = image.display();
    match error {
        TreeError::Pages(LogError::NotFormatted) => anyhow!("{name}: not formatted: run 'nandu kv format {name}'"),
        TreeError::Pages(LogError::Full) => anyhow!("{name}: full: no block can be freed; the image is as it was"),
        TreeError::TooHigh => {
            anyhow!("{name}: the tree cannot become higher: too many keys of this length; the image is as it was")
        }
        TreeError::OtherFormat => anyhow!("{name}: holds a volume, but no store of byte strings"),
        other => anyhow!("{name}: {other}"),
    }
}

/// Why the store does not take a record; `None` if it does.
pub(crate) fn refusal(store: &Records<'_>, key: &[u8], value: &[u8]) -> Option<String> {
    if key.len() > store.key_size_max() {
        return Some(format!("the key has {} bytes; the longest on this chip has {}", key.len(), store.key_size_max()));
    }
    let size_max = store.value_size_max(key);
    (value.len() > size_max)
        .then(|| format!("the value has {} bytes; the largest on this chip has {size_max}", value.len()))
}

/// Whether a record does not fit a leaf, and so no batch either.
pub(crate) fn is_large(store: &Records<'_>, key: &[u8], value: &[u8]) -> bool {
    key.len() + value.len() > store.entry_size_max()
}

/// Ends a verb if no key can be that long.
pub(crate) fn check_key(store: &Records<'_>, key: &[u8]) -> anyhow::Result<()> {
    refusal(store, key, &[]).map_or(Ok(()), usage)
}

/// Ends a verb if the store does not take a value, however large it may be.
pub(crate) fn check_value(store: &Records<'_>, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
    refusal(store, key, value).map_or(Ok(()), usage)
}
