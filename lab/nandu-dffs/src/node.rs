//! What names lead to, as callers hold it.

use nandu_media::dffs::{Fields, Kind};

use crate::hash::Place;

/// A directory, by its logical number, and by its generation, since another gets the number when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Directory {
    pub(crate) number: u32,
    pub(crate) generation: u32,
}

impl Directory {
    /// The logical number.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// What tells it from others that had its logical number.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The directory whose inode says this.
    pub(crate) fn of(fields: &Fields) -> Directory {
        Directory { number: fields.id, generation: fields.size }
    }
}

/// A file: where its name belongs, and its number. DFFS has no way from a number to an inode but through the bucket of the name; so
/// a file that is renamed gets another one of these, and the old one leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File {
    pub(crate) directory: u32,
    pub(crate) number: u32,
    pub(crate) bucket: u16,
    pub(crate) second: u8,
}

impl File {
    /// The number, which stays the same for the life of the file: its inode number.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The logical number of the directory that holds the name.
    pub const fn directory(self) -> u32 {
        self.directory
    }

    pub(crate) fn at(directory: u32, number: u32, place: Place) -> File {
        File { directory, number, bucket: place.bucket, second: place.second }
    }
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A directory.
    Directory(Directory),
    /// A file.
    File(File),
}

impl Node {
    pub(crate) fn of(fields: &Fields, directory: u32, place: Place) -> Node {
        match fields.kind {
            Kind::File => Node::File(File::at(directory, fields.id, place)),
            _ => Node::Directory(Directory::of(fields)),
        }
    }

    /// The inode number.
    pub const fn number(self) -> u32 {
        match self {
            Node::Directory(directory) => directory.number,
            Node::File(file) => file.number,
        }
    }
}

/// What is known of a directory or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Inode number.
    pub number: u32,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Permissions, without the kind.
    pub mode: u16,
    /// Owner.
    pub uid: u16,
    /// Group.
    pub gid: u16,
    /// Bytes of a file. Of a directory, bytes of its first page.
    pub size: u64,
    /// Pages of data that a file has; 0 for a directory.
    pub pages: u32,
    /// Links: always 1, for directories too, which means that nobody counts.
    pub nlink: u16,
    /// Seconds since 1970.
    pub atime: u32,
    /// Of the content, seconds since 1970. A directory's is that of the first page of its chain, and stays where only another changed.
    pub mtime: u32,
    /// Of the inode, seconds since 1970.
    pub ctime: u32,
}

/// Who may do what with a new file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The lower twelve bits of a mode.
    pub mode: u16,
    /// Owner.
    pub uid: u16,
    /// Group.
    pub gid: u16,
}

/// What may be changed of an inode; `None`: as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The lower twelve bits of a mode.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u16>,
    /// Group.
    pub gid: Option<u16>,
    /// Seconds since 1970.
    pub atime: Option<u32>,
    /// Seconds since 1970.
    pub mtime: Option<u32>,
}
