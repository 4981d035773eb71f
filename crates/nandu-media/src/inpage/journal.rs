//! FORMAT: Journal pages of the in-page-logging index
//!
//! A volume may have a write-ahead ring: blocks of journal pages, which hold changes in the order in which they were made,
//! whatever nodes they belong to. After a cut they are made again. The pages of a block are numbered one after the other, and
//! so are those of all blocks together; a page that is programmed again elsewhere keeps its number.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::FRONT_SIZE;
use super::record::{Cells, Records};
use crate::{Field, Malformed};

/// What stands behind the front of a journal page.
///
/// ```text
/// offset  size  field         meaning
///     32     8  number        of the journal page, from 1
///     40     8  oldest        number of the first journal page with changes that may not stand in nodes; those before it are void
///     48     8  whole_page    changes hold up to a place in the journal page with this number
///     56     2  whole_count   records in front of that place; those behind belong to a batch that ends in a later page
///     58     2  record_count  records
///     60     4  reserved      zero
///     64        records       put and delete
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct JournalFront {
    number: U64,
    oldest: U64,
    whole_page: U64,
    whole_count: U16,
    record_count: U16,
    reserved: U32,
}

/// Bytes in front of the records.
pub const JOURNAL_SIZE: usize = FRONT_SIZE + size_of::<JournalFront>();

const _: () = {
    assert!(JOURNAL_SIZE == 64);
    assert!(offset_of!(JournalFront, whole_count) == 24);
};

/// What a journal page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalFields {
    /// Number of the page, from 1.
    pub number: u64,
    /// The first page that still counts.
    pub oldest: u64,
    /// The page up to a place in which changes hold.
    pub whole_page: u64,
    /// Records of that page in front of the place.
    pub whole_count: u16,
    /// Records of this page.
    pub record_count: u16,
}

impl JournalFields {
    /// Writes them behind the front. A buffer that is too short is a bug.
    pub fn write(&self, bytes: &mut [u8]) {
        let front = JournalFront {
            number: U64::new(self.number),
            oldest: U64::new(self.oldest),
            whole_page: U64::new(self.whole_page),
            whole_count: U16::new(self.whole_count),
            record_count: U16::new(self.record_count),
            reserved: U32::ZERO,
        };
        bytes[FRONT_SIZE..JOURNAL_SIZE].copy_from_slice(front.as_bytes());
    }

    /// Reads them from a page whose front was checked and said how many bytes have a meaning, and gives the records.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(bytes: &[u8], size: u32, cells: Cells) -> Result<(JournalFields, Records<'_>), Malformed> {
        let content = bytes.get(FRONT_SIZE..size as usize).ok_or(Malformed::Size)?;
        let (front, records) = JournalFront::ref_from_prefix(content).map_err(|_| Malformed::Size)?;
        let fields = JournalFields {
            number: front.number.get(),
            oldest: front.oldest.get(),
            whole_page: front.whole_page.get(),
            whole_count: front.whole_count.get(),
            record_count: front.record_count.get(),
        };
        if front.reserved.get() != 0 {
            return Err(Malformed::Range(Field::Reserved));
        }
        if fields.oldest == 0 || !(fields.oldest..=fields.number).contains(&fields.whole_page) {
            return Err(Malformed::Range(Field::Number));
        }
        if fields.whole_page == fields.number && fields.whole_count > fields.record_count {
            return Err(Malformed::Range(Field::WholeCount));
        }
        Ok((fields, Records::new(cells, records)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inpage::record::Record;

    const CELLS: Cells = Cells::Fixed { key: 2, value: 1 };

    const FIELDS: JournalFields =
        JournalFields { number: 0x0102, oldest: 0x0101, whole_page: 0x0102, whole_count: 1, record_count: 2 };

    fn page() -> [u8; 80] {
        let mut page = [0; 80];
        FIELDS.write(&mut page);
        page[JOURNAL_SIZE..JOURNAL_SIZE + 7].copy_from_slice(b"\x01abx\x02cd");
        page
    }

    #[test]
    fn the_bytes_of_a_journal_page_are_frozen() {
        let page = page();
        let expected = b"\x02\x01\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x01\0\x02\0\0\0\0\0\x01abx\x02cd";
        assert_eq!(page[FRONT_SIZE..71], expected[..]);
        let (fields, mut records) = JournalFields::parse(&page, 71, CELLS).unwrap();
        assert_eq!(fields, FIELDS);
        assert_eq!(records.next(), Some(Ok(Record::Put(b"ab", b"x"))));
        assert_eq!(records.next(), Some(Ok(Record::Delete(b"cd"))));
        assert_eq!(records.next(), None);
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let with = |at: usize, value: u8| {
            let mut page = page();
            page[at] = value;
            JournalFields::parse(&page, 71, CELLS).map(drop)
        };
        // A first page that is behind this one, and none at all.
        assert_eq!(with(40, 3), Err(Malformed::Range(Field::Number)));
        assert_eq!(with(41, 0).and(with(40, 0)), Ok(()));
        let mut none = page();
        none[40..48].fill(0);
        assert_eq!(JournalFields::parse(&none, 71, CELLS).map(drop), Err(Malformed::Range(Field::Number)));
        // Changes that hold up to a page behind this one, or before the first that counts.
        assert_eq!(with(48, 3), Err(Malformed::Range(Field::Number)));
        assert_eq!(with(48, 0), Err(Malformed::Range(Field::Number)));
        assert_eq!(with(56, 3), Err(Malformed::Range(Field::WholeCount)));
        assert_eq!(with(60, 1), Err(Malformed::Range(Field::Reserved)));
        assert_eq!(JournalFields::parse(&page(), 90, CELLS).map(drop), Err(Malformed::Size));
        assert_eq!(JournalFields::parse(&page(), 60, CELLS).map(drop), Err(Malformed::Size));
    }
}
