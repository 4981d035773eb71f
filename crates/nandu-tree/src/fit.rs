//! What fits: whether nodes keep to their share of the page with new children, where they are split, and how often leaves are.

use core::ops::Range;

use nandu_cells::plan::{PARTS_MAX, ascending_cut, inner_cut};
use nandu_cells::{Cells, InnerRun, LeafRun, RunEdit, Stretch};
use nandu_index::{Edit, KeyBuf};
use nandu_media::tree::HEIGHT_MAX;
use nandu_nand::Nand;

use crate::path::Path;
use crate::reserved::PREFIX;
use crate::slots::Respliced;
use crate::splice::Splice;
use crate::tree::Tree;

/// Inner nodes that may have to be split when the leaf becomes up to three.
pub(crate) fn inner_splits_max<C: Cells>(path: &Path<'_, C>) -> u32 {
    let cells = path.shape().cells();
    let separator = match cells.key_size() {
        0 => path.shape().key_size_max() + if path.state().counts.has_snapshots { PREFIX } else { 0 } + 2,
        size => usize::from(size),
    };
    if path.top() > 0 && !path.holds(1, path.page_of(1)) {
        return u32::from(path.top() + 1);
    }
    let mut splits = 0;
    debug_assert!(path.shape().limits().height_max() > usize::from(path.top()), "the path is no higher than can be");
    for level in 1..=path.top() {
        let node = path.inner(level);
        let count = cells.inner_count(node) + PARTS_MAX - 1;
        let size = match cells.key_size() {
            0 => node.len() + (PARTS_MAX - 1) * (separator + 4) + count,
            // A new separator may widen all.
            _ => node.len().max(16 + count * (separator + 4)),
        };
        if !is_oversize(path, level, count, size) {
            break;
        }
        splits += 1;
    }
    splits
}

/// How many times this leaf, that of the path, may have to be divided when these edits of it are made: none if they surely fit.
pub(crate) fn splits_by<'e, C: Cells>(path: &Path<'_, C>, leaf: &[u8], edits: impl Iterator<Item = Edit<'e>>) -> u32 {
    let room = path.room();
    let (size, growth) = grown(path.shape().cells(), leaf, edits);
    if growth == 0 || size <= room { 0 } else { 1 + (growth / (room / 4).max(1)) as u32 }
}

/// Part of the pages that may live, as a divisor, that has to be left for leaves to leave room for lists.
const LEFT_SHARE: u32 = 8;

/// Bytes that a leaf leaves free for what a commit lists: none on a chip that is nearly full.
pub(crate) fn list_room<N: Nand, C: Cells>(tree: &Tree<'_, N, C>) -> usize {
    let is_plenty = tree.log.has_room(tree.log.capacity_pages() / LEFT_SHARE);
    if is_plenty { tree.path.shape().list_room() } else { 0 }
}

/// Bytes of a leaf when these edits of it are made, at most. What is replaced gives its room.
pub(crate) fn size_with<'e, C: Cells>(cells: C, leaf: &[u8], edits: impl Iterator<Item = Edit<'e>>) -> usize {
    grown(cells, leaf, edits).0
}

/// That size, and how much of it is of entries that grow or come, each as if alone.
fn grown<'e, C: Cells>(cells: C, leaf: &[u8], edits: impl Iterator<Item = Edit<'e>>) -> (usize, usize) {
    let (mut most, mut sum, mut count) = (0, 0, 0);
    for edit in edits {
        let Some(value) = edit.value else { continue };
        let at = cells.leaf_find(leaf, edit.key);
        let (Ok(index) | Err(index)) = at;
        let run_edit = RunEdit { at: index, replaces: at.is_ok(), key: edit.key, value };
        let run = LeafRun::new(Stretch::whole(cells, leaf), Stretch::NONE, Some(run_edit));
        // What all entries grow by when this one is among them, and what it takes itself.
        let growth = cells.leaf_size(&run, 0..run.count()).saturating_sub(leaf.len());
        most = most.max(growth);
        let replaced = at.map_or(0, |index| cells.entry_size(edit.key, cells.leaf_value(leaf, index)));
        sum += cells.entry_size(edit.key, value).saturating_sub(replaced);
        count += usize::from(growth > 0);
    }
    let size = match count {
        0 | 1 => leaf.len() + most,
        // Where first and last edit both widen a column, it is one bit wider than with either.
        _ => leaf.len() + most + sum + (cells.leaf_count(leaf) + count) / 8 + 2,
    };
    (size, sum)
}

fn splice_run<'a, C: Cells>(path: &'a Path<'_, C>, level: u8, splice: &'a Splice) -> InnerRun<'a> {
    splice.run((path.inner(level), path.page_of(level)), path.shape().page_bits(), path.separators())
}

/// Encodes the node of this level with new children at the front of `out`, unless it would be too large. One that loses children is never split.
pub(crate) fn respliced<C: Cells>(path: &Path<'_, C>, level: u8, splice: &Splice, out: &mut [u8]) -> Respliced {
    let cells = path.shape().cells();
    let run = splice_run(path, level, splice);
    let count = run.count(cells);
    if splice.count > splice.removed && is_oversize(path, level, count, cells.inner_size(&run, 0..count)) {
        return Respliced::Oversize { count };
    }
    match cells.inner_encode(&run, 0..count, out) {
        Some(size) => Respliced::Fits { size, index: splice.path_index() },
        None => Respliced::Oversize { count },
    }
}

