//! When a campaign is over the store serves again; and what does not is noticed.

use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Durability, Error, Options, Store};
use nandu_sim::{Chip, Sim, SimError};
use nandu_suite::liveness::{self, Asked, Kind, Refusal, Served};

/// Pages that a piece of idle time looks at.
const PIECE: u32 = 64;

/// Stores with these options.
pub(crate) struct Stores {
    options: Options,
    /// Whether snapshots stay, which is as if their pages were forgotten.
    keeps: bool,
}

struct Opened<'m> {
    store: Store<'m, &'m mut Sim>,
    keeps: bool,
}

/// The stores with these options.
pub(crate) const fn stores(options: Options) -> Stores {
    Stores { options, keeps: false }
}

/// The campaign is over, and the store has to serve again.
pub(crate) fn serves_again(options: Options, chip: &mut Sim, place: &str) {
    if let Err(what) = liveness::serves_again(&stores(options), chip) {
        panic!("{place}: {what}");
    }
}

/// One in some copies of a chip that was cut has to serve again.
pub(crate) fn serves_again_sometimes(options: Options, chip: &Sim) {
    if let Err(what) = liveness::serves_again_sometimes(&stores(options), chip) {
        panic!("{what}");
    }
}

fn asked<T>(outcome: Result<T, Error<SimError>>) -> Asked<T> {
    outcome.map_err(|error| match error {
        Error::Full | Error::TooHigh => Refusal::Full,
        Error::ReadOnly => Refusal::ReadOnly,
        error => Refusal::Failed(error.to_string()),
    })
}

impl Kind for Stores {
    fn memory_size(&self, chip: &Sim) -> usize {
        Store::<&mut Sim>::memory_required(&chip.chip().geometry, &self.options)
    }

    fn held_max(&self, _: &Sim, _: u64) -> u64 {
        // The leaf of an empty store, which a fresh one does not have.
        1
    }

    fn format<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        let store = asked(Store::format(chip, self.options, memory))?;
        Ok(Box::new(Opened { store, keeps: self.keeps }))
    }

    fn open<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        let store = asked(Store::open(chip, self.options, memory))?;
        Ok(Box::new(Opened { store, keeps: self.keeps }))
    }
}

impl Served for Opened<'_> {
    fn chip(&self) -> &Sim {
        self.store.nand()
    }

    fn let_go(&mut self) -> Asked<()> {
        let snapshots: Vec<_> = self.store.snapshots().filter(|_| !self.keeps).collect();
        snapshots.into_iter().try_for_each(|snapshot| asked(self.store.release(snapshot)))
    }

    fn put(&mut self, number: u32) -> Asked<()> {
        let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        let value = vec![7; self.store.entry_size_max() - key.len()];
        asked(self.store.put(&key, &value)).map(drop)
    }

    fn names(&mut self) -> Asked<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        asked(self.store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            keys.push(entry.key.to_vec());
            ControlFlow::Continue(())
        }))?;
        Ok(keys)
    }

    fn delete(&mut self, name: &[u8]) -> Asked<()> {
        asked(self.store.delete(name)).map(drop)
    }

    fn sync(&mut self) -> Asked<()> {
        asked(self.store.sync())
    }

    fn merge(&mut self) -> Asked<()> {
        asked(self.store.merge())
    }

    fn idle(&mut self) -> Asked<bool> {
        asked(self.store.idle(PIECE))
    }

    fn room(&mut self) -> Asked<u64> {
        let stats = self.store.stats();
        Ok(stats.capacity_pages.saturating_sub(stats.live_pages).into())
    }

    fn violations(&mut self) -> Asked<u64> {
        asked(self.store.verify(&mut |_| {}))
    }

    fn unmount(self: Box<Self>) -> Asked<()> {
        asked(self.store.unmount()).map(drop)
    }
}

/// A chip with some records, and a snapshot that keeps what they were.
fn with_a_snapshot(options: Options) -> Sim {
    let chip = Chip::TINY.with_blocks(40);
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    let put = |store: &mut Store<'_, Sim>, byte| {
        for number in 0..60_u32 {
            store.put(&number.to_be_bytes(), &[byte; 20]).unwrap();
        }
    };
    put(&mut store, 1);
    store.snapshot().unwrap();
    put(&mut store, 2);
    store.unmount().unwrap()
}

/// Where pages do not come back the room is missed, and where they do nothing is.
#[test]
fn pages_that_do_not_come_back_are_missed() {
    let on_sync = Options { durability: Durability::OnSync, pending_size: 400, ..Options::DEFAULT };
    for options in [Options { cache_size: 512, ..Options::DEFAULT }, Options { cache_size: 512, ..on_sync }] {
        let chip = with_a_snapshot(options);
        serves_again(options, &mut chip.clone(), "the snapshot is released");
        let found = liveness::serves_again(&Stores { options, keeps: true }, &mut chip.clone()).unwrap_err();
        assert!(found.contains("came back"), "{found}");
    }
}
