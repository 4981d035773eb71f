//! Results as Markdown.

use crate::folder::{PLOTS, drawn};
use crate::results::{Cell, Results, of_experiment};
use crate::{Scale, experiments, text};

/// Every experiment with its tables, pictures and notes.
pub(crate) fn markdown(results: &Results) -> String {
    let cells = results.cells();
    let mut page = String::from("# Summary\n");
    if results.scale == Scale::Small {
        page.push_str("\nA small run: limits and the numbers of others do not apply.\n");
    }
    for name in results.experiments() {
        let cells = of_experiment(name, &cells);
        page.push_str(&section(name, &cells, &cells));
    }
    page
}

/// An experiment with a table of some of its cells, and its pictures and notes.
pub(crate) fn section(name: &str, cells: &[&Cell], shown: &[&Cell]) -> String {
    let mut page = format!("\n## {name}\n\n");
    let experiment = experiments::named(name);
    if let Some(experiment) = experiment {
        page.push_str(&format!("{}.\n\n", first_upper(experiment.about)));
        for (what, given) in experiment.setup {
            page.push_str(&format!("* {what}: {given}\n"));
        }
        if let Some(source) = experiment.source {
            page.push_str(&format!("* published numbers: {source}\n"));
        }
        page.push('\n');
    }
    page.push_str("| case | metric | ours | unit | published | model | difference | demanded | |\n");
    page.push_str("|---|---|---:|---|---:|---:|---:|---|---|\n");
    for cell in shown {
        page.push_str(&row(cell));
    }
    if shown.len() < cells.len() {
        page.push_str(&format!("\n{} more figures, which are drawn, are in `raw.csv`.\n", cells.len() - shown.len()));
    }
    for (file, plot) in drawn(name, cells) {
        page.push_str(&format!("\n![{}]({PLOTS}/{file})\n", plot.title));
    }
    if let Some(experiment) = experiment {
        for doubt in experiment.doubts.iter().filter(|doubt| cells.iter().any(|cell| doubt.is_for(cell.figure()))) {
            page.push_str(&format!("\n`{} {}` as published is doubted: {}\n", doubt.case, doubt.metric, doubt.why));
        }
        if !experiment.notes.is_empty() {
            page.push_str(&format!("\n{}\n", experiment.notes.trim()));
        }
    }
    page
}

fn row(cell: &Cell) -> String {
    let figure = cell.figure();
    let optional = |value: Option<f64>| value.map(text::number).unwrap_or_default();
    let spread = if cell.least() < cell.most() {
        format!(" ({} to {}, {} seeds)", text::number(cell.least()), text::number(cell.most()), cell.count())
    } else {
        String::new()
    };
    let difference = cell.difference().map(|(share, whose)| format!("{} {whose}", text::percent(share)));
    let judgement = cell.judge();
    let columns = [
        figure.case.clone(),
        figure.metric.to_string(),
        text::number(cell.mean()) + &spread,
        figure.unit.to_string(),
        optional(figure.published),
        optional(figure.model),
        difference.unwrap_or_default(),
        judgement.as_ref().map(|judgement| judgement.demand.clone()).unwrap_or_default(),
        judgement.map(|judgement| judgement.verdict.name().to_owned()).unwrap_or_default(),
    ];
    format!("| {} |\n", columns.map(|column| column.replace('|', "\\|")).join(" | "))
}

/// A sentence made of a line that begins small, unless its first word is a name with other letters in it.
pub(crate) fn first_upper(line: &str) -> String {
    let mut letters = line.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
