//! Static wear levelling: blocks whose pages never change are made to wear.
//!
//! Dynamic levelling needs nothing kept: the block opened next is the free one with the fewest erases. But what never changes holds
//! its blocks for ever, and the others wear for them. So now and then the least worn full block is moved into the most worn free one,
//! in idle time and under a cap; so each page that never changes is moved once for each such difference in the life of a chip.

/// When to move a block, under a cap of one block in so long.
#[derive(Clone, Debug)]
pub struct Levelling {
    gap: u32,
    interval_us: u64,
    moved_us: Option<u64>,
}

impl Levelling {
    /// Least difference between erase counts of two blocks that is acted on.
    const GAP_MIN: u32 = 16;
    /// Time between two blocks, microseconds.
    const INTERVAL_US: u64 = 10_000_000;

    /// For blocks that stand so many erases: a difference of more than one in a hundred of them is acted on, and of more than sixteen.
    pub const fn new(endurance: u32) -> Levelling {
        let share = endurance / 100;
        let gap = if share > Levelling::GAP_MIN { share } else { Levelling::GAP_MIN };
        Levelling { gap, interval_us: Levelling::INTERVAL_US, moved_us: None }
    }

    /// Whether the least worn full block is to be moved, given its erase count and that of the block to which its pages would go, and how many
    /// erases of each block are left in the mean of what was promised.
    ///
    /// Of that block, not of the most worn one there is: what never changes, moved to blocks that are hardly worn, would be moved again and
    /// again, and the most worn block would stay what it is. With few erases left a block that lags would not catch up any more.
    pub fn is_wanted(&self, least: u32, destination: u32, left: u32) -> bool {
        self.is_ahead(destination, least) && left > self.gap / 8
    }

    /// Whether a block that was erased so often is so much more worn than the least worn one that this is acted on.
    pub fn is_ahead(&self, erases: u32, least: u32) -> bool {
        erases.saturating_sub(least) > self.gap
    }

    /// The age from which on a block counts as one that was written long ago, given that of the oldest one and the pages of the chip, all in
    /// pages programmed: half of the former, since after a mount nobody knows how old anything is, and never more than the latter.
    pub fn old(oldest: u64, chip_pages: u32) -> u64 {
        (oldest / 2).min(chip_pages.into())
    }

    /// When a block may be moved at the earliest, if there were no requests since then.
    pub fn due_us(&self, idle_since_us: u64) -> u64 {
        self.moved_us.map_or(idle_since_us, |moved_us| moved_us.max(idle_since_us)).saturating_add(self.interval_us)
    }

    /// Whether the least worn full block is to be moved now; for a caller that does not have to wait for idle time.
    pub fn is_due(&self, least: u32, destination: u32, now_us: u64) -> bool {
        self.is_wanted(least, destination, u32::MAX) && (self.moved_us.is_none() || self.due_us(0) <= now_us)
    }

    /// A block begins to be moved.
    pub fn begins(&mut self, now_us: u64) {
        self.moved_us = Some(now_us);
    }
}

#[cfg(test)]
mod tests {
    use super::Levelling;

    #[test]
    fn a_block_is_moved_for_a_great_difference_and_not_too_often() {
        let mut levelling = Levelling::new(1000);
        assert!(!levelling.is_due(3, 19, 0) && levelling.is_due(3, 20, 0));
        levelling.begins(0);
        assert!(!levelling.is_due(3, 20, 9_999_999) && levelling.is_due(3, 20, 10_000_000));
        assert!(!Levelling::new(10_000).is_due(0, 100, 0));
        assert!(Levelling::new(10_000).is_due(0, 101, 0));
    }

    #[test]
    fn a_block_is_moved_when_requests_have_rested_and_as_long_as_it_can_catch_up() {
        let mut levelling = Levelling::new(1000);
        assert!(levelling.is_wanted(3, 20, 3) && !levelling.is_wanted(3, 20, 2) && !levelling.is_wanted(4, 20, 500));
        assert_eq!(levelling.due_us(7_000_000), 17_000_000);
        levelling.begins(18_000_000);
        assert_eq!([7_000_000, 50_000_000].map(|since_us| levelling.due_us(since_us)), [28_000_000, 60_000_000]);
    }
}
