//! The file systems of both hearts, as the suite knows them, and that of the new one, as experiments of the lab do.

use nandu::fs::Options;
use nandu::nand::{Geometry, Nand};
use nandu_bench::BenchError;
use nandu_bench::heart::Maker;
use nandu_files::Time;
use nandu_sim::Sim;
use nandu_suite::{Opened, Stepped, System};

/// How a file system is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) cache_size: usize,
    pub(crate) pending_size: usize,
}

/// That of `nandu-fs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldFiles(pub(crate) Options);

/// That of `nandu-newfs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFiles(pub(crate) nandu_newfs::Options);

impl OldFiles {
    pub(crate) fn new(Choice { cache_size, pending_size }: Choice) -> OldFiles {
        OldFiles(Options { cache_size, pending_size, note_count: 64, ..Options::DEFAULT })
    }
}

impl NewFiles {
    pub(crate) fn new(Choice { cache_size, pending_size }: Choice) -> NewFiles {
        NewFiles(nandu_newfs::Options { cache_size, pending_size, ..nandu_newfs::Options::DEFAULT })
    }
}

impl System for OldFiles {
    type Mounted<'m, N: Nand + 'm> = nandu::fs::Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        nandu::fs::Fs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        nandu::fs::Fs::format(chip, self.0, nandu::fs::Format::default(), memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        nandu::fs::Fs::mount(chip, self.0, memory)
    }

    fn begin<N: Nand>(&self, fs: &mut nandu::fs::Fs<'_, N>, now: Time, _is_synced: bool) {
        // Of a volume that cannot be changed, the call says so.
        let _ = fs.request_begin(now);
    }

    fn end<N: Nand>(&self, fs: &mut nandu::fs::Fs<'_, N>, now: Time) {
        fs.request_end(now);
    }

    fn step<N: Nand>(&self, fs: &mut nandu::fs::Fs<'_, N>, now: Time) -> Option<Stepped> {
        let at = fs.step_due().filter(|due| due.seconds < now.seconds)?;
        // What fails here fails in the next call, too, which says so.
        fs.step(at).ok()?;
        Some(Stepped { at, levelled: false })
    }
}

impl System for NewFiles {
    type Mounted<'m, N: Nand + 'm> = nandu_newfs::Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        nandu_newfs::Fs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        nandu_newfs::Fs::format(chip, self.0, nandu_newfs::Format::default(), memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        nandu_newfs::Fs::mount(chip, self.0, memory)
    }

    fn begin<N: Nand>(&self, fs: &mut nandu_newfs::Fs<'_, N>, now: Time, _is_synced: bool) {
        // Of a volume that cannot be changed, the call says so.
        let _ = fs.request_begin(now);
    }

    fn end<N: Nand>(&self, fs: &mut nandu_newfs::Fs<'_, N>, now: Time) {
        fs.request_end(now);
    }

    fn step<N: Nand>(&self, fs: &mut nandu_newfs::Fs<'_, N>, now: Time) -> Option<Stepped> {
        let at = fs.step_due().filter(|due| due.seconds < now.seconds)?;
        // What fails here fails in the next call, too, which says so.
        fs.step(at).ok()?;
        Some(Stepped { at, levelled: false })
    }
}

/// Makes file systems of `nandu-newfs` for experiments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewMaker;

impl NewMaker {
    /// What the file system knows of the options of `nandu-fs`.
    fn options(options: &Options) -> nandu_newfs::Options {
        let &Options { cache_size, pending_size, open_max, read_only, .. } = options;
        nandu_newfs::Options { cache_size, pending_size, open_max, read_only, ..nandu_newfs::Options::DEFAULT }
    }
}

impl Maker for NewMaker {
    type Made<'m> = nandu_newfs::Fs<'m, Sim>;

    fn memory_required(&self, geometry: &Geometry, options: &Options) -> usize {
        nandu_newfs::Fs::<Sim>::memory_required(geometry, &NewMaker::options(options))
    }

    fn format<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Self::Made<'m>, BenchError> {
        let mut format = nandu_newfs::Format::default();
        format.hash_key[..8].copy_from_slice(&chip.seed().to_le_bytes());
        nandu_newfs::Fs::format(chip, NewMaker::options(&options), format, memory).map_err(BenchError::structure)
    }

    fn mount<'m>(&self, chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Self::Made<'m>, BenchError> {
        nandu_newfs::Fs::mount(chip, NewMaker::options(&options), memory).map_err(BenchError::structure)
    }
}
