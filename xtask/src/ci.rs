//! Everything continuous integration does, in named and timed steps.
//!
//! The steps before the tests run one after the other. From the tests on there are two lanes: one here, and one in a process of its own, whose output is
//! printed when it has ended. Its steps mostly keep one processor busy, and the tests leave one idle now and then.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::codegen::Action;
use crate::outcome::Outcome;
use crate::readme::TEST_COMMAND;
use crate::{
    capi, codegen, counts, examples, firmware, guest, package, promises, protocol, reader, readme, target_directory,
    tidy,
};

/// Runs all steps; the first that fails is the last. The last line counts the tests; those before it name the steps that could not
/// run, since such a machine has shown less than one that has all tools.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut count = TestCount::default();
    let outcome = run_steps(root, &mut count);
    match &outcome {
        Ok(skipped) => skipped.iter().for_each(|line| println!("{line}")),
        Err(message) => eprintln!("ci: {message}"),
    }
    println!("{count}");
    outcome.map(|_| ()).map_err(|_| "ci failed".to_owned())
}

/// What [`run`] starts as its second lane.
pub(crate) fn run_beside(root: &Path) -> Result<(), String> {
    let mut steps = Steps { lane: "b", ..Steps::default() };
    steps.run("firmware", || firmware::run(root, &[]))?;
    steps.run("firmware run", || firmware::run(root, &["--run", "--short"]))?;
    // From here on programs are needed that the first lane has built for its tests.
    steps.run("promises", || promises::run(root, promises::Judge::AsForTests, &[]))?;
    steps.run("protocol", || protocol::run(root))?;
    steps.run("reader", || reader::run(root, &[]))?;
    steps.run("guest", || guest::run(root, &["--short"]))
}

/// Returns the lines that name steps that were skipped.
fn run_steps(root: &Path, count: &mut TestCount) -> Result<Vec<String>, String> {
    let mut steps = Steps::default();
    steps.run("format", || {
        call(root, "cargo fmt --all --check", &[])?;
        call(root, "cargo fmt --manifest-path firmware/Cargo.toml --all --check", &[])
    })?;
    steps.run("tidy", || tidy::run(root))?;
    steps.run("codegen", || codegen::run(root, Action::Check).and_then(|()| counts::run(root, &[])))?;
    steps.run("clippy", || {
        call(root, "cargo clippy --workspace --all-targets -- -D warnings", &[])?;
        // Fuzz targets need a nightly compiler; that their lock file fits is known without one.
        call(root, "cargo tree --quiet --locked --depth 0 --manifest-path fuzz/Cargo.toml", &[])?;
        let target = firmware::target(root);
        let environment = [("CARGO_TARGET_DIR", target.as_os_str())];
        call(root, "cargo clippy --manifest-path firmware/Cargo.toml --locked -p nandu-firmware -p nandu-firmware-driver -- -D warnings", &environment)
    })?;
    // Without private items: a public page that links to a private one is broken for the reader, and is reported only so.
    steps.run("docs", || {
        call(root, "cargo doc --workspace --no-deps", &[("RUSTDOCFLAGS", OsStr::new("-D warnings"))])
    })?;
    let beside = Beside::start(root)?;
    let outcome = run_lane(&mut steps, root, count);
    let mut skipped = steps.skipped;
    skipped.extend(beside.finish(outcome)?);
    Ok(skipped)
}

fn run_lane(steps: &mut Steps, root: &Path, count: &mut TestCount) -> Result<(), String> {
    steps.run("test", || test(root, count))?;
    // The volumes that a build with all features made above.
    steps.run("features", || {
        call(root, "cargo test --quiet -p nandu --no-default-features --test features", &[])?;
        call(root, "cargo check --quiet -p nandu --no-default-features --features files", &[])
    })?;
    steps.run("examples", || examples::run(root))?;
    steps.run("package", || package::run(root, &[]))?;
    steps.run("oldest compiler", || package::oldest_compiler(root))?;
    // What was built for the tests does what README.md names; that it builds as a release, too, is looked at in the step before.
    steps.run("readme", || readme::run(root, &["--quick"]))?;
    steps.run("capi", || capi::run(root, &[]))
}

