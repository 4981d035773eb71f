//! Which pages live, asked of the inner nodes.

use nandu_cells::Cells;
use nandu_index::KeyBuf;
use nandu_media::features::SNAPSHOTS;
use nandu_media::tree::{HEIGHT_MAX, Malformed};
use nandu_nand::{Nand, PageAddr};

use crate::changes::Changes;
use crate::descend::{descend, load_root};
use crate::error::{Outcome, corrupt};
use crate::large::{HeadCounts, visit_leaf, visit_open, visit_waiting};
use crate::list::Waiting;
use crate::path::Path;
use crate::reserved::{END, FIRST, PREFIX, slot_key};
use crate::slots::{PENDING, Seek};
use crate::tree::{Tree, Visit};
use crate::values::Values;

/// Visits every page that lives, each once: a commit without a path that dies with the next one, members of the window that hold nothing else, copies that wait, what changes name that wait and the value under way, and the tree with what its records name. Returns how many heads of values there are.
pub(crate) fn visit_all<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (waiting, values, bare): (&Waiting<'_>, &Values<'_>, Option<PageAddr>),
    visit: Visit<'_, N>,
) -> Outcome<HeadCounts, N> {
    debug_assert!(!tree.path.is_dirty(), "what lives is on flash");
    for page in bare.iter().copied().chain(waiting.window.lonely(usize::MAX)) {
        visit(&mut tree.log, page, &[]);
    }
    values.copies().iter().for_each(|copy| visit(&mut tree.log, PageAddr(copy.page), copy.key()));
    let waits = visit_waiting(tree, &waiting.changes, visit);
    visit_open(tree, values, visit)?;
    let youngest = values.snapshots().held().next_back().map(|it| it.slot);
    let heads = live_pages(tree, (&waiting.changes, youngest), visit)?;
    Ok(HeadCounts { count: heads.count + waits, pages: heads.pages + waits, ..heads })
}

/// Visits every page of the tree that lives, each once. Reads the inner nodes that are not in memory; and where there may be heads of large values the leaves. Returns how many heads there are, and how many leaves, where the youngest snapshot has this slot.
fn live_pages<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (changes, youngest): (&Changes<'_>, Option<u8>),
    visit: Visit<'_, N>,
) -> Outcome<HeadCounts, N> {
    debug_assert!(!tree.path.is_dirty(), "what lives is on flash");
    load_root(tree)?;
    let (may_have, mut heads) = (tree.path.state().counts.may_have_heads(), HeadCounts::default());
    let cells = tree.path.shape().cells();
    let mut key = KeyBuf::EMPTY;
    if tree.path.top() == 0 {
        let root = tree.path.state().root;
        visit(&mut tree.log, PageAddr(root), &[]);
        return if may_have { visit_leaf(tree, (root, changes), visit) } else { Ok(heads) };
    }
    cells.minimum(&mut key);
    let mut seen = [PENDING; HEIGHT_MAX];
    // Each node of level 1 is in a page of its own, so there are no more of them than pages.
    for _ in 0..tree.path.shape().page_count() {
        descend(tree, Seek::At(key.as_slice()), 1)?;
        for level in (1..=tree.path.top()).rev() {
            let page = tree.path.page_of(level);
            if seen[usize::from(level)] != page {
                seen[usize::from(level)] = page;
                // A node is the lowest in its page unless it has a child there.
                if cells.inner_path(tree.path.inner(level)).is_none() {
                    visit(&mut tree.log, PageAddr(page), &[]);
                }
            }
        }
        debug_assert!(!tree.path.is_dirty(), "nothing changes on the way");
        let count = tree.path.child_count(1);
        if SNAPSHOTS && let Some(slot) = youngest {
            // How many leaves begin below a key.
            let below = |bound: [u8; PREFIX]| {
                let is_first = *key.as_slice() < bound[..];
                u32::from(is_first) + cells.inner_find(tree.path.inner(1), &bound, true) as u32
            };
            heads.leaves += (count as u32).saturating_sub(below(END).saturating_sub(below(FIRST)));
            heads.kept += below(slot_key(slot + 1)).saturating_sub(below(slot_key(slot)));
        }
        for index in 0..count {
            let child = tree.path.child_at(1, index);
            if child < tree.path.shape().page_count() {
                visit(&mut tree.log, PageAddr(child), &[]);
            }
            if may_have {
                let of_leaf = visit_leaf(tree, (child, changes), visit)?;
                (heads.count, heads.pages) = (heads.count + of_leaf.count, heads.pages + of_leaf.pages);
            }
        }
        match pass_node(&tree.path, &mut key) {
            Some(true) => {}
            Some(false) => return Ok(heads),
            None => return Err(corrupt(tree.path.page_of(tree.path.top()), Malformed::Node)),
        }
    }
    Ok(heads)
}

/// Goes on to what is behind the path's node of level 1, in which the key is; returns whether there is anything. `None` for separators that do not ascend: they would lead in circles. The other key is off the stack when pages are read.
#[inline(never)]
fn pass_node<C: Cells>(path: &Path<'_, C>, key: &mut KeyBuf) -> Option<bool> {
    let mut fence = KeyBuf::EMPTY;
    let has_more = path.fence(1, true, &mut fence);
    let ascends = !has_more || fence.as_slice() > key.as_slice();
    if has_more {
        *key = fence;
    }
    ascends.then_some(has_more)
}
