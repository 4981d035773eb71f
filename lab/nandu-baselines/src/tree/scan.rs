//! Walking over the records in order.

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::PageAddr;

use crate::BaselineError;
use crate::entry::{child_index, decode, entry_at};
use crate::pages::{Pages, Result};
use crate::tree::Tree;

/// A leaf's records and the keys that belong in it: from the first bound, up to and without the second.
struct Stretch {
    records: Vec<(u32, u32)>,
    from: u32,
    to: Option<u32>,
}

impl<P: Pages> Tree<P> {
    /// Visits the records between two bounds in order, until `visit` breaks off. Reads as many pages as there are levels
    /// for each leaf, less what is in memory.
    pub(crate) fn range(
        &mut self,
        from: Bound<u32>,
        to: Bound<u32>,
        direction: Direction,
        visit: &mut dyn FnMut(u32, u32) -> ControlFlow<()>,
    ) -> Result<(), P::Chip> {
        let low = match from {
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => key.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let high = match to {
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => key.checked_sub(1),
            Bound::Unbounded => Some(u32::MAX),
        };
        let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
        if low > high {
            return Ok(());
        }
        let mut next = match direction {
            Direction::Forward => Some(low),
            Direction::Backward => Some(high),
        };
        while let Some(key) = next.filter(|key| (low..=high).contains(key)) {
            let mut stretch = self.stretch(key)?;
            if direction == Direction::Backward {
                stretch.records.reverse();
            }
            for &(key, value) in &stretch.records {
                if (low..=high).contains(&key) && visit(key, value).is_break() {
                    return Ok(());
                }
            }
            next = match direction {
                // Bounds ascend from leaf to leaf, or a damaged tree could be walked for ever.
                Direction::Forward => stretch.to.filter(|&to| to > key),
                Direction::Backward => stretch.from.checked_sub(1).filter(|&to| to < key),
            };
        }
        Ok(())
    }

    /// The first or the last record.
    pub(crate) fn end(&mut self, direction: Direction) -> Result<Option<(u32, u32)>, P::Chip> {
        let mut found = None;
        self.range(Bound::Unbounded, Bound::Unbounded, direction, &mut |key, value| {
            found = Some((key, value));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The leaf of a key.
    fn stretch(&mut self, key: u32) -> Result<Stretch, P::Chip> {
        self.pages.begin();
        let mut stretch = Stretch { records: Vec::new(), from: 0, to: None };
        let Some(mut page) = self.root.page else { return Ok(stretch) };
        let height = self.root.height;
        for level in (2..=height).rev() {
            let node = self.pages.node(page, level, height)?;
            let count = node.bytes.len() / crate::entry::ENTRY_SIZE;
            if count == 0 {
                return Err(BaselineError::Corrupt { page, why: "an index node is empty" });
            }
            let index = child_index(node.bytes, key);
            // The first child of a node takes every key below the others', so it has its parent's bound.
            if index > 0 {
                stretch.from = stretch.from.max(entry_at(node.bytes, index).key);
            }
            if index + 1 < count {
                let bound = entry_at(node.bytes, index + 1).key;
                stretch.to = Some(stretch.to.map_or(bound, |to| to.min(bound)));
            }
            page = PageAddr(entry_at(node.bytes, index).value);
        }
        let leaf = self.pages.node(page, 1, height)?;
        stretch.records = decode(leaf.bytes).map(|entry| (entry.key, entry.value)).collect();
        Ok(stretch)
    }
}
