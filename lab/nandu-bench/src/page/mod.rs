//! Results as one page of HTML that needs nothing else: no network, no script, its own style and pictures.
//!
//! **The key decision** is that the page is made of the same raw figures as everything else, and of what this build knows
//! about the experiments. A page with a program in it, that draws and sorts, was refused: it would be blank where scripts are
//! not run, and could not be read as text.

mod notes;
mod overview;

use std::error::Error;

use crate::draw::escape;
use crate::folder::pictures;
use crate::results::{Cell, Results, of_experiment};
use crate::summary::first_upper;
use crate::{Experiment, Scale, Verdict, experiments, text};

const STYLE: &str = include_str!("style.css");
/// Most entries of a list that is shown without being asked for.
const OPEN_LIST_MAX: usize = 8;

/// The page.
///
/// # Errors
///
/// What the drawing library says.
pub fn html(results: &Results) -> Result<String, Box<dyn Error + Send + Sync>> {
    let cells = results.cells();
    let names = results.experiments();
    let mut sections = String::new();
    for name in &names {
        sections.push_str(&section(name, &of_experiment(name, &cells))?);
    }
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>nandu lab report</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <div class=\"layout\">\n{}{}<main>\n{sections}</main>\n\
         <footer><p>Made by nandu {} from the raw figures beside it.</p></footer>\n</div>\n</body>\n</html>\n",
        header(results, &cells, names.len()),
        contents(&names, &cells),
        env!("CARGO_PKG_VERSION"),
    ))
}

fn header(results: &Results, cells: &[Cell], experiment_count: usize) -> String {
    let seeds = cells.iter().map(Cell::count).max().unwrap_or(0);
    let seeds = if seeds > 1 { format!(", each with {seeds} seeds") } else { String::new() };
    let verdicts: Vec<Verdict> = cells.iter().filter_map(Cell::judge).map(|judgement| judgement.verdict).collect();
    let missed_count = verdicts.iter().filter(|verdict| **verdict == Verdict::Missed).count();
    let judged = match results.scale {
        Scale::Small => {
            "This was a small run, on smaller chips with fewer records. Limits and the numbers of others do not apply to it."
                .to_owned()
        }
        Scale::Full => format!(
            "Something is demanded of {} of them: {} keep to it{}.",
            verdicts.len(),
            verdicts.len() - missed_count,
            if missed_count == 0 { String::new() } else { format!(", <span class=\"missed\">{missed_count} do not</span>") },
        ),
    };
    let mut page = format!(
        "<header>\n<h1>nandu lab report</h1>\n\
         <p class=\"lead\">What storing on raw NAND flash costs, counted on simulated chips: {experiment_count} experiments, \
         {} figures{seeds}. {judged}</p>\n\
         <p>Every count is exact and the same on any machine. Beside our figure stands what a publication states for the \
         same case and what an independent model of it gives; the difference is ours against the published number, or \
         against the model&rsquo;s where nothing is published or what is published cannot be right. In the plots, published \
         numbers are rings, those of models crosses.</p>\n",
        cells.len()
    );
    let missed = cells.iter().filter(|cell| cell.judge().is_some_and(|judgement| judgement.verdict == Verdict::Missed));
    let items: String = missed.map(missed_item).collect();
    if missed_count > 0 {
        // A long list would stand between the reader and everything else.
        let open = if missed_count <= OPEN_LIST_MAX { " open" } else { "" };
        page.push_str(&format!("<details{open}><summary>What is missed</summary>\n<ul>\n{items}</ul>\n</details>\n"));
    }
    page + "</header>\n"
}

fn missed_item(cell: &Cell) -> String {
    let figure = cell.figure();
    let demand = cell.judge().map(|judgement| judgement.demand).unwrap_or_default();
    format!(
        "<li><a href=\"#{}\">{}</a> {} {}: {} {}, demanded {}</li>\n",
        text::slug(&figure.experiment),
        escape(&figure.experiment),
        escape(&figure.case),
        escape(&text::words(&figure.metric)),
        text::number(cell.mean()),
        escape(&figure.unit),
        escape(&demand)
    )
}

fn contents(names: &[&str], cells: &[Cell]) -> String {
    let item = |name: &&str| {
        let of_it = cells.iter().filter(|cell| cell.figure().experiment == *name);
        let missed = of_it.filter_map(Cell::judge).filter(|judgement| judgement.verdict == Verdict::Missed).count();
        let missed = if missed == 0 { String::new() } else { format!("<span class=\"missed\">{missed} missed</span>") };
        format!("<li><a href=\"#{}\">{}</a>{missed}</li>\n", text::slug(name), escape(name))
    };
    let items: String = names.iter().map(item).collect();
    format!(
        "<div class=\"contents\"><nav aria-label=\"Contents\">\n<h3>Contents</h3>\n<ol>\n{items}</ol>\n</nav></div>\n"
    )
}

fn section(name: &str, cells: &[&Cell]) -> Result<String, Box<dyn Error + Send + Sync>> {
    let experiment = experiments::named(name);
    let mut page = format!("<section id=\"{}\">\n<h2>{}</h2>\n", text::slug(name), escape(name));
    if let Some(experiment) = experiment {
        page.push_str(&format!("<p>{}.</p>\n{}", escape(&first_upper(experiment.about)), setup(experiment)));
    }
    let pictures = pictures(name, cells)?;
    if !pictures.is_empty() {
        page.push_str("<div class=\"plots\">\n");
        for picture in pictures {
            let (title, svg) = (escape(picture.title), picture.svg);
            page.push_str(&format!("<figure>\n<figcaption>{title}</figcaption>\n{svg}</figure>\n"));
        }
        page.push_str("</div>\n");
    }
    let overview = overview::table(cells);
    let is_alone = overview.is_empty();
    page.push_str(&overview);
    page.push_str(if is_alone { "" } else { "<h3>Every figure</h3>\n" });
    page.push_str(&table(cells));
    if let Some(experiment) = experiment {
        page.push_str(&remarks(experiment, cells));
    }
    Ok(page + "</section>\n")
}

