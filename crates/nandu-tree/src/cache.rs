//! Nodes kept in memory.
//!
//! Nodes, not pages: of a page that holds a path, its inner nodes are worth keeping and are small. Nodes lie one after
//! another from the front of the memory without gaps, their table grows from the back. Only nodes that are on flash are
//! kept, so dropping one costs nothing. When room is needed leaves go first, then nodes of level 1, then others; within
//! these classes what was not used for longest.

use core::ops::Range;

/// Table entry: page 4, offset 4 (level in the top byte), size 2, room 2, stamp 2.
const ENTRY_SIZE: usize = 14;

pub(crate) struct Cache<'m> {
    memory: &'m mut [u8],
    count: usize,
    used: usize,
    clock: u16,
}

#[derive(Clone, Copy)]
struct CacheEntry {
    page: u32,
    level: u8,
    offset: usize,
    size: usize,
    room: usize,
    stamp: u16,
}

impl CacheEntry {
    /// What leaves first when room is needed: the class, then the stamp.
    fn rank(&self) -> (u8, u16) {
        (self.level.min(2), self.stamp)
    }
}

impl<'m> Cache<'m> {
    pub(crate) fn new(memory: &'m mut [u8]) -> Cache<'m> {
        Cache { memory, count: 0, used: 0, clock: 0 }
    }

    pub(crate) fn bytes(&self, place: Range<usize>) -> &[u8] {
        &self.memory[place]
    }

    fn table_at(&self, index: usize) -> usize {
        self.memory.len() - ENTRY_SIZE * (index + 1)
    }

    fn entry(&self, index: usize) -> CacheEntry {
        let at = self.table_at(index);
        let e = &self.memory[at..at + ENTRY_SIZE];
        let place = u32::from_le_bytes([e[4], e[5], e[6], e[7]]);
        CacheEntry {
            page: u32::from_le_bytes([e[0], e[1], e[2], e[3]]),
            level: (place >> 24) as u8,
            offset: (place & 0x00FF_FFFF) as usize,
            size: u16::from_le_bytes([e[8], e[9]]) as usize,
            room: u16::from_le_bytes([e[10], e[11]]) as usize,
            stamp: u16::from_le_bytes([e[12], e[13]]),
        }
    }

    fn set_entry(&mut self, index: usize, entry: CacheEntry) {
        let at = self.table_at(index);
        let e = &mut self.memory[at..at + ENTRY_SIZE];
        e[0..4].copy_from_slice(&entry.page.to_le_bytes());
        e[4..8].copy_from_slice(&((entry.offset as u32) | u32::from(entry.level) << 24).to_le_bytes());
        e[8..10].copy_from_slice(&(entry.size as u16).to_le_bytes());
        e[10..12].copy_from_slice(&(entry.room as u16).to_le_bytes());
        e[12..14].copy_from_slice(&entry.stamp.to_le_bytes());
    }

    fn index_of(&self, page: u32, level: u8) -> Option<usize> {
        let table = &self.memory[self.memory.len() - ENTRY_SIZE * self.count..];
        let wanted = page.to_le_bytes();
        let last = self.count.wrapping_sub(1);
        let found = table.chunks_exact(ENTRY_SIZE).position(|e| e[..4] == wanted && e[7] == level)?;
        Some(last - found)
    }

    fn tick(&mut self) -> u16 {
        if self.clock == u16::MAX {
            // Stamps keep their order, roughly, in the lower half.
            for index in 0..self.count {
                let mut entry = self.entry(index);
                entry.stamp /= 2;
                self.set_entry(index, entry);
            }
            self.clock = u16::MAX / 2;
        }
        self.clock += 1;
        self.clock
    }

    /// Where a node is, valid until the cache is changed.
    pub(crate) fn find(&mut self, page: u32, level: u8) -> Option<Range<usize>> {
        let index = self.index_of(page, level)?;
        let mut entry = self.entry(index);
        entry.stamp = self.tick();
        self.set_entry(index, entry);
        Some(entry.offset..entry.offset + entry.size)
    }

    /// Keeps a node if there is room for it among nodes worth more.
    pub(crate) fn insert(&mut self, page: u32, level: u8, node: &[u8]) {
        if node.len() + ENTRY_SIZE > self.memory.len() || self.memory.len() > 0x00FF_FFFF {
            return;
        }
        if let Some(index) = self.index_of(page, level) {
            self.remove(index);
        }
        while self.used + node.len() + ENTRY_SIZE * (self.count + 1) > self.memory.len() {
            let Some((victim, entry)) =
                (0..self.count).map(|index| (index, self.entry(index))).min_by_key(|(_, entry)| entry.rank())
            else {
                return;
            };
            if entry.level.min(2) > level.min(2) {
                return;
            }
            if entry.room >= node.len() && entry.room - node.len() <= entry.room / 8 {
                self.fill(victim, CacheEntry { page, level, ..entry }, node);
                return;
            }
            self.remove(victim);
        }
        let entry = CacheEntry { page, level, offset: self.used, size: 0, room: node.len(), stamp: 0 };
        self.used += node.len();
        self.count += 1;
        self.fill(self.count - 1, entry, node);
    }

    fn fill(&mut self, index: usize, entry: CacheEntry, node: &[u8]) {
        self.memory[entry.offset..entry.offset + node.len()].copy_from_slice(node);
        let stamp = self.tick();
        self.set_entry(index, CacheEntry { size: node.len(), stamp, ..entry });
    }

    /// A node was programmed anew. Keeps the new one; a leaf only if the old one was kept.
    pub(crate) fn renew(&mut self, old_page: u32, level: u8, page: u32, node: &[u8]) {
        match self.index_of(old_page, level) {
            Some(index) => {
                let entry = self.entry(index);
                if entry.room >= node.len() {
                    self.fill(index, CacheEntry { page, ..entry }, node);
                } else {
                    self.remove(index);
                    self.insert(page, level, node);
                }
            }
            None if level > 0 => self.insert(page, level, node),
            None => {}
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.used = 0;
    }

    /// Drops a node.
    pub(crate) fn drop_node(&mut self, page: u32, level: u8) {
        if let Some(index) = self.index_of(page, level) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        let gone = self.entry(index);
        self.memory.copy_within(gone.offset + gone.room..self.used, gone.offset);
        self.used -= gone.room;
        self.count -= 1;
        let last = self.entry(self.count);
        self.set_entry(index, last);
        for index in 0..self.count {
            let mut entry = self.entry(index);
            if entry.offset > gone.offset {
                entry.offset -= gone.room;
                self.set_entry(index, entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, ENTRY_SIZE};

    #[test]
    fn leaves_leave_first_and_then_what_was_not_used_for_longest() {
        let mut memory = [0; 3 * (10 + ENTRY_SIZE)];
        let mut cache = Cache::new(&mut memory);
        cache.insert(1, 1, &[1; 10]);
        cache.insert(2, 1, &[2; 10]);
        cache.insert(3, 0, &[3; 10]);
        cache.insert(4, 1, &[4; 10]);
        assert_eq!(cache.find(3, 0), None);
        let place = cache.find(1, 1).unwrap();
        assert_eq!(cache.bytes(place), [1; 10]);
        cache.insert(5, 1, &[5; 10]);
        assert_eq!(cache.find(2, 1), None);
        for (page, byte) in [(1, 1), (4, 4), (5, 5)] {
            let place = cache.find(page, 1).unwrap();
            assert_eq!(cache.bytes(place), [byte; 10]);
        }
        cache.insert(6, 0, &[6; 10]);
        assert_eq!(cache.find(6, 0), None, "a leaf does not push an inner node out");
    }

    #[test]
    fn sizes_may_differ_and_the_order_of_use_survives_the_clock_wrapping() {
        let mut memory = [0; 200];
        let mut cache = Cache::new(&mut memory);
        for round in 0..70_000_u32 {
            cache.insert(round, 1, &[round as u8; 60][..20 + round as usize % 40]);
            cache.insert(1_000_000, 2, &[9; 12]);
            assert!(cache.find(round, 1).is_some());
        }
        let place = cache.find(1_000_000, 2).unwrap();
        assert_eq!(cache.bytes(place), [9; 12]);
        cache.renew(69_999, 1, 7, &[8; 30]);
        assert_eq!(cache.find(69_999, 1), None);
        let place = cache.find(7, 1).unwrap();
        assert_eq!(cache.bytes(place), [8; 30]);
        cache.drop_node(7, 1);
        assert_eq!(cache.find(7, 1), None);
    }
}
