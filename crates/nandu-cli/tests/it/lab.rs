//! `nandu lab`: each experiment ends in its small form, soon and with what it found when the committed pages were made; pages are made.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use nandu_bench::origin::{self, Origin};
use nandu_bench::{Figure, claims};

/// Processor time of one small run, seconds. A debug build on a slow machine takes a quarter of it for the longest.
const CPU_SECONDS_MAX: u32 = 240;

#[test]
fn every_experiment_ends_in_its_small_form() {
    let nandu = cargo_bin("nandu");
    let listed = Command::new(&nandu).args(["lab", "list", "--json"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    let origins = origin::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")).unwrap();
    let mut outdated = Vec::new();
    for name in names {
        // The limit is of processor time, so that a busy machine does not matter.
        let script = format!("ulimit -t {CPU_SECONDS_MAX}; exec \"$0\" lab run {name} --small --json");
        let run = Command::new("sh").arg("-c").arg(script).arg(&nandu).output().unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{name}: {}: {errors}", run.status);
        let lines = String::from_utf8(run.stdout).unwrap();
        let figures: Vec<Figure> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!figures.is_empty(), "{name} has no figures");
        outdated.extend(is_outdated(&name, &figures, &origins).then_some(name));
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

/// Runs an experiment, and makes the pages anew with nothing to run.
#[test]
fn pages_are_made_of_what_was_run_and_the_same_again() {
    let place = tempfile::tempdir().unwrap();
    let report = |arguments: &[&str]| {
        let mut command = Command::new(cargo_bin("nandu"));
        let run = command.args(["lab", "report"]).arg(place.path()).arg("--pages").args(arguments).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    report(&["--run", "paper/mutree-table1", "paper/flexfs-table1"]);
    let first = ["claims.md", "paper-mutree.md", "runs.csv", "raw.csv"].map(read);
    assert!(first[0].contains("[paper/mutree-table1](paper-mutree.md#papermutree-table1)"), "{}", first[0]);
    assert!(
        first[2].starts_with("experiment,seeds,commit,machine,small,claimed\npaper/mutree-table1,0,"),
        "{}",
        first[2]
    );
    let said = report(&["--run", "--changed", "paper/mutree-table1"]);
    assert!(said.starts_with("to be run: nothing\n"), "{said}");
    assert_eq!(first, ["claims.md", "paper-mutree.md", "runs.csv", "raw.csv"].map(read));
    // What the small form found then is not what it finds now.
    let other = first[2].replacen(&field(&first[2], 1, 2), "00000000", 1);
    std::fs::write(place.path().join("runs.csv"), other).unwrap();
    let said = report(&["--run", "--changed", "paper/mutree-table1", "paper/flexfs-table1"]);
    assert!(said.starts_with("to be run: paper/mutree-table1\n"), "{said}");
    assert_eq!(first, ["claims.md", "paper-mutree.md", "runs.csv", "raw.csv"].map(read));
}

/// A field of a line, counted from the end.
fn field(csv: &str, line: usize, from_end: usize) -> String {
    csv.lines().nth(line).unwrap().rsplit(',').nth(from_end - 1).unwrap().to_owned()
}
