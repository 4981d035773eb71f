//! Stores that ended once.

use std::collections::BTreeMap;

use nandu::{Durability, Error, Options, Store};
use nandu_sim::{Chip, Fault, Sim, Trigger};

/// Numbers that look like chance and are the same in every run.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % below as u64) as usize
}

/// Puts and deletes on a chip whose programs fail now and then, until it can only be read or so many steps were made.
fn wear_out(blocks: u32, seed: u64) {
    let mut chip = Chip::W25N01GV.with_blocks(blocks);
    chip.geometry.pages_per_block = 8;
    let options = Options { cache_size: 2048, durability: Durability::OnSync, pending_size: 340, ..Options::DEFAULT };
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    let _ = store.nand_mut().inject(Fault::ProgramFails, Trigger::Probability(0.02));
    let (mut state, mut model) = (seed, BTreeMap::new());
    for step in 0..20_000 {
        // The program of a commit failed, and there was no room for another one.
        if store.sync() == Err(Error::Poisoned) {
            store = Store::open(store.abandon(), options, memory.clone().leak()).unwrap();
        }
        let key = (next(&mut state, 300) as u32).to_be_bytes();
        if next(&mut state, 3) == 0 {
            match store.delete(&key) {
                Err(Error::ReadOnly) => return,
                outcome => {
                    let stats = store.stats();
                    assert_eq!(outcome, Ok(model.remove(&key).is_some()), "seed {seed}, step {step}: {stats:?}");
                }
            }
            continue;
        }
        let value = vec![step as u8; 1 + next(&mut state, 600)];
        match store.put(&key, &value) {
            Err(Error::ReadOnly) => return,
            Err(Error::Full) => {}
            outcome => assert_eq!(outcome, Ok(model.insert(key, value).is_some()), "seed {seed}, step {step}"),
        }
    }
}

/// A delete was refused for want of room once, with 40 pages live of 8 that may be and 14 bad blocks of 16.
#[test]
fn a_worn_chip_can_be_read_only_and_is_not_full() {
    for blocks in [16, 24, 40] {
        (0..40).for_each(|seed| wear_out(blocks, seed));
    }
}
