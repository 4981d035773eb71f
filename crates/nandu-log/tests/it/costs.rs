//! What things cost on flash.

use nandu_log::{Claim, Claimed, Log, LogOptions};
use nandu_nand::{Cause, Nand};
use nandu_sim::{Chip, Counters, Sim};

use crate::mounts::{LARGE, READS_MAX};
use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

#[test]
fn a_commit_is_one_program_and_a_page_one_read() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut log = crate::formatted(&mut sim, PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; 2048];
    for _ in 0..1000 {
        let mut budget = log.instalment((1, 0), (4, 1));
        assert!(log.victim(&mut budget).unwrap().is_none());
        let Claimed::Granted(grant) = log.claim(Claim::Grow, 1, 1).unwrap() else { panic!("no room") };
        let before = *log.nand().counters();
        let at = log.commit(&mut page, grant).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases, cost.bytes_in), (1, 0, 0, 2048));
        let before = *log.nand().counters();
        log.read(at, &mut page).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases), (0, 1, 0));
    }
    assert_eq!(log.nand().ledger().of(Cause::Host).programs, 1000);
    assert_eq!(log.stats().programs_for(Cause::Host), 1000);
}

fn cost_of(log: &mut Log<'_, &mut Sim>, work: impl FnOnce(&mut Log<'_, &mut Sim>)) -> Counters {
    let before = *log.nand().counters();
    work(log);
    log.nand().counters().since(&before)
}

#[test]
fn a_checkpoint_is_one_program_where_the_table_fits_the_anchor_and_one_more_for_each_changed_page_of_it() {
    // The first one says that a format erased two blocks.
    for (chip, first, next) in [(Chip::W25N01GV.with_blocks(256), 1, 1), (Chip::W25N01GV, 2, 1), (LARGE, 2, 1)] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(sim.geometry(), &PLAIN);
        let mut log = crate::formatted(&mut sim, PLAIN, &mut bytes).unwrap();
        let cost = cost_of(&mut log, |log| log.checkpoint().unwrap());
        assert_eq!((cost.programs, cost.erases), (first, 0), "{}", chip.name);
        let cost = cost_of(&mut log, |log| log.checkpoint().unwrap());
        assert_eq!((cost.programs, cost.reads, cost.erases), (next, 1, 0), "{}", chip.name);
    }
}

/// A clean mount programs and erases nothing, and unmounting it again neither.
#[test]
fn a_clean_mount_changes_nothing() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
    for id in 0..90 {
        toy.put(id % 30, 1).unwrap();
    }
    toy.unmount().unwrap();
    let before = *sim.counters();
    for _ in 0..5 {
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap().len(), 30);
        assert!(!toy.log.stats().was_cut && toy.log.is_exact());
        toy.unmount().unwrap();
    }
    let cost = sim.counters().since(&before);
    assert_eq!((cost.programs, cost.erases), (0, 0));
}

/// Most reads that a mount took, clean and after a cut, over many states of a volume.
fn mount_reads(chip: Chip, rounds: u32) -> (u64, u64) {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    drop(Toy::format(&mut sim, PLAIN, &mut bytes).unwrap());
    let (mut clean_max, mut cut_max) = (0, 0);
    let mut seed = 1_u32;
    for round in 0..rounds {
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        for _ in 0..round * 7 % 311 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = (seed >> 16) % (toy.len() as u32 / 2);
            toy.put(id, u64::from(seed)).unwrap();
        }
        let mut cut: Sim = Sim::clone(toy.log.nand());
        let mut clean = toy.unmount().unwrap().clone();
        clean_max = clean_max.max(crate::mounts::reads_of_a_mount(&mut clean, PLAIN));
        cut_max = cut_max.max(crate::mounts::reads_of_a_mount(&mut cut, PLAIN));
    }
    (clean_max, cut_max)
}

#[test]
fn a_mount_reads_at_most_forty_pages_whatever_the_size_of_the_chip() {
    for (chip, rounds) in [(Chip::TINY, 60), (Chip::W25N01GV, 60), (LARGE, 16)] {
        let (clean, cut) = mount_reads(chip, rounds);
        println!("{}: {clean} reads clean, {cut} after a cut", chip.name);
        assert!(clean <= READS_MAX && cut <= READS_MAX, "{}: {clean} clean, {cut} after a cut", chip.name);
    }
}
