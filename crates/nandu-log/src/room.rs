//! How much may live, and when it is time to collect.

use nandu_nand::CellMode;

use crate::blocks::Blocks;
use crate::collector::Collector;
use crate::reserve::{OPENED_FLOOR, kept_back, slack};
use crate::shape::Shape;

/// For what an operation needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// More pages may live after it than before: refused on a full chip.
    Grow,
    /// As many live as before.
    Replace,
    /// Fewer live than before, as after a delete.
    Free,
    /// A commit that only makes deaths count ([`Claimed::Bury`](crate::Claimed)).
    Bury,
}

/// Blocks that hold nothing that the collector keeps beyond [`OPENED_FLOOR`] when it can, as a part of the slack, and one
/// more: with one alone, a block has to be free by the time the next one is full, and calls get longer where that fails.
const POOL_SHARE: u32 = 4;

/// Moves that go with a page that an operation appends, when the pool is at its least: what keeps up with blocks of which four fifths live.
const MOVES_A_PAGE: u32 = 4;

/// Part of a block, as a divisor, that has to be dead for the block to be emptied while the pool is not down.
pub(crate) const WORTH_SHARE: u16 = 8;

/// The same in idle time: less would wear the chip for little.
pub(crate) const IDLE_SHARE: u16 = 2;

/// Part of all live pages, as a divisor, that a block may hold to be emptied in idle time. A few blocks are emptied before idle time comes to
/// rest, and all of that is to be a small part of what lives; on a chip of a few blocks it would not be.
pub(crate) const IDLE_LIVE_SHARE: u32 = 32;

/// Part of a block, as a divisor, by which an operation may end above the capacity: it asks for the most that it may take, and takes less.
const ABOVE_SHARE: u32 = 4;

/// The room of a volume.
#[derive(Clone, Copy)]
pub(crate) struct Room<'r, 'm> {
    pub(crate) shape: &'r Shape,
    pub(crate) blocks: &'r Blocks<'m>,
}

impl Room<'_, '_> {
    /// Room for pages that live: raw ones, or those of the densest kind.
    pub(crate) fn capacity(self) -> u32 {
        let good = self.blocks.good();
        debug_assert!(good <= self.blocks.count());
        good.saturating_sub(kept_back(good, self.shape.streams)) * u32::from(self.shape.pages_max())
    }

    /// Blocks of the pool below which operations take a share of collecting.
    pub(crate) fn high(self) -> u32 {
        OPENED_FLOOR + (1 + slack(self.blocks.good()).div_ceil(POOL_SHARE)).min(self.shape.ready_max.into())
    }

    /// Whether the pool is full.
    pub(crate) fn is_full(self) -> bool {
        self.blocks.pool() >= self.high()
    }

    /// The share of collecting that is due with so many pages, where so many moves were left: none while the pool is full, and most when one block more would be all there is.
    pub(crate) fn share(self, pages: u32, due: u32) -> u32 {
        let (pool, high, low) = (self.blocks.pool(), self.high(), OPENED_FLOOR + 1);
        if self.is_full() {
            return 0;
        }
        let most = pages * MOVES_A_PAGE;
        let share = (most * (high - pool)).div_ceil(high.saturating_sub(low).max(1)).min(most);
        (share + due).min(self.blocks.pages().into())
    }

    /// Whether so many pages may live after an operation that makes them more by so many. It may end above the capacity by a share of a block: it asks for the most that it may
    /// take. Where moving a page takes more than a program, moving all must leave most of the slack, or emptying one yields next to nothing, and calls get long, or never end.
    pub(crate) fn may_hold(self, (live, more): (u32, u32), (collector, values): (&Collector, (u32, u32))) -> bool {
        let (capacity, pages) = (self.capacity(), u32::from(self.shape.pages_max()));
        // Raw pages come with summaries, which are never moved.
        let summaries = u32::from(self.shape.summaries(CellMode::Mlc));
        let summaries = if summaries > 0 { values.0 * summaries / (pages - summaries) } else { 0 };
        // And with two bits a cell, one that has none takes the room of several.
        let nodes = |live: u32| live.saturating_sub(values.0) * (self.shape.node_units() - 1);
        // Where what names one takes a program more, a block has to yield as much more.
        let names = if self.shape.has_mlc() { collector.names(slack(self.blocks.good()) * pages) } else { 0 };
        let live = live + summaries + names;
        let least = live - more.saturating_sub(1);
        let (live, least, raws) = (live + nodes(live), least + nodes(least), values.0.min(least));
        let toll = match self.shape.has_raw() {
            true => collector.toll_of_raw(least - raws, raws),
            false => collector.toll(least, values, pages),
        };
        let for_moves = (slack(self.blocks.good()) * pages / 16).max(pages / 2);
        let bounds = [(live, pages / ABOVE_SHARE), (least, 0), (toll, for_moves)];
        bounds.iter().all(|&(taken, above)| taken <= capacity + above)
    }
}
