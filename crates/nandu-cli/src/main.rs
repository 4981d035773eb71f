//! `nandu`: NAND chips on the command line.
//!
//! One file of [`verbs`] is one verb: its arguments as a clap structure, and a `run` that gets them, and the
//! [`Output`]. A new verb is a new file, a variant of [`args::Verb`] and a line in
//! [`verbs::run`].
//!
//! **The key decision** is that a verb opens a chip image, works on it in memory and commits once at its end, so that a
//! killed command leaves the image as it was. The alternative, every operation written through to the file, would be
//! slower by the cost of two `fsync` calls per page and would leave half of what a verb does.

mod args;
mod blank;
mod chance;
mod cost;
mod device;
mod dffs_page;
mod dumped;
mod failure;
mod files;
mod flash;
mod fstab;
mod health;
mod hexdump;
mod index;
mod inpage;
mod kind;
mod log_page;
mod output;
mod overlay;
mod progress;
mod record;
mod report;
mod session;
mod store;
mod units;
mod verbs;
mod view;
mod volume;

use std::process::ExitCode;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::from(error).report(),
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let mut out = Output::to_stdout(cli.common.json);
    let outcome = verbs::run(&cli.verb, &mut out);
    // What a verb printed before it failed comes before the line that says so.
    out.flush()?;
    outcome
}
