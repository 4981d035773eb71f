//! What the gain consists of, blind changes, and the index as a product.

use nandu_inpage::{Cells, GroupSize, LogPages, LogRead, Options, Policy, Splits};

use super::rig::{self, Run};
use super::{SETUP, SOURCE};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/grr-parts",
    about: "the parts of GRR one by one, blind changes, ascending inserts, a million operations, and the index as a product",
    source: Some(SOURCE),
    setup: SETUP,
    notes: NOTES,
    parts: PART_COUNT,
    run: run_part,
    stated: &[
        Stated::model("20/80/storage", "speedup_over_ipl", 1.83),
        Stated::model("20/80/buffer-clean-first", "speedup_over_ipl", 1.0),
        Stated::model("20/80/storage-buffer", "speedup_over_ipl", 1.97),
        Stated::model("20/80/blind-k=1", "speedup_over_ipl", 1.31),
        Stated::model("20/80/blind-k=2", "speedup_over_ipl", 2.13),
        Stated::model("20/80/blind-k=4", "speedup_over_ipl", 3.12),
        Stated::model("20/80/blind-k=8", "speedup_over_ipl", 3.88),
        Stated::model("0/100/blind-k=4", "speedup_over_ipl", 3.74),
        Stated::model("80/20/product", "speedup_over_ipl", 1.95),
        Stated::model("50/50/product", "speedup_over_ipl", 3.12),
        Stated::model("20/80/product", "speedup_over_ipl", 4.34),
        Stated::model("0/100/product", "speedup_over_ipl", 5.20),
        Stated::model("ascending", "speedup_over_ipl", 1.01),
        Stated::model("million/20/80", "speedup_over_ipl", 1.96),
        Stated::model("million/20/80", "ipl_erases", 89_222.0),
        Stated::model("million/20/80", "erases", 21_010.0),
        Stated::model("million/20/80", "ipl_seconds", 1209.0),
        Stated::model("million/20/80", "seconds", 616.0),
        Stated::model("million/0/100", "speedup_over_ipl", 2.10),
    ],
    accept: &[
        Accept::relative("speedup_over_ipl", 0.1).in_case("*/*/product"),
        Accept::relative("speedup_over_ipl", 0.05).in_case("million/*/*"),
        Accept::relative("erases", 0.05).in_case("million/*/*"),
        Accept::relative("ipl_erases", 0.05).in_case("million/*/*"),
        Accept::relative("seconds", 0.1).in_case("million/*/*"),
        Accept::relative("ipl_seconds", 0.1).in_case("million/*/*"),
    ],
    limits: &[
        Limit::at_least("speedup_over_ipl", 2.7).in_case("20/80/blind-k=4"),
        Limit { metric: "best_log_pages", case: Some("20/80/blind"), least: 8.0, most: 8.0 },
        Limit::at_least("speedup_over_ipl", 0.95).in_case("ascending"),
        Limit::at_most("time_over_best_static", 1.1),
    ],
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper's claim: storage and buffer together make GRR what it is, and the buffer gives a hit ratio up to 1.6 times that of \
IPL.

What holds: the storage alone (`storage`) gives 1.83 of the 1.97, and it does so because a block has four log pages and not one; the buffer alone \
(`buffer`) gives 1.13; splitting lazily and telling two nodes gives nothing that can be measured (`storage-buffer-eager`). A clean-first \
buffer without the semi-clean state gives nothing (`buffer-clean-first`).

Changes that do not read their leaf (`blind`), which the paper allows and does not measure, gain more than all of that, and then eight log pages \
are best and not four. Ascending inserts cost what they cost IPL, because a leaf that is split while in use waits in memory; programmed \
at once, they would cost nine times as much.

As a product (`product`: only log pages with records of the node are read, blind changes, and each merge decides how many log pages its block \
has) GRR is within a few percent of the number of log pages that would have been best for the mix (`time_over_best_static`), which nobody knows \
beforehand. IPL reads as well there.";

const PART_COUNT: usize = 5 + PRODUCT_MIXES.len();

/// Mixes for the product, and puts in 100 operations.
const PRODUCT_MIXES: [(&str, u32); 7] =
    [("100/0", 0), ("80/20", 20), ("60/40", 40), ("50/50", 50), ("40/60", 60), ("20/80", 80), ("0/100", 100)];

/// The index as a product, but in the paper's layout and with the paper's records.
const PRODUCT: Options = Options {
    log_pages: LogPages::Adaptive(4),
    group: GroupSize::Dynamic(16),
    log_read: LogRead::Smart,
    ..Options::GRR
};

fn run_part(context: &mut Context<'_>, part: usize) -> Result<Vec<Figure>, BenchError> {
    match part {
        0 => pieces(context),
        1 => blind(context),
        2 => ascending(context),
        3 => million("million/20/80", 80, context),
        4 => million("million/0/100", 100, context),
        _ => {
            let (mix, writes) = PRODUCT_MIXES[part - 5];
            product(mix, writes, context)
        }
    }
}

