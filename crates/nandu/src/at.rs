//! Reading a store as a snapshot keeps it.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry};
use nandu_nand::Nand;
use nandu_tree::{ByteCells, Cells, OnLog};

use crate::{Cursor, Error};

/// A store as it was when a snapshot was taken, see [`Store::at`](crate::Store::at).
///
/// Each call costs what it costs in the store itself. The first one after the store itself was used reads the snapshot's root, unless
/// it is in memory, and so does the first one in the store after this. Each says [`Error::NoSnapshot`] if the snapshot was released.
pub struct At<'s, 'm, N: Nand, C: Cells = ByteCells> {
    at: nandu_tree::At<'s, 'm, OnLog<'m, N>, C>,
}

impl<N: Nand, C: Cells> fmt::Debug for At<'_, '_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

impl<'s, 'm, N: Nand, C: Cells> At<'s, 'm, N, C> {
    pub(crate) fn new(at: nandu_tree::At<'s, 'm, OnLog<'m, N>, C>) -> Self {
        At { at }
    }

    /// As [`Store::get`](crate::Store::get).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::get`](crate::Store::get).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error<N::Error>> {
        Ok(self.at.get(key)?)
    }

    /// As [`Store::value_len`](crate::Store::value_len).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::value_len`](crate::Store::value_len).
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, Error<N::Error>> {
        Ok(self.at.value_len(key)?)
    }

    /// As [`Store::read`](crate::Store::read).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::read`](crate::Store::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        Ok(self.at.read(key, offset, out)?)
    }

    /// As [`Store::range`](crate::Store::range).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::range`](crate::Store::range).
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        Ok(self.at.range(from, to, direction, visit)?)
    }

    /// As [`Store::first`](crate::Store::first).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::first`](crate::Store::first).
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.at.nearest(Bound::Unbounded, Direction::Forward)?)
    }

    /// As [`Store::last`](crate::Store::last).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::last`](crate::Store::last).
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.at.nearest(Bound::Unbounded, Direction::Backward)?)
    }

    /// As [`Store::next`](crate::Store::next).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::next`](crate::Store::next).
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_above() else { return Ok(None) };
        let entry = self.at.nearest(bound, Direction::Forward)?;
        cursor.go_above(entry.as_ref());
        Ok(entry)
    }

    /// As [`Store::previous`](crate::Store::previous).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::previous`](crate::Store::previous).
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_below() else { return Ok(None) };
        let entry = self.at.nearest(bound, Direction::Backward)?;
        cursor.go_below(entry.as_ref());
        Ok(entry)
    }

    /// Entries that there were. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`].
    pub fn record_count(&self) -> Result<u64, Error<N::Error>> {
        Ok(self.at.record_count()?)
    }
}
