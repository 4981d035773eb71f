//! Random operations, held against a model.

use nandu_fs::{Fs, Options};
use nandu_sim::Chip;

use crate::model::{Model, workload};
use crate::operation::{Op, Slots, apply};
use crate::rig::{OPTIONS, SMALL, everything, formatted_with, memory, violations};

/// Applies operations to a file system and a model; `None` if they agree, else what differs and after how many.
fn run(chip: Chip, options: Options, ops: &[Op]) -> Result<(), (usize, String)> {
    let mut sim = formatted_with(chip, options);
    let mut memory = memory(&chip.geometry, &options);
    let mut model = Model::new();
    let mut fs = Fs::mount(&mut sim, options, &mut memory).unwrap();
    let mut slots = Slots::default();
    let mut succeeded = 0;
    for (at, op) in ops.iter().enumerate() {
        model.now = 1000 + at as i64;
        fs.set_now(nandu_fs::Time::from_seconds(model.now));
        let outcome = apply(&mut fs, &mut slots, op).map_err(|error| error.errno());
        let expected = model.apply(op);
        succeeded += usize::from(outcome.is_ok());
        if outcome != expected {
            return Err((at + 1, format!("{op:?} returned {outcome:?} instead of {expected:?}")));
        }
        if at % 8 == 7 || at + 1 == ops.len() {
            let (found, expected) = (everything(&mut fs), model.everything());
            if found.as_ref() != Ok(&expected) {
                let found = found.unwrap_or_default();
                let wrong: Vec<_> = expected.iter().filter(|(path, seen)| found.get(*path) != Some(seen)).collect();
                let there: Vec<_> = wrong.iter().map(|(path, _)| found.get(*path)).collect();
                return Err((at + 1, format!("after {op:?}\nexpected {wrong:?}\nfound {there:?}")));
            }
        }
        if at % 64 == 63 || at + 1 == ops.len() {
            let found = violations(&mut fs);
            if !found.is_empty() {
                return Err((at + 1, format!("{found:?}")));
            }
        }
        if at % 100 == 99 {
            fs.unmount().unwrap();
            model.remount();
            slots = Slots::default();
            fs = Fs::mount(&mut sim, options, &mut memory).unwrap();
        }
    }
    // Operations that are refused test little.
    assert!(ops.len() < 500 || succeeded * 2 > ops.len(), "{succeeded} of {} operations did something", ops.len());
    Ok(())
}

/// Leaves out operations as long as the rest still fails, and panics with what is left.
fn shrink(chip: Chip, options: Options, seed: u64, mut ops: Vec<Op>, failure: (usize, String)) -> ! {
    let mut failure = failure;
    ops.truncate(failure.0);
    let mut size = ops.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + size <= ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..at + size);
            match run(chip, options, &fewer) {
                Err(other) => {
                    fewer.truncate(other.0);
                    (ops, failure) = (fewer, other);
                }
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    panic!("seed {seed}: {}\n{ops:#?}", failure.1);
}

/// So many workloads, or as many times more as `NANDU_FS_SEEDS` says.
pub(crate) fn agree(chip: Chip, options: Options, seeds: std::ops::Range<u64>, count: usize) {
    let page_size = chip.geometry.page_size as usize;
    let more = std::env::var("NANDU_FS_SEEDS").map_or(1, |more| more.parse().unwrap());
    for seed in seeds.start..seeds.start + more * (seeds.end - seeds.start) {
        let ops = workload(seed, count, page_size);
        if let Err(failure) = run(chip, options, &ops) {
            shrink(chip, options, seed, ops, failure);
        }
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    agree(SMALL, OPTIONS, 0..12, 800);
}

#[test]
fn random_operations_agree_on_pages_of_two_kilobytes() {
    agree(Chip::W25N01GV.with_blocks(40), Options::DEFAULT, 100..106, 800);
}

#[test]
fn random_operations_agree_where_names_collide() {
    let mut options = OPTIONS;
    options.broken.hash_zeros = 39;
    agree(SMALL, options, 200..203, 600);
}
