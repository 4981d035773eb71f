//! Anchor blocks that are lost (F10, F11 where checkpoints stand).

use nandu_log::{LogError, LogOptions};
use nandu_nand::{BlockAddr, Geometry, Nand};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::cuts::{check, formatted, recover, used, workload};
use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// The block table stands in the anchor.
const SMALL: Chip = Chip::TINY.with_blocks(18);
/// The block table has pages of its own.
const WIDE: Chip = Chip::TINY.with_blocks(64);

/// A chip on which programs fail in some of the first four blocks, which are the anchor blocks, until all of these are retired.
fn without(chip: Chip, lost: &[u32]) -> Sim {
    lose(formatted(chip, PLAIN), PLAIN, lost)
}

fn lose(mut chip: Sim, options: LogOptions, lost: &[u32]) -> Sim {
    for &block in lost {
        chip.inject(Fault::ProgramFails, Trigger::Block(BlockAddr(block)));
    }
    let mut bytes = memory(chip.geometry(), &options);
    let mut toy = Toy::mount(&mut chip, options, &mut bytes).unwrap();
    while (toy.log.stats().bad_blocks as usize) < lost.len() {
        toy.log.checkpoint().unwrap();
    }
    toy.unmount().unwrap();
    chip.withdraw_all();
    chip
}

