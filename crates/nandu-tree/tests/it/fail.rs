//! Appends that fail: the tree stays at its committed state, in memory and on flash.

use nandu_index::suite::{KeyKind, operations};
use nandu_index::suite::{Operation, Space, Subject, apply, compare, verify};
use nandu_tree::{ByteCells, Cells, Edit, FixedCells, Options, TreeError};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;

use crate::medium::{Bench, Failure, Shared};

const OPTIONS: Options = Options { cache_size: 400, journal_pages: 256 };

/// Runs operations of which each first fails at its first append, then at its second and so on, until it succeeds.
fn fail_everywhere<C: Cells>(space: Space, cells: C) {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let mut failures = 0;
    for _ in 0..30 {
        let list = operations(space).new_tree(&mut runner).unwrap().current();
        let mut bench = Bench::new(Shared::new(256, 44, 4000), cells, OPTIONS);
        let mut model = BTreeMap::new();
        for operation in &list {
            for appends in 0.. {
                bench.medium.0.borrow_mut().fail_after = Some(appends);
                let failed = try_once(&mut bench, operation);
                if bench.medium.0.borrow_mut().fail_after.take().is_some() {
                    break;
                }
                assert_eq!(failed, Err(TreeError::Pages(Failure::Append)));
                failures += 1;
                compare(&mut bench, &model);
            }
            bench.medium.0.borrow_mut().fail_after = None;
            note(&mut model, space, operation);
            if let Operation::Ascend(..) | Operation::Clear(..) | Operation::Reopen = operation {
                apply(&mut bench, &mut model, space, operation);
            }
        }
        compare(&mut bench, &model);
        verify(&mut bench);
        bench.reopen();
        compare(&mut bench, &model);
    }
    assert!(failures > 1000, "{failures}");
}

fn try_once<C: Cells>(bench: &mut Bench<C>, operation: &Operation) -> Result<(), TreeError<Failure>> {
    let tree = bench.tree();
    match operation {
        Operation::Put(key, value) => tree.put(key, value).map(|_| ()),
        Operation::Delete(key) => tree.delete(key).map(|_| ()),
        Operation::Batch(list) => {
            let edits: Vec<Edit<'_>> = list.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
            tree.batch(&edits)
        }
        _ => Ok(()),
    }
}

fn note(model: &mut BTreeMap<Vec<u8>, Vec<u8>>, _space: Space, operation: &Operation) {
    match operation {
        Operation::Put(key, value) => drop(model.insert(key.clone(), value.clone())),
        Operation::Delete(key) => drop(model.remove(key)),
        Operation::Batch(list) => {
            for (key, value) in list {
                match value {
                    Some(value) => model.insert(key.clone(), value.clone()),
                    None => model.remove(key),
                };
            }
        }
        _ => {}
    }
}

#[test]
fn a_failed_append_changes_nothing_with_fixed_cells() {
    let space =
        Space { keys: KeyKind::Fixed(4), key_count: 900, value_size_min: 4, value_size_max: 4, operations_max: 120 };
    fail_everywhere(space, FixedCells::<4, 4>);
}

#[test]
fn a_failed_append_changes_nothing_with_byte_cells() {
    let space =
        Space { keys: KeyKind::Bytes(12), key_count: 250, value_size_min: 0, value_size_max: 20, operations_max: 120 };
    fail_everywhere(space, ByteCells);
}
