//! Pages that share their cells.
//!
//! In a block with two bits a cell, the program of an MSB page goes over cells that hold an LSB page already, programmed
//! before. A power cut in it may destroy that page too, and so may its failure. An LSB page whose partner is not programmed
//! yet is *exposed*; with the usual schemes a block has at most four of them. The log keeps each in a slot:
//!
//! * When a commit comes, every exposed page that it may name is *protected*: the page of its partner is left out until the
//!   next erase. So no page that a commit names can be destroyed by a cut, which is invariant L11.
//! * A page that is only a copy is not protected. Its owner may not name it before [`Log::is_settled`] says that its partner
//!   was programmed or never will be, and until then the source is what counts.
//! * The content of an exposed page is kept in memory, and if the program of its partner fails, the page is programmed
//!   elsewhere. Its owner asks for that with [`Log::rescue`].
//!
//! The alternative to leaving pages out, a copy of each LSB page elsewhere before its partner is programmed, costs a program
//! for each and needs a recovery of its own.

use nandu_media::features::MLC;
use nandu_media::{NO_PAGE, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr, PageGroup};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::block_table::State;
use crate::error::LogError;
use crate::frontier::ATTEMPTS;
use crate::log::{Condition, Frontier, Log};
use crate::placement::Placement;

/// A commit may name the page.
pub(crate) const NAMED: u8 = 1;
/// Its content is not kept: nobody reads it at another place.
pub(crate) const BLANK: u8 = 2;
/// Its partner will not be programmed before the next erase.
const PROTECTED: u8 = 4;
/// The program of its partner failed: what the chip holds of it may be lost, and its content is in memory only.
const DOUBTED: u8 = 8;

/// An exposed page.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Slot {
    /// All ones: the slot is not in use.
    page: U32,
    stream: u8,
    flags: u8,
    reserved: [u8; 2],
}

impl Slot {
    const UNUSED: Slot = Slot { page: U32::new(NO_PAGE), stream: 0, flags: 0, reserved: [0; 2] };

    fn is_used(&self) -> bool {
        self.page.get() != NO_PAGE
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A page that had to be programmed elsewhere, since the program of its partner failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// Where it was: nothing there can be relied on.
    pub from: PageAddr,
    /// Where it is now. It counts as live there, and no longer where it was.
    pub to: PageAddr,
}

/// The exposed pages of all open blocks, and those that were moved and not asked for.
pub(crate) struct Pairs<'m> {
    slots: &'m mut [Slot],
    /// What the pages hold, a page for each slot.
    copies: &'m mut [u8],
    rescued: [Option<Rescued>; RESCUED_MAX],
}

/// Most pages that are moved and not asked for.
const RESCUED_MAX: usize = if MLC { STREAM_COUNT_MAX } else { 0 };

