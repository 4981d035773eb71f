//! What stands at a key, and whether it still stands where it stood.
//!
//! What a snapshot keeps of a value in pages is a copy of its head, which was taken before there was room for the change. A page that was moved to make room is named anew in the head, and not in the copy. So it is looked at again
//! when there is room, and nothing is moved from there on; a copy that is old is taken anew.

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_media::features::SNAPSHOTS;
use nandu_nand::Nand;

use crate::descend::value_at;
use crate::edits::Edits;
use crate::error::Outcome;
use crate::keeper::Keeper;
use crate::large::keeps;
use crate::reserved::{NOTHING, set_kept};

/// The value of a key, with what waits.
pub(crate) fn value_of<'k, N: Nand, C: Cells>(
    keeper: &'k mut Keeper<'_, N, C>,
    key: &[u8],
) -> Outcome<Option<&'k [u8]>, N> {
    let (tree, waiting) = keeper.parts();
    debug_assert!(!tree.path.is_dirty(), "what stands there is on flash, or waits");
    value_at(tree, &waiting.changes, key)
}

/// Finds the record that says what stood at a key when the snapshot of this number was taken: that of the first one from there on which has one. Its key is copied then. Returns whether something stood there; `None` if there is no such record.
pub(crate) fn find_kept<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (number, key): (u32, &[u8]),
    record: &mut KeyBuf,
) -> Outcome<Option<bool>, N> {
    let mut behind = 0;
    while let Some(slot) = keeper.values().snapshots().slot_from(number, behind) {
        if let Some(value) = value_of(keeper, set_kept(record, slot, key))? {
            return Ok(Some(value != NOTHING));
        }
        behind += 1;
    }
    Ok(None)
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
pub(crate) fn is_stale<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &Edits<'_>) -> Outcome<bool, N> {
    if !SNAPSHOTS {
        return Ok(false);
    }
    for edit in edits.iter() {
        let shape = keeper.tree().path.shape();
        let is_source = |it: &Edit<'_>| it.key != edit.key && shape.user_key(it.key) == shape.user_key(edit.key);
        let Some(source) = edits.iter().find(is_source).filter(|_| keeps(shape, &edit)) else { continue };
        if value_of(keeper, source.key)? != edit.value {
            return Ok(true);
        }
    }
    Ok(false)
}
