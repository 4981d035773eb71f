//! FORMAT: Anchors of the in-page-logging index

use core::mem::size_of;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::FRONT_SIZE;
use super::record::Cells;
use crate::{Field, Malformed, NO_BLOCK};

/// Blocks that hold anchors.
pub const ANCHOR_COUNT: usize = 3;

/// What stands behind the front of an anchor.
///
/// ```text
/// offset  size  field            meaning
///     32     4  page_size        of the chip, bytes
///     36     4  pages_per_block  of the chip
///     40     4  block_count      of the chip
///     44     4  sector_size      most bytes of a log sector
///     48     1  layout           1 sectors at the end of a block, 2 whole log pages where they come
///     49     1  log_pages_max    most log pages of a block
///     50     1  key_size         bytes of a key, 0: byte strings
///     51     1  value_size       bytes of a value; 0 with byte strings
///     52     1  is_clean         1: nothing was programmed after this anchor
///     53     1  has_journal      1: journal pages may follow; 0: there are none that count
///     54     2  bad_count        bad blocks listed
///     56     8  records          records of the index if `is_clean`, all ones: not known
///     64     8  root             sequence of the root's page if `is_clean`
///     72     4  stable           anchor block known to be sound when this anchor was programmed
///     76    12  anchors          the anchor blocks, all ones: none
///     88     8  journal          number of the first journal page that may count
///     96     1  kind             1 IPL, 2 GRR
///     97     1  more_pages       pages of a node beyond the first
///     98     2  reserved         zero
///    100    4n  bad              numbers of the bad blocks
///            4  count_first      block with the first of the erase counts; nothing of this and of what follows may be there
///            4  count_base       what each of them is above
///            2  count_number     how many there are
///            1  count_width      bytes of each, 1 or 2
///            1  reserved         zero
///               counts           how often the blocks from the first on were erased, above the base
/// ```
///
/// Erase counts only rise, so of all anchors that are found the highest count of a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AnchorBody {
    page_size: U32,
    pages_per_block: U32,
    block_count: U32,
    sector_size: U32,
    layout: u8,
    log_pages_max: u8,
    key_size: u8,
    value_size: u8,
    is_clean: u8,
    has_journal: u8,
    bad_count: U16,
    records: U64,
    root: U64,
    stable: U32,
    anchors: [U32; ANCHOR_COUNT],
    journal: U64,
    kind: u8,
    more_pages: u8,
    reserved: [u8; 2],
}

/// Bytes in front of the list of bad blocks.
pub const LIST_AT: usize = FRONT_SIZE + size_of::<AnchorBody>();

const _: () = assert!(LIST_AT == 100);

/// What an anchor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorFields {
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of the chip.
    pub block_count: u32,
    /// Most bytes of a log sector.
    pub sector_size: u32,
    /// 1 or 2.
    pub layout: u8,
    /// Most log pages of a block.
    pub log_pages_max: u8,
    /// How entries are laid out.
    pub cells: Cells,
    /// Whether nothing was programmed after this anchor.
    pub is_clean: bool,
    /// Records of the index, if they were counted.
    pub records: Option<u64>,
    /// Sequence of the root's page, if nothing was programmed after this anchor.
    pub root: u64,
    /// Anchor block known to be sound.
    pub stable: u32,
    /// The anchor blocks.
    pub anchors: [u32; ANCHOR_COUNT],
    /// Whether journal pages may follow.
    pub has_journal: bool,
    /// Number of the first journal page that may count.
    pub journal: u64,
    /// 1: IPL, 2: GRR.
    pub kind: u8,
    /// Pages of a node beyond the first.
    pub more_pages: u8,
}

impl AnchorFields {
    /// Writes them behind the front, and the list behind them. Returns the bytes of the whole page that have a meaning;
    /// `None` if the list does not fit.
    pub fn write(&self, bytes: &mut [u8], bad: impl Iterator<Item = u32>) -> Option<usize> {
        let mut at = LIST_AT;
        let mut put = |bytes: &mut [u8], block: u32| {
            bytes.get_mut(at..at + 4)?.copy_from_slice(&block.to_le_bytes());
            at += 4;
            Some(())
        };
        let mut bad_count: u16 = 0;
        for block in bad {
            put(bytes, block)?;
            bad_count = bad_count.checked_add(1)?;
        }
        let (key_size, value_size) = match self.cells {
            Cells::Fixed { key, value } => (key, value),
            Cells::Bytes => (0, 0),
        };
        let body = AnchorBody {
            page_size: U32::new(self.page_size),
            pages_per_block: U32::new(self.pages_per_block),
            block_count: U32::new(self.block_count),
            sector_size: U32::new(self.sector_size),
            layout: self.layout,
            log_pages_max: self.log_pages_max,
            key_size,
            value_size,
            is_clean: u8::from(self.is_clean),
            has_journal: u8::from(self.has_journal),
            bad_count: U16::new(bad_count),
            records: U64::new(self.records.unwrap_or(u64::MAX)),
            root: U64::new(self.root),
            stable: U32::new(self.stable),
            anchors: self.anchors.map(U32::new),
            journal: U64::new(self.journal),
            kind: self.kind,
            more_pages: self.more_pages,
            reserved: [0; 2],
        };
        bytes.get_mut(FRONT_SIZE..LIST_AT)?.copy_from_slice(body.as_bytes());
        Some(at)
    }

