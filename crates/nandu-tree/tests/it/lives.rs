//! Random lives: every kind of operation, with reopening and cuts, against a model.

use std::collections::BTreeMap;

use nandu_index::suite::Subject;
use nandu_sim::{Chip, Sim};
use nandu_tree::{Cells, Cursor, Edit, FixedCells, Options};

use crate::bench::{Bench, OPTIONS, chance, contents};

/// Does so many operations and reopens now and then, as after an unmount or a cut between two operations.
fn live<C: Cells>(bench: &mut Bench<C>, operations: u32, seed: u32, key: impl Fn(u32) -> Vec<u8>, value_size: usize) {
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for count in 0..operations {
        let value = vec![count as u8; value_size];
        let draw = chance(count, seed);
        let at = key(draw >> 8);
        match draw % 64 {
            0 => bench.reopen(),
            1 => {
                let chip = bench.cut();
                bench.reopen_on(chip);
            }
            2 => drop(bench.engine().idle(8).unwrap()),
            3..6 => {
                let mut keys: Vec<_> = (0..9).map(|n| key(chance(count, 100 + n) >> 8)).collect();
                keys.sort();
                keys.dedup();
                let edits: Vec<_> =
                    keys.iter().map(|key| Edit { key, value: (key[3] % 3 != 0).then_some(&value[..]) }).collect();
                bench.engine().batch(&edits).unwrap();
                for edit in edits {
                    match edit.value {
                        Some(value) => model.insert(edit.key.to_vec(), value.to_vec()),
                        None => model.remove(edit.key),
                    };
                }
            }
            6..24 => assert_eq!(bench.engine().delete(&at).unwrap(), model.remove(&at).is_some()),
            24..30 => assert_eq!(bench.engine().get(&at).unwrap(), model.get(&at).map(Vec::as_slice)),
            _ => assert_eq!(bench.engine().put(&at, &value).unwrap(), model.insert(at, value).is_some()),
        }
        if count % 2048 == 0 {
            bench.check();
        }
    }
    assert_eq!(contents(bench.engine()).unwrap(), model);
    bench.check();
}

fn near(number: u32) -> Vec<u8> {
    (number % 1500 * 77).to_be_bytes().to_vec()
}

#[test]
fn a_life_with_moves_and_cuts_is_as_the_model_says() {
    for seed in 0..4 {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), FixedCells::<4, 4>, OPTIONS);
        live(&mut bench, 12_000, seed, near, 4);
        println!("{}", bench.told());
    }
}

#[test]
fn a_life_without_cache_on_larger_pages_is_as_the_model_says() {
    let options = Options { cache_size: 0, ..Options::DEFAULT };
    let mut bench = Bench::new(Sim::new(Chip::W25N01GV.with_blocks(16)), FixedCells::<4, 4>, options);
    live(&mut bench, 20_000, 9, |number| (number % 40_000 * 77).to_be_bytes().to_vec(), 4);
    println!("{}", bench.told());
}

#[test]
fn a_chip_written_many_times_over_keeps_what_lives() {
    let mut bench = Bench::new(Sim::new(Chip::W25N01GV.with_blocks(24)), FixedCells::<4, 4>, Options::DEFAULT);
    let mut model = BTreeMap::new();
    for round in 0..100_000_u32 {
        let key = (round.wrapping_mul(2_654_435_761) >> 8) % 110_000;
        bench.engine().put(&key.to_be_bytes(), &round.to_be_bytes()).unwrap();
        model.insert(key, round);
    }
    for (key, value) in &model {
        assert_eq!(bench.engine().get(&key.to_be_bytes()).unwrap(), Some(&value.to_be_bytes()[..]));
    }
    println!("{}", bench.told());
    assert!(bench.engine().log().stats().erases > 100, "the chip was written several times over");
    bench.check_exact();
}

#[test]
fn idle_time_comes_to_rest_and_what_it_moved_is_kept() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), FixedCells::<4, 4>, OPTIONS);
    live(&mut bench, 3000, 3, near, 4);
    let before = contents(bench.engine()).unwrap();
    let mut rounds = 0;
    while bench.engine().idle(16).unwrap() {
        rounds += 1;
        assert!(rounds < 1000, "idle time comes to rest");
    }
    let programs = bench.engine().log().stats().programs_total();
    for _ in 0..100 {
        assert!(!bench.engine().idle(16).unwrap());
    }
    assert_eq!(bench.engine().log().stats().programs_total(), programs, "and stays there");
    assert_eq!(contents(bench.engine()).unwrap(), before);
    bench.check();
    let chip = bench.cut();
    bench.reopen_on(chip);
    assert_eq!(contents(bench.engine()).unwrap(), before);
}

#[test]
fn a_cursor_goes_both_ways_while_the_tree_changes() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), FixedCells::<4, 4>, OPTIONS);
    for number in 0..200_u32 {
        bench.engine().put(&(10 * number).to_be_bytes(), &number.to_be_bytes()).unwrap();
    }
    let mut cursor = Cursor::below(&500_u32.to_be_bytes());
    let mut met = Vec::new();
    while let Some(entry) = bench.engine().next(&mut cursor).unwrap() {
        let key = u32::from_be_bytes(entry.key.try_into().unwrap());
        met.push(key);
        // What is put above is met, what is put below is not.
        if key == 700 {
            bench.engine().put(&705_u32.to_be_bytes(), &[0; 4]).unwrap();
            bench.engine().put(&695_u32.to_be_bytes(), &[0; 4]).unwrap();
            bench.engine().delete(&710_u32.to_be_bytes()).unwrap();
        }
    }
    let mut expected: Vec<u32> = (50..200).map(|number| 10 * number).collect();
    expected[21] = 705;
    assert_eq!(met, expected);
    let back = std::iter::from_fn(|| {
        let entry = bench.engine().previous(&mut cursor).unwrap()?;
        Some(u32::from_be_bytes(entry.key.try_into().unwrap()))
    });
    assert_eq!(back.count(), 200 - 1 + 2);
    assert_eq!(bench.engine().previous(&mut cursor).unwrap(), None);
    assert_eq!(bench.engine().next(&mut cursor).unwrap().map(|entry| entry.key.to_vec()), Some(vec![0; 4]));
}
