//! What the log does beside operations: an erase or a checkpoint, so that the next one finds erased blocks, or else a block is emptied.

use nandu_nand::{BlockAddr, Cause, Nand};

use crate::collector::{Budget, Collector, spend};
use crate::dying::Dying;
use crate::error::LogError;
use crate::pace::{left_behind, may_be_due};
use crate::reserve::OPENED_FLOOR;
use crate::room::Room;
use crate::survivors::stream_of_copy;
use crate::victims::Victims;
use crate::volume::Volume;

/// Blocks that can be opened before a checkpoint lists more, if there are more.
const OPENABLE_MIN: u32 = 2;

/// Programs of a checkpoint for which a call has to have room; one that takes more is made all the same.
const CHECKPOINT_MAX: u32 = 4;

/// Does it, as far as the budget goes; returns whether there was one.
pub(crate) fn step<N: Nand>(volume: &mut Volume<'_, N>, budget: &mut Budget) -> Result<bool, LogError<N::Error>> {
    debug_assert!(budget.steps > 0);
    if let Some(block) = Collector::condemned(volume.blocks()) {
        volume.blocks_mut().retire(block);
        return Ok(true);
    }
    // What prepares for operations begins with the first one.
    if budget.is_idle && volume.anchors().is_clean() {
        return Ok(false);
    }
    let lists_more = volume.openable() < OPENABLE_MIN && volume.blocks().listable() > 0;
    // The checkpoint that leaves a clean mount's state comes with an erase of its own. In idle time one comes on top of the budget.
    let is_leaving = !budget.is_idle && volume.anchors().is_clean();
    if lists_more || is_leaving {
        let (programs, erases) = volume.anchors().cost(volume.blocks(), volume.shape());
        if !budget.is_idle && budget.at_once() < programs.min(CHECKPOINT_MAX) {
            // The next call has room for it.
            budget.due = budget.due.max(1);
            return Ok(false);
        }
        budget.programs = if erases > 0 { 0 } else { budget.programs.saturating_sub(programs) };
        budget.steps -= 1;
        spend(budget, 0, if budget.is_idle { 0 } else { programs });
        volume.checkpoint(false)?;
        return Ok(true);
    }
    let is_done = volume.erase_ahead()?;
    budget.steps -= u32::from(is_done);
    Ok(is_done)
}

/// Pages that may be moved out of a block before one is opened that may not be erased any more, with so many erases since the mount at most, or is not listed yet.
pub(crate) fn moves_left<N: Nand>(volume: &Volume<'_, N>, block: BlockAddr, erases_max: Option<u64>) -> u32 {
    let (heads, blocks, shape) = (volume.heads(), volume.blocks(), volume.shape());
    let Some(most) = erases_max else { return u32::MAX };
    let room = |is_raw| {
        let stream = stream_of_copy(heads, blocks, shape.headed(), (block, is_raw));
        stream.map_or(u32::MAX, |stream| heads.room(stream))
    };
    // What names a raw page is no raw one; and a value in a commit becomes one.
    let rooms = [room(false), if shape.has_raw() { room(true) } else { u32::MAX }];
    debug_assert!(rooms[0] == u32::MAX || rooms[0] <= shape.pages_max().into(), "a block has no more room than pages");
    let erased = most.saturating_sub(volume.spent().1) as u32 + u32::from(volume.is_erased_ahead());
    match erased.min(volume.openable()) {
        0 => rooms[0].min(rooms[1]),
        1 => rooms[0].max(rooms[1]),
        _ => u32::MAX,
    }
}

/// An operation waits for a block: one that was begun for none is left where another takes half the moves, or less.
pub(crate) fn leave_for_less<N: Nand>(
    volume: &Volume<'_, N>,
    collector: &mut Collector,
    (dying, dead_min): (&Dying, u16),
) {
    let Some(block) = collector.block().filter(|_| !collector.is_urgent()) else { return };
    let blocks = volume.blocks();
    let lasting = |block| blocks.live(block).saturating_sub(dying.count_in(block, &volume.shape().geometry));
    let other = Victims { blocks, skipped: Some(block) }.emptiest(dead_min);
    if other.is_some_and(|(other, _)| (1..=lasting(block) / 2).contains(&lasting(other))) {
        collector.leave();
    }
}

/// Moves that are due with so many pages of an operation, out of the block that is emptied and the next one: the part of them that the operation took of the pages that are left.
pub(crate) fn moves_due<N: Nand>(volume: &Volume<'_, N>, collector: &Collector, dying: &Dying, pages: u32) -> u32 {
    let (heads, blocks, shape) = (volume.heads(), volume.blocks(), volume.shape());
    if !may_be_due(heads, blocks, pages) {
        return 0;
    }
    let lasting = |block| u32::from(blocks.live(block).saturating_sub(dying.count_in(block, &shape.geometry)));
    let next = |skipped| Some(Victims { blocks, skipped }.emptiest(1)?.0);
    let begun = collector.block().filter(|&block| lasting(block) > 0);
    let first = begun.or_else(|| next(collector.skipped()));
    let second = first.and_then(|first| next(Some(first)).filter(|&block| block != first));
    let (mut moves, mut due) = (0, 0);
    for (nth, block) in first.into_iter().chain(second).enumerate() {
        moves += collector.weigh(lasting(block), blocks.is_raw(block));
        // The next operation finds the block.
        let left = left_behind((heads, blocks, shape.headed()), (block, nth as u32, moves)).saturating_sub(pages);
        due = due.max((moves * pages).checked_div(left).unwrap_or(moves).min(moves));
    }
    debug_assert!(due <= moves, "a part of them");
    due
}

/// Whether so much was programmed since wear was looked at that a block may be moved for it.
pub(crate) fn is_levelling_due<N: Nand>(volume: &Volume<'_, N>, collector: &Collector) -> bool {
    let blocks = volume.blocks();
    let room = Room { shape: volume.shape(), blocks };
    // A block that yields nothing is moved while there is room for that: with two bits a cell it takes blocks of several streams.
    let has_room = if room.shape.has_mlc() { room.is_full() } else { blocks.pool() > OPENED_FLOOR };
    has_room && collector.may_level(volume.spent().0, blocks.pages())
}

/// The block to empty next.
pub(crate) fn pick<N: Nand>(
    volume: &mut Volume<'_, N>,
    collector: &mut Collector,
    budget: &Budget,
) -> Option<(BlockAddr, Cause)> {
    volume.close_endangered();
    debug_assert!(collector.block().is_none(), "one block is emptied at a time");
    let victims = Victims { blocks: volume.blocks(), skipped: collector.skipped() };
    if let Some(endangered) = victims.endangered() {
        return Some(endangered);
    }
    // Not in idle time, which wears nothing, unless operations leave that to it.
    if (!budget.is_idle || budget.is_chosen()) && is_levelling_due(volume, collector) {
        let block = victims.levelling();
        if block.is_some() {
            return block;
        }
        collector.passes_levelling(volume.spent().0);
    }
    if budget.is_chosen() {
        return None;
    }
    let room = Room { shape: volume.shape(), blocks: volume.blocks() };
    victims.next(budget, room.is_full())
}
