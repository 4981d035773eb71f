//! Static wear levelling: blocks whose pages never change are made to wear.
//!
//! Dynamic levelling needs nothing kept: the block opened next is the free one with the fewest erases. But what never changes holds
//! its blocks for ever, and the others wear for them. So now and then the least worn full block is moved into the most worn free one,
//! in idle time and under a cap.

/// When to move a block, under a cap of one block in so long.
#[derive(Clone, Debug)]
pub struct Levelling {
    gap: u32,
    interval_us: u64,
    moved_us: Option<u64>,
}

impl Levelling {
    /// Least difference between erase counts of the most and the least worn block that is acted on.
    const GAP_MIN: u32 = 16;
    /// Time between two blocks, microseconds.
    const INTERVAL_US: u64 = 10_000_000;

    /// For blocks that stand so many erases: a difference of one in a hundred of them is acted on, of sixteen at least.
    pub const fn new(endurance: u32) -> Levelling {
        let share = endurance / 100;
        let gap = if share > Levelling::GAP_MIN { share } else { Levelling::GAP_MIN };
        Levelling { gap, interval_us: Levelling::INTERVAL_US, moved_us: None }
    }

    /// Whether the least worn full block is to be moved now, given the erase counts of the least and the most worn good block.
    pub fn is_due(&self, least: u32, most: u32, now_us: u64) -> bool {
        let is_rested = self.moved_us.is_none_or(|moved_us| now_us.saturating_sub(moved_us) >= self.interval_us);
        is_rested && most.saturating_sub(least) > self.gap
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
}
