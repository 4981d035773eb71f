//! `nandu lab report`: one page of all results.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nandu_bench::results::Results;
use nandu_bench::{experiments, page};
use serde_json::json;

use super::run::{How, check_folder, run_plan, write};
use crate::output::Output;

const FILE: &str = "report.html";

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The folder of results, in which the page is made
    dir: PathBuf,
    /// Run the experiments first and write their results to the folder
    #[arg(long)]
    run: bool,
    /// With --run, the experiments, or what several begin with; all if none is named
    #[arg(value_name = "NAME", requires = "run")]
    names: Vec<String>,
    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Report, out: &mut Output) -> anyhow::Result<()> {
    let read = || Results::read(&args.dir).context("there are no results to make a page of (--run makes them)");
    if args.run {
        run_first(args, out)?;
    }
    let results = read()?;
    let page = page::html(&results).map_err(anyhow::Error::from_boxed)?;
    let path = args.dir.join(FILE);
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    if out.is_json() {
        out.json(&json!({ "page": path, "figures": results.figures.len() }))?;
    } else {
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}

fn run_first(args: &Report, out: &mut Output) -> anyhow::Result<()> {
    let all = || experiments::all().map(|experiment| experiment.name.to_owned()).collect();
    let names = if args.names.is_empty() { all() } else { args.names.clone() };
    let plan = args.how.plan(&names)?;
    check_folder(&args.dir, &plan)?;
    let results = run_plan(&plan, &mut |_, _| Ok(()))?;
    write(&args.dir, &results, &args.how.command(&plan), out)
}
