//! One case: the runs up to its cuts, the two checks, and what a failure says.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::power_cut::cuts::{CUTS_VARIABLE, Cut, Cuts, SEED_VARIABLE};
use crate::power_cut::spare::Spare;
use crate::power_cut::{Driver, Run, Summary};
use crate::{Observer, Operation, OperationKind, Sim, Tear};

pub(super) type Workload<'a, A> = &'a dyn Fn(&mut Sim, &mut A) -> Run;
pub(super) type Recovery<'a> = &'a dyn Fn(&mut Sim) -> Run;
pub(super) type Check<'a, A, O> = &'a dyn Fn(&mut Sim, &A) -> O;

/// What is run, case by case.
pub(super) struct Case<'a, A, O> {
    pub(super) driver: &'a Driver,
    /// The chip from which every case starts; each has a clone.
    pub(super) chip: RefCell<Sim>,
    pub(super) workload: Workload<'a, A>,
    pub(super) recover: Option<Recovery<'a>>,
    pub(super) check: Check<'a, A, O>,
    pub(super) spare: Spare,
}

/// How a run ended whose power was to be cut.
pub(super) enum Ended {
    /// Cut, with the tear that was asked for.
    Cut,
    /// Cut, but the tear asked for does not fit that operation at that time, and another took its place.
    Replaced,
    /// The run ended before the operation came.
    Uncut,
}

impl<A: Default + Clone, O: PartialEq + Debug> Case<'_, A, O> {
    /// The chip as each case finds it.
    pub(super) fn fresh(&self, seed: u64) -> Sim {
        let mut chip = self.spare.clone_of(&mut self.chip.borrow_mut());
        chip.seed = seed;
        chip.clear_cuts();
        chip.power_on();
        chip
    }

    /// The tears to try for an operation.
    pub(super) fn tears(&self, kind: OperationKind) -> impl Iterator<Item = Tear> {
        let geometry = self.driver.chip.chip.geometry;
        Tear::all_for(kind, &geometry).filter(|tear| self.driver.tears.contains(tear))
    }

    /// Runs the workload without a cut and says what it asked of the chip.
    pub(super) fn record_workload(&self, chip: &mut Sim, noted: &mut A) -> Result<Vec<OperationKind>, String> {
        record(chip, |chip| self.run_workload(chip, noted))
    }

    /// Runs without a cut what follows a cut, the recovery and, if it is to be resumed, the workload. Says what each asked
    /// of the chip.
    pub(super) fn record_aftermath(
        &self,
        chip: &mut Sim,
        noted: &mut A,
    ) -> Result<(Vec<OperationKind>, Vec<OperationKind>), String> {
        let recovery = record(chip, |chip| self.run_recovery(chip))?;
        let workload = if self.driver.resume { self.record_workload(chip, noted)? } else { Vec::new() };
        Ok((recovery, workload))
    }

    /// Runs the workload up to this cut. Power is on again afterwards.
    pub(super) fn cut_workload(&self, chip: &mut Sim, noted: &mut A, cut: Cut) -> Result<Ended, String> {
        cut_run(chip, cut, |chip| self.run_workload(chip, noted))
    }

    /// Runs what follows a cut, up to another cut. Power is on again afterwards.
    pub(super) fn cut_aftermath(&self, chip: &mut Sim, noted: &mut A, cut: Cut) -> Result<Ended, String> {
        cut_run(chip, cut, |chip| {
            self.run_recovery(chip)?;
            if self.driver.resume { self.run_workload(chip, noted) } else { Ok(()) }
        })
    }

    fn run_workload(&self, chip: &mut Sim, noted: &mut A) -> Result<(), Stop> {
        guarded("the workload", || (self.workload)(chip, noted))
    }

    fn run_recovery(&self, chip: &mut Sim) -> Result<(), Stop> {
        match self.recover {
            Some(recover) => guarded("the recovery", || recover(chip)),
            None => Ok(()),
        }
    }

    /// Recovers and checks, right away and after a rest; goes on with the workload in between, if that is wished.
    pub(super) fn finish(&self, mut chip: Sim, mut noted: A) -> Result<(), String> {
        let mut seen = self.recover_and_check(&mut chip, &noted, "the check")?;
        if self.driver.resume {
            self.run_workload(&mut chip, &mut noted).map_err(Stop::without_cut)?;
            seen = self.recover_and_check(&mut chip, &noted, "the check after the workload went on")?;
        }
        if self.driver.rest_ns > 0 {
            chip.advance_ns(self.driver.rest_ns);
            let seen_later = self.recover_and_check(&mut chip, &noted, "the check after a rest")?;
            if seen != seen_later {
                return Err(one_line(&format!("the check saw {seen:?}, and after a rest {seen_later:?}")));
            }
        }
        self.spare.reclaim(chip);
        Ok(())
    }

    fn recover_and_check(&self, chip: &mut Sim, noted: &A, name: &str) -> Result<O, String> {
        chip.power_off();
        chip.power_on();
        self.run_recovery(chip).map_err(Stop::without_cut)?;
        let seen = Cell::new(None);
        let checked = guarded(name, || {
            seen.set(Some((self.check)(chip, noted)));
            Ok(())
        });
        checked.map_err(Stop::without_cut)?;
        seen.take().ok_or_else(|| format!("{name} returned nothing"))
    }

    /// Runs the case of these cuts from the start.
    pub(super) fn run(&self, seed: u64, cuts: &[Cut]) -> Result<(), String> {
        let mut chip = self.fresh(seed);
        let mut noted = A::default();
        let Some((&first, others)) = cuts.split_first() else {
            self.record_workload(&mut chip, &mut noted)?;
            return self.finish(chip, noted);
        };
        let missed = |cut: Cut| format!("no run came to operation {}: it does not repeat itself", cut.operation);
        if matches!(self.cut_workload(&mut chip, &mut noted, first)?, Ended::Uncut) {
            return Err(missed(first));
        }
        for &cut in others {
            if matches!(self.cut_aftermath(&mut chip, &mut noted, cut)?, Ended::Uncut) {
                return Err(missed(cut));
            }
        }
        self.finish(chip, noted)
    }

    /// Runs the one case that was asked for, if one was.
    #[track_caller]
    pub(super) fn replayed(&self) -> Option<Summary> {
        let replay = self.driver.replay.as_ref()?;
        let seed = replay.seed.unwrap_or(self.driver.seed);
        let cuts = &replay.cuts.0;
        self.passed(seed, cuts, self.run(seed, cuts));
        eprintln!("power_cut: seed={seed} cuts={} : this case passes, no other was run", replay.cuts);
        let mut summary = Summary::default();
        summary.count(cuts.len());
        Some(summary)
    }

    /// Panics with the lines that name a case, if it failed.
    #[track_caller]
    #[expect(clippy::panic, reason = "a driver of tests speaks by panics")]
    pub(super) fn passed<T>(&self, seed: u64, cuts: &[Cut], outcome: Result<T, String>) -> T {
        let cuts = Cuts::of(cuts);
        outcome.unwrap_or_else(|message| {
            panic!("power_cut: seed={seed} cuts={cuts} : {message}\n{}", command_line(seed, &cuts))
        })
    }
}

