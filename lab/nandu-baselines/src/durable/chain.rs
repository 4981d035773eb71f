//! The chain of JFFS3: an anchor at a fixed place names a block of pointers, the newest pointer names a block of
//! superblocks, and the newest superblock says where the tree begins. So the fixed blocks are erased once in as many
//! superblocks as two blocks have pages.
//!
//! A block of the chain is filled from its first page on, and not any further once the power was cut or a program failed; so
//! its newest page is found by bisection.

use nandu_nand::{BlockAddr, Nand, PageAddr};

use super::format::{ANCHOR_COUNT, Header, Kind, Link};
use super::mount::SEARCHED_BLOCKS;
use super::space::Role;
use super::store::Store;
use crate::BaselineError;
use crate::pages::Result;

/// How often a superblock is tried when programs fail.
const ATTEMPTS_MAX: u32 = 8;

/// Where the chain is, and how far its blocks are filled.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) anchors: [BlockAddr; ANCHOR_COUNT],
    /// The anchor block in use and its next page.
    pub(super) anchor: (BlockAddr, u32),
    /// The anchor block whose newest page is known not to be torn.
    pub(super) stable: BlockAddr,
    pub(super) pointers: Option<(BlockAddr, u32)>,
    pub(super) superblocks: Option<(BlockAddr, u32)>,
    /// Of the next page of the chain.
    pub(super) sequence: u64,
    /// Blocks that the newest superblock calls bad.
    pub(super) listed_bad: Vec<bool>,
    /// Blocks that leave the chain with the next superblock.
    retiring: Vec<BlockAddr>,
}

impl Chain {
    pub(super) fn new(anchors: [BlockAddr; ANCHOR_COUNT], anchor: (BlockAddr, u32), stable: BlockAddr) -> Chain {
        Chain {
            anchors,
            anchor,
            stable,
            pointers: None,
            superblocks: None,
            sequence: 1,
            listed_bad: Vec::new(),
            retiring: Vec::new(),
        }
    }
}

/// The next page of a block of the chain: where, and whether the block is new.
struct Spot {
    block: BlockAddr,
    nth: u32,
    is_new: bool,
}

impl<N: Nand> Store<N> {
    /// What a superblock says now.
    fn link(&self, target: Option<BlockAddr>) -> Link {
        let space = &self.space;
        let is_ready = |block: BlockAddr| space.ready.contains(&block);
        Link {
            anchors: self.chain.anchors,
            stable: self.chain.stable,
            target,
            root: self.committed.page,
            open: space.open,
            next_sequence: self.next_sequence,
            height: self.committed.height,
            ready: space.ready.iter().copied().collect(),
            bad: space.blocks().map(|block| space.role(block) == Role::Bad).collect(),
            safe: space.blocks().map(|block| space.is_erasable(block) || is_ready(block)).collect(),
        }
    }

    /// Programs a page of the chain. False if the program failed: the block takes no more.
    fn program_link(&mut self, block: BlockAddr, nth: u32, kind: Kind, link: &Link) -> Result<bool, N::Error> {
        let mut bytes = vec![0; self.layout.size];
        link.encode(&mut bytes);
        let page = self.space.page(block, nth);
        let header = Header {
            sequence: self.chain.sequence,
            records: self.committed.records,
            volume: self.options.volume,
            page,
            kind,
            tree: self.options.kind,
            is_last: true,
            has_root: false,
            is_repair: false,
            group_index: 0,
        };
        header.seal(&mut bytes);
        self.chain.sequence += 1;
        self.stats.programs += 1;
        let outcome = self.nand.program(page, 0, &bytes);
        Ok(Self::is_lost(outcome)?.is_none())
    }

    /// Writes a superblock, and the pointers to it where blocks of the chain are full. What was filled since the last one
    /// may be erased after it. Nothing may be in memory alone: a mount reads on from here.
    pub(super) fn write_superblock(&mut self) -> Result<(), N::Error> {
        for _ in 0..ATTEMPTS_MAX {
            if self.try_superblock()? {
                return self.mark_bad_blocks();
            }
        }
        self.is_poisoned = true;
        Err(BaselineError::Worn)
    }

