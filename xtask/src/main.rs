//! What the project does to itself: continuous integration, house rules, generated documents.
//!
//! Called as `cargo xtask VERB`. **The key decision** is that it imports nothing: it checks everybody else's
//! dependencies, so it should be built first, fast and from the repository alone. The alternative, a TOML and a JSON
//! crate behind it, would read manifests more generally than this repository writes them.

mod built;
mod capi;
mod ci;
mod codegen;
mod counts;
mod examples;
mod explore;
mod firmware;
mod guest;
mod manifest;
mod outcome;
mod package;
mod promises;
mod protocol;
mod reader;
mod readme;
mod swarm;
mod tidy;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outcome::{EXIT_LACKS, Outcome};

const USAGE: &str = "\
usage: cargo xtask VERB

A verb exits with 0 if all went well, with 1 if something is wrong, and with 77 if it could not run, wholly or in part, for
what this machine lacks.

  ci                 everything continuous integration does, step by step
  tidy               the house rules that no compiler checks
  codegen [--check]  writes FORMAT.md and FORMAT-LAB.md from the sources, or says whether it is up to date
  counts [FILE ..]   adds what campaigns wrote to files that NANDU_COUNTS named to docs/counts.md; or says whether that page is up to date
  readme [--quick] [DOCUMENT ..]
                     runs the commands of README.md and of the pages in docs/paths in a copy of the repository; with --quick
                     it takes what was built for the tests in the place of releases, and runs neither tests nor examples again
  examples           runs the example programs
  package [--full]   packages every crate as for publishing, without a warning; with --full builds each package
  msrv               checks the workspace with the oldest compiler it names, where that is installed
  reader [--full] [--seed S]
                     holds the reader for boot loaders, in C, against the commands, on images that power cuts left, feeds it
                     damaged images and measures its code; with --full many more of both
  swarm [--cases N] [--seed S] [--shard K/N]
                     power cuts, a million of each kind if no number is given: of stores with every tear, a tenth as many pairs and a
                     hundredth as many triples; random chains over stores; in lives of file systems of each kind; or a share of them
  explore [--system NAME].. [--depth N] [--shard K/N] [--no-faults] [--json]
                     all sequences of so many calls, cuts and failures, two if no number is given, over stores and files on small chips;
                     a share of them, whose reports --merge FILE.. joins; --replay NAME MOVES makes one
  protocol           checks the protocol of log and tree, on one page in Promela, with Spin, and that each rule left out is found
  promises [--only ID].. [--full] [--lives FROM..TO] [--json]
                     measures what promises.toml promises and prints limit, number and verdict; fails if a promise is not measured, or if
                     one is missed that is kept today; with --full what takes long too
  guest [--short]    boots a guest with Linux's simulator of NAND flash and proves there what nandu does with an MTD device;
                     kills a mount 50 times, with --short three times, or NANDU_KILLS times; with NANDU_GUEST=1 it fails where
                     it cannot run
  guest --peers [--only ROW].. [--resume] [--show] [--json]
                     counts there what UBIFS, JFFS2 and nandu do to the same chip with the same work, and writes
                     docs/results/peers.md; a row is FILE_SYSTEM/WORKLOAD or one of both; --resume runs those that are not
                     there yet, --show none
  firmware [--run [--short] | --json | --profile PROFILE | --functions PROFILE | --panics PROFILE]
                     builds the core crates for a microcontroller, measures code, memory, stack and instructions of
                     each profile, and fails beyond a limit; or only prints a line for each profile, or the largest functions of one;
                     or runs a store and files on an emulated Cortex-M4 and M7 through the SPI NAND driver, with power cuts
  capi [--install FOLDER]
                     builds the library for C, tries it from C on this machine and on an emulated Cortex-M4, and prints its sizes;
                     or puts headers, libraries, and files for pkg-config and CMake into a folder
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = repository_root();
    let outcome = match words.as_slice() {
        ["ci"] => ci::run(&root).map(Outcome::from),
        ["ci", "beside"] => ci::run_beside(&root).map(Outcome::from),
        ["tidy"] => tidy::run(&root).map(Outcome::from),
        ["codegen"] => codegen::run(&root, codegen::Action::Write).map(Outcome::from),
        ["codegen", "--check"] => codegen::run(&root, codegen::Action::Check).map(Outcome::from),
        ["counts", files @ ..] => counts::run(&root, files).map(Outcome::from),
        ["readme", arguments @ ..] => readme::run(&root, arguments).map(Outcome::from),
        ["examples"] => examples::run(&root).map(Outcome::from),
        ["package", arguments @ ..] => package::run(&root, arguments).map(Outcome::from),
        ["msrv"] => package::oldest_compiler(&root),
        ["reader", arguments @ ..] => reader::run(&root, arguments),
        ["swarm", arguments @ ..] => swarm::run(&root, arguments).map(Outcome::from),
        ["explore", arguments @ ..] => explore::run(&root, arguments).map(Outcome::from),
        ["protocol"] => protocol::run(&root),
        ["firmware", arguments @ ..] => firmware::run(&root, arguments),
        ["guest", arguments @ ..] => guest::run(&root, arguments),
        ["promises", arguments @ ..] => promises::run(&root, promises::Judge::Release, arguments).map(Outcome::from),
        ["capi", arguments @ ..] => capi::run(&root, arguments),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(Outcome::Ran) => ExitCode::SUCCESS,
        Ok(Outcome::Lacks(what)) => {
            eprintln!("xtask: not run, or not all of it: {what}");
            ExitCode::from(EXIT_LACKS)
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder above this package.
fn repository_root() -> PathBuf {
    // What cargo says when it runs this program. A copy of the repository may share the build directory, so the program may have been
    // built from the other one.
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().unwrap_or(&package).to_path_buf()
}

/// Where cargo puts what it builds for the repository.
fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |directory| root.join(directory))
}
