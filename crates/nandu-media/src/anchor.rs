//! FORMAT: Anchor

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::table::RECORD_SIZE;
use crate::{
    ANCHOR_COUNT, BlockRecord, Field, Malformed, NO_BLOCK, NO_PAGE, Page, PageKind, READY_COUNT_MAX, READY_COUNT_MIN,
    STREAM_COUNT_MIN,
};

/// Feature: some streams hold pages without header, see `raw_streams`.
pub const INCOMPATIBLE_RAW: u32 = 1;

/// Feature: some raw streams have two bits a cell although other streams have one, see `mlc_streams`.
pub const INCOMPATIBLE_MLC_STREAMS: u32 = 2;

/// Feature: pages without header may have tags, see `tail`. Bits 2 and 3 were the same with tags of other forms: what those tell of would be
/// passed over, so such a volume is refused.
pub const INCOMPATIBLE_TAGS: u32 = 16;

/// Feature: all commits are pages of one kind in stream 0, and other pages promise nothing.
pub const INCOMPATIBLE_COMMIT_STREAM: u32 = 32;

/// Features that a reader must know to read the volume at all.
pub const INCOMPATIBLE_KNOWN: u32 =
    INCOMPATIBLE_RAW | INCOMPATIBLE_MLC_STREAMS | INCOMPATIBLE_TAGS | INCOMPATIBLE_COMMIT_STREAM;

/// Features that a writer must know to write the volume: none yet.
pub const READ_ONLY_COMPATIBLE_KNOWN: u32 = 0;

/// Cell mode of data blocks: one bit a cell.
pub const MODE_SLC: u8 = 0;

/// Cell mode of data blocks: two bits a cell.
pub const MODE_MLC: u8 = 1;

/// Body of an anchor: the last page of a checkpoint, and what a mount begins with.
///
/// The page header of an anchor carries the checkpoint's number, the newest commit page, and whether the volume was
/// unmounted. Behind these fields follow, each only as often as counted here: heads, ready list, table pages, records.
///
/// ```text
/// offset  size  field                 meaning
///      0     4  incompatible          features without which the volume cannot be read: bit 0 raw streams, bit 1
///                                     streams with two bits a cell among others, bit 4 tags, bit 5 all
///                                     commits in stream 0;
///                                     bits 2 and 3 are refused: tags of older forms
///      4     4  read_only_compatible  features without which the volume cannot be written
///      8     4  compatible            features that do no harm
///     12     4  page_size             bytes in the main area of a page
///     16     4  pages_per_block       of the chip, LSB and MSB pages together
///     20     4  block_count           of the chip
///     24    16  anchors               the four anchor blocks; all ones: lost
///     40     1  base                  which anchor block holds the newest checkpoint that is known to be stable
///     41     1  mode                  cell mode of data blocks: 0 one bit a cell, 1 two; but for those of `mlc_streams`
///     42     1  ready_max             longest ready list that the volume uses
///     43     1  ready_count           entries of the ready list
///     44     2  table_page_count      pages of the block table; 0: the records stand in this page
///     46     1  raw_streams          how many of the streams, the last ones, hold pages without header
///     47     1  mlc_streams           how many of these, the last ones, have two bits a cell
///     48    16  tail                  only with tags: the first page that may have one (4, all ones: none); flags (4, bit 0: the
///                                     pages from there on count whatever was committed since); sequence of the commit behind which
///                                     they stand (8). All that follows begins 16 bytes later then
///     48   8*s  heads                 per stream: open block (4, all ones: none), pages programmed in it (2), zero (2)
///    ...   4*r  ready                 empty blocks to be opened next, erased before that unless their records say that they
///                                     are; stream 0 opens them from the first on, other streams from the last; where there
///                                     are raw streams these alone do, and all others from the first. Where there are
///                                     `mlc_streams`, these open the last entries, from the last on, and no others: a third
///                                     of all, as long as three are left
///    ...   4*t  table                 addresses of the pages of the block table
///    ...   4*b  records               of all blocks, if `table_page_count` is 0
///    ...   ...  reserved              zero
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AnchorBody {
    incompatible: U32,
    read_only_compatible: U32,
    compatible: U32,
    page_size: U32,
    pages_per_block: U32,
    block_count: U32,
    anchors: [U32; ANCHOR_COUNT],
    base: u8,
    mode: u8,
    ready_max: u8,
    ready_count: u8,
    table_page_count: U16,
    raw_streams: u8,
    mlc_streams: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeadRecord {
    block: U32,
    next: U16,
    reserved: U16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TailRecord {
    first: U32,
    flags: U32,
    commit: U64,
}

/// The pages of the tail count whatever was committed since.
const TAIL_DUE: u32 = 1;

const _: () = {
    assert!(size_of::<TailRecord>() == 16);
    assert!(size_of::<AnchorBody>() == 48);
    assert!(offset_of!(AnchorBody, anchors) == 24);
    assert!(offset_of!(AnchorBody, base) == 40);
    assert!(offset_of!(AnchorBody, table_page_count) == 44);
    assert!(offset_of!(AnchorBody, mlc_streams) == 47);
    assert!(size_of::<HeadRecord>() == 8);
};

/// The open block of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadFields {
    /// The block.
    pub block: u32,
    /// Pages programmed in it, counting those of its cell mode: at least 1.
    pub next: u16,
}

/// Where tagged pages stand that no commit names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailFields {
    /// The first page that may have a tag.
    pub first: u32,
    /// Sequence of the commit behind which they stand.
    pub commit: u64,
    /// Whether they count although there are newer commits: the owner is about to take them over.
    pub is_due: bool,
}

