//! Where what survives in a block goes.

use nandu_nand::{BlockAddr, CellMode};

use crate::blocks::Blocks;
use crate::heads::Heads;
use crate::reserve::FLOOR;

/// The stream of what survives in a block, raw or with a header: that of raw pages, with two bits a cell if there is one, or one further than where it was. When blocks are scarce, one that has room. A commit can always
/// follow: the last block that can be opened is left for that, if it needs one.
pub(crate) fn stream_of_copy(
    heads: &Heads,
    blocks: &Blocks<'_>,
    headed: u8,
    (block, is_raw): (BlockAddr, bool),
) -> Option<u8> {
    debug_assert!(headed > 1, "survivors have a stream of their own");
    let last = headed - 1;
    let raw = heads.raw(CellMode::Mlc).or_else(|| heads.raw(CellMode::Slc)).filter(|_| is_raw);
    // A page of the tree that names raw pages goes where those go that survived once.
    let before = if blocks.is_raw(block) { 0 } else { blocks.stream(block) };
    let stream = raw.unwrap_or_else(|| (before + 1).min(last));
    if heads.room(stream) > 0 || blocks.pool() > FLOOR {
        return Some(stream);
    }
    let has_room = (1..=last).rev().find(|&other| raw.is_none() && heads.room(other) > 0);
    // One more stays for a recovery.
    let kept = u32::from(heads.commit_opens()) + 1;
    has_room.or_else(|| (blocks.pool() > kept).then_some(stream))
}

/// Whether what survives goes into the stream of commits, if it can: no block for survivors has room, one that is opened for them may be wanted
/// after a cut, and the newest block of commits has room.
pub(crate) fn moves_by_commit(heads: &Heads, blocks: &Blocks<'_>, headed: u8) -> bool {
    debug_assert!(headed > 1, "survivors have a stream of their own");
    let has_room = (1..headed).any(|stream| heads.room(stream) > 0);
    !has_room && heads.room(0) > 0 && blocks.pool() <= FLOOR
}
