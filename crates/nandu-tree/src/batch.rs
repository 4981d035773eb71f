//! Several changes with one commit.
//!
//! A batch goes on in the buffers while its keys belong to the same leaf, and programs one page for each leaf, with the path above it. Only the last page is
//! the commit: whatever the power does, the root before or the root after is found.

use core::ops::Range;

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_nand::Nand;

use crate::commit::write;
use crate::descend::{descend, leaf_in, look};
use crate::edit::{delete, make_room, put};
use crate::edits::Edits;
use crate::error::Outcome;
use crate::fit::{inner_splits_max, splits_by};
use crate::path::Path;
use crate::slots::{Growth, Put, Seek};
use crate::split::join;
use crate::tree::Tree;
use crate::writer::{Change, Pen};

/// These changes from an index on that concern the leaf which the path leads to, as the first of them does.
pub(crate) fn of_leaf<C: Cells>(path: &Path<'_, C>, edits: &Edits<'_>, from: usize) -> Range<usize> {
    let mut fence = KeyBuf::EMPTY;
    match path.fence(0, true, &mut fence) {
        // Separators that do not ascend are damage, and no reason to stay.
        true => from..from + edits.count_below(from, fence.as_slice()).max(1),
        false => from..edits.len(),
    }
}

/// What a batch appends, about: pages, and how many of these make the tree grow. Reads the leaves that are not in memory.
pub(crate) fn measure<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, edits: &Edits<'_>) -> Outcome<(u32, u32), N> {
    let (mut pages, mut grows, mut at) = (0, 0, 0);
    while let Some(first) = edits.get(at) {
        descend(tree, Seek::At(first.key), 1)?;
        let here = of_leaf(&tree.path, edits, at);
        at = here.end;
        let page = tree.path.child(0);
        let place = leaf_in(tree, page)?;
        let splits = splits_by(&tree.path, look(tree, &place), edits.part(here));
        pages += 1 + 2 * splits;
        grows += 2 * splits;
    }
    let splits = if grows > 0 { inner_splits_max(&tree.path) + 1 } else { 0 };
    debug_assert!(pages > 0 || edits.len() == 0, "each edit belongs to a leaf");
    Ok((pages + splits + 1, grows + splits))
}

/// Makes changes in the buffers, in the order of their keys, and programs all pages but the last.
pub(crate) fn apply<'e, N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    edits: impl Iterator<Item = Edit<'e>>,
    growth: Growth,
) -> Outcome<(), N> {
    for edit in edits {
        // A leaf that is to grow and does not fit beside its ancestors is divided rather than filled up.
        let is_done = growth != Growth::Own && tree.path.is_staged();
        if tree.path.is_dirty() && (is_done || !tree.path.is_on(edit.key)) {
            write(tree, &mut Pen::Change(change))?;
        }
        match edit.value {
            Some(value) => {
                let entry = (edit.key, value);
                let (mut outcome, mut existed) = put(tree, entry, growth)?;
                if growth == Growth::Own && outcome == Put::Overflows && !tree.path.is_staged() {
                    tree.path.stage_leaf();
                    (outcome, existed) = put(tree, entry, growth)?;
                }
                make_room(tree, change, (entry, outcome, existed))?;
            }
            None => {
                delete(tree, edit.key)?;
            }
        }
    }
    if tree.path.is_dirty() { join(tree) } else { Ok(()) }
}