/// What an anchor says, to be written; what stands behind it is written by its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorFields {
    /// Bytes in the main area of a page.
    pub page_size: u32,
    /// Pages in a block of the chip.
    pub pages_per_block: u32,
    /// Blocks of the chip.
    pub block_count: u32,
    /// The anchor blocks; `None`: lost.
    pub anchors: [Option<u32>; ANCHOR_COUNT],
    /// Which of the anchor blocks holds the newest checkpoint that is known to be stable.
    pub base: u8,
    /// Cell mode of data blocks, [`MODE_SLC`] or [`MODE_MLC`].
    pub mode: u8,
    /// Longest ready list that the volume uses.
    pub ready_max: u8,
    /// Pages of the block table; 0 if the records follow in the anchor itself.
    pub table_page_count: u16,
    /// How many of the streams, the last ones, hold pages without header.
    pub raw_streams: u8,
    /// How many of these, the last ones, have two bits a cell.
    pub mlc_streams: u8,
    /// Whether pages may have tags; then where those stand that no commit names, if there may be any.
    pub tags: Option<Option<TailFields>>,
    /// Whether all commits are pages of one kind in stream 0.
    pub has_commit_stream: bool,
}

/// How many entries of a ready list of this length are for streams with two bits a cell, where there are any: the last ones.
///
/// So a place in the list tells the mode of the block that was opened from there, and what a cut left of a block without header
/// can be found without looking at it.
pub const fn mlc_ready_count(ready_count: usize) -> usize {
    let beyond = ready_count.saturating_sub(READY_COUNT_MIN);
    if ready_count / 3 < beyond { ready_count / 3 } else { beyond }
}

/// Bytes that an anchor takes behind the page header.
pub const fn anchor_size(
    stream_count: u8,
    ready_max: u8,
    table_page_count: u16,
    record_count: u32,
    has_tags: bool,
) -> u64 {
    let records = if table_page_count == 0 { record_count as u64 * RECORD_SIZE as u64 } else { 0 };
    size_of::<AnchorBody>() as u64
        + if has_tags { size_of::<TailRecord>() as u64 } else { 0 }
        + stream_count as u64 * size_of::<HeadRecord>() as u64
        + ready_max as u64 * 4
        + table_page_count as u64 * 4
        + records
}

