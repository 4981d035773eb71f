//! Stores of records, with either kind of cells behind one face.

use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Edit, Error, FixedCells, Options, Snapshot, Store};
use nandu_sim::{Sim, SimError};

use crate::BenchError;

/// How records lie in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Byte strings of any length.
    Bytes,
    /// Keys and values of 4 bytes.
    Fixed,
}

/// What a store returns.
pub type Outcome<T> = Result<T, Error<SimError>>;

/// Takes a key, and its value if that is no larger than an entry.
pub type Visit<'v> = dyn FnMut(&[u8], Option<&[u8]>) + 'v;

/// A snapshot by its place among those that there are, the oldest first, from 0.
pub type SnapshotIndex = usize;

/// What a store says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages that live.
    pub live_pages: u32,
    /// Pages that may live.
    pub capacity_pages: u32,
    /// Erases of a block in the mean.
    pub erase_count_mean: u32,
    /// Erases of the most worn block.
    pub erase_count_max: u32,
}

/// A store of records on a simulated chip that somebody else has.
pub trait Records {
    /// Puts a record; says whether its key was there.
    ///
    /// # Errors
    ///
    /// Those of `nandu::Store`, here and below.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool>;
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>>;
    /// Copies the value of a key, however large, into `out` as far as that goes, and returns how many bytes that are.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn read(&mut self, key: &[u8], out: &mut [u8]) -> Outcome<Option<usize>>;
    /// Deletes a record; says whether its key was there.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn delete(&mut self, key: &[u8]) -> Outcome<bool>;
    /// Changes that happen together.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn batch(&mut self, edits: &[Edit<'_>]) -> Outcome<()>;
    /// Puts many records with rising keys into an empty store or behind what is there.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn load(&mut self, records: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Outcome<()>;
    /// Hands out keys and values of all records, in the order of their keys; of a value that is larger than an entry nothing.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn visit(&mut self, visit: &mut Visit<'_>) -> Outcome<()>;
    /// Makes every change durable.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn sync(&mut self) -> Outcome<()>;
    /// Brings every change to its place.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn merge(&mut self) -> Outcome<()>;
    /// Does background work of up to so many pages; says whether there is more.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn idle(&mut self, pages: u32) -> Outcome<bool>;
    /// Keeps the records as they are.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn snapshot(&mut self) -> Outcome<()>;
    /// The value of a key in a snapshot, of whatever size.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn value_at(&mut self, snapshot: SnapshotIndex, key: &[u8]) -> Outcome<Option<Vec<u8>>>;
    /// Visits all keys of a snapshot as [`visit`](Records::visit) does.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn visit_at(&mut self, snapshot: SnapshotIndex, visit: &mut Visit<'_>) -> Outcome<()>;
    /// The numbers of the snapshots that there are, which ascend.
    fn snapshots(&self) -> Vec<u32>;
    /// Gives up one of the snapshots.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn release(&mut self, snapshot: SnapshotIndex) -> Outcome<()>;
    /// Counts what is not as it has to be in the whole volume.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn verify(&mut self) -> Outcome<u64>;
    /// Longest key.
    fn key_size_max(&self) -> usize;
    /// Most bytes of a key and a value that lie in a leaf.
    fn entry_size_max(&self) -> usize;
    /// What the store says of itself.
    fn stats(&self) -> Stats;
    /// The chip.
    fn nand(&self) -> &Sim;
    /// The chip, to be cut.
    fn nand_mut(&mut self) -> &mut Sim;
    /// Makes everything durable and lets go of the chip. Whoever drops the store instead leaves the chip as it is.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn unmount(self: Box<Self>) -> Outcome<()>;
}

/// Bytes of memory that a store with these options takes on a chip.
pub fn memory_required(chip: &Sim, options: &Options) -> usize {
    Store::<&mut Sim>::memory_required(&chip.chip().geometry, options)
}

/// Makes an empty store on a chip.
///
/// # Errors
///
/// What the store says.
pub fn format<'m>(
    chip: &'m mut Sim,
    cells: Cells,
    options: Options,
    memory: &'m mut [u8],
) -> Result<Box<dyn Records + 'm>, BenchError> {
    Ok(match cells {
        Cells::Bytes => Box::new(Store::format(chip, options, memory)?),
        Cells::Fixed => Box::new(Store::format_with(chip, FixedCells::<4, 4>, options, memory)?),
    })
}