    fn try_superblock(&mut self) -> Result<bool, N::Error> {
        let superblock = self.spot(self.chain.superblocks)?;
        let pointer = if superblock.is_new { Some(self.spot(self.chain.pointers)?) } else { None };
        let link = self.link(None);
        if !self.program_link(superblock.block, superblock.nth, Kind::Superblock, &link)? {
            self.give_up(&superblock);
            self.chain.superblocks = None;
            if let Some(pointer) = pointer.filter(|pointer| pointer.is_new) {
                self.space.set_role(pointer.block, Role::Data);
            }
            return Ok(false);
        }
        // From the end of the chain to its beginning: what is named is always there. A cut in between leaves the chain
        // before, whose blocks are kept until all is programmed.
        if let Some(pointer) = &pointer {
            let link = self.link(Some(superblock.block));
            if !self.program_link(pointer.block, pointer.nth, Kind::Pointer, &link)? {
                self.give_up(pointer);
                self.chain.pointers = None;
                self.space.set_role(superblock.block, Role::Data);
                return Ok(false);
            }
            if pointer.is_new && !self.write_anchor(pointer.block)? {
                self.space.set_role(superblock.block, Role::Data);
                self.space.set_role(pointer.block, Role::Data);
                return Ok(false);
            }
        }
        if let Some(old) = self.chain.superblocks.filter(|_| superblock.is_new) {
            self.chain.retiring.push(old.0);
        }
        self.chain.superblocks = Some((superblock.block, superblock.nth + 1));
        if let Some(pointer) = pointer {
            if let Some(old) = self.chain.pointers.filter(|_| pointer.is_new) {
                self.chain.retiring.push(old.0);
            }
            self.chain.pointers = Some((pointer.block, pointer.nth + 1));
        }
        for block in std::mem::take(&mut self.chain.retiring) {
            if self.space.role(block) == Role::Chain {
                self.space.set_role(block, Role::Data);
            }
        }
        self.note_superblock(&link);
        Ok(true)
    }

    /// A superblock is on flash.
    fn note_superblock(&mut self, link: &Link) {
        self.chain.listed_bad.clone_from(&link.bad);
        self.space.note_superblock();
        self.pages_since_superblock = 0;
    }

    /// The next page of a chain's block, or the first of a new one.
    fn spot(&mut self, at: Option<(BlockAddr, u32)>) -> Result<Spot, N::Error> {
        if let Some((block, nth)) = at.filter(|(_, nth)| *nth < self.space.pages_per_block()) {
            return Ok(Spot { block, nth, is_new: false });
        }
        let block = self.take_block()?;
        self.space.set_role(block, Role::Chain);
        Ok(Spot { block, nth: 0, is_new: true })
    }

    /// A program failed in a block of the chain. It stays what it is until another superblock is written, since its other
    /// pages may be the newest there are.
    fn give_up(&mut self, spot: &Spot) {
        self.space.unmarked.push(spot.block);
        if spot.is_new {
            self.space.set_role(spot.block, Role::Bad);
        } else {
            self.chain.retiring.push(spot.block);
        }
    }

    /// A block that was erased just now, or is known to be.
    pub(super) fn take_block(&mut self) -> Result<BlockAddr, N::Error> {
        while let Some(block) = self.space.next_erasable() {
            if self.erase(block)? {
                return Ok(block);
            }
        }
        self.space.ready.pop_back().ok_or(BaselineError::Full)
    }

    /// Names a block of pointers in the anchor. False if that failed.
    fn write_anchor(&mut self, target: BlockAddr) -> Result<bool, N::Error> {
        let (mut block, mut nth) = self.chain.anchor;
        // This session has programmed the block's newest page and seen it return, so the other blocks may go.
        self.chain.stable = block;
        if nth >= self.space.pages_per_block() {
            (block, nth) = (self.erase_other_anchor(&[block])?, 0);
        }
        let link = self.link(Some(target));
        self.chain.anchor = (block, nth + 1);
        let is_done = self.program_link(block, nth, Kind::Anchor, &link)?;
        if !is_done {
            // The block takes no more; the next anchor goes to another one.
            self.chain.anchor = (block, self.space.pages_per_block());
        }
        Ok(is_done)
    }