fn setup(experiment: &Experiment) -> String {
    let source = experiment.source.map(|source| ("published numbers", source));
    let items = experiment.setup.iter().copied().chain(source);
    let items: String =
        items.map(|(what, given)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(what), escape(given))).collect();
    if items.is_empty() { items } else { format!("<dl class=\"setup\">\n{items}</dl>\n") }
}

/// What differs from the publication and why.
fn remarks(experiment: &Experiment, cells: &[&Cell]) -> String {
    let mut page = String::new();
    let is_there = |doubt: &&crate::Doubt| cells.iter().any(|cell| doubt.is_for(cell.figure()));
    let doubts = experiment.doubts.iter().filter(is_there).map(|doubt| {
        format!(
            "<li>{}, {}: {}</li>\n",
            escape(doubt.case),
            escape(&text::words(doubt.metric)),
            notes::inline(doubt.why)
        )
    });
    let doubts: String = doubts.collect();
    if !doubts.is_empty() {
        page.push_str(&format!("<h3>Published numbers that are doubted</h3>\n<ul>\n{doubts}</ul>\n"));
    }
    if !experiment.notes.is_empty() {
        page.push_str(&format!("<h3>What differs, and why</h3>\n{}", notes::html(experiment.notes)));
    }
    page
}

fn table(cells: &[&Cell]) -> String {
    let is_beside = |pick: fn(&Cell) -> Option<f64>| cells.iter().any(|cell| pick(cell).is_some());
    let columns = Columns {
        published: is_beside(|cell| cell.figure().published),
        model: is_beside(|cell| cell.figure().model),
        demand: cells.iter().any(|cell| cell.judge().is_some()),
    };
    let heading = |shown: bool, class: &str, name: &str| {
        if shown { format!("<th scope=\"col\"{class}>{name}</th>") } else { String::new() }
    };
    let mut page = String::from(
        "<div class=\"scroll\"><table class=\"figures\">\n<thead><tr><th scope=\"col\">case</th><th scope=\"col\">metric</th>",
    );
    let right = " class=\"n\"";
    page.push_str(&heading(true, right, "ours"));
    page.push_str(&heading(columns.published, right, "published"));
    page.push_str(&heading(columns.model, right, "model"));
    page.push_str(&heading(columns.published || columns.model, right, "difference"));
    page.push_str(&heading(columns.demand, "", "demanded"));
    page.push_str("</tr></thead>\n");
    for rows in cells.chunk_by(|left, right| left.figure().case == right.figure().case) {
        page.push_str("<tbody>\n");
        for (index, cell) in rows.iter().enumerate() {
            let case = case_html(&cell.figure().case);
            let head = format!("<th scope=\"rowgroup\" rowspan=\"{}\">{case}</th>", rows.len());
            page.push_str(&format!(
                "<tr>{}{}</tr>\n",
                if index == 0 { head } else { String::new() },
                columns.row(cell)
            ));
        }
        page.push_str("</tbody>\n");
    }
    page + "</table></div>\n"
}

/// The name of a case, which may be broken behind its slashes.
fn case_html(case: &str) -> String {
    escape(case).replace('/', "/<wbr>")
}

/// Which columns a table has besides those that all have.
struct Columns {
    published: bool,
    model: bool,
    demand: bool,
}

impl Columns {
    fn row(&self, cell: &Cell) -> String {
        let figure = cell.figure();
        let number = |label: &str, content: String| {
            // What has nothing to say is empty, so that narrow screens can leave it out.
            let class = if label == "ours" { "n ours" } else { "n" };
            format!("<td class=\"{class}\" data-label=\"{label}\">{content}</td>")
        };
        let optional = |value: Option<f64>| value.map(text::number).unwrap_or_default();
        let unit = format!(" <span class=\"unit\">{}</span>", escape(&figure.unit));
        let spread = if cell.least() < cell.most() {
            format!("<span class=\"spread\">{} to {}</span>", text::number(cell.least()), text::number(cell.most()))
        } else {
            String::new()
        };
        let mut row = format!("<td class=\"metric\">{}</td>", escape(&text::words(&figure.metric)));
        row.push_str(&number("ours", format!("<span>{}{unit}</span>{spread}", text::number(cell.mean()))));
        if self.published {
            let doubted = cell.experiment().is_some_and(|experiment| experiment.doubt_of(figure).is_some());
            let mark = if doubted { " (doubted)" } else { "" };
            row.push_str(&number("published", optional(figure.published) + mark));
        }
        if self.model {
            row.push_str(&number("model", optional(figure.model)));
        }
        if self.published || self.model {
            let difference = cell.difference().map(|(share, _)| text::percent(share));
            row.push_str(&number("difference", difference.unwrap_or_default()));
        }
        if self.demand {
            row.push_str(&format!("<td class=\"verdict\">{}</td>", cell.judge().map(verdict).unwrap_or_default()));
        }
        row
    }
}

fn verdict(judgement: crate::Judgement) -> String {
    let class = match judgement.verdict {
        Verdict::Within => "within",
        Verdict::Missed => "missed",
    };
    let demand = escape(&judgement.demand).replace("&lt;=", "&le;").replace("&gt;=", "&ge;").replace("+-", "&plusmn;");
    format!("<span class=\"{class}\">{}</span> <span class=\"demand\">{demand}</span>", judgement.verdict.name())
}
