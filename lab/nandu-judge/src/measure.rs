//! Which promise is measured how, on which heart.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use nandu_bench::{BenchError, Heart};

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

/// What came of a case of a promise on a heart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, in the unit of the promise; infinite if it was refused for a lack of room.
    Measured(f64),
    /// The heart has not got so far.
    NotBuilt,
    /// The short form does not measure it.
    FullOnly,
    /// Nobody measured it, or nobody gave the number: an error.
    Missing,
}

/// Numbers by the case they are of.
pub(crate) type Values = BTreeMap<String, f64>;

/// Numbers that were measured elsewhere, those of scope `code`: by promise, case and heart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given(BTreeMap<(String, String, Heart), f64>);

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
    #[error("`{0}` is no line of promise, case, heart and number with tabs between")]
    Given(String),
}

impl Given {
    /// Reads lines of a promise's id, a case, a heart and a number, with tabs between.
    ///
    /// # Errors
    ///
    /// [`JudgeError::Given`].
    pub fn parse(text: &str) -> Result<Given, JudgeError> {
        let mut given = Given::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let refused = || JudgeError::Given(line.to_owned());
            let words: Vec<&str> = line.split('\t').collect();
            let [id, case, heart, number] = words[..] else { return Err(refused()) };
            let heart = Heart::named(heart).ok_or_else(refused)?;
            let number = number.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(refused)?;
            given.0.insert((id.to_owned(), case.to_owned(), heart), number);
        }
        Ok(given)
    }
}

/// How a promise is measured.
type Measure = fn(&Judge, Heart) -> Result<Values, Wrong>;

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
    ("update", |judge, heart| experiments::values("update", judge.form, heart)),
    ("million-update", |judge, heart| experiments::values("million-update", judge.form, heart)),
    ("million-lookup", |judge, heart| experiments::values("million-lookup", judge.form, heart)),
    ("small-file", |judge, heart| experiments::of_files("small-file", judge.form, heart)),
    ("small-write", |judge, heart| experiments::of_files("small-write", judge.form, heart)),
    ("synced-page", |judge, heart| pages::values(judge.form, heart)),
    ("postmark", |judge, heart| experiments::of_files("postmark", judge.form, heart)),
    ("amplification", |judge, heart| experiments::values("amplification", judge.form, heart)),
    ("flexfs", |judge, heart| old_alone(heart).and_then(|()| experiments::flexfs(judge.form))),
    ("mount", |judge, heart| judge.of_lives(heart, Tally::mounts)),
    ("call-programs", |judge, heart| judge.of_lives(heart, Tally::programs)),
    ("call-erases", |judge, heart| judge.of_lives(heart, Tally::erases)),
    ("refused", |judge, heart| judge.of_lives(heart, Tally::refused)),
    ("room-records", |judge, heart| room::records(judge.form, heart)),
    ("room-files", |judge, heart| room::files(judge.form, heart)),
    ("room-two-bits", |_, heart| room::two_bits(heart)),
    ("idle", |judge, heart| judge.idle(heart, idle::Part::Until)),
    ("idle-for-ever", |judge, heart| judge.idle(heart, idle::Part::After)),
    ("snapshot", |judge, heart| snapshot::values(judge.form, heart)),
];

/// What the new heart is not measured for yet.
fn old_alone(heart: Heart) -> Result<(), Wrong> {
    if heart == Heart::Old { Ok(()) } else { Err(Wrong::Bench(BenchError::NotBuilt)) }
}

/// Measures promises.
#[derive(Debug)]
pub struct Judge {
    form: Form,
    given: Given,
    lives: [OnceCell<Tally>; 2],
    idle: [OnceCell<idle::Idle>; 2],
}

impl Judge {
    /// A judge who measures so much, with numbers from elsewhere.
    pub fn new(form: Form, given: Given) -> Judge {
        Judge { form, given, lives: Default::default(), idle: Default::default() }
    }

    /// Whether there is a measurement for a promise; those of scope `code` are given.
    pub fn knows(promise: &Promise) -> bool {
        promise.scope == Scope::Code || MEASURES.iter().any(|(id, _)| *id == promise.id)
    }

    /// What comes of each case of a promise on a heart, in the order of its limits.
    ///
    /// # Errors
    ///
    /// [`JudgeError`]: what is measured does not do what it should on a sound chip.
    pub fn measure(&self, promise: &Promise, heart: Heart) -> Result<Vec<Value>, JudgeError> {
        let each = |value: &dyn Fn(&str) -> Value| promise.limits.iter().map(|case| value(&case.case)).collect();
        if promise.scope == Scope::Code {
            let given = |case: &str| self.given.0.get(&(promise.id.clone(), case.to_owned(), heart)).copied();
            let is_left_out = self.form == Form::Short && !promise.short;
            return Ok(each(&|case| match (given(case), heart) {
                (Some(number), _) => Value::Measured(number),
                // It has no firmware with everything yet.
                (None, Heart::New) if is_left_out && case != "all" => Value::FullOnly,
                (None, Heart::New) => Value::NotBuilt,
                (None, Heart::Old) if is_left_out => Value::FullOnly,
                (None, Heart::Old) => Value::Missing,
            }));
        }
        let is_built = match promise.scope {
            Scope::Store => heart.has_records(),
            Scope::Files => heart.has_files(),
            Scope::Both | Scope::Code => heart.has_records() || heart.has_files(),
        };
        if !is_built {
            return Ok(each(&|_| Value::NotBuilt));
        }
        if self.form == Form::Short && !promise.short {
            return Ok(each(&|_| Value::FullOnly));
        }
        let Some((_, measure)) = MEASURES.iter().find(|(id, _)| *id == promise.id) else {
            return Ok(each(&|_| Value::Missing));
        };
        let id = promise.id.clone();
        let values = match measure(self, heart) {
            Ok(values) => values,
            Err(Wrong::Bench(BenchError::NotBuilt | BenchError::Store(nandu::Error::NotCompiled { .. }))) => {
                return Ok(each(&|_| Value::NotBuilt));
            }
            Err(Wrong::Bench(error)) => return Err(JudgeError::Bench { promise: id, error }),
            Err(Wrong::Life(what)) => return Err(JudgeError::Life { promise: id, what }),
        };
        let value = |case: &Case| match values.get(&case.case) {
            Some(&number) => Value::Measured(number),
            None if self.form == Form::Short && case.full_only => Value::FullOnly,
            // The lives of the old heart are not lived with these.
            None if heart == Heart::Old && case.case.contains("two bits") => Value::FullOnly,
            // Of a promise of several, what the heart does not have.
            None if !heart.has_snapshots() && case.case.contains("snapshots") => Value::NotBuilt,
            None => Value::Missing,
        };
        Ok(promise.limits.iter().map(value).collect())
    }

    fn of_lives(&self, heart: Heart, what: impl Fn(&Tally) -> Values) -> Result<Values, Wrong> {
        let cell = &self.lives[heart as usize];
        if cell.get().is_none() {
            let tally = lives::live_all(heart, self.form)?;
            eprintln!("lives on the {heart} heart: {}", tally.in_words());
            let _ = cell.set(tally);
        }
        Ok(cell.get().map(what).unwrap_or_default())
    }

    fn idle(&self, heart: Heart, part: idle::Part) -> Result<Values, Wrong> {
        let cell = &self.idle[heart as usize];
        if cell.get().is_none() {
            let _ = cell.set(idle::measure(heart, self.form)?);
        }
        Ok(cell.get().map(|idle| idle.values(part)).unwrap_or_default())
    }
}
