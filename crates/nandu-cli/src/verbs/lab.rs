//! `nandu lab`: experiments on simulated chips.

use clap::{Args, Subcommand};
use nandu_bench::{Context, Experiment, Figure, Scale, experiments};
use serde_json::json;

use crate::failure::usage;
use crate::output::Output;
use crate::progress::Progress;
use crate::report;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Every experiment, with what is demanded of its figures
    List,
    /// Run an experiment and print its figures
    Run(Run),
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Name of the experiment, or of a group of them, as `core`
    name: String,
    /// Where all chance comes from: the same number gives the same figures
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

pub(crate) fn run(args: &Lab, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Lab::List => list(out),
        Lab::Run(args) => run_named(args, out),
    }
}

fn list(out: &mut Output) -> anyhow::Result<()> {
    for experiment in &experiments::ALL {
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
    if experiments::find(&args.name).next().is_none() {
        return usage(format!("there is no experiment '{}'; see 'nandu lab list'", args.name));
    }
    for experiment in experiments::find(&args.name) {
        let mut progress = Progress::new(experiment.name);
        let mut tell = |done, total| progress.set(done, total);
        let figures =
            experiment.run(&mut Context { seed: args.seed, scale: Scale::Full, progress: Some(&mut tell) })?;
        drop(progress);
        if out.is_json() {
            for figure in &figures {
                writeln!(out, "{}", figure.to_json())?;
            }
        } else {
            table(experiment, &figures, out)?;
        }
    }
    Ok(())
}

fn table(experiment: &Experiment, figures: &[Figure], out: &mut Output) -> anyhow::Result<()> {
    let mut table = report::plain_table();
    table.set_header(["case", "metric", "value", "unit", "published", "model", "limit", ""]);
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for figure in figures {
        let limit = experiment.limit_of(figure);
        table.add_row([
            figure.case.clone(),
            figure.metric.to_owned(),
            figure.value.to_string(),
            figure.unit.to_owned(),
            number(figure.published),
            number(figure.model),
            limit.map(|limit| limit.to_string()).unwrap_or_default(),
            limit.map(|limit| limit.judge(figure.value).name()).unwrap_or_default().to_owned(),
        ]);
    }
    writeln!(out, "{}: {}\n\n{}\n", experiment.name, experiment.about, report::render(table))?;
    Ok(())
}
