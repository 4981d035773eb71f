//! One run: an index is loaded, used in six ways, and opened again and again.

use std::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_sim::{Counters, Sim};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::contender::{Contender, End, Setup, Start, Work};
use crate::rig::TELL_EVERY;
use crate::workload::{Chooser, KeyOrder, Keys, Skew};
use crate::{BenchError, Context};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) records: u32,
    /// Operations of each kind that are counted.
    pub(super) operations: u32,
    /// Updates before the first that are counted, so that the chip was filled once at least.
    pub(super) warm_up: u32,
    /// Entries of a scan.
    pub(super) scanned: u32,
    /// Times that it is opened after each end.
    pub(super) mounts: u32,
}

/// What the chip did for operations of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) counters: Counters,
    pub(super) operations: u32,
    /// The longest that one operation took, with its sync, nanoseconds of the chip.
    pub(super) worst_ns: u64,
}

/// What opening took at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mounts {
    pub(super) reads: u64,
    pub(super) busy_ns: u64,
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) phases: Vec<Phase>,
    pub(super) pages_used: u64,
    pub(super) memory_size: Option<usize>,
    /// After an end in order, and after a cut.
    pub(super) mounts: [Mounts; 2],
}

/// Loads and uses an index, then opens it again and again.
pub(super) fn run(setup: &Setup, size: Size, context: &mut Context<'_>) -> Result<Outcome, BenchError> {
    let seed = context.seed;
    let chip = Sim::with_seed(setup.chip, seed);
    let keys = Keys::new(KeyOrder::Random, seed);
    let mut use_all = UseAll { setup, size, keys, seed, context, outcome: Outcome::default() };
    let mut chip = setup.session(chip, Start::Format, End::Clean, &mut use_all)?;
    let mut outcome = use_all.outcome;
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ MOUNT_SEED);
    for round in 0..2 * size.mounts {
        let is_cut = round % 2 == 1;
        let mut changes = Changes { setup, size, keys, random: &mut random, is_cut };
        let end = if is_cut { End::Abandoned } else { End::Clean };
        chip = setup.session(chip, Start::Mount, end, &mut changes)?;
        chip.power_on();
        let before = *chip.counters();
        let mut look = Look { counters: before, records: size.records };
        // As if the power went again: the next round opens what recovery left.
        chip = setup.session(chip, Start::Mount, End::Abandoned, &mut look)?;
        let took = look.counters.since(&before);
        let most = &mut outcome.mounts[usize::from(is_cut)];
        most.reads = most.reads.max(took.reads);
        most.busy_ns = most.busy_ns.max(took.busy_ns);
    }
    Ok(outcome)
}

/// Keeps chance of different purposes apart.
const MOUNT_SEED: u64 = 0x6D6F_756E_7473_0000;

/// Updates before an end that is followed by an opening, at most.
const CHANGES_MAX: u32 = 200;

/// Notes what the chip has done when the index is open, and checks it.
struct Look {
    counters: Counters,
    records: u32,
}

impl Work for Look {
    fn run<C: Contender>(&mut self, index: &mut C) -> Result<(), BenchError> {
        self.counters = *index.chip().counters();
        check(index, self.records)
    }
}

/// The index has as many records as were put, and none of its invariants is violated.
fn check<C: Contender>(index: &mut C, records: u32) -> Result<(), BenchError> {
    let (mut violation, mut count) = (None, 0);
    index.verify(&mut |found| violation = Some(found)).map_err(BenchError::structure)?;
    let mut visit = |_: nandu_index::Entry<'_>| {
        count += 1;
        ControlFlow::Continue(())
    };
    let all = (Bound::Unbounded, Bound::Unbounded);
    index.range(all.0, all.1, Direction::Forward, &mut visit).map_err(BenchError::structure)?;
    match violation {
        Some(violation) => Err(BenchError::Other(violation.to_string())),
        None if count != records => Err(BenchError::Other(format!("{count} records are there and not {records}"))),
        None => Ok(()),
    }
}

/// Some updates, and perhaps a cut in the middle of one of the chip's next operations.
struct Changes<'r> {
    setup: &'r Setup,
    size: Size,
    keys: Keys,
    random: &'r mut ChaCha8Rng,
    is_cut: bool,
}

impl Work for Changes<'_> {
    fn run<C: Contender>(&mut self, index: &mut C) -> Result<(), BenchError> {
        let count = self.random.random_range(1..=CHANGES_MAX);
        let is_blind = self.setup.kind.is_blind();
        let change = |index: &mut C, nth: u32, random: &mut ChaCha8Rng| {
            let key = self.keys.at(random.random_range(0..self.size.records)).to_be_bytes();
            index.put_record(key, nth.to_be_bytes(), is_blind)?;
            if nth.is_multiple_of(self.setup.sync_every) { index.sync() } else { Ok(()) }
        };
        for nth in 0..count {
            change(index, nth, self.random).map_err(BenchError::structure)?;
        }
        if !self.is_cut {
            return Ok(());
        }
        let operation = index.chip().operation_count() + self.random.random_range(0..40);
        index.chip_mut().cut_somehow_at(operation);
        let mut nth = count;
        while !index.chip().is_off() {
            nth += 1;
            if let Err(error) = change(index, nth, self.random)
                && !index.chip().is_off()
            {
                return Err(BenchError::structure(error));
            }
        }
        Ok(())
    }
}

