//! Finding what was programmed after the newest checkpoint, in a bounded number of reads.

use core::ops::Range;

use nandu_media::{Malformed, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Nand};

use crate::access::Probe;
use crate::block_table::State;
use crate::error::LogError;
use crate::found::Found;
use crate::log::Log;

/// What roll-forward found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rolled {
    /// Entries of the ready list that were opened from its front.
    pub(crate) front: usize,
    /// Entries of the ready list that were opened from its back.
    pub(crate) back: usize,
    /// Entries opened of those for streams with two bits a cell.
    pub(crate) mlc: usize,
    /// Where each stream stands.
    pub(crate) positions: [Position; STREAM_COUNT_MAX],
    /// The newest valid page programmed after the checkpoint.
    pub(crate) newest: Option<Found>,
    /// The one that was taken for the newest before it was found.
    pub(crate) before: Option<Found>,
}

impl<N: Nand> Log<'_, N> {
    /// Finds what was programmed after the checkpoint.
    ///
    /// The opened blocks are both ends of the ready list (L3). A search over first pages finds where the back ends; those pages say
    /// where every stream stood, and with it nearly where the front ends. From the last block opened, each stream has moved on
    /// within its block only. About twice the logarithm of the ready list, the logarithm of a block, and one
    /// read a stream, two or three for those that moved last. The steps were chosen by trying some hundred kinds on the
    /// mounts of 1,800 chains of cuts: the most that any of them took is a fifth less than with a search by halves.
    pub(crate) fn roll_forward(&mut self) -> Result<Rolled, LogError<N::Error>> {
        let mut rolled = Rolled { front: 0, back: 0, mlc: 0, positions: self.positions(), newest: None, before: None };
        if self.shape.has_bare() {
            self.roll_front(&mut rolled)?;
        } else {
            self.roll_ready_list(&mut rolled)?;
        }
        // What the owner changes goes to the first two streams, and any number of pages may have. Once the end of one that moved
        // is known, few pages went to another one after it, as a rule.
        let mut is_near = false;
        for stream in 0..self.shape.headed() {
            let far = if self.shape.has_bare() { FAR_BESIDE_BARE } else { FAR };
            let steps = if is_near || stream > 1 { NEAR } else { far };
            is_near |= self.roll_stream(stream, steps, &mut rolled)?;
        }
        if self.shape.has_bare() {
            let others = self.ready.others();
            rolled.back = self.bare_back(&rolled.positions);
            rolled.mlc = self.mlc_back(&rolled.positions);
            rolled.front = rolled.front.max(self.headed_front(&rolled.positions)).min(others - rolled.back);
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
        let mut near = NEAR_BACK;
        while low < high {
            let middle = if near > 0 { high - 1 } else { low + (high - low) / 2 };
            near = near.saturating_sub(1);
            if !self.has_current_page(self.ready.blocks[middle])? {
                low = middle + 1;
                unopened = unopened.min(middle);
            } else {
                rolled.take(&self.found);
                if self.shape.is_front(self.found.stream) { low = middle + 1 } else { high = middle }
            }
            high = high.min(count - rolled.back_known(count)).max(low);
        }
        rolled.back = count - high;
        let mut high = high.min(unopened);
        let mut low = rolled.front_known(count).min(high);
        let mut near = NEAR_FRONT;
        while low < high {
            let middle = if near > 0 { low } else { low + (high - low) / 2 };
            near = near.saturating_sub(1);
            if self.has_current_page(self.ready.blocks[middle])? && self.shape.is_front(self.found.stream) {
                rolled.take(&self.found);
                low = (middle + 1).max(rolled.front_known(count).min(high));
            } else {
                high = middle;
            }
        }
        rolled.front = low;
        Ok(())
    }

    /// Finds how many blocks of the ready list were opened from its front where bare streams open those at its back, without a
    /// trace but in the headers found here: no block behind what these tell of is looked at. Between the ends there may be more
    /// bare blocks; what they hold reads as no page of the log, and takes two reads to be told. So the search goes by quarters from
    /// the front: in mounts of files being written the most reads were 40 that way, and 43 by halves; of files made and hardly
    /// written 40 and 39.
    fn roll_front(&mut self, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let (mut low, mut high) = (0, self.ready.others());
        let mut is_near = true;
        while low < high {
            let middle = if is_near { low } else { low + (high - low) / 4 };
            is_near = false;
            if self.has_current_page(self.ready.blocks[middle])? && self.shape.is_front(self.found.stream) {
                rolled.take(&self.found);
                high = high.min(self.ready.others() - self.bare_back(&rolled.positions));
                low = (middle + 1).max(self.headed_front(&rolled.positions)).min(high);
            } else {
                high = middle;
            }
        }
        rolled.front = low;
        Ok(())
    }

    /// How many entries of the ready list were opened from its front, as far as positions tell, where there are bare streams.
    fn headed_front(&self, positions: &[Position; STREAM_COUNT_MAX]) -> usize {
        let slots = positions[..self.shape.headed() as usize].iter().filter_map(|position| position.slot());
        slots.map(usize::from).filter(|&slot| slot < self.ready.others()).max().map_or(0, |slot| slot + 1)
    }

    /// How many entries of the ready list were opened from its back, as far as positions tell, where there are bare streams.
    ///
    /// Whatever block a bare stream filled, the header of a page that is needed together with it tells of that block or of one
    /// that was opened later: a stream keeps its block until it opens the next.
    pub(crate) fn bare_back(&self, positions: &[Position; STREAM_COUNT_MAX]) -> usize {
        self.opened_before(
            self.ready.others(),
            &positions[self.shape.headed() as usize..self.shape.first_mlc() as usize],
        )
    }

    /// The same of those for streams with two bits a cell.
    pub(crate) fn mlc_back(&self, positions: &[Position; STREAM_COUNT_MAX]) -> usize {
        self.opened_before(self.ready.count, &positions[self.shape.first_mlc() as usize..self.shape.streams as usize])
    }

    /// How many entries were opened from this one backwards, as these positions tell.
    fn opened_before(&self, end: usize, positions: &[Position]) -> usize {
        let slots = positions.iter().filter_map(|position| position.slot());
        let first = slots.map(usize::from).filter(|&slot| slot < end).min();
        first.map_or(0, |first| end - first)
    }

    /// Whether the first page of a block was programmed after the checkpoint, or the second if the first is damaged; its header is
    /// in `Log::found` then.
    pub(crate) fn has_current_page(&mut self, block: BlockAddr) -> Result<bool, LogError<N::Error>> {
        self.current_at_or_after(block, 0..self.shape.pages).map(|nth| nth.is_some())
    }

    /// The first of these pages if it was programmed after the checkpoint; the one after it if this one is damaged. What is behind
    /// them was not. Its header is in `Log::found` then.
    fn current_at_or_after(&mut self, block: BlockAddr, pages: Range<u16>) -> Result<Option<u16>, LogError<N::Error>> {
        for nth in pages.take(2) {
            match self.probe_twice(self.shape.data_page(block, nth))? {
                Probe::Valid if self.is_current(&self.found) => return Ok(Some(nth)),
                Probe::Valid if self.is_of_a_lost_checkpoint(&self.found) => {
                    return Err(LogError::Corrupt { page: self.found.page, why: Malformed::Sequence });
                }
                Probe::Valid | Probe::Erased => return Ok(None),
                Probe::Garbage => {}
            }
        }
        Ok(None)
    }

    pub(crate) fn is_current(&self, found: &Found) -> bool {
        // A copy made by a recovery that was cut carries the number of the checkpoint that was never completed. It has no
        // positions, so that it passes for nothing newer if that number is given out again before its block is erased.
        let is_slot_sound = |(stream, position): (usize, &Position)| match position.slot() {
            Some(Position::SLOT_OPEN) | None => true,
            Some(slot) if self.shape.is_mlc_stream(stream as u8) => {
                (self.ready.others()..self.ready.count).contains(&(slot as usize))
            }
            Some(slot) => (slot as usize) < self.ready.others(),
        };
        found.checkpoint == self.anchors.number
            && found.sequence > self.anchors.sequence
            && !found.kind.is_of_the_log()
            && found.stream < self.shape.streams
            && found.positions[found.stream as usize].slot().is_some()
            && found.positions.iter().enumerate().all(is_slot_sound)
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
                self.current_at_or_after(frontier.block, frontier.next..self.shape.pages)?;
            } else if !matches!(self.probe(self.shape.page_of(stream, frontier.block, frontier.next))?, Probe::Erased) {
                // A bare page says nothing of itself, and only commits make it count: it is lost, and the block left as it is.
                self.close(stream, State::Suspect);
            }
        }
        if self.shape.has_bare() {
            self.doubt_erased_from_back()?;
        }
        let ends = [self.ready.unopened().first().copied(), self.ready.unopened().last().copied()];
        for block in ends.into_iter().flatten() {
            self.has_current_page(block)?;
        }
        Ok(())
    }

    /// Blocks of the ready list that a clean checkpoint calls erased, and in which a bare stream has a page since, do not count as
    /// erased. From the back: that is the order in which streams open them. What is not called erased is erased anyway.
    fn doubt_erased_from_back(&mut self) -> Result<(), LogError<N::Error>> {
        let places = [self.ready.front..self.ready.others() - self.ready.back, self.ready.others()..self.ready.count];
        for places in places {
            for place in places.rev() {
                let block = self.ready.blocks[place];
                if self.blocks.state(block) != State::Ready {
                    continue;
                }
                if matches!(self.probe(self.shape.data_page(block, 0))?, Probe::Erased) {
                    break;
                }
                self.blocks.set_state(block, State::Listed);
            }
        }
        Ok(())
    }

    /// The block and next page of a stream's position.
    pub(crate) fn resolve(&self, stream: u8, position: Position) -> Option<(BlockAddr, u16)> {
        let block = match position.slot()? {
            Position::SLOT_OPEN => self.frontiers[stream as usize]?.block,
            slot => *self.ready.blocks[..self.ready.count].get(slot as usize)?,
        };
        Some((block, (position.last() + 1).min(self.shape.pages_of(stream))))
    }

    /// Follows a stream from where it is known to stand to its last page; returns whether it had moved. Looks so many pages ahead
    /// first, one step after the other as long as there is a page, and by halves then.
    fn roll_stream(&mut self, stream: u8, steps: &[u16], rolled: &mut Rolled) -> Result<bool, LogError<N::Error>> {
        let Some((block, next)) = self.resolve(stream, rolled.positions[stream as usize]) else { return Ok(false) };
        let (mut low, mut high) = (next, self.shape.pages);
        let mut steps = steps.iter();
        while low < high {
            let middle = match steps.next() {
                Some(&ahead) => low.saturating_add(ahead).min(high - 1),
                None => low + (high - low) / 2,
            };
            match self.current_at_or_after(block, middle..high)? {
                Some(nth) => {
                    low = nth + 1;
                    rolled.take(&self.found);
                    let own = Position::new(rolled.positions[stream as usize].slot().unwrap_or(0), nth);
                    rolled.positions[stream as usize] = own.unwrap_or(Position::NONE);
                }
                None => {
                    high = middle;
                    steps = [].iter();
                }
            }
        }
        Ok(low > next)
    }
}

