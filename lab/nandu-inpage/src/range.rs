//! Ranges, in both directions.
//!
//! Leaves do not link to each other, so that a split never touches a neighbour. A range goes from leaf to leaf by descending
//! again with the fence of the last one; the inner nodes are in the buffer then.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry, KeyBuf};
use nandu_media::inpage::record::Cells;
use nandu_nand::{Cause, Nand};

use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::{Cell, Node};

impl<N: Nand> InPage<'_, N> {
    /// Visits the entries between two bounds in order, until `visit` breaks off. Costs what [`get`](InPage::get) costs, for
    /// each leaf.
    ///
    /// # Errors
    ///
    /// As [`get`](InPage::get).
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), N> {
        self.guarded(|index| {
            index.for_cause(Cause::Lookup, |index| index.visit_leaves(from, to, direction, visit))?;
            index.merge_due()
        })
    }

    fn visit_leaves(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), N> {
        let is_forward = direction == Direction::Forward;
        let mut place = match if is_forward { from } else { to } {
            Bound::Included(key) | Bound::Excluded(key) => self.search_key(key)?,
            Bound::Unbounded if is_forward => self.search_key(&[])?,
            // No key is above this one.
            Bound::Unbounded => self.search_key(&[0xFF; u8::MAX as usize])?,
        };
        // Backward, from the second leaf on that one is sought that answers for the keys just below a fence.
        let mut strictly = false;
        loop {
            let spot = self.descend(place.as_slice(), strictly, 0)?;
            let unit = self.ensure(spot.node)?;
            self.buffer.pin(1, unit);
            let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
            let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
            if is_forward {
                if visit_forward(node, from, to, visit).is_break() {
                    return Ok(());
                }
                let Some(high) = self.near.high() else { return Ok(()) };
                // Fences rise from leaf to leaf, whatever the flash holds, or this ends.
                if high <= place.as_slice() {
                    return Ok(());
                }
                place.set(high);
            } else {
                if visit_backward(node, from, to, visit).is_break() {
                    return Ok(());
                }
                let low = self.near.low;
                if strictly && low.as_slice() >= place.as_slice() || self.is_lowest(low.as_slice()) {
                    return Ok(());
                }
                place = low;
                strictly = true;
            }
        }
    }

    /// A key by which a descent can be made: with keys of one width, any bytes cut or filled to it.
    fn search_key(&self, key: &[u8]) -> Result<KeyBuf, N> {
        let mut buf = KeyBuf::EMPTY;
        match self.options.cells {
            Cells::Bytes => {
                if !buf.set(key) {
                    return Err(Error::KeySize(key.len()));
                }
            }
            Cells::Fixed { key: size, .. } => {
                let size = usize::from(size);
                buf.set(&key[..key.len().min(size)]);
                buf.append(&[0; u8::MAX as usize][buf.as_slice().len()..size]);
            }
        }
        Ok(buf)
    }

    fn is_lowest(&self, key: &[u8]) -> bool {
        match self.options.cells {
            Cells::Bytes => key.is_empty(),
            Cells::Fixed { .. } => key.iter().all(|&byte| byte == 0),
        }
    }

    /// The entry with the lowest key. Costs as [`get`](InPage::get), but for empty leaves on the way.
    ///
    /// # Errors
    ///
    /// As [`get`](InPage::get).
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, N> {
        self.end(Direction::Forward)
    }

    /// The entry with the highest key. Costs as [`first`](InPage::first).
    ///
    /// # Errors
    ///
    /// As [`get`](InPage::get).
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, N> {
        self.end(Direction::Backward)
    }

    fn end(&mut self, direction: Direction) -> Result<Option<Entry<'_>>, N> {
        let mut key = None;
        let mut visit = |entry: Entry<'_>| {
            key = KeyBuf::new(entry.key);
            ControlFlow::Break(())
        };
        self.range(Bound::Unbounded, Bound::Unbounded, direction, &mut visit)?;
        let Some(key) = key else { return Ok(None) };
        let frame = self.guarded(|index| {
            let spot = index.descend(key.as_slice(), false, 0)?;
            let unit = index.ensure(spot.node)?;
            index.buffer[unit].base().ok_or(Error::Poisoned)
        })?;
        let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
        Ok(node.find(key.as_slice()).map(|cell| Entry { key: cell.key, value: cell.content, large: None }))
    }

    /// How many keys there are. Costs nothing, unless the index was opened after a cut or changed blindly: then every leaf
    /// is read, once.
    ///
    /// # Errors
    ///
    /// As [`get`](InPage::get).
    pub fn count_records(&mut self) -> Result<u64, N> {
        if let Some(records) = self.records {
            return Ok(records);
        }
        let mut count = 0;
        let mut visit = |_: Entry<'_>| {
            count += 1;
            ControlFlow::Continue(())
        };
        self.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut visit)?;
        self.records = Some(count);
        Ok(count)
    }
}

fn is_above(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Included(bound) => key >= bound,
        Bound::Excluded(bound) => key > bound,
        Bound::Unbounded => true,
    }
}

fn is_below(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Included(bound) => key <= bound,
        Bound::Excluded(bound) => key < bound,
        Bound::Unbounded => true,
    }
}

fn entry<'a>(cell: Cell<'a>) -> Entry<'a> {
    Entry { key: cell.key, value: cell.content, large: None }
}

/// Breaks at the end of the range, or if `visit` does.
fn visit_forward(
    node: Node<'_>,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for cell in node.cells().filter(|cell| is_above(cell.key, from)) {
        if !is_below(cell.key, to) {
            return ControlFlow::Break(());
        }
        visit(entry(cell))?;
    }
    ControlFlow::Continue(())
}

fn visit_backward(
    node: Node<'_>,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut at = node.size();
    while let Some(cell) = node.before(at) {
        at = cell.at;
        if !is_below(cell.key, to) {
            continue;
        }
        if !is_above(cell.key, from) {
            return ControlFlow::Break(());
        }
        visit(entry(cell))?;
    }
    ControlFlow::Continue(())
}
