//! Ordered records of integers.

use core::fmt;
use core::ops::{Bound, ControlFlow, RangeBounds};

use nandu_index::{Direction, Entry};
use nandu_nand::{Geometry, Nand};
use nandu_tree::FixedCells;

use crate::{Cursor, Error, Fixed, LogStats, Options, Store, Violation};

/// Ordered records of integers by integers, packed: a key takes the bits in which it differs from its neighbours.
///
/// `KEY` and `VALUE` are the sizes of both in bytes, 4 or 8:
///
/// ```
/// use nandu::{Map, Options};
/// use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let chip = Sim::new(Chip::W25N01GV);
/// let options = Options::default();
/// let mut memory = vec![0; Map::<Sim, u64, 8, u32, 4>::memory_required(&chip.chip().geometry, &options)];
/// let mut map: Map<_, u64, 8, u32, 4> = Map::format(chip, options, &mut memory)?;
/// for second in 0..100 {
///     map.put(1_700_000_000 + second, second as u32 * 10)?;
/// }
/// assert_eq!(map.get(1_700_000_042)?, Some(420));
/// let mut sum = 0;
/// map.range(1_700_000_000..1_700_000_010, |_, value| sum += value)?;
/// assert_eq!(sum, 450);
/// # Ok(())
/// # }
/// ```
pub struct Map<'m, N: Nand, K: Fixed<KEY>, const KEY: usize, V: Fixed<VALUE>, const VALUE: usize> {
    store: Store<'m, N, FixedCells<KEY, VALUE>>,
    of: core::marker::PhantomData<(K, V)>,
}

impl<N: Nand, K: Fixed<KEY>, const KEY: usize, V: Fixed<VALUE>, const VALUE: usize> fmt::Debug
    for Map<'_, N, K, KEY, V, VALUE>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("store", &self.store).finish()
    }
}

