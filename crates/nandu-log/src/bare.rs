//! Bare streams: pages that are their owner's bytes as they are.
//!
//! A page of file data has to fit a page, so it has no room for a header; what stands in it only its owner knows, from a
//! summary in the same block or from a page with a header that names it. The log knows of bare pages what it needs: which
//! blocks hold them (in the block table), how far they were programmed (headers of other pages say where each stream stood),
//! and how many may be live.
//!
//! What a bare page holds comes from anywhere, so it may be made to look like a page of the log. The log never lets it stand
//! where it would pass for one: such a page has to state its own address, and is appended at another one.

use nandu_media::header::MAGIC;
use nandu_media::tag::{TAG_OWNER_SIZE, TAG_SIZE};
use nandu_media::{PageFields, PageKind};
use nandu_nand::{Cause, Nand, NandError, NandErrorKind, PageAddr, PageGroup};
use zerocopy::little_endian::U32;

use crate::access::Programmed;
use crate::block_table::State;
use crate::error::LogError;
use crate::log::{Condition, Log};
use crate::placement::Placement;
use crate::ready::{BLOCKS_TRIED, Frontier};
use crate::slots::{BLANK, NAMED, Rescued, Slot};

/// Whether bytes begin as those of a page of any volume would that stands at this address.
fn is_disguised(bytes: &[u8], page: PageAddr) -> bool {
    bytes.get(4..6) == Some(&MAGIC.to_le_bytes()) && bytes.get(16..20) == Some(&page.0.to_le_bytes())
}

