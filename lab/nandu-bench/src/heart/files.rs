//! File systems under what programs do to files: the old heart's, and any that somebody else makes.

use nandu::fs::{Format, Fs, Options};
use nandu::nand::Geometry;
use nandu_files::FileSystem;
use nandu_sim::Sim;

use crate::BenchError;

/// Makes file systems of one kind on simulated chips. [`run_part_on`](crate::experiments::run_part_on) runs an experiment on what it makes.
///
/// The lab has one for `nandu-fs`. It is a trait and no arm of [`Heart`](super::Heart), since the file system of the new heart is a crate that the lab does not know.
pub trait Maker {
    /// The file system on a chip.
    type Made<'m>: FileSystem<Chip = Sim, Error: Send + Sync>;

    /// Bytes of memory that one with these options takes. What it has no use for in the options, here and below, it leaves alone.
    fn memory_required(&self, geometry: &Geometry, options: &Options) -> usize;

    /// Makes an empty one. If names are hashed with a key, that comes from the chip's seed.
    ///
    /// # Errors
    ///
    /// [`BenchError::Structure`] with what the file system says.
    fn format<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Self::Made<'m>, BenchError>;

    /// Mounts the one on a chip.
    ///
    /// # Errors
    ///
    /// As [`format`](Maker::format).
    fn mount<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Self::Made<'m>, BenchError>;
}

/// That of `nandu-fs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldFiles;

impl Maker for OldFiles {
    type Made<'m> = Fs<'m, Sim>;

    fn memory_required(&self, geometry: &Geometry, options: &Options) -> usize {
        Fs::<Sim>::memory_required(geometry, options)
    }

    fn format<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Fs<'m, Sim>, BenchError> {
        let mut format = Format::default();
        format.hash_key[..8].copy_from_slice(&chip.seed().to_le_bytes());
        Fs::format(chip, options, format, memory).map_err(BenchError::structure)
    }

    fn mount<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Fs<'m, Sim>, BenchError> {
        Fs::mount(chip, options, memory).map_err(BenchError::structure)
    }
}