/// Loads the records and does everything that is counted.
struct UseAll<'r, 'c> {
    setup: &'r Setup,
    size: Size,
    keys: Keys,
    seed: u64,
    context: &'r mut Context<'c>,
    outcome: Outcome,
}

/// One operation, on a key.
enum Step {
    Put(u32),
    Get(u32),
    Scan(u32),
}

/// 95 of 100 updates concern 5 of 100 records.
const SKEWED: Skew = Skew::HotCold { choices: 0.95, items: 0.05 };

impl Work for UseAll<'_, '_> {
    fn run<C: Contender>(&mut self, index: &mut C) -> Result<(), BenchError> {
        let Size { records, operations, warm_up, .. } = self.size;
        let keys = self.keys;
        self.phase(index, "load", records, |nth| Step::Put(keys.at(nth)))?;
        let mut uniform = Chooser::in_order(records, Skew::Uniform, self.seed)?;
        let mut any = || keys.at(uniform.choose());
        self.phase(index, "warm-up", warm_up, |_| Step::Put(any()))?;
        self.outcome.phases.pop();
        self.phase(index, "updates", operations, |_| Step::Put(any()))?;
        // The popular records lie anywhere, since keys are random.
        let mut hot = Chooser::in_order(records, SKEWED, self.seed)?;
        self.phase(index, "skewed", operations, |_| Step::Put(keys.at(hot.choose())))?;
        // The popular records lie side by side.
        let mut sorted: Vec<u32> = (0..records).map(|record| keys.at(record)).collect();
        sorted.sort_unstable();
        self.phase(index, "clustered", operations, |_| Step::Put(sorted[hot.choose() as usize]))?;
        let mixed = |nth: u32, key| if nth.is_multiple_of(2) { Step::Put(key) } else { Step::Get(key) };
        self.phase(index, "mixed", operations, |nth| mixed(nth, any()))?;
        self.phase(index, "reads", operations, |_| Step::Get(any()))?;
        self.phase(index, "scans", operations / 20, |_| Step::Scan(any()))?;
        self.outcome.pages_used = index.pages_used();
        self.outcome.memory_size = index.memory_size();
        check(index, records)
    }
}

impl UseAll<'_, '_> {
    /// Operations of one kind, and a sync at the end.
    fn phase<C: Contender>(
        &mut self,
        index: &mut C,
        name: &'static str,
        operations: u32,
        mut step: impl FnMut(u32) -> Step,
    ) -> Result<(), BenchError> {
        let before = *index.chip().counters();
        let (mut last_ns, mut worst_ns, mut unsynced) = (before.busy_ns, 0, 0);
        for nth in 0..operations {
            self.step(index, step(nth), nth, &mut unsynced)?;
            let now_ns = index.chip().counters().busy_ns;
            worst_ns = worst_ns.max(now_ns - last_ns);
            last_ns = now_ns;
            if nth.is_multiple_of(TELL_EVERY) {
                self.context.tell(u64::from(nth), u64::from(operations));
            }
        }
        index.sync().map_err(BenchError::structure)?;
        let counters = index.chip().counters().since(&before);
        self.outcome.phases.push(Phase { name, counters, operations, worst_ns });
        Ok(())
    }

    fn step<C: Contender>(
        &mut self,
        index: &mut C,
        step: Step,
        nth: u32,
        unsynced: &mut u32,
    ) -> Result<(), BenchError> {
        match step {
            Step::Put(key) => {
                let key = key.to_be_bytes();
                let is_blind = self.setup.kind.is_blind();
                index.put_record(key, nth.to_be_bytes(), is_blind).map_err(BenchError::structure)?;
                *unsynced += 1;
                if *unsynced == self.setup.sync_every {
                    *unsynced = 0;
                    index.sync().map_err(BenchError::structure)?;
                }
            }
            Step::Get(key) => {
                if index.get(&key.to_be_bytes()).map_err(BenchError::structure)?.is_none() {
                    return Err(BenchError::Wrong(key));
                }
            }
            Step::Scan(key) => self.scan(index, key)?,
        }
        Ok(())
    }

    fn scan<C: Contender>(&self, index: &mut C, from: u32) -> Result<(), BenchError> {
        let (key, mut seen, most) = (from.to_be_bytes(), 0, self.size.scanned);
        let mut visit = |_: nandu_index::Entry<'_>| {
            seen += 1;
            if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        index
            .range(Bound::Included(&key), Bound::Unbounded, Direction::Forward, &mut visit)
            .map_err(BenchError::structure)?;
        if seen == 0 { Err(BenchError::Wrong(from)) } else { Ok(()) }
    }
}