impl AnchorFields {
    /// Writes the body of an anchor: fields, heads, ready list and, from the iterators, addresses of table pages or
    /// records. The caller guarantees the room, by [`anchor_size`]; anything else is a bug.
    pub fn write(
        &self,
        body: &mut [u8],
        heads: &[Option<HeadFields>],
        ready: &[u32],
        table: impl Iterator<Item = u32>,
        records: impl Iterator<Item = BlockRecord>,
    ) {
        assert!(ready.len() <= READY_COUNT_MAX && (self.base as usize) < ANCHOR_COUNT);
        let fields = AnchorBody {
            incompatible: U32::new(
                if self.raw_streams > 0 { INCOMPATIBLE_RAW } else { 0 }
                    | if self.mlc_streams > 0 { INCOMPATIBLE_MLC_STREAMS } else { 0 }
                    | if self.tags.is_some() { INCOMPATIBLE_TAGS } else { 0 }
                    | if self.has_commit_stream { INCOMPATIBLE_COMMIT_STREAM } else { 0 },
            ),
            read_only_compatible: U32::ZERO,
            compatible: U32::ZERO,
            page_size: U32::new(self.page_size),
            pages_per_block: U32::new(self.pages_per_block),
            block_count: U32::new(self.block_count),
            anchors: self.anchors.map(|block| U32::new(block.unwrap_or(NO_BLOCK))),
            base: self.base,
            mode: self.mode,
            ready_max: self.ready_max,
            ready_count: ready.len() as u8,
            table_page_count: U16::new(self.table_page_count),
            raw_streams: self.raw_streams,
            mlc_streams: self.mlc_streams,
        };
        let mut rest = body;
        put(&mut rest, fields.as_bytes());
        if let Some(tail) = self.tags {
            let record = TailRecord {
                first: U32::new(tail.map_or(NO_PAGE, |tail| tail.first)),
                flags: U32::new(if tail.is_some_and(|tail| tail.is_due) { TAIL_DUE } else { 0 }),
                commit: U64::new(tail.map_or(0, |tail| tail.commit)),
            };
            put(&mut rest, record.as_bytes());
        }
        for head in heads {
            let (block, next) = head.map_or((NO_BLOCK, 0), |head| (head.block, head.next));
            let record = HeadRecord { block: U32::new(block), next: U16::new(next), reserved: U16::ZERO };
            put(&mut rest, record.as_bytes());
        }
        for block in ready {
            put(&mut rest, &block.to_le_bytes());
        }
        if self.table_page_count == 0 {
            for record in records {
                put(&mut rest, &record.to_bytes());
            }
        } else {
            for page in table.take(self.table_page_count as usize) {
                put(&mut rest, &page.to_le_bytes());
            }
        }
        rest.fill(0);
    }
}

/// Puts bytes to the front of what is left of a buffer.
fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (front, back) = core::mem::take(rest).split_at_mut(bytes.len());
    front.copy_from_slice(bytes);
    *rest = back;
}

/// An anchor whose fields were checked. Made by [`Anchor::parse`] alone.
#[derive(Clone, Copy, Debug)]
pub struct Anchor<'a> {
    fields: &'a AnchorBody,
    tail: Option<&'a TailRecord>,
    heads: &'a [HeadRecord],
    ready: &'a [U32],
    table: &'a [U32],
    records: &'a [[u8; RECORD_SIZE]],
}

