//! Power cuts: at every operation, with everything a cut can leave, and in the recoveries after it.

use nandu_log::{Broken, LogError, LogOptions};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::toy::{Toy, Values, memory};

/// What was acknowledged, and the operation that was under way.
#[derive(Clone, Default)]
pub(crate) struct Promise {
    /// Whether the chip was opened, so that the rest has a meaning.
    pub(crate) is_open: bool,
    values: Values,
    pending: Vec<(u32, Option<u64>)>,
    /// Operations done, over all runs.
    count: u32,
}

impl Promise {
    fn apply(values: &mut Values, changes: &[(u32, Option<u64>)]) {
        for &(id, value) in changes {
            match value {
                Some(value) => values.insert(id, value),
                None => values.remove(&id),
            };
        }
    }
}

/// A small generator, so that workloads are the same every time.
pub(crate) fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

/// Opens the chip and changes entries: mostly puts, some deletes, some batches, over so few entries that blocks empty.
pub(crate) fn workload(
    options: LogOptions,
    operations: u32,
    entries: u32,
    ends_clean: bool,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        let mut toy = Toy::mount(&mut *chip, options, &mut bytes)?;
        // What was under way at a cut is there or not; what follows goes on from what is there.
        let found = toy.values()?;
        promise.values = found;
        promise.pending.clear();
        promise.is_open = true;
        for _ in 0..operations {
            let count = promise.count;
            promise.count += 1;
            let id = chance(count, 1) % entries;
            let value = u64::from(count) + 1000;
            let changes = match chance(count, 2) % 8 {
                0 => vec![(id, None)],
                1 => vec![(id, Some(value)), ((id + 1) % entries, Some(value)), ((id + 2) % entries, None)],
                _ => vec![(id, Some(value))],
            };
            promise.pending = changes;
            toy.batch(&promise.pending)?;
            Promise::apply(&mut promise.values, &promise.pending);
            promise.pending.clear();
            if chance(count, 3).is_multiple_of(32) {
                toy.log.checkpoint()?;
            }
            if chance(count, 4).is_multiple_of(16) {
                toy.idle()?;
            }
        }
        if ends_clean {
            toy.unmount()?;
        }
        Ok(())
    }
}

pub(crate) fn recover(options: LogOptions) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        Toy::mount(chip, options, &mut bytes)?;
        Ok(())
    }
}

/// Everything acknowledged is there, and of what was under way all or nothing.
pub(crate) fn check(options: LogOptions, start: &Sim) -> impl Fn(&mut Sim, &Promise) -> Values + use<> {
    let before = contents(&mut start.clone(), options);
    move |chip, promise| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        let mut toy = Toy::mount(chip, options, &mut bytes).unwrap();
        assert!(!toy.log.is_read_only(), "read-only: {:?}", toy.log.stats());
        let found = toy.values().unwrap();
        if !promise.is_open {
            assert_eq!(found, before);
        } else if found != promise.values {
            let mut after = promise.values.clone();
            Promise::apply(&mut after, &promise.pending);
            assert_eq!(found, after, "before: {:?}", promise.values);
        }
        toy.verify().unwrap();
        found
    }
}

fn contents(chip: &mut Sim, options: LogOptions) -> Values {
    let mut bytes = memory(&chip.chip().geometry, &options);
    Toy::mount(chip, options, &mut bytes).unwrap().values().unwrap()
}

pub(crate) fn formatted(chip: Chip, options: LogOptions) -> Sim {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &options);
    drop(Toy::format(&mut sim, options, &mut bytes).unwrap());
    sim
}

/// A chip on which every block was used, so that what follows collects garbage.
pub(crate) fn used(chip: Chip, options: LogOptions, entries: u32) -> Sim {
    let mut sim = formatted(chip, options);
    let mut promise = Promise::default();
    workload(options, 150, entries, true)(&mut sim, &mut promise).unwrap();
    sim
}

const PLAIN: LogOptions = LogOptions::DEFAULT;

const TINY: Chip = Chip::TINY;
const TINY_MLC: Chip = Chip::TINY_MLC;

