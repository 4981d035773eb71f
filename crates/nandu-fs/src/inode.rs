//! What there is of a file besides its names and its content.
//!
//! FORMAT: Inodes
//!
//! Numbers are variable: seven bits a byte, the lowest first, the high bit set in all bytes but the last. Signed ones are
//! doubled, less than zero as `-2 n - 1`. A file just made has one time and no device, so that it takes about 25 bytes.
//!
//! ```text
//! field        present
//! flags        always   one byte: 1 mtime, 2 atime, 4 btime differ from ctime; 8 device; 16 attributes; other bits zero
//! mode         always   type and permissions, as POSIX has them
//! uid, gid     always
//! nlink        always   names; of a directory 2 and one for each directory in it
//! size         always   bytes; of a directory names in it
//! blocks       always   records of pages, unwritten ones too
//! ctime        always   seconds (signed), nanoseconds
//! mtime        flag 1
//! atime        flag 2
//! btime        flag 4
//! device       flag 8
//! xattr_size   flag 16  bytes of names and values of extended attributes
//! parent       of directories: the directory that has its name
//! chunk next   of directories: number of the next inode made in it
//! chunk end    of directories: first number that is not its own any more
//! ```

use nandu_files::{FileKind, Stat};

use crate::keys::INO_END;
use crate::{Ino, Time};

/// Most bytes of an inode.
pub(crate) const INODE_SIZE_MAX: usize = 144;

/// Places of its times. Those behind the first have a flag each, in this order.
pub(crate) const CTIME: usize = 0;
pub(crate) const MTIME: usize = 1;
pub(crate) const ATIME: usize = 2;
const BTIME: usize = 3;

const DEVICE: u8 = 8;
const XATTRS: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) times: [Time; 4],
    pub(crate) rdev: u64,
    pub(crate) xattr_size: u32,
    pub(crate) parent: u64,
    pub(crate) chunk_next: u64,
    pub(crate) chunk_end: u64,
}

impl Inode {
    pub(crate) const EMPTY: Inode = Inode {
        mode: 0,
        uid: 0,
        gid: 0,
        nlink: 0,
        size: 0,
        blocks: 0,
        times: [Time::EPOCH; 4],
        rdev: 0,
        xattr_size: 0,
        parent: 0,
        chunk_next: 0,
        chunk_end: 0,
    };

    pub(crate) fn is_directory(&self) -> bool {
        self.mode & FileKind::MASK == FileKind::Directory.mode()
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & FileKind::MASK == FileKind::File.mode()
    }

    pub(crate) fn kind(&self) -> FileKind {
        FileKind::of_mode(self.mode).unwrap_or(FileKind::File)
    }

    /// Its content or its names change.
    pub(crate) fn modify(&mut self, now: Time) {
        (self.times[MTIME], self.times[CTIME]) = (now, now);
    }

    /// Its content changes, up to this offset.
    pub(crate) fn grow(&mut self, end: u64, now: Time) {
        self.size = self.size.max(end);
        self.modify(now);
    }

    pub(crate) fn stat(&self, ino: Ino, page_size: usize) -> Stat {
        Stat {
            ino,
            kind: self.kind(),
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            nlink: self.nlink,
            size: self.size,
            allocated_size: self.blocks.saturating_mul(page_size as u64),
            block_size: page_size as u32,
            rdev: self.rdev,
            atime: self.times[ATIME],
            mtime: self.times[MTIME],
            ctime: self.times[CTIME],
            btime: self.times[BTIME],
        }
    }

    /// Encodes it and returns how many bytes it takes.
    pub(crate) fn write(&self, out: &mut [u8]) -> usize {
        let mut flags = if self.rdev != 0 { DEVICE } else { 0 };
        flags |= if self.xattr_size != 0 { XATTRS } else { 0 };
        let mut at = 1;
        for number in [self.mode, self.uid, self.gid, self.nlink] {
            put_number(out, &mut at, number.into());
        }
        for number in [self.size, self.blocks] {
            put_number(out, &mut at, number);
        }
        for (place, time) in self.times.iter().enumerate() {
            if place == CTIME || *time != self.times[CTIME] {
                put_time(out, &mut at, time);
                flags |= 1 << place >> 1;
            }
        }
        out[0] = flags;
        if flags & DEVICE != 0 {
            put_number(out, &mut at, self.rdev);
        }
        if flags & XATTRS != 0 {
            put_number(out, &mut at, u64::from(self.xattr_size));
        }
        if self.is_directory() {
            for number in [self.parent, self.chunk_next, self.chunk_end] {
                put_number(out, &mut at, number);
            }
        }
        at
    }

