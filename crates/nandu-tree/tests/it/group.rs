//! What changes cost that become durable together, and lives in which they wait.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use nandu_index::suite::Subject;
use nandu_nand::{Pairing, TearScope};
use nandu_sim::{Chip, Sim};
use nandu_tree::{Broken, ByteCells, Cells, Durability, Edit, EngineError, FixedCells, LogError, Options};

use crate::bench::{Bench, chance, contents};

/// Options with so much memory for changes.
pub(crate) const fn waiting(cache_size: usize, pending_size: usize) -> Options {
    Options { cache_size, durability: Durability::OnSync, pending_size, ..Options::DEFAULT }
}

/// A chip with 2,000 leaves of 4 KiB, of a million entries that came in no order.
fn filled() -> Sim {
    let mut chip = Chip::PAPER_MLC;
    (chip.geometry.pairing, chip.geometry.tear) = (Pairing::None, TearScope::Page);
    let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 4>, Options { cache_size: 32_768, ..Options::DEFAULT });
    for number in 0..ENTRIES {
        bench.engine().put(&key(number), &number.to_be_bytes()).unwrap();
    }
    bench.unmount()
}

const ENTRIES: u32 = 1_000_000;

fn key(number: u32) -> [u8; 4] {
    chance(number, 5).to_be_bytes()
}

/// Programs an update, with memory for 2,457 changes of 10 bytes, when `k` of them are synced together.
fn programs_an_update(chip: Sim, k: u32, updates: u32) -> f64 {
    let mut bench = Bench::on(chip, FixedCells::<4, 4>, waiting(8192, 24_570));
    let mut run = |from: u32, count: u32| {
        let before = bench.engine().log().nand().counters().programs;
        for number in from..from + count {
            bench.engine().put(&key(chance(number, 11) % ENTRIES), &number.to_be_bytes()).unwrap();
            if number % k == k - 1 {
                bench.engine().sync().unwrap();
            }
        }
        (bench.engine().log().nand().counters().programs - before) as f64 / f64::from(count)
    };
    run(0, updates);
    let programs = run(updates, updates);
    let waits = bench.engine().pending_count();
    println!("k = {k}: {programs:.3} programs an update, {waits} changes wait; {}", bench.told());
    bench.check();
    programs
}

/// A commit lists the puts, and their leaf does not have them yet; the deletes change nothing in that leaf. They need a commit all the same, that the one with the puts leaves.
#[test]
fn what_is_deleted_before_it_came_to_its_leaf_stays_deleted() {
    for pending in [300, 8192] {
        let chip = Sim::new(Chip::TINY.with_blocks(96));
        let mut bench = Bench::new(chip, ByteCells, waiting(512, pending));
        let engine = bench.engine();
        let puts: [(&[u8], &[u8]); 5] =
            [(b"aabcf", &[]), (b"aabdd", &[0; 9]), (b"aabcg", &[0; 12]), (b"aabchzzz", &[]), (b"b\0\0\0\x06", &[0; 8])];
        for (key, value) in puts {
            engine.put(key, value).unwrap();
        }
        let others: [(&[u8], &[u8]); 3] = [(b"aabedz", &[164]), (b"aacgc", &[1; 18]), (b"aachg", &[59])];
        let [first, second, third] = others.map(|(key, value)| Edit { key, value: Some(value) });
        engine.batch(&[first, Edit { key: b"aacaf", value: None }, second, third]).unwrap();
        for (key, _) in puts.iter().chain(&others) {
            assert!(engine.delete(key).unwrap());
        }
        engine.sync().unwrap();
        bench.reopen();
        assert_eq!(bench.engine().record_count(), 0);
        assert!(bench.engine().first().unwrap().is_none());
    }
}

#[test]
fn updates_that_are_synced_together_cost_a_third_of_a_program() {
    let chip = filled();
    for (k, updates, most) in [(1, 4000, 1.03), (4, 20_000, 0.45), (16, 20_000, 0.40), (256, 20_480, 0.40)] {
        let programs = programs_an_update(chip.clone(), k, updates);
        assert!(programs <= most, "k = {k}: {programs:.3}");
    }
}

