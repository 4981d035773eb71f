//! Stores, as liveness asks of them.

use nandu::{Error, Options};
use nandu_bench::BenchError;
use nandu_bench::records::{self, Cells, Outcome, Records};
use nandu_sim::{Sim, SimError};
use nandu_suite::liveness::{Asked, Kind, Refusal, Served};

/// Pages that a piece of idle time looks at.
const PIECE: u32 = 64;

/// Stores of byte strings with these options.
pub(super) struct Stores(pub(super) Options);

/// One of them that is open.
struct Opened<'m>(Box<dyn Records + 'm>);

fn refusal(error: Error<SimError>) -> Refusal {
    match error {
        Error::Full | Error::TooHigh => Refusal::Full,
        Error::ReadOnly => Refusal::ReadOnly,
        error => Refusal::Failed(error.to_string()),
    }
}

impl Kind for Stores {
    fn memory_size(&self, chip: &Sim) -> usize {
        records::memory_required(chip, &self.0)
    }

    fn held_max(&self, _: &Sim, _: u64) -> u64 {
        // The leaf of an empty store, which a fresh one does not have.
        1
    }

    fn format<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        open_with(records::format(chip, Cells::Bytes, self.0, memory))
    }

    fn open<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        open_with(records::open(chip, Cells::Bytes, self.0, memory))
    }
}

fn open_with<'m>(store: Result<Box<dyn Records + 'm>, BenchError>) -> Asked<Box<dyn Served + 'm>> {
    match store {
        Ok(store) => Ok(Box::new(Opened(store))),
        Err(BenchError::Store(error)) => Err(refusal(error)),
        Err(error) => Err(Refusal::Failed(error.to_string())),
    }
}

/// What an outcome is to who asks.
fn asked<T>(outcome: Outcome<T>) -> Asked<T> {
    outcome.map_err(refusal)
}

impl Served for Opened<'_> {
    fn chip(&self) -> &Sim {
        self.0.nand()
    }

    fn let_go(&mut self) -> Asked<()> {
        (0..self.0.snapshots().len()).try_for_each(|_| asked(self.0.release(0)))
    }

    fn put(&mut self, number: u32) -> Asked<()> {
        let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        let value = vec![7; self.0.entry_size_max() - key.len()];
        asked(self.0.put(&key, &value)).map(drop)
    }

    fn names(&mut self) -> Asked<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        asked(self.0.visit(&mut |key, _| keys.push(key.to_vec())))?;
        Ok(keys)
    }

    fn delete(&mut self, name: &[u8]) -> Asked<()> {
        asked(self.0.delete(name)).map(drop)
    }

    fn sync(&mut self) -> Asked<()> {
        asked(self.0.sync())
    }

    fn merge(&mut self) -> Asked<()> {
        asked(self.0.merge())
    }

    fn idle(&mut self) -> Asked<bool> {
        asked(self.0.idle(PIECE))
    }

    fn room(&mut self) -> Asked<u64> {
        let stats = self.0.stats();
        Ok(stats.capacity_pages.saturating_sub(stats.live_pages).into())
    }

    fn violations(&mut self) -> Asked<u64> {
        asked(self.0.verify())
    }

    fn unmount(self: Box<Self>) -> Asked<()> {
        asked(self.0.unmount())
    }
}
