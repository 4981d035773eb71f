//! Blocks that are filled from the front with items of any size, and a collector that moves what lives out of the emptiest.

use std::collections::VecDeque;

use super::{Counts, Device, FULL};
use crate::BenchError;

/// Something that lives on flash, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Item(u32);

/// Where something new is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub(super) usize);

struct Slot {
    block: u32,
    /// Its place in the list of its block.
    place: u32,
    size: u32,
    head: Head,
    /// Whatever the file system needs to find its owner.
    tag: u64,
}

#[derive(Default)]
struct Block {
    items: Vec<Item>,
    live: u64,
    is_closed: bool,
}

#[derive(Clone, Copy)]
struct Open {
    block: u32,
    /// Bytes used, padding included.
    used: u64,
}

/// What a file system does with a block besides filling it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// Pages at the front of a block that hold nothing of its own.
    pub(super) front_pages: u32,
    /// Programs that opening a block takes, in itself or elsewhere, for each head.
    pub(super) opening: &'static [u32],
    /// Blocks that are kept free.
    pub(super) reserve: u32,
}

/// Part of a block, as a divisor, that has to be dead for the collector to empty it.
const GAIN_SHARE_MIN: u64 = 32;

pub(super) struct Flash {
    page_size: u64,
    capacity: u64,
    pub(super) rules: Rules,
    blocks: Vec<Block>,
    free: VecDeque<u32>,
    slots: Vec<Slot>,
    unused: Vec<Item>,
    heads: Vec<Option<Open>>,
    pub(super) counts: Counts,
    /// Blocks opened, for each head.
    pub(super) opened: Vec<u64>,
    is_collecting: bool,
}

impl Flash {
    pub(super) fn new(device: &Device, rules: Rules) -> Flash {
        let page_size = u64::from(device.page_size);
        Flash {
            page_size,
            capacity: page_size * u64::from(device.pages_per_block - rules.front_pages),
            rules,
            blocks: (0..device.block_count).map(|_| Block::default()).collect(),
            free: (0..device.block_count).collect(),
            slots: Vec::new(),
            unused: Vec::new(),
            heads: vec![None; rules.opening.len()],
            counts: Counts::default(),
            opened: vec![0; rules.opening.len()],
            is_collecting: false,
        }
    }

    /// Bytes of a page.
    pub(super) fn page_size(&self) -> u64 {
        self.page_size
    }

    /// Bytes that a block takes.
    pub(super) fn block_size(&self) -> u64 {
        self.capacity
    }

    fn program(&mut self, pages: u64) {
        self.counts.programs += pages;
        if self.is_collecting {
            self.counts.collector_programs += pages;
        }
    }

    /// Programs that belong to no block here: anchors, logs of the file system.
    pub(super) fn program_elsewhere(&mut self, pages: u64) {
        self.program(pages);
    }

    /// Appends an item, which no block shares with another. Pages count as programmed when they are full.
    pub(super) fn append(&mut self, head: Head, size: u64, tag: u64) -> Result<Item, BenchError> {
        let open = match self.heads[head.0] {
            Some(open) if open.used + size <= self.capacity => open,
            _ => self.open(head)?,
        };
        let used = open.used + size;
        self.program(used / self.page_size - open.used / self.page_size);
        self.heads[head.0] = Some(Open { used, ..open });
        let item = self.unused.pop().unwrap_or(Item(self.slots.len() as u32));
        let block = &mut self.blocks[open.block as usize];
        let slot = Slot { block: open.block, place: block.items.len() as u32, size: size as u32, head, tag };
        block.items.push(item);
        block.live += size;
        match self.slots.get_mut(item.0 as usize) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        Ok(item)
    }

    fn open(&mut self, head: Head) -> Result<Open, BenchError> {
        self.pad(head);
        if let Some(open) = self.heads[head.0].take() {
            self.blocks[open.block as usize].is_closed = true;
        }
        let block = self.free.pop_front().ok_or_else(|| BenchError::Other(FULL.into()))?;
        self.program(u64::from(self.rules.opening[head.0]));
        self.opened[head.0] += 1;
        let open = Open { block, used: 0 };
        self.heads[head.0] = Some(open);
        Ok(open)
    }

