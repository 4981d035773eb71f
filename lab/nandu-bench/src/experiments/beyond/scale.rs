//! How costs grow with the number of records: a million, ten million, a hundred million.

use nandu::{FixedCells, Options, Store};
use nandu_baselines::{Cache, TreeKind};
use nandu_sim::{Chip, Sim};

use crate::rig::{self, Phase};
use crate::subject::{self, PAPER_CHIP, Structure};
use crate::workload::{Chooser, KeyOrder, Keys, Mix, Operation, Records, Skew};
use crate::{Accept, BenchError, Beside, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/scale",
    about: "costs of updates and lookups with 1, 10 and 100 million records",
    setup: &[
        ("chip", "paper-mlc with 64 MB, 1 GB and 4 GB"),
        ("memory", "8, 32 and 128 KiB in all for cached pages or nodes"),
        ("structure", "nandu, durable at each return; mu, bplus: the paper's trees, half of the cache for reading"),
        ("workload", "random keys; inserted in random order or, `nandu-loaded`, in bulk; 100,000 random updates, 100,000 random lookups"),
    ],
    parts: CASES.len(),
    run: |context, part| run(&CASES[part], context),
    stated: &STATED,
    accept: &[
        Accept::relative("cost_ms_per_update", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
        Accept::relative("reads_per_lookup", 0.10).in_case("*/*/nandu").beside(Beside::Model).or_better(),
    ],
    limits: &[
        Limit::at_most("programs_per_update", 1.05).in_case("*/*/nandu"),
        Limit::at_most("programs_per_update", 1.05).in_case("*/*/nandu-loaded"),
    ],
    plots: &[
        plot("Lookup in 8 KiB", "reads_per_lookup", "{x}/8KB/{series}", "reads per lookup"),
        plot("Lookup in 32 KiB", "reads_per_lookup", "{x}/32KB/{series}", "reads per lookup"),
        plot("Update in 8 KiB", "cost_ms_per_update", "{x}/8KB/{series}", "ms per update"),
    ],
    notes: "\
The simulated chip holds what is programmed and nothing else, so four gigabytes of chip take as much of the host's memory as live \
pages and those not yet erased do.

A hundred million random inserts would take the host long; they are loaded in bulk, which leaves leaves full, where \
random inserts leave them 86 % full. Ten million are there both ways, so that the difference can be seen.",
    ..Experiment::PLAIN
};

const fn plot(title: &'static str, metric: &'static str, cases: &'static str, y: &'static str) -> Plot {
    Plot { title, metric, cases, x: "records", y, kind: PlotKind::LogLines }
}

struct Case {
    name: &'static str,
    structure: &'static str,
    record_count: u32,
    block_count: u32,
    /// Sizes of memory: nandu is opened with each of them, the others are built with the only one.
    kib: &'static [usize],
    loaded: bool,
}

const fn case(
    name: &'static str,
    structure: &'static str,
    (record_count, block_count): (u32, u32),
    kib: &'static [usize],
) -> Case {
    Case { name, structure, record_count, block_count, kib, loaded: false }
}

/// Records, and blocks of the chip: 64 MB, 1 GB, 4 GB.
const ONE: (u32, u32) = (1_000_000, 128);
const TEN: (u32, u32) = (10_000_000, 2048);
const HUNDRED: (u32, u32) = (100_000_000, 8192);

const CASES: [Case; 10] = [
    case("1M", "nandu", ONE, &[8, 32, 128]),
    case("1M", "mu", ONE, &[8]),
    case("1M", "bplus", ONE, &[8]),
    case("10M", "nandu", TEN, &[8, 32, 128]),
    case("10M", "mu", TEN, &[8]),
    case("10M", "bplus", TEN, &[8]),
    case("10M", "mu", TEN, &[32]),
    case("10M", "bplus", TEN, &[32]),
    Case { loaded: true, ..case("10M", "nandu", TEN, &[8, 32, 128]) },
    Case { loaded: true, ..case("100M", "nandu", HUNDRED, &[8, 32, 128]) },
];

const COUNT: u32 = 100_000;
/// By how much less there is at small scale.
const SHRINK: u32 = 500;

const fn ms(case: &'static str, ms: f64) -> Stated {
    Stated::model(case, "cost_ms_per_update", ms)
}

const fn get(case: &'static str, reads: f64) -> Stated {
    Stated::model(case, "reads_per_lookup", reads)
}

#[rustfmt::skip]
const STATED: [Stated; 12] = [
    ms("10M/8KB/bplus", 3.28), get("10M/8KB/bplus", 2.00), ms("10M/32KB/bplus", 2.68), get("10M/32KB/bplus", 1.95),
    ms("10M/8KB/mu", 1.49), get("10M/8KB/mu", 2.90), ms("10M/32KB/mu", 1.42), get("10M/32KB/mu", 2.65),
    ms("10M/8KB/nandu", 1.24), get("10M/8KB/nandu", 1.91), ms("10M/32KB/nandu", 1.19), get("10M/32KB/nandu", 1.62),
];

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let chip = PAPER_CHIP.with_blocks((case.block_count / shrink).max(16));
    let record_count = case.record_count / shrink;
    let count = COUNT / shrink;
    match case.structure {
        "nandu" => nandu(case, chip, record_count, count, context),
        structure => paper(case, structure, chip, record_count, count, context),
    }
}

