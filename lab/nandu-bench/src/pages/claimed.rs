//! The table of claims.

use super::{Group, Sources};
use crate::claim::{Claim, Decision, Finding, Paper};
use crate::results::of_experiment;
use crate::{Verdict, claims, experiments};

const PAPERS: [(Paper, &str); 4] = [
    (
        Paper::MuTree,
        "D. Kang, D. Jung, J.-U. Kang, J.-S. Kim: mu-Tree: An Ordered Index Structure for NAND Flash Memory, EMSOFT 2007",
    ),
    (
        Paper::Grr,
        "R. Jin, H.-J. Cho, T.-S. Chung: A Group Round Robin Based B-tree Index Storage Scheme for Flash Memory Devices, IMCOM 2014",
    ),
    (Paper::Dffs, "Kim et al.: An Efficient Metadata Index Structure for Flash File Systems (DFFS)"),
    (
        Paper::FlexFs,
        "S. Lee, K. Ha, K. Zhang, J. Kim, J. Kim: FlexFS: A Flexible Flash File System for MLC NAND Flash Memory, USENIX ATC 2009",
    ),
];

const FINDINGS: [Finding; 4] = [Finding::Confirmed, Finding::Refuted, Finding::NotDecidable, Finding::NotRun];

const HEAD: &str = "# What the papers claim, and what came of it\n\n\
    Every table and every figure with results of the four papers nandu is built from, and what their texts claim besides. Claims are in our words. \
    The verdicts are made by the lab of the figures of a run; none is written by hand.\n\n\
    * **confirmed**: our figure is what the paper states; a printed number counts as met within 5 %, where nothing else is said.\n\
    * **refuted**: our figure is another, under the conditions that the paper states. Where these leave something open, the reason says what was \
    chosen. Which of several file systems is faster is decided by operations on flash, which the papers name as the causes.\n\
    * **not decidable**: an input, a setting, a trace that was never published, or the time of a machine of then. Figures beside such a claim \
    are what comes nearest.\n\n\
    Figures 1 to 6 of the mu-Tree paper, 1 to 5 of the GRR paper, 1 to 7 of the DFFS paper, and 1 to 7 and 9 of the FlexFS paper explain or show \
    a device, and claim nothing that the texts do not.\n\n";

pub(super) fn page(sources: &Sources<'_>) -> String {
    let decided: Vec<(&Claim, Decision)> = claims::all().map(|claim| (claim, claim.decide(sources.cells))).collect();
    let mut page = HEAD.to_owned();
    page.push_str(&counts(&decided));
    page.push_str("\n| where | claim | verdict | theirs | ours | experiment | why |\n|---|---|---|---|---|---|---|\n");
    for (claim, decision) in &decided {
        page.push_str(&row(claim, decision));
    }
    page.push_str(&all_experiments(sources));
    page
}

fn counts(decided: &[(&Claim, Decision)]) -> String {
    let count = |paper: Option<Paper>, finding: Finding| {
        let is_it = |(claim, decision): &&(&Claim, Decision)| {
            paper.is_none_or(|paper| claim.paper == paper) && decision.finding == finding
        };
        decided.iter().filter(is_it).count()
    };
    let shown: Vec<Finding> =
        FINDINGS.into_iter().filter(|&finding| finding != Finding::NotRun || count(None, finding) > 0).collect();
    let names: Vec<String> = shown.iter().map(Finding::to_string).collect();
    let mut table = format!("| paper | {} | in all |\n|---|{}---:|\n", names.join(" | "), "---:|".repeat(names.len()));
    let mut line = |name: &str, paper| {
        let numbers: Vec<usize> = shown.iter().map(|&finding| count(paper, finding)).collect();
        let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
        table.push_str(&format!("| {name} | {} | {} |\n", texts.join(" | "), numbers.iter().sum::<usize>()));
    };
    for (paper, source) in PAPERS {
        line(&format!("{}: {source}", paper.name()), Some(paper));
    }
    line("all", None);
    table
}

fn row(claim: &Claim, decision: &Decision) -> String {
    let finding = match decision.finding {
        Finding::Confirmed => "confirmed".to_owned(),
        other => format!("**{other}**"),
    };
    let lines = |texts: &[String]| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        texts.join("<br>")
    };
    let links = claim.experiments().into_iter().map(|name| match Group::link_to(name) {
        Some(link) => format!("[{name}]({link})"),
        None => format!("`{name}`"),
    });
    let columns = [
        format!("{}, {}", claim.paper.name(), claim.place),
        claim.says.to_owned(),
        finding,
        lines(&decision.theirs),
        lines(&decision.ours),
        links.collect::<Vec<_>>().join("<br>"),
        claim.reason.to_owned(),
    ];
    format!("| {} |\n", columns.map(|column| column.replace('|', "\\|")).join(" | "))
}

/// Every experiment there is, and what it has to do with claims.
fn all_experiments(sources: &Sources<'_>) -> String {
    let mut page = String::from(
        "\n## Experiments\n\n| experiment | claims | figures | demands kept | missed | about |\n|---|---:|---:|---:|---:|---|\n",
    );
    for experiment in experiments::all() {
        let cells = of_experiment(experiment.name, sources.cells);
        let verdicts: Vec<Verdict> = cells.iter().filter_map(|cell| Some(cell.judge()?.verdict)).collect();
        let missed = verdicts.iter().filter(|verdict| **verdict == Verdict::Missed).count();
        let claims = claims::all().filter(|claim| claim.experiments().contains(&experiment.name)).count();
        let link = Group::link_to(experiment.name).unwrap_or_default();
        page.push_str(&format!(
            "| [{}]({link}) | {claims} | {} | {} | {missed} | {} |\n",
            experiment.name,
            if cells.is_empty() { "not run".to_owned() } else { cells.len().to_string() },
            verdicts.len() - missed,
            experiment.about.replace('|', "\\|")
        ));
    }
    page
}
