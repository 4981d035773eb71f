//! Faults that are no power cut, at every operation.
//!
//! Rows of `docs/fault-model.md`, and which test of this crate shows that the log survives them:
//!
//! | row | fault | tests |
//! |---|---|---|
//! | F1, F3 | cut program, cut erase | `cuts`, all |
//! | F2 | unstable bits | `cuts`, `without_quarantine_the_driver_finds_a_loss`; `anchors`, `a_stable_checkpoint_outlives_every_cut_of_a_recovery` |
//! | F4, F6, F8 | bits that flip and can be corrected | `flipped_bits_that_can_be_corrected_are_survived`, `a_block_whose_bits_begin_to_flip_is_emptied_and_one_that_failed_is_retired` |
//! | F5 | paired pages | `cuts`, `every_cut_with_garbage_collection_and_paired_pages`; `life`, with failed programs |
//! | F7 | beyond correction | `what_cannot_be_read_or_comes_from_elsewhere_is_never_taken_for_data`, `a_page_that_is_lost_costs_its_block_and_nothing_else` |
//! | F9 | partial programs | none: the log programs whole pages |
//! | F10, F11 | failed program, failed erase | `a_failed_program_or_erase_anywhere_is_survived`, `two_failures_anywhere_are_survived`, `anchors` |
//! | F12 | factory-bad block | `factory_bad_blocks_anywhere_are_left_alone` |
//! | F13 | wrong mark | `a_wrong_mark_is_survived` |
//! | F14 | lost program or erase | `a_lost_program_or_erase_is_survived_where_it_is_read_back` |
//! | F15, F16 | misdirected, stale | `what_cannot_be_read_or_comes_from_elsewhere_is_never_taken_for_data`, `a_stale_read_loses_nothing` |
//! | F17 | bus error, outage | `an_operation_whose_outcome_is_not_reported_is_survived`, `an_outage_loses_and_retires_nothing` |
//! | F18 | cut during recovery | `cuts`, all with pairs and chains |
//! | F19 | chip full | `promises`, `lives_of_all_shapes`, `room`, `model` |
//! | F20 | numbers near their end | `a_volume_whose_numbers_run_out_becomes_read_only_and_stays_readable` |
//! | F21 | other version | `another_version_of_the_format_is_refused` |
//! | F22 | moved image | `an_image_on_a_chip_with_other_bad_blocks_loses_what_stood_there_and_nothing_else`, `hostile` |
//! | F23 | end of life | `life`, `a_chip_worn_to_death_ends_read_only_with_everything_readable` |
//! | F24 | hostile image | `hostile` |

use std::sync::{Arc, Mutex};

use nandu_log::{Fate, LogError, LogOptions};
use nandu_nand::{BlockAddr, Cause, Geometry, Nand, NandError, NandErrorKind, PageAddr};
use nandu_sim::{Chip, Fault, Observer, Operation, OperationKind, Sim, SimError, Tear, Trigger};

use crate::cuts::chance;
use crate::toy::{Toy, Values, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;
const CAREFUL: LogOptions = LogOptions { read_back: true, ..PLAIN };
const ENTRIES: u32 = 20;

/// The block table in the anchor, with pages of its own, and paired pages.
const TINY: Chip = Chip::TINY;
const WIDE: Chip = Chip::TINY.with_blocks(64);
const PAIRED: Chip = Chip::TINY_MLC.with_blocks(24);
const CHIPS: [Chip; 3] = [TINY, WIDE, PAIRED];

/// Puts, deletes and batches over a mounted volume; `expected` follows what was acknowledged.
fn work(
    chip: &mut Sim,
    options: LogOptions,
    rounds: u32,
    demand: Demand,
    expected: &mut Values,
) -> Result<(), LogError<SimError>> {
    let mut bytes = memory(chip.geometry(), &options);
    let mut toy = Toy::mount(&mut *chip, options, &mut bytes)?;
    toy.is_lenient = demand == Demand::NeverWrong;
    for round in 0..rounds {
        let id = round * 7 % ENTRIES;
        let value = u64::from(round) + 100;
        if round % 5 == 4 {
            toy.delete(id)?;
            expected.remove(&id);
        } else {
            toy.put(id, value)?;
            expected.insert(id, value);
        }
        if round % 3 == 0 {
            assert_eq!(toy.get(id)?, expected.get(&id).copied());
        }
    }
    toy.unmount()?;
    Ok(())
}

fn start(chip: Chip, options: LogOptions) -> (Sim, Values) {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &options);
    drop(Toy::format(&mut sim, options, &mut bytes).unwrap());
    let mut values = Values::new();
    work(&mut sim, options, 120, Demand::Survives, &mut values).unwrap();
    (sim, values)
}

