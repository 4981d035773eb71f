//! Page values where some streams have two bits a cell, on a chip that tears pairs: power cuts at every operation, nested ones,
//! chains of them, programs that fail.

use nandu_log::LogOptions;
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, Trigger};
use nandu_tree::{Broken, Options};

use crate::page_cuts::{IMMEDIATE, ON_SYNC, Promise, Setup, check_on, contents, recover_on, with_tree_on, workload_on};

const LOG: LogOptions = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
/// As a file system has them: cold pages, hot ones, and those with two bits a cell.
const THREE: LogOptions = LogOptions { bare_streams: 3, ..LOG };
const COPIES: Options = Options { copy_count: 8, ..ON_SYNC };
const SETUP: Setup = Setup { log: LOG, options: COPIES, broken: Broken::NONE };
const AT_ONCE: Setup = Setup { options: Options { copy_count: 8, ..IMMEDIATE }, ..SETUP };
const SMALL: Chip = Chip::TINY_MLC.with_blocks(40);
const WIDE: Chip = Chip::TINY_MLC.with_blocks(64);

#[test]
fn every_cut_leaves_page_values_of_a_sync() {
    let near = Chip { geometry: Geometry { pairing: Pairing::Dist3, ..SMALL.geometry }, ..SMALL };
    let alone = Chip { geometry: Geometry { tear: TearScope::Page, ..SMALL.geometry }, ..SMALL };
    let three = Setup { log: THREE, ..SETUP };
    for (chip, setup) in [(SMALL, SETUP), (WIDE, three), (near, SETUP), (alone, SETUP), (SMALL, AT_ONCE)] {
        let summary = Driver::new(chip).every(workload_on(setup, 120, 20), check_on(setup));
        println!("{summary:?}");
        assert!(summary.cases > 1000, "{summary:?}");
    }
}

