//! The log driven by a toy owner, on simulated chips.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod anchors;
mod costs;
mod cuts;
mod faults;
mod guards;
mod hostile;
mod life;
mod mlc;
mod model;
mod mounts;
mod pages;
mod promises;
mod raw;
mod room;
mod tags;
mod toy;
mod twice;
mod verify;

use nandu_log::{Log, LogError, LogOptions, Parts};
use nandu_nand::Nand;

/// A log on a new volume.
fn formatted<N: Nand>(nand: N, options: LogOptions, memory: &mut [u8]) -> Result<Log<'_, N>, LogError<N::Error>> {
    let mut log = Log::unopened(Parts::new(nand, &options, memory)?);
    log.format(&options)?;
    Ok(log)
}

/// A log on the volume that is there.
fn mounted<N: Nand>(nand: N, options: LogOptions, memory: &mut [u8]) -> Result<Log<'_, N>, LogError<N::Error>> {
    let mut log = Log::unopened(Parts::new(nand, &options, memory)?);
    log.mount(&options)?;
    Ok(log)
}
