//! Nodes kept in memory.
//!
//! Nodes, not pages: of a page that holds a path, its inner nodes are worth keeping and are small. Nodes lie one after
//! another from the front of the memory without gaps, their table grows towards them from the back, and behind it stand
//! the heads of the chains by which an entry is found. Only nodes that are on flash are kept, so dropping one costs nothing.
//!
//! A leaf gets in as long as there is memory that nothing stands in; later only now and then, since most are not looked up again soon.
//! When room is needed leaves go first, then nodes of level 1, then others; within these classes what was not used for
//! longest, as far as a clock tells: a hand goes round the table, spares what was used since it came by last, and stops
//! at the first that was not. Nothing here takes longer the more nodes there are, but to close the gap that a node
//! leaves which nothing else fits.

use core::ops::Range;

/// Table entry: page 4, offset 3, level 1 (with [`USED`]), size 2, slack 1, next in the chain 2.
const ENTRY_SIZE: usize = 13;

/// In the byte of the level: found since the hand came by.
const USED: u8 = 0x80;

/// Ends a chain.
const NONE: u16 = u16::MAX;

/// Bytes of memory for which there is a chain, 2 bytes. Nodes take about as much.
const CHAIN_SPACING: usize = 256;

/// Most memory of which a table entry can name every place.
const SIZE_MAX: usize = 0x00FF_FFFF;

/// A node may leave the so-manyth part of its room unused.
const SLACK_SHARE: usize = 8;

/// Entries behind the hand among which one is looked for that leaves room enough, so that nothing has to be moved.
const LOOK_AHEAD: usize = 8;

/// Nodes kept in memory, by page and level. See the module.
#[derive(Debug)]
pub struct Cache<'m> {
    /// Nodes and table.
    memory: &'m mut [u8],
    heads: &'m mut [u8],
    count: usize,
    used: usize,
    classes: [Class; 3],
}

/// Nodes among which age decides.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    count: usize,
    hand: usize,
}

#[derive(Clone, Copy)]
struct CacheEntry {
    page: u32,
    level: u8,
    is_used: bool,
    offset: usize,
    size: usize,
    /// Bytes behind the node that belong to it and are not used.
    slack: u8,
    next: u16,
}

fn class_of(level: u8) -> usize {
    level.min(2).into()
}

impl CacheEntry {
    fn class(&self) -> usize {
        class_of(self.level)
    }

    fn room(&self) -> usize {
        self.size + usize::from(self.slack)
    }

    /// What a node of this size would leave unused in the place of this one; `None` if it does not fit there, or wastes
    /// much.
    fn slack_for(&self, size: usize) -> Option<u8> {
        let slack = self.room().checked_sub(size).filter(|slack| *slack <= self.room() / SLACK_SHARE)?;
        u8::try_from(slack).ok()
    }
}

