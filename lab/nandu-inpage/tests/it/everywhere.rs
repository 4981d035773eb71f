//! Faults that are no power cut, at every operation of a mount, of some changes and of an orderly end: F4 and F6 to F17 of
//! `docs/fault-model.md`, in both layouts.
//!
//! `NANDU_FAULT_SEEDS` sets how many workloads are tried of each kind; one is the short form.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nandu_inpage::{Error, InPage, LogPages, LogRead, Options};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::{Chip, Fault, Observer, Operation, OperationKind, Sim, SimError, Tear, Trigger};

use crate::rig::{GRR, IPL, PAGES, SECTORS, in_pages, memory, with_two_pages};

const KEYS: u32 = 60;

/// A structure, and how it is used.
#[derive(Clone, Copy, Debug)]
struct Setup {
    name: &'static str,
    chip: Chip,
    options: Options,
    is_blind: bool,
}

fn setups() -> [Setup; 8] {
    let product = Options { log_pages: LogPages::Adaptive(2), log_read: LogRead::Smart, ..in_pages(GRR) };
    let setup = |name, chip: Chip, options| Setup { name, chip: chip.with_blocks(20), options, is_blind: false };
    [
        setup("grr", SECTORS, GRR),
        setup("grr in whole pages", PAGES, in_pages(GRR)),
        setup("ipl", SECTORS, IPL),
        Setup { is_blind: true, ..setup("product", PAGES, product) },
        setup("grr with a journal", SECTORS, Options { journal_blocks: 2, ..GRR }),
        setup("ipl in whole pages with a journal", PAGES, Options { journal_blocks: 1, ..in_pages(IPL) }),
        setup("grr with nodes of two pages", SECTORS, with_two_pages(GRR)),
        setup("grr in whole pages with nodes of two", PAGES, in_pages(with_two_pages(GRR))),
    ]
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// What each key may hold: what it held at the last sync, or what was asked of it since.
#[derive(Clone, Default)]
struct Promise {
    synced: BTreeMap<u32, u32>,
    since: BTreeMap<u32, Vec<Option<u32>>>,
    /// Changes begun, over all runs.
    count: u32,
    /// Whether an opening said that something was torn, though the power was never cut.
    is_warned: bool,
}

impl Promise {
    fn sync(&mut self) {
        for (key, values) in std::mem::take(&mut self.since) {
            match values.last().copied().flatten() {
                Some(value) => self.synced.insert(key, value),
                None => self.synced.remove(&key),
            };
        }
    }

    /// The newest value.
    fn now(&self, key: u32) -> Option<u32> {
        self.since.get(&key).and_then(|values| values.last().copied()).unwrap_or(self.synced.get(&key).copied())
    }

    fn allows(&self, key: u32, found: Option<u32>) -> bool {
        found == self.synced.get(&key).copied() || self.since.get(&key).is_some_and(|values| values.contains(&found))
    }
}

/// Opens the index, changes it, and leaves it in order or not. What is read on the way has to be right.
fn work(sim: &mut Sim, setup: Setup, seed: u32, changes: u32, promise: &mut Promise) -> Result<(), Error<SimError>> {
    let mut bytes = memory(sim.chip(), &setup.options);
    let mut index = InPage::open(&mut *sim, setup.options, &mut bytes)?;
    promise.is_warned |= index.stats().torn > 0;
    for _ in 0..changes {
        let count = promise.count;
        promise.count += 1;
        let draw = |salt| mixed(count, salt + 16 * seed);
        let key = draw(1) % KEYS;
        match draw(2) % 6 {
            0 => {
                promise.since.entry(key).or_default().push(None);
                index.delete(&key.to_be_bytes())?;
            }
            1 if setup.is_blind => {
                promise.since.entry(key).or_default().push(Some(count));
                index.put_blind(&key.to_be_bytes(), &count.to_be_bytes())?;
            }
            _ => {
                promise.since.entry(key).or_default().push(Some(count));
                index.put(&key.to_be_bytes(), &count.to_be_bytes())?;
            }
        }
        let other = draw(3) % KEYS;
        let found = index.get(&other.to_be_bytes())?.map(|value| u32::from_be_bytes(value.try_into().unwrap()));
        assert!(
            found == promise.now(other) || promise.is_warned,
            "{}: key {other} is {found:?} after change {count}",
            setup.name
        );
        if draw(4).is_multiple_of(5) {
            index.sync()?;
            promise.sync();
        }
    }
    index.sync()?;
    promise.sync();
    if seed.is_multiple_of(2) {
        index.unmount()?;
    }
    Ok(())
}

/// A chip whose blocks were merged many times.
fn used(setup: Setup, seed: u32) -> (Sim, Promise) {
    let mut bytes = memory(&setup.chip, &setup.options);
    let index = InPage::format(Sim::new(setup.chip), setup.options, &mut bytes).unwrap();
    let mut sim = index.unmount().unwrap();
    let mut promise = Promise::default();
    for _ in 0..3 {
        work(&mut sim, setup, seed, 100, &mut promise).unwrap();
    }
    (sim, promise)
}

/// How a run with a fault may end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Demand {
    /// Every operation succeeds, and everything is there.
    Survives,
    /// A call may fail with an error, again and again. No value is ever wrong, unless an opening said that something was torn: what
    /// decays right after it was programmed, and before an orderly end, cannot be told from that.
    NeverWrong,
}

