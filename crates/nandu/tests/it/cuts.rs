//! Power cuts: what was acknowledged stays, what was not is wholly there or wholly not.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Edit, Options, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_suite::counts::{self, SWARM, Tried};

use super::liveness::serves_again_sometimes;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store said is durable, and the one change that it has said nothing of yet.
#[derive(Clone, Default)]
struct Promise {
    records: Records,
    pending: Option<Records>,
    /// Changes begun, over all runs on this chip.
    count: u32,
}

const OPTIONS: Options = Options { cache_size: 256, ..Options::DEFAULT };

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
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// Puts, deletes and batches over a few keys with values of any size.
fn workload(changes: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut memory = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut memory)?;
        promise.records = records(&mut store)?;
        promise.pending = None;
        for _ in 0..changes {
            let count = promise.count;
            promise.count += 1;
            let key = |salt| vec![b'a' + (mixed(count, salt) % 24) as u8; 1 + (mixed(count, salt) % 3) as usize];
            let value = vec![count as u8; (mixed(count, 7) % 24) as usize];
            let mut after = promise.records.clone();
            match mixed(count, 3) % 6 {
                0 => {
                    after.remove(&key(1));
                    promise.pending = Some(after);
                    store.delete(&key(1))?;
                }
                1 => {
                    let changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
                        [(key(1), Some(value.clone())), (key(2), None), (key(5), Some(value))].into();
                    for (key, value) in &changed {
                        match value {
                            Some(value) => after.insert(key.clone(), value.clone()),
                            None => after.remove(key),
                        };
                    }
                    promise.pending = Some(after);
                    let edits: Vec<Edit<'_>> =
                        changed.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                    store.batch(&edits)?;
                }
                _ => {
                    after.insert(key(1), value.clone());
                    promise.pending = Some(after);
                    store.put(&key(1), &value)?;
                }
            }
            promise.records = promise.pending.take().unwrap_or_default();
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

/// Opens the store, checks it against the promise and returns all it holds.
fn check(chip: &mut Sim, promise: &Promise) -> Records {
    let mut memory = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
    let mut violations = Vec::new();
    store.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    let found = records(&mut store).unwrap();
    let is_before = found == promise.records;
    let is_after = promise.pending.as_ref() == Some(&found);
    assert!(
        is_before || is_after,
        "found {found:?}\nacknowledged {:?}\npending {:?}",
        promise.records,
        promise.pending
    );
    assert_eq!(store.record_count(), found.len() as u64);
    found
}

#[test]
fn every_operation_with_every_tear() {
    let summary = Driver::new(formatted(Chip::TINY)).resume().every(workload(240), check);
    assert!(summary.cases > 3_000, "{summary:?}");
}

/// Every second record is deleted from a store that is full of them, so that leaves are joined with their neighbours.
#[test]
fn every_operation_while_leaves_are_joined() {
    const RECORDS: u32 = 90;
    let mut chip = formatted(Chip::TINY);
    let live_pages = |chip: &mut Sim| {
        let mut memory = memory(chip);
        Store::open(chip, OPTIONS, &mut memory).unwrap().stats().live_pages
    };
    let mut bytes = memory(&chip);
    let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
    for number in 0..RECORDS {
        store.put(&number.to_be_bytes(), &[number as u8; 20]).unwrap();
    }
    let full = records(&mut store).unwrap();
    store.unmount().unwrap();
    let deletes = |chip: &mut Sim, promise: &mut Promise| {
        promise.records = full.clone();
        let mut memory = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut memory)?;
        for number in (1..RECORDS).step_by(2) {
            let mut after = promise.records.clone();
            after.remove(number.to_be_bytes().as_slice());
            promise.pending = Some(after.clone());
            store.delete(&number.to_be_bytes())?;
            (promise.records, promise.pending) = (after, None);
        }
        store.unmount()?;
        Ok(())
    };
    let mut uncut = chip.clone();
    let before = live_pages(&mut uncut);
    deletes(&mut uncut, &mut Promise::default()).unwrap();
    let after = live_pages(&mut uncut);
    assert!(4 * after <= 3 * before, "leaves were joined: {before} pages, then {after}");
    let summary = Driver::new(chip).every(deletes, check);
    assert!(summary.cases > 300, "{summary:?}");
}