impl<'m> Pairs<'m> {
    pub(crate) fn new(slots: &'m mut [Slot], copies: &'m mut [u8]) -> Pairs<'m> {
        let mut pairs = Pairs { slots, copies, rescued: [None; RESCUED_MAX] };
        pairs.clear();
        pairs
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(Slot::UNUSED);
        self.rescued = [None; RESCUED_MAX];
    }

    fn find(&self, page: PageAddr) -> Option<usize> {
        if MLC { self.slots.iter().position(|slot| slot.page.get() == page.0) } else { None }
    }

    fn has(&self, page: PageAddr, flag: u8) -> bool {
        self.find(page).is_some_and(|slot| self.slots[slot].has(flag))
    }

    fn used(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| MLC && slot.is_used())
    }

    /// A page of which the chip may hold nothing.
    fn doubted(&self) -> Option<usize> {
        if MLC { self.slots.iter().position(|slot| slot.is_used() && slot.has(DOUBTED)) } else { None }
    }

    fn range(&self, slot: usize) -> core::ops::Range<usize> {
        let size = self.copies.len() / self.slots.len().max(1);
        slot * size..(slot + 1) * size
    }

    /// What a page holds that cannot be relied on where it is.
    pub(crate) fn doubted_content(&self, page: PageAddr) -> Option<&[u8]> {
        let slot = self.find(page).filter(|&slot| self.slots[slot].has(DOUBTED))?;
        Some(&self.copies[self.range(slot)])
    }

    /// Whether a commit could name a page of which the chip may hold nothing, or that is elsewhere and its owner did not ask.
    pub(crate) fn endangers_commits(&self) -> bool {
        self.used().any(|slot| slot.has(DOUBTED) && slot.has(NAMED)) || self.rescued.iter().any(Option::is_some)
    }

    fn release(&mut self, page: PageAddr) {
        if let Some(slot) = self.find(page) {
            self.slots[slot] = Slot::UNUSED;
        }
    }

    /// No page of a block will be programmed before its next erase.
    pub(crate) fn release_block(&mut self, pages: core::ops::Range<u32>) {
        if !MLC {
            return;
        }
        for slot in self.slots.iter_mut() {
            if pages.contains(&slot.page.get()) && !slot.has(DOUBTED) {
                *slot = Slot::UNUSED;
            }
        }
    }

    /// A page is needed no longer; returns where it is. One that a commit named stays protected: after a cut, recovery may go
    /// back to that commit.
    pub(crate) fn superseded(&mut self, page: PageAddr) -> PageAddr {
        let place = self.rescued.iter().position(|moved| moved.is_some_and(|moved| moved.from == page));
        let moved = place.and_then(|place| self.rescued[place].take());
        let page = moved.map_or(page, |moved| moved.to);
        if !self.has(page, PROTECTED) {
            self.release(page);
        }
        page
    }

    /// Notes that a page is elsewhere. `from` may be where an earlier failure had it moved.
    fn note_rescued(&mut self, from: PageAddr, to: PageAddr) {
        if let Some(earlier) = self.rescued.iter_mut().flatten().find(|moved| moved.to == from) {
            earlier.to = to;
            return;
        }
        let place = self.rescued.iter_mut().find(|place| place.is_none());
        assert!(place.is_some(), "pages were moved after failures, and the owner never asked where");
        if let Some(place) = place {
            *place = Some(Rescued { from, to });
        }
    }
}

