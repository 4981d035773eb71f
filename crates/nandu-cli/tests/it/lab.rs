//! `nandu lab run --small`: each experiment ends, and soon.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

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
    for name in names {
        // The limit is of processor time, so that a busy machine does not matter.
        let script = format!("ulimit -t {CPU_SECONDS_MAX}; exec \"$0\" lab run {name} --small --json");
        let run = Command::new("sh").arg("-c").arg(script).arg(&nandu).output().unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{name}: {}: {errors}", run.status);
        assert!(!run.stdout.is_empty(), "{name} has no figures");
    }
}
