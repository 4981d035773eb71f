//! Snapshots: what they keep, whatever changes, moves and is cut.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_index::suite::{KeyKind, Pair, SnapshotSubject, Space, Subject, snapshot_conformance};
use nandu_nand::Geometry;
use nandu_sim::{Chip, Sim};
use nandu_tree::{
    Broken, ByteCells, Cursor, Direction, Edit, Engine, EngineError, Entry, LogError, LogOptions, Options,
    SNAPSHOT_COUNT_MAX,
};

use crate::bench::{Bench, Error, OPTIONS, chance, put_in_parts, values_of};
use crate::group::waiting;

fn with_snapshots(options: Options) -> Options {
    Options { has_snapshots: true, ..options }
}

fn pair(entry: Entry<'_>) -> Pair {
    (entry.key.to_vec(), entry.value.to_vec())
}

impl SnapshotSubject for Bench<ByteCells> {
    fn take(&mut self) -> Result<u32, Error> {
        self.engine().snapshot()
    }

    fn release(&mut self, number: u32) -> Result<(), Error> {
        self.engine().release(number)
    }

    fn numbers(&mut self) -> Vec<u32> {
        self.engine().snapshots().collect()
    }

    fn count_max(&self) -> usize {
        SNAPSHOT_COUNT_MAX
    }

