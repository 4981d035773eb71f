//! Sizes that follow from the geometry and the options, constant while a volume is mounted.

use nandu_media::anchor::anchor_size;
use nandu_media::features::{FILES, MLC, TAGS};
use nandu_media::header::header_size;
use nandu_media::table::RECORD_SIZE;
use nandu_media::tag::TAG_SIZE;
use nandu_media::{ANCHOR_COUNT, Position, READY_COUNT_MAX, READY_COUNT_MIN, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode, Geometry, PageAddr};

use crate::error::LogError;
use crate::heads::Heads;
use crate::options::{LogOptions, OWNER_SIZE};
use crate::partners::{EXPOSED_MAX, exposed_max};
use crate::reserve::kept_back;

/// How the cells of every block are used, but of those to which raw pages go that survive, where these have two bits a cell.
const MODE: CellMode = CellMode::Slc;

/// Most pages that the block table takes, however many streams there are.
pub(crate) const fn table_pages_max(geometry: &Geometry) -> u32 {
    let room = (geometry.page_size as usize).saturating_sub(header_size(STREAM_COUNT_MAX as u8));
    // No log fits a page without room for a record.
    if room < RECORD_SIZE { 0 } else { geometry.block_count.div_ceil((room / RECORD_SIZE) as u32) }
}

/// Owners that a summary has room for.
const fn summary_max(geometry: &Geometry) -> usize {
    (geometry.page_size as usize).saturating_sub(header_size(STREAM_COUNT_MAX as u8)) / OWNER_SIZE
}

/// Pages of a group of raw pages, its summary included.
const fn raw_span(geometry: &Geometry) -> u16 {
    let (owners, pages) = (summary_max(geometry), geometry.pages_in_mode(MODE));
    (if owners < pages as usize { owners as u32 + 1 } else { pages }) as u16
}

/// Owners of the raw pages of a group, at most.
pub(crate) const fn owners_max(geometry: &Geometry, has_mlc: bool) -> usize {
    let pages = if has_mlc { geometry.pages_per_block } else { raw_span(geometry) as u32 };
    pages.saturating_sub(1) as usize
}

/// Pages of a block with two bits a cell, at most: what a header can tell of.
const PAGES_MAX: u32 = 4096;

/// Sizes and counts of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) geometry: Geometry,
    /// Pages of a block with one bit a cell.
    pub(crate) pages: u16,
    /// Pages of one with two; as many where there are none.
    pages_dense: u16,
    /// Streams, those of raw pages among them, which are the last ones.
    pub(crate) streams: u8,
    /// Pages of a block of raw pages with one bit a cell up to its first summary, that included; 0 where there are no raw pages.
    raw_span: u16,
    /// Whether raw pages that survive have two bits a cell.
    has_mlc: bool,
    /// Whether raw pages may have tags.
    has_tags: bool,
    /// Pages that a commit takes.
    commits: u8,
    /// Longest ready list.
    pub(crate) ready_max: u8,
    /// Pages of the block table; 0 if it stands in the anchor.
    pub(crate) table_pages: u16,
    /// Records in a page of the block table.
    pub(crate) records_per_page: u32,
}

