//! Power cuts where changes become durable together: what was synced stays, and what came after is there up to some
//! change or not at all.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Durability, Edit, FixedCells, Options, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use super::cuts::chains;
use super::rig::SMALL;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store may hold after a cut.
#[derive(Clone)]
struct Promise {
    /// What it held at the last sync, and after each change since, the one under way included.
    states: Vec<Records>,
    /// Changes begun, over all runs on this chip.
    count: u32,
}

impl Default for Promise {
    fn default() -> Promise {
        Promise { states: vec![Records::new()], count: 0 }
    }
}

const OPTIONS: Options =
    Options { cache_size: 256, durability: Durability::OnSync, pending_size: 400, ..Options::DEFAULT };

fn memory(chip: &Sim) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &OPTIONS)]
}

fn formatted(chip: Chip) -> Sim {
    let sim = Sim::new(chip);
    let mut memory = memory(&sim);
    Store::format(sim, OPTIONS, &mut memory).unwrap().unmount().unwrap()
}

fn records(store: &mut Store<'_, &mut Sim>) -> Result<Records, nandu::Error<nandu_sim::SimError>> {
    let mut found = Records::new();
    let mut large = Vec::new();
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        large.extend(entry.large.map(|length| (entry.key.to_vec(), length)));
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    })?;
    for (key, length) in large {
        let mut value = vec![0; length];
        assert_eq!(store.read(&key, 0, &mut value)?, Some(length));
        found.insert(key, value);
    }
    Ok(found)
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// Puts, deletes, batches and syncs over a few keys with values that fit leaves, and work in idle time. One change in nine puts a
/// value of up to seven pages instead, if they are to be `large`.
fn workload(changes: u32, large: bool) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut memory = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut memory)?;
        promise.states = vec![records(&mut store)?];
        for _ in 0..changes {
            let count = promise.count;
            promise.count += 1;
            let key = |salt| {
                let mixed = mixed(count, salt);
                vec![b'a' + (mixed % 24) as u8; 1 + (mixed / 32 % 3) as usize]
            };
            let value = vec![count as u8; (mixed(count, 7) % 24) as usize];
            let mut after = promise.states.last().unwrap().clone();
            match mixed(count, 3) % 14 {
                _ if large && mixed(count, 9).is_multiple_of(9) => {
                    let key = vec![b'a' + 5 * (mixed(count, 1) % 4) as u8];
                    let value: Vec<u8> =
                        (0..[300, 995, 1390, 210][count as usize % 4]).map(|at| mixed(at, count) as u8).collect();
                    after.insert(key.clone(), value.clone());
                    promise.states.push(after.clone());
                    store.put(&key, &value)?;
                    // Durable when it returns, and all before it, unless it waits.
                    if value.len() > SMALL.geometry.page_size as usize {
                        promise.states = vec![after];
                    }
                }
                0 | 1 => {
                    after.remove(&key(1));
                    promise.states.push(after);
                    store.delete(&key(1))?;
                }
                2 => {
                    let changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
                        [(key(1), Some(value.clone())), (key(2), None), (key(5), Some(value))].into();
                    for (key, value) in &changed {
                        match value {
                            Some(value) => after.insert(key.clone(), value.clone()),
                            None => after.remove(key),
                        };
                    }
                    promise.states.push(after);
                    let edits: Vec<Edit<'_>> =
                        changed.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                    store.batch(&edits)?;
                }
                3..6 => {
                    store.sync()?;
                    promise.states = vec![after];
                }
                6 => {
                    store.idle(4)?;
                }
                _ => {
                    after.insert(key(1), value.clone());
                    promise.states.push(after);
                    store.put(&key(1), &value)?;
                }
            }
        }
        store.unmount()?;
        promise.states = vec![promise.states.pop().unwrap()];
        Ok(())
    }
}

fn recover(chip: &mut Sim) -> Run {
    let mut memory = memory(chip);
    Store::open(chip, OPTIONS, &mut memory)?;
    Ok(())
}

/// Opens the store, checks it against the promise and returns all it holds.
fn check(chip: &mut Sim, promise: &Promise) -> Records {
    let mut memory = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
    let found = records(&mut store).unwrap();
    assert!(promise.states.contains(&found), "found {found:?}\npromised one of {:#?}", promise.states);
    assert_eq!(store.record_count(), found.len() as u64);
    let mut violations = Vec::new();
    store.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    found
}

