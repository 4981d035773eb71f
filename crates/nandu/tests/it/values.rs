//! Values of any size: held against a model, counted, cut.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::nand::Cause;
use nandu::{Direction, Edit, Options, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::rig::SMALL;

pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type Error = nandu::Error<nandu_sim::SimError>;

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

pub(crate) fn memory(chip: &Sim) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &OPTIONS)]
}

pub(crate) fn formatted(chip: Chip) -> Sim {
    let sim = Sim::new(chip);
    let mut memory = memory(&sim);
    Store::format(sim, OPTIONS, &mut memory).unwrap().unmount().unwrap()
}

/// Bytes in which each place differs from its neighbours and from other values.
pub(crate) fn pattern(size: usize, salt: u32) -> Vec<u8> {
    (0..size as u32)
        .map(|at| (at.wrapping_mul(0x9E37_79B1) ^ salt.wrapping_mul(0x85EB_CA6B)).to_le_bytes()[3])
        .collect()
}

pub(crate) fn read_all(
    store: &mut Store<'_, impl nandu::nand::Nand<Error = nandu_sim::SimError>>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let Some(length) = store.value_len(key)? else { return Ok(None) };
    let mut value = vec![0; length];
    assert_eq!(store.read(key, 0, &mut value)?, Some(length));
    Ok(Some(value))
}

/// All that a store holds, with large values read to their ends.
pub(crate) fn records(
    store: &mut Store<'_, impl nandu::nand::Nand<Error = nandu_sim::SimError>>,
) -> Result<Records, Error> {
    let mut found = Records::new();
    let mut large = Vec::new();
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        if let Some(length) = entry.large {
            assert_eq!(entry.value, b"");
            large.push((entry.key.to_vec(), length));
        }
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    })?;
    for (key, length) in large {
        let value = read_all(store, &key)?.unwrap();
        assert_eq!(value.len(), length);
        found.insert(key, value);
    }
    Ok(found)
}

pub(crate) fn check_sound(store: &mut Store<'_, impl nandu::nand::Nand<Error = nandu_sim::SimError>>) {
    let mut violations = Vec::new();
    store.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

/// What a run over a model met.
pub(crate) struct Outcome {
    /// Puts that found the chip full.
    pub(crate) full: u32,
    /// Pages moved by the collector.
    pub(crate) moved: u64,
    /// Least share of the capacity, with what was to be put, at which one found it full.
    pub(crate) least: f64,
}

/// Puts, overwrites, deletes, batches and partial reads of values from nothing to `pages_max` pages, held against a map.
pub(crate) fn model(chip: Chip, seed: u64, changes: u32, keys: u32, pages_max: usize, live_share: f64) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut chip = formatted(chip);
    let page_size = chip.chip().geometry.page_size as usize;
    let mut bytes = memory(&chip);
    let mut expected = Records::new();
    let (mut full, mut moved, mut least) = (0, 0, 9.0_f64);
    for round in 0..changes / 60 {
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        assert_eq!(records(&mut store).unwrap(), expected);
        for change in 0..60 {
            let key = format!("{}", random.random_range(0..keys)).into_bytes();
            let size = match random.random_range(0..4) {
                0 => random.random_range(0..60),
                1 => random.random_range(0..3 * page_size),
                _ => random.random_range(0..pages_max * page_size),
            };
            let value = pattern(size, round * 60 + change);
            let stats = store.stats();
            let is_crowded = f64::from(stats.live_pages) > f64::from(stats.capacity_pages) * live_share;
            match random.random_range(0..10) {
                0..3 => {
                    assert_eq!(store.delete(&key).unwrap(), expected.remove(&key).is_some());
                }
                3 => {
                    let small = &value[..size.min(20)];
                    match store.batch(&[Edit { key: &key, value: Some(small) }]) {
                        Ok(()) => drop(expected.insert(key, small.to_vec())),
                        Err(nandu::Error::Full) => full += 1,
                        result => result.unwrap(),
                    }
                }
                4 => {
                    let offset = random.random_range(0..2 * page_size);
                    let mut part = vec![0; random.random_range(0..2 * page_size)];
                    let read = store.read(&key, offset, &mut part).unwrap();
                    let wanted = expected.get(&key).map(|value| {
                        let rest = value.get(offset..).unwrap_or_default();
                        &rest[..rest.len().min(part.len())]
                    });
                    assert_eq!(read.map(|size| &part[..size]), wanted);
                }
                5 if is_crowded => {
                    store.idle(40).unwrap();
                }
                how => {
                    let result = if how < 8 {
                        store.put(&key, &value)
                    } else {
                        let mut buffer = vec![0; page_size];
                        store.writer(&key, value.len(), &mut buffer).and_then(|mut writer| {
                            for piece in value.chunks(random.random_range(1..2 * page_size)) {
                                writer.write(piece)?;
                            }
                            // Half of them are dropped.
                            if how == 8 { writer.finish() } else { Err(nandu::Error::NotFormatted) }
                        })
                    };
                    match result {
                        Ok(was_there) => assert_eq!(was_there, expected.insert(key, value).is_some()),
                        Err(nandu::Error::Full) => {
                            full += 1;
                            let stats = store.stats();
                            let pages = (value.len() / (page_size - 64)) as u32 + 2;
                            least = least.min(f64::from(stats.live_pages + pages) / f64::from(stats.capacity_pages));
                        }
                        Err(error) => assert_eq!(error, nandu::Error::NotFormatted, "a change failed"),
                    }
                }
            }
        }
        assert_eq!(store.record_count(), expected.len() as u64);
        check_sound(&mut store);
        moved += store.stats().programs_for(Cause::Gc);
        chip = if round % 2 == 0 { store.unmount().unwrap() } else { store.abandon() };
    }
    Outcome { full, moved, least }
}

