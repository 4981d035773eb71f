//! Which stream a page goes to: pages that will die together should stand together.
//!
//! A page that replaces a short-lived one is expected to be short-lived: its lifetime is told from how long ago the
//! block of its predecessor was opened, against the mean lifetime of the blocks of stream 0 that were reclaimed. Pages
//! that survive in a victim go one stream further each time, so the last streams hold what was never changed while blocks
//! were filled and emptied several times.
//!
//! The age of a block counts from its opening, also where moved pages stand in it: it tells, together with how many of them
//! have died since, how fast they die, which is what victims are chosen by. If blocks of survivors inherited the age of
//! what they hold, the coldest blocks would look as if they were to be emptied soon, and a third of all copies would be of
//! pages out of nearly full blocks.

use nandu_nand::PageAddr;

/// Where a page comes from, by which the log chooses its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Nothing is known of it.
    New,
    /// It replaces this page by the wish of the user.
    Update {
        /// The page replaced, not superseded yet.
        of: PageAddr,
    },
    /// It is the same as this page, moved to empty a block. A bare page goes to the last stream; where that has two bits a cell, no
    /// commit may name it before [`Log::is_settled`](crate::Log::is_settled) says so.
    Survivor {
        /// The page it comes from.
        from: PageAddr,
    },
    /// It has to be programmed because pages are moved to empty a block, says nothing new, and is soon replaced.
    Passing,
    /// The owner knows better. A stream beyond the last means the last, of those with headers or, for a bare page, of the bare
    /// ones; there, one before the first means the first.
    Stream(u8),
}

impl Placement {
    /// Whether a page placed so says nothing new.
    pub(crate) fn is_move(self) -> bool {
        matches!(self, Placement::Survivor { .. } | Placement::Passing)
    }
}

/// Mean lifetime of the blocks of stream 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetimes {
    /// In coarse time, times 16; 0: unknown.
    mean: u32,
}

impl Lifetimes {
    pub(crate) const UNKNOWN: Lifetimes = Lifetimes { mean: 0 };

    /// A block of stream 0 was reclaimed at this age.
    pub(crate) fn learn(&mut self, age: u16) {
        let age = u32::from(age) * 16;
        self.mean = if self.mean == 0 { age.max(1) } else { (self.mean * 15 + age) / 16 };
    }

    pub(crate) fn mean(self) -> u32 {
        if self.mean == 0 { u32::MAX } else { (self.mean / 16).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::Lifetimes;

    #[test]
    fn the_mean_lifetime_follows_what_is_learnt() {
        let mut lifetimes = Lifetimes::UNKNOWN;
        assert_eq!(lifetimes.mean(), u32::MAX);
        lifetimes.learn(100);
        assert_eq!(lifetimes.mean(), 100);
        for _ in 0..100 {
            lifetimes.learn(10);
        }
        assert!((10..=12).contains(&lifetimes.mean()), "{}", lifetimes.mean());
    }
}