#[test]
fn every_cut_of_a_fresh_volume() {
    let chip = formatted(TINY, PLAIN);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 30, 10, true), check);
    assert!(summary.operations > 40, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection() {
    let chip = used(TINY, PLAIN, 30);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 40, 30, true), check);
    assert!(summary.operations > 100, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection_and_paired_pages() {
    let chip = used(TINY_MLC, PLAIN, 14);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 30, 14, true), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_and_going_on_after_it() {
    let chip = used(TINY, PLAIN, 24);
    let check = check(PLAIN, &chip);
    Driver::new(chip).resume().every(workload(PLAIN, 25, 24, false), check);
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    let chip = used(TINY, PLAIN, 24);
    let check = check(PLAIN, &chip);
    Driver::new(chip).limit(40_000).pairs(workload(PLAIN, 12, 24, false), recover(PLAIN), check);
}

/// A tiny chip whose block table does not fit an anchor.
const WIDE: Chip = Chip::TINY.with_blocks(64);
/// Many streams on a tiny chip.
const STREAMS: LogOptions = LogOptions { stream_count: Some(4), ready_max: Some(5), ..PLAIN };

#[test]
fn every_cut_where_the_block_table_has_pages_of_its_own() {
    let chip = used(WIDE, PLAIN, 40);
    let check = check(PLAIN, &chip);
    Driver::new(chip).resume().every(workload(PLAIN, 60, 40, true), check);
}

#[test]
fn every_cut_with_many_streams() {
    let chip = used(TINY.with_blocks(20), STREAMS, 40);
    let check = check(STREAMS, &chip);
    Driver::new(chip).resume().every(workload(STREAMS, 40, 40, true), check);
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_with_many_streams_and_table_pages() {
    let chip = used(WIDE, STREAMS, 40);
    let check = check(STREAMS, &chip);
    Driver::new(chip).limit(20_000).pairs(workload(STREAMS, 30, 40, false), recover(STREAMS), check);
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    let cases = [(TINY, PLAIN, 30), (TINY_MLC, PLAIN, 14), (WIDE, PLAIN, 40), (TINY.with_blocks(20), STREAMS, 40)];
    for (chip, options, entries) in cases {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let driver = Driver::new(chip).resume().seed(7);
        driver.random(count, workload(options, 30, entries, true), recover(options), check);
    }
}

/// Power that comes back only to go again within a few operations must not use up the chip.
#[test]
fn a_chip_cut_again_and_again_after_few_operations_stays_usable() {
    stays_usable(&[(TINY, PLAIN, 24), (TINY_MLC, PLAIN, 12), (WIDE, STREAMS, 40)]);
}

pub(crate) fn stays_usable(cases: &[(Chip, LogOptions, u32)]) {
    for &(chip, options, entries) in cases {
        let start = used(chip, options, entries);
        for seed in 0..40 {
            let mut sim = start.clone();
            let mut promise = Promise::default();
            let check = check(options, &start);
            for cut in 0..60 {
                let after = chance(cut, seed) % (10 + seed * 4);
                sim.cut_somehow_at(sim.operation_count() + u64::from(after));
                let result = workload(options, 20, entries, true)(&mut sim, &mut promise);
                if sim.is_off() {
                    sim.power_on();
                } else {
                    result.unwrap();
                }
                sim.clear_cuts();
                if promise.is_open {
                    check(&mut sim.clone(), &promise);
                }
            }
            workload(options, 60, entries, true)(&mut sim, &mut promise).unwrap();
            check(&mut sim, &promise);
        }
    }
}

#[test]
fn a_chip_whose_format_was_cut_has_the_new_volume_or_none() {
    let format = |chip: &mut Sim, _: &mut ()| -> Run {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        drop(Toy::format(chip, PLAIN, &mut bytes)?);
        Ok(())
    };
    let check = |chip: &mut Sim, _: &()| {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        match Toy::mount(&mut *chip, PLAIN, &mut bytes) {
            Ok(mut toy) => {
                assert_eq!(toy.values().unwrap(), Values::new());
                toy.put(0, 1).unwrap();
                toy.delete(0).unwrap();
                toy.verify().unwrap();
            }
            Err(error) => {
                assert_eq!(error, LogError::NotFormatted);
                drop(Toy::format(&mut *chip, PLAIN, &mut bytes).unwrap());
            }
        }
    };
    Driver::new(Sim::new(TINY)).every(format, check);
    Driver::new(Sim::new(TINY_MLC)).every(format, check);
}

#[test]
fn a_chip_whose_second_format_was_cut_is_not_half_of_each() {
    let mut old = formatted(TINY, PLAIN);
    workload(PLAIN, 50, 12, true)(&mut old, &mut Promise::default()).unwrap();
    let mut bytes = memory(&TINY.geometry, &PLAIN);
    let mut toy = Toy::mount(&mut old, PLAIN, &mut bytes).unwrap();
    let (values, volume) = (toy.values().unwrap(), toy.log.volume());
    drop(toy);
    let format = |chip: &mut Sim, _: &mut ()| -> Run {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        drop(Toy::format(chip, PLAIN, &mut bytes)?);
        Ok(())
    };
    Driver::new(old).every(format, |chip, _| {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        match Toy::mount(chip, PLAIN, &mut bytes) {
            Ok(mut toy) => match toy.log.volume() {
                found if found == volume => assert_eq!(toy.values().unwrap(), values),
                _ => assert_eq!(toy.values().unwrap(), Values::new()),
            },
            Err(error) => assert!(matches!(error, LogError::NotFormatted | LogError::Corrupt { .. }), "{error}"),
        }
    });
}

/// Whether the driver finds a loss with these options, on a volume that was made with those.
pub(crate) fn finds_a_loss(chip: Chip, options: LogOptions, whole: LogOptions) -> bool {
    finds_a_loss_among(chip, options, whole, 24)
}

/// The same with so many entries.
pub(crate) fn finds_a_loss_among(chip: Chip, options: LogOptions, whole: LogOptions, entries: u32) -> bool {
    let run = std::panic::AssertUnwindSafe(|| {
        let chip = used(chip, whole, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, entries, false), check);
    });
    let Err(payload) = std::panic::catch_unwind(run) else { return false };
    let message = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    // A volume that can be read only has lost nothing.
    assert!(!message.contains("read-only"), "{message}");
    true
}

#[test]
fn without_quarantine_the_driver_finds_a_loss() {
    assert!(finds_a_loss(TINY, LogOptions { broken: Broken { quarantine: true, ..Broken::NOTHING }, ..PLAIN }, PLAIN));
}

#[test]
fn without_proof_of_erasure_the_driver_finds_a_loss() {
    assert!(finds_a_loss(TINY, LogOptions { broken: Broken { erase_proof: true, ..Broken::NOTHING }, ..PLAIN }, PLAIN));
}

/// R1: a mount looks for commits at the front of the ready list alone.
#[test]
fn where_survivors_open_blocks_from_the_same_end_volumes_are_lost() {
    let options = LogOptions { broken: Broken { ends: true, ..Broken::NOTHING }, ..PLAIN };
    let run = std::panic::AssertUnwindSafe(|| {
        let chip = used(TINY, PLAIN, 24);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, 24, false), check);
    });
    assert!(std::panic::catch_unwind(run).is_err());
}

