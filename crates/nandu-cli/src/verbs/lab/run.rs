//! `nandu lab run`: experiments on all cores, as tables, lines of JSON, or a folder of results.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use nandu_bench::results::{Cell, Results};
use nandu_bench::runner::{self, Event, Plan};
use nandu_bench::{Experiment, Figure, Scale, Verdict, experiments, folder};

use super::NOT_GOOD_ENOUGH;
use crate::failure::{Ending, usage};
use crate::output::Output;
use crate::progress::Bars;
use crate::report;

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Names of experiments, or what several begin with, as `core`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    how: How,
    /// Write raw figures, a summary and plots to this folder, too
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// End with code 3 if a figure misses what is demanded of it
    #[arg(long)]
    strict: bool,
}

/// How experiments are run.
#[derive(Args, Debug)]
pub(super) struct How {
    /// Where all chance comes from: the same number gives the same figures
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Run with each seed from A up to, not including, B
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// Smaller chips and fewer records: quick, but nothing is demanded of the figures
    #[arg(long)]
    small: bool,
}

/// Most seeds of one run.
const SEED_COUNT_MAX: u64 = 10_000;

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    match bounds {
        Some(Range { start, end }) if start < end && end - start <= SEED_COUNT_MAX => Ok(start..end),
        _ => Err(format!("give two numbers as 0..5, the second greater, at most {SEED_COUNT_MAX} apart")),
    }
}

impl How {
    /// What is to be run: the experiments of these names, each once.
    pub(super) fn plan(&self, names: &[String]) -> anyhow::Result<Plan> {
        let mut chosen: Vec<&'static Experiment> = Vec::new();
        for name in names {
            if experiments::find(name).next().is_none() {
                return usage(format!("there is no experiment '{name}'; see 'nandu lab list'"));
            }
            chosen.extend(experiments::find(name));
        }
        let mut named = HashSet::new();
        chosen.retain(|experiment| named.insert(experiment.name));
        let mut plan = Plan::new(chosen, self.seed);
        if let Some(seeds) = &self.seeds {
            plan.seeds = seeds.clone();
        }
        if self.small {
            plan.scale = Scale::Small;
        }
        Ok(plan)
    }

    /// The seeds, as they are given.
    pub(super) fn seeds(&self) -> String {
        match &self.seeds {
            Some(seeds) => format!("{}..{}", seeds.start, seeds.end),
            None => self.seed.to_string(),
        }
    }

    /// The command that runs the same again.
    pub(super) fn command(&self, plan: &Plan) -> String {
        let names: Vec<&str> = plan.experiments.iter().map(|experiment| experiment.name).collect();
        let option = if self.seeds.is_some() { "--seeds" } else { "--seed" };
        let small = if self.small { " --small" } else { "" };
        format!("nandu lab run {} {option} {}{small}", names.join(" "), self.seeds())
    }
}

/// Runs a plan with bars on the error stream; hands on the figures of each experiment, of all seeds together, when it has
/// ended, and returns those of all. Each figure has its seed.
pub(super) fn run_plan(
    plan: &Plan,
    show: &mut dyn FnMut(&Experiment, &Results) -> anyhow::Result<()>,
) -> anyhow::Result<Results> {
    let mut bars = Bars::new(plan);
    let mut all = Results { figures: Vec::new(), scale: plan.scale };
    let mut of_one = all.clone();
    runner::run(plan, &mut |event| -> anyhow::Result<()> {
        match event {
            Event::Progress { experiment_index, part_index, done, total } => {
                bars.set(experiment_index, part_index, done, total);
            }
            Event::Ended(run) => {
                let seed = Some(run.seed);
                of_one.figures.extend(run.figures.into_iter().map(|figure| Figure { seed, ..figure }));
                if run.seed + 1 == plan.seeds.end {
                    bars.suspend(|| show(run.experiment, &of_one))?;
                    all.figures.append(&mut of_one.figures);
                }
            }
        }
        Ok(())
    })?;
    Ok(all)
}

