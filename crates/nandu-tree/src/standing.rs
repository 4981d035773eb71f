//! What stands at a key, and whether it still stands where it stood.
//!
//! What a snapshot keeps of a value in pages is a copy of its head, which was taken before there was room for the change. A page that was moved to make room is named anew in the head, and not in the copy. So it is looked at again
//! when there is room, and nothing is moved from there on; a copy that is old is taken anew.

use nandu_cells::Cells;
use nandu_index::Edit;
use nandu_media::features::SNAPSHOTS;
use nandu_nand::Nand;

use crate::descend::{find_leaf, leaf_in, look};
use crate::error::Outcome;
use crate::keeper::Keeper;
use crate::large::keeps;

/// The value of a key, with what waits.
pub(crate) fn value_of<'k, N: Nand, C: Cells>(
    keeper: &'k mut Keeper<'_, N, C>,
    key: &[u8],
) -> Outcome<Option<&'k [u8]>, N> {
    let (tree, waiting) = keeper.parts();
    debug_assert!(!tree.path.is_dirty(), "what stands there is on flash, or waits");
    if let Ok(index) = waiting.changes.find(key) {
        return Ok(waiting.changes.value(index));
    }
    let page = find_leaf(tree, key)?;
    let place = leaf_in(tree, page)?;
    let (cells, leaf) = (tree.path.shape().cells(), look(tree, &place));
    Ok(cells.leaf_find(leaf, key).ok().map(|index| cells.leaf_value(leaf, index)))
}

/// What became of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// They are made. Whether the key of the last was there, where it is one.
    Existed(bool),
    /// None is made: something that they keep has moved.
    Stale,
}

/// Whether one of these changes keeps a head that is another one meanwhile.
pub(crate) fn is_stale<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &[Edit<'_>]) -> Outcome<bool, N> {
    if !SNAPSHOTS {
        return Ok(false);
    }
    for edit in edits {
        let shape = keeper.tree().path.shape();
        let is_source = |it: &&Edit<'_>| it.key != edit.key && shape.user_key(it.key) == shape.user_key(edit.key);
        let Some(source) = edits.iter().find(is_source).filter(|_| keeps(shape, edit)) else { continue };
        if value_of(keeper, source.key)? != edit.value {
            return Ok(true);
        }
    }
    Ok(false)
}
