//! A volume of either file system, behind the trait that both have.

use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;

use clap::ValueEnum;
use nandu::fs::{Fs, FsError, Regions};
use nandu_dffs::Dffs;

use crate::flash::{Flash, FlashError};
use nandu_files::{
    Allocation, Attributes, Capabilities, DirEntry, Feature, FileError, FileSystem, FsStat, Ino, RenameMode,
    SetAttributes, Stat, Time, XattrMode,
};

/// A file system that a chip can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// Everything that POSIX asks for, on one tree
    #[default]
    Nandu,
    /// DFFS as its paper has it: no links, files of some hundred pages
    Dffs,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::Nandu => "nandu",
            System::Dffs => "dffs",
        }
    }
}

/// A file system on a chip that somebody else holds.
#[expect(clippy::large_enum_variant, reason = "there is one of them at a time")]
pub(crate) enum Volume<'m> {
    Nandu(Fs<'m, &'m mut Flash>),
    Dffs(Dffs<'m, &'m mut Flash>),
}

/// What goes wrong in one.
#[derive(Debug)]
pub(crate) enum VolumeError {
    Nandu(FsError<FlashError>),
    Dffs(nandu_dffs::Error<FlashError>),
}

impl fmt::Display for VolumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VolumeError::Nandu(error) => error.fmt(f),
            VolumeError::Dffs(error) => error.fmt(f),
        }
    }
}

impl Error for VolumeError {}

impl FileError for VolumeError {
    fn errno(&self) -> i32 {
        match self {
            VolumeError::Nandu(error) => error.errno(),
            VolumeError::Dffs(error) => FileError::errno(error),
        }
    }

    fn lacks(feature: Feature) -> Self {
        VolumeError::Nandu(FsError::lacks(feature))
    }
}

/// What the one of the two does that there is.
macro_rules! either {
    ($volume:expr, $fs:ident => $call:expr) => {
        match $volume {
            Volume::Nandu($fs) => $call.map_err(VolumeError::Nandu),
            Volume::Dffs($fs) => $call.map_err(VolumeError::Dffs),
        }
    };
}

/// The same of what cannot fail.
macro_rules! surely {
    ($volume:expr, $fs:ident => $call:expr) => {
        match $volume {
            Volume::Nandu($fs) => $call,
            Volume::Dffs($fs) => $call,
        }
    };
}

impl Volume<'_> {
    /// Pages of files that were synced and are lost, of which is not known whose they were.
    pub(crate) fn tail_lost(&self) -> u32 {
        match self {
            Volume::Nandu(fs) => fs.stats().tail.lost,
            Volume::Dffs(_) => 0,
        }
    }

    /// Whether the power was cut before this mount.
    pub(crate) fn was_cut(&self) -> bool {
        match self {
            Volume::Nandu(fs) => fs.stats().was_cut,
            Volume::Dffs(fs) => fs.was_cut(),
        }
    }

    /// Whether the chip fails so that nothing can be changed any more.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            // Whoever changes something is told.
            Volume::Nandu(_) => false,
            Volume::Dffs(fs) => fs.is_read_only(),
        }
    }

    pub(crate) fn bad_blocks(&self) -> u32 {
        match self {
            Volume::Nandu(fs) => fs.stats().bad_blocks,
            Volume::Dffs(fs) => fs.bad_blocks(),
        }
    }

    /// How many blocks hold one bit in a cell and how many two, where a volume has both.
    pub(crate) fn regions(&self) -> Option<Regions> {
        match self {
            Volume::Nandu(fs) => fs.placement().is_some().then(|| fs.regions()),
            Volume::Dffs(_) => None,
        }
    }
}

impl<'m> FileSystem for Volume<'m> {
    type Error = VolumeError;
    type Chip = &'m mut Flash;

    fn capabilities(&self) -> Capabilities {
        surely!(self, fs => fs.capabilities())
    }

    fn nand(&self) -> &Self::Chip {
        surely!(self, fs => fs.nand())
    }

