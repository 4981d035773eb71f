//! Finding what was programmed after the newest checkpoint, in a bounded number of reads.

use nandu_media::{Malformed, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Nand};

use crate::access::{Found, Probe};
use crate::block_table::State;
use crate::error::LogError;
use crate::log::Log;

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
    /// The opened blocks are both ends of the ready list (L3). A search over first pages finds where the back ends; those pages say
    /// where every stream stood, and with it nearly where the front ends. From the last block opened, each stream has moved on
    /// within its block only. About twice the logarithm of the ready list, the logarithm of a block, and one
    /// read a stream, two or three for those that moved last.
    pub(crate) fn roll_forward(&mut self) -> Result<Rolled, LogError<N::Error>> {
        let mut rolled = Rolled { front: 0, back: 0, positions: self.positions(), newest: None };
        if self.shape.has_bare() {
            self.roll_front(&mut rolled)?;
        } else {
            self.roll_ready_list(&mut rolled)?;
        }
        // What the owner changes goes to the first two streams, and what the collector moves goes in between: the end of the busier
        // of these two is likely to be near the end of everything. The busier one is the one whose next page came sooner.
        let next = [self.next_page(0, &rolled)?, self.next_page(1, &rolled)?];
        next.iter().flatten().for_each(|&found| rolled.take(found));
        let sequence = |stream: usize| next[stream].map_or(u64::MAX, |found| found.sequence);
        let first = u8::from(sequence(1) < sequence(0));
        let mut is_near = false;
        for step in 0..self.shape.headed {
            let stream = if step < 2 { step ^ first } else { step };
            if step >= 2 || next[stream as usize].is_some() {
                is_near |= self.roll_stream(stream, step == 0, is_near, &mut rolled)?;
            }
        }
        if self.shape.has_bare() {
            let count = self.ready.count;
            rolled.back = self.bare_back(&rolled.positions);
            rolled.front = rolled.front.max(self.headed_front(&rolled.positions)).min(count - rolled.back);
        }
        if let Some(found) = rolled.newest {
            self.sequence = self.sequence.max(found.sequence.saturating_add(1));
        }
        Ok(rolled)
    }

    /// Finds how many blocks of the ready list were opened from its front, and how many from its back.
    ///
    /// The back first: its pages say how far the front was. Each end is likely to be where the pages read so far say that it is,
    /// or soon after; else it is searched by halves.
    fn roll_ready_list(&mut self, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let count = self.ready.count;
        let (mut low, mut high) = (0, count);
        // The first entry that is known to be unopened.
        let mut unopened = count;
        let mut near = NEAR_BLOCKS;
        while low < high {
            let middle = if near > 0 { high - 1 } else { low + (high - low) / 2 };
            near = near.saturating_sub(1);
            match self.first_current_page(self.ready.blocks[middle])? {
                Some(found) if !self.shape.is_front(found.stream) => {
                    rolled.take(found);
                    high = middle;
                }
                Some(found) => {
                    rolled.take(found);
                    low = middle + 1;
                }
                None => {
                    low = middle + 1;
                    unopened = unopened.min(middle);
                }
            }
            high = high.min(count - rolled.back_known(count)).max(low);
        }
        rolled.back = count - high;
        let mut high = high.min(unopened);
        let mut low = rolled.front_known(count).min(high);
        let mut is_near = true;
        while low < high {
            let middle = if is_near { low } else { low + (high - low) / 2 };
            is_near = false;
            match self.first_current_page(self.ready.blocks[middle])? {
                Some(found) if self.shape.is_front(found.stream) => {
                    rolled.take(found);
                    low = (middle + 1).max(rolled.front_known(count).min(high));
                }
                Some(_) | None => high = middle,
            }
        }
        rolled.front = low;
        Ok(())
    }

    /// Finds how many blocks of the ready list were opened from its front where bare streams open those at its back, without a
    /// trace but in the headers found here: no block behind what these tell of is looked at. Between the ends there may be more
    /// bare blocks; what they hold reads as no page of the log.
    fn roll_front(&mut self, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let (mut low, mut high) = (0, self.ready.count);
        let mut is_near = true;
        while low < high {
            let middle = if is_near { low } else { low + (high - low) / 2 };
            is_near = false;
            match self.first_current_page(self.ready.blocks[middle])? {
                Some(found) if self.shape.is_front(found.stream) => {
                    rolled.take(found);
                    high = high.min(self.ready.count - self.bare_back(&rolled.positions));
                    low = (middle + 1).max(self.headed_front(&rolled.positions)).min(high);
                }
                Some(_) | None => high = middle,
            }
        }
        rolled.front = low;
        Ok(())
    }

    /// How many entries of the ready list were opened from its front, as far as positions tell, where there are bare streams.
    fn headed_front(&self, positions: &[Position; STREAM_COUNT_MAX]) -> usize {
        let slots = positions[..self.shape.headed as usize].iter().filter_map(|position| position.slot());
        slots.map(usize::from).filter(|&slot| slot < self.ready.count).max().map_or(0, |slot| slot + 1)
    }

    /// How many entries of the ready list were opened from its back, as far as positions tell, where there are bare streams.
    ///
    /// Whatever block a bare stream filled, the header of a page that is needed together with it tells of that block or of one
    /// that was opened later: a stream keeps its block until it opens the next.
    pub(crate) fn bare_back(&self, positions: &[Position; STREAM_COUNT_MAX]) -> usize {
        let bare = self.shape.headed as usize..self.shape.streams as usize;
        let slots = positions[bare].iter().filter_map(|position| position.slot());
        let first = slots.map(usize::from).filter(|&slot| slot < self.ready.count).min();
        first.map_or(0, |first| self.ready.count - first)
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

    pub(crate) fn is_current(&self, found: &Found) -> bool {
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
        for stream in 0..self.shape.streams {
            let Some(frontier) = self.frontiers[stream as usize] else { continue };
            if !self.shape.is_bare_stream(stream) {
                self.current_at_or_after(frontier.block, frontier.next)?;
            } else if !matches!(self.probe(self.shape.data_page(frontier.block, frontier.next))?, Probe::Erased) {
                // A bare page says nothing of itself, and only commits make it count: it is lost, and the block left as it is.
                self.close(stream, State::Suspect);
            }
        }
        while self.shape.has_bare()
            && let Some(&last) = self.ready.unopened().last()
            && !matches!(self.probe(self.shape.data_page(last, 0))?, Probe::Erased)
        {
            self.blocks.set_state(last, State::Free);
            self.ready.back += 1;
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

    /// The page behind the one where a stream is known to stand.
    fn next_page(&mut self, stream: u8, rolled: &Rolled) -> Result<Option<Found>, LogError<N::Error>> {
        match self.resolve(stream, rolled.positions[stream as usize]) {
            Some((block, next)) if next < self.shape.pages => {
                self.current_at_or_after(block, next).map(|found| found.map(|(_, found)| found))
            }
            _ => Ok(None),
        }
    }

    /// Follows a stream from where it is known to stand to its last page; returns whether it had moved.
    ///
    /// Many streams stand still, so the next page is looked at first. A stream that moved may be anywhere in its block. But once
    /// the end of one that moved is known, the pages that another one got after it are few, as a rule: `is_near`.
    fn roll_stream(
        &mut self,
        stream: u8,
        is_moving: bool,
        is_near: bool,
        rolled: &mut Rolled,
    ) -> Result<bool, LogError<N::Error>> {
        let Some((block, next)) = self.resolve(stream, rolled.positions[stream as usize]) else { return Ok(false) };
        let (mut low, mut high) = (next, self.shape.pages);
        let mut ahead = if is_moving { FAR } else { 0 };
        while low < high {
            let middle = match ahead {
                FAR => low + (high - low) / 2,
                ahead => low.saturating_add(ahead).min(high - 1),
            };
            match self.current_at_or_after(block, middle)? {
                Some((nth, found)) => {
                    low = nth + 1;
                    rolled.take(found);
                    let own = Position::new(rolled.positions[stream as usize].slot().unwrap_or(0), nth);
                    rolled.positions[stream as usize] = own.unwrap_or(Position::NONE);
                    ahead = if is_near && ahead < NEAR_MAX && high - low >= NEAR_RANGE { 4 * ahead + 1 } else { FAR };
                }
                None => {
                    high = middle;
                    ahead = FAR;
                }
            }
        }
        Ok(is_moving || low > next)
    }
}

/// Blocks that are looked at one after the other before the end of those opened from the back is searched by halves.
const NEAR_BLOCKS: u32 = 2;
/// How far ahead a stream is looked for while its end is expected to be near: 0, 1, 5 pages.
const NEAR_MAX: u16 = 5;
/// Pages that may be left in a block for that to be worth it.
const NEAR_RANGE: u16 = 8;
/// Its end may be anywhere.
const FAR: u16 = u16::MAX;

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

    /// How many entries were opened from the front, as far as the positions tell.
    fn front_known(&self, count: usize) -> usize {
        let slot = self.positions[0].slot().map(usize::from).filter(|&slot| slot < count);
        slot.map_or(0, |slot| slot + 1)
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