impl<'m, N: Nand, K: Fixed<KEY>, const KEY: usize, V: Fixed<VALUE>, const VALUE: usize> Map<'m, N, K, KEY, V, VALUE> {
    /// Bytes of memory that [`format`](Map::format) and [`open`](Map::open) take, exactly.
    pub const fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        Store::<N>::memory_required(geometry, options)
    }

    /// As [`Store::format`].
    ///
    /// # Errors
    ///
    /// As [`Store::format`].
    pub fn format(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        let store = Store::format_with(nand, FixedCells, options, memory)?;
        Ok(Map { store, of: core::marker::PhantomData })
    }

    /// As [`Store::open`].
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        let store = Store::open_with(nand, FixedCells, options, memory)?;
        Ok(Map { store, of: core::marker::PhantomData })
    }

    /// As [`Store::get`].
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    pub fn get(&mut self, key: K) -> Result<Option<V>, Error<N::Error>> {
        Ok(self.store.get(&key.to_bytes())?.and_then(value_of))
    }

    /// As [`Store::put`].
    ///
    /// # Errors
    ///
    /// As [`Store::put`].
    pub fn put(&mut self, key: K, value: V) -> Result<bool, Error<N::Error>> {
        self.store.put(&key.to_bytes(), &value.to_bytes())
    }

    /// As [`Store::delete`].
    ///
    /// # Errors
    ///
    /// As [`Store::delete`].
    pub fn delete(&mut self, key: K) -> Result<bool, Error<N::Error>> {
        self.store.delete(&key.to_bytes())
    }

    /// As [`Store::load`].
    ///
    /// # Errors
    ///
    /// As [`Store::load`].
    pub fn load(&mut self, entries: impl IntoIterator<Item = (K, V)>) -> Result<u64, Error<N::Error>> {
        self.store.load(entries.into_iter().map(|(key, value)| (key.to_bytes(), value.to_bytes())))
    }

    /// Visits the entries of a range of keys in rising order. Reads each leaf concerned once.
    ///
    /// # Errors
    ///
    /// As [`Store::range`].
    pub fn range(&mut self, range: impl RangeBounds<K>, mut visit: impl FnMut(K, V)) -> Result<(), Error<N::Error>> {
        let from = bound(range.start_bound());
        let to = bound(range.end_bound());
        self.store.range(as_slice(&from), as_slice(&to), Direction::Forward, |entry| {
            if let Some((key, value)) = pair_of(entry) {
                visit(key, value);
            }
            ControlFlow::Continue(())
        })
    }

    /// As [`Store::sync`].
    ///
    /// # Errors
    ///
    /// As [`Store::sync`].
    pub fn sync(&mut self) -> Result<(), Error<N::Error>> {
        self.store.sync()
    }

    /// As [`Store::merge`].
    ///
    /// # Errors
    ///
    /// As [`Store::merge`].
    pub fn merge(&mut self) -> Result<(), Error<N::Error>> {
        self.store.merge()
    }

    /// As [`Store::pending_count`].
    pub fn pending_count(&self) -> usize {
        self.store.pending_count()
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    ///
    /// As [`Store::first`].
    pub fn first(&mut self) -> Result<Option<(K, V)>, Error<N::Error>> {
        Ok(self.store.first()?.and_then(pair_of))
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    ///
    /// As [`Store::last`].
    pub fn last(&mut self) -> Result<Option<(K, V)>, Error<N::Error>> {
        Ok(self.store.last()?.and_then(pair_of))
    }

    /// A cursor right below a key, whether the key is there or not. [`Cursor::START`] and [`Cursor::END`] serve every map.
    pub fn below(key: K) -> Cursor {
        Cursor::below(&key.to_bytes())
    }

    /// A cursor right above a key, whether the key is there or not.
    pub fn above(key: K) -> Cursor {
        Cursor::above(&key.to_bytes())
    }

    /// As [`Store::next`].
    ///
    /// # Errors
    ///
    /// As [`Store::next`].
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<(K, V)>, Error<N::Error>> {
        Ok(self.store.next(cursor)?.and_then(pair_of))
    }

    /// As [`Store::previous`].
    ///
    /// # Errors
    ///
    /// As [`Store::previous`].
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<(K, V)>, Error<N::Error>> {
        Ok(self.store.previous(cursor)?.and_then(pair_of))
    }

    /// Entries in the map. Costs nothing.
    pub fn record_count(&self) -> u64 {
        self.store.record_count()
    }

    /// As [`Store::idle`].
    ///
    /// # Errors
    ///
    /// As [`Store::idle`].
    pub fn idle(&mut self, pages: u32) -> Result<bool, Error<N::Error>> {
        self.store.idle(pages)
    }

    /// As [`Store::verify`].
    ///
    /// # Errors
    ///
    /// As [`Store::verify`].
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u64, Error<N::Error>> {
        self.store.verify(report)
    }

    /// As [`Store::digest`], over the bytes of keys and values, their high byte first.
    ///
    /// # Errors
    ///
    /// As [`Store::digest`].
    pub fn digest(&mut self) -> Result<u64, Error<N::Error>> {
        self.store.digest()
    }

    /// As [`Store::stats`].
    pub fn stats(&self) -> LogStats {
        self.store.stats()
    }

    /// The chip, for looking at it.
    pub fn nand(&self) -> &N {
        self.store.nand()
    }

    /// As [`Store::nand_mut`].
    pub fn nand_mut(&mut self) -> &mut N {
        self.store.nand_mut()
    }

    /// As [`Store::unmount`].
    ///
    /// # Errors
    ///
    /// As [`Store::unmount`].
    pub fn unmount(self) -> Result<N, Error<N::Error>> {
        self.store.unmount()
    }

    /// As [`Store::abandon`].
    pub fn abandon(self) -> N {
        self.store.abandon()
    }
}

fn bound<K: Fixed<KEY>, const KEY: usize>(bound: Bound<&K>) -> Bound<[u8; KEY]> {
    bound.map(|key| key.to_bytes())
}

fn as_slice<const KEY: usize>(bound: &Bound<[u8; KEY]>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

fn value_of<V: Fixed<VALUE>, const VALUE: usize>(bytes: &[u8]) -> Option<V> {
    bytes.try_into().ok().map(V::from_bytes)
}

/// The cells hold entries of these sizes only, so there is always one.
fn pair_of<K: Fixed<KEY>, const KEY: usize, V: Fixed<VALUE>, const VALUE: usize>(entry: Entry<'_>) -> Option<(K, V)> {
    Some((value_of(entry.key)?, value_of(entry.value)?))
}