    /// Reads an anchor whose front was checked, and gives the list of bad blocks.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(bytes: &[u8], size: u32) -> Result<(AnchorFields, Blocks<'_>), Malformed> {
        let content = bytes.get(FRONT_SIZE..size as usize).ok_or(Malformed::Size)?;
        let (body, lists) = AnchorBody::ref_from_prefix(content).map_err(|_| Malformed::Size)?;
        let bad_size = 4 * usize::from(body.bad_count.get());
        let (lists, counts) = lists.split_at_checked(bad_size).ok_or(Malformed::Range(Field::BadCount))?;
        EraseCounts::parse(counts)?;
        if body.has_journal > 1 {
            return Err(Malformed::Range(Field::HasJournal));
        }
        if !matches!(body.kind, 1 | 2) || body.reserved != [0; 2] {
            return Err(Malformed::Range(Field::Kind));
        }
        if !matches!(body.layout, 1 | 2) || body.is_clean > 1 || body.log_pages_max == 0 {
            return Err(Malformed::Range(Field::Layout));
        }
        let cells = match (body.key_size, body.value_size) {
            (0, 0) => Cells::Bytes,
            (0, _) => return Err(Malformed::Range(Field::ValueSize)),
            (key, value) => Cells::Fixed { key, value },
        };
        let anchors = body.anchors.map(U32::get);
        let records = body.records.get();
        let fields = AnchorFields {
            page_size: body.page_size.get(),
            pages_per_block: body.pages_per_block.get(),
            block_count: body.block_count.get(),
            sector_size: body.sector_size.get(),
            layout: body.layout,
            log_pages_max: body.log_pages_max,
            cells,
            is_clean: body.is_clean == 1,
            records: (records != u64::MAX).then_some(records),
            root: body.root.get(),
            stable: body.stable.get(),
            anchors,
            has_journal: body.has_journal == 1,
            journal: body.journal.get(),
            kind: body.kind,
            more_pages: body.more_pages,
        };
        Ok((fields, Blocks(lists)))
    }
}

/// What stands in front of erase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct CountsFront {
    first: U32,
    base: U32,
    number: U16,
    width: u8,
    reserved: u8,
}

/// How often blocks were erased, as an anchor says it.
#[derive(Clone, Copy, Debug)]
pub struct EraseCounts<'a> {
    first: u32,
    base: u32,
    width: usize,
    counts: &'a [u8],
}