#[test]
fn every_operation_of_a_format_with_every_tear() {
    let format = |chip: &mut Sim, is_done: &mut bool| {
        let mut memory = memory(chip);
        Store::format(chip, OPTIONS, &mut memory)?;
        *is_done = true;
        Ok(())
    };
    let summary = Driver::new(Chip::TINY).every(format, |chip, is_done| {
        let mut memory = memory(chip);
        match Store::open(chip, OPTIONS, &mut memory) {
            Ok(store) => assert_eq!(store.record_count(), 0),
            Err(error) => assert!(!is_done, "{error}"),
        }
    });
    assert!(summary.cases > 50, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let summary = Driver::new(formatted(Chip::TINY)).limit(chains(8_000)).pairs(workload(160), recover, check);
    assert!(summary.cases > 6_000, "{summary:?}");
}

#[test]
fn a_cut_on_a_chip_whose_pages_are_paired() {
    let summary = Driver::new(formatted(Chip::TINY_MLC)).resume().every(workload(160), check);
    assert!(summary.cases > 2_500, "{summary:?}");
}

#[test]
fn a_cut_in_a_load_leaves_a_prefix() {
    let load = |chip: &mut Sim, loaded: &mut u64| {
        let mut memory = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut memory)?;
        *loaded = store.load((0..400_u16).map(|number| (number.to_be_bytes(), [number as u8; 3])))?;
        Ok(())
    };
    let summary = Driver::new(formatted(Chip::TINY.with_blocks(32))).every(load, |chip, loaded| {
        let mut memory = memory(chip);
        let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
        let mut violations = 0;
        store.verify(&mut |_| violations += 1).unwrap();
        assert_eq!(violations, 0);
        let found = records(&mut store).unwrap();
        let is_prefix = (0_u16..).zip(&found).all(|(number, (key, _))| key[..] == number.to_be_bytes());
        assert!(is_prefix && found.len() as u64 >= *loaded, "{} of {loaded}", found.len());
        found
    });
    assert!(summary.cases > 150, "{summary:?}");
}

#[test]
fn random_chains_of_cuts() {
    let driver = Driver::new(formatted(Chip::TINY)).seed(11).resume();
    let summary = driver.random(chains(1_500), workload(60), recover, check);
    assert!(summary.cuts >= 3_400, "{summary:?}");
}

/// The full form of the test before, with a seed and a number of cases of one's own: see TESTING.md. The other cases are in
/// `sync` and `snapshots`.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    let what = "stores whose changes are durable at once, in chains of one to four cuts";
    run_swarm((formatted(Chip::TINY), OPTIONS), (what, 4, 10), workload, recover, check);
}

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// How many chains of cuts a test takes: so few, or what somebody asks for.
pub(crate) fn chains(few: u64) -> u64 {
    number("NANDU_CHAINS", few)
}

/// The seed that somebody asks for.
pub(crate) fn swarm_seed() -> u64 {
    number("NANDU_SWARM_SEED", 1)
}

/// Runs a share of the cases that somebody asks for. After some of the chains the store has to serve again.
pub(crate) fn run_swarm<T: Clone + Default, W: Fn(&mut Sim, &mut T) -> Run, R: PartialEq + std::fmt::Debug>(
    (chip, options): (Sim, Options),
    (what, part, of): (&str, u64, u64),
    workload: impl Fn(u32) -> W,
    recover: impl Fn(&mut Sim) -> Run,
    check: impl Fn(&mut Sim, &T) -> R,
) {
    let count = number("NANDU_SWARM_CASES", 1_000_000) * part / of;
    let seed = swarm_seed();
    let changes = 20 + (seed % 100) as u32;
    let started = std::time::Instant::now();
    let summary = Driver::new(chip)
        .seed(seed)
        .resume()
        .progress(move |done, total| {
            // Once for each thousandth, so that a file that this goes to stays small.
            if done % (total / 1_000).max(1) == 0 {
                eprint!("\r{done} of {total} chains, {:.0} s", started.elapsed().as_secs_f64());
            }
        })
        .random(count, workload(changes), recover, |chip: &mut Sim, promise: &T| {
            let found = check(chip, promise);
            serves_again_sometimes(options, chip);
            found
        });
    eprintln!();
    println!("seed {seed}");
    let counts = [(summary.cases, "chains"), (summary.cuts, "cuts")];
    Tried { promise: counts::KEPT, what, against: counts::CUTS, command: SWARM, counts: &counts }.tell();
}
