//! FORMAT: Log records of the in-page-logging index
//!
//! What changed in a node, in the order in which it changed. The same records stand in journal pages, there without a
//! node.

use crate::{Field, Malformed};

/// How entries and records are laid out, fixed when a volume is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cells {
    /// Keys of one width and values of one width, in bytes. Keys have at least one byte.
    Fixed {
        /// Bytes of a key.
        key: u8,
        /// Bytes of a value.
        value: u8,
    },
    /// Keys to 255 bytes and values of any size that a sector takes.
    Bytes,
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const LINK: u8 = 3;
const UNLINK: u8 = 4;
const TRUNCATE: u8 = 5;
const CLEAR: u8 = 6;

/// A change of a node.
///
/// ```text
/// op  content                meaning
///  1  key, value             put, in a leaf
///  2  key                    delete, in a leaf
///  3  key, node (4)          add a child to an inner node; the key is its lower fence
///  4  key                    remove a child from an inner node
///  5  key, node (4)          the keys from this one on moved to that node
///  6                         the node is empty
/// ```
///
/// `op` has one byte. With keys and values of fixed width these follow bare; else a key follows its size (1), and a value
/// its size (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Put a value at a key.
    Put(&'a [u8], &'a [u8]),
    /// Delete a key.
    Delete(&'a [u8]),
    /// Add a child.
    Link(&'a [u8], u32),
    /// Remove a child.
    Unlink(&'a [u8]),
    /// Keys from this one on are elsewhere.
    Truncate(&'a [u8], u32),
    /// The node is empty.
    Clear,
}

impl<'a> Record<'a> {
    /// The key it concerns; the empty one if it concerns all.
    pub fn key(&self) -> &'a [u8] {
        match self {
            Record::Put(key, _) | Record::Delete(key) | Record::Link(key, _) => key,
            Record::Unlink(key) | Record::Truncate(key, _) => key,
            Record::Clear => &[],
        }
    }

    /// Bytes it takes.
    pub fn size(&self, cells: Cells) -> usize {
        let prefix = |bytes| if cells == Cells::Bytes { bytes } else { 0 };
        match self {
            Record::Put(key, value) => 1 + prefix(3) + key.len() + value.len(),
            Record::Delete(key) | Record::Unlink(key) => 1 + prefix(1) + key.len(),
            Record::Link(key, _) | Record::Truncate(key, _) => 1 + prefix(1) + key.len() + 4,
            Record::Clear => 1,
        }
    }

    /// Writes it to the front of a buffer and returns how many bytes it took; `None` if it does not fit.
    pub fn write(&self, cells: Cells, out: &mut [u8]) -> Option<usize> {
        let size = self.size(cells);
        let mut rest = out.get_mut(..size)?;
        let mut put = |bytes: &[u8]| {
            let (front, back) = core::mem::take(&mut rest).split_at_mut(bytes.len());
            front.copy_from_slice(bytes);
            rest = back;
        };
        let is_bytes = cells == Cells::Bytes;
        let key = self.key();
        put(&[match self {
            Record::Put(..) => PUT,
            Record::Delete(_) => DELETE,
            Record::Link(..) => LINK,
            Record::Unlink(_) => UNLINK,
            Record::Truncate(..) => TRUNCATE,
            Record::Clear => CLEAR,
        }]);
        if is_bytes && *self != Record::Clear {
            put(&[key.len() as u8]);
        }
        match self {
            Record::Put(key, value) => {
                if is_bytes {
                    put(&(value.len() as u16).to_le_bytes());
                }
                put(key);
                put(value);
            }
            Record::Delete(key) | Record::Unlink(key) => put(key),
            Record::Link(key, node) | Record::Truncate(key, node) => {
                put(key);
                put(&node.to_le_bytes());
            }
            Record::Clear => {}
        }
        Some(size)
    }

    /// Reads the record at the front of some bytes, and what is behind it.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`] if it is cut off, [`Malformed::Range`] for an operation that is not known.
    pub fn parse(cells: Cells, bytes: &'a [u8]) -> Result<(Record<'a>, &'a [u8]), Malformed> {
        let mut rest = bytes;
        let mut take = |count: usize| -> Result<&'a [u8], Malformed> {
            let (front, back) = rest.split_at_checked(count).ok_or(Malformed::Size)?;
            rest = back;
            Ok(front)
        };
        let op = take(1)?[0];
        let (key_size, mut value_size) = match cells {
            Cells::Fixed { key, value } => (usize::from(key), usize::from(value)),
            Cells::Bytes if op == CLEAR => (0, 0),
            Cells::Bytes => (usize::from(take(1)?[0]), 0),
        };
        let record = match op {
            PUT => {
                if cells == Cells::Bytes {
                    let size = take(2)?;
                    value_size = usize::from(u16::from_le_bytes([size[0], size[1]]));
                }
                let key = take(key_size)?;
                Record::Put(key, take(value_size)?)
            }
            DELETE => Record::Delete(take(key_size)?),
            UNLINK => Record::Unlink(take(key_size)?),
            LINK | TRUNCATE => {
                let key = take(key_size)?;
                let node = take(4)?;
                let node = u32::from_le_bytes([node[0], node[1], node[2], node[3]]);
                if op == LINK { Record::Link(key, node) } else { Record::Truncate(key, node) }
            }
            CLEAR => Record::Clear,
            _ => return Err(Malformed::Range(Field::Op)),
        };
        Ok((record, rest))
    }
}

/// Records one after the other. After a malformed one it ends.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    cells: Cells,
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records in these bytes.
    pub const fn new(cells: Cells, bytes: &'a [u8]) -> Records<'a> {
        Records { cells, rest: bytes }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Record::parse(self.cells, self.rest) {
            Ok((record, rest)) => {
                self.rest = rest;
                Some(Ok(record))
            }
            Err(why) => {
                self.rest = &[];
                Some(Err(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Cells = Cells::Fixed { key: 2, value: 3 };

    const ALL: [(Record<'_>, &[u8], &[u8]); 6] = [
        (Record::Put(b"ab", b"xyz"), b"\x01abxyz", b"\x01\x02\x03\0abxyz"),
        (Record::Delete(b"ab"), b"\x02ab", b"\x02\x02ab"),
        (Record::Link(b"ab", 0x0102), b"\x03ab\x02\x01\0\0", b"\x03\x02ab\x02\x01\0\0"),
        (Record::Unlink(b"ab"), b"\x04ab", b"\x04\x02ab"),
        (Record::Truncate(b"ab", 7), b"\x05ab\x07\0\0\0", b"\x05\x02ab\x07\0\0\0"),
        (Record::Clear, b"\x06", b"\x06"),
    ];

    #[test]
    fn the_bytes_of_records_are_frozen() {
        for (record, fixed, bytes) in ALL {
            for (cells, expected) in [(FIXED, fixed), (Cells::Bytes, bytes)] {
                let mut out = [0; 16];
                let size = record.write(cells, &mut out).unwrap();
                assert_eq!(&out[..size], expected);
                assert_eq!(size, record.size(cells));
                assert_eq!(Record::parse(cells, expected), Ok((record, &[][..])));
                assert_eq!(record.write(cells, &mut out[..size - 1]), None);
                for end in 0..size {
                    assert_eq!(Record::parse(cells, &expected[..end]), Err(Malformed::Size));
                }
            }
        }
        assert_eq!(Record::parse(FIXED, b"\x07ab"), Err(Malformed::Range(Field::Op)));
    }

    #[test]
    fn records_end_with_the_first_that_is_malformed() {
        let mut records = Records::new(FIXED, b"\x06\x02ab\x01a");
        assert_eq!(records.next(), Some(Ok(Record::Clear)));
        assert_eq!(records.next(), Some(Ok(Record::Delete(b"ab"))));
        assert_eq!(records.next(), Some(Err(Malformed::Size)));
        assert_eq!(records.next(), None);
    }
}
