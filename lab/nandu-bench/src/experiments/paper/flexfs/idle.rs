//! E1 and E2: the Idle load, without and with background migration.

use nandu::fs::placement::Policy;

use super::bursts::{self, Burst, IDLE, Run, Scheme, rate_of};
use super::{CHIP, HOST, SOURCE, VOLUME, series, throughput};
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

const WORKLOAD: (&str, &str) = ("workload", "Idle: 4 MiB every 25 s until 95 % of the capacity are written");

pub(crate) const BASELINE: Experiment = Experiment {
    name: "paper/flexfs-e1",
    about: "throughput of the Idle load when pages are migrated only once blocks run short, as figure 10 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_BASELINE,
    parts: BASELINES.len(),
    run: |context, part| run(BASELINE.name, &BASELINES[part], context),
    stated: &[
        Stated::published("baseline/all", "falls_at_percent", 50.0).modelled(49.0),
        Stated::published("baseline/all", "mb_per_s_after", 0.1).modelled(0.13),
        Stated::model("baseline/all", "mb_per_s_before", 3.04),
        Stated::model("unpaced/all", "mb_per_s_after", 0.85),
    ],
    limits: &[
        Limit { metric: "mb_per_s_before", case: None, least: 2.98, most: 3.10 },
        Limit { metric: "falls_at_percent", case: None, least: 48.0, most: 50.0 },
        Limit { metric: "mb_per_s_after", case: Some("baseline/all"), least: 0.10, most: 0.13 },
        // From 0.8 to 0.9, to one decimal.
        Limit { metric: "mb_per_s_after", case: Some("unpaced/all"), least: 0.75, most: 0.95 },
    ],
    plots: &[throughput("Idle: nothing is migrated ahead")],
    ..Experiment::PLAIN
};

const NOTES_BASELINE: &str = "Everything goes to SLC blocks, so half of the capacity is full when they run short; from then on two pages have \
to be moved for each page of the host. `falls_at_percent` is what was written when the first burst ended that was slower than nine tenths \
of the first. `idle_percent` is the time outside of requests until then.

The paper's fall to about 100 KB/s comes out only if steps of migration keep their period of 15 ms even while the host waits for them, \
which the paper does not say. Unpaced, which is what nandu does, it is several times faster. `mb_per_s_after` is the rate of all bursts after \
the one in which it falls.";

pub(crate) const BACKGROUND: Experiment = Experiment {
    name: "paper/flexfs-e2",
    about: "throughput of the Idle load when pages are migrated in idle time, as figure 10 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_BACKGROUND,
    parts: 1,
    run: |context, _| run(BACKGROUND.name, &Scheme::published("bm", Policy::BACKGROUND), context),
    stated: &[
        Stated::published("bm/all", "falls_at_percent", 94.0).modelled(94.0),
        Stated::model("bm/all", "mb_per_s_before", 3.04),
    ],
    limits: &[
        Limit { metric: "mb_per_s_before", case: None, least: 2.98, most: 3.10 },
        Limit { metric: "falls_at_percent", case: None, least: 93.0, most: 95.0 },
    ],
    plots: &[throughput("Idle: pages are migrated in idle time")],
    ..Experiment::PLAIN
};

const NOTES_BACKGROUND: &str = "The gap between two bursts suffices to migrate the first, so every burst finds free blocks as long as a burst \
fits into the rest of the capacity as SLC pages. A fall can only be seen at the end of a burst, and bursts end at multiples of 6.25 %: what \
is given is the end of the first slow burst.";

const BASELINES: [Scheme; 2] = [
    Scheme::published("baseline", Policy::BASELINE),
    Scheme { is_urgent_paced: false, ..Scheme::published("unpaced", Policy::BASELINE) },
];

fn run(experiment: &'static str, scheme: &Scheme, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let run = bursts::run(scheme, IDLE, context)?;
    let mut figures = shape(experiment, scheme.name, &run);
    figures.extend(series(experiment, scheme.name, &run));
    Ok(figures)
}

/// Where throughput falls, and what it is before and after.
fn shape(experiment: &'static str, scheme: &str, run: &Run) -> Vec<Figure> {
    let case = format!("{scheme}/all");
    let figure = |metric, value, unit| Figure::new(experiment, &case, metric, value, unit);
    let fall = run.fall().unwrap_or(run.bursts.len());
    let (before, after) = run.bursts.split_at(fall);
    let mut figures = vec![
        figure("mb_per_s_before", rate_of(before), "MiB/s"),
        figure("falls_at_percent", after.first().map_or(100.0, |burst: &Burst| burst.written), "%"),
    ];
    let (count, busy_us) = (before.len() as f64, before.iter().map(|burst| burst.busy_us).sum::<u64>() as f64);
    figures.push(figure("idle_percent", 100.0 - busy_us / 1e4 / (count * IDLE.period_s as f64), "%"));
    // The burst in which it falls is fast at its beginning.
    if let [_, after @ ..] = after
        && !after.is_empty()
    {
        figures.push(figure("mb_per_s_after", rate_of(after), "MiB/s"));
    }
    figures.push(figure("pages_moved_urgently", run.done.urgent as f64, "pages"));
    figures.push(figure("blocks_held_most", f64::from(run.done.held_max), "blocks"));
    figures
}
