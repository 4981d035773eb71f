//! Blocks that an owner has emptied: which data moves to two bits a cell, and when, is a policy of whoever knows it.

use nandu_nand::{BlockAddr, Cause, CellMode, Nand};

use crate::blocks::{Blocks, Flag, Stage};
use crate::collector::Collector;
use crate::dying::Dying;
use crate::error::LogError;
use crate::raw::Whose;
use crate::room::Room;
use crate::volume::Volume;

/// A block of raw pages that can be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The block.
    pub block: BlockAddr,
    /// Pages in it that are live, at most.
    pub live: u16,
    /// Pages in it that could be: with as many, emptying it gains room only if what is moved takes less room elsewhere.
    pub live_max: u16,
    /// How often it was erased.
    pub erases: u32,
    /// How long ago it was opened, in sixteenths of the time in which as many blocks are opened as there are; 31 at most.
    pub age: u32,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockUse {
    /// It holds nothing: erased, or waiting to be.
    Free,
    /// The block table and what a mount begins with.
    Anchors,
    /// Pages with headers.
    Headed,
    /// Raw pages, with so many bits in a cell.
    Raw(CellMode),
    /// It is not used.
    Bad,
}

/// What each block is used for, and how many pages in it may be live.
pub(crate) fn uses(blocks: &Blocks<'_>) -> impl Iterator<Item = (BlockAddr, BlockUse, u16)> {
    blocks.addresses().map(|block| {
        let what = match blocks.state(block) {
            Stage::Free | Stage::Listed | Stage::Ready => BlockUse::Free,
            Stage::Closed if blocks.live(block) == 0 => BlockUse::Free,
            Stage::Anchor => BlockUse::Anchors,
            Stage::Bad => BlockUse::Bad,
            Stage::Open | Stage::Closed | Stage::Failing if blocks.is_raw(block) => BlockUse::Raw(blocks.mode(block)),
            Stage::Open | Stage::Closed | Stage::Failing => BlockUse::Headed,
        };
        (block, what, blocks.live(block))
    })
}

/// The choice of a block to empty.
#[expect(missing_debug_implementations, reason = "a view of the log, which says no more of itself")]
pub struct Choice<'c, 'm, N> {
    volume: &'c mut Volume<'m, N>,
    collector: &'c mut Collector,
    dying: &'c Dying,
    leaves_to_idle: &'c mut bool,
}

impl<'c, 'm, N: Nand> Choice<'c, 'm, N> {
    pub(crate) fn new(
        volume: &'c mut Volume<'m, N>,
        collector: &'c mut Collector,
        (dying, leaves_to_idle): (&'c Dying, &'c mut bool),
    ) -> Self {
        Choice { volume, collector, dying, leaves_to_idle }
    }

    /// Blocks of raw pages with so many bits in a cell that can be emptied; not those of which all pages that live are dying or waiting for their copies. Costs a pass over the block table in memory.
    pub fn candidates(&self, mode: CellMode) -> impl Iterator<Item = Candidate> {
        let (blocks, pairs, geometry) = (self.volume.blocks(), self.volume.pairs(), &self.volume.shape().geometry);
        let may_be = move |&block: &BlockAddr| {
            let is_so = blocks.state(block).is_closed() && blocks.is_raw(block) && blocks.mode(block) == mode;
            let waiting = pairs.sources_in(geometry, block) + self.dying.count_in(block, geometry);
            is_so && blocks.live(block) > waiting && !blocks.has(block, Flag::Damaged)
        };
        blocks.addresses().filter(may_be).map(move |block| Candidate {
            block,
            live: blocks.live(block),
            live_max: blocks.owned(block),
            erases: blocks.erase_count(block),
            age: blocks.age(block),
        })
    }

    /// Blocks that hold nothing, and how many of these the log wants to have before it makes operations collect.
    pub fn free_blocks(&self) -> (u32, u32) {
        let (shape, blocks) = (self.volume.shape(), self.volume.blocks());
        (blocks.pool(), Room { shape, blocks }.high())
    }

    /// Whether a block is being emptied.
    pub fn is_emptying(&self) -> bool {
        self.collector.block().is_some()
    }

    /// Has a block emptied by the steps that follow, if none is being emptied. From here on idle time ([`Budget::chosen`](crate::Budget::chosen)) is to move what is in danger and what wears unevenly, too, and operations do not.
    pub fn empty(&mut self, block: BlockAddr, cause: Cause) {
        *self.leaves_to_idle = true;
        let blocks = self.volume.blocks();
        if !self.is_emptying() && blocks.state(block).is_closed() {
            self.collector.begin(blocks, (block, cause), false);
            debug_assert!(self.is_emptying());
        }
    }

    /// Visits the keys for which pages of a block of raw pages were programmed, dead or not; none where its summary is not there. One read for each group, or a few.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub fn visit_owners(&mut self, block: BlockAddr, visit: &mut dyn FnMut(&[u8])) -> Result<(), LogError<N::Error>> {
        let mode = self.volume.blocks().mode(block);
        for nth in 0..self.volume.blocks().pages_of(block) {
            let page = self.volume.shape().page_in(mode, block, nth);
            if let Whose::Of(owner) = self.volume.whose(page)? {
                visit(owner.key().unwrap_or_default());
            }
        }
        Ok(())
    }
}
