//! The committed pages of results: they are what comes of the committed figures, and no claim is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nandu_bench::results::Results;
use nandu_bench::{claims, experiments, origin, pages};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

const AGAIN: &str = "make them again: `nandu lab report docs/results --pages`";

/// Whoever changes a claim, what is demanded, what others state, a note or how pages look changes the pages, too.
#[test]
fn pages_are_what_comes_of_the_figures_beside_them() {
    let results = Results::read(&folder()).unwrap();
    let rendered = pages::render(&results, &origin::read(&folder()).unwrap()).unwrap();
    for page in &rendered {
        let there = fs::read_to_string(folder().join(&page.path)).unwrap_or_default();
        // Compared by lines, so that a failure shows the first that differs.
        let differing = page.text.lines().zip(there.lines()).find(|(wanted, found)| wanted != found);
        assert_eq!(differing, None, "{}: {AGAIN}", page.path);
        assert_eq!(page.text.len(), there.len(), "{}: {AGAIN}", page.path);
    }
    let pictures =
        |paths: &mut dyn Iterator<Item = String>| paths.filter(|path| path.ends_with(".svg")).collect::<BTreeSet<_>>();
    let there = fs::read_dir(folder().join("plots")).unwrap();
    let there = pictures(&mut there.map(|entry| format!("plots/{}", entry.unwrap().file_name().to_string_lossy())));
    assert_eq!(there, pictures(&mut rendered.into_iter().map(|page| page.path)), "{AGAIN}");
}

/// The table has each claim with a verdict, and each experiment that there is; every experiment on a paper was run.
#[test]
fn the_table_names_every_claim_and_every_experiment() {
    let table = fs::read_to_string(folder().join("claims.md")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).collect();
    for claim in claims::all() {
        let place = format!("{}, {} | {} | ", claim.paper.name(), claim.place, claim.says);
        let row = rows.iter().find(|row| row.contains(&place)).unwrap_or_else(|| panic!("{place}: {AGAIN}"));
        let verdict = row.split(&place).nth(1).unwrap().split(" | ").next().unwrap();
        assert!(["confirmed", "**refuted**", "**not decidable**"].contains(&verdict), "{row}");
    }
    for experiment in experiments::all() {
        assert!(rows.iter().any(|row| row.starts_with(&format!("| [{}](", experiment.name))), "{}", experiment.name);
    }
    let run = Results::read(&folder()).unwrap();
    let origins = origin::read(&folder()).unwrap();
    for experiment in experiments::find("paper") {
        assert!(run.experiments().contains(&experiment.name), "{} was not run", experiment.name);
        assert!(origins.iter().any(|origin| origin.experiment == experiment.name), "{}: where from?", experiment.name);
    }
}
