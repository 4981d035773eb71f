//! Keys of the tree's records.
//!
//! FORMAT: Keys of the file system
//!
//! Everything is a record of one tree. Numbers in keys have their high byte first, so that records lie as the numbers count: an
//! inode before its names, its pages, its attributes; the inodes of a directory's children, which take their numbers from the
//! directory's chunk, near the directory. The root directory is inode 1.
//!
//! ```text
//! bytes                                             record
//! 0 (6)      0x00 (1)                               superblock
//! 0 (6)      0x01 (1)  inode (6)                    orphan: inode without a name, or a truncation under way
//! 0 (6)      0x02 (1)                               windows of a promised lifetime that are over (8, low byte first)
//! 0 (6)      0x03 (1)                               the tail that was taken over last: sequence of the commit before it (8) and its
//!                                                   first page (4), low bytes first
//! inode (6)  0x00 (1)                               inode
//! inode (6)  0x10 (1)  hash (5)  probe (1)          name in a directory
//! inode (6)  0x20 (1)  page index (4)               page of a file
//! inode (6)  0x20 (1)  page index (4)  offset (2)   fragment that lies over a page of a file
//! inode (6)  0x30 (1)  hash (4)  probe (1) part (1) extended attribute
//! inode (6)  0x31 (1)  number (4)  part (2)         long value of an extended attribute
//! inode (6)  0x40 (1)  part (1)                     target of a symbolic link
//! ```

/// Bytes of the longest key.
pub(crate) const KEY_SIZE_MAX: usize = 13;

/// Numbers of inodes are below this.
pub(crate) const INO_END: u64 = 1 << 48;

const INODE: u8 = 0x00;
const ORPHAN: u8 = 0x01;
pub(crate) const WEAR: u8 = 0x02;
pub(crate) const TAIL: u8 = 0x03;
const NAME: u8 = 0x10;
const PAGE: u8 = 0x20;
const XATTR: u8 = 0x30;
const LONG_VALUE: u8 = 0x31;
const TARGET: u8 = 0x40;

/// A key on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    bytes: [u8; KEY_SIZE_MAX],
    size: u8,
}

impl Key {
    pub(crate) const EMPTY: Key = Key { bytes: [0; KEY_SIZE_MAX], size: 0 };

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }

    /// A copy of a key of a record; `None` if no record has such a key.
    pub(crate) fn new(bytes: &[u8]) -> Option<Key> {
        let mut key = Key::EMPTY;
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        key.size = bytes.len() as u8;
        Some(key)
    }

    fn start(ino: u64, kind: u8) -> Key {
        let mut key = Key::EMPTY;
        key.bytes[..6].copy_from_slice(&ino.to_be_bytes()[2..]);
        key.bytes[6] = kind;
        key.size = 7;
        key
    }

    /// The inode to which a record with this key belongs; 0 if it is none's.
    pub(crate) fn owner(key: &[u8]) -> u64 {
        key.first_chunk::<6>().map_or(0, |ino| number(ino))
    }

    fn with(mut self, more: &[u8]) -> Key {
        let at = usize::from(self.size);
        self.bytes[at..at + more.len()].copy_from_slice(more);
        self.size += more.len() as u8;
        self
    }

    pub(crate) fn super_block() -> Key {
        Key::of_volume(INODE)
    }

    pub(crate) fn orphan(ino: u64) -> Key {
        Key::start(0, ORPHAN).with(&ino.to_be_bytes()[2..])
    }

    /// That of a record of the whole volume, of this kind.
    pub(crate) fn of_volume(kind: u8) -> Key {
        Key::start(0, kind)
    }

    pub(crate) fn inode(ino: u64) -> Key {
        Key::start(ino, INODE)
    }

    /// Before every record of an inode but the inode itself.
    pub(crate) fn behind_inode(ino: u64) -> Key {
        Key::start(ino, ORPHAN)
    }

    /// Behind every record of an inode.
    pub(crate) fn end(ino: u64) -> Key {
        Key::start(ino, 0xFF)
    }

    /// `position` is 40 bits of hash and 8 of probe.
    pub(crate) fn name(directory: u64, position: u64) -> Key {
        Key::start(directory, NAME).with(&position.to_be_bytes()[2..])
    }

    /// Behind every name of a directory.
    pub(crate) fn names_end(directory: u64) -> Key {
        Key::start(directory, NAME + 1)
    }

    pub(crate) fn page(ino: u64, index: u32) -> Key {
        Key::start(ino, PAGE).with(&index.to_be_bytes())
    }

    /// Behind every page of a file.
    pub(crate) fn pages_end(ino: u64) -> Key {
        Key::start(ino, PAGE + 1)
    }

    pub(crate) fn fragment(ino: u64, index: u32, offset: u16) -> Key {
        Key::page(ino, index).with(&offset.to_be_bytes())
    }

    pub(crate) fn xattr(ino: u64, hash: u32, probe: u8, part: u8) -> Key {
        Key::start(ino, XATTR).with(&hash.to_be_bytes()).with(&[probe, part])
    }

    pub(crate) fn xattrs_end(ino: u64) -> Key {
        Key::start(ino, XATTR + 1)
    }

    pub(crate) fn long_value(ino: u64, number: u32, part: u16) -> Key {
        Key::start(ino, LONG_VALUE).with(&number.to_be_bytes()).with(&part.to_be_bytes())
    }

    /// Behind every long value of an inode.
    pub(crate) fn long_values_end(ino: u64) -> Key {
        Key::start(ino, LONG_VALUE + 1)
    }

    pub(crate) fn target(ino: u64, part: u8) -> Key {
        Key::start(ino, TARGET).with(&[part])
    }
}

