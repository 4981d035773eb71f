//! The table of nodes: where each stands, found by its number.

use nandu_nand::BlockAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Stands for no entry of a table.
pub(crate) const NONE: u32 = u32::MAX;

/// Number of the root, for ever.
pub(crate) const ROOT: u32 = 1;

/// The node was never programmed.
pub(crate) const NEW: u8 = 1;
/// What the page says of the node's upper bound is not what holds.
pub(crate) const MISFENCED: u8 = 2;
/// A right part was split off and the parent's link to it is not durable.
pub(crate) const SPLITTING: u8 = 4;
/// The parent's link to the node is durable.
pub(crate) const LINKED: u8 = 8;
/// Reached from the root, while the index is opened.
pub(crate) const REACHED: u8 = 16;
/// Its page cannot be read.
pub(crate) const LOST: u8 = 32;

/// What is known of a node.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct NodeEntry {
    /// Sequence of its page.
    pub(crate) sequence: u64,
    /// Number; 0: the entry is free.
    pub(crate) id: u32,
    block: u32,
    /// The next node of the block, or the next free entry.
    pub(crate) next: u32,
    /// Its unit in the buffer.
    pub(crate) unit: u32,
    /// Upper bound of its bytes with all changes.
    pub(crate) size: u32,
    /// Upper bound of its page and all records in logs since: what reading it may meet on the way if nothing hides what
    /// moved elsewhere.
    pub(crate) raw: u32,
    /// Place of its page in the block.
    pub(crate) page: u16,
    /// Which of the block's log pages hold records of it, by bits.
    pub(crate) logs: u16,
    pub(crate) level: u8,
    pub(crate) flags: u8,
    /// Log sectors of it that are known to stand in the block: fewer in a log that is read means that records are lost.
    pub(crate) sectors: u16,
}

impl NodeEntry {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, is_set: bool) {
        self.flags = if is_set { self.flags | flag } else { self.flags & !flag };
    }

    pub(crate) fn block(&self) -> Option<BlockAddr> {
        (self.block != NONE).then_some(BlockAddr(self.block))
    }

    pub(crate) fn set_block(&mut self, block: Option<BlockAddr>) {
        self.block = block.map_or(NONE, |block| block.0);
    }
}

/// The nodes, in entries that stay where they are, and a hash table from numbers to entries.
#[derive(Debug)]
pub(crate) struct NodeTable<'m> {
    entries: &'m mut [NodeEntry],
    hash: &'m mut [u32],
    free: u32,
    fresh: u32,
    count: u32,
}

impl core::ops::Index<u32> for NodeTable<'_> {
    type Output = NodeEntry;

    fn index(&self, index: u32) -> &NodeEntry {
        &self.entries[index as usize]
    }
}

impl core::ops::IndexMut<u32> for NodeTable<'_> {
    fn index_mut(&mut self, index: u32) -> &mut NodeEntry {
        &mut self.entries[index as usize]
    }
}

impl<'m> NodeTable<'m> {
    /// An empty table. The hash table has more places than there are entries.
    pub(crate) fn new(entries: &'m mut [NodeEntry], hash: &'m mut [u32]) -> NodeTable<'m> {
        hash.fill(NONE);
        NodeTable { entries, hash, free: NONE, fresh: 0, count: 0 }
    }

    /// Forgets all nodes.
    pub(crate) fn clear(&mut self) {
        self.hash.fill(NONE);
        (self.free, self.fresh, self.count) = (NONE, 0, 0);
    }

    /// Nodes in the table.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Entries that are free.
    pub(crate) fn room(&self) -> u32 {
        self.entries.len() as u32 - self.count
    }

    /// Every entry that may be in use.
    pub(crate) fn indexes(&self) -> core::ops::Range<u32> {
        0..self.fresh
    }

    fn slot(&self, id: u32) -> usize {
        // Numbers are given out in order, so they are spread by a multiplication.
        let spread = id.wrapping_mul(0x9E37_79B1) as u64;
        ((spread * self.hash.len() as u64) >> 32) as usize
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.hash.len() { 0 } else { slot + 1 }
    }

    /// The entry of a node.
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        let mut slot = self.slot(id);
        // There is always a free place, so this ends.
        loop {
            let index = self.hash[slot];
            if index == NONE {
                return None;
            }
            if self.entries[index as usize].id == id {
                return Some(index);
            }
            slot = self.after(slot);
        }
    }

    /// Adds a node that is not there yet. `None` if the table is full.
    pub(crate) fn add(&mut self, id: u32, level: u8, flags: u8) -> Option<u32> {
        let index = if self.free != NONE {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            index
        } else if (self.fresh as usize) < self.entries.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.entries[index as usize] = NodeEntry {
            sequence: 0,
            id,
            block: NONE,
            next: NONE,
            unit: NONE,
            size: 0,
            page: 0,
            logs: 0,
            level,
            flags,
            raw: 0,
            sectors: 0,
        };
        let mut slot = self.slot(id);
        while self.hash[slot] != NONE {
            slot = self.after(slot);
        }
        self.hash[slot] = index;
        self.count += 1;
        Some(index)
    }

    /// Takes a node out. Its block's list is the caller's to keep.
    pub(crate) fn remove(&mut self, index: u32) {
        let id = self.entries[index as usize].id;
        let mut slot = self.slot(id);
        while self.hash[slot] != index {
            slot = self.after(slot);
        }
        // Those behind the gap that belong at or before it move up, so that searches need no marks of what was removed.
        let mut gap = slot;
        loop {
            slot = self.after(slot);
            let moved = self.hash[slot];
            if moved == NONE {
                break;
            }
            let home = self.slot(self.entries[moved as usize].id);
            let distance = |from: usize, to: usize| (to + self.hash.len() - from) % self.hash.len();
            if distance(home, slot) >= distance(gap, slot) {
                self.hash[gap] = moved;
                gap = slot;
            }
        }
        self.hash[gap] = NONE;
        let entry = &mut self.entries[index as usize];
        entry.id = 0;
        entry.next = self.free;
        self.free = index;
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn nodes_are_found_whatever_was_removed_before() {
        let mut entries = [NodeEntry::new_zeroed(); 40];
        let mut hash = [0; 61];
        let mut table = NodeTable::new(&mut entries, &mut hash);
        for id in 1..=40 {
            assert!(table.add(id, 0, 0).is_some());
        }
        assert_eq!(table.add(41, 0, 0), None);
        for id in (1..=40).step_by(3) {
            let index = table.find(id).unwrap();
            table.remove(index);
        }
        for id in 1..=40 {
            assert_eq!(table.find(id).is_some(), id % 3 != 1, "{id}");
        }
        for id in 100..114 {
            assert!(table.add(id, 1, 0).is_some());
        }
        assert_eq!((table.count(), table.room()), (40, 0));
        assert!((100..114).all(|id| table.find(id).is_some_and(|index| table[index].id == id)));
    }
}
