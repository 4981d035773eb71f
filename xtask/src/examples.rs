//! Runs the example programs: each asserts what it shows.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::built::as_for_tests;
use crate::tree::Tree;

/// Where they stand.
const FOLDER: &str = "crates/nandu/examples";

/// Builds all examples, then runs one after the other.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::load(root)?;
    let names = names(&tree);
    if names.is_empty() {
        return Err(format!("{FOLDER} has no example"));
    }
    let folder = as_for_tests(root)?.join("examples");
    for name in names {
        println!("-- {name}");
        let mut example = Command::new(folder.join(name));
        // One example shows a test that fails, and its message is enough.
        example.current_dir(root).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
        let status = example.status().map_err(|error| format!("{name}: {error}"))?;
        if !status.success() {
            return Err(format!("example {name}: {status}"));
        }
    }
    Ok(())
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
