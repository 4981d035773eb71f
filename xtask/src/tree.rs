//! The files of the repository, in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where crates stand: the product, and beside it what judges it.
pub(crate) const HOUSES: [&str; 2] = ["crates", "lab"];

/// Every file of the repository that is or could be committed, by its path from the root with `/` between folders.
///
/// In memory, so that a check can be tested on a made-up tree.
#[derive(Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Reads the repository. Ignored files are left out; where git does not answer, hidden and `target` folders are.
    pub(crate) fn load(root: &Path) -> Result<Tree, String> {
        let mut paths = match git_paths(root) {
            Some(paths) => paths,
            None => {
                let mut found = Vec::new();
                walk(root, "", &mut found)?;
                found
            }
        };
        // Git lists a conflicted file once per side, and a deleted one until the deletion is committed.
        paths.sort();
        paths.dedup();
        let mut files = BTreeMap::new();
        for path in paths {
            let place = root.join(&path);
            if place.is_file() {
                let bytes = fs::read(&place).map_err(|error| format!("{path}: {error}"))?;
                files.insert(path, bytes);
            }
        }
        Ok(Tree { files })
    }

    /// Paths and bytes of all files, in the order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Paths and contents of all files that are text, in the order of their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)))
    }

    /// The content of one file that is text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// Whether there is a file of this path, or a folder with files in it.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.contains_key(path) || self.files.keys().any(|file| is_below(file, path))
    }

    /// The folders of the crates, those of the product first.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &str> {
        HOUSES.iter().flat_map(|house| {
            self.files.keys().filter_map(move |path| {
                let folder = path.strip_suffix("/Cargo.toml")?;
                let name = folder.strip_prefix(house)?.strip_prefix('/')?;
                (!name.contains('/')).then_some(folder)
            })
        })
    }

    /// The folder of a crate of this name.
    pub(crate) fn package(&self, name: &str) -> Option<&str> {
        self.packages().find(|folder| folder.rsplit('/').next() == Some(name))
    }
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn git_paths(root: &Path) -> Option<Vec<String>> {
    // The owner of a checkout in a container is often somebody else, which git refuses unless told.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) -> Result<(), String> {
    let place = root.join(folder);
    let entries = fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        let hidden = name.starts_with('.') && !matches!(name.as_str(), ".ci" | ".cargo" | ".gitignore");
        if hidden || name == "target" {
            continue;
        }
        if kind.is_dir() {
            walk(root, &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
impl Tree {
    /// A made-up tree.
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|&(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_packages_are_found_by_whole_names() {
        let files = ["lab/c/Cargo.toml", "crates/a/Cargo.toml", "crates/a/b/Cargo.toml", "docs/x.md"];
        let tree = Tree::of(&files.map(|path| (path, "")));
        assert_eq!(tree.packages().collect::<Vec<_>>(), ["crates/a", "lab/c"]);
        assert_eq!((tree.package("c"), tree.package("b")), (Some("lab/c"), None));
        assert!(tree.contains("docs/") && tree.contains("docs/x.md"));
        assert!(!tree.contains("doc") && !tree.contains("docs/x"));
    }

    #[test]
    fn without_git_the_walk_finds_sources_and_leaves_out_what_is_built() {
        let root = std::env::temp_dir().join(format!("nandu-xtask-walk-{}", std::process::id()));
        for path in ["a/b.rs", "target/c.rs", ".hidden/d", ".ci/run"] {
            let place = root.join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, path).unwrap();
        }
        let mut found = Vec::new();
        walk(&root, "", &mut found).unwrap();
        fs::remove_dir_all(&root).unwrap();
        found.sort();
        assert_eq!(found, [".ci/run", "a/b.rs"]);
    }
}
