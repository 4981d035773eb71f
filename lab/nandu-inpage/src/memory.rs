//! The caller's memory, divided.

use core::mem::{align_of, size_of};

use nandu_nand::Geometry;
use zerocopy::FromBytes;

use crate::arena::{FrameEntry, SCRATCH_COUNT};
use crate::blocks::BlockEntry;
use crate::buffer::Unit;
use crate::nodes::NodeEntry;
use crate::options::Options;

/// The parts of the caller's memory.
pub(crate) struct Parts<'m> {
    pub(crate) nodes: &'m mut [NodeEntry],
    pub(crate) blocks: &'m mut [BlockEntry],
    pub(crate) frames: &'m mut [FrameEntry],
    pub(crate) units: &'m mut [Unit],
    pub(crate) hash: &'m mut [u32],
    pub(crate) owners: &'m mut [u32],
    pub(crate) arena: &'m mut [u8],
    /// The log pages of a block.
    pub(crate) logs: &'m mut [u8],
    /// One more log page.
    pub(crate) log: &'m mut [u8],
    /// A journal page.
    pub(crate) journal: &'m mut [u8],
}

/// How many there are of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    nodes: usize,
    blocks: usize,
    frames: usize,
    units: usize,
    hash: usize,
    owners: usize,
    arena: usize,
    logs: usize,
    page: usize,
}

/// Frames beyond the buffer's size: what one operation may need although everything is pinned.
const RESERVE_FRAMES: usize = 4;

/// The strictest alignment of the tables.
const ALIGNMENT: usize = align_of::<u64>();

impl Counts {
    pub(crate) fn new(geometry: &Geometry, options: &Options) -> Counts {
        let page = geometry.page_size as usize;
        let node_pages = u32::from(options.node_pages.max(1));
        let node = node_pages as usize * page;
        let chunk = (options.sector_size as usize).clamp(1, page);
        let frames = options.buffer_size / node + 1 + RESERVE_FRAMES;
        let per_frame = node / chunk + 1;
        let most = geometry.page_count() / node_pages;
        let nodes = options.node_count_max.unwrap_or(most).min(most) as usize;
        Counts {
            nodes,
            blocks: geometry.block_count as usize,
            frames,
            units: frames * per_frame,
            hash: nodes + nodes / 2 + 8,
            owners: frames * per_frame,
            arena: (frames + SCRATCH_COUNT) * (node + chunk),
            logs: usize::from(options.log_pages_max) * node,
            page,
        }
    }

    /// Bytes needed.
    pub(crate) fn required(&self) -> usize {
        ALIGNMENT - 1
            + self.nodes * size_of::<NodeEntry>()
            + self.blocks * size_of::<BlockEntry>()
            + self.frames * size_of::<FrameEntry>()
            + self.units * size_of::<Unit>()
            + self.hash * size_of::<u32>()
            + self.owners * size_of::<u32>()
            + self.arena
            + self.logs
            + 2 * self.page
    }
}

/// Divides the memory; `None` if it is too small.
pub(crate) fn divide<'m>(counts: &Counts, memory: &'m mut [u8]) -> Option<Parts<'m>> {
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let memory = memory.get_mut(skip..)?;
    // The strictest alignment first, so that nothing is lost between the parts.
    let (nodes, rest) = <[NodeEntry]>::mut_from_prefix_with_elems(memory, counts.nodes).ok()?;
    let (blocks, rest) = <[BlockEntry]>::mut_from_prefix_with_elems(rest, counts.blocks).ok()?;
    let (frames, rest) = <[FrameEntry]>::mut_from_prefix_with_elems(rest, counts.frames).ok()?;
    let (units, rest) = <[Unit]>::mut_from_prefix_with_elems(rest, counts.units).ok()?;
    let (hash, rest) = <[u32]>::mut_from_prefix_with_elems(rest, counts.hash).ok()?;
    let (owners, rest) = <[u32]>::mut_from_prefix_with_elems(rest, counts.owners).ok()?;
    let (arena, rest) = rest.split_at_mut_checked(counts.arena)?;
    let (logs, rest) = rest.split_at_mut_checked(counts.logs)?;
    let (log, rest) = rest.split_at_mut_checked(counts.page)?;
    let (journal, _) = rest.split_at_mut_checked(counts.page)?;
    Some(Parts { nodes, blocks, frames, units, hash, owners, arena, logs, log, journal })
}
