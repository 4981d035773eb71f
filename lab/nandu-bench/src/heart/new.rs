//! The new heart, as far as it is built: `nandu::next`.

use std::ops::{Bound, ControlFlow};

use nandu::next::{Snapshot, Store};
use nandu::{Direction, Edit, Error, FixedCells, Options};
use nandu_sim::Sim;

use super::{Cells, Outcome, Records, SnapshotIndex, Stats, Visit};
use crate::BenchError;

/// Whether [`format`] and [`open`] make something.
pub(super) const HAS_RECORDS: bool = true;

/// Whether a store has snapshots.
pub(super) const HAS_SNAPSHOTS: bool = true;

pub(super) fn memory_required(chip: &Sim, _: Cells, options: &Options) -> usize {
    Store::<&mut Sim>::memory_required(&chip.chip().geometry, options)
}

pub(super) fn format<'m>(
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

pub(super) fn open<'m>(
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
        let blocks = self.nand().chip().geometry.block_count;
        let (_, most, all) = stats.erase_counts;
        Stats {
            live_pages: stats.live_pages,
            capacity_pages: stats.capacity_pages,
            instalment_max: 0,
            erase_count_mean: (all / u64::from(blocks)) as u32,
            erase_count_max: most,
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
