//! How fast a block has to be emptied, so that no operation waits for one.

use nandu_nand::{BlockAddr, CellMode};

use crate::blocks::Blocks;
use crate::heads::Heads;
use crate::reserve::OPENED_FLOOR;
use crate::survivors::stream_of_copy;

/// Pages that operations append, at least, before one waits for a block, with so many blocks more; where what survives in others opens so many.
fn pages_left(heads: &Heads, blocks: &Blocks<'_>, (freed, opened): (u32, u32)) -> u32 {
    let spare = (blocks.pool() + freed).saturating_sub(OPENED_FLOOR + opened) as usize;
    let raw = |mode| heads.raw(mode).map_or(u32::MAX, |stream| heads.room(stream));
    // To what operations append: commits, nodes, raw pages. Those with least room open the blocks that there are, and one of them one more.
    let mut rooms = [heads.room(0), heads.room(1), raw(CellMode::Slc), raw(CellMode::Mlc)];
    rooms.sort_unstable();
    let streams = rooms.iter().filter(|&&room| room < u32::MAX).count();
    debug_assert!(streams > 1, "commits and nodes have streams");
    let filled: u32 = rooms.iter().take(streams.min(spare + 1)).sum();
    filled + (spare + 1).saturating_sub(streams) as u32 * u32::from(blocks.pages())
}

/// Blocks that are looked at: the one that is emptied, and the next one. Where several streams open theirs at a time, one is not enough.
const BLOCKS_AHEAD: usize = 2;

/// Whether so many pages of an operation may be so large a part of those that are left that moves are due with them, however many pages live in the blocks that are emptied.
pub(crate) fn may_be_due(heads: &Heads, blocks: &Blocks<'_>, pages: u32) -> bool {
    let left = pages_left(heads, blocks, (0, 1)).saturating_sub(pages);
    BLOCKS_AHEAD as u32 * u32::from(blocks.pages()) * pages >= left
}

/// Pages that operations append, where so many pages are moved until a block is emptied, behind so many others.
pub(crate) fn left_behind(
    (heads, blocks, headed): (&Heads, &Blocks<'_>, u8),
    (block, nth, moves): (BlockAddr, u32, u32),
) -> u32 {
    debug_assert!((nth as usize) < BLOCKS_AHEAD, "one of those that are looked at");
    let survivors = stream_of_copy(heads, blocks, headed, (block, blocks.is_raw(block)));
    let (room, of_block) = survivors.map_or((0, blocks.pages()), |stream| (heads.room(stream), heads.pages(stream)));
    let opened = moves.saturating_sub(room).div_ceil(of_block.into());
    pages_left(heads, blocks, (nth, opened))
}
