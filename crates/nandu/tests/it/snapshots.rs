//! Snapshots of a store: held against maps, collected around, filled up, cut.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::nand::{Cause, Nand};
use nandu::{At, Cursor, Direction, Edit, Options, SNAPSHOT_COUNT_MAX, Snapshot, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim, SimError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::cuts::chains;

pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;
pub(crate) type Error = nandu::Error<SimError>;

pub(crate) const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

pub(crate) fn memory(chip: &Sim) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &OPTIONS)]
}

pub(crate) fn formatted(chip: Chip) -> Sim {
    let sim = Sim::new(chip);
    let mut memory = memory(&sim);
    Store::format(sim, OPTIONS, &mut memory).unwrap().unmount().unwrap()
}

/// Bytes in which each place differs from its neighbours and from other values.
fn pattern(size: usize, salt: u32) -> Vec<u8> {
    (0..size as u32)
        .map(|at| (at.wrapping_mul(0x9E37_79B1) ^ salt.wrapping_mul(0x85EB_CA6B)).to_le_bytes()[3])
        .collect()
}

fn note(found: &mut Records, large: &mut Vec<(Vec<u8>, usize)>, entry: nandu::Entry<'_>) -> ControlFlow<()> {
    if let Some(length) = entry.large {
        large.push((entry.key.to_vec(), length));
    }
    found.insert(entry.key.to_vec(), entry.value.to_vec());
    ControlFlow::Continue(())
}

/// All that a store holds, with large values read to their ends.
pub(crate) fn records(store: &mut Store<'_, impl Nand<Error = SimError>>) -> Result<Records, Error> {
    let (mut found, mut large) = (Records::new(), Vec::new());
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| note(&mut found, &mut large, entry))?;
    for (key, length) in large {
        let mut value = vec![0; length];
        assert_eq!(store.read(&key, 0, &mut value)?, Some(length));
        found.insert(key, value);
    }
    assert_eq!(store.record_count(), found.len() as u64);
    Ok(found)
}

/// The same of a snapshot, once forwards and once backwards.
fn records_at(mut at: At<'_, '_, impl Nand<Error = SimError>>) -> Result<Records, Error> {
    let (mut found, mut large) = (Records::new(), Vec::new());
    at.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| note(&mut found, &mut large, entry))?;
    let mut back = Records::new();
    at.range(Bound::Unbounded, Bound::Unbounded, Direction::Backward, |entry| note(&mut back, &mut Vec::new(), entry))?;
    assert_eq!(found, back);
    for (key, length) in large {
        let mut value = vec![0; length];
        assert_eq!(at.value_len(&key)?, Some(length));
        assert_eq!(at.read(&key, 0, &mut value)?, Some(length));
        found.insert(key, value);
    }
    assert_eq!(at.record_count()?, found.len() as u64);
    let first = at.first()?.map(|entry| entry.key.to_vec());
    assert_eq!(first.as_ref(), found.keys().next());
    let last = at.last()?.map(|entry| entry.key.to_vec());
    assert_eq!(last.as_ref(), found.keys().next_back());
    Ok(found)
}

pub(crate) fn check_sound(store: &mut Store<'_, impl Nand<Error = SimError>>) {
    let mut violations = Vec::new();
    store.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

fn is_full<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(nandu::Error::Full))
}

/// Everything that is kept: each snapshot by its number.
pub(crate) fn kept(store: &mut Store<'_, impl Nand<Error = SimError>>) -> Result<BTreeMap<u32, Records>, Error> {
    let snapshots: Vec<Snapshot> = store.snapshots().collect();
    let found = snapshots.iter().map(|snapshot| Ok((snapshot.number(), records_at(store.at(snapshot))?)));
    found.collect()
}

struct Outcome {
    full: u32,
    moved: u64,
    taken: u32,
}

