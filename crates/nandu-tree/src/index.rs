//! The tree as an ordered index.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};

use crate::TreeError;
use crate::pages::Pages;
use crate::tree::Tree;
use nandu_cells::Cells;

impl<P: Pages, C: Cells> OrderedIndex for Tree<'_, P, C> {
    type Error = TreeError<P::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error> {
        Tree::get(self, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        Tree::put(self, key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        Tree::delete(self, key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error> {
        Tree::batch(self, edits)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        Tree::range(self, from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Tree::first(self)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Tree::last(self)
    }

    fn count(&mut self) -> Result<u64, Self::Error> {
        Ok(self.record_count())
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Tree::sync(self)
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Self::Error> {
        Tree::verify(self, report)
    }
}
