//! Idle time, and the end of a session.

use nandu_cells::Cells;
use nandu_media::features::MLC;
use nandu_nand::Nand;

use crate::error::Outcome;
use crate::keeper::Keeper;
use crate::list::has_head_room;
use crate::sync::{RELIEVED_MAX, commit_all, relieve, sync};

/// Where memory has no room for what names the next copies, half of it is made free, with twelve leaves at most. Else each would take a leaf of its own.
fn make_move_room<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    if !MLC || !keeper.tree().log.has_mlc() {
        return Ok(());
    }
    let is_full = !has_head_room(keeper.waiting(), keeper.tree().path.shape(), true);
    if is_full && !keeper.waiting().changes.is_empty() {
        commit_all(keeper)?;
        debug_assert!(keeper.waiting().changes.unsynced() == 0, "what is unsynced is in no leaf");
        relieve(keeper, usize::MAX, RELIEVED_MAX)?;
    }
    Ok(())
}

/// Idle time moved pages, or found nothing to do; then moves are made to count, if that is wanted, and copies that wait, if others will not come soon.
pub(crate) fn end_idle<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    has_moved: bool,
    (buries, names_copies): (bool, bool),
) -> Outcome<(), N> {
    match has_moved {
        true => make_move_room(keeper),
        false if buries => rest(keeper, names_copies),
        false => Ok(()),
    }
}

/// Idle time found nothing to do: what was moved is made to count, and with it the copies that wait, unless others will come soon.
fn rest<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, names_copies: bool) -> Outcome<(), N> {
    let has_copies = MLC && names_copies && !keeper.values().copies().is_empty();
    if has_copies {
        keeper.settle_copies(true)?;
    }
    if has_copies || keeper.is_unburied() { keeper.bury() } else { Ok(()) }
}

/// Unmounts: what waits becomes durable. Beyond that it makes counts true and deaths count, as far as that can be.
pub(crate) fn leave<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    keeper.give_up_value();
    // A mount would leave out what shares their cells.
    let synced = keeper.settle_copies(true).and(sync(keeper));
    // The checkpoint is to say the truth of what a failed change or a value that was given up left. If that cannot be counted, counts are too high.
    let _ = keeper.ready();
    // If that fails, what was moved never happened.
    if keeper.is_unburied() && !keeper.is_broken() && keeper.tree().log.buries_in_place() {
        let _ = keeper.bury();
    }
    let left = keeper.parts().0.log.unmount_here();
    synced?;
    Ok(left?)
}