/// Where the node of this level with new children is split. Off the stack when its halves are programmed.
#[inline(never)]
pub(crate) fn cut<C: Cells>(path: &Path<'_, C>, level: u8, splice: &Splice, count: usize) -> usize {
    let run = splice_run(path, level, splice);
    let mut key = KeyBuf::EMPTY;
    // Ascending keys leave full nodes behind at every level.
    let ascends = path.is_ascending() && splice.path_index() + 1 == count;
    let cut = if ascends { ascending_cut } else { inner_cut };
    cut(path.shape().cells(), &run, &mut key)
}

/// Encodes these children of the node with new ones at the front of `out`.
pub(crate) fn encode_half<C: Cells>(
    path: &Path<'_, C>,
    level: u8,
    splice: &Splice,
    children: Range<usize>,
    out: &mut [u8],
) -> Option<usize> {
    path.shape().cells().inner_encode(&splice_run(path, level, splice), children, out)
}

/// Copies the separator before this child of the node with new ones.
pub(crate) fn separator_before<C: Cells>(
    path: &Path<'_, C>,
    level: u8,
    splice: &Splice,
    child: usize,
    out: &mut KeyBuf,
) {
    splice_run(path, level, splice).separator(path.shape().cells(), child - 1, out);
}

fn is_oversize<C: Cells>(path: &Path<'_, C>, level: u8, count: usize, size: usize) -> bool {
    let (height, limits) = (path.top() + 1, path.shape().limits());
    if level == path.top() && usize::from(height) == limits.height_max() {
        return size > limits.highest_root_size();
    }
    let root_children = path.child_count(path.top());
    limits.must_split(level, height, count, size) || limits.should_split(level, height, count, size, root_children)
}

/// Encodes the node of this level without the path's child at the front of `out`.
pub(crate) fn encode_without<C: Cells>(path: &Path<'_, C>, level: u8, out: &mut [u8]) -> Option<usize> {
    let cells = path.shape().cells();
    let node = path.inner(level);
    let count = cells.inner_count(node);
    debug_assert!(count > 1, "a child is left");
    let splice = Splice { at: path.index(level), removed: 1, count: 0, pages: [0; PARTS_MAX] };
    cells.inner_encode(&splice_run(path, level, &splice), 0..count - 1, out)
}

/// Encodes the lowest inner node of the path without so many children from this one on at the front of `out`.
pub(crate) fn encode_fewer<C: Cells>(
    path: &Path<'_, C>,
    (at, removed): (usize, usize),
    out: &mut [u8],
) -> Option<usize> {
    let count = path.child_count(1);
    debug_assert!(removed < count && at + removed <= count, "a child is left");
    let splice = Splice { at, removed, count: 0, pages: [0; PARTS_MAX] };
    path.shape().cells().inner_encode(&splice_run(path, 1, &splice), 0..count - removed, out)
}

/// Whether the leaf is the last one of the tree.
pub(crate) fn is_at_end<C: Cells>(path: &Path<'_, C>) -> bool {
    (1..=path.top()).all(|level| path.index(level) + 1 == path.child_count(level))
}

/// Bytes of a child of an inner node where there is none yet: a page number and a short separator.
const CHILD_SIZE: usize = 8;

/// Bytes up to which ascending keys fill a leaf.
///
/// They fill one leaf after the other beside the youngest path, whose nodes have few children yet. A leaf that does not fit beside them as they become takes two programs whenever it
/// changes or is moved; on a full chip full of such leaves, moving uses up what it gains, for ever. So room is left for as many ancestors as there are when the chip is
/// full of leaves, each as large as it becomes before it is split.
pub(crate) fn ascending_size_max<N: Nand, C: Cells>(tree: &Tree<'_, N, C>) -> usize {
    let path = &tree.path;
    let (shape, top, leaves_max) = (path.shape(), path.top(), tree.log.capacity_pages() as usize);
    let limits = shape.limits();
    let child_size = |level: u8| match level.min(top) {
        0 => CHILD_SIZE,
        // The front of a node weighs about as much as a child.
        level => path.inner(level).len().div_ceil(path.child_count(level) + 1).max(1),
    };
    // A node that was made while the tree was lower stays as large as it became then.
    let mut grown = [0; HEIGHT_MAX];
    let mut height = 2;
    loop {
        let root = limits.grown_root_size(height);
        let root_children = root / child_size(height - 1);
        let mut leaves = root_children;
        for level in 1..height - 1 {
            let size = limits.grown_size(level, height, child_size(level), root_children);
            leaves = leaves.saturating_mul(size / child_size(level));
            grown[usize::from(level)] = size.max(grown[usize::from(level)]);
        }
        let is_full = height > top && leaves >= leaves_max;
        if is_full || usize::from(height) == limits.height_max() {
            let room = shape.page_size() - shape.front(height);
            let inner = root + grown.iter().sum::<usize>();
            // However long the path, a leaf of some entries is worth a page.
            return room.saturating_sub(inner).max(room / 3);
        }
        height += 1;
    }
}
