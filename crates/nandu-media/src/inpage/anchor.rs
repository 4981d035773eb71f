//! FORMAT: Anchors of the in-page-logging index

use core::mem::size_of;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::FRONT_SIZE;
use super::record::Cells;
use crate::{Malformed, NO_BLOCK};

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
/// ```
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
        if lists.len() != bad_size {
            return Err(Malformed::Range("bad_count"));
        }
        if body.has_journal > 1 {
            return Err(Malformed::Range("has_journal"));
        }
        if !matches!(body.kind, 1 | 2) || body.reserved != [0; 2] {
            return Err(Malformed::Range("kind"));
        }
        if !matches!(body.layout, 1 | 2) || body.is_clean > 1 || body.log_pages_max == 0 {
            return Err(Malformed::Range("layout"));
        }
        let cells = match (body.key_size, body.value_size) {
            (0, 0) => Cells::Bytes,
            (0, _) => return Err(Malformed::Range("value_size")),
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
    fn fields_out_of_range_are_refused() {
        let mut good = [0; 128];
        let size = FIELDS.write(&mut good, [7, 9].into_iter()).unwrap() as u32;
        for (at, value, field) in [
            (48, 0, "layout"),
            (49, 0, "layout"),
            (50, 0, "value_size"),
            (52, 2, "layout"),
            (53, 2, "has_journal"),
            (54, 9, "bad_count"),
            (96, 3, "kind"),
            (98, 1, "kind"),
        ] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(AnchorFields::parse(&bad, size).map(drop), Err(Malformed::Range(field)), "byte {at}");
        }
        assert_eq!(AnchorFields::parse(&good, 60).map(drop), Err(Malformed::Size));
    }
}