    /// `None` if these bytes are no inode.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Inode> {
        let mut rest = bytes;
        let (&flags, after) = rest.split_first()?;
        rest = after;
        if flags >= XATTRS << 1 {
            return None;
        }
        let mut inode = Inode::EMPTY;
        for field in [&mut inode.mode, &mut inode.uid, &mut inode.gid, &mut inode.nlink] {
            *field = take_number(&mut rest)?.try_into().ok()?;
        }
        inode.size = take_number(&mut rest)?;
        inode.blocks = take_number(&mut rest)?;
        inode.times = [take_time(&mut rest)?; 4];
        for (place, time) in inode.times.iter_mut().enumerate() {
            if flags & 7 & (1 << place >> 1) != 0 {
                *time = take_time(&mut rest)?;
            }
        }
        if flags & DEVICE != 0 {
            inode.rdev = take_number(&mut rest)?;
        }
        if flags & XATTRS != 0 {
            inode.xattr_size = take_number(&mut rest)?.try_into().ok()?;
        }
        FileKind::of_mode(inode.mode)?;
        if inode.is_directory() {
            for field in [&mut inode.parent, &mut inode.chunk_next, &mut inode.chunk_end] {
                *field = take_number(&mut rest)?;
            }
            let is_sound = inode.parent != 0 && inode.parent < INO_END && inode.chunk_next <= inode.chunk_end;
            if !is_sound || inode.chunk_end > INO_END {
                return None;
            }
        }
        rest.is_empty().then_some(inode)
    }
}

/// Appends a variable number.
pub(crate) fn put_number(out: &mut [u8], at: &mut usize, mut number: u64) {
    while number >= 0x80 {
        out[*at] = number as u8 | 0x80;
        *at += 1;
        number >>= 7;
    }
    out[*at] = number as u8;
    *at += 1;
}

/// Takes a variable number from the front; `None` if there is none, or one that could be shorter.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for index in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        if index == 9 && bits > 1 {
            return None;
        }
        number |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return (byte != 0 || index == 0).then_some(number);
        }
    }
    None
}

fn put_time(out: &mut [u8], at: &mut usize, time: &Time) {
    put_number(out, at, ((time.seconds << 1) ^ (time.seconds >> 63)) as u64);
    put_number(out, at, u64::from(time.nanoseconds));
}

fn take_time(bytes: &mut &[u8]) -> Option<Time> {
    let seconds = take_number(bytes)?;
    let nanoseconds = take_number(bytes)?.try_into().ok().filter(|&nanoseconds: &u32| nanoseconds < 1_000_000_000)?;
    Some(Time { seconds: (seconds >> 1) as i64 ^ -((seconds & 1) as i64), nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::{INODE_SIZE_MAX, Inode};
    use crate::Time;

    const LARGEST: Inode = Inode {
        mode: 0o047_777,
        uid: u32::MAX,
        gid: u32::MAX,
        nlink: u32::MAX,
        size: u64::MAX,
        blocks: u64::MAX,
        times: [
            Time { seconds: -1, nanoseconds: 0 },
            Time { seconds: i64::MAX, nanoseconds: 999_999_998 },
            Time { seconds: i64::MIN, nanoseconds: 999_999_999 },
            Time { seconds: 1 << 40, nanoseconds: 1 },
        ],
        rdev: u64::MAX,
        xattr_size: u32::MAX,
        parent: (1 << 48) - 1,
        chunk_next: (1 << 48) - 2,
        chunk_end: 1 << 48,
    };

    #[test]
    fn an_inode_comes_back_as_it_was_and_nothing_shorter_or_longer_is_one() {
        let time = Time { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
        let young = Inode { mode: 0o100_644, nlink: 1, times: [time; 4], ..Inode::EMPTY };
        let mut bytes = [0; INODE_SIZE_MAX];
        assert!(young.write(&mut bytes) <= 20);
        for inode in [
            young,
            LARGEST,
            Inode { mode: 0o060_600, rdev: 7, ..young },
            Inode { times: [time, Time::EPOCH, time, time], ..young },
        ] {
            let size = inode.write(&mut bytes);
            assert_eq!(Inode::parse(&bytes[..size]), Some(inode));
            assert_eq!(Inode::parse(&bytes[..size - 1]), None);
            assert_eq!(Inode::parse(&bytes[..=size]), None);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_are_an_inode_that_is_written_as_they_are() {
        let mut bytes = [0; INODE_SIZE_MAX];
        let size = LARGEST.write(&mut bytes);
        for at in 0..size {
            for bit in 0..8 {
                let mut changed = bytes;
                changed[at] ^= 1 << bit;
                if let Some(inode) = Inode::parse(&changed[..size]) {
                    let mut again = [0; INODE_SIZE_MAX];
                    // A time that equals the other needs no place of its own, so only what it means is compared.
                    let size = inode.write(&mut again);
                    assert_eq!(Inode::parse(&again[..size]), Some(inode));
                }
            }
        }
    }
}
