//! Random operations, held against a model.

use nandu_files::{Capabilities, FileSystem, Time};
use nandu_sim::Chip;

use crate::model::{Model, workload};
use crate::operation::{Op, Slots, apply_errno};
use crate::seen::{everything, violations};
use crate::system::System;

/// How long workloads are, and what comes between their operations.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Operations of a workload.
    pub operations: usize,
    /// Operations between two mounts.
    pub mounted: usize,
}

/// Where a workload went wrong: after so many operations, and how.
type Failure = (usize, String);

/// What workloads are run on.
struct Bench<'a, S> {
    system: &'a S,
    chip: Chip,
    pace: Pace,
    capabilities: Capabilities,
}

impl<S: System> Bench<'_, S> {
    /// Applies operations to a file system and a model and compares what they answer.
    fn run(&self, ops: &[Op]) -> Result<(), Failure> {
        let mut sim = self.system.formatted(self.chip);
        let mut memory = self.system.memory(&self.chip.geometry);
        let mut model = Model::new(self.capabilities);
        let mut fs = self.system.mount(&mut sim, &mut memory).unwrap();
        let mut slots = Slots::default();
        let mut succeeded = 0;
        for (at, op) in ops.iter().enumerate() {
            model.now = 1000 + at as i64;
            fs.set_now(Time::from_seconds(model.now));
            let outcome = apply_errno(&mut fs, &mut slots, op);
            let expected = model.apply(op);
            succeeded += usize::from(outcome.is_ok());
            if outcome != expected {
                return Err((at + 1, format!("{op:?} returned {outcome:?} instead of {expected:?}")));
            }
            let is_last = at + 1 == ops.len();
            if at % self.pace.mounted == self.pace.mounted - 1 {
                fs.unmount().unwrap();
                model.remount();
                slots = Slots::default();
                fs = self.system.mount(&mut sim, &mut memory).unwrap();
            }
            if at % 8 == 7 || is_last {
                compare(&mut fs, &model).map_err(|differs| (at + 1, format!("after {op:?}\n{differs}")))?;
            }
            if at % 64 == 63 || is_last {
                let found = violations(&mut fs);
                if !found.is_empty() {
                    return Err((at + 1, format!("{found:?}")));
                }
            }
        }
        // Operations that are refused test little.
        assert!(ops.len() < 500 || succeeded * 2 > ops.len(), "{succeeded} of {} operations did something", ops.len());
        Ok(())
    }

    /// Leaves out operations as long as the rest still fails, and panics with what is left.
    fn shrink(&self, seed: u64, mut ops: Vec<Op>, mut failure: Failure) -> ! {
        ops.truncate(failure.0);
        let mut size = ops.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at + size <= ops.len() {
                let mut fewer = ops.clone();
                fewer.drain(at..at + size);
                match self.run(&fewer) {
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
}

/// What differs between a file system and its model, in words.
fn compare<F: FileSystem>(fs: &mut F, model: &Model) -> Result<(), String> {
    let (found, expected) = (everything(fs).map_err(|error| error.to_string())?, model.everything());
    if found == expected {
        return Ok(());
    }
    let wrong: Vec<_> = expected.iter().filter(|(path, seen)| found.get(*path) != Some(seen)).collect();
    let there: Vec<_> = wrong.iter().map(|(path, _)| found.get(*path)).collect();
    let more: Vec<_> = found.iter().filter(|(path, _)| !expected.contains_key(*path)).collect();
    Err(format!("expected {wrong:?}\nfound {there:?}\nand besides {more:?}"))
}

/// Runs so many random workloads on a fresh volume each, or as many times more as `NANDU_FS_SEEDS` says, and compares every answer with the model.
/// Panics with the shortest failing list of operations.
pub fn agree<S: System>(system: &S, chip: Chip, seeds: std::ops::Range<u64>, pace: Pace) {
    let capabilities = system.capabilities(chip);
    let bench = Bench { system, chip, pace, capabilities };
    let more = std::env::var("NANDU_FS_SEEDS").map_or(1, |more| more.parse().unwrap());
    for seed in seeds.start..seeds.start + more * (seeds.end - seeds.start) {
        let ops = workload(seed, pace.operations, chip.geometry.page_size as usize, capabilities);
        if let Err(failure) = bench.run(&ops) {
            bench.shrink(seed, ops, failure);
        }
    }
}
