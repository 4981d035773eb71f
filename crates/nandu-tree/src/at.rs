//! Reading the tree as a snapshot keeps it.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry};

use crate::TreeError;
use crate::pages::Pages;
use crate::snapshots::Snapshot;
use crate::tree::Tree;
use nandu_cells::Cells;

/// The tree as it was when a snapshot was taken, see [`Tree::at`].
///
/// Each call costs what it costs in the tree itself. The first one after the tree itself was used reads the snapshot's
/// root, unless the cache keeps it, and so does the first one in the tree after this.
pub struct At<'t, 'm, P: Pages, C: Cells> {
    tree: &'t mut Tree<'m, P, C>,
    snapshot: Snapshot,
}

impl<P: Pages, C: Cells> fmt::Debug for At<'_, '_, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("At").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

impl<'m, P: Pages, C: Cells> Tree<'m, P, C> {
    /// The tree as it was when this snapshot was taken. Costs nothing; whether there is such a snapshot, the calls that
    /// follow say.
    pub fn at(&mut self, snapshot: &Snapshot) -> At<'_, 'm, P, C> {
        At { tree: self, snapshot: *snapshot }
    }
}

impl<P: Pages, C: Cells> At<'_, '_, P, C> {
    fn place(&self) -> Result<usize, TreeError<P::Error>> {
        let number = self.snapshot.number;
        self.tree.snapshots.place(number).ok_or(TreeError::NoSnapshot(number))
    }

    fn view(&mut self) -> Result<(), TreeError<P::Error>> {
        // What a large value's index page was read for is another value here.
        self.tree.discard_value();
        let place = self.place()?;
        self.tree.view(Some(place));
        Ok(())
    }

    /// As [`Tree::get`].
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`]; as [`Tree::get`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, TreeError<P::Error>> {
        self.view()?;
        self.tree.get(key)
    }

    /// As [`Tree::value_len`].
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`]; as [`Tree::value_len`].
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, TreeError<P::Error>> {
        self.view()?;
        self.tree.value_len(key)
    }

    /// As [`Tree::read`].
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`]; as [`Tree::read`].
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, TreeError<P::Error>> {
        self.view()?;
        self.tree.read(key, offset, out)
    }

    /// As [`Tree::range`].
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`]; as [`Tree::range`].
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError<P::Error>> {
        self.view()?;
        self.tree.range(from, to, direction, visit)
    }

    /// As [`Tree::nearest`].
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`]; as [`Tree::nearest`].
    pub fn nearest(
        &mut self,
        bound: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'_>>, TreeError<P::Error>> {
        self.view()?;
        self.tree.nearest(bound, direction)
    }

    /// Entries that there were. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`].
    pub fn record_count(&self) -> Result<u64, TreeError<P::Error>> {
        Ok(self.tree.snapshots.state(self.place()?).records)
    }
}

impl<P: Pages, C: Cells> Drop for At<'_, '_, P, C> {
    fn drop(&mut self) {
        self.tree.view(None);
    }
}
