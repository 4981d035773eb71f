//! Appending: the frontier of each stream.

use nandu_media::header::{FLAG_COMMIT, FLAG_MOVED};
use nandu_media::{PageFields, PageKind, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::access::Programmed;
use crate::block_table::{HELD, State};
use crate::error::LogError;
use crate::log::{Condition, Frontier, Log};
use crate::placement::Placement;

/// Blocks that one append tries before it gives up.
pub(crate) const ATTEMPTS: u32 = 8;

/// How a page is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append {
    /// What it holds; not [`PageKind::Anchor`] or [`PageKind::Table`].
    pub kind: PageKind,
    /// Where it comes from.
    pub placement: Placement,
    /// Whether the owner's state is what this page says, once it is durable.
    pub is_commit: bool,
    /// To what its program is booked.
    pub cause: Cause,
}

impl Append {
    /// Whether the page says nothing new.
    fn is_move(&self) -> bool {
        self.placement.is_move()
    }
}

impl<N: Nand> Log<'_, N> {
    /// Programs a page: `bytes` is a whole page, with room for the header ([`Log::header_size`]) at its front, which is
    /// filled in here. When this returns, the page is durable, and with `is_commit` it is what a mount begins from.
    ///
    /// Costs exactly one program, but for these: after a clean mount, and if [`Log::reserve`] was not asked first, a
    /// checkpoint (with its erases); after a failed program, one more program, or a checkpoint as well.
    ///
    /// A commit with [`Placement::Survivor`] or [`Placement::Passing`] promises nothing: after a cut, recovery may go back to the commit before it. It
    /// must say what that one said, from other places.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`] before anything was programmed; [`LogError::ReadOnly`], [`LogError::Poisoned`],
    /// [`LogError::Nand`]. After an error the page counts as not appended, unless the chip is gone, when a mount may find
    /// it.
    pub fn append(&mut self, bytes: &mut [u8], append: Append) -> Result<PageAddr, LogError<N::Error>> {
        self.check_writable()?;
        assert!(bytes.len() == self.page_size() && !append.kind.is_of_the_log(), "append of what is no page");
        self.leave_clean()?;
        if !append.is_move() && self.ready.remaining() == 0 {
            self.make_ready()?;
            if self.ready.remaining() == 0 {
                return Err(LogError::Full);
            }
        }
        for _ in 0..ATTEMPTS {
            let (stream, birth) = self.stream_for(append.placement);
            let frontier = self.open_frontier(stream, birth, append.is_move())?;
            let page = self.shape.data_page(frontier.block, frontier.next);
            // The sequence grows before the program, not after: if the program is torn, its number is skipped. Given out
            // again, two pages could carry one number, and recovery could not tell which is newer.
            let sequence = self.sequence;
            self.sequence += 1;
            self.seal(bytes, &append, page, sequence, stream);
            let check = self.options.read_back;
            let result = self.for_cause(append.cause, |log| Self::program(&mut log.nand, page, bytes, check));
            self.stats.count(append.cause);
            let outcome = match result {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.close(stream, State::Suspect);
                    return Err(self.chip_error(error));
                }
            };
            if outcome == Programmed::Done {
                self.advance(stream, true, append.is_commit.then_some(page));
                return Ok(page);
            }
            self.give_up_block(stream, outcome)?;
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
    }

    /// Fills in the header of a page of the owner's.
    fn seal(&self, bytes: &mut [u8], append: &Append, page: PageAddr, sequence: u64, stream: u8) {
        PageFields {
            kind: append.kind,
            sequence,
            page: page.0,
            volume: self.volume,
            committed: self.committed.map(|page| page.0),
            checkpoint: self.anchors.number,
            stream,
            flags: match (append.is_commit, append.is_move()) {
                (false, _) => 0,
                (true, false) => FLAG_COMMIT,
                (true, true) => FLAG_COMMIT | FLAG_MOVED,
            },
            positions: &self.positions_with(stream)[..self.shape.streams as usize],
        }
        .seal(bytes);
    }

    /// Where each stream stands.
    pub(crate) fn positions(&self) -> [Position; STREAM_COUNT_MAX] {
        self.frontiers.map(|frontier| match frontier {
            Some(Frontier { slot, next, .. }) if next > 0 => Position::new(slot, next - 1).unwrap_or(Position::NONE),
            _ => Position::NONE,
        })
    }

    /// Where each stream stands, counting the page that is about to be programmed in one of them.
    pub(crate) fn positions_with(&self, stream: u8) -> [Position; STREAM_COUNT_MAX] {
        let mut positions = self.positions();
        if let Some(frontier) = &self.frontiers[stream as usize] {
            positions[stream as usize] = Position::new(frontier.slot, frontier.next).unwrap_or(Position::NONE);
        }
        positions
    }

    /// The stream of a page. When the pool is low, a page that would open a block goes where there is room instead.
    fn stream_for(&self, placement: Placement) -> (u8, u16) {
        let (stream, birth) = self.place(placement);
        if self.has_room(stream) || self.blocks.pool() > self.shape.floor_host() {
            return (stream, birth);
        }
        let other = (0..self.shape.headed).rev().find(|&other| self.has_room(other));
        (other.unwrap_or(stream), birth)
    }

    /// Whether a stream's block takes another page.
    pub(crate) fn has_room(&self, stream: u8) -> bool {
        self.frontiers[stream as usize].is_some_and(|frontier| !frontier.is_closed && frontier.next < self.shape.pages)
    }

    /// The frontier of a stream, with room for a page.
    pub(crate) fn open_frontier(
        &mut self,
        stream: u8,
        birth: u16,
        is_move: bool,
    ) -> Result<Frontier, LogError<N::Error>> {
        if let Some(frontier) = self.frontiers[stream as usize]
            && !frontier.is_closed
        {
            if self.for_cause(Cause::Gc, |log| log.may_use(frontier.block))? {
                return Ok(frontier);
            }
            // The volume was unmounted with this block open, and came to a chip on which it is bad.
            self.close(stream, State::Failing);
        }
        self.open_block(stream, birth, is_move)
    }

    /// Opens the next block of the ready list for a stream.
    fn open_block(&mut self, stream: u8, birth: u16, is_move: bool) -> Result<Frontier, LogError<N::Error>> {
        // One block of the ready list is left over when something is promised (L6): recovery after a cut erases it and copies
        // the newest commit page there, and can use no other block without destroying what roll-forward may need. A page
        // that is only moved may take the last one, since its loss is none and needs no copy; without that, a chip on which
        // cuts left many blocks half full could not empty them.
        let needed = if is_move { 1 } else { 2 };
        for _ in 0..ATTEMPTS {
            if self.ready.remaining() < 2 {
                self.make_ready()?;
            }
            if self.ready.remaining() < needed {
                return Err(LogError::Full);
            }
            let (slot, block) = self.ready.take(self.shape.is_front(stream));
            assert!(self.blocks.state(block) == State::Ready, "a block is opened that no checkpoint calls erased");
            if self.for_cause(Cause::Gc, |log| log.may_use(block))? {
                self.blocks.open(block, stream, birth);
                let frontier = Frontier { block, next: 0, slot: slot as u8, is_closed: false };
                self.frontiers[stream as usize] = Some(frontier);
                return Ok(frontier);
            }
            // Erased on the chip that the volume comes from, and bad on this one. With a checkpoint at once, since
            // roll-forward would take it for the end of the blocks that were opened.
            self.blocks.set_state(block, State::Bad);
            self.write_checkpoint(false)?;
        }
        Err(LogError::Full)
    }

    /// A page was programmed at a stream's frontier, and is live if the owner needs it for itself.
    pub(crate) fn advance(&mut self, stream: u8, is_live: bool, commit: Option<PageAddr>) {
        let Some(frontier) = &mut self.frontiers[stream as usize] else { return };
        frontier.next += 1;
        let block = frontier.block;
        let is_full = frontier.next >= self.shape.pages;
        if is_live {
            self.blocks.add_live(block);
        }
        if commit.is_some() {
            self.committed = commit;
        }
        if is_full {
            self.close(stream, State::Full);
        }
    }

    /// Closes the block of a stream.
    pub(crate) fn close(&mut self, stream: u8, state: State) {
        if let Some(frontier) = &mut self.frontiers[stream as usize] {
            frontier.is_closed = true;
            let block = frontier.block;
            self.blocks.set_state(block, state);
            self.blocks.set(block, HELD, true);
        }
    }

    /// A program failed, or nobody knows: no more of them in this block.
    pub(crate) fn give_up_block(&mut self, stream: u8, outcome: Programmed) -> Result<(), LogError<N::Error>> {
        self.stats.program_failures += 1;
        let state = if outcome == Programmed::Failed { State::Failing } else { State::Suspect };
        self.close(stream, state);
        let is_first = self.frontiers[stream as usize].is_some_and(|frontier| frontier.next == 0);
        if is_first {
            // Roll-forward takes the opened blocks for the ends of the ready list, found by their first pages. Without a
            // checkpoint here, a cut after the next block was opened would leave a hole there, and everything
            // acknowledged behind it would be lost.
            self.frontiers[stream as usize] = None;
            self.write_checkpoint(false)?;
        }
        Ok(())
    }

    /// Makes at least two blocks ready, if there are any to be made: erases and a checkpoint.
    pub(crate) fn make_ready(&mut self) -> Result<(), LogError<N::Error>> {
        // Each round makes progress, and none is needed beyond: checkpoint (so that blocks may be erased), erase, erase,
        // checkpoint.
        for _ in 0..4 {
            while self.ready.remaining() + (self.blocks.count(State::Erased) as usize) < 2 {
                match self.erase_candidate() {
                    Some(block) => self.erase_data_block(block)?,
                    None => break,
                }
            }
            if self.blocks.count(State::Erased) == 0 && self.blocks.held_empty() == 0 {
                return Ok(());
            }
            self.write_checkpoint(false)?;
            if self.ready.remaining() >= 2 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The data block to erase next: one that holds nothing, is not needed for roll-forward, and is worn least.
    pub(crate) fn erase_candidate(&self) -> Option<BlockAddr> {
        if self.blocks.erasable() == 0 {
            return None;
        }
        self.blocks
            .addresses()
            .filter(|&block| self.is_erasable(block))
            .min_by_key(|&block| self.blocks.erase_count(block))
    }

    pub(crate) fn is_erasable(&self, block: BlockAddr) -> bool {
        let holds_commit = self.committed.is_some_and(|page| self.shape.geometry.block_of(page) == block);
        self.blocks.is_erasable(block) && !holds_commit
    }

    /// Erases a data block that holds nothing, or retires it.
    pub(crate) fn erase_data_block(&mut self, block: BlockAddr) -> Result<(), LogError<N::Error>> {
        assert!(self.is_erasable(block), "a block is erased that is needed");
        self.leave_clean()?;
        if self.blocks.stream(block) == 0 && self.blocks.state(block).is_closed() {
            let age = self.age(block);
            self.lifetimes.learn(age);
        }
        self.forget_victim(block);
        // Out of the pool before the erase: if it is cut or fails, the block must not pass for one that can be used.
        let mode = self.shape.mode;
        self.blocks.set_state(block, State::Free);
        let cause = if self.stats.programs() == 0 { Cause::Recovery } else { Cause::Gc };
        if self.for_cause(cause, |log| log.erase(block, mode))? {
            self.blocks.set_state(block, State::Erased);
        } else {
            self.retire(block);
        }
        Ok(())
    }
}
