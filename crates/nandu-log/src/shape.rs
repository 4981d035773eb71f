//! What follows from the geometry and the options: sizes, counts and limits.

use nandu_media::anchor::{anchor_size, mlc_ready_count};
use nandu_media::features::{FILES, MLC, TAGS};
use nandu_media::header::header_size;
use nandu_media::table::RECORD_SIZE;
use nandu_media::tag::TAG_SIZE;
use nandu_media::{ANCHOR_COUNT, READY_COUNT_MAX, READY_COUNT_MIN, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode, Geometry, GeometryError, PageAddr, PageGroup, Pairing, TearScope};

use crate::compiled::{COMPILED, Uses};
use crate::options::LogOptions;

const FLOOR_HOST: u32 = 3;
const FLOOR_DELETE: u32 = 2;

/// Blocks of the pool below which instalments begin, at least: to move a large value takes a block and more for one examination.
/// With 5 on chips of 64 blocks full of values, deletes found no room.
const POOL_HIGH_MIN: u32 = 8;

/// Blocks that are opened between two checkpoints, at least, where the pool is low.
const OPENED_MIN: u32 = 4;

/// Fewest pages of a block where there are bare streams: two of data, one that is skipped, and a summary.
const BARE_PAGES_MIN: u32 = 4;

/// Why a chip or its options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShapeError {
    Geometry(GeometryError),
    Unsuitable(&'static str),
    NotCompiled(&'static str),
}

/// Where in the ready list a stream takes its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// From the first entry on.
    Front,
    /// From the last one on of those that are not for streams with two bits a cell.
    Back,
    /// From the last one on.
    Mlc,
}

/// Whether pages of a chip can have tags. Where pages share cells nothing that is promised may be torn later, which a tail does not
/// keep to.
pub(crate) fn has_tags(geometry: &Geometry) -> bool {
    geometry.tag_size as usize >= TAG_SIZE && geometry.pairing == Pairing::None
}

/// Most LSB pages that are programmed at once while their partners are not, if pages are programmed in their order.
pub(crate) const fn exposed_max(geometry: &Geometry) -> u16 {
    let (mut page, mut exposed, mut most) = (0, 0_u16, 0);
    while page < geometry.pages_per_block {
        match geometry.pairing.pair_of(page, geometry.pages_per_block) {
            Some((_, PageGroup::Lsb)) => exposed += 1,
            Some((_, PageGroup::Msb)) => exposed = exposed.saturating_sub(1),
            None => {}
        }
        most = if exposed > most { exposed } else { most };
        page += 1;
    }
    most
}

/// Most pages that the block table takes, however many streams there are.
pub(crate) const fn table_pages_max(geometry: &Geometry) -> u32 {
    let room = (geometry.page_size as usize).saturating_sub(header_size(STREAM_COUNT_MAX as u8));
    // No log fits a page without room for a record.
    if room < RECORD_SIZE { 0 } else { geometry.block_count.div_ceil((room / RECORD_SIZE) as u32) }
}

/// Sizes, counts and limits of a volume; constant while it is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) geometry: Geometry,
    /// Mode of data blocks, but for those of streams with two bits a cell among others.
    pub(crate) mode: CellMode,
    /// Pages of a data block in that mode.
    pub(crate) pages: u16,
    mlc_pages: u16,
    first_mlc: u8,
    exposed_max: u16,
    /// Pages of an anchor block; anchors are in SLC mode always.
    pub(crate) anchor_pages: u16,
    pub(crate) streams: u8,
    headed: u8,
    has_tags: bool,
    pub(crate) ready_max: u8,
    /// Pages of the block table; 0 if it stands in the anchor.
    pub(crate) table_pages: u16,
    /// Most pages of the block table of any volume on the chip.
    pub(crate) table_pages_max: u16,
    /// Records in a page of the block table.
    pub(crate) records_per_page: u32,
    pub(crate) header_size: usize,
    /// Sequences are shifted by this to make the coarse times of blocks.
    pub(crate) birth_shift: u32,
}

