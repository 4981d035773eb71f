//! From the root down to a leaf.

use nandu_cells::Cells;
use nandu_nand::Nand;

use crate::changes::Changes;
use crate::error::{Outcome, corrupt};
use crate::reader::NodePlace;
use crate::slots::Seek;
use crate::tree::Tree;

/// Makes the root present.
pub(crate) fn load_root<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>) -> Outcome<(), N> {
    if tree.path.holds_root() {
        return Ok(());
    }
    let (top, root) = (tree.path.top(), tree.path.state().root);
    match top {
        0 => load_leaf(tree, root),
        _ => load_inner(tree, top, root),
    }
}

/// Makes an inner node present; what was below is gone. Reads at most 1 page.
pub(crate) fn load_inner<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, level: u8, page: u32) -> Outcome<(), N> {
    let place = tree.reader.node(&mut tree.log, page, level)?;
    tree.path.take_inner(level, page, tree.reader.at(&place)).map_err(|why| corrupt(page, why))?;
    // The root is always in the path.
    if level < tree.path.top() {
        tree.reader.keep(page, level, &place);
    }
    Ok(())
}

/// Makes the leaf in a page present, where it is changed. Reads at most 1 page.
pub(crate) fn load_leaf<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, page: u32) -> Outcome<(), N> {
    let place = tree.reader.node(&mut tree.log, page, 0)?;
    tree.path.take_leaf(page, tree.reader.at(&place)).map_err(|why| corrupt(page, why))
}

/// Goes down and makes every inner node of the path from the root to level `floor`, at least 1, present. Reads those that are not in memory.
pub(crate) fn descend<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, seek: Seek<'_>, floor: u8) -> Outcome<(), N> {
    debug_assert!(floor > 0 && !tree.path.is_dirty(), "what is not programmed is not left");
    load_root(tree)?;
    let mut level = tree.path.top();
    while level >= floor {
        tree.path.seek(level, seek);
        if level == floor {
            break;
        }
        level -= 1;
        let child = tree.path.child(level);
        if !tree.path.holds(level, child) {
            load_inner(tree, level, child)?;
        }
    }
    Ok(())
}

/// Goes down to the leaf of a key and makes it present, where it is changed.
pub(crate) fn descend_to_leaf<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, key: &[u8]) -> Outcome<(), N> {
    descend(tree, Seek::At(key), 1)?;
    if tree.path.leaf().is_none() {
        let page = tree.path.child(0);
        load_leaf(tree, page)?;
    }
    debug_assert!(tree.path.leaf().is_some(), "the leaf is here");
    Ok(())
}

/// The page of the leaf whose range holds a key. Inner nodes are searched where they are, in the path or in memory; the path is changed only where one has to be read.
pub(crate) fn find_leaf<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, key: &[u8]) -> Outcome<u32, N> {
    load_root(tree)?;
    let cells = tree.path.shape().cells();
    let page_bits = tree.path.shape().page_bits();
    let mut page = tree.path.page_of(tree.path.top());
    for level in (1..=tree.path.top()).rev() {
        let kept;
        let node = if tree.path.holds(level, page) {
            tree.path.inner(level)
        } else if let Some(place) = tree.reader.kept(page, level) {
            kept = place;
            tree.reader.at(&kept)
        } else {
            descend(tree, Seek::At(key), 1)?;
            return Ok(tree.path.child(0));
        };
        let index = cells.inner_find(node, key, false);
        if cells.inner_path(node) != Some(index) {
            page = cells.inner_child(node, index, page_bits);
        }
    }
    Ok(page)
}

/// A leaf, for looking at only.
pub(crate) enum Leaf {
    /// The leaf of the path.
    OfPath,
    /// One that was read, or is kept.
    Elsewhere(NodePlace),
}

/// Finds the leaf in a page. Reads at most 1 page.
pub(crate) fn leaf_in<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, page: u32) -> Outcome<Leaf, N> {
    if tree.path.holds(0, page) {
        return Ok(Leaf::OfPath);
    }
    tree.reader.leaf(&mut tree.log, page).map(Leaf::Elsewhere)
}

/// A leaf, where it is.
pub(crate) fn look<'t, N: Nand, C: Cells>(tree: &'t Tree<'_, N, C>, leaf: &Leaf) -> &'t [u8] {
    match leaf {
        Leaf::OfPath => tree.path.held_leaf(),
        Leaf::Elsewhere(place) => tree.reader.at(place),
    }
}

/// The value of a key, with what waits.
pub(crate) fn value_at<'t, N: Nand, C: Cells>(
    tree: &'t mut Tree<'_, N, C>,
    changes: &'t Changes<'_>,
    key: &[u8],
) -> Outcome<Option<&'t [u8]>, N> {
    if let Ok(index) = changes.find(key) {
        return Ok(changes.value(index));
    }
    let page = find_leaf(tree, key)?;
    let place = leaf_in(tree, page)?;
    let (cells, leaf) = (tree.path.shape().cells(), look(tree, &place));
    Ok(cells.leaf_find(leaf, key).ok().map(|index| cells.leaf_value(leaf, index)))
}