/// What a key says of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    SuperBlock,
    Orphan { ino: u64 },
    Wear,
    Tail,
    Inode { ino: u64 },
    Name { directory: u64, position: u64 },
    Page { ino: u64, index: u32 },
    Fragment { ino: u64, index: u32, offset: u16 },
    Xattr { ino: u64, hash: u32, probe: u8, part: u8 },
    LongValue { ino: u64, number: u32, part: u16 },
    Target { ino: u64, part: u8 },
}

impl Meaning {
    /// `None` if no record has such a key.
    pub(crate) fn of(key: &[u8]) -> Option<Meaning> {
        let (ino, rest) = key.split_first_chunk::<6>()?;
        let ino = number(ino);
        let (&kind, rest) = rest.split_first()?;
        match (ino, kind, rest.len()) {
            (0, INODE, 0) => Some(Meaning::SuperBlock),
            (0, ORPHAN, 6) => Some(number(rest)).filter(|&ino| ino > 0).map(|ino| Meaning::Orphan { ino }),
            (0, WEAR, 0) => Some(Meaning::Wear),
            (0, TAIL, 0) => Some(Meaning::Tail),
            (0, ..) => None,
            (_, INODE, 0) => Some(Meaning::Inode { ino }),
            (_, NAME, 6) => Some(Meaning::Name { directory: ino, position: number(rest) }),
            (_, PAGE, 4) => Some(Meaning::Page { ino, index: number(rest) as u32 }),
            (_, PAGE, 6) => {
                let offset = number(&rest[4..]) as u16;
                Some(Meaning::Fragment { ino, index: number(&rest[..4]) as u32, offset })
            }
            (_, XATTR, 6) => {
                Some(Meaning::Xattr { ino, hash: number(&rest[..4]) as u32, probe: rest[4], part: rest[5] })
            }
            (_, LONG_VALUE, 6) => {
                Some(Meaning::LongValue { ino, number: number(&rest[..4]) as u32, part: number(&rest[4..]) as u16 })
            }
            (_, TARGET, 1) => Some(Meaning::Target { ino, part: rest[0] }),
            _ => None,
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::{Key, Meaning};

    #[test]
    fn keys_mean_what_they_were_made_of_and_lie_in_order() {
        let ino = 0x0102_0304_0506;
        let records = [
            (Key::super_block(), Meaning::SuperBlock),
            (Key::orphan(ino), Meaning::Orphan { ino }),
            (Key::of_volume(super::WEAR), Meaning::Wear),
            (Key::of_volume(super::TAIL), Meaning::Tail),
            (Key::inode(ino), Meaning::Inode { ino }),
            (Key::name(ino, 0xA1_B2C3_D4E5), Meaning::Name { directory: ino, position: 0xA1_B2C3_D4E5 }),
            (Key::page(ino, 7), Meaning::Page { ino, index: 7 }),
            (Key::fragment(ino, 7, 300), Meaning::Fragment { ino, index: 7, offset: 300 }),
            (Key::page(ino, 8), Meaning::Page { ino, index: 8 }),
            (Key::xattr(ino, 9, 1, 2), Meaning::Xattr { ino, hash: 9, probe: 1, part: 2 }),
            (Key::long_value(ino, 6, 260), Meaning::LongValue { ino, number: 6, part: 260 }),
            (Key::target(ino, 3), Meaning::Target { ino, part: 3 }),
        ];
        for (key, meaning) in &records {
            assert_eq!(Meaning::of(key.as_slice()), Some(*meaning));
        }
        assert!(records.is_sorted_by_key(|(key, _)| key.as_slice()));
        for (key, _) in &records[4..] {
            assert!(key.as_slice() < Key::end(ino).as_slice());
        }
        assert_eq!(Meaning::of(&[0; 5]), None);
        assert_eq!(Meaning::of(&[1; 7]), None);
    }
}