impl Shape {
    /// Sizes for a chip, with the stream count and list length chosen if the options leave them open.
    pub(crate) fn new(geometry: &Geometry, options: &LogOptions) -> Result<Shape, ShapeError> {
        geometry.validate().map_err(ShapeError::Geometry)?;
        let (has_bare, has_mlc) = (options.bare_streams > 0, options.mlc_streams > 0);
        let has_tags = options.tags && has_bare && !has_mlc && has_tags(geometry);
        if let Some(feature) = COMPILED.lacks(Uses { bare: has_bare, mlc: has_mlc, tags: has_tags }) {
            return Err(ShapeError::NotCompiled(feature));
        }
        let (has_bare, has_mlc, has_tags) = (FILES && has_bare, MLC && has_mlc, TAGS && has_tags);
        let blocks = geometry.block_count;
        if !options.streams_are_sound() {
            let what = "stream count outside 2 to 8, fewer than two that are not bare, or none that is bare and has one bit a cell";
            return Err(ShapeError::Unsuitable(what));
        }
        let headed = match blocks {
            0..128 => 2,
            128..256 => 4,
            _ => 6,
        };
        let streams = options.stream_count.unwrap_or((headed + options.bare_streams).min(STREAM_COUNT_MAX as u8));
        let ready_max = options.ready_max.unwrap_or(match blocks {
            0..128 => 3,
            128..256 => 6,
            _ => (blocks / 32).min(READY_COUNT_MAX as u32) as u8,
        });
        // One entry is for a stream with two bits a cell.
        let ready_min = READY_COUNT_MIN as u8 + u8::from(has_mlc);
        let ready_max = if options.ready_max.is_none() { ready_max.max(ready_min) } else { ready_max };
        if !(ready_min..=READY_COUNT_MAX as u8).contains(&ready_max) {
            return Err(ShapeError::Unsuitable("ready list outside 3 to 14"));
        }
        if has_mlc && (!geometry.supports(CellMode::Mlc) || options.mode != CellMode::Slc) {
            return Err(ShapeError::Unsuitable("streams with two bits a cell"));
        }
        if !geometry.supports(options.mode) || (options.mode == CellMode::Mlc && geometry.tear == TearScope::Pair) {
            return Err(ShapeError::Unsuitable("cell mode"));
        }
        let header_size = header_size(streams);
        let page_size = geometry.page_size as usize;
        let records_per_page = ((page_size - header_size) / RECORD_SIZE) as u32;
        let room = (page_size - header_size) as u64;
        let table_pages = if anchor_size(streams, ready_max, 0, blocks, has_tags) <= room {
            0
        } else {
            blocks.div_ceil(records_per_page)
        };
        let anchor_pages = geometry.pages_in_mode(CellMode::Slc);
        if table_pages >= anchor_pages || anchor_size(streams, ready_max, table_pages as u16, 0, has_tags) > room {
            return Err(ShapeError::Unsuitable("the block table does not fit an anchor block"));
        }
        let pages = geometry.pages_in_mode(options.mode);
        let blocks_min =
            ANCHOR_COUNT as u32 + u32::from(streams) + FLOOR_HOST + 3 + u32::from(has_bare) + u32::from(has_mlc);
        if blocks < blocks_min || pages < if has_bare { BARE_PAGES_MIN } else { 2 } {
            return Err(ShapeError::Unsuitable("too few blocks or pages"));
        }
        let birth_shift = (geometry.page_count() / 2048).max(1).ilog2();
        Ok(Shape {
            geometry: *geometry,
            mode: options.mode,
            pages: pages as u16,
            mlc_pages: if has_mlc { geometry.pages_per_block } else { pages } as u16,
            first_mlc: streams - options.mlc_streams,
            exposed_max: if has_mlc && geometry.tear == TearScope::Pair { exposed_max(geometry) } else { 0 },
            anchor_pages: anchor_pages as u16,
            streams,
            headed: streams - options.bare_streams,
            has_tags,
            ready_max,
            table_pages: table_pages as u16,
            table_pages_max: table_pages_max(geometry) as u16,
            records_per_page,
            header_size,
            birth_shift,
        })
    }