impl Shape {
    /// Sizes for a chip, with the stream count and list length chosen if the options leave them open.
    ///
    /// # Errors
    ///
    /// [`LogError::Geometry`], [`LogError::Unsuitable`].
    pub(crate) fn new<E: core::error::Error>(geometry: &Geometry, options: &LogOptions) -> Result<Shape, LogError<E>> {
        geometry.validate().map_err(LogError::Geometry)?;
        let blocks = geometry.block_count;
        if !options.streams_are_sound() {
            return Err(LogError::Unsuitable { what: &"stream count outside 2 to 8" });
        }
        let has_mlc = MLC && options.has_mlc;
        if options.has_mlc {
            check_mlc(geometry, options)?;
        }
        if options.has_raw && !FILES {
            return Err(LogError::Unsuitable { what: &"raw pages, which are not compiled: feature `files`" });
        }
        let has_tags =
            TAGS && options.has_raw && !has_mlc && options.has_tags && geometry.tag_size as usize >= TAG_SIZE;
        let streams = options.stream_count.unwrap_or(match blocks {
            0..128 => 2,
            128..256 => 3,
            _ => 4,
        });
        let positions = streams + options.raw_positions();
        let streams = streams + u8::from(options.has_raw) + u8::from(has_mlc);
        let ready_max = options.ready_max.unwrap_or(match blocks {
            0..128 => READY_COUNT_MIN as u8,
            128..256 => 6,
            _ => (blocks / 32).min(READY_COUNT_MAX as u32) as u8,
        });
        if !(READY_COUNT_MIN as u8..=READY_COUNT_MAX as u8).contains(&ready_max) {
            return Err(LogError::Unsuitable { what: &"ready list outside 3 to 14" });
        }
        let room = (geometry.page_size as usize).saturating_sub(header_size(positions)) as u64;
        let records_per_page = (room as usize / RECORD_SIZE) as u32;
        if records_per_page == 0 {
            return Err(LogError::Unsuitable { what: &"a page has no room for a record" });
        }
        let stands_in_anchor = anchor_size(positions, ready_max, 0, blocks, has_tags) <= room;
        let table_pages = if stands_in_anchor { 0 } else { blocks.div_ceil(records_per_page) };
        let pages = geometry.pages_in_mode(MODE);
        if table_pages >= pages || anchor_size(positions, ready_max, table_pages as u16, 0, has_tags) > room {
            return Err(LogError::Unsuitable { what: &"the block table does not fit an anchor block" });
        }
        if pages < 2 {
            return Err(LogError::Unsuitable { what: &"too few pages" });
        }
        Ok(Shape {
            geometry: *geometry,
            pages: pages as u16,
            pages_dense: if has_mlc { geometry.pages_per_block } else { pages } as u16,
            streams,
            raw_span: if options.has_raw { raw_span(geometry) } else { 0 },
            has_mlc,
            has_tags,
            commits: 1 + u8::from(options.commit_twice),
            ready_max,
            table_pages: table_pages as u16,
            records_per_page,
        })
    }

    /// Bytes of a page's header.
    pub(crate) fn header_size(&self) -> usize {
        header_size(self.positions())
    }

    /// Where no stream stands yet.
    pub(crate) fn no_heads(&self) -> Heads {
        Heads::new((self.streams, self.raw_streams()), (self.pages, self.pages_dense), self.commits)
    }

    pub(crate) fn has_raw(&self) -> bool {
        FILES && self.raw_span > 0
    }

    /// Whether raw pages that survive have two bits a cell.
    pub(crate) fn has_mlc(&self) -> bool {
        MLC && self.has_mlc
    }

    /// Streams of raw pages: one with one bit a cell, and maybe one with two behind it.
    pub(crate) fn raw_streams(&self) -> u8 {
        u8::from(self.has_raw()) + u8::from(self.has_mlc())
    }

    /// Pages of a block with as many bits a cell as there are.
    pub(crate) fn pages_max(&self) -> u16 {
        if MLC { self.pages_dense } else { self.pages }
    }

    /// How many of the densest pages a block has room for in the place of a page with one bit a cell.
    pub(crate) fn node_units(&self) -> u32 {
        if MLC { u32::from(self.pages_dense / self.pages.max(1)) } else { 1 }
    }

    /// Pages of a block.
    pub(crate) fn pages_in(&self, mode: CellMode) -> u16 {
        if self.has_mlc() && mode == CellMode::Mlc { self.pages_dense } else { self.pages }
    }

    /// Whether raw pages may have tags.
    pub(crate) fn has_tags(&self) -> bool {
        TAGS && self.has_tags
    }

    /// The streams of pages that say what they are: all but that of raw pages.
    pub(crate) fn headed(&self) -> u8 {
        self.streams - self.raw_streams()
    }

    /// What a header says of streams: where each stands, and where there are raw pages which blocks are of them.
    pub(crate) fn positions(&self) -> u8 {
        self.streams + self.raw_streams()
    }

