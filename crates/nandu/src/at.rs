//! Reading a store as a snapshot keeps it.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry};
use nandu_nand::Nand;
use nandu_tree::{ByteCells, Cells, Cursor, EngineError};

use crate::Error;

/// A state of a store that is kept, see [`Store::snapshot`](crate::Store::snapshot). A small value: it says which snapshot is meant, and is good for as long as that one is not released, over mounts
/// and power cuts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    number: u32,
}

impl Snapshot {
    pub(super) fn new(number: u32) -> Snapshot {
        Snapshot { number }
    }

    /// Names the snapshot; no two at a time have the same, and later ones have higher ones.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// A store as it was when a snapshot was taken, see [`Store::at`](crate::Store::at).
///
/// A call costs what it costs in the store, and a search more for the record of each snapshot from this one on. Each says [`Error::NoSnapshot`] if the snapshot was released.
pub struct At<'s, 'm, N: Nand, C = ByteCells> {
    at: nandu_tree::At<'s, 'm, N, C>,
}

impl<N: Nand, C> fmt::Debug for At<'_, '_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

impl<'s, 'm, N: Nand, C: Cells> At<'s, 'm, N, C> {
    pub(super) fn new(at: nandu_tree::At<'s, 'm, N, C>) -> Self {
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
        match self.at.get(key) {
            Ok(value) => Ok(value.map(<[u8]>::len)),
            Err(EngineError::LargeValue(size)) => Ok(Some(size)),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Store::read`](crate::Store::read).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::read`](crate::Store::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        let size = self.at.read(key, offset, out)?;
        Ok(size.map(|size| size.saturating_sub(offset).min(out.len())))
    }

    /// As [`Store::range`](crate::Store::range). Reads each leaf concerned, of what is now and of what was kept, and one again after an entry of the other.
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
        self.next(&mut Cursor::default())
    }

    /// As [`Store::last`](crate::Store::last).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::last`](crate::Store::last).
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let mut cursor = Cursor::END;
        self.previous(&mut cursor)
    }

    /// As [`Store::next`](crate::Store::next).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::next`](crate::Store::next).
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.at.next(cursor)?)
    }

    /// As [`Store::previous`](crate::Store::previous).
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::previous`](crate::Store::previous).
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.at.previous(cursor)?)
    }

    /// Entries that there were. Reads what a get does.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; those of [`Store::get`](crate::Store::get).
    pub fn record_count(&mut self) -> Result<u64, Error<N::Error>> {
        Ok(self.at.record_count()?)
    }
}
