//! The file system on the chip of an image: mounted, used, left.
//!
//! As with [`store`](crate::store): a verb that changes files works on an open image, leaves the file system cleanly and commits
//! the image once; a verb that only looks works on a copy in memory.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::Args;
use nandu::fs::{Fs, FsError, Options};
use nandu_dffs::Dffs;
use nandu_files::errno::{ENOENT, ENOSPC, ENOTDIR};
use nandu_files::{FileError, FileKind, FileSystem, Ino, Stat, Time};

use crate::flash::Flash;
use crate::kind::{self, Kind};
use crate::session::{self, Session, SessionArgs};
use crate::units;
use crate::volume::{System, Volume, VolumeError};

/// Memory for nodes of the tree where nobody said how much.
const CACHE_SIZE: u32 = 1 << 20;

const CACHE_SIZE_MAX: i64 = 1 << 30;

/// Memory for changes that a program left waiting: as much as any may have had.
const PENDING_SIZE: usize = 65_535;

/// Files that may be open at a time: a machine has room for more than a microcontroller.
const OPEN_MAX: usize = 65_536;

/// The same of DFFS, which keeps two pages of memory for each.
const DFFS_OPEN_FILES: u32 = 256;

/// Files of DFFS of which a directory may not know yet where they are.
const DFFS_LAG_MAX: u32 = 1024;

/// Pages of inodes of DFFS that are kept in memory.
const DFFS_CACHE_PAGES: u32 = 512;

/// The memory that a file system is mounted in.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MemoryArgs {
    /// Memory for nodes of the tree; more of it means fewer page reads
    #[arg(long, value_name = "BYTES", default_value_t = CACHE_SIZE, value_parser = clap::value_parser!(u32).range(..=CACHE_SIZE_MAX))]
    pub(crate) cache: u32,
}

/// What a verb looks at, and the memory for it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// As the snapshot with this number keeps it, see 'nandu fs snapshot'
    #[arg(long, value_name = "NUMBER")]
    pub(crate) at: Option<u32>,
}

impl LookArgs {
    /// The file system as it is.
    pub(crate) fn now(memory: MemoryArgs) -> LookArgs {
        LookArgs { memory, at: None }
    }
}

impl MemoryArgs {
    /// What a verb takes that does not ask.
    pub(crate) const DEFAULT: MemoryArgs = MemoryArgs { cache: CACHE_SIZE };

    pub(crate) fn options(self) -> Options {
        Options { cache_size: self.cache as usize, pending_size: PENDING_SIZE, open_max: OPEN_MAX, ..Options::DEFAULT }
    }

    /// For the volume on a chip, which may use both modes of its cells.
    pub(crate) fn options_for(self, flash: &Flash) -> Options {
        let options = self.options();
        if kind::uses_both_modes(flash) { options.both_modes(&flash.chip().geometry) } else { options }
    }
}

/// Memory for a file system of nandu's on this chip.
pub(crate) fn memory(flash: &Flash, options: &Options) -> Vec<u8> {
    vec![0; Fs::<Flash>::memory_required(&flash.chip().geometry, options)]
}

/// What a volume of DFFS is mounted with. Only the number of directories that there can be is part of the format.
pub(crate) const DFFS: nandu_dffs::Options = nandu_dffs::Options {
    open_files: DFFS_OPEN_FILES,
    lag_max: DFFS_LAG_MAX,
    cache_pages: DFFS_CACHE_PAGES,
    ..nandu_dffs::Options::DEFAULT
};

/// Memory for a volume of either kind on this chip.
pub(crate) fn volume_memory(flash: &Flash, system: System, options: MemoryArgs) -> Vec<u8> {
    match system {
        System::Nandu => memory(flash, &options.options_for(flash)),
        System::Dffs => vec![0; Dffs::<Flash>::memory_required(&flash.chip().geometry, &DFFS)],
    }
}

/// Mounts what is on a chip; of DFFS, which has no snapshots, as it is.
pub(crate) fn mount<'m>(
    flash: &'m mut Flash,
    system: System,
    LookArgs { memory: options, at }: LookArgs,
    memory: &'m mut [u8],
) -> Result<Volume<'m>, VolumeError> {
    match system {
        System::Nandu => {
            let options = Options { snapshot: at, ..options.options_for(flash) };
            Fs::mount(flash, options, memory).map(Volume::Nandu).map_err(VolumeError::Nandu)
        }
        System::Dffs => Dffs::mount(flash, DFFS, memory).map(Volume::Dffs).map_err(VolumeError::Dffs),
    }
}

/// The present time.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

