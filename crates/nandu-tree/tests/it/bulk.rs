//! Loading sorted entries.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_tree::{ByteCells, Cells, Direction, FixedCells, Options, TreeError};

use crate::medium::{Bench, Shared};

const OPTIONS: Options = Options { cache_size: 8192, journal_pages: 64, ..Options::DEFAULT };

fn contents<C: Cells>(bench: &mut Bench<C>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    bench
        .tree()
        .range(all.0, all.1, Direction::Forward, |entry| {
            found.insert(entry.key.to_vec(), entry.value.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn a_sorted_load_programs_each_leaf_once() {
    let mut bench = Bench::new(Shared::new(4096, 48, 128 * 128), FixedCells::<4, 4>, OPTIONS);
    let before = bench.medium.counts();
    let entries = (0..200_000_u32).map(|number| ((number * 17).to_be_bytes(), number.to_be_bytes()));
    assert_eq!(bench.tree().load(entries).unwrap(), 200_000);
    let after = bench.medium.counts();
    let (programs, live) = (after.programs - before.programs, bench.medium.live_count() as u64);
    // What is programmed besides the leaves are the last path of each group, again, and inner nodes split off.
    assert!(programs * 100 <= live * 115, "{programs} programs for {live} pages");
    assert!(after.reads - before.reads <= 2, "{} reads", after.reads - before.reads);
    assert_eq!(bench.tree().record_count(), 200_000);
    assert_eq!(bench.tree().get(&(17 * 77_777_u32).to_be_bytes()).unwrap(), Some(&77_777_u32.to_be_bytes()[..]));
    bench.check_lives();
}

#[test]
fn a_load_between_entries_that_are_there_keeps_both() {
    let mut bench = Bench::new(Shared::new(512, 44, 4000), ByteCells, OPTIONS);
    let mut model = BTreeMap::new();
    let key = |number: u32| format!("key {number:05}").into_bytes();
    for number in (0..1000).step_by(3) {
        bench.tree().put(&key(number), b"old").unwrap();
        model.insert(key(number), b"old".to_vec());
    }
    let entries: Vec<(Vec<u8>, Vec<u8>)> =
        (200..900).step_by(2).map(|number| (key(number), vec![b'x'; number as usize % 40])).collect();
    assert_eq!(bench.tree().load(entries.iter().map(|(key, value)| (key, value))).unwrap(), 350);
    model.extend(entries);
    assert_eq!(contents(&mut bench), model);
    assert_eq!(bench.tree().record_count(), model.len() as u64);
    bench.check_lives();
}

#[test]
fn an_entry_out_of_order_ends_the_load_and_keeps_what_came_before() {
    let mut bench = Bench::new(Shared::new(256, 44, 1000), FixedCells::<4, 4>, OPTIONS);
    let numbers = [1_u32, 5, 9, 9, 12];
    let entries = numbers.map(|number| (number.to_be_bytes(), number.to_be_bytes()));
    assert_eq!(bench.tree().load(entries).unwrap_err(), TreeError::NotAscending(3));
    assert_eq!(contents(&mut bench).len(), 3);
    assert_eq!(bench.tree().load([([1_u8; 3], [0_u8; 4])]).unwrap_err(), TreeError::KeySize(3));
    assert_eq!(bench.tree().load([([9_u8; 4], [0_u8; 4])]).unwrap(), 1);
    assert_eq!(contents(&mut bench).len(), 4);
}

#[test]
fn a_load_whose_medium_fails_leaves_a_prefix() {
    for fail_after in 0..20 {
        let mut bench = Bench::new(Shared::new(256, 44, 1000), FixedCells::<4, 4>, OPTIONS);
        bench.medium.0.borrow_mut().fail_after = Some(fail_after);
        let entries = (0..2000_u32).map(|number| (number.to_be_bytes(), number.to_be_bytes()));
        bench.tree().load(entries).unwrap_err();
        bench.medium.0.borrow_mut().fail_after = None;
        let found = contents(&mut bench);
        let is_prefix = (0_u32..).zip(&found).all(|(number, (key, _))| key[..] == number.to_be_bytes());
        assert!(is_prefix && found.len() < 2000, "{} entries", found.len());
        assert_eq!(bench.tree().record_count(), found.len() as u64);
        bench.check_lives();
    }
}
