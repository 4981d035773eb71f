//! FORMAT: Large values
//!
//! A value that is too large for a leaf stands in pages of its own: value pages hold its bytes, and where these are more
//! than a few, index pages list them. The leaf holds a descriptor instead of the value. Each of these pages names its
//! key and its number, so that whether it lives is found from the root. A full value page has content up to its end, a full index page as many whole page
//! numbers as fit.

use core::mem::size_of;
use core::ops::Range;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Field, Malformed};

/// First byte of a value in a leaf of byte strings: the value follows.
pub const TAG_INLINE: u8 = 0;

/// First byte of a value in a leaf of byte strings: the descriptor of a large value follows.
pub const TAG_LARGE: u8 = 1;

/// First byte of a value in a leaf of byte strings: where a resident value is follows.
pub const TAG_RESIDENT: u8 = 2;

/// First byte of a value in a leaf of byte strings: where a page value is follows.
pub const TAG_PAGE: u8 = 3;

/// In place of a tag, in a journal page alone: the value stands there, and its leaf is to hold where.
pub const TAG_HERE: u8 = 4;

/// Bytes of the largest value, if the chip's pages are large enough for its index: 16 MiB.
pub const VALUE_SIZE_MAX: u32 = 16 << 20;

/// A value of this many pages or fewer has no index pages.
pub const DIRECT_MAX: u32 = 4;

/// Most page numbers in a descriptor.
pub const ROOT_COUNT_MAX: usize = 32;

/// Bytes of the longest descriptor, its tag included.
pub const DESCRIPTOR_SIZE_MAX: usize = DESCRIPTOR_FIXED + 4 * ROOT_COUNT_MAX;

/// Bytes in front of the key in a value page or an index page, behind the header that every page has.
pub const FRONT_SIZE: usize = size_of::<ValueFront>();

const DESCRIPTOR_FIXED: usize = 9;

/// Front of a value page and of an index page, behind the header that every page has.
///
/// ```text
/// offset  size  field     meaning
///      0     4  length    bytes of the whole value
///      4     4  stamp     tells this value from others that the key had; low bits of the sequence when it was begun
///      8     4  number    which of the value's pages, or of its index pages, this is, from 0
///     12     2  size      bytes of content
///     14     1  key_size  bytes of the key
///     15     1  reserved  zero
///     16        key       whole
///   then        content   a value page: bytes of the value; an index page: page numbers of value pages, u32 each
///   then        filling   erased bytes (0xFF) to the end of the page
/// ```
///
/// Every page of a value but the last is full, and so is every index page but the last.
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

/// A value page or an index page, as it says of itself. Ranges are in the whole page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueBody {
    /// Bytes of the whole value.
    pub length: u32,
    /// Tells the value from others that the key had.
    pub stamp: u32,
    /// Which of the value's pages, or of its index pages.
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

/// What a value page or an index page says, to be written.
#[derive(Clone, Copy, Debug)]
pub struct ValueFields<'a> {
    /// Bytes of the whole value.
    pub length: u32,
    /// Tells the value from others that the key had.
    pub stamp: u32,
    /// Which of the value's pages, or of its index pages.
    pub number: u32,
    /// The key.
    pub key: &'a [u8],
    /// Bytes of content.
    pub size: usize,
}

impl ValueFields<'_> {
    /// Writes front, key and filling, and returns where the content stands or is to be put. The caller guarantees a
    /// content that fits, see [`ValueLayout`]; anything else is a bug.
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

/// How a value is divided among pages: by the size of a page and of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLayout {
    /// Bytes of a value in a full page.
    pub payload: u32,
    /// Page numbers in a full index page.
    pub fanout: u32,
}

impl ValueLayout {
    /// `None` if a page has no room for a value.
    pub fn new(page_size: usize, header_size: usize, key_size: usize) -> Option<ValueLayout> {
        let room = page_size.checked_sub(header_size + size_of::<ValueFront>() + key_size)?;
        let payload = room.min(u16::MAX as usize) as u32;
        (payload >= 8).then_some(ValueLayout { payload, fanout: payload / 4 })
    }

    /// Pages of a value.
    pub fn page_count(&self, length: u32) -> u32 {
        length.div_ceil(self.payload)
    }

    /// Index pages of a value.
    pub fn index_count(&self, length: u32) -> u32 {
        if self.is_direct(length) { 0 } else { self.page_count(length).div_ceil(self.fanout) }
    }

    /// Whether the descriptor lists the value's own pages.
    pub fn is_direct(&self, length: u32) -> bool {
        self.page_count(length) <= DIRECT_MAX
    }

    /// Page numbers in the descriptor.
    pub fn root_count(&self, length: u32) -> u32 {
        if self.is_direct(length) { self.page_count(length) } else { self.index_count(length) }
    }

