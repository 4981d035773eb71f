//! GRR beside an IPL that is allowed as much log space.

use nandu_inpage::{LogPages, Options};

use super::rig::{self, Run};
use super::{SETUP, SOURCE};
use crate::{BenchError, Context, Experiment, Figure, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/grr-fair",
    about: "GRR with four log pages beside IPL with its original log region (k = 2) and with the log pages that suit it best",
    source: Some(SOURCE),
    setup: SETUP,
    notes: "The paper's claim, that GRR is up to 2.14 times as fast as IPL, is one about log space: it gives IPL one log page in a block and GRR \
four.

IPL as it was published has a log region of 8 KiB in 128 KiB, two pages here and not the one that the paper gives it. Beside \
that, and more so beside an IPL with as many log pages as suit it best, little of the gain is left: groups and turns give next to \
nothing, and the rest is the buffer. What does remain a clear gain is changes that do not read their leaf (`best/blind`), which an IPL \
with LRU cannot make.",
    parts: MIXES.len(),
    run: |context, part| run_mix(MIXES[part], context),
    stated: &[
        Stated::model("20/80/ipl-k=2", "speedup_over_ipl", 1.33),
        Stated::model("0/100/ipl-k=2", "speedup_over_ipl", 1.39),
        Stated::model("*/*/best", "speedup_over_ipl", 1.055),
        Stated::model("*/*/best-blind", "speedup_over_ipl", 1.8),
    ],
    plots: &[Plot {
        title: "How much faster GRR (k = 4) is than IPL with k log pages",
        metric: "speedup_over_ipl",
        cases: "{series}/*/{x}",
        x: "log pages of IPL",
        y: "time of IPL over time of GRR",
        kind: PlotKind::Bars,
    }],
    ..Experiment::PLAIN
};

const MIXES: [(&str, u32); 2] = [("20/80", 80), ("0/100", 100)];
const LOG_PAGES_MAX: u8 = 8;

fn run_mix((mix, writes): (&'static str, u32), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let total = u64::from(LOG_PAGES_MAX) + 3;
    let grr = rig::run(Run { options: Options::GRR, is_blind: false, writes }, context, (0, total))?;
    let blind = rig::run(Run { options: Options::GRR, is_blind: true, writes }, context, (1, total))?;
    let mut figures = Vec::new();
    let mut best = (f64::INFINITY, 0);
    let figure =
        |case: &str, metric, value, unit| Figure::new(EXPERIMENT.name, &format!("{mix}/{case}"), metric, value, unit);
    for count in 1..=LOG_PAGES_MAX {
        let options = Options { log_pages: LogPages::Static(count), ..Options::IPL };
        let ipl = rig::run(Run { options, is_blind: false, writes }, context, (u64::from(count) + 1, total))?;
        let case = format!("ipl-k={count}");
        figures.push(figure(&case, "speedup_over_ipl", ipl.seconds / grr.seconds, "ratio"));
        figures.push(figure(&case, "ipl_seconds", ipl.seconds, "s"));
        if ipl.seconds < best.0 {
            best = (ipl.seconds, count);
        }
    }
    // Nodes of 8 KiB with 8 KiB of log beside fifteen of them.
    let options = Options { node_pages: 2, ..Options::IPL };
    let original = rig::run(Run { options, is_blind: false, writes }, context, (total - 1, total))?;
    figures.push(figure("ipl-original", "speedup_over_ipl", original.seconds / grr.seconds, "ratio"));
    figures.push(figure("ipl-original", "ipl_seconds", original.seconds, "s"));
    figures.push(figure("best", "ipl_log_pages", f64::from(best.1), "pages"));
    figures.push(figure("best", "speedup_over_ipl", best.0 / grr.seconds, "ratio"));
    figures.push(figure("best-blind", "speedup_over_ipl", best.0 / blind.seconds, "ratio"));
    Ok(figures)
}
