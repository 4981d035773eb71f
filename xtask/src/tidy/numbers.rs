//! Numbers of invariants, faults and decisions: each means one thing.
//!
//! The lists are tables in two documents. A row defines its number: `| L8 | what holds | module | test |`. Code and documents
//! cite numbers (`L8`), and the documentation of a crate may explain one (`* **L8** ...`).

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::tree::Tree;

/// The documents whose tables define numbers.
const LISTS: [&str; 2] = ["docs/invariants.md", "docs/fault-model.md"];

/// Letters of numbers that name no module, since they are not kept in one place: decisions and faults.
const WITHOUT_MODULE: [char; 2] = ['D', 'F'];

/// Cells of a row that names its module: number, what holds, module, test.
const CELLS: usize = 4;

/// Endings of files in which numbers are cited.
const CITING: [&str; 5] = [".rs", ".md", ".c", ".h", ".toml"];

/// A letter and one or two digits.
type Number = (char, u8);

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut defined: BTreeMap<Number, Option<String>> = BTreeMap::new();
    for list in LISTS {
        for (index, line) in tree.text(list).unwrap_or_default().lines().enumerate() {
            let Some(number) = row(line) else { continue };
            let mut tell = |text: String| findings.push(Finding::new(list, index + 1, text));
            let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
            let has_module = !WITHOUT_MODULE.contains(&number.0);
            if has_module && (cells.len() != CELLS || cells.iter().any(|cell| cell.is_empty())) {
                tell(format!("{} lacks what holds, its module or its test", name(number)));
            }
            let package = if has_module { cells.get(2).and_then(|cell| package_of(cell)) } else { None };
            if defined.insert(number, package).is_some() {
                tell(format!("{} is defined twice", name(number)));
            }
        }
    }
    let letters: BTreeSet<char> = defined.keys().map(|number| number.0).collect();
    let mut explained: BTreeMap<Number, &str> = BTreeMap::new();
    for (path, text) in tree.texts().filter(|(path, _)| CITING.iter().any(|ending| path.ends_with(ending))) {
        // Examples of this check are made of numbers that mean nothing.
        if path == "xtask/src/tidy/numbers.rs" {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let mut tell = |text: String| findings.push(Finding::new(path, index + 1, text));
            for number in numbers(line).filter(|number| letters.contains(&number.0) && !defined.contains_key(number)) {
                tell(format!("{} is in no list of {}", name(number), LISTS.join(" and ")));
            }
            let Some(number) = explanation(line) else { continue };
            let Some(package) = defined.get(&number) else { continue };
            if package.as_deref().is_none_or(|package| !path.starts_with(package)) {
                tell(format!("{} is explained here, and the list says that another crate holds it", name(number)));
            }
            let first = *explained.entry(number).or_insert(path);
            if first != path {
                tell(format!("{} is explained in {first} as well", name(number)));
            }
        }
    }
}

fn name((letter, count): Number) -> String {
    format!("{letter}{count}")
}

/// The number that a row of a table defines.
fn row(line: &str) -> Option<Number> {
    let cell = line.strip_prefix("| ")?.split(" |").next()?;
    whole(cell)
}

/// The number that a line of module documentation explains: `//! * L8 ...` or `//! * **L8** ...`.
fn explanation(line: &str) -> Option<Number> {
    let rest = line.strip_prefix("//! * ")?;
    let word = rest.split_whitespace().next()?;
    whole(word.strip_prefix("**").and_then(|word| word.strip_suffix("**")).unwrap_or(word))
}

/// The folder of the crate of the first link in a cell, with a slash behind it.
fn package_of(cell: &str) -> Option<String> {
    let target = cell.split("](").nth(1)?.split(')').next()?;
    let path = target.trim_start_matches("../");
    let (folder, _) = path.split_once("/src/")?;
    Some(format!("{folder}/"))
}

/// A word that is a number and nothing else.
fn whole(word: &str) -> Option<Number> {
    let mut numbers = numbers(word);
    let number = numbers.next()?;
    (name(number) == word).then_some(number)
}

/// The numbers in a line: a capital letter and one or two digits, the first of them no zero, with neither a letter, a digit nor
/// what belongs to another kind of word (`-O1`, `x.D5`, `A/B1`) beside them.
fn numbers(line: &str) -> impl Iterator<Item = Number> + '_ {
    let bytes = line.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_');
    (0..bytes.len()).filter_map(move |at| {
        let letter = bytes.get(at).copied().filter(u8::is_ascii_uppercase)?;
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        if word(before) || matches!(before, b'-' | b'.' | b'/' | b'\\' | b'+' | b'#') {
            return None;
        }
        let digits = bytes.get(at + 1..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let behind = bytes.get(at + 1 + digits).copied().unwrap_or(b' ');
        let digits = line.get(at + 1..at + 1 + digits)?;
        if !matches!(digits.len(), 1 | 2) || digits.starts_with('0') || word(behind) {
            return None;
        }
        Some((char::from(letter), digits.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
| # | what holds | module | test |
|---|---|---|---|
| D2 | A page says what it is. |
| L1 | Sequences rise. | [`a`](../crates/a/src/a.rs) | [`t`](../crates/a/tests/it/t.rs) |
| L2 | Blocks are erased. | [`a`](../crates/a/src/a.rs) | [`t`](../crates/a/tests/it/t.rs) |
";

    fn findings(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("docs/invariants.md", list), ("docs/fault-model.md", "| F1 | cut program |\n")];
        all.extend_from_slice(files);
        let mut findings = Vec::new();
        check(&Tree::of(&all), &mut findings);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn numbers_that_are_listed_once_and_cited_are_sound() {
        let explained = "//! * **L1** Each page has one.\n//! * L2 As said.\n// (L1), L2, D2 and F1; flags -O1, U32, F0, L01, SHA-L9\n";
        assert_eq!(findings(LIST, &[("crates/a/src/lib.rs", explained)]), Vec::<String>::new());
    }

    #[test]
    fn a_number_that_is_cited_and_not_listed_is_found() {
        let found = findings(LIST, &[("crates/a/src/b.rs", "// L3: not so.\n"), ("TESTING.md", "as F2 says\n")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|text| text.contains("is in no list")), "{found:?}");
    }

    #[test]
    fn a_number_with_two_meanings_is_found() {
        let twice = format!("{LIST}{}", "| L1 | Other. | [`a`](../crates/a/src/a.rs) | test |\n");
        assert_eq!(findings(&twice, &[]), ["L1 is defined twice"]);
        let other = findings(LIST, &[("crates/b/src/lib.rs", "//! * L1 Something else.\n")]);
        assert_eq!(other, ["L1 is explained here, and the list says that another crate holds it"]);
        let both = [("crates/a/src/lib.rs", "//! * L1 So.\n"), ("crates/a/src/tags.rs", "//! * **L1** Otherwise.\n")];
        assert_eq!(findings(LIST, &both), ["L1 is explained in crates/a/src/lib.rs as well"]);
        let fault = findings(LIST, &[("crates/a/src/lib.rs", "//! * F1 An invariant.\n")]);
        assert_eq!(fault, ["F1 is explained here, and the list says that another crate holds it"]);
    }

    #[test]
    fn a_row_without_module_or_test_is_found() {
        for row in [
            "| L3 | Holds. | | [`t`](../crates/a/tests/it/t.rs) |\n",
            "| L3 | Holds. | [`a`](../crates/a/src/a.rs) |\n",
        ] {
            let found = findings(&format!("{LIST}{row}"), &[]);
            assert_eq!(found, ["L3 lacks what holds, its module or its test"]);
        }
    }
}
