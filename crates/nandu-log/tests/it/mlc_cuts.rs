//! Power cuts where some streams have two bits a cell, on a chip that tears pairs: what was acknowledged is there, and no
//! commit names a page that a later cut could destroy.

use nandu_log::LogOptions;
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::Chip;
use nandu_sim::power_cut::Driver;

use crate::cuts::{check, finds_a_loss_among, formatted, recover, stays_usable, used, workload};

/// One bare stream with one bit a cell and one with two; room for the smallest of such volumes, and few blocks more.
const ONE: LogOptions = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
const SMALL: Chip = Chip::TINY_MLC.with_blocks(26);

/// Two with two, a ready list in which several blocks can be opened from each end, a block table with pages of its own.
const TWO: LogOptions =
    LogOptions { bare_streams: 3, mlc_streams: 2, stream_count: Some(5), ready_max: Some(9), ..LogOptions::DEFAULT };
const WIDE: Chip = Chip::TINY_MLC.with_blocks(64);

#[test]
fn every_cut_of_a_fresh_volume() {
    let chip = formatted(SMALL, ONE);
    let check = check(ONE, &chip);
    let summary = Driver::new(chip).every(workload(ONE, 30, 10, true), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection() {
    let near = Chip { geometry: Geometry { pairing: Pairing::Dist3, ..SMALL.geometry }, ..SMALL };
    let alone = Chip { geometry: Geometry { tear: TearScope::Page, ..SMALL.geometry }, ..SMALL };
    for (chip, options, entries) in [(SMALL, ONE, 22), (WIDE, TWO, 40), (near, ONE, 22), (alone, ONE, 22)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let summary = Driver::new(chip).every(workload(options, 40, entries, true), check);
        assert!(summary.operations > 100, "{summary:?}");
    }
}

#[test]
fn every_cut_and_going_on_after_it() {
    for (chip, options, entries) in [(SMALL, ONE, 22), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, entries, false), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    for (chip, options, entries) in [(SMALL, ONE, 22), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).limit(20_000).pairs(workload(options, 12, entries, false), recover(options), check);
    }
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    for (chip, options, entries) in [(SMALL, ONE, 22), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let driver = Driver::new(chip).resume().seed(7);
        driver.random(count, workload(options, 30, entries, true), recover(options), check);
    }
}

#[test]
fn a_chip_cut_again_and_again_after_few_operations_stays_usable() {
    stays_usable(&[(SMALL, ONE, 20), (WIDE, TWO, 40)]);
}

#[test]
fn where_partners_of_named_pages_are_programmed_the_driver_finds_a_loss() {
    assert!(finds_a_loss_among(SMALL, LogOptions { skip_pair_protection: true, ..ONE }, ONE, 22));
}