    /// Streams whose pages have a header: the first ones. The others are bare.
    pub(crate) fn headed(&self) -> u8 {
        if FILES { self.headed } else { self.streams }
    }

    /// The first stream with two bits a cell among others; `streams` if there is none.
    pub(crate) fn first_mlc(&self) -> u8 {
        if MLC { self.first_mlc } else { self.streams }
    }

    /// Pages of a block of a stream with two bits a cell among others; `pages` where there is none.
    pub(crate) fn mlc_pages(&self) -> u16 {
        if MLC { self.mlc_pages } else { self.pages }
    }

    /// Most LSB pages of a block at once that are programmed while their partners are not; 0 where that matters to nobody.
    pub(crate) fn exposed_max(&self) -> u16 {
        if MLC { self.exposed_max } else { 0 }
    }

    /// Whether bare pages may have tags.
    pub(crate) fn has_tags(&self) -> bool {
        TAGS && self.has_tags
    }

    /// Whether there are bare streams.
    pub(crate) fn has_bare(&self) -> bool {
        FILES && self.headed < self.streams
    }

    /// Whether the pages of a stream have no header.
    pub(crate) fn is_bare_stream(&self, stream: u8) -> bool {
        FILES && stream >= self.headed
    }

    /// Whether some streams have two bits a cell while others have one.
    pub(crate) fn has_mlc(&self) -> bool {
        MLC && self.first_mlc < self.streams
    }

    /// Whether a stream has two bits a cell while others have one.
    pub(crate) fn is_mlc_stream(&self, stream: u8) -> bool {
        self.has_mlc() && stream >= self.first_mlc
    }

    /// Cell mode of the blocks of a stream.
    pub(crate) fn mode_of(&self, stream: u8) -> CellMode {
        if self.is_mlc_stream(stream) { CellMode::Mlc } else { self.mode }
    }

    /// Pages of a block of a stream.
    pub(crate) fn pages_of(&self, stream: u8) -> u16 {
        if self.is_mlc_stream(stream) { self.mlc_pages() } else { self.pages }
    }

    /// Pages of a block in a mode.
    pub(crate) fn pages_in(&self, mode: CellMode) -> u16 {
        self.geometry.pages_in_mode(mode) as u16
    }

    /// How much of a full block a page with header takes, in pages of the fullest kind of block there is.
    pub(crate) fn headed_weight(&self) -> u32 {
        if self.has_mlc() { u32::from(self.mlc_pages / self.pages) } else { 1 }
    }

    /// From which end of the ready list, or part of it, a stream takes its blocks.
    pub(crate) fn end_of(&self, stream: u8) -> End {
        match stream {
            _ if self.is_mlc_stream(stream) => End::Mlc,
            _ if self.is_front(stream) => End::Front,
            _ => End::Back,
        }
    }

    /// Longest part of a ready list that is not for streams with two bits a cell.
    pub(crate) fn others_max(&self) -> usize {
        let count = self.ready_max as usize;
        count - if self.has_mlc() { mlc_ready_count(count) } else { 0 }
    }

    /// Whether a stream takes from the front of the ready list.
    ///
    /// Where there are bare streams, all others do: those leave no trace in the blocks that they open, and what has
    /// headers can only be followed if it is known which end of the list has them.
    pub(crate) fn is_front(&self, stream: u8) -> bool {
        if self.has_bare() { stream < self.headed } else { stream == 0 }
    }

