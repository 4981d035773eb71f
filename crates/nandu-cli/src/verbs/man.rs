//! `nandu man`: manual pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::args::Cli;
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write one page for each verb to this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Man, out: &mut Output) -> anyhow::Result<()> {
    match &args.dir {
        Some(dir) => clap_mangen::generate_to(Cli::command(), dir).with_context(|| dir.display().to_string()),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            out.bytes(&page)?;
            Ok(())
        }
    }
}
