//! Stores of records: what they are asked in every profile but that of files.

use core::fmt::Debug;

pub use nandu::Store;
use nandu::nand::{Geometry, Nand, NandErrorKind};
use nandu::{ByteCells, Error, Options};

use crate::CACHE_SIZE;
use crate::chip::{Chip, DEAD, Emulated};
use crate::random::Random;
use crate::stack::Stack;

/// Choices of the smallest store.
#[cfg(feature = "min")]
pub const OPTIONS: Options = Options { cache_size: CACHE_SIZE, ..Options::DEFAULT };

/// Choices of a store whose changes wait for a sync.
#[cfg(not(feature = "min"))]
pub const OPTIONS: Options = Options {
    cache_size: CACHE_SIZE,
    durability: nandu::Durability::OnSync,
    pending_size: crate::PENDING_SIZE,
    ..Options::DEFAULT
};

/// What the calls of a store return.
pub type Outcome<T> = Result<T, Error<NandErrorKind>>;

/// Lives that a store is led through, each with other numbers.
const LIVES: u64 = 3;

/// Times that the power goes in a life.
const CUTS: u32 = 8;

/// Blocks of the part in these lives: few, so that blocks are emptied again and again.
const BLOCK_COUNT: u32 = 24;

/// Measures the stack of every call, over lives with cuts, failures and full chips, and last on the whole part.
pub fn measure(stack: &mut Stack, whole: Geometry, memory: &mut [u8]) {
    let few = Geometry { block_count: BLOCK_COUNT, bad_block_max: 6, ..whole };
    for seed in 0..LIVES {
        let mut random = Random::new(seed);
        format(few, memory);
        for _ in 0..CUTS {
            let chip = Emulated::on(few);
            let mut place = None;
            stack.open("open", || Store::open_in(&mut place, chip, ByteCells, OPTIONS, &mut *memory)).expect("open");
            let store = place.as_mut().expect("opened");
            Emulated::cut_after(100 + random.below(300));
            if random.below(3) == 0 {
                Emulated::fail_after(random.below(100));
            }
            while !Emulated::is_dead() {
                allow(step(stack, store, &mut random, seed));
            }
            drop(place);
            // The next one is cut in the middle of its recovery.
            let chip = Emulated::on(few);
            Emulated::cut_after(random.below(3));
            let mut place = None;
            let _ = stack.open("open", || Store::open_in(&mut place, chip, ByteCells, OPTIONS, &mut *memory));
        }
    }
    format(whole, memory);
    let chip = Emulated::on(whole);
    let mut place = None;
    stack.open("open", || Store::open_in(&mut place, chip, ByteCells, OPTIONS, &mut *memory)).expect("open");
    let store = place.as_mut().expect("opened");
    let mut random = Random::new(LIVES);
    for _ in 0..500 {
        allow(step(stack, store, &mut random, 0));
    }
    place = None;
    let chip = Emulated::on(whole);
    stack.open("open", || Store::open_in(&mut place, chip, ByteCells, OPTIONS, memory)).expect("open");
}

fn format(geometry: Geometry, memory: &mut [u8]) {
    let mut place = None;
    Store::format_in(&mut place, Emulated::erased(geometry), ByteCells, OPTIONS, memory).expect("format");
    Store::unmount_in(&mut place).expect("unmount");
}

/// What a call may say in such a life.
fn allow(outcome: Outcome<()>) {
    match outcome {
        Ok(()) | Err(Error::Full | Error::Chip(DEAD) | Error::Poisoned | Error::LargeValue(_)) => {}
        Err(error) => assert!(Emulated::is_dead(), "{error}"),
    }
}

/// A call by chance; more keys in some lives than in others, so that some chips are full.
fn step(stack: &mut Stack, store: &mut Store<'_, Chip>, random: &mut Random, seed: u64) -> Outcome<()> {
    let mut key = [0; 40];
    let keys = [200, 4_000, 12_000][(seed % 3) as usize];
    key[..4].copy_from_slice(&random.below(keys).to_be_bytes());
    let key = &key[..4 + random.below(2) as usize * 36];
    let value = [0x5a; 400];
    // The smallest store has no values that do not fit a leaf.
    let sizes = if cfg!(feature = "min") { 92 } else { 100 };
    let value = &value[..random.below(sizes) as usize * 4];
    match random.below(100) {
        0..55 => stack.call("put", || store.put(key, value))?,
        55..70 => stack.call("delete", || store.delete(key))?,
        70..85 => stack.call("get", || store.get(key).map(|value| value.is_some()))?,
        #[cfg(not(feature = "min"))]
        _ => return every(stack, store, random, key),
        #[cfg(feature = "min")]
        _ => false,
    };
    Ok(())
}

