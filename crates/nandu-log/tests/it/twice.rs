//! Commits that are programmed twice: the newest one outlives a page that nobody can read.

use nandu_log::LogOptions;
use nandu_nand::Cause;
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::cuts::{chance, check, recover, used, workload};
use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;
const TWICE: LogOptions = LogOptions { commit_twice: true, ..PLAIN };

#[test]
fn every_cut_and_going_on_after_it() {
    let chip = used(Chip::TINY, TWICE, 24);
    let check = check(TWICE, &chip);
    Driver::new(chip).resume().every(workload(TWICE, 25, 24, false), check);
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let tagged = LogOptions { has_raw: true, has_tags: true, ..TWICE };
    for (chip, options, entries) in [(Chip::TINY, TWICE, 24), (Chip::TINY_MLC, TWICE, 12), (Chip::TINY, tagged, 20)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().seed(11).random(
            count,
            workload(options, 30, entries, true),
            recover(options),
            check,
        );
    }
}

/// How often a mount after a cut finds an older commit and says nothing, if nobody can read the page that was programmed last; and how often it finds the newest one. In the other cases a checkpoint
/// names that page, so that the mount ends with an error.
fn taken_back(chip: Chip, options: LogOptions) -> (u32, u32) {
    let mut sim = used(chip, options, 12);
    let mut bytes = memory(&sim.chip().geometry, &options);
    let (mut missing, mut there) = (0, 0);
    let mut newest = None;
    for count in 0..200 {
        let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
        assert!(newest.is_none_or(|values| values == toy.values().unwrap()));
        for step in 0..1 + chance(count, 1) % 4 {
            toy.put(chance(count, 2 + step) % 12, u64::from(4 * count + step)).unwrap();
        }
        let (last, values) = (toy.log.committed().unwrap(), toy.values().unwrap());
        drop(toy);
        let mut damaged = sim.clone();
        damaged.inject(Fault::Uncorrectable, Trigger::Page(last));
        if let Ok(mut toy) = Toy::mount(&mut damaged, options, &mut bytes) {
            let is_there = toy.values().unwrap() == values;
            (missing, there) = (missing + u32::from(!is_there), there + u32::from(is_there));
        }
        newest = Some(values);
    }
    (missing, there)
}

#[test]
fn the_newest_commit_outlives_a_page_that_cannot_be_read() {
    for chip in [Chip::TINY, Chip::TINY_MLC] {
        let (missing, there) = taken_back(chip, TWICE);
        assert!(missing == 0 && there > 100, "{missing} missing, {there} there");
    }
    // Without, it passes for a torn one.
    let (missing, there) = taken_back(Chip::TINY, PLAIN);
    assert!(missing > 100 && there == 0, "{missing} missing, {there} there");
}

/// One program more for each commit, and no page that lives longer.
#[test]
fn a_commit_is_two_programs() {
    let costs = |options: LogOptions| {
        let mut sim = Sim::new(Chip::TINY.with_blocks(64));
        let mut bytes = memory(&sim.chip().geometry, &options);
        let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
        let now = |toy: &Toy<'_, &mut Sim>| (toy.log.stats().programs_for(Cause::Host), toy.log.live_pages());
        toy.put(0, 1).unwrap();
        let before = now(&toy);
        (1..9).for_each(|id| toy.put(id, 1).unwrap());
        let after = now(&toy);
        (after.0 - before.0, after.1 - before.1)
    };
    assert_eq!((costs(PLAIN), costs(TWICE)), ((8, 8), (16, 8)));
}
