//! Entries in order.

use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry, KeyBuf};

use nandu_media::tree::Malformed;

use crate::TreeError;
use crate::descent::Seek;
use crate::pages::Pages;
use crate::tree::Tree;
use crate::values::Stored;
use nandu_cells::Cells;

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
        self.visit_range(from, to, direction == Direction::Forward, &mut visit)
    }

    fn visit_range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        is_forward: bool,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError<P::Error>> {
        let mut fence;
        let mut key = KeyBuf::EMPTY;
        self.cells.minimum(&mut key);
        // Where the walk goes on, and where it ends.
        let (mut bound, end) = if is_forward { (from, to) } else { (to, from) };
        // Each leaf is a page of its own, so there are no more of them than pages.
        for _ in 0..self.page_count {
            let seek = match bound {
                Bound::Included(key) => Seek::At(key),
                Bound::Excluded(key) if is_forward => Seek::At(key),
                Bound::Excluded(key) => Seek::Before(key),
                Bound::Unbounded if is_forward => Seek::At(key.as_slice()),
                Bound::Unbounded => Seek::Last,
            };
            self.descend(seek, 1)?;
            self.prove_path()?;
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            let cut = |find: &dyn Fn(&[u8]) -> Result<usize, usize>, count| match bound {
                Bound::Included(key) => find(key).map_or_else(|at| at, |at| at + usize::from(!is_forward)),
                Bound::Excluded(key) => find(key).map_or_else(|at| at, |at| at + usize::from(is_forward)),
                Bound::Unbounded if is_forward => 0,
                Bound::Unbounded => count,
            };
            let leaf_cut = cut(&|key| self.cells.leaf_find(leaf, key), self.cells.leaf_count(leaf));
            let change_cut = cut(&|key| self.changes.find(key), self.changes.len());
            let (entries, changes) = (self.unspent(leaf), self.path_changes());
            let mut merged = match is_forward {
                true => Merged { leaf: (leaf_cut.max(entries.start), entries.end), changes: (change_cut, changes.end) },
                false => {
                    Merged { leaf: (entries.start, leaf_cut.min(entries.end)), changes: (changes.start, change_cut) }
                }
            };
            while let Some(source) = self.next_merged(leaf, &mut merged, &mut key, is_forward) {
                if is_past(key.as_slice(), end, is_forward) {
                    return Ok(());
                }
                // Who goes on behind the key found last relies on finding none before it, or goes in circles.
                if is_past(key.as_slice(), bound, !is_forward) {
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
            // The key is now where the next leaf is.
            let found = if is_forward { self.fence_above(0, &mut key) } else { self.fence_below(0, &mut key) };
            if found.is_none() {
                return Ok(());
            }
            // What ends with this leaf is not looked for in the next one.
            let is_last = match end {
                Bound::Included(last) | Bound::Excluded(last) if !is_forward => key.as_slice() <= last,
                end => is_past(key.as_slice(), end, is_forward),
            };
            if is_last {
                return Ok(());
            }
            // Separators that do not ascend would lead in circles.
            let is_on = match bound {
                Bound::Included(first) | Bound::Excluded(first) if is_forward => key.as_slice() > first,
                bound => !is_past(key.as_slice(), bound, true),
            };
            if !is_on {
                return Self::corrupt(self.path[1].page, Malformed::Node);
            }
            fence = key;
            bound = if is_forward { Bound::Included(fence.as_slice()) } else { Bound::Excluded(fence.as_slice()) };
        }
        Ok(())
    }

    /// The next of a leaf's entries and its changes, with its key: the first, or backwards the last.
    pub(crate) fn next_merged(
        &self,
        leaf: &[u8],
        merged: &mut Merged,
        key: &mut KeyBuf,
        is_forward: bool,
    ) -> Option<Source> {
        let at = |(first, end): (usize, usize)| (first < end).then(|| if is_forward { first } else { end - 1 });
        let (entry, change) = (at(merged.leaf), at(merged.changes));
        if let Some(entry) = entry {
            self.cells.leaf_key(leaf, entry, key);
        }
        let order = match (entry, change) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), Some(change)) if is_forward => key.as_slice().cmp(self.changes.key(change)),
            (Some(_), Some(change)) => self.changes.key(change).cmp(key.as_slice()),
        };
        let pass = |(first, end): &mut (usize, usize)| if is_forward { *first += 1 } else { *end -= 1 };
        if order.is_le() {
            pass(&mut merged.leaf);
        }
        if order.is_lt() {
            return entry.map(Source::Leaf);
        }
        pass(&mut merged.changes);
        let change = change?;
        key.set(self.changes.key(change));
        Some(Source::Change(change))
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
        self.keys[1] = key;
        if let Some(index) = self.find_change(key.as_slice())? {
            let stored = self.changes.stored(index);
            return Ok(stored.and_then(|stored| self.entry(self.keys[1].as_slice(), stored)));
        }
        self.descend(Seek::At(key.as_slice()), 1)?;
        let place = self.leaf_place(true)?;
        let leaf = self.bytes(&place);
        let Ok(index) = self.cells.leaf_find(leaf, key.as_slice()) else { return Ok(None) };
        match self.entry(self.keys[1].as_slice(), self.cells.leaf_value(leaf, index)) {
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

/// Whether a walk in this direction has gone past a bound with a key.
fn is_past(key: &[u8], bound: Bound<&[u8]>, is_forward: bool) -> bool {
    let order = |bound: &[u8]| if is_forward { key.cmp(bound) } else { bound.cmp(key) };
    match bound {
        Bound::Included(bound) => order(bound).is_gt(),
        Bound::Excluded(bound) => order(bound).is_ge(),
        Bound::Unbounded => false,
    }
}
