//! The new heart, under the names that the tests of either heart use.

use nandu::Cells;
use nandu::nand::{Ecc, Geometry};
pub(crate) use nandu::next::{At, LogStats, Map, Snapshot, Store};
use nandu_sim::{Chip, Sim};

/// Pages of 1 KiB, so that a head names many pages beside long keys.
pub(crate) const SMALL: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 1024,
        spare_size: 32,
        program_unit: 1024,
        ecc: Ecc { codeword_size: 1024, correctable_bits: 4 },
        ..Chip::TINY.geometry
    },
    ..Chip::TINY
};

/// Pages of a value that is given up are counted behind a commit without a path.
pub(crate) const LEFT_OVER_PAGES: u32 = 1;

/// Whether a large value of one page waits for a sync, where changes do.
pub(crate) const VALUES_WAIT: bool = true;

/// Erases of the most worn block.
pub(crate) fn erase_count_max(stats: &LogStats) -> u32 {
    stats.erase_counts.1
}

/// Leaves a store without a word.
pub(crate) fn leave<C: Cells>(store: Store<'_, Sim, C>) -> Sim {
    store.abandon()
}

/// Part of the capacity that values of a few pages fill on a chip of 40 blocks, at least. Where each page is moved with the leaf that names it, moving takes two programs or more, and all of it has to leave the slack.
pub(crate) const SMALL_VALUES_LIVE: f64 = 0.45;