#[test]
fn every_cut_and_going_on_after_it() {
    let summary = Driver::new(SMALL).resume().every(workload_on(SETUP, 100, 24), check_on(SETUP));
    println!("{summary:?}");
    assert!(summary.cases > 800, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_and_in_the_changes_that_follow_it() {
    let continue_briefly = |chip: &mut Sim| -> Run {
        with_tree_on(chip, SETUP, true, |tree| {
            // The first change has what was noted moved out of the blocks that were open.
            tree.put(b"z", b"")?;
            tree.delete(b"z")?;
            tree.sync()?;
            Ok(())
        })
    };
    let summary = Driver::new(SMALL).limit(12_000).pairs(workload_on(SETUP, 60, 20), continue_briefly, check_on(SETUP));
    println!("{summary:?}");
    assert!(summary.cases > 5_000, "{summary:?}");
}

/// Chains of cuts, `NANDU_CHAINS` of them; a few hundred are the short form.
#[test]
fn chains_of_cuts_leave_page_values() {
    let count: u64 = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let three = Setup { log: THREE, ..SETUP };
    for (chip, setup, operations, keys) in
        [(SMALL, SETUP, 60, 24), (SMALL, AT_ONCE, 60, 24), (SMALL, SETUP, 200, 60), (WIDE, three, 200, 100)]
    {
        let work = workload_on(setup, operations, keys);
        let summary = Driver::new(chip).resume().seed(3).random(count, work, recover_on(setup), check_on(setup));
        println!("{summary:?}");
        assert!(summary.cuts > 2 * count, "{summary:?}");
    }
}

/// What cuts at every operation find, if a rule is not kept.
fn found_without(setup: Setup) -> Option<String> {
    let work = workload_on(setup, 200, 28);
    let run = || Driver::new(SMALL).every(work, check_on(setup));
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err()?;
    Some(payload.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn a_rule_left_out_is_found() {
    assert_eq!(found_without(SETUP), None);
    let broken = [
        Setup { broken: Broken { name_exposed: true, ..Broken::NONE }, ..SETUP },
        Setup { log: LogOptions { skip_pair_protection: true, ..LOG }, ..SETUP },
    ];
    for setup in broken {
        let found = found_without(setup).unwrap_or_default();
        println!("{:?}: {found}", setup.broken);
        let is_loss = ["the check", "its checksum is wrong", "cannot be read"].iter().any(|loss| found.contains(loss));
        assert!(is_loss, "{:?}: {found}", setup.broken);
    }
}

/// Blocks as they are: 64 pages with one bit a cell, 128 with two.
const LONG: Chip = Chip {
    geometry: Geometry {
        page_size: 2048,
        program_unit: 2048,
        pages_per_block: 128,
        ..Chip::TINY_MLC.with_blocks(48).geometry
    },
    ..Chip::TINY_MLC
};

/// How many pages a chip took until it was full, and what an update cost then, in programs.
fn filled_and_changed(log: LogOptions, copy_count: usize) -> (u32, f64) {
    let options = Options { cache_size: 4096, pending_size: 2048, note_count: 64, copy_count, ..ON_SYNC };
    let setup = Setup { log, options, broken: Broken::NONE };
    let mut chip = Sim::new(LONG);
    with_tree_on(&mut chip, setup, true, |tree| {
        let key = |number: u32| [&[3][..], &number.to_be_bytes()].concat();
        let page = |number: u32| {
            let mut page = [0x5a; 2048];
            page[..4].copy_from_slice(&number.to_be_bytes());
            page
        };
        let mut count = 0;
        while tree.pages().has_capacity_for(64) {
            tree.put_page(&key(count), &page(count))?;
            tree.sync()?;
            count += 1;
        }
        let before = tree.pages().log().stats();
        let rounds = 2 * count;
        let mut newest: Vec<u32> = (0..count).collect();
        for round in 0..rounds {
            let number = round.wrapping_mul(40_503) % count;
            newest[number as usize] = count + round;
            tree.put_page(&key(number), &page(count + round))?;
            tree.sync()?;
        }
        for (number, round) in newest.iter().enumerate() {
            let mut found = [0; 4];
            assert_eq!(tree.read(&key(number as u32), 0, &mut found)?, Some(4));
            assert_eq!(found, round.to_be_bytes());
        }
        let mut violations = Vec::new();
        tree.verify(&mut |violation| violations.push(violation))?;
        assert_eq!(violations, []);
        let stats = tree.pages().log().stats();
        println!("{count} pages, {} left out, {stats:?}", stats.skipped);
        let programs = stats.programs_total() - before.programs_total();
        Ok((count, programs as f64 / f64::from(rounds)))
    })
    .unwrap()
}

#[test]
fn a_chip_with_two_bits_a_cell_holds_far_more_and_takes_changes_all_over() {
    let (with_one, _) = filled_and_changed(LogOptions { mlc_streams: 0, ..LOG }, 0);
    let (with_two, programs) = filled_and_changed(LOG, 64);
    println!("{with_two} for {with_one} pages; {programs:.2} programs an update");
    assert!(with_two * 10 > with_one * 16, "{with_two} for {with_one}");
    assert!(programs < 12.0, "{programs}");
}

/// Each fault at each operation of a mount and some changes: every call succeeds, and everything is there afterwards.
#[test]
fn programs_and_erases_that_fail_lose_nothing() {
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::BitFlips(1)] {
        let (mut start, mut promise) = (Sim::new(SMALL), Promise::default());
        workload_on(SETUP, 90, 20)(&mut start, &mut promise).unwrap();
        let first = start.operation_count();
        let last = {
            let (mut sim, mut promise) = (start.clone(), promise.clone());
            workload_on(SETUP, 60, 20)(&mut sim, &mut promise).unwrap();
            sim.operation_count()
        };
        for operation in first..last {
            let (mut sim, mut promise) = (start.clone(), promise.clone());
            sim.inject(fault, Trigger::Operation(operation));
            let outcome = workload_on(SETUP, 60, 20)(&mut sim, &mut promise);
            sim.withdraw_all();
            outcome.unwrap_or_else(|error| panic!("{fault:?} at {operation}: {error}"));
            let found = with_tree_on(&mut sim, SETUP, false, contents).unwrap();
            assert!(promise.states.contains(&found), "{fault:?} at {operation}");
        }
    }
}
