//! Figure 8: time over the share of writes.

use nandu_inpage::Options;

use super::rig::{self, Run};
use super::{LIMITS_OF_THE_CLAIM, SETUP, SOURCE};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/grr-figure8",
    about: "time of GRR beside IPL over the share of reads and writes",
    source: Some(SOURCE),
    setup: SETUP,
    notes: LIMITS_OF_THE_CLAIM,
    parts: CASES.len(),
    run: |context, part| run_case(CASES[part], context),
    stated: &[
        Stated::published("100/0", "speedup_over_ipl", 1.0).modelled(1.0),
        Stated::model("80/20", "speedup_over_ipl", 1.17),
        Stated::model("60/40", "speedup_over_ipl", 1.54),
        Stated::model("50/50", "speedup_over_ipl", 1.68),
        Stated::model("40/60", "speedup_over_ipl", 1.79),
        Stated::model("20/80", "speedup_over_ipl", 1.97),
        Stated::published("0/100", "speedup_over_ipl", 2.14).modelled(2.10),
    ],
    limits: &[
        Limit { metric: "speedup_over_ipl", case: Some("100/0"), least: 0.99, most: 1.01 },
        Limit { metric: "speedup_over_ipl", case: Some("0/100"), least: 1.85, most: 2.4 },
    ],
    plots: &[Plot {
        title: "How much faster than IPL, by the share of reads and writes",
        metric: "speedup_over_ipl",
        cases: "{x}/{series}",
        x: "reads in 100 operations",
        y: "time of IPL over time of GRR",
        kind: PlotKind::Bars,
    }],
    ..Experiment::PLAIN
};

/// Names, and puts in 100 operations.
const CASES: [(&str, u32); 7] =
    [("100/0", 0), ("80/20", 20), ("60/40", 40), ("50/50", 50), ("40/60", 60), ("20/80", 80), ("0/100", 100)];

fn run_case((name, writes): (&'static str, u32), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let ipl = rig::run(Run { options: Options::IPL, is_blind: false, writes }, context, (0, 2))?;
    let grr = rig::run(Run { options: Options::GRR, is_blind: false, writes }, context, (1, 2))?;
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, name, metric, value, unit);
    Ok(vec![
        figure("speedup_over_ipl", ipl.seconds / grr.seconds, "ratio"),
        figure("seconds", grr.seconds, "s"),
        figure("ipl_seconds", ipl.seconds, "s"),
        figure("erases", grr.counters.erases as f64, "erases"),
        figure("ipl_erases", ipl.counters.erases as f64, "erases"),
    ])
}
