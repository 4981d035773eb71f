//! FORMAT: Page header

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::page_checksum;
use crate::{FORMAT_VERSION, Field, Malformed, NO_PAGE, STREAM_COUNT_MAX};

/// Magic of every page, "nd" in memory order.
pub const MAGIC: u16 = u16::from_le_bytes(*b"nd");

/// Flag: the owner's state is what this page says. An operation of several pages sets it on its last page only.
pub const FLAG_COMMIT: u8 = 1;

/// Flag, on anchors: nothing was programmed after this checkpoint, and open blocks may be continued.
pub const FLAG_CLEAN: u8 = 2;

/// Flag, on pages with [`FLAG_COMMIT`]: the page says nothing new, it moved what was there. If it is lost, nothing is.
pub const FLAG_MOVED: u8 = 4;

/// Flag, on anchors: live counts may be above the truth, although nothing was programmed since.
pub const FLAG_INEXACT: u8 = 8;

/// Flags that this version knows.
pub const FLAGS_KNOWN: u8 = FLAG_COMMIT | FLAG_CLEAN | FLAG_MOVED | FLAG_INEXACT;

/// First bytes of every page.
///
/// ```text
/// offset  size  field         meaning
///      0     4  crc           XXH32 with seed 0 of the page from `magic` to its last byte; in version 1 its CRC-32C
///      4     2  magic         "nd"
///      6     1  version       of the format: 2; 1 on volumes that are refused
///      7     1  kind          1 anchor, 2 block table, 4 value, 7 summary, 12 commit, 13 node
///      8     8  sequence      counts programmed pages of the volume, never reused; gaps are allowed
///     16     4  page          the page's own address
///     20     4  volume        id of the volume
///     24     4  committed     newest page with the commit flag before this one, all ones: none; in block table pages the
///                             newest complete anchor before this page
///     28     4  checkpoint    number of the checkpoint to which `positions` refer; in anchors and block table pages, the
///                             checkpoint they belong to
///     32     1  stream        that the page was appended to; 0 in anchors and block table pages
///     33     1  flags         bit 0 commit, bit 1 clean, bit 2 moved, bit 3 inexact live counts
///     34     1  stream_count  entries of `positions`, 2 to 8
///     35     1  codec         how the body is encoded: 0 plain
///     36   2*s  positions     where each stream stood when this page was programmed, this page included: bits 12 to 15
///                             the block (0 to 13 its place in the checkpoint's ready list, 14 the block that was open at
///                             the checkpoint, 15 none), bits 0 to 11 the last page programmed, by its place in the block
///                             (counting pages of the cell mode); all ones: none
///                             On a volume with raw pages, the last entry is none of a stream: bits 0 to 13
///                             say which places of the ready list became blocks of raw pages since the checkpoint; where
///                             some have two bits a cell, the last two are: the second one says which of them have
///  ...    0..2  reserved      zero, to a multiple of 4
///  ...     ...  body          by kind
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PageHeader {
    crc: U32,
    magic: U16,
    version: u8,
    kind: u8,
    sequence: U64,
    page: U32,
    volume: U32,
    committed: U32,
    checkpoint: U32,
    stream: u8,
    flags: u8,
    stream_count: u8,
    codec: u8,
}

const _: () = {
    assert!(size_of::<PageHeader>() == 36);
    assert!(offset_of!(PageHeader, magic) == 4);
    assert!(offset_of!(PageHeader, sequence) == 8);
    assert!(offset_of!(PageHeader, committed) == 24);
    assert!(offset_of!(PageHeader, stream) == 32);
    assert!(offset_of!(PageHeader, codec) == 35);
};

/// Bytes in front of the body in a volume with this many streams.
pub const fn header_size(stream_count: u8) -> usize {
    (size_of::<PageHeader>() + 2 * stream_count as usize).next_multiple_of(4)
}