/// Every two of the anchor blocks.
const PAIRS: [[u32; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

#[test]
fn with_two_of_four_anchor_blocks_a_volume_goes_on() {
    for chip in [SMALL, WIDE] {
        for lost in PAIRS {
            let mut chip = without(chip, &lost);
            let mut bytes = memory(chip.geometry(), &PLAIN);
            for round in 0..60_u64 {
                let mut toy = Toy::mount(&mut chip, PLAIN, &mut bytes).unwrap();
                assert!(!toy.log.is_read_only(), "{lost:?} lost, round {round}");
                if round > 0 {
                    assert_eq!(toy.get(5).unwrap(), Some(round - 1));
                }
                toy.put(5, round).unwrap();
                // Clean or not, with the first checkpoint of a block as the newest, or a later one.
                for _ in 0..round % 4 {
                    toy.log.checkpoint().unwrap();
                }
                if round % 3 == 0 {
                    toy.unmount().unwrap();
                } else {
                    drop(toy);
                }
            }
        }
    }
}

#[test]
fn every_cut_with_two_of_four_anchor_blocks() {
    for (chip, lost) in PAIRS.map(|lost| (SMALL, lost)).into_iter().chain([(WIDE, PAIRS[1]), (WIDE, PAIRS[3])]) {
        let chip = without(chip, &lost);
        let check = check(PLAIN, &chip);
        let summary = Driver::new(chip).resume().every(workload(PLAIN, 12, 8, true), check);
        assert!(summary.cases > 100, "{summary:?}");
    }
}

#[test]
fn every_cut_of_a_recovery_with_two_of_four_anchor_blocks() {
    for (chip, lost) in [(SMALL, PAIRS[0]), (SMALL, PAIRS[4]), (WIDE, PAIRS[2])] {
        let chip = without(chip, &lost);
        let check = check(PLAIN, &chip);
        Driver::new(chip).limit(1_500).pairs(workload(PLAIN, 8, 8, true), recover(PLAIN), check);
    }
}

/// The first checkpoint of an anchor block may be torn so that it reads well once. The recovery after that cut writes checkpoints too: were
/// the block with the checkpoint before erased for them, a second cut would leave none (N8). The torn page may go bad before anything is
/// written again, so each case is also looked at in a copy of the chip that rests first.
#[test]
fn a_stable_checkpoint_outlives_every_cut_of_a_recovery() {
    for lost in PAIRS.iter().map(|pair| &pair[..]).chain([&[][..]]) {
        let checkpoints = |chip: &mut Sim, acknowledged: &mut u64| -> Run {
            let mut bytes = memory(&chip.chip().geometry, &PLAIN);
            let mut toy = Toy::mount(&mut *chip, PLAIN, &mut bytes)?;
            for round in 0..5 {
                toy.put(1, 1000 + round)?;
                *acknowledged = 1000 + round;
                toy.log.checkpoint()?;
                toy.log.checkpoint()?;
            }
            Ok(())
        };
        let found = |chip: &mut Sim, acknowledged: u64| {
            let mut bytes = memory(&chip.chip().geometry, &PLAIN);
            let mut toy = Toy::mount(chip, PLAIN, &mut bytes).unwrap();
            assert!(!toy.log.is_read_only());
            let found = toy.get(1).unwrap().unwrap_or_default();
            let is_next = found == 1000.max(acknowledged + 1);
            assert!(acknowledged == 0 || found == acknowledged || is_next, "{found} for {acknowledged}");
            found
        };
        // The driver recovers before it checks, so that the chip that rests first is looked at here.
        let recovery = |chip: &mut Sim| -> Run {
            let mut rested = chip.clone();
            rested.advance_ns(u64::MAX / 4);
            let mut bytes = memory(&chip.chip().geometry, &PLAIN);
            let is_found = Toy::mount(&mut rested, PLAIN, &mut bytes).is_ok();
            assert!(is_found || rested.is_off(), "no checkpoint outlived the rest");
            recover(PLAIN)(chip)
        };
        let check = |chip: &mut Sim, &acknowledged: &u64| found(chip, acknowledged);
        let summary = Driver::new(without(SMALL, lost)).pairs(checkpoints, recovery, check);
        assert!(summary.cases > 1_000, "{summary:?}");
    }
}

/// Chains of cuts, `NANDU_CHAINS` of them of each kind; a few hundred are the short form.
#[test]
fn chains_of_cuts_with_two_or_three_of_four_anchor_blocks() {
    let chains = std::env::var("NANDU_CHAINS").map_or(60, |count| count.parse().unwrap());
    for (chip, lost) in [(SMALL, &[1, 2][..]), (SMALL, &[3]), (WIDE, &[0, 3]), (WIDE, &[1])] {
        let chip = without(chip, lost);
        let check = check(PLAIN, &chip);
        let driver = Driver::new(chip).seed(7).resume();
        let summary = driver.random(chains, workload(PLAIN, 25, 12, true), recover(PLAIN), check);
        assert!(summary.cuts >= chains, "{summary:?}");
    }
}

/// Volumes with pages that others name: their recovery programs more, and a mount looks at what stands in more blocks.
const RAW: [(Chip, LogOptions, u32); 3] = [
    (Chip::TINY.with_blocks(28), LogOptions { has_raw: true, ..PLAIN }, 30),
    (tagged(), LogOptions { has_raw: true, has_tags: true, ..PLAIN }, 30),
    (Chip::TINY_MLC.with_blocks(26), LogOptions { has_raw: true, has_mlc: true, ..PLAIN }, 30),
];

const fn tagged() -> Chip {
    let chip = Chip::TINY.with_blocks(28);
    Chip { geometry: Geometry { spare_size: 32, tag_size: 16, ..chip.geometry }, ..chip }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_with_raw_pages_and_two_or_three_of_four_anchor_blocks() {
    for (chip, options, entries) in RAW {
        for lost in [&[3][..], &[0], &[1, 2]] {
            let chip = lose(used(chip, options, entries), options, lost);
            let check = check(options, &chip);
            Driver::new(chip).limit(20_000).pairs(workload(options, 12, entries, false), recover(options), check);
        }
    }
}

/// Chains of cuts, `NANDU_CHAINS` of them of each kind.
#[test]
fn chains_of_cuts_with_raw_pages_and_two_or_three_of_four_anchor_blocks() {
    let chains = std::env::var("NANDU_CHAINS").map_or(60, |count| count.parse().unwrap());
    for (chip, options, entries) in RAW {
        for lost in [&[3][..], &[0], &[1, 2]] {
            let chip = lose(used(chip, options, entries), options, lost);
            let check = check(options, &chip);
            let driver = Driver::new(chip).seed(7).resume();
            driver.random(chains, workload(options, 30, entries, true), recover(options), check);
        }
    }
}

/// Of three anchor blocks one fails in a recovery: two are left, and that is enough.
#[test]
fn an_anchor_block_that_fails_in_a_recovery_is_not_missed() {
    for lost in 0..4_u32 {
        for fails in (0..4).filter(|&block| block != lost) {
            let mut chip = without(SMALL, &[lost]);
            let mut bytes = memory(chip.geometry(), &PLAIN);
            for round in 0..8_u64 {
                let mut toy = Toy::mount(&mut chip, PLAIN, &mut bytes).unwrap();
                assert!(!toy.log.is_read_only(), "{lost} lost, then {fails}, round {round}");
                toy.put(1, round).unwrap();
                drop(toy);
                if round == 2 {
                    chip.inject(Fault::EraseFails, Trigger::Block(BlockAddr(fails)));
                }
            }
        }
    }
}

/// The last anchor block is written until it is full; then what there is can be read.
#[test]
fn with_one_anchor_block_a_volume_can_be_read() {
    let mut chip = without(SMALL, &[0, 1]);
    chip.inject(Fault::ProgramFails, Trigger::Block(BlockAddr(2)));
    let mut bytes = memory(chip.geometry(), &PLAIN);
    let mut expected = 0;
    for round in 0..10_u64 {
        let mut toy = Toy::mount(&mut chip, PLAIN, &mut bytes).unwrap();
        if round > 0 {
            assert_eq!(toy.get(3).unwrap(), Some(expected));
        }
        if toy.put(3, round).is_ok() {
            expected = round;
        }
        let _ = toy.log.checkpoint();
    }
    let toy = Toy::mount(&mut chip, PLAIN, &mut bytes).unwrap();
    assert!(toy.log.is_read_only());
}

/// Where no anchor block is left to be erased, no checkpoint remembers that: the mark on the block does.
#[test]
fn an_anchor_block_whose_erase_failed_is_not_erased_again() {
    let mut chip = without(SMALL, &[0, 1]);
    chip.inject(Fault::EraseFails, Trigger::Block(BlockAddr(2)));
    chip.inject(Fault::EraseFails, Trigger::Block(BlockAddr(3)));
    let mut bytes = memory(chip.geometry(), &PLAIN);
    let mut erases = Vec::new();
    for round in 0..5_u64 {
        let before = chip.counters().erases;
        let mut toy = Toy::mount(&mut chip, PLAIN, &mut bytes).unwrap();
        assert_eq!(toy.put(3, round), Err(LogError::ReadOnly));
        drop(toy);
        erases.push(chip.counters().erases - before);
    }
    assert_eq!(erases, [1, 0, 0, 0, 0]);
}
