//! What does not suit is refused, and chips that fail lose nothing.

use std::collections::BTreeMap;

use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};
use nandu_tree::{BATCH_PAGES_MAX, ByteCells, Edit, EngineError, FixedCells, Options, memory_required};

use crate::bench::{Bench, OPTIONS, chance, contents, memory};
use crate::group::waiting;

#[test]
fn a_tree_is_not_opened_as_another() {
    let mut bench = Bench::new(Sim::new(Chip::TINY), FixedCells::<4, 4>, OPTIONS);
    bench.engine().put(&[1; 4], &[2; 4]).unwrap();
    let chip = bench.unmount();
    let bytes = || memory(&chip, &OPTIONS);
    let opened = crate::bench::open(chip.clone(), FixedCells::<4, 8>, OPTIONS, bytes());
    assert_eq!(opened.err(), Some(EngineError::OtherFormat));
    let opened = crate::bench::open(chip.clone(), ByteCells, OPTIONS, bytes());
    assert_eq!(opened.err(), Some(EngineError::OtherFormat));
    let required = memory_required::<Sim>(&chip.chip().geometry, &OPTIONS);
    let opened = crate::bench::open(chip.clone(), FixedCells::<4, 4>, OPTIONS, &mut bytes()[1..]);
    assert_eq!(opened.err(), Some(EngineError::Memory { required }));
    let opened = crate::bench::open(chip.clone(), FixedCells::<4, 300>, OPTIONS, bytes());
    assert_eq!(opened.err(), Some(EngineError::PageSize(256)));
    assert_eq!(Bench::on(chip, FixedCells::<4, 4>, OPTIONS).engine().get(&[1; 4]).unwrap(), Some(&[2; 4][..]));
}

#[test]
fn what_does_not_suit_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(Sim::new(Chip::TINY), ByteCells, OPTIONS);
    let engine = bench.engine();
    engine.put(b"a", b"b").unwrap();
    let long = vec![7; 512];
    let most = engine.key_size_max();
    assert_eq!(engine.put(&long[..most + 1], b""), Err(EngineError::KeySize(most + 1)));
    assert_eq!(engine.get(&long[..most + 1]), Err(EngineError::KeySize(most + 1)));
    let most = engine.entry_size_max() - 1;
    assert_eq!(engine.put(b"k", &long[..most + 1]), Err(EngineError::ValueSize(most + 1)));
    assert_eq!(engine.put(b"k", &long[..most]), Ok(false));
    assert_eq!(engine.delete(b"k"), Ok(true));
    assert_eq!(engine.batch(&[Edit { key: b"k", value: Some(&long) }]), Err(EngineError::ValueSize(512)));
    let edit = |key: &'static [u8]| Edit { key, value: Some(b"") };
    assert_eq!(engine.batch(&[edit(b"c"), edit(b"d"), edit(b"d")]), Err(EngineError::NotAscending(2)));
    assert_eq!(engine.batch(&[]), Ok(()));
    assert_eq!(engine.record_count(), 1);
    bench.check_exact();
}

#[test]
fn a_batch_that_is_too_large_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(192)), FixedCells::<4, 4>, OPTIONS);
    for number in 0..8000_u32 {
        bench.engine().put(&(number * 1000).to_be_bytes(), &[1; 4]).unwrap();
    }
    let keys: Vec<[u8; 4]> = (0..400_u32).map(|number| (number * 20_000 + 1).to_be_bytes()).collect();
    let edits: Vec<Edit<'_>> = keys.iter().map(|key| Edit { key, value: Some(&[2; 4]) }).collect();
    let refused = bench.engine().batch(&edits).unwrap_err();
    assert!(matches!(refused, EngineError::BatchTooLarge { pages } if pages > BATCH_PAGES_MAX), "{refused}");
    assert_eq!((bench.engine().record_count(), bench.engine().get(&keys[0]).unwrap()), (8000, None));
    bench.check_exact();
    bench.engine().batch(&edits[..20]).unwrap();
    assert_eq!(bench.engine().record_count(), 8020);
    bench.check_exact();
}

