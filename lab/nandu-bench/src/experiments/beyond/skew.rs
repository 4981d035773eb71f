//! Work that is not uniform, on nandu and on both trees of the paper.

use nandu_baselines::{Cache, TreeKind};

use crate::subject::{self, PAPER_CHIP, Structure};
use crate::workload::{KeyOrder, Mix, Records, Skew};
use crate::{Accept, BenchError, Beside, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/skew",
    about: "skewed, ascending and clustered work on nandu and on both trees of the mu-Tree paper",
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        ("memory", "0, 8 or 16 KiB in all for cached pages or nodes"),
        ("structure", "nandu, durable at each return; mu, bplus: the paper's trees, half of the cache for reading"),
        (
            "workload",
            "1,000,000 records; updates by Zipf 0.99, inserts in ascending order, inserts into 1,000 clusters",
        ),
    ],
    parts: CASES.len() * STRUCTURES.len(),
    run: |context, part| run(&CASES[part / STRUCTURES.len()], STRUCTURES[part % STRUCTURES.len()], context),
    stated: &STATED,
    accept: &[
        Accept::relative("cost_ms_per_op", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
        Accept::relative("reads_per_op", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
        Accept::relative("programs_per_op", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
    ],
    limits: &[Limit::at_most("programs_per_op", 1.02).in_case("*/*/nandu")],
    plots: &[
        plot("Cost of a change, nothing cached", "{x}/0KB/{series}", "work"),
        plot("Cost of an update by Zipf", "zipf/{x}/{series}", "memory"),
        plot("Cost of an insert into clusters", "clustered/{x}/{series}", "memory"),
    ],
    notes: "\
The model's records are random keys for Zipf's updates, as here: costs of both of the paper's trees agree with it within 2 %.

nandu reads more than the model under Zipf's updates. The popular records are spread over all leaves, so a block that is to be \
emptied still holds live pages. The model keeps a bit for each page; nandu keeps a count for each block and asks the tree about each page \
of such a block, which costs a read (`gc_reads_per_op`). That is the whole difference in memory of 16 KiB.

Ascending inserts are measured from the 900,001st record to the millionth. How many there were in the model is not said; the costs of \
the paper's trees rise with how full the chip is, since moved pages and new ones share blocks. The model's clusters are not \
described either; here they are 1,000 ranges of 65,536 keys.",
    ..Experiment::PLAIN
};

const fn plot(title: &'static str, cases: &'static str, x: &'static str) -> Plot {
    Plot { title, metric: "cost_ms_per_op", cases, x, y: "ms per operation", kind: PlotKind::Bars }
}

const STRUCTURES: [&str; 3] = ["bplus", "mu", "nandu"];

struct Case {
    name: &'static str,
    kib: usize,
    records: Records,
    /// What is counted, after as many operations that are not.
    count: usize,
}

const ZIPF: Records = Records { order: KeyOrder::Random, count: 1_000_000, skew: Skew::Zipf(0.99), mix: Mix::UPDATES };
const UNIFORM: Skew = Skew::Uniform;

const CASES: [Case; 4] = [
    Case { name: "zipf", kib: 0, records: ZIPF, count: 100_000 },
    Case { name: "zipf", kib: 16, records: ZIPF, count: 100_000 },
    Case {
        name: "ascending",
        kib: 0,
        records: Records { order: KeyOrder::Ascending, count: 800_000, skew: UNIFORM, mix: Mix::INSERTS },
        count: 100_000,
    },
    Case {
        name: "clustered",
        kib: 8,
        records: Records { order: KeyOrder::Clustered(1000), count: 1_000_000, skew: UNIFORM, mix: Mix::INSERTS },
        count: 10_000,
    },
];

/// By how much less there is at small scale.
const SHRINK: u32 = 50;
const BLOCK_COUNT_SMALL: u32 = 16;

const fn ms(case: &'static str, ms: f64) -> Stated {
    Stated::model(case, "cost_ms_per_op", ms)
}

const fn reads(case: &'static str, reads: f64) -> Stated {
    Stated::model(case, "reads_per_op", reads)
}

const fn programs(case: &'static str, programs: f64) -> Stated {
    Stated::model(case, "programs_per_op", programs)
}

#[rustfmt::skip]
const STATED: [Stated; 32] = [
    ms("zipf/0KB/bplus", 4.80), reads("zipf/0KB/bplus", 4.82), programs("zipf/0KB/bplus", 4.37),
    ms("zipf/0KB/mu", 1.69), reads("zipf/0KB/mu", 3.59), programs("zipf/0KB/mu", 1.19),
    ms("zipf/0KB/nandu", 1.40), reads("zipf/0KB/nandu", 2.87), programs("zipf/0KB/nandu", 1.01),
    ms("zipf/16KB/bplus", 4.46), reads("zipf/16KB/bplus", 2.73), programs("zipf/16KB/bplus", 4.37),
    ms("zipf/16KB/mu", 1.52), reads("zipf/16KB/mu", 2.65), programs("zipf/16KB/mu", 1.18),
    ms("zipf/16KB/nandu", 1.09), reads("zipf/16KB/nandu", 0.99), programs("zipf/16KB/nandu", 1.01),
    ms("ascending/0KB/bplus", 17.2), reads("ascending/0KB/bplus", 19.3), programs("ascending/0KB/bplus", 15.3),
    ms("ascending/0KB/mu", 2.83), reads("ascending/0KB/mu", 5.07), programs("ascending/0KB/mu", 2.17),
    ms("ascending/0KB/nandu", 1.09), reads("ascending/0KB/nandu", 1.01), programs("ascending/0KB/nandu", 1.003),
    ms("clustered/8KB/bplus", 3.93), ms("clustered/8KB/mu", 1.32),
    ms("clustered/8KB/nandu", 1.13), reads("clustered/8KB/nandu", 1.27), programs("clustered/8KB/nandu", 1.001),
];

fn run(case: &Case, name: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let chip = context.chip(PAPER_CHIP, BLOCK_COUNT_SMALL);
    let pages = case.kib * 1024 / chip.geometry.page_size as usize;
    let cache = Cache::Pages { read_pages: pages / 2, write_pages: pages / 2 };
    let structure = match name {
        "bplus" => Structure::Paper(TreeKind::BPlus, cache),
        "mu" => Structure::Paper(TreeKind::Mu, cache),
        _ => Structure::Nandu(case.kib * 1024),
    };
    let records = Records { count: case.records.count / shrink, ..case.records };
    let count = case.count / shrink as usize;
    subject::with(structure, chip, context, |subject, context| {
        let total = u64::from(records.count);
        subject.run(records.load(context.seed), |done| context.tell(done, total))?;
        let mut operations = records.operations(context.seed)?;
        subject.run(operations.by_ref().take(count), |_| {})?;
        let cost = subject.run(operations.by_ref().take(count), |_| {})?;
        let case = format!("{}/{}KB/{name}", case.name, case.kib);
        let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &case, metric, value, unit);
        Ok(vec![
            figure("reads_per_op", cost.reads_per_op(), "reads"),
            figure("gc_reads_per_op", cost.gc_reads_per_op(), "reads"),
            figure("programs_per_op", cost.programs_per_op(), "programs"),
            figure("erases_per_op", cost.erases_per_op(), "erases"),
            figure("cost_ms_per_op", cost.ms_per_op(), "ms"),
            figure("pages_live", subject.live_pages() as f64, "pages"),
        ])
    })
}
