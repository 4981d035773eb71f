//! `nandu lab`: experiments on simulated chips.

mod record;

use std::collections::HashSet;

use clap::{Args, Subcommand};
use nandu_bench::runner::{self, Event, Plan};
use nandu_bench::{Experiment, Figure, experiments};
use serde_json::json;

use crate::failure::usage;
use crate::output::Output;
use crate::progress::Bars;
use crate::report;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Every experiment, with what is demanded of its figures
    List,
    /// Run experiments and print their figures
    Run(Run),
    /// Run a command and record what it asks of a file system's index
    Record(record::Record),
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Names of experiments, or what several begin with, as `core`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Where all chance comes from: the same number gives the same figures
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

pub(crate) fn run(args: &Lab, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Lab::List => list(out),
        Lab::Run(args) => run_named(args, out),
        Lab::Record(args) => record::run(args, out),
    }
}

fn list(out: &mut Output) -> anyhow::Result<()> {
    for experiment in experiments::all() {
        if out.is_json() {
            out.json(&json!({ "name": experiment.name, "about": experiment.about }))?;
            continue;
        }
        writeln!(out, "{:16}{}", experiment.name, experiment.about)?;
        for limit in experiment.limits {
            let case = limit.case.map(|case| format!(" ({case})")).unwrap_or_default();
            writeln!(out, "{:18}{} {limit}{case}", "", limit.metric)?;
        }
    }
    Ok(())
}

fn run_named(args: &Run, out: &mut Output) -> anyhow::Result<()> {
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    for name in &args.names {
        if experiments::find(name).next().is_none() {
            return usage(format!("there is no experiment '{name}'; see 'nandu lab list'"));
        }
        chosen.extend(experiments::find(name));
    }
    let mut named = HashSet::new();
    chosen.retain(|experiment| named.insert(experiment.name));
    let plan = Plan::new(chosen, args.seed);
    let mut bars = Bars::new(&plan);
    runner::run(&plan, &mut |event| -> anyhow::Result<()> {
        match event {
            Event::Progress { experiment_index, part_index, done, total } => {
                bars.set(experiment_index, part_index, done, total);
            }
            Event::Ended(run) => bars.suspend(|| show(&run, out))?,
        }
        Ok(())
    })
}

fn show(run: &runner::Run, out: &mut Output) -> anyhow::Result<()> {
    if out.is_json() {
        for figure in &run.figures {
            writeln!(out, "{}", figure.to_json())?;
        }
    } else {
        table(run.experiment, &run.figures, out)?;
    }
    out.flush()?;
    Ok(())
}

fn table(experiment: &Experiment, figures: &[Figure], out: &mut Output) -> anyhow::Result<()> {
    let mut table = report::plain_table();
    table.set_header(["case", "metric", "value", "unit", "published", "model", "demanded", ""]);
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for figure in figures {
        let judgements = experiment.judge(figure);
        let demands: Vec<&str> = judgements.iter().map(|judgement| judgement.demand.as_str()).collect();
        let verdict = judgements.iter().map(|judgement| judgement.verdict).max();
        table.add_row([
            figure.case.clone(),
            figure.metric.to_string(),
            figure.value.to_string(),
            figure.unit.to_string(),
            number(figure.published),
            number(figure.model),
            demands.join("; "),
            verdict.map(|verdict| verdict.name()).unwrap_or_default().to_owned(),
        ]);
    }
    writeln!(out, "{}: {}\n\n{}\n", experiment.name, experiment.about, report::render(table))?;
    Ok(())
}
