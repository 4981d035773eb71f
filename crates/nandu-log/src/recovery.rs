//! Putting right what a cut left: the newest commit, the blocks that were open, and a checkpoint that says so.

use nandu_media::anchor::Tail;
use nandu_media::{Field, Malformed, PageFields, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::access::{Probe, Programmed};
use crate::block_table::{HELD, INEXACT, State};
use crate::error::LogError;
use crate::found::Found;
use crate::log::{Condition, Log};
use crate::ready::Frontier;
use crate::roll_forward::Rolled;

impl<N: Nand> Log<'_, N> {
    /// Finds the newest commit page and reads it, so that what the owner begins from is known to be there.
    ///
    /// If no block is free, every move since the newest promise is undone: their blocks hold nothing else, and are free then.
    pub(crate) fn find_commit(&mut self, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let newest_commit = rolled.newest.filter(|found| found.is_commit);
        if newest_commit.is_some() {
            self.find_tail(newest_commit)?;
        }
        if let Some(found) = rolled.newest {
            let stays = found.is_commit && (!found.is_moved || self.options.skips_quarantine());
            self.committed = if stays { Some(found.page) } else { found.committed.map(PageAddr) };
        }
        // What was read and found valid before the newest page is stable.
        let is_known = rolled.before.is_some_and(|before| {
            Some(before.page) == self.committed && before.is_commit && before.sequence < self.sequence
        });
        let mut found = if is_known { rolled.before } else { self.load_commit()?.then_some(self.found) };
        if newest_commit.is_none() {
            self.find_tail(found)?;
        }
        let opened = rolled.front + rolled.back + rolled.mlc;
        let is_cramped = opened == self.ready.count && self.blocks.count(State::Free) == 0;
        if is_cramped && rolled.newest.is_some_and(|newest| !newest.is_commit || newest.is_moved) {
            // A commit at or before the checkpoint is left alone: what it replaced may be erased.
            while let Some(moved) = found.filter(|found| found.is_moved && found.sequence > self.anchors.sequence) {
                self.committed = moved.committed.map(PageAddr);
                found = self.load_commit()?.then_some(self.found);
                if found.is_some_and(|found| found.sequence >= moved.sequence) {
                    return Err(LogError::Corrupt { page: moved.page, why: Malformed::Range(Field::Committed) });
                }
            }
            let promised = found.map_or(0, |found| found.sequence).max(self.anchors.sequence);
            while rolled.front > 0 && self.is_begun_after(rolled.front - 1, promised)? {
                rolled.front -= 1;
            }
            if self.shape.has_bare() {
                // Bare blocks say nothing of themselves; the page that promised says which of them were open.
                let current = found.filter(|found| self.is_current(found));
                rolled.back = rolled.back.min(current.map_or(0, |found| self.bare_back(&found.positions)));
                rolled.mlc = rolled.mlc.min(current.map_or(0, |found| self.mlc_back(&found.positions)));
            }
            while !self.shape.has_bare()
                && rolled.back > 0
                && self.is_begun_after(self.ready.count - rolled.back, promised)?
            {
                rolled.back -= 1;
            }
            rolled.forget_unopened(self.ready.others(), self.ready.count);
        }
        Ok(())
    }

    /// Whether a block of the ready list was opened after the page with this sequence.
    fn is_begun_after(&mut self, place: usize, sequence: u64) -> Result<bool, LogError<N::Error>> {
        Ok(self.has_current_page(self.ready.blocks[place])? && self.found.sequence > sequence)
    }

    /// Reads the newest commit page, if there is one; its header is in `Log::found` then.
    fn load_commit(&mut self) -> Result<bool, LogError<N::Error>> {
        let Some(page) = self.committed else { return Ok(false) };
        if !self.shape.geometry.contains_page(page) {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Committed) });
        }
        self.load(page)?;
        let found = &self.found;
        if !found.is_commit || found.kind.is_of_the_log() {
            return Err(LogError::Corrupt { page, why: Malformed::Kind(found.kind as u8) });
        }
        if found.sequence >= self.sequence {
            return Err(LogError::Corrupt { page, why: Malformed::Sequence });
        }
        Ok(true)
    }

    /// The block of the newest commit page has to hold data, and at least that page; a hostile image may say otherwise.
    pub(crate) fn hold_commit(&mut self) -> Result<(), LogError<N::Error>> {
        let Some(page) = self.committed else { return Ok(()) };
        let block = self.shape.geometry.block_of(page);
        if !self.blocks.state(block).holds_data() || self.blocks.is_bare(block) {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Committed) });
        }
        if self.blocks.live(block) == 0 {
            self.blocks.set_live(block, 1);
        }
        Ok(())
    }

    /// Puts right what a cut left. Re-entrant: it erases nothing that the newest checkpoint or the one before it needs,
    /// and what it programs counts only once its own checkpoint is complete.
    pub(crate) fn recover(&mut self, rolled: &Rolled) -> Result<(), LogError<N::Error>> {
        let spare = self.classify(rolled);
        self.count_tail();
        self.hold_commit()?;
        if self.condition == Condition::ReadOnly {
            return Ok(());
        }
        if self.options.skips_quarantine() {
            return self.write_checkpoint(false);
        }
        // A page that another one followed was complete, and so was one that the checkpoint names. Only the newest page of
        // all may be the one that was being programmed when the power went; it may read well now and not later. If it only
        // moved something, the commit before it says the same and is complete.
        if let Some(found) = rolled.newest
            && found.is_commit
            && !found.is_moved
            && !self.copy_commit(found.page, spare)?
        {
            self.condition = Condition::ReadOnly;
            return Ok(());
        }
        match self.write_checkpoint(false) {
            Err(LogError::ReadOnly) => return Ok(()),
            result => result?,
        }
        if self.options.skips_erase_proof() {
            self.believe_erased();
        }
        Ok(())
    }

    /// Sets the states of the blocks that were open at the checkpoint or opened since, and returns the first block of the
    /// ready list that looks unopened.
    fn classify(&mut self, rolled: &Rolled) -> Option<BlockAddr> {
        for block in self.blocks.addresses() {
            if self.blocks.state(block).is_closed() {
                self.blocks.set(block, INEXACT, true);
            }
        }
        for frontier in self.frontiers.into_iter().flatten() {
            let live = self.blocks.live(frontier.block) + (self.blocks.pages(frontier.block) - frontier.next);
            self.blocks.set_state(frontier.block, State::Full);
            self.blocks.set_live(frontier.block, live);
            self.blocks.set(frontier.block, INEXACT | HELD, true);
        }
        self.take_opened(rolled);
        let mut frontiers = [None; STREAM_COUNT_MAX];
        for stream in 0..self.shape.streams {
            let position = rolled.positions[stream as usize];
            let Some((block, next)) = self.resolve(stream, position) else { continue };
            let pages = self.shape.pages_of(stream);
            if next >= pages {
                continue;
            }
            self.blocks.set_state(block, State::Suspect);
            let live = self.blocks.live(block).saturating_sub(pages - next);
            self.blocks.set_live(block, live);
            frontiers[stream as usize] =
                Some(Frontier { block, next, slot: Position::SLOT_OPEN, is_closed: false, skipped: 0 });
        }
        self.frontiers = [None; STREAM_COUNT_MAX];
        if self.options.skips_quarantine() {
            self.continue_blocks(frontiers);
        }
        self.ready.front = rolled.front;
        self.ready.back = rolled.back;
        self.ready.mlc = rolled.mlc;
        let (others, count) = (self.ready.others(), self.ready.count);
        let spare = self.ready.unopened().first().copied();
        let last = self.ready.unopened().last().copied();
        if self.shape.has_bare() && !self.options.skips_bare_erase() {
            // Each of them may have been opened by a bare stream, which leaves no trace. What it holds nobody refers to.
            for place in (self.ready.front..others - self.ready.back).chain(others..count - self.ready.mlc) {
                self.blocks.set_state(self.ready.blocks[place], State::Free);
            }
            self.ready.front = others - self.ready.back;
            self.ready.mlc = count - others;
        } else if !self.options.skips_quarantine() {
            // The first and the last one that look unopened may be the one whose erase or first program was cut without a trace.
            // Those between them stay in the list, to be erased: there may be pages of moves in them that were undone.
            self.ready.front += usize::from(spare.is_some());
            self.ready.back += usize::from(last != spare);
            for block in spare.into_iter().chain(last) {
                self.blocks.set_state(block, State::Free);
            }
            if !self.options.skips_bare_erase() {
                for place in self.ready.front..others - self.ready.back {
                    self.blocks.set_state(self.ready.blocks[place], State::Listed);
                }
            }
        }
        spare
    }

    /// Sets the states of the blocks that were opened since the checkpoint.
    fn take_opened(&mut self, rolled: &Rolled) {
        let (others, count) = (self.ready.others(), self.ready.count);
        for place in (0..rolled.front).chain(others - rolled.back..others).chain(count - rolled.mlc..count) {
            let block = self.ready.blocks[place];
            // What opened it is known from its place; with it how many pages it has.
            let stream = match place {
                _ if place >= others => self.shape.first_mlc(),
                _ if self.shape.has_bare() && place >= rolled.front => self.shape.headed(),
                _ => 0,
            };
            self.blocks.set_state(block, State::Full);
            self.blocks.assign(block, stream);
            self.blocks.set_live(block, self.blocks.pages(block));
            self.blocks.set(block, INEXACT | HELD, true);
        }
    }

    /// Test switch: goes on in the blocks that were open.
    fn continue_blocks(&mut self, frontiers: [Option<Frontier>; STREAM_COUNT_MAX]) {
        self.frontiers = frontiers;
        for frontier in frontiers.into_iter().flatten() {
            self.blocks.set_state(frontier.block, State::Open);
        }
    }

    /// Test switch: takes listed blocks for erased whose first page looks erased.
    fn believe_erased(&mut self) {
        for block in self.blocks.addresses() {
            let page = self.shape.data_page(block, 0);
            if self.blocks.state(block) == State::Listed && matches!(self.probe(page), Ok(Probe::Erased)) {
                self.blocks.set_state(block, State::Ready);
            }
        }
    }

    /// Copies the newest commit page to a block that is erased here; `false` if there is no block for it.
    ///
    /// The block is `spare` or a free one, which neither this checkpoint nor the one before it needs; a cut leaves in it
    /// a page with the number of a checkpoint that does not exist, which roll-forward passes over.
    fn copy_commit(&mut self, page: PageAddr, spare: Option<BlockAddr>) -> Result<bool, LogError<N::Error>> {
        // Read once: a program that went astray may have hit the only other copy.
        self.load(page)?;
        let found = self.found;
        let mut next = spare;
        for _ in 0..self.blocks.block_count() {
            let free = |block: &BlockAddr| self.blocks.state(*block) == State::Free;
            let least_worn = || self.blocks.addresses().filter(free).min_by_key(|&b| self.blocks.erase_count(b));
            // Last of all one that the checkpoint calls empty: should this erase be torn and the checkpoint decay, the one
            // before it would find pages there of which it could not tell whether they live.
            let empty = || self.erase_candidate().filter(|&block| self.blocks.state(block).is_closed());
            let Some(block) = next.take().filter(free).or_else(least_worn).or_else(empty) else { return Ok(false) };
            let mode = self.shape.mode;
            if !self.erase(block, mode)? {
                self.retire(block);
                continue;
            }
            let now = self.now();
            self.blocks.open(block, 0, now);
            let outcome = self.program_copy(&found, self.shape.data_page(block, 0))?;
            if outcome == Programmed::Done {
                self.frontiers[0] =
                    Some(Frontier { block, next: 1, slot: Position::SLOT_OPEN, is_closed: false, skipped: 0 });
                self.blocks.add_live(block);
                self.supersede(page);
                self.committed = Some(self.shape.data_page(block, 0));
                return Ok(true);
            }
            self.stats.program_failures += 1;
            if outcome == Programmed::Failed {
                self.blocks.set_state(block, State::Failing);
                self.condemn(block);
            } else {
                // The block may be sound. A copy that is there all the same is no newer than the checkpoint that follows.
                self.blocks.set_state(block, State::Suspect);
            }
        }
        Ok(false)
    }

    /// Programs the page in the buffer, of which this was found, at another place.
    fn program_copy(&mut self, found: &Found, to: PageAddr) -> Result<Programmed, LogError<N::Error>> {
        let sequence = self.sequence;
        self.sequence += 1;
        self.buffered = None;
        PageFields {
            kind: found.kind,
            sequence,
            page: to.0,
            volume: self.volume,
            committed: found.committed,
            checkpoint: self.anchors.number.saturating_add(1),
            stream: 0,
            flags: nandu_media::header::FLAG_COMMIT,
            positions: &[Position::NONE; STREAM_COUNT_MAX][..self.shape.streams as usize],
        }
        .seal(self.blocks.page);
        self.stats.count(Cause::Recovery);
        Self::program(&mut self.nand, &mut self.losses, to, self.blocks.page, self.options.read_back)
            .map_err(|error| self.write_error(error))
    }

    /// After a cut: finds the tail behind the newest commit, or the one that an earlier mount found. One read.
    pub(crate) fn find_tail(&mut self, commit: Option<Found>) -> Result<(), LogError<N::Error>> {
        if !self.shape.has_tags() {
            return Ok(());
        }
        let stream = self.tail_stream();
        let stored = self.tags.stored();
        let tail = match commit.filter(|commit| self.is_current(commit)) {
            Some(commit) if stored.is_none_or(|stored| !stored.is_due) => {
                let next = self.resolve(stream, commit.positions[usize::from(stream)]);
                let next = next.filter(|&(_, next)| next < self.shape.pages);
                next.map(|(block, next)| Tail {
                    first: self.shape.page_of(stream, block, next).0,
                    commit: commit.sequence,
                    is_due: true,
                })
            }
            _ => stored.map(|stored| Tail { is_due: true, ..stored }),
        };
        self.tags.set_due(tail);
        if !self.reads_due(0)? {
            self.tags.set_due(None);
        }
        Ok(())
    }

    /// Whether a page of the tail that is due is there.
    pub(crate) fn reads_due(&mut self, place: u16) -> Result<bool, LogError<N::Error>> {
        let bytes = core::mem::take(&mut self.blocks.page);
        self.buffered = None;
        let due = self.read_due(place, bytes);
        self.blocks.page = bytes;
        Ok(due?.is_some())
    }
}
