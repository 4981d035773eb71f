//! Power cuts at every operation with every tear, chains of cuts, and pairs of cuts in recovery.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_tree::{Edit, Engine, EngineError, FixedCells, LogError, Options};

use crate::bench::{BoxError, OPTIONS, cases, chance, contents, sound, with_engine};

/// What was acknowledged, and the changes under way.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    values: BTreeMap<u32, u32>,
    pending: Vec<(u32, Option<u32>)>,
    count: u32,
}

type Values = BTreeMap<u32, u32>;

const CELLS: FixedCells<4, 4> = FixedCells;
const CACHED: Options = Options { cache_size: 256, ..OPTIONS };

fn apply(values: &mut Values, changes: &[(u32, Option<u32>)]) {
    for &(key, value) in changes {
        match value {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
}

fn values(engine: &mut Engine<'_, &mut Sim, FixedCells<4, 4>>) -> Result<Values, BoxError> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    Ok(contents(engine)?.iter().map(|(key, value)| (number(key), number(value))).collect())
}

/// Puts, deletes and batches, over a few hundred keys, with idle time now and then.
fn workload(operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let may_create = !promise.is_open;
        with_engine(chip, CELLS, (CACHED, may_create), |engine| {
            promise.values = values(engine)?;
            promise.pending.clear();
            promise.is_open = true;
            for _ in 0..operations {
                let count = promise.count;
                promise.count += 1;
                let key = chance(count, 1) % keys * 1000;
                promise.pending = match chance(count, 2) % 8 {
                    0 => vec![(key, None)],
                    1 => (0..6).map(|n| (key + n * 7000, (n % 3 != 2).then_some(count))).collect(),
                    _ => vec![(key, Some(count))],
                };
                match promise.pending[..] {
                    [(key, Some(value))] => match engine.put(&key.to_be_bytes(), &value.to_be_bytes()) {
                        // On a chip that is full it has not happened.
                        Err(EngineError::Log(LogError::Full)) => promise.pending.clear(),
                        other => drop(other?),
                    },
                    [(key, None)] => drop(engine.delete(&key.to_be_bytes())?),
                    ref list => {
                        let bytes: Vec<([u8; 4], Option<[u8; 4]>)> =
                            list.iter().map(|(key, value)| (key.to_be_bytes(), value.map(u32::to_be_bytes))).collect();
                        let edit = |(key, value): &'_ ([u8; 4], Option<[u8; 4]>)| (*key, *value);
                        let owned: Vec<_> = bytes.iter().map(edit).collect();
                        let edits: Vec<Edit<'_>> = owned
                            .iter()
                            .map(|(key, value)| Edit { key, value: value.as_ref().map(|value| &value[..]) })
                            .collect();
                        match engine.batch(&edits) {
                            Err(EngineError::Log(LogError::Full)) => promise.pending.clear(),
                            other => other?,
                        }
                    }
                }
                apply(&mut promise.values, &promise.pending);
                promise.pending.clear();
                if chance(count, 3).is_multiple_of(16) {
                    engine.idle(4)?;
                }
            }
            Ok(())
        })
    }
}

/// What was acknowledged is there; what was under way is wholly there or wholly not.
fn check(chip: &mut Sim, promise: &Promise) -> Option<Values> {
    if !promise.is_open {
        return None;
    }
    let found = with_engine(chip, CELLS, (CACHED, false), |engine| {
        sound(engine)?;
        values(engine)
    });
    let found = found.unwrap();
    let mut after = promise.values.clone();
    apply(&mut after, &promise.pending);
    assert!(found == promise.values || found == after, "neither before nor after {:?}", promise.pending);
    Some(found)
}

fn recover(chip: &mut Sim) -> Run {
    with_engine(chip, CELLS, (CACHED, true), |_| Ok(()))
}

/// How many cases a campaign has: a few in CI, more where the environment says so.
#[test]
fn every_cut_leaves_what_was_acknowledged() {
    let summary = Driver::new(Chip::TINY).every(workload(130, 200), check);
    println!("{summary:?}");
    assert!(summary.cases > 1500);
}

/// A chip on which an engine worked for a while, and what is on it.
fn prepared(chip: Chip, rounds: u32, keys: u32) -> (Sim, Promise) {
    let mut chip = Sim::new(chip);
    let mut promise = Promise::default();
    for _ in 0..rounds {
        workload(200, keys)(&mut chip, &mut promise).unwrap();
    }
    (chip, promise)
}

/// Every cut, where the collector moves pages in most operations.
#[test]
fn every_cut_where_pages_move_leaves_what_was_acknowledged() {
    for (chip, keys, operations) in [(Chip::TINY, 600, 24), (Chip::TINY.with_blocks(24), 1550, 30)] {
        let (filled, promise) = prepared(chip, 12, keys);
        let mut moves = 0;
        with_engine(&mut filled.clone(), CELLS, (CACHED, false), |engine| {
            for count in 0..operations {
                engine.put(&(chance(count, 7) % keys * 1000).to_be_bytes(), &[1; 4])?;
            }
            moves = engine.stats().moves;
            Ok(())
        })
        .unwrap();
        assert!(moves >= 8, "{moves} moves in {operations} operations");
        let start = |chip: &mut Sim, noted: &mut Promise| {
            if !noted.is_open {
                *noted = promise.clone();
            }
            workload(operations, keys)(chip, noted)
        };
        let summary = Driver::new(filled.clone()).every(start, check);
        println!("{summary:?}");
        assert!(summary.cases > 300);
        let driver = Driver::new(filled).resume().seed(3);
        let summary = driver.random(cases(200), start, recover, check);
        println!("{summary:?}");
    }
}

#[test]
fn chains_of_cuts_leave_what_was_acknowledged() {
    let done = AtomicU64::new(0);
    for seed in 7..7 + cases(400).div_ceil(400) {
        let driver = Driver::new(Chip::TINY).resume().seed(seed);
        let summary = driver.random(400.min(cases(400)), workload(80, 200), recover, check);
        done.fetch_add(summary.cuts, Ordering::Relaxed);
    }
    println!("{} cuts", done.into_inner());
}

#[test]
fn pairs_of_cuts_in_recovery_leave_what_was_acknowledged() {
    let driver = Driver::new(Chip::TINY).limit(cases(1500));
    let summary = driver.pairs(workload(60, 200), recover, check);
    println!("{summary:?}");
    assert!(summary.cases > 250);
}
