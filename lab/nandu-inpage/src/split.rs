//! Splitting nodes, and telling their parents.
//!
//! A leaf that is in use when it becomes too large is split in memory, and its right part waits in the buffer to be
//! programmed; so with ascending keys each leaf is programmed once. Every other split is made durable at once.

use nandu_index::KeyBuf;
use nandu_media::inpage::record::Record;
use nandu_media::inpage::{FLAG_SPLIT, FRONT_SIZE};
use nandu_nand::Nand;

use crate::arena::Frame;
use crate::buffer::List;
use crate::descent::{BUILD, RIGHT};
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::load::Range;
use crate::node::{Node, NodeMut};
use crate::nodes::{LINKED, MISFENCED, NEW, NONE, ROOT, SPLITTING};
use crate::options::Splits;

/// Tries that a split may need: preparing a parent may change which node it is, once for each level.
const ATTEMPTS: u32 = 40;

/// Most levels of a tree.
const HEIGHT_MAX: u8 = 32;

/// Where a node made by splitting says which one was split.
const ORIGIN_AT: usize = FRONT_SIZE + 4;

impl<N: Nand> InPage<'_, N> {
    /// Adds a node to the table.
    fn new_node(&mut self, level: u8, flags: u8) -> Result<u32, N> {
        let id = self.next_id;
        let index = self.nodes.add(id, level, flags).ok_or(Error::Full)?;
        self.next_id = id.checked_add(1).ok_or(Error::ReadOnly)?;
        Ok(index)
    }

    /// Moves the upper half of a node in a frame to a new node in another. Returns where it begins.
    fn halve(&mut self, from: Frame, to: Frame, id: u32) -> Result<KeyBuf, N> {
        let cells = self.options.cells;
        let (left, right) = self.buffer.arena.two_frames(from, to);
        let node = Node::new(left, cells);
        let cell = node.middle().and_then(|at| node.read(at)).ok_or(Error::Poisoned)?;
        let separator = KeyBuf::new(cell.key).unwrap_or_default();
        let mut new = NodeMut::create(right, cells, id, node.level(), cell.key, node.high());
        new.append(node, cell.at).ok_or(Error::Poisoned)?;
        let origin = node.id();
        right[ORIGIN_AT..ORIGIN_AT + 4].copy_from_slice(&origin.to_le_bytes());
        right[nandu_media::inpage::FRONT_SIZE + 15] |= FLAG_SPLIT;
        let mut old = NodeMut::new(self.buffer.arena.frame_mut(from), cells);
        // The fence is no longer than the entries that leave.
        old.clip(Some(separator.as_slice())).ok_or(Error::Poisoned)?;
        Ok(separator)
    }

    fn size_in(&self, frame: Frame) -> u32 {
        Node::new(self.buffer.arena.frame(frame), self.options.cells).size() as u32
    }

    /// Splits the leaf of a key, which is in the buffer, if it is too large for flash or would be with so many bytes more.
    /// The new leaf waits in the buffer.
    pub(crate) fn divide(&mut self, key: &[u8], more: usize) -> Result<(), N> {
        let before = self.stats;
        for _ in 0..ATTEMPTS {
            let spot = self.descend(key, false, 0)?;
            let unit = self.ensure(spot.node)?;
            self.buffer.pin(1, unit);
            let size = self.node_size() + 2 * self.options.sector_size as usize;
            let splits = self.stats.splits;
            self.make_room(size)?;
            // What made room may have split the parent.
            if self.stats.splits != splits {
                continue;
            }
            (self.stats.references, self.stats.hits) = (before.references, before.hits);
            (self.stats.leaf_references, self.stats.leaf_hits) = (before.leaf_references, before.leaf_hits);
            let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
            if self.size_in(frame) as usize + more <= self.node_limit() as usize {
                return Ok(());
            }
            if spot.parent == NONE {
                return self.split_root(unit, frame);
            }
            if self.prepare(spot.parent, frame)? {
                return self.split_later(unit, frame, spot.parent);
            }
        }
        Err(Error::Poisoned)
    }

    /// Whether the parent can take the link that a split of the node in a frame needs. If not, it is flushed or split, and
    /// may be another node afterwards.
    fn prepare(&mut self, parent: u32, frame: Frame) -> Result<bool, N> {
        let cells = self.options.cells;
        let node = Node::new(self.buffer.arena.frame(frame), cells);
        let cell = node.middle().and_then(|at| node.read(at)).ok_or(Error::Poisoned)?;
        let separator = KeyBuf::new(cell.key).unwrap_or_default();
        let record = Record::Link(separator.as_slice(), 0).size(cells);
        let Some(base) = self.buffer[parent].base() else { return Err(Error::Poisoned) };
        if self.size_in(base) as usize + record > self.node_limit() as usize {
            self.split_inner(separator.as_slice(), node.level() + 1)?;
            return Ok(false);
        }
        if self.buffer.room(parent) < record {
            self.flush(parent)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Splits a leaf in memory. The caller made room, and the parent is ready.
    fn split_later(&mut self, unit: u32, frame: Frame, parent: u32) -> Result<(), N> {
        let cells = self.options.cells;
        let index = self.buffer[unit].node;
        let new = self.new_node(0, NEW)?;
        let id = self.nodes[new].id;
        self.unwritten += 1;
        let new_unit = self.unit_of(new)?;
        let new_frame = self.buffer.add_base(new_unit).ok_or(Error::Poisoned)?;
        let separator = self.halve(frame, new_frame, id)?;
        let separator = separator.as_slice();
        self.nodes[new].size = self.size_in(new_frame);
        // What moves was noted in the same journal pages.
        let (first, last) = self.buffer[unit].journal();
        self.buffer.set_journal(new_unit, Some(first), last);
        self.buffer.pin(2, new_unit);
        self.touch(new_unit);
        self.nodes[index].size = self.size_in(frame);
        self.buffer.drop_changes_from(unit, cells, separator);
        // A node that was never programmed has no page that could show too much, and is linked no earlier than its part.
        if !self.nodes[index].has(NEW) {
            self.nodes[index].set(MISFENCED, true);
            self.nodes[index].set(SPLITTING, true);
            self.note_truncation(unit, separator, id);
        }
        let link = Record::Link(separator, id);
        self.buffer.note(parent, cells, link).ok_or(Error::Poisoned)?;
        if let Some(base) = self.buffer[parent].base() {
            NodeMut::new(self.buffer.arena.frame_mut(base), cells).apply(link).ok_or(Error::Poisoned)?;
            let parent = self.buffer[parent].node;
            self.nodes[parent].size = self.size_in(base);
        }
        self.stats.splits += 1;
        Ok(())
    }

    /// With three-node splits the old node is told as well, by a record that is flushed after the link.
    fn note_truncation(&mut self, unit: u32, separator: &[u8], id: u32) {
        let record = Record::Truncate(separator, id);
        if self.options.splits == Splits::EagerThree && self.buffer.room(unit) >= record.size(self.options.cells) {
            let _ = self.buffer.note(unit, self.options.cells, record);
        }
    }

    /// Before a leaf's changes are flushed: finds out how large it is, and splits it if it is too large for a page. Reads it
    /// into a scratch frame if it is not in the buffer.
    pub(crate) fn split_if_over(&mut self, index: u32, unit: u32) -> Result<(), N> {
        let frame = match self.buffer[unit].base() {
            Some(frame) => frame,
            None => {
                let frame = self.buffer.arena.scratch(BUILD);
                self.locate_unit(unit, 0)?;
                self.compose(index, frame, Range::Far)?;
                let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
                node.clip(self.far.high()).ok_or(Error::Poisoned)?;
                self.apply_changes(unit, frame)?;
                frame
            }
        };
        self.nodes[index].size = self.size_in(frame);
        if self.nodes[index].size <= self.node_limit() {
            return Ok(());
        }
        if self.nodes[index].id == ROOT {
            return self.split_root(unit, frame);
        }
        let new = self.new_node(0, 0)?;
        let id = self.nodes[new].id;
        let right = self.buffer.arena.scratch(RIGHT);
        let separator = self.halve(frame, right, id)?;
        self.nodes[index].size = self.size_in(frame);
        // The new node before the link to it: a link torn away leaves a node that nothing leads to.
        self.write_node(right, new)?;
        self.nodes[index].set(MISFENCED, true);
        self.buffer.drop_changes_from(unit, self.options.cells, separator.as_slice());
        self.stats.splits += 1;
        self.link(separator.as_slice(), id, 1)?;
        // Once more: a merge before the link was durable has programmed this node with all its keys.
        self.nodes[index].set(MISFENCED, true);
        self.note_truncation(unit, separator.as_slice(), id);
        Ok(())
    }

    /// Adds a link to the node of a level that answers for a key, and has it durable.
    fn link(&mut self, separator: &[u8], id: u32, level: u8) -> Result<(), N> {
        let cells = self.options.cells;
        let record = Record::Link(separator, id);
        let size = record.size(cells);
        for _ in 0..ATTEMPTS {
            let parent = self.locate(separator, false, level)?;
            if self.inner_size(parent)? + size > self.node_limit() as usize {
                self.split_inner(separator, level)?;
                continue;
            }
            let is_guest = self.nodes[parent].unit == NONE;
            let unit = self.unit_of(parent)?;
            if self.buffer.room(unit) < size {
                self.flush(unit)?;
                continue;
            }
            self.buffer.note(unit, cells, record).ok_or(Error::Poisoned)?;
            if is_guest {
                // In a list, so that it is found if what follows fails.
                self.buffer.enlist(unit, List::Inner);
            }
            if let Some(base) = self.buffer[unit].base() {
                NodeMut::new(self.buffer.arena.frame_mut(base), cells).apply(record).ok_or(Error::Poisoned)?;
                self.nodes[parent].size = self.size_in(base);
            } else {
                self.nodes[parent].size += size as u32;
            }
            self.flush(unit)?;
            let unit = self.nodes[parent].unit;
            if unit != NONE && self.buffer.size(unit) == 0 {
                self.forget_unit(unit);
            }
            return Ok(());
        }
        Err(Error::Poisoned)
    }

    /// Exact size of an inner node whose range is `far`, bytes; read if the bound that is known does not do.
    fn inner_size(&mut self, index: u32) -> Result<usize, N> {
        let unit = self.nodes[index].unit;
        let is_here = unit != NONE && self.buffer[unit].base().is_some();
        let spare = 8 + 2 * usize::from(u8::MAX);
        if !is_here && self.nodes[index].size as usize + spare > self.node_limit() as usize {
            let frame = self.inner_frame(index)?;
            self.nodes[index].size = self.size_in(frame);
        }
        Ok(self.nodes[index].size as usize)
    }

    /// An inner node with its changes, in the buffer or read into a scratch frame. Its range is `far`.
    fn inner_frame(&mut self, index: u32) -> Result<Frame, N> {
        let unit = self.nodes[index].unit;
        if unit != NONE
            && let Some(frame) = self.buffer[unit].base()
        {
            return Ok(frame);
        }
        let frame = self.buffer.arena.scratch(BUILD);
        self.compose(index, frame, Range::Far)?;
        let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
        node.clip(self.far.high()).ok_or(Error::Poisoned)?;
        if unit != NONE {
            self.apply_changes(unit, frame)?;
        }
        Ok(frame)
    }

    /// Splits the inner node of a level that answers for a key. All its links are made durable first, so that every child
    /// of the new node is reached whether the split becomes durable or not.
    fn split_inner(&mut self, key: &[u8], level: u8) -> Result<(), N> {
        let index = self.locate(key, false, level)?;
        let unit = self.nodes[index].unit;
        if unit != NONE {
            self.flush(unit)?;
            self.locate(key, false, level)?;
        }
        let frame = self.inner_frame(index)?;
        if self.nodes[index].id == ROOT {
            let unit = self.unit_of(index)?;
            return self.split_root(unit, frame);
        }
        let new = self.new_node(level, 0)?;
        let id = self.nodes[new].id;
        let right = self.buffer.arena.scratch(RIGHT);
        let separator = self.halve(frame, right, id)?;
        self.nodes[index].size = self.size_in(frame);
        self.write_node(right, new)?;
        self.nodes[index].set(MISFENCED, true);
        self.stats.splits += 1;
        self.link(separator.as_slice(), id, level + 1)?;
        // Once more: a merge before the link was durable has programmed this node with all its children.
        self.nodes[index].set(MISFENCED, true);
        Ok(())
    }

    /// Splits the root, which stands in a frame with all its changes: both halves as new nodes, then a new page of the root
    /// with two children. That page is the commit: before it, the halves are led to by nothing.
    fn split_root(&mut self, unit: u32, frame: Frame) -> Result<(), N> {
        let cells = self.options.cells;
        self.write_ahead(unit)?;
        let index = self.buffer[unit].node;
        let level = self.nodes[index].level;
        if level > 0 && self.buffer[unit].has_changes() {
            self.flush(unit)?;
        }
        if level >= HEIGHT_MAX {
            return Err(Error::Full);
        }
        let (left, right) = (self.new_node(level, 0)?, self.new_node(level, 0)?);
        let (left_id, right_id) = (self.nodes[left].id, self.nodes[right].id);
        let scratch = self.buffer.arena.scratch(RIGHT);
        let separator = self.halve(frame, scratch, right_id)?;
        self.write_node(scratch, right)?;
        let (source, target) = self.buffer.arena.two_frames(frame, scratch);
        let node = Node::new(source, cells);
        let low = KeyBuf::new(node.low()).unwrap_or_default();
        let mut new = NodeMut::create(target, cells, left_id, level, node.low(), node.high());
        new.append(node, node.first()).ok_or(Error::Poisoned)?;
        self.write_node(scratch, left)?;
        let mut root =
            NodeMut::create(self.buffer.arena.frame_mut(frame), cells, ROOT, level + 1, low.as_slice(), None);
        root.put(low.as_slice(), &left_id.to_le_bytes()).ok_or(Error::Poisoned)?;
        root.put(separator.as_slice(), &right_id.to_le_bytes()).ok_or(Error::Poisoned)?;
        self.write_node(frame, index)?;
        self.nodes[index].level = level + 1;
        self.nodes[left].set(LINKED, true);
        self.nodes[right].set(LINKED, true);
        self.buffer.drop_changes(unit);
        if self.buffer.size(unit) == 0 {
            self.forget_unit(unit);
        }
        self.stats.splits += 1;
        Ok(())
    }
}
