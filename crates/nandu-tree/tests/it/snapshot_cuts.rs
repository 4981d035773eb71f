//! Power cuts among snapshots: what a snapshot keeps is there after any cut, and so is what was made durable since.

use std::collections::{BTreeMap, BTreeSet};

use nandu_nand::Geometry;
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim, SimError};
use nandu_tree::{ByteCells, Edit, Engine, EngineError, LogError, LogOptions, Options};

use crate::bench::{BoxError, cases, chance, put_in_parts, sound, values_of, with_engine};
use crate::group::waiting;

type Values = BTreeMap<Vec<u8>, Vec<u8>>;
type Tested<'m, 'c> = Engine<'m, &'c mut Sim, ByteCells>;

/// What there is now, and in each snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    now: Values,
    kept: BTreeMap<u32, Values>,
}

/// What may be there after a cut: what there was when all was durable last, and after each change since, the one under way included.
#[derive(Clone)]
struct Promise {
    is_open: bool,
    states: Vec<State>,
    count: u32,
}

impl Default for Promise {
    fn default() -> Promise {
        Promise { is_open: false, states: vec![State::default()], count: 0 }
    }
}

fn state_of(engine: &mut Tested<'_, '_>) -> Result<State, EngineError<SimError>> {
    let numbers: Vec<u32> = engine.snapshots().collect();
    let mut state = State { now: values_of(engine, None)?, kept: BTreeMap::new() };
    for number in numbers {
        state.kept.insert(number, values_of(engine, Some(number))?);
    }
    Ok(state)
}

fn put(engine: &mut Tested<'_, '_>, key: &[u8], value: &[u8]) -> Result<(), EngineError<SimError>> {
    if key.len() + value.len() <= engine.entry_size_max() {
        return engine.put(key, value).map(drop);
    }
    put_in_parts(engine, key, value).map(drop)
}

#[derive(Clone, Copy)]
struct Mix {
    options: Options,
    keys: u32,
    /// Bytes of the largest value.
    value_max: u32,
}

