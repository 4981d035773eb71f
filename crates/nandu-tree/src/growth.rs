//! How far a tree may grow: a page holds only so long a path.
//!
//! A tree that is as high as can be has a root that cannot be divided. It is refused what would divide a leaf once its root takes its share of the page. What the root may take more
//! ([`Limits::highest_root_size`](nandu_cells::Limits::highest_root_size)) is for leaves that are divided on the way to what frees, so that deleting always succeeds.

use nandu_cells::Cells;
use nandu_log::Claim;
use nandu_nand::Nand;

use crate::error::{EngineError, Outcome};
use crate::keeper::Keeper;
use crate::path::Path;
use crate::writer::{Change, Need};

/// Asks for room for a change that may divide leaves, and does not if it may not. The root is present.
pub(crate) fn claim_growth<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, need: Need) -> Outcome<Option<Change>, N> {
    let grows = need.want == Claim::Grow && need.live > 0;
    debug_assert!(need.live <= need.pages, "no more lives than is programmed");
    if grows && is_grown_up(&keeper.tree().path, 0) { Err(EngineError::TooHigh) } else { keeper.claim(need) }
}

/// Whether the tree is as high as can be, and its root would take its share of the page with so many bytes more. The root is present.
pub(crate) fn is_grown_up<C: Cells>(path: &Path<'_, C>, more: usize) -> bool {
    let (top, limits) = (path.top(), path.shape().limits());
    debug_assert!(top == 0 || path.holds_root(), "the root is present");
    usize::from(top) + 1 == limits.height_max()
        && limits.must_split(top, top + 1, path.child_count(top), path.inner(top).len() + more)
}