fn figure(case: &str, metric: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure::new(EXPERIMENT.name, case, metric, value, unit)
}

/// Storage and buffer each without the other.
fn pieces(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let storage = Options { policy: Policy::Lru, ..Options::GRR };
    let buffer = Options { policy: Policy::SemiClean, ..Options::IPL };
    let clean_first = Options { policy: Policy::CleanFirst, ..Options::GRR };
    let eager = Options { splits: Splits::EagerThree, ..Options::GRR };
    let cases = [
        ("20/80/storage", storage),
        ("20/80/buffer", buffer),
        ("20/80/buffer-clean-first", Options { policy: Policy::CleanFirst, ..Options::IPL }),
        ("20/80/storage-clean-first", clean_first),
        ("20/80/storage-buffer-eager", eager),
        ("20/80/storage-buffer", Options::GRR),
    ];
    let ipl = rig::run(Run { options: Options::IPL, is_blind: false, writes: 80 }, context, (0, 7))?;
    let mut figures = Vec::new();
    for (nth, (case, options)) in (1..).zip(cases) {
        let run = rig::run(Run { options, is_blind: false, writes: 80 }, context, (nth, 7))?;
        figures.push(figure(case, "speedup_over_ipl", ipl.seconds / run.seconds, "ratio"));
    }
    Ok(figures)
}

/// Changes that do not read their leaf.
fn blind(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (nth, (mix, writes, counts)) in (0..).zip([("20/80", 80, &[1, 2, 4, 8][..]), ("0/100", 100, &[4][..])]) {
        let ipl = rig::run(Run { options: Options::IPL, is_blind: false, writes }, context, (nth, 2))?;
        let mut best = (f64::INFINITY, 0);
        for &count in counts {
            let options = Options { log_pages: LogPages::Static(count), ..Options::GRR };
            let run = rig::run(Run { options, is_blind: true, writes }, context, (nth, 2))?;
            let case = format!("{mix}/blind-k={count}");
            figures.push(figure(&case, "speedup_over_ipl", ipl.seconds / run.seconds, "ratio"));
            best = if run.seconds < best.0 { (run.seconds, count) } else { best };
        }
        if counts.len() > 1 {
            figures.push(figure(&format!("{mix}/blind"), "best_log_pages", f64::from(best.1), "pages"));
        }
    }
    Ok(figures)
}

/// Loading in order.
fn ascending(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let ipl = rig::ascend(Options::IPL, context)?;
    let grr = rig::ascend(Options::GRR, context)?;
    Ok(vec![
        figure("ascending", "speedup_over_ipl", ipl.seconds / grr.seconds, "ratio"),
        figure("ascending", "seconds", grr.seconds, "s"),
    ])
}

/// As many operations as the paper's.
fn million(case: &str, writes: u32, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let size = context.scaled(rig::Size { operations: 1_024_000, ..rig::FULL }, rig::SMALL);
    let ipl = rig::measure(Run { options: Options::IPL, is_blind: false, writes }, size, context, (0, 2))?;
    let grr = rig::measure(Run { options: Options::GRR, is_blind: false, writes }, size, context, (1, 2))?;
    Ok(vec![
        figure(case, "speedup_over_ipl", ipl.seconds / grr.seconds, "ratio"),
        figure(case, "seconds", grr.seconds, "s"),
        figure(case, "ipl_seconds", ipl.seconds, "s"),
        figure(case, "erases", grr.counters.erases as f64, "erases"),
        figure(case, "ipl_erases", ipl.counters.erases as f64, "erases"),
    ])
}

/// Only log pages that matter are read, log pages as the block needs them, blind changes: beside IPL that reads as well,
/// and beside the number of log pages that would have been best.
fn product(mix: &str, writes: u32, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let counts = context.scaled(8, 2);
    let total = u64::from(counts) + 2;
    let smart = Options { log_read: LogRead::Smart, ..Options::IPL };
    let ipl = rig::run(Run { options: smart, is_blind: false, writes }, context, (0, total))?;
    let run = rig::run(Run { options: PRODUCT, is_blind: true, writes }, context, (1, total))?;
    let mut best = f64::INFINITY;
    for count in 1..=counts {
        let options = Options { log_pages: LogPages::Static(count), ..PRODUCT };
        let place = (u64::from(count) + 1, total);
        best = best.min(rig::run(Run { options, is_blind: true, writes }, context, place)?.seconds);
    }
    let case = format!("{mix}/product");
    Ok(vec![
        figure(&case, "speedup_over_ipl", ipl.seconds / run.seconds, "ratio"),
        figure(&case, "time_over_best_static", run.seconds / best, "ratio"),
        figure(&case, "early_merges", run.stats.early_merges as f64, "merges"),
    ])
}

const _: () = assert!(matches!(PRODUCT.cells, Cells::Fixed { key: 8, value: 8 }));
