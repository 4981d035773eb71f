//! Making the changes of a unit durable.
//!
//! The order that every cut has to find: a new node before the link to it; the link before the old node is clipped, or gets
//! another sector; all links of one sector together. So whenever the power goes, either the old node answers for a range
//! with all it had, or the new one does.

use nandu_index::KeyBuf;
use nandu_media::inpage::record::Record;
use nandu_media::inpage::sector::{self, HEADER_SIZE, Place};
use nandu_media::inpage::{FRONT_SIZE, FrontFields, Kind};
use nandu_nand::{BlockAddr, Cause, Nand};

use crate::descent::WALK;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::Node;
use crate::nodes::{LINKED, NEW, NONE, SPLITTING};
use crate::options::Layout;

impl<N: Nand> InPage<'_, N> {
    /// Makes durable what a unit holds. Afterwards the unit is clean, or it is empty. Changes nothing else in the buffer but
    /// that other units may become clean.
    ///
    /// Costs one program; a merge if the log of the block is full; if the node has to be split, a program for the new node
    /// and what the parent's flush costs.
    pub(crate) fn flush(&mut self, unit: u32) -> Result<(), N> {
        self.write_ahead(unit)?;
        let index = self.buffer[unit].node;
        if self.nodes[index].has(NEW) {
            return self.write_new(index);
        }
        if !self.buffer[unit].has_changes() {
            return Ok(());
        }
        if self.nodes[index].level > 0 {
            self.write_children(unit)?;
            return self.append(index, unit);
        }
        if self.nodes[index].size > self.node_limit() {
            self.split_if_over(index, unit)?;
        }
        if self.nodes[index].has(SPLITTING) && self.buffer[unit].has_changes() {
            self.commit_split(index, unit)?;
        }
        if self.buffer[unit].has_changes() { self.append(index, unit) } else { Ok(()) }
    }

    /// Programs a node that was never programmed. Nothing leads to it yet, so a cut leaves nothing to put right.
    fn write_new(&mut self, index: u32) -> Result<(), N> {
        let unit = self.nodes[index].unit;
        let frame = if unit == NONE { None } else { self.buffer[unit].base() };
        let frame = frame.ok_or(Error::Poisoned)?;
        self.write_ahead(unit)?;
        self.write_node(frame, index)
    }

    /// Programs those new nodes to which the changes of an inner node lead.
    fn write_children(&mut self, unit: u32) -> Result<(), N> {
        for _ in 0..self.buffer[unit].record_count() {
            let unwritten = self.buffer.changes(unit, self.options.cells).find_map(|record| match record {
                Ok(Record::Link(_, id)) => self.nodes.find(id).filter(|&child| self.nodes[child].has(NEW)),
                _ => None,
            });
            let Some(child) = unwritten else { break };
            self.write_new(child)?;
        }
        Ok(())
    }

    /// Has the parent's link to what was split off a node durable, before anything else about the node is.
    fn commit_split(&mut self, index: u32, unit: u32) -> Result<(), N> {
        let level = self.nodes[index].level;
        self.locate_unit(unit, level)?;
        let sibling = self.far.high().and_then(KeyBuf::new).ok_or(Error::Poisoned)?;
        let parent = self.locate(sibling.as_slice(), false, level + 1)?;
        let parent_unit = self.nodes[parent].unit;
        if parent_unit == NONE {
            return Err(Error::Poisoned);
        }
        self.flush(parent_unit)?;
        debug_assert!(!self.nodes[index].has(SPLITTING));
        Ok(())
    }

    /// Finds out what the node of a unit answers for: by its lower fence, or by a key that was changed.
    pub(crate) fn locate_unit(&mut self, unit: u32, level: u8) -> Result<u32, N> {
        let cells = self.options.cells;
        let base = self.buffer[unit].base();
        let low = base.map(|frame| Node::new(self.buffer.arena.frame(frame), cells).low());
        let first = self.buffer.changes(unit, cells).next().and_then(core::result::Result::ok);
        // A truncation names the first key that is not the node's.
        let is_above = low.is_none() && matches!(first, Some(Record::Truncate(..)));
        let key = low.or(first.map(|record| record.key())).unwrap_or_default();
        let key = KeyBuf::new(key).unwrap_or_default();
        self.locate(key.as_slice(), is_above, level)
    }

    /// The changes of a unit are durable: the links among them hold.
    pub(crate) fn settle(&mut self, unit: u32) {
        let base = self.buffer[unit].base();
        let cells = self.options.cells;
        for record in self.buffer.changes(unit, cells) {
            let Ok(Record::Link(key, id)) = record else { continue };
            if let Some(child) = self.nodes.find(id) {
                self.nodes[child].set(LINKED, true);
            }
            let left = base.and_then(|frame| {
                Node::new(self.buffer.arena.frame(frame), cells).floor(key, true).map(|cell| cell.child())
            });
            if let Some(left) = left.and_then(|left| self.nodes.find(left)) {
                self.nodes[left].set(SPLITTING, false);
            }
        }
    }

    /// Adds the changes of a unit to the log of its node's block, or merges the block if its log is full.
    fn append(&mut self, index: u32, unit: u32) -> Result<(), N> {
        let Some(block) = self.nodes[index].block() else { return Err(Error::Poisoned) };
        if self.has_log_room(block) {
            let done = self.for_cause(Cause::InPageLog, |index_| match index_.options.layout {
                Layout::Sectors => index_.append_sector(index, unit, block),
                Layout::Pages => index_.append_page(index, unit, block),
            })?;
            if done {
                return Ok(());
            }
            self.note_failing(block);
        }
        self.merge(block, Some(unit))?;
        #[cfg(feature = "_broken")]
        if self.options.broken.sector_after_merge {
            return Ok(());
        }
        self.buffer.drop_changes(unit);
        self.empty_failing()
    }

    /// One sector, in place. `false` if the program failed.
    pub(crate) fn append_sector(&mut self, index: u32, unit: u32, block: BlockAddr) -> Result<bool, N> {
        let Some(chunk) = self.buffer[unit].chunk() else { return Ok(true) };
        let number = u32::from(self.blocks[block].logs);
        let log = (number / self.sectors_per_page()) as u16;
        let page = self.log_page(block, log);
        let column = number % self.sectors_per_page() * self.options.sector_size;
        let sequence = self.next_sequence();
        let (size, count) = (self.buffer.changes_size(unit), self.buffer[unit].record_count());
        let bytes = self.buffer.arena.chunk_mut(chunk);
        let place = Place { volume: self.volume, page: page.0, column };
        let end = sector::seal(bytes, self.nodes[index].id, sequence, count, size, place);
        bytes[end..].fill(0xFF);
        // Used whether it succeeds or not: a sector is programmed once.
        self.blocks[block].logs += 1;
        let read_back = self.options.read_back.then_some(&mut *self.log);
        if !Self::program(&mut self.nand, page, column, bytes, read_back)? {
            return Ok(false);
        }
        self.stats.log_programs += 1;
        self.blocks[block].flushes = self.blocks[block].flushes.saturating_add(1);
        self.note_logged(index, unit, log);
        self.settle(unit);
        self.buffer.drop_changes(unit);
        Ok(true)
    }

    /// A log page holds the changes of a unit.
    fn note_logged(&mut self, index: u32, unit: u32, log: u16) {
        self.nodes[index].logs |= 1 << log;
        self.nodes[index].sectors = self.nodes[index].sectors.saturating_add(1);
        self.nodes[index].raw += self.buffer.changes_size(unit) as u32;
    }

    /// Whether the changes of a node may go along in a log page that another node needs: a leaf of which nothing waits for
    /// anything.
    pub(crate) fn may_go_along(&self, index: u32) -> bool {
        let entry = &self.nodes[index];
        entry.unit != NONE
            && entry.level == 0
            && !entry.has(NEW)
            && !entry.has(SPLITTING)
            && entry.size <= self.node_limit()
            && self.buffer[entry.unit].has_changes()
            && !self.is_ahead(entry.unit)
    }

    /// One log page with the changes of the unit and, as far as there is room, of others of the block.
    fn append_page(&mut self, index: u32, unit: u32, block: BlockAddr) -> Result<bool, N> {
        let place = self.blocks[block].used;
        let page = self.page_of(block, place);
        let log = self.blocks[block].logs;
        let sequence = self.next_sequence();
        let mut at = self.pack(index, FRONT_SIZE, sequence, page.0).unwrap_or(FRONT_SIZE);
        let mut other = self.blocks[block].first;
        while other != NONE {
            if other != index && self.may_go_along(other) {
                at = self.pack(other, at, sequence, page.0).unwrap_or(at);
            }
            other = self.nodes[other].next;
        }
        let erase_count = self.blocks[block].erase_count;
        let (volume, size) = (self.volume, at as u32);
        FrontFields { kind: Kind::Log, sequence, page: page.0, volume, erase_count, size }.seal(self.log);
        self.blocks[block].used += 1;
        self.blocks[block].log_at[usize::from(log)] = place;
        self.blocks[block].logs += 1;
        let frame = self.buffer.arena.scratch(WALK);
        let read_back = self.options.read_back.then(|| self.buffer.arena.frame_mut(frame));
        if !Self::program(&mut self.nand, page, 0, self.log, read_back)? {
            return Ok(false);
        }
        self.stats.log_programs += 1;
        self.blocks[block].flushes = self.blocks[block].flushes.saturating_add(1);
        // The same steps again: those that fitted are durable now.
        let mut at = FRONT_SIZE + HEADER_SIZE + self.buffer.changes_size(unit);
        let mut other = self.blocks[block].first;
        while other != NONE {
            if other != index && self.may_go_along(other) {
                at = self.unpack(other, at, log);
            }
            other = self.nodes[other].next;
        }
        // After those that went along were found again by the same conditions: this changes them.
        self.note_logged(index, unit, log);
        self.settle(unit);
        self.buffer.drop_changes(unit);
        Ok(true)
    }

    /// Puts the changes of a node into the log page, if they fit.
    fn pack(&mut self, index: u32, at: usize, sequence: u64, page: u32) -> Option<usize> {
        let unit = self.nodes[index].unit;
        let chunk = self.buffer[unit].chunk()?;
        let (size, count) = (self.buffer.changes_size(unit), self.buffer[unit].record_count());
        let out = self.log.get_mut(at..).filter(|out| out.len() >= HEADER_SIZE + size)?;
        let changes = &self.buffer.arena.chunk(chunk)[HEADER_SIZE..HEADER_SIZE + size];
        out[HEADER_SIZE..HEADER_SIZE + size].copy_from_slice(changes);
        let place = Place { volume: self.volume, page, column: at as u32 };
        Some(at + sector::seal(out, self.nodes[index].id, sequence, count, size, place))
    }

    /// The changes of a node, if they fitted the log page, are durable.
    fn unpack(&mut self, index: u32, at: usize, log: u16) -> usize {
        let unit = self.nodes[index].unit;
        let end = at + HEADER_SIZE + self.buffer.changes_size(unit);
        if end > self.log.len() {
            return at;
        }
        self.note_logged(index, unit, log);
        self.buffer.drop_changes(unit);
        end
    }

    /// Makes every change so far durable. Leaves first, so that of the splits they cause every link goes with the rest.
    pub(crate) fn flush_all(&mut self) -> Result<(), N> {
        self.flush_until(None)
    }

    /// The same, but of leaves only those with a change that stands in this journal page or one before it.
    pub(crate) fn flush_until(&mut self, last: Option<u32>) -> Result<(), N> {
        let root = self.root()?;
        for level in 0..=self.nodes[root].level {
            for unit in self.buffer.indexes() {
                if !self.buffer.is_used(unit) {
                    continue;
                }
                let index = self.buffer[unit].node;
                let is_due = level > 0 || last.is_none_or(|last| self.buffer[unit].is_in_journal_until(last));
                let has_work = self.buffer[unit].has_changes() || self.nodes[index].has(NEW);
                if self.nodes[index].level == level && has_work && is_due {
                    self.flush(unit)?;
                }
            }
        }
        // A root that was split above has become higher.
        let root_unit = self.nodes[root].unit;
        if root_unit != NONE {
            self.flush(root_unit)?;
        }
        self.sweep();
        Ok(())
    }
}
