//! Numbers of errors that POSIX has, as Linux counts.

/// The file system cannot do this at all.
pub const EPERM: i32 = 1;
/// There is no such name.
pub const ENOENT: i32 = 2;
/// The chip, or what is on it, failed.
pub const EIO: i32 = 5;
/// There is nothing of the kind from there on.
pub const ENXIO: i32 = 6;
/// There is too little memory.
pub const ENOMEM: i32 = 12;
/// The name is there already.
pub const EEXIST: i32 = 17;
/// This is no directory.
pub const ENOTDIR: i32 = 20;
/// This is a directory.
pub const EISDIR: i32 = 21;
/// What was asked for makes no sense.
pub const EINVAL: i32 = 22;
/// Too many files are open.
pub const ENFILE: i32 = 23;
/// The file would become too large.
pub const EFBIG: i32 = 27;
/// There is no room.
pub const ENOSPC: i32 = 28;
/// The volume can only be read.
pub const EROFS: i32 = 30;
/// The inode has too many names.
pub const EMLINK: i32 = 31;
/// The buffer is too small.
pub const ERANGE: i32 = 34;
/// The name is too long.
pub const ENAMETOOLONG: i32 = 36;
/// The directory has names in it.
pub const ENOTEMPTY: i32 = 39;
/// There is no such attribute.
pub const ENODATA: i32 = 61;
/// This kind of file system does not have that.
pub const EOPNOTSUPP: i32 = 95;
/// There is no such inode any more.
pub const ESTALE: i32 = 116;
/// What is on the chip contradicts itself.
pub const EUCLEAN: i32 = 117;
