//! The blocks that are opened next.
//!
//! The ready list of the newest checkpoint has the least worn block first. Stream 0, of which the pages die soonest, takes from the front, the
//! streams of survivors take from the back, so worn blocks rest. After a cut the blocks that stream 0 opened are found one after the other from
//! the front (N3), and nobody has to look for the others: the newest commit says which of them it needs.

use nandu_media::READY_COUNT_MAX;
use nandu_nand::BlockAddr;

use crate::order::Listed;

/// From where a block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// The ready list of the newest checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    blocks: [BlockAddr; READY_COUNT_MAX],
    count: usize,
    front: usize,
    back: usize,
}

impl Ready {
    pub(crate) const EMPTY: Ready = Ready { blocks: [BlockAddr(0); READY_COUNT_MAX], count: 0, front: 0, back: 0 };

    /// Adds a block behind the others. There has to be room, and nothing may have been opened yet.
    pub(crate) fn push(&mut self, block: BlockAddr) {
        assert!(self.front == 0 && self.back == 0, "a list that is in use is not added to");
        debug_assert!(!self.all().contains(&block), "block {block} is listed twice");
        self.blocks[self.count] = block;
        self.count += 1;
    }

    /// Entries that were not opened.
    pub(crate) fn remaining(&self) -> usize {
        debug_assert!(self.front + self.back <= self.count);
        self.count - self.front - self.back
    }

    pub(crate) fn unopened(&self) -> &[BlockAddr] {
        &self.blocks[self.front..self.count - self.back]
    }

    /// All entries, in their order.
    pub(crate) fn all(&self) -> &[BlockAddr] {
        &self.blocks[..self.count]
    }

    /// The entry at a place.
    pub(crate) fn at(&self, place: u8) -> Option<BlockAddr> {
        self.all().get(usize::from(place)).copied()
    }

    /// Takes the next block from an end, with its place in the list. There has to be one.
    pub(crate) fn take(&mut self, end: End) -> (u8, Listed) {
        assert!(self.remaining() > 0, "a block is taken from a list that has none");
        let place = match end {
            End::Front => self.front,
            End::Back => self.count - 1 - self.back,
        };
        match end {
            End::Front => self.front += 1,
            End::Back => self.back += 1,
        }
        debug_assert!(self.front + self.back <= self.count);
        (place as u8, Listed::taken(self.blocks[place]))
    }

    /// The block that an end would open next.
    pub(crate) fn peek(&self, end: End) -> Option<Listed> {
        let unopened = self.unopened();
        let block = if end == End::Front { unopened.first() } else { unopened.last() };
        block.copied().map(Listed::taken)
    }

    /// Says how many entries were opened from each end, found out after a cut.
    pub(crate) fn resume(&mut self, front: usize, back: usize) {
        self.front = front.min(self.count);
        self.back = back.min(self.count - self.front);
        debug_assert!(self.unopened().len() == self.remaining());
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Ready};
    use nandu_nand::BlockAddr;

    #[test]
    fn both_ends_meet_and_places_tell_the_blocks() {
        let mut ready = Ready::EMPTY;
        (5..9).for_each(|block| ready.push(BlockAddr(block)));
        let mut take = |end| {
            let (place, block) = ready.take(end);
            assert_eq!(ready.at(place), Some(block.block()));
            (place, block.block().0)
        };
        assert_eq!([take(End::Front), take(End::Back), take(End::Back)], [(0, 5), (3, 8), (2, 7)]);
        assert_eq!(ready.unopened(), [BlockAddr(6)]);
        ready.resume(9, 9);
        assert_eq!((ready.remaining(), ready.all().len()), (0, 4));
    }
}
