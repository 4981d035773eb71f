//! Runs the commands of README.md and of the pages in docs/paths as they are written there.
//!
//! Every fenced block marked `sh` is run, in a copy of the repository, so that what a reader types is tried and nothing is left lying
//! about. The blocks of a document are one shell session, which stops at the first command that fails, and `nandu` is the command as the
//! document built it. Beside the copy there is room for a project of the reader's.
//!
//! The copy shares the build directory, and its files are as old as those that they were copied from. Cargo tells sources by their places in
//! the repository and by their age, so nothing is built again that the repository has built. With `--quick` the tests and the examples have been run
//! before: the commands take what was built for them, in the place of a release, and neither is run again.
//!
//! A comment on the line above a block, which only readers of the source see, makes an exception: `<!-- not run: REASON -->`, or
//! `<!-- needs: cc mounts -->` with programs, files or the right to mount, without which the block is left out. Both are said aloud.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use crate::built::as_for_tests;
use crate::target_directory;
use crate::tree::Tree;

const DOCUMENT: &str = "README.md";

/// The tests, as README.md tells a reader to run them.
pub(crate) const TEST_COMMAND: &str = "cargo test --workspace";

const QUICK: &str = "--quick";

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

/// How cargo builds what the documents name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// As it is written.
    AsWritten,
    /// In the profile of the tests, in the place of that of a release.
    AsTests,
}

impl Build {
    /// Where in the build directory programs are.
    fn folder(self) -> &'static str {
        match self {
            Build::AsWritten => "release",
            Build::AsTests => "debug",
        }
    }

    /// A line as it is run; `None` if that was done before.
    fn line(self, line: &str) -> Option<String> {
        match (self, line) {
            (Build::AsTests, TEST_COMMAND | "cargo build --release") => None,
            (Build::AsTests, _) if line.starts_with("cargo run -p nandu --example ") => None,
            (Build::AsTests, _) => Some(line.replacen("cargo run --release -- ", "nandu ", 1)),
            (Build::AsWritten, _) => Some(line.to_owned()),
        }
    }

    /// The script as it is run; `None` if nothing is left of it.
    fn script(self, script: &str) -> Option<String> {
        let left: String =
            script.lines().filter_map(|line| self.line(line)).flat_map(|line| [line, "\n".to_owned()]).collect();
        (!left.trim().is_empty()).then_some(left)
    }
}

/// Runs the commands of these documents, of all if none is named; with `--quick` after the tests, which it does not run again.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let is_quick = arguments.contains(&QUICK);
    let documents: Vec<&str> = arguments.iter().copied().filter(|&argument| argument != QUICK).collect();
    if is_quick {
        as_for_tests(root)?;
        run_all(root, &documents, Build::AsTests)
    } else {
        run_all(root, &documents, Build::AsWritten)
    }
}

fn run_all(root: &Path, chosen: &[&str], build: Build) -> Result<(), String> {
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
        mirror(&tree, root, &copy)?;
        println!("-- {document}");
        run_document(tree.text(document).unwrap_or_default(), document, &copy, &target, build)?;
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

fn run_document(text: &str, document: &str, copy: &Path, target: &Path, build: Build) -> Result<(), String> {
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
        let said = match (&block.not_run, lacking, build.script(&block.script)) {
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
    let built = target.join(build.folder());
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

/// Makes `copy` hold the files of the tree, which stands at `root`, and nothing else. Each file is as old as there, so that cargo builds
/// nothing again that was built of it there, and everything that was not.
fn mirror(tree: &Tree, root: &Path, copy: &Path) -> Result<(), String> {
    let wanted: BTreeSet<&str> = tree.files().map(|(path, _)| path).collect();
    remove_others(copy, "", &wanted).map_err(|error| format!("{}: {error}", copy.display()))?;
    for (path, bytes) in tree.files() {
        let place = copy.join(path);
        write_as_old(&place, bytes, modified(&root.join(path)))
            .map_err(|error| format!("{}: {error}", place.display()))?;
    }
    Ok(())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Makes a file hold these bytes, last changed at this time.
fn write_as_old(place: &Path, bytes: &[u8], age: Option<SystemTime>) -> std::io::Result<()> {
    if !fs::read(place).is_ok_and(|present| present == bytes) {
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(place, bytes)?;
    }
    match age {
        Some(age) if modified(place) != Some(age) => fs::File::options().write(true).open(place)?.set_modified(age),
        _ => Ok(()),
    }
}

/// Removes what is not wanted below a folder, and the folders that are empty then: a document that makes one finds none of the last run.
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
            // One in which files stay is wanted.
            let _ = fs::remove_dir(entry.path());
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
    fn what_the_last_run_left_is_gone() {
        let copy = env::temp_dir().join(format!("nandu-left-{}", std::process::id()));
        for folder in ["mnt", "docs/more"] {
            fs::create_dir_all(copy.join(folder)).unwrap();
        }
        for file in ["docs/kept", "docs/more/left"] {
            fs::write(copy.join(file), "").unwrap();
        }
        remove_others(&copy, "", &BTreeSet::from(["docs/kept"])).unwrap();
        let is_there = |name: &str| copy.join(name).exists();
        assert_eq!(["docs/kept", "docs/more", "mnt"].map(is_there), [true, false, false]);
        fs::remove_dir_all(&copy).unwrap();
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
        let run = |text: &str| run_document(text, "page", &place, &place, Build::AsWritten);
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
    fn a_mirror_holds_what_the_tree_holds_and_nothing_else() {
        let place = std::env::temp_dir().join(format!("nandu-xtask-mirror-{}", std::process::id()));
        let (root, copy) = (place.join("root"), place.join("copy"));
        // What a command of the last session changed is put right, and as old as it was.
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        write_as_old(&root.join("a/b"), b"3", Some(old)).unwrap();
        mirror(&Tree::of(&[("a/b", "1"), ("c", "2")]), &root, &copy).unwrap();
        fs::write(copy.join("left.nand"), "x").unwrap();
        mirror(&Tree::of(&[("a/b", "3")]), &root, &copy).unwrap();
        let (kept, others) = (fs::read_to_string(copy.join("a/b")).unwrap(), fs::read_dir(&copy).unwrap().count());
        let age = modified(&copy.join("a/b"));
        fs::remove_dir_all(&place).unwrap();
        assert_eq!((kept.as_str(), others, age), ("3", 1, Some(old)));
    }

    #[test]
    fn where_what_the_tests_built_is_taken_nothing_is_built_or_run_again() {
        let script = "cargo run --release -- tour --release\ncargo build --release\ncargo run -p nandu --example records\ncargo test --workspace\n";
        assert_eq!(Build::AsWritten.script(script).as_deref(), Some(script));
        assert_eq!(Build::AsTests.script(script).as_deref(), Some("nandu tour --release\n"));
        assert_eq!(Build::AsTests.script("cargo test --workspace\n"), None);
        assert_eq!(Build::AsTests.script("cargo test\n").as_deref(), Some("cargo test\n"));
    }
}
