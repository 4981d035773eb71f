//! Finding what was programmed after the newest checkpoint, in a bounded number of reads.

use nandu_media::{Malformed, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Nand};

use crate::access::{Found, Probe};
use crate::error::LogError;
use crate::log::{Log, ReadyList};

/// What roll-forward found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rolled {
    /// Entries of the ready list that were opened from its front.
    pub(crate) front: usize,
    /// Entries of the ready list that were opened from its back.
    pub(crate) back: usize,
    /// Where each stream stands.
    pub(crate) positions: [Position; STREAM_COUNT_MAX],
    /// The newest valid page programmed after the checkpoint.
    pub(crate) newest: Option<Found>,
}

impl<N: Nand> Log<'_, N> {
    /// Finds what was programmed after the checkpoint.
    ///
    /// The opened blocks are both ends of the ready list (L3). A binary search over first pages finds where the front ends;
    /// those pages say where every stream stood, and with it nearly where the back ends. From the last block opened, each
    /// stream has moved on within its block only. About the logarithm of the ready list, the logarithm of a block, and one
    /// read a stream.
    pub(crate) fn roll_forward(&mut self) -> Result<Rolled, LogError<N::Error>> {
        let mut rolled = Rolled { front: 0, back: 0, positions: self.positions(), newest: None };
        let (mut low, mut high) = (0, self.ready.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_current_page(self.ready.blocks[middle])? {
                Some(found) => {
                    rolled.take(found);
                    if ReadyList::is_front(found.stream) { low = middle + 1 } else { high = middle }
                }
                None => high = middle,
            }
        }
        rolled.front = low;
        loop {
            rolled.back = rolled.back.max(rolled.back_known(self.ready.count));
            if rolled.front + rolled.back >= self.ready.count {
                break;
            }
            match self.first_current_page(self.ready.blocks[self.ready.count - 1 - rolled.back])? {
                Some(found) => {
                    rolled.back += 1;
                    rolled.take(found);
                }
                None => break,
            }
        }
        let first = rolled.newest.map_or(0, |found| found.stream);
        for step in 0..self.shape.streams {
            let stream = (first + step) % self.shape.streams;
            self.roll_stream(stream, step == 0, &mut rolled)?;
        }
        if let Some(found) = rolled.newest {
            self.sequence = self.sequence.max(found.sequence.saturating_add(1));
        }
        Ok(rolled)
    }

    /// The first page of a block if it was programmed after the checkpoint, or the second if the first is damaged.
    pub(crate) fn first_current_page(&mut self, block: BlockAddr) -> Result<Option<Found>, LogError<N::Error>> {
        self.current_at_or_after(block, 0).map(|found| found.map(|(_, found)| found))
    }

    /// The page if it was programmed after the checkpoint; the one after it if this one is damaged.
    fn current_at_or_after(&mut self, block: BlockAddr, nth: u16) -> Result<Option<(u16, Found)>, LogError<N::Error>> {
        for nth in nth..self.shape.pages.min(nth.saturating_add(2)) {
            match self.probe(self.shape.data_page(block, nth))? {
                Probe::Valid(found) if self.is_current(&found) => return Ok(Some((nth, found))),
                Probe::Valid(found) if self.is_of_a_lost_checkpoint(&found) => {
                    return Err(LogError::Corrupt { page: found.page, why: Malformed::Sequence(found.sequence) });
                }
                Probe::Valid(_) => return Ok(None),
                Probe::Erased => return Ok(None),
                Probe::Garbage => {}
            }
        }
        Ok(None)
    }

    fn is_current(&self, found: &Found) -> bool {
        // A copy made by a recovery that was cut carries the number of the checkpoint that was never completed.
        let is_slot_sound = |position: &Position| match position.slot() {
            Some(Position::SLOT_OPEN) | None => true,
            Some(slot) => (slot as usize) < self.ready.count,
        };
        found.checkpoint == self.anchors.number
            && found.sequence > self.anchors.sequence
            && !found.kind.is_of_the_log()
            && found.stream < self.shape.streams
            && found.positions.iter().all(is_slot_sound)
    }

    /// Whether a page was appended after a checkpoint newer than the newest one found, so that that one must have decayed.
    /// What is left is too old to build on. A copy made by a recovery that was cut has no positions, and is no such page.
    fn is_of_a_lost_checkpoint(&self, found: &Found) -> bool {
        found.checkpoint > self.anchors.number
            && found.sequence > self.anchors.sequence
            && found.positions.iter().any(|position| position.slot().is_some())
    }

    /// Nothing may have been appended after a clean checkpoint. If something was, a newer checkpoint has decayed. One read a
    /// stream, and one for the first block that would have been opened.
    pub(crate) fn check_clean(&mut self) -> Result<(), LogError<N::Error>> {
        for frontier in self.frontiers.into_iter().flatten() {
            self.current_at_or_after(frontier.block, frontier.next)?;
        }
        let ends = [self.ready.unopened().first().copied(), self.ready.unopened().last().copied()];
        for block in ends.into_iter().flatten() {
            self.first_current_page(block)?;
        }
        Ok(())
    }

    /// The block and next page of a stream's position.
    pub(crate) fn resolve(&self, stream: u8, position: Position) -> Option<(BlockAddr, u16)> {
        let block = match position.slot()? {
            Position::SLOT_OPEN => self.frontiers[stream as usize]?.block,
            slot => *self.ready.blocks[..self.ready.count].get(slot as usize)?,
        };
        Some((block, (position.last() + 1).min(self.shape.pages)))
    }

    /// Follows a stream from where it is known to stand to its last page.
    fn roll_stream(&mut self, stream: u8, is_far: bool, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let Some((block, next)) = self.resolve(stream, rolled.positions[stream as usize]) else { return Ok(()) };
        let (mut low, mut high) = (next, self.shape.pages);
        // The stream that opened the last block is likely to be far into it; the others are likely to stand still.
        let mut is_far = is_far;
        while low < high {
            let middle = if is_far { low + (high - low) / 2 } else { low };
            is_far = true;
            match self.current_at_or_after(block, middle)? {
                Some((nth, found)) => {
                    low = nth + 1;
                    rolled.take(found);
                    let own = Position::new(rolled.positions[stream as usize].slot().unwrap_or(0), nth);
                    rolled.positions[stream as usize] = own.unwrap_or(Position::NONE);
                }
                None => high = middle,
            }
        }
        Ok(())
    }
}

impl Rolled {
    /// Streams do not stand in blocks that are taken for unopened.
    pub(crate) fn forget_unopened(&mut self, count: usize) {
        let unopened = self.front..count - self.back;
        for position in &mut self.positions {
            if position.slot().is_some_and(|slot| unopened.contains(&(slot as usize))) {
                *position = Position::NONE;
            }
        }
    }

    /// How many entries were opened from the back, as far as the positions tell.
    fn back_known(&self, count: usize) -> usize {
        let slots = self.positions.iter().skip(1).filter_map(|position| position.slot());
        let first = slots.map(usize::from).filter(|slot| (self.front..count).contains(slot)).min();
        first.map_or(0, |first| count - first)
    }

    /// A page was found: if it is newer than what is known, it knows better where the streams stood.
    fn take(&mut self, found: Found) {
        if self.newest.is_none_or(|newest| found.sequence > newest.sequence) {
            self.positions = found.positions;
            self.newest = Some(found);
        }
    }
}
