//! Entries in order.

use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry, KeyBuf};

use nandu_media::tree::Malformed;

use crate::TreeError;
use crate::cells::Cells;
use crate::descent::Seek;
use crate::pages::Pages;
use crate::tree::Tree;
use crate::values::Stored;

/// Entries of a leaf and changes of it that are still to be visited: the first and the one behind the last of each.
pub(crate) struct Merged {
    pub(crate) leaf: (usize, usize),
    pub(crate) changes: (usize, usize),
}

/// Where an entry is.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Leaf(usize),
    Change(usize),
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Visits the entries between two bounds in order, until `visit` breaks off. Reads each leaf concerned once, and
    /// each inner node above them once.
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError<P::Error>> {
        for bound in [from, to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_key(key)?;
            }
        }
        match direction {
            Direction::Forward => self.forward(from, to, &mut visit),
            Direction::Backward => self.backward(from, to, &mut visit),
        }
    }

    fn forward(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError<P::Error>> {
        let mut fence = KeyBuf::EMPTY;
        let mut key = KeyBuf::EMPTY;
        self.cells.minimum(&mut fence);
        if let Bound::Included(bound) | Bound::Excluded(bound) = from {
            fence.set(bound);
        }
        let mut is_first = true;
        // Each leaf is a page of its own, so there are no more of them than pages.
        for _ in 0..self.page_count {
            self.descend(Seek::At(fence.as_slice()), 1)?;
            self.prove_path()?;
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            let skips = |found: Result<usize, usize>| match (found, from) {
                (Ok(index), Bound::Excluded(_)) if is_first => index + 1,
                (Ok(index) | Err(index), _) => index,
            };
            let entries = self.unspent(leaf);
            let first = skips(self.cells.leaf_find(leaf, fence.as_slice()));
            let mut merged = Merged {
                leaf: (first.max(entries.start), entries.end),
                changes: (skips(self.changes.find(fence.as_slice())), self.path_changes().end),
            };
            while let Some(source) = self.next_merged(leaf, &mut merged, &mut key) {
                let beyond = match to {
                    Bound::Included(bound) => key.as_slice() > bound,
                    Bound::Excluded(bound) => key.as_slice() >= bound,
                    Bound::Unbounded => false,
                };
                if beyond {
                    return Ok(());
                }
                // Who goes on behind the key found last relies on finding none below it, or goes in circles.
                let is_behind = match from {
                    Bound::Excluded(bound) if is_first => key.as_slice() > bound,
                    _ => key.as_slice() >= fence.as_slice(),
                };
                if !is_behind {
                    return Self::corrupt(self.child(0), Malformed::Node);
                }
                let entry = match self.entry_of(key.as_slice(), leaf, source) {
                    Some(Some(entry)) => entry,
                    Some(None) => continue,
                    None => return Self::corrupt(self.child(0), Malformed::Node),
                };
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
            let before = fence;
            if self.fence_above(0, &mut fence).is_none() {
                return Ok(());
            }
            // What ends with this leaf is not looked for in the next one.
            let is_last = match to {
                Bound::Included(bound) => fence.as_slice() > bound,
                Bound::Excluded(bound) => fence.as_slice() >= bound,
                Bound::Unbounded => false,
            };
            if is_last {
                return Ok(());
            }
            self.check_progress(fence.as_slice() > before.as_slice())?;
            is_first = false;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError<P::Error>> {
        let mut fence;
        let mut key = KeyBuf::EMPTY;
        let mut bound = to;
        for _ in 0..self.page_count {
            let seek = match bound {
                Bound::Included(key) => Seek::At(key),
                Bound::Excluded(key) => Seek::Before(key),
                Bound::Unbounded => Seek::Last,
            };
            self.descend(seek, 1)?;
            self.prove_path()?;
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            let end = |find: &dyn Fn(&[u8]) -> Result<usize, usize>, count| match bound {
                Bound::Included(key) => find(key).map_or_else(|index| index, |index| index + 1),
                Bound::Excluded(key) => find(key).unwrap_or_else(|index| index),
                Bound::Unbounded => count,
            };
            let leaf_end = end(&|key| self.cells.leaf_find(leaf, key), self.cells.leaf_count(leaf));
            let changes_end = end(&|key| self.changes.find(key), self.changes.len());
            let entries = self.unspent(leaf);
            let start = self.path_changes().start;
            let mut merged = Merged { leaf: (entries.start, leaf_end.min(entries.end)), changes: (start, changes_end) };
            while let Some(source) = self.next_merged_back(leaf, &mut merged, &mut key) {
                let beyond = match from {
                    Bound::Included(bound) => key.as_slice() < bound,
                    Bound::Excluded(bound) => key.as_slice() <= bound,
                    Bound::Unbounded => false,
                };
                if beyond {
                    return Ok(());
                }
                let is_before = match bound {
                    Bound::Included(bound) => key.as_slice() <= bound,
                    Bound::Excluded(bound) => key.as_slice() < bound,
                    Bound::Unbounded => true,
                };
                if !is_before {
                    return Self::corrupt(self.child(0), Malformed::Node);
                }
                let entry = match self.entry_of(key.as_slice(), leaf, source) {
                    Some(Some(entry)) => entry,
                    Some(None) => continue,
                    None => return Self::corrupt(self.child(0), Malformed::Node),
                };
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
            let mut next = KeyBuf::EMPTY;
            if self.fence_below(0, &mut next).is_none() {
                return Ok(());
            }
            let is_last = match from {
                Bound::Included(bound) | Bound::Excluded(bound) => next.as_slice() <= bound,
                Bound::Unbounded => false,
            };
            if is_last {
                return Ok(());
            }
            let is_below = match bound {
                Bound::Included(key) => next.as_slice() <= key,
                Bound::Excluded(key) => next.as_slice() < key,
                Bound::Unbounded => true,
            };
            self.check_progress(is_below)?;
            fence = next;
            bound = Bound::Excluded(fence.as_slice());
        }
        Ok(())
    }

    /// Separators that do not ascend would lead in circles.
    fn check_progress(&self, is_on: bool) -> Result<(), TreeError<P::Error>> {
        if is_on { Ok(()) } else { Self::corrupt(self.path[1].page, Malformed::Node) }
    }

    /// The next of a leaf's entries and its changes, with its key.
    pub(crate) fn next_merged(&self, leaf: &[u8], merged: &mut Merged, key: &mut KeyBuf) -> Option<Source> {
        let has_entry = merged.leaf.0 < merged.leaf.1;
        let has_change = merged.changes.0 < merged.changes.1;
        if has_entry {
            self.cells.leaf_key(leaf, merged.leaf.0, key);
        }
        let order = match (has_entry, has_change) {
            (false, false) => return None,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => key.as_slice().cmp(self.changes.key(merged.changes.0)),
        };
        merged.leaf.0 += usize::from(order.is_le());
        if order.is_lt() {
            return Some(Source::Leaf(merged.leaf.0 - 1));
        }
        merged.changes.0 += 1;
        key.set(self.changes.key(merged.changes.0 - 1));
        Some(Source::Change(merged.changes.0 - 1))
    }

    /// The last of a leaf's entries and its changes, with its key.
    fn next_merged_back(&self, leaf: &[u8], merged: &mut Merged, key: &mut KeyBuf) -> Option<Source> {
        let has_entry = merged.leaf.0 < merged.leaf.1;
        let has_change = merged.changes.0 < merged.changes.1;
        if has_entry {
            self.cells.leaf_key(leaf, merged.leaf.1 - 1, key);
        }
        let order = match (has_entry, has_change) {
            (false, false) => return None,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) => key.as_slice().cmp(self.changes.key(merged.changes.1 - 1)),
        };
        merged.leaf.1 -= usize::from(order.is_ge());
        if order.is_gt() {
            return Some(Source::Leaf(merged.leaf.1));
        }
        merged.changes.1 -= 1;
        key.set(self.changes.key(merged.changes.1));
        Some(Source::Change(merged.changes.1))
    }

    /// An entry; in it, none if it is deleted. `None` if the leaf is unsound.
    fn entry_of<'a>(&'a self, key: &'a [u8], leaf: &'a [u8], source: Source) -> Option<Option<Entry<'a>>> {
        match source {
            Source::Leaf(index) => self.entry(key, self.cells.leaf_value(leaf, index)).map(Some),
            Source::Change(index) => {
                let Some(stored) = self.changes.stored(index) else { return Some(None) };
                self.entry(key, stored).map(Some)
            }
        }
    }

    /// The entry that a range from this bound on begins with: upwards the lowest key above the bound, downwards the highest one below it.
    /// Reads what [`Tree::get`] does, and a leaf more where the bound is the last key of one.
    pub fn nearest(
        &mut self,
        bound: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        let (from, to) = match direction {
            Direction::Forward => (bound, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, bound),
        };
        let mut found = None;
        self.range(from, to, direction, |entry| {
            found = KeyBuf::new(entry.key);
            ControlFlow::Break(())
        })?;
        let Some(key) = found else { return Ok(None) };
        self.key = key;
        if let Some(index) = self.find_change(key.as_slice())? {
            let stored = self.changes.stored(index);
            return Ok(stored.and_then(|stored| self.entry(self.key.as_slice(), stored)));
        }
        self.descend(Seek::At(key.as_slice()), 1)?;
        let place = self.leaf_place(true)?;
        let leaf = self.bytes(&place);
        let Ok(index) = self.cells.leaf_find(leaf, key.as_slice()) else { return Ok(None) };
        match self.entry(self.key.as_slice(), self.cells.leaf_value(leaf, index)) {
            Some(entry) => Ok(Some(entry)),
            None => Self::corrupt(self.child(0), Malformed::Node),
        }
    }

    /// The entry with the lowest key.
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        self.nearest(Bound::Unbounded, Direction::Forward)
    }

    /// The entry with the highest key.
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        self.nearest(Bound::Unbounded, Direction::Backward)
    }

    /// An entry of a leaf, from what stands there for the key.
    fn entry<'a>(&self, key: &'a [u8], stored: &'a [u8]) -> Option<Entry<'a>> {
        Some(match self.stored(key, stored)? {
            Stored::Inline(value) => Entry { key, value, large: None },
            Stored::Large(length) => Entry { key, value: &[], large: Some(length as usize) },
            Stored::Page => Entry { key, value: &[], large: Some(self.assembly.len()) },
        })
    }
}
