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
use nandu_index::{Direction, Edit};
use nandu_log::{Claim, LogError};
use nandu_media::features::SNAPSHOTS;
use nandu_nand::Nand;

use crate::copies::Copies;
use crate::error::{EngineError, Outcome};
use crate::graft::keep_leaf;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::make::{make, may_wait, put_head_now, put_heads};
use crate::prune::prune;
use crate::range::range;
use crate::reserved::{NOTHING, kept_key, snapshot_key, user_key};
use crate::standing::{Made, value_of};
use crate::sync::put_head;

/// Most changes that keep values in pages, with what they keep: as many again as a step of a file's removal has.
const TOGETHER_MAX: usize = 72;

/// Records of a released snapshot that are removed at once, or fewer if that takes too much room.
const REMOVED_MAX: [usize; 3] = [32, 8, 1];

/// The slot of the snapshot in which what stands at a key has to be kept before it is changed, if one has.
fn owed<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Option<u8>, N> {
    let Some(newest) = keeper.values().snapshots().held().last() else { return Ok(None) };
    // Younger ones that were released hand on to it what they kept.
    for younger in keeper.values().snapshots().from(newest.number) {
        if value_of(keeper, kept_key(younger.slot, key).as_slice())?.is_some() {
            return Ok(None);
        }
    }
    Ok(Some(newest.slot))
}

