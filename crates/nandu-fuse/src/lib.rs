//! A file system of nandu as a mount, through FUSE.
//!
//! **For** programs that mount a file system themselves. Others take the command, `nandu mount`.
//!
//! [`serve`] mounts a [`Volume`] on a directory and serves it until it is unmounted, then gives it back. One request is served at a
//! time: the chip does one operation at a time anyway. The kernel checks permissions and caches what was read.
//!
//! ```
//! use std::io;
//! use std::path::Path;
//!
//! use nandu_fuse::{Keeper, MountOptions, Volume, serve};
//!
//! /// Shows a volume as a directory until somebody unmounts that.
//! fn show<F: Volume, K: Keeper<F::Chip>>(fs: F, keeper: K, directory: &Path) -> io::Result<F> {
//!     let (fs, _) = serve(fs, keeper, directory, &MountOptions::default(), |_| println!("mounted"))?;
//!     Ok(fs)
//! }
//! ```
//!
//! **The key decision** is that durability ends where the chip is kept. A simulated chip lives in memory, and its image is a
//! file; so whenever a program has asked for durability (`fsync`, a synchronous write, a rename), the [`Keeper`] is asked to keep the chip,
//! before the program hears of it. The alternative, an image that is written when the mount ends, would lose what was acknowledged if
//! the process dies. Links and directories, which are durable on the chip when the call returns, are kept with the next of these:
//! thousands of them in a row would each write the image. So is what is written and not synced; what the kernel does not ask for,
//! such as `sync(2)`, of which FUSE does not hear, is made durable and kept after five seconds at the latest, whatever else is asked meanwhile.
//!
//! Where the chip cannot be kept, say because the disk is full, every change fails with `EIO` until it can; that is tried again every few
//! seconds. What is there can be looked at and read meanwhile, and closed.
//!
//! # What a mount lacks
//!
//! * Files without a name from the start (`O_TMPFILE`, `EOPNOTSUPP`) and times of birth: the requests for them (`FUSE_TMPFILE`, `FUSE_STATX`) are newer
//!   than what the crate `fuser` passes on. A file that is removed while it is open works.
//! * Access lists (`system.posix_acl_*`) of more than 4,096 bytes (`ENOSPC`): what is made has those of its directory at once, in one commit. Other extended attributes have up to
//!   65,536 bytes each.
//! * Flags as `chattr` sets them (`EOPNOTSUPP`), maps of extents (`FS_IOC_FIEMAP`, `EOPNOTSUPP`), whiteouts (`renameat2`, `EINVAL`), and room that is
//!   promised beforehand (`fallocate` without a mode, `EOPNOTSUPP`).

mod acl;
mod attributes;
mod mounting;
mod numbers;
mod operations;
mod permissions;
mod privileges;
mod served;
mod volume;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub use crate::mounting::Unmounter;
use crate::operations::Mounted;
use crate::served::Served;
pub use crate::volume::Volume;

/// What keeps a chip beyond the life of the process, such as the image file of a simulated one.
pub trait Keeper<N>: Send + 'static {
    /// Keeps the chip as it is now. When this returns, whatever happens to the process, the chip is found as it is.
    ///
    /// # Errors
    ///
    /// Whatever the medium says; the program that waits is told of an error of input and output.
    fn keep(&mut self, chip: &mut N) -> io::Result<()>;

    /// Whether the chip changed since it was kept, as far as that matters.
    fn is_behind(&self, _chip: &N) -> bool {
        true
    }

    /// Whether so much of the chip is not kept that it should not wait longer.
    fn is_due(&self, _chip: &N) -> bool {
        false
    }
}

/// A chip that keeps itself, as a real one does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Itself;

impl<N> Keeper<N> for Itself {
    fn keep(&mut self, _chip: &mut N) -> io::Result<()> {
        Ok(())
    }

    fn is_behind(&self, _chip: &N) -> bool {
        false
    }
}

/// How a file system is mounted.
#[derive(Clone, Debug, Default)]
pub struct MountOptions {
    /// What the mount is called in the list of mounts.
    pub name: String,
    /// Refuse every change.
    pub read_only: bool,
    /// Whether all users may use the mount; else only the one who mounts it.
    pub is_for_all: bool,
    /// Reads change no times. Else the first read after a change does, and the first of a day, see [`Volume::note_read`].
    pub no_atime: bool,
    /// The bits of programs that run as another user or group count. Only root may ask for it.
    pub has_set_id: bool,
    /// Devices are devices. Only root may ask for it.
    pub has_devices: bool,
    /// Programs cannot be run from here.
    pub no_exec: bool,
}

