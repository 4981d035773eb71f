//! Programming the path of what is moved.
//!
//! A leaf that does not fit beside its ancestors takes two programs, its own and theirs. The next leaf under the same parent would take two again, and the page
//! with the ancestors of the first would be dead at once: with short blocks, moving would use up what it gains. So leaves of the block that is emptied that have one
//! parent are moved together, each in a page of its own, and their path is programmed once.

use nandu_cells::Cells;
use nandu_log::Victim;
use nandu_nand::{Nand, PageAddr};

use crate::commit::{compose, detach, write_sealed};
use crate::error::Outcome;
use crate::tree::Tree;
use crate::writer::Pen;

/// Pages that are moved at once.
pub(crate) const MOVED_MAX: usize = 16;

/// Programs the path of a page that is moved as one that promises nothing, and, where its leaf does not fit there, that leaf before it with others of the block under
/// the same parent, so many at most. Returns how many others. 1 program, or 2 and one for each other leaf.
pub(crate) fn write_moved<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    victim: &Victim,
    most: usize,
) -> Outcome<usize, N> {
    let mut others = 0;
    let written = detach(tree, &mut Pen::Move(victim)).and_then(|is_detached| {
        if is_detached {
            others = write_siblings(tree, victim, most)?;
        }
        compose(tree)?;
        write_sealed(tree, &mut Pen::Move(victim))
    });
    if let Err(error) = written {
        // A leaf may have got its own page, and its path not: nothing leads to that page.
        if let Some(page) = tree.path.linked() {
            tree.log.dies(PageAddr(page));
        }
        return Err(error);
    }
    debug_assert!(others <= most && !tree.path.is_dirty(), "the path is on flash");
    Ok(others)
}

/// Programs leaves under the parent of the one that got a page of its own elsewhere, as far as they are in the block of the victim.
fn write_siblings<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, victim: &Victim, most: usize) -> Outcome<usize, N> {
    let mut count = 0;
    for index in 0..tree.path.child_count(1) {
        let old = tree.path.child_at(1, index);
        if count == most || !is_beside(tree, old, victim) {
            continue;
        }
        // What cannot be read the log asks for yet.
        let Ok(place) = tree.reader.read_node(&mut tree.log, old, 0) else { continue };
        if !tree.path.stage(tree.reader.at(&place), &[]) {
            continue;
        }
        let new = Pen::Move(victim).append(&mut tree.log, tree.path.seal_staged())?;
        tree.reader.drop_node(old, 0);
        tree.reader.programmed(new);
        tree.path.link_other(index, old, new);
        count += 1;
    }
    Ok(count)
}

/// Whether a page is in the block that is emptied.
pub(crate) fn is_beside<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, page: u32, victim: &Victim) -> bool {
    let geometry = tree.log.geometry();
    let page = PageAddr(page);
    geometry.contains_page(page) && geometry.block_of(page) == geometry.block_of(victim.page())
}