/// A call that the smallest store does not have.
#[cfg(not(feature = "min"))]
fn every(stack: &mut Stack, store: &mut Store<'_, Chip>, random: &mut Random, key: &[u8]) -> Outcome<()> {
    use core::ops::{Bound, ControlFlow};

    use nandu::{Direction, Edit};

    let large = [0x5a; 6_000];
    let mut count = 0;
    let mut visit = |_: nandu::Entry<'_>| {
        count += 1;
        if count < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    match random.below(20) {
        0..5 => stack.call("sync", || store.sync()),
        5..8 => {
            let other = [0xff; 5];
            let edits = [Edit { key, value: Some(&[1; 30]) }, Edit { key: &other, value: None }];
            stack.call("batch", || store.batch(&edits))
        }
        8 => {
            stack.call("range", || store.range(Bound::Included(key), Bound::Unbounded, Direction::Forward, &mut visit))
        }
        9 => {
            stack.call("range", || store.range(Bound::Unbounded, Bound::Excluded(key), Direction::Backward, &mut visit))
        }
        10 => {
            let first = stack.call("first", || store.first().map(drop));
            first.and(stack.call("last", || store.last().map(drop)))
        }
        11..13 => stack.call("put (large)", || store.put(key, &large[..600 + random.below(5_000) as usize])).map(drop),
        13 => stack.call("read", || store.read(key, 100, &mut [0; 64])).map(drop),
        #[cfg(any(feature = "store", feature = "all"))]
        14 => snapshots(stack, store, true, key),
        #[cfg(any(feature = "store", feature = "all"))]
        15 => snapshots(stack, store, false, key),
        16 => stack.call("merge", || store.merge()),
        17 => stack.call("idle", || store.idle(8)).map(drop),
        18 => {
            let mut buffer = [0; 2048];
            stack.call("writer", || {
                let mut writer = store.writer(key, 3_000, &mut buffer)?;
                writer.write(&large[..1_500])?;
                writer.write(&large[..1_500])?;
                writer.finish().map(drop)
            })
        }
        _ => stack.call("delete", || store.delete(key)).map(drop),
    }
}

/// A snapshot is made, or the oldest one read and released.
#[cfg(any(feature = "store", feature = "all"))]
fn snapshots(stack: &mut Stack, store: &mut Store<'_, Chip>, is_made: bool, key: &[u8]) -> Outcome<()> {
    use core::ops::{Bound, ControlFlow};

    if is_made {
        return stack.call("snapshot", || store.snapshot()).map(drop);
    }
    let Some(oldest) = store.snapshots().next() else { return Ok(()) };
    stack.call("at.get", || store.at(&oldest).get(key).map(drop))?;
    let mut count = 0;
    let mut visit = |_: nandu::Entry<'_>| {
        count += 1;
        if count < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut at = |store: &mut Store<'_, Chip>| {
        store.at(&oldest).range(Bound::Included(key), Bound::Unbounded, nandu::Direction::Forward, &mut visit)
    };
    stack.call("at.range", || at(store))?;
    stack.call("release", || store.release(oldest))
}

/// Records in the store whose puts and gets are counted.
const RECORDS: u32 = 100_000;

/// Calls over which instructions are averaged.
const CALLS: u32 = 1_000;

/// Memory for all inner nodes of that many records.
pub const COUNTED_OPTIONS: Options = Options { cache_size: 64 * 1024, ..Options::DEFAULT };

/// Instructions of a put that replaces a record, and of a get.
pub fn count<N: Nand<Error: Debug>>(chip: N, memory: &mut [u8]) -> (u64, u64) {
    let mut store = Store::format(chip, COUNTED_OPTIONS, memory).expect("format");
    let record = |number: u32| (u64::from(number).to_be_bytes(), [number as u8; 36]);
    store.load((0..RECORDS).map(record)).expect("load");
    // Inner nodes come into memory.
    for number in (0..RECORDS).step_by(20) {
        assert!(store.get(&record(number).0).expect("get").is_some());
    }
    let mut random = Random::new(1);
    let mut sums = (0, 0);
    for _ in 0..CALLS {
        let (key, value) = record(random.below(RECORDS));
        let (outcome, instructions) = crate::clock::count(|| store.put(&key, &value));
        assert!(outcome.expect("put"), "the record was there");
        sums.0 += instructions;
        let (key, _) = record(random.below(RECORDS));
        let (outcome, instructions) = crate::clock::count(|| store.get(&key).map(|value| value.is_some()));
        assert!(outcome.expect("get"), "the record is there");
        sums.1 += instructions;
    }
    (sums.0 / u64::from(CALLS), sums.1 / u64::from(CALLS))
}
