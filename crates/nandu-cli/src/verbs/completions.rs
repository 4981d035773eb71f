//! `nandu completions`: completion scripts.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions, out: &mut Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nandu", &mut script);
    out.bytes(&script)?;
    Ok(())
}