impl<N: Nand> Log<'_, N> {
    /// The stream to which [`Log::append_bare`] would append a page now: the first bare one, for pages that are moved the last
    /// one; where there is room, when the pool is low; and one with one bit a cell where no block with two can be opened.
    pub fn bare_stream(&self, placement: Placement) -> u8 {
        self.bare_stream_for(placement)
    }

    /// The bare stream whose open block a page is in: only of such a block can a summary say more.
    pub fn bare_stream_of(&self, page: PageAddr) -> Option<u8> {
        let block = self.shape.geometry.block_of(page);
        let is_open = |stream: &u8| {
            let frontier = self.frontiers[*stream as usize];
            frontier.is_some_and(|frontier| frontier.block == block && !frontier.is_closed)
        };
        (self.shape.headed()..self.shape.streams).find(is_open)
    }

    /// The last page of the block of a page: where a summary stands if the block was filled. With two bits a cell it may stand
    /// before that.
    pub fn last_page(&self, page: PageAddr) -> PageAddr {
        let block = self.shape.geometry.block_of(page);
        self.shape.page(self.blocks.mode(block), block, self.blocks.pages(block) - 1)
    }

    /// Programs a page that is all the owner's bytes. When this returns, the page is programmed; it is the owner's to name it in
    /// a commit before it counts on finding it again, and to put a summary, or pages that name it elsewhere, to its side. The
    /// last page of a block is for a summary ([`Log::bare_room`]).
    ///
    /// Costs what [`Log::append`] costs: one program but for what that states. In two cases the page goes to another block and
    /// leaves one behind that is closed without a summary: after a failed program, and where bytes that look like a page of the
    /// log would stand where they say and there is no room to skip that page, which costs one program more.
    ///
    /// In a stream with two bits a cell, a page with [`Placement::Survivor`] is a copy: no commit may name it before
    /// [`Log::is_settled`] says so. Any other page may be named at once. After each page the owner asks [`Log::rescue`].
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn append_bare(
        &mut self,
        bytes: &[u8],
        placement: Placement,
        cause: Cause,
    ) -> Result<PageAddr, LogError<N::Error>> {
        self.append_tagged(bytes, None, placement, cause)
    }

    /// The same; where [`Log::can_tag`] says so, the page has a tag with what its owner says of it, and is durable with that, in the order of
    /// all tagged pages. [`Log::tail_len`] has grown then. A tag may mean something only if everything that the owner changed
    /// since its newest commit is in tags.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn append_tagged(
        &mut self,
        bytes: &[u8],
        owner: Option<&[u8; TAG_OWNER_SIZE]>,
        placement: Placement,
        cause: Cause,
    ) -> Result<PageAddr, LogError<N::Error>> {
        self.check_writable()?;
        assert!(bytes.len() == self.page_size() && self.shape.has_bare(), "a bare page where there is none");
        self.leave_clean()?;
        let exposure = if matches!(placement, Placement::Survivor { .. }) { 0 } else { NAMED };
        // The owner left the last page of a block to a summary, unless what is done here meanwhile takes the pages before it.
        let is_kept = self.bare_room(self.bare_stream_for(placement)) != 1;
        assert!(is_kept, "the last page of a bare block is for a summary");
        for _ in 0..BLOCKS_TRIED {
            // First of all: there are no more slots than for the pages of blocks that are open.
            self.place_doubted()?;
            if let Some((_, page)) = self.try_append_bare(bytes, owner, placement, cause, Some(exposure))? {
                return Ok(page);
            }
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
    }

    /// Tries to program a bare page, and returns its stream and address; `None`: once more, in another block. `exposure`: as in
    /// [`Log::note_programmed`].
    pub(crate) fn try_append_bare(
        &mut self,
        bytes: &[u8],
        owner: Option<&[u8; TAG_OWNER_SIZE]>,
        placement: Placement,
        cause: Cause,
        exposure: Option<u8>,
    ) -> Result<Option<(u8, PageAddr)>, LogError<N::Error>> {
        let stream = self.bare_stream_for(placement);
        let frontier = self.open_frontier(stream, placement.is_move())?;
        if self.bare_room(stream) <= 1 {
            self.close(stream, State::Suspect);
            return Ok(None);
        }
        let page = self.shape.page_of(stream, frontier.block, frontier.next);
        if is_disguised(bytes, page) && !self.options.skips_disguise() {
            self.skip_page(stream, frontier, cause)?;
            return Ok(None);
        }
        let tag = self.tag_of(stream, page, bytes, owner);
        let outcome = self.program_bare(stream, page, bytes, tag.as_ref(), cause)?;
        if outcome != Programmed::Done {
            self.give_up_block(stream, outcome)?;
            return Ok(None);
        }
        self.note_programmed(stream, page, bytes, exposure);
        self.advance(stream, true, None);
        if tag.is_some() {
            self.grow_tail();
        }
        Ok(Some((stream, page)))
    }

    /// Programs a summary, a page of kind [`PageKind::Summary`] with a header, which is filled in here, into the open block of a
    /// bare stream. It is no commit, and does not count as live: it lives as long as pages of its block do. `None`: no
    /// block is open, or the program failed and the block was closed without it, and will be emptied before others.
    ///
    /// Costs one program; after a clean mount a checkpoint, and one if the first program of a block fails.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn append_summary(
        &mut self,
        bytes: &mut [u8],
        stream: u8,
        cause: Cause,
    ) -> Result<Option<PageAddr>, LogError<N::Error>> {
        self.check_writable()?;
        assert!(bytes.len() == self.page_size() && self.shape.has_bare(), "a summary where there is none");
        if self.bare_room(stream) == 0 {
            return Ok(None);
        }
        self.leave_clean()?;
        let frontier = self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed);
        let Some(frontier) = frontier else { return Ok(None) };
        let is_last = self.bare_room(stream) <= 1 || self.is_summary_due(stream);
        if !self.for_cause(Cause::Gc, |log| log.may_use(frontier.block))? {
            self.close(stream, State::Failing);
            return Ok(None);
        }
        let page = self.shape.page_of(stream, frontier.block, frontier.next);
        self.seal_summary(bytes, stream, page);
        let outcome = self.program_bare(stream, page, bytes, None, cause)?;
        if outcome == Programmed::Done {
            self.note_programmed(stream, page, bytes, Some(NAMED | BLANK));
            self.advance(stream, false, None);
            if is_last && self.bare_room(stream) > 0 {
                self.close(stream, State::Full);
            }
            return Ok(Some(page));
        }
        self.give_up_block(stream, outcome)?;
        Ok(None)
    }

    #[inline(never)]
    fn seal_summary(&self, bytes: &mut [u8], stream: u8, page: PageAddr) {
        PageFields {
            kind: PageKind::Summary,
            sequence: self.sequence,
            page: page.0,
            volume: self.volume,
            committed: self.committed.map(|page| page.0),
            checkpoint: self.anchors.number,
            stream,
            flags: 0,
            positions: &self.positions_with(stream)[..self.shape.streams as usize],
        }
        .seal(bytes);
    }

    /// Ends the open block of a bare stream early: programs a summary, as [`Log::append_summary`] does, and leaves the rest of the
    /// block unused. Every page of it is settled then ([`Log::is_settled`]).
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn seal(&mut self, bytes: &mut [u8], stream: u8, cause: Cause) -> Result<Option<PageAddr>, LogError<N::Error>> {
        let page = self.append_summary(bytes, stream, cause)?;
        if self.bare_room(stream) > 0 {
            self.close(stream, State::Full);
        }
        Ok(page)
    }

    /// The stream of a bare page. When the pool is low, a page that would open a block goes where there is room instead.
    fn bare_stream_for(&self, placement: Placement) -> u8 {
        let stream = self.place_bare(placement);
        let opens = !self.shape.is_mlc_stream(stream) || self.can_open_mlc();
        if self.bare_room(stream) > 0 || (opens && self.blocks.pool() > self.shape.floor_host()) {
            return stream;
        }
        let other = (self.shape.headed()..self.shape.streams).rev().find(|&other| self.bare_room(other) > 1);
        other.unwrap_or(if opens { stream } else { self.shape.headed() })
    }

    /// Programs a page at the frontier of a bare stream. If the chip refuses it, the block is closed.
    fn program_bare(
        &mut self,
        stream: u8,
        page: PageAddr,
        bytes: &[u8],
        tag: Option<&[u8; TAG_SIZE]>,
        cause: Cause,
    ) -> Result<Programmed, LogError<N::Error>> {
        // A bare page takes a number, too, though it does not carry it: time goes on, and after a cut numbers jump beyond all
        // that summaries may carry which no header tells of.
        self.sequence += 1;
        let result = self.for_cause(cause, |log| match tag {
            Some(tag) => {
                let result = log.nand.program_tagged(page, bytes, tag);
                Self::judge_program(&mut log.nand, &mut log.losses, page, result)
            }
            None => Self::program(&mut log.nand, &mut log.losses, page, bytes, false),
        });
        self.stats.count(cause);
        if !matches!(result, Ok(Programmed::Done)) {
            self.note_failed(stream);
        }
        let outcome = self.check_chip(stream, result)?;
        let is_lost = outcome == Programmed::Done && self.options.read_back && !self.reads_back(page, bytes)?;
        if is_lost {
            self.note_failed(stream);
        }
        Ok(if is_lost { Programmed::Unknown } else { outcome })
    }

    /// An error of the chip closes the block. If the program was the first there, with a checkpoint: the headers that follow
    /// would tell of no block of this stream, and after a cut the ones that it filled before would pass for erased.
    fn check_chip(
        &mut self,
        stream: u8,
        result: Result<Programmed, N::Error>,
    ) -> Result<Programmed, LogError<N::Error>> {
        match result {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                let error = self.write_error(error);
                if self.condition == Condition::Working {
                    self.give_up_block(stream, Programmed::Unknown)?;
                }
                Err(error)
            }
        }
    }

    /// Whether a page holds what was programmed: nothing less than all of it tells, since it may begin as any page does.
    fn reads_back(&mut self, page: PageAddr, bytes: &[u8]) -> Result<bool, LogError<N::Error>> {
        self.buffered = None;
        match Self::read_page(&mut self.nand, page, self.blocks.page) {
            Ok(_) => Ok(self.blocks.page == bytes),
            Err(error) if matches!(error.kind(), NandErrorKind::Bus | NandErrorKind::Gone) => {
                Err(self.write_error(error))
            }
            Err(_) => Ok(false),
        }
    }

    /// Leaves out the next page of a bare block: programs zeros, which read as no page. If only the place of a summary is
    /// left behind it, closes the block.
    fn skip_page(&mut self, stream: u8, frontier: Frontier, cause: Cause) -> Result<(), LogError<N::Error>> {
        if self.bare_room(stream) <= 2 {
            self.close(stream, State::Suspect);
            return Ok(());
        }
        self.buffered = None;
        let page = self.shape.page_of(stream, frontier.block, frontier.next);
        let bytes = core::mem::take(&mut self.blocks.page);
        bytes.fill(0);
        self.sequence += 1;
        let result = self.for_cause(cause, |log| Self::program(&mut log.nand, &mut log.losses, page, bytes, false));
        self.blocks.page = bytes;
        self.stats.count(cause);
        if !matches!(result, Ok(Programmed::Done)) {
            self.note_failed(stream);
        }
        match self.check_chip(stream, result)? {
            Programmed::Done => {
                self.note_programmed(stream, page, &[], None);
                self.advance(stream, false, None);
            }
            outcome => self.give_up_block(stream, outcome)?,
        }
        Ok(())
    }

    /// The next page that had to be moved since the program of its partner failed: whoever knows it by its address corrects that.
    /// `None`: there is none, as in nearly all cases and always without `mlc_streams`.
    ///
    /// With `mlc_streams` the owner asks after each bare page or summary that it appended, and before each commit, until the
    /// answer is `None`. Costs one program for each page, beside what [`Log::append`] may cost.
    ///
    /// # Errors
    ///
    /// As [`Log::append`]. After [`LogError::Full`] the page stays in memory and can be read; until it is rescued or superseded, no
    /// commit is possible that says anything new.
    pub fn rescue(&mut self) -> Result<Option<Rescued>, LogError<N::Error>> {
        self.place_doubted()?;
        Ok(self.pairs.rescued.iter_mut().find_map(Option::take))
    }

    /// Programs a page at another place, and says in which stream. Nothing of it is kept.
    pub(crate) fn append_doubted(
        &mut self,
        bytes: &[u8],
        placement: Placement,
    ) -> Result<(u8, PageAddr), LogError<N::Error>> {
        for _ in 0..BLOCKS_TRIED {
            if let Some(done) = self.try_append_bare(bytes, None, placement, Cause::Gc, None)? {
                return Ok(done);
            }
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
    }

    /// Programs the pages elsewhere of which the chip may hold nothing.
    pub(crate) fn place_doubted(&mut self) -> Result<(), LogError<N::Error>> {
        while let Some(slot) = self.pairs.doubted() {
            self.check_writable()?;
            let Slot { page, stream, flags, .. } = self.pairs.slots[slot];
            let from = PageAddr(page.get());
            let placement = if flags & NAMED == 0 { Placement::Survivor { from } } else { Placement::Stream(stream) };
            let range = self.pairs.range(slot);
            // Nothing else is exposed meanwhile, so that nobody needs them.
            let copies = core::mem::take(&mut self.pairs.copies);
            let result = self.append_doubted(&copies[range], placement);
            self.pairs.copies = copies;
            let (stream, to) = result?;
            // It may be exposed again where it is now; its content is in the slot already.
            let is_exposed = self.open_mlc(stream).is_some_and(|frontier| self.is_lsb(frontier, to));
            self.pairs.slots[slot] = Slot { page: U32::new(to.0), stream, flags: flags & NAMED, reserved: [0; 2] };
            if !is_exposed {
                self.pairs.slots[slot] = Slot::UNUSED;
            }
            // Not live any more where it was.
            let block = self.shape.geometry.block_of(from);
            if self.blocks.state(block).holds_data() {
                self.uncount(from);
                self.blocks.subtract_live(block);
            }
            self.pairs.note_rescued(from, to);
        }
        Ok(())
    }

    pub(crate) fn is_lsb(&self, frontier: Frontier, page: PageAddr) -> bool {
        let place = self.shape.geometry.index_in_block(page) as u16;
        self.shape.geometry.block_of(page) == frontier.block && self.group_of(place) == Some(PageGroup::Lsb)
    }
}
