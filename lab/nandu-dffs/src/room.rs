//! Room: how much there is, and what is done before something is programmed.

use nandu_nand::{BlockAddr, Cause, Nand};

use crate::blocks::{Area, FAILED, PENDING, REFRESH};
use crate::dffs::{CHECKPOINT_BLOCKS, Dffs, Result};
use crate::error::Error;
use crate::stats::{BlockUse, Space, Stats};

/// What an operation does with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It takes some.
    More,
    /// It gives some back, or takes none for long.
    Less,
}

/// Blocks of inodes taken into use between two checkpoints at most: a mount keeps the place in each.
const OPENED_MAX: u32 = 40;

/// Blocks that are to be free at any time, beside those for what waits in memory: for each area one, since a recovery fills no block on.
const RECOVERY_BLOCKS: u32 = 5;

/// Blocks that are collected before a checkpoint makes them free.
const PENDING_GOAL: u32 = 4;

/// Pages that an operation takes at most, with what waits in memory for each slot.
const MARGIN_PAGES: u64 = 8;

impl<N: Nand> Dffs<'_, N> {
    /// Blocks that are to be free before an operation begins: what waits in memory may all be programmed by it, and recovery needs some.
    fn free_min(&self) -> u32 {
        let slots = 2 * self.slots.len();
        let pages = slots + self.lags.capacity() + self.map_pages.len() + MARGIN_PAGES as usize;
        (pages as u32).div_ceil(self.block_pages) + RECOVERY_BLOCKS
    }

    /// Blocks kept free: those that the options ask for, or as many as are needed.
    pub(crate) fn reserve(&self) -> u32 {
        self.options.reserve_blocks.max(self.free_min() + PENDING_GOAL)
    }

    /// Pages that may live: a sixteenth of what the blocks outside of the reserve have is kept dead, so that collecting gains something.
    pub(crate) fn capacity(&self) -> u64 {
        let unusable = CHECKPOINT_BLOCKS + self.bad_outside() + self.reserve();
        let blocks = u64::from(self.geometry.block_count.saturating_sub(unusable));
        blocks * u64::from(self.block_pages - 1) / 16 * 15
    }

    fn bad_outside(&self) -> u32 {
        let outside = self.blocks.addresses().skip(CHECKPOINT_BLOCKS as usize);
        outside.filter(|&block| self.blocks.get(block).area() == Area::Bad).count() as u32
    }

    /// Whether as much lives as may.
    fn is_full(&self) -> bool {
        self.blocks.live() + MARGIN_PAGES + 2 * self.slots.len() as u64 > self.capacity()
    }

    /// What is done before an operation programs anything: a checkpoint if it is time for one, and blocks are collected while few are free.
    /// Afterwards the operation finds as many free pages as it needs, and its programs follow each other in sequence.
    pub(crate) fn prepare(&mut self, demand: Demand) -> Result<(), N> {
        let result = self.prepare_inner(demand);
        if matches!(result, Ok(()) | Err(Error::Full | Error::ReadOnly)) {
            // All that was begun is done.
            self.is_busy = false;
        }
        result
    }

    fn prepare_inner(&mut self, demand: Demand) -> Result<(), N> {
        if !self.is_writing {
            // Before anything newer: a mount that finds a volume unmounted looks for nothing.
            self.write_checkpoint(false)?;
        }
        if self.since >= self.options.checkpoint_interval || self.opened >= OPENED_MAX {
            self.write_checkpoint(false)?;
        }
        if demand == Demand::More && self.is_full() {
            // After a cut, what lives is counted once it matters.
            self.count_again()?;
            if self.is_full() {
                return Err(Error::Full);
            }
        }
        self.make_room()?;
        if self.refreshes > 0 {
            self.refresh()?;
        }
        let least = if demand == Demand::More { self.free_min() } else { 2 };
        if self.blocks.free() < least { Err(Error::Full) } else { Ok(()) }
    }

    /// Collects blocks while few are free.
    pub(crate) fn make_room(&mut self) -> Result<(), N> {
        let (reserve, free_min) = (self.reserve(), self.free_min());
        // Each round frees a block, or makes a checkpoint that frees some; that this ends does not depend on it.
        for _ in 0..2 * self.geometry.block_count {
            let (free, pending) = (self.blocks.free(), self.blocks.pending());
            if free > reserve {
                return Ok(());
            }
            if free + pending > reserve + PENDING_GOAL || (free <= free_min && pending > 0) {
                self.write_checkpoint(false)?;
                continue;
            }
            self.count_again()?;
            match self.victim() {
                Some(block) => self.collect(block)?,
                None if pending > 0 => self.write_checkpoint(false)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The block with the fewest live pages, if collecting it gains any.
    fn victim(&self) -> Option<BlockAddr> {
        let capacity = |block: BlockAddr| {
            let is_data = self.blocks.get(block).area() == Area::Data;
            self.block_pages - u32::from(is_data)
        };
        let candidates = self.blocks.addresses().filter(|&block| self.is_collectable(block));
        let best = candidates.min_by_key(|&block| self.blocks.get(block).live)?;
        (u32::from(self.blocks.get(best).live) < capacity(best)).then_some(best)
    }

    fn is_collectable(&self, block: BlockAddr) -> bool {
        let entry = self.blocks.get(block);
        let is_used = !matches!(entry.area(), Area::Free | Area::Bad | Area::Checkpoint);
        is_used && !entry.has(PENDING) && !entry.has(crate::blocks::KEPT) && !self.is_head(block)
    }

    /// Collects blocks in which bits flip or a program failed, one each time.
    fn refresh(&mut self) -> Result<(), N> {
        let before = self.nand.attribute(Cause::Refresh);
        let wants = |fs: &Self, block| fs.blocks.get(block).has(REFRESH) && !fs.blocks.get(block).has(PENDING);
        let waiting = self.blocks.addresses().find(|&block| wants(self, block) && !fs_is_stuck(self, block));
        self.refreshes = 0;
        if let Some(block) = waiting {
            self.count_again()?;
            for at in 0..self.heads.len() {
                if self.heads[at].block == block.0 {
                    // What is in it moves; it takes no more.
                    self.heads[at] = crate::dffs::Head::NONE;
                    self.blocks.update(block, |entry| entry.flags |= crate::blocks::SCAN);
                }
            }
            self.collect(block)?;
            self.refreshes = 1;
        }
        self.nand.attribute(before);
        Ok(())
    }

    /// How much room there is.
    pub fn space(&self) -> Space {
        let used = self.blocks.live();
        let pages = self.capacity();
        let free = self.map.iter().skip(2).filter(|&&page| page == 0).count();
        Space { pages, used: used.min(pages), directories_free: free as u64 }
    }

    /// What each block is used for, in the order of their numbers.
    pub fn blocks(&self) -> impl Iterator<Item = BlockUse> + '_ {
        self.blocks.addresses().map(|block| {
            let entry = self.blocks.get(block);
            let is_used = !matches!(entry.area(), Area::Free | Area::Bad);
            BlockUse {
                area: entry.area(),
                live: if is_used { entry.live.into() } else { 0 },
                erase_count: entry.erase_count,
                is_head: self.is_head(block) || self.anchor.block == block.0,
                is_pending: entry.has(PENDING),
            }
        })
    }

    /// What was done since the mount.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Erases of the block with the most.
    pub fn erase_count_max(&self) -> u32 {
        self.blocks.erase_count_max()
    }

    /// Blocks that a program failed in and that wait to be retired.
    pub fn failing_blocks(&self) -> u32 {
        self.blocks.addresses().filter(|&block| self.blocks.get(block).has(FAILED)).count() as u32
    }
}

/// Whether a block cannot be collected.
fn fs_is_stuck<N: Nand>(fs: &Dffs<'_, N>, block: BlockAddr) -> bool {
    let entry = fs.blocks.get(block);
    entry.has(crate::blocks::KEPT) || matches!(entry.area(), Area::Free | Area::Bad | Area::Checkpoint)
}
