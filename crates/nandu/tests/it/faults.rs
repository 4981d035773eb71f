//! Faults that are no power cut, at every operation: F4 and F6 to F17 of the table in `DESIGN.md`, on stores with small values
//! and on stores whose values have value pages and index pages.
//!
//! `NANDU_FAULT_SEEDS` sets how many workloads are tried of each kind; one is the short form.

use std::collections::BTreeMap;

use nandu::nand::{BlockAddr, Cause, Nand, NandError, NandErrorKind};
use nandu::{Edit, LogError, LogOptions, Options, Store, TreeError};
use nandu_sim::{Chip, Fault, Sim, SimError, Tear, Trigger};

use crate::values::{Records, check_sound, pattern, read_all, records};

type Error = nandu::Error<SimError>;

const PLAIN: Options = Options { cache_size: 512, ..Options::DEFAULT };
const CAREFUL: Options = Options { log: LogOptions { read_back: true, ..LogOptions::DEFAULT }, ..PLAIN };

fn memory(chip: &Sim, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, options)]
}

/// What is put.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Small values and batches of them.
    Small,
    /// Values of some value pages each, beside small ones.
    Pages,
    /// Values with index pages.
    Index,
}

impl Load {
    const ALL: [Load; 3] = [Load::Small, Load::Pages, Load::Index];

    fn chip(self) -> Chip {
        match self {
            Load::Small => Chip::TINY,
            Load::Pages | Load::Index => Chip::TINY.with_blocks(32),
        }
    }

    fn value_size(self, draw: u32) -> usize {
        match (self, draw % 4) {
            (Load::Small, _) => draw as usize % 24,
            (_, 0) => draw as usize % 40,
            (Load::Pages, _) => draw as usize % (4 * 199) + 60,
            (Load::Index, _) => draw as usize % (4 * 199) + 4 * 199,
        }
    }

    fn keys(self) -> u32 {
        if self == Load::Small { 20 } else { 5 }
    }
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// What was acknowledged, and the change that was under way.
#[derive(Clone, Default)]
struct Promise {
    records: Records,
    pending: Option<Records>,
    /// Changes begun, over all runs.
    count: u32,
}

/// Opens the store and changes it; half of the runs end with an unmount. What is read on the way has to be right.
fn work(
    chip: &mut Sim,
    options: Options,
    load: Load,
    seed: u32,
    changes: u32,
    promise: &mut Promise,
) -> Result<(), Error> {
    let mut bytes = memory(chip, &options);
    let mut store = Store::open(&mut *chip, options, &mut bytes)?;
    for _ in 0..changes {
        let count = promise.count;
        promise.count += 1;
        let draw = |salt| mixed(count, salt + 16 * seed);
        let key = |salt| format!("{}", draw(salt) % load.keys()).into_bytes();
        let value = pattern(load.value_size(draw(7)), count);
        let mut after = promise.records.clone();
        match draw(3) % 8 {
            0 | 1 => {
                after.remove(&key(1));
                promise.pending = Some(after);
                store.delete(&key(1))?;
            }
            2 => {
                let small = value[..value.len().min(20)].to_vec();
                let changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
                    [(key(1), Some(small.clone())), (key(2), None), (key(5), Some(small))].into();
                for (key, value) in &changed {
                    match value {
                        Some(value) => after.insert(key.clone(), value.clone()),
                        None => after.remove(key),
                    };
                }
                promise.pending = Some(after);
                let edits: Vec<Edit<'_>> =
                    changed.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                store.batch(&edits)?;
            }
            _ => {
                after.insert(key(1), value.clone());
                promise.pending = Some(after);
                store.put(&key(1), &value)?;
            }
        }
        promise.records = promise.pending.take().unwrap_or_default();
        if count.is_multiple_of(5) {
            assert_eq!(read_all(&mut store, &key(4))?, promise.records.get(&key(4)).cloned());
        }
        if count.is_multiple_of(7) {
            store.idle(8)?;
        }
    }
    if seed.is_multiple_of(2) {
        store.unmount()?;
    }
    Ok(())
}

/// A chip on which every block was used, so that what follows collects garbage.
fn used(options: Options, load: Load, seed: u32) -> (Sim, Promise) {
    let mut chip = Sim::new(load.chip());
    let mut bytes = memory(&chip, &options);
    chip = Store::format(chip, options, &mut bytes).unwrap().unmount().unwrap();
    let mut promise = Promise::default();
    for _ in 0..3 {
        work(&mut chip, options, load, seed, 80, &mut promise).unwrap();
    }
    (chip, promise)
}

/// How a run with a fault may end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Demand {
    /// Every operation succeeds, and everything is there.
    Survives,
    /// A call may fail with an error. Opened again without the fault, the store holds everything.
    Heals,
    /// A call may fail with an error, again and again. No value is ever wrong, and none is missing without an error.
    NeverWrong,
}

