//! A chip that is read well and does not take what is written: a bus error for every program, every erase, or both, as from a line for
//! write protection that came loose or a time limit that is too short.

use std::collections::BTreeMap;

use nandu::nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu::{Error, Store};
use nandu_sim::{Address, Chip, OperationKind, Sim, SimError};

use super::scene::{PLAIN, memory};

/// What the chip does not take.
#[derive(Clone, Copy, Debug)]
struct Deafness {
    programs: bool,
    erases: bool,
    /// Whether it does it all the same, and only does not say so.
    is_done: bool,
}

struct Deaf<'a> {
    sim: &'a mut Sim,
    how: Deafness,
    /// Programs and erases that it still takes.
    left: u32,
    is_deaf: bool,
}

impl Deaf<'_> {
    /// Whether an operation is lost, as from the first one of a kind that is lost.
    fn loses(&mut self, is_lost: bool) -> bool {
        self.is_deaf |= self.left == 0 && is_lost;
        self.left = self.left.saturating_sub(1);
        self.is_deaf && is_lost
    }

    fn lose<T>(&mut self, operation: OperationKind, address: Address) -> Result<T, SimError> {
        Err(SimError { number: self.sim.operation_count(), operation, address, kind: NandErrorKind::Bus })
    }
}

impl ErrorType for Deaf<'_> {
    type Error = SimError;
}

impl Nand for Deaf<'_> {
    fn geometry(&self) -> &Geometry {
        self.sim.geometry()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, SimError> {
        self.sim.read(page, column, buf)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), SimError> {
        let is_lost = self.loses(self.how.programs);
        if !is_lost || self.how.is_done {
            self.sim.program(page, column, data)?;
        }
        if is_lost { self.lose(OperationKind::Program, Address::Page(page)) } else { Ok(()) }
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), SimError> {
        let is_lost = self.loses(self.how.programs);
        if !is_lost || self.how.is_done {
            self.sim.program_tagged(page, data, tag)?;
        }
        if is_lost { self.lose(OperationKind::Program, Address::Page(page)) } else { Ok(()) }
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), SimError> {
        let is_lost = self.loses(self.how.erases);
        if !is_lost || self.how.is_done {
            self.sim.erase(block, mode)?;
        }
        if is_lost { self.lose(OperationKind::Erase, Address::Block(block)) } else { Ok(()) }
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, SimError> {
        self.sim.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), SimError> {
        let is_lost = self.loses(self.how.programs);
        if !is_lost || self.how.is_done {
            self.sim.mark_bad(block)?;
        }
        if is_lost { self.lose(OperationKind::MarkBad, Address::Block(block)) } else { Ok(()) }
    }
}

type Records = BTreeMap<[u8; 1], u32>;

/// The `count`-th put.
fn put<N: Nand>(store: &mut Store<'_, N>, records: &mut Records, count: u32) -> Result<(), Error<N::Error>> {
    let key = [(count * 7 % 20) as u8];
    store.put(&key, &count.to_le_bytes())?;
    records.insert(key, count);
    Ok(())
}

/// A chip on which every block was used, and what it holds.
fn used() -> (Sim, Records) {
    let mut chip = Sim::new(Chip::TINY);
    let mut bytes = memory(&chip, &PLAIN);
    let mut store = Store::format(&mut chip, PLAIN, &mut bytes).unwrap();
    let mut records = Records::new();
    for count in 0..300 {
        put(&mut store, &mut records, count).unwrap();
    }
    store.unmount().unwrap();
    (chip, records)
}

/// Opens a chip that becomes deaf after so many writes, and puts until it fails: returns the put under way, if it did.
fn work(deaf: Deaf<'_>, records: &mut Records, what: &str) -> Option<u32> {
    let mut bytes = memory(deaf.sim, &PLAIN);
    let told = |error: Error<SimError>, count| match error {
        Error::Chip(error) => {
            assert_eq!(error.kind(), NandErrorKind::Bus, "{what}");
            Some(count)
        }
        // The put before had done its work when the chip became deaf.
        Error::Poisoned => Some(count),
        error => panic!("{what}, put {count}: {error}"),
    };
    let mut store = match Store::open(deaf, PLAIN, &mut bytes) {
        Ok(store) => store,
        Err(error) => return told(error, u32::MAX),
    };
    for count in 300..360 {
        if let Err(error) = put(&mut store, records, count) {
            let again = store.put(b"again", b"");
            assert!(matches!(again, Err(Error::Poisoned)), "{what}: {again:?} after {error}");
            return told(error, count);
        }
    }
    None
}

fn try_deafness(how: Deafness, bad_max: u32) {
    let (chip, records) = used();
    let mut failed = 0;
    for left in 0..90 {
        let what = format!("{how:?} after {left} writes");
        let (mut sim, mut records) = (chip.clone(), records.clone());
        let pending = work(Deaf { sim: &mut sim, how, left, is_deaf: false }, &mut records, &what);
        failed += u32::from(pending.is_some());
        // It hears again.
        let mut bytes = memory(&sim, &PLAIN);
        let mut store = Store::open(&mut sim, PLAIN, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (key, &count) in &records {
            let found = store.get(key).unwrap().map(|value| u32::from_le_bytes(value.try_into().unwrap()));
            let is_pending = found == pending && pending.is_some_and(|count| [(count * 7 % 20) as u8] == *key);
            assert!(found == Some(count) || is_pending, "{what}: key {key:?} is {found:?} and not {count}");
        }
        for count in 400..500 {
            put(&mut store, &mut records, count).unwrap_or_else(|error| panic!("{what}, when it is over: {error}"));
        }
        assert!(store.stats().bad_blocks <= bad_max, "{what}: {} blocks are lost", store.stats().bad_blocks);
    }
    assert!(failed > 60, "{how:?}: {failed}");
}

#[test]
fn programs_that_do_not_get_through_are_an_outage_and_not_the_end_of_the_chip() {
    for is_done in [false, true] {
        try_deafness(Deafness { programs: true, erases: false, is_done }, 0);
    }
}

/// Where everything is done and nothing reported, a checkpoint may be there that calls the first block bad that could not be erased.
#[test]
fn neither_are_programs_and_erases() {
    for is_done in [false, true] {
        try_deafness(Deafness { programs: true, erases: true, is_done }, u32::from(is_done));
    }
}

/// One block may be taken for bad: whether a single one cannot be erased, nobody knows before the next one can.
#[test]
fn neither_are_erases_alone() {
    for is_done in [false, true] {
        try_deafness(Deafness { programs: false, erases: true, is_done }, 1);
    }
}
