//! Keeping a leaf whole: a snapshot gets all of its entries at once, in a leaf of its own.
//!
//! What is changed is seldom alone: where a snapshot keeps one entry after the other, each takes a program, and wherever it comes to stand others stand, which are programmed again. A whole leaf is one page, which is never touched
//! again. So a change of an entry of which nothing is kept yet keeps its neighbours, too, as long as there is plenty of room. It is not done where a part of the leaf is kept or waits, or an entry names pages of its own.
//!
//! The new leaf is the old one, with the snapshot's prefix before each key. It promises nothing before a commit; a cut leaves the entries where they are.

use nandu_cells::Cells;
use nandu_index::KeyBuf;
use nandu_log::{Claim, LogError};
use nandu_media::tree::Malformed;
use nandu_nand::Nand;
use zerocopy::FromBytes;

use crate::descend::{descend, descend_to_leaf, leaf_in, look};
use crate::error::{EngineError, Outcome, corrupt};
use crate::fit::inner_splits_max;
use crate::growth::claim_growth;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::reserved::{PREFIX, slot_key};
use crate::slots::Seek;
use crate::split::insert_leaf;
use crate::sync::waits_beside;
use crate::tree::Tree;
use crate::writer::{Change, DEATHS, Need};

/// Part of the pages that may live, as a divisor, that has to be left.
const LEFT_SHARE: u32 = 8;

/// Where a leaf comes to stand.
#[derive(Clone, Copy)]
enum Beside {
    Behind,
    Before,
}

/// Keeps the leaf of a key in this slot; the memory is for two keys. Returns false if that cannot be, with nothing changed. 1 program, or 2 if it does not fit beside its ancestors, and 1 for each inner node that is split.
///
/// Apart from the change that follows, so that what it takes is off the stack then.
#[inline(never)]
pub(crate) fn keep_leaf<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (slot, key): (u8, &[u8]),
    memory: &mut [u8],
) -> Outcome<bool, N> {
    debug_assert!(slot > 0, "slots begin at 1");
    let Ok((bounds, _)) = <[KeyBuf; 2]>::mut_from_prefix(memory) else { return Ok(false) };
    for _ in 0..CLAIMS_MAX {
        let capacity = keeper.tree().log.capacity_pages();
        if !keeper.tree().log.has_room(capacity / LEFT_SHARE) || waits_beside(keeper, key)? {
            return Ok(false);
        }
        keeper.ready()?;
        let Some(page) = whole_leaf(keeper.parts().0, (slot, key), bounds)? else { return Ok(false) };
        let [low, high] = bounds;
        let changes = &keeper.waiting().changes;
        if changes.lower(low.as_slice()) != changes.lower(high.as_slice()) {
            return Ok(false);
        }
        let Some(beside) = place_of(keeper.parts().0, (low, high))? else { return Ok(false) };
        let splits = inner_splits_max(&keeper.tree().path);
        let need = Need { want: Claim::Grow, pages: 3 + splits, live: 2 + splits, deaths: DEATHS };
        match claim_growth(keeper, need) {
            Ok(Some(mut change)) => {
                let made = graft(keeper.parts().0, &mut change, (page, low, high), beside);
                keeper.count(false, (0, 0));
                keeper.keep(change, made)?;
                keeper.values_mut().kept_leaf();
                return Ok(true);
            }
            Ok(None) => {}
            Err(EngineError::Log(LogError::Full) | EngineError::TooHigh) => return Ok(false),
            Err(error) => return Err(keeper.undo(error)),
        }
    }
    Ok(false)
}

/// The page of the leaf of a key, if it has several entries and all of them can be kept as they are; and between which keys they come to stand then. These are bounds of the leaf's own, so that its neighbours find their places beside it.
fn whole_leaf<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (slot, key): (u8, &[u8]),
    [low, high]: &mut [KeyBuf; 2],
) -> Outcome<Option<u32>, N> {
    descend(tree, Seek::At(key), 1)?;
    let page = tree.path.child(0);
    let leaf = leaf_in(tree, page)?;
    let (shape, leaf) = (tree.path.shape(), look(tree, &leaf));
    let (cells, count) = (shape.cells(), shape.cells().leaf_count(leaf));
    // The first key comes to stand here.
    for index in (0..count).rev() {
        cells.leaf_key(leaf, index, high);
        if shape.is_reserved(high.as_slice()) || shape.head(high.as_slice(), cells.leaf_value(leaf, index)).is_some() {
            return Ok(None);
        }
    }
    low.set(&[]);
    tree.path.fence(0, false, low);
    // What flash says may have its first entry below its bound.
    let is_in_order = low.as_slice() <= high.as_slice();
    if count < 2 || !is_in_order || leaf.len() + PREFIX > shape.own_room() {
        return Ok(None);
    }
    // Beside records of snapshots bounds are of these.
    if shape.is_reserved(low.as_slice()) {
        low.set(high.as_slice());
    }
    let is_last = !tree.path.fence(0, true, high) || shape.is_reserved(high.as_slice());
    // Keys of users leave room for this.
    let is_whole = if is_last { high.set(&slot_key(slot + 1)) } else { high.prepend(&slot_key(slot)) };
    Ok((low.prepend(&slot_key(slot)) && is_whole).then_some(page))
}

/// Where the leaf comes to stand beside the one that the path leads to then; `None` if something is kept between its bounds, or what stands there is on both sides.
fn place_of<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (low, high): (&KeyBuf, &KeyBuf),
) -> Outcome<Option<Beside>, N> {
    descend_to_leaf(tree, low.as_slice())?;
    let (path, cells) = (&tree.path, tree.path.shape().cells());
    if (1..=path.top()).any(|level| cells.inner_find(path.inner(level), high.as_slice(), true) != path.index(level)) {
        return Ok(None);
    }
    let leaf = path.held_leaf();
    let count = cells.leaf_count(leaf);
    let (Ok(above) | Err(above)) = cells.leaf_find(leaf, high.as_slice());
    Ok(match cells.leaf_find(leaf, low.as_slice()) {
        Err(at) if at != above || count == 0 => None,
        Err(0) => Some(Beside::Before),
        Err(at) if at == count => Some(Beside::Behind),
        _ => None,
    })
}

/// Puts the leaf into the tree, beside the one of the path, which stays where it is.
fn graft<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (page, low, high): (u32, &KeyBuf, &KeyBuf),
    beside: Beside,
) -> Outcome<(), N> {
    debug_assert!(low.as_slice() < high.as_slice(), "entries have a place between both");
    descend_to_leaf(tree, low.as_slice())?;
    let place = tree.reader.leaf(&mut tree.log, page)?;
    if !tree.path.stage(tree.reader.at(&place), &low.as_slice()[..PREFIX]) {
        return Err(corrupt(page, Malformed::PathTooLarge));
    }
    let is_before = matches!(beside, Beside::Before);
    insert_leaf(tree, change, (if is_before { high } else { low }.as_slice(), is_before))
}
