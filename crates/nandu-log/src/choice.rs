//! Blocks that the owner has emptied: which data moves to two bits a cell, and when, is a policy of whoever knows it.

use nandu_nand::{BlockAddr, CellMode, Nand};

use crate::log::Log;

/// A bare block that can be emptied, for owners that choose which one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The block.
    pub block: BlockAddr,
    /// Pages in it that are live, at most.
    pub live: u16,
    /// Pages in it that could be: with as many, emptying it gains room only if what is moved takes less room elsewhere.
    pub live_max: u16,
    /// Pages programmed since it was opened, rounded down; it wraps after about 32 times the pages of the chip.
    pub age: u64,
}

impl<N: Nand> Log<'_, N> {
    /// The bare blocks with this cell mode that can be emptied now: closed, with pages that may be live, and not left alone by wish
    /// of the owner. What of them is to be moved where is the owner's policy; it says so with [`Log::empty_next`]. Costs a pass
    /// over the block table in memory.
    pub fn candidates(&self, mode: CellMode) -> impl Iterator<Item = Candidate> + use<'_, N> {
        let is_one = move |block: &BlockAddr| {
            self.blocks.is_bare(*block)
                && self.blocks.mode(*block) == mode
                && self.is_victim(*block)
                && self.can_be_emptied(*block)
        };
        self.blocks.addresses().filter(is_one).map(|block| Candidate {
            block,
            live: self.blocks.live(block),
            live_max: self.blocks.live_max(block),
            age: u64::from(self.age(block)) << self.shape.birth_shift,
        })
    }

    /// Has a block emptied next, once the one under way is empty, if it still can be then: [`Log::next_work`] hands out its pages
    /// with [`Cause::Migration`](nandu_nand::Cause::Migration) as soon as a budget has examinations left. Costs nothing.
    pub fn empty_next(&mut self, block: BlockAddr) {
        self.collector.chosen = Some(block).filter(|&block| self.shape.geometry.contains_block(block));
    }

    /// Says that copies of which [`Examined::Copied`](crate::Examined::Copied) told were given up: what was copied is asked about again. Costs a pass over
    /// the block table in memory.
    pub fn forget_copied(&mut self) {
        self.blocks.forget_copied();
    }
}