/// Opens the store on a chip.
///
/// # Errors
///
/// As [`format()`].
pub fn open<'m>(
    chip: &'m mut Sim,
    cells: Cells,
    options: Options,
    memory: &'m mut [u8],
) -> Result<Box<dyn Records + 'm>, BenchError> {
    Ok(match cells {
        Cells::Bytes => Box::new(Store::open(chip, options, memory)?),
        Cells::Fixed => Box::new(Store::open_with(chip, FixedCells::<4, 4>, options, memory)?),
    })
}

/// The snapshot of an index, of those that there are now.
fn of_index<C: nandu::Cells>(store: &Store<'_, &mut Sim, C>, index: SnapshotIndex) -> Outcome<Snapshot> {
    Store::snapshots(store).nth(index).ok_or(Error::NoSnapshot(index as u32))
}

impl<C: nandu::Cells> Records for Store<'_, &mut Sim, C> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool> {
        Store::put(self, key, value)
    }

    fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>> {
        Store::get(self, key)
    }

    fn read(&mut self, key: &[u8], out: &mut [u8]) -> Outcome<Option<usize>> {
        Store::read(self, key, 0, out)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<bool> {
        Store::delete(self, key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Outcome<()> {
        Store::batch(self, edits)
    }

    fn load(&mut self, records: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Outcome<()> {
        Store::load(self, records).map(drop)
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Outcome<()> {
        self.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            visit(entry.key, entry.large.is_none().then_some(entry.value));
            ControlFlow::Continue(())
        })
    }

    fn sync(&mut self) -> Outcome<()> {
        Store::sync(self)
    }

    fn merge(&mut self) -> Outcome<()> {
        Store::merge(self)
    }

    fn idle(&mut self, pages: u32) -> Outcome<bool> {
        Store::idle(self, pages)
    }

    fn snapshot(&mut self) -> Outcome<()> {
        Store::snapshot(self).map(drop)
    }

    fn value_at(&mut self, snapshot: SnapshotIndex, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let snapshot = of_index(self, snapshot)?;
        let mut at = self.at(&snapshot);
        let Some(size) = at.value_len(key)? else { return Ok(None) };
        let mut value = vec![0; size];
        at.read(key, 0, &mut value)?;
        Ok(Some(value))
    }

    fn visit_at(&mut self, snapshot: SnapshotIndex, visit: &mut Visit<'_>) -> Outcome<()> {
        let snapshot = of_index(self, snapshot)?;
        self.at(&snapshot).range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            visit(entry.key, entry.large.is_none().then_some(entry.value));
            ControlFlow::Continue(())
        })
    }

    fn snapshots(&self) -> Vec<u32> {
        Store::snapshots(self).map(|snapshot| snapshot.number()).collect()
    }

    fn release(&mut self, snapshot: SnapshotIndex) -> Outcome<()> {
        let snapshot = of_index(self, snapshot)?;
        Store::release(self, snapshot)
    }

    fn verify(&mut self) -> Outcome<u64> {
        Store::verify(self, &mut |_| {})
    }

    fn key_size_max(&self) -> usize {
        Store::key_size_max(self)
    }

    fn entry_size_max(&self) -> usize {
        Store::entry_size_max(self)
    }

    fn stats(&self) -> Stats {
        let stats = Store::stats(self);
        Stats {
            live_pages: stats.live_pages,
            capacity_pages: stats.capacity_pages,
            erase_count_mean: stats.erase_count_mean(),
            erase_count_max: stats.erase_count_max,
        }
    }

    fn nand(&self) -> &Sim {
        Store::<&mut Sim, C>::nand(self)
    }

    fn nand_mut(&mut self) -> &mut Sim {
        Store::<&mut Sim, C>::nand_mut(self)
    }

    fn unmount(self: Box<Self>) -> Outcome<()> {
        Store::unmount(*self).map(drop)
    }
}