/// Puts, deletes and batches of values from nothing to `pages_max` pages, with snapshots taken and released in between, held
/// against maps; every now and then the store is left, cleanly or not, and opened again.
fn model(chip: Chip, seed: u64, changes: u32, keys: u32, pages_max: usize) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut chip = formatted(chip);
    let page_size = chip.chip().geometry.page_size as usize;
    let mut bytes = memory(&chip);
    let mut expected = Records::new();
    let mut snapshots: BTreeMap<u32, Records> = BTreeMap::new();
    let mut outcome = Outcome { full: 0, moved: 0, taken: 0 };
    for round in 0..changes / 60 {
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        assert_eq!(records(&mut store).unwrap(), expected);
        assert_eq!(kept(&mut store).unwrap(), snapshots);
        for change in 0..60 {
            let key = format!("{}", random.random_range(0..keys)).into_bytes();
            let size = match random.random_range(0..4) {
                0..2 => random.random_range(0..60),
                _ => random.random_range(0..pages_max * page_size),
            };
            let value = pattern(size, round * 60 + change);
            let snapshot = store.snapshots().nth(random.random_range(0..SNAPSHOT_COUNT_MAX));
            let result = match random.random_range(0..16) {
                0..3 => store.delete(&key).map(|was_there| {
                    assert_eq!(was_there, expected.remove(&key).is_some());
                }),
                3 => {
                    let small = &value[..size.min(20)];
                    store.batch(&[Edit { key: &key, value: Some(small) }]).map(|()| {
                        expected.insert(key, small.to_vec());
                    })
                }
                4 if snapshots.len() < SNAPSHOT_COUNT_MAX => store.snapshot().map(|snapshot| {
                    outcome.taken += 1;
                    assert!(snapshots.insert(snapshot.number(), expected.clone()).is_none());
                }),
                5 | 6 => match snapshot {
                    Some(snapshot) => {
                        snapshots.remove(&snapshot.number());
                        store.release(snapshot)
                    }
                    None => store.idle(30).map(|_| ()),
                },
                7 => match snapshot {
                    Some(snapshot) => {
                        let found = records_at(store.at(&snapshot)).unwrap();
                        assert!(found == snapshots[&snapshot.number()]);
                        Ok(())
                    }
                    None => Ok(()),
                },
                _ => store.put(&key, &value).map(|was_there| {
                    assert_eq!(was_there, expected.insert(key, value).is_some());
                }),
            };
            if is_full(&result) {
                outcome.full += 1;
                // The way out: the oldest snapshot goes, or else the first record.
                if let Some(oldest) = store.snapshots().next() {
                    store.release(oldest).unwrap();
                    snapshots.remove(&oldest.number());
                } else if let Some(key) = expected.keys().next().cloned() {
                    assert!(store.delete(&key).unwrap());
                    expected.remove(&key);
                }
            } else {
                result.unwrap();
            }
        }
        check_sound(&mut store);
        outcome.moved += store.stats().programs_for(Cause::Gc);
        chip = if round % 2 == 0 { store.unmount().unwrap() } else { store.abandon() };
    }
    crate::liveness::serves_again(OPTIONS, &mut chip, &format!("seed {seed}"));
    outcome
}

#[test]
fn snapshots_of_small_records_agree_with_maps() {
    for seed in 0..4 {
        let outcome = model(Chip::TINY.with_blocks(64), seed, 1800, 150, 1);
        println!("seed {seed}: full {}, moved {}, taken {}", outcome.full, outcome.moved, outcome.taken);
        assert!(outcome.taken > 40 && outcome.moved > 50);
    }
}

#[test]
fn snapshots_of_large_values_agree_with_maps() {
    for (chip, seed, keys, pages_max) in [
        (Chip::TINY.with_blocks(64), 10, 12, 7),
        (Chip::TINY.with_blocks(64), 11, 40, 3),
        (Chip::W25N01GV.with_blocks(48), 12, 40, 12),
        (Chip::W25N01GV.with_blocks(48), 13, 300, 3),
    ] {
        let outcome = model(chip, seed, 1800, keys, pages_max);
        println!("seed {seed}: full {}, moved {}, taken {}", outcome.full, outcome.moved, outcome.taken);
        assert!(outcome.taken > 40);
    }
}

