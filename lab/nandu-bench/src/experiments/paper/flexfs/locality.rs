//! E4 and E5: the Locality load, until 95 % were written, and until 95 % live.

use nandu::fs::placement::Policy;

use super::bursts::{self, LOCALITY, Load, Run, Scheme, Until, rate_of};
use super::{CHIP, HOST, SOURCE, VOLUME, alphas, series, throughput};
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const WRITTEN: Experiment = Experiment {
    name: "paper/flexfs-e4",
    about: "throughput of the Locality load without and with locality-aware placement, as figure 12 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[
        CHIP,
        VOLUME,
        HOST,
        (
            "workload",
            "Locality: 4 MiB every 10 s, every fourth page one of the same 1 MiB, until 95 % of the capacity are written",
        ),
    ],
    notes: NOTES_WRITTEN,
    parts: 1,
    run: |context, _| run_written(context),
    stated: &[
        Stated::published("da/all", "mb_per_s", 2.45).modelled(2.51),
        Stated::published("la/all", "mb_per_s", 2.66).modelled(2.65),
        Stated::published("la/all", "alpha_last", 0.7),
        Stated::published("la/all", "gain_percent", 8.6).modelled(5.6),
    ],
    limits: &[
        Limit { metric: "mb_per_s", case: Some("da/all"), least: 2.40, most: 2.60 },
        Limit { metric: "mb_per_s", case: Some("la/all"), least: 2.55, most: 2.75 },
        // From 0.65 to 0.74, to two decimals.
        Limit { metric: "alpha_last", case: Some("la/all"), least: 0.645, most: 0.745 },
        Limit { metric: "gain_percent", case: None, least: 5.0, most: 9.0 },
    ],
    plots: &[throughput("Locality: dynamic allocation and locality"), alphas("Locality: the share for SLC blocks")],
    ..Experiment::PLAIN
};

const NOTES_WRITTEN: &str = "The pages that are written again and again belong to one file, the others of each burst to a new one. Both schemes \
are as published. Alpha comes to rest where the idle time left by its own bursts suffices: a burst takes 1.52 s, so 7.48 s of idle time for \
the 11.53 s that 768 pages take, 0.649. The paper gives the gain as 7.9 %, relative to the larger number; 2.66 over 2.45 are 8.6 %.

`pages_moved_hot` counts pages of hot files that were migrated, which is work for nothing: they are written again soon. With one SLC block for \
hot and cold pages, as published (`la`), some are; with one for each (`la-split`) hardly any.";

pub(crate) const LIVE: Experiment = Experiment {
    name: "paper/flexfs-e5",
    about: "throughput of the Locality load until 95 % of the capacity live, as published and with nandu's decisions",
    source: Some(SOURCE),
    setup: &[
        CHIP,
        VOLUME,
        HOST,
        (
            "workload",
            "Locality: 4 MiB every 10 s, every fourth page one of the same 1 MiB, until 95 % of the capacity live",
        ),
    ],
    notes: NOTES_LIVE,
    parts: DECISIONS.len(),
    run: |context, part| run_live(&DECISIONS[part], context),
    stated: &[Stated::model("la/all", "mb_per_s", 2.51), Stated::model("la-published/all", "mb_per_s", 0.54)],
    limits: &[Limit::at_least("mb_per_s", 2.4).in_case("la/all")],
    plots: &[throughput("Locality, until 95 % live")],
    ..Experiment::PLAIN
};

const NOTES_LIVE: &str = "The paper ends its runs when 95 % were written, when a quarter of that is dead. Going on until 95 % live asks more of \
any placement: blocks are short for longer, and dead pages have to be collected. Nothing is published for it.";

const SCHEMES: [Scheme; 3] = [
    Scheme::published("da", Policy::DYNAMIC),
    Scheme::published("la", Policy::LOCALITY),
    Scheme::decided("la-split", Policy::LOCALITY),
];

const DECISIONS: [Scheme; 2] =
    [Scheme::decided("la", Policy::LOCALITY), Scheme::published("la-published", Policy::LOCALITY)];

fn run_written(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let name = WRITTEN.name;
    let mut runs = Vec::new();
    for scheme in &SCHEMES {
        runs.push(bursts::run(scheme, LOCALITY, context)?);
    }
    let gain = rate_of(&runs[1].bursts) / rate_of(&runs[0].bursts) - 1.0;
    let mut figures = vec![Figure::new(name, "la/all", "gain_percent", gain * 100.0, "%")];
    for (scheme, run) in SCHEMES.iter().zip(&runs) {
        figures.extend(whole(name, scheme.name, run));
    }
    for (scheme, run) in SCHEMES.iter().zip(&runs) {
        figures.extend(series(name, scheme.name, run));
    }
    Ok(figures)
}

fn run_live(scheme: &Scheme, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let run = bursts::run(scheme, Load { until: Until::Live(95), ..LOCALITY }, context)?;
    let mut figures = whole(LIVE.name, scheme.name, &run);
    figures.extend(series(LIVE.name, scheme.name, &run));
    Ok(figures)
}

fn whole(experiment: &'static str, scheme: &str, run: &Run) -> Vec<Figure> {
    let case = format!("{scheme}/all");
    let figure = |metric, value, unit| Figure::new(experiment, &case, metric, value, unit);
    vec![
        figure("mb_per_s", rate_of(&run.bursts), "MiB/s"),
        figure("mb_per_s_slowest", run.slowest(), "MiB/s"),
        figure("alpha_last", run.bursts.last().map_or(0.0, |burst| burst.alpha), "ratio"),
        figure("pages_moved", (run.done.migrated + run.done.collected) as f64, "pages"),
        figure("pages_moved_hot", run.done.migrated_hot as f64, "pages"),
        figure("pages_moved_urgently", run.done.urgent as f64, "pages"),
        figure("pages_collected", run.done.collected as f64, "pages"),
    ]
}
