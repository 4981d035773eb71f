//! `nandu lab report`: one page of all results, or a folder of pages in Markdown.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nandu_bench::results::Results;
use nandu_bench::{experiments, page};
use serde_json::json;

use super::pages;
use super::run::{How, check_folder, run_plan, write};
use crate::output::Output;

const FILE: &str = "report.html";

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The folder of results, in which the page is made
    pub(super) dir: PathBuf,
    /// Run the experiments first and write their results to the folder
    #[arg(long)]
    pub(super) run: bool,
    /// With --run, the experiments, or what several begin with; all if none is named
    #[arg(value_name = "NAME", requires = "run")]
    pub(super) names: Vec<String>,
    /// Make pages of Markdown instead, one for each group of experiments, and the table of the papers' claims
    #[arg(long, conflicts_with = "small")]
    pages: bool,
    /// With --pages and --run, run only experiments whose small form finds something else than when the figures were found
    #[arg(long, requires = "pages", requires = "run")]
    pub(super) changed: bool,
    #[command(flatten)]
    pub(super) how: How,
}

impl Report {
    /// The experiments that are asked for.
    pub(super) fn names(&self) -> Vec<String> {
        let all = || experiments::all().map(|experiment| experiment.name.to_owned()).collect();
        if self.names.is_empty() { all() } else { self.names.clone() }
    }
}

pub(super) fn run(args: &Report, out: &mut Output) -> anyhow::Result<()> {
    if args.pages {
        return pages::run(args, out);
    }
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
    let plan = args.how.plan(&args.names())?;
    check_folder(&args.dir, &plan)?;
    let results = run_plan(&plan, &mut |_, _| Ok(()))?;
    write(&args.dir, &results, &args.how.command(&plan), out)
}
