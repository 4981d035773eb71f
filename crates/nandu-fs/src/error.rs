//! Errors, with their numbers in POSIX.

use core::error::Error;
use core::fmt;

use nandu_files::{Feature, FileError};
use nandu_nand::{GeometryError, PageAddr};

use crate::{Ino, PageDamage};

/// Why an operation was refused or failed. Whatever it is, the file system is what it was before the call, but for the part of a
/// write, a truncation or a deletion in steps that was done already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum FsError<E: Error + 'static> {
    /// The directory has no such name.
    NotFound {
        /// The directory.
        directory: Ino,
    },
    /// The directory has this name already.
    Exists {
        /// The directory.
        directory: Ino,
        /// What has the name.
        ino: Ino,
    },
    /// There is no inode of this number, or not any more.
    NoInode(Ino),
    /// This is no directory.
    NotDirectory(Ino),
    /// This is a directory.
    IsDirectory(Ino),
    /// The directory has names in it.
    NotEmpty(Ino),
    /// This is not a file with content.
    NotFile(Ino),
    /// This is no symbolic link.
    NotSymlink(Ino),
    /// A directory cannot be moved to a place below itself, nor the root anywhere.
    Loop(Ino),
    /// The name is empty, `.` or `..`, or has a `/` or a zero in it.
    Name,
    /// A name, a target or an attribute's name has more bytes than fit.
    NameSize {
        /// Bytes that it has.
        size: usize,
        /// Bytes that it may have.
        size_max: usize,
    },
    /// The inode has as many names as can be counted.
    TooManyLinks(Ino),
    /// As many files are open as there is memory for, [`Options::open_max`](crate::Options::open_max).
    TooManyOpen {
        /// Files that may be open.
        open_max: usize,
    },
    /// The file would become larger than this.
    FileSize {
        /// Bytes that a file may have.
        size_max: u64,
    },
    /// An offset or a length that makes no sense: nothing beyond the end of the file, or a length of 0.
    Range,
    /// There is no data, or no hole, from there on.
    NoMoreData,
    /// The inode has no attribute of this name.
    NoXattr(Ino),
    /// The inode has an attribute of this name.
    XattrExists(Ino),
    /// The value of an attribute is larger than any may be, or what is made would have more attributes than it can be made with.
    XattrSize {
        /// Bytes that the value may have, or names and values together with which something is made.
        size_max: usize,
    },
    /// The buffer is too small for what was asked for.
    BufferSize {
        /// Bytes that it takes.
        required: usize,
    },
    /// There is no room. What takes none, such as deleting, works on.
    Full,
    /// The volume can only be read: it was mounted so, or the chip is at the end of its life.
    ReadOnly,
    /// What the volume says of this inode contradicts itself.
    Corrupt {
        /// The inode.
        ino: Ino,
        /// What is wrong.
        why: Damage,
    },
    /// What is on the chip is a volume of nandu, but no file system.
    NoFileSystem,
    /// The file system has features that this version does not know.
    OtherVersion {
        /// Its version.
        version: u8,
        /// The features that are in the way, a bit each.
        features: u32,
    },
    /// A file system cannot be on pages of this size.
    PageSize(usize),
    /// The memory handed over is too small.
    Memory {
        /// Bytes needed.
        required: usize,
    },
    /// This file system cannot do that.
    Lacks(Feature),
    /// The chip failed in a way that could not be worked around.
    Chip(E),
    /// A page that is needed cannot be read, or is not what it should be.
    CorruptPage {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: PageDamage,
    },
    /// An earlier write failed so that what is in memory cannot be trusted, as in an outage of the bus: mount again.
    Poisoned,
    /// No volume was found on the chip.
    NotFormatted,
    /// The volume was made for another chip, with other options, or holds no files.
    OtherFormat {
        /// What differs.
        what: &'static str,
    },
    /// The volume, or what was asked for, needs a part of nandu that this build leaves out.
    NotCompiled {
        /// The Cargo feature that is missing.
        feature: &'static str,
    },
    /// The options cannot be had on this chip.
    Unsuitable {
        /// What is in the way.
        what: &'static str,
    },
    /// The chip describes itself as no chip can be.
    Geometry(GeometryError),
    /// Changes were left waiting, and they do not fit [`Options::pending_size`](crate::Options::pending_size); or pages were left that no
    /// segment summary names, and they do not fit the memory for them.
    PendingSize,
    /// There are as many snapshots as there can be.
    TooManySnapshots,
    /// There is no snapshot with this number; it was released.
    NoSnapshot(u32),
    /// What is on the chip contradicts what the file system keeps: a record of a kind or size that it never writes, or more than it
    /// can hold.
    Inconsistent,
}

/// What can be wrong with what a volume says of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The inode itself cannot be understood.
    Inode,
    /// A name in this directory cannot be understood.
    Name,
    /// A name leads to no inode.
    Missing,
    /// The record of a page of the file cannot be understood.
    Page,
    /// More changes lie over a page than there ever are.
    Fragments,
    /// An extended attribute cannot be understood.
    Xattr,
    /// The target of a symbolic link cannot be understood.
    Target,
    /// The directories above lead in a circle.
    Parent,
    /// The record that says what the volume is.
    SuperBlock,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Inode => "the inode cannot be understood",
            Damage::Name => "a name cannot be understood",
            Damage::Missing => "a name leads to no inode",
            Damage::Page => "a page of it cannot be understood",
            Damage::Fragments => "too many changes lie over a page of it",
            Damage::Xattr => "an extended attribute cannot be understood",
            Damage::Target => "its target cannot be understood",
            Damage::Parent => "the directories above it lead in a circle",
            Damage::SuperBlock => "the superblock cannot be understood",
        })
    }
}