/// Whether a page is one that blocks of anchors of format 1 begin with, so that a volume of that format is refused by name. The checksum is not looked at.
pub fn begins_format_one(page: &[u8]) -> bool {
    let [low, high] = MAGIC.to_le_bytes();
    let kinds = [PageKind::Anchor as u8, PageKind::Table as u8];
    page.get(4..8).is_some_and(|front| front[..3] == [low, high, 1] && kinds.contains(&front[3]))
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum PageKind {
    /// A checkpoint's last page.
    Anchor = 1,
    /// A part of the block table.
    Table = 2,
    /// A piece of a large value.
    Value = 4,
    /// Which keys the raw pages before it in its block belong to.
    Summary = 7,
    /// A path that is a commit.
    Commit = 12,
    /// A path that promises nothing.
    Node = 13,
}

impl PageKind {
    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<PageKind> {
        Some(match number {
            1 => PageKind::Anchor,
            2 => PageKind::Table,
            4 => PageKind::Value,
            7 => PageKind::Summary,
            12 => PageKind::Commit,
            13 => PageKind::Node,
            _ => return None,
        })
    }

    /// Whether the log itself writes such pages, into anchor blocks.
    pub const fn is_of_the_log(self) -> bool {
        matches!(self, PageKind::Anchor | PageKind::Table)
    }
}

/// Where a stream stands, relative to a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position(u16);

impl Position {
    /// The stream has no block.
    pub const NONE: Position = Position(u16::MAX);

    /// The slot of the block that was open at the checkpoint.
    pub const SLOT_OPEN: u8 = 14;

    /// The last page programmed in the block of a slot. `None` if either is out of range.
    pub const fn new(slot: u8, last: u16) -> Option<Position> {
        if slot <= Position::SLOT_OPEN && last < 4096 { Some(Position((slot as u16) << 12 | last)) } else { None }
    }

    /// The block, by its place in the ready list or [`Position::SLOT_OPEN`]; `None` if the stream has no block.
    pub const fn slot(self) -> Option<u8> {
        let slot = (self.0 >> 12) as u8;
        if slot <= Position::SLOT_OPEN { Some(slot) } else { None }
    }

    /// In place of a position behind those of the streams: the slots of which bits are set, of 14.
    pub const fn of_slots(slots: u16) -> Position {
        Position(slots)
    }

    /// Whether such a set has a slot.
    pub const fn has_slot(self, slot: u8) -> bool {
        slot < Position::SLOT_OPEN && self.0 != u16::MAX && self.0 >> slot & 1 == 1
    }

    /// The last page programmed, by its place in the block; without meaning if there is no block.
    pub const fn last(self) -> u16 {
        self.0 & 0xfff
    }
}

/// What a page header says, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFields<'a> {
    /// What the page holds.
    pub kind: PageKind,
    /// The page's place in the order of programs.
    pub sequence: u64,
    /// The page's own address.
    pub page: u32,
    /// Id of the volume.
    pub volume: u32,
    /// The newest commit page before this one.
    pub committed: Option<u32>,
    /// Number of the checkpoint.
    pub checkpoint: u32,
    /// Stream of the page.
    pub stream: u8,
    /// [`FLAG_COMMIT`], [`FLAG_CLEAN`], [`FLAG_MOVED`], [`FLAG_INEXACT`].
    pub flags: u8,
    /// Where each stream stands, 2 to 8 entries.
    pub positions: &'a [Position],
}

impl PageFields<'_> {
    /// Writes the header to the front of a page whose body is in place, with the checksum of the whole page. The caller
    /// guarantees a buffer longer than the header; anything else is a bug.
    pub fn seal(&self, bytes: &mut [u8]) {
        let stream_count = self.positions.len();
        assert!((2..=STREAM_COUNT_MAX).contains(&stream_count) && (self.stream as usize) < stream_count);
        assert!(self.flags & !FLAGS_KNOWN == 0 && self.page != NO_PAGE);
        let header_size = header_size(stream_count as u8);
        let header = PageHeader {
            crc: U32::ZERO,
            magic: U16::new(MAGIC),
            version: FORMAT_VERSION,
            kind: self.kind as u8,
            sequence: U64::new(self.sequence),
            page: U32::new(self.page),
            volume: U32::new(self.volume),
            committed: U32::new(self.committed.unwrap_or(NO_PAGE)),
            checkpoint: U32::new(self.checkpoint),
            stream: self.stream,
            flags: self.flags,
            stream_count: stream_count as u8,
            codec: 0,
        };
        bytes[..header_size].fill(0);
        bytes[..size_of::<PageHeader>()].copy_from_slice(header.as_bytes());
        for (place, position) in bytes[size_of::<PageHeader>()..].chunks_exact_mut(2).zip(self.positions) {
            place.copy_from_slice(&position.0.to_le_bytes());
        }
        let crc = page_checksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A page whose header was checked. Made by [`Page::parse`] alone.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    header: &'a PageHeader,
    kind: PageKind,
    positions: &'a [U16],
    body: &'a [u8],
}