#[test]
fn a_chip_full_of_what_snapshots_keep_refuses_and_a_release_makes_room() {
    for (chip, size) in [(Chip::TINY.with_blocks(32), 20), (Chip::W25N01GV.with_blocks(32), 400)] {
        let chip = formatted(chip);
        let mut bytes = memory(&chip);
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        let key = |number: u32| (number.wrapping_mul(0x9E37_79B1)).to_be_bytes();
        let count = store.stats().capacity_pages;
        for number in 0..count {
            store.put(&key(number), &vec![0; size]).unwrap();
        }
        let mut taken = 0;
        for round in 1..20_u32 {
            let mut refused = 0;
            // Where all that the last one keeps was replaced, there is no room to replace it once more: it goes first.
            let mut before = store.snapshot();
            while is_full(&before) {
                refused += 1;
                // What a released one kept goes at once, or with the calls that follow.
                match store.snapshots().next() {
                    Some(oldest) => store.release(oldest).unwrap(),
                    None => drop(store.idle(8).unwrap()),
                }
                before = store.snapshot();
            }
            before.unwrap();
            taken += 1;
            for number in 0..count {
                let result = store.put(&key(number), &vec![round as u8; size]);
                if !is_full(&result) {
                    result.unwrap();
                    continue;
                }
                refused += 1;
                // What was refused changed nothing, and reading goes on.
                assert!(store.get(&key(number)).unwrap().unwrap()[0] < round as u8);
                let oldest = store.snapshots().next().unwrap();
                store.release(oldest).unwrap();
                // A release makes room.
                store.put(&key(number), &vec![round as u8; size]).unwrap();
            }
            println!("round {round}: {refused} refused, {} snapshots", store.snapshots().len());
            if store.snapshots().len() == SNAPSHOT_COUNT_MAX {
                let oldest = store.snapshots().next().unwrap();
                store.release(oldest).unwrap();
            }
        }
        assert!(taken > 10);
        check_sound(&mut store);
        let mut store = Store::open(store.abandon(), OPTIONS, &mut bytes).unwrap();
        while let Some(oldest) = store.snapshots().next() {
            store.release(oldest).unwrap();
        }
        for number in 0..count {
            assert!(store.delete(&key(number)).unwrap());
        }
        check_sound(&mut store);
    }
}

/// What the store said is durable, and what it was about to do.
#[derive(Clone, Default)]
struct Promise {
    records: Records,
    kept: BTreeMap<u32, Records>,
    pending: Option<Pending>,
    count: u32,
}

#[derive(Clone)]
enum Pending {
    Change(Records),
    /// A snapshot of what there is, whose number is not known yet.
    Take,
    Release(u32),
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// Changes of a few keys, some of their values large, and snapshots taken and released.
fn workload(changes: u32, has_values: bool) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut memory = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut memory)?;
        promise.records = records(&mut store)?;
        promise.kept = kept(&mut store)?;
        promise.pending = None;
        for _ in 0..changes {
            let count = promise.count;
            promise.count += 1;
            let oldest = store.snapshots().next();
            let key = vec![b'a' + (mixed(count, 1) % 12) as u8; 1 + (mixed(count, 1) % 3) as usize];
            let mut after = promise.records.clone();
            let choice = mixed(count, 3) % 12;
            let result = match (choice, oldest) {
                (0 | 1, None) => {
                    promise.pending = Some(Pending::Take);
                    store.snapshot().map(|snapshot| drop(promise.kept.insert(snapshot.number(), after)))
                }
                (0, Some(_)) if promise.kept.len() < 3 => {
                    promise.pending = Some(Pending::Take);
                    store.snapshot().map(|snapshot| drop(promise.kept.insert(snapshot.number(), after)))
                }
                (1 | 2, Some(oldest)) => {
                    promise.pending = Some(Pending::Release(oldest.number()));
                    store.release(oldest).map(|()| drop(promise.kept.remove(&oldest.number())))
                }
                (3, _) => {
                    after.remove(&key);
                    promise.pending = Some(Pending::Change(after.clone()));
                    store.delete(&key).map(|_| promise.records = after)
                }
                _ => {
                    let size = if has_values && choice > 9 { 700 } else { (mixed(count, 7) % 24) as usize };
                    let value = pattern(size, count);
                    after.insert(key.clone(), value.clone());
                    promise.pending = Some(Pending::Change(after.clone()));
                    store.put(&key, &value).map(|_| promise.records = after)
                }
            };
            if is_full(&result) {
                promise.pending = None;
                if let Some(oldest) = store.snapshots().next() {
                    promise.pending = Some(Pending::Release(oldest.number()));
                    store.release(oldest)?;
                    promise.kept.remove(&oldest.number());
                }
            } else {
                result?;
            }
            promise.pending = None;
        }
        store.unmount()?;
        Ok(())
    }
}

