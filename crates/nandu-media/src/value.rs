//! FORMAT: Pages of large values
//!
//! A value that is too large for a leaf stands in pages of its own, which its head names. Each of them names its key and its number, so that whether it lives is found from the root.

use core::mem::size_of;
use core::ops::Range;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Field, Malformed};

/// Bytes of the largest value, if the chip's pages are large enough for its index: 16 MiB.
pub const VALUE_SIZE_MAX: u32 = 16 << 20;

/// Bytes in front of the key in a page of a large value, behind the header that every page has.
pub const FRONT_SIZE: usize = size_of::<ValueFront>();

/// Front of a page of a large value, behind the header that every page has.
///
/// ```text
/// offset  size  field     meaning
///      0     4  length    bytes of the whole value
///      4     4  stamp     tells this value from others that the key had; 0 today
///      8     4  number    which of the value's pages this is, from 0
///     12     2  size      bytes of content
///     14     1  key_size  bytes of the key
///     15     1  reserved  zero
///     16        key       whole
///   then        content   bytes of the value; of a leader the numbers of the other pages of its group behind them
///   then        filling   erased bytes (0xFF) to the end of the page
/// ```
///
/// Every page of a value but the last of its bytes is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ValueFront {
    length: U32,
    stamp: U32,
    number: U32,
    size: U16,
    key_size: u8,
    reserved: u8,
}

const _: () = assert!(FRONT_SIZE == 16);

/// A page of a large value, as it says of itself. Ranges are in the whole page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueBody {
    /// Bytes of the whole value.
    pub length: u32,
    /// Tells the value from others that the key had.
    pub stamp: u32,
    /// Which of the value's pages.
    pub number: u32,
    /// Where the key is.
    pub key: Range<usize>,
    /// Where the content is.
    pub content: Range<usize>,
}

impl ValueBody {
    /// Checks what stands behind the header of a page.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(page: &[u8], header_size: usize) -> Result<ValueBody, Malformed> {
        let body = page.get(header_size..).ok_or(Malformed::Size)?;
        let (front, _) = ValueFront::ref_from_prefix(body).map_err(|_| Malformed::Size)?;
        if front.reserved != 0 {
            return Err(Malformed::Range(Field::Reserved));
        }
        let key = header_size + size_of::<ValueFront>();
        let content = key + front.key_size as usize;
        let end = content + usize::from(front.size.get());
        if end > page.len() {
            return Err(Malformed::Range(Field::Size));
        }
        Ok(ValueBody {
            length: front.length.get(),
            stamp: front.stamp.get(),
            number: front.number.get(),
            key: key..content,
            content: content..end,
        })
    }
}

/// What a page of a large value says, to be written.
#[derive(Clone, Copy, Debug)]
pub struct ValueFields<'a> {
    /// Bytes of the whole value.
    pub length: u32,
    /// Tells the value from others that the key had.
    pub stamp: u32,
    /// Which of the value's pages.
    pub number: u32,
    /// The key.
    pub key: &'a [u8],
    /// Bytes of content.
    pub size: usize,
}

impl ValueFields<'_> {
    /// Writes front, key and filling, and returns where the content stands or is to be put. The caller guarantees a
    /// content that fits; anything else is a bug.
    pub fn write(&self, page: &mut [u8], header_size: usize) -> Range<usize> {
        let front = ValueFront {
            length: U32::new(self.length),
            stamp: U32::new(self.stamp),
            number: U32::new(self.number),
            size: U16::new(self.size as u16),
            key_size: self.key.len() as u8,
            reserved: 0,
        };
        let key = header_size + size_of::<ValueFront>();
        let content = key + self.key.len();
        let end = content + self.size;
        page[header_size..key].copy_from_slice(front.as_bytes());
        page[key..content].copy_from_slice(self.key);
        page[end..].fill(0xFF);
        content..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_value_page_are_frozen() {
        let mut page = [0_u8; 40];
        let fields = ValueFields { length: 0x0102_0304, stamp: 0x0506_0708, number: 9, key: b"key", size: 5 };
        let content = fields.write(&mut page, 8);
        assert_eq!(content, 27..32);
        page[content.clone()].copy_from_slice(b"value");
        let expected =
            b"\x04\x03\x02\x01\x08\x07\x06\x05\x09\0\0\0\x05\0\x03\0keyvalue\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
        assert_eq!(page[8..], expected[..]);
        let body = ValueBody::parse(&page, 8).unwrap();
        assert_eq!((body.length, body.stamp, body.number), (0x0102_0304, 0x0506_0708, 9));
        assert_eq!((&page[body.key], body.content), (&b"key"[..], content));
        let with = |at: usize, value: u8| {
            let mut page = page;
            page[at] = value;
            ValueBody::parse(&page, 8)
        };
        assert_eq!(with(23, 1), Err(Malformed::Range(Field::Reserved)));
        assert_eq!(with(20, 14), Err(Malformed::Range(Field::Size)));
        assert_eq!(with(22, 200), Err(Malformed::Range(Field::Size)));
        assert_eq!(ValueBody::parse(&page[..20], 8), Err(Malformed::Size));
    }
}
