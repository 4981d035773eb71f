//! Snapshots of ordered records of integers.

use core::ops::{ControlFlow, RangeBounds};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::map::{as_slice, bound, pair_of, value_of};
use crate::{Error, Fixed, Map, Snapshot};

impl<'m, N: Nand, K: Fixed<KEY>, const KEY: usize, V: Fixed<VALUE>, const VALUE: usize> Map<'m, N, K, KEY, V, VALUE> {
    /// As [`Store::snapshot`](crate::Store::snapshot).
    ///
    /// # Errors
    ///
    /// As [`Store::snapshot`](crate::Store::snapshot).
    pub fn snapshot(&mut self) -> Result<Snapshot, Error<N::Error>> {
        self.store.snapshot()
    }

    /// The value that a key had when a snapshot was taken.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`](crate::Error::NoSnapshot); as [`Store::get`](crate::Store::get).
    pub fn get_at(&mut self, snapshot: &Snapshot, key: K) -> Result<Option<V>, Error<N::Error>> {
        Ok(self.store.at(snapshot).get(&key.to_bytes())?.and_then(value_of))
    }

    /// As [`Map::range`], of what there was when a snapshot was taken.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`](crate::Error::NoSnapshot); as [`Store::range`](crate::Store::range).
    pub fn range_at(
        &mut self,
        snapshot: &Snapshot,
        range: impl RangeBounds<K>,
        mut visit: impl FnMut(K, V),
    ) -> Result<(), Error<N::Error>> {
        let (from, to) = (bound(range.start_bound()), bound(range.end_bound()));
        self.store.at(snapshot).range(as_slice(&from), as_slice(&to), Direction::Forward, |entry| {
            if let Some((key, value)) = pair_of(entry) {
                visit(key, value);
            }
            ControlFlow::Continue(())
        })
    }

    /// As [`Store::release`](crate::Store::release).
    ///
    /// # Errors
    ///
    /// As [`Store::release`](crate::Store::release).
    pub fn release(&mut self, snapshot: Snapshot) -> Result<(), Error<N::Error>> {
        self.store.release(snapshot)
    }

    /// As [`Store::snapshots`](crate::Store::snapshots).
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = Snapshot> + use<'m, N, K, KEY, V, VALUE> {
        self.store.snapshots()
    }
}
