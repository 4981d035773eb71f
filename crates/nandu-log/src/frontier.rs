//! Appending: the frontier of each stream.

use nandu_media::header::{FLAG_COMMIT, FLAG_MOVED};
use nandu_media::{PageFields, PageKind};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::access::Programmed;
use crate::block_table::{ERASED_MLC, State};
use crate::error::LogError;
use crate::log::{Condition, Log};
use crate::placement::Placement;
use crate::ready::{BLOCKS_TRIED, Frontier};
use crate::shape::End;

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
    /// checkpoint; where it opens a block that no instalment erased ahead, an erase; after a failed program, one more
    /// program, or a checkpoint as well.
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
        if append.is_commit {
            if !append.is_move() && self.pairs.endangers_commits() {
                return Err(LogError::Full);
            }
            self.protect();
        }
        if !append.is_move() && self.ready.remaining() == 0 {
            self.make_ready(End::Front)?;
            if self.ready.remaining() == 0 {
                return Err(LogError::Full);
            }
        }
        for _ in 0..BLOCKS_TRIED {
            let stream = self.stream_for(append.placement);
            let frontier = self.open_frontier(stream, append.is_move())?;
            let page = self.shape.data_page(frontier.block, frontier.next);
            // The sequence grows before the program, not after: if the program is torn, its number is skipped. Given out
            // again, two pages could carry one number, and recovery could not tell which is newer.
            let sequence = self.sequence;
            self.sequence += 1;
            self.fill_header(bytes, &append, page, sequence, stream);
            let check = self.options.read_back;
            let result =
                self.for_cause(append.cause, |log| Self::program(&mut log.nand, &mut log.losses, page, bytes, check));
            self.stats.count(append.cause);
            let outcome = match result {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.close(stream, State::Suspect);
                    return Err(self.write_error(error));
                }
            };
            if outcome == Programmed::Done {
                self.advance(stream, true, append.is_commit.then_some(page));
                if append.is_commit {
                    self.begin_tail(sequence);
                }
                return Ok(page);
            }
            self.give_up_block(stream, outcome)?;
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
    }

    /// Fills in the header of a page of the owner's.
    fn fill_header(&self, bytes: &mut [u8], append: &Append, page: PageAddr, sequence: u64, stream: u8) {
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

    /// The stream of a page. When the pool is low, a page that would open a block goes where there is room instead.
    fn stream_for(&self, placement: Placement) -> u8 {
        let stream = self.place(placement);
        if self.has_room(stream) || self.blocks.pool() > self.shape.floor_host() {
            return stream;
        }
        let other = (0..self.shape.headed()).rev().find(|&other| self.has_room(other));
        other.unwrap_or(stream)
    }

    /// The frontier of a stream, with room for a page.
    pub(crate) fn open_frontier(&mut self, stream: u8, is_move: bool) -> Result<Frontier, LogError<N::Error>> {
        if let Some(frontier) = self.frontiers[stream as usize]
            && !frontier.is_closed
        {
            if self.for_cause(Cause::Gc, |log| log.may_use(frontier.block))? {
                return Ok(frontier);
            }
            // The volume was unmounted with this block open, and came to a chip on which it is bad.
            self.close(stream, State::Failing);
        }
        self.open_block(stream, is_move)
    }

    /// Opens the next block of the ready list for a stream.
    fn open_block(&mut self, stream: u8, is_move: bool) -> Result<Frontier, LogError<N::Error>> {
        // One block of the ready list is left over when something is promised (L6): recovery after a cut erases it and copies
        // the newest commit page there, and can use no other block without destroying what roll-forward may need. A page
        // that is only moved may take the last one, since its loss is none and needs no copy; without that, a chip on which
        // cuts left many blocks half full could not empty them.
        //
        // Entries for streams with two bits a cell are beside those: recovery finds its own untouched by them.
        let end = self.shape.end_of(stream);
        let (needed, wanted) = if end == End::Mlc { (1, 1) } else { (if is_move { 1 } else { 2 }, 2) };
        let mode = self.shape.mode_of(stream);
        for _ in 0..BLOCKS_TRIED {
            if self.remaining(end) < wanted {
                self.make_ready(end)?;
            }
            if self.remaining(end) < needed {
                return Err(LogError::Full);
            }
            let (slot, block) = self.ready.take(end);
            let may_use = self.for_cause(Cause::Gc, |log| log.may_use(block))?;
            if may_use && self.prove_erased(block, mode)? {
                assert!(self.blocks.state(block) == State::Ready, "a block is opened that nobody knows to be erased");
                self.blocks.open(block, stream, self.now());
                let frontier = Frontier { block, next: 0, slot: slot as u8, is_closed: false, skipped: 0 };
                self.frontiers[stream as usize] = Some(frontier);
                return Ok(frontier);
            }
            // It cannot be erased, or was on the chip that the volume comes from, and is bad on this one. With a checkpoint at
            // once, since roll-forward would take it for the end of the blocks that were opened.
            if may_use {
                self.retire(block);
            } else {
                self.blocks.set_state(block, State::Bad);
            }
            self.write_checkpoint(false)?;
        }
        Err(LogError::Full)
    }

    /// A page was programmed at a stream's frontier, and is live if the owner needs it for itself.
    pub(crate) fn advance(&mut self, stream: u8, is_live: bool, commit: Option<PageAddr>) {
        let Some(frontier) = &mut self.frontiers[stream as usize] else { return };
        frontier.next += 1;
        let block = frontier.block;
        self.skip_protected(stream);
        let is_full =
            self.frontiers[stream as usize].is_some_and(|frontier| frontier.next >= self.shape.pages_of(stream));
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

    /// A program failed, or nobody knows: no more of them in this block.
    pub(crate) fn give_up_block(&mut self, stream: u8, outcome: Programmed) -> Result<(), LogError<N::Error>> {
        self.stats.program_failures += 1;
        let state = if outcome == Programmed::Failed { State::Failing } else { State::Suspect };
        self.close(stream, state);
        // A program that went astray may have hit the only page before it.
        let is_lonely = |next: u16| next == 0 || (next == 1 && outcome == Programmed::Unknown);
        let is_first = self.frontiers[stream as usize].is_some_and(|frontier| is_lonely(frontier.next));
        if is_first {
            // Roll-forward takes the opened blocks for the ends of the ready list, found by their first pages. Without a
            // checkpoint here, a cut after the next block was opened would leave a hole there, and everything
            // acknowledged behind it would be lost.
            self.frontiers[stream as usize] = None;
            self.write_checkpoint(false)?;
        }
        Ok(())
    }

    /// Makes blocks ready for an end of the ready list, if there are any to be made: a checkpoint.
    pub(crate) fn make_ready(&mut self, end: End) -> Result<(), LogError<N::Error>> {
        let is_useful = if end == End::Mlc { self.can_list_mlc() } else { self.can_list_others() };
        if is_useful { self.write_checkpoint(false) } else { Ok(()) }
    }

    /// Blocks of the ready list that can be opened from an end.
    fn remaining(&self, end: End) -> usize {
        if end == End::Mlc { self.ready.mlc_remaining() } else { self.ready.remaining() }
    }

    /// Erases a block of the ready list unless that was done; `false` if it failed and is to be retired.
    ///
    /// Only now, when a checkpoint calls the block empty: torn before, its pages could be taken neither for live nor for
    /// dead. And no checkpoint has to say that the erase came to an end: a mount after a cut believes no erase of a block
    /// that has no page of its own yet, and one that has was erased before.
    ///
    /// In the mode of the stream that opens it: a block that was erased ahead and then got another place in the list is erased
    /// again.
    fn prove_erased(&mut self, block: BlockAddr, mode: CellMode) -> Result<bool, LogError<N::Error>> {
        let is_mlc = self.shape.has_mlc() && mode == CellMode::Mlc;
        let state = self.blocks.state(block);
        if state == State::Ready && self.blocks.has(block, ERASED_MLC) == is_mlc {
            return Ok(true);
        }
        assert!(matches!(state, State::Listed | State::Ready), "a block is opened that no checkpoint lists");
        // Torn, it is not erased in any mode.
        self.blocks.set_state(block, State::Listed);
        let is_erased = self.for_cause(Cause::Gc, |log| log.erase(block, mode))?;
        if is_erased {
            self.blocks.set_state(block, State::Ready);
            if is_mlc {
                self.blocks.set(block, ERASED_MLC, true);
            }
        }
        Ok(is_erased)
    }

    /// The block of the ready list to erase ahead: one at each of its ends is kept erased.
    pub(crate) fn erase_ahead(&self) -> Option<BlockAddr> {
        let ends = [self.ready.unopened().first(), self.ready.unopened().last(), self.ready.mlc_unopened().last()];
        ends.into_iter().flatten().copied().find(|&block| self.blocks.state(block) == State::Listed)
    }

    /// A block of the ready list that is not erased yet, wherever it stands there.
    pub(crate) fn erase_any(&self) -> Option<BlockAddr> {
        self.ready.all_unopened().find(|&block| self.blocks.state(block) == State::Listed)
    }

    /// Erases a block of the ready list.
    pub(crate) fn erase_listed(&mut self, block: BlockAddr) -> Result<(), LogError<N::Error>> {
        self.leave_clean()?;
        // A checkpoint just made may have given the block another place in the list.
        let is_mlc = self.ready.mlc_unopened().contains(&block);
        let mode = if is_mlc { CellMode::Mlc } else { self.shape.mode };
        if self.blocks.state(block) == State::Listed && !self.prove_erased(block, mode)? {
            // With a checkpoint at once: roll-forward would take it for the end of the blocks that were opened.
            self.retire(block);
            self.write_checkpoint(false)?;
        }
        Ok(())
    }

    /// A data block that may be erased at once: one that holds nothing, is not needed for roll-forward, and is worn least.
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
        self.blocks.is_erasable(block) && !self.holds_commit(block)
    }
}