impl<N: Nand> Log<'_, N> {
    /// Whether a page of a stream with two bits a cell can be named in a commit although it is a copy ([`Placement::Survivor`]): a
    /// cut cannot destroy it any more, or will not be able to once a commit names it. True of any other page. Costs nothing.
    pub fn is_settled(&self, page: PageAddr) -> bool {
        let is_there = self.pairs.rescued.iter().flatten().all(|moved| moved.from != page);
        let can_be_named = |slot: &Slot| slot.has(PROTECTED) || (slot.has(NAMED) && !slot.has(DOUBTED));
        is_there && self.pairs.find(page).is_none_or(|slot| can_be_named(&self.pairs.slots[slot]))
    }

    /// Has a copy settled without waiting for its partner, which the next commit leaves out then, as it does for any page that is
    /// not a copy. For an owner that needs the room of the source. Costs no program, and a page of the copy's block.
    pub fn settle_copy(&mut self, page: PageAddr) {
        if let Some(slot) = self.pairs.find(page) {
            self.pairs.slots[slot].flags |= NAMED;
        }
    }

    /// Whether there are pages that the next commit may name and over whose cells others could be programmed until then. Costs
    /// nothing.
    pub fn promises_exposed(&self) -> bool {
        self.pairs.used().any(|slot| slot.has(NAMED) && !slot.has(PROTECTED))
    }

    /// Most pages of a block that may wait for their partner at once; 0 where none does.
    pub fn exposed_max(&self) -> usize {
        self.shape.exposed_max().into()
    }

    /// Whether every page of a block is settled ([`Log::is_settled`]), as after [`Log::seal`]. Costs nothing.
    pub fn is_complete(&self, block: BlockAddr) -> bool {
        let mut pages = self.pairs.used().filter(|slot| !slot.has(PROTECTED)).map(|slot| PageAddr(slot.page.get()));
        !pages.any(|page| self.shape.geometry.block_of(page) == block)
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

    /// The stream, if there is one, whose open block a commit now would leave without a page for a summary: the owner appends
    /// one first, since the block is closed without it otherwise. Costs nothing.
    pub fn summary_due(&self) -> Option<u8> {
        (self.shape.first_mlc()..self.shape.streams).find(|&stream| self.is_summary_due(stream))
    }

    pub(crate) fn is_summary_due(&self, stream: u8) -> bool {
        let Some(frontier) = self.open_mlc(stream) else { return false };
        let stays = |place: u16| {
            self.exposed_by(frontier.block, place).is_none_or(|page| !self.pairs.has(page, NAMED | PROTECTED))
        };
        !(frontier.next..self.shape.mlc_pages()).any(stays)
    }

    fn open_mlc(&self, stream: u8) -> Option<Frontier> {
        if self.shape.exposed_max() == 0 || !self.shape.is_mlc_stream(stream) {
            return None;
        }
        self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed)
    }

    fn group_of(&self, place: u16) -> Option<PageGroup> {
        let pages = self.shape.geometry.pages_per_block;
        self.shape.geometry.pairing.pair_of(u32::from(place), pages).map(|(_, group)| group)
    }

    /// The LSB page over whose cells the program of the page at this place goes.
    fn exposed_by(&self, block: BlockAddr, place: u16) -> Option<PageAddr> {
        if self.group_of(place) != Some(PageGroup::Msb) {
            return None;
        }
        let geometry = &self.shape.geometry;
        let partner = geometry.pairing.partner_of(u32::from(place), geometry.pages_per_block)?;
        Some(geometry.page_at(block, partner))
    }

    /// Pages left in the open block of a stream with two bits a cell, the one for a summary included.
    pub(crate) fn room_mlc(&self, stream: u8, frontier: Frontier) -> u16 {
        let rest = self.shape.mlc_pages().saturating_sub(frontier.next);
        let left_out = |slot: &&Slot| slot.stream == stream && slot.has(PROTECTED);
        rest.saturating_sub(self.pairs.used().filter(left_out).count() as u16)
    }

    /// Pages that are left out in the open block of a stream for the sake of those that commits named; 0 after a mount. An owner
    /// whose commits cost a large share of the block does better to append to a stream with one bit a cell, and may end the block
    /// with [`Log::seal`]. The log does not: what is left takes as much as before.
    pub fn left_out(&self, stream: u8) -> u16 {
        self.frontiers.get(stream as usize).copied().flatten().map_or(0, |frontier| frontier.skipped)
    }

    /// A page was programmed in an open block of a stream with two bits a cell. `exposure`: what may happen to it; `None` if it holds
    /// nothing.
    pub(crate) fn note_programmed(&mut self, stream: u8, page: PageAddr, bytes: &[u8], exposure: Option<u8>) {
        let Some(frontier) = self.open_mlc(stream) else { return };
        match self.exposed_by(frontier.block, frontier.next) {
            Some(partner) => self.pairs.release(partner),
            None => {
                if let Some(exposure) = exposure {
                    self.expose(stream, page, bytes, exposure);
                }
            }
        }
    }

    fn expose(&mut self, stream: u8, page: PageAddr, bytes: &[u8], exposure: u8) {
        let unused = self.pairs.slots.iter().position(|slot| !slot.is_used());
        assert!(unused.is_some(), "more pages wait for their partner than the pairing permits");
        let Some(slot) = unused else { return };
        self.pairs.slots[slot] = Slot { page: U32::new(page.0), stream, flags: exposure, reserved: [0; 2] };
        if exposure & BLANK == 0 {
            let range = self.pairs.range(slot);
            self.pairs.copies[range].copy_from_slice(bytes);
        }
    }

    /// The program at a stream's frontier failed, or nobody knows: the LSB page in its cells may be lost.
    pub(crate) fn note_failed(&mut self, stream: u8) {
        let Some(frontier) = self.open_mlc(stream) else { return };
        let Some(partner) = self.exposed_by(frontier.block, frontier.next) else { return };
        let Some(slot) = self.pairs.find(partner) else { return };
        let slot = &mut self.pairs.slots[slot];
        slot.flags |= DOUBTED;
        if slot.has(BLANK) {
            *slot = Slot::UNUSED;
        }
    }

    /// A commit is about to be programmed, which may name any page appended before: from here on none of them may be damaged.
    ///
    /// Before the program of the commit, not after it: if its status is lost and it is durable all the same, what it names has to
    /// be safe.
    pub(crate) fn protect(&mut self) {
        if self.shape.exposed_max() == 0 || self.options.skips_pair_protection() {
            return;
        }
        for slot in self.pairs.slots.iter_mut() {
            if slot.is_used() && slot.has(NAMED) && !slot.has(DOUBTED) && !slot.has(PROTECTED) {
                slot.flags |= PROTECTED;
                self.stats.skipped += 1;
                if let Some(frontier) = &mut self.frontiers[slot.stream as usize] {
                    frontier.skipped += 1;
                }
            }
        }
        for stream in self.shape.first_mlc()..self.shape.streams {
            self.skip_protected(stream);
            if self.open_mlc(stream).is_some_and(|frontier| frontier.next >= self.shape.mlc_pages()) {
                // Without a summary.
                self.close(stream, State::Suspect);
            }
        }
    }

    /// Leaves out the next pages of a stream's block as long as they are partners of protected ones.
    pub(crate) fn skip_protected(&mut self, stream: u8) {
        while let Some(frontier) = self.open_mlc(stream)
            && frontier.next < self.shape.mlc_pages()
            && let Some(partner) = self.exposed_by(frontier.block, frontier.next)
            && self.pairs.has(partner, PROTECTED)
        {
            self.pairs.release(partner);
            if let Some(frontier) = &mut self.frontiers[stream as usize] {
                frontier.next += 1;
            }
        }
    }

    /// After a clean mount nobody knows which pages of an open block a commit named, so each that is exposed is protected.
    pub(crate) fn protect_open_blocks(&mut self) {
        for stream in self.shape.first_mlc()..self.shape.streams {
            let Some(frontier) = self.open_mlc(stream) else { continue };
            for place in frontier.next..self.shape.mlc_pages() {
                let partner = self.exposed_by(frontier.block, place);
                let is_programmed =
                    |page: &PageAddr| self.shape.geometry.index_in_block(*page) < u32::from(frontier.next);
                if let Some(page) = partner.filter(is_programmed) {
                    self.expose(stream, page, &[], NAMED | BLANK | PROTECTED);
                    self.stats.skipped += 1;
                }
            }
            self.skip_protected(stream);
            if self.open_mlc(stream).is_some_and(|frontier| frontier.next >= self.shape.mlc_pages()) {
                self.close(stream, State::Suspect);
            }
        }
    }

    fn is_lsb(&self, frontier: Frontier, page: PageAddr) -> bool {
        let place = self.shape.geometry.index_in_block(page) as u16;
        self.shape.geometry.block_of(page) == frontier.block && self.group_of(place) == Some(PageGroup::Lsb)
    }

    /// Programs a page at another place, and says in which stream. Nothing of it is kept.
    fn append_doubted(&mut self, bytes: &[u8], placement: Placement) -> Result<(u8, PageAddr), LogError<N::Error>> {
        for _ in 0..ATTEMPTS {
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
}
