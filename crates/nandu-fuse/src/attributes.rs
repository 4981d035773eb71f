//! What the file system knows of an inode, as FUSE wants it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use nandu_files::{FileKind, Stat, Time};

/// Bytes of a block as `stat` counts them, whatever the file system has.
const STAT_BLOCK_SIZE: u64 = 512;

pub(crate) fn attributes(stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(stat.ino.0),
        size: stat.size,
        blocks: stat.allocated_size.div_ceil(STAT_BLOCK_SIZE),
        atime: to_system(stat.atime),
        mtime: to_system(stat.mtime),
        ctime: to_system(stat.ctime),
        crtime: to_system(stat.btime),
        kind: file_type(stat.kind),
        perm: (stat.mode & 0o7777) as u16,
        nlink: stat.nlink,
        uid: stat.uid,
        gid: stat.gid,
        rdev: stat.rdev as u32,
        blksize: stat.block_size,
        flags: 0,
    }
}

pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::Directory => FileType::Directory,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::File => FileType::RegularFile,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Socket => FileType::Socket,
    }
}

/// A time of the file system as one of the operating system; what that cannot say becomes the beginning of 1970.
fn to_system(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let base = if time.seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(time.nanoseconds.into()))).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::to_system;
    use crate::served::from_system;
    use nandu_files::Time;

    #[test]
    fn times_before_1970_come_back_as_they_were() {
        for (seconds, nanoseconds) in [(0, 0), (5, 7), (-1, 999_999_999), (-3, 0), (-3, 1), (1 << 40, 0)] {
            let time = Time { seconds, nanoseconds };
            assert_eq!(from_system(to_system(time)), time);
        }
    }
}
