//! Overflow: sharing with a neighbour, splitting, and what that changes in the levels above.
//!
//! Nodes that are not on the path are programmed first, each in a page of its own; the path is programmed last, by the commit. A cut before it leaves the tree as it was, since nothing leads
//! to those pages. In the other order a torn page of a sibling would be missing from a tree that leads to it. The half of an inner node that holds the path's child stays in the path's page,
//! the other half leaves it: a node may stand in a page above another only if it is its parent (T3).

use core::ops::Range;

use nandu_cells::plan::Plan;
use nandu_cells::{Cells, SELF};
use nandu_log::Kind;
use nandu_media::tree::Malformed;
use nandu_nand::Nand;

use nandu_index::KeyBuf;

use crate::error::{EngineError, Outcome, corrupt};
use crate::fit::{cut, encode_half, list_room, respliced, separator_before};
use crate::path::Path;
use crate::reader::NodePlace;
use crate::slots::Respliced;
use crate::splice::Splice;
use crate::tree::Tree;
use crate::writer::Change;

/// The leaf of the path is full, or does not fit beside its ancestors: it is divided, with its neighbour if that works out. Reads at most 1 page, appends one
/// less than it leaves leaves, and one for each inner node that is split.
pub(crate) fn overflow<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    entry: (&[u8], &[u8]),
) -> Outcome<(), N> {
    tree.path.stage_leaf();
    // Right, or left of the last.
    let right = tree.path.neighbour(true).is_some();
    // A neighbour that cannot be read is no reason to refuse a change of this leaf.
    let beside =
        tree.path.neighbour(right).and_then(|page| Some((page, tree.reader.node(&mut tree.log, page, 0).ok()?)));
    let bytes = beside.as_ref().map(|(_, place)| tree.reader.at(place));
    let plan = tree.path.plan(entry, bytes.unwrap_or_default(), bytes.map(|_| right));
    let stats = tree.path.stats_mut();
    match (plan.is_shared, plan.parts) {
        (true, 2) => stats.shares += 1,
        (true, _) => stats.triples += 1,
        (false, _) => stats.splits += 1,
    }
    let mut splice = tree.path.leaf_splice(plan.parts, plan.is_shared.then_some(right));
    match beside.filter(|_| plan.is_shared) {
        Some((page, place)) => {
            divide_shared(tree, change, (entry, &plan, &mut splice), (&place, right))?;
            tree.path.replace(page);
            tree.reader.drop_node(page, 0);
            splice.pages.iter().filter(|&&page| page != SELF).for_each(|&page| tree.reader.programmed(page));
        }
        None => divide_alone(tree, change, (entry, &plan, &mut splice))?,
    }
    retire(tree, 0);
    tree.path.begin_splice();
    splice_up(tree, change, splice)?;
    tree.path.end_splice();
    Ok(())
}

/// What is divided: the entry that comes, how, and where the parts go.
type Division<'a> = ((&'a [u8], &'a [u8]), &'a Plan, &'a mut Splice);

/// Divides the leaf and its neighbour. Parts fit the page of the path, and are put together where its leaf stands.
fn divide_shared<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (entry, plan, splice): Division<'_>,
    (neighbour, right): (&NodePlace, bool),
) -> Outcome<(), N> {
    let child = tree.path.child(0);
    let too_large = || corrupt(child, Malformed::PathTooLarge);
    let neighbour = tree.reader.at(neighbour);
    // The part of the path is encoded last, since it stays in the buffer.
    for part in (0..plan.parts).filter(|&part| part != plan.path) {
        let size = tree.path.encode_shared(entry, neighbour, right, plan.part(part)).ok_or_else(too_large)?;
        splice.pages[part] = change.append(&mut tree.log, Kind::Node, tree.path.seal_part(size))?;
    }
    let size = tree.path.encode_shared(entry, neighbour, right, plan.part(plan.path)).ok_or_else(too_large)?;
    tree.path.stage_part(size);
    Ok(())
}

/// Divides the leaf. Parts may be as large as a page of their own takes, and are put together in the reader's buffer.
fn divide_alone<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (entry, plan, splice): Division<'_>,
) -> Outcome<(), N> {
    let child = tree.path.child(0);
    let too_large = || corrupt(child, Malformed::PathTooLarge);
    let out = tree.reader.lend();
    let shape = *tree.path.shape();
    for part in (0..plan.parts).filter(|&part| part != plan.path) {
        let size = tree.path.encode_alone(entry, plan.part(part), out).ok_or_else(too_large)?;
        let end = out.len();
        shape.seal_leaf(tree.path.state().height, out, size, end);
        splice.pages[part] = change.append(&mut tree.log, Kind::Node, out)?;
    }
    let size = tree.path.encode_alone(entry, plan.part(plan.path), out).ok_or_else(too_large)?;
    if tree.path.stage(&out[shape.own_front()..][..size], &[]) { Ok(()) } else { Err(too_large()) }
}

/// Ascending keys: the full leaf stays where it is, and a new one begins with this entry.
pub(crate) fn start<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (key, value): (&[u8], &[u8]),
) -> Outcome<(), N> {
    tree.path.stats_mut().starts += 1;
    let mut splice = tree.path.leaf_splice(2, None);
    let mut full = tree.path.page_of(0);
    if tree.path.is_dirty() {
        // In a batch the leaf is not on flash as it is now.
        tree.path.stage_leaf();
        full = change.append(&mut tree.log, Kind::Node, tree.path.seal_staged())?;
        tree.reader.programmed(full);
        tree.path.unstage();
        retire(tree, 0);
    }
    if !tree.path.stage_new(key, value) {
        return Err(corrupt(full, Malformed::PathTooLarge));
    }
    splice.pages[0] = full;
    splice_staged(tree, change, splice)
}