/// Every record is what it was before the change under way or what it is after it, or reading it is an error.
fn check_nothing_wrong(chip: &mut Sim, options: Options, promise: &Promise, keys: u32, what: &str) -> u32 {
    let mut bytes = memory(chip, &options);
    let mut store = match Store::open(chip, options, &mut bytes) {
        Ok(store) => store,
        Err(error) => {
            assert!(!matches!(error, TreeError::Pages(LogError::NotFormatted)), "{what}: {error}");
            return keys;
        }
    };
    let mut errors = 0;
    for number in 0..keys {
        let key = format!("{number}").into_bytes();
        match read_all(&mut store, &key) {
            Ok(found) => {
                let is_before = promise.records.get(&key) == found.as_ref();
                let is_after = promise.pending.as_ref().is_some_and(|after| after.get(&key) == found.as_ref());
                assert!(is_before || is_after, "{what}: key {number} is wrong");
            }
            Err(_) => errors += 1,
        }
    }
    errors
}

fn check_all_there(chip: &mut Sim, options: Options, promise: &Promise, what: &str) {
    let mut bytes = memory(chip, &options);
    let mut store = match Store::open(chip, options, &mut bytes) {
        Ok(store) => store,
        Err(error) => panic!("{what}: {error}"),
    };
    let found = records(&mut store).unwrap();
    assert!(found == promise.records || promise.pending.as_ref() == Some(&found), "{what}: neither before nor after");
    check_sound(&mut store);
}

/// The fault at every operation of a mount and some changes.
fn try_everywhere(fault: Fault, options: Options, demand: Demand) {
    let seeds = std::env::var("NANDU_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    for (load, seed) in Load::ALL.into_iter().flat_map(|load| (0..seeds).map(move |seed| (load, seed))) {
        let (chip, promise) = used(options, load, seed);
        let changes = 16;
        let count = {
            let mut sim = chip.clone();
            work(&mut sim, options, load, seed, changes, &mut promise.clone()).unwrap();
            assert!(sim.ledger().of(Cause::Gc).programs > chip.ledger().of(Cause::Gc).programs, "nothing is collected");
            assert!(load == Load::Small || sim.ledger().of(Cause::Value).programs > 0);
            sim.operation_count() - chip.operation_count()
        };
        let mut failed = 0;
        for operation in 0..count {
            let what = format!("{fault:?} at operation {operation}, {load:?}, seed {seed}");
            let mut sim = chip.clone();
            let mut promise = promise.clone();
            sim.inject(fault, Trigger::Operation(chip.operation_count() + operation));
            let result = work(&mut sim, options, load, seed, changes, &mut promise);
            sim.withdraw_all();
            if let Err(error) = &result {
                assert!(demand != Demand::Survives, "{what}: {error}");
                failed += 1;
            }
            match demand {
                Demand::Survives | Demand::Heals => check_all_there(&mut sim, options, &promise, &what),
                Demand::NeverWrong => drop(check_nothing_wrong(&mut sim, options, &promise, load.keys(), &what)),
            }
        }
        println!("{fault:?}, {load:?}: {count} operations, {failed} runs failed with an error");
    }
}

#[test]
fn bits_that_flip_within_what_can_be_corrected_cost_nothing() {
    try_everywhere(Fault::BitFlips(4), PLAIN, Demand::Survives);
    try_everywhere(Fault::ReadDisturb(4), PLAIN, Demand::Survives);
    try_everywhere(Fault::ErasedZeros(3), PLAIN, Demand::Survives);
}

#[test]
fn a_program_or_an_erase_that_fails_anywhere_is_survived() {
    try_everywhere(Fault::ProgramFails, PLAIN, Demand::Survives);
    try_everywhere(Fault::EraseFails, PLAIN, Demand::Survives);
}

#[test]
fn an_operation_whose_outcome_nobody_knows_is_survived() {
    for tear in [Tear::Before, Tear::SomeBits, Tear::Complete] {
        try_everywhere(Fault::Bus(tear), PLAIN, Demand::Survives);
    }
}

#[test]
fn a_program_or_an_erase_that_never_happened_is_survived_where_it_is_read_back() {
    try_everywhere(Fault::NothingHappens, CAREFUL, Demand::Survives);
}