impl<E: Error + 'static> FsError<E> {
    /// The number that POSIX, as Linux counts, has for it.
    pub fn errno(&self) -> i32 {
        match self {
            FsError::NotFound { .. } | FsError::NoSnapshot(_) => 2,
            FsError::NoInode(_) => 116,
            FsError::Exists { .. } | FsError::XattrExists(_) => 17,
            FsError::NotDirectory(_) => 20,
            FsError::IsDirectory(_) => 21,
            FsError::NotEmpty(_) => 39,
            FsError::NotFile(_)
            | FsError::NotSymlink(_)
            | FsError::Loop(_)
            | FsError::Name
            | FsError::Range
            | FsError::NoFileSystem
            | FsError::OtherVersion { .. }
            | FsError::PageSize(_) => 22,
            FsError::NameSize { .. } => 36,
            FsError::TooManyLinks(_) => 31,
            FsError::TooManyOpen { .. } => 23,
            FsError::FileSize { .. } => 27,
            FsError::NoMoreData => 6,
            FsError::NoXattr(_) => 61,
            FsError::BufferSize { .. } => 34,
            FsError::XattrSize { .. } | FsError::Full | FsError::TooManySnapshots => 28,
            FsError::ReadOnly => 30,
            FsError::Memory { .. } => 12,
            FsError::Corrupt { .. } | FsError::CorruptPage { .. } => 117,
            FsError::Lacks(feature) => feature.errno(),
            FsError::Chip(_)
            | FsError::Poisoned
            | FsError::NotFormatted
            | FsError::OtherFormat { .. }
            | FsError::NotCompiled { .. }
            | FsError::Unsuitable { .. }
            | FsError::Geometry(_)
            | FsError::PendingSize
            | FsError::Inconsistent => 5,
        }
    }
}

/// The text, formatted on the target: so errors of every driver are taken, with or without an implementation of their own.
#[cfg(feature = "defmt")]
impl<E: Error + 'static> defmt::Format for FsError<E> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

impl<E: Error + 'static> fmt::Display for FsError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FsError::NotFound { directory } => write!(f, "directory {directory} has no such name"),
            FsError::Exists { directory, ino } => write!(f, "directory {directory} has this name: inode {ino}"),
            FsError::NoInode(ino) => write!(f, "there is no inode {ino}"),
            FsError::NotDirectory(ino) => write!(f, "inode {ino} is no directory"),
            FsError::IsDirectory(ino) => write!(f, "inode {ino} is a directory"),
            FsError::NotEmpty(ino) => write!(f, "directory {ino} is not empty"),
            FsError::NotFile(ino) => write!(f, "inode {ino} is no regular file"),
            FsError::NotSymlink(ino) => write!(f, "inode {ino} is no symbolic link"),
            FsError::Loop(ino) => write!(f, "directory {ino} cannot be moved below itself"),
            FsError::Name => f.write_str("this cannot be a name"),
            FsError::TooManySnapshots => f.write_str("there are as many snapshots as there can be"),
            FsError::NoSnapshot(number) => write!(f, "there is no snapshot {number}"),
            FsError::NameSize { size, size_max } => write!(f, "{size} bytes, and {size_max} fit"),
            FsError::TooManyLinks(ino) => write!(f, "inode {ino} has as many names as can be"),
            FsError::TooManyOpen { open_max } => write!(f, "{open_max} files are open, and no more can be"),
            FsError::FileSize { size_max } => write!(f, "a file has at most {size_max} bytes"),
            FsError::Range => f.write_str("offset or length makes no sense"),
            FsError::NoMoreData => f.write_str("nothing of the kind from there on"),
            FsError::NoXattr(ino) => write!(f, "inode {ino} has no such attribute"),
            FsError::XattrExists(ino) => write!(f, "inode {ino} has this attribute"),
            FsError::XattrSize { size_max } => {
                write!(f, "an attribute, or what something is made with, takes at most {size_max} bytes")
            }
            FsError::BufferSize { required } => write!(f, "a buffer of {required} bytes is needed"),
            FsError::Full => f.write_str("there is no room"),
            FsError::ReadOnly => f.write_str("the volume can only be read"),
            FsError::Corrupt { ino, why } => write!(f, "inode {ino}: {why}"),
            FsError::NoFileSystem => f.write_str("the volume on the chip holds no file system"),
            FsError::OtherVersion { version, features } => {
                write!(f, "the file system has version {version} and unknown features {features:#x}")
            }
            FsError::PageSize(size) => write!(f, "a page of {size} bytes does not suit a file system"),
            FsError::Memory { required } => write!(f, "{required} bytes of memory are needed"),
            FsError::Lacks(feature) => feature.fmt(f),
            FsError::Chip(error) => fmt::Display::fmt(error, f),
            FsError::CorruptPage { page, why } => write!(f, "page {page} is corrupt: {why}"),
            FsError::Poisoned => f.write_str("an earlier write failed; mount again"),
            FsError::NotFormatted => f.write_str("the chip is not formatted"),
            FsError::OtherFormat { what } => write!(f, "the volume on the chip differs in {what}"),
            FsError::NotCompiled { feature } => write!(f, "feature `{feature}` is not compiled"),
            FsError::Unsuitable { what } => write!(f, "not possible on this chip: {what}"),
            FsError::Geometry(error) => error.fmt(f),
            FsError::PendingSize => f.write_str("changes that were left waiting do not fit the memory for them"),
            FsError::Inconsistent => f.write_str("the volume holds what no file system writes"),
        }
    }
}

impl<E: Error + 'static> Error for FsError<E> {}

impl<E: Error + 'static> FileError for FsError<E> {
    fn errno(&self) -> i32 {
        FsError::errno(self)
    }

    fn lacks(feature: Feature) -> Self {
        FsError::Lacks(feature)
    }
}
