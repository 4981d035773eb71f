//! How fast a block has to be emptied, so that no operation waits for one.

use nandu_nand::{BlockAddr, CellMode};

use crate::blocks::Blocks;
use crate::heads::Heads;
use crate::reserve::OPENED_FLOOR;
use crate::survivors::stream_of_copy;

/// Pages that operations append, at least, before one waits for a block; where what survives in another one opens so many.
fn pages_left(heads: &Heads, blocks: &Blocks<'_>, opened: u32) -> u32 {
    let spare = blocks.pool().saturating_sub(OPENED_FLOOR + opened) as usize;
    let raw = |mode| heads.raw(mode).map_or(u32::MAX, |stream| heads.room(stream));
    // To what operations append: commits, nodes, raw pages. Those with least room open the blocks that there are, and one of them one more.
    let mut rooms = [heads.room(0), heads.room(1), raw(CellMode::Slc), raw(CellMode::Mlc)];
    rooms.sort_unstable();
    let streams = rooms.iter().filter(|&&room| room < u32::MAX).count();
    debug_assert!(streams > 1, "commits and nodes have streams");
    let filled: u32 = rooms.iter().take(streams.min(spare + 1)).sum();
    filled + (spare + 1).saturating_sub(streams) as u32 * u32::from(blocks.pages())
}

/// Moves that are due with so many pages of an operation, out of a block of which so many live: the part of them that the operation took of the pages that are left.
pub(crate) fn moves_due(
    (heads, blocks, headed): (&Heads, &Blocks<'_>, u8),
    (block, live): (BlockAddr, u32),
    pages: u32,
) -> u32 {
    let survivors = stream_of_copy(heads, blocks, headed, (block, blocks.is_raw(block)));
    let room = survivors.map_or(0, |stream| heads.room(stream));
    let opened = live.saturating_sub(room).div_ceil(blocks.pages().into());
    // The next operation finds the block.
    let left = pages_left(heads, blocks, opened).saturating_sub(pages);
    (live * pages).checked_div(left).unwrap_or(live).min(live)
}