/// A line that runs one case alone. Cargo tells a test program the name of its package, and the test harness names the
/// thread after the test.
fn command_line(seed: u64, cuts: &Cuts) -> String {
    let package = std::env::var("CARGO_PKG_NAME").map(|name| format!(" -p {name}")).unwrap_or_default();
    let thread = std::thread::current();
    let test =
        thread.name().filter(|name| *name != "main").map(|name| format!(" {name} -- --exact")).unwrap_or_default();
    format!("run it alone: {SEED_VARIABLE}={seed} {CUTS_VARIABLE}={cuts} cargo test{package}{test}")
}

/// Why a run did not come to its end.
enum Stop {
    /// It returned an error, as it should when the power is gone.
    Error(String),
    /// It panicked, which nothing excuses.
    Panic(String),
}

impl Stop {
    fn without_cut(self) -> String {
        match self {
            Stop::Error(message) | Stop::Panic(message) => message,
        }
    }
}

/// Runs a piece of the user's code.
fn guarded(name: &str, run: impl FnOnce() -> Run) -> Result<(), Stop> {
    // Nothing of what the code may have left half done is used after a panic but for its message.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Stop::Error(one_line(&format!("{name} failed although nothing was cut: {error}")))),
        Err(payload) => Err(Stop::Panic(one_line(&format!("{name} panicked: {}", panic_message(&*payload))))),
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a message",
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Runs something up to a cut and gives power again.
fn cut_run(chip: &mut Sim, cut: Cut, run: impl FnOnce(&mut Sim) -> Result<(), Stop>) -> Result<Ended, String> {
    let number = chip.operation_count().saturating_add(cut.operation);
    chip.cut_at(number, cut.tear);
    let outcome = run(chip);
    let ended = match chip.last_cut().filter(|record| record.operation == number) {
        Some(record) if record.tear == cut.tear => Ended::Cut,
        Some(_) => Ended::Replaced,
        None => Ended::Uncut,
    };
    match outcome {
        Err(Stop::Panic(message)) => return Err(message),
        Err(Stop::Error(message)) if matches!(ended, Ended::Uncut) => return Err(message),
        _ => {}
    }
    chip.clear_cuts();
    chip.power_on();
    Ok(ended)
}

/// Runs something without a cut and lists the operations it asked for.
fn record(chip: &mut Sim, run: impl FnOnce(&mut Sim) -> Result<(), Stop>) -> Result<Vec<OperationKind>, String> {
    let kinds = Kinds::default();
    let before = chip.set_observer(Some(Box::new(kinds.clone())));
    let outcome = run(chip);
    chip.set_observer(before);
    outcome.map_err(Stop::without_cut)?;
    let mut list = kinds.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *list))
}

/// Notes the kind of each operation.
#[derive(Clone, Default)]
struct Kinds(Arc<Mutex<Vec<OperationKind>>>);

impl Observer for Kinds {
    fn operation(&mut self, operation: &Operation, _data: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(operation.kind);
    }
}