/// Whether anything has to be kept before these changes.
pub(crate) fn owes<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &[Edit<'_>]) -> Outcome<bool, N> {
    debug_assert!(edits.iter().all(|edit| keeper.tree().path.shape().may_be_given(edit.key)), "changes of a user");
    for edit in edits.iter().filter(|_| SNAPSHOTS) {
        if owed(keeper, edit.key)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes changes, which ascend, once all that snapshots need of what stands there is kept; values in pages with the changes themselves, which `call` makes. Returns whether the key of the last was there, where it is one.
pub(crate) fn keeping<'m, N: Nand, C: Cells>(
    keeper: &mut Keeper<'m, N, C>,
    memory: &mut [u8],
    (edits, want): (&[Edit<'_>], Claim),
    mut call: impl FnMut(&mut Keeper<'m, N, C>, &[Edit<'_>]) -> Outcome<Made, N>,
) -> Outcome<bool, N> {
    if keeper.waiting().broken.is(|it| it.keeps_late) {
        let made = call(keeper, edits)?;
        edits.iter().try_for_each(|edit| keep_inline(keeper, &mut Copies::new(memory), (edit, want)))?;
        return Ok(made == Made::Existed(true));
    }
    for _ in 0..CLAIMS_MAX {
        let mut copies = Copies::new(memory);
        if keeper.values().snapshots().held().next().is_some() {
            for edit in edits {
                keep_inline(keeper, &mut copies, (edit, want))?;
            }
            // From here on nothing moves but to make room for the changes.
            for edit in edits {
                copy_head(keeper, &mut copies, edit)?;
            }
        }
        let made = if copies.is_empty() {
            call(keeper, edits)?
        } else {
            with_copies(edits, &copies, |all| call(keeper, all))?
        };
        if let Made::Existed(existed) = made {
            return Ok(existed || !copies.is_empty());
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
    let put = Edit { key, value: Some(&[]) };
    keeping(keeper, memory, (&[put], Claim::Grow), |keeper, edits| {
        if edits.len() == 1 {
            return put_alone(keeper, key);
        }
        let head = keeper.values().head();
        let room = head_room.get_mut(..head.len()).ok_or(too_large(edits))?;
        room.copy_from_slice(head);
        put_heads(keeper, (edits, key, room), waits_at_once(keeper, key))
    })
}

/// Whether what goes to its leaf at once may do so beside what waits.
fn waits_at_once<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, key: &[u8]) -> bool {
    let changes = &keeper.waiting().changes;
    may_wait(keeper) && changes.at_once_size(key) <= changes.size() / 4
}

/// Puts the value under way, which is whole, of which nothing is to be kept.
pub(crate) fn put_alone<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Made, N> {
    debug_assert!(keeper.values().part().is_none(), "the value is whole");
    if waits_at_once(keeper, key) { put_head(keeper, key) } else { put_head_now(keeper, key) }
}

/// Calls with changes and with what is kept with them, in the order of their keys.
fn with_copies<T, E: Error>(
    edits: &[Edit<'_>],
    copies: &Copies<'_>,
    call: impl FnOnce(&[Edit<'_>]) -> Result<T, EngineError<E>>,
) -> Result<T, EngineError<E>> {
    let mut all = [Edit { key: &[], value: None }; TOGETHER_MAX];
    let count = edits.len() + copies.count();
    let room = all.get_mut(..count).ok_or(too_large(edits))?;
    let (first, last) = room.split_at_mut(edits.len());
    first.copy_from_slice(edits);
    last.iter_mut().zip(copies.iter()).for_each(|(place, copy)| *place = copy);
    room.sort_unstable_by(|one, other| one.key.cmp(other.key));
    debug_assert!(room.is_sorted_by(|one, other| one.key < other.key), "no change is of a key that is kept");
    call(room)
}

fn too_large<E: Error>(edits: &[Edit<'_>]) -> EngineError<E> {
    EngineError::BatchTooLarge { pages: edits.len() as u32 }
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
    if !copies.push(kept_key(slot, edit.key).as_slice(), value) {
        return Err(too_large(&[*edit]));
    }
    // What a younger one kept of its neighbours is older than they are.
    let is_youngest = keeper.values().snapshots().iter().next_back().is_some_and(|it| it.slot == slot);
    if stands && is_youngest && keep_leaf(keeper, slot, edit.key)? {
        copies.pop();
        return Ok(());
    }
    let made = copies.last().map_or(Ok(Made::Existed(false)), |copy| make(keeper, &[copy], want));
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
    let is_copied = match value_of(keeper, edit.key)? {
        Some(head) => copies.push(kept_key(slot, edit.key).as_slice(), head),
        None => true,
    };
    if is_copied { Ok(()) } else { Err(too_large(&[*edit])) }
}

/// Removes some records of a snapshot that was released, or hands them on to the one before it; at last the record that there was one. Returns whether there was something to do.
pub(crate) fn remove_some<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, memory: &mut [u8]) -> Outcome<bool, N> {
    let Some((released, heir)) = keeper.values().snapshots().released().filter(|_| SNAPSHOTS) else { return Ok(false) };
    let mut is_left = true;
    if heir.is_none() && prune(keeper, released.slot)? {
        return Ok(true);
    }
    if let Some(heir) = heir.filter(|_| !keeper.waiting().broken.is(|it| it.forgets_heirs)) {
        is_left = hand_on(keeper, (released.slot, heir.slot), Copies::new(memory))?;
    } else {
        // What waits is brought to its leaves a few pages at a time.
        let tries = &REMOVED_MAX[usize::from(may_wait(keeper))..];
        for &most in tries {
            let mut copies = Copies::new(memory);
            copy_some(keeper, released.slot, (&mut copies, most), |_| &[])?;
            let mut edits = [Edit { key: &[], value: None }; REMOVED_MAX[0]];
            edits.iter_mut().zip(copies.iter()).for_each(|(place, copy)| place.key = copy.key);
            is_left = !copies.is_empty();
            let removed = if is_left { make(keeper, &edits[..copies.count()], Claim::Free) } else { break };
            // They may be in more leaves than there is room for at once.
            if !matches!(removed, Err(EngineError::Log(LogError::Full) | EngineError::BatchTooLarge { .. })) {
                removed?;
                break;
            }
        }
    }
    if !is_left {
        // That there are none is in the same commit as that the last one goes.
        keeper.change_numbers(|numbers| numbers.remove(released.number));
        make(keeper, &[Edit { key: snapshot_key(released.slot).as_slice(), value: None }], Claim::Free)?;
    }
    Ok(true)
}

/// The first record of a snapshot becomes one of another, unless that has one for the same key. Returns whether there was one.
fn hand_on<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (slot, heir): (u8, u8),
    mut copies: Copies<'_>,
) -> Outcome<bool, N> {
    copy_some(keeper, slot, (&mut copies, 1), |value| value)?;
    let Some(old @ Edit { key, .. }) = copies.last() else { return Ok(false) };
    let new = kept_key(heir, user_key(key));
    let mut edits = [Edit { key: new.as_slice(), value: old.value }, Edit { key, value: None }];
    debug_assert!(heir != slot, "another one");
    if value_of(keeper, new.as_slice())?.is_some() {
        make(keeper, &edits[1..], Claim::Free)?;
    } else {
        edits.sort_unstable_by(|one, other| one.key.cmp(other.key));
        make(keeper, &edits, Claim::Free)?;
    }
    Ok(true)
}

/// Copies the first records of a snapshot, so many at most, with so much of their values. One that is larger than all the memory for it is none of a user.
fn copy_some<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    slot: u8,
    (copies, most): (&mut Copies<'_>, usize),
    part: fn(&[u8]) -> &[u8],
) -> Outcome<(), N> {
    let (from, to) = (kept_key(slot, &[]), kept_key(slot + 1, &[]));
    debug_assert!(slot > 0 && copies.is_empty() && most > 0, "records, not what says that there are some");
    let (tree, waiting) = keeper.parts();
    let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()), Direction::Forward);
    range(tree, &waiting.changes, bounds, &mut |entry| {
        let is_copied = copies.push(entry.key, part(entry.value));
        if is_copied && copies.count() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
}
