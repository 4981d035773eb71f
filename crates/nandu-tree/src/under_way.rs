//! A value that is put page by page: begun, its pages programmed; and one that is read.

use nandu_cells::Cells;
use nandu_log::{Claim, LogError, Owner};
use nandu_media::features::{FILES, MLC};
use nandu_nand::{CellMode, Nand};

use crate::error::{EngineError, Outcome};
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::large::{append, read};
use crate::list::members_left;
use crate::settling::rescue;
use crate::writer::{DEATHS, Need};

/// Pages of a value after which there is a commit, so that a mount finds what comes after them.
const UNBURIED_MAX: usize = 512;

/// A value of a key begins, by this claim, with so many bits in a cell where it has a raw page. A value that was under way is given up.
pub(crate) fn begin_value<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (key, length): (&[u8], usize),
    (want, mode): (Claim, CellMode),
) -> Outcome<(), N> {
    keeper.give_up_value();
    let shape = keeper.tree().path.shape();
    if !shape.has_values() || !keeper.values().is_there() {
        return Err(EngineError::NotCompiled { feature: &"blobs" });
    }
    let division = shape.division(key, length).ok_or(EngineError::ValueSize(length))?;
    // And what the leaf of its head may be divided into.
    let pages = (division.pages() + DEATHS) as u32;
    if want == Claim::Grow && !keeper.has_room(pages, members_left(keeper.waiting()))? {
        return Err(EngineError::Log(LogError::Full));
    }
    let log = &keeper.tree().log;
    let (since, mode) = (log.next_sequence(), if log.has_mlc() { mode } else { CellMode::Slc });
    debug_assert!(division.length() == length && keeper.values().division().is_none(), "one value at a time");
    let owner = if FILES { Owner::new(key).unwrap_or(Owner::NOBODY) } else { Owner::NOBODY };
    keeper.values_mut().begin(division, (want, since), (owner, mode));
    Ok(())
}

/// Programs the next page of the value under way. 1 program.
pub(crate) fn append_value<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    key: &[u8],
    bytes: &[u8],
) -> Outcome<(), N> {
    debug_assert!(keeper.values().division().is_some(), "a value is under way");
    keeper.ready()?;
    // And the page in whose place it comes.
    let need = Need { want: keeper.values().claim(), pages: 2, live: 1, deaths: DEATHS + 1 };
    let raw = keeper.values().raw_next();
    for _ in 0..CLAIMS_MAX {
        let Some(mut change) = keeper.claim_for(need, raw).map_err(|error| keeper.undo(error))? else { continue };
        let (tree, waiting, values) = keeper.parts_with_values();
        let appended = append(tree, values, &mut change, (key, bytes));
        let rescued = if MLC { rescue(tree, waiting, values) } else { Ok(()) };
        keeper.appended(change.appended());
        if keeper.values().done().is_multiple_of(UNBURIED_MAX) {
            keeper.bury()?;
        }
        return appended.and(rescued);
    }
    Err(keeper.refuse(need.want))
}

/// Pages of values that may be put yet beside so many others, at least.
pub(crate) fn pages_left<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, others: u32) -> u32 {
    let others = others + members_left(keeper.waiting());
    let log = &keeper.tree().log;
    let (mut least, mut most) = (0, log.capacity_pages().saturating_sub(log.live_pages()));
    while least < most {
        let middle = (least + most).div_ceil(2);
        let is_room = keeper.is_room_for(middle, others);
        (least, most) = if is_room { (middle, most) } else { (least, middle - 1) };
    }
    debug_assert!(least == 0 || keeper.is_room_for(least, others), "so many have room");
    least
}

/// As [`read`]. A value under way is given up.
pub(crate) fn read_value<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    of: (&[u8], usize),
    out: &mut [u8],
) -> Outcome<Option<usize>, N> {
    keeper.give_up_value();
    let (tree, waiting, values) = keeper.parts_with_values();
    match values.scratch() {
        Some(scratch) => read(tree, (&waiting.changes, scratch), of, out),
        None => Ok(None),
    }
}