/// The second lane.
struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    fn start(root: &Path) -> Result<Beside, String> {
        let log = target_directory(root).join("ci-beside.log");
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        let output = File::create(&log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["ci", "beside"]).current_dir(root).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(failed)?;
        println!("== b: a second lane has begun; what it says is printed when it has ended");
        Ok(Beside { child, log })
    }

    /// Waits for it, unless the first lane has failed; returns the lines that name what it skipped.
    fn finish(mut self, outcome: Result<(), String>) -> Result<Vec<String>, String> {
        if outcome.is_err() {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_err(|error| format!("second lane: {error}"))?;
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        println!("{said}");
        outcome?;
        if !status.success() {
            return Err(format!("second lane: {status}, see above"));
        }
        Ok(said.lines().filter(|line| is_skipped(line)).map(str::to_owned).collect())
    }
}

#[derive(Default)]
struct Steps {
    lane: &'static str,
    number: u32,
    /// The lines that named steps that could not run.
    skipped: Vec<String>,
}

impl Steps {
    fn run<T: Into<Outcome>>(&mut self, name: &str, step: impl FnOnce() -> Result<T, String>) -> Result<(), String> {
        self.number += 1;
        let title = format!("== {}{} {name}", self.lane, self.number);
        println!("{title}");
        let start = Instant::now();
        let outcome = step().map(Into::into);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(Outcome::Ran) => println!("{title}: ok, {seconds:.1} s"),
            Ok(Outcome::Lacks(what)) => {
                let line = format!("{title}{SKIPPED}{}", what.replace('\n', " "));
                println!("{line}");
                self.skipped.push(line);
            }
            Err(message) => {
                println!("{title}: failed, {seconds:.1} s");
                return Err(format!("step {name}: {message}"));
            }
        }
        Ok(())
    }
}

/// Stands in the line of a step that this machine cannot run, or not all of it.
const SKIPPED: &str = ": SKIPPED, or a part of it: ";

fn is_skipped(line: &str) -> bool {
    line.starts_with("== ") && line.contains(SKIPPED)
}

/// Runs a command line without quoting.
fn call(root: &Path, line: &str, environment: &[(&str, &OsStr)]) -> Result<(), String> {
    let status = command(root, line, environment).status().map_err(|error| format!("{line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}")) }
}

fn command(root: &Path, line: &str, environment: &[(&str, &OsStr)]) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root).stdin(Stdio::null()).envs(environment.iter().copied());
    command
}

fn test(root: &Path, count: &mut TestCount) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{TEST_COMMAND}: {error}");
    let mut child = command(root, TEST_COMMAND, &[]).stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(output) = child.stdout.take() {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            std::io::stdout().write_all(&line).map_err(failed)?;
            count.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("`{TEST_COMMAND}` failed: {status}"));
    }
    if count.passed == 0 {
        return Err(format!("`{TEST_COMMAND}` ran no test"));
    }
    Ok(())
}

/// Tests, added up over all test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestCount {
    passed: u64,
    failed: u64,
}

impl TestCount {
    /// Takes in a line of the test programs' output: `test result: ok. 3 passed; 0 failed; 1 ignored; ..`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.trim().strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else {
            return;
        };
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for TestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added_up() {
        let mut count = TestCount::default();
        for line in [
            "running 3 tests\n",
            "test a ... ok\n",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s\n",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
            "9 passed; not a result line\n",
        ] {
            count.add(line);
        }
        assert_eq!(count, TestCount { passed: 5, failed: 1 });
        assert_eq!(count.to_string(), "5 passed, 1 failed");
    }

    #[test]
    fn a_step_that_fails_is_named() {
        let error = Steps::default().run("clippy", || Err::<(), _>("three warnings".to_owned())).unwrap_err();
        assert_eq!(error, "step clippy: three warnings");
    }

    #[test]
    fn a_step_that_cannot_run_is_named_and_is_no_failure() {
        let mut steps = Steps { lane: "b", ..Steps::default() };
        assert_eq!(steps.run("tidy", || Ok(())), Ok(()));
        assert_eq!(steps.run("guest", || Ok(Outcome::Lacks("there is no cpio".to_owned()))), Ok(()));
        let [line] = &steps.skipped[..] else { panic!("{:?}", steps.skipped) };
        assert_eq!(line, "== b2 guest: SKIPPED, or a part of it: there is no cpio");
        assert!(is_skipped(line) && !is_skipped("== b2 guest: ok, 1.0 s"));
    }
}
