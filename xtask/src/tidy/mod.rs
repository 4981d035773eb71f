//! The house rules that no compiler checks.
//!
//! Each check takes the tree and adds what it finds; so each can be tested on a small made-up tree that breaks it.

mod components;
mod documents;
mod floors;
mod imports;
mod no_std;
mod numbers;
mod sources;
mod words;

pub(crate) use imports::LAYERS;

use std::fmt;
use std::path::Path;

use crate::tree::Tree;

/// A place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Checks the repository and prints each finding.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::load(root)?;
    let findings = check(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err("tidy: 1 rule is broken".to_owned()),
        count => Err(format!("tidy: {count} rules are broken")),
    }
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    imports::check(tree, &mut findings);
    floors::check(tree, &mut findings);
    components::check(tree, &mut findings);
    no_std::check(tree, &mut findings);
    documents::check(tree, &mut findings);
    numbers::check(tree, &mut findings);
    sources::check(tree, &mut findings);
    words::check(tree, &mut findings);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"nandu-nand\"\ndescription = \"d\"\n[lints]\nworkspace = true\n";

    #[test]
    fn a_sound_tree_has_no_finding_and_each_check_is_called() {
        let sound = [
            ("README.md", "See `crates/nandu-nand/README.md`.\n"),
            ("crates/nandu-nand/Cargo.toml", MANIFEST),
            ("crates/nandu-nand/README.md", "text\n"),
            ("crates/nandu-nand/src/lib.rs", "#![no_std]\n"),
            ("firmware/Cargo.toml", "[dependencies]\nnandu-nand = { path = \"../crates/nandu-nand\" }\n"),
        ];
        assert_eq!(check(&Tree::of(&sound)), []);

        let depending = format!("{MANIFEST}[dependencies]\nserde = \"1\"\n");
        let broken = [
            ("README.md", "See `crates/nandu-nand/MISSING.md`.\n"),
            ("crates/nandu-nand/Cargo.toml", depending.as_str()),
            ("crates/nandu-nand/src/lib.rs", "\n"),
            ("docs/invariants.md", "| L1 | one |\n"),
        ];
        let paths: Vec<_> = check(&Tree::of(&broken)).into_iter().map(|finding| finding.text).collect();
        for part in ["does not exist", "serde", "no_std", "README.md is missing", "L1 lacks"] {
            assert!(paths.iter().any(|text| text.contains(part)), "{part} not in {paths:?}");
        }
    }
}
