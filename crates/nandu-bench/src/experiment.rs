//! What an experiment is: a name, what the project demands of it, and a function that runs it.

use std::fmt;

use nandu_sim::SimError;

use crate::Figure;
use crate::workload::BadSkew;

/// An experiment that can be run by its name.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// The name, as `core/million`.
    pub name: &'static str,
    /// What it finds out, in one line.
    pub about: &'static str,
    /// What the project demands of its figures.
    pub limits: &'static [Limit],
    pub(crate) run: fn(&mut Context<'_>) -> Result<Vec<Figure>, BenchError>,
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Experiment {
    /// Runs every case and returns the figures, always in the same order.
    ///
    /// # Errors
    ///
    /// [`BenchError`]: a store that does not do what it should on a sound chip.
    pub fn run(&self, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
        (self.run)(context)
    }

    /// The limit set for a figure, if there is one.
    pub fn limit_of(&self, figure: &Figure) -> Option<&'static Limit> {
        let is_for =
            |limit: &&Limit| limit.metric == figure.metric && limit.case.is_none_or(|case| figure.case == case);
        self.limits.iter().find(is_for)
    }
}

/// What the project demands of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The metric.
    pub metric: &'static str,
    /// The case it is for; all of them if there is none.
    pub case: Option<&'static str>,
    /// Least value that is good enough.
    pub least: f64,
    /// Greatest value that is good enough.
    pub most: f64,
}

impl Limit {
    /// In every case at most this.
    pub(crate) const fn at_most(metric: &'static str, most: f64) -> Limit {
        Limit { metric, case: None, least: f64::NEG_INFINITY, most }
    }

    /// In every case at least this.
    pub(crate) const fn at_least(metric: &'static str, least: f64) -> Limit {
        Limit { metric, case: None, least, most: f64::INFINITY }
    }

    /// The same for one case only.
    pub(crate) const fn in_case(self, case: &'static str) -> Limit {
        Limit { case: Some(case), ..self }
    }

    /// How a value stands to the limit.
    pub fn judge(&self, value: f64) -> Verdict {
        if value >= self.least && value <= self.most { Verdict::Within } else { Verdict::Missed }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.most.is_finite() { write!(f, "<= {}", self.most) } else { write!(f, ">= {}", self.least) }
    }
}

/// How a figure stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Good enough.
    Within,
    /// Not good enough.
    Missed,
}

impl Verdict {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Missed => "MISSED",
        }
    }
}

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// All of it: what limits are for.
    Full,
    /// The same on smaller chips with fewer records, for tests.
    Small,
}

/// What a run is given.
pub struct Context<'a> {
    /// Where all chance comes from.
    pub seed: u64,
    /// How much is run.
    pub scale: Scale,
    /// Is told now and then how much of the experiment is done: pieces done, pieces in all.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("seed", &self.seed).field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl Context<'static> {
    /// Everything is run, and nobody is told how far it is.
    pub fn full(seed: u64) -> Context<'static> {
        Context { seed, scale: Scale::Full, progress: None }
    }

    /// As [`full`](Context::full), with [`Scale::Small`].
    pub fn small(seed: u64) -> Context<'static> {
        Context { seed, scale: Scale::Small, progress: None }
    }
}

impl Context<'_> {
    /// `full` in a full run, else `small`.
    pub(crate) fn scaled<T>(&self, full: T, small: T) -> T {
        match self.scale {
            Scale::Full => full,
            Scale::Small => small,
        }
    }

    /// Says how far the run is.
    pub(crate) fn tell(&mut self, done: u64, total: u64) {
        if let Some(progress) = &mut self.progress {
            progress(done, total);
        }
    }
}

/// Why an experiment has no figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The store failed.
    #[error("the store: {0}")]
    Store(#[from] nandu::Error<SimError>),
    /// The workload makes no sense.
    #[error(transparent)]
    Skew(#[from] BadSkew),
    /// The memory of the case is too small for a store on its chip.
    #[error("{0} bytes of memory are too few for a store on this chip")]
    Memory(usize),
    /// The store answered wrong.
    #[error("key {0} is not what was put")]
    Wrong(u32),
}
