//! The caller's memory, divided.

use core::mem::{align_of, size_of};

use nandu_media::dffs;
use nandu_nand::Geometry;
use zerocopy::FromBytes;

use crate::blocks::BlockEntry;
use crate::lag::Lag;
use crate::options::Options;
use crate::pages::{CacheEntry, FRAME_COUNT};
use crate::replay::Cursor;
use crate::slots::SlotEntry;

/// Blocks of inodes that may have been taken into use since a checkpoint, with those of recoveries that were cut.
pub(crate) const CURSOR_COUNT: usize = 128;

/// The parts of the caller's memory.
pub(crate) struct Parts<'m> {
    pub(crate) cursors: &'m mut [Cursor],
    pub(crate) blocks: &'m mut [BlockEntry],
    pub(crate) map: &'m mut [u32],
    pub(crate) map_pages: &'m mut [u32],
    pub(crate) lag: &'m mut [Lag],
    pub(crate) slots: &'m mut [SlotEntry],
    pub(crate) cache: &'m mut [CacheEntry],
    pub(crate) map_dirty: &'m mut [u8],
    pub(crate) suspects: &'m mut [u8],
    pub(crate) pages: &'m mut [u8],
}

/// How many there are of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    blocks: usize,
    map: usize,
    map_pages: usize,
    lag: usize,
    slots: usize,
    cache: usize,
    pages: usize,
}

const ALIGNMENT: usize = align_of::<u64>();

impl Counts {
    pub(crate) fn new(geometry: &Geometry, options: &Options) -> Counts {
        let page_size = geometry.page_size as usize;
        let map = options.directory_max.min(32_768) as usize;
        let (slots, cache) = (options.open_files.clamp(3, 4096) as usize, options.cache_pages.min(65_536) as usize);
        Counts {
            blocks: geometry.block_count as usize,
            map,
            map_pages: map.div_ceil(dffs::map_entries(page_size).max(1)),
            lag: options.lag_max.clamp(2, 65_536) as usize,
            slots,
            cache,
            pages: (FRAME_COUNT + 2 * slots + cache) * page_size,
        }
    }

    /// Bytes needed.
    pub(crate) fn required(&self) -> usize {
        ALIGNMENT - 1
            + CURSOR_COUNT * size_of::<Cursor>()
            + self.blocks * size_of::<BlockEntry>()
            + (self.map + self.map_pages) * size_of::<u32>()
            + self.lag * size_of::<Lag>()
            + self.slots * size_of::<SlotEntry>()
            + self.cache * size_of::<CacheEntry>()
            + self.map_pages
            + self.map.div_ceil(8)
            + self.pages
    }
}

/// Divides the memory; `None` if it is too small.
pub(crate) fn divide<'m>(counts: &Counts, memory: &'m mut [u8]) -> Option<Parts<'m>> {
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let rest = memory.get_mut(skip..)?;
    // The strictest alignment first, so that nothing is lost between the parts.
    let (cursors, rest) = <[Cursor]>::mut_from_prefix_with_elems(rest, CURSOR_COUNT).ok()?;
    let (slots, rest) = <[SlotEntry]>::mut_from_prefix_with_elems(rest, counts.slots).ok()?;
    let (blocks, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, counts.blocks).ok()?;
    let (map, rest) = <[u32]>::mut_from_prefix_with_elems(rest, counts.map).ok()?;
    let (map_pages, rest) = <[u32]>::mut_from_prefix_with_elems(rest, counts.map_pages).ok()?;
    let (lag, rest) = <[Lag]>::mut_from_prefix_with_elems(rest, counts.lag).ok()?;
    let (cache, rest) = <[CacheEntry]>::mut_from_prefix_with_elems(rest, counts.cache).ok()?;
    let (map_dirty, rest) = rest.split_at_mut_checked(counts.map_pages)?;
    let (suspects, rest) = rest.split_at_mut_checked(counts.map.div_ceil(8))?;
    let (pages, _) = rest.split_at_mut_checked(counts.pages)?;
    Some(Parts { cursors, blocks, map, map_pages, lag, slots, cache, map_dirty, suspects, pages })
}
