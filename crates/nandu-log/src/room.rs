//! How much may live, in blocks of different modes.
//!
//! A bare page takes as much room as it takes where it is fullest, with two bits a cell if some streams have them, since the
//! collector may move it there; a page with header takes a page of a block with one bit. So what lives has a weight, and there is
//! room as long as it is below that of the blocks that data may fill.

use nandu_nand::{BlockAddr, Nand};

use crate::log::Log;

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
}
