//! What the four papers claim, as data: every table and figure, and what their texts claim besides.

mod dffs;
mod flexfs;
mod grr;
mod mutree;

use crate::claim::{Claim, Paper, Test, Value, Want};

/// Every claim, in the order of the papers and of their sections.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [mutree::CLAIMS, grr::CLAIMS, dffs::CLAIMS, flexfs::CLAIMS].into_iter().flatten()
}

/// How far from a printed number is accepted where nothing else is said, as a share of it.
const NEAR: f64 = 0.05;

const fn claim(
    paper: Paper,
    place: &'static str,
    says: &'static str,
    tests: &'static [Test],
    reason: &'static str,
) -> Claim {
    Claim { paper, place, says, tests, is_decidable: true, reason }
}

/// What no run can decide; tests show what comes nearest.
const fn open(
    paper: Paper,
    place: &'static str,
    says: &'static str,
    tests: &'static [Test],
    reason: &'static str,
) -> Claim {
    Claim { is_decidable: false, ..claim(paper, place, says, tests, reason) }
}

/// Figures as near as this to the published numbers beside them.
const fn as_printed(
    label: &'static str,
    experiment: &'static str,
    case: &'static str,
    metric: &'static str,
    absolute: f64,
    relative: f64,
) -> Test {
    Test {
        label,
        experiment,
        value: Value::Of(case, metric),
        theirs: "",
        want: Want::AsPublished { absolute, relative },
    }
}

/// Figures within [`NEAR`] of the published numbers beside them.
const fn near(label: &'static str, experiment: &'static str, case: &'static str, metric: &'static str) -> Test {
    as_printed(label, experiment, case, metric, 0.0, NEAR)
}

/// Figures that are the published numbers beside them.
const fn exact(label: &'static str, experiment: &'static str, case: &'static str, metric: &'static str) -> Test {
    as_printed(label, experiment, case, metric, 0.0, 0.0)
}

/// Figures within bounds.
const fn within(
    label: &'static str,
    experiment: &'static str,
    figure: (&'static str, &'static str),
    theirs: &'static str,
    bounds: (f64, f64),
) -> Test {
    let want = Want::Within { least: bounds.0, most: bounds.1 };
    Test { label, experiment, value: Value::Of(figure.0, figure.1), theirs, want }
}

/// One figure over another within bounds.
const fn over(
    label: &'static str,
    experiment: &'static str,
    figures: ((&'static str, &'static str), (&'static str, &'static str)),
    theirs: &'static str,
    bounds: (f64, f64),
) -> Test {
    let want = Want::Within { least: bounds.0, most: bounds.1 };
    Test { label, experiment, value: Value::Over(figures.0, figures.1), theirs, want }
}

/// No upper bound.
const ANY: f64 = f64::INFINITY;
/// Just above one: more, and not as much.
const MORE: f64 = 1.000_001;

const GIVEN: &str =
    "An input: the simulated chip is made of these numbers, so that it has them says nothing of a real one.";
const SETTINGS: &str = "No claim: settings, which the experiments take over.";
const SYMBOLS: &str = "No claim: it defines symbols.";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;
    use crate::experiments;

    #[test]
    fn every_claim_says_something_and_names_experiments_that_exist() {
        let mut places = HashSet::new();
        for claim in all() {
            assert!(!claim.says.is_empty() && !claim.place.is_empty(), "{claim:?}");
            assert!(places.insert((claim.paper, claim.place, claim.says)), "twice: {}", claim.says);
            for name in claim.experiments() {
                assert!(experiments::named(name).is_some(), "{name}: {}", claim.says);
            }
            // What is decided rests on figures, and what is not says why.
            assert!(!claim.tests.is_empty() || !claim.is_decidable, "{}", claim.says);
            assert!(claim.is_decidable || !claim.reason.is_empty(), "{}", claim.says);
        }
    }

    /// Tables and figures that have results, by paper.
    #[test]
    fn no_table_and_no_figure_is_left_out() {
        use crate::claim::Paper::{Dffs, FlexFs, Grr, MuTree};
        let tables = [(MuTree, 1..=5), (Grr, 1..=4), (Dffs, 1..=4), (FlexFs, 1..=6)];
        let figures = [(MuTree, 7..=9), (Grr, 6..=8), (Dffs, 8..=10), (FlexFs, 8..=8), (FlexFs, 10..=16)];
        let named = |kind: &str, papers: &[(_, std::ops::RangeInclusive<u32>)]| {
            for (paper, numbers) in papers {
                for number in numbers.clone() {
                    let place = format!("{kind} {number}");
                    assert!(all().any(|claim| claim.paper == *paper && claim.place == place), "{paper:?}, {place}");
                }
            }
        };
        named("table", &tables);
        named("figure", &figures);
    }

    /// Each experiment on a paper decides or illustrates something; those that go beyond the paper are named here.
    #[test]
    fn every_experiment_on_a_paper_has_a_claim() {
        const BEYOND: [&str; 6] = [
            "paper/flexfs-calls",
            "paper/flexfs-e5",
            "paper/flexfs-e10",
            "paper/flexfs-e12",
            "paper/flexfs-files",
            "paper/grr-fair",
        ];
        let claimed: HashSet<&str> = all().flat_map(|claim| claim.experiments()).collect();
        for experiment in experiments::find("paper") {
            let is_beyond = BEYOND.contains(&experiment.name);
            assert_ne!(claimed.contains(experiment.name), is_beyond, "{}", experiment.name);
        }
    }
}
