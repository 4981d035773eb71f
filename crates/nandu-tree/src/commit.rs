//! Programming the path: as a page that promises nothing, or as the commit.
//!
//! A leaf that does not fit beside its ancestors is programmed before them: a cut between the two leaves a page that nothing leads to. What a commit replaces is told to the log right before
//! it, and counts as dead once it is durable, not earlier: else the log might erase a page that the tree before the cut leads to.

use nandu_cells::Cells;
use nandu_media::features::GROUP;
use nandu_media::tree::Malformed;
use nandu_nand::{Nand, PageAddr};

use crate::error::{EngineError, Outcome, corrupt};
use crate::list::{List, Waiting};
use crate::tree::Tree;
use crate::window::Leaf;
use crate::writer::{Change, Pen};

/// Puts the page of the path together. A leaf that does not fit there is programmed into a page of its own. Returns how many bytes are free for what a commit lists.
pub(crate) fn seal<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, pen: &mut Pen<'_>) -> Outcome<usize, N> {
    detach(tree, pen)?;
    compose(tree)
}

/// Programs the leaf of the path into a page of its own if it does not fit beside its ancestors. Returns whether it does not.
pub(crate) fn detach<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, pen: &mut Pen<'_>) -> Outcome<bool, N> {
    debug_assert!(tree.path.is_dirty(), "there is something to program");
    if tree.path.place_leaf() {
        return Ok(false);
    }
    if tree.path.top() == 0 {
        return Err(too_large(tree));
    }
    tree.path.stats_mut().detached += 1;
    let old = tree.path.page_of(0);
    tree.path.replace(old);
    tree.reader.drop_node(old, 0);
    let page = pen.append(&mut tree.log, tree.path.seal_staged())?;
    tree.reader.programmed(page);
    tree.path.link(page);
    Ok(true)
}

/// Puts the page of the path together, with its leaf or without.
pub(crate) fn compose<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>) -> Outcome<usize, N> {
    tree.path.compose().ok_or_else(|| too_large(tree))
}

fn too_large<N: Nand, C: Cells>(tree: &Tree<'_, N, C>) -> EngineError<N::Error> {
    corrupt(tree.path.state().root, Malformed::PathTooLarge)
}

/// Programs the path as a page that promises nothing. 1 program, or 2 if the leaf does not fit beside its ancestors.
pub(crate) fn write<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, pen: &mut Pen<'_>) -> Outcome<(), N> {
    seal(tree, pen)?;
    write_sealed(tree, pen)
}

/// Programs the path that was sealed as a page that promises nothing. 1 program. What is sealed once more would say that pages are replaced which only lost a node.
pub(crate) fn write_sealed<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, pen: &mut Pen<'_>) -> Outcome<(), N> {
    let page = pen.append(&mut tree.log, tree.path.composed())?;
    note_programmed(tree, page);
    Ok(())
}

/// Programs the path that was sealed as the commit, with what is listed; with it dies what it replaces, and the bare commit before it if that is the newest. 1 program.
/// Returns whether all deaths were told.
pub(crate) fn commit<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    change: Change,
    (bare, list): (Option<PageAddr>, List<'_>),
) -> Outcome<bool, N> {
    let is_all = tell(tree, waiting, bare) & tell_leaving(tree, waiting, &list);
    if !list.is_empty() {
        list.write(waiting, tree.path.sections());
    }
    let commit = change.commit(&mut tree.log, tree.path.composed())?;
    let PageAddr(page) = commit.page();
    note_programmed(tree, page);
    list.committed(waiting, &commit, Leaf::Lives);
    limit_window(tree, waiting);
    debug_assert!(
        tree.log.committed() == Some(PageAddr(page)) && tree.path.state().root == page,
        "the commit is the root"
    );
    Ok(is_all)
}

/// Commits without a path, with what is listed: the root stays where it is. 1 program. Returns the page of the commit, unless that is a member of the window, and whether
/// all deaths were told.
pub(crate) fn commit_bare<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    change: Change,
    (bare, list): (Option<PageAddr>, List<'_>),
) -> Outcome<(Option<PageAddr>, bool), N> {
    debug_assert!(!tree.path.is_dirty(), "the root is on flash");
    let is_all = tell(tree, waiting, bare) & tell_leaving(tree, waiting, &list);
    let out = tree.reader.lend();
    let shape = tree.path.shape();
    shape.seal_bare(tree.path.state(), out);
    if !list.is_empty() {
        list.write(waiting, shape.sections_of_bare(out));
    }
    tree.path.stats_mut().bare_commits += 1;
    let commit = change.commit(&mut tree.log, out)?;
    let is_member = list.committed(waiting, &commit, Leaf::Dead);
    Ok(((!is_member).then_some(commit.page()), is_all))
}

/// As many members of the window stay as a mount may read beside the log's table and, where there are files, a record of theirs.
pub(crate) fn limit_window<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, waiting: &mut Waiting<'_>) {
    if GROUP {
        let others = tree.log.table_pages() + usize::from(tree.path.shape().has_raw());
        waiting.window.limit(others, tree.path.state().height);
    }
}

/// Tells the log what dies with the commit that comes next: what was replaced, unless it is a member of the window. Returns whether that is all: else live counts are too high.
pub(crate) fn tell<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    bare: Option<PageAddr>,
) -> bool {
    let Tree { log, path, .. } = tree;
    let mut is_all = !path.replaced().is_short();
    for page in path.replaced().as_slice().iter().map(|&page| PageAddr(page)).chain(bare) {
        if waiting.window.leaf_died(page.0) && !waiting.broken.is(|it| it.members_die) {
            continue;
        }
        if log.dying_room() > 0 {
            log.dies(page);
        } else {
            is_all = false;
        }
    }
    path.replaced_mut().clear();
    debug_assert!(path.replaced().as_slice().is_empty(), "each death is told once");
    is_all
}

/// Tells the log which members die that leave with the commit that comes next.
fn tell_leaving<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, waiting: &Waiting<'_>, list: &List<'_>) -> bool {
    let mut is_all = true;
    debug_assert!(waiting.window.is_known(list.leaving()), "of who leaves it is known whether it dies");
    for page in waiting.window.lonely(list.leaving()) {
        debug_assert!(tree.log.dying_room() > 0 || list.leaving() > 1, "room was kept for one");
        if tree.log.dying_room() > 0 {
            tree.log.dies(page);
        } else {
            is_all = false;
        }
    }
    is_all
}

/// What was composed is on flash in this page.
fn note_programmed<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, page: u32) {
    tree.reader.programmed(page);
    let top = tree.path.top();
    for level in tree.path.lowest()..=top {
        let (old, node) = tree.path.programmed_node(level);
        // The root is always in the path.
        match level == top {
            true => tree.reader.drop_node(old, level),
            false => tree.reader.renew(old, level, page, node),
        }
    }
    tree.path.programmed(page);
}
