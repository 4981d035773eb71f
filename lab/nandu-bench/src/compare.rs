//! What changed between two results.

use std::collections::HashMap;

use crate::Better;
use crate::results::{Cell, Results};

/// How a cell of the second results stands to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The same value.
    Same,
    /// Better.
    Better,
    /// Worse, though not beyond what is tolerated.
    SlightlyWorse,
    /// Worse beyond that.
    Worse,
    /// Another value, of which neither is better.
    Other,
    /// Only the first results have it.
    Gone,
    /// Only the second results have it.
    New,
}

impl Change {
    /// A word or two.
    pub const fn name(self) -> &'static str {
        match self {
            Change::Same => "same",
            Change::Better => "better",
            Change::SlightlyWorse => "slightly worse",
            Change::Worse => "worse",
            Change::Other => "other",
            Change::Gone => "gone",
            Change::New => "new",
        }
    }
}

/// A metric of a case in both results.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Name of the experiment.
    pub experiment: String,
    /// Its case.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Mean over the seeds in the first results.
    pub before: Option<f64>,
    /// Mean over the seeds in the second results.
    pub after: Option<f64>,
    /// What that means.
    pub change: Change,
}

impl Difference {
    fn of(cell: &Cell, before: Option<f64>, after: Option<f64>, change: Change) -> Difference {
        let figure = cell.figure();
        Difference {
            experiment: figure.experiment.to_string(),
            case: figure.case.clone(),
            metric: figure.metric.to_string(),
            unit: figure.unit.to_string(),
            before,
            after,
            change,
        }
    }

    /// By how much the value grew, as a share of what it was.
    pub fn growth(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before != 0.0).then(|| (after - before) / before.abs())
    }
}

/// Everything in either of two results, in the order of the second, what is gone at the end. Worse counts from a share of
/// the earlier value on: `tolerated`, 0.01 for one percent.
pub fn compare(before: &Results, after: &Results, tolerated: f64) -> Vec<Difference> {
    let (before, after) = (before.cells(), after.cells());
    let key = |cell: &Cell| {
        (cell.figure().experiment.to_string(), cell.figure().case.clone(), cell.figure().metric.to_string())
    };
    let mut earlier: HashMap<_, &Cell> = before.iter().map(|cell| (key(cell), cell)).collect();
    let mut differences = Vec::new();
    for cell in &after {
        let value = cell.mean();
        let was = earlier.remove(&key(cell)).map(Cell::mean);
        let change = was.map_or(Change::New, |was| change(&cell.figure().metric, was, value, tolerated));
        differences.push(Difference::of(cell, was, Some(value), change));
    }
    let gone = before.iter().filter(|cell| earlier.contains_key(&key(cell)));
    differences.extend(gone.map(|cell| Difference::of(cell, Some(cell.mean()), None, Change::Gone)));
    differences
}

fn change(metric: &str, before: f64, after: f64, tolerated: f64) -> Change {
    let better = Better::of(metric);
    let worse_by = better.worse_by(before, after);
    if before == after {
        Change::Same
    } else if better == Better::Neither {
        Change::Other
    } else if worse_by < 0.0 {
        Change::Better
    } else if worse_by > tolerated * before.abs() {
        Change::Worse
    } else {
        Change::SlightlyWorse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Scale};

    fn results(figures: &[(&'static str, f64)]) -> Results {
        let figures = figures.iter().map(|&(metric, value)| Figure::new("x", "a", metric, value, "reads"));
        Results { figures: figures.collect(), scale: Scale::Full }
    }

    #[test]
    fn each_metric_has_its_own_better_way() {
        let before = results(&[("reads_per_op", 1.0), ("evenness", 0.5), ("live_share", 0.8), ("old", 1.0)]);
        let after = results(&[("reads_per_op", 1.02), ("evenness", 0.4), ("live_share", 0.9), ("fresh", 1.0)]);
        let changes = |before, after, tolerated| {
            compare(before, after, tolerated).iter().map(|difference| difference.change).collect::<Vec<_>>()
        };
        let (new, gone) = (Change::New, Change::Gone);
        assert_eq!(changes(&before, &after, 0.0), [Change::Worse, Change::Worse, Change::Other, new, gone]);
        assert_eq!(changes(&before, &after, 0.1), [Change::SlightlyWorse, Change::Worse, Change::Other, new, gone]);
        assert_eq!(changes(&after, &before, 0.0), [Change::Better, Change::Better, Change::Other, new, gone]);
        assert_eq!(changes(&after, &after, 0.0), [Change::Same; 4]);
    }

    #[test]
    fn growth_is_a_share_of_what_was() {
        let compared = compare(&results(&[("a", 0.0), ("b", 2.0)]), &results(&[("a", 1.0), ("b", 3.0)]), 0.0);
        assert_eq!(compared.iter().map(Difference::growth).collect::<Vec<_>>(), [None, Some(0.5)]);
    }
}
