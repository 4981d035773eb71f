//! Figure 8: time over the share of writes.

use nandu_inpage::Options;

use super::rig::{self, Run};
use super::{SETUP, SOURCE};
use crate::{Accept, BenchError, Beside, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/grr-figure8",
    about: "time of GRR beside IPL over the share of reads and writes",
    source: Some(SOURCE),
    setup: SETUP,
    notes: NOTES,
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
    // So narrow that the gain rises from each mix to the next.
    accept: &[Accept::relative("speedup_over_ipl", 0.02).beside(Beside::Model)],
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

const NOTES: &str = "The paper's claim: with reads alone GRR is as fast as IPL; the gap grows with the share of writes, is clear above 60 %, \
and with writes alone GRR is 2.14 times as fast.

All of it comes out, under three assumptions that the paper does not state. A read takes only log pages that are programmed: if all that a block \
is granted were read, as the paper's table of costs says literally, GRR would take 2.5 times as long as IPL with reads alone. Pages have \
4 KiB and blocks 32 of them. And IPL has one log page of 4 KiB in a block, which is half of what it had when it was published. Most of the \
gain is that GRR has more log space: with as much of it, IPL is within 6 % (`paper/grr-fair`).";

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
