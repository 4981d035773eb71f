//! A B+-tree of keys without values: which of its nodes a commit has to write.

use std::collections::{BTreeMap, BTreeSet};

use super::flash::Item;

/// Most children of a node.
const FANOUT: usize = 8;

#[derive(Default)]
struct Node {
    keys: Vec<u64>,
    item: Option<Item>,
}

/// Nodes by level, and there by the least key that they may hold; the first of a level by 0.
pub(super) struct Index {
    levels: Vec<BTreeMap<u64, Node>>,
    dirty: BTreeSet<(usize, u64)>,
    /// Of nodes that are gone.
    dead: Vec<Item>,
}

impl Index {
    pub(super) fn new() -> Index {
        Index {
            levels: vec![BTreeMap::from([(0, Node::default())])],
            dirty: BTreeSet::from([(0, 0)]),
            dead: Vec::new(),
        }
    }

    pub(super) fn node_count(&self) -> usize {
        self.levels.iter().map(BTreeMap::len).sum()
    }

    /// Adds a key, or says that what it leads to has moved.
    pub(super) fn put(&mut self, key: u64) {
        self.touch(0, key);
        self.insert(0, key);
    }

    fn place(&self, level: usize, key: u64) -> u64 {
        self.levels[level].range(..=key).next_back().map_or(0, |(&first, _)| first)
    }

    fn touch(&mut self, from: usize, key: u64) {
        for level in from..self.levels.len() {
            self.dirty.insert((level, self.place(level, key)));
        }
    }

    fn insert(&mut self, level: usize, key: u64) {
        let first = self.place(level, key);
        let Some(node) = self.levels[level].get_mut(&first) else { return };
        let Err(at) = node.keys.binary_search(&key) else { return };
        node.keys.insert(at, key);
        if node.keys.len() <= FANOUT {
            return;
        }
        // What comes in order leaves full nodes behind.
        let kept = if at == FANOUT { FANOUT } else { FANOUT.div_ceil(2) };
        let keys = node.keys.split_off(kept);
        let right = keys[0];
        self.levels[level].insert(right, Node { keys, item: None });
        if level + 1 == self.levels.len() {
            self.levels.push(BTreeMap::from([(0, Node { keys: vec![0], item: None })]));
        }
        self.insert(level + 1, right);
        self.touch(level, right);
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.touch(0, key);
        self.delete(0, key);
    }

    fn delete(&mut self, level: usize, key: u64) {
        let first = self.place(level, key);
        let Some(node) = self.levels[level].get_mut(&first) else { return };
        if let Ok(at) = node.keys.binary_search(&key) {
            node.keys.remove(at);
        }
        if node.keys.is_empty() && first > 0 {
            let item = node.item;
            self.levels[level].remove(&first);
            self.dirty.remove(&(level, first));
            self.dead.extend(item);
            if level + 1 < self.levels.len() {
                self.delete(level + 1, first);
            }
        }
    }

    /// Every node that has to be written, by its size in children; `write` is handed where it was and says where it is. What is
    /// dead is returned.
    pub(super) fn commit<E>(
        &mut self,
        mut write: impl FnMut(usize, &mut Option<Item>) -> Result<(), E>,
    ) -> Result<Vec<Item>, E> {
        for (level, first) in std::mem::take(&mut self.dirty) {
            if let Some(node) = self.levels[level].get_mut(&first) {
                write(node.keys.len(), &mut node.item)?;
            }
        }
        Ok(std::mem::take(&mut self.dead))
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, Item};

    fn written(index: &mut Index) -> usize {
        let mut count = 0;
        let write = |_, _: &mut Option<Item>| {
            count += 1;
            Ok::<(), ()>(())
        };
        index.commit(write).unwrap();
        count
    }

    #[test]
    fn a_commit_writes_the_nodes_above_what_changed_and_no_others() {
        let mut index = Index::new();
        for key in 1..=512 {
            index.put(key);
        }
        // Full leaves, since they were put in order: 64, 8 above them, and the root; one more where the last is full.
        assert!((73..=76).contains(&index.node_count()), "{}", index.node_count());
        assert_eq!(written(&mut index), index.node_count());
        assert_eq!(written(&mut index), 0);
        index.put(100);
        assert_eq!(written(&mut index), 3);
        index.put(100);
        index.put(101);
        index.put(500);
        assert!((5..=6).contains(&written(&mut index)));
    }

    #[test]
    fn nodes_that_lose_their_keys_are_gone() {
        let mut index = Index::new();
        for key in 1..=512 {
            index.put(key);
        }
        for key in 1..=500 {
            index.remove(key);
        }
        assert!(index.node_count() < 12, "{}", index.node_count());
        written(&mut index);
        index.put(3);
        assert_eq!(written(&mut index), 3);
    }
}
