//! Which stream a page goes to: pages that will die together should stand together.
//!
//! A page that replaces a short-lived one is expected to be short-lived: its lifetime is told from how long ago the
//! block of its predecessor was opened, against the mean lifetime of the blocks of stream 0 that were reclaimed. Pages
//! that survive in a victim go by their age to colder streams, each of which holds pages four times as old as the one
//! before. Survivors inherit the time of the block they come from, so ages add up over moves.

use nandu_nand::{Nand, PageAddr};

use crate::log::Log;

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
    /// It is the same as this page, moved to empty a block.
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

    fn mean(self) -> u32 {
        if self.mean == 0 { u32::MAX } else { (self.mean / 16).max(1) }
    }
}

impl<N: Nand> Log<'_, N> {
    /// The coarse time.
    pub(crate) fn now(&self) -> u16 {
        (self.sequence >> self.shape.birth_shift) as u16
    }

    /// Coarse time since a block's data was programmed.
    pub(crate) fn age(&self, block: nandu_nand::BlockAddr) -> u16 {
        self.now().wrapping_sub(self.blocks.birth(block))
    }

    /// The stream for a bare page, and the birth of its block if it opens one: the first one for what the user changes, the
    /// last one for what is moved.
    pub(crate) fn place_bare(&self, placement: Placement) -> (u8, u16) {
        let last = self.shape.streams - 1;
        let first = self.shape.headed.min(last);
        match placement {
            Placement::Stream(stream) => (stream.clamp(first, last), self.now()),
            Placement::Survivor { from } if self.shape.geometry.contains_page(from) => {
                (last, self.blocks.birth(self.shape.geometry.block_of(from)))
            }
            Placement::Survivor { .. } => (last, self.now()),
            Placement::New | Placement::Update { .. } | Placement::Passing => (first, self.now()),
        }
    }

    /// The stream for a page, and the birth of its block if it opens one.
    pub(crate) fn place(&self, placement: Placement) -> (u8, u16) {
        let streams = self.shape.headed;
        let last = streams - 1;
        let now = self.now();
        match placement {
            Placement::Stream(stream) => (stream.min(last), now),
            Placement::Passing => (0, now),
            Placement::New => (if streams >= 3 { 1 } else { 0 }, now),
            Placement::Update { of } => {
                if streams < 3 || !self.shape.geometry.contains_page(of) {
                    return (0, now);
                }
                let age = self.age(self.shape.geometry.block_of(of));
                (u8::from(u32::from(age) >= self.lifetimes.mean()), now)
            }
            Placement::Survivor { from } => {
                if !self.shape.geometry.contains_page(from) {
                    return (last, now);
                }
                let block = self.shape.geometry.block_of(from);
                let birth = self.blocks.birth(block);
                if streams <= 3 {
                    return (last, birth);
                }
                if self.blocks.stream(block) == 0 {
                    return (2, birth);
                }
                let mean = self.lifetimes.mean();
                let mut limit = mean.saturating_mul(4);
                let mut stream = 3;
                while stream < last && u32::from(self.age(block)) >= limit {
                    stream += 1;
                    limit = limit.saturating_mul(4);
                }
                (stream, birth)
            }
        }
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
