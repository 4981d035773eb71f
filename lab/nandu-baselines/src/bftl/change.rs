//! Changes as units: puts, deletes, splits, and nodes that vanish.

use nandu_nand::{Cause, Nand};

use super::unit::{Change, LEVEL_MAX, Node};
use super::{Bftl, ROOT};
use crate::BaselineError;
use crate::entry::Entry;
use crate::pages::Result;

/// A node on the way to a leaf.
#[derive(Debug)]
pub(super) struct Step {
    id: u32,
    node: Node,
    /// Place of the child that the way goes on to.
    index: usize,
}

impl<N: Nand> Bftl<N> {
    pub(super) fn node(&mut self, id: u32) -> Result<Node, N::Error> {
        self.store.load(id, Some(&self.buffer))
    }

    /// A child, which is one level lower.
    pub(super) fn child(&mut self, id: u32, level: u8) -> Result<Node, N::Error> {
        let node = self.node(id)?;
        if node.level + 1 != level {
            let page = self.store.first_page(id);
            return Err(BaselineError::Corrupt { page, why: "it is not at the level that its parent says" });
        }
        Ok(node)
    }

    /// The leaf in which a key belongs with the nodes above it, and its number in the last of them.
    pub(super) fn descend(&mut self, key: u32) -> Result<(Vec<Step>, Node), N::Error> {
        let mut path = Vec::new();
        let mut id = ROOT;
        let mut node = self.node(ROOT)?;
        while node.level > 0 {
            let index = node.child_index(key);
            let Some(child) = node.entries.get(index).map(|entry| entry.value) else {
                let page = self.store.first_page(id);
                return Err(BaselineError::Corrupt { page, why: "a node above the leaves is empty" });
            };
            let below = self.child(child, node.level)?;
            path.push(Step { id, node, index });
            (id, node) = (child, below);
        }
        Ok((path, node))
    }

    /// Makes changes that belong together, and commits when the buffer is full. Says whether the last key was there. After an
    /// error nothing has changed.
    pub(super) fn change(&mut self, changes: &[(u32, Option<u32>)]) -> Result<bool, N::Error> {
        self.begin(Cause::Host)?;
        let before = (self.buffer.clone(), self.next_node, self.records);
        let outcome = self.apply_all(changes);
        if outcome.is_err() {
            (self.buffer, self.next_node, self.records) = before;
            return outcome;
        }
        if self.buffer.unit_count() >= self.store.options.buffer_units {
            self.commit()?;
        }
        outcome
    }

    fn apply_all(&mut self, changes: &[(u32, Option<u32>)]) -> Result<bool, N::Error> {
        let mut was_there = false;
        for &(key, value) in changes {
            // Each node that waits takes a page at worst. With room for all of them made before the change is taken in, no commit
            // of what was acknowledged fails for want of it.
            let height = usize::from(self.store.table.get(ROOT).map_or(0, |listed| listed.level)) + 2;
            let pages = self.buffer.node_count() + 2 * height + 2;
            self.store.make_room(u32::try_from(pages).unwrap_or(u32::MAX))?;
            was_there = match value {
                Some(value) => self.put_entry(key, value)?,
                None => self.delete_entry(key)?,
            };
        }
        Ok(was_there)
    }

    /// The number of the leaf at the end of a path.
    fn leaf_id(path: &[Step]) -> u32 {
        path.last().map_or(ROOT, |step| step.node.entries[step.index].value)
    }

    fn put_entry(&mut self, key: u32, value: u32) -> Result<bool, N::Error> {
        let (mut path, mut node) = self.descend(key)?;
        let mut id = Self::leaf_id(&path);
        let was_there = node.find(key).is_ok();
        self.records += u64::from(!was_there);
        let mut entry = Entry { key, value };
        // Each round puts an entry into a node and, if that splits it, goes on with the entry of the new one in the parent.
        loop {
            let level = node.level;
            node.apply(Change::Put(entry));
            if node.entries.len() <= self.store.units_per_page() {
                self.buffer.push(id, level, Change::Put(entry));
                return Ok(was_there);
            }
            let right = Node { level, entries: node.entries.split_off(node.entries.len() / 2) };
            let separator = right.entries[0].key;
            let new = self.new_node(&right)?;
            let Some(step) = path.pop() else {
                return self.grow(&node, Entry { key: separator, value: new }).map(|()| was_there);
            };
            self.buffer.push(id, level, Change::Truncate(separator));
            if entry.key < separator {
                self.buffer.push(id, level, Change::Put(entry));
            }
            entry = Entry { key: separator, value: new };
            (id, node) = (step.id, step.node);
        }
    }

    fn new_node(&mut self, node: &Node) -> Result<u32, N::Error> {
        if self.next_node == u32::MAX {
            return Err(BaselineError::Full);
        }
        let id = self.next_node;
        self.next_node += 1;
        self.buffer.set(id, node);
        Ok(id)
    }

    /// The root keeps its number: its left half becomes a node of its own.
    fn grow(&mut self, left: &Node, right: Entry) -> Result<(), N::Error> {
        if left.level >= LEVEL_MAX {
            return Err(BaselineError::Full);
        }
        let first = Entry { key: 0, value: self.new_node(left)? };
        self.buffer.set(ROOT, &Node { level: left.level + 1, entries: vec![first, right] });
        Ok(())
    }

    fn delete_entry(&mut self, key: u32) -> Result<bool, N::Error> {
        let (mut path, mut node) = self.descend(key)?;
        if node.find(key).is_err() {
            return Ok(false);
        }
        let mut id = Self::leaf_id(&path);
        self.records = self.records.saturating_sub(1);
        self.buffer.push(id, node.level, Change::Delete(key));
        node.apply(Change::Delete(key));
        // An empty node vanishes from its parent, which may then be empty itself.
        while node.entries.is_empty() {
            let Some(step) = path.pop() else {
                self.buffer.set(ROOT, &Node::default());
                break;
            };
            self.buffer.remove(id);
            (id, node) = (step.id, step.node);
            let level = node.level;
            let gone = node.entries.remove(step.index);
            match node.entries.first().copied().filter(|_| step.index == 0) {
                // The first separator is the lowest key that can come, so the next child takes it over.
                Some(next) => {
                    self.buffer.push(id, level, Change::Put(Entry { key: gone.key, value: next.value }));
                    self.buffer.push(id, level, Change::Delete(next.key));
                }
                None => self.buffer.push(id, level, Change::Delete(gone.key)),
            }
        }
        Ok(true)
    }
}