#[test]
fn every_operation_with_every_tear() {
    let summary = Driver::new(formatted(Chip::TINY)).resume().every(workload(290, false), check);
    assert!(summary.cases > 1_500, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let summary = Driver::new(formatted(Chip::TINY)).limit(chains(5_000)).pairs(workload(200, false), recover, check);
    assert!(summary.cases > 3_700, "{summary:?}");
}

#[test]
fn a_cut_on_a_chip_whose_pages_are_paired() {
    let summary = Driver::new(formatted(Chip::TINY_MLC.with_blocks(24))).resume().every(workload(300, false), check);
    assert!(summary.cases > 1_500, "{summary:?}");
}

#[test]
fn random_chains_of_cuts() {
    let driver = Driver::new(formatted(Chip::TINY)).seed(11).resume();
    let summary = driver.random(chains(1_000), workload(100, false), recover, check);
    assert!(summary.cuts >= 2_000, "{summary:?}");
}

#[test]
fn cuts_among_large_values() {
    let summary = Driver::new(formatted(SMALL.with_blocks(24))).resume().every(workload(340, true), check);
    assert!(summary.cases > 1_500, "{summary:?}");
    let driver = Driver::new(formatted(SMALL.with_blocks(24)));
    let summary = driver.limit(chains(1_000)).pairs(workload(80, true), recover, check);
    assert!(summary.cases > 650, "{summary:?}");
}

#[test]
fn random_chains_of_cuts_among_large_values() {
    let driver = Driver::new(formatted(SMALL.with_blocks(24))).seed(13).resume();
    let summary = driver.random(chains(800), workload(60, true), recover, check);
    assert!(summary.cuts >= 1_600, "{summary:?}");
}

/// Two cases in ten of those that somebody asks for, see `cuts::swarm`.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    super::cuts::run_swarm(
        (formatted(Chip::TINY), OPTIONS),
        ("stores whose changes wait for a sync, in chains of one to four cuts", 2, 10),
        |changes| workload(changes, false),
        recover,
        check,
    );
}

/// Two in ten.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm_among_large_values() {
    let chip = formatted(SMALL.with_blocks(24));
    let what = "stores whose changes wait for a sync, with large values, in chains of one to four cuts";
    super::cuts::run_swarm((chip, OPTIONS), (what, 2, 10), |changes| workload(changes, true), recover, check);
}

/// Filled until it is full, then emptied, in both cases without a sync of the caller's.
#[test]
fn a_full_store_can_be_emptied() {
    let chip = Sim::new(Chip::TINY.with_blocks(32));
    let mut memory = memory(&chip);
    let mut store = Store::format_with(chip, FixedCells::<4, 4>, OPTIONS, &mut memory).unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let mut count = 0;
    let error = loop {
        match store.put(&key(count), &[1; 4]) {
            Ok(existed) => assert!(!existed),
            Err(error) => break error,
        }
        count += 1;
        assert!(count < 100_000, "the chip is small");
    };
    assert_eq!(error, nandu::Error::Full);
    assert_eq!(store.record_count(), u64::from(count));
    for number in 0..count {
        let outcome = store.delete(&key(number));
        assert_eq!(outcome, Ok(true), "{number} of {count} {:?}", store.stats());
    }
    store.sync().unwrap();
    assert_eq!(store.record_count(), 0);
    for number in 0..count / 2 {
        store.put(&key(number), &[2; 4]).unwrap();
    }
    store.merge().unwrap();
    let chip = store.unmount().unwrap();
    let immediate = Options { durability: Durability::Immediate, pending_size: 0, ..OPTIONS };
    let mut store = Store::open_with(chip, FixedCells::<4, 4>, immediate, &mut memory).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(&[2; 4][..]));
    assert_eq!(store.record_count(), u64::from(count / 2));
}

/// What waits does not go unnoticed where there is no memory for it.
#[test]
fn a_store_with_changes_that_wait_needs_memory_for_them() {
    let mut chip = formatted(Chip::TINY.with_blocks(32));
    let mut memory = memory(&chip);
    let mut store = Store::open(&mut chip, OPTIONS, &mut memory).unwrap();
    for number in 0..60_u32 {
        store.put(&number.wrapping_mul(0x9E37_79B1).to_be_bytes(), b"value").unwrap();
        if number % 5 == 0 {
            store.sync().unwrap();
        }
    }
    store.unmount().unwrap();
    let without = Options { durability: Durability::Immediate, pending_size: 0, ..OPTIONS };
    let refused = Store::open(&mut chip, without, &mut memory).map(|_| ());
    assert_eq!(refused, Err(nandu::Error::PendingSize));
    let with = Options { durability: Durability::Immediate, ..OPTIONS };
    let mut store = Store::open(&mut chip, with, &mut memory).unwrap();
    assert_eq!(store.record_count(), 60);
    store.put(b"k", b"v").unwrap();
    store.abandon();
    let mut store = Store::open(&mut chip, without, &mut memory).unwrap();
    assert_eq!(store.record_count(), 61);
    assert_eq!(store.get(&0x9E37_79B1_u32.to_be_bytes()).unwrap(), Some(&b"value"[..]));
}
