//! What a snapshot keeps: before a change, what stood at its key becomes a record of the newest snapshot, unless there is one already.
//!
//! So a snapshot is read as what it kept, and where it kept nothing as the next one, and then as what stands there now. No page is shared, nothing has to be moved twice, and taking a snapshot is one record.
//!
//! * (K1) What stands in its entry is kept by a change of its own, before the one that takes its place. A cut between the two leaves a record that says what stands there anyway.
//! * (K2) A value in pages of its own is named by one record at any time: what is kept of it is its head, in the same commit as the change that takes its place, and its pages live on.
//! * (K3) What is kept takes room. Growth leaves a page for each leaf of which nothing is kept yet, so that a change that frees is not refused.
//! * (K4) What a snapshot kept that was released goes to the one before it, unless that has kept something there itself; or it goes. That is done a few records a call, and no record is needed that is gone.

use core::error::Error;
use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Edit, KeyBuf};
use nandu_log::{Claim, LogError};
use nandu_media::features::SNAPSHOTS;
use nandu_nand::Nand;

use crate::copies::Copies;
use crate::edits::Edits;
use crate::error::{EngineError, Outcome};
use crate::graft::keep_leaf;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::make::{make, may_wait, put_head_now, put_heads};
use crate::prune::prune;
use crate::range::range;
use crate::reserved::{NOTHING, slot_key, snapshot_key, user_key};
use crate::standing::{Made, find_kept, value_of};
use crate::sync::{may_pass, put_head};

/// Records of a released snapshot that are removed at once, or fewer if that takes too much room.
const REMOVED_MAX: [usize; 3] = [32, 8, 1];

/// The slot of the snapshot in which what stands at a key has to be kept before it is changed, if one has.
fn owed<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Option<u8>, N> {
    let Some(newest) = keeper.values().snapshots().held().next_back() else { return Ok(None) };
    // Younger ones that were released hand on to it what they kept.
    let kept = find_kept(keeper, (newest.number, key), &mut { KeyBuf::EMPTY })?;
    Ok(if kept.is_none() { Some(newest.slot) } else { None })
}

/// Whether anything has to be kept before these changes.
pub(crate) fn owes<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &Edits<'_>) -> Outcome<bool, N> {
    debug_assert!(edits.iter().all(|edit| keeper.tree().path.shape().may_be_given(edit.key)), "changes of a user");
    for edit in edits.iter() {
        if owed(keeper, edit.key)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How changes are made.
type Make<'t, 'm, N, C> = &'t mut dyn FnMut(&mut Keeper<'m, N, C>, &Edits<'_>) -> Outcome<Made, N>;

/// Makes changes, which ascend, once all that snapshots need of what stands there is kept; values in pages with the changes themselves, which `call` makes. Returns whether the key of the last was there, where it is one.
pub(crate) fn keeping<'m, N: Nand, C: Cells>(
    keeper: &mut Keeper<'m, N, C>,
    memory: &mut [u8],
    (edits, want): (&Edits<'_>, Claim),
    call: Make<'_, 'm, N, C>,
) -> Outcome<bool, N> {
    if keeper.waiting().broken.is(|it| it.keeps_late) {
        let made = call(keeper, edits)?;
        edits.iter().try_for_each(|edit| keep_inline(keeper, &mut Copies::new(memory), (&edit, want)))?;
        return Ok(made == Made::Existed(true));
    }
    for _ in 0..CLAIMS_MAX {
        let mut copies = Copies::new(memory);
        if keeper.values().snapshots().held().next().is_some() {
            for edit in edits.iter() {
                keep_inline(keeper, &mut copies, (&edit, want))?;
            }
            // From here on nothing moves but to make room for the changes.
            for edit in edits.iter() {
                copy_head(keeper, &mut copies, &edit)?;
            }
        }
        if let Made::Existed(existed) = call(keeper, &edits.with(&copies))? {
            return Ok(existed || copies.count() > 0);
        }
    }
    Err(keeper.refuse(want))
}

/// Puts the value under way, which is whole, and keeps what stood at its key. Returns whether the key was there.
pub(crate) fn put_value<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    memory: &mut [u8],
    key: &[u8],
) -> Outcome<bool, N> {
    debug_assert!(keeper.values().part().is_none(), "the value is whole");
    let (memory, head_room) = memory.split_at_mut(memory.len() / 2);
    keeping(keeper, memory, (&Edits::of_head(key), Claim::Grow), &mut |keeper, edits| {
        if edits.len() == 1 {
            return put_alone(keeper, key);
        }
        let head = keeper.values().head();
        let room = head_room.get_mut(..head.len()).ok_or(too_large(edits.len()))?;
        room.copy_from_slice(head);
        let waits = may_wait(keeper) && may_pass(keeper, edits);
        put_heads(keeper, &edits.with_head(room), waits)
    })
}

/// Puts the value under way, which is whole, of which nothing is to be kept.
pub(crate) fn put_alone<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Made, N> {
    debug_assert!(keeper.values().part().is_none(), "the value is whole");
    if may_wait(keeper) { put_head(keeper, key) } else { put_head_now(keeper, key) }
}

fn too_large<E: Error>(count: usize) -> EngineError<E> {
    EngineError::BatchTooLarge { pages: count as u32 }
}