#[test]
fn values_of_any_size_agree_with_a_model() {
    for seed in 0..6 {
        let outcome = model(SMALL.with_blocks(64), seed, 1200, 12, 20, 0.5);
        assert_eq!(outcome.full, 0);
    }
}

#[test]
fn values_of_several_hundred_pages_agree_with_a_model() {
    let outcome = model(Chip::W25N01GV.with_blocks(64), 9, 300, 8, 400, 0.5);
    assert_eq!(outcome.full, 0);
}

#[test]
fn sixteen_mebibytes_go_in_and_out_in_pieces() {
    let chip = formatted(Chip::W25N01GV);
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let length = 16 << 20;
    let key = vec![b'k'; store.key_size_max()];
    assert_eq!(store.value_size_max(&key), length);
    assert_eq!(store.put(&key, &vec![0; length + 1]), Err(nandu::Error::ValueSize(length + 1)));
    store.put(&key, b"before").unwrap();
    let value = pattern(length, 3);
    let mut buffer = vec![0; 2048];
    let mut writer = store.writer(&key, length, &mut buffer).unwrap();
    for piece in value.chunks(10_000) {
        writer.write(piece).unwrap();
    }
    assert!(writer.finish().unwrap());
    let chip = store.abandon();
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    assert_eq!(store.value_len(&key).unwrap(), Some(length));
    assert_eq!(store.get(&key), Err(nandu::Error::LargeValue(length)));
    let mut piece = vec![0; 7777];
    for offset in (0..length).step_by(7777) {
        let size = store.read(&key, offset, &mut piece).unwrap().unwrap();
        assert!(piece[..size] == value[offset..][..size], "at {offset}");
    }
    assert_eq!(store.read(&key, length, &mut piece).unwrap(), Some(0));
    assert!(store.delete(&key).unwrap());
    assert_eq!(store.unmount().map(|_| ()), Ok(()));
}

#[test]
fn what_does_not_fit_changes_nothing_and_leaves_no_pages() {
    let chip = formatted(SMALL.with_blocks(64));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    store.put(b"k", &pattern(5000, 1)).unwrap();
    let live = store.stats().live_pages;
    let capacity = store.stats().capacity_pages as usize;
    let page_size = SMALL.geometry.page_size as usize;
    // More than the chip holds is refused before anything is programmed.
    let programs = store.stats().programs_total();
    let too_much = pattern(store.value_size_max(b"k").min(capacity * page_size), 2);
    assert_eq!(store.put(b"k", &too_much), Err(nandu::Error::Full));
    assert_eq!(store.stats().programs_total(), programs);
    // A writer that is dropped, or that says more or less than it should, leaves nothing behind.
    let mut buffer = vec![0; page_size];
    for size in [3000, 9000] {
        let refused = {
            let mut writer = store.writer(b"k", 9000, &mut buffer).unwrap();
            writer.write(&pattern(size, 3)).unwrap();
            if size < 9000 { writer.finish().err() } else { writer.write(b"more").err() }
        };
        assert!(matches!(refused, Some(nandu::Error::ValueSize(_))));
        while store.idle(100).unwrap() {}
        assert!(store.stats().live_pages <= live + 1, "{} pages live, {live} before", store.stats().live_pages);
    }
    assert_eq!(read_all(&mut store, b"k").unwrap(), Some(pattern(5000, 1)));
    check_sound(&mut store);
}

/// What the store said is durable, and the one change that it has said nothing of yet.
#[derive(Clone, Default)]
struct Promise {
    records: Records,
    pending: Option<Records>,
    count: u32,
}

/// Puts, replaces and deletes values of five pages and others, enough of them for the collector to move some.
fn workload(changes: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut bytes)?;
        promise.records = records(&mut store)?;
        promise.pending = None;
        for _ in 0..changes {
            let count = promise.count;
            promise.count += 1;
            let key = vec![b'a' + (count * 7 % 3) as u8];
            let mut after = promise.records.clone();
            if count % 5 == 3 {
                after.remove(&key);
                promise.pending = Some(after);
                store.delete(&key)?;
            } else {
                let value = pattern([5 * 199, 5 * 199 - 7, 30, 2 * 199, 7 * 199][count as usize % 5], count);
                after.insert(key.clone(), value.clone());
                promise.pending = Some(after);
                store.put(&key, &value)?;
            }
            promise.records = promise.pending.take().unwrap_or_default();
        }
        store.unmount()?;
        Ok(())
    }
}

fn recover(chip: &mut Sim) -> Run {
    let mut bytes = memory(chip);
    Store::open(chip, OPTIONS, &mut bytes)?;
    Ok(())
}

fn check(chip: &mut Sim, promise: &Promise) -> Records {
    let mut bytes = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    check_sound(&mut store);
    let found = records(&mut store).unwrap();
    assert!(found == promise.records || promise.pending.as_ref() == Some(&found), "neither before nor after");
    found
}

#[test]
fn every_cut_leaves_the_value_before_or_the_value_after() {
    let summary = Driver::new(formatted(SMALL.with_blocks(24))).resume().every(workload(75), check);
    assert!(summary.cases > 1_500, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_from_a_cut_leaves_one_of_both_values() {
    let driver = Driver::new(formatted(SMALL.with_blocks(24)));
    let summary = driver.limit(6_000).pairs(workload(24), recover, check);
    assert!(summary.cases > 4_000, "{summary:?}");
}