pub(super) fn run(args: &Run, out: &mut Output) -> anyhow::Result<()> {
    let plan = args.how.plan(&args.names)?;
    if let Some(path) = &args.out {
        check_folder(path, &plan)?;
    }
    let is_one_seed = args.how.seeds.is_none();
    let results = run_plan(&plan, &mut |experiment, results| {
        if out.is_json() {
            for figure in &results.figures {
                let seed = figure.seed.filter(|_| !is_one_seed);
                writeln!(out, "{}", Figure { seed, ..figure.clone() }.to_json())?;
            }
        } else {
            table(experiment, &results.cells(), out)?;
        }
        out.flush()?;
        Ok(())
    })?;
    if let Some(path) = &args.out {
        write(path, &results, &args.how.command(&plan), out)?;
    }
    let judged: Vec<(Cell, Verdict)> = results
        .cells()
        .into_iter()
        .filter_map(|cell| cell.judge().map(|judgement| (cell, judgement.verdict)))
        .collect();
    let missed: Vec<&Cell> =
        judged.iter().filter(|(_, verdict)| *verdict == Verdict::Missed).map(|(cell, _)| cell).collect();
    if out.is_json() {
        missed.iter().for_each(|cell| complain(cell));
    } else if !judged.is_empty() {
        writeln!(out, "{} within what is demanded, {} missed", judged.len() - missed.len(), missed.len())?;
    }
    if args.strict && !missed.is_empty() {
        return Err(Ending::new(NOT_GOOD_ENOUGH, format!("{} figures miss what is demanded", missed.len())).into());
    }
    Ok(())
}

/// Lines of JSON have no room for it, so it is said beside them.
fn complain(cell: &Cell) {
    let (figure, judgement) = (cell.figure(), cell.judge());
    let demand = judgement.map(|judgement| judgement.demand).unwrap_or_default();
    // There is no better place to say that the error stream is closed.
    let _ = writeln!(
        io::stderr(),
        "nandu: {} {} {}: MISSED: {} {}, demanded {demand}",
        figure.experiment,
        figure.case,
        figure.metric,
        cell.mean(),
        figure.unit
    );
}

/// Refuses a folder whose results of other experiments cannot stand beside those of the run. Asked before the run, not after
/// it, which may take hours.
pub(super) fn check_folder(path: &Path, plan: &Plan) -> anyhow::Result<()> {
    // What cannot be read as results is not taken for any.
    let Ok(there) = Results::read(path) else { return Ok(()) };
    let is_planned = |name: &&str| plan.experiments.iter().any(|experiment| experiment.name == *name);
    match there.experiments().into_iter().find(|name| !is_planned(name)) {
        Some(name) if there.scale != plan.scale => usage(format!(
            "{}: holds results of '{name}' from a run of another size: name another folder",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// Writes a folder and says what was written.
pub(super) fn write(path: &Path, results: &Results, command: &str, out: &mut Output) -> anyhow::Result<()> {
    let written = folder::write(path, results, command).map_err(anyhow::Error::from_boxed)?;
    if !out.is_json() {
        for file in written {
            writeln!(out, "{}", file.display())?;
        }
    }
    Ok(())
}

/// Columns of a table: what stands above, and whether it is text.
const COLUMNS: [(&str, bool); 9] = [
    ("case", true),
    ("metric", true),
    ("value", false),
    ("unit", true),
    ("published", false),
    ("model", false),
    ("difference", false),
    ("", true),
    ("demanded", true),
];

fn table(experiment: &Experiment, cells: &[Cell], out: &mut Output) -> anyhow::Result<()> {
    let rows: Vec<[String; COLUMNS.len()]> = cells.iter().map(row).collect();
    // A column in which nothing stands says nothing.
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|&index| rows.iter().any(|row| !row[index].is_empty())).collect();
    let mut table = report::plain_table();
    table.set_header(shown.iter().map(|&index| COLUMNS[index].0));
    for row in &rows {
        table.add_row(shown.iter().map(|&index| row[index].as_str()));
    }
    let is_text = |place: &usize| COLUMNS[shown[*place]].1;
    let text: Vec<usize> = (0..shown.len()).filter(is_text).collect();
    let rendered = report::render_aligned(table, &text);
    writeln!(out, "{}: {}\n\n{rendered}\n", experiment.name, experiment.about)?;
    for doubt in experiment.doubts.iter().filter(|doubt| cells.iter().any(|cell| doubt.is_for(cell.figure()))) {
        writeln!(out, "{} {} as published is doubted: {}\n", doubt.case, doubt.metric, doubt.why)?;
    }
    Ok(())
}

fn row(cell: &Cell) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let (figure, judgement) = (cell.figure(), cell.judge());
    let spread =
        if cell.least() < cell.most() { format!(" ({} to {})", cell.least(), cell.most()) } else { String::new() };
    [
        figure.case.clone(),
        figure.metric.to_string(),
        format!("{}{spread}", cell.mean()),
        figure.unit.to_string(),
        number(figure.published),
        number(figure.model),
        cell.difference().map(|(share, _)| format!("{:+.1} %", share * 100.0)).unwrap_or_default(),
        judgement.as_ref().map(|judgement| judgement.verdict.name()).unwrap_or_default().to_owned(),
        judgement.map(|judgement| judgement.demand).unwrap_or_default(),
    ]
}