/// The block that was open goes on behind the page that may be torn (N9): else each cut would take a block, and a call behind it would have to empty others first.
#[test]
fn behind_a_cut_commits_go_on_in_their_block() {
    for cuts in 1..5 {
        let mut sim = Sim::new(TINY);
        let mut bytes = memory(&sim.chip().geometry, &PLAIN);
        let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
        toy.put(0, 1).unwrap();
        drop(toy);
        let mut pools = Vec::new();
        for _ in 0..cuts {
            let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
            pools.push(toy.log.stats().pool_blocks);
            // Torn before it is durable.
            let at = toy.log.nand().operation_count();
            toy.log.nand_mut().cut_somehow_at(at);
            assert!(toy.put(1, 1).is_err());
            drop(toy);
            sim.power_on();
            sim.clear_cuts();
        }
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        let block = |toy: &Toy<'_, &mut Sim>| toy.log.committed().map(|page| TINY.geometry.block_of(page));
        let before = block(&toy);
        pools.push(toy.log.stats().pool_blocks);
        assert!(pools.is_sorted(), "{pools:?}");
        toy.put(1, 1).unwrap();
        assert_eq!(block(&toy), before, "{cuts} cuts");
    }
}

/// What a cut left out is told by the pages beside it from what was lost. The newest commit may decay when its copy counts, also where it was the first page of a block.
#[test]
fn what_a_cut_left_out_is_told_from_a_survivor_that_is_lost() {
    for nth in [0, 3] {
        let mut sim = Sim::new(TINY);
        let geometry = TINY.geometry;
        let mut bytes = memory(&geometry, &PLAIN);
        let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
        let newest = (0..)
            .find_map(|count| {
                toy.put(0, count).unwrap();
                toy.log.committed().filter(|&page| count > 20 && geometry.index_in_block(page) == nth)
            })
            .unwrap();
        drop(toy);
        let page = |nth| geometry.page_at(geometry.block_of(newest), nth);
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        assert_ne!(toy.log.committed(), Some(newest), "it was copied");
        for count in 0..2 {
            toy.batch(&[(1 + 2 * count, Some(1)), (2 + 2 * count, Some(1))]).unwrap();
        }
        toy.verify().unwrap();
        drop(toy);
        // Before the newest commit stands the one that it names, where it is not the first page.
        let before = nth.checked_sub(1).map(|nth| (page(nth), false));
        let cases = [(page(nth), true), (page(nth + 1), true), (page(nth + 2), false)];
        for (lost, is_left_out) in cases.into_iter().chain(before) {
            let mut sim = sim.clone();
            let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
            toy.log.nand_mut().inject(Fault::Uncorrectable, Trigger::Page(lost));
            let mut found = Vec::new();
            toy.log.verify(&mut |violation| found.extend(violation.page)).unwrap();
            assert_eq!(found, if is_left_out { vec![] } else { vec![lost] });
        }
    }
}
