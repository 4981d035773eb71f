//! How much may live, in blocks of different modes.
//!
//! A bare page takes as much room as it takes where it is fullest, with two bits a cell if some streams have them, since the
//! collector may move it there; a page with header takes a page of a block with one bit. So what lives has a weight, and there is
//! room as long as it is below that of the blocks that data may fill.

use nandu_media::anchor::mlc_ready_count;
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::log::Log;
use crate::ready::Frontier;
use crate::slots::{PROTECTED, Slot};

impl<N: Nand> Log<'_, N> {
    /// Pages that may be live: those of all good blocks but the reserve, less the summaries of bare pages that are.
    ///
    /// With `mlc_streams`, those that are live and as many bare pages more as find room with two bits a cell, also where what is
    /// live has to be moved there first.
    pub fn capacity_pages(&self) -> u32 {
        let room = self.usable_blocks() * u32::from(self.shape.mlc_pages());
        if !self.shape.has_mlc() {
            return room.saturating_sub(self.blocks.summaries());
        }
        self.blocks.live_total() + room.saturating_sub(self.weight_of(0))
    }

    /// Blocks that data may fill.
    pub(crate) fn usable_blocks(&self) -> u32 {
        self.usable_blocks_alone().saturating_sub(self.collector.beside_max)
    }

    /// The same if moving a page programs one page only.
    pub(crate) fn usable_blocks_alone(&self) -> u32 {
        let good = self.blocks.good();
        good.saturating_sub(self.shape.reserve_blocks(good))
    }

    /// What lives, and so many pages more of which nobody knows whether they have headers, in pages of the fullest kind of block
    /// there is, if every block were full and bare pages had as many bits a cell as they may.
    fn weight_of(&self, more: u32) -> u32 {
        let bare = self.blocks.live_bare();
        let headed = self.blocks.live_total() - bare;
        (headed.saturating_add(more)).saturating_mul(self.shape.headed_weight()) + bare + self.blocks.summaries()
    }

    /// Pages that are counted as live, and whether the counts are exact: they may be too high after a cut. Costs nothing.
    pub fn live_pages(&self) -> (u32, bool) {
        (self.blocks.live_total(), self.blocks.inexact() == 0)
    }

    /// Whether so many pages more may live, by counts that may be too high.
    pub fn has_capacity_for(&self, pages: u32) -> bool {
        self.weight_of(pages) <= self.usable_blocks() * u32::from(self.shape.mlc_pages())
    }

    /// The same for pages with headers that live for a while: they may take half of what is kept dead so that blocks that are emptied yield
    /// something. Without bare pages they take an eighth of the capacity at most, so that what is deleted from a small full chip makes room: of
    /// 2,500 lives on 16 blocks of 8 pages, 2 refused a record that had just been deleted, and none with this bound. With bare pages it made
    /// levelling move a third more. Costs nothing.
    pub fn has_overdraft_for(&self, pages: u32) -> bool {
        let capacity = self.usable_blocks() * u32::from(self.shape.mlc_pages());
        let slack = self.shape.slack_blocks(self.blocks.good()) * u32::from(self.shape.mlc_pages());
        let overdraft_max = if self.shape.has_bare() { u32::MAX } else { capacity / 8 };
        self.weight_of(pages) <= capacity + (slack / 2).min(overdraft_max)
    }

    /// Pages of the fullest kind of block that can still be filled when so many pages with headers have come, by counts that may be too
    /// high: for bare pages, and for pages with headers, each of which takes [`Log::headed_weight`] of them. Costs nothing.
    pub fn room_beside(&self, headed: u32) -> u32 {
        (self.usable_blocks() * u32::from(self.shape.mlc_pages())).saturating_sub(self.weight_of(headed))
    }

    /// How many bare pages a page with header takes the room of: 2 where some streams have two bits a cell, else 1.
    pub fn headed_weight(&self) -> u32 {
        self.shape.headed_weight()
    }

    /// Bare pages in the fullest kind of block, beside a Summary.
    pub fn bare_pages_per_block(&self) -> u32 {
        u32::from(self.shape.mlc_pages()) - 1
    }

    /// How many pages of its kind a block holds where those of this one are moved to. Bare ones find twice as much room with two
    /// bits a cell, so that a block with one that is full of them is worth emptying, too.
    pub(crate) fn moved_max(&self, block: BlockAddr, to_mlc: bool) -> u16 {
        if to_mlc && self.blocks.is_bare(block) { self.shape.mlc_pages() - 1 } else { self.blocks.live_max(block) }
    }

    /// How much room a page of a block takes where it is moved to.
    pub(crate) fn weight(&self, block: BlockAddr) -> u32 {
        if self.blocks.is_bare(block) { 1 } else { self.shape.headed_weight() }
    }

    /// Pages that can be moved before the blocks that the owner's operations need are touched.
    pub fn move_room(&self) -> u32 {
        self.blocks.pool().saturating_sub(self.shape.floor_host()) * u32::from(self.shape.pages) + self.open_room(false)
    }

    /// Pages with headers that can be programmed before a block is erased.
    pub fn room_in_all(&self) -> u32 {
        self.blocks.pool() * u32::from(self.shape.pages) + self.open_room(false)
    }

    /// Whether more blocks are empty than operations of the owner leave alone, so that one can be taken with nothing reserved.
    pub fn has_spare_blocks(&self) -> bool {
        self.blocks.pool() > self.floor_host()
    }

    /// Pages that can be appended to the blocks that are open: those of bare streams, without the last page of each, which is for
    /// a summary, or those of the others.
    pub(crate) fn open_room(&self, is_bare: bool) -> u32 {
        let of_kind = (0..self.shape.streams).filter(|&stream| self.shape.is_bare_stream(stream) == is_bare);
        of_kind.map(|stream| u32::from(self.room(stream).saturating_sub(u16::from(is_bare)))).sum()
    }

    /// Pages that the open block of a bare stream still takes, its last one included, which is for a summary: with 1, the
    /// owner calls [`Log::append_summary`] before it appends another page. 0: no block is open, one would be opened.
    ///
    /// With two bits a cell a commit may make it less, by the pages that are left out for the sake of those that it names.
    pub fn bare_room(&self, stream: u8) -> u16 {
        if stream < self.shape.streams && self.shape.is_bare_stream(stream) { self.room(stream) } else { 0 }
    }

    /// Pages that the open block of a stream still takes.
    pub(crate) fn room(&self, stream: u8) -> u16 {
        let Some(frontier) = self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed) else { return 0 };
        if self.shape.is_mlc_stream(stream) {
            return self.room_mlc(stream, frontier);
        }
        self.shape.pages.saturating_sub(frontier.next)
    }

    /// Whether a block can be opened for a stream with two bits a cell.
    pub(crate) fn can_open_mlc(&self) -> bool {
        self.ready.mlc_remaining() > 0 || self.can_list_mlc()
    }

    /// Whether what is moved out of a bare block finds room with two bits a cell.
    pub(crate) fn can_move_to_mlc(&self) -> bool {
        let streams = self.shape.first_mlc()..self.shape.streams;
        self.shape.has_mlc() && (self.can_open_mlc() || streams.into_iter().any(|stream| self.bare_room(stream) > 1))
    }

    /// Whether the block of a page holds bare pages.
    pub fn is_bare(&self, page: PageAddr) -> bool {
        self.shape.geometry.contains_page(page) && self.blocks.is_bare(self.shape.geometry.block_of(page))
    }

    /// Pages left in the open block of a stream with two bits a cell, the one for a summary included.
    pub(crate) fn room_mlc(&self, stream: u8, frontier: Frontier) -> u16 {
        let rest = self.shape.mlc_pages().saturating_sub(frontier.next);
        let left_out = |slot: &&Slot| slot.stream == stream && slot.has(PROTECTED);
        rest.saturating_sub(self.pairs.used().filter(left_out).count() as u16)
    }

    /// Whether a stream's block takes another page.
    pub(crate) fn has_room(&self, stream: u8) -> bool {
        let pages = self.shape.pages_of(stream);
        self.frontiers[stream as usize].is_some_and(|frontier| !frontier.is_closed && frontier.next < pages)
    }

    /// How long the ready list of a checkpoint made now would be, and how many of its entries would be for streams with two bits
    /// a cell.
    pub(crate) fn next_list(&self) -> (usize, usize) {
        let left = self.ready.remaining() + self.ready.mlc_remaining();
        let listable = self.blocks.can_be_listed().saturating_sub(self.kept()) as usize;
        let count = (left + listable).min(self.shape.ready_max as usize);
        (count, mlc_ready_count(count))
    }

    /// Whether the next checkpoint can give streams with one bit a cell more blocks.
    pub(crate) fn can_list_others(&self) -> bool {
        if !self.shape.has_mlc() {
            return self.can_list();
        }
        let (count, mlc) = self.next_list();
        count - mlc > self.ready.remaining()
    }

    /// The same of those with two.
    pub(crate) fn can_list_mlc(&self) -> bool {
        self.shape.has_mlc() && self.next_list().1 > self.ready.mlc_remaining()
    }

    /// Whether the next checkpoint can list blocks that the newest one does not.
    pub(crate) fn can_list(&self) -> bool {
        self.blocks.can_be_listed() > self.kept()
    }

    /// How many blocks are kept only because the newest commit page is there, or a tail that is due.
    pub(crate) fn kept(&self) -> u32 {
        let block_of = |page: PageAddr| self.shape.geometry.block_of(page);
        let commit = self.committed.map(block_of);
        let due = self.tags.due().map(|due| block_of(PageAddr(due.first))).filter(|&due| Some(due) != commit);
        commit.into_iter().chain(due).filter(|&block| self.blocks.may_be_listed(block)).count() as u32
    }

    /// Whether a block holds the newest commit page, or a tail that is due, which are needed even where nothing counts as live (L7, L15).
    pub(crate) fn holds_commit(&self, block: BlockAddr) -> bool {
        self.holds_due(block) || self.committed.is_some_and(|page| self.shape.geometry.block_of(page) == block)
    }

    /// Whether a block holds a tail that is due.
    pub(crate) fn holds_due(&self, block: BlockAddr) -> bool {
        self.tags.due().is_some_and(|due| self.shape.geometry.block_of(PageAddr(due.first)) == block)
    }

    /// Blocks of the pool at which instalments are largest.
    pub(crate) fn floor_host(&self) -> u32 {
        self.shape.floor_host() + self.collector.beside_max
    }

    /// Whether operations pay instalments now, the pool of empty blocks being less than full.
    pub(crate) fn is_pool_low(&self) -> bool {
        self.blocks.pool() < self.shape.pool_high(self.blocks.good()) + self.collector.beside_max
    }

    /// The page of a block that holds data at a place of its mode.
    pub(crate) fn nth_page(&self, block: BlockAddr, nth: u16) -> PageAddr {
        self.shape.page(self.blocks.mode(block), block, nth)
    }
}