/// Every key holds what it may hold, or reading it is an error.
fn check(sim: &mut Sim, setup: Setup, promise: &mut Promise, demand: Demand, what: &str) {
    let mut bytes = memory(sim.chip(), &setup.options);
    let mut index = match InPage::open(sim, setup.options, &mut bytes) {
        Ok(index) => index,
        Err(error) => {
            assert!(demand == Demand::NeverWrong && error != Error::NotFormatted, "{what}: {error}");
            return;
        }
    };
    promise.is_warned |= index.stats().torn > 0;
    for key in 0..KEYS {
        match index.get(&key.to_be_bytes()) {
            Ok(found) => {
                let found = found.map(|value| u32::from_be_bytes(value.try_into().unwrap()));
                let is_right = promise.allows(key, found) || (promise.is_warned && demand == Demand::NeverWrong);
                assert!(is_right, "{what}: key {key} is {found:?}, not {:?}", promise.now(key));
            }
            Err(error) => assert!(demand == Demand::NeverWrong, "{what}: key {key}: {error}"),
        }
    }
    if demand != Demand::NeverWrong {
        let (size, blocks) = (index.size(), setup.chip.geometry.block_count);
        let counted = size.blocks_used + size.blocks_free + size.blocks_bad + size.blocks_journal;
        assert!(counted < blocks && counted + 3 >= blocks, "{what}: {size:?}, and up to three blocks of anchors");
        index.verify(&mut |violation| panic!("{what}: {violation}")).unwrap();
    }
}