fn recover(chip: &mut Sim) -> Run {
    let mut memory = memory(chip);
    Store::open(chip, OPTIONS, &mut memory)?;
    Ok(())
}

/// Opens the store, checks it and every snapshot against the promise and returns all there is.
fn check(chip: &mut Sim, promise: &Promise) -> (Records, BTreeMap<u32, Records>) {
    let mut memory = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
    check_sound(&mut store);
    let found = records(&mut store).unwrap();
    let is_after = matches!(&promise.pending, Some(Pending::Change(after)) if *after == found);
    assert!(found == promise.records || is_after, "neither before nor after");
    let mut snapshots = kept(&mut store).unwrap();
    let all = snapshots.clone();
    match promise.pending {
        Some(Pending::Take) if snapshots.len() > promise.kept.len() => {
            assert_eq!(snapshots.pop_last().map(|(_, records)| records), Some(found.clone()));
        }
        Some(Pending::Release(number)) if snapshots.len() < promise.kept.len() => {
            snapshots.insert(number, promise.kept[&number].clone());
        }
        _ => {}
    }
    assert!(snapshots == promise.kept, "a snapshot is not what it was");
    (found, all)
}

#[test]
fn every_operation_with_every_tear() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(20))).resume();
    let summary = driver.every(workload(140, false), check);
    println!("{summary:?}");
    assert!(summary.cases > 1_500, "{summary:?}");
}

#[test]
fn every_operation_with_every_tear_and_large_values() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(32))).resume();
    let summary = driver.every(workload(90, true), check);
    println!("{summary:?}");
    assert!(summary.cases > 1_500, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(20))).limit(chains(2_000));
    let summary = driver.pairs(workload(100, false), recover, check);
    println!("{summary:?}");
    assert!(summary.cases > 1_600, "{summary:?}");
}

#[test]
fn a_cut_on_a_chip_whose_pages_are_paired() {
    let driver = Driver::new(formatted(Chip::TINY_MLC.with_blocks(32))).resume();
    let summary = driver.every(workload(80, false), check);
    println!("{summary:?}");
    assert!(summary.cases > 1_000, "{summary:?}");
}

#[test]
fn random_chains_of_cuts() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(24))).seed(5).resume();
    let summary = driver.random(chains(600), workload(50, true), recover, check);
    println!("{summary:?}");
    assert!(summary.cuts >= 1_200, "{summary:?}");
}

/// The test before at any length, on a chip of a size that the seed chooses: two cases in ten of those that somebody asks for,
/// see `cuts::swarm`. Every second seed has large values.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    let seed = crate::cuts::swarm_seed();
    let chip = formatted(Chip::TINY.with_blocks(18 + (seed % 20) as u32));
    crate::cuts::run_swarm(
        (chip, OPTIONS),
        ("stores with snapshots, in chains of one to four cuts", 2, 10),
        |changes| workload(changes, seed.is_multiple_of(2)),
        recover,
        check,
    );
}

#[test]
fn a_snapshot_is_walked_while_the_store_changes() {
    let options = Options::DEFAULT;
    let chip = Sim::new(Chip::W25N01GV.with_blocks(48));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory).unwrap();
    for key in 0..200_u32 {
        store.put(&key.to_be_bytes(), b"before").unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let mut cursor = Cursor::END;
    for key in (0..200_u32).rev() {
        let entry =
            store.at(&snapshot).previous(&mut cursor).unwrap().map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        assert_eq!(entry, Some((key.to_be_bytes().to_vec(), b"before".to_vec())));
        store.delete(&key.to_be_bytes()).unwrap();
    }
    assert!(store.at(&snapshot).previous(&mut cursor).unwrap().is_none());
    assert_eq!(store.next(&mut cursor), Ok(None));
    assert_eq!(store.at(&snapshot).next(&mut cursor).unwrap().map(|entry| entry.key[3]), Some(0));
    store.release(snapshot).unwrap();
    assert_eq!(store.at(&snapshot).next(&mut cursor), Err(Error::NoSnapshot(snapshot.number())));
}