    /// Writes a superblock into an anchor block itself, at the end of a mount. Neither the anchor that was found nor the one
    /// that is known to be stable is erased: the page that was found may have been torn by the cut and be lost before the
    /// new one is there.
    pub(super) fn write_anchor_superblock(&mut self, found: BlockAddr) -> Result<(), N::Error> {
        for _ in 0..ANCHOR_COUNT {
            let block = self.erase_other_anchor(&[found, self.chain.stable])?;
            let link = self.link(None);
            if self.program_link(block, 0, Kind::Anchor, &link)? {
                self.chain.anchor = (block, 1);
                self.chain.stable = block;
                self.note_superblock(&link);
                return self.mark_bad_blocks();
            }
            self.space.set_role(block, Role::Bad);
            self.space.unmarked.push(block);
        }
        Err(BaselineError::Worn)
    }

    /// Writes a superblock behind the one that this session wrote into an anchor block.
    pub(super) fn append_anchor_superblock(&mut self) -> Result<(), N::Error> {
        let (block, nth) = self.chain.anchor;
        if nth >= self.space.pages_per_block() {
            return Ok(());
        }
        let link = self.link(None);
        let is_done = self.program_link(block, nth, Kind::Anchor, &link)?;
        self.chain.anchor = (block, if is_done { nth + 1 } else { self.space.pages_per_block() });
        if is_done {
            self.note_superblock(&link);
        }
        Ok(())
    }

    fn erase_other_anchor(&mut self, kept: &[BlockAddr]) -> Result<BlockAddr, N::Error> {
        for block in self.chain.anchors {
            let is_usable = !kept.contains(&block) && self.space.role(block) == Role::Anchor;
            if is_usable && self.erase(block)? {
                return Ok(block);
            }
        }
        self.replace_anchor()
    }

    /// Makes an anchor of another block, in the place of one that failed.
    fn replace_anchor(&mut self) -> Result<BlockAddr, N::Error> {
        for block in (0..self.space.geometry.block_count.min(SEARCHED_BLOCKS)).map(BlockAddr) {
            let failed = self.chain.anchors.iter().position(|&anchor| self.space.role(anchor) == Role::Bad);
            let Some(failed) = failed else { break };
            if self.space.is_erasable(block) && self.erase(block)? {
                self.space.set_role(block, Role::Anchor);
                self.chain.anchors[failed] = block;
                return Ok(block);
            }
        }
        Err(BaselineError::Worn)
    }

    /// Marks blocks that failed, once a superblock knows them as bad: a mark that no superblock knows of would have a mount
    /// erase a block that carries one.
    fn mark_bad_blocks(&mut self) -> Result<(), N::Error> {
        let waiting = std::mem::take(&mut self.space.unmarked);
        for block in waiting {
            let is_needed = matches!(self.space.role(block), Role::Chain | Role::Anchor)
                || !self.space.live_in(block).is_empty()
                || self.space.evacuate.contains(&block);
            if !is_needed {
                self.space.set_role(block, Role::Bad);
            }
            if is_needed || !self.chain.listed_bad[block.0 as usize] {
                self.space.unmarked.push(block);
                continue;
            }
            let outcome = self.nand.mark_bad(block);
            // Without a mark the superblock still knows.
            let _ = Self::is_lost(outcome)?;
        }
        Ok(())
    }

    /// The newest page of a block that verifies and is of a kind, by bisection, with its place. Its bytes are in `buffer`.
    pub(super) fn newest(
        &mut self,
        block: BlockAddr,
        kind: Kind,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<(Header, u32)>, N::Error> {
        let (mut low, mut high) = (0, self.space.pages_per_block());
        let mut found = None;
        let mut bytes = vec![0; self.layout.size];
        while low < high {
            let middle = (low + high) / 2;
            let page: PageAddr = self.space.page(block, middle);
            match self.read_verified(page, &mut bytes)?.filter(|header| header.kind == kind) {
                Some(header) => {
                    std::mem::swap(buffer, &mut bytes);
                    found = Some((header, middle));
                    low = middle + 1;
                }
                None => high = middle,
            }
        }
        Ok(found)
    }
}
