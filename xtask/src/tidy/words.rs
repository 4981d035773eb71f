//! One language: what the glossary says of words, held against names.
//!
//! The glossary has a row for each word, and a table of words that are not used. A word in small letters stands in no name and no comment of the crates
//! below, `State` is the whole name of no type. A type's name means one thing in all of these crates.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::tree::Tree;

const GLOSSARY: &str = "docs/glossary.md";
const NOT_USED: &str = "## Words that are not used";

/// The crates of the heart, and the formats of rivals in them, which have the words of their papers.
const HEART: [&str; 5] = ["nandu-media", "nandu-log", "nandu-tree", "nandu-fs", "nandu"];
const OF_RIVALS: [&str; 3] =
    ["crates/nandu-media/src/inpage", "crates/nandu-media/src/dffs", "crates/nandu-media/src/malformed.rs"];

/// Names that types of several crates have, and why.
const SHARED: [(&str, &str); 5] = [
    ("At", "the store as it was, by the tree as it was"),
    ("Broken", "each crate's rules that its tests leave out"),
    ("Options", "what each crate is opened with"),
    ("Parts", "a chip and memory, of which log and tree are put together"),
    ("Violation", "what does not hold, of each crate"),
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(glossary) = tree.text(GLOSSARY) else { return };
    let (mut defined, mut refused, mut is_refusing) = (BTreeSet::new(), Vec::new(), false);
    for (index, line) in glossary.lines().enumerate() {
        is_refusing = if line.starts_with("## ") { line == NOT_USED } else { is_refusing };
        let Some((cell, meaning)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | ")) else { continue };
        // What stands in brackets behind a word tells two of its meanings apart.
        for word in cell.split(", ").filter(|word| word.contains("**")) {
            if !defined.insert(word.to_owned()) {
                findings.push(Finding::new(GLOSSARY, index + 1, format!("{word} has two rows")));
            }
            if is_refusing {
                refused.push((word.replace("**", "").replace('`', ""), meaning.trim_end_matches(" |")));
            }
        }
    }
    let mut types: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for (path, text) in tree.texts() {
        let of_heart = HEART.into_iter().find(|name| path.starts_with(&format!("crates/{name}/src/")));
        let is_reader = path.starts_with("reader/") && (path.ends_with(".c") || path.ends_with(".h"));
        if of_heart.is_none() && !is_reader || OF_RIVALS.iter().any(|rival| path.starts_with(rival)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let mut tell = |text: String| findings.push(Finding::new(path, index + 1, text));
            let words = format!(" {} ", words(line));
            for (word, instead) in refused.iter().filter(|(word, _)| words.contains(&format!(" {word} "))) {
                tell(format!("`{word}` is not used ({instead})"));
            }
            let (Some(name), Some(package)) = (type_in(line), of_heart) else { continue };
            for (_, instead) in refused.iter().filter(|(word, _)| word == name) {
                tell(format!("`{name}` says too little ({instead})"));
            }
            let (first, place) = *types.entry(name).or_insert((package, path));
            if first != package && !SHARED.iter().any(|(shared, _)| *shared == name) {
                tell(format!("another `{name}` stands in {place}"));
            }
        }
    }
}

/// The words of a line in small letters, a dot where other signs than these part them: `RawPage::of_stream` has two, a dot, and two.
fn words(line: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for letter in line.chars() {
        if !letter.is_alphanumeric() && !matches!(letter, ' ' | '_' | '-') {
            words.push_str(" .");
        }
        if !letter.is_alphanumeric() || letter.is_uppercase() && !before.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
        before = letter;
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type that a line defines, outside of others.
fn type_in(line: &str) -> Option<&str> {
    let line =
        line.strip_prefix("pub").map_or(line, |rest| rest.split_once(") ").map_or(rest, |(_, rest)| rest).trim_start());
    let rest = ["struct ", "enum ", "union ", "trait ", "type "].iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let glossary = "| **head** (of a stream) | a |\n| **head** (of a value) | b |\n\n## Words that are not used\n\n\
                        | **bare page** | say *raw page* |\n| **`State`** | say of what |\n";
        let mut findings = Vec::new();
        let files: Vec<_> = files.iter().copied().chain([(GLOSSARY, glossary)]).collect();
        check(&Tree::of(&files), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_word_that_is_not_used_is_found_in_every_form() {
        for line in ["fn bare_page() {}", "struct BarePage;", "// A bare page.", "const BARE_PAGE: u8 = 1;"] {
            let found = findings(&[("crates/nandu-log/src/a.rs", line)]);
            assert_eq!(found, ["crates/nandu-log/src/a.rs:1: `bare page` is not used (say *raw page*)"], "{line}");
        }
        assert_eq!(findings(&[("reader/a.c", "int bare_page;")]).len(), 1);
        for path in ["crates/nandu-sim/src/a.rs", "crates/nandu-media/src/inpage/a.rs", "crates/nandu-log/tests/a.rs"] {
            assert!(findings(&[(path, "fn bare_page() {}")]).is_empty(), "{path}");
        }
        assert!(findings(&[("crates/nandu-log/src/a.rs", "fn bare_commit(threadbare: page) {}")]).is_empty());
    }

    #[test]
    fn a_type_is_named_by_what_it_is_and_once() {
        let log = ("crates/nandu-log/src/a.rs", "pub(crate) enum State {\n    State,\n}\nstruct Found;\n");
        assert_eq!(findings(&[log]), ["crates/nandu-log/src/a.rs:1: `State` says too little (say of what)"]);
        let both = |line| {
            findings(&[("crates/nandu-fs/src/a.rs", line), ("crates/nandu-log/src/a.rs", "pub struct Found<T>;")])
        };
        assert_eq!(
            both("type Found = u8;"),
            ["crates/nandu-log/src/a.rs:1: another `Found` stands in crates/nandu-fs/src/a.rs"]
        );
        assert!(both("    type Found = u8;").is_empty() && both("struct Founder;").is_empty());
    }

    #[test]
    fn a_word_of_the_glossary_has_one_row() {
        let mut findings = Vec::new();
        check(&Tree::of(&[(GLOSSARY, "| **page**, **leaf** | a |\n| **leaf** | b |\n")]), &mut findings);
        assert_eq!(findings, [Finding::new(GLOSSARY, 2, "**leaf** has two rows")]);
    }
}
