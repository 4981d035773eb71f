//! The paper's microbenchmark with the same memory in all for nandu, both trees of the paper, and these trees with a cache
//! like nandu's.

use nandu::Options;
use nandu_baselines::{Cache, TreeKind};

use crate::experiments::paper::micro;
use crate::subject::{PAPER_CHIP, Structure};
use crate::{Accept, BenchError, Beside, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated, rig};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/table5",
    about: "nandu, durable at each return, against both trees of the mu-Tree paper with as much memory",
    source: Some("the paper's cells: Table 5 of the mu-Tree paper, EMSOFT 2007"),
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        ("memory", "0, 8, 16, 32 KiB in all for cached pages or nodes; `in-all`: every byte of memory counts"),
        ("structure", "mu, bplus: the paper's trees and caches; *-nodes: the same trees with a cache of nodes like nandu's"),
        ("workload", "1,000,000 records with random keys, then 10,000 retrievals, 10,000 deletions, 10,000 insertions"),
    ],
    parts: SETTINGS.len(),
    run: |context, part| run(&SETTINGS[part], context),
    stated: &STATED,
    accept: &[
        Accept::relative("reads_per_op", 0.10).beside(Beside::Model).or_better(),
        Accept::relative("programs_per_op", 0.01).beside(Beside::Model).or_better(),
        Accept::relative("cost_ms_per_op", 0.05).beside(Beside::Model).or_better(),
        Accept::relative("pages_live", 0.02).beside(Beside::Model).or_better(),
    ],
    limits: &[
        Limit::at_least("gain", 1.0),
        Limit::at_most("reads_per_op", 1.1).in_case("8KB/retrieval/nandu"),
        Limit::at_most("programs_per_op", 1.01).in_case("8KB/insertion/nandu"),
        Limit::at_most("programs_per_op", 1.01).in_case("8KB/deletion/nandu"),
        Limit::at_most("pages_live", 2500.0).in_case("*/built/nandu"),
    ],
    plots: &[
        plot("Retrieval", "{x}/retrieval/{series}"),
        plot("Insertion", "{x}/insertion/{series}"),
        plot("Deletion", "{x}/deletion/{series}"),
    ],
    notes: "\
Memory is what caches hold, as in the paper, whose map of valid pages, page buffers and stack cost nothing. With a \
cache of its own the paper's trees keep up to so many pages of acknowledged changes in memory alone; nandu's changes are \
durable at each return in every row, and those of the trees with a cache of nodes as well.

`gain` is the cost of the better of the paper's two trees over nandu's, in time; above 1 nandu wins. `*-nodes` are the \
paper's trees with a cache of single nodes, charged by the bytes they use and 8 more: that alone closes part of the gap for \
retrievals, and none of it for changes.

In the rows `in-all`, every byte counts (`ram_bytes`): for nandu all that it is given when it is opened, its log, block \
table, page buffers and journal included; for the paper's trees two page buffers, a bit for each page, four bytes for each block, and \
the rest as cache, half for reading and half for writing.

With no cache at all nandu still has the root of its tree in its page buffer, so a lookup reads two pages and not three as the model's does. \
Beyond the model it makes 0.004 programs more per operation: a checkpoint for every other block.

The model of nandu is an independent one of the packed elastic tree without a header on its pages (section 9 of the specification \
of this tree); 1 % more pages are expected of the header.",
    ..Experiment::PLAIN
};

const fn plot(title: &'static str, cases: &'static str) -> Plot {
    Plot { title, metric: "cost_ms_per_op", cases, x: "memory (KiB)", y: "ms per operation", kind: PlotKind::Bars }
}

/// A size of memory, and how it is reckoned.
struct Setting {
    name: &'static str,
    bytes: usize,
    in_all: bool,
}

const fn cached(name: &'static str, kib: usize) -> Setting {
    Setting { name, bytes: kib * 1024, in_all: false }
}

const SETTINGS: [Setting; 6] = [
    cached("0KB", 0),
    cached("8KB", 8),
    cached("16KB", 16),
    cached("32KB", 32),
    Setting { name: "32KB-in-all", bytes: 32 * 1024, in_all: true },
    Setting { name: "64KB-in-all", bytes: 64 * 1024, in_all: true },
];

const fn published(case: &'static str, ms: f64) -> Stated {
    Stated::published(case, "cost_ms_per_op", ms)
}

const fn reads(case: &'static str, reads: f64) -> Stated {
    Stated::model(case, "reads_per_op", reads)
}

const fn model(case: &'static str, metric: &'static str, value: f64) -> Stated {
    Stated::model(case, metric, value)
}