/// An extended attribute that every file of a mount has without listing it: how the chip's blocks are used, in numbers with a space between
/// them, in the order of the fields of [`Regions`](nandu::fs::Regions).
pub const REGIONS_XATTR: &str = "user.nandu.regions";

/// Another one: wear and losses of the chip, in numbers with a space between them: erases of the least worn block, of the average one, of the
/// most worn one, those that a block is rated for, bad blocks, those that the chip is rated for, damaged blocks, lost pages, free blocks, live pages, and
/// how many may be.
pub const HEALTH_XATTR: &str = "user.nandu.health";

/// How long the file system is left alone before idle time is used to collect garbage.
const IDLE_TICK: Duration = Duration::from_millis(500);

/// How often is looked whether something is to be kept.
const KEEP_TICK: Duration = Duration::from_millis(250);

/// Pages looked at in a piece of idle time.
const IDLE_PAGES: u32 = 64;

/// Mounts a file system on a directory, calls `ready` with a way to unmount it from another thread, and serves it until it is unmounted. The
/// file system comes back as it was left: whoever called unmounts it from the chip.
///
/// # Errors
///
/// What the operating system says of the mount: no `/dev/fuse`, no right to mount, no such directory.
pub fn serve<F, K>(
    fs: F,
    keeper: K,
    directory: &Path,
    options: &MountOptions,
    ready: impl FnOnce(Unmounter),
) -> io::Result<(F, K)>
where
    F: Volume,
    K: Keeper<F::Chip>,
{
    let served = Arc::new(Served::new(fs, keeper, !options.no_atime && !options.read_only));
    let (session, unmounter) = mounting::begin(Mounted::new(Arc::clone(&served)), directory, options)?;
    ready(unmounter);
    let is_over = Arc::new(AtomicBool::new(false));
    let idler = (!options.read_only).then(|| {
        let (served, is_over) = (Arc::clone(&served), Arc::clone(&is_over));
        thread::spawn(move || idle(&served, &is_over))
    });
    // In a thread of its own: whatever idle time is used for, and however rarely there is some, this does not wait.
    let clock = (!options.read_only).then(|| {
        let (served, is_over) = (Arc::clone(&served), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                thread::park_timeout(KEEP_TICK);
                served.catch_up();
            }
        })
    });
    let outcome = session.run();
    is_over.store(true, Ordering::Relaxed);
    for thread in [idler, clock].into_iter().flatten() {
        thread.thread().unpark();
        let _ = thread.join();
    }
    let Ok(served) = Arc::try_unwrap(served) else {
        return Err(io::Error::other("the file system is still in use"));
    };
    let (mut fs, mut keeper) = served.into_parts();
    if let Err(error) = outcome {
        // Nobody gets the file system back, but what was done until then is kept.
        if let Err(error) = fs.sync() {
            served::errno(error);
        }
        let _ = keeper.keep(fs.nand_mut());
        return Err(error);
    }
    Ok((fs, keeper))
}

/// Works in idle time: step by step as the policies say, where there are some; else, once nothing was asked for a while, makes durable what waits and collects garbage piece by piece.
fn idle<F: Volume, K: Keeper<F::Chip>>(served: &Served<F, K>, is_over: &AtomicBool) {
    if served.is_placed() {
        while !is_over.load(Ordering::Relaxed) {
            let wait = served.step().unwrap_or(IDLE_TICK);
            thread::park_timeout(wait.min(IDLE_TICK));
        }
        return;
    }
    let mut seen = 0;
    while !is_over.load(Ordering::Relaxed) {
        thread::park_timeout(IDLE_TICK);
        let count = served.request_count();
        // Piece after piece as long as nobody asks for anything: so what a large file had is removed soon.
        while count == seen && served.idle(IDLE_PAGES) && !is_over.load(Ordering::Relaxed) {
            thread::yield_now();
            seen = served.request_count();
        }
        seen = count;
    }
}
