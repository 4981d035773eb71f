//! The page of a group of experiments.

use super::{Group, Sources};
use crate::results::{Cell, of_experiment};
use crate::summary::section;
use crate::{Experiment, PlotKind, Verdict, experiments, text};

/// How many demands are kept and how many are missed.
pub(super) fn judged(group: &Group, sources: &Sources<'_>) -> (usize, usize) {
    let verdicts: Vec<Verdict> = cells(group, sources).filter_map(|cell| Some(cell.judge()?.verdict)).collect();
    let missed = verdicts.iter().filter(|verdict| **verdict == Verdict::Missed).count();
    (verdicts.len() - missed, missed)
}

fn cells<'s>(group: &Group, sources: &Sources<'s>) -> impl Iterator<Item = &'s Cell> {
    let names: Vec<&str> = experiments::find(group.name).map(|experiment| experiment.name).collect();
    sources.cells.iter().filter(move |cell| names.contains(&&*cell.figure().experiment))
}

pub(super) fn page(group: &Group, sources: &Sources<'_>) -> String {
    let mut page = format!("# {}\n\n{}", group.title, origin(group, sources));
    let missed = cells(group, sources).filter_map(|cell| {
        let judgement = cell.judge().filter(|judgement| judgement.verdict == Verdict::Missed)?;
        let figure = cell.figure();
        let (value, unit) = (text::number(cell.mean()), &figure.unit);
        Some(format!(
            "* `{}`, `{}`, {}: {value} {unit}, demanded {}\n",
            figure.experiment,
            figure.case,
            text::words(&figure.metric),
            judgement.demand
        ))
    });
    let missed: String = missed.collect();
    let (kept, missed_count) = judged(group, sources);
    if missed_count == 0 {
        page.push_str(&format!("Something is demanded of {kept} figures, and all keep to it.\n"));
    } else {
        let all = kept + missed_count;
        page.push_str(&format!(
            "Something is demanded of {all} figures: {kept} keep to it, {missed_count} do not:\n\n{missed}"
        ));
    }
    for experiment in experiments::find(group.name) {
        let cells = of_experiment(experiment.name, sources.cells);
        if cells.is_empty() {
            page.push_str(&format!("\n## {}\n\nNot run: {}.\n", experiment.name, experiment.about));
            continue;
        }
        let shown: Vec<&Cell> = cells.iter().copied().filter(|cell| !is_drawn_only(experiment, cell)).collect();
        page.push_str(&section(experiment.name, &cells, &shown));
    }
    page
}

/// Whether it is a point of a line and nothing else: nothing is stated or demanded of it.
fn is_drawn_only(experiment: &Experiment, cell: &Cell) -> bool {
    let figure = cell.figure();
    let is_line = |plot: &&crate::Plot| {
        plot.kind != PlotKind::Bars && plot.metric == figure.metric && plot.place(&figure.case).is_some()
    };
    let is_point = figure.case.contains("/at/") || experiment.plots.iter().any(|plot| is_line(&plot));
    is_point && figure.published.is_none() && figure.model.is_none() && cell.judge().is_none()
}

/// The command, and the commits and machines of its runs.
fn origin(group: &Group, sources: &Sources<'_>) -> String {
    let mut lines = format!("* command: `nandu lab run {}`\n", group.name);
    let mut origins: Vec<(String, Vec<&str>)> = Vec::new();
    for experiment in experiments::find(group.name) {
        let Some(origin) = sources.origin(experiment.name) else { continue };
        let line = format!("commit {}, {}, seed {}", origin.commit, origin.machine, origin.seeds);
        match origins.iter_mut().find(|(known, _)| *known == line) {
            Some((_, names)) => names.push(experiment.name),
            None => origins.push((line, vec![experiment.name])),
        }
    }
    let is_one = origins.len() == 1;
    for (line, names) in origins {
        let names = if is_one { String::new() } else { format!(": `{}`", names.join("`, `")) };
        lines.push_str(&format!("* run: {line}{names}\n"));
    }
    lines + "* all pages: [README.md](README.md); what the papers claim: [claims.md](claims.md)\n\n"
}