/// How a run with a fault may end.
#[derive(Clone, Copy, PartialEq)]
enum Demand {
    /// Every operation succeeds, and everything is there.
    Survives,
    /// An operation may fail with an error; what was acknowledged is there afterwards.
    Heals,
    /// An operation or a mount may fail with an error; no value is ever wrong.
    NeverWrong,
}

/// Notes the kind of each operation.
#[derive(Clone, Default)]
struct Kinds(Arc<Mutex<Vec<OperationKind>>>);

impl Observer for Kinds {
    fn operation(&mut self, operation: &Operation, _data: &[u8]) {
        self.0.lock().unwrap().push(operation.kind);
    }
}

/// Operations of the work without a fault.
fn kinds(chip: &Sim, options: LogOptions, values: &Values) -> Vec<OperationKind> {
    let (mut sim, kinds) = (chip.clone(), Kinds::default());
    sim.set_observer(Some(Box::new(kinds.clone())));
    work(&mut sim, options, 30, Demand::Survives, &mut values.clone()).unwrap();
    kinds.0.lock().unwrap().clone()
}

/// How many operations these are.
fn operations(chip: &Sim, options: LogOptions, values: &Values) -> u64 {
    kinds(chip, options, values).len() as u64
}

fn try_everywhere(fault: Fault, chip: Chip, options: LogOptions, demand: Demand) {
    let (chip, values) = start(chip, options);
    let kinds = kinds(&chip, options, &values);
    for (operation, _) in (0..).zip(kinds).filter(|&(_, kind)| fault.fits(kind)) {
        let at = [(fault, operation)];
        try_at(&chip, &values, &at, options, demand);
    }
}

/// Does the work with these faults at these operations, and looks at what is there afterwards.
fn try_at(chip: &Sim, values: &Values, faults: &[(Fault, u64)], options: LogOptions, demand: Demand) {
    let what = format!("{faults:?} on {}", chip.chip().name);
    let mut sim = chip.clone();
    let mut expected = values.clone();
    for &(fault, operation) in faults {
        sim.inject(fault, Trigger::Operation(chip.operation_count() + operation));
    }
    let result = work(&mut sim, options, 30, demand, &mut expected);
    sim.withdraw_all();
    if let Err(error) = &result {
        assert!(demand != Demand::Survives, "{what}: {error}");
    }
    if result.is_err() && demand == Demand::NeverWrong {
        return;
    }
    let mut bytes = memory(sim.geometry(), &options);
    let found = Toy::mount(&mut sim, options, &mut bytes).and_then(|mut toy| toy.values());
    match found {
        // What was under way when the error came may be there or not.
        Ok(found) if result.is_err() => {
            let different = (0..ENTRIES).filter(|id| found.get(id) != expected.get(id)).count();
            assert!(different <= 1, "{what}: {found:?} and not {expected:?}");
        }
        Ok(found) => assert_eq!(found, expected, "{what}"),
        Err(error) => assert!(demand == Demand::NeverWrong, "{what}, mount after it: {error}"),
    }
}

#[test]
fn a_failed_program_or_erase_anywhere_is_survived() {
    for chip in CHIPS {
        try_everywhere(Fault::ProgramFails, chip, PLAIN, Demand::Survives);
        try_everywhere(Fault::EraseFails, chip, PLAIN, Demand::Survives);
    }
}

