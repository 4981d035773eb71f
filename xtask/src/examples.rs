//! Runs the example programs: each asserts what it shows.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::tree::Tree;

/// Where they stand, and the package they belong to.
const FOLDER: &str = "crates/nandu/examples";
const PACKAGE: &str = "nandu";

/// Builds all examples, then runs one after the other.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::load(root)?;
    let names = names(&tree);
    if names.is_empty() {
        return Err(format!("{FOLDER} has no example"));
    }
    // All at once, which takes less than one after the other.
    cargo(root, &["build", "--quiet", "--package", PACKAGE, "--examples"])?;
    for name in names {
        println!("-- {name}");
        cargo(root, &["run", "--quiet", "--package", PACKAGE, "--example", name])?;
    }
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    // One example shows a test that fails, and its message is enough.
    command.args(arguments).current_dir(root).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed: {status}", arguments.join(" "))) }
}

fn names(tree: &Tree) -> Vec<&str> {
    tree.files()
        .filter_map(|(path, _)| path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".rs"))
        .filter(|name| !name.contains('/'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_programs_of_their_folder() {
        let tree = Tree::of(&[
            ("crates/nandu/examples/files.rs", ""),
            ("crates/nandu/examples/parts/page.rs", ""),
            ("crates/nandu/src/at.rs", ""),
        ]);
        assert_eq!(names(&tree), ["files"]);
    }
}
