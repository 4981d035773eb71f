//! What a paper claims, and what a run says of it.
//!
//! A [`Claim`] is data: where it stands, what it says in our words, and tests over figures of experiments, each with what the
//! paper states. [`Claim::decide`] makes the verdict of a run's figures; no verdict is written down.

use std::fmt;

use crate::demand::{captured, filled_in, is_meant_in_any_size};
use crate::results::Cell;
use crate::{Figure, text};

/// Where claims stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Paper {
    /// Kang, Jung, Kang, Kim: mu-Tree, EMSOFT 2007.
    MuTree,
    /// Jin, Cho, Chung: group round robin, IMCOM 2014.
    Grr,
    /// Kim et al.: DFFS.
    Dffs,
    /// Lee, Ha, Zhang, Kim, Kim: FlexFS, USENIX ATC 2009.
    FlexFs,
}

impl Paper {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::MuTree => "mu-Tree",
            Paper::Grr => "GRR",
            Paper::Dffs => "DFFS",
            Paper::FlexFs => "FlexFS",
        }
    }
}

/// Something that a paper claims.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Whose it is.
    pub paper: Paper,
    /// Where in the paper, as `table 5`.
    pub place: &'static str,
    /// What it says, in our words.
    pub says: &'static str,
    /// What a run is asked. The claim is confirmed if every one of them holds.
    pub tests: &'static [Test],
    /// Whether a run can decide it. Where it cannot, tests only show what comes nearest.
    pub is_decidable: bool,
    /// Why it differs, why it cannot be decided, or under which conditions it holds.
    pub reason: &'static str,
}

/// What a run is asked.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// What is looked at, in a word or two; may be empty.
    pub label: &'static str,
    /// The experiment, by its name.
    pub experiment: &'static str,
    /// Which of its figures.
    pub value: Value,
    /// What the paper states, as text; empty where it is the published number beside the figure.
    pub theirs: &'static str,
    /// What makes it hold.
    pub want: Want,
}

/// A figure of a run, or two of them. Cases are patterns with `*` for a word between slashes.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A figure: its case and its metric.
    Of(&'static str, &'static str),
    /// The first figure over the second; each `*` of the second case stands for the word that it stood for in the first.
    Over((&'static str, &'static str), (&'static str, &'static str)),
}

/// What makes a test hold.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// Every value is so near to the published number beside its figure: this much, or this share of it if that is more.
    AsPublished {
        /// In the unit of the figure.
        absolute: f64,
        /// As a share of the published number.
        relative: f64,
    },
    /// Every value lies within these bounds.
    Within {
        /// The least.
        least: f64,
        /// The greatest.
        most: f64,
    },
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Finding {
    /// Every test holds.
    Confirmed,
    /// One at least does not.
    Refuted,
    /// No run can say.
    NotDecidable,
    /// The figures are missing: the experiment was not run.
    NotRun,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Finding::Confirmed => "confirmed",
            Finding::Refuted => "refuted",
            Finding::NotDecidable => "not decidable",
            Finding::NotRun => "not run",
        })
    }
}

/// A claim held against a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What became of it.
    pub finding: Finding,
    /// What the paper states, test by test.
    pub theirs: Vec<String>,
    /// What the run found, test by test.
    pub ours: Vec<String>,
}

/// What a test found.
struct Answer {
    holds: Option<bool>,
    theirs: String,
    ours: String,
}

/// A value of a run: what it is, and the published number beside it.
struct Found<'c> {
    case: &'c str,
    value: f64,
    unit: &'c str,
    published: Option<f64>,
}

impl Claim {
    /// Holds it against the cells of a run.
    pub fn decide(&self, cells: &[Cell]) -> Decision {
        let answers: Vec<Answer> = self.tests.iter().map(|test| test.ask(cells)).collect();
        let is_missing = answers.iter().any(|answer| answer.holds.is_none());
        let finding = match (self.is_decidable, is_missing) {
            (false, _) => Finding::NotDecidable,
            (true, true) => Finding::NotRun,
            (true, false) if answers.iter().all(|answer| answer.holds == Some(true)) => Finding::Confirmed,
            (true, false) => Finding::Refuted,
        };
        let (theirs, ours) = answers.into_iter().map(|answer| (answer.theirs, answer.ours)).unzip();
        Decision { finding, theirs, ours }
    }

