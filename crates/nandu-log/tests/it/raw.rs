//! Raw pages: whose they are, what a cut and an unmount leave of that, and pages that look like one of the log.

use nandu_log::{Claim, Claimed, Kind, Log, LogError, LogOptions};
use nandu_nand::{CellMode, Nand, PageAddr};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim};

use crate::cuts::{check, formatted, recover, stays_usable, used, workload};
use crate::toy::{Toy, memory};

const RAW: LogOptions = LogOptions { has_raw: true, ..LogOptions::DEFAULT };
const STREAMS: LogOptions = LogOptions { stream_count: Some(4), ready_max: Some(5), ..RAW };
const CHIP: Chip = Chip::TINY.with_blocks(24);
/// Blocks that take several summaries.
const LONG: Chip = long();

const fn long() -> Chip {
    let mut chip = Chip::TINY.with_blocks(20);
    chip.geometry.pages_per_block = 32;
    chip
}

#[test]
fn every_cut_with_raw_pages() {
    for (chip, options, operations) in [(CHIP, RAW, 40), (LONG, STREAMS, 120)] {
        let sim = formatted(chip, options);
        let check = check(options, &sim);
        let summary = Driver::new(sim).every(workload(options, operations, 24, true), check);
        assert!(summary.operations > 60, "{summary:?}");
    }
}

#[test]
fn every_cut_with_raw_pages_that_are_moved() {
    for (options, entries) in [(RAW, 40), (STREAMS, 30)] {
        let sim = used(CHIP, options, entries);
        let check = check(options, &sim);
        Driver::new(sim).resume().every(workload(options, 40, entries, true), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_with_raw_pages() {
    let sim = used(CHIP, RAW, 30);
    let check = check(RAW, &sim);
    Driver::new(sim).limit(20_000).pairs(workload(RAW, 16, 30, false), recover(RAW), check);
}

#[test]
fn chains_of_cuts_with_raw_pages() {
    for (chip, options, entries) in [(CHIP, RAW, 40), (LONG, STREAMS, 48)] {
        let sim = used(chip, options, entries);
        let check = check(options, &sim);
        Driver::new(sim).resume().seed(3).random(600, workload(options, 30, entries, true), recover(options), check);
    }
    stays_usable(&[(CHIP, RAW, 24), (LONG, STREAMS, 40)]);
}

/// Puts a raw page and commits; returns where it is.
fn put<N: Nand>(log: &mut Log<'_, N>, bytes: &mut [u8], key: &[u8]) -> PageAddr {
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    let page = log.append(bytes, Kind::Raw(key, CellMode::Slc), &mut grant).unwrap();
    log.commit(&mut vec![0; bytes.len()], grant).unwrap();
    page
}

#[test]
fn a_raw_page_takes_a_program_and_one_more_for_each_group() {
    let mut bytes = memory(&Chip::W25N01GV.geometry, &RAW);
    let mut log = crate::formatted(Sim::new(Chip::W25N01GV), RAW, &mut bytes).unwrap();
    let mut page = vec![9; 2048];
    put(&mut log, &mut page, b"first");
    for nth in 1..=63 * 3 {
        let before = *log.nand().counters();
        let at = put(&mut log, &mut page, b"elevenbytes");
        let cost = log.nand().counters().since(&before);
        // With the commit; and where a list is used up, a checkpoint.
        let summary = u64::from(nth % 63 == 62);
        assert!((2 + summary..=4 + summary).contains(&cost.programs), "{nth} {cost:?}");
        let before = *log.nand().counters();
        log.read_raw(at, &mut page).unwrap();
        assert_eq!((log.nand().counters().since(&before).reads, page[0], page[2047]), (1, 9, 9));
    }
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    assert!(matches!(
        log.append(&mut page, Kind::Raw(&[1; 12], CellMode::Slc), &mut grant),
        Err(LogError::Unsuitable { .. })
    ));
}

/// Fills and empties blocks until the log had to ask this often whose pages are.
fn searches(toy: &mut Toy<'_, Sim>) -> u32 {
    for round in 0..400_u32 {
        toy.put(round.wrapping_mul(7) % 40, u64::from(round)).unwrap();
    }
    toy.verify().unwrap();
    toy.searches
}

#[test]
fn a_group_goes_on_behind_an_unmount_and_only_a_cut_makes_owners_be_searched() {
    let mut bytes = memory(&CHIP.geometry, &RAW);
    let mut toy = Toy::format(Sim::new(CHIP), RAW, &mut bytes).unwrap();
    for round in 0..100_u32 {
        toy.put(round.wrapping_mul(7) % 40, 5).unwrap();
    }
    for _ in 0..5 {
        let sim = toy.unmount().unwrap();
        let before = sim.counters().reads;
        toy = Toy::mount(sim, RAW, &mut bytes).unwrap();
        assert!(toy.log.nand().counters().reads - before < 20);
        assert_eq!(searches(&mut toy), 0, "each summary is there");
    }
    for _ in 0..5 {
        toy.put(0, 6).unwrap();
        let sim = toy.log.abandon_log();
        toy = Toy::mount(sim, RAW, &mut bytes).unwrap();
        // One block, with one group.
        assert!(searches(&mut toy) <= 1);
    }
    assert_eq!(toy.values().unwrap().len(), 40);
}

#[test]
fn a_page_that_looks_like_one_of_the_log_is_not_programmed_where_it_says() {
    let mut bytes = memory(&CHIP.geometry, &RAW);
    let mut log = crate::formatted(Sim::new(CHIP), RAW, &mut bytes).unwrap();
    let mut page = vec![0; log.page_size()];
    let PageAddr(first) = put(&mut log, &mut page, b"plain");
    for step in 1..6 {
        let mut disguised = page.clone();
        disguised[4..6].copy_from_slice(b"nd");
        disguised[16..20].copy_from_slice(&(first + 2 * step - 1).to_le_bytes());
        let at = put(&mut log, &mut disguised, b"disguised");
        assert_ne!(at, PageAddr(first + 2 * step - 1));
        log.read_raw(at, &mut page).unwrap();
        assert_eq!(page, disguised);
    }
}

#[test]
fn a_volume_is_mounted_with_raw_pages_if_it_has_some() {
    for (made, opened) in [(RAW, LogOptions::DEFAULT), (LogOptions::DEFAULT, RAW)] {
        let mut bytes = memory(&CHIP.geometry, &RAW);
        let sim = crate::formatted(Sim::new(CHIP), made, &mut bytes).unwrap().unmount().unwrap();
        let refused = crate::mounted(sim, opened, &mut bytes).map(drop);
        assert!(matches!(refused, Err(LogError::WrongFormat { what: &"raw pages" })), "{refused:?}");
    }
}