/// The second fault comes while the first one is put right, or soon after that.
#[test]
fn two_failures_anywhere_are_survived() {
    let faults = [Fault::ProgramFails, Fault::EraseFails, Fault::Bus(Tear::Before), Fault::Bus(Tear::Complete)];
    // Two blocks more than the smallest, since two are lost.
    for chip in [TINY.with_blocks(20), WIDE] {
        let (chip, values) = start(chip, PLAIN);
        let count = operations(&chip, PLAIN, &values);
        for first in 0..count {
            for second in first + 1..first + 7 {
                let salt = (first * 7 + second) as u32;
                let pick = |salt| faults[chance(salt, 5) as usize % faults.len()];
                let pair = [(pick(salt), first), (pick(salt + 1), second)];
                try_at(&chip, &values, &pair, PLAIN, Demand::Survives);
            }
        }
    }
}

#[test]
fn an_operation_whose_outcome_is_not_reported_is_survived() {
    for tear in [Tear::Before, Tear::Complete, Tear::SomeBits] {
        for chip in [TINY, WIDE] {
            try_everywhere(Fault::Bus(tear), chip, PLAIN, Demand::Survives);
        }
    }
}

#[test]
fn a_lost_program_or_erase_is_survived_where_it_is_read_back() {
    for chip in [TINY, WIDE] {
        try_everywhere(Fault::NothingHappens, chip, CAREFUL, Demand::Survives);
    }
}

#[test]
fn flipped_bits_that_can_be_corrected_are_survived() {
    for chip in CHIPS {
        try_everywhere(Fault::BitFlips(4), chip, PLAIN, Demand::Survives);
        try_everywhere(Fault::ReadDisturb(4), chip, PLAIN, Demand::Survives);
        try_everywhere(Fault::ErasedZeros(3), chip, PLAIN, Demand::Survives);
    }
}

#[test]
fn what_cannot_be_read_or_comes_from_elsewhere_is_never_taken_for_data() {
    for chip in [TINY, WIDE] {
        try_everywhere(Fault::Uncorrectable, chip, PLAIN, Demand::NeverWrong);
        try_everywhere(Fault::Uncorrectable, chip, CAREFUL, Demand::NeverWrong);
        try_everywhere(Fault::Misdirected(None), chip, CAREFUL, Demand::NeverWrong);
        try_everywhere(Fault::MarkInverted, chip, PLAIN, Demand::NeverWrong);
    }
}

/// F16: the read itself may fail, but nothing rests on it.
#[test]
fn a_stale_read_loses_nothing() {
    for chip in [TINY, WIDE] {
        try_everywhere(Fault::Stale, chip, PLAIN, Demand::Heals);
        try_everywhere(Fault::Stale, chip, CAREFUL, Demand::Heals);
    }
}

/// Raw pages say nothing of themselves: their summaries, their owners and the blocks that hold them get the same faults.
#[test]
fn raw_pages_survive_what_others_do() {
    let chip = TINY.with_blocks(24);
    let plain = LogOptions { has_raw: true, ..PLAIN };
    let careful = LogOptions { has_raw: true, ..CAREFUL };
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::BitFlips(4), Fault::ReadDisturb(4)] {
        try_everywhere(fault, chip, plain, Demand::Survives);
    }
    for tear in [Tear::Before, Tear::Complete, Tear::SomeBits] {
        try_everywhere(Fault::Bus(tear), chip, plain, Demand::Survives);
    }
    try_everywhere(Fault::NothingHappens, chip, careful, Demand::Survives);
    try_everywhere(Fault::Stale, chip, plain, Demand::Heals);
    for fault in [Fault::Uncorrectable, Fault::MarkInverted] {
        try_everywhere(fault, chip, plain, Demand::NeverWrong);
    }
    try_everywhere(Fault::Misdirected(None), chip, careful, Demand::NeverWrong);
    let tagged = |options| LogOptions { has_tags: true, ..options };
    let tagged_chip = Chip { geometry: Geometry { spare_size: 32, tag_size: 16, ..chip.geometry }, ..chip };
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::BitFlips(4), Fault::Bus(Tear::SomeBits)] {
        try_everywhere(fault, tagged_chip, tagged(plain), Demand::Survives);
    }
    try_everywhere(Fault::NothingHappens, tagged_chip, tagged(careful), Demand::Survives);
    try_everywhere(Fault::Stale, tagged_chip, tagged(careful), Demand::Heals);
    let (dense_chip, dense) = (Chip::TINY_MLC.with_blocks(28), |options| LogOptions { has_mlc: true, ..options });
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::BitFlips(4), Fault::Bus(Tear::SomeBits)] {
        try_everywhere(fault, dense_chip, dense(plain), Demand::Survives);
    }
    try_everywhere(Fault::NothingHappens, dense_chip, dense(careful), Demand::Survives);
    try_everywhere(Fault::Misdirected(None), dense_chip, dense(careful), Demand::NeverWrong);
    let (sim, values) = start(chip, plain);
    let count = operations(&sim, plain, &values);
    for first in 0..count {
        for second in first + 1..first + 4 {
            let pair = [(Fault::ProgramFails, first), (Fault::Bus(Tear::Complete), second)];
            try_at(&sim, &values, &pair, plain, Demand::Survives);
        }
    }
}

