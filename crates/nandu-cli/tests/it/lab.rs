//! `nandu lab`: experiments are listed and run, and pages are made.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

#[test]
fn every_experiment_is_listed_and_one_is_run_by_its_name() {
    let lines = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let run = Command::new(cargo_bin("nandu")).arg("lab").args(arguments).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let listed: Vec<String> =
        lines(&["list", "--json"]).iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect();
    let all: Vec<&str> = nandu_bench::experiments::all().map(|experiment| experiment.name).collect();
    assert_eq!(listed, all);
    assert!(all.len() > 30, "{all:?}");
    let figures = lines(&["run", "paper/mutree-table1", "--small", "--json"]);
    assert!(!figures.is_empty());
    assert!(figures.iter().all(|figure| figure["experiment"] == "paper/mutree-table1"), "{figures:?}");
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
