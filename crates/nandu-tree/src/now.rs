//! Changes that are durable when the call returns. Nothing waits when they begin, nor while room is made for them: else what waits would hide them.
//!
//! An operation makes its change in the buffers first, and asks for room when it knows what it takes. If pages have to be moved then, the change is
//! forgotten and made again, since moves use the same buffers. Nothing is on flash before the room is granted.

use nandu_cells::Cells;
use nandu_index::Edit;
use nandu_log::{Claim, LogError};
use nandu_media::tree::HEIGHT_MAX;
use nandu_nand::Nand;

use crate::batch::{apply, measure};
use crate::edit::{delete, make_room, put};
use crate::edits::Edits;
use crate::error::{BATCH_PAGES_MAX, EngineError, Outcome};
use crate::fit::inner_splits_max;
use crate::growth::claim_growth;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::large::{is_kept_by, pages_named, replace};
use crate::slots::{Growth, Put};
use crate::split::join;
use crate::standing::{Made, is_stale};
use crate::writer::{BATCH_DEATHS, DEATHS, Need};

/// Puts an entry, or the head of the value under way. Returns whether its key was there.
pub(crate) fn put_now<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (key, value): (&[u8], Option<&[u8]>),
) -> Outcome<bool, N> {
    keeper.ready()?;
    debug_assert!(keeper.waiting().is_idle(), "what waits is in its leaves");
    let (mut growth, mut want) = (Growth::Full, Claim::Grow);
    for _ in 0..CLAIMS_MAX {
        let (tree, _, bytes) = keeper.with_head(value);
        let tried = replace(tree, key).and_then(|fewer| Ok((put(tree, (key, bytes), growth)?, fewer)));
        let ((outcome, existed), fewer) = tried.map_err(|error| keeper.undo(error))?;
        let need = need_of(keeper, outcome);
        want = need.want;
        debug_assert!(keeper.waiting().is_idle(), "what was moved is in its leaf");
        let mut change = match claim_growth(keeper, need) {
            Ok(Some(change)) => change,
            Ok(None) => continue,
            // On a full chip a leaf takes what it has room for.
            Err(EngineError::Log(LogError::Full) | EngineError::TooHigh)
                if growth != Growth::Own && outcome != Put::Fits =>
            {
                growth = Growth::Own;
                let working = keeper.working();
                keeper.parts().0.path.begin(working);
                continue;
            }
            Err(error) => return Err(keeper.undo(error)),
        };
        let (tree, _, bytes) = keeper.with_head(value);
        let made = make_room(tree, &mut change, ((key, bytes), outcome, existed));
        let named = |value| pages_named(keeper.tree().path.shape(), &Edit { key, value: Some(value) });
        keeper.count_pages((value.map_or(keeper.values().done() as u32, named), fewer));
        return keeper.conclude(change, made.map(|()| existed));
    }
    Err(keeper.refuse(want))
}

fn need_of<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, outcome: Put) -> Need {
    let path = &keeper.tree().path;
    let splits = if outcome == Put::Fits { 0 } else { inner_splits_max(path) };
    let (want, pages, live) = match outcome {
        // The leaf first, if it does not fit beside its ancestors.
        Put::Fits => (Claim::Replace, if path.is_staged() { 2 } else { 1 }, 0),
        // The commit, and the path again if the new leaf does not fit beside it.
        Put::Starts => (Claim::Grow, 2 + splits, 2 + splits),
        // Two leaves more, the commit, and a page for the leaf if it does not fit beside its ancestors.
        Put::Overflows => (Claim::Grow, 4 + splits, 3 + splits),
    };
    debug_assert!(splits <= HEIGHT_MAX as u32, "a node is split once");
    Need { want, pages, live, deaths: deaths_of(keeper) }
}

/// How many pages a change of an entry replaces at most.
fn deaths_of<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>) -> usize {
    if keeper.tree().path.state().counts.may_have_heads() { BATCH_DEATHS } else { DEATHS }
}

/// Deletes a key. Returns whether it was there.
pub(crate) fn delete_now<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<bool, N> {
    keeper.ready()?;
    debug_assert!(keeper.waiting().is_idle(), "what waits is in its leaves");
    for _ in 0..CLAIMS_MAX {
        let tree = keeper.parts().0;
        let tried = replace(tree, key).and_then(|fewer| Ok((delete(tree, key)?, fewer)));
        let (existed, fewer) = tried.map_err(|error| keeper.undo(error))?;
        if !existed {
            return Ok(false);
        }
        let joined = join(keeper.parts().0);
        joined.map_err(|error| keeper.undo(error))?;
        let pages = if keeper.tree().path.is_staged() { 2 } else { 1 };
        let need = Need { want: Claim::Free, pages, live: pages - 1, deaths: deaths_of(keeper) };
        if let Some(change) = keeper.claim(need).map_err(|error| keeper.undo(error))? {
            keeper.count_pages((0, fewer));
            return keeper.conclude(change, Ok(true));
        }
    }
    Err(keeper.refuse(Claim::Free))
}

/// Makes these changes, which ascend, by this claim.
pub(crate) fn batch_now<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    want: Claim,
) -> Outcome<Made, N> {
    keeper.ready()?;
    debug_assert!(keeper.waiting().is_idle(), "what waits is in its leaves");
    let mut more = 0;
    for _ in 0..CLAIMS_MAX {
        debug_assert!(keeper.waiting().is_idle(), "what was moved is in its leaf");
        let (pages, live) = measure(keeper.parts().0, edits)?;
        let pages = pages + more;
        if pages > BATCH_PAGES_MAX {
            return Err(EngineError::BatchTooLarge { pages });
        }
        let need = Need { want, pages, live: live + more, deaths: BATCH_DEATHS };
        let Some(mut change) = claim_growth(keeper, need)? else { continue };
        if is_stale(keeper, edits)? {
            return Ok(Made::Stale);
        }
        let tree = keeper.parts().0;
        let replaced = edits.iter().try_fold(0, |pages, edit| match is_kept_by(tree.path.shape(), edits, edit.key) {
            true => Ok(pages),
            false => Ok(pages + replace(tree, edit.key)?),
        });
        let applied = replaced.and_then(|fewer| {
            apply(tree, &mut change, edits.iter(), Growth::Full)?;
            Ok(fewer)
        });
        let named = edits.iter().map(|edit| pages_named(keeper.tree().path.shape(), &edit)).sum();
        let applied = applied.map(|fewer| keeper.count_pages((named, fewer)));
        match keeper.conclude(change, applied) {
            // Leaves were divided more often than it seemed.
            Err(EngineError::BatchTooLarge { .. }) => {
                more = 2 * more + pages;
                keeper.recount()?;
            }
            other => return other.map(|()| Made::Existed(false)),
        }
    }
    Err(keeper.refuse(want))
}