impl<'a> EraseCounts<'a> {
    fn parse(bytes: &'a [u8]) -> Result<EraseCounts<'a>, Malformed> {
        if bytes.is_empty() {
            return Ok(EraseCounts { first: 0, base: 0, width: 1, counts: &[] });
        }
        let (front, counts) = CountsFront::ref_from_prefix(bytes).map_err(|_| Malformed::Range(Field::BadCount))?;
        let width = usize::from(front.width);
        if !matches!(width, 1 | 2) || front.reserved != 0 || counts.len() != width * usize::from(front.number.get()) {
            return Err(Malformed::Range(Field::Counts));
        }
        Ok(EraseCounts { first: front.first.get(), base: front.base.get(), width, counts })
    }

    /// Those of an anchor that was parsed; none of any other page.
    pub fn of_anchor(bytes: &'a [u8], size: u32) -> EraseCounts<'a> {
        let none = EraseCounts { first: 0, base: 0, width: 1, counts: &[] };
        let Some(content) = bytes.get(FRONT_SIZE..size as usize) else { return none };
        let Ok((body, lists)) = AnchorBody::ref_from_prefix(content) else { return none };
        lists.get(4 * usize::from(body.bad_count.get())..).map_or(none, |counts| Self::parse(counts).unwrap_or(none))
    }

    /// Adds the counts of the blocks from the first on to an anchor of so many bytes, as many as there is room for. Returns the
    /// bytes that have a meaning then, and how many blocks are told of.
    ///
    /// One byte for each where that does. A count that is more than 65,535 above the lowest is said to be that.
    pub fn write(bytes: &mut [u8], at: usize, first: u32, counts: impl Iterator<Item = u32> + Clone) -> (usize, u32) {
        let from = at + size_of::<CountsFront>();
        let room = bytes.len().saturating_sub(from).min(usize::from(u16::MAX));
        let range = |number: usize| {
            let bounds = (u32::MAX, 0);
            counts.clone().take(number).fold(bounds, |(low, high), count| (low.min(count), high.max(count)))
        };
        let (mut base, high) = range(room);
        let width = if high.saturating_sub(base) <= u32::from(u8::MAX) { 1 } else { 2 };
        if width == 2 {
            base = range(room / 2).0;
        }
        let (mut number, mut end) = (0, from);
        for (count, place) in counts.zip(bytes.get_mut(from..).unwrap_or_default().chunks_exact_mut(width)) {
            if number == u16::MAX {
                break;
            }
            let above = count.saturating_sub(base).min(u32::from(u16::MAX)) as u16;
            place.copy_from_slice(&above.to_le_bytes()[..width]);
            number += 1;
            end += width;
        }
        if number == 0 {
            return (at, 0);
        }
        let (first, base) = (U32::new(first), U32::new(base));
        let front = CountsFront { first, base, number: U16::new(number), width: width as u8, reserved: 0 };
        bytes[at..from].copy_from_slice(front.as_bytes());
        (end, number.into())
    }

    /// Each block that is told of, and its count.
    pub fn blocks(self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let above = |place: &[u8]| place.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        let counts = self.counts.chunks_exact(self.width).map(above);
        counts.zip(0..).map(move |(above, place)| (self.first.saturating_add(place), self.base.saturating_add(above)))
    }
}

/// Numbers of blocks, as an anchor lists them.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a>(&'a [u8]);

impl Iterator for Blocks<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        Some(u32::from_le_bytes([number[0], number[1], number[2], number[3]])).filter(|&block| block != NO_BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: AnchorFields = AnchorFields {
        page_size: 256,
        pages_per_block: 8,
        block_count: 16,
        sector_size: 64,
        layout: 1,
        log_pages_max: 3,
        cells: Cells::Fixed { key: 8, value: 4 },
        is_clean: true,
        records: Some(0x0102),
        root: 5,
        stable: 2,
        anchors: [0, 2, NO_BLOCK],
        has_journal: true,
        journal: 0x0A0B,
        kind: 2,
        more_pages: 1,
    };

    #[test]
    fn the_bytes_of_an_anchor_are_frozen() {
        let mut bytes = [0; 128];
        let size = FIELDS.write(&mut bytes, [7, 9].into_iter()).unwrap();
        let expected = b"\0\x01\0\0\x08\0\0\0\x10\0\0\0\x40\0\0\0\x01\x03\x08\x04\x01\x01\x02\0\x02\x01\0\0\0\0\0\0\
            \x05\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\xFF\xFF\xFF\xFF\x0B\x0A\0\0\0\0\0\0\
            \x02\x01\0\0\x07\0\0\0\x09\0\0\0";
        assert_eq!(bytes[FRONT_SIZE..size], expected[..]);
        let (fields, bad) = AnchorFields::parse(&bytes, size as u32).unwrap();
        assert_eq!(fields, FIELDS);
        assert!(bad.eq([7, 9]));
        assert_eq!(FIELDS.write(&mut bytes[..102], [7, 9].into_iter()), None);
    }

    #[test]
    fn erase_counts_are_what_they_were_in_one_byte_each_or_two() {
        let mut bytes = [0; 128];
        let end = FIELDS.write(&mut bytes, [7, 9].into_iter()).unwrap();
        let read = |bytes: &[u8], size: usize| {
            AnchorFields::parse(bytes, size as u32).unwrap();
            let mut found = [(0, 0); 8];
            EraseCounts::of_anchor(bytes, size as u32).blocks().zip(&mut found).for_each(|(one, place)| *place = one);
            found
        };
        assert_eq!(EraseCounts::write(&mut bytes, end, 3, [1000, 1255, 1001].into_iter()), (end + 15, 3));
        assert_eq!(bytes[end..end + 15], *b"\x03\0\0\0\xE8\x03\0\0\x03\0\x01\0\0\xFF\x01");
        assert_eq!(read(&bytes, end + 15)[..4], [(3, 1000), (4, 1255), (5, 1001), (0, 0)]);
        let many = [1000, 1256, 70_000, 4, 5].into_iter();
        // Two bytes for each, and room for four.
        assert_eq!(EraseCounts::write(&mut bytes, end, 0, many.clone()), (end + 20, 4));
        assert_eq!(read(&bytes, end + 20)[..5], [(0, 1000), (1, 1256), (2, 65_539), (3, 4), (0, 0)]);
        // None if there is no room, and an anchor without is read as well.
        assert_eq!(EraseCounts::write(&mut bytes[..end + 12], end, 0, many), (end, 0));
        assert_eq!(read(&bytes, end)[0], (0, 0));
        for (at, value) in [(end + 8, 9), (end + 10, 3), (end + 11, 1)] {
            let mut bad = bytes;
            bad[at] = value;
            assert_eq!(AnchorFields::parse(&bad, end as u32 + 20).map(drop), Err(Malformed::Range(Field::Counts)));
        }
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let mut good = [0; 128];
        let size = FIELDS.write(&mut good, [7, 9].into_iter()).unwrap() as u32;
        for (at, value, field) in [
            (48, 0, Field::Layout),
            (49, 0, Field::Layout),
            (50, 0, Field::ValueSize),
            (52, 2, Field::Layout),
            (53, 2, Field::HasJournal),
            (54, 9, Field::BadCount),
            (96, 3, Field::Kind),
            (98, 1, Field::Kind),
        ] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(AnchorFields::parse(&bad, size).map(drop), Err(Malformed::Range(field)), "byte {at}");
        }
        assert_eq!(AnchorFields::parse(&good, 60).map(drop), Err(Malformed::Size));
    }
}