/// Notes which operations are reads.
/// F15 and F16 in the mount after a cut: with `read_back` a single read of something else hides no commit.
#[test]
fn a_stale_or_misdirected_read_in_the_mount_after_a_cut_hides_no_commit() {
    for chip in [TINY, WIDE] {
        let (mut sim, mut values) = start(chip, CAREFUL);
        let mut bytes = memory(&chip.geometry, &CAREFUL);
        let mut toy = Toy::mount(&mut sim, CAREFUL, &mut bytes).unwrap();
        for round in 0..29 {
            toy.put(round % 6, u64::from(round) + 7000).unwrap();
            values.insert(round % 6, u64::from(round) + 7000);
            if round % 7 != 2 {
                continue;
            }
            let cut: Sim = Sim::clone(toy.log.nand());
            let mount = |sim: &mut Sim| {
                let mut bytes = memory(&chip.geometry, &CAREFUL);
                crate::mounted(sim, CAREFUL, &mut bytes).map(|log| log.is_read_only())
            };
            let kinds = Kinds::default();
            let mut sim = cut.clone();
            sim.set_observer(Some(Box::new(kinds.clone())));
            mount(&mut sim).unwrap();
            let kinds = kinds.0.lock().unwrap();
            for (operation, fault) in (0..)
                .zip(&*kinds)
                .filter(|(_, kind)| **kind == OperationKind::Read)
                .flat_map(|(operation, _)| [(operation, Fault::Stale), (operation, Fault::Misdirected(None))])
            {
                let what = format!("{}, round {round}: {fault:?} at {operation} of the mount", chip.name);
                let mut sim = cut.clone();
                sim.inject(fault, Trigger::Operation(cut.operation_count() + operation));
                assert!(mount(&mut sim) != Ok(true), "{what}");
                sim.withdraw_all();
                let mut bytes = memory(&chip.geometry, &CAREFUL);
                let mut toy = Toy::mount(&mut sim, CAREFUL, &mut bytes).unwrap();
                assert_eq!(toy.values().unwrap(), values, "{what}");
            }
        }
    }
}

#[test]
fn a_failure_at_any_operation_of_a_format_is_survived_or_reported() {
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::Bus(Tear::Before), Fault::Bus(Tear::Complete)] {
        let mut operation = 0;
        loop {
            let mut sim = Sim::new(TINY);
            sim.inject(fault, Trigger::Operation(operation));
            let mut bytes = memory(sim.geometry(), &PLAIN);
            if let Ok(mut toy) = Toy::format(&mut sim, PLAIN, &mut bytes) {
                toy.put(0, 5).unwrap();
                let mut bytes = memory(&TINY.geometry, &PLAIN);
                let last = sim.operation_count();
                assert_eq!(Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap().get(0).unwrap(), Some(5));
                if operation > last {
                    break;
                }
            }
            operation += 1;
        }
    }
}

