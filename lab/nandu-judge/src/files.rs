//! The file system as the suite knows it.

use nandu::fs::{Format, Fs, FsError, Options};
use nandu::nand::{Geometry, Nand};
use nandu_files::Time;
use nandu_sim::Sim;
use nandu_suite::{Opened, Stepped, System};

/// How a file system is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    options: Options,
}

impl Files {
    /// One with so many bytes for nodes and for changes that wait.
    pub(crate) fn new(cache_size: usize, pending_size: usize) -> Files {
        Files { options: Options { cache_size, pending_size, ..Options::DEFAULT } }
    }

    /// One with these options.
    pub(crate) fn with(options: Options) -> Files {
        Files { options }
    }

    /// The same with both modes of the cells of such a chip.
    pub(crate) fn both_modes(self, geometry: &Geometry) -> Files {
        Files { options: self.options.both_modes(geometry) }
    }
}

impl System for Files {
    type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Fs::<Sim>::memory_required(geometry, &self.options)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        Fs::format(chip, self.options, Format::default(), memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>> {
        Fs::mount(chip, self.options, memory)
    }

    fn begin<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time, _is_synced: bool) {
        // Of a volume that cannot be changed, the call says so.
        let _ = fs.request_begin(now);
    }

    fn end<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time) {
        fs.request_end(now);
    }

    fn let_go<'m, N: Nand + 'm>(&self, fs: &mut Fs<'m, N>) -> Result<(), FsError<N::Error>> {
        let numbers: Vec<u32> = fs.snapshots().collect();
        numbers.into_iter().try_for_each(|number| fs.release_snapshot(number))
    }

    fn step<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time) -> Option<Stepped> {
        let at = fs.step_due().filter(|due| due.seconds < now.seconds)?;
        // What fails here fails in the next call, too, which says so.
        fs.step(at).ok()?;
        Some(Stepped { at, levelled: false })
    }
}