    /// Whether it rests on a figure of a run of any size: numbers in the names of cases may be others there.
    pub fn rests_on(&self, figure: &Figure) -> bool {
        self.tests.iter().any(|test| test.rests_on(figure))
    }

    /// The experiments that it rests on, each once.
    pub fn experiments(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for test in self.tests {
            if !names.contains(&test.experiment) {
                names.push(test.experiment);
            }
        }
        names
    }
}

impl Test {
    fn figures(&self) -> Vec<(&'static str, &'static str)> {
        match self.value {
            Value::Of(case, metric) => vec![(case, metric)],
            Value::Over(first, second) => vec![first, second],
        }
    }

    fn rests_on(&self, figure: &Figure) -> bool {
        let is_it = |(case, metric): (&str, &str)| metric == figure.metric && is_meant_in_any_size(case, &figure.case);
        self.experiment == figure.experiment && self.figures().into_iter().any(is_it)
    }

    fn ask(&self, cells: &[Cell]) -> Answer {
        let found = self.found(cells);
        let label = |text: String| match (self.label, text.is_empty()) {
            ("", _) | (_, true) => text,
            (label, false) => format!("{label}: {text}"),
        };
        if found.is_empty() {
            return Answer { holds: None, theirs: label(self.theirs.to_owned()), ours: label("not run".to_owned()) };
        }
        let holds = found.iter().all(|found| self.want.holds(found));
        let published = range(&found, |found| found.published);
        let theirs = if self.theirs.is_empty() { published } else { self.theirs.to_owned() };
        let mut ours = range(&found, |found| Some(found.value));
        if let Want::AsPublished { .. } = self.want
            && found.len() > 1
        {
            ours = worst(&found);
        }
        Answer { holds: Some(holds), theirs: label(theirs), ours: label(ours) }
    }

    fn found<'c>(&self, cells: &'c [Cell]) -> Vec<Found<'c>> {
        let of_it = || cells.iter().filter(|cell| cell.figure().experiment == self.experiment);
        match self.value {
            Value::Of(pattern, metric) => {
                let is_it =
                    |cell: &&Cell| cell.figure().metric == metric && captured(pattern, &cell.figure().case).is_some();
                let found = |cell: &'c Cell| {
                    let Figure { case, unit, published, .. } = cell.figure();
                    Found { case, value: cell.mean(), unit, published: *published }
                };
                of_it().filter(is_it).map(found).collect()
            }
            Value::Over((pattern, metric), (other_pattern, other_metric)) => {
                let found = |cell: &'c Cell| {
                    let figure = cell.figure();
                    let words = captured(pattern, &figure.case).filter(|_| figure.metric == metric)?;
                    let other_case = filled_in(other_pattern, &words);
                    let is_other =
                        |cell: &&Cell| cell.figure().case == other_case && cell.figure().metric == other_metric;
                    let other = of_it().find(is_other)?;
                    let value = (cell.mean() / other.mean() * 1e6).round() / 1e6;
                    Some(Found { case: &figure.case, value, unit: "", published: None })
                };
                of_it().filter_map(found).collect()
            }
        }
    }
}

impl Want {
    fn holds(&self, found: &Found<'_>) -> bool {
        match *self {
            // Figures have six decimals, and a difference of two of them a rounding error beyond.
            Want::AsPublished { absolute, relative } => found
                .published
                .is_some_and(|stated| (found.value - stated).abs() <= absolute.max(relative * stated.abs()) + 5e-7),
            Want::Within { least, most } => found.value >= least && found.value <= most,
        }
    }
}

