//! Random updates that become durable together, k at a time, on nandu and on both trees of the paper.

use nandu_baselines::{Cache, TreeKind};

use crate::subject::{self, PAPER_CHIP, Structure};
use crate::workload::{Chooser, KeyOrder, Mix, Operation, Records, Skew};
use crate::{Accept, BenchError, Beside, Context, Experiment, Figure, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/groupcommit",
    about: "random updates made durable after every k of them, in 8 to 64 KiB, on nandu and on both trees of the mu-Tree paper",
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        (
            "memory",
            "8, 16, 32, 64 KiB: nandu: 8 KiB for nodes (4 of 8), the rest for changes that wait; mu, bplus: half for reading, half for writing",
        ),
        (
            "structure",
            "nandu with Durability::OnSync; mu, bplus: the paper's trees, whose write cache is programmed at each sync",
        ),
        (
            "workload",
            "1,000,000 records with random keys; for each k 50,000 random updates that do not count and 50,000 that do; 10,000 lookups",
        ),
    ],
    parts: SIZES.len() * STRUCTURES.len(),
    run: |context, part| run(SIZES[part / STRUCTURES.len()], STRUCTURES[part % STRUCTURES.len()], context),
    stated: &STATED,
    accept: &[
        Accept::relative("programs_per_update", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
        Accept::relative("reads_per_update", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
    ],
    plots: &[
        plot("In 16 KiB", "16KB/{x}/{series}"),
        plot("In 32 KiB", "32KB/{x}/{series}"),
        plot("In 64 KiB", "64KB/{x}/{series}"),
    ],
    notes: NOTES,
    ..Experiment::PLAIN
};

const NOTES: &str = "\
The model holds pending records in all memory beyond the inner nodes and merges the leaf with most of them, also when each \
change is synced alone; nandu puts such a change into its leaf at once, which takes a read and the same program. With k = 4 it \
programs a page for each sync, which holds four changes, and others for the leaves they go to. With k of 64 and more it is within \
a tenth of the model in 16 and 32 KiB, and a sixth above it in 64.

A page of the journal names at most 30 others, which is enough for the 5,700 changes of 64 KiB. In memory beyond what those pages \
hold, no change waits, so that more of it costs no more. In 8 KiB, of which nodes have 4, the inner nodes do not fit: the search for the \
leaf with most changes ends after three reads, and there are five reads for an update.

The paper's trees have half of their memory as write cache, which is programmed at each sync. That of the mu-Tree saves nothing: each \
of its pages holds a leaf, and random updates meet a leaf again long after.

An LSM tree is put at 0.34 programs for k = 4 and 0.10 for k = 256 in 16 KiB by its closed form, 0.29 and 0.04 in 64 KiB, with 1.97 reads \
per lookup in 16 KiB.";

const fn plot(title: &'static str, cases: &'static str) -> Plot {
    Plot {
        title,
        metric: "programs_per_update",
        cases,
        x: "updates between two syncs",
        y: "programs per update",
        kind: PlotKind::Bars,
    }
}

const STRUCTURES: [&str; 3] = ["nandu", "mu", "bplus"];
/// Memory in KiB.
const SIZES: [usize; 4] = [8, 16, 32, 64];
/// Updates between two syncs.
const EVERY: [usize; 5] = [1, 4, 16, 64, 256];

const RECORD_COUNT: u32 = 1_000_000;
const UPDATE_COUNT: usize = 50_000;
const LOOKUP_COUNT: usize = 10_000;
/// By how much fewer records and operations there are at small scale.
const SHRINK: u32 = 50;
const BLOCK_COUNT_SMALL: u32 = 16;

const fn programs(case: &'static str, programs: f64) -> Stated {
    Stated::model(case, "programs_per_update", programs)
}

const fn reads(case: &'static str, reads: f64) -> Stated {
    Stated::model(case, "reads_per_update", reads)
}

#[rustfmt::skip]
const STATED: [Stated; 24] = [
    programs("16KB/k1/nandu", 1.00), programs("32KB/k1/nandu", 1.00), programs("64KB/k1/nandu", 1.00),
    reads("16KB/k1/nandu", 0.64), reads("32KB/k1/nandu", 0.32), reads("64KB/k1/nandu", 0.17),
    programs("16KB/k4/nandu", 0.63), programs("16KB/k16/nandu", 0.64),
    programs("16KB/k64/nandu", 0.65), programs("16KB/k256/nandu", 0.63),
    programs("32KB/k4/nandu", 0.31), programs("32KB/k16/nandu", 0.31),
    programs("32KB/k64/nandu", 0.32), programs("32KB/k256/nandu", 0.32),
    programs("64KB/k4/nandu", 0.25), programs("64KB/k16/nandu", 0.16),
    programs("64KB/k64/nandu", 0.16), programs("64KB/k256/nandu", 0.16),
    programs("16KB/k4/bplus", 2.08), programs("16KB/k256/bplus", 1.63),
    programs("32KB/k4/bplus", 2.08), programs("32KB/k256/bplus", 1.15),
    programs("64KB/k4/bplus", 2.08), programs("64KB/k256/bplus", 1.03),
];

fn structure(kib: usize, name: &str, context: &Context<'_>) -> Structure {
    let size = kib * 1024;
    let pages = size / PAPER_CHIP.geometry.page_size as usize;
    let cache = Cache::Pages { read_pages: pages / 2, write_pages: pages / 2 };
    match name {
        "mu" => Structure::Paper(TreeKind::Mu, cache),
        "bplus" => Structure::Paper(TreeKind::BPlus, cache),
        _ => {
            let cache_size = size.min(16 * 1024) / 2;
            let shrink = context.scaled(1, SHRINK as usize / 10);
            Structure::NanduOnSync { cache_size, pending_size: (size - cache_size) / shrink }
        }
    }
}

fn run(kib: usize, name: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let chip = PAPER_CHIP.with_blocks(context.scaled(PAPER_CHIP.geometry.block_count, BLOCK_COUNT_SMALL));
    let (update_count, lookup_count) = (UPDATE_COUNT / shrink as usize, LOOKUP_COUNT / shrink as usize);
    let records =
        Records { order: KeyOrder::Random, count: RECORD_COUNT / shrink, skew: Skew::Uniform, mix: Mix::UPDATES };
    let structure = structure(kib, name, context);
    subject::with(structure, chip, context, |subject, context| {
        let (seed, total) = (context.seed, u64::from(records.count));
        subject.run(records.load(seed), |done| context.tell(done, total))?;
        subject.sync()?;
        let mut operations = records.operations(seed)?;
        let keys = records.keys(seed);
        let mut figures = Vec::new();
        for k in EVERY {
            let mut updates = subject.run([], |_| {})?;
            for nth in 0..2 * update_count / k {
                let cost = subject.run(operations.by_ref().take(k), |_| {})?;
                let before = subject.counters();
                subject.sync()?;
                if nth >= update_count / k {
                    updates.add(&cost);
                    updates.counters.add(&subject.counters().since(&before));
                }
            }
            let mut chooser = Chooser::in_order(records.count, records.skew, seed.wrapping_add(k as u64))?;
            let lookups = (0..lookup_count).map(|_| Operation::Get { key: keys.at(chooser.choose()) });
            let lookups = subject.run(lookups, |_| {})?;
            let case = format!("{kib}KB/k{k}/{name}");
            let mut figure =
                |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
            figure("programs_per_update", updates.programs_per_op(), "programs");
            figure("reads_per_update", updates.reads_per_op(), "reads");
            figure("cost_ms_per_update", updates.ms_per_op(), "ms");
            figure("reads_per_lookup", lookups.reads_per_op(), "reads");
        }
        Ok(figures)
    })
}