#[test]
fn a_read_that_brings_what_was_read_before_is_never_taken_for_data_and_loses_nothing() {
    try_everywhere(Fault::Stale, PLAIN, Demand::Heals);
}

#[test]
fn what_cannot_be_read_or_went_elsewhere_is_never_taken_for_data() {
    try_everywhere(Fault::Uncorrectable, PLAIN, Demand::NeverWrong);
    try_everywhere(Fault::Misdirected(None), CAREFUL, Demand::NeverWrong);
}

/// F12 and F13: marks that are wrong from the factory on, or become wrong.
#[test]
fn blocks_that_are_bad_or_look_so_are_left_alone() {
    for load in [Load::Small, Load::Index] {
        for bad in 0..load.chip().geometry.block_count {
            let mut chip = Sim::new(load.chip());
            chip.mark_factory_bad(BlockAddr(bad));
            let mut bytes = memory(&chip, &PLAIN);
            chip = Store::format(chip, PLAIN, &mut bytes).unwrap().unmount().unwrap();
            let mut promise = Promise::default();
            work(&mut chip, PLAIN, load, 1, 60, &mut promise).unwrap();
            // What was good looks bad from here on: it is asked for, and never again written.
            chip.invert_mark(BlockAddr((bad + 3) % load.chip().geometry.block_count));
            let result = work(&mut chip, PLAIN, load, 0, 60, &mut promise);
            assert!(result.is_ok(), "{load:?}, block {bad}: {result:?}");
            check_all_there(&mut chip, PLAIN, &promise, "marks");
        }
    }
}

/// Several faults of all kinds in one life, by chance.
#[test]
fn faults_by_chance_are_survived() {
    let seeds: u32 = std::env::var("NANDU_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let faults = [
        (Fault::BitFlips(4), 0.002),
        (Fault::ReadDisturb(3), 0.002),
        (Fault::ProgramFails, 0.0002),
        (Fault::EraseFails, 0.0005),
        (Fault::Bus(Tear::Complete), 0.002),
        (Fault::Bus(Tear::SomeBits), 0.0005),
    ];
    for (load, seed) in Load::ALL.into_iter().flat_map(|load| (0..8 * seeds).map(move |seed| (load, seed))) {
        let mut chip = Sim::with_seed(load.chip().with_blocks(40), u64::from(seed));
        let mut bytes = memory(&chip, &PLAIN);
        chip = Store::format(chip, PLAIN, &mut bytes).unwrap().unmount().unwrap();
        for (fault, probability) in faults {
            chip.inject(fault, Trigger::Probability(probability));
        }
        let mut promise = Promise::default();
        for round in 0..10 {
            let result = work(&mut chip, PLAIN, load, seed, 60, &mut promise);
            assert!(result.is_ok(), "{load:?}, seed {seed}, round {round}: {result:?}");
        }
        chip.withdraw_all();
        check_all_there(&mut chip, PLAIN, &promise, &format!("{load:?}, seed {seed}"));
    }
}

/// F22: the image of a chip on one whose bad blocks are others.
#[test]
fn an_image_on_a_chip_with_other_bad_blocks_loses_what_stood_there_and_says_so() {
    for load in [Load::Small, Load::Index] {
        let (chip, promise) = used(PLAIN, load, 0);
        let mut harmless = 0;
        for bad in 0..load.chip().geometry.block_count {
            let what = format!("{load:?}, block {bad} is bad on the other chip");
            let mut target = Sim::new(load.chip());
            target.mark_factory_bad(BlockAddr(bad));
            let mut moved = chip.transplant(target);
            let mut promise = promise.clone();
            let errors = check_nothing_wrong(&mut moved, PLAIN, &promise, load.keys(), &what);
            if errors > 0 {
                continue;
            }
            // Nothing needed stood there: the store goes on, and leaves the block alone.
            harmless += 1;
            let result = work(&mut moved, PLAIN, load, 0, 100, &mut promise);
            assert!(result.is_ok(), "{what}: {result:?}");
            check_all_there(&mut moved, PLAIN, &promise, &what);
        }
        assert!(harmless > 4, "{load:?}: {harmless}");
    }
}

