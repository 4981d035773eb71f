//! A cache of nodes as they are on flash, charged by bytes, in which the higher levels stay longest.

use nandu_nand::PageAddr;

use crate::pages::Node;

/// What each node is charged for besides its entries.
const OVERHEAD_SIZE: usize = 8;

#[derive(Debug)]
struct Held {
    page: PageAddr,
    level: u8,
    lowest: u8,
    is_root: bool,
    used_at: u64,
    bytes: Vec<u8>,
}

/// The nodes held.
#[derive(Debug)]
pub(super) struct Clean {
    capacity: usize,
    /// What each node is charged for, where that is not what it uses.
    charge: Option<usize>,
    used: usize,
    clock: u64,
    held: Vec<Held>,
}

impl Clean {
    pub(super) fn new(capacity: usize, charge: Option<usize>) -> Clean {
        Clean { capacity, charge, used: 0, clock: 0, held: Vec::new() }
    }

    /// Whether anything can be held at all.
    pub(super) fn is_used(&self) -> bool {
        self.capacity > 0
    }

    fn charge(&self, size: usize) -> usize {
        self.charge.unwrap_or(size + OVERHEAD_SIZE)
    }

    pub(super) fn find(&mut self, page: PageAddr, level: u8) -> Option<usize> {
        let at = self.held.iter().position(|held| held.page == page && held.level == level)?;
        self.clock += 1;
        self.held[at].used_at = self.clock;
        Some(at)
    }

    pub(super) fn node(&self, at: usize) -> Node<'_> {
        Node { bytes: &self.held[at].bytes, lowest: self.held[at].lowest }
    }

    pub(super) fn remove(&mut self, page: PageAddr, level: u8) {
        if let Some(at) = self.held.iter().position(|held| held.page == page && held.level == level) {
            self.remove_at(at);
        }
    }

    fn remove_at(&mut self, at: usize) {
        let held = self.held.swap_remove(at);
        self.used -= self.charge(held.bytes.len());
    }

    /// Holds a node, if there is room or lower ones can go for it: leaves first, the least recently used of a level first.
    pub(super) fn add(&mut self, page: PageAddr, level: u8, height: u8, lowest: u8, bytes: &[u8]) {
        if !self.is_used() {
            return;
        }
        self.remove(page, level);
        let size = self.charge(bytes.len());
        let rank = (level == height, level);
        while self.used + size > self.capacity {
            let least = (0..self.held.len()).min_by_key(|&at| {
                let held = &self.held[at];
                (held.is_root, held.level, held.used_at)
            });
            match least {
                Some(at) if (self.held[at].is_root, self.held[at].level) <= rank => self.remove_at(at),
                _ => return,
            }
        }
        self.clock += 1;
        self.used += size;
        let held = Held { page, level, lowest, is_root: level == height, used_at: self.clock, bytes: bytes.to_vec() };
        self.held.push(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_leave_first_and_the_root_stays() {
        let mut cache = Clean::new(3 * 108, None);
        let node = [7; 100];
        cache.add(PageAddr(1), 3, 3, 3, &node);
        cache.add(PageAddr(2), 2, 3, 2, &node);
        cache.add(PageAddr(3), 1, 3, 1, &node);
        cache.add(PageAddr(4), 1, 3, 1, &node);
        assert!(cache.find(PageAddr(3), 1).is_none(), "the older leaf had to go");
        cache.add(PageAddr(5), 2, 3, 2, &node);
        assert!(cache.find(PageAddr(4), 1).is_none(), "a leaf goes before a node above leaves");
        cache.add(PageAddr(6), 1, 3, 1, &node);
        assert!(cache.find(PageAddr(6), 1).is_none(), "and no leaf drives such a node out");
        cache.add(PageAddr(7), 2, 3, 2, &node);
        assert!(cache.find(PageAddr(2), 2).is_none());
        assert!(cache.find(PageAddr(1), 3).is_some() && cache.find(PageAddr(5), 2).is_some());
        cache.remove(PageAddr(1), 3);
        cache.add(PageAddr(8), 1, 3, 1, &node);
        assert!(cache.find(PageAddr(8), 1).is_some(), "what was removed is no longer charged for");
    }
}
