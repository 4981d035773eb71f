//! Changes by whichever way they go: into memory, or to their leaves at once.

use nandu_cells::Cells;
use nandu_index::Edit;
use nandu_log::{Claim, LogError};
use nandu_media::features::GROUP;
use nandu_nand::Nand;

use crate::edits::Edits;
use crate::error::{EngineError, Outcome};
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::now::{batch_now, delete_now, put_now};
use crate::options::Durability;
use crate::standing::Made;
use crate::sync::{Way, change, flush, pass};
use crate::writer::Need;

/// Programs the empty tree.
pub(crate) fn make_empty<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    let need = Need { want: Claim::Grow, pages: 1, live: 1, deaths: 0 };
    for _ in 0..CLAIMS_MAX {
        if let Some(change) = keeper.claim(need)? {
            keeper.parts().0.path.empty();
            return keeper.conclude(change, Ok(()));
        }
    }
    Err(EngineError::Log(LogError::Full))
}

/// Whether changes wait for a sync: where there is memory for them.
pub(crate) fn may_wait<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>) -> bool {
    let waiting = keeper.waiting();
    GROUP && waiting.durability == Durability::OnSync && waiting.changes.size() > 0
}

/// Changes that wait for a sync, if they may. Where they are to go to their leaves behind all that waits, nothing else waits then.
fn wait<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &Edits<'_>, want: Claim) -> Outcome<Way, N> {
    let way = if may_wait(keeper) { change(keeper, edits, want)? } else { Way::Behind };
    if matches!(way, Way::Behind) {
        flush(keeper)?;
        debug_assert!(keeper.waiting().is_idle(), "nothing waits that would hide it");
    }
    Ok(way)
}

/// Makes one change: puts a value, which may need room, or deletes a key.
pub(crate) fn make_one<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edit: &Edit<'_>) -> Outcome<Made, N> {
    let want = if edit.value.is_some() { Claim::Grow } else { Claim::Free };
    let edits = Edits::of(core::slice::from_ref(edit));
    match (wait(keeper, &edits, want)?, edit.value) {
        (Way::Waits(made), _) => Ok(made),
        (Way::Passes, _) => pass(keeper, &edits, want),
        (Way::Behind, Some(_)) => put_now(keeper, (edit.key, edit.value)).map(Made::Existed),
        (Way::Behind, None) => delete_now(keeper, edit.key).map(Made::Existed),
    }
}

/// Makes these changes, which ascend, by this claim.
pub(crate) fn make<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    want: Claim,
) -> Outcome<Made, N> {
    if let Some(edit) = edits.get(0).filter(|_| edits.len() == 1)
        && (edit.value.is_none() || want == Claim::Grow)
    {
        return make_one(keeper, &edit);
    }
    if keeper.waiting().broken.is(|it| it.splits_batches) && edits.len() > 1 {
        let one = |edit| make(keeper, &Edits::of(&[edit]), want);
        return edits.iter().map(one).last().unwrap_or(Ok(Made::Existed(false)));
    }
    match wait(keeper, edits, want)? {
        Way::Waits(made) => Ok(made),
        Way::Passes => pass(keeper, edits, want),
        Way::Behind => batch_now(keeper, edits, want),
    }
}

/// Puts the head of the value under way into its leaf; nothing waits then.
pub(crate) fn put_head_now<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Made, N> {
    flush(keeper)?;
    put_now(keeper, (key, None)).map(Made::Existed)
}

/// Makes changes of which one is the head of the value under way; into their leaves at once, where others may wait or not.
pub(crate) fn put_heads<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    waits: bool,
) -> Outcome<Made, N> {
    debug_assert!(edits.iter().all(|edit| edit.value.is_some()), "a head, and the one before it");
    if waits {
        return pass(keeper, edits, Claim::Grow);
    }
    flush(keeper)?;
    batch_now(keeper, edits, Claim::Grow)
}
