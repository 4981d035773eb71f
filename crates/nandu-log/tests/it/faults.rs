//! Faults that are no power cut, at every operation.

use nandu_log::{Growth, Log, LogError, LogOptions};
use nandu_nand::Nand;
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};

use crate::toy::{Toy, Values, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;
const CAREFUL: LogOptions = LogOptions { read_back: true, ..PLAIN };
const BARE: LogOptions = LogOptions { bare_streams: 1, ..PLAIN };
const CAREFUL_BARE: LogOptions = LogOptions { read_back: true, ..BARE };
const MLC: LogOptions = LogOptions { bare_streams: 2, mlc_streams: 1, ..PLAIN };
const CAREFUL_MLC: LogOptions = LogOptions { read_back: true, ..MLC };
const ENTRIES: u32 = 20;

/// Puts, deletes and batches over a mounted volume; `expected` follows what was acknowledged.
fn work(
    chip: &mut Sim,
    options: LogOptions,
    rounds: u32,
    demand: Demand,
    expected: &mut Values,
) -> Result<(), LogError<nandu_sim::SimError>> {
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

/// The smallest chip on which the entries fit.
fn chip_for(options: LogOptions) -> Chip {
    match (options.bare_streams, options.mlc_streams) {
        (0, _) => Chip::TINY,
        (_, 0) => Chip::TINY.with_blocks(19),
        _ => Chip::TINY_MLC.with_blocks(26),
    }
}

fn start(options: LogOptions) -> (Sim, Values) {
    let mut sim = Sim::new(chip_for(options));
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
    /// An operation or a mount may fail with an error; no value is ever wrong.
    NeverWrong,
}

fn try_everywhere(fault: Fault, options: LogOptions, demand: Demand) {
    let (chip, values) = start(options);
    let count = {
        let mut sim = chip.clone();
        work(&mut sim, options, 30, demand, &mut values.clone()).unwrap();
        sim.operation_count() - chip.operation_count()
    };
    for operation in 0..count {
        let mut sim = chip.clone();
        let mut expected = values.clone();
        sim.inject(fault, Trigger::Operation(chip.operation_count() + operation));
        let result = work(&mut sim, options, 30, demand, &mut expected);
        sim.withdraw_all();
        match result {
            Ok(()) => {}
            Err(error) => {
                assert!(demand == Demand::NeverWrong, "{fault:?} at operation {operation}: {error}");
                continue;
            }
        }
        let mut bytes = memory(sim.geometry(), &options);
        let found = Toy::mount(&mut sim, options, &mut bytes).and_then(|mut toy| toy.values());
        match found {
            Ok(found) => assert_eq!(found, expected, "{fault:?} at operation {operation}"),
            Err(error) => {
                assert!(demand == Demand::NeverWrong, "{fault:?} at operation {operation}, mount after it: {error}");
            }
        }
    }
}

#[test]
fn a_failed_program_or_erase_anywhere_is_survived() {
    for options in [PLAIN, BARE, MLC] {
        try_everywhere(Fault::ProgramFails, options, Demand::Survives);
        try_everywhere(Fault::EraseFails, options, Demand::Survives);
    }
}

#[test]
fn an_operation_whose_outcome_is_not_reported_is_survived() {
    for tear in [Tear::Before, Tear::Complete] {
        try_everywhere(Fault::Bus(tear), PLAIN, Demand::Survives);
        try_everywhere(Fault::Bus(tear), BARE, Demand::Survives);
        try_everywhere(Fault::Bus(tear), MLC, Demand::Survives);
    }
}

#[test]
fn a_lost_program_or_erase_is_survived_where_it_is_read_back() {
    try_everywhere(Fault::NothingHappens, CAREFUL, Demand::Survives);
    try_everywhere(Fault::NothingHappens, CAREFUL_BARE, Demand::Survives);
    try_everywhere(Fault::NothingHappens, CAREFUL_MLC, Demand::Survives);
}

#[test]
fn flipped_bits_that_can_be_corrected_are_survived() {
    for options in [PLAIN, BARE, MLC] {
        try_everywhere(Fault::BitFlips(4), options, Demand::Survives);
        try_everywhere(Fault::ReadDisturb(4), options, Demand::Survives);
        try_everywhere(Fault::ErasedZeros(3), options, Demand::Survives);
    }
}

#[test]
fn what_cannot_be_read_or_comes_from_elsewhere_is_never_taken_for_data() {
    // Bare pages are not asked where they come from: that is their owner's to check.
    try_everywhere(Fault::Uncorrectable, BARE, Demand::NeverWrong);
    try_everywhere(Fault::MarkInverted, BARE, Demand::NeverWrong);
    try_everywhere(Fault::Uncorrectable, MLC, Demand::NeverWrong);
    try_everywhere(Fault::Uncorrectable, PLAIN, Demand::NeverWrong);
    try_everywhere(Fault::Misdirected(None), CAREFUL, Demand::NeverWrong);
    try_everywhere(Fault::Stale, PLAIN, Demand::NeverWrong);
    try_everywhere(Fault::MarkInverted, PLAIN, Demand::NeverWrong);
}

#[test]
fn a_failure_at_any_operation_of_a_format_is_survived_or_reported() {
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::Bus(Tear::Before), Fault::Bus(Tear::Complete)] {
        let mut operation = 0;
        loop {
            let mut sim = Sim::new(Chip::TINY);
            sim.inject(fault, Trigger::Operation(operation));
            let mut bytes = memory(sim.geometry(), &PLAIN);
            if let Ok(mut toy) = Toy::format(&mut sim, PLAIN, &mut bytes) {
                toy.put(0, 5).unwrap();
                let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
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

#[test]
fn factory_bad_blocks_anywhere_are_left_alone() {
    for bad in 0..16 {
        let mut sim = Sim::new(Chip::TINY);
        sim.mark_factory_bad(nandu_nand::BlockAddr(bad));
        sim.mark_factory_bad(nandu_nand::BlockAddr((bad * 5 + 3) % 16));
        let mut bytes = memory(sim.geometry(), &PLAIN);
        drop(Toy::format(&mut sim, PLAIN, &mut bytes).unwrap());
        let mut values = Values::new();
        work(&mut sim, PLAIN, 80, Demand::Survives, &mut values).unwrap();
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap(), values);
        toy.verify().unwrap();
    }
}

#[test]
fn a_block_whose_bits_begin_to_flip_is_emptied_and_one_that_failed_is_retired() {
    flips_and_fails(PLAIN);
    flips_and_fails(BARE);
    flips_and_fails(MLC);
}

fn flips_and_fails(options: LogOptions) {
    let (mut sim, mut values) = start(options);
    let mut bytes = memory(sim.geometry(), &options);
    let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
    toy.log.nand_mut().inject(Fault::BitFlips(4), Trigger::Nth(0));
    let (&first, &value) = values.iter().find(|(id, _)| options.bare_streams == 0 || **id % 2 == 0).unwrap();
    assert_eq!(toy.get(first).unwrap(), Some(value));
    toy.log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(5));
    for round in 0..60 {
        let id = 1 + round % 4;
        toy.put(id, u64::from(round)).unwrap();
        values.insert(id, u64::from(round));
    }
    let stats = toy.log.stats();
    assert!(stats.programs_for(nandu_nand::Cause::Refresh) > 0, "{stats:?}");
    assert_eq!((stats.program_failures, stats.bad_blocks), (1, 1), "{stats:?}");
    assert_eq!(toy.values().unwrap(), values);
    let marks: Vec<bool> =
        (0..sim.geometry().block_count).map(|block| sim.is_bad(nandu_nand::BlockAddr(block)).unwrap()).collect();
    assert_eq!(marks.iter().filter(|&&is_bad| is_bad).count(), 1);
}

#[test]
fn a_reserve_that_a_small_chip_cannot_have_refuses_growth_alone() {
    let options = LogOptions::DEFAULT;
    let mut sim = Sim::new(Chip::W25N01GV.with_blocks(16));
    let mut bytes = memory(sim.geometry(), &options);
    let mut log = Log::format(&mut sim, options, &mut bytes).unwrap();
    log.expect_moves_of(10);
    assert_eq!(log.reserve(1, Growth::Grows), Err(LogError::Full));
    assert_eq!(log.reserve(1, Growth::Shrinks), Ok(true));
    log.expect_moves_of(1);
    assert_eq!(log.reserve(1, Growth::Grows), Ok(true));
}
