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
    /// The names that some first part of them made; and of each inode the content and attributes that some first part of them made, whichever that is
    /// of others.
    Names,
}

/// What may be found after a power cut. Whatever it is: what was durable is there, of a write some bytes may be there and others not, and a
/// file is never longer than the bytes that are; every other operation is there wholly or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// In which order changes come to be there. With [`Order::Volume`], whatever is durable when it returns makes durable all that was changed before;
    /// with [`Order::Names`] all names, and of content and attributes those of the file concerned. [`FileSystem::sync`](crate::FileSystem::sync)
    /// always makes everything durable.
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
    /// Whether a directory counts what is in it: its size is the number of names, and it has 2 links and one for each directory. Else it has one link,
    /// and any size.
    pub counted_names: bool,
    /// Whether the times of a directory say when a name came or went last.
    pub directory_times: bool,
    /// Whether the number of an inode stays what it is as long as the inode is there. Else that of a file is another after a rename, at the latest when
    /// the file is closed ([`FileSystem::open`](crate::FileSystem::open)).
    pub lasting_numbers: bool,
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