    /// Page numbers in the index page with this number.
    pub fn listed(&self, length: u32, number: u32) -> u32 {
        self.page_count(length).saturating_sub(number.saturating_mul(self.fanout)).min(self.fanout)
    }

    /// Bytes of the value in the page with this number.
    pub fn size(&self, length: u32, number: u32) -> u32 {
        length.saturating_sub(number.saturating_mul(self.payload)).min(self.payload)
    }

    /// Bytes of the largest value whose descriptor has so many page numbers at most.
    pub fn length_max(&self, root_count: usize) -> u32 {
        let roots = root_count.min(ROOT_COUNT_MAX) as u64;
        let pages = (roots * u64::from(self.fanout)).max(roots.min(u64::from(DIRECT_MAX)));
        (pages * u64::from(self.payload)).min(u64::from(VALUE_SIZE_MAX)) as u32
    }
}

/// Where a large value is: what its leaf holds.
///
/// ```text
/// offset  size  field   meaning
///      0     1  tag     1: a descriptor; 0: the value itself follows
///      1     4  length  bytes of the value
///      5     4  stamp   of the value, as in each of its pages
///      9    4n  roots   page numbers: of the value's pages if these are four or fewer, else of its index pages
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Bytes of the value.
    pub length: u32,
    /// Tells the value from others that the key had.
    pub stamp: u32,
    roots: [u32; ROOT_COUNT_MAX],
    root_count: u8,
}

impl Descriptor {
    /// A descriptor without page numbers.
    pub const fn new(length: u32, stamp: u32) -> Descriptor {
        Descriptor { length, stamp, roots: [0; ROOT_COUNT_MAX], root_count: 0 }
    }

    /// Reads what a leaf holds, its tag included; how many page numbers there have to be, the layout says.
    pub fn parse(stored: &[u8], layout: ValueLayout) -> Option<Descriptor> {
        let (fixed, rest) = stored.split_at_checked(DESCRIPTOR_FIXED)?;
        let word = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let mut descriptor = Descriptor::new(word(1), word(5));
        let count = layout.root_count(descriptor.length) as usize;
        if fixed[0] != TAG_LARGE || descriptor.length == 0 || count > ROOT_COUNT_MAX || rest.len() != 4 * count {
            return None;
        }
        for number in rest.chunks_exact(4) {
            descriptor.push(u32::from_le_bytes([number[0], number[1], number[2], number[3]]));
        }
        Some(descriptor)
    }

    /// Writes it, tag included, and returns what was written.
    pub fn write<'b>(&self, out: &'b mut [u8; DESCRIPTOR_SIZE_MAX]) -> &'b [u8] {
        out[0] = TAG_LARGE;
        out[1..5].copy_from_slice(&self.length.to_le_bytes());
        out[5..9].copy_from_slice(&self.stamp.to_le_bytes());
        for (place, root) in out[DESCRIPTOR_FIXED..].chunks_exact_mut(4).zip(self.roots()) {
            place.copy_from_slice(&root.to_le_bytes());
        }
        &out[..DESCRIPTOR_FIXED + 4 * self.roots().len()]
    }

    /// Most page numbers in a descriptor of at most so many bytes.
    pub const fn root_count_max(size: usize) -> usize {
        size.saturating_sub(DESCRIPTOR_FIXED) / 4
    }

    /// The page numbers.
    pub fn roots(&self) -> &[u32] {
        &self.roots[..self.root_count as usize]
    }

    /// Adds a page number; one too many is a bug.
    pub fn push(&mut self, page: u32) {
        self.roots[self.root_count as usize] = page;
        self.root_count += 1;
    }

    /// Puts another page number in the place of one.
    pub fn replace(&mut self, number: usize, page: u32) {
        self.roots[number] = page;
    }
}

/// Where a page value is: what its leaf holds. The page is a bare one, the value's bytes and nothing else.
///
/// ```text
/// offset  size  field  meaning
///      0     1  tag    3
///      1     4  page   page number
///      5     4  crc    CRC-32C of the page
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageValue {
    /// The page.
    pub page: u32,
    /// CRC-32C of what it holds.
    pub crc: u32,
}

impl PageValue {
    /// Bytes of it, its tag included.
    pub const SIZE: usize = 9;

    /// Reads what a leaf holds, its tag included.
    pub fn parse(stored: &[u8]) -> Option<PageValue> {
        let &[TAG_PAGE, p0, p1, p2, p3, c0, c1, c2, c3] = stored else { return None };
        Some(PageValue { page: u32::from_le_bytes([p0, p1, p2, p3]), crc: u32::from_le_bytes([c0, c1, c2, c3]) })
    }