/// The leaf that is staged comes to stand beside the one of the path, which stays where it is; this separates them.
pub(crate) fn insert_leaf<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (separator, is_before): (&[u8], bool),
) -> Outcome<(), N> {
    debug_assert!(!tree.path.is_dirty(), "the leaf of the path is on flash");
    let mut splice = tree.path.leaf_splice(2, None);
    splice.pages[usize::from(is_before)] = tree.path.page_of(0);
    tree.path.lend(separator);
    splice_staged(tree, change, splice)
}

/// The leaf that is staged takes its place among the children of level 1.
fn splice_staged<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, change: &mut Change, splice: Splice) -> Outcome<(), N> {
    tree.path.begin_splice();
    splice_up(tree, change, splice)?;
    tree.path.end_splice();
    Ok(())
}

/// Two leaves that fit one page become one: a neighbour that fits beside what is left of the path's leaf is taken in. The leaf is programmed again anyway, so this costs a read or two and no
/// program, and frees a page. Without it a chip stays full where every second record was deleted: no leaf is empty, and only keys between those that are left have room.
pub(crate) fn join<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>) -> Outcome<(), N> {
    if !tree.path.take_sparse() {
        return Ok(());
    }
    let kept = list_room(tree);
    for right in [true, false] {
        let Some(page) = tree.path.neighbour(right) else { continue };
        // A leaf that cannot be read is no reason to refuse a change of this one.
        let Ok(place) = tree.reader.node(&mut tree.log, page, 0) else { continue };
        if !tree.path.stage_joined((tree.reader.at(&place), right), kept) {
            continue;
        }
        tree.path.stats_mut().joins += 1;
        let splice = tree.path.leaf_splice(1, Some(right));
        tree.path.replace(page);
        tree.reader.drop_node(page, 0);
        retire(tree, 0);
        tree.path.begin_splice();
        let Respliced::Fits { size, index } = respliced(&tree.path, 1, &splice, tree.reader.lend()) else {
            return Err(EngineError::TooHigh);
        };
        put_inner(tree, 1, size, index)?;
        tree.path.end_splice();
        return Ok(());
    }
    Ok(())
}

/// Carries new children up from level 1 until a node takes them without being split.
fn splice_up<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, change: &mut Change, mut splice: Splice) -> Outcome<(), N> {
    let mut level = 1;
    loop {
        if level > tree.path.top() {
            return if tree.path.grow(&splice, tree.reader.lend()) { Ok(()) } else { Err(EngineError::TooHigh) };
        }
        match respliced(&tree.path, level, &splice, tree.reader.lend()) {
            Respliced::Fits { size, index } => return put_inner(tree, level, size, index),
            Respliced::Oversize { count } => {
                splice = split_inner(tree, change, (level, &splice, count))?;
            }
        }
        level += 1;
    }
}

/// Splits the path's node of this level, with what is spliced in; its two halves are what is spliced in above.
fn split_inner<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    change: &mut Change,
    (level, splice, count): (u8, &Splice, usize),
) -> Outcome<Splice, N> {
    tree.path.stats_mut().inner_splits += 1;
    let path_index = splice.path_index();
    let cut = cut(&tree.path, level, splice, count);
    debug_assert!(0 < cut && cut < count, "both halves have children");
    let path_is_right = path_index >= cut;
    let (mine, other) = if path_is_right { (cut..count, 0..cut) } else { (0..cut, cut..count) };
    seal_half(tree, level, splice, other)?;
    let page = change.append(&mut tree.log, Kind::Node, tree.reader.lend())?;
    let size = encode_half(&tree.path, level, splice, mine.clone(), tree.reader.lend()).ok_or(EngineError::TooHigh)?;
    lend_separator(&mut tree.path, level, splice, cut);
    put_inner(tree, level, size, path_index - mine.start)?;
    Ok(tree.path.halves(level, page, path_is_right))
}

/// Lends what separates the halves to what is spliced in above. Nobody needs what was lent for this node any more.
#[inline(never)]
fn lend_separator<C: Cells>(path: &mut Path<'_, C>, level: u8, splice: &Splice, cut: usize) {
    let mut key = KeyBuf::EMPTY;
    separator_before(path, level, splice, cut, &mut key);
    path.lend(key.as_slice());
}

/// Puts these children of the node together as a page of their own, in the reader's buffer. Its key is off the stack when that is programmed.
#[inline(never)]
fn seal_half<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    level: u8,
    splice: &Splice,
    children: Range<usize>,
) -> Outcome<(), N> {
    let mut key = KeyBuf::EMPTY;
    match children.start {
        0 => tree.path.low_key(level, &mut key),
        first => separator_before(&tree.path, level, splice, first, &mut key),
    }
    let (shape, levels) = (*tree.path.shape(), (tree.path.state().height, level));
    let out = tree.reader.lend();
    let size = encode_half(&tree.path, level, splice, children, out).ok_or(EngineError::TooHigh)?;
    shape.seal_inner(levels, out, size, key.as_slice()).ok_or(EngineError::TooHigh)
}

/// The node at the front of the reader's buffer takes the place of the path's node of this level.
pub(crate) fn put_inner<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    level: u8,
    size: usize,
    index: usize,
) -> Outcome<(), N> {
    debug_assert!(level > 0 && level <= tree.path.top(), "an inner node of the path");
    retire(tree, level);
    let node = &tree.reader.lend()[..size];
    if tree.path.replace_inner(level, node, index) { Ok(()) } else { Err(EngineError::TooHigh) }
}

/// The path's node of this level is replaced.
pub(crate) fn retire<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, level: u8) {
    if let Some(page) = tree.path.retire(level) {
        tree.reader.drop_node(page, level);
    }
}
