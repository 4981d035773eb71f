//! Blocks that the owner has emptied: which data moves to two bits a cell, and when, is a policy of whoever knows it.

use nandu_nand::{BlockAddr, Cause, CellMode, Nand};

use crate::block_table::State;
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
    /// The stream that opened it.
    pub stream: u8,
    /// How often it was erased.
    pub erases: u32,
    /// Pages programmed since it was opened, rounded down; it wraps after about 32 times the pages of the chip.
    pub age: u64,
}

/// A block of a bare stream that takes more pages, for owners that choose what goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenBlock {
    /// Pages that it still takes, the one for a summary included.
    pub room: u16,
    /// Pages that it has.
    pub pages: u16,
    /// How often it was erased.
    pub erases: u32,
    /// Pages programmed since it was opened, as in [`Candidate::age`].
    pub age: u64,
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
    /// Bare pages, with so many bits in a cell.
    Bare(CellMode),
    /// It is not used.
    Bad,
}

impl<N: Nand> Log<'_, N> {
    /// What each block is used for, and how many pages in it may be live. Costs a pass over the block table in memory.
    pub fn uses(&self) -> impl Iterator<Item = (BlockAddr, BlockUse, u16)> + use<'_, N> {
        self.blocks.addresses().map(|block| {
            let what = match self.blocks.state(block) {
                State::Free | State::Listed | State::Ready => BlockUse::Free,
                state if state.is_closed() && self.blocks.live(block) == 0 => BlockUse::Free,
                State::Bad => BlockUse::Bad,
                State::Anchor => BlockUse::Anchors,
                State::Open | State::Full | State::Suspect | State::Failing => match self.blocks.is_bare(block) {
                    true => BlockUse::Bare(self.blocks.mode(block)),
                    false => BlockUse::Headed,
                },
            };
            let live = if matches!(what, BlockUse::Headed | BlockUse::Bare(_)) { self.blocks.live(block) } else { 0 };
            (block, what, live)
        })
    }

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
            stream: self.blocks.stream(block),
            erases: self.blocks.erase_count(block),
            age: self.pages_since_opened(block),
        })
    }

    /// Has a block emptied next, once the one under way is empty, if it still can be then: [`Log::next_work`] hands out its pages
    /// with this cause as soon as a budget has examinations left. Costs nothing.
    pub fn empty_next(&mut self, block: BlockAddr, cause: Cause) {
        self.collector.chosen = Some(block).filter(|&block| self.shape.geometry.contains_block(block));
        self.collector.chosen_cause = cause;
    }

    /// How often the block was erased that can be opened next for pages that are moved to even out wear: the most worn one that holds nothing, if
    /// [`Log::list_most_worn`] has it listed, or the next one of those listed for streams with two bits a cell. `None`: there is none, or no block
    /// to spare. Costs a pass over the block table in memory.
    pub fn levelling_destination(&self) -> Option<u32> {
        if !self.shape.has_mlc() || !self.has_spare_blocks() {
            return None;
        }
        let listed = self.ready.mlc_unopened().last().copied();
        let both = listed.into_iter().chain(self.most_worn_listable());
        both.map(|block| self.blocks.erase_count(block)).max()
    }

    /// The block that is open for what moves to two bits a cell, to which pages that are moved to even out wear go before any other.
    /// `None`: the next page opens one. Costs nothing.
    pub fn open_mlc_block(&self) -> Option<OpenBlock> {
        let stream = self.shape.streams.checked_sub(1).filter(|&stream| self.shape.is_mlc_stream(stream))?;
        let frontier = self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed)?;
        Some(OpenBlock {
            room: self.bare_room(stream),
            pages: self.shape.mlc_pages(),
            erases: self.blocks.erase_count(frontier.block),
            age: self.pages_since_opened(frontier.block),
        })
    }

    fn pages_since_opened(&self, block: BlockAddr) -> u64 {
        u64::from(self.age(block)) << self.shape.birth_shift
    }

    /// Blocks that hold nothing: erased, or waiting to be. Costs nothing.
    pub fn pool_blocks(&self) -> u32 {
        self.blocks.pool()
    }

    /// Most blocks that are erased ahead of their use. Costs nothing.
    pub fn erased_ahead_max(&self) -> u32 {
        self.shape.ready_max.into()
    }

    /// Blocks erased and checkpoints made since the mount. Costs nothing.
    pub fn own_steps(&self) -> u64 {
        self.stats.erases + self.stats.checkpoints
    }

    /// Blocks of the pool below which operations take a share of the collector's work ([`Log::instalment`]).
    pub fn pool_wanted(&self) -> u32 {
        self.shape.pool_high(self.blocks.good()) + self.collector.beside_max
    }

    /// Says that copies of which [`Examined::Copied`](crate::Examined::Copied) told were given up: what was copied is asked about again. Costs a pass over
    /// the block table in memory.
    pub fn forget_copied(&mut self) {
        self.blocks.forget_copied();
    }
}