/// Puts, deletes, batches and syncs, and snapshots that come and go.
fn workload(operations: u32, mix: Mix) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        with_engine(chip, ByteCells, (mix.options, !promise.is_open), |engine| {
            promise.states = vec![state_of(engine)?];
            promise.is_open = true;
            for _ in 0..operations {
                let draw = chance(promise.count, 1);
                promise.count += 1;
                let key = format!("{:03}", (draw >> 8) % mix.keys).into_bytes();
                let other = format!("{:03}+", (draw >> 8) % mix.keys).into_bytes();
                let mut after = promise.states.last().cloned().unwrap_or_default();
                let number = after.kept.keys().nth((draw >> 16) as usize % after.kept.len().max(1)).copied();
                // What all is durable with that returns.
                let mut is_synced = mix.options.pending_size == 0;
                let done = match (draw % 32, number) {
                    (0..2, _) if after.kept.len() < 4 => {
                        is_synced = true;
                        // It is known only behind it which number it has.
                        let number = engine.snapshots().last().unwrap_or(0);
                        let released = promise.states.iter().flat_map(|state| state.kept.keys()).max();
                        for next in number + 1..=number.max(released.copied().unwrap_or(0)) + 24 {
                            let mut state = after.clone();
                            state.kept.insert(next, state.now.clone());
                            promise.states.push(state);
                        }
                        let taken = engine.snapshot();
                        if let Ok(number) = taken {
                            after.kept.insert(number, after.now.clone());
                        }
                        taken.map(drop)
                    }
                    (2..5, Some(number)) => {
                        is_synced = true;
                        after.kept.remove(&number);
                        promise.states.push(after.clone());
                        engine.release(number)
                    }
                    (5..12, _) => {
                        after.now.remove(&key);
                        promise.states.push(after.clone());
                        engine.delete(&key).map(drop)
                    }
                    (12..15, _) => {
                        let value = vec![draw as u8; 12];
                        after.now.remove(&key);
                        after.now.insert(other.clone(), value.clone());
                        promise.states.push(after.clone());
                        engine.batch(&[Edit { key: &key, value: None }, Edit { key: &other, value: Some(&value) }])
                    }
                    (15..18, _) => {
                        is_synced = true;
                        engine.sync()
                    }
                    (18, _) => engine.idle(4).map(drop),
                    _ => {
                        let value = vec![draw as u8; (draw >> 9) as usize % mix.value_max as usize];
                        after.now.insert(key.clone(), value.clone());
                        promise.states.push(after.clone());
                        put(engine, &key, &value)
                    }
                };
                match done {
                    Err(EngineError::Log(LogError::Full) | EngineError::TooManySnapshots) => {
                        // It did not happen; what was before may be durable or not.
                        let before = promise.states.len() - 1;
                        promise.states.truncate(before.max(1));
                        promise.states = vec![state_of(engine)?].into_iter().chain(promise.states.clone()).collect();
                        let now = promise.states[0].clone();
                        promise.states.push(now);
                    }
                    Err(error) => return Err(error.into()),
                    Ok(()) if is_synced => promise.states = vec![after],
                    Ok(()) => {
                        if promise.states.last() != Some(&after) {
                            promise.states.push(after);
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

/// In what two states differ, in words.
fn differences(found: &State, state: &State) -> String {
    let of = |name: &str, found: &Values, other: &Values| -> String {
        let keys: BTreeSet<&Vec<u8>> = found.keys().chain(other.keys()).collect();
        let differs = keys.into_iter().filter(|key| found.get(*key) != other.get(*key));
        let size = |values: &Values, key| values.get(key).map(|value: &Vec<u8>| (value.len(), value.first().copied()));
        differs
            .map(|key| format!("{name} {}: {:?} for {:?}; ", key.escape_ascii(), size(found, key), size(other, key)))
            .collect()
    };
    let numbers: BTreeSet<u32> = found.kept.keys().chain(state.kept.keys()).copied().collect();
    let none = Values::new();
    let kept: String = numbers
        .into_iter()
        .map(|number| {
            let (one, other) = (found.kept.get(&number), state.kept.get(&number));
            let is_there = if one.is_some() == other.is_some() { "" } else { " is on one side" };
            of(&format!("{number}{is_there}"), one.unwrap_or(&none), other.unwrap_or(&none))
        })
        .collect();
    format!("{}{kept}", of("now", &found.now, &state.now))
}

/// Mounts with few reads, and what is there now and in each snapshot is what was promised.
fn check(mix: Mix) -> impl Fn(&mut Sim, &Promise) -> Option<State> {
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let before = *chip.counters();
        let found = with_engine(chip, ByteCells, (mix.options, false), |engine| {
            let reads = engine.log().nand().counters().since(&before).reads;
            assert!(reads <= 40, "{reads} reads to mount");
            sound(engine)?;
            state_of(engine).map_err(BoxError::from)
        });
        let found = found.unwrap();
        let is_promised = promise.states.contains(&found);
        if !is_promised {
            for state in &promise.states {
                println!("a state: {}", differences(&found, state));
            }
        }
        assert!(is_promised, "none of {} states", promise.states.len());
        Some(found)
    }
}

fn recover(mix: Mix) -> impl Fn(&mut Sim) -> Run {
    move |chip| with_engine(chip, ByteCells, (mix.options, true), |_| Ok(()))
}

fn chip(blocks: u32) -> Chip {
    let geometry = Geometry { page_size: 512, program_unit: 512, pages_per_block: 16, ..Chip::TINY.geometry };
    Chip { geometry, ..Chip::TINY }.with_blocks(blocks)
}

fn mixes() -> [Mix; 7] {
    let with = |options| Options { has_snapshots: true, has_values: true, ..options };
    let on_call = with(Options { cache_size: 512, ..Options::DEFAULT });
    let raw = LogOptions { has_raw: true, ..LogOptions::DEFAULT };
    [
        Mix { options: on_call, keys: 40, value_max: 40 },
        Mix { options: on_call, keys: 30, value_max: 1_500 },
        Mix { options: with(waiting(512, 1_000)), keys: 40, value_max: 40 },
        Mix { options: with(waiting(512, 1_000)), keys: 30, value_max: 1_500 },
        // Many leaves, of which a released snapshot gives up several at once.
        Mix { options: on_call, keys: 300, value_max: 24 },
        Mix { options: with(waiting(512, 600)), keys: 300, value_max: 24 },
        Mix { options: Options { log: raw, ..with(waiting(512, 1_000)) }, keys: 40, value_max: 512 },
    ]
}

/// The state of a chip on which all that went on for a while, so that pages are moved in most operations.
fn prepared(blocks: u32, mix: Mix) -> (Sim, Promise) {
    let mut chip = Sim::new(chip(blocks));
    let mut promise = Promise::default();
    workload(1_200, mix)(&mut chip, &mut promise).unwrap();
    (chip, promise)
}

#[test]
fn every_cut_leaves_what_snapshots_keep() {
    for mix in mixes() {
        // Where there is much to compare, after each of fewer operations.
        let share = if mix.keys > 100 { 4 } else { 1 };
        let summary = Driver::new(chip(24)).every(workload(100 / share, mix), check(mix));
        println!("{summary:?}");
        assert!(summary.cases > 150 / u64::from(share));
        let (filled, promise) = prepared(24, mix);
        let start = |chip: &mut Sim, noted: &mut Promise| {
            if !noted.is_open {
                *noted = promise.clone();
            }
            workload(40 / share, mix)(chip, noted)
        };
        let summary = Driver::new(filled.clone()).every(start, check(mix));
        println!("{summary:?}");
        assert!(summary.cases > 60 / u64::from(share));
        let driver = Driver::new(filled).resume().seed(5);
        let summary = driver.random(cases(60) / u64::from(share), start, recover(mix), check(mix));
        println!("{summary:?}");
    }
}

#[test]
fn pairs_of_cuts_in_recovery_leave_what_snapshots_keep() {
    for mix in mixes() {
        let share = if mix.keys > 100 { 4 } else { 1 };
        let driver = Driver::new(chip(24)).limit(cases(150) / u64::from(share));
        let summary = driver.pairs(workload(80 / share, mix), recover(mix), check(mix));
        println!("{summary:?}");
    }
}

/// Making room for the change that removes the last record of a snapshot may commit. A commit that says that there are no snapshots leads to no record that says that there is one.
#[test]
fn a_cut_while_the_last_snapshot_goes_leaves_no_record_of_it() {
    let options = Options { has_snapshots: true, ..waiting(512, 600) };
    let lived = |waits: u32, size: usize, cut: u64| -> Sim {
        let mut sim = Sim::new(chip(16));
        let _ = with_engine(&mut sim, ByteCells, (options, true), |engine| {
            let value = |draw: u8| vec![draw; size];
            let key = |number: u32| format!("key {number:03}").into_bytes();
            (0..60).try_for_each(|number| engine.put(&key(number), &value(1)).map(drop))?;
            let number = engine.snapshot()?;
            engine.put(&key(7), &value(2))?;
            engine.sync()?;
            let begun = engine.log().nand().operation_count();
            engine.nand_mut().cut_somehow_at(begun + cut);
            (0..waits).try_for_each(|at| engine.put(&key(at * 5 % 60), &value(3)).map(drop))?;
            engine.release(number)?;
            (0..20).try_for_each(|at| engine.put(&key(at * 7 % 60), &value(4)).map(drop))?;
            engine.sync()?;
            Ok(())
        });
        sim
    };
    for (waits, size) in (0..4).flat_map(|waits| (1..10).map(move |size| (waits, size))) {
        for cut in 0.. {
            let mut sim = lived(waits, size, cut);
            if !sim.is_off() {
                break;
            }
            sim.clear_cuts();
            sim.power_off();
            sim.power_on();
            let found = with_engine(&mut sim, ByteCells, (options, false), |engine| Ok(values_of(engine, None)?));
            let is_sound = found.is_ok_and(|found| found.keys().all(|key| key.starts_with(b"key")));
            assert!(is_sound, "{waits} of {size} wait, cut at {cut}");
        }
    }
}