fn seed_count() -> u32 {
    std::env::var("NANDU_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Notes the kind of each operation.
#[derive(Clone, Default)]
struct Kinds(Arc<Mutex<Vec<OperationKind>>>);

impl Observer for Kinds {
    fn operation(&mut self, operation: &Operation, _data: &[u8]) {
        self.0.lock().unwrap().push(operation.kind);
    }
}

/// The fault at every operation of a mount and some changes to which it can happen.
fn try_everywhere(fault: Fault, is_read_back: bool, demand: Demand) {
    for (setup, seed) in setups().into_iter().flat_map(|setup| (0..2 * seed_count()).map(move |seed| (setup, seed))) {
        let setup = Setup { options: Options { read_back: is_read_back, ..setup.options }, ..setup };
        let (chip, promise) = used(setup, seed);
        let first = chip.operation_count();
        let kinds = {
            let (mut sim, kinds) = (chip.clone(), Kinds::default());
            sim.set_observer(Some(Box::new(kinds.clone())));
            work(&mut sim, setup, seed, 16, &mut promise.clone()).unwrap();
            assert!(sim.counters().erases > chip.counters().erases, "{}: nothing is merged", setup.name);
            kinds.0.lock().unwrap().clone()
        };
        let count = kinds.len();
        let mut failed = 0;
        for (operation, _) in (0..).zip(kinds).filter(|&(_, kind)| fault.fits(kind)) {
            let what = format!("{fault:?} at operation {operation} of {}, seed {seed}", setup.name);
            let (mut sim, mut promise) = (chip.clone(), promise.clone());
            sim.inject(fault, Trigger::Operation(first + operation));
            let result = work(&mut sim, setup, seed, 16, &mut promise);
            sim.withdraw_all();
            if let Err(error) = &result {
                assert!(demand != Demand::Survives, "{what}: {error}");
                failed += 1;
            }
            check(&mut sim, setup, &mut promise, demand, &what);
            assert!(demand == Demand::NeverWrong || !promise.is_warned, "{what}: something was torn");
        }
        println!("{fault:?}, {}, seed {seed}: {count} operations, {failed} runs failed with an error", setup.name);
    }
}

#[test]
fn bits_that_flip_within_what_can_be_corrected_cost_nothing() {
    for fault in [Fault::BitFlips(1), Fault::ReadDisturb(1), Fault::ErasedZeros(1), Fault::PartialDisturb(1)] {
        try_everywhere(fault, false, Demand::Survives);
    }
}

#[test]
fn a_program_or_an_erase_that_fails_anywhere_is_survived() {
    try_everywhere(Fault::ProgramFails, false, Demand::Survives);
    try_everywhere(Fault::EraseFails, false, Demand::Survives);
}

#[test]
fn an_operation_whose_outcome_nobody_knows_is_survived() {
    for tear in [Tear::Before, Tear::SomeBits, Tear::Complete] {
        try_everywhere(Fault::Bus(tear), false, Demand::Survives);
    }
}

#[test]
fn a_program_or_an_erase_that_never_happened_is_survived_where_it_is_read_back() {
    try_everywhere(Fault::NothingHappens, true, Demand::Survives);
}

#[test]
fn a_read_that_brings_what_was_read_before_is_never_taken_for_data_and_loses_nothing() {
    try_everywhere(Fault::Stale, false, Demand::Survives);
}

#[test]
fn what_cannot_be_read_or_went_elsewhere_is_never_taken_for_data() {
    try_everywhere(Fault::Uncorrectable, false, Demand::NeverWrong);
    try_everywhere(Fault::Misdirected(None), true, Demand::NeverWrong);
    try_everywhere(Fault::PartialDisturb(3), false, Demand::NeverWrong);
}

/// F12 and F13: marks that are wrong from the factory on, or become wrong.
#[test]
fn blocks_that_are_bad_or_look_so_are_left_alone() {
    for setup in setups() {
        for bad in 0..setup.chip.geometry.block_count {
            let mut sim = Sim::new(setup.chip);
            sim.mark_factory_bad(BlockAddr(bad));
            let mut bytes = memory(sim.chip(), &setup.options);
            sim = InPage::format(sim, setup.options, &mut bytes).unwrap().unmount().unwrap();
            let mut promise = Promise::default();
            work(&mut sim, setup, 1, 100, &mut promise).unwrap();
            // What was good looks bad from here on.
            sim.invert_mark(BlockAddr((bad + 3) % setup.chip.geometry.block_count));
            work(&mut sim, setup, 0, 100, &mut promise).unwrap();
            check(&mut sim, setup, &mut promise, Demand::Survives, "marks");
        }
    }
}

/// A mark that reads wrongly, or not at all, at each operation of a format.
#[test]
fn a_format_survives_marks_that_cannot_be_read_or_are_read_wrongly() {
    for setup in setups() {
        for fault in
            [Fault::MarkInverted, Fault::Bus(Tear::Before), Fault::Stale, Fault::ProgramFails, Fault::EraseFails]
        {
            for nth in 0..60 {
                let mut sim = Sim::new(setup.chip);
                sim.inject(fault, Trigger::Nth(nth));
                let mut bytes = memory(sim.chip(), &setup.options);
                sim = InPage::format(sim, setup.options, &mut bytes).unwrap().unmount().unwrap();
                let mut promise = Promise::default();
                work(&mut sim, setup, 1, 60, &mut promise).unwrap();
                check(&mut sim, setup, &mut promise, Demand::Survives, &format!("{fault:?} at {nth} of a format"));
            }
        }
    }
}

/// F22: the image of a chip on one whose bad blocks are others.
#[test]
fn an_image_on_a_chip_with_other_bad_blocks_loses_what_stood_there_and_says_so() {
    for setup in setups() {
        let (chip, promise) = used(setup, 0);
        let mut bytes = memory(chip.chip(), &setup.options);
        let mut harmless = 0;
        for bad in 0..setup.chip.geometry.block_count {
            let what = format!("{}, block {bad} is bad on the other chip", setup.name);
            let mut target = Sim::new(setup.chip);
            target.mark_factory_bad(BlockAddr(bad));
            let (mut moved, mut promise) = (chip.transplant(target), promise.clone());
            check(&mut moved, setup, &mut promise, Demand::NeverWrong, &what);
            assert!(!promise.is_warned, "{what}: it was left in order");
            let Ok(mut index) = InPage::open(&mut moved, setup.options, &mut bytes) else { continue };
            if (0..KEYS).any(|key| index.get(&key.to_be_bytes()).is_err()) {
                continue;
            }
            // Nothing needed stood there: the index goes on, and leaves the block alone.
            harmless += 1;
            work(&mut moved, setup, 0, 100, &mut promise).unwrap();
            check(&mut moved, setup, &mut promise, Demand::Survives, &what);
        }
        assert!(harmless > 4, "{}: {harmless}", setup.name);
    }
}

/// F6: what needs so much correction that it will soon need more is merged into another block.
#[test]
fn pages_that_lose_bits_are_moved_in_time() {
    for setup in setups() {
        let (mut sim, promise) = used(setup, 0);
        let flips = setup.chip.geometry.ecc.correctable_bits;
        for page in 0..setup.chip.geometry.page_count() {
            sim.inject(Fault::BitFlips(flips), Trigger::Page(PageAddr(page)));
        }
        let mut bytes = memory(sim.chip(), &setup.options);
        InPage::open(&mut sim, setup.options, &mut bytes).unwrap();
        sim.withdraw_all();
        let mut index = InPage::open(&mut sim, setup.options, &mut bytes).unwrap();
        let read_all = |index: &mut InPage<'_, &mut Sim>| {
            for key in 0..KEYS {
                let found = index.get(&key.to_be_bytes()).unwrap();
                assert_eq!(found.map(|value| u32::from_be_bytes(value.try_into().unwrap())), promise.now(key));
            }
            index.stats().refreshes
        };
        let first = read_all(&mut index);
        assert!(first > 0, "{}: nothing was moved", setup.name);
        // Each read finds one block, so it takes a few rounds, and no more.
        let rounds: Vec<u64> = (0..6).map(|_| read_all(&mut index)).collect();
        assert_eq!(rounds[4], rounds[5], "{}: what was moved is sound, {first} {rounds:?}", setup.name);
    }
}

/// Several faults of all kinds in one life, by chance.
#[test]
fn faults_by_chance_are_survived() {
    let faults = [
        (Fault::BitFlips(1), 0.002),
        (Fault::ProgramFails, 0.0004),
        (Fault::EraseFails, 0.001),
        (Fault::Bus(Tear::Complete), 0.002),
        (Fault::Bus(Tear::SomeBits), 0.0005),
        (Fault::Stale, 0.001),
    ];
    for setup in setups() {
        let setup = Setup { chip: setup.chip.with_blocks(60), ..setup };
        for seed in 0..8 * seed_count() {
            let mut bytes = memory(&setup.chip, &setup.options);
            let sim = Sim::with_seed(setup.chip, u64::from(seed));
            let mut sim = InPage::format(sim, setup.options, &mut bytes).unwrap().unmount().unwrap();
            for (fault, probability) in faults {
                sim.inject(fault, Trigger::Probability(probability));
            }
            let mut promise = Promise::default();
            for round in 0..10 {
                let result = work(&mut sim, setup, seed, 60, &mut promise);
                assert!(result.is_ok(), "{}, seed {seed}, round {round}: {result:?}", setup.name);
            }
            sim.withdraw_all();
            check(&mut sim, setup, &mut promise, Demand::Survives, &format!("{}, seed {seed}", setup.name));
        }
    }
}

/// Blocks die one after the other until nothing can be written: what was synced stays readable, and the error is clear.
#[test]
fn a_chip_that_dies_block_by_block_keeps_what_was_synced() {
    for setup in setups() {
        for seed in 0..4 * seed_count() {
            let mut bytes = memory(&setup.chip, &setup.options);
            let sim = Sim::with_seed(setup.chip, u64::from(seed));
            let mut sim = InPage::format(sim, setup.options, &mut bytes).unwrap().unmount().unwrap();
            sim.inject(Fault::EraseFails, Trigger::Probability(0.03));
            sim.inject(Fault::ProgramFails, Trigger::Probability(0.004));
            let mut promise = Promise::default();
            let error = (0..200).find_map(|_| work(&mut sim, setup, seed, 40, &mut promise).err());
            assert!(matches!(error, Some(Error::Full | Error::ReadOnly)), "{}, seed {seed}: {error:?}", setup.name);
            sim.withdraw_all();
            for _ in 0..2 {
                check(&mut sim, setup, &mut promise, Demand::Survives, &format!("{}, seed {seed}", setup.name));
            }
        }
    }
}
