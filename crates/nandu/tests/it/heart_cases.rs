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
        let key = (next(&mut state, 300) as u32).to_be_bytes();
        let is_delete = next(&mut state, 3) == 0;
        let value = (!is_delete).then(|| vec![step as u8; 1 + next(&mut state, 600)]);
        let before = model.get(&key).cloned();
        let outcome = match &value {
            Some(value) => store.put(&key, value),
            None => store.delete(&key),
        };
        match outcome {
            Err(Error::ReadOnly) => return,
            Err(Error::Full) if !is_delete => {}
            Err(Error::Poisoned) => {}
            outcome => {
                assert_eq!(outcome, Ok(before.is_some()), "seed {seed}, step {step}: {:?}", store.stats());
                model.remove(&key);
                model.extend(value.clone().map(|value| (key, value)));
            }
        }
        // The program of a commit failed, and there was no room for another one: the change is there behind a mount, or is not.
        if outcome == Err(Error::Poisoned) || store.sync() == Err(Error::Poisoned) {
            store = Store::open(store.abandon(), options, memory.clone().leak()).unwrap();
            let found = store.get(&key).unwrap().map(<[u8]>::to_vec);
            assert!(found == value || found == before, "seed {seed}, step {step}");
            model.remove(&key);
            model.extend(found.map(|found| (key, found)));
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