impl<'a> Anchor<'a> {
    /// Checks the body of a parsed page of kind [`PageKind::Anchor`]: features, counts, every block and page number
    /// against the size of the chip stated.
    ///
    /// # Errors
    ///
    /// [`Malformed::Kind`], [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(page: &Page<'a>) -> Result<Anchor<'a>, Malformed> {
        if page.kind() != PageKind::Anchor {
            return Err(Malformed::Kind(page.kind() as u8));
        }
        let (fields, rest) = AnchorBody::ref_from_prefix(page.body()).map_err(|_| Malformed::Size)?;
        let has_tags = fields.incompatible.get() & INCOMPATIBLE_TAGS != 0;
        let (tail, rest) = match has_tags {
            true => {
                TailRecord::ref_from_prefix(rest).map(|(tail, rest)| (Some(tail), rest)).map_err(|_| Malformed::Size)?
            }
            false => (None, rest),
        };
        let stream_count = page.stream_count() as usize;
        let (heads, rest) =
            <[HeadRecord]>::ref_from_prefix_with_elems(rest, stream_count).map_err(|_| Malformed::Size)?;
        let (ready, rest) =
            <[U32]>::ref_from_prefix_with_elems(rest, fields.ready_count as usize).map_err(|_| Malformed::Size)?;
        let table_page_count = fields.table_page_count.get() as usize;
        let (table, rest) = <[U32]>::ref_from_prefix_with_elems(rest, table_page_count).map_err(|_| Malformed::Size)?;
        let record_count = if table_page_count == 0 { fields.block_count.get() as usize } else { 0 };
        let (records, rest) =
            <[[u8; RECORD_SIZE]]>::ref_from_prefix_with_elems(rest, record_count).map_err(|_| Malformed::Size)?;
        let anchor = Anchor { fields, tail, heads, ready, table, records };
        anchor.check_fields()?;
        anchor.check_addresses()?;
        if rest.iter().any(|&byte| byte != 0) {
            return Err(Malformed::Range(Field::Reserved));
        }
        Ok(anchor)
    }

    fn check_fields(&self) -> Result<(), Malformed> {
        let fields = self.fields;
        if fields.incompatible.get() & !INCOMPATIBLE_KNOWN != 0 {
            return Err(Malformed::Range(Field::Incompatible));
        }
        if fields.base as usize >= ANCHOR_COUNT {
            return Err(Malformed::Range(Field::Base));
        }
        if fields.mode > MODE_MLC {
            return Err(Malformed::Range(Field::Mode));
        }
        if fields.ready_max as usize > READY_COUNT_MAX || fields.ready_count > fields.ready_max {
            return Err(Malformed::Range(Field::ReadyCount));
        }
        let has_raw = fields.incompatible.get() & INCOMPATIBLE_RAW != 0;
        if has_raw != (fields.raw_streams > 0) || fields.raw_streams as usize > self.heads.len() - STREAM_COUNT_MIN {
            return Err(Malformed::Range(Field::RawStreams));
        }
        let has_mlc = fields.incompatible.get() & INCOMPATIBLE_MLC_STREAMS != 0;
        let is_mixed = fields.mlc_streams > 0 && fields.mlc_streams < fields.raw_streams && fields.mode == MODE_SLC;
        if has_mlc != (fields.mlc_streams > 0) || (has_mlc && !is_mixed) {
            return Err(Malformed::Range(Field::MlcStreams));
        }
        let tail_is_sound = |tail: &TailRecord| match tail.first.get() {
            NO_PAGE => tail.flags.get() == 0 && tail.commit.get() == 0,
            _ => tail.flags.get() & !TAIL_DUE == 0,
        };
        let are_tags_sound = self.tail.is_none_or(tail_is_sound) && (self.tail.is_none() || (has_raw && !has_mlc));
        if !are_tags_sound {
            return Err(Malformed::Range(Field::Tail));
        }
        if self.heads.iter().any(|head| head.reserved.get() != 0) {
            return Err(Malformed::Range(Field::Reserved));
        }
        let sizes = [fields.page_size.get(), fields.pages_per_block.get(), fields.block_count.get()];
        if sizes.contains(&0) || fields.block_count.get() > (NO_PAGE - 1) / fields.pages_per_block.get() {
            return Err(Malformed::Range(Field::BlockCount));
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), Malformed> {
        let block_count = self.fields.block_count.get();
        let pages_per_block = self.fields.pages_per_block.get();
        let none_or_inside = |block: &U32| block.get() == NO_BLOCK || block.get() < block_count;
        if !self.fields.anchors.iter().all(none_or_inside) {
            return Err(Malformed::Range(Field::Anchors));
        }
        let head_is_sound = |head: &HeadRecord| match head.block.get() {
            NO_BLOCK => head.next.get() == 0,
            block => block < block_count && (1..=pages_per_block).contains(&u32::from(head.next.get())),
        };
        if !self.heads.iter().all(head_is_sound) {
            return Err(Malformed::Range(Field::Heads));
        }
        let first = self.tail.map_or(NO_PAGE, |tail| tail.first.get());
        if first != NO_PAGE && first >= block_count * pages_per_block {
            return Err(Malformed::Range(Field::Tail));
        }
        if self.ready.iter().any(|block| block.get() >= block_count) {
            return Err(Malformed::Range(Field::Ready));
        }
        if self.table.iter().any(|page| page.get() >= block_count * pages_per_block) {
            return Err(Malformed::Range(Field::Table));
        }
        Ok(())
    }

    /// Bytes in the main area of a page.
    pub fn page_size(&self) -> u32 {
        self.fields.page_size.get()
    }

    /// Pages in a block of the chip.
    pub fn pages_per_block(&self) -> u32 {
        self.fields.pages_per_block.get()
    }

    /// Blocks of the chip.
    pub fn block_count(&self) -> u32 {
        self.fields.block_count.get()
    }

    /// Whether the volume uses a feature that a writer must know and this version does not.
    pub fn is_read_only(&self) -> bool {
        self.fields.read_only_compatible.get() & !READ_ONLY_COMPATIBLE_KNOWN != 0
    }

    /// The anchor blocks.
    pub fn anchors(&self) -> [Option<u32>; ANCHOR_COUNT] {
        self.fields.anchors.map(|block| (block.get() != NO_BLOCK).then_some(block.get()))
    }

    /// Which of the anchor blocks holds the newest checkpoint that was known to be stable when this one was written.
    pub fn base(&self) -> u8 {
        self.fields.base
    }

    /// Cell mode of data blocks.
    pub fn mode(&self) -> u8 {
        self.fields.mode
    }

    /// Longest ready list that the volume uses.
    pub fn ready_max(&self) -> u8 {
        self.fields.ready_max
    }

    /// How many of the streams, the last ones, hold pages without header.
    pub fn raw_streams(&self) -> u8 {
        self.fields.raw_streams
    }

    /// How many of these, the last ones, have two bits a cell.
    pub fn mlc_streams(&self) -> u8 {
        self.fields.mlc_streams
    }

    /// Whether pages may have tags; then where those stand that no commit names, if there may be any.
    pub fn tags(&self) -> Option<Option<TailFields>> {
        self.tail.map(|tail| {
            let is_due = tail.flags.get() & TAIL_DUE != 0;
            let first = Some(tail.first.get()).filter(|&first| first != NO_PAGE);
            first.map(|first| TailFields { first, commit: tail.commit.get(), is_due })
        })
    }

    /// Whether all commits are pages of one kind in stream 0.
    pub fn has_commit_stream(&self) -> bool {
        self.fields.incompatible.get() & INCOMPATIBLE_COMMIT_STREAM != 0
    }

    /// The open block of each stream.
    pub fn heads(&self) -> impl Iterator<Item = Option<HeadFields>> + use<'a> {
        self.heads.iter().map(|head| match head.block.get() {
            NO_BLOCK => None,
            block => Some(HeadFields { block, next: head.next.get() }),
        })
    }

    /// Empty blocks, in the order in which they will be opened; which of them are erased their records say.
    pub fn ready(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.ready.iter().map(|block| block.get())
    }

    /// Addresses of the pages of the block table; none if the records stand in the anchor.
    pub fn table(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.table.iter().map(|page| page.get())
    }

    /// The records in the anchor; none if the table has pages of its own.
    pub fn records(&self) -> &'a [[u8; RECORD_SIZE]] {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::page_checksum;
    use crate::header::{FLAG_CLEAN, header_size};
    use crate::{BlockState, PageFields, Position};

    const FIELDS: AnchorFields = AnchorFields {
        page_size: 256,
        pages_per_block: 8,
        block_count: 4,
        anchors: [Some(0), Some(1), None, Some(3)],
        base: 1,
        mode: MODE_SLC,
        ready_max: 3,
        table_page_count: 0,
        raw_streams: 0,
        mlc_streams: 0,
        tags: None,
        has_commit_stream: false,
    };

    fn sample() -> [u8; 256] {
        let mut bytes = [0xff; 256];
        let record = |block: u32| BlockRecord {
            erase_count: block,
            state: BlockState::Full,
            live: 1,
            is_inexact: false,
            is_raw: false,
            is_mlc: false,
        };
        FIELDS.write(
            &mut bytes[header_size(2)..],
            &[Some(HeadFields { block: 2, next: 8 }), None],
            &[3, 1],
            core::iter::empty(),
            (0..4).map(record),
        );
        seal(&mut bytes);
        bytes
    }

    fn seal(bytes: &mut [u8]) {
        PageFields {
            kind: PageKind::Anchor,
            sequence: 9,
            page: 8,
            volume: 1,
            committed: Some(5),
            checkpoint: 2,
            stream: 0,
            flags: FLAG_CLEAN,
            positions: &[Position::NONE; 2],
        }
        .seal(bytes);
    }

    #[test]
    fn the_bytes_of_an_anchor_are_frozen() {
        let bytes = sample();
        let mut expected = [0; 216];
        expected[12..16].copy_from_slice(&256_u32.to_le_bytes());
        expected[16..20].copy_from_slice(&8_u32.to_le_bytes());
        expected[20..24].copy_from_slice(&4_u32.to_le_bytes());
        expected[24..40].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 3, 0, 0, 0]);
        expected[40..48].copy_from_slice(&[1, 0, 3, 2, 0, 0, 0, 0]);
        expected[48..64].copy_from_slice(&[2, 0, 0, 0, 8, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]);
        expected[64..72].copy_from_slice(&[3, 0, 0, 0, 1, 0, 0, 0]);
        expected[72..88].copy_from_slice(&[0, 0, 0x30, 1, 1, 0, 0x30, 1, 2, 0, 0x30, 1, 3, 0, 0x30, 1]);
        assert_eq!(bytes[40..], expected);
        assert_eq!(page_checksum(&bytes[4..]).to_le_bytes(), bytes[..4]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let bytes = sample();
        let page = Page::parse(&bytes).unwrap();
        let anchor = Anchor::parse(&page).unwrap();
        assert_eq!((anchor.page_size(), anchor.pages_per_block(), anchor.block_count()), (256, 8, 4));
        assert_eq!((anchor.anchors(), anchor.base(), anchor.mode()), (FIELDS.anchors, 1, MODE_SLC));
        assert!(anchor.heads().eq([Some(HeadFields { block: 2, next: 8 }), None]));
        assert!(anchor.ready().eq([3, 1]));
        assert_eq!((anchor.table().len(), anchor.records().len(), anchor.ready_max()), (0, 4, 3));
        assert!(page.is_clean() && page.committed() == Some(5));
    }

    #[test]
    fn raw_streams_are_a_feature_and_leave_two_streams_with_headers() {
        let write = |streams: usize, raw_streams: u8, mlc_streams: u8| {
            let mut bytes = [0xff; 256];
            let fields = AnchorFields { raw_streams, mlc_streams, ..FIELDS };
            let heads = &[None; 4][..streams];
            let record = |_| BlockRecord::from_bytes([0; 4]);
            fields.write(&mut bytes[header_size(streams as u8)..], heads, &[], core::iter::empty(), (0..4).map(record));
            PageFields {
                kind: PageKind::Anchor,
                sequence: 9,
                page: 8,
                volume: 1,
                committed: None,
                checkpoint: 2,
                stream: 0,
                flags: 0,
                positions: &[Position::NONE; 4][..streams],
            }
            .seal(&mut bytes);
            bytes
        };
        let bytes = write(4, 2, 0);
        let page = Page::parse(&bytes).unwrap();
        assert_eq!((Anchor::parse(&page).unwrap().raw_streams(), page.body()[0]), (2, 1));
        let bytes = write(4, 3, 0);
        let page = Page::parse(&bytes).unwrap();
        assert_eq!(Anchor::parse(&page).unwrap_err(), Malformed::Range(Field::RawStreams));
        // One raw stream at least keeps one bit a cell.
        let bytes = write(4, 2, 1);
        let page = Page::parse(&bytes).unwrap();
        assert_eq!((Anchor::parse(&page).unwrap().mlc_streams(), page.body()[0]), (1, 3));
        let bytes = write(4, 2, 2);
        let page = Page::parse(&bytes).unwrap();
        assert_eq!(Anchor::parse(&page).unwrap_err(), Malformed::Range(Field::MlcStreams));
    }

    #[test]
    fn where_tagged_pages_stand_comes_back_and_is_checked() {
        let write = |raw_streams: u8, tail: Option<TailFields>| {
            let mut bytes = [0xff; 256];
            let fields = AnchorFields { raw_streams, tags: Some(tail), ..FIELDS };
            let record = |_| BlockRecord::from_bytes([0; 4]);
            let heads = [None; 4];
            fields.write(&mut bytes[header_size(4)..], &heads, &[1], core::iter::empty(), (0..4).map(record));
            let positions = &[Position::NONE; 4];
            let (kind, flags) = (PageKind::Anchor, 0);
            let (sequence, page, volume, committed, checkpoint, stream) = (9, 8, 1, None, 2, 0);
            PageFields { kind, sequence, page, volume, committed, checkpoint, stream, flags, positions }
                .seal(&mut bytes);
            bytes
        };
        let tail = TailFields { first: 31, commit: 5, is_due: true };
        for tail in [None, Some(tail), Some(TailFields { is_due: false, ..tail })] {
            let bytes = write(2, tail);
            let page = Page::parse(&bytes).unwrap();
            let anchor = Anchor::parse(&page).unwrap();
            assert_eq!((anchor.tags(), anchor.ready().eq([1])), (Some(tail), true));
        }
        for (raw_streams, first) in [(2, 32), (0, 31)] {
            let bytes = write(raw_streams, Some(TailFields { first, ..tail }));
            let page = Page::parse(&bytes).unwrap();
            assert_eq!(Anchor::parse(&page).unwrap_err(), Malformed::Range(Field::Tail));
        }
    }

    #[test]
    fn a_third_of_the_ready_list_is_for_two_bits_a_cell_as_long_as_three_entries_are_left() {
        let counts: [usize; 15] = core::array::from_fn(mlc_ready_count);
        assert_eq!(counts, [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    }

    #[test]
    fn addresses_of_table_pages_stand_where_records_would() {
        let mut bytes = [0xff; 256];
        AnchorFields { table_page_count: 2, ..FIELDS }.write(
            &mut bytes[header_size(2)..],
            &[None, None],
            &[],
            [30, 31].into_iter(),
            core::iter::empty(),
        );
        seal(&mut bytes);
        let page = Page::parse(&bytes).unwrap();
        let anchor = Anchor::parse(&page).unwrap();
        assert!(anchor.table().eq([30, 31]) && anchor.records().is_empty());
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let bytes = sample();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::parse(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn fields_out_of_range_are_refused_although_the_checksum_is_right() {
        let body = header_size(2);
        let cases = [
            (0, 1, Field::RawStreams),
            (0, 2, Field::MlcStreams),
            (0, 4, Field::Incompatible),
            (0, 8, Field::Incompatible),
            (0, 64, Field::Incompatible),
            (40, 4, Field::Base),
            (41, 2, Field::Mode),
            (43, 4, Field::ReadyCount),
            (46, 1, Field::RawStreams),
            (47, 1, Field::MlcStreams),
            (24, 4, Field::Anchors),
            (48, 4, Field::Heads),
            (52, 0, Field::Heads),
            (52, 9, Field::Heads),
            (60, 1, Field::Heads),
            (54, 1, Field::Reserved),
            (64, 4, Field::Ready),
            (200, 1, Field::Reserved),
            (16, 0, Field::BlockCount),
        ];
        for (offset, value, field) in cases {
            let mut bytes = sample();
            bytes[body + offset] = value;
            seal(&mut bytes);
            let page = Page::parse(&bytes).unwrap();
            assert_eq!(Anchor::parse(&page).unwrap_err(), Malformed::Range(field), "offset {offset}");
        }
    }

    #[test]
    fn counts_beyond_the_page_are_refused() {
        let mut bytes = sample();
        bytes[header_size(2) + 44] = 200;
        seal(&mut bytes);
        assert_eq!(Anchor::parse(&Page::parse(&bytes).unwrap()).unwrap_err(), Malformed::Size);
        let mut bytes = sample();
        bytes[header_size(2) + 23] = 200;
        seal(&mut bytes);
        assert_eq!(Anchor::parse(&Page::parse(&bytes).unwrap()).unwrap_err(), Malformed::Size);
    }
}