/// Blocks that are looked at one after the other before an end of those opened is searched by halves, at the back of the ready list
/// and at its front.
const NEAR_BACK: u32 = 1;
const NEAR_FRONT: u32 = 2;
/// How far ahead a stream is looked for that stands still or has few pages more.
const NEAR: &[u16] = &[0, 1, 7];
/// The same for one that may have many.
const FAR: &[u16] = &[3, 15];
/// The same beside bare streams, where a mount reads more in other places: a page less at most, and some more where few pages came. In the
/// mounts of `vs/kernel` and `paper/dffs-mount` 40 reads at most instead of 41.
const FAR_BESIDE_BARE: &[u16] = &[15];

impl Rolled {
    /// Streams do not stand in blocks that are taken for unopened.
    pub(crate) fn forget_unopened(&mut self, others: usize, count: usize) {
        let unopened = [self.front..others - self.back, others..count - self.mlc];
        for position in &mut self.positions {
            let is_in = |slot: u8| unopened.iter().any(|places| places.contains(&(slot as usize)));
            if position.slot().is_some_and(is_in) {
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
    fn take(&mut self, found: &Found) {
        if self.newest.is_none_or(|newest| found.sequence > newest.sequence) {
            self.positions = found.positions;
            self.before = self.newest.replace(*found);
        }
    }
}
