//! Moving what lives out of a block that is to be erased.
//!
//! A move is a copy of a page's lowest node with the path above it, as a page that promises nothing. If the power goes before the next commit it never
//! happened: the source counts until then.

use nandu_cells::Cells;
use nandu_index::KeyBuf;
use nandu_log::Victim;
use nandu_media::tree::Malformed;
use nandu_nand::{Nand, PageAddr};

use crate::commit::tell;
use crate::descend::{descend, load_inner, load_leaf, load_root};
use crate::error::{Outcome, corrupt};
use crate::list::Waiting;
use crate::siblings::{MOVED_MAX, write_moved};
use crate::slots::Seek;
use crate::tree::Tree;

/// The lowest level of a page that lives, with the path above that level present; `None` if it is dead.
///
/// A page lives exactly while its lowest node does (T3), and a node is found from the root by a key of its own: so this reads the page, and at most the path to it.
pub(crate) fn lives<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, page: PageAddr) -> Outcome<Option<u8>, N> {
    debug_assert!(!tree.path.is_dirty(), "nothing moves while a change is under way");
    let PageAddr(page) = page;
    let body = tree.reader.body(&mut tree.log, page)?;
    let (lowest, is_bare) = (body.lowest(), body.levels() == 0);
    if is_bare {
        return Ok(None);
    }
    if lowest >= tree.path.top() {
        // The lowest node is the root, or was one.
        return Ok((page == tree.path.state().root && lowest == tree.path.top()).then_some(lowest));
    }
    let mut key = KeyBuf::EMPTY;
    if lowest == 0 {
        let place = tree.reader.read_node(&mut tree.log, page, 0)?;
        let (cells, leaf) = (tree.path.shape().cells(), tree.reader.at(&place));
        if cells.leaf_count(leaf) == 0 {
            return Ok(None);
        }
        cells.leaf_key(leaf, 0, &mut key);
    } else {
        key.set(tree.reader.locator());
    }
    if !tree.path.shape().key_fits(key.as_slice()) {
        return Err(corrupt(page, Malformed::Node));
    }
    descend(tree, Seek::At(key.as_slice()), lowest + 1)?;
    Ok((tree.path.child(lowest) == page).then_some(lowest))
}

/// Puts the lowest node of a page that lives into the buffers, to be programmed again with the path above it, which is present.
pub(crate) fn lift<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, level: u8, page: PageAddr) -> Outcome<(), N> {
    let PageAddr(page) = page;
    load_root(tree)?;
    debug_assert!(tree.path.child(level) == page, "the page lives");
    if level == 0 {
        if tree.path.leaf().is_none() {
            load_leaf(tree, page)?;
        }
    } else if !tree.path.holds(level, page) {
        load_inner(tree, level, page)?;
    }
    debug_assert!(level <= tree.path.top(), "a node of the path");
    tree.path.touch(level);
    Ok(())
}

/// Programs the page of a victim elsewhere, as it was lifted, and others as [`write_moved`] says, so many in all. Returns how many. The pages are dead with the next commit, or when they
/// leave the window.
pub(crate) fn copy<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    (victim, most): (&Victim, usize),
) -> Outcome<u32, N> {
    let moved = 1 + write_moved(tree, victim, most.clamp(1, MOVED_MAX) - 1)?;
    tree.path.stats_mut().moves += moved as u64;
    debug_assert!(tree.path.replaced().as_slice().contains(&victim.page().0), "the source is replaced");
    let is_all = tell(tree, waiting, None);
    debug_assert!(is_all, "a move is made where there is room for its deaths");
    Ok(moved as u32)
}
