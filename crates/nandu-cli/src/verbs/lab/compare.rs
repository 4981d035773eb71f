//! `nandu lab compare`: what changed between two results.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::Args;
use nandu_bench::compare::{Change, Difference, compare};
use nandu_bench::results::Results;
use serde_json::json;

use super::NOT_GOOD_ENOUGH;
use crate::failure::Ending;
use crate::output::Output;
use crate::report;

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The earlier results: a folder that `lab run --out` wrote, or a file of its JSON lines
    before: PathBuf,
    /// The later results
    after: PathBuf,
    /// By how much a figure may be worse: beyond that the code is 3
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT", value_parser = percent)]
    tolerate: f64,
    /// Show what is the same, too
    #[arg(long)]
    all: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| "give a number of at least 0".to_owned())
}

const ORDER: [Change; 7] =
    [Change::Worse, Change::SlightlyWorse, Change::Better, Change::Other, Change::New, Change::Gone, Change::Same];

pub(super) fn run(args: &Compare, out: &mut Output) -> anyhow::Result<()> {
    let (before, after) = (Results::read(&args.before)?, Results::read(&args.after)?);
    let differences = compare(&before, &after, args.tolerate / 100.0);
    let is_shown = |difference: &&Difference| args.all || difference.change != Change::Same;
    let shown: Vec<&Difference> = differences.iter().filter(is_shown).collect();
    if out.is_json() {
        for difference in &shown {
            out.json(&json!({
                "experiment": difference.experiment,
                "case": difference.case,
                "metric": difference.metric,
                "unit": difference.unit,
                "before": difference.before,
                "after": difference.after,
                "change": difference.change.name(),
            }))?;
        }
    } else {
        table(&shown, out)?;
        let count = |change| differences.iter().filter(|difference| difference.change == change).count();
        let counts = ORDER.iter().map(|change| (count(*change), change.name())).filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
        writeln!(out, "{}", if counts.is_empty() { "there are no figures".to_owned() } else { counts.join(", ") })?;
    }
    let worse = differences.iter().filter(|difference| difference.change == Change::Worse).count();
    if worse > 0 {
        let figures = if worse == 1 { "1 figure is" } else { &format!("{worse} figures are") };
        let message = format!("{figures} worse by more than {} %", args.tolerate);
        return Err(Ending::new(NOT_GOOD_ENOUGH, message).into());
    }
    Ok(())
}

fn table(shown: &[&Difference], out: &mut Output) -> anyhow::Result<()> {
    if shown.is_empty() {
        return Ok(());
    }
    let mut table = report::plain_table();
    table.set_header(["experiment", "case", "metric", "before", "after", "unit", "by", ""]);
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for difference in shown {
        table.add_row([
            difference.experiment.clone(),
            difference.case.clone(),
            difference.metric.clone(),
            number(difference.before),
            number(difference.after),
            difference.unit.clone(),
            difference.growth().map(|share| format!("{:+.2} %", share * 100.0)).unwrap_or_default(),
            difference.change.name().to_owned(),
        ]);
    }
    // A row is a line, so that lines can have the colour of what they say.
    let rendered = report::render_aligned(table, &[0, 1, 2, 5, 7]);
    for (nth, line) in rendered.lines().enumerate() {
        let style = nth.checked_sub(1).and_then(|row| shown.get(row)).map(|difference| style(difference.change));
        let style = out.style(style.unwrap_or_default());
        writeln!(out, "{style}{line}{style:#}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn style(change: Change) -> Style {
    match change {
        Change::Better => AnsiColor::Green.on_default(),
        Change::Worse => AnsiColor::Red.on_default().bold(),
        Change::SlightlyWorse => AnsiColor::Yellow.on_default(),
        Change::Gone | Change::New | Change::Other => AnsiColor::Cyan.on_default(),
        Change::Same => Style::new(),
    }
}