fn paper(
    case: &Case,
    name: &str,
    chip: Chip,
    record_count: u32,
    count: u32,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let kib = case.kib[0];
    let pages = kib * 1024 / chip.geometry.page_size as usize;
    let cache = Cache::Pages { read_pages: pages / 2, write_pages: pages / 2 };
    let kind = if name == "mu" { TreeKind::Mu } else { TreeKind::BPlus };
    let records = Records { order: KeyOrder::Random, count: record_count, skew: Skew::Uniform, mix: Mix::UPDATES };
    subject::with(Structure::Paper(kind, cache), chip, context, |subject, context| {
        let seed = context.seed;
        subject.run(records.load(seed), |done| context.tell(done, record_count.into()))?;
        let updates = subject.run(records.operations(seed)?.take(count as usize), |_| {})?;
        let keys = records.keys(seed);
        let mut chooser = Chooser::in_order(record_count, Skew::Uniform, seed.wrapping_add(1))?;
        let lookups = (0..count).map(|_| Operation::Get { key: keys.at(chooser.choose()) });
        let lookups = subject.run(lookups, |_| {})?;
        let name = format!("{}/{kib}KB/{name}", case.name);
        let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &name, metric, value, unit);
        Ok(vec![
            figure("reads_per_update", updates.reads_per_op(), "reads"),
            figure("programs_per_update", updates.programs_per_op(), "programs"),
            figure("cost_ms_per_update", updates.ms_per_op(), "ms"),
            figure("reads_per_lookup", lookups.reads_per_op(), "reads"),
            figure("pages_live", subject.live_pages() as f64, "pages"),
            figure("height", f64::from(subject.height()), "levels"),
        ])
    })
}

type Map<'m> = Store<'m, Sim, FixedCells<4, 4>>;

fn options(kib: usize) -> Options {
    Options { cache_size: kib * 1024, ..Options::DEFAULT }
}

/// A store with the records, and its chip.
fn build(case: &Case, chip: Chip, record_count: u32, context: &mut Context<'_>) -> Result<Sim, BenchError> {
    let options = options(128);
    let mut memory = rig::memory(&chip, &options);
    let mut store: Map<'_> = Store::format_with(Sim::with_seed(chip, context.seed), FixedCells, options, &mut memory)?;
    let keys = Keys::new(KeyOrder::Random, context.seed);
    if case.loaded {
        let mut sorted: Vec<u32> = (0..record_count).map(|record| keys.at(record)).collect();
        sorted.sort_unstable();
        let mut done = 0_u32;
        store.load(sorted.into_iter().map(|key| {
            done += 1;
            if done.is_multiple_of(1 << 16) {
                context.tell(done.into(), record_count.into());
            }
            (key.to_be_bytes(), key.to_be_bytes())
        }))?;
    } else {
        for record in 0..record_count {
            let key = keys.at(record);
            store.put(&key.to_be_bytes(), &key.to_be_bytes())?;
            if record.is_multiple_of(1 << 16) {
                context.tell(record.into(), record_count.into());
            }
        }
    }
    Ok(store.unmount()?)
}

fn nandu(
    case: &Case,
    chip: Chip,
    record_count: u32,
    count: u32,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let mut sim = build(case, chip, record_count, context)?;
    let keys = Keys::new(KeyOrder::Random, context.seed);
    let mut figures = Vec::new();
    for &kib in case.kib {
        let mut memory = rig::memory(&chip, &options(kib));
        let before = *sim.counters();
        let mut store: Map<'_> = Store::open_with(sim, FixedCells, options(kib), &mut memory)?;
        let mount_loads = store.nand().counters().since(&before).reads;
        let mut chooser = Chooser::in_order(record_count, Skew::Uniform, context.seed.wrapping_add(kib as u64))?;
        // The cache is empty after a mount: lookups fill it before anything counts.
        lookups(&mut store, &keys, &mut chooser, count)?;
        let before = (Phase::start(store.nand(), count), store.nand().clock_ns());
        for _ in 0..count {
            let key = keys.at(chooser.choose()).to_be_bytes();
            store.put(&key, &key)?;
        }
        let update_ms = (store.nand().clock_ns() - before.1) as f64 / 1e6 / f64::from(count);
        let (update_reads, update_programs) =
            (before.0.reads_per_operation(store.nand()), before.0.programs_per_operation(store.nand()));
        let phase = Phase::start(store.nand(), count);
        lookups(&mut store, &keys, &mut chooser, count)?;
        // A structure of its own in the pictures: both ways of filling it stand at ten million.
        let structure = if case.loaded { "nandu-loaded" } else { "nandu" };
        let name = format!("{}/{kib}KB/{structure}", case.name);
        let mut figure = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &name, metric, value, unit));
        figure("reads_per_update", update_reads, "reads");
        figure("programs_per_update", update_programs, "programs");
        figure("cost_ms_per_update", update_ms, "ms");
        figure("reads_per_lookup", phase.reads_per_operation(store.nand()), "reads");
        figure("pages_live", f64::from(store.stats().live_pages), "pages");
        figure("height", f64::from(store.height()), "levels");
        figure("mount_loads", mount_loads as f64, "reads");
        figure("ram_bytes", rig::memory(&chip, &options(kib)).len() as f64, "bytes");
        sim = store.unmount()?;
    }
    Ok(figures)
}

fn lookups(store: &mut Map<'_>, keys: &Keys, chooser: &mut Chooser, count: u32) -> Result<(), BenchError> {
    for _ in 0..count {
        let key = keys.at(chooser.choose());
        if store.get(&key.to_be_bytes())? != Some(&key.to_be_bytes()[..]) {
            return Err(BenchError::Wrong(key));
        }
    }
    Ok(())
}
