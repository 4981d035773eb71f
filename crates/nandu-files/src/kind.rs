//! What a name can lead to.

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// A named pipe.
    Fifo = 1,
    /// A character device.
    CharDevice = 2,
    /// A directory.
    Directory = 4,
    /// A block device.
    BlockDevice = 6,
    /// A regular file.
    File = 8,
    /// A symbolic link.
    Symlink = 10,
    /// A socket.
    Socket = 12,
}

impl FileKind {
    /// Bits of a mode that say the type.
    pub const MASK: u32 = 0o170_000;

    /// The type that a mode says; `None` if it is none.
    pub const fn of_mode(mode: u32) -> Option<FileKind> {
        FileKind::of_number(((mode & FileKind::MASK) >> 12) as u8)
    }

    /// The type of a number, which is the upper four bits of a mode; `None` if it is none.
    pub const fn of_number(number: u8) -> Option<FileKind> {
        Some(match number {
            1 => FileKind::Fifo,
            2 => FileKind::CharDevice,
            4 => FileKind::Directory,
            6 => FileKind::BlockDevice,
            8 => FileKind::File,
            10 => FileKind::Symlink,
            12 => FileKind::Socket,
            _ => return None,
        })
    }

    /// The bits of a mode that say this type.
    pub const fn mode(self) -> u32 {
        (self as u32) << 12
    }
}
