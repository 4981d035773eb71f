//! Which pages are needed: what the owner says, and what the collector counted.

use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::block_table::INEXACT;
use crate::log::Log;

impl<N: Nand> Log<'_, N> {
    /// Of the block of a page to which nothing more is appended: its erase count, and how many of its pages live, if that is known: after a
    /// cut it may be fewer than are counted. Until it is erased again, what is dead in it stays dead.
    pub fn closed(&self, page: PageAddr) -> Option<(u32, Option<u16>)> {
        let block = self.shape.geometry.contains_page(page).then(|| self.shape.geometry.block_of(page))?;
        let live = (!self.blocks.has(block, INEXACT)).then(|| self.blocks.live(block));
        self.blocks.state(block).is_closed().then(|| (self.blocks.erase_count(block), live))
    }

    /// Says that a page is needed no longer: a commit that is durable has replaced it, or it belongs to an operation
    /// that was given up. Costs nothing. A page said twice makes a block look emptier than it is, and loses data.
    pub fn supersede(&mut self, page: PageAddr) {
        if !self.shape.geometry.contains_page(page) {
            return;
        }
        // Moved after a failure, and the owner did not ask for it yet.
        let page = self.pairs.superseded(page);
        let block = self.shape.geometry.block_of(page);
        // A tail that is due is taken over by as many mounts as are cut, and each supersedes its pages one by the other: they are all counted
        // until the collector has been through the block.
        if self.holds_due(block) {
            return;
        }
        if self.blocks.state(block).holds_data() {
            self.uncount(page);
            if self.blocks.is_bare(block) && !self.is_being_emptied(block) {
                self.runs.note(block);
            }
            self.blocks.subtract_live(block);
        }
    }

    /// Has the block of a page left alone by the collector until [`Log::unpin_all`]: the page belongs to an operation under
    /// way, and nothing that the owner can find from its root points at it yet. Costs nothing. A mount knows of no pins.
    pub fn pin(&mut self, page: PageAddr) {
        if self.shape.geometry.contains_page(page) {
            self.blocks.pin(self.shape.geometry.block_of(page));
        }
    }

    /// Ends every pin. Costs a pass over the block table in memory.
    pub fn unpin_all(&mut self) {
        self.blocks.unpin_all();
    }

    /// Says that any number of pages may be dead that were not superseded: the live counts are upper bounds from here on, as after
    /// a cut, until the collector has been through a block. Costs a pass over the block table in memory, and later the collector
    /// as many examinations as there are pages, if the chip looks full meanwhile.
    pub fn doubt_counts(&mut self) {
        for block in self.blocks.addresses() {
            if self.blocks.state(block).holds_data() {
                self.blocks.set(block, INEXACT, true);
            }
        }
    }

    /// How many pages of a block may be live, at most. An owner that walks its data can hold L5 against it.
    pub fn live_bound(&self, block: BlockAddr) -> u32 {
        if self.shape.geometry.contains_block(block) { u32::from(self.blocks.live(block)) } else { 0 }
    }

    /// The owner needs a page no longer that may have been counted already.
    pub(crate) fn uncount(&mut self, page: PageAddr) {
        let geometry = &self.shape.geometry;
        if self.collector.victim == Some(geometry.block_of(page))
            && self.collector.cursor > 0
            && self.collector.pending != Some(page)
            && page <= self.nth_page(geometry.block_of(page), self.collector.cursor - 1)
        {
            self.collector.left = self.collector.left.saturating_sub(1);
        }
    }

    /// A block is erased: if it was being emptied, that is done.
    pub(crate) fn forget_victim(&mut self, block: BlockAddr) {
        if self.collector.victim == Some(block) {
            self.collector.victim = None;
            self.collector.pending = None;
        }
    }

    /// Whether the pages of a block are being moved.
    pub(crate) fn is_being_emptied(&self, block: BlockAddr) -> bool {
        self.collector.victim == Some(block)
    }
}