    /// Bytes of a page that were appended and not programmed.
    pub(super) fn waiting(&self, head: Head) -> u64 {
        self.heads[head.0].map_or(0, |open| open.used % self.page_size)
    }

    /// Programs what waits, with padding behind it.
    pub(super) fn pad(&mut self, head: Head) {
        let waiting = self.waiting(head);
        if let Some(open) = self.heads[head.0].as_mut().filter(|_| waiting > 0) {
            open.used += self.page_size - waiting;
            self.program(1);
        }
    }

    /// An item is needed no longer.
    pub(super) fn kill(&mut self, item: Item) {
        let Slot { block, place, size, .. } = self.slots[item.0 as usize];
        let block = &mut self.blocks[block as usize];
        block.items.swap_remove(place as usize);
        block.live -= u64::from(size);
        if let Some(&moved) = block.items.get(place as usize) {
            self.slots[moved.0 as usize].place = place;
        }
        self.unused.push(item);
    }

    /// Kills one, if there is one, and appends another.
    pub(super) fn replace(
        &mut self,
        item: &mut Option<Item>,
        head: Head,
        size: u64,
        tag: u64,
    ) -> Result<(), BenchError> {
        let new = self.append(head, size, tag)?;
        if let Some(old) = item.replace(new) {
            self.kill(old);
        }
        Ok(())
    }

    fn victim(&self) -> Option<u32> {
        let closed = (0..self.blocks.len() as u32).filter(|&block| self.blocks[block as usize].is_closed);
        closed.min_by_key(|&block| self.blocks[block as usize].live)
    }

    fn erase(&mut self, block: u32) {
        self.blocks[block as usize].is_closed = false;
        self.free.push_back(block);
        self.counts.erases += 1;
    }

    /// Whether a block has to be emptied before anything else is appended.
    pub(super) fn is_short(&self) -> bool {
        self.free.len() as u32 <= self.rules.reserve
    }

    /// Empties the block in which least lives, and hands what was moved, by its tag, to `moved`. False if hardly anything on the
    /// device is dead, so that this would go on for ever.
    pub(super) fn collect(&mut self, head: Head, moved: &mut Vec<u64>) -> Result<bool, BenchError> {
        self.collect_to(Some(head), moved)
    }

    /// The same, but what is moved goes to the head at which it was appended.
    pub(super) fn collect_apart(&mut self, moved: &mut Vec<u64>) -> Result<bool, BenchError> {
        self.collect_to(None, moved)
    }

    fn collect_to(&mut self, head: Option<Head>, moved: &mut Vec<u64>) -> Result<bool, BenchError> {
        let most = self.capacity - self.capacity / GAIN_SHARE_MIN;
        let victim = self.victim().filter(|&block| self.blocks[block as usize].live <= most);
        let Some(victim) = victim else { return Ok(false) };
        self.is_collecting = true;
        let outcome = self.empty(victim, head, moved);
        self.is_collecting = false;
        outcome?;
        self.erase(victim);
        Ok(true)
    }

    fn empty(&mut self, victim: u32, head: Option<Head>, moved: &mut Vec<u64>) -> Result<(), BenchError> {
        while let Some(&item) = self.blocks[victim as usize].items.last() {
            self.move_item(item, head, moved)?;
        }
        Ok(())
    }

    /// The item itself stays the same to its owner. Without a head it goes to the one where it was.
    fn move_item(&mut self, item: Item, head: Option<Head>, moved: &mut Vec<u64>) -> Result<(), BenchError> {
        let Slot { size, tag, head: own, .. } = self.slots[item.0 as usize];
        self.counts.reads += u64::from(size).div_ceil(self.page_size);
        let new = self.append(head.unwrap_or(own), size.into(), tag)?;
        // The old number takes the new place.
        let (old_slot, new_slot) = (item.0 as usize, new.0 as usize);
        self.slots.swap(old_slot, new_slot);
        let Slot { block, place, .. } = self.slots[old_slot];
        self.blocks[block as usize].items[place as usize] = item;
        let Slot { block, place, .. } = self.slots[new_slot];
        self.blocks[block as usize].items[place as usize] = new;
        self.kill(new);
        moved.push(tag);
        Ok(())
    }

