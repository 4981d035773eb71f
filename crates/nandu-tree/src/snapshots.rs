//! Taking snapshots, releasing them, and finding them at a mount.

use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Edit, KeyBuf};
use nandu_log::{Claim, LogError};
use nandu_media::tree::Malformed;
use nandu_nand::Nand;

use crate::edits::Edits;
use crate::error::{EngineError, Outcome, corrupt};
use crate::keeper::Keeper;
use crate::make::make;
use crate::numbers::Numbered;
use crate::range::range;
use crate::reserved::{set_kept, slot_in, slot_key, snapshot_key};
use crate::standing::value_of;
use crate::sync::commit_all;

/// Bytes of the number in the record of a snapshot.
const NUMBER: usize = 4;

/// Takes a snapshot of what there is, with what waits; both are durable when this returns. Returns its number.
pub(crate) fn take<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<u32, N> {
    let new = keeper.values().snapshots().next().ok_or(EngineError::TooManySnapshots)?;
    let mut record = [0; NUMBER + 8];
    record[..NUMBER].copy_from_slice(&new.number.to_le_bytes());
    record[NUMBER..].copy_from_slice(&keeper.records().to_le_bytes());
    debug_assert!(keeper.values().division().is_none(), "no value is under way");
    keeper.change_numbers(|numbers| _ = numbers.add(new));
    debug_assert!(keeper.values().snapshots().is_held(new.number), "there was room for it");
    let taken = match keeper.has_room(0, 0) {
        Ok(false) => Err(EngineError::Log(LogError::Full)),
        Ok(true) => {
            make(keeper, &Edits::of(&[Edit { key: &snapshot_key(new.slot), value: Some(&record) }]), Claim::Grow)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = taken {
        keeper.change_numbers(|numbers| {
            numbers.release(new.number);
            numbers.remove(new.number);
        });
        return Err(error);
    }
    commit_all(keeper)?;
    Ok(new.number)
}

/// The snapshot of a number, if it was not released.
fn held<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, number: u32) -> Outcome<Numbered, N> {
    let held = keeper.values().snapshots().held().find(|it| it.number == number);
    held.ok_or(EngineError::NoSnapshot(number))
}

/// Releases a snapshot; what it kept is removed later. Durable when it returns.
pub(crate) fn release<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, number: u32) -> Outcome<(), N> {
    let slot = held(keeper, number)?.slot;
    let record = number.to_le_bytes();
    make(keeper, &Edits::of(&[Edit { key: &snapshot_key(slot), value: Some(&record) }]), Claim::Free)?;
    keeper.change_numbers(|numbers| numbers.release(number));
    debug_assert!(keeper.values().snapshots().released().is_some(), "its records are removed later");
    commit_all(keeper)
}

/// How many records there were when a snapshot was taken.
pub(crate) fn count<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, number: u32) -> Outcome<u64, N> {
    let slot = held(keeper, number)?.slot;
    let record = value_of(keeper, &snapshot_key(slot))?;
    let count = record.and_then(|record| record.get(NUMBER..)?.first_chunk());
    count.map(|count| u64::from_le_bytes(*count)).ok_or(EngineError::NoSnapshot(number))
}

/// Finds the snapshots that there are, where the newest commit says that there may be some. Reads the leaf that says so, and what leads to it.
pub(crate) fn load<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    let (from, to) = (slot_key(0), slot_key(1));
    debug_assert!(keeper.values().snapshots().is_empty(), "a volume is opened once");
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]), Direction::Forward);
    let (mut is_sound, mut found) = (true, *keeper.values().snapshots());
    let (tree, waiting) = keeper.parts();
    range(tree, &waiting.changes, bounds, &mut |entry| {
        let number = entry.value.first_chunk().map_or(0, |number| u32::from_le_bytes(*number));
        let is_held = entry.value.len() > NUMBER;
        is_sound = slot_in(entry.key).is_some_and(|slot| found.add(Numbered { number, slot, is_held }));
        if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if !is_sound {
        return Err(corrupt(keeper.working().root, Malformed::Node));
    }
    keeper.change_numbers(|numbers| *numbers = found);
    Ok(())
}

/// Copies the key of the record nearest to a bound that the snapshot in a slot kept. Returns whether there is one.
pub(crate) fn nearest_kept<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    slot: u8,
    (bound, direction): (Bound<&[u8]>, Direction),
    found: &mut KeyBuf,
) -> Outcome<bool, N> {
    let (first, last) = (slot_key(slot), slot_key(slot + 1));
    if let Bound::Included(key) | Bound::Excluded(key) = bound {
        set_kept(found, slot, key);
    }
    let (kept, mut is_found) = (*found, false);
    let bound = bound.map(|_| kept.as_slice());
    let (first, last) = (Bound::Included(&first[..]), Bound::Excluded(&last[..]));
    let (from, to) = match (bound, direction) {
        (Bound::Unbounded, _) => (first, last),
        (bound, Direction::Forward) => (bound, last),
        (bound, Direction::Backward) => (first, bound),
    };
    let (tree, waiting) = keeper.parts();
    range(tree, &waiting.changes, (from, to, direction), &mut |entry| {
        is_found = found.set(entry.key);
        ControlFlow::Break(())
    })?;
    Ok(is_found)
}
