//! Options, and the file system as the suite sees it.

use std::sync::OnceLock;

#[cfg(feature = "snapshots")]
use nandu_fs::FsError;
#[cfg(feature = "mlc")]
use nandu_fs::placement::Class;
use nandu_fs::{Attributes, Capabilities, Format, Fs, Options, Time};
#[cfg(feature = "mlc")]
use nandu_nand::Cause;
use nandu_nand::{Geometry, Nand};
use nandu_sim::{Chip, Sim};
#[cfg(feature = "mlc")]
use nandu_suite::Stepped;
use nandu_suite::{Opened, ROOT, SMALL, System};

pub(crate) const OPTIONS: Options = Options { cache_size: 512, pending_size: 2048, open_max: 4, ..Options::DEFAULT };

/// What goes with pages of this size.
pub(crate) const fn options_for(page_size: u32) -> Options {
    if page_size == 512 {
        return OPTIONS;
    }
    Options { cache_size: page_size as usize, pending_size: page_size as usize + 2048, ..OPTIONS }
}

pub(crate) const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };

pub(crate) const FORMAT: Format = Format {
    hash_key: [7; 16],
    root_mode: ROOT.mode,
    uid: ROOT.uid,
    gid: ROOT.gid,
    now: Time::from_seconds(ROOT.seconds),
};

pub(crate) fn memory(geometry: &Geometry, options: &Options) -> Vec<u8> {
    vec![0; Fs::<Sim>::memory_required(geometry, options)]
}

pub(crate) fn formatted_with(chip: Chip, options: Options) -> Sim {
    let sim = Sim::new(chip);
    let mut memory = memory(&chip.geometry, &options);
    Fs::format(sim, options, FORMAT, &mut memory).unwrap().unmount().unwrap()
}

/// A file system just made. Its memory is given back when the process ends.
pub(crate) fn fresh(chip: Chip, options: Options) -> Fs<'static, Sim> {
    Fs::mount(formatted_with(chip, options), options, memory(&chip.geometry, &options).leak()).unwrap()
}

/// What it can do on small pages.
pub(crate) fn capabilities() -> Capabilities {
    static FOUND: OnceLock<Capabilities> = OnceLock::new();
    *FOUND.get_or_init(|| Nandu(OPTIONS).capabilities(SMALL))
}

/// The file system with these options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nandu(pub(crate) Options);

impl System for Nandu {
    type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Fs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Fs::format(chip, self.0, FORMAT, memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Fs::mount(chip, self.0, memory)
    }

    #[cfg(feature = "mlc")]
    fn begin<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time, is_synced: bool) {
        fs.set_class(if is_synced { Class::Synced } else { Class::Normal });
        fs.request_begin(now).unwrap();
    }

    #[cfg(feature = "mlc")]
    fn end<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time) {
        fs.request_end(now);
    }

    #[cfg(feature = "mlc")]
    fn has_steps(&self) -> bool {
        self.0.placement.is_some()
    }

    #[cfg(feature = "mlc")]
    fn step<N: Nand>(&self, fs: &mut Fs<'_, N>, now: Time) -> Option<Stepped> {
        let at = now.max(fs.step_due()?);
        let before = fs.stats().programs_for(Cause::Levelling);
        fs.step(at).unwrap();
        Some(Stepped { at, levelled: fs.stats().programs_for(Cause::Levelling) > before })
    }

    fn promises_liveness(&self) -> bool {
        true
    }

    #[cfg(feature = "snapshots")]
    fn let_go<'m, N: Nand + 'm>(&self, fs: &mut Fs<'m, N>) -> Result<(), FsError<N::Error>> {
        let numbers: Vec<u32> = fs.snapshots().collect();
        numbers.into_iter().try_for_each(|number| fs.release_snapshot(number))
    }

    fn has_tail<N: Nand>(&self, fs: &Fs<'_, N>) -> bool {
        fs.stats().tail.pages > 0
    }
}
