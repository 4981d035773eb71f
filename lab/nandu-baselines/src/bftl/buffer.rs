//! The reservation buffer: units that wait in memory to be committed together.

use std::collections::{BTreeMap, BTreeSet};

use super::unit::{Change, Node};

/// The units of one node that wait.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) level: u8,
    /// Whether they make the node from nothing, so that what is on flash of it is void.
    pub(super) is_base: bool,
    pub(super) changes: Vec<Change>,
}

/// Units by node, each node's in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    nodes: BTreeMap<u32, Waiting>,
    /// Nodes that vanished since the last commit.
    removed: BTreeSet<u32>,
    unit_count: usize,
}

impl Buffer {
    /// Units that wait.
    pub(super) fn unit_count(&self) -> usize {
        self.unit_count
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.removed.is_empty()
    }

    pub(super) fn get(&self, node: u32) -> Option<&Waiting> {
        self.nodes.get(&node)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, &Waiting)> {
        self.nodes.iter().map(|(&node, waiting)| (node, waiting))
    }

    pub(super) fn removed(&self) -> impl Iterator<Item = u32> {
        self.removed.iter().copied()
    }

    pub(super) fn push(&mut self, node: u32, level: u8, change: Change) {
        let waiting = self.nodes.entry(node).or_insert_with(|| Waiting { level, is_base: false, changes: Vec::new() });
        waiting.changes.push(change);
        self.unit_count += 1;
    }

    /// The node is this, whatever it was.
    pub(super) fn set(&mut self, id: u32, node: &Node) {
        let waiting = Waiting { level: node.level, is_base: true, changes: node.base() };
        self.unit_count += waiting.changes.len();
        if let Some(before) = self.nodes.insert(id, waiting) {
            self.unit_count -= before.changes.len();
        }
    }

    /// The node is no more.
    pub(super) fn remove(&mut self, node: u32) {
        if let Some(before) = self.nodes.remove(&node) {
            self.unit_count -= before.changes.len();
        }
        self.removed.insert(node);
    }
}