/// F12.
#[test]
fn factory_bad_blocks_anywhere_are_left_alone() {
    for bad in 0..16 {
        let mut sim = Sim::new(TINY);
        sim.mark_factory_bad(BlockAddr(bad));
        sim.mark_factory_bad(BlockAddr((bad * 5 + 3) % 16));
        let mut bytes = memory(sim.geometry(), &PLAIN);
        drop(Toy::format(&mut sim, PLAIN, &mut bytes).unwrap());
        let mut values = Values::new();
        work(&mut sim, PLAIN, 80, Demand::Survives, &mut values).unwrap();
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap(), values);
        toy.verify().unwrap();
    }
}

/// F13: what was good looks bad from here on. It is asked for before it is erased, and then left alone; what stands in it can be read.
#[test]
fn a_wrong_mark_is_survived() {
    for chip in [TINY.with_blocks(18), WIDE] {
        let (chip, values) = start(chip, PLAIN);
        for block in 0..chip.chip().geometry.block_count {
            let (mut sim, mut values) = (chip.clone(), values.clone());
            sim.invert_mark(BlockAddr(block));
            for round in 0..4 {
                let result = work(&mut sim, PLAIN, 60, Demand::Survives, &mut values);
                assert!(result.is_ok(), "block {block}, round {round}: {result:?}");
            }
            let mut bytes = memory(sim.geometry(), &PLAIN);
            let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
            assert_eq!(toy.values().unwrap(), values, "block {block}");
            toy.verify().unwrap();
        }
    }
}

#[test]
fn a_block_whose_bits_begin_to_flip_is_emptied_and_one_that_failed_is_retired() {
    for chip in CHIPS {
        let (mut sim, mut values) = start(chip, PLAIN);
        let mut bytes = memory(sim.geometry(), &PLAIN);
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        toy.log.nand_mut().inject(Fault::BitFlips(4), Trigger::Nth(0));
        let (&first, &value) = values.iter().next().unwrap();
        assert_eq!(toy.get(first).unwrap(), Some(value));
        toy.log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(5));
        for round in 0..60 {
            let id = 1 + round % 4;
            toy.put(id, u64::from(round)).unwrap();
            values.insert(id, u64::from(round));
        }
        let stats = toy.log.stats();
        assert!(stats.programs_for(Cause::Refresh) > 0, "{}: {stats:?}", chip.name);
        assert_eq!((stats.failures, stats.bad_blocks), (1, 1), "{}: {stats:?}", chip.name);
        assert_eq!(toy.values().unwrap(), values);
        let marks = (0..sim.geometry().block_count).filter(|&block| sim.is_bad(BlockAddr(block)).unwrap());
        assert_eq!(marks.count(), 1, "{}", chip.name);
    }
}

/// F7: what is lost is lost, and said to be. The rest of the volume goes on, and the block is not erased.
#[test]
fn a_page_that_is_lost_costs_its_block_and_nothing_else() {
    // The owner knows that the page is needed, or the count says so.
    [Fate::Unreadable, Fate::Lost].into_iter().for_each(a_page_is_lost);
}

fn a_page_is_lost(unreadable: Fate) {
    let chip = TINY.with_blocks(18);
    let (mut sim, mut values) = start(chip, PLAIN);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
    toy.unreadable = unreadable;
    // A block less is there to be used from then on.
    let entries = toy.log.capacity_pages() - chip.geometry.pages_per_block;
    for id in 0..entries {
        toy.put(id, 1).unwrap();
        values.insert(id, 1);
    }
    toy.log.nand_mut().inject(Fault::Uncorrectable, Trigger::Nth(0));
    let Err(LogError::Corrupt { page, .. }) = toy.get(0) else { panic!("the page can be read") };
    values.remove(&0);
    let block = chip.geometry.block_of(page);
    let erases = |toy: &Toy<'_, &mut Sim>| toy.log.nand().block_state(block).counters.erases;
    let before = erases(&toy);
    let change = |toy: &mut Toy<'_, &mut Sim>, rounds: core::ops::Range<u32>, values: &mut Values| {
        for round in rounds {
            let id = 1 + chance(round, 9) % (entries - 1);
            toy.put(id, u64::from(round)).unwrap();
            values.insert(id, u64::from(round));
        }
    };
    change(&mut toy, 0..2_000, &mut values);
    assert_eq!(toy.log.stats().damaged_blocks, 1, "{:?}", toy.log.stats());
    assert_eq!(erases(&toy), before, "a block with a page that may be needed was erased");
    assert_eq!(toy.recounts, 1, "behind the cut, and not for {unreadable:?}");
    for (&id, &value) in &values {
        assert_eq!(toy.get(id).unwrap(), Some(value));
    }
    assert!(matches!(toy.get(0), Err(LogError::Corrupt { page: again, .. }) if again == page));
    // Once nothing refers to the page any more, the block is one like others.
    toy.put(0, 1).unwrap();
    values.insert(0, 1);
    change(&mut toy, 2_000..4_000, &mut values);
    assert_eq!(toy.log.stats().damaged_blocks, 0, "{:?}", toy.log.stats());
    assert!(erases(&toy) > before);
    assert_eq!(toy.values().unwrap(), values);
}

