//! Runs the commands of README.md as they are written there.
//!
//! Every fenced block marked `sh` is run, each block by one shell that stops at the first command that fails, in a copy
//! of the repository, so that what a reader types is tried and nothing is left lying about. The copy shares the
//! build directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::target_directory;
use crate::tree::Tree;

const DOCUMENT: &str = "README.md";

/// Runs every command but those that continuous integration runs as a step of its own.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    run_except(root, &[])
}

/// Runs every command but those in `done`, which the caller has run as they are written.
pub(crate) fn run_except(root: &Path, done: &[&str]) -> Result<(), String> {
    let tree = Tree::load(root)?;
    let text = tree.text(DOCUMENT).ok_or_else(|| format!("{DOCUMENT} is missing"))?;
    let blocks = commands(text)?;
    if blocks.is_empty() {
        return Err(format!("{DOCUMENT} shows no command"));
    }
    let target = target_directory(root);
    let copy = target.join("readme");
    mirror(&tree, &copy)?;
    for block in blocks {
        for line in block.lines() {
            println!("$ {line}");
        }
        let Some(script) = without(&block, done) else {
            println!("(run before)");
            continue;
        };
        let status = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(&copy)
            .env("CARGO_TARGET_DIR", &target)
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("bash: {error}"))?;
        if !status.success() {
            return Err(format!("a command of {DOCUMENT} failed: {status}"));
        }
    }
    Ok(())
}

/// The blocks marked `sh`.
fn commands(text: &str) -> Result<Vec<String>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else { continue };
        let mut block = String::new();
        loop {
            match lines.next() {
                Some("```") => break,
                Some(line) => {
                    block.push_str(line);
                    block.push('\n');
                }
                None => return Err(format!("{DOCUMENT} has a block that is not closed")),
            }
        }
        if mark == "sh" {
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// The block without the lines in `done`; `None` if nothing is left to run.
fn without(block: &str, done: &[&str]) -> Option<String> {
    let left: String = block.lines().filter(|line| !done.contains(line)).flat_map(|line| [line, "\n"]).collect();
    (!left.trim().is_empty()).then_some(left)
}

/// Makes `copy` hold the files of the tree and nothing else. A file that has not changed is not touched, so that
/// cargo does not build it again.
fn mirror(tree: &Tree, copy: &Path) -> Result<(), String> {
    let wanted: BTreeSet<&str> = tree.files().map(|(path, _)| path).collect();
    remove_others(copy, "", &wanted).map_err(|error| format!("{}: {error}", copy.display()))?;
    for (path, bytes) in tree.files() {
        let place = copy.join(path);
        if fs::read(&place).is_ok_and(|present| present == bytes) {
            continue;
        }
        let written = match place.parent() {
            Some(folder) => fs::create_dir_all(folder).and_then(|()| fs::write(&place, bytes)),
            None => fs::write(&place, bytes),
        };
        written.map_err(|error| format!("{}: {error}", place.display()))?;
    }
    Ok(())
}

fn remove_others(copy: &Path, folder: &str, wanted: &BTreeSet<&str>) -> std::io::Result<()> {
    let place = copy.join(folder);
    if !place.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            remove_others(copy, &path, wanted)?;
        } else if !wanted.contains(path.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_marked_sh_are_commands_and_others_are_not() {
        let text = "```sh\none\ntwo\n```\ntext\n```text\nthree\n```\n```sh\nfour\n```\n";
        assert_eq!(commands(text).unwrap(), ["one\ntwo\n", "four\n"]);
        assert!(commands("```sh\none\n").is_err());
    }

    #[test]
    fn a_command_already_run_is_left_out_only_if_it_is_the_same() {
        assert_eq!(without("cargo test\n", &["cargo test"]), None);
        assert_eq!(without("a\ncargo test\n", &["cargo test"]).as_deref(), Some("a\n"));
        assert_eq!(without("cargo test --all\n", &["cargo test"]).as_deref(), Some("cargo test --all\n"));
    }

    #[test]
    fn a_mirror_holds_what_the_tree_holds_and_nothing_else() {
        let copy = std::env::temp_dir().join(format!("nandu-xtask-mirror-{}", std::process::id()));
        mirror(&Tree::of(&[("a/b", "1"), ("c", "2")]), &copy).unwrap();
        fs::write(copy.join("left.nand"), "x").unwrap();
        mirror(&Tree::of(&[("a/b", "3")]), &copy).unwrap();
        let (kept, others) = (fs::read_to_string(copy.join("a/b")).unwrap(), fs::read_dir(&copy).unwrap().count());
        fs::remove_dir_all(&copy).unwrap();
        assert_eq!((kept.as_str(), others), ("3", 1));
    }
}
