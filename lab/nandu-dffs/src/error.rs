//! Errors.

use nandu_files::Feature;
use nandu_media::Malformed;
use nandu_nand::{GeometryError, PageAddr};

/// Why the file system refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: core::error::Error + 'static> {
    /// The chip failed in a way that could not be worked around.
    #[error(transparent)]
    Nand(E),
    /// A page that is needed cannot be read or is not what it should be.
    #[error("page {page} is corrupt: {why}")]
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: Malformed,
    },
    /// There is no room, and none can be made.
    #[error("no space left")]
    Full,
    /// There is no such name, or the file is gone.
    #[error("no such file or directory")]
    NotFound,
    /// The name is taken.
    #[error("the name exists")]
    Exists,
    /// A directory is needed and this is a file.
    #[error("not a directory")]
    NotDirectory,
    /// A file is needed and this is a directory.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// Names have 1 to 255 bytes.
    #[error("a name of {0} bytes is too long")]
    NameTooLong(usize),
    /// A name is empty, `.` or `..`, or has a slash or a zero in it; or a directory would move into itself.
    #[error("invalid name or target")]
    Invalid,
    /// A file has no more pages than its inode has pointers.
    #[error("a file has at most {max} bytes")]
    FileTooLarge {
        /// Bytes of the largest file.
        max: u64,
    },
    /// Every logical number is taken by a directory, or by a page of one.
    #[error("no more directories: every logical number is taken")]
    TooManyDirectories,
    /// Too many files are open, see [`Options::open_files`](crate::Options::open_files).
    #[error("too many open files")]
    TooManyOpen,
    /// The inode is gone, or known by another number since it was renamed.
    #[error("there is no such inode any more")]
    Gone,
    /// The design has no such thing.
    #[error("{0}")]
    Unsupported(Feature),
    /// The chip takes no checkpoint or no recovery any more, see [`Dffs::is_read_only`](crate::Dffs::is_read_only).
    #[error("the volume can only be read")]
    ReadOnly,
    /// An earlier write failed half way. What there is can be read; a mount puts it right, and then it can be changed again.
    #[error("an earlier write failed; mount again")]
    Poisoned,
    /// No volume of DFFS was found.
    #[error("the chip holds no DFFS volume")]
    NotFormatted,
    /// The volume was made for another chip or with other options.
    #[error("the volume on the chip differs in {what}")]
    WrongFormat {
        /// Name of the value that differs.
        what: &'static str,
    },
    /// The options cannot be had on this chip.
    #[error("not possible on this chip: {what}")]
    Unsuitable {
        /// What is in the way.
        what: &'static str,
    },
    /// The chip describes itself as no chip can be.
    #[error(transparent)]
    Geometry(GeometryError),
    /// The memory handed over is too small.
    #[error("{required} bytes of memory are needed")]
    Memory {
        /// Bytes needed.
        required: usize,
    },
}
