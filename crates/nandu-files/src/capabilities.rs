//! What a file system declares of itself.

use core::fmt;

use crate::errno;

/// What a file system may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// More than one name for a file.
    HardLinks,
    /// Symbolic links.
    Symlinks,
    /// Pipes, sockets and devices.
    SpecialFiles,
    /// Extended attributes.
    Xattrs,
    /// Setting room aside, making holes and zeros.
    Allocation,
    /// Renaming so that two names change places.
    Exchange,
}

impl Feature {
    /// The number of the error that a user expects who asks for it: what Linux's manual pages of the call have for a file system without it.
    pub const fn errno(self) -> i32 {
        match self {
            Feature::HardLinks | Feature::Symlinks | Feature::SpecialFiles => errno::EPERM,
            Feature::Xattrs | Feature::Allocation => errno::EOPNOTSUPP,
            Feature::Exchange => errno::EINVAL,
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::HardLinks => "this file system has no hard links",
            Feature::Symlinks => "this file system has no symbolic links",
            Feature::SpecialFiles => "this file system has no pipes, sockets and devices",
            Feature::Xattrs => "this file system has no extended attributes",
            Feature::Allocation => "this file system sets no room aside and makes no holes",
            Feature::Exchange => "this file system cannot have two names change places",
        })
    }
}

/// What of the operations since something was made durable may be found after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What some first part of them made, of the whole volume: a change is there only if all before it are.
    Volume,
    /// At each path what some first part of them made there, whatever is found at other paths: a change of one file may be there and an earlier one
    /// of another not.
    Path,
}

/// What may be found after a power cut. Whatever it is: what was durable is there, of a write some bytes may be there and others not, and every
/// other operation is there wholly or not at all, but for what is declared here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// In which order changes that are not durable yet come to be there.
    pub order: Order,
    /// Whether [`FileSystem::create`](crate::FileSystem::create) is durable when it returns.
    pub create_is_durable: bool,
    /// Whether [`FileSystem::mkdir`](crate::FileSystem::mkdir) is.
    pub mkdir_is_durable: bool,
    /// Whether [`FileSystem::unlink`](crate::FileSystem::unlink) and [`FileSystem::rmdir`](crate::FileSystem::rmdir) are.
    pub removal_is_durable: bool,
    /// Whether [`FileSystem::rename`](crate::FileSystem::rename) is, and with it what was written to the file before.
    pub rename_is_durable: bool,
    /// Whether links of both kinds are.
    pub links_are_durable: bool,
    /// Whether whatever is durable when it returns makes everything durable that was changed before, of whatever file. Else it does so for the names
    /// concerned alone; [`FileSystem::sync`](crate::FileSystem::sync) always makes everything durable.
    pub durable_with_all: bool,
    /// Whether [`FileSystem::fsync`](crate::FileSystem::fsync) makes everything durable that was changed before, of whatever file. Else it does so
    /// for the file, its attributes and its name.
    pub fsync_with_all: bool,
    /// Whether a cut in a rename may leave the file under both names.
    pub rename_leaves_both: bool,
    /// Whether a cut in a rename that replaces a name may leave that without the one that was to come in its place, which has its old name then.
    pub rename_leaves_neither: bool,
    /// Whether a cut may leave a file with a size and without bytes below it: they are zero then.
    pub size_before_bytes: bool,
}

/// What a file system can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether files can have more than one name.
    pub hard_links: bool,
    /// Whether there are symbolic links.
    pub symlinks: bool,
    /// Whether there are pipes, sockets and devices.
    pub special_files: bool,
    /// Whether inodes have extended attributes.
    pub xattrs: bool,
    /// Whether room can be set aside, and holes be made.
    pub allocation: bool,
    /// Whether two names can change places.
    pub exchange: bool,
    /// Whether what a file was never given, as between its old end and an offset written behind it, takes no flash. Where this is false, it is written
    /// as zeros.
    pub sparse: bool,
    /// Bytes that a file may have.
    pub file_size_max: u64,
    /// Bytes that a name may have.
    pub name_size_max: u32,
    /// Greatest number of an owner or a group.
    pub owner_max: u32,
    /// First and last second that a time can have, since 1970. Others become the nearer one.
    pub seconds: (i64, i64),
    /// Whether times have nanoseconds.
    pub nanoseconds: bool,
    /// Whether the time is known at which an inode was made. Else [`Stat::btime`](crate::Stat::btime) is that of the last change.
    pub birth_times: bool,
    /// Whether the number of an inode stays what it is as long as the inode is there. Else that of a file may be another after each change of it, but
    /// stays as long as the file is open ([`FileSystem::open`](crate::FileSystem::open)).
    pub has_lasting_numbers: bool,
    /// What may be found after a power cut.
    pub cuts: Cuts,
}

impl Capabilities {
    /// Whether there is this.
    pub const fn has(&self, feature: Feature) -> bool {
        match feature {
            Feature::HardLinks => self.hard_links,
            Feature::Symlinks => self.symlinks,
            Feature::SpecialFiles => self.special_files,
            Feature::Xattrs => self.xattrs,
            Feature::Allocation => self.allocation,
            Feature::Exchange => self.exchange,
        }
    }
}
