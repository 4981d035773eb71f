//! `nandu lab`: experiments on simulated chips.

mod compare;
mod pages;
mod record;
mod report;
mod run;

use clap::Subcommand;
use nandu_bench::experiments;
use serde_json::json;

use crate::output::Output;

/// The code with which a verb ends when figures are not as good as they should be.
const NOT_GOOD_ENOUGH: u8 = 3;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Every experiment, with what is demanded of its figures
    List,
    /// Run experiments and print their figures
    Run(run::Run),
    /// What changed between two results, and whether it is better or worse
    Compare(compare::Compare),
    /// Make one page of results, to be read offline, or pages of Markdown with the table of the papers' claims
    Report(report::Report),
    /// Run a command and record what it asks of a file system's index
    Record(record::Record),
}

pub(crate) fn run(args: &Lab, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Lab::List => list(out),
        Lab::Run(args) => run::run(args, out),
        Lab::Compare(args) => compare::run(args, out),
        Lab::Report(args) => report::run(args, out),
        Lab::Record(args) => record::run(args, out),
    }
}

fn list(out: &mut Output) -> anyhow::Result<()> {
    for experiment in experiments::all() {
        if out.is_json() {
            out.json(&json!({ "name": experiment.name, "about": experiment.about }))?;
            continue;
        }
        writeln!(out, "{:22}{}", experiment.name, experiment.about)?;
        let case = |case: Option<&str>| case.map(|case| format!(" ({case})")).unwrap_or_default();
        for limit in experiment.limits {
            writeln!(out, "{:24}{} {limit}{}", "", limit.metric, case(limit.case))?;
        }
        for accept in experiment.accept {
            writeln!(out, "{:24}{} {accept}{}", "", accept.metric, case(accept.case))?;
        }
    }
    Ok(())
}