/// F17: from some operation on, none reaches the chip for a while. Blocks are sound all the time, so that nothing may be retired.
#[test]
fn an_outage_loses_and_retires_nothing() {
    for chip in [TINY, WIDE] {
        let (chip, values) = start(chip, PLAIN);
        let count = operations(&chip, PLAIN, &values);
        let mut failed = 0;
        for (nth, length) in [2, 3, 4, 5, 7, 50].into_iter().enumerate() {
            for tear in [Tear::Before, Tear::Complete, Tear::SomeBits] {
                for begin in (nth as u64..count).step_by(3) {
                    let what = format!("{length} operations from {begin} on, {tear:?}, {}", chip.chip().name);
                    let mut sim = chip.clone();
                    for operation in begin..begin + length {
                        let tear = if operation == begin { tear } else { Tear::Before };
                        sim.inject(Fault::Bus(tear), Trigger::Operation(chip.operation_count() + operation));
                    }
                    failed += live_through(&mut sim, &mut values.clone(), &what);
                }
            }
        }
        assert!(failed > 0, "no outage was noticed");
    }
}

/// Goes on with the work until it is done, mounting again where that is asked for; returns how many calls failed.
fn live_through(sim: &mut Sim, values: &mut Values, what: &str) -> u32 {
    let is_bus =
        |error: &LogError<SimError>| matches!(error, LogError::Nand(error) if error.kind() == NandErrorKind::Bus);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let (mut failed, mut round) = (0, 0_u32);
    let mut under_way = None;
    while round < 30 {
        let mut toy = match Toy::mount(&mut *sim, PLAIN, &mut bytes) {
            Ok(toy) => toy,
            Err(error) => {
                assert!(is_bus(&error), "{what}, mounting: {error}");
                failed += 1;
                continue;
            }
        };
        match toy.values() {
            Ok(found) => {
                if let Some((id, value)) = under_way.take().filter(|&(id, value)| found.get(&id) == Some(&value)) {
                    values.insert(id, value);
                }
                assert_eq!(&found, values, "{what}");
            }
            Err(error) => {
                assert!(is_bus(&error), "{what}, reading: {error}");
                failed += 1;
                continue;
            }
        }
        while round < 30 {
            let (id, value) = (round * 7 % ENTRIES, u64::from(round) + 500);
            round += 1;
            match toy.put(id, value) {
                Ok(()) => {
                    values.insert(id, value);
                }
                Err(error) => {
                    assert!(is_bus(&error), "{what}, round {round}: {error}");
                    failed += 1;
                    under_way = Some((id, value));
                    break;
                }
            }
        }
        assert_eq!(toy.log.stats().bad_blocks, 0, "{what}: a sound block was retired");
    }
    sim.withdraw_all();
    let mut toy = Toy::mount(&mut *sim, PLAIN, &mut bytes).unwrap();
    let found = toy.values().unwrap();
    if let Some((id, value)) = under_way.filter(|&(id, value)| found.get(&id) == Some(&value)) {
        values.insert(id, value);
    }
    assert_eq!(&found, values, "{what}");
    toy.verify().unwrap();
    failed
}

