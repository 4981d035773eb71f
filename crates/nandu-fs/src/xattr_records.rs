//! Extended attributes: what their records are, and which long values are theirs.
//!
//! FORMAT: Extended attributes
//!
//! An attribute is some records of its inode: the first holds its name, the others its value in order. Its place is 32 bits of the
//! name's hash and a probe, as with names in directories.
//!
//! ```text
//! part 0  bytes 0 to 1  bytes of the value, low byte first
//!         the rest      name, 1 to 255 bytes
//! part n  all           a piece of the value
//! ```
//!
//! A value that takes more than 4,096 bytes with its name, or more than 32 records, is a long one, of 65,536 bytes at most. It stands in records
//! of its own, under a number that no other long value of the inode has; its first record says which attribute it belongs to.
//!
//! ```text
//! attribute   part 0  bytes 0 to 1  0xFFFF
//!                     bytes 2 to 5  bytes of the value, low byte first
//!                     bytes 6 to 9  number of the long value, low byte first
//!                     the rest      name, 1 to 255 bytes
//! long value  part 0  bytes 0 to 3  hash of the attribute's name, low byte first
//!                     byte 4        probe of the attribute
//!             part n  all           a piece of the value
//! ```
//!
//! A long value that its attribute does not name is nobody's: it was being written when the power went, or is being removed. An orphan's record
//! names the inode as long as it has one.

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::error::Damage;
use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::{FsError, Ino};

/// Most bytes of a value.
pub(crate) const VALUE_SIZE_MAX: usize = 65_536;

/// Most bytes of a name and a value that are put with one batch.
pub(crate) const SHORT_SIZE_MAX: usize = 4096;

/// Most bytes of a name.
pub(crate) const NAME_SIZE_MAX: usize = 255;

/// Most bytes in front of a name.
pub(crate) const HEAD_SIZE_MAX: usize = 10;

/// In place of the bytes of a value: it is a long one.
const LONG: [u8; 2] = [0xFF; 2];

/// Bytes of the first record of a long value.
const OWNER_SIZE: usize = 5;

/// How long a value is, and where.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) size: usize,
    /// Of a long value.
    pub(crate) number: Option<u32>,
}

/// What a first part says: name and value; `None` if it is none.
pub(crate) fn parse(record: &[u8]) -> Option<(&[u8], Value)> {
    let (head, rest) = record.split_first_chunk::<2>()?;
    let (value, name, size_max) = if *head == LONG {
        let (size, rest) = rest.split_first_chunk::<4>()?;
        let (number, name) = rest.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        (Value { size, number: Some(u32::from_le_bytes(*number)) }, name, VALUE_SIZE_MAX)
    } else {
        (Value { size: u16::from_le_bytes(*head).into(), number: None }, rest, SHORT_SIZE_MAX)
    };
    let is_sound = !name.is_empty() && name.len() <= NAME_SIZE_MAX && value.size <= size_max;
    is_sound.then_some((name, value))
}

/// What stands in front of the name of an attribute with a long value.
pub(crate) fn long_head(size: usize, number: u32) -> [u8; HEAD_SIZE_MAX] {
    let mut head = [0; HEAD_SIZE_MAX];
    head[..2].copy_from_slice(&LONG);
    head[2..6].copy_from_slice(&(size as u32).to_le_bytes());
    head[6..].copy_from_slice(&number.to_le_bytes());
    head
}

/// The first record of the long value of an attribute.
pub(crate) fn owner(hash: u32, probe: u8) -> [u8; OWNER_SIZE] {
    let [a, b, c, d] = hash.to_le_bytes();
    [a, b, c, d, probe]
}

/// The records of a long value.
pub(crate) fn long_value(ino: u64, number: u32) -> (Key, Key) {
    let end = number.checked_add(1).map_or(Key::long_values_end(ino), |next| Key::long_value(ino, next, 0));
    (Key::long_value(ino, number, 0), end)
}

