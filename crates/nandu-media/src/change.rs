//! FORMAT: Changes in a list
//!
//! A list is changes that no leaf holds yet, one after another, as a section of a path page has them.
//!
//! ```text
//! change:    1  kind          0 delete, 1 put, 6 a key of the leaf in the same page, or of a value that stands in it; else refused
//!            1  key_length    only where keys have any length
//!            2  value_length  only of a put, and only where values have any length
//!               key
//!               value         only of a put
//! ```
//!
//! Kind 6 comes only where keys have any length, and takes no more room than a delete: what the key has, or that it has nothing, stands in the leaf to which a search for it leads, whatever older commits list of it.

use crate::tree::{CellFormat, Malformed};

/// Of a change: the value is what the list says.
pub const TAG_INLINE: u8 = 0;

/// Of a change: what the key has stands in the page that lists it.
pub const TAG_HERE: u8 = 5;

/// A change as a list holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedChange<'a> {
    /// The key it concerns.
    pub key: &'a [u8],
    /// [`TAG_INLINE`], or [`TAG_HERE`] where what the key has stands in the page that lists the change.
    pub tag: u8,
    /// The value put there; `None` deletes the key. Of one that stands in the page, nothing.
    pub value: Option<&'a [u8]>,
}

impl<'a> ListedChange<'a> {
    /// Bytes that it takes in a page.
    pub fn size(&self, format: &CellFormat) -> usize {
        let value = self.value.filter(|_| self.tag == TAG_INLINE);
        let value_size = value.map_or(0, |value| value.len() + if has_lengths(format) { 2 } else { 0 });
        1 + usize::from(has_lengths(format)) + self.key.len() + value_size
    }

    /// Writes it to the front of `out`, which is large enough, and returns its size.
    pub fn write(&self, format: &CellFormat, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut write = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let value = self.value.filter(|_| self.tag == TAG_INLINE);
        write(&[self.value.map_or(0, |_| 1 + self.tag)]);
        if has_lengths(format) {
            write(&[self.key.len() as u8]);
            if let Some(value) = value {
                write(&(value.len() as u16).to_le_bytes());
            }
        }
        write(self.key);
        write(value.unwrap_or(&[]));
        at
    }

    /// Reads one from the front of `bytes`, and what follows it.
    pub fn parse(format: &CellFormat, bytes: &'a [u8]) -> Result<(ListedChange<'a>, &'a [u8]), Malformed> {
        let (&kind, mut rest) = bytes.split_first().ok_or(Malformed::Short)?;
        let tag = kind.saturating_sub(1);
        if tag != TAG_INLINE && !(tag == TAG_HERE && has_lengths(format)) {
            return Err(Malformed::Reserved);
        }
        let (mut key_size, mut value_size) = (usize::from(format.key_size), usize::from(format.value_size));
        if has_lengths(format) {
            let (&length, after) = rest.split_first().ok_or(Malformed::Short)?;
            (key_size, rest) = (usize::from(length), after);
            value_size = 0;
            if kind == 1 + TAG_INLINE {
                let (&length, after) = rest.split_first_chunk().ok_or(Malformed::Short)?;
                (value_size, rest) = (usize::from(u16::from_le_bytes(length)), after);
            }
        }
        let (key, rest) = rest.split_at_checked(key_size).ok_or(Malformed::Short)?;
        if kind == 0 {
            return Ok((ListedChange { key, tag, value: None }, rest));
        }
        let (value, rest) = rest.split_at_checked(value_size).ok_or(Malformed::Short)?;
        Ok((ListedChange { key, tag, value: Some(value) }, rest))
    }
}

/// Whether keys and values have any length, which each change then says.
const fn has_lengths(format: &CellFormat) -> bool {
    format.key_size == 0
}

#[cfg(test)]
mod tests {
    use super::{ListedChange, TAG_HERE, TAG_INLINE};
    use crate::tree::{CellFormat, Malformed};

    /// Room is made in a list for a change before it is merged. One that says that its key is in its leaf takes no more than it took before, whatever it was.
    #[test]
    fn a_key_of_a_leaf_takes_no_more_than_a_delete() {
        let format = CellFormat { cells: 1, key_size: 0, value_size: 0, page_bits: 9 };
        let delete = ListedChange { key: b"key", tag: TAG_INLINE, value: None };
        let here = ListedChange { key: b"key", tag: TAG_HERE, value: Some(&[]) };
        let mut out = [0xFF; 9];
        for change in [delete, here] {
            assert_eq!((change.size(&format), change.write(&format, &mut out)), (5, 5));
            assert_eq!(ListedChange::parse(&format, &out), Ok((change, &[0xFF; 4][..])));
        }
        assert_eq!(here.write(&format, &mut out), 5);
        let fixed = CellFormat { key_size: 3, value_size: 1, ..format };
        assert_eq!(ListedChange::parse(&fixed, &out), Err(Malformed::Reserved));
        // That kind had a length once.
        out[0] = 5;
        assert_eq!(ListedChange::parse(&format, &out), Err(Malformed::Reserved));
    }
}