impl<'a> Page<'a> {
    /// Checks a whole page: magic, checksum, version, kind, flags, reserved bytes. Whether it stands at the right place
    /// and belongs to the right volume, only the caller knows: [`Page::expect`].
    ///
    /// # Errors
    ///
    /// The first check that fails, in the order above.
    pub fn parse(bytes: &'a [u8]) -> Result<Page<'a>, Malformed> {
        let (header, rest) = PageHeader::ref_from_prefix(bytes).map_err(|_| Malformed::Size)?;
        if header.magic.get() != MAGIC {
            return Err(Malformed::Magic);
        }
        if header.crc.get() != page_checksum(&bytes[4..]) {
            return Err(Malformed::Checksum);
        }
        if header.version != FORMAT_VERSION {
            return Err(Malformed::Version(header.version));
        }
        let kind = PageKind::from_number(header.kind).ok_or(Malformed::Kind(header.kind))?;
        let stream_count = header.stream_count as usize;
        if !(2..=STREAM_COUNT_MAX).contains(&stream_count) {
            return Err(Malformed::Range(Field::StreamCount));
        }
        if header.stream >= header.stream_count {
            return Err(Malformed::Range(Field::Stream));
        }
        if header.flags & !FLAGS_KNOWN != 0 {
            return Err(Malformed::Range(Field::Flags));
        }
        if header.codec != 0 {
            return Err(Malformed::Range(Field::Codec));
        }
        if header.page.get() == NO_PAGE {
            return Err(Malformed::Range(Field::Page));
        }
        let (positions, rest) = <[U16]>::ref_from_prefix_with_elems(rest, stream_count).map_err(|_| Malformed::Size)?;
        let reserved = header_size(header.stream_count) - size_of::<PageHeader>() - 2 * stream_count;
        let (reserved, body) = rest.split_at_checked(reserved).ok_or(Malformed::Size)?;
        if reserved.iter().any(|&byte| byte != 0) {
            return Err(Malformed::Range(Field::Reserved));
        }
        Ok(Page { header, kind, positions, body })
    }

    /// Checks that the page belongs to this volume and stands at this address.
    ///
    /// # Errors
    ///
    /// [`Malformed::Volume`], [`Malformed::Misplaced`].
    pub fn expect(self, volume: u32, page: u32) -> Result<Page<'a>, Malformed> {
        if self.volume() != volume {
            return Err(Malformed::Volume);
        }
        if self.page() != page {
            return Err(Malformed::Misplaced);
        }
        Ok(self)
    }

    /// What the page holds.
    pub fn kind(&self) -> PageKind {
        self.kind
    }

    /// The page's place in the order of programs.
    pub fn sequence(&self) -> u64 {
        self.header.sequence.get()
    }

    /// The page's own address.
    pub fn page(&self) -> u32 {
        self.header.page.get()
    }

    /// Id of the volume.
    pub fn volume(&self) -> u32 {
        self.header.volume.get()
    }

    /// The newest commit page before this one.
    pub fn committed(&self) -> Option<u32> {
        let page = self.header.committed.get();
        (page != NO_PAGE).then_some(page)
    }

    /// Number of the checkpoint that the positions refer to.
    pub fn checkpoint(&self) -> u32 {
        self.header.checkpoint.get()
    }

    /// Stream of the page.
    pub fn stream(&self) -> u8 {
        self.header.stream
    }

    /// Whether the owner's state is what this page says.
    pub fn is_commit(&self) -> bool {
        self.header.flags & FLAG_COMMIT != 0
    }

    /// Whether the page moved what was there and says nothing new.
    pub fn is_moved(&self) -> bool {
        self.header.flags & FLAG_MOVED != 0
    }

    /// Whether nothing was programmed after this checkpoint.
    pub fn is_clean(&self) -> bool {
        self.header.flags & FLAG_CLEAN != 0
    }

