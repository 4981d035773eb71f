//! The way from the root to a node.

use nandu_media::{Field, Malformed};
use nandu_nand::{Nand, PageAddr};

use crate::arena::Frame;
use crate::error::Error;
use crate::inpage::{Fences, InPage, Result};
use crate::load::Range;
use crate::node::{Node, NodeMut};
use crate::nodes::NONE;

/// Where a descent ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// Entry of the node.
    pub(crate) node: u32,
    /// Unit of its parent, with its base; [`NONE`] for the root.
    pub(crate) parent: u32,
}

/// Scratch frame: a node that is put together.
pub(crate) const BUILD: usize = 0;
/// Scratch frame: a node that is split off.
pub(crate) const RIGHT: usize = 1;
/// Scratch frame: a node on the way from the root.
pub(crate) const WALK: usize = 2;

/// Chooses the child of a node for a key, and narrows the fences to it.
fn choose(node: Node<'_>, key: &[u8], strictly: bool, fences: &mut Fences) -> Option<u32> {
    let cell = node.floor(key, strictly).or_else(|| node.read(node.first()))?;
    fences.low.set(cell.key);
    let next = node.read(cell.at + cell.size).map(|next| next.key);
    fences.set_high(next.or(node.high()));
    Some(cell.child())
}

impl<N: Nand> InPage<'_, N> {
    /// Descends to the node of a level that answers for a key, or for the keys just below it. All nodes above are in the
    /// buffer afterwards, the parent is pinned, and `near` is what the node answers for. The node itself is not read.
    pub(crate) fn descend(&mut self, key: &[u8], strictly: bool, level: u8) -> Result<Spot, N> {
        let mut spot = Spot { node: self.root()?, parent: NONE };
        self.near.low.set(&[]);
        self.near.set_high(None);
        if let nandu_media::inpage::record::Cells::Fixed { key, .. } = self.options.cells {
            self.near.low.set(&[0; u8::MAX as usize][..usize::from(key)]);
        }
        while self.nodes[spot.node].level > level {
            let above = self.nodes[spot.node].level;
            let unit = self.ensure(spot.node)?;
            self.buffer.pin(0, unit);
            let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
            let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
            let child = choose(node, key, strictly, &mut self.near).and_then(|id| self.nodes.find(id));
            // Levels fall with each step, so this ends whatever the flash holds.
            let child = child.filter(|&child| self.nodes[child].level + 1 == above);
            spot = Spot { node: child.ok_or_else(|| self.missing_child(spot.node))?, parent: unit };
        }
        Ok(spot)
    }

    fn missing_child(&self, index: u32) -> Error<N::Error> {
        let entry = &self.nodes[index];
        let page = entry.block().map_or(PageAddr(0), |block| self.page_of(block, entry.page));
        Error::Corrupt { page, why: Malformed::Range(Field::Child) }
    }

    /// Has a node in the buffer, with its base, and counts the reference. The range that it answers for is `near`.
    pub(crate) fn ensure(&mut self, index: u32) -> Result<u32, N> {
        let is_leaf = self.nodes[index].level == 0;
        self.stats.references += 1;
        self.stats.leaf_references += u64::from(is_leaf);
        let unit = self.nodes[index].unit;
        if unit != NONE && self.buffer[unit].base().is_some() {
            self.stats.hits += 1;
            self.stats.leaf_hits += u64::from(is_leaf);
            self.touch(unit);
            return Ok(unit);
        }
        if unit != NONE {
            self.buffer.pin(1, unit);
        }
        let size = self.node_size();
        self.make_room(size)?;
        let unit = self.unit_of(index)?;
        let loaded = self.load(index, unit);
        if loaded.is_err() && !self.buffer[unit].has_changes() {
            self.forget_unit(unit);
        }
        loaded?;
        self.touch(unit);
        Ok(unit)
    }

    /// The unit of a node; a new one without content if it has none.
    pub(crate) fn unit_of(&mut self, index: u32) -> Result<u32, N> {
        if self.nodes[index].unit == NONE {
            let unit = match self.buffer.create(index) {
                Some(unit) => unit,
                // Changes that went along in the log pages of others have left units with nothing in them.
                None => {
                    self.sweep();
                    self.buffer.create(index).ok_or(Error::Full)?
                }
            };
            self.nodes[index].unit = unit;
        }
        Ok(self.nodes[index].unit)
    }

    /// Takes a unit out of the buffer.
    pub(crate) fn forget_unit(&mut self, unit: u32) {
        let index = self.buffer[unit].node;
        self.nodes[index].unit = NONE;
        self.buffer.remove(unit);
    }

    /// Finds the node of a level that answers for a key, or for the keys just below it, without changing what is in the buffer: nodes that are not there are
    /// read into a scratch frame. `far` is what the node answers for.
    pub(crate) fn locate(&mut self, key: &[u8], strictly: bool, level: u8) -> Result<u32, N> {
        let mut index = self.root()?;
        self.far.low.set(&[]);
        self.far.set_high(None);
        while self.nodes[index].level > level {
            let frame = self.glance(index)?;
            let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
            let child = choose(node, key, strictly, &mut self.far).and_then(|id| self.nodes.find(id));
            let above = self.nodes[index].level;
            let child = child.filter(|&child| self.nodes[child].level + 1 == above);
            index = child.ok_or_else(|| self.missing_child(index))?;
        }
        Ok(index)
    }

    /// An inner node, from the buffer or read into a scratch frame. Its range is `far`.
    fn glance(&mut self, index: u32) -> Result<Frame, N> {
        let unit = self.nodes[index].unit;
        if unit != NONE
            && let Some(frame) = self.buffer[unit].base()
        {
            return Ok(frame);
        }
        let frame = self.buffer.arena.scratch(WALK);
        self.compose(index, frame, Range::Far)?;
        let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
        if node.clip(self.far.high()).is_none() {
            return Err(self.missing_child(index));
        }
        Ok(frame)
    }
}
