//! E3 and E10: the Busy load, as published and with what nandu decides otherwise.

use nandu::fs::placement::Policy;

use super::bursts::{self, BUSY, Burst, Run, Scheme, rate_of};
use super::{CHIP, HOST, SOURCE, VOLUME, alphas, series, throughput};
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

const WORKLOAD: (&str, &str) = ("workload", "Busy: 4 MiB every 10 s until 95 % of the capacity are written");

pub(crate) const PUBLISHED: Experiment = Experiment {
    name: "paper/flexfs-e3",
    about: "throughput of the Busy load with background migration and with dynamic allocation, as figure 11 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_PUBLISHED,
    parts: 1,
    run: |context, _| run_published(context),
    stated: &[
        Stated::published("bm/all", "crossover_percent", 67.0).modelled(65.0),
        Stated::published("da/all", "alpha_settled", 0.5).modelled(0.49),
        Stated::model("da/all", "mb_per_s_to_92", 2.5),
    ],
    limits: &[
        Limit { metric: "crossover_percent", case: None, least: 62.0, most: 69.0 },
        Limit { metric: "alpha_settled", case: Some("da/all"), least: 0.45, most: 0.55 },
        Limit { metric: "mb_per_s_to_92", case: Some("da/all"), least: 2.4, most: 2.6 },
    ],
    plots: &[throughput("Busy: background migration and dynamic allocation"), alphas("Busy: the share for SLC blocks")],
    ..Experiment::PLAIN
};

const NOTES_PUBLISHED: &str = "`crossover_percent` is what was written at the end of the first burst in which background migration alone (BM) \
is slower than with dynamic allocation (DA). Both are as published: no cap on the share, and migration that the host waits for is paced, \
so what follows the fall is slower than it has to be; `paper/flexfs-e10` shows the same load with nandu's decisions. Beyond 92 % dynamic \
allocation falls as well, so `alpha_settled` and `mb_per_s_to_92` are of the bursts before.

Idle time that counts is a gap less the second of waiting at its beginning, in which nothing may be migrated; with the whole gap alpha \
would be 0.55.";

pub(crate) const DECIDED: Experiment = Experiment {
    name: "paper/flexfs-e10",
    about: "the slowest burst of the Busy load when the share of SLC pages is capped by the free blocks",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_DECIDED,
    parts: DECISIONS.len(),
    run: |context, part| run_decided(&DECISIONS[part], context),
    stated: &[Stated::model("*/all", "mb_per_s_slowest", 2.11)],
    limits: &[
        Limit::at_least("mb_per_s_slowest", 2.1).in_case("da/all"),
        Limit::at_least("mb_per_s_slowest", 2.1).in_case("la/all"),
        Limit::at_most("pages_moved_urgently", 0.0).in_case("da/all"),
        Limit::at_most("pages_moved_urgently", 0.0).in_case("la/all"),
    ],
    plots: &[throughput("Busy: the share capped by the free blocks")],
    ..Experiment::PLAIN
};

const NOTES_DECIDED: &str = "The plain MLC rate is 2.11 MiB/s: 855 us of processor and 994 us of program for 4 KiB. The published policy falls \
far below it when blocks run short (`da-published`, `la-published`), because the share that idle time permits says nothing of room. The cap \
keeps as many free blocks as this window needs and another one in MLC blocks; what it takes from the share goes to MLC blocks directly, so the \
host never waits for a page to be moved. With room for this window alone, 256 pages were moved while the host waited and a burst fell to 1.75 MiB/s: \
pages of the first bursts, which all went to SLC blocks, are never migrated as long as alpha takes all idle time for new ones. `pages_moved_urgently` counts those for which it did.";

const SCHEMES: [Scheme; 2] = [Scheme::published("bm", Policy::BACKGROUND), Scheme::published("da", Policy::DYNAMIC)];

const DECISIONS: [Scheme; 4] = [
    Scheme::decided("da", Policy::DYNAMIC),
    Scheme::decided("la", Policy::LOCALITY),
    Scheme::published("da-published", Policy::DYNAMIC),
    Scheme::published("la-published", Policy::LOCALITY),
];

fn run_published(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let name = PUBLISHED.name;
    let [bm, da] = [bursts::run(&SCHEMES[0], BUSY, context)?, bursts::run(&SCHEMES[1], BUSY, context)?];
    let slower = bm.bursts.iter().zip(&da.bursts).find(|(bm, da)| bm.mb_per_s() < da.mb_per_s());
    // Before it dynamic allocation is the slower one: it has to have begun to give pages to MLC blocks.
    let crossover = slower.map_or(100.0, |(bm, _)| bm.written);
    let mut figures = vec![Figure::new(name, "bm/all", "crossover_percent", crossover, "%")];
    for (scheme, run) in SCHEMES.iter().zip([&bm, &da]) {
        figures.extend(whole(name, scheme.name, run));
    }
    for (scheme, run) in SCHEMES.iter().zip([&bm, &da]) {
        figures.extend(series(name, scheme.name, run));
    }
    Ok(figures)
}

fn run_decided(scheme: &Scheme, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let run = bursts::run(scheme, BUSY, context)?;
    let mut figures = whole(DECIDED.name, scheme.name, &run);
    figures.extend(series(DECIDED.name, scheme.name, &run));
    Ok(figures)
}

fn whole(experiment: &'static str, scheme: &str, run: &Run) -> Vec<Figure> {
    let case = format!("{scheme}/all");
    let figure = |metric, value, unit| Figure::new(experiment, &case, metric, value, unit);
    let to_92: Vec<Burst> = run.bursts.iter().copied().filter(|burst| burst.written <= 92.0).collect();
    vec![
        figure("mb_per_s", rate_of(&run.bursts), "MiB/s"),
        figure("mb_per_s_to_92", rate_of(&to_92), "MiB/s"),
        figure("mb_per_s_slowest", run.slowest(), "MiB/s"),
        figure("alpha_settled", to_92.last().map_or(0.0, |burst| burst.alpha), "ratio"),
        figure("pages_moved_urgently", run.done.urgent as f64, "pages"),
    ]
}
