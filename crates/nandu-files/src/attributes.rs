//! What there is to say of inodes, names and room.

use crate::{FileKind, Ino, Time};

/// What something is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Type and permissions; without a type it is a regular file.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group, unless the directory gives its own.
    pub gid: u32,
    /// Number of the device, of a device.
    pub rdev: u64,
}

impl Attributes {
    /// A regular file that its owner, user 0, may write and all may read.
    pub const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };

    /// A directory that its owner, user 0, may write and all may read.
    pub const DIRECTORY: Attributes = Attributes { mode: 0o755, ..Attributes::FILE };
}

/// What is to change of an inode; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permissions; bits of a type are ignored.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last read.
    pub atime: Option<Time>,
    /// Time of the last change of the content.
    pub mtime: Option<Time>,
}

/// What is known of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub ino: Ino,
    /// What it is.
    pub kind: FileKind,
    /// Type and permissions, as POSIX has them.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names; of a directory 2 and one for each directory in it.
    pub nlink: u32,
    /// Bytes; of a directory names in it.
    pub size: u64,
    /// Bytes of flash that its content has been given, in whole pages.
    pub allocated_size: u64,
    /// Bytes that are best read and written at once: a page.
    pub block_size: u32,
    /// Number of the device, of a device.
    pub rdev: u64,
    /// Last read, as far as that is noted.
    pub atime: Time,
    /// Last change of its content.
    pub mtime: Time,
    /// Last change of anything.
    pub ctime: Time,
    /// When it was made.
    pub btime: Time,
}

/// What is found in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// What it leads to.
    pub ino: Ino,
    /// What that is.
    pub kind: FileKind,
    /// Where to go on behind it, see [`FileSystem::read_dir`](crate::FileSystem::read_dir).
    pub cookie: u64,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// Bytes of a page.
    pub block_size: u32,
    /// Pages that can hold something.
    pub blocks: u64,
    /// Pages of these that hold nothing that is needed, at least.
    pub blocks_free: u64,
    /// Pages of files that can be written.
    pub blocks_available: u64,
    /// Inodes there can still be.
    pub files_free: u64,
    /// Bytes that a name may have.
    pub name_size_max: u32,
}