#[rustfmt::skip]
const STATED: [Stated; 55] = [
    published("0KB/retrieval/bplus", 0.50), published("0KB/retrieval/mu", 0.50),
    published("0KB/insertion/bplus", 4.19), published("0KB/insertion/mu", 1.55),
    published("0KB/deletion/bplus", 4.19), published("0KB/deletion/mu", 1.54),
    published("8KB/retrieval/bplus", 0.33), published("8KB/retrieval/mu", 0.33),
    published("8KB/insertion/bplus", 3.98), published("8KB/insertion/mu", 1.45),
    published("8KB/deletion/bplus", 3.98), published("8KB/deletion/mu", 1.45),
    published("16KB/retrieval/bplus", 0.29), published("16KB/retrieval/mu", 0.32),
    published("16KB/insertion/bplus", 3.92), published("16KB/insertion/mu", 1.40),
    published("16KB/deletion/bplus", 3.93), published("16KB/deletion/mu", 1.41),
    published("32KB/retrieval/bplus", 0.28), published("32KB/retrieval/mu", 0.31),
    published("32KB/insertion/bplus", 2.85), published("32KB/insertion/mu", 1.37),
    published("32KB/deletion/bplus", 2.84), published("32KB/deletion/mu", 1.38),
    reads("0KB/retrieval/nandu", 2.96), reads("8KB/retrieval/nandu", 1.00),
    reads("16KB/retrieval/nandu", 1.00), reads("32KB/retrieval/nandu", 1.00),
    reads("0KB/insertion/nandu", 2.96), reads("8KB/insertion/nandu", 1.00),
    reads("16KB/insertion/nandu", 1.00), reads("32KB/insertion/nandu", 1.00),
    reads("0KB/deletion/nandu", 2.96), reads("8KB/deletion/nandu", 1.00),
    reads("16KB/deletion/nandu", 1.00), reads("32KB/deletion/nandu", 1.00),
    reads("0KB/retrieval/bplus-nodes", 3.00), reads("8KB/retrieval/bplus-nodes", 1.70),
    reads("16KB/retrieval/bplus-nodes", 1.32), reads("32KB/retrieval/bplus-nodes", 1.00),
    reads("0KB/retrieval/mu-nodes", 2.97), reads("8KB/retrieval/mu-nodes", 1.83),
    reads("16KB/retrieval/mu-nodes", 1.65), reads("32KB/retrieval/mu-nodes", 1.29),
    model("*/insertion/nandu", "programs_per_op", 1.001), model("*/deletion/nandu", "programs_per_op", 1.000),
    model("0KB/insertion/nandu", "cost_ms_per_op", 1.408), model("0KB/deletion/nandu", "cost_ms_per_op", 1.407),
    model("8KB/insertion/nandu", "cost_ms_per_op", 1.084), model("8KB/deletion/nandu", "cost_ms_per_op", 1.083),
    model("16KB/insertion/nandu", "cost_ms_per_op", 1.084), model("16KB/deletion/nandu", "cost_ms_per_op", 1.083),
    model("*/built/nandu", "pages_live", 2252.0),
    model("*/built/bplus", "pages_live", 2725.0),
    model("*/built/mu", "pages_live", 5548.0),
];

/// Bytes of memory that a tree of the paper needs besides its cache: two page buffers, the map of valid pages, and a count
/// for each block.
fn paper_overhead() -> usize {
    let geometry = PAPER_CHIP.geometry;
    2 * geometry.page_size as usize + geometry.page_count() as usize / 8 + 4 * geometry.block_count as usize
}

fn structures(setting: &Setting) -> Result<Vec<(&'static str, Structure, usize)>, BenchError> {
    let page_size = PAPER_CHIP.geometry.page_size as usize;
    let pages = |bytes: usize| {
        let pages = bytes / page_size;
        Cache::Pages { read_pages: pages / 2, write_pages: pages / 2 }
    };
    let nandu_bytes = |cache_size| rig::memory(&PAPER_CHIP, &Options { cache_size, ..Options::DEFAULT }).len();
    let (nandu_cache, paper_cache) = if setting.in_all {
        (rig::fit(&PAPER_CHIP, setting.bytes)?.cache_size, setting.bytes.saturating_sub(paper_overhead()))
    } else {
        (setting.bytes, setting.bytes)
    };
    let nodes = Cache::Nodes { bytes: paper_cache };
    let paper_bytes = paper_cache + paper_overhead();
    Ok(vec![
        ("nandu", Structure::Nandu(nandu_cache), nandu_bytes(nandu_cache)),
        ("mu", Structure::Paper(TreeKind::Mu, pages(paper_cache)), paper_bytes),
        ("bplus", Structure::Paper(TreeKind::BPlus, pages(paper_cache)), paper_bytes),
        ("mu-nodes", Structure::Paper(TreeKind::Mu, nodes), paper_bytes),
        ("bplus-nodes", Structure::Paper(TreeKind::BPlus, nodes), paper_bytes),
    ])
}

fn run(setting: &Setting, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    let mut found = Vec::new();
    let structures = structures(setting)?;
    let total = structures.len() as u64;
    for (nth, (name, structure, ram_bytes)) in structures.into_iter().enumerate() {
        context.tell(nth as u64, total);
        let micro = micro::run(structure, &mut Context { progress: None, ..*context })?;
        figures.extend(micro.figures(EXPERIMENT.name, setting.name, name));
        let case = format!("{}/built/{name}", setting.name);
        figures.push(Figure::new(EXPERIMENT.name, &case, "ram_bytes", ram_bytes as f64, "bytes"));
        found.push((name, micro));
    }
    for operation in 0..3 {
        let ms = |name: &str| {
            let micro = found.iter().find(|(other, _)| *other == name);
            micro.map_or(f64::NAN, |(_, micro)| micro.costs[operation].1.ms_per_op())
        };
        let gain = ms("mu").min(ms("bplus")) / ms("nandu");
        let case = format!("{}/{}/nandu", setting.name, found[0].1.costs[operation].0);
        figures.push(Figure::new(EXPERIMENT.name, &case, "gain", gain, "ratio"));
    }
    Ok(figures)
}
