//! Several changes with one commit.
//!
//! A batch goes on in the buffers while its keys belong to the same leaf, and programs one page for each leaf, with the path above it. Only the last page is
//! the commit: whatever the power does, the root before or the root after is found.

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_nand::Nand;

use crate::commit::write;
use crate::descend::{descend, leaf_in, look};
use crate::edit::{delete, make_room, put};
use crate::error::{BESIDE_MAX, Outcome};
use crate::fit::{inner_splits_max, splits_by};
use crate::slots::{Growth, Put, Seek};
use crate::split::join;
use crate::tree::Tree;
use crate::writer::{Change, Pen};

/// Calls with a change and those that go with it, none of which is of its key, in the order of their keys.
pub(crate) fn with_beside<'e, T>(one: Edit<'e>, beside: &[Edit<'e>], call: impl FnOnce(&[Edit<'e>]) -> T) -> T {
    let mut edits = [one; BESIDE_MAX + 1];
    let at = beside.partition_point(|edit| edit.key < one.key);
    debug_assert!(beside.get(at).is_none_or(|edit| edit.key != one.key), "keys ascend");
    edits[..at].copy_from_slice(&beside[..at]);
    edits[at + 1..=beside.len()].copy_from_slice(&beside[at..]);
    call(&edits[..=beside.len()])
}

/// What a batch appends, about: pages, and how many of these make the tree grow. Reads the leaves that are not in memory.
pub(crate) fn measure<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, edits: &[Edit<'_>]) -> Outcome<(u32, u32), N> {
    let (mut pages, mut grows) = (0, 0);
    let mut rest = edits;
    let mut fence = KeyBuf::EMPTY;
    while let Some(first) = rest.first() {
        descend(tree, Seek::At(first.key), 1)?;
        let count = match tree.path.fence(0, true, &mut fence) {
            true => rest.partition_point(|edit| edit.key < fence.as_slice()),
            false => rest.len(),
        };
        // Separators that do not ascend are damage, and no reason to stay.
        let (here, others) = rest.split_at(count.max(1));
        rest = others;
        let page = tree.path.child(0);
        let place = leaf_in(tree, page)?;
        let splits = splits_by(&tree.path, look(tree, &place), here.iter().copied());
        pages += 1 + 2 * splits;
        grows += 2 * splits;
    }
    let splits = if grows > 0 { inner_splits_max(&tree.path) + 1 } else { 0 };
    debug_assert!(pages > 0 || edits.is_empty(), "each edit belongs to a leaf");
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
