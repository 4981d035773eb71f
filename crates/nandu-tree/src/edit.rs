//! One change of the tree, in the buffers: put and delete.

use nandu_cells::Cells;
use nandu_nand::Nand;

use crate::descend::descend_to_leaf;
use crate::error::Outcome;
use crate::fit::{ascending_size_max, is_at_end};
use crate::shape::Counts;
use crate::slots::{Growth, Put};
use crate::split::{overflow, start};
use crate::tree::Tree;
use crate::vanish::vanish;
use crate::writer::Change;

/// Puts an entry into its leaf, in the buffers, if it is to go there. Returns whether its key was there. Reads the leaf and what is not in memory of its ancestors.
pub(crate) fn put<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (key, value): (&[u8], &[u8]),
    growth: Growth,
) -> Outcome<(Put, bool), N> {
    if !tree.path.is_dirty() {
        descend_to_leaf(tree, key)?;
    }
    debug_assert!(tree.path.leaf().is_some(), "the leaf of the key is here");
    let path = &tree.path;
    let is_at_end = growth != Growth::Own && (path.is_ascending() || is_at_end(path));
    let ascending_max = if is_at_end { ascending_size_max(tree) } else { usize::MAX };
    Ok(tree.path.put(key, value, (growth, ascending_max)))
}

/// Makes room for the entry of a put that did not fit, and puts it there.
pub(crate) fn make_room<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (entry, outcome, existed): ((&[u8], &[u8]), Put, bool),
) -> Outcome<(), N> {
    match outcome {
        Put::Fits => return Ok(()),
        Put::Overflows => overflow(tree, change, entry)?,
        Put::Starts => start(tree, change, entry)?,
    }
    if tree.path.shape().counted(!existed, entry.0) > 0 {
        let counts = tree.path.state().counts;
        tree.path.count(Counts { records: counts.records + 1, ..counts });
    }
    debug_assert!(tree.path.is_dirty(), "the path is programmed next");
    Ok(())
}

/// Deletes a key, in the buffers. Returns whether it was there. Reads the leaf, what is not in memory of its ancestors, and a page for each level that the tree loses.
pub(crate) fn delete<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, key: &[u8]) -> Outcome<bool, N> {
    if !tree.path.is_dirty() {
        descend_to_leaf(tree, key)?;
    }
    let (existed, vanishes) = tree.path.remove(key);
    if vanishes {
        vanish(tree)?;
    }
    Ok(existed)
}
