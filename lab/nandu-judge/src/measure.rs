//! Which promise is measured how.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use nandu_bench::BenchError;

use crate::lives::Tally;
use crate::promises::{Case, Promise, Scope};
use crate::{experiments, idle, lives, pages, room, snapshot};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Seconds: smaller chips, fewer lives.
    Short,
    /// All of it.
    Full,
}

impl Form {
    /// `full` in the full form, else `short`.
    pub(crate) const fn pick<T: Copy>(self, short: T, full: T) -> T {
        match self {
            Form::Short => short,
            Form::Full => full,
        }
    }
}

/// What came of a case of a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, in the unit of the promise; infinite if it was refused for a lack of room.
    Measured(f64),
    /// The short form does not measure it.
    FullOnly,
    /// Nobody measured it, or nobody gave the number: an error.
    Missing,
}

/// Numbers by the case they are of.
pub(crate) type Values = BTreeMap<String, f64>;

/// Numbers that were measured elsewhere, those of scope `code`: by promise and case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given(BTreeMap<(String, String), f64>);

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// An experiment or a workload failed.
    #[error("{promise}: {error}")]
    Bench {
        /// Which promise was measured.
        promise: String,
        /// Why it failed.
        error: BenchError,
    },
    /// A life went wrong: something was lost, or a call failed that must not.
    #[error("{promise}: {what}")]
    Life {
        /// Which promise was measured.
        promise: String,
        /// Seed, step and what was wrong.
        what: String,
    },
    /// A line of what was measured elsewhere.
    #[error("`{0}` is no line of promise, case and number with tabs between")]
    Given(String),
}

impl Given {
    /// Reads lines of a promise's id, a case and a number, with tabs between.
    ///
    /// # Errors
    ///
    /// [`JudgeError::Given`].
    pub fn parse(text: &str) -> Result<Given, JudgeError> {
        let mut given = Given::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let refused = || JudgeError::Given(line.to_owned());
            let words: Vec<&str> = line.split('\t').collect();
            let [id, case, number] = words[..] else { return Err(refused()) };
            let number = number.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(refused)?;
            given.0.insert((id.to_owned(), case.to_owned()), number);
        }
        Ok(given)
    }
}

/// How a promise is measured.
type Measure = fn(&Judge) -> Result<Values, Wrong>;

/// What went wrong while something was measured.
#[derive(Debug)]
pub(crate) enum Wrong {
    Bench(BenchError),
    Life(String),
}

impl From<BenchError> for Wrong {
    fn from(error: BenchError) -> Wrong {
        Wrong::Bench(error)
    }
}

impl From<nandu::Error<nandu_sim::SimError>> for Wrong {
    fn from(error: nandu::Error<nandu_sim::SimError>) -> Wrong {
        Wrong::Bench(error.into())
    }
}

/// Every promise that is measured here. Those of scope `code` are not.
const MEASURES: &[(&str, Measure)] = &[
    ("update", |judge| experiments::values("update", judge.form)),
    ("million-update", |judge| experiments::values("million-update", judge.form)),
    ("million-lookup", |judge| experiments::values("million-lookup", judge.form)),
    ("small-file", |judge| experiments::values("small-file", judge.form)),
    ("small-write", |judge| experiments::values("small-write", judge.form)),
    ("synced-page", |judge| pages::values(judge.form)),
    ("postmark", |judge| experiments::values("postmark", judge.form)),
    ("amplification", |judge| experiments::values("amplification", judge.form)),
    ("flexfs", |judge| experiments::flexfs(judge.form)),
    ("mount", |judge| judge.of_lives(Tally::mounts)),
    ("call-programs", |judge| judge.of_lives(Tally::programs)),
    ("call-erases", |judge| judge.of_lives(Tally::erases)),
    ("call-reads", |judge| judge.of_lives(Tally::reads)),
    ("refused", |judge| judge.of_lives(Tally::refused)),
    ("liveness", |judge| judge.of_lives(Tally::dead)),
    ("room-records", |judge| room::records(judge.form)),
    ("room-files", |judge| room::files(judge.form)),
    ("room-two-bits", |_| room::two_bits()),
    ("idle", |judge| judge.idle(idle::Part::Until)),
    ("idle-for-ever", |judge| judge.idle(idle::Part::After)),
    ("snapshot", |judge| snapshot::values(judge.form)),
];

/// Measures promises.
#[derive(Debug)]
pub struct Judge {
    form: Form,
    given: Given,
    seeds: Range<u64>,
    lives: OnceCell<Tally>,
    idle: OnceCell<idle::Idle>,
}

impl Judge {
    /// A judge who measures so much, with numbers from elsewhere.
    pub fn new(form: Form, given: Given) -> Judge {
        Judge { form, given, seeds: lives::seeds_of(form), lives: OnceCell::new(), idle: OnceCell::new() }
    }

    /// The same with the random lives of these seeds: a part of them, or others.
    #[must_use]
    pub fn with_lives(self, seeds: Range<u64>) -> Judge {
        Judge { seeds, ..self }
    }

    /// Whether there is a measurement for a promise; those of scope `code` are given.
    pub fn knows(promise: &Promise) -> bool {
        promise.scope == Scope::Code || MEASURES.iter().any(|(id, _)| *id == promise.id)
    }

    /// What comes of each case of a promise, in the order of its limits.
    ///
    /// # Errors
    ///
    /// [`JudgeError`]: what is measured does not do what it should on a sound chip.
    pub fn measure(&self, promise: &Promise) -> Result<Vec<Value>, JudgeError> {
        let each = |value: &dyn Fn(&Case) -> Value| promise.limits.iter().map(value).collect();
        let is_left_out = self.form == Form::Short && !promise.short;
        if promise.scope == Scope::Code {
            let given = |case: &Case| self.given.0.get(&(promise.id.clone(), case.case.clone())).copied();
            return Ok(each(&|case| match given(case) {
                Some(number) => Value::Measured(number),
                None if is_left_out => Value::FullOnly,
                None => Value::Missing,
            }));
        }
        if is_left_out {
            return Ok(each(&|_| Value::FullOnly));
        }
        let Some((_, measure)) = MEASURES.iter().find(|(id, _)| *id == promise.id) else {
            return Ok(each(&|_| Value::Missing));
        };
        let id = promise.id.clone();
        let values = measure(self).map_err(|wrong| match wrong {
            Wrong::Bench(error) => JudgeError::Bench { promise: id, error },
            Wrong::Life(what) => JudgeError::Life { promise: id, what },
        })?;
        Ok(each(&|case| match values.get(&case.case) {
            Some(&number) => Value::Measured(number),
            None if self.form == Form::Short && case.full_only => Value::FullOnly,
            None => Value::Missing,
        }))
    }

    fn of_lives(&self, what: impl Fn(&Tally) -> Values) -> Result<Values, Wrong> {
        if self.lives.get().is_none() {
            let tally = lives::live_all(self.form, self.seeds.clone())?;
            eprintln!("{}", tally.in_words());
            tally.record();
            let _ = self.lives.set(tally);
        }
        Ok(self.lives.get().map(what).unwrap_or_default())
    }

    fn idle(&self, part: idle::Part) -> Result<Values, Wrong> {
        if self.idle.get().is_none() {
            let _ = self.idle.set(idle::measure(self.form)?);
        }
        Ok(self.idle.get().map(|idle| idle.values(part)).unwrap_or_default())
    }
}