/// The least and the greatest of some numbers with their unit.
fn range(found: &[Found<'_>], number: impl Fn(&Found<'_>) -> Option<f64>) -> String {
    let numbers: Vec<f64> = found.iter().filter_map(number).collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let unit = found.first().map_or("", |found| match found.unit {
        "ratio" | "rank" => "",
        unit => unit,
    });
    match (numbers.is_empty(), least == most) {
        (true, _) => String::new(),
        (false, true) => format!("{} {unit}", text::number(least)).trim_end().to_owned(),
        (false, false) => format!("{} to {} {unit}", text::number(least), text::number(most)).trim_end().to_owned(),
    }
}

/// Of several figures the one that is farthest from its published number, as a share of it.
fn worst(found: &[Found<'_>]) -> String {
    let distance = |found: &Found<'_>| {
        let stated = found.published.unwrap_or(f64::NAN);
        if found.value == stated { 0.0 } else { (found.value - stated).abs() / stated.abs().max(1e-9) }
    };
    let far = found.iter().max_by(|left, right| distance(left).total_cmp(&distance(right)));
    match far {
        Some(far) if distance(far) > 0.0 => {
            let stated = far.published.map(text::number).unwrap_or_default();
            let value = text::number(far.value);
            format!("{} figures, the farthest {value} beside {stated} (`{}`)", found.len(), far.case)
        }
        _ => format!("{} figures, as published", found.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::results::Results;

    fn cells() -> Vec<Cell> {
        let figure = |case: &str, value| Figure::new("x", case, "reads", value, "reads").with_published(Some(2.0));
        let figures = vec![figure("a/mu", 2.05), figure("b/mu", 1.9), figure("a/bplus", 4.1), figure("b/bplus", 1.0)];
        Results { figures, scale: Scale::Full }.cells()
    }

    const fn claim(tests: &'static [Test]) -> Claim {
        Claim { paper: Paper::MuTree, place: "table 1", says: "", tests, is_decidable: true, reason: "" }
    }

    const fn test(value: Value, want: Want) -> Test {
        Test { label: "", experiment: "x", value, theirs: "", want }
    }

    const NEAR: Test = test(Value::Of("*/mu", "reads"), Want::AsPublished { absolute: 0.1, relative: 0.0 });
    const NEARER: Test = test(Value::Of("*/mu", "reads"), Want::AsPublished { absolute: 0.05, relative: 0.0 });
    const TWICE: Test =
        test(Value::Over(("*/bplus", "reads"), ("*/mu", "reads")), Want::Within { least: 0.5, most: 2.0 });
    const ABSENT: Test = test(Value::Of("*/nandu", "reads"), Want::Within { least: 0.0, most: 2.0 });

    #[test]
    fn a_claim_is_confirmed_if_every_test_holds() {
        let found = |claim: Claim| claim.decide(&cells()).finding;
        assert_eq!(found(claim(&[NEAR, TWICE])), Finding::Confirmed);
        assert_eq!(found(claim(&[NEAR, NEARER])), Finding::Refuted);
        assert_eq!(found(claim(&[NEARER, ABSENT])), Finding::NotRun);
        assert_eq!(found(Claim { is_decidable: false, ..claim(&[NEARER]) }), Finding::NotDecidable);
    }

    #[test]
    fn a_decision_says_what_both_found() {
        let decision = claim(&[NEAR, TWICE, ABSENT]).decide(&cells());
        assert_eq!(decision.theirs, ["2 reads", "", ""]);
        let ours = ["2 figures, the farthest 1.9 beside 2 (`b/mu`)", "0.5263 to 2", "not run"];
        assert_eq!(decision.ours, ours);
    }

    #[test]
    fn a_claim_rests_on_figures_of_any_size() {
        let figure = |case: &str| Figure::new("x", case, "reads", 1.0, "reads");
        let claim = claim(&[Test { value: Value::Of("100/mu", "reads"), ..NEAR }]);
        assert!(claim.rests_on(&figure("100/mu")) && claim.rests_on(&figure("10/mu")));
        assert!(!claim.rests_on(&figure("100/bplus")) && !claim.rests_on(&figure("a/mu")));
    }
}
