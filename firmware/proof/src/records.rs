//! Records: what a store is asked, without and with power cuts.

use core::ops::{Bound, ControlFlow};

use nandu::nand::Nand;
use nandu::{Direction, Edit, Options, Store};
use nandu_budget::clock;
use nandu_budget::host::say;
use nandu_budget::random::Random;
use nandu_budget::stack::Stack;

use crate::part::{self, Chip, ChipError};

const OPTIONS: Options = Options { cache_size: 4096, ..Options::DEFAULT };

/// Records, and puts that replace one and gets whose instructions are counted.
const RECORDS: u32 = 1_000;

/// Cuts of the store's power.
const CUTS: u32 = if cfg!(feature = "short") { 40 } else { 200 };

/// Keys while the power is cut.
const KEYS: u32 = 100;

/// Bytes of the largest value, which has pages of its own.
const LARGE: usize = 2_500;

type Outcome<T> = Result<T, nandu::Error<ChipError>>;

/// Uses a store; what it says wrongly or loses is a panic.
pub(crate) fn prove(memory: &mut [u8]) {
    let chip = part::open();
    let geometry = *chip.geometry();
    let required = Store::<Chip>::memory_required(&geometry, &OPTIONS);
    let memory = &mut memory[..required];
    let mut stack = Stack::new();
    calls(&mut stack, chip, memory);
    cuts(&mut stack, memory);
    stack.report_of("store_");
    say(format_args!("store_memory {required}"));
    say(format_args!("store_struct {}", size_of::<Store<'_, Chip>>()));
    say(format_args!("store_cuts {}", part::cut_count()));
}

fn record(number: u32, version: u8) -> ([u8; 8], [u8; 36]) {
    (u64::from(number).to_be_bytes(), [number as u8 ^ version; 36])
}

/// Every call once, and puts and gets often.
fn calls(stack: &mut Stack, chip: Chip, memory: &mut [u8]) {
    let mut store = stack.open("format", || Store::format(chip, OPTIONS, &mut *memory)).expect("format");
    let mut instructions = (0, 0);
    for version in [1, 0] {
        for number in 0..RECORDS {
            // One after the other would be the cheapest.
            let (key, value) = record(number * 617 % RECORDS, version);
            let (outcome, count) = stack.call("put", || clock::count(|| store.put(&key, &value)));
            let is_replaced = version == 0;
            assert_eq!(outcome.expect("put"), is_replaced, "whether record {number} was there");
            instructions.0 += if is_replaced { count } else { 0 };
        }
    }
    for number in 0..RECORDS {
        let (key, value) = record(number * 379 % RECORDS, 0);
        let (is_there, count) =
            stack.call("get", || clock::count(|| store.get(&key).map(|found| found == Some(&value[..]))));
        assert!(is_there.expect("get"), "record {number} is as it was put");
        instructions.1 += count;
    }
    say(format_args!("put_instructions {}", instructions.0 / u64::from(RECORDS)));
    say(format_args!("get_instructions {}", instructions.1 / u64::from(RECORDS)));

    let mut next = 100;
    let (from, to) = (record(100, 0).0, record(200, 0).0);
    let mut range = |store: &mut Store<'_, Chip>| {
        store.range(Bound::Included(&from), Bound::Excluded(&to), Direction::Forward, |entry| {
            let (key, value) = record(next, 0);
            assert!((entry.key, entry.value) == (&key[..], &value[..]), "record {next} in its place");
            next += 1;
            ControlFlow::Continue(())
        })
    };
    stack.open("range", || range(&mut store)).expect("range");
    assert_eq!(next, 200, "records of a range");

    let before = stack.call("snapshot", || store.snapshot()).expect("snapshot");
    for number in 0..50 {
        let (key, value) = record(number, 1);
        stack.call("put", || store.put(&key, &value)).expect("put");
    }
    let edits = [60, 61, 62].map(|number| record(number, 1));
    let edits = [
        Edit { key: &edits[0].0, value: None },
        Edit { key: &edits[1].0, value: Some(&edits[1].1) },
        Edit { key: &edits[2].0, value: None },
    ];
    stack.call("batch", || store.batch(&edits)).expect("batch");
    for number in 0..100 {
        let (key, value) = record(number, 0);
        let is_there = stack.call("at.get", || store.at(&before).get(&key).map(|found| found == Some(&value[..])));
        assert!(is_there.expect("a get of the snapshot"), "record {number} as it was");
    }
    stack.call("release", || store.release(before)).expect("release");

    let chip = stack.call("unmount", || store.unmount()).expect("unmount");
    drop(chip);
    let mut store = stack.open("open", || Store::open(part::open(), OPTIONS, &mut *memory)).expect("open");
    assert_eq!(store.record_count(), u64::from(RECORDS) - 2);
    for number in 0..RECORDS {
        let is_new = number < 50 || number == 61;
        let (key, value) = record(number, u8::from(is_new));
        let expected = if number == 60 || number == 62 { None } else { Some(&value[..]) };
        assert!(store.get(&key).expect("get") == expected, "record {number} after the store was opened again");
    }
    assert_eq!(store.verify(&mut |violation| say(format_args!("{violation:?}"))).expect("verify"), 0, "violations");
    drop(store.unmount().expect("unmount"));
}

/// A change under way: the records that it makes new.
#[derive(Clone, Copy)]
struct Change {
    first: u32,
    count: u32,
    /// 0: they are deleted.
    version: u32,
}

/// The value of a version, in a buffer.
fn value(key: u32, version: u32, buffer: &mut [u8; LARGE]) -> &[u8] {
    let size = if version.is_multiple_of(16) { LARGE } else { 4 + (version * 7 % 90) as usize };
    buffer[..size].fill((version ^ key) as u8);
    buffer[..4].copy_from_slice(&version.to_le_bytes());
    &buffer[..size]
}

fn cuts(stack: &mut Stack, memory: &mut [u8]) {
    let mut random = Random::new(1);
    let mut held = [0; KEYS as usize];
    let mut version = 0;
    let store = Store::format(part::open(), OPTIONS, &mut *memory).expect("format");
    drop(store.unmount().expect("unmount"));
    let mut buffer = [0; LARGE];
    while part::cut_count() < CUTS {
        let mut store = stack.open("open", || Store::open(part::open(), OPTIONS, &mut *memory)).expect("open");
        part::cut_after(Some(random.below(40)));
        let mut change;
        let outcome = loop {
            version += 1;
            change = Change { first: random.below(KEYS), count: 1, version };
            let outcome = step(stack, &mut store, &mut random, &mut change, &mut buffer);
            if outcome.is_err() || part::is_off() {
                break outcome;
            }
            note(&mut held, change);
        };
        match outcome {
            Ok(()) => note(&mut held, change),
            Err(error) => assert!(part::is_off(), "{error}"),
        }
        drop(store.abandon());
        if random.below(3) == 0 {
            let chip = part::open();
            part::cut_after(Some(random.below(3)));
            // The power goes in the middle of the recovery, where that changes as much.
            if let Ok(store) = stack.open("open", || Store::open(chip, OPTIONS, &mut *memory)) {
                drop(store.abandon());
            }
        }
        let mut store = stack.open("open", || Store::open(part::open(), OPTIONS, &mut *memory)).expect("open");
        compare(&mut store, &mut held, change, &mut buffer);
        drop(store.abandon());
    }
    let mut store = Store::open(part::open(), OPTIONS, memory).expect("open");
    assert_eq!(store.verify(&mut |violation| say(format_args!("{violation:?}"))).expect("verify"), 0, "violations");
    drop(store.unmount().expect("unmount"));
}

/// The records that a change made new.
fn note(held: &mut [u32; KEYS as usize], change: Change) {
    held[change.first as usize..(change.first + change.count) as usize].fill(change.version);
}

/// A change by chance, which is durable when it returns.
fn step(
    stack: &mut Stack,
    store: &mut Store<'_, Chip>,
    random: &mut Random,
    change: &mut Change,
    buffer: &mut [u8; LARGE],
) -> Outcome<()> {
    let key = change.first.to_be_bytes();
    match random.below(100) {
        0..20 => {
            change.version = 0;
            stack.call("delete", || store.delete(&key)).map(drop)
        }
        20..35 if change.first + 3 <= KEYS && !change.version.is_multiple_of(16) => {
            change.count = 3;
            let keys = [0, 1, 2].map(|index| (change.first + index).to_be_bytes());
            let mut buffers = [[0; LARGE]; 3];
            let mut edits = [Edit { key: &[], value: None }; 3];
            for (((index, edit), key), buffer) in (0..).zip(&mut edits).zip(&keys).zip(&mut buffers) {
                *edit = Edit { key, value: Some(value(change.first + index, change.version, buffer)) };
            }
            stack.call("batch", || store.batch(&edits))
        }
        _ => {
            let value = value(change.first, change.version, buffer);
            stack.call("put", || store.put(&key, value)).map(drop)
        }
    }
}

/// Holds a store against what was acknowledged. The last change is there wholly or not at all, and is known from then on.
fn compare(store: &mut Store<'_, Chip>, held: &mut [u32; KEYS as usize], change: Change, buffer: &mut [u8; LARGE]) {
    let mut found = [0; LARGE];
    let mut is_at = |key: u32, version: u32| {
        let size = store.read(&key.to_be_bytes(), 0, &mut found).expect("read");
        size.map_or(&[][..], |size| &found[..size]) == if version == 0 { &[] } else { value(key, version, buffer) }
    };
    let changed = change.first..change.first + change.count;
    let is_done = changed.clone().find(|&key| held[key as usize] != change.version);
    if is_done.is_some_and(|key| is_at(key, change.version)) {
        note(held, change);
    }
    for (key, &version) in (0..).zip(held.iter()) {
        let what = if changed.contains(&key) { "of the last change" } else { "that was acknowledged" };
        assert!(is_at(key, version), "cut {}: record {key} {what} is not at version {version}", part::cut_count());
    }
}
