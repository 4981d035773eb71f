//! Appends that fail: the tree stays at its committed state, in memory and on flash.

use nandu_index::suite::{KeyKind, operations};
use nandu_index::suite::{Operation, Space, Subject, apply, compare, verify};
use nandu_tree::{ByteCells, Cells, Edit, FixedCells, Options, TreeError};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;

use crate::medium::{Bench, Failure, Shared};

const OPTIONS: Options = Options { cache_size: 400, journal_pages: 256, ..Options::DEFAULT };

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

#[test]
fn a_tree_is_not_created_over_another_nor_opened_as_another() {
    let medium = Shared::new(512, 44, 100);
    let mut bench = Bench::new(medium.clone(), FixedCells::<4, 4>, OPTIONS);
    bench.tree().put(&[1; 4], &[2; 4]).unwrap();
    let memory = || crate::medium::memory(512, &OPTIONS);
    let created = nandu_tree::Tree::create(medium.clone(), FixedCells::<4, 4>, OPTIONS, memory());
    assert_eq!(created.err(), Some(TreeError::AlreadyThere));
    let opened = nandu_tree::Tree::open(medium.clone(), FixedCells::<4, 8>, OPTIONS, memory());
    assert_eq!(opened.err(), Some(TreeError::OtherFormat));
    let opened = nandu_tree::Tree::open(Shared::new(512, 44, 100), ByteCells, OPTIONS, memory());
    assert_eq!(opened.err(), Some(TreeError::NotFound));
    let required = nandu_tree::memory_required(512, &OPTIONS);
    let small = &mut memory()[1..];
    let opened = nandu_tree::Tree::open(medium, FixedCells::<4, 4>, OPTIONS, small);
    assert_eq!(opened.err(), Some(TreeError::MemoryTooSmall { required }));
}

#[test]
fn what_does_not_suit_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(Shared::new(512, 44, 100), ByteCells, OPTIONS);
    let tree = bench.tree();
    tree.put(b"a", b"b").unwrap();
    let long = vec![7; 512];
    assert_eq!(tree.put(&long[..tree.key_size_max() + 1], b""), Err(TreeError::KeySize(tree.key_size_max() + 1)));
    let value_size_max = tree.value_size_max(b"k");
    let longer = vec![7; value_size_max + 1];
    assert_eq!(tree.put(b"k", &longer), Err(TreeError::ValueSize(longer.len())));
    // A batch takes small values only.
    assert_eq!(tree.batch(&[Edit { key: b"k", value: Some(&long) }]), Err(TreeError::ValueSize(512)));
    let edit = |key: &'static [u8]| Edit { key, value: Some(b"") };
    assert_eq!(tree.batch(&[edit(b"c"), edit(b"d"), edit(b"d")]), Err(TreeError::NotAscending(2)));
    assert_eq!(tree.record_count(), 1);
}
