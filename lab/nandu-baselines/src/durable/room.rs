//! Room before a change: blocks erased ahead, garbage collection, blocks with a failed page, and when a superblock is due.

use nandu_nand::{BlockAddr, Cause, Nand};

use super::DurableTree;
use super::format::READY_MAX;
use super::space::Role;
use crate::BaselineError;
use crate::pages::Result;

/// Erased or erasable blocks that are left when a change begins. A mount after a cut needs one or two that were so when the
/// last superblock was written, and a cut may hit the mount too.
pub(super) const RESERVE_BLOCKS: u32 = 4;

/// The same when pages are moved to free blocks.
const RESERVE_BLOCKS_GC: u32 = 2;

/// Blocks that are erased ahead, for the frontier.
const READY_BLOCKS: usize = 4;

impl<N: Nand> DurableTree<N> {
    /// Programs what a journal holds in memory, so that the newest root is on flash.
    fn settle(&mut self) -> Result<(), N::Error> {
        if self.tree.pages().overlay.is_empty() {
            return Ok(());
        }
        self.tree.pages_mut().is_forced = true;
        let outcome = self.attempt(|tree| tree.settle());
        self.tree.pages_mut().is_forced = false;
        outcome
    }

    fn write_superblock(&mut self) -> Result<(), N::Error> {
        self.settle()?;
        let cause = self.tree.pages_mut().nand.attribute(Cause::Checkpoint);
        let outcome = self.tree.pages_mut().write_superblock();
        self.attribute(cause);
        outcome
    }

    /// Erases blocks ahead, for so many pages, and names them in a superblock: only blocks whose erase is known to have returned are filled, and
    /// a mount looks for pages in no other.
    fn erase_ahead(&mut self, pages: u32) -> Result<(), N::Error> {
        self.settle()?;
        let store = self.tree.pages_mut();
        while store.space.ready.len() < READY_MAX
            && (store.space.ready.len() < READY_BLOCKS || store.space.room() < pages)
        {
            let Some(block) = store.space.next_erasable() else { break };
            if store.erase(block)? {
                store.space.set_role(block, Role::Ready);
                store.space.ready.push_back(block);
            }
        }
        self.write_superblock()
    }

    /// Sees to it that so many pages can be programmed and that a mount after a cut finds blocks to work with.
    pub(super) fn make_room(&mut self, pages: u32) -> Result<(), N::Error> {
        if self.tree.pages().is_poisoned {
            return Err(BaselineError::Poisoned);
        }
        self.attribute(Cause::Gc);
        self.evacuate()?;
        let store = self.tree.pages();
        if store.pages_since_superblock >= store.options.superblock_interval_pages {
            self.write_superblock()?;
        }
        // Each round frees a block, or writes the superblock that frees one.
        let rounds_max = 4 * self.tree.pages().space.geometry.block_count;
        for _ in 0..rounds_max {
            let store = self.tree.pages();
            let per_block = store.space.pages_per_block();
            let needed = pages + store.overlay.len();
            let free = store.space.ready.len() as u32 + store.space.erasable_count();
            if free * per_block + store.space.rest() >= RESERVE_BLOCKS * per_block + needed {
                let wanted = needed + self.spare();
                let can_more = store.space.erasable_count() > 0 && store.space.ready.len() < READY_MAX;
                if store.space.room() < wanted && can_more {
                    self.erase_ahead(wanted)?;
                }
                // On a crowded chip there may be less than is wanted; what a mount takes has to be there.
                if self.tree.pages().space.room() >= needed + self.mount_pages() {
                    return Ok(());
                }
                if !can_more {
                    self.free_block(free)?;
                }
            } else {
                self.free_block(free)?;
            }
        }
        Err(BaselineError::Full)
    }

    /// Makes a block erasable: by a superblock, where that is all it takes.
    fn free_block(&mut self, free: u32) -> Result<(), N::Error> {
        if self.tree.pages().space.is_held_back() { self.write_superblock() } else { self.collect(free) }
    }

    /// Pages that are to be left on the ready list when a change begins: for another try in another block when a program
    /// fails, and for the mount after a cut, which writes the newest page and what a journal holds into blocks that were on the
    /// list and are not filled.
    fn spare(&self) -> u32 {
        let store = self.tree.pages();
        let per_block = store.space.pages_per_block();
        self.tree.pages_per_change() + store.overlay.len() + per_block + self.mount_pages()
    }

    /// Pages that a mount may program, in whole blocks.
    fn mount_pages(&self) -> u32 {
        let store = self.tree.pages();
        (self.height() + 4 + store.options.journal_nodes).next_multiple_of(store.space.pages_per_block())
    }

    /// Moves what lives in the block with the fewest live pages.
    fn collect(&mut self, free: u32) -> Result<(), N::Error> {
        self.settle()?;
        let store = self.tree.pages();
        let per_block = store.space.pages_per_block();
        let (victim, count) = store.space.victim().ok_or(BaselineError::Full)?;
        // Moving a page splits nothing: it costs a program for each level at most.
        let needed = count * self.height();
        let has_room = free * per_block + store.space.rest() >= RESERVE_BLOCKS_GC * per_block + needed;
        if count >= per_block || !has_room {
            return Err(BaselineError::Full);
        }
        if !self.empty(victim)? {
            return Err(BaselineError::Full);
        }
        self.tree.pages_mut().stats.gc_runs += 1;
        Ok(())
    }

    /// Moves every live page of a block. False if there is no room to.
    fn empty(&mut self, block: BlockAddr) -> Result<bool, N::Error> {
        self.settle()?;
        for page in self.tree.pages().space.live_in(block) {
            // Moving a page moves its ancestors, which may be in this block; a journal keeps those until the next root.
            self.settle()?;
            if self.tree.pages().space.is_live(page) {
                let needed = self.height();
                if self.tree.pages().space.room() < needed + self.spare() {
                    self.erase_ahead(needed + self.spare())?;
                }
                if self.tree.pages().space.room() < needed {
                    return Ok(false);
                }
                self.attempt(|tree| tree.relocate(page))?;
                self.tree.pages_mut().stats.gc_moves += 1;
            }
        }
        self.settle()?;
        Ok(true)
    }

    /// Moves what lives in blocks in which a program failed.
    fn evacuate(&mut self) -> Result<(), N::Error> {
        while let Some(block) = self.tree.pages().space.evacuate.first().copied() {
            if !self.empty(block)? {
                // The pages can still be read; they stay until there is room.
                return Ok(());
            }
            self.tree.pages_mut().space.evacuate.retain(|&other| other != block);
        }
        Ok(())
    }
}
