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
    /// Bare pages that are given up.
    Waste(u32),
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
        1 => (1..12_u32).prop_map(Step::Waste),
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
        toy.is_hostile = options.bare_streams > 0;
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
                Step::Waste(pages) if options.bare_streams > 0 => match toy.waste(*pages) {
                    Ok(()) | Err(LogError::Full) => continue,
                    Err(error) => panic!("{error}"),
                },
                Step::Waste(_) => continue,
                Step::Idle => {
                    toy.work(&mut nandu_log::Budget::idle(20)).unwrap();
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
                    toy.log.abandon();
                    break;
                }
            };
            match toy.batch(&changes) {
                Ok(()) => {
                    for (id, value) in changes {
                        match value {
                            Some(value) => model.insert(id, value),
                            None => model.remove(&id),
                        };
                    }
                }
                Err(LogError::Full) => {
                    assert!(changes.iter().any(|(_, value)| value.is_some()), "a delete was refused");
                }
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
    fn the_toy_agrees_with_its_model_on_the_tiny_mlc_chip(steps in prop::collection::vec(step(), 1..200)) {
        run(Chip::TINY_MLC, LogOptions::DEFAULT, &steps);
    }

    #[test]
    fn the_toy_agrees_with_its_model_where_pages_are_bare(steps in prop::collection::vec(step(), 1..300)) {
        run(Chip::TINY.with_blocks(20), LogOptions { bare_streams: 1, ..LogOptions::DEFAULT }, &steps);
        let two = LogOptions { bare_streams: 2, ready_max: Some(6), ..LogOptions::DEFAULT };
        run(Chip::TINY.with_blocks(26), two, &steps);
    }

    #[test]
    fn the_toy_agrees_with_its_model_where_some_streams_have_two_bits_a_cell(
        steps in prop::collection::vec(step(), 1..300)
    ) {
        let one = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
        run(Chip::TINY_MLC.with_blocks(26), one, &steps);
        let two = LogOptions { bare_streams: 3, mlc_streams: 2, ready_max: Some(7), ..LogOptions::DEFAULT };
        run(Chip::TINY_MLC.with_blocks(34), two, &steps);
    }
}

#[test]
fn a_chip_filled_until_full_can_be_emptied_and_filled_again() {
    let bare = LogOptions { bare_streams: 1, ..LogOptions::DEFAULT };
    let mlc = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
    let plain = LogOptions::DEFAULT;
    for (chip, options) in [
        (Chip::TINY, plain),
        (Chip::TINY_MLC, plain),
        (Chip::W25N01GV.with_blocks(24), plain),
        (Chip::TINY.with_blocks(19), bare),
        (Chip::TINY_MLC.with_blocks(22), bare),
        (Chip::W25N01GV.with_blocks(24), bare),
        (Chip::TINY_MLC.with_blocks(26), mlc),
        (Chip::MLC_4K.with_blocks(26), mlc),
    ] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(&chip.geometry, &options);
        let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
        for round in 0..3 {
            let mut count = 0;
            while count < toy.len() as u32 {
                match toy.put(count, u64::from(count) + round) {
                    Ok(()) => count += 1,
                    Err(LogError::Full) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let stats = toy.log.stats();
            let room = stats.capacity_pages.saturating_sub(stats.live_pages);
            // With two bits a cell a page with header takes two of those that are left.
            let least = if options.mlc_streams > 0 { 6 } else { 2 };
            assert!(count as usize == toy.len() || room <= least, "{count} entries fit: {stats:?}");
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