/// Changes of many leaves, of which as many fail as the chip fails.
fn live_on(chip: Sim, options: Options, must_succeed: bool) -> u32 {
    let mut bench = Bench::new(chip, FixedCells::<4, 4>, options);
    let mut model = BTreeMap::new();
    let mut failed = 0;
    for count in 0..3000_u32 {
        let key = (chance(count, 1) % 600 * 77).to_be_bytes();
        let value = count.to_be_bytes();
        let outcome = match chance(count, 2) % 4 {
            _ if chance(count, 3).is_multiple_of(5) => bench.engine().sync(),
            0 => bench.engine().delete(&key).map(|_| drop(model.remove(&key[..]))),
            _ => bench.engine().put(&key, &value).map(|_| drop(model.insert(key.to_vec(), value.to_vec()))),
        };
        match outcome {
            Ok(()) => {}
            Err(error) if must_succeed => panic!("{count}: {error}, {:?}", bench.engine().log().stats()),
            Err(_) => failed += 1,
        }
    }
    assert_eq!(contents(bench.engine()).unwrap(), model);
    bench.check();
    failed
}

#[test]
fn programs_and_erases_that_fail_lose_nothing() {
    for seed in 1..=4 {
        let mut chip = Sim::with_seed(Chip::TINY.with_blocks(96), seed);
        // So few that an anchor block is left: on blocks of eight pages, checkpoints make a quarter of all programs.
        chip.inject(Fault::ProgramFails, Trigger::Probability(0.001));
        chip.inject(Fault::EraseFails, Trigger::Probability(0.0003));
        assert_eq!(live_on(chip.clone(), OPTIONS, true), 0, "seed {seed}");
        assert_eq!(live_on(chip, waiting(512, 300), true), 0, "seed {seed}, where changes wait");
    }
}

#[test]
fn an_outage_in_any_operation_leaves_what_was_acknowledged() {
    // At each of the first operations the bus goes for good; then the chip is opened again.
    for nth in (0..900).step_by(7) {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(24)), FixedCells::<4, 4>, Options::DEFAULT);
        let at = bench.engine().log().nand().operation_count() + nth;
        for later in 0..40 {
            bench.engine().nand_mut().inject(Fault::Bus(Tear::Before), Trigger::Operation(at + later));
        }
        let mut model = BTreeMap::new();
        let mut under_way = None;
        for count in 0..300_u32 {
            let key = (chance(count, 1) % 100 * 77).to_be_bytes().to_vec();
            let value = count.to_be_bytes().to_vec();
            match bench.engine().put(&key, &value) {
                Ok(_) => drop(model.insert(key, value)),
                Err(_) => {
                    under_way.get_or_insert((key, value));
                }
            }
        }
        let mut chip = bench.cut();
        chip.withdraw_all();
        bench.reopen_on(chip);
        let found = contents(bench.engine()).unwrap();
        let mut after = model.clone();
        after.extend(under_way);
        assert!(found == model || found == after, "outage at {nth}");
        bench.check();
    }
}

/// The same where changes wait: what was synced before the outage is there, and what came after up to some change.
#[test]
fn an_outage_where_changes_wait_leaves_what_was_synced() {
    let options = waiting(512, 200);
    for nth in (0..400).step_by(3) {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(24)), FixedCells::<4, 4>, options);
        let at = bench.engine().log().nand().operation_count() + nth;
        for later in 0..40 {
            bench.engine().nand_mut().inject(Fault::Bus(Tear::Before), Trigger::Operation(at + later));
        }
        let mut states = vec![BTreeMap::new()];
        for count in 0..400_u32 {
            let key = (chance(count, 1) % 100 * 77).to_be_bytes().to_vec();
            let value = count.to_be_bytes().to_vec();
            if count % 5 == 4 {
                if bench.engine().sync().is_ok() {
                    states.drain(..states.len() - 1);
                }
                continue;
            }
            let mut after = states.last().unwrap().clone();
            let outcome = bench.engine().put(&key, &value);
            after.insert(key, value);
            states.push(after);
            if outcome.is_err() {
                break;
            }
        }
        let mut chip = bench.cut();
        chip.withdraw_all();
        bench.reopen_on(chip);
        let found = contents(bench.engine()).unwrap();
        assert!(states.contains(&found), "outage at {nth}");
        bench.check();
    }
}
