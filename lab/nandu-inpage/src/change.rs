//! Putting and deleting.

use nandu_media::inpage::record::{Cells, Record};
use nandu_nand::{Cause, Nand};

use crate::arena::Frame;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::{Node, NodeMut};
use crate::nodes::{MISFENCED, NEW, NONE, ROOT};
use crate::options::{Durability, Splits};

/// Tries that a change may need: a flush or a split may move the leaf.
const ATTEMPTS: u32 = 40;

/// Operations over which the share of writes is averaged, as a power of two.
const SHARE_SHIFT: u32 = 12;

impl<N: Nand> InPage<'_, N> {
    /// The value of a key. Costs no more than a read for each level and each log page that belongs to it.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`], [`Error::Corrupt`], [`Error::Nand`]; what leaves the buffer for it may cause the errors of
    /// [`put`](InPage::put).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, N> {
        self.check_key(key)?;
        self.note_operation(false);
        let frame = self.guarded(|index| {
            index.for_cause(Cause::Lookup, |index| {
                let spot = index.descend(key, false, 0)?;
                let unit = index.ensure(spot.node)?;
                // A merge in between may move pages, but nothing in memory.
                index.buffer.pin(1, unit);
                index.merge_due()?;
                index.buffer[unit].base().ok_or(Error::Poisoned)
            })
        })?;
        let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
        Ok(node.find(key).map(|cell| cell.content))
    }

    /// Puts a value at a key; durable after [`sync`](InPage::sync) unless the options say otherwise. Returns whether the key was there.
    ///
    /// Costs what [`get`](InPage::get) costs, and when changes of a node leave the buffer or fill their sector, a program
    /// or a merge.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`], [`Error::ValueSize`], [`Error::Full`]: nothing was changed. [`Error::Nand`],
    /// [`Error::Poisoned`]: the index has to be opened again.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N> {
        self.check_key(key)?;
        self.check_value(key, value)?;
        self.note_operation(true);
        self.guarded(|index| index.for_cause(Cause::Host, |index| index.change_once(Record::Put(key, value), false)))
    }

    /// Puts a value at a key that is not there; otherwise changes nothing. Returns whether it was put. Costs as [`put`](InPage::put).
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn insert_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N> {
        self.put_if(key, value, false)
    }

    /// Puts a value at a key that is there; otherwise changes nothing. Returns whether it was put. Costs as [`put`](InPage::put).
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N> {
        self.put_if(key, value, true)
    }

    /// The leaf that was looked at is in the buffer when it is changed, so nothing is read twice.
    fn put_if(&mut self, key: &[u8], value: &[u8], is_there: bool) -> Result<bool, N> {
        self.check_key(key)?;
        self.check_value(key, value)?;
        if self.get(key)?.is_some() != is_there {
            return Ok(false);
        }
        self.put(key, value)?;
        Ok(true)
    }

    /// Puts a value at a key without reading its leaf, so nobody knows whether it was there. Otherwise as
    /// [`put`](InPage::put).
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn put_blind(&mut self, key: &[u8], value: &[u8]) -> Result<(), N> {
        self.check_key(key)?;
        self.check_value(key, value)?;
        self.note_operation(true);
        self.guarded(|index| {
            index.for_cause(Cause::Host, |index| index.change_once(Record::Put(key, value), true).map(drop))
        })
    }

    /// Deletes a key. Returns whether it was there. Costs as [`put`](InPage::put).
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put); deletes may use the blocks that puts may not, so that they succeed on a chip that is full.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, N> {
        self.check_key(key)?;
        self.note_operation(true);
        self.guarded(|index| index.for_cause(Cause::Host, |index| index.change_once(Record::Delete(key), false)))
    }

    pub(crate) fn note_operation(&mut self, is_write: bool) {
        let goal = if is_write { 1 << 20 } else { 0 };
        let share = i64::from(self.write_share);
        self.write_share = (share + (goal - share) / (1 << SHARE_SHIFT)) as u32;
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), N> {
        let fits = match self.options.cells {
            Cells::Fixed { key: size, .. } => key.len() == usize::from(size),
            Cells::Bytes => key.len() <= usize::from(u8::MAX) && key.len() <= self.entry_size_max(),
        };
        if fits { Ok(()) } else { Err(Error::KeySize(key.len())) }
    }

    pub(crate) fn check_value(&self, key: &[u8], value: &[u8]) -> Result<(), N> {
        let fits = match self.options.cells {
            Cells::Fixed { value: size, .. } => value.len() == usize::from(size),
            Cells::Bytes => key.len() + value.len() <= self.entry_size_max(),
        };
        if fits { Ok(()) } else { Err(Error::ValueSize(value.len())) }
    }

    /// Does a change, and has it durable if that is wanted of each.
    fn change_once(&mut self, record: Record<'_>, is_blind: bool) -> Result<bool, N> {
        let existed = self.change(record, is_blind)?;
        if self.options.durability == Durability::Immediate {
            self.write_journal()?;
        }
        Ok(existed)
    }

    /// Does a change. Returns whether the key was there; without reading, false.
    pub(crate) fn change(&mut self, record: Record<'_>, is_blind: bool) -> Result<bool, N> {
        self.open_for_writing()?;
        self.make_journal_room(record.size(self.options.cells))?;
        if let Record::Put(..) = record {
            match self.make_places() {
                // It has happened before, so it takes what a delete may take.
                Err(Error::Full) if self.journal.is_replaying => {}
                made => made?,
            }
        }
        let counted = self.stats;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                // The same reference again.
                (self.stats.references, self.stats.hits) = (counted.references, counted.hits);
                (self.stats.leaf_references, self.stats.leaf_hits) = (counted.leaf_references, counted.leaf_hits);
            }
            if let Some(existed) = self.try_change(record, is_blind)? {
                self.merge_due()?;
                self.empty_failing()?;
                return Ok(existed);
            }
        }
        Err(Error::Poisoned)
    }

    /// One try; `None` if something had to be flushed or split first and the way to the leaf may have changed.
    fn try_change(&mut self, record: Record<'_>, is_blind: bool) -> Result<Option<bool>, N> {
        let cells = self.options.cells;
        let spot = self.descend(record.key(), false, 0)?;
        let unit = if is_blind && self.nodes[spot.node].id != ROOT {
            self.blind_unit(spot.node)?
        } else {
            self.ensure(spot.node)?
        };
        self.buffer.pin(1, unit);
        let base = self.buffer[unit].base();
        let existed =
            base.is_some_and(|frame| Node::new(self.buffer.arena.frame(frame), cells).find(record.key()).is_some());
        if let Record::Delete(_) = record
            && !existed
            && base.is_some()
        {
            return Ok(Some(false));
        }
        if self.nodes[spot.node].has(NEW) {
            return self.change_new(record, spot.node, unit, existed);
        }
        if self.buffer.room(unit) < record.size(cells) {
            self.flush_full(record, unit)?;
            return Ok(None);
        }
        if self.buffer[unit].chunk().is_none() {
            let splits = self.stats.splits;
            self.make_room(self.options.sector_size as usize)?;
            if self.stats.splits != splits {
                return Ok(None);
            }
        }
        self.note_journal(record, unit)?;
        self.buffer.note(unit, cells, record).ok_or(Error::Poisoned)?;
        match base {
            Some(frame) => self.apply_to_base(record, spot.node, frame)?,
            None => self.nodes[spot.node].size += record.size(cells) as u32,
        }
        self.count(record, existed, base.is_none());
        let is_over = base.is_some() && self.nodes[spot.node].size > self.node_limit();
        if is_over && self.options.splits == Splits::EagerThree {
            self.divide(record.key(), 0)?;
        }
        self.remove_if_empty(record, spot.node)?;
        Ok(Some(existed))
    }

    /// The unit of a leaf that need not be read.
    fn blind_unit(&mut self, index: u32) -> Result<u32, N> {
        self.stats.references += 1;
        self.stats.leaf_references += 1;
        let is_hit = self.nodes[index].unit != NONE;
        self.stats.hits += u64::from(is_hit);
        self.stats.leaf_hits += u64::from(is_hit);
        let unit = self.unit_of(index)?;
        self.touch(unit);
        Ok(unit)
    }

    /// A change of a leaf that was never programmed needs no record. Such a leaf is never larger than a page, not even on the
    /// way to being split: its parent's flush may program it at any time.
    fn change_new(&mut self, record: Record<'_>, index: u32, unit: u32, existed: bool) -> Result<Option<bool>, N> {
        let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
        let size = record.size(self.options.cells);
        if matches!(record, Record::Put(..)) && self.nodes[index].size as usize + size > self.node_limit() as usize {
            self.divide(record.key(), size)?;
            return Ok(None);
        }
        self.note_journal(record, unit)?;
        self.apply_to_base(record, index, frame)?;
        self.count(record, existed, false);
        self.remove_if_empty(record, index)?;
        Ok(Some(existed))
    }

    fn apply_to_base(&mut self, record: Record<'_>, index: u32, frame: Frame) -> Result<(), N> {
        let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
        node.apply(record).ok_or(Error::Poisoned)?;
        self.nodes[index].size = node.view().size() as u32;
        Ok(())
    }

    fn count(&mut self, record: Record<'_>, existed: bool, is_uncertain: bool) {
        self.records = match (self.records, record) {
            (Some(_), _) if is_uncertain => None,
            (Some(count), Record::Put(..)) => Some(count + u64::from(!existed)),
            (Some(count), Record::Delete(_)) => Some(count - u64::from(existed).min(count)),
            (records, _) => records,
        };
    }

    /// The changes of a leaf fill their sector: it is split if it is too large, or else flushed.
    fn flush_full(&mut self, record: Record<'_>, unit: u32) -> Result<(), N> {
        let index = self.buffer[unit].node;
        if self.nodes[index].size > self.node_limit() {
            // The bound may be too high, so the leaf is looked at; and it may be split in memory.
            let splits = self.stats.splits;
            self.divide(record.key(), 0)?;
            if self.stats.splits != splits {
                return Ok(());
            }
        }
        let unit = self.nodes[index].unit;
        if unit == NONE { Ok(()) } else { self.flush(unit) }
    }

    /// A leaf that a delete has emptied is taken out of the tree, unless it is the first of its parent.
    ///
    /// Its left neighbour answers for its range then. What that neighbour's page still holds from before a split would show
    /// again, so it is truncated durably before the link goes.
    fn remove_if_empty(&mut self, record: Record<'_>, index: u32) -> Result<(), N> {
        let unit = self.nodes[index].unit;
        let is_delete = matches!(record, Record::Delete(_));
        if !is_delete || unit == NONE || self.nodes[index].id == ROOT {
            return Ok(());
        }
        let cells = self.options.cells;
        let is_empty = |frame| Node::new(self.buffer.arena.frame(frame), cells).count() == 0;
        if !self.buffer[unit].base().is_some_and(is_empty) {
            return Ok(());
        }
        let counted = self.stats;
        let result = self.remove_leaf(record.key(), index);
        (self.stats.references, self.stats.hits) = (counted.references, counted.hits);
        result
    }

    fn remove_leaf(&mut self, key: &[u8], index: u32) -> Result<(), N> {
        let cells = self.options.cells;
        let spot = self.descend(key, false, 0)?;
        if spot.node != index || spot.parent == NONE {
            return Ok(());
        }
        let low = self.near.low;
        // The leaf goes with its deletes, so these come first.
        if self.nodes[index].unit != NONE {
            self.write_ahead(self.nodes[index].unit)?;
        }
        // The neighbour may be clipped, and the links of both parts of an earlier split hold, only when nothing waits here.
        self.flush(spot.parent)?;
        let Some(frame) = self.buffer[spot.parent].base() else { return Ok(()) };
        let parent = Node::new(self.buffer.arena.frame(frame), cells);
        let Some(left) = parent.floor(low.as_slice(), true) else { return Ok(()) };
        if parent.find(low.as_slice()).map(|cell| cell.child()) != Some(self.nodes[index].id) {
            return Ok(());
        }
        let Some(left) = self.nodes.find(left.child()) else { return Ok(()) };
        // Read with the wider range, the neighbour would meet all that its page and its logs ever held before it meets the
        // truncation. If that is more than a frame takes, a merge drops it instead.
        let frame_size = self.node_size() + self.options.sector_size as usize;
        let record_size = Record::Truncate(low.as_slice(), 0).size(cells);
        let changes = if self.nodes[left].unit == NONE { 0 } else { self.buffer.changes_size(self.nodes[left].unit) };
        if self.nodes[left].has(MISFENCED)
            && self.nodes[left].raw as usize + changes + record_size > frame_size
            && let Some(block) = self.nodes[left].block()
        {
            self.merge(block, None)?;
        }
        if self.nodes[left].has(MISFENCED) {
            let truncation = Record::Truncate(low.as_slice(), self.nodes[index].id);
            let unit = self.unit_of(left)?;
            self.buffer.pin(2, unit);
            if self.buffer.room(unit) < truncation.size(cells) {
                self.flush(unit)?;
            }
            let unit = self.unit_of(left)?;
            self.buffer.note(unit, cells, truncation).ok_or(Error::Poisoned)?;
            self.touch(unit);
            self.flush(unit)?;
            // A flush may have split the parent, and then the neighbour is not this parent's any more.
            let again = self.descend(key, false, 0)?;
            if again.parent != spot.parent || again.node != index {
                return Ok(());
            }
        }
        self.unlink(spot.parent, low.as_slice(), left, index)
    }

    /// Takes the link to an empty leaf out of its parent, durably, and forgets the leaf.
    fn unlink(&mut self, parent: u32, low: &[u8], left: u32, index: u32) -> Result<(), N> {
        let cells = self.options.cells;
        let unlink = Record::Unlink(low);
        let Some(frame) = self.buffer[parent].base() else { return Ok(()) };
        let node = Node::new(self.buffer.arena.frame(frame), cells);
        let is_neighbour = node.floor(low, true).map(|cell| cell.child()) == Some(self.nodes[left].id);
        if !is_neighbour || self.buffer.room(parent) < unlink.size(cells) {
            return Ok(());
        }
        self.buffer.note(parent, cells, unlink).ok_or(Error::Poisoned)?;
        let parent_index = self.buffer[parent].node;
        self.apply_to_base(unlink, parent_index, frame)?;
        self.flush(parent)?;
        // Only now is the leaf dead: until the link is gone, a cut leads to it.
        let high = self.near.high().and_then(nandu_index::KeyBuf::new);
        let unit = self.nodes[index].unit;
        if unit != NONE {
            self.forget_unit(unit);
        }
        self.blocks.detach(&mut self.nodes, index);
        self.unwritten -= u32::from(self.nodes[index].has(NEW));
        self.nodes.remove(index);
        self.nodes[left].set(MISFENCED, true);
        let left_unit = self.nodes[left].unit;
        if left_unit != NONE
            && let Some(frame) = self.buffer[left_unit].base()
        {
            let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), cells);
            node.set_high(high.as_ref().map(nandu_index::KeyBuf::as_slice)).ok_or(Error::Poisoned)?;
            self.nodes[left].size = node.view().size() as u32;
        }
        self.stats.removals += 1;
        Ok(())
    }
}