    /// Flags as stored.
    pub fn flags(&self) -> u8 {
        self.header.flags
    }

    /// Number of streams of the volume.
    pub fn stream_count(&self) -> u8 {
        self.header.stream_count
    }

    /// Where a stream stood; none for a stream that the volume does not have.
    pub fn position(&self, stream: usize) -> Position {
        self.positions.get(stream).map_or(Position::NONE, |position| Position(position.get()))
    }

    /// What follows the header.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> [u8; 64] {
        let mut bytes = [0xab; 64];
        PageFields {
            kind: PageKind::Node,
            sequence: 0x0102_0304_0506_0708,
            page: 77,
            volume: 0xfeed_f00d,
            committed: None,
            checkpoint: 5,
            stream: 1,
            flags: FLAG_COMMIT,
            positions: &[Position::new(14, 9).unwrap(), Position::new(0, 0xabc).unwrap(), Position::NONE],
        }
        .seal(&mut bytes);
        bytes
    }

    #[test]
    fn the_bytes_of_a_header_are_frozen() {
        let bytes = sample();
        let expected: [u8; 44] = [
            0, 0, 0, 0, b'n', b'd', 2, 13, 8, 7, 6, 5, 4, 3, 2, 1, 77, 0, 0, 0, 0x0d, 0xf0, 0xed, 0xfe, 0xff, 0xff,
            0xff, 0xff, 5, 0, 0, 0, 1, 1, 3, 0, 0x09, 0xe0, 0xbc, 0x0a, 0xff, 0xff, 0, 0,
        ];
        assert_eq!(bytes[4..44], expected[4..]);
        assert_eq!(bytes[..4], page_checksum(&bytes[4..]).to_le_bytes());
        assert_eq!(bytes[44..], [0xab; 20]);
    }

    #[test]
    fn what_was_sealed_is_read_back() {
        let bytes = sample();
        let page = Page::parse(&bytes).unwrap().expect(0xfeed_f00d, 77).unwrap();
        assert_eq!((page.kind(), page.sequence(), page.stream()), (PageKind::Node, 0x0102_0304_0506_0708, 1));
        assert_eq!((page.committed(), page.checkpoint(), page.is_commit(), page.is_clean()), (None, 5, true, false));
        assert_eq!((page.position(1).slot(), page.position(1).last()), (Some(0), 0xabc));
        assert_eq!((page.position(2).slot(), page.position(7)), (None, Position::NONE));
        assert_eq!(page.body(), [0xab; 20]);
        assert_eq!(page.expect(1, 77).unwrap_err(), Malformed::Volume);
        assert_eq!(page.expect(0xfeed_f00d, 78).unwrap_err(), Malformed::Misplaced);
    }

    #[test]
    fn every_flipped_bit_and_every_shorter_page_is_refused() {
        let bytes = sample();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::parse(&damaged).is_err(), "bit {bit}");
        }
        for size in 0..bytes.len() {
            assert!(Page::parse(&bytes[..size]).is_err(), "{size} bytes");
        }
    }

    #[test]
    fn a_right_checksum_does_not_excuse_a_wrong_field() {
        let cases = [
            (6, 1, Malformed::Version(1)),
            (7, 0, Malformed::Kind(0)),
            (7, 14, Malformed::Kind(14)),
            (32, 3, Malformed::Range(Field::Stream)),
            (33, 16, Malformed::Range(Field::Flags)),
            (34, 9, Malformed::Range(Field::StreamCount)),
            (34, 1, Malformed::Range(Field::StreamCount)),
            (35, 1, Malformed::Range(Field::Codec)),
            (42, 1, Malformed::Range(Field::Reserved)),
        ];
        for (offset, value, error) in cases {
            let mut bytes = sample();
            bytes[offset] = value;
            let crc = page_checksum(&bytes[4..]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Page::parse(&bytes).unwrap_err(), error);
        }
    }

    #[test]
    fn positions_out_of_range_cannot_be_made() {
        assert_eq!(Position::new(15, 0), None);
        assert_eq!(Position::new(0, 4096), None);
        assert_eq!(Position::new(13, 4095).unwrap().slot(), Some(13));
    }
}
