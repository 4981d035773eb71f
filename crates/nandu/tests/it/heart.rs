//! What the tests of either heart stand on: here the present one, in `next` the new one.

use nandu::Cells;
pub(crate) use nandu::{At, LogStats, Map, Snapshot, Store};
use nandu_sim::{Chip, Sim};

/// The smallest chip that large values are tested on.
pub(crate) const SMALL: Chip = Chip::TINY;

/// Pages that are left over when a value was put and removed, since leaves beside it were divided.
pub(crate) const LEFT_OVER_PAGES: u32 = 0;

/// Whether a large value of one page waits for a sync, where changes do.
pub(crate) const VALUES_WAIT: bool = false;

/// Erases of the most worn block.
pub(crate) fn erase_count_max(stats: &LogStats) -> u32 {
    stats.erase_count_max
}

/// Leaves a store without a word.
pub(crate) fn leave<C: Cells>(store: Store<'_, Sim, C>) -> Sim {
    store.abandon()
}

/// Part of the capacity that values of a few pages fill on a chip of 40 blocks, at least.
pub(crate) const SMALL_VALUES_LIVE: f64 = 0.5;
