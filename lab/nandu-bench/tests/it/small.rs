//! Every experiment in its small form: it ends soon, and finds what it found when the committed pages were made.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use nandu_bench::origin::{self, Origin};
use nandu_bench::{Context, Experiment, Figure, claims, experiments};

/// Processor time of one small run, seconds. A debug build on a slow machine takes a quarter of it for the longest.
const CPU_SECONDS_MAX: u64 = 240;

/// What was found, of each experiment.
static FOUND: LazyLock<BTreeMap<&str, OnceLock<Vec<Figure>>>> =
    LazyLock::new(|| experiments::all().map(|experiment| (experiment.name, OnceLock::new())).collect());

/// Runs an experiment in its small form, if no test did.
pub(crate) fn figures(experiment: &Experiment) -> Vec<Figure> {
    let run = || {
        let before = processor_seconds();
        let figures = experiment.run(&mut Context::small(0)).unwrap();
        let seconds = processor_seconds() - before;
        assert!(seconds <= CPU_SECONDS_MAX, "{}: {seconds} s", experiment.name);
        figures
    };
    FOUND[experiment.name].get_or_init(run).clone()
}

/// What this thread took so far, so that a busy machine does not matter; 0 where the system does not say it so.
fn processor_seconds() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<u64>().ok()).unwrap_or(0) / 1_000_000_000
}

#[test]
fn every_experiment_ends_and_finds_what_claims_rest_on() {
    let origins = origin::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")).unwrap();
    let mut outdated = Vec::new();
    for experiment in experiments::all() {
        let figures = figures(experiment);
        assert!(!figures.is_empty(), "{} has no figures", experiment.name);
        outdated.extend(is_outdated(experiment.name, &figures, &origins).then_some(experiment.name));
    }
    assert!(
        outdated.is_empty(),
        "claims rest on figures that are others now: nandu lab report docs/results --pages --run {}",
        outdated.join(" ")
    );
}

/// Whether claims rest on an experiment whose small form finds something else than when its figures were found.
fn is_outdated(name: &str, figures: &[Figure], origins: &[Origin]) -> bool {
    let origin = origins.iter().find(|origin| origin.experiment == name);
    let is_claimed = claims::all().any(|claim| claim.experiments().contains(&name));
    is_claimed && origin.is_none_or(|origin| origin.claimed != origin::claimed_fingerprint(figures))
}

#[test]
fn a_figure_that_changes_under_a_claim_makes_it_stale() {
    let figure = |case: &str, value| Figure::new("paper/mutree-table1", case, "read_us", value, "us");
    let origin = |claimed: String| Origin {
        experiment: "paper/mutree-table1".to_owned(),
        seeds: String::new(),
        commit: String::new(),
        machine: String::new(),
        small: String::new(),
        claimed,
    };
    let name = "paper/mutree-table1";
    let origins = [origin(origin::claimed_fingerprint(&[figure("slc", 77.8)]))];
    assert!(!is_outdated(name, &[figure("slc", 77.8)], &origins));
    assert!(is_outdated(name, &[figure("slc", 77.9)], &origins) && is_outdated(name, &[figure("slc", 77.8)], &[]));
    assert!(!is_outdated("core/million", &[], &[]), "no claim rests on it");
}