impl<'m> Cache<'m> {
    /// Keeps nodes in this memory; in none if there is none.
    pub fn new(memory: &'m mut [u8]) -> Cache<'m> {
        let chains = 1 << (memory.len() / CHAIN_SPACING).max(1).ilog2();
        let (memory, heads) = memory.split_at_mut(memory.len().saturating_sub(2 * chains));
        heads.fill(0xFF);
        Cache { memory, heads, count: 0, used: 0, classes: [Class::default(); 3] }
    }

    /// Bytes of memory in all, about.
    pub fn size(&self) -> usize {
        self.memory.len() + self.heads.len()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.heads.fill(0xFF);
        (self.count, self.used, self.classes) = (0, 0, [Class::default(); 3]);
    }

    /// A node, where it was found.
    pub fn bytes(&self, place: Range<usize>) -> &[u8] {
        &self.memory[place]
    }

    fn table_at(&self, index: usize) -> usize {
        self.memory.len() - ENTRY_SIZE * (index + 1)
    }

    fn entry(&self, index: usize) -> CacheEntry {
        let at = self.table_at(index);
        let e = &self.memory[at..at + ENTRY_SIZE];
        CacheEntry {
            page: u32::from_le_bytes([e[0], e[1], e[2], e[3]]),
            level: e[7] & !USED,
            is_used: e[7] & USED != 0,
            offset: u32::from_le_bytes([e[4], e[5], e[6], 0]) as usize,
            size: u16::from_le_bytes([e[8], e[9]]) as usize,
            slack: e[10],
            next: u16::from_le_bytes([e[11], e[12]]),
        }
    }

    fn set_entry(&mut self, index: usize, entry: &CacheEntry) {
        let at = self.table_at(index);
        let e = &mut self.memory[at..at + ENTRY_SIZE];
        e[0..4].copy_from_slice(&entry.page.to_le_bytes());
        e[4..8].copy_from_slice(&(entry.offset as u32).to_le_bytes());
        e[7] = entry.level | if entry.is_used { USED } else { 0 };
        e[8..10].copy_from_slice(&(entry.size as u16).to_le_bytes());
        e[10] = entry.slack;
        e[11..13].copy_from_slice(&entry.next.to_le_bytes());
    }

    /// Where the chain of a node begins, in `heads`.
    fn head_at(&self, page: u32, level: u8) -> usize {
        let mixed = (page ^ u32::from(level) << 29).wrapping_mul(0x9E37_79B1) >> 16;
        2 * (mixed as usize & (self.heads.len() / 2 - 1))
    }

    fn head(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.heads[at], self.heads[at + 1]])
    }

    fn index_of(&self, page: u32, level: u8) -> Option<usize> {
        self.seek(page, level).map(|(index, _)| index)
    }

    fn seek(&self, page: u32, level: u8) -> Option<(usize, CacheEntry)> {
        if self.count == 0 {
            return None;
        }
        let mut next = self.head(self.head_at(page, level));
        while next != NONE {
            let entry = self.entry(next.into());
            if entry.page == page && entry.level == level {
                return Some((next.into(), entry));
            }
            next = entry.next;
        }
        None
    }

    /// Puts an entry into the table, at the front of its chain.
    fn link(&mut self, index: usize, entry: CacheEntry) {
        let at = self.head_at(entry.page, entry.level);
        self.set_entry(index, &CacheEntry { next: self.head(at), ..entry });
        self.heads[at..at + 2].copy_from_slice(&(index as u16).to_le_bytes());
        self.classes[entry.class()].count += 1;
    }

    /// Makes the chain of an entry lead to `next` where it led to `index`.
    fn redirect(&mut self, entry: &CacheEntry, index: usize, next: u16) {
        let at = self.head_at(entry.page, entry.level);
        let mut before = self.head(at);
        if usize::from(before) == index {
            self.heads[at..at + 2].copy_from_slice(&next.to_le_bytes());
            return;
        }
        while before != NONE {
            let entry = self.entry(before.into());
            if usize::from(entry.next) == index {
                self.set_entry(before.into(), &CacheEntry { next, ..entry });
                return;
            }
            before = entry.next;
        }
    }

    fn unlink(&mut self, index: usize) -> CacheEntry {
        let entry = self.entry(index);
        self.redirect(&entry, index, entry.next);
        self.classes[entry.class()].count -= 1;
        entry
    }

    /// Where a node is, valid until the cache is changed.
    pub fn find(&mut self, page: u32, level: u8) -> Option<Range<usize>> {
        let (index, entry) = self.seek(page, level)?;
        let at = self.table_at(index);
        self.memory[at + 7] |= USED;
        Some(entry.offset..entry.offset + entry.size)
    }

    /// Whether so many bytes fit with nothing dropped.
    fn has_room(&self, size: usize) -> bool {
        self.used + size + ENTRY_SIZE * (self.count + 1) <= self.memory.len() && self.count < NONE.into()
    }

    /// Keeps a leaf, with room to grow a little, if nothing has to be dropped for it.
    pub fn insert_leaf_beside(&mut self, page: u32, leaf: &[u8]) {
        let slack = (leaf.len() / SLACK_SHARE).min(u8::MAX.into());
        if self.memory.len() > SIZE_MAX || !self.has_room(leaf.len() + slack) {
            return;
        }
        self.drop_node(page, 0);
        let slack = slack as u8;
        let entry =
            CacheEntry { page, level: 0, is_used: false, offset: self.used, size: leaf.len(), slack, next: NONE };
        self.used += entry.room();
        self.count += 1;
        self.fill(self.count - 1, entry, leaf);
    }

    /// Keeps a node if there is room for it among nodes worth more.
    pub fn insert(&mut self, page: u32, level: u8, node: &[u8]) {
        self.insert_as(page, level, node, true);
    }

    /// Keeps a leaf that was looked up, if one of its size makes room: to close a gap takes more instructions than to find a record.
    pub fn insert_looked_up(&mut self, page: u32, leaf: &[u8]) {
        self.insert_as(page, 0, leaf, false);
    }

    fn insert_as(&mut self, page: u32, level: u8, node: &[u8], may_move: bool) {
        if node.len() + ENTRY_SIZE > self.memory.len() || self.memory.len() > SIZE_MAX {
            return;
        }
        self.drop_node(page, level);
        let size = node.len();
        let entry = CacheEntry { page, level, is_used: false, offset: 0, size, slack: 0, next: NONE };
        while !self.has_room(size) {
            let Some(victim) = self.victim(class_of(level), size) else { return };
            if let Some(slack) = self.entry(victim).slack_for(size) {
                let offset = self.unlink(victim).offset;
                self.fill(victim, CacheEntry { offset, slack, ..entry }, node);
                return;
            }
            if !may_move {
                return;
            }
            self.remove(victim);
        }
        let offset = self.used;
        self.used += size;
        self.count += 1;
        self.fill(self.count - 1, CacheEntry { offset, ..entry }, node);
    }

    /// What leaves first for a node of this class and size; `None` if all there is is worth more.
    fn victim(&mut self, class: usize, size: usize) -> Option<usize> {
        let class = (0..=class).find(|&class| self.classes[class].count > 0)?;
        let mut first = self.classes[class].hand;
        loop {
            if first >= self.count {
                first = 0;
            }
            let entry = self.entry(first);
            if entry.class() == class {
                if !entry.is_used {
                    break;
                }
                self.set_entry(first, &CacheEntry { is_used: false, ..entry });
            }
            first += 1;
        }
        let slack = |&index: &usize| {
            let entry = self.entry(index);
            let slack = if entry.class() == class && !entry.is_used { entry.slack_for(size) } else { None };
            slack.unwrap_or(u8::MAX)
        };
        let near = first..self.count.min(first + LOOK_AHEAD);
        let victim = near.min_by_key(slack).unwrap_or(first);
        // What comes there is the youngest.
        self.classes[class].hand = first + usize::from(victim == first);
        Some(victim)
    }

    fn fill(&mut self, index: usize, entry: CacheEntry, node: &[u8]) {
        self.memory[entry.offset..entry.offset + node.len()].copy_from_slice(node);
        self.link(index, entry);
    }

    /// A node was programmed anew. Keeps the new one; a leaf only if the old one was kept or there is memory that nothing stands in.
    pub fn renew(&mut self, old_page: u32, level: u8, page: u32, node: &[u8]) {
        let Some(index) = self.index_of(old_page, level) else {
            match level {
                0 => self.insert_leaf_beside(page, node),
                _ => self.insert(page, level, node),
            }
            return;
        };
        match self.entry(index).slack_for(node.len()) {
            Some(slack) => {
                let entry = self.unlink(index);
                self.fill(index, CacheEntry { page, size: node.len(), slack, is_used: true, ..entry }, node);
            }
            None => {
                self.remove(index);
                if level == 0 {
                    self.insert_leaf_beside(page, node);
                }
                if self.index_of(page, level).is_none() {
                    self.insert(page, level, node);
                }
            }
        }
    }

    /// Drops a node.
    pub fn drop_node(&mut self, page: u32, level: u8) {
        if let Some(index) = self.index_of(page, level) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        let gone = self.unlink(index);
        self.count -= 1;
        if index < self.count {
            let last = self.entry(self.count);
            self.redirect(&last, self.count, index as u16);
            self.set_entry(index, &last);
        }
        self.memory.copy_within(gone.offset + gone.room()..self.used, gone.offset);
        self.used -= gone.room();
        for index in 0..self.count {
            let entry = self.entry(index);
            if entry.offset > gone.offset {
                self.set_entry(index, &CacheEntry { offset: entry.offset - gone.room(), ..entry });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::{Cache, ENTRY_SIZE};

    #[test]
    fn leaves_leave_first_and_then_what_was_not_used_for_longest() {
        let mut memory = [0; 3 * (10 + ENTRY_SIZE) + 2];
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
    fn a_leaf_is_kept_as_long_as_nothing_has_to_be_dropped_for_it_and_may_grow_in_its_place() {
        let mut memory = [0; 2 * (90 + ENTRY_SIZE) + 2];
        let mut cache = Cache::new(&mut memory);
        cache.insert_leaf_beside(1, &[1; 80]);
        cache.renew(9, 0, 2, &[2; 80]);
        cache.insert_leaf_beside(3, &[3; 80]);
        cache.renew(8, 0, 4, &[4; 80]);
        assert_eq!((cache.find(3, 0), cache.find(4, 0)), (None, None));
        cache.renew(1, 0, 5, &[5; 90]);
        for (page, size) in [(5, 90), (2, 80)] {
            let place = cache.find(page, 0).unwrap();
            assert_eq!(cache.bytes(place), std::vec![page as u8; size]);
        }
        cache.insert(6, 1, &[6; 20]);
        let place = cache.find(6, 1).unwrap();
        assert_eq!(cache.bytes(place), [6; 20]);
    }

    #[test]
    fn nodes_of_many_sizes_come_and_go_and_one_that_is_used_stays() {
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

    #[test]
    fn what_is_found_is_what_was_kept_last_whatever_left_in_between() {
        let mut memory = [0; 4000];
        let mut cache = Cache::new(&mut memory);
        let mut kept = BTreeMap::new();
        let mut random = 1_u32;
        let mut found = 0;
        for round in 0..100_000_u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (page, level, kind) = (random >> 8 & 0x3F, (random >> 16 & 3) as u8, random >> 24 & 7);
            let node = [round as u8; 90];
            let node = &node[..20 + (random >> 27) as usize + 10 * level as usize];
            match kind {
                0..=2 => {
                    kept.insert((page, level), node.to_vec());
                    cache.insert(page, level, node);
                }
                3 => {
                    kept.remove(&(page, level));
                    // A page programmed is one that held nothing.
                    kept.insert((page + 64 + round, level), node.to_vec());
                    cache.renew(page, level, page + 64 + round, node);
                }
                4 => {
                    kept.remove(&(page, level));
                    cache.drop_node(page, level);
                }
                5 if level == 0 => {
                    kept.insert((page + 64 + round, 0), node.to_vec());
                    cache.insert_leaf_beside(page + 64 + round, node);
                }
                _ => {
                    if let Some(place) = cache.find(page, level) {
                        found += 1;
                        assert_eq!(Some(cache.bytes(place)), kept.get(&(page, level)).map(Vec::as_slice));
                    }
                }
            }
        }
        assert!(found > 5_000, "{found} found");
    }
}