/// Keeps what stands in its entry at the key of a change, if that is owed.
fn keep_inline<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    copies: &mut Copies<'_>,
    (edit, want): (&Edit<'_>, Claim),
) -> Outcome<(), N> {
    let Some(slot) = owed(keeper, edit.key)? else { return Ok(()) };
    let shape = *keeper.tree().path.shape();
    let value = match value_of(keeper, edit.key)? {
        None if edit.value.is_none() => return Ok(()),
        None => &NOTHING,
        Some(value) if shape.head(edit.key, value).is_some() => return Ok(()),
        Some(value) => value,
    };
    let stands = value != NOTHING;
    if !copies.push((&slot_key(slot), edit.key), Some(value)) {
        return Err(too_large(1));
    }
    // What a younger one kept of its neighbours is older than they are.
    let is_youngest = keeper.values().snapshots().iter().next_back().is_some_and(|it| it.slot == slot);
    let is_kept = stands && is_youngest && keep_leaf(keeper, (slot, edit.key), copies.rest())?;
    let made = if is_kept { Ok(Made::Existed(true)) } else { make(keeper, &Edits::of(&[]).with(copies), want) };
    copies.pop();
    debug_assert!(made.as_ref().map_or(true, |made| *made != Made::Stale), "it is no head");
    made.map(drop)
}

/// Copies the head of a value in pages at the key of a change, if it has to be kept: all else that is owed was kept.
fn copy_head<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    copies: &mut Copies<'_>,
    edit: &Edit<'_>,
) -> Outcome<(), N> {
    let Some(slot) = owed(keeper, edit.key)? else { return Ok(()) };
    debug_assert!(edit.value.is_none() || slot > 0, "slots begin at 1");
    let head = value_of(keeper, edit.key)?;
    if head.is_none() || copies.push((&slot_key(slot), edit.key), head) { Ok(()) } else { Err(too_large(1)) }
}

/// Removes some records of a snapshot that was released, or hands them on to the one before it; at last the record that there was one. Returns whether there was something to do.
pub(crate) fn remove_some<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, memory: &mut [u8]) -> Outcome<bool, N> {
    let Some((released, heir)) = keeper.values().snapshots().released().filter(|_| SNAPSHOTS) else { return Ok(false) };
    if heir.is_none() && prune(keeper, released.slot)? {
        return Ok(true);
    }
    let is_left = match heir.filter(|_| !keeper.waiting().broken.is(|it| it.forgets_heirs)) {
        Some(heir) => hand_on(keeper, (released.slot, heir.slot), memory)?,
        None => remove(keeper, released.slot, memory)?,
    };
    if !is_left {
        // Not before: making room for the change may commit, and no commit says that there are none while the record stands.
        make(keeper, &Edits::of(&[Edit { key: &snapshot_key(released.slot), value: None }]), Claim::Free)?;
        keeper.change_numbers(|numbers| numbers.remove(released.number));
    }
    Ok(true)
}

/// Removes the first records of a snapshot. Returns whether there were some.
fn remove<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, slot: u8, memory: &mut [u8]) -> Outcome<bool, N> {
    // What waits is brought to its leaves a few pages at a time.
    for &most in &REMOVED_MAX[usize::from(may_wait(keeper))..] {
        let mut copies = Copies::new(memory);
        copy_some(keeper, slot, (&mut copies, most), |_| None)?;
        if copies.count() == 0 {
            return Ok(false);
        }
        match make(keeper, &Edits::of(&[]).with(&copies), Claim::Free) {
            // They may be in more leaves than there is room for at once.
            Err(EngineError::Log(LogError::Full) | EngineError::BatchTooLarge { .. }) => {}
            removed => return removed.map(|_| true),
        }
    }
    Ok(true)
}

/// The first record of a snapshot becomes one of another, unless that has one for the same key. Returns whether there was one.
fn hand_on<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (slot, heir): (u8, u8),
    memory: &mut [u8],
) -> Outcome<bool, N> {
    let (first, second) = memory.split_at_mut(memory.len() / 2);
    let (mut old, mut new) = (Copies::new(first), Copies::new(second));
    copy_some(keeper, slot, (&mut old, 1), |value| Some(value))?;
    let Some(Edit { key, value }) = old.last() else { return Ok(false) };
    debug_assert!(heir != slot, "another one");
    let has_room = new.push((&slot_key(heir), user_key(key)), value);
    if new.last().map_or(Ok(None), |new| value_of(keeper, new.key))?.is_some() {
        new.pop();
    } else if !has_room {
        return Err(too_large(1));
    }
    make(keeper, &Edits::of(&[Edit { key, value: None }]).with(&new), Claim::Free)?;
    Ok(true)
}

/// Copies the first records of a snapshot, so many at most, with so much of their values. One that is larger than all the memory for it is none of a user.
fn copy_some<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    slot: u8,
    (copies, most): (&mut Copies<'_>, usize),
    part: fn(&[u8]) -> Option<&[u8]>,
) -> Outcome<(), N> {
    let (from, to) = (slot_key(slot), slot_key(slot + 1));
    debug_assert!(slot > 0 && copies.count() == 0 && most > 0, "records, not what says that there are some");
    let (tree, waiting) = keeper.parts();
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]), Direction::Forward);
    range(tree, &waiting.changes, bounds, &mut |entry| {
        // Of a damaged leaf that does not ascend, what does.
        let ascends = copies.last().is_none_or(|before| before.key < entry.key);
        let is_copied = ascends && copies.push((&[], entry.key), part(entry.value));
        if is_copied && copies.count() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
}