/// Mounts the file system of an image, changes it, leaves it cleanly and commits the image. Nothing is committed if something of
/// it fails.
pub(crate) fn change<T>(
    args: &SessionArgs,
    memory_args: MemoryArgs,
    work: impl FnOnce(&mut Volume<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut session = Session::open(args)?;
    refuse_others(&args.image, &session.flash)?;
    session.flash.power_on();
    let system = kind::system(&session.flash);
    let mut memory = volume_memory(&session.flash, system, memory_args);
    let explain = |error| explain(&args.image, error);
    let look = LookArgs::now(memory_args);
    let mut fs = mount(&mut session.flash, system, look, &mut memory).map_err(explain)?;
    warn_of_loss(&args.image, fs.tail_lost());
    if fs.is_read_only() {
        return Err(anyhow!("{}: {READ_ONLY}", args.image.display()));
    }
    fs.set_now(now());
    let result = work(&mut fs)?;
    fs.unmount().map_err(explain)?;
    session.finish()?;
    Ok(result)
}

/// Mounts the file system of an image to look at it; the image stays as it is.
pub(crate) fn look<T>(
    image: &Path,
    args: LookArgs,
    work: impl FnOnce(&mut Volume<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut flash = session::look(image)?;
    refuse_others(image, &flash)?;
    flash.power_on();
    let system = kind::system(&flash);
    if args.at.is_some() {
        need_snapshots(image, system)?;
    }
    let mut memory = volume_memory(&flash, system, args.memory);
    let mut fs = mount(&mut flash, system, args, &mut memory).map_err(|error| explain(image, error))?;
    warn_of_loss(image, fs.tail_lost());
    if fs.is_read_only() {
        warn_of_read_only(image);
    }
    work(&mut fs)
}

/// Refuses a file system that has no snapshots.
pub(crate) fn need_snapshots(image: &Path, system: System) -> anyhow::Result<()> {
    match system {
        System::Nandu => Ok(()),
        System::Dffs => Err(no_snapshots(image)),
    }
}

pub(crate) fn no_snapshots(image: &Path) -> anyhow::Error {
    anyhow!("{}: holds a file system of DFFS, which has no snapshots", image.display())
}

/// What is said of a volume that cannot be changed any more.
pub(crate) const READ_ONLY: &str = "can only be read: too few of its blocks can still be erased and programmed";

/// Says on standard error that a volume cannot be changed any more.
pub(crate) fn warn_of_read_only(image: &Path) {
    eprintln!("nandu: {}: {READ_ONLY}", image.display());
}

/// Says on standard error that pages are lost of which a mount does not know whose they were.
pub(crate) fn warn_of_loss(image: &Path, pages: u32) {
    if pages > 0 {
        eprintln!("nandu: {}: {}", image.display(), loss_in_words(pages));
    }
}

/// What is said of such pages.
pub(crate) fn loss_in_words(pages: u32) -> String {
    let pages = units::things(pages.into(), "page");
    format!("LOST: {pages} of files, synced before the power was cut; neither content nor name can be read")
}

fn holds_records(image: &Path) -> anyhow::Error {
    let name = image.display();
    anyhow!("{name}: holds records and no file system: 'nandu kv scan {name}' shows them")
}

/// Refuses a chip with an index of records that is no mu-Tree, in which a file system would see no volume, and one with a volume of format 1.
pub(crate) fn refuse_others(image: &Path, flash: &Flash) -> anyhow::Result<()> {
    kind::refuse_format_one(image, flash)?;
    match kind::find(flash) {
        Some(found) if found.kind != Kind::Mutree && kind::system(flash) == System::Nandu => Err(holds_records(image)),
        _ => Ok(()),
    }
}

/// What a file system has to say, for someone who gave it an image.
pub(crate) fn explain(image: &Path, error: VolumeError) -> anyhow::Error {
    let name = image.display();
    match error {
        VolumeError::Nandu(FsError::OtherFormat { what: "format version" }) => kind::format_one(image),
        VolumeError::Nandu(FsError::NotFormatted) => {
            anyhow!("{name}: not formatted: run 'nandu fs format {name}'")
        }
        VolumeError::Nandu(FsError::OtherFormat { what: "raw pages" } | FsError::NoFileSystem) => holds_records(image),
        error if error.errno() == ENOSPC => anyhow!("{name}: full{}", session::as_it_was(image)),
        other => anyhow!("{name}: {other}"),
    }
}

/// What a path in the file system leads to. Symbolic links are not followed.
pub(crate) fn find(fs: &mut Volume<'_>, image: &Path, path: &str) -> anyhow::Result<Stat> {
    let mut ino = Ino::ROOT;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        ino = fs.lookup(ino, name.as_bytes()).map_err(|error| complain(image, path, error))?;
    }
    fs.stat(ino).map_err(|error| complain(image, path, error))
}

/// The directory that a path's last name is in, and that name.
pub(crate) fn find_parent<'p>(fs: &mut Volume<'_>, image: &Path, path: &'p str) -> anyhow::Result<(Ino, &'p str)> {
    let trimmed = path.trim_end_matches('/');
    let (directory, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
    if name.is_empty() {
        return Err(anyhow!("{}: '{path}' names nothing in a directory", image.display()));
    }
    let stat = find(fs, image, directory)?;
    if stat.kind != FileKind::Directory {
        return Err(anyhow!("{}: {directory}: not a directory", image.display()));
    }
    Ok((stat.ino, name))
}

/// What went wrong with a path.
pub(crate) fn complain(image: &Path, path: &str, error: VolumeError) -> anyhow::Error {
    let name = image.display();
    match error.errno() {
        ENOENT => anyhow!("{name}: {path}: there is no such file or directory"),
        ENOTDIR => anyhow!("{name}: {path}: what stands before a '/' is not a directory"),
        ENOSPC => anyhow!("{name}: {path}: there is no room{}", session::as_it_was(image)),
        _ => anyhow!("{name}: {path}: {error}"),
    }
}