/// A chip that was taken away in the middle of everything is an error and no panic.
#[test]
fn a_chip_that_is_gone_is_said_to_be_gone() {
    let (mut sim, values) = start(TINY, PLAIN);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
    toy.log.nand_mut().power_off();
    let gone =
        |error: LogError<SimError>| matches!(error, LogError::Nand(error) if error.kind() == NandErrorKind::Gone);
    assert!(toy.put(1, 1).is_err_and(gone));
    assert_eq!(toy.put(1, 1), Err(LogError::Poisoned));
    assert_eq!(toy.get(1), Err(LogError::Poisoned));
    toy.log.abandon_log().power_on();
    assert_eq!(Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap().values().unwrap(), values);
}

/// Several faults of all kinds in one life, by chance.
#[test]
fn faults_by_chance_are_survived() {
    let faults = [
        // Two of these in one page can be corrected; before a third one comes the page is to be moved.
        (Fault::BitFlips(2), 0.002),
        (Fault::ReadDisturb(2), 0.002),
        (Fault::ProgramFails, 0.0002),
        (Fault::EraseFails, 0.0005),
        (Fault::Bus(Tear::Complete), 0.002),
        (Fault::Bus(Tear::SomeBits), 0.0005),
    ];
    for chip in [TINY.with_blocks(40), WIDE, Chip::TINY_MLC.with_blocks(40)] {
        for seed in 0..12 {
            let mut sim = Sim::with_seed(chip, seed);
            let mut bytes = memory(&chip.geometry, &PLAIN);
            drop(Toy::format(&mut sim, PLAIN, &mut bytes).unwrap());
            for (fault, probability) in faults {
                sim.inject(fault, Trigger::Probability(probability));
            }
            let mut values = Values::new();
            for round in 0..12 {
                let result = work(&mut sim, PLAIN, 90, Demand::Survives, &mut values);
                assert!(result.is_ok(), "{}, seed {seed}, round {round}: {result:?}", chip.name);
            }
            sim.withdraw_all();
            let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
            assert_eq!(toy.values().unwrap(), values, "{}, seed {seed}", chip.name);
        }
    }
}

/// F22: the image of a chip on one whose bad blocks are others. Where nothing that is needed stood there the volume goes on, and leaves the
/// block alone; the simulated chip panics if it does not.
#[test]
fn an_image_on_a_chip_with_other_bad_blocks_loses_what_stood_there_and_nothing_else() {
    for chip in [TINY.with_blocks(18), WIDE] {
        let (sim, values) = start(chip, PLAIN);
        let mut harmless = 0;
        for bad in 0..chip.geometry.block_count {
            let what = format!("block {bad} is bad on the other chip");
            let mut target = Sim::new(chip);
            target.mark_factory_bad(BlockAddr(bad));
            let mut moved = sim.transplant(target);
            let mut bytes = memory(&chip.geometry, &PLAIN);
            let Ok(mut toy) = Toy::mount(&mut moved, PLAIN, &mut bytes) else { continue };
            toy.is_lenient = true;
            let lost = (0..ENTRIES).filter(|&id| match toy.get(id) {
                Ok(value) => {
                    assert_eq!(value, values.get(&id).copied(), "{what}");
                    false
                }
                Err(error) => {
                    let is_there =
                        matches!(error, LogError::Corrupt { page, .. } if chip.geometry.block_of(page).0 == bad);
                    assert!(is_there, "{what}: {error}");
                    true
                }
            });
            if lost.count() > 0 {
                continue;
            }
            drop(toy);
            harmless += 1;
            let mut values = values.clone();
            for _ in 0..3 {
                let result = work(&mut moved, PLAIN, 60, Demand::Survives, &mut values);
                assert!(result.is_ok(), "{what}: {result:?}");
            }
        }
        assert!(harmless > 4, "{harmless}");
    }
}