    /// Pages of a group of raw pages, its summary included.
    pub(crate) fn raw_span(&self, mode: CellMode) -> u16 {
        debug_assert!(self.has_raw());
        if self.has_mlc() && mode == CellMode::Mlc { self.pages_dense } else { self.raw_span }
    }

    /// Whether a page of a block of raw pages is a summary.
    pub(crate) fn is_summary(&self, (mode, nth): (CellMode, u16)) -> bool {
        let (span, pages) = (self.raw_span(mode), self.pages_in(mode));
        debug_assert!(self.has_raw() && nth < pages);
        nth % span == span - 1 || nth == pages - 1
    }

    /// Summaries of a block of raw pages.
    pub(crate) fn summaries(&self, mode: CellMode) -> u16 {
        if self.has_raw() { self.pages_in(mode).div_ceil(self.raw_span(mode)) } else { 0 }
    }

    /// Where streams stand, for a page that says nothing of it.
    pub(crate) fn no_positions(&self) -> &'static [Position] {
        &[Position::NONE; STREAM_COUNT_MAX][..usize::from(self.positions())]
    }

    /// The address of the `nth` page of a block with one bit a cell; of any block of its first.
    pub(crate) fn page(&self, block: BlockAddr, nth: u16) -> PageAddr {
        self.page_in(CellMode::Slc, block, nth)
    }

    /// The address of the `nth` page of a block.
    pub(crate) fn page_in(&self, mode: CellMode, block: BlockAddr, nth: u16) -> PageAddr {
        if self.has_mlc() && mode == CellMode::Mlc {
            return self.geometry.page_at(block, nth.into());
        }
        // Every `nth` below the page count has a page, which callers keep to.
        let index = self.geometry.nth_in_mode(MODE, u32::from(nth)).unwrap_or(u32::from(nth));
        self.geometry.page_at(block, index)
    }

    pub(crate) fn block_of(&self, page: PageAddr) -> BlockAddr {
        self.geometry.block_of(page)
    }

    /// Which page of its block a page is, counting those that are used with one bit a cell.
    pub(crate) fn nth_of(&self, page: PageAddr) -> u16 {
        self.nth_in(CellMode::Slc, page)
    }

    /// Which page of its block a page is, counting those that are used.
    pub(crate) fn nth_in(&self, mode: CellMode, page: PageAddr) -> u16 {
        if self.has_mlc() && mode == CellMode::Mlc {
            return self.geometry.index_in_block(page) as u16;
        }
        let index = self.geometry.index_in_block(page);
        (0..index).filter(|&before| self.geometry.is_used_in_mode(MODE, before)).count() as u16
    }

    /// Whether there are blocks for a new volume beside those that may be bad. One that is there goes on with fewer.
    pub(crate) fn has_blocks(&self) -> bool {
        let data_blocks = self.geometry.block_count.saturating_sub(ANCHOR_COUNT as u32 + self.geometry.bad_block_max);
        data_blocks > kept_back(data_blocks, self.streams)
    }

    /// Blocks searched for anchors: room for every block that may be bad in front of them.
    pub(crate) fn anchor_window(&self) -> u32 {
        (self.geometry.bad_block_max + 2 * ANCHOR_COUNT as u32).min(self.geometry.block_count)
    }
}

/// Whether a chip can have raw pages with two bits a cell.
fn check_mlc<E: core::error::Error>(geometry: &Geometry, options: &LogOptions) -> Result<(), LogError<E>> {
    let what: &'static &'static str = match () {
        () if !MLC => &"two bits a cell, which are not compiled: feature `mlc`",
        () if !options.has_raw => &"two bits a cell without raw pages",
        () if !geometry.supports(CellMode::Mlc) || !geometry.pairing.is_paired() => &"a chip without two bits a cell",
        () if summary_max(geometry) + 1 < geometry.pages_per_block as usize => {
            &"a page has no room for the owners of a block"
        }
        () if geometry.pages_per_block > PAGES_MAX || exposed_max(geometry) > EXPOSED_MAX => {
            &"pages too far from their partners"
        }
        () => return Ok(()),
    };
    Err(LogError::Unsuitable { what })
}
