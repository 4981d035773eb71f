//! The page of results: complete, well formed, and in need of nothing from elsewhere.

use std::collections::HashSet;

use nandu_bench::results::Results;
use nandu_bench::{Figure, Scale, experiments, page};

/// Figures for everything that any experiment draws or holds against others, and for what is easily overlooked: an
/// experiment that this build does not know, several seeds, text that looks like HTML.
pub(crate) fn sample() -> Results {
    let mut figures = Vec::new();
    let mut known = HashSet::new();
    let mut add =
        |experiment: &'static str, case: &str, metric: &'static str, published: Option<f64>, model: Option<f64>| {
            if known.insert((experiment, case.to_owned(), metric)) {
                for seed in 0..2 {
                    let value = 1.0 + seed as f64 / 8.0 + case.len() as f64 / 16.0;
                    let figure = Figure::new(experiment, case, metric, value, "reads");
                    figures.push(Figure { published, model, seed: Some(seed), ..figure });
                }
            }
        };
    for experiment in experiments::all() {
        for stated in experiment.stated {
            add(experiment.name, &stated.case.replace('*', "any"), stated.metric, stated.published, stated.model);
        }
        for plot in experiment.plots {
            for (x, series) in [("1KiB", "mu"), ("1KiB", "bplus"), ("16KiB", "mu"), ("256KiB", "bplus")] {
                let case = plot.cases.replace("{x}", x).replace("{series}", series).replace('*', "any");
                add(experiment.name, &case, plot.metric, Some(1.5), Some(1.25));
            }
        }
        add(experiment.name, "a-case-with-quite-a-long-name/of/several/words-and-numbers-1000000", "x", None, None);
    }
    add("elsewhere/unknown", "<b>&\"", "a_metric", None, None);
    Results { figures, scale: Scale::Full }
}

pub(crate) fn plot_count() -> usize {
    experiments::all().map(|experiment| experiment.plots.len()).sum()
}

/// What stands between `<` and `>`, in order.
fn tags(html: &str) -> Vec<&str> {
    let (head, rest) = html.split_once("<style>").unwrap();
    let rest = rest.split_once("</style>").unwrap().1;
    [head, rest]
        .into_iter()
        .flat_map(|part| part.split('<').skip(1))
        .map(|tag| tag.split_once('>').unwrap().0)
        .collect()
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let value = tag.split_once(&format!(" {name}=\""))?.1;
    value.split_once('"').map(|(value, _)| value)
}

#[test]
fn every_element_is_closed_where_it_belongs() {
    let html = page::html(&sample()).unwrap();
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(&html) {
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{open:?}");
        } else if !tag.ends_with('/') && !["meta", "link", "wbr", "!DOCTYPE"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn every_figure_table_and_plot_is_there() {
    let results = sample();
    let html = page::html(&results).unwrap();
    let count = |text: &str| html.matches(text).count();
    assert_eq!(count("<table class=\"figures\">"), experiments::all().count() + 1);
    assert_eq!(count("<td class=\"n ours\""), results.cells().len());
    assert_eq!((count("<figure>"), count("<svg ")), (plot_count(), plot_count()));
    for experiment in experiments::all() {
        assert!(html.contains(&format!("<h2>{}</h2>", experiment.name)), "{}", experiment.name);
    }
    assert!(html.contains("&lt;b&gt;&amp;&quot;") && !html.contains("<b>"));
}

#[test]
fn links_lead_somewhere_and_nothing_is_fetched_or_run() {
    let html = page::html(&sample()).unwrap();
    let mut ids = HashSet::new();
    for tag in tags(&html) {
        if let Some(id) = attribute(tag, "id") {
            assert!(ids.insert(id), "{id} stands there twice");
        }
    }
    for tag in tags(&html) {
        assert!(attribute(tag, "src").is_none() && !tag.starts_with("script"), "<{tag}>");
        match attribute(tag, "href") {
            Some(target) if tag.starts_with("link") => assert_eq!(target, "data:,"),
            Some(target) => assert!(ids.contains(target.strip_prefix('#').unwrap()), "{target}"),
            None => {}
        }
    }
    assert!(!html.contains("@import") && !html.contains("url("));
}

#[test]
fn the_same_results_make_the_same_page() {
    assert_eq!(page::html(&sample()).unwrap(), page::html(&sample()).unwrap());
}
