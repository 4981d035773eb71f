//! How often blocks were erased: known again when the index is opened, whatever end it had, so that sessions without number wear
//! a chip as evenly as one.

use nandu_inpage::{InPage, Options, Size};
use nandu_nand::BlockAddr;
use nandu_sim::{Chip, Sim};

use crate::rig::{GRR, PAGES, SECTORS, in_pages, memory};

fn erases(sim: &Sim) -> Vec<u32> {
    (0..sim.chip().geometry.block_count).map(|block| sim.block_state(BlockAddr(block)).counters.erases).collect()
}

/// What the index says of all its blocks, as the chip knows it.
fn said_and_true(size: Size, sim: &Sim) -> ([u32; 2], [u32; 2]) {
    let erases = erases(sim);
    let mean = erases.iter().sum::<u32>() / erases.len() as u32;
    ([size.erase_count_max, size.erase_count_mean], [*erases.iter().max().unwrap(), mean])
}

fn session(sim: Sim, options: Options, changes: std::ops::Range<u32>, is_cut: bool) -> Sim {
    let mut bytes = memory(sim.chip(), &options);
    let mut index = InPage::open(sim, options, &mut bytes).unwrap();
    for number in changes {
        let key = number.wrapping_mul(0x9E37_79B9) % 60;
        index.put(&key.to_be_bytes(), &number.to_be_bytes()).unwrap();
        index.sync().unwrap();
    }
    if is_cut { index.abandon() } else { index.unmount().unwrap() }
}

fn formatted(sim: Sim, options: Options) -> Sim {
    let mut bytes = memory(sim.chip(), &options);
    InPage::format(sim, options, &mut bytes).unwrap().unmount().unwrap()
}

fn opened(sim: Sim, options: Options) -> (Size, Sim) {
    let mut bytes = memory(sim.chip(), &options);
    let index = InPage::open(sim, options, &mut bytes).unwrap();
    (index.size(), index.abandon())
}

/// A chip as it is, and one whose counts do not fit one anchor.
fn chips() -> [(Chip, Options); 3] {
    [(SECTORS, GRR), (PAGES, in_pages(GRR)), (SECTORS.with_blocks(400), GRR)]
}

#[test]
fn after_an_orderly_end_every_erase_is_known_again() {
    for (chip, options) in chips() {
        let mut sim = formatted(Sim::new(chip), options);
        for round in 0..5 {
            sim = session(sim, options, round * 200..round * 200 + 200, false);
            let (size, after) = opened(sim, options);
            let (said, true_count) = said_and_true(size, &after);
            assert_eq!(said, true_count, "round {round}");
            sim = after;
        }
        // Another volume on the same chip wears the same blocks.
        let (size, sim) = opened(formatted(sim, options), options);
        let (said, true_count) = said_and_true(size, &sim);
        assert_eq!(said, true_count);
    }
}

#[test]
fn after_cuts_without_an_orderly_end_hardly_an_erase_is_forgotten() {
    for (chip, options) in chips() {
        let mut sim = formatted(Sim::new(chip), options);
        for round in 0..5 {
            sim = session(sim, options, round * 1000..round * 1000 + 1000, true);
        }
        let (size, sim) = opened(sim, options);
        let ([_, mean], [_, true_mean]) = said_and_true(size, &sim);
        assert!(mean * 10 >= true_mean * 9, "{mean} of {true_mean} erases a block");
    }
}

#[test]
fn short_sessions_wear_the_chip_as_evenly_as_a_long_one() {
    let (chip, options) = (PAGES.with_blocks(40), in_pages(GRR));
    for is_cut in [false, true] {
        let mut sim = formatted(Sim::new(chip), options);
        let before = erases(&sim);
        for round in 0..400 {
            sim = session(sim, options, round * 20..round * 20 + 20, is_cut);
        }
        // The first blocks are those of the anchors, of which each session begins another.
        let worn: Vec<u32> = erases(&sim).iter().zip(before).skip(3).map(|(now, before)| now - before).collect();
        let (least, most) = (worn.iter().min().unwrap(), worn.iter().max().unwrap());
        let mean = worn.iter().sum::<u32>() / worn.len() as u32;
        // With orderly ends nothing is forgotten. With a cut after each twenty changes it is hardly known which were erased, and chance
        // has to do.
        let around = if is_cut { mean / 2 } else { 6 };
        assert!(mean > 50 && mean - least <= around && most - mean <= around, "cut: {is_cut}, erases {worn:?}");
    }
}