    /// What a leaf is to hold, its tag included.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let ([p0, p1, p2, p3], [c0, c1, c2, c3]) = (self.page.to_le_bytes(), self.crc.to_le_bytes());
        [TAG_PAGE, p0, p1, p2, p3, c0, c1, c2, c3]
    }
}

/// Where a resident value is: what its leaf holds. The page is the journal page with which it became durable, or one to which it
/// was moved; it names the key, so it needs no checksum but its own.
///
/// ```text
/// offset  size  field   meaning
///      0     1  tag     2
///      1     4  page    page number
///      5     2  length  bytes of the value
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The page.
    pub page: u32,
    /// Bytes of the value.
    pub length: u16,
}

impl Resident {
    /// Bytes of it, its tag included.
    pub const SIZE: usize = 7;

    /// Reads what a leaf holds, its tag included.
    pub fn parse(stored: &[u8]) -> Option<Resident> {
        let &[TAG_RESIDENT, p0, p1, p2, p3, low, high] = stored else { return None };
        Some(Resident { page: u32::from_le_bytes([p0, p1, p2, p3]), length: u16::from_le_bytes([low, high]) })
    }

    /// What a leaf is to hold, its tag included.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let ([p0, p1, p2, p3], [low, high]) = (self.page.to_le_bytes(), self.length.to_le_bytes());
        [TAG_RESIDENT, p0, p1, p2, p3, low, high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_resident_value_are_frozen() {
        let value = Resident { page: 0x0102_0304, length: 0x0A0B };
        let bytes = value.to_bytes();
        assert_eq!(bytes, [2, 4, 3, 2, 1, 0x0B, 0x0A]);
        assert_eq!(Resident::parse(&bytes), Some(value));
        assert_eq!(Resident::parse(&bytes[..6]), None);
        assert_eq!(Resident::parse(&[3, 4, 3, 2, 1, 0x0B, 0x0A]), None);
    }

    #[test]
    fn the_bytes_of_a_page_value_are_frozen() {
        let value = PageValue { page: 0x0102_0304, crc: 0x0A0B_0C0D };
        let bytes = value.to_bytes();
        assert_eq!(bytes, [3, 4, 3, 2, 1, 0x0D, 0x0C, 0x0B, 0x0A]);
        assert_eq!(PageValue::parse(&bytes), Some(value));
        assert_eq!(PageValue::parse(&bytes[..8]), None);
        assert_eq!(PageValue::parse(&[1, 4, 3, 2, 1, 0x0D, 0x0C, 0x0B, 0x0A]), None);
    }

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

    #[test]
    fn the_bytes_of_a_descriptor_are_frozen() {
        let layout = ValueLayout { payload: 10, fanout: 3 };
        let mut descriptor = Descriptor::new(20, 0x0A0B_0C0D);
        descriptor.push(7);
        descriptor.push(0x0102);
        let mut out = [0; DESCRIPTOR_SIZE_MAX];
        let bytes = descriptor.write(&mut out);
        assert_eq!(bytes, [1, 20, 0, 0, 0, 0x0D, 0x0C, 0x0B, 0x0A, 7, 0, 0, 0, 2, 1, 0, 0]);
        assert_eq!(Descriptor::parse(bytes, layout), Some(descriptor));
        assert_eq!(Descriptor::parse(&bytes[..16], layout), None);
        assert_eq!(Descriptor::parse(&bytes[..13], layout), None);
        assert_eq!(Descriptor::parse(&[0; 17], layout), None);
        // A length without pages, and one with more pages than a descriptor can list.
        assert_eq!(Descriptor::parse(&[1, 0, 0, 0, 0, 0, 0, 0, 0], layout), None);
        assert_eq!(Descriptor::parse(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0], layout), None);
    }

    #[test]
    fn sixteen_mebibytes_fit_pages_of_two_kibibytes_whatever_the_key() {
        for key_size in [0, 1, 100, 250] {
            let layout = ValueLayout::new(2048, 48, key_size).unwrap();
            let roots = layout.root_count(VALUE_SIZE_MAX) as usize;
            assert!(roots <= ROOT_COUNT_MAX, "{key_size}: {roots}");
            assert_eq!(layout.length_max(roots), VALUE_SIZE_MAX);
        }
    }

    #[test]
    fn pages_and_index_pages_hold_the_whole_value() {
        let layout = ValueLayout { payload: 10, fanout: 3 };
        for length in 1..400 {
            let pages = layout.page_count(length);
            assert_eq!((0..pages).map(|number| layout.size(length, number)).sum::<u32>(), length);
            assert_eq!(layout.size(length, pages), 0);
            let listed: u32 = (0..layout.index_count(length)).map(|number| layout.listed(length, number)).sum();
            assert_eq!(listed, if layout.is_direct(length) { 0 } else { pages });
        }
    }
}