    /// Moves one item out of the block in which least lives; erases the block if that was the last. False if no block is closed.
    pub(super) fn collect_one(&mut self, head: Head) -> Result<bool, BenchError> {
        let Some(victim) = self.victim() else { return Ok(false) };
        let mut moved = Vec::new();
        if let Some(&item) = self.blocks[victim as usize].items.last() {
            self.move_item(item, Some(head), &mut moved)?;
        }
        if self.blocks[victim as usize].items.is_empty() {
            self.erase(victim);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device = Device { page_size: 100, pages_per_block: 4, block_count: 6 };
    const RULES: Rules = Rules { front_pages: 1, opening: &[2, 0], reserve: 2 };

    #[test]
    fn pages_count_when_they_are_full_or_padded_and_items_share_no_block() {
        let mut flash = Flash::new(&DEVICE, RULES);
        let programs = |flash: &Flash| flash.counts.programs;
        flash.append(Head(0), 150, 0).unwrap();
        assert_eq!((programs(&flash), flash.waiting(Head(0))), (2 + 1, 50));
        flash.pad(Head(0));
        flash.pad(Head(0));
        assert_eq!((programs(&flash), flash.waiting(Head(0))), (2 + 2, 0));
        // A hundred bytes are left of the block: the next item goes to another one.
        flash.append(Head(0), 101, 0).unwrap();
        assert_eq!((programs(&flash), flash.opened[0]), (2 + 2 + 2 + 1, 2));
    }

    #[test]
    fn what_lives_is_moved_out_of_the_emptiest_block_and_stays_what_it_is() {
        let mut flash = Flash::new(&DEVICE, RULES);
        let items: Vec<Item> = (0..10).map(|tag| flash.append(Head(0), 100, tag).unwrap()).collect();
        for place in [0, 3, 4] {
            flash.kill(items[place]);
        }
        let (mut moved, before) = (Vec::new(), flash.counts);
        assert!(flash.collect(Head(1), &mut moved).unwrap());
        assert_eq!(moved, [5]);
        let done = flash.counts.since(&before);
        assert_eq!((done.reads, done.programs, done.collector_programs, done.erases), (1, 1, 1, 1));
        flash.kill(items[5]);
        assert!(flash.collect(Head(1), &mut moved).unwrap());
        assert_eq!(moved[1..], [1, 2]);
        // Both blocks are free again, beside those that were never opened, less the collector's.
        assert_eq!(flash.free.len(), 6 - 4 + 2 - 1);
    }

    #[test]
    fn what_is_collected_apart_goes_where_its_kind_goes() {
        let mut flash = Flash::new(&DEVICE, RULES);
        let cold = flash.append(Head(1), 100, 1).unwrap();
        for tag in [2, 3] {
            let hot = flash.append(Head(1), 100, tag).unwrap();
            flash.kill(hot);
        }
        let next = flash.append(Head(1), 100, 4).unwrap();
        let block_of = |flash: &Flash, item: Item| flash.slots[item.0 as usize].block;
        assert_ne!(block_of(&flash, cold), block_of(&flash, next));
        assert!(flash.collect_apart(&mut Vec::new()).unwrap());
        assert_eq!(block_of(&flash, cold), block_of(&flash, next));
    }

    #[test]
    fn a_device_on_which_all_lives_is_full() {
        let mut flash = Flash::new(&DEVICE, RULES);
        for tag in 0..18 {
            flash.append(Head(0), 100, tag).unwrap();
        }
        assert!(flash.append(Head(0), 100, 0).is_err());
        assert!(!flash.collect(Head(1), &mut Vec::new()).unwrap());
    }
}
