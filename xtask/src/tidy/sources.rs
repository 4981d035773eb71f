//! What every file and every crate owes the reader.

use super::Finding;
use crate::manifest::Manifest;
use crate::tree::Tree;

/// Lines at which a file is to be split.
const RUST_LINES_MAX: usize = 800;

/// The crates that may have unsafe code: pointers come to one from C, and the other calls the operating system's kernel. They state the lints of the
/// workspace themselves, but for that.
const WITH_UNSAFE: [&str; 2] = ["nandu-capi", "nandu-mtd"];

/// The file of `nandu-mtd` that has some.
const UNSAFE_FILE: &str = "crates/nandu-mtd/src/ioctls.rs";

/// Beginnings of paths that exist on somebody's machine only, and hosts that only some machines can reach.
///
/// Each is put together from two halves, so that this file does not contain what it forbids.
const MACHINE_WORDS: [(&str, &str); 8] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/tm", "p/"),
    ("/Us", "ers/"),
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("deb.debian", ".org"),
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.texts() {
        if path.ends_with(".rs") {
            check_length(path, text, findings);
        }
        if path.ends_with(".rs") && path.starts_with("crates/nandu-mtd/") && path != UNSAFE_FILE {
            check_unsafe(path, text, findings);
        }
        // Cargo writes where each package came from into its lock file.
        if !path.ends_with("Cargo.lock") {
            check_words(path, text, findings);
        }
    }
    for folder in tree.packages() {
        check_package(tree, folder, findings);
    }
}

fn check_length(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > RUST_LINES_MAX {
        let text = format!("{lines} lines are more than {RUST_LINES_MAX}: look for the seam");
        findings.push(Finding::new(path, 0, text));
    }
}

fn check_unsafe(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        if ["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait"].iter().any(|word| line.contains(word)) {
            findings.push(Finding::new(
                path,
                index + 1,
                format!("unsafe code stands in {UNSAFE_FILE} and nowhere else"),
            ));
        }
    }
}

fn check_words(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for (head, tail) in MACHINE_WORDS {
            let word = format!("{head}{tail}");
            if contains_word(line, &word) {
                findings.push(Finding::new(path, index + 1, format!("`{word}` means something on one machine only")));
            }
        }
    }
}

/// Whether the word stands in the line and is not the rest of a longer path, as in `docs/work/`.
fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '$'))
    })
}

fn check_package(tree: &Tree, folder: &str, findings: &mut Vec<Finding>) {
    let path = format!("{folder}/Cargo.toml");
    let manifest = Manifest::parse(tree.text(&path).unwrap_or_default());
    if manifest.description.is_empty() {
        findings.push(Finding::new(&path, 0, "a crate has a description"));
    }
    if !manifest.lints_inherited && !WITH_UNSAFE.contains(&manifest.name.as_str()) {
        findings.push(Finding::new(&path, 0, "a crate inherits the lints of the workspace"));
    }
    if !tree.contains(&format!("{folder}/README.md")) {
        findings.push(Finding::new(folder, 0, "README.md is missing"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Tree::of(files), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_file_may_have_800_lines_and_no_more() {
        assert!(findings(&[("a.rs", &"\n".repeat(800))]).is_empty());
        assert_eq!(findings(&[("a.rs", &"\n".repeat(801))]).len(), 1);
        assert!(findings(&[("a.csv", &"\n".repeat(801))]).is_empty());
    }

    #[test]
    fn every_word_of_one_machine_is_found_and_longer_paths_are_not() {
        for (head, tail) in MACHINE_WORDS {
            assert_eq!(findings(&[("a.md", &format!("see\n({head}{tail}x)"))]).len(), 1, "{head}{tail}");
        }
        let longer = format!("docs{0}x ${{TMPDIR}}{0}x", concat!("/wo", "rk/"));
        assert!(findings(&[("a.md", &longer)]).is_empty());
        assert!(findings(&[("Cargo.lock", concat!("index.crates", ".io"))]).is_empty());
    }

    #[test]
    fn unsafe_code_of_mtd_stands_in_one_file_and_other_crates_have_no_lints_of_their_own() {
        let call = "fn f() {\n    unsafe { g() }\n}\n";
        assert!(findings(&[(UNSAFE_FILE, call)]).is_empty());
        let elsewhere = findings(&[("crates/nandu-mtd/src/nand.rs", call)]);
        assert_eq!(
            elsewhere,
            [format!("crates/nandu-mtd/src/nand.rs:2: unsafe code stands in {UNSAFE_FILE} and nowhere else")]
        );
        let manifest = |name: &str| format!("[package]\nname = \"{name}\"\ndescription = \"d\"\n");
        let own = |name: &str| {
            let (path, readme) = (format!("crates/{name}/Cargo.toml"), format!("crates/{name}/README.md"));
            findings(&[(&path, &manifest(name)), (&readme, "")]).len()
        };
        assert_eq!((own("nandu-mtd"), own("nandu-log")), (0, 1));
    }

    #[test]
    fn a_crate_owes_a_readme_a_description_and_the_lints() {
        let manifest = "[package]\nname = \"a\"\ndescription = \"d\"\n[lints]\nworkspace = true\n";
        assert!(findings(&[("crates/a/Cargo.toml", manifest), ("crates/a/README.md", "")]).is_empty());
        let bare = findings(&[("crates/a/Cargo.toml", "[package]\nname = \"a\"\n")]);
        assert_eq!(bare.len(), 3, "{bare:?}");
    }
}