/// F22: the image of a chip on one of another size, and one that holds another volume.
#[test]
fn an_image_on_a_chip_of_another_size_or_of_another_volume_is_refused_and_named() {
    let (chip, _) = used(PLAIN, Load::Small, 0);
    let mut larger = chip.transplant(Sim::new(Chip::TINY.with_blocks(20)));
    let mut bytes = memory(&larger, &PLAIN);
    let refused = Store::open(&mut larger, PLAIN, &mut bytes).err();
    assert_eq!(refused, Some(TreeError::Pages(LogError::WrongFormat { what: "block count" })));
    let options = Options { log: LogOptions { volume: Some(9), ..LogOptions::DEFAULT }, ..PLAIN };
    let mut same = chip.clone();
    let mut bytes = memory(&same, &options);
    let refused = Store::open(&mut same, options, &mut bytes).err();
    assert_eq!(refused, Some(TreeError::Pages(LogError::WrongFormat { what: "volume id" })));
    // Pages of another volume are not taken for one's own: two formats with one life between them.
    let mut again = chip.clone();
    let mut bytes = memory(&again, &PLAIN);
    again = Store::format(again, PLAIN, &mut bytes).unwrap().unmount().unwrap();
    check_all_there(&mut again, PLAIN, &Promise::default(), "formatted again");
}

/// Gives every page that says a sequence a higher one, as if the volume had lived that long.
fn aged(chip: &Sim, sequences: u64, checkpoints: u32) -> Sim {
    // Places in the header, as FORMAT.md has them.
    const SEQUENCE_AT: usize = 8;
    const CHECKPOINT_AT: usize = 28;
    let mut aged = chip.clone();
    for page in 0..chip.chip().geometry.page_count() {
        let page = nandu::nand::PageAddr(page);
        let mut bytes = chip.peek(page)[..chip.chip().geometry.page_size as usize].to_vec();
        if nandu_media::Page::parse(&bytes).is_err() {
            continue;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let sequence = word(SEQUENCE_AT) + sequences;
        let checkpoint = u32::from_le_bytes(bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].try_into().unwrap()) + checkpoints;
        bytes[SEQUENCE_AT..SEQUENCE_AT + 8].copy_from_slice(&sequence.to_le_bytes());
        bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].copy_from_slice(&checkpoint.to_le_bytes());
        let crc = nandu_media::checksum::checksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        aged.poke(page, &bytes);
    }
    aged
}

/// F20: the sequence, and the number of checkpoints, near their ends.
#[test]
fn a_volume_whose_numbers_run_out_becomes_read_only_and_stays_readable() {
    for load in [Load::Small, Load::Index] {
        for seed in 0..2 {
            let (chip, promise) = used(PLAIN, load, seed);
            let sequence_end = u64::MAX - (1 << 40);
            for (sequences, checkpoints, is_beyond) in [
                (sequence_end - 2_000_000, 0, false),
                (sequence_end - 6000, 0, false),
                (sequence_end - 1, 0, true),
                (0, u32::MAX - 400, false),
                (0, u32::MAX - 250, false),
            ] {
                let what = format!("{load:?}, {sequences} and {checkpoints} more, seed {seed}");
                let mut chip = aged(&chip, sequences, checkpoints);
                let mut promise = promise.clone();
                let mut error = None;
                for _ in 0..200 {
                    if let Err(found) = work(&mut chip, PLAIN, load, seed, 8, &mut promise) {
                        error = Some(found);
                        break;
                    }
                }
                // So far from the end nothing is noticed; at the end there is one error, and it is clear.
                let is_far = sequences == sequence_end - 2_000_000;
                assert_eq!(error.is_none(), is_far, "{what}: {error:?}");
                assert!(error.is_none() || error == Some(TreeError::Pages(LogError::ReadOnly)), "{what}: {error:?}");
                assert!(!is_beyond || promise.count == 241, "{what}: {} changes", promise.count);
                for _ in 0..3 {
                    check_all_there(&mut chip, PLAIN, &promise, &what);
                }
            }
        }
    }
}

/// A chip that the medium took away in the middle of everything is an error and no panic.
#[test]
fn a_chip_that_is_gone_is_said_to_be_gone() {
    let (mut chip, promise) = used(PLAIN, Load::Index, 0);
    let mut bytes = memory(&chip, &PLAIN);
    let mut store = Store::open(&mut chip, PLAIN, &mut bytes).unwrap();
    store.nand_mut().power_off();
    let gone =
        |error: Error| matches!(error, TreeError::Pages(LogError::Nand(error)) if error.kind() == NandErrorKind::Gone);
    assert!(store.put(b"1", b"x").is_err_and(gone));
    assert_eq!(store.put(b"1", b"x"), Err(TreeError::Pages(LogError::Poisoned)));
    let _ = store.abandon();
    chip.power_on();
    check_all_there(&mut chip, PLAIN, &promise, "back again");
    assert_eq!(chip.geometry().block_count, 32);
}