/// Changes every page of the log on a chip, as if another version, or a longer life, had written them.
fn rewritten(chip: &Sim, change: impl Fn(&mut [u8])) -> Sim {
    let mut other = chip.clone();
    for page in (0..chip.chip().geometry.page_count()).map(PageAddr) {
        let mut bytes = chip.peek(page)[..chip.chip().geometry.page_size as usize].to_vec();
        if nandu_media::Page::parse(&bytes).is_ok() {
            change(&mut bytes);
            let crc = nandu_media::checksum::page_checksum(&bytes[4..]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            other.poke(page, &bytes);
        }
    }
    other
}

// Places in the header, as FORMAT.md has them.
const VERSION_AT: usize = 6;
const SEQUENCE_AT: usize = 8;
const CHECKPOINT_AT: usize = 28;

/// Gives every page a higher sequence and checkpoint.
fn aged(chip: &Sim, sequences: u64, checkpoints: u32) -> Sim {
    rewritten(chip, |bytes| {
        let sequence = u64::from_le_bytes(bytes[SEQUENCE_AT..SEQUENCE_AT + 8].try_into().unwrap()) + sequences;
        let checkpoint = u32::from_le_bytes(bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].try_into().unwrap()) + checkpoints;
        bytes[SEQUENCE_AT..SEQUENCE_AT + 8].copy_from_slice(&sequence.to_le_bytes());
        bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].copy_from_slice(&checkpoint.to_le_bytes());
    })
}

/// Highest number of a checkpoint that a page on the chip states.
fn newest_checkpoint(chip: &Sim) -> u32 {
    let geometry = chip.chip().geometry;
    let number = |page| {
        let bytes = &chip.peek(PageAddr(page))[..geometry.page_size as usize];
        nandu_media::Page::parse(bytes).map_or(0, |page| page.checkpoint())
    };
    (0..geometry.page_count()).map(number).max().unwrap()
}

/// F20: the sequence, and the number of checkpoints, near their ends.
#[test]
fn a_volume_whose_numbers_run_out_becomes_read_only_and_stays_readable() {
    for chip in [TINY, WIDE] {
        let (sim, values) = start(chip, PLAIN);
        let sequence_end = u64::MAX - (1 << 40);
        let checkpoint_end = u32::MAX - newest_checkpoint(&sim);
        for (sequences, checkpoints, is_far, is_beyond) in [
            (sequence_end - 2_000_000, 0, true, false),
            (sequence_end - 6000, 0, false, false),
            (sequence_end - 1, 0, false, true),
            (0, checkpoint_end - 100, false, false),
            (0, checkpoint_end - 10, false, false),
            (0, checkpoint_end - 1, false, false),
            (0, checkpoint_end, false, true),
        ] {
            let what = format!("{}, {sequences} and {checkpoints} more", chip.name);
            let mut sim = aged(&sim, sequences, checkpoints);
            let mut values = values.clone();
            let mut error = None;
            let before = values.clone();
            for _ in 0..400 {
                if let Err(found) = work(&mut sim, PLAIN, 30, Demand::Survives, &mut values) {
                    error = Some(found);
                    break;
                }
            }
            // So far from the end nothing is noticed; at the end there is one error, and it is clear.
            assert_eq!(error.is_none(), is_far, "{what}: {error:?}");
            assert!(error.is_none() || error == Some(LogError::ReadOnly), "{what}: {error:?}");
            assert!(!is_beyond || values == before, "{what}: something was written");
            for _ in 0..3 {
                let mut bytes = memory(&chip.geometry, &PLAIN);
                let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
                assert_eq!(toy.values().unwrap(), values, "{what}");
            }
        }
    }
}

/// F21: nothing is written, and nothing taken for data.
#[test]
fn another_version_of_the_format_is_refused() {
    let (sim, _) = start(TINY, PLAIN);
    for version in [0, 1, 3, 255] {
        let mut other = rewritten(&sim, |bytes| bytes[VERSION_AT] = version);
        let mut bytes = memory(&TINY.geometry, &PLAIN);
        let programs = other.counters().programs;
        let error = crate::mounted(&mut other, PLAIN, &mut bytes).err();
        let told = match version {
            1 => LogError::WrongFormat { what: &"format version" },
            _ => LogError::NotFormatted,
        };
        assert_eq!(error, Some(told), "version {version}");
        assert_eq!(other.counters().programs, programs);
    }
}
