//! Two bits a cell: what a cut tears there, what fails, and how much room it makes.

use nandu_log::{Broken, Claim, Claimed, Kind, LogError, LogOptions};
use nandu_nand::{CellMode, Geometry, Pairing, TearScope};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};

use crate::cuts::{check, finds_a_loss_among, formatted, recover, stays_usable, used, workload};
use crate::toy::{Toy, memory};

const ONE: LogOptions = LogOptions { has_raw: true, has_mlc: true, ..LogOptions::DEFAULT };
const SMALL: Chip = Chip::TINY_MLC.with_blocks(26);

/// A ready list in which several blocks can be opened from each end, a block table with pages of its own.
const TWO: LogOptions = LogOptions { stream_count: Some(4), ready_max: Some(9), ..ONE };
const WIDE: Chip = Chip::TINY_MLC.with_blocks(64);

const CASES: [(Chip, LogOptions, u32); 2] = [(SMALL, ONE, 30), (WIDE, TWO, 44)];

#[test]
fn every_cut_of_a_fresh_volume() {
    let chip = formatted(SMALL, ONE);
    let check = check(ONE, &chip);
    let summary = Driver::new(chip).every(workload(ONE, 30, 10, true), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_where_blocks_are_emptied() {
    let near = Chip { geometry: Geometry { pairing: Pairing::Dist3, ..SMALL.geometry }, ..SMALL };
    let alone = Chip { geometry: Geometry { tear: TearScope::Page, ..SMALL.geometry }, ..SMALL };
    for (chip, options, entries) in CASES.into_iter().chain([(near, ONE, 30), (alone, ONE, 30)]) {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let summary = Driver::new(chip).every(workload(options, 40, entries, true), check);
        assert!(summary.operations > 100, "{summary:?}");
    }
}

#[test]
fn every_cut_and_going_on_after_it() {
    for (chip, options, entries) in CASES {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, entries, false), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    for (chip, options, entries) in CASES {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).limit(20_000).pairs(workload(options, 12, entries, false), recover(options), check);
    }
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    for (chip, options, entries) in CASES {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let driver = Driver::new(chip).resume().seed(7);
        driver.random(count, workload(options, 30, entries, true), recover(options), check);
    }
    stays_usable(&[(SMALL, ONE, 24), (WIDE, TWO, 40)]);
}

#[test]
fn where_partners_of_named_pages_are_programmed_the_driver_finds_a_loss() {
    let broken = Broken { shield: true, ..Broken::NOTHING };
    assert!(finds_a_loss_among(SMALL, LogOptions { broken, ..ONE }, ONE, 30));
}

#[test]
fn where_copies_are_named_before_their_pairs_are_settled_the_driver_finds_a_loss() {
    let broken = Broken { early: true, ..Broken::NOTHING };
    assert!(finds_a_loss_among(SMALL, LogOptions { broken, ..ONE }, ONE, 26));
}

/// Each operation of a workload fails once: what shared its cells is there all the same.
#[test]
fn a_program_that_fails_takes_nothing_with_it() {
    let chip = Chip { geometry: Geometry { pages_per_block: 16, ..SMALL.geometry }, ..SMALL };
    let start = used(chip, ONE, 44);
    let mut copies = 0;
    for nth in 0..300 {
        for fault in [Fault::ProgramFails, Fault::Bus(Tear::SomeBits), Fault::Bus(Tear::Complete)] {
            let mut sim = start.clone();
            sim.inject(fault, Trigger::Operation(start.operation_count() + nth));
            let mut bytes = memory(&chip.geometry, &ONE);
            let mut toy = Toy::mount(&mut sim, ONE, &mut bytes).unwrap();
            let mut values = toy.values().unwrap();
            for step in 0..80_u32 {
                let id = step.wrapping_mul(7) % 44;
                toy.put(id, u64::from(step)).unwrap();
                values.insert(id, u64::from(step));
            }
            assert_eq!(toy.values().unwrap(), values, "{fault:?} at operation {nth}");
            toy.verify().unwrap();
            copies += toy.lost.0;
        }
    }
    assert!(copies > 0, "no copy shared its cells with what failed");
}

/// Several pages before one commit: what fails takes one along that nobody has but the log.
#[test]
fn what_shares_its_cells_with_a_program_that_fails_is_programmed_elsewhere() {
    let mut lost = 0;
    for nth in 0..100 {
        let mut bytes = memory(&Chip::PAPER_FLEX.geometry, &ONE);
        let mut log = crate::formatted(Sim::new(Chip::PAPER_FLEX), ONE, &mut bytes).unwrap();
        let Ok(Claimed::Granted(mut grant)) = log.claim(Claim::Grow, 100, 100) else { panic!("no room") };
        let mut page = vec![0; 4096];
        let (mut pages, begun) = (Vec::new(), log.nand().operation_count());
        log.nand_mut().inject(Fault::ProgramFails, Trigger::Operation(begun + nth));
        for key in 0..90_u8 {
            page.fill(key);
            pages.push(log.append(&mut page, Kind::Raw(&[key], CellMode::Mlc), &mut grant).unwrap());
            while let Some(rescued) = log.rescue(&mut page).unwrap() {
                let place = pages.iter().position(|&page| page == rescued.from).unwrap();
                assert_eq!(rescued.owner.key(), Some(&[place as u8][..]));
                pages[place] = rescued.to.unwrap();
                log.forget(rescued.from);
                lost += 1;
            }
        }
        log.commit(&mut page, grant).unwrap();
        for (key, &at) in (0..).zip(&pages) {
            log.read_raw(at, &mut page).unwrap();
            assert!(page.iter().all(|&byte| byte == key), "page {key} after a failure at {nth}");
        }
    }
    assert!(lost > 20, "{lost}");
}

#[test]
fn what_shares_its_cells_with_a_page_that_a_commit_names_is_left_out() {
    let mut bytes = memory(&Chip::PAPER_FLEX.geometry, &ONE);
    let mut log = crate::formatted(Sim::new(Chip::PAPER_FLEX), ONE, &mut bytes).unwrap();
    let mut page = vec![0; 4096];
    let (mut pages, mut first) = (0, None);
    // Where each page has a commit of its own, the pages that share its cells are left out.
    loop {
        let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Mlc)), 1) else {
            panic!("no room")
        };
        let at = log.append(&mut page, Kind::Raw(b"key", CellMode::Mlc), &mut grant).unwrap();
        log.commit(&mut page, grant).unwrap();
        let block = log.geometry().block_of(at);
        if *first.get_or_insert(block) != block {
            break;
        }
        pages += 1;
    }
    assert!((60..=64).contains(&pages), "{pages} of 128");
}

#[test]
fn a_volume_is_mounted_with_two_bits_a_cell_if_it_has_them_and_no_chip_without_takes_them() {
    let single = LogOptions { has_mlc: false, ..ONE };
    for (made, opened) in [(ONE, single), (single, ONE)] {
        let mut bytes = memory(&SMALL.geometry, &ONE);
        let sim = crate::formatted(Sim::new(SMALL), made, &mut bytes).unwrap().unmount().unwrap();
        let refused = crate::mounted(sim, opened, &mut bytes).map(drop);
        assert!(matches!(refused, Err(LogError::WrongFormat { what: &"two bits a cell" })), "{refused:?}");
    }
    let mut bytes = memory(&SMALL.geometry, &ONE);
    let refused = crate::formatted(Sim::new(Chip::TINY), ONE, &mut bytes).map(drop);
    assert!(matches!(refused, Err(LogError::Unsuitable { .. })), "{refused:?}");
}
