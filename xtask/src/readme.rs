//! Runs the commands of README.md and of the pages in docs/paths as they are written there.
//!
//! Every fenced block marked `sh` is run, in a copy of the repository, so that what a reader types is tried and nothing is left lying
//! about. The blocks of a document are one shell session, which stops at the first command that fails, and `nandu` is the command as the
//! document built it. The copy shares the build directory, and beside it there is room for a project of the reader's.
//!
//! A comment on the line above a block, which only readers of the source see, makes an exception: `<!-- not run: REASON -->`, or
//! `<!-- needs: cc mounts -->` with programs, files or the right to mount, without which the block is left out. Both are said aloud.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::target_directory;
use crate::tree::Tree;

const DOCUMENT: &str = "README.md";

/// Where the pages are whose commands are run too.
const PAGES: &str = "docs/paths/";

/// A command block of a document.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    script: String,
    /// Why it is not run.
    not_run: Option<String>,
    /// Programs and files that it needs.
    needs: Vec<String>,
}

/// Runs the commands of these documents, of all if none is named.
pub(crate) fn run(root: &Path, documents: &[&str]) -> Result<(), String> {
    run_except(root, documents, &[])
}

/// Runs every command but those in `done`, which the caller has run as they are written.
pub(crate) fn run_except(root: &Path, chosen: &[&str], done: &[&str]) -> Result<(), String> {
    let tree = Tree::load(root)?;
    let target = target_directory(root);
    // Not below the build directory: cargo would take sources there for something that was built, and what it builds of them for fresh,
    // whatever is changed in the repository afterwards.
    let place = env::temp_dir().join(format!("nandu-readme-{:016x}", hash_of(root)));
    // What the last run left beside the copy.
    for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
        if entry.file_name() != "nandu" {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let copy = place.join("nandu");
    let all = documents(&tree);
    if let Some(unknown) = chosen.iter().find(|name| !all.contains(name)) {
        return Err(format!("{unknown} is not among {}", all.join(", ")));
    }
    for document in all.into_iter().filter(|name| chosen.is_empty() || chosen.contains(name)) {
        mirror(&tree, &copy)?;
        println!("-- {document}");
        run_document(tree.text(document).unwrap_or_default(), document, &copy, &target, done)?;
    }
    Ok(())
}

/// Tells checkouts apart, so that each has a copy of its own.
fn hash_of(root: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    hasher.finish()
}

/// README.md and the pages.
fn documents(tree: &Tree) -> Vec<&str> {
    let pages = tree.files().map(|(path, _)| path).filter(|path| path.starts_with(PAGES) && path.ends_with(".md"));
    std::iter::once(DOCUMENT).chain(pages).collect()
}

fn run_document(text: &str, document: &str, copy: &Path, target: &Path, done: &[&str]) -> Result<(), String> {
    let blocks = commands(text).map_err(|error| format!("{document}: {error}"))?;
    if blocks.is_empty() {
        return Err(format!("{document} shows no command"));
    }
    let mut session = String::new();
    for block in &blocks {
        for line in block.script.lines() {
            session.push_str(&format!("printf '%s\\n' {}\n", quoted(&format!("$ {line}"))));
        }
        let lacking = block.needs.iter().find(|name| !is_there(name));
        let said = match (&block.not_run, lacking, without(&block.script, done)) {
            (Some(reason), _, _) => format!("(not run: {reason})"),
            (None, Some(name), _) => format!("(skipped: this machine lacks {name})"),
            (None, None, None) => "(run before)".to_owned(),
            (None, None, Some(script)) => {
                session.push_str(&script);
                continue;
            }
        };
        session.push_str(&format!("printf '%s\\n' {}\n", quoted(&said)));
    }
    let built = target.join("release");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(built).chain(env::split_paths(&path)).collect::<Vec<PathBuf>>())
        .map_err(|error| error.to_string())?;
    let status = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &session])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .env("PATH", path)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the last command of {document} above failed: {status}")) }
}

/// A word of the shell that is these characters.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What a page names that mounts by FUSE and unmounts as root does.
const MOUNTS: &str = "mounts";

/// Whether there is a file of this name or, without a slash, a program on the path; or whether this process may mount.
fn is_there(name: &str) -> bool {
    if name == MOUNTS {
        let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
        // What makes a name space for mounts may mount.
        let trial = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
        return device.is_ok() && trial.is_ok_and(|status| status.success());
    }
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The blocks marked `sh`, and what the comments above them say.
fn commands(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else {
            before = line;
            continue;
        };
        let mut script = String::new();
        loop {
            match lines.next() {
                Some("```") => break,
                Some(line) => {
                    script.push_str(line);
                    script.push('\n');
                }
                None => return Err("a block is not closed".to_owned()),
            }
        }
        if mark == "sh" {
            let not_run = comment(before, "not run: ").map(str::to_owned);
            let needs =
                comment(before, "needs: ").map_or(Vec::new(), |names| names.split(' ').map(str::to_owned).collect());
            blocks.push(Block { script, not_run, needs });
        }
        before = "";
    }
    Ok(blocks)
}

/// What stands behind `word` in a comment that takes a line.
fn comment<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.strip_prefix(word)
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
        let scripts: Vec<_> = commands(text).unwrap().into_iter().map(|block| block.script).collect();
        assert_eq!(scripts, ["one\ntwo\n", "four\n"]);
        assert!(commands("```sh\none\n").is_err());
    }

    #[test]
    fn comments_above_a_block_make_exceptions() {
        let text = "<!-- not run: too long -->\n```sh\none\n```\n<!-- needs: cc /dev/fuse -->\n```sh\ntwo\n```\n```sh\nthree\n```\n";
        let blocks = commands(text).unwrap();
        assert_eq!(blocks[0].not_run.as_deref(), Some("too long"));
        assert_eq!(blocks[1].needs, ["cc", "/dev/fuse"]);
        assert_eq!((&blocks[2].not_run, blocks[2].needs.len()), (&None, 0));
        assert!(is_there("bash") && !is_there("no-such-program") && !is_there("/no/such/file"));
    }

    #[test]
    fn a_session_stops_at_the_first_command_that_fails_and_leaves_out_what_is_not_run() {
        let place = std::env::temp_dir().join(format!("nandu-xtask-session-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let run = |text: &str| run_document(text, "page", &place, &place, &["true before"]);
        let kept = run(
            "```sh\nword=\"it's\"\n```\n<!-- not run: it fails -->\n```sh\nfalse\n```\n```sh\ntest \"$word\" = \"it's\"\n```\n",
        );
        let skipped = run("<!-- needs: no-such-program -->\n```sh\nfalse\n```\n```sh\ntrue\n```\n");
        let failed = run("```sh\nfalse\ntrue\n```\n");
        let none = run("no commands");
        fs::remove_dir_all(&place).unwrap();
        assert_eq!((kept, skipped), (Ok(()), Ok(())));
        assert!(failed.is_err() && none.is_err());
    }

    #[test]
    fn pages_of_paths_are_documents() {
        let tree =
            Tree::of(&[("README.md", ""), ("docs/paths/linux.md", ""), ("docs/notes/x.md", ""), ("STYLE.md", "")]);
        assert_eq!(documents(&tree), ["README.md", "docs/paths/linux.md"]);
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
