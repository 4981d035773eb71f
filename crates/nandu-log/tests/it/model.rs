//! Random operations against a model, with reopening at any point.

use std::collections::BTreeMap;

use nandu_log::{LogError, LogOptions};
use nandu_nand::Nand;
use nandu_sim::{Chip, Sim};
use proptest::prelude::*;

use crate::toy::{Toy, memory};

/// One step of a random run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Put(u32, u64),
    Delete(u32),
    Batch(Vec<(u32, Option<u64>)>),
    Idle,
    Checkpoint,
    Unmount,
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..64_u32;
    prop_oneof![
        12 => (id.clone(), any::<u64>()).prop_map(|(id, value)| Step::Put(id, value)),
        4 => id.clone().prop_map(Step::Delete),
        2 => prop::collection::btree_map(id, any::<Option<u64>>(), 1..4)
            .prop_map(|changes| Step::Batch(changes.into_iter().collect())),
        1 => Just(Step::Idle),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Unmount),
        1 => Just(Step::Cut),
    ]
}

fn run(chip: Chip, options: LogOptions, steps: &[Step]) {
    let mut sim = Sim::new(chip);
    let mut model = BTreeMap::new();
    let mut bytes = memory(&chip.geometry, &options);
    let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
    let entries = toy.len() as u32;
    drop(toy);
    let mut steps = steps.iter().peekable();
    while steps.peek().is_some() {
        let mut bytes = memory(&chip.geometry, &options);
        toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap(), model);
        for step in steps.by_ref() {
            let changes = match step {
                Step::Put(id, value) => vec![(id % entries, Some(*value))],
                Step::Delete(id) => vec![(id % entries, None)],
                Step::Batch(changes) => changes
                    .iter()
                    .map(|&(id, value)| (id % entries, value))
                    .collect::<BTreeMap<_, _>>()
                    .into_iter()
                    .collect(),
                Step::Idle => {
                    toy.idle().unwrap();
                    continue;
                }
                Step::Checkpoint => {
                    toy.log.checkpoint().unwrap();
                    continue;
                }
                Step::Unmount => {
                    toy.verify().unwrap();
                    toy.unmount().unwrap();
                    break;
                }
                Step::Cut => {
                    toy.log.abandon_log();
                    break;
                }
            };
            let is_growth = changes.iter().any(|(id, value)| value.is_some() && !model.contains_key(id));
            match toy.batch(&changes) {
                Ok(()) => {
                    for (id, value) in changes {
                        match value {
                            Some(value) => model.insert(id, value),
                            None => model.remove(&id),
                        };
                    }
                }
                Err(LogError::Full) => assert!(is_growth, "a change that does not grow was refused"),
                Err(error) => panic!("{error}"),
            }
        }
    }
    let mut bytes = memory(&chip.geometry, &options);
    let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
    toy.verify().unwrap();
    assert_eq!(toy.values().unwrap(), model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_toy_agrees_with_its_model_on_the_tiny_chip(steps in prop::collection::vec(step(), 1..300)) {
        run(Chip::TINY, LogOptions::DEFAULT, &steps);
    }

    #[test]
    fn the_toy_agrees_with_its_model_on_the_smallest_chip(steps in prop::collection::vec(step(), 1..300)) {
        run(Chip::TINY.with_blocks(14), LogOptions::DEFAULT, &steps);
    }

    #[test]
    fn the_toy_agrees_with_its_model_on_the_tiny_mlc_chip(steps in prop::collection::vec(step(), 1..200)) {
        run(Chip::TINY_MLC, LogOptions::DEFAULT, &steps);
    }

    #[test]
    fn the_toy_agrees_with_its_model_with_many_streams(steps in prop::collection::vec(step(), 1..300)) {
        let options = LogOptions { stream_count: Some(4), ready_max: Some(5), ..LogOptions::DEFAULT };
        run(Chip::TINY.with_blocks(20), options, &steps);
        run(Chip::TINY.with_blocks(64), options, &steps);
    }
}

#[test]
fn a_chip_filled_until_full_can_be_emptied_and_filled_again() {
    let plain = LogOptions::DEFAULT;
    for (chip, options) in [
        (Chip::TINY, plain),
        (Chip::TINY_MLC, plain),
        (Chip::TINY.with_blocks(14), plain),
        (Chip::W25N01GV.with_blocks(14), plain),
        (Chip::MLC_4K.with_blocks(14), plain),
    ] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(&chip.geometry, &options);
        let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
        for round in 0..3 {
            let mut count = 0;
            let is_full = loop {
                if count as usize == toy.len() {
                    break false;
                }
                match toy.put(count, u64::from(count) + round) {
                    Ok(()) => count += 1,
                    Err(LogError::Full) => break true,
                    Err(error) => panic!("{error}"),
                }
            };
            let stats = toy.log.stats();
            assert!(is_full && count == stats.capacity_pages, "{}: {count} entries fit: {stats:?}", chip.name);
            for id in 0..count {
                assert_eq!(toy.get(id).unwrap(), Some(u64::from(id) + round));
                toy.delete(id).unwrap();
            }
            assert!(toy.values().unwrap().is_empty());
        }
        toy.verify().unwrap();
    }
}

#[test]
fn memory_required_is_exact() {
    let options = LogOptions::DEFAULT;
    for chip in [Chip::TINY, Chip::W25N01GV] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(sim.geometry(), &options);
        let required = bytes.len();
        let short = Toy::format(&mut sim, options, &mut bytes[1..]).err();
        assert_eq!(short, Some(LogError::Memory { required }));
        assert!(Toy::format(&mut sim, options, &mut bytes).is_ok());
    }
}
