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
use nandu_media::{Malformed, PageFields, PageKind};
use nandu_nand::{Cause, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::access::Programmed;
use crate::block_table::{REFRESH, State};
use crate::error::LogError;
use crate::frontier::ATTEMPTS;
use crate::log::{Condition, Frontier, Log};
use crate::placement::Placement;

/// Whether bytes begin as those of a page of any volume would that stands at this address.
fn is_disguised(bytes: &[u8], page: PageAddr) -> bool {
    bytes.get(4..6) == Some(&MAGIC.to_le_bytes()) && bytes.get(16..20) == Some(&page.0.to_le_bytes())
}

impl<N: Nand> Log<'_, N> {
    /// The stream to which [`Log::append_bare`] would append a page now: the first bare one, for pages that are moved the last
    /// one; where there is room, when the pool is low.
    pub fn bare_stream(&self, placement: Placement) -> u8 {
        self.bare_stream_for(placement)
    }

    /// Pages that the open block of a bare stream still takes, its last one included, which is for a summary: with 1, the
    /// owner calls [`Log::append_summary`] before it appends another page. 0: no block is open, one would be opened.
    pub fn bare_room(&self, stream: u8) -> u16 {
        let open = self.frontiers.get(stream as usize).copied().flatten().filter(|frontier| !frontier.is_closed);
        let room = open.map_or(0, |frontier| self.shape.pages.saturating_sub(frontier.next));
        if self.shape.is_bare_stream(stream) { room } else { 0 }
    }

    /// The bare stream whose open block a page is in: only of such a block can a summary say more.
    pub fn bare_stream_of(&self, page: PageAddr) -> Option<u8> {
        let block = self.shape.geometry.block_of(page);
        let is_open = |stream: &u8| {
            let frontier = self.frontiers[*stream as usize];
            frontier.is_some_and(|frontier| frontier.block == block && !frontier.is_closed)
        };
        (self.shape.headed..self.shape.streams).find(is_open)
    }

    /// The last page of the block of a page: where a summary stands if the block was filled.
    pub fn last_page(&self, page: PageAddr) -> PageAddr {
        self.shape.data_page(self.shape.geometry.block_of(page), self.shape.pages - 1)
    }

    /// Whether the block of a page holds bare pages.
    pub fn is_bare(&self, page: PageAddr) -> bool {
        self.shape.geometry.contains_page(page) && self.blocks.is_bare(self.shape.geometry.block_of(page))
    }

    /// Programs a page that is all the owner's bytes. When this returns, the page is programmed; it is the owner's to name it in
    /// a commit before it counts on finding it again, and to put a summary, or pages that name it elsewhere, to its side. The
    /// last page of a block is for a summary ([`Log::bare_room`]).
    ///
    /// Costs what [`Log::append`] costs: one program but for what that states. In two cases the page goes to another block and
    /// leaves one behind that is closed without a summary: after a failed program, and where bytes that look like a page of the
    /// log would stand where they say and there is no room to skip that page, which costs one program more.
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
        self.check_writable()?;
        assert!(bytes.len() == self.page_size() && self.shape.has_bare(), "a bare page where there is none");
        self.leave_clean()?;
        for _ in 0..ATTEMPTS {
            let stream = self.bare_stream_for(placement);
            let frontier = self.open_frontier(stream, placement.is_move())?;
            assert!(frontier.next + 1 < self.shape.pages, "the last page of a bare block is for a summary");
            let page = self.shape.data_page(frontier.block, frontier.next);
            if is_disguised(bytes, page) && !self.options.skips_disguise() {
                self.skip_page(stream, frontier, cause)?;
                continue;
            }
            let outcome = self.program_bare(stream, page, bytes, cause)?;
            if outcome == Programmed::Done {
                self.advance(stream, true, None);
                return Ok(page);
            }
            self.give_up_block(stream, outcome)?;
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
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
        if !self.for_cause(Cause::Gc, |log| log.may_use(frontier.block))? {
            self.close(stream, State::Failing);
            return Ok(None);
        }
        let page = self.shape.data_page(frontier.block, frontier.next);
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
        let outcome = self.program_bare(stream, page, bytes, cause)?;
        if outcome == Programmed::Done {
            self.advance(stream, false, None);
            return Ok(Some(page));
        }
        self.give_up_block(stream, outcome)?;
        Ok(None)
    }

    /// Reads bytes of a bare page, from an offset on. One read, or a part of one. What they are worth is the owner's to know.
    /// A page whose bits begin to flip has its block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read or is not in a bare block; [`LogError::Nand`].
    pub fn read_bare(
        &mut self,
        page: PageAddr,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<ReadStatus, LogError<N::Error>> {
        if self.condition == Condition::Poisoned {
            return Err(LogError::Poisoned);
        }
        let corrupt = |why| Err(LogError::Corrupt { page, why });
        if !self.is_bare(page) {
            return corrupt(Malformed::Range("page"));
        }
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.page_size()) {
            return corrupt(Malformed::Size);
        }
        self.note_read(page);
        let status = match Self::read_part(&mut self.nand, page, offset as u32, bytes) {
            Ok(status) => status,
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => return corrupt(Malformed::Unreadable),
            Err(error) => return Err(self.chip_error(error)),
        };
        if status.refresh_advised() {
            self.blocks.set(self.shape.geometry.block_of(page), REFRESH, true);
        }
        Ok(status)
    }

    /// The stream of a bare page. When the pool is low, a page that would open a block goes where there is room instead.
    fn bare_stream_for(&self, placement: Placement) -> u8 {
        let stream = self.place_bare(placement);
        if self.bare_room(stream) > 0 || self.blocks.pool() > self.shape.floor_host() {
            return stream;
        }
        let other = (self.shape.headed..self.shape.streams).rev().find(|&other| self.bare_room(other) > 1);
        other.unwrap_or(stream)
    }

    /// Programs a page at the frontier of a bare stream. If the chip refuses it, the block is closed.
    fn program_bare(
        &mut self,
        stream: u8,
        page: PageAddr,
        bytes: &[u8],
        cause: Cause,
    ) -> Result<Programmed, LogError<N::Error>> {
        // A bare page takes a number, too, though it does not carry it: time goes on, and after a cut numbers jump beyond all
        // that summaries may carry which no header tells of.
        self.sequence += 1;
        let result = self.for_cause(cause, |log| Self::program(&mut log.nand, page, bytes, false));
        self.stats.count(cause);
        let outcome = self.check_chip(stream, result)?;
        let is_lost = outcome == Programmed::Done && self.options.read_back && !self.reads_back(page, bytes)?;
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
                let error = self.chip_error(error);
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
            Err(error) if error.kind() == NandErrorKind::Gone => Err(self.chip_error(error)),
            Err(_) => Ok(false),
        }
    }

    /// Leaves out the next page of a bare block: programs zeros, which read as no page. If only the place of a summary is
    /// left behind it, closes the block.
    fn skip_page(&mut self, stream: u8, frontier: Frontier, cause: Cause) -> Result<(), LogError<N::Error>> {
        if frontier.next + 2 >= self.shape.pages {
            self.close(stream, State::Suspect);
            return Ok(());
        }
        self.buffered = None;
        let page = self.shape.data_page(frontier.block, frontier.next);
        let bytes = core::mem::take(&mut self.blocks.page);
        bytes.fill(0);
        self.sequence += 1;
        let result = self.for_cause(cause, |log| Self::program(&mut log.nand, page, bytes, false));
        self.blocks.page = bytes;
        self.stats.count(cause);
        match self.check_chip(stream, result)? {
            Programmed::Done => self.advance(stream, false, None),
            outcome => self.give_up_block(stream, outcome)?,
        }
        Ok(())
    }
}
