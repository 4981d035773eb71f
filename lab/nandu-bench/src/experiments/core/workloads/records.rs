//! Random updates of a store.

use nandu::{Durability, Options};
use nandu_sim::Sim;

use super::{EXPERIMENT, Phase, chip};
use crate::records::{self, Cells, Records};
use crate::workload::{Chooser, RandomKeys, Skew};
use crate::{BenchError, Context, Figure};

/// Bytes of a value; with a key of 8 that makes 108.
const VALUE_SIZE: usize = 100;
/// More records than a page of 2 KiB holds.
const RECORDS_A_PAGE: u32 = 20;
/// Records that are loaded at a time.
const CHUNK: usize = 250;

/// Records that are updated where changes wait for a sync; all others stay as they are.
const TABLE: usize = 6_000;

fn options(durability: Durability) -> Options {
    let pending_size = if durability == Durability::OnSync { 16 << 10 } else { 0 };
    Options { cache_size: 16 << 10, durability, pending_size, ..Options::DEFAULT }
}

fn value(index: u32, version: u32) -> [u8; VALUE_SIZE] {
    let mut value = [version as u8; VALUE_SIZE];
    value[..4].copy_from_slice(&version.to_le_bytes());
    value[4..8].copy_from_slice(&index.to_le_bytes());
    value
}

/// Loads records with random keys until so much of what may live does, in percent; sorted, so that it takes few programs. Returns the keys.
fn load(store: &mut dyn Records, percent: u32) -> Result<Vec<[u8; 8]>, BenchError> {
    let random = RandomKeys::new(1);
    let key = |index: u32| (u64::from(random.at(index)) << 32 | u64::from(index)).to_be_bytes();
    let mut keys: Vec<[u8; 8]> = (0..store.stats().capacity_pages * RECORDS_A_PAGE).map(key).collect();
    keys.sort_unstable();
    let mut count = 0;
    while store.stats().live_pages * 100 < store.stats().capacity_pages * percent {
        let chunk = keys[count..][..CHUNK].iter().zip(count as u32..);
        store.load(&mut chunk.map(|(key, index)| (key.to_vec(), value(index, 0).to_vec())))?;
        count += CHUNK;
    }
    keys.truncate(count);
    Ok(keys)
}

/// Holds a store against every invariant.
fn verify(store: &mut dyn Records) -> Result<(), BenchError> {
    match store.verify()? {
        0 => Ok(()),
        count => Err(BenchError::Other(format!("{count} invariants are violated"))),
    }
}

/// A sync after every `k` updates, or each durable by itself.
pub(super) fn updates(
    case: &str,
    durability: Durability,
    k: u32,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let waits = durability == Durability::OnSync;
    let chip = chip(context.scaled(128, 64));
    let options = options(durability);
    let mut sim = Sim::with_seed(chip, context.seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let pages = chip.geometry.block_count * chip.geometry.pages_per_block;
    let keys = load(&mut *store, 60)?;
    let count = (if waits { keys.len().min(TABLE) } else { keys.len() }) as u32;
    let update_count = context.scaled(20_000, 2_000) * if waits { 2 } else { 1 };
    // Until the collector works, updates cost less than they do for good.
    let warm_count = if waits { pages } else { pages / 2 };
    let mut chooser = Chooser::new(count, Skew::Uniform, 1)?;
    let mut versions = vec![0_u32; count as usize];
    let mut phase = Phase::start(store.nand());
    for done in 0..warm_count + update_count {
        if done == warm_count {
            phase = Phase::start(store.nand());
        }
        let index = chooser.choose();
        versions[index as usize] += 1;
        store.put(&keys[index as usize], &value(index, versions[index as usize]))?;
        if (done + 1).is_multiple_of(k) {
            store.sync()?;
        }
        context.tell(done.into(), (warm_count + update_count).into());
    }
    let mut figures = phase.figures(case, store.nand(), update_count.into());
    let lookups = context.scaled(5_000, 500);
    let phase = Phase::start(store.nand());
    for _ in 0..lookups {
        let index = chooser.choose();
        if store.get(&keys[index as usize])? != Some(&value(index, versions[index as usize])[..]) {
            return Err(BenchError::Wrong(index));
        }
    }
    figures.push(phase.reads(&format!("{case}/get"), store.nand(), lookups));
    verify(&mut *store)?;
    Ok(figures)
}

/// New records with random keys, each durable by itself: what a put costs where leaves are split, and how full they are then.
pub(super) fn grow(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    const CASE: &str = "grow";
    let chip = chip(context.scaled(128, 48));
    let options = options(Durability::Immediate);
    let mut sim = Sim::with_seed(chip, context.seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let keys = RandomKeys::new(2);
    let count = context.scaled(40_000, 8_000);
    let phase = Phase::start(store.nand());
    for index in 0..count {
        store.put(&keys.at(index).to_be_bytes(), &value(index, 0))?;
        context.tell(index.into(), count.into());
    }
    let mut figures = phase.figures(CASE, store.nand(), count.into());
    let pages = f64::from(store.stats().live_pages) * 1000.0 / f64::from(count);
    figures.push(Figure::new(EXPERIMENT.name, CASE, "pages_per_1000", pages, "pages"));
    verify(&mut *store)?;
    Ok(figures)
}

/// Updates with one snapshot, of 64 blocks. When all records were updated, twice as many pages live as when it was taken.
pub(super) fn with_snapshot(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    const CASE: &str = "snapshot";
    let chip = chip(64);
    let options = options(Durability::Immediate);
    let mut sim = Sim::with_seed(chip, context.seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let pages = chip.geometry.block_count * chip.geometry.pages_per_block;
    let keys = load(&mut *store, 30)?;
    let count = keys.len() as u32;
    store.snapshot()?;
    let update_count = context.scaled(10_000, 2_000);
    let warm_count = pages;
    let mut chooser = Chooser::new(count, Skew::Uniform, 1)?;
    let mut phase = Phase::start(store.nand());
    let mut worst = 0;
    for done in 0..warm_count + update_count {
        if done == warm_count {
            phase = Phase::start(store.nand());
        }
        let before = store.nand().counters().programs;
        let index = chooser.choose();
        store.put(&keys[index as usize], &value(index, done))?;
        worst = worst.max(store.nand().counters().programs - before);
    }
    let mut figures = phase.figures(CASE, store.nand(), update_count.into());
    figures.push(Figure::new(EXPERIMENT.name, CASE, "programs_worst", worst as f64, "programs"));
    if store.value_at(0, &keys[0])?.as_deref() != Some(&value(0, 0)[..]) {
        return Err(BenchError::Wrong(0));
    }
    verify(&mut *store)?;
    Ok(figures)
}