impl<N: Nand> Fs<'_, N> {
    /// A number that no long value of an inode has, above those of all.
    pub(crate) fn free_number(&mut self, ino: Ino) -> Result<u32, FsError<N::Error>> {
        let (from, to) = (Key::long_value(ino.0, 0, 0), Key::long_values_end(ino.0));
        let mut last = None;
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.tree.range(bounds.0, bounds.1, Direction::Backward, |entry| {
            last = Meaning::of(entry.key);
            ControlFlow::Break(())
        })?;
        let free = match last {
            None => Some(0),
            Some(Meaning::LongValue { number, .. }) => number.checked_add(1),
            Some(_) => None,
        };
        // No chip lives long enough for the last number.
        free.ok_or(FsError::Corrupt { ino, why: Damage::Xattr })
    }

    /// The first long value of an inode, from a number on, that no attribute names.
    pub(crate) fn nobodys_value(&mut self, ino: u64, from: u32) -> Result<Option<u32>, FsError<N::Error>> {
        let mut next = Some(from);
        while let Some(from) = next
            && let Some(number) = self.next_value(ino, from)?
        {
            if !self.has_owner(ino, number)? {
                return Ok(Some(number));
            }
            next = number.checked_add(1);
        }
        Ok(None)
    }

    /// Whether an inode has a long value.
    pub(crate) fn has_long_value(&mut self, ino: u64) -> Result<bool, FsError<N::Error>> {
        Ok(self.next_value(ino, 0)?.is_some())
    }

    fn next_value(&mut self, ino: u64, from: u32) -> Result<Option<u32>, FsError<N::Error>> {
        self.first_record((Key::long_value(ino, from, 0), Key::long_values_end(ino)), |meaning| match meaning {
            Meaning::LongValue { number, .. } => Some(number),
            _ => None,
        })
    }

    /// Whether the attribute that a long value says it belongs to says the same.
    fn has_owner(&mut self, ino: u64, number: u32) -> Result<bool, FsError<N::Error>> {
        let mut owner = [0; OWNER_SIZE + 1];
        let size = self.read_record(Key::long_value(ino, number, 0), &mut owner)?;
        let (Some(OWNER_SIZE), [a, b, c, d, probe, _]) = (size, owner) else { return Ok(false) };
        let mut first = [0; HEAD_SIZE_MAX + NAME_SIZE_MAX];
        let key = Key::xattr(ino, u32::from_le_bytes([a, b, c, d]), probe, 0);
        let size = self.read_record(key, &mut first)?;
        let named = size.and_then(|size| parse(&first[..size])).and_then(|(_, value)| value.number);
        Ok(named == Some(number))
    }

    /// Copies a record, as much as there is room for, and returns how many bytes these are; `None` if there is no such record.
    fn read_record(&mut self, key: Key, out: &mut [u8]) -> Result<Option<usize>, FsError<N::Error>> {
        Ok(self.tree.read(key.as_slice(), 0, out)?)
    }

    /// Whether a long value has so many bytes, and is that of an attribute.
    pub(crate) fn is_value_whole(
        &mut self,
        ino: u64,
        number: u32,
        size: usize,
        (hash, probe): (u32, u8),
    ) -> Result<bool, FsError<N::Error>> {
        let (mut parts, mut left, mut is_sound) = (0_u32, size, true);
        self.records(long_value(ino, number), |entry| {
            let follows =
                matches!(Meaning::of(entry.key), Some(Meaning::LongValue { part, .. }) if u32::from(part) == parts);
            is_sound &= follows
                && match parts {
                    0 => entry.value == owner(hash, probe),
                    _ => (1..=left).contains(&entry.value.len()),
                };
            left -= if is_sound && parts > 0 { entry.value.len() } else { 0 };
            parts += 1;
            if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(is_sound && parts > 0 && left == 0)
    }
}