    /// Blocks of the pool that operations of the owner leave alone. One more where there are bare streams: moving a bare
    /// page programs one with a header too, and both may open a block. One more where an operation may open a block of two bits
    /// a cell besides.
    pub(crate) fn floor_host(&self) -> u32 {
        FLOOR_HOST + u32::from(self.has_bare()) + u32::from(self.has_mlc())
    }

    /// Blocks of the pool that deletes leave alone.
    pub(crate) fn floor_delete(&self) -> u32 {
        FLOOR_DELETE + u32::from(self.has_bare()) + u32::from(self.has_mlc())
    }

    /// Pages that a cut may leave programmed without a trace in any header: those of bare streams, in blocks that were open
    /// and in blocks of the ready list.
    pub(crate) fn untraced_max(&self) -> u64 {
        let blocks = u64::from(self.streams - self.headed) + u64::from(self.ready_max);
        if self.has_bare() { blocks * u64::from(self.mlc_pages()) } else { 0 }
    }

    /// The address of the `nth` page of a block that is used in a mode.
    pub(crate) fn page(&self, mode: CellMode, block: BlockAddr, nth: u16) -> PageAddr {
        // Both modes have a page for every `nth` below their page count, which callers keep to.
        let index = self.geometry.nth_in_mode(mode, u32::from(nth)).unwrap_or(u32::from(nth));
        self.geometry.page_at(block, index)
    }

    /// The address of the `nth` page of a block of a stream with headers, or of a first page.
    pub(crate) fn data_page(&self, block: BlockAddr, nth: u16) -> PageAddr {
        self.page(self.mode, block, nth)
    }

    /// The address of the `nth` page of a block of a stream.
    pub(crate) fn page_of(&self, stream: u8, block: BlockAddr, nth: u16) -> PageAddr {
        self.page(self.mode_of(stream), block, nth)
    }

    /// The address of the `nth` page of an anchor block.
    pub(crate) fn anchor_page(&self, block: BlockAddr, nth: u16) -> PageAddr {
        self.page(CellMode::Slc, block, nth)
    }

    /// Blocks searched for anchors: room for every block that may be bad in front of them.
    pub(crate) fn anchor_window(&self) -> u32 {
        (self.geometry.bad_block_max + 2 * ANCHOR_COUNT as u32).min(self.geometry.block_count)
    }

    /// Blocks that data never fill, out of those that are good: heads, pool, and slack so that victims have dead pages. With two
    /// bits a cell a block has twice as many pages to be examined, and a page of the owner's takes as much room as before, so
    /// the share that is dead has to be twice as large for the instalments to be bounded alike.
    pub(crate) fn reserve_blocks(&self, good: u32) -> u32 {
        u32::from(self.streams) + self.floor_host() + self.slack_blocks(good)
    }

    /// Those of them that keep victims from being full of live pages.
    pub(crate) fn slack_blocks(&self, good: u32) -> u32 {
        2 + if self.has_mlc() { good / 6 } else { good / 12 }
    }

    /// Blocks of the pool below which instalments begin: as many as one checkpoint should list, or wait to be listed by the next one, and
    /// those that must be left. More would wait for nothing and hold no data.
    ///
    /// The fewer a checkpoint lists, the more checkpoints there are, and a mount reads up to three pages more. So it lists as many as can be,
    /// unless there is file data, which fills chips, and anchor blocks wear half as fast as others at most where it lists fewer: those
    /// have many pages where a block does, and the whole table in one.
    pub(crate) fn pool_high(&self, good: u32) -> u32 {
        let compact = self.reserve_blocks(good).saturating_sub(u32::from(self.streams) + 1);
        let programs = good * (1 + u32::from(self.table_pages));
        let opened = programs.div_ceil(ANCHOR_COUNT as u32 / 2 * u32::from(self.anchor_pages)).max(OPENED_MIN);
        let most = u32::from(self.ready_max) + 2;
        let high = if self.has_bare() { most.min(opened + self.floor_host()) } else { most };
        high.max(POOL_HIGH_MIN).min(compact).max(self.floor_host() + 1)
    }
}
