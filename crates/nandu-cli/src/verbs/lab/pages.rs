//! `nandu lab report --pages`: a folder of pages in Markdown, and the figures that they are made of.

use std::fs;
use std::path::Path;
use std::process::{Command, Output as Answer};

use anyhow::Context;
use nandu_bench::origin::{self, Origin};
use nandu_bench::results::{RAW_FILE, Results};
use nandu_bench::runner::{self, Event, Plan, Run};
use nandu_bench::{Scale, pages};
use serde_json::json;

use super::report::Report;
use super::run::run_plan;
use crate::output::Output;
use crate::progress::Bars;

pub(super) fn run(args: &Report, out: &mut Output) -> anyhow::Result<()> {
    if args.run {
        run_first(args, out)?;
    }
    let results = Results::read(&args.dir).context("there are no results to make pages of (--run makes them)")?;
    let origins = origin::read(&args.dir).with_context(|| args.dir.join(origin::ORIGIN_FILE).display().to_string())?;
    let written = pages::write(&args.dir, &results, &origins).map_err(anyhow::Error::from_boxed)?;
    if out.is_json() {
        out.json(&json!({ "pages": written.len(), "figures": results.figures.len() }))?;
    } else {
        for page in written {
            writeln!(out, "{}", args.dir.join(page.path).display())?;
        }
    }
    Ok(())
}

/// Runs experiments and writes the figures of each as soon as it has ended, so that what an end by force leaves is whole.
fn run_first(args: &Report, out: &mut Output) -> anyhow::Result<()> {
    let mut plan = args.how.plan(&args.names())?;
    let mut results = match args.dir.join(RAW_FILE).exists() {
        true => Results::read(&args.dir)?,
        false => Results { figures: Vec::new(), scale: Scale::Full },
    };
    let mut origins = origin::read(&args.dir)?;
    fs::create_dir_all(&args.dir).with_context(|| args.dir.display().to_string())?;
    let small = small_runs(&plan)?;
    if args.changed {
        plan.experiments.retain(|experiment| {
            let run = small.iter().find(|run| run.experiment.name == experiment.name);
            let origin = origins.iter().find(|origin| origin.experiment == experiment.name);
            let is_there = results.experiments().contains(&experiment.name);
            let is_as_it_was =
                run.zip(origin).is_some_and(|(run, origin)| origin::fingerprint(&run.figures) == origin.small);
            !(is_there && is_as_it_was)
        });
        if !out.is_json() {
            let names: Vec<&str> = plan.experiments.iter().map(|experiment| experiment.name).collect();
            writeln!(out, "to be run: {}", if names.is_empty() { "nothing".to_owned() } else { names.join(" ") })?;
            out.flush()?;
        }
    }
    let (commit, machine) = (commit(&args.dir), machine());
    run_plan(&plan, &mut |experiment, found| {
        results = results.clone().replaced_by(found.clone());
        let run = small.iter().find(|run| run.experiment.name == experiment.name);
        if let Some(run) = run {
            origins.retain(|origin| origin.experiment != experiment.name);
            origins.push(Origin::new(args.how.seeds(), commit.clone(), machine.clone(), run));
        }
        pages::write_figures(&args.dir, &results, &origins).map_err(anyhow::Error::from_boxed)
    })?;
    Ok(())
}

/// The small forms of the experiments of a plan, as `nandu lab run --small` runs them.
fn small_runs(plan: &Plan) -> anyhow::Result<Vec<Run>> {
    let small = Plan { scale: Scale::Small, seeds: 0..1, ..plan.clone() };
    let mut bars = Bars::new(&small);
    let mut runs = Vec::new();
    runner::run(&small, &mut |event| -> anyhow::Result<()> {
        match event {
            Event::Progress { experiment_index, part_index, done, total } => {
                bars.set(experiment_index, part_index, done, total);
            }
            Event::Ended(run) => runs.push(run),
        }
        Ok(())
    })?;
    Ok(runs)
}

/// The commit of the tree in which a folder lies, and whether something in it was changed since; `unknown` if git cannot say.
fn commit(folder: &Path) -> String {
    // The folder may be made only now.
    let place = folder.ancestors().find(|place| place.is_dir()).unwrap_or(Path::new("."));
    let git = |arguments: &[&str]| -> Option<Answer> {
        Command::new("git").arg("-C").arg(place).args(arguments).output().ok()
    };
    let head = git(&["rev-parse", "--short=10", "HEAD"]).filter(|answer| answer.status.success());
    let Some(head) = head.and_then(|answer| String::from_utf8(answer.stdout).ok()) else { return "unknown".to_owned() };
    let is_clean =
        git(&["diff", "--quiet", "HEAD", "--", ":/", ":(exclude)."]).is_some_and(|answer| answer.status.success());
    format!("{}{}", head.trim(), if is_clean { "" } else { " with changes" })
}

/// How many cores, and of which kind.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} core{}, {}", if cores == 1 { "" } else { "s" }, std::env::consts::ARCH)
}