    fn get_at(&mut self, number: u32, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.engine().at(number).get(key)?.map(<[u8]>::to_vec))
    }

    fn range_at(
        &mut self,
        number: u32,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>, Error> {
        let mut found = Vec::new();
        self.engine().at(number).range(from, to, direction, |entry| {
            if found.len() == limit {
                return ControlFlow::Break(());
            }
            found.push(pair(entry));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    fn ends_at(&mut self, number: u32) -> Result<(Option<Pair>, Option<Pair>, u64), Error> {
        let (mut begin, mut end) = (Cursor::START, Cursor::END);
        let mut at = self.engine().at(number);
        let first = at.next(&mut begin)?.map(pair);
        let last = at.previous(&mut end)?.map(pair);
        Ok((first, last, at.record_count()?))
    }
}

fn space(key_count: u32) -> Space {
    Space { keys: KeyKind::Bytes(12), key_count, value_size_min: 0, value_size_max: 20, operations_max: 120 }
}

fn chip(blocks: u32) -> Chip {
    let geometry = Geometry { page_size: 512, program_unit: 512, ..Chip::TINY.geometry };
    Chip { geometry, ..Chip::TINY }.with_blocks(blocks)
}

#[test]
fn an_index_with_snapshots_conforms() {
    for (blocks, options) in [(96, OPTIONS), (40, OPTIONS), (96, Options { cache_size: 0, ..OPTIONS })] {
        let chip = || Sim::new(chip(blocks));
        snapshot_conformance(space(200), 60, || Bench::new(chip(), ByteCells, with_snapshots(options)));
    }
}

#[test]
fn an_index_with_snapshots_conforms_whose_changes_wait() {
    for (cache, pending) in [(512, 300), (0, 60), (512, 8192)] {
        let chip = || Sim::new(chip(64));
        snapshot_conformance(space(200), 40, || Bench::new(chip(), ByteCells, with_snapshots(waiting(cache, pending))));
    }
}

type Values = BTreeMap<Vec<u8>, Vec<u8>>;

/// A value, of which some take pages of their own.
fn value(number: u32, page_size: usize, is_raw: bool) -> Vec<u8> {
    let most = if is_raw { page_size } else { 6 * page_size };
    let size = match number % 4 {
        0 => 1 + number as usize / 7 % most,
        1 => 1 + number as usize / 7 % page_size,
        _ => number as usize / 7 % 20,
    };
    vec![number as u8; size]
}

fn put(engine: &mut Engine<'_, Sim, ByteCells>, key: &[u8], value: &[u8]) -> Result<bool, Error> {
    if !engine.is_large(key, value) {
        return engine.put(key, value);
    }
    put_in_parts(engine, key, value)
}

/// What was refused in a life, and what it did.
#[derive(Debug, Default)]
struct Told {
    refused: u32,
    puts: u32,
    taken: u32,
    kept: usize,
}

/// Does so many operations, with values of all sizes, snapshots, unmounts and cuts. What is there now and in each snapshot is what the model says.
fn live(chip: Chip, options: Options, (seed, keys): (u32, u32), operations: u32) -> Told {
    let options = with_snapshots(Options { has_values: true, ..options });
    let is_raw = options.log.has_raw;
    let (mut bench, mut told) = (Bench::new(Sim::new(chip), ByteCells, options), Told::default());
    let (mut now, mut kept) = (Values::new(), BTreeMap::<u32, Values>::new());
    for count in 0..operations {
        let draw = chance(count, seed);
        let key = format!("{:03}", (draw >> 8) % keys).into_bytes();
        let engine = bench.engine();
        match draw % 256 {
            0 | 1 => {
                // Some end with an unmount, some as the power goes.
                let chip = if draw.is_multiple_of(2) {
                    bench.unmount()
                } else {
                    engine.sync().unwrap();
                    bench.cut()
                };
                bench.reopen_on(chip);
                assert_eq!(bench.engine().snapshots().collect::<Vec<_>>(), kept.keys().copied().collect::<Vec<_>>());
                for number in kept.keys() {
                    assert_eq!(
                        values_of(bench.engine(), Some(*number)).unwrap(),
                        kept[number],
                        "snapshot {number}, {count}"
                    );
                }
                assert_eq!(values_of(bench.engine(), None).unwrap(), now, "{count}");
                bench.check();
            }
            2..6 => match engine.snapshot() {
                Ok(number) => {
                    told.taken += 1;
                    assert!(kept.insert(number, now.clone()).is_none());
                }
                Err(EngineError::TooManySnapshots) => assert!(kept.len() == SNAPSHOT_COUNT_MAX || told.taken > 8),
                Err(EngineError::Log(LogError::Full)) => told.refused += 1,
                Err(error) => panic!("{error}"),
            },
            6..10 => {
                let chosen = kept.keys().nth(draw as usize / 256 % kept.len().max(1)).copied();
                if let Some(number) = chosen {
                    engine.release(number).unwrap();
                    kept.remove(&number);
                }
            }
            10..20 => engine.sync().unwrap(),
            20..24 => drop(engine.idle(8).unwrap()),
            24..96 => {
                let deleted = engine.delete(&key);
                assert_eq!(deleted, Ok(now.remove(&key).is_some()), "{count}: {}", bench.told());
            }
            96..104 => {
                let others: Values = (0..5)
                    .map(|nth| chance(count, 100 + nth))
                    .map(|draw| (format!("{:03}", (draw >> 8) % keys).into_bytes(), vec![nth_of(draw); 9]))
                    .collect();
                let is_put = |key: &[u8]| !key[2].is_multiple_of(3);
                let edits: Vec<_> =
                    others.iter().map(|(key, value)| Edit { key, value: is_put(key).then_some(&value[..]) }).collect();
                match engine.batch(&edits) {
                    Ok(()) => edits.iter().for_each(|edit| match edit.value {
                        Some(value) => drop(now.insert(edit.key.to_vec(), value.to_vec())),
                        None => drop(now.remove(edit.key)),
                    }),
                    Err(EngineError::Log(LogError::Full)) => told.refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                told.puts += 1;
                let value = value(draw >> 9, chip.geometry.page_size as usize, is_raw);
                match put(engine, &key, &value) {
                    Ok(existed) => assert_eq!(existed, now.insert(key, value).is_some(), "{count}"),
                    Err(EngineError::Log(LogError::Full)) => told.refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        told.kept = told.kept.max(kept.len());
    }
    for number in kept.keys() {
        bench.engine().release(*number).unwrap();
    }
    while bench.engine().idle(16).unwrap() {}
    assert_eq!(values_of(bench.engine(), None).unwrap(), now);
    bench.check();
    told
}

fn nth_of(draw: u32) -> u8 {
    (draw >> 3) as u8
}

#[test]
fn lives_of_values_of_all_sizes_with_snapshots_are_as_the_model_says() {
    let raw = LogOptions { has_raw: true, ..LogOptions::DEFAULT };
    let on_call = Options { cache_size: 512, ..Options::DEFAULT };
    let geometry = Geometry { page_size: 512, program_unit: 512, pages_per_block: 32, ..Chip::TINY.geometry };
    let chip = Chip { geometry, ..Chip::TINY };
    for (name, options) in [
        ("at once", on_call),
        ("waits", waiting(512, 600)),
        ("waits long", waiting(512, 8192)),
        ("raw", Options { log: raw, ..on_call }),
        ("raw, waits", Options { log: raw, ..waiting(512, 1200) }),
    ] {
        for (blocks, keys) in [(48, 60), (26, 300)] {
            for seed in 0..4 {
                let told = live(chip.with_blocks(blocks), options, (seed, keys), 4_000);
                println!("{name}, {blocks} blocks, seed {seed}: {told:?}");
                assert!(told.taken > 20 && told.refused < told.puts / 2, "{told:?}");
            }
        }
    }
}

/// What a key has in the older of two snapshots, of which the younger one was released, when all was changed and the power went.
fn kept_by_the_older(broken: Broken) -> Option<u8> {
    let options = with_snapshots(Options { broken, ..waiting(512, 600) });
    let mut bench = Bench::new(Sim::new(chip(48)), ByteCells, options);
    for number in 0..40_u8 {
        bench.engine().put(&[number], &[1; 9]).unwrap();
    }
    let older = bench.engine().snapshot().unwrap();
    let younger = bench.engine().snapshot().unwrap();
    for number in 0..40_u8 {
        bench.engine().put(&[number], &[2; 9]).unwrap();
    }
    bench.engine().release(younger).unwrap();
    while bench.engine().idle(8).unwrap() {}
    bench.engine().sync().unwrap();
    let chip = bench.cut();
    bench.reopen_on(chip);
    let kept: Vec<Option<u8>> =
        (0..40).map(|number| bench.engine().at(older).get(&[number]).unwrap().map(|value| value[0])).collect();
    assert!(kept.iter().all(|&it| it == kept[0]), "{kept:?}");
    kept[0]
}

/// K1 and K4.
#[test]
fn what_is_kept_late_or_goes_with_a_younger_snapshot_is_lost() {
    assert_eq!(kept_by_the_older(Broken::NOTHING), Some(1));
    assert_eq!(kept_by_the_older(Broken { keeps_late: true, ..Broken::NOTHING }), Some(2));
    assert_eq!(kept_by_the_older(Broken { forgets_heirs: true, ..Broken::NOTHING }), Some(2));
}

/// K3: growth leaves a page for each leaf of which nothing is kept. So on a chip on which nothing more fits all that a snapshot keeps can be deleted, in whatever order, and no call takes long.
#[test]
fn all_that_a_snapshot_keeps_is_deleted_on_a_full_chip() {
    let geometry = Geometry { page_size: 512, program_unit: 512, pages_per_block: 32, ..Chip::TINY.geometry };
    let chip = Chip { geometry, ..Chip::TINY }.with_blocks(40);
    for options in [OPTIONS, waiting(512, 2_000)] {
        for (size, is_random) in [(9, false), (9, true), (60, true), (700, true)] {
            let options = with_snapshots(Options { has_values: true, ..options });
            let mut bench = Bench::new(Sim::new(chip), ByteCells, options);
            let engine = bench.engine();
            let key = |number: u32| if is_random { chance(number, 3).to_be_bytes() } else { number.to_be_bytes() };
            let mut count = 0;
            while put(engine, &key(count), &vec![1; size]).is_ok() {
                count += 1;
            }
            let number = loop {
                match engine.snapshot() {
                    Ok(number) => break number,
                    Err(EngineError::Log(LogError::Full)) if count > 0 => {
                        count -= 1;
                        assert_eq!(engine.delete(&key(count)), Ok(true));
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            // Until nothing more fits.
            let mut more = count;
            while more < 2 * count && put(engine, &key(u32::MAX - more), &vec![2; size]).is_ok() {
                more += 1;
            }
            let mut order: Vec<u32> = (0..count).collect();
            order.sort_by_key(|&number| chance(number, 17));
            let mut worst = 0;
            for &number in &order {
                let before = bench.engine().log().spent().0;
                let deleted = bench.engine().delete(&key(number));
                assert_eq!(deleted, Ok(true), "{number} of {count}, {size} bytes: {}", bench.told());
                worst = worst.max(bench.engine().log().spent().0 - before);
            }
            println!("{count} of {size} bytes deleted, {} others, at most {worst} programs a call", more - count);
            assert!(count > 100 && worst <= 16, "{count} records, {worst} programs");
            let kept = values_of(bench.engine(), Some(number)).unwrap();
            assert!(kept.len() as u32 == count && kept.values().all(|value| *value == vec![1; size]));
            bench.check();
        }
    }
}

/// A user's value of the bytes with which a snapshot says that nothing stood at a key is a value.
#[test]
fn a_value_that_is_written_as_nothing_is_kept_as_a_value() {
    const FORGED: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9E];
    let forged = || FORGED.to_vec();
    for options in [OPTIONS, waiting(512, 1_000)] {
        let options = Options { has_values: true, ..with_snapshots(options) };
        let mut bench = Bench::new(Sim::new(chip(48)), ByteCells, options);
        let expected = Values::from([(b"was".to_vec(), forged()), (b"will".to_vec(), b"1".to_vec())]);
        let engine = bench.engine();
        for (key, value) in &expected {
            put(engine, key, value).unwrap();
        }
        let first = engine.snapshot().unwrap();
        for (key, value) in [(&b"was"[..], &b"2"[..]), (b"will", &FORGED), (b"new", &FORGED)] {
            put(engine, key, value).unwrap();
        }
        let second = engine.snapshot().unwrap();
        for key in [&b"was"[..], b"will", b"new"] {
            assert_eq!(engine.delete(key), Ok(true));
        }
        engine.sync().unwrap();
        for round in 0..2 {
            let engine = bench.engine();
            assert!(values_of(engine, None).unwrap().is_empty());
            assert_eq!(
                values_of(engine, Some(second)).unwrap(),
                Values::from([
                    (b"new".to_vec(), forged()),
                    (b"was".to_vec(), b"2".to_vec()),
                    (b"will".to_vec(), forged()),
                ])
            );
            assert_eq!(values_of(engine, Some(first)).unwrap(), expected, "round {round}");
            bench.check();
            bench.reopen();
        }
    }
}

/// What was kept of whole leaves goes with a page for each of their parents, and some for what is left.
#[test]
fn leaves_of_a_released_snapshot_go_together() {
    let geometry = Geometry { page_size: 512, program_unit: 512, pages_per_block: 32, ..Chip::TINY.geometry };
    for options in [OPTIONS, waiting(512, 2_000)] {
        let chip = Chip { geometry, ..Chip::TINY }.with_blocks(64);
        let mut bench = Bench::new(Sim::new(chip), ByteCells, with_snapshots(options));
        let engine = bench.engine();
        for number in 0..4_000_u32 {
            engine.put(&number.to_be_bytes(), &[1; 20]).unwrap();
        }
        engine.merge().unwrap();
        let live = engine.log().live_pages();
        let number = engine.snapshot().unwrap();
        for number in 0..4_000_u32 {
            engine.put(&number.to_be_bytes(), &[2; 20]).unwrap();
        }
        engine.merge().unwrap();
        while engine.idle(16).unwrap() {}
        let kept = engine.log().live_pages() - live;
        let before = engine.log().spent().0;
        engine.release(number).unwrap();
        while engine.idle(16).unwrap() {}
        let programs = engine.log().spent().0 - before;
        println!("{kept} pages kept, {programs} programs, {} live after {live}", engine.log().live_pages());
        assert!(kept > 150 && programs < u64::from(kept), "{kept} pages, {programs} programs");
        assert!(engine.log().live_pages() < live + 20);
        bench.check();
    }
}
