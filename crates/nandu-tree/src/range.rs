//! Entries in order.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry, KeyBuf};

use nandu_media::tree::Malformed;

use crate::TreeError;
use crate::cells::Cells;
use crate::descent::{Place, Seek};
use crate::pages::Pages;
use crate::tree::Tree;
use crate::values::Stored;

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
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            let start = match (self.cells.leaf_find(leaf, fence.as_slice()), from) {
                (Ok(index), Bound::Excluded(_)) if is_first => index + 1,
                (Ok(index) | Err(index), _) => index,
            };
            for index in start..self.cells.leaf_count(leaf) {
                self.cells.leaf_key(leaf, index, &mut key);
                let beyond = match to {
                    Bound::Included(bound) => key.as_slice() > bound,
                    Bound::Excluded(bound) => key.as_slice() >= bound,
                    Bound::Unbounded => false,
                };
                if beyond {
                    return Ok(());
                }
                let Some(entry) = self.entry(key.as_slice(), self.cells.leaf_value(leaf, index)) else {
                    return Self::corrupt(self.child(0), Malformed::Node);
                };
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
            let before = fence;
            if self.fence_above(0, &mut fence).is_none() {
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
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            let end = match bound {
                Bound::Included(key) => match self.cells.leaf_find(leaf, key) {
                    Ok(index) => index + 1,
                    Err(index) => index,
                },
                Bound::Excluded(key) => match self.cells.leaf_find(leaf, key) {
                    Ok(index) | Err(index) => index,
                },
                Bound::Unbounded => self.cells.leaf_count(leaf),
            };
            for index in (0..end).rev() {
                self.cells.leaf_key(leaf, index, &mut key);
                let beyond = match from {
                    Bound::Included(bound) => key.as_slice() < bound,
                    Bound::Excluded(bound) => key.as_slice() <= bound,
                    Bound::Unbounded => false,
                };
                if beyond {
                    return Ok(());
                }
                let Some(entry) = self.entry(key.as_slice(), self.cells.leaf_value(leaf, index)) else {
                    return Self::corrupt(self.child(0), Malformed::Node);
                };
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
            let mut next = KeyBuf::EMPTY;
            if self.fence_below(0, &mut next).is_none() {
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

    /// The entry with the lowest key.
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        let mut minimum = KeyBuf::EMPTY;
        self.cells.minimum(&mut minimum);
        self.descend(Seek::At(minimum.as_slice()), 1)?;
        let place = self.leaf_place(true)?;
        self.lend(&place, 0)
    }

    /// The entry with the highest key.
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        self.descend(Seek::Last, 1)?;
        let place = self.leaf_place(true)?;
        let count = self.cells.leaf_count(self.bytes(&place));
        self.lend(&place, count.wrapping_sub(1))
    }

    /// An entry of a leaf, from what stands there for the key.
    fn entry<'a>(&self, key: &'a [u8], stored: &'a [u8]) -> Option<Entry<'a>> {
        Some(match self.stored(key, stored)? {
            Stored::Inline(value) => Entry { key, value, large: None },
            Stored::Large(length) => Entry { key, value: &[], large: Some(length as usize) },
        })
    }

    fn lend(&mut self, place: &Place, index: usize) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        let leaf = self.bytes(place);
        if index >= self.cells.leaf_count(leaf) {
            return Ok(None);
        }
        self.cells.leaf_key(leaf, index, &mut key);
        self.key = key;
        match self.entry(self.key.as_slice(), self.cells.leaf_value(self.bytes(place), index)) {
            Some(entry) => Ok(Some(entry)),
            None => Self::corrupt(self.child(0), Malformed::Node),
        }
    }
}