    fn nand_mut(&mut self) -> &mut Self::Chip {
        surely!(self, fs => fs.nand_mut())
    }

    fn unmount(self) -> Result<Self::Chip, VolumeError> {
        either!(self, fs => fs.unmount())
    }

    fn abandon(self) -> Self::Chip {
        surely!(self, fs => fs.abandon())
    }

    fn set_now(&mut self, now: Time) {
        surely!(self, fs => FileSystem::set_now(fs, now));
    }

    fn lookup(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, VolumeError> {
        either!(self, fs => FileSystem::lookup(fs, directory, name))
    }

    fn create(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, VolumeError> {
        either!(self, fs => FileSystem::create(fs, directory, name, attributes))
    }

    fn mkdir(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, VolumeError> {
        either!(self, fs => FileSystem::mkdir(fs, directory, name, attributes))
    }

    fn unlink(&mut self, directory: Ino, name: &[u8]) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::unlink(fs, directory, name))
    }

    fn rmdir(&mut self, directory: Ino, name: &[u8]) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::rmdir(fs, directory, name))
    }

    fn rename(
        &mut self,
        directory: Ino,
        name: &[u8],
        new_directory: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::rename(fs, directory, name, new_directory, new_name, mode))
    }

    fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, VolumeError> {
        either!(self, fs => FileSystem::read_at(fs, ino, offset, out))
    }

    fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, VolumeError> {
        either!(self, fs => FileSystem::write_at(fs, ino, offset, bytes))
    }

    fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, VolumeError> {
        either!(self, fs => FileSystem::append(fs, ino, bytes))
    }

    fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::truncate(fs, ino, size))
    }

    fn stat(&mut self, ino: Ino) -> Result<Stat, VolumeError> {
        either!(self, fs => FileSystem::stat(fs, ino))
    }

    fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::set_attributes(fs, ino, set))
    }

    fn read_dir(
        &mut self,
        directory: Ino,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::read_dir(fs, directory, cookie, visit))
    }

    fn open(&mut self, ino: Ino) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::open(fs, ino))
    }

    fn close(&mut self, ino: Ino) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::close(fs, ino))
    }

    fn fsync(&mut self, ino: Ino) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::fsync(fs, ino))
    }

    fn sync(&mut self) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::sync(fs))
    }

    fn statfs(&mut self) -> Result<FsStat, VolumeError> {
        either!(self, fs => FileSystem::statfs(fs))
    }

    fn check(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(&dyn fmt::Display)) -> Result<u64, VolumeError> {
        either!(self, fs => fs.check(scratch, report))
    }

    fn seek(&mut self, ino: Ino, offset: u64, wants_data: bool) -> Result<Option<u64>, VolumeError> {
        either!(self, fs => fs.seek(ino, offset, wants_data))
    }

    fn link(&mut self, ino: Ino, directory: Ino, name: &[u8]) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::link(fs, ino, directory, name))
    }

    fn symlink(
        &mut self,
        directory: Ino,
        name: &[u8],
        target: &[u8],
        attributes: Attributes,
    ) -> Result<Ino, VolumeError> {
        either!(self, fs => FileSystem::symlink(fs, directory, name, target, attributes))
    }

    fn read_link(&mut self, ino: Ino, out: &mut [u8]) -> Result<usize, VolumeError> {
        either!(self, fs => FileSystem::read_link(fs, ino, out))
    }

    fn allocate(&mut self, ino: Ino, what: Allocation, offset: u64, size: u64) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::allocate(fs, ino, what, offset, size))
    }

    fn get_xattr(&mut self, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize, VolumeError> {
        either!(self, fs => FileSystem::get_xattr(fs, ino, name, out))
    }

    fn set_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::set_xattr(fs, ino, name, value, mode))
    }

    fn list_xattrs(&mut self, ino: Ino, visit: &mut dyn FnMut(&[u8])) -> Result<(), VolumeError> {
        either!(self, fs => FileSystem::list_xattrs(fs, ino, visit))
    }
}
