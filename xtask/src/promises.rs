//! What nandu promises, measured: `promises.toml` in one table.
//!
//! The judge, `lab/nandu-judge`, reads the promises, measures what flash costs and prints the table. What is told by sources and by firmware is measured
//! here and given to it, a line for each number.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::built::as_for_tests;
use crate::firmware;
use crate::tree::Tree;

const USAGE: &str = "promises: [--only ID].. [--full] [--lives FROM..TO] [--json]";

/// The crates of log, tree and files.
const LINES_OF: &[&str] = &["nandu-log", "nandu-tree", "nandu-fs"];

/// Promises that firmware tells, with the figure of a profile, and what one of the promise's unit is.
const OF_FIRMWARE: [(&str, &str, f64); 6] = [
    ("code", "code", 1024.0),
    ("ram", "ram", 1024.0),
    ("stack-call", "stack_call", 1024.0),
    ("stack-open", "stack_open", 1024.0),
    ("put-instructions", "put_instructions", 1.0),
    ("get-instructions", "get_instructions", 1.0),
];

/// Which judge measures: both find the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// The fast one.
    Release,
    /// The one that is there when the tests were built.
    AsForTests,
}

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked<'a> {
    /// Promises that are asked for; all if there are none.
    only: Vec<&'a str>,
    is_full: bool,
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Asked<'a>, String> {
    let mut asked = Asked::default();
    let mut rest = arguments;
    loop {
        match rest {
            [] => return Ok(asked),
            ["--full", more @ ..] => (asked.is_full, rest) = (true, more),
            ["--json", more @ ..] => rest = more,
            // The judge says what is wrong with it.
            ["--lives", seeds, more @ ..] if !seeds.starts_with('-') => rest = more,
            ["--only", id, more @ ..] if !id.starts_with('-') => {
                asked.only.push(id);
                rest = more;
            }
            [word, ..] => {
                return Err(format!("`{word}` is not known here, or something is missing behind it\n{USAGE}"));
            }
        }
    }
}

impl Asked<'_> {
    fn is_for(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.contains(&id)
    }
}

/// Measures each promise and prints the table; fails if one is not measured, or if one that is held is missed.
pub(crate) fn run(root: &Path, judge: Judge, arguments: &[&str]) -> Result<(), String> {
    let asked = parse(arguments)?;
    let given = given(root, &asked)?;
    let mut judge = match judge {
        Judge::Release => {
            let mut cargo = Command::new("cargo");
            cargo.args(["run", "--quiet", "--release", "--package", "nandu-judge", "--bin", "nandu-judge", "--"]);
            cargo
        }
        Judge::AsForTests => Command::new(as_for_tests(root)?.join("nandu-judge")),
    };
    judge.args(["promises.toml", "--given"]).args(arguments).current_dir(root).stdin(Stdio::piped());
    let failed = |error: std::io::Error| format!("judge: {error}");
    let mut child = judge.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // One that has ended already says why.
        let _ = input.write_all(given.as_bytes());
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(format!("the judge ended with {status}")) }
}

/// Lines of a promise's id, a case and a number, with tabs between.
fn given(root: &Path, asked: &Asked<'_>) -> Result<String, String> {
    let mut lines = String::new();
    let mut give = |id: &str, case: &str, number: f64| {
        lines += &format!("{id}\t{case}\t{number}\n");
    };
    if asked.is_for("lines") {
        let tree = Tree::load(root)?;
        give("lines", "", line_count(&tree, LINES_OF) as f64);
    }
    if asked.is_full && OF_FIRMWARE.iter().any(|(id, _, _)| asked.is_for(id)) {
        for (profile, figure, value) in firmware::figures(root)? {
            for (id, _, unit) in OF_FIRMWARE.iter().filter(|(_, name, _)| *name == figure) {
                give(id, profile, value as f64 / unit);
            }
        }
    }
    Ok(lines)
}

/// Lines of the sources of these crates, with comments.
fn line_count(tree: &Tree, crates: &[&str]) -> usize {
    let folders: Vec<String> = crates.iter().map(|name| format!("crates/{name}/src/")).collect();
    let is_meant = |path: &str| path.ends_with(".rs") && folders.iter().any(|folder| path.starts_with(folder.as_str()));
    tree.texts().filter(|(path, _)| is_meant(path)).map(|(_, text)| text.lines().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_the_crates_named_are_counted_and_nothing_else() {
        let tree = Tree::of(&[
            ("crates/nandu-log/src/lib.rs", "//! Log.\n\nfn a() {}\n"),
            ("crates/nandu-log/src/x/y.rs", "fn b() {}\n"),
            ("crates/nandu-log/tests/it.rs", "fn c() {}\n"),
            ("crates/nandu-logs/src/lib.rs", "fn d() {}\n"),
            ("crates/nandu-log/src/table.md", "text\n"),
        ]);
        assert_eq!(line_count(&tree, &["nandu-log"]), 4);
        assert_eq!(line_count(&tree, &["nandu-log", "nandu-logs"]), 5);
    }

    #[test]
    fn what_is_not_asked_for_is_not_measured() {
        let asked = parse(&["--json", "--only", "code", "--only", "ram"]).unwrap();
        assert_eq!(asked, Asked { only: vec!["code", "ram"], is_full: false });
        assert!(parse(&["--full", "--lives", "0..500"]).unwrap().is_full);
        assert!(asked.is_for("ram") && !asked.is_for("lines"));
        assert!(parse(&[]).unwrap().is_for("lines"));
        for wrong in [&["--fast"][..], &["--only"], &["--only", "--full"], &["code"]] {
            assert!(parse(wrong).unwrap_err().contains("is not known here"), "{wrong:?}");
        }
    }
}