/// Does so many operations, with syncs, and reopens now and then, as after an unmount or a cut: then it holds what it held at the last sync, or behind a change since.
fn live<C: Cells>(bench: &mut Bench<C>, operations: u32, seed: u32, entry: impl Fn(u32) -> (Vec<u8>, Vec<u8>)) {
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut states = vec![model.clone()];
    for count in 0..operations {
        let draw = chance(count, seed);
        let (at, value) = entry(draw >> 8);
        match draw % 128 {
            0 => {
                bench.reopen();
                states = vec![contents(bench.engine()).unwrap()];
                assert_eq!(states, std::slice::from_ref(&model), "an unmount makes all durable");
            }
            1 => {
                let chip = bench.cut();
                let before = *chip.counters();
                bench.reopen_on(chip);
                let reads = bench.engine().log().nand().counters().since(&before).reads;
                assert!(reads <= 40, "{reads} reads to mount");
                model = contents(bench.engine()).unwrap();
                assert!(states.contains(&model), "seed {seed}, operation {count}");
                states = vec![model.clone()];
            }
            2 => drop(bench.engine().idle(8).unwrap()),
            3 => bench.engine().merge().unwrap(),
            4..20 => {
                let outcome = bench.engine().sync();
                assert!(outcome.is_ok(), "seed {seed}, operation {count}: {outcome:?} {}", bench.told());
            }
            20..28 => {
                let entries: BTreeMap<_, _> = (0..5).map(|n| entry(chance(count, 100 + n) >> 8)).collect();
                let is_put = |key: &[u8]| !key[key.len() - 1].is_multiple_of(3);
                let edits: Vec<_> =
                    entries.iter().map(|(key, value)| Edit { key, value: is_put(key).then_some(&value[..]) }).collect();
                match bench.engine().batch(&edits) {
                    Err(EngineError::Log(LogError::Full)) => continue,
                    other => other.unwrap(),
                }
                for edit in edits {
                    match edit.value {
                        Some(value) => model.insert(edit.key.to_vec(), value.to_vec()),
                        None => model.remove(edit.key),
                    };
                }
            }
            28..60 => assert_eq!(bench.engine().delete(&at).unwrap(), model.remove(&at).is_some()),
            60..72 => assert_eq!(bench.engine().get(&at).unwrap(), model.get(&at).map(Vec::as_slice)),
            _ => match bench.engine().put(&at, &value) {
                Err(EngineError::Log(LogError::Full)) => continue,
                other => assert_eq!(other.unwrap(), model.insert(at, value).is_some()),
            },
        }
        if matches!(draw % 128, 3..20) {
            states.clear();
        }
        if states.last() != Some(&model) {
            states.push(model.clone());
        }
        if count % 512 == 0 {
            assert_eq!(contents(bench.engine()).unwrap(), model);
            bench.check();
        }
    }
    assert_eq!(contents(bench.engine()).unwrap(), model);
    bench.check();
    bench.engine().merge().unwrap();
    assert_eq!((bench.engine().pending_count(), contents(bench.engine()).unwrap()), (0, model));
    bench.check();
}

fn fixed(number: u32) -> (Vec<u8>, Vec<u8>) {
    ((number % 700 * 77).to_be_bytes().to_vec(), number.to_be_bytes().to_vec())
}

fn bytes(number: u32) -> (Vec<u8>, Vec<u8>) {
    let key = format!("{} {}", number % 300, "x".repeat((number % 7) as usize));
    (key.into_bytes(), vec![number as u8; (number / 1024 % 24) as usize])
}

#[test]
fn a_life_with_syncs_is_as_the_model_says() {
    for (seed, pending) in [(0, 400), (1, 60), (2, 0), (3, 1500), (4, 8192), (5, 9)] {
        let chip = Sim::new(Chip::TINY.with_blocks(48));
        let mut bench = Bench::new(chip, FixedCells::<4, 4>, waiting(512, pending));
        live(&mut bench, 6000, seed, fixed);
        println!("{}", bench.told());
    }
}

#[test]
fn a_life_of_byte_strings_with_syncs_is_as_the_model_says() {
    for (seed, pending) in [(0, 400), (1, 60), (2, 0), (3, 1500), (4, 8192), (5, 17)] {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), ByteCells, waiting(512, pending));
        live(&mut bench, 6000, seed, bytes);
        println!("{}", bench.told());
    }
}

/// Values that take a quarter of a page: few fit a list, and many members are needed for long.
fn large(number: u32) -> (Vec<u8>, Vec<u8>) {
    (format!("{:03}", number % 40).into_bytes(), vec![number as u8; 20 + (number / 1024 % 16) as usize])
}

#[test]
fn a_life_of_large_values_with_syncs_is_as_the_model_says() {
    for (seed, pending) in [(0, 100), (1, 200), (2, 300), (3, 450), (4, 700)] {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), ByteCells, waiting(512, pending));
        live(&mut bench, 4000, seed, large);
    }
}

/// W4: members list more than memory for changes has.
#[test]
fn without_counting_what_is_merged_a_mount_has_too_little_memory() {
    let is_lost = (0..20).any(|seed| {
        let options = Options {
            broken: Broken { forgets_merged: true, ..Broken::NOTHING },
            ..waiting(512, 100 + 40 * seed as usize)
        };
        let run = || live(&mut Bench::new(Sim::new(Chip::TINY.with_blocks(48)), ByteCells, options), 4000, seed, large);
        catch_unwind(run).is_err()
    });
    assert!(is_lost);
}
