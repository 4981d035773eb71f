//! Leaves that hold nothing but what a released snapshot kept go together: one page for all of them that have one parent.
//!
//! A leaf that was kept whole stands beside others of its snapshot, so that its parent has few others. Taking its entries out one after the other would program a page for each leaf.
//!
//! The page of the parent without them promises nothing before a commit, with which they die. It is not done where something in memory is of these leaves: a member of the window would make it again at a mount.

use nandu_cells::Cells;
use nandu_index::KeyBuf;
use nandu_log::{Claim, LogError};
use nandu_nand::Nand;

use crate::changes::Changes;
use crate::descend::{descend, leaf_in, look};
use crate::error::{EngineError, Outcome};
use crate::fit::encode_fewer;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::reserved::slot_key;
use crate::slots::Seek;
use crate::split::put_inner;
use crate::tree::Tree;
use crate::writer::{DEATHS, Need};

/// Leaves that go at once, at most.
const MOST: usize = 24;

/// Parents that are looked at: each keeps a leaf whose entries go one after the other.
const PARENTS: usize = 32;

/// Children of one parent that may go, from this one on.
struct Branch {
    at: usize,
    count: usize,
}

/// Takes out leaves of the snapshot in a slot, of which nobody needs anything. Returns false if none can be, with nothing changed. 1 program.
pub(crate) fn prune<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, slot: u8) -> Outcome<bool, N> {
    for _ in 0..CLAIMS_MAX {
        keeper.ready()?;
        let working = keeper.working();
        keeper.parts().0.path.begin(working);
        let (tree, waiting) = keeper.parts();
        let Some(branch) = branch_of(tree, &waiting.changes, slot)? else { return Ok(false) };
        let need = Need { want: Claim::Free, pages: 2, live: 0, deaths: DEATHS + branch.count };
        match keeper.claim(need) {
            Ok(Some(change)) => {
                let cut = cut_off(keeper.parts().0, &branch);
                keeper.count(false, (0, 0));
                return keeper.keep(change, cut).map(|()| true);
            }
            Ok(None) => {}
            Err(EngineError::Log(LogError::Full)) => return Ok(false),
            Err(error) => return Err(keeper.undo(error)),
        }
    }
    Ok(false)
}

/// Leaves of a slot under one of its first parents that hold nothing else and name no pages, if that keeps others, or two if it is the root. It is in the path then.
fn branch_of<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    slot: u8,
) -> Outcome<Option<Branch>, N> {
    let bounds = (&slot_key(slot)[..], &slot_key(slot + 1)[..]);
    let mut key = KeyBuf::EMPTY;
    key.set(bounds.0);
    for _ in 0..PARENTS {
        descend(tree, Seek::At(key.as_slice()), 1)?;
        if tree.path.top() == 0 {
            break;
        }
        let branch = branch_here(tree, changes, bounds, &mut key)?;
        if branch.count > 0 {
            return Ok(Some(branch));
        }
        if !tree.path.fence(1, true, &mut key) || key.as_slice() >= bounds.1 {
            break;
        }
    }
    Ok(None)
}

/// The same under the parent in the path, between these bounds; with memory for a key.
fn branch_here<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    bounds: (&[u8], &[u8]),
    key: &mut KeyBuf,
) -> Outcome<Branch, N> {
    let all = tree.path.child_count(1);
    let most = all.saturating_sub(if tree.path.top() == 1 { 2 } else { 1 }).min(MOST);
    let mut branch = Branch { at: tree.path.index(1), count: 0 };
    let mut low = edge(tree, changes, (branch.at, bounds), key);
    for child in branch.at..all {
        let high = edge(tree, changes, (child + 1, bounds), key);
        // It is of the slot, and nothing waits for it.
        let is_free = low.is_some() && low == high && !has_heads(tree, child, key)?;
        low = high;
        match is_free {
            true if branch.count < most => branch.count += 1,
            // One that has to stay may come before others.
            false if branch.count == 0 => branch.at = child + 1,
            _ => break,
        }
    }
    debug_assert!(branch.at + branch.count <= all, "children of the node");
    Ok(branch)
}

/// How many changes are below the lower bound of a child of the lowest inner node of the path, or below the upper bound of the last, if that is between these bounds.
fn edge<N: Nand, C: Cells>(
    tree: &Tree<'_, N, C>,
    changes: &Changes<'_>,
    (child, (first, last)): (usize, (&[u8], &[u8])),
    key: &mut KeyBuf,
) -> Option<usize> {
    let has_bound = if child == 0 || child >= tree.path.child_count(1) {
        tree.path.fence(1, child > 0, key)
    } else {
        tree.path.shape().cells().inner_separator(tree.path.inner(1), child - 1, key);
        true
    };
    let is_between = has_bound && key.as_slice() >= first && key.as_slice() <= last;
    is_between.then(|| changes.lower(key.as_slice()))
}

/// Whether an entry of a leaf names pages of its own.
fn has_heads<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, child: usize, key: &mut KeyBuf) -> Outcome<bool, N> {
    if !tree.path.state().counts.may_have_heads() {
        return Ok(false);
    }
    let page = tree.path.child_at(1, child);
    let leaf = leaf_in(tree, page)?;
    let (shape, leaf) = (tree.path.shape(), look(tree, &leaf));
    let cells = shape.cells();
    Ok((0..cells.leaf_count(leaf)).any(|index| {
        cells.leaf_key(leaf, index, key);
        shape.head(key.as_slice(), cells.leaf_value(leaf, index)).is_some()
    }))
}

/// Takes children out of the lowest inner node of the path, which is the lowest node of what is programmed next.
fn cut_off<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, branch: &Branch) -> Outcome<(), N> {
    debug_assert!(!tree.path.is_dirty() && tree.path.leaf().is_none(), "the path has no leaf");
    for child in branch.at..branch.at + branch.count {
        let page = tree.path.child_at(1, child);
        tree.path.replace(page);
        tree.reader.drop_node(page, 0);
    }
    let size = encode_fewer(&tree.path, (branch.at, branch.count), tree.reader.lend()).ok_or(EngineError::TooHigh)?;
    put_inner(tree, 1, size, 0)?;
    tree.path.touch(1);
    Ok(())
}
