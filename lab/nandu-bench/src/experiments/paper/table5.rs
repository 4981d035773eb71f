//! The paper's microbenchmark, cell by cell.

use nandu_baselines::{Cache, TreeKind};

use super::micro;
use crate::subject::{PAPER_CHIP, Structure};
use crate::{Accept, BenchError, Context, Doubt, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-table5",
    about: "page operations of both trees of the mu-Tree paper with the paper's caches, and nandu in the same memory",
    source: Some(super::MUTREE),
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        ("memory", "read cache + write cache of pages, in KiB; nandu: as much in all for nodes, and every change is durable"),
        ("workload", "1,000,000 records with random keys, then 10,000 retrievals, 10,000 deletions, 10,000 insertions"),
    ],
    parts: PARTS.len(),
    part_name: |_| String::new(),
    run: |context, part| run(PARTS[part], context),
    stated: &TABLE,
    doubts: &[
        Doubt { case: "16+16/deletion/bplus", metric: "reads_per_op", why: CONTRADICTION },
        Doubt { case: "16+16/deletion/mu", metric: "reads_per_op", why: CONTRADICTION },
    ],
    accept: &[
        Accept::absolute("reads_per_op", 0.10).in_case("*/*/bplus"),
        Accept::absolute("reads_per_op", 0.06).in_case("*/*/mu"),
        Accept::absolute("programs_per_op", 0.08).in_case("*/*/bplus"),
        Accept::absolute("programs_per_op", 0.02).in_case("*/*/mu"),
        Accept::absolute("cost_ms_per_op", 0.09).in_case("*/*/bplus"),
        Accept::absolute("cost_ms_per_op", 0.03).in_case("*/*/mu"),
    ],
    small_limits: &[],
    limits: &[
        // The paper leaves the erases out of its table and says how many there are at most: 0.03 and 0.01. There is one for
        // 128 programs, so a 128th of what is accepted for these is added.
        Limit::at_most("erases_per_op", 0.0307).in_case("*/*/bplus"),
        Limit::at_most("erases_per_op", 0.01).in_case("*/*/mu"),
        Limit { least: 3.0, ..Limit::at_most("height", 3.0).in_case("*/built/mu") },
        Limit { least: 3.0, ..Limit::at_most("height", 3.0).in_case("*/built/bplus") },
    ],
    plots: &[plot("Retrieval", "{x}/retrieval/{series}"), plot("Insertion", "{x}/insertion/{series}")],
    notes: "\
The model is an independent one of what the paper describes, run once. From seed to seed reads of the B+-tree move by 0.10 and \
programs by 0.08, since its leaves fill and split in waves; those of the mu-Tree by 0.06 and 0.02. So much is accepted beside the \
paper or the model, and for times what follows from it.

What the text leaves open was chosen so that it fits the table:

* the write cache is programmed in bulk at the end of the operation that overflowed it, and its pages can be read from memory \
until the next page is allocated;
* the mu-Tree allocates its page before it descends, as line 1 of the paper's algorithm 3 does, and so misses the root once in \
as many operations as the cache has pages, plus one;
* the slot of a page that dies in the write cache is free at once;
* the victim of garbage collection is the block with fewest valid pages of all, and validity is known in memory.

Of the paper's rows with a cache, up to so many pages of acknowledged changes are in memory alone and lost with the power. nandu's are \
durable at each return.",
};

const CONTRADICTION: &str = "The paper's own time for this cell takes more reads than it prints: 2.84 and 1.38 ms with 2.74 and \
1.09 programs leave 1.97 and 2.29 reads.";

const fn plot(title: &'static str, cases: &'static str) -> Plot {
    Plot {
        title,
        metric: "cost_ms_per_op",
        cases,
        x: "cache (KiB, read + write)",
        y: "ms per operation",
        kind: PlotKind::Bars,
    }
}

/// Sizes of each of the two caches in KiB, and the structure.
const PARTS: [(usize, &str); 12] = [
    (0, "bplus"),
    (0, "mu"),
    (0, "nandu"),
    (4, "bplus"),
    (4, "mu"),
    (4, "nandu"),
    (8, "bplus"),
    (8, "mu"),
    (8, "nandu"),
    (16, "bplus"),
    (16, "mu"),
    (16, "nandu"),
];

/// What the paper prints, and what the model gives.
const fn cell(case: &'static str, metric: &'static str, published: f64, model: f64) -> Stated {
    Stated::published(case, metric, published).modelled(model)
}

#[rustfmt::skip]
const TABLE: [Stated; 72] = [
    cell("0+0/retrieval/bplus", "reads_per_op", 3.00, 3.00),
    cell("0+0/retrieval/mu", "reads_per_op", 2.97, 2.97),
    cell("0+0/retrieval/bplus", "programs_per_op", 0.00, 0.00),
    cell("0+0/retrieval/mu", "programs_per_op", 0.00, 0.00),
    cell("0+0/retrieval/bplus", "cost_ms_per_op", 0.50, 0.50),
    cell("0+0/retrieval/mu", "cost_ms_per_op", 0.50, 0.49),
    cell("0+0/insertion/bplus", "reads_per_op", 4.11, 4.10),
    cell("0+0/insertion/mu", "reads_per_op", 3.32, 3.27),
    cell("0+0/insertion/bplus", "programs_per_op", 3.83, 3.83),
    cell("0+0/insertion/mu", "programs_per_op", 1.08, 1.08),
    cell("0+0/insertion/bplus", "cost_ms_per_op", 4.19, 4.19),
    cell("0+0/insertion/mu", "cost_ms_per_op", 1.55, 1.53),
    cell("0+0/deletion/bplus", "reads_per_op", 4.14, 4.08),
    cell("0+0/deletion/mu", "reads_per_op", 3.34, 3.25),
    cell("0+0/deletion/bplus", "programs_per_op", 3.85, 3.81),
    cell("0+0/deletion/mu", "programs_per_op", 1.09, 1.07),
    cell("0+0/deletion/bplus", "cost_ms_per_op", 4.19, 4.18),
    cell("0+0/deletion/mu", "cost_ms_per_op", 1.54, 1.52),
    cell("4+4/retrieval/bplus", "reads_per_op", 2.00, 2.00),
    cell("4+4/retrieval/mu", "reads_per_op", 1.97, 1.97),
    cell("4+4/retrieval/bplus", "programs_per_op", 0.00, 0.00),
    cell("4+4/retrieval/mu", "programs_per_op", 0.00, 0.00),
    cell("4+4/retrieval/bplus", "cost_ms_per_op", 0.33, 0.33),
    cell("4+4/retrieval/mu", "cost_ms_per_op", 0.33, 0.33),
    cell("4+4/insertion/bplus", "reads_per_op", 2.83, 2.83),
    cell("4+4/insertion/mu", "reads_per_op", 2.74, 2.74),
    cell("4+4/insertion/bplus", "programs_per_op", 3.83, 3.83),
    cell("4+4/insertion/mu", "programs_per_op", 1.08, 1.08),
    cell("4+4/insertion/bplus", "cost_ms_per_op", 3.98, 3.98),
    cell("4+4/insertion/mu", "cost_ms_per_op", 1.45, 1.44),
    cell("4+4/deletion/bplus", "reads_per_op", 2.83, 2.81),
    cell("4+4/deletion/mu", "reads_per_op", 2.76, 2.72),
    cell("4+4/deletion/bplus", "programs_per_op", 3.83, 3.81),
    cell("4+4/deletion/mu", "programs_per_op", 1.09, 1.07),
    cell("4+4/deletion/bplus", "cost_ms_per_op", 3.98, 3.97),
    cell("4+4/deletion/mu", "cost_ms_per_op", 1.45, 1.44),
    cell("8+8/retrieval/bplus", "reads_per_op", 1.77, 1.76),
    cell("8+8/retrieval/mu", "reads_per_op", 1.94, 1.94),
    cell("8+8/retrieval/bplus", "programs_per_op", 0.00, 0.00),
    cell("8+8/retrieval/mu", "programs_per_op", 0.00, 0.00),
    cell("8+8/retrieval/bplus", "cost_ms_per_op", 0.29, 0.29),
    cell("8+8/retrieval/mu", "cost_ms_per_op", 0.32, 0.32),
    cell("8+8/insertion/bplus", "reads_per_op", 2.40, 2.38),
    cell("8+8/insertion/mu", "reads_per_op", 2.49, 2.50),
    cell("8+8/insertion/bplus", "programs_per_op", 3.84, 3.82),
    cell("8+8/insertion/mu", "programs_per_op", 1.08, 1.08),
    cell("8+8/insertion/bplus", "cost_ms_per_op", 3.92, 3.90),
    cell("8+8/insertion/mu", "cost_ms_per_op", 1.40, 1.40),
    cell("8+8/deletion/bplus", "reads_per_op", 2.40, 2.38),
    cell("8+8/deletion/mu", "reads_per_op", 2.51, 2.49),
    cell("8+8/deletion/bplus", "programs_per_op", 3.85, 3.81),
    cell("8+8/deletion/mu", "programs_per_op", 1.09, 1.07),
    cell("8+8/deletion/bplus", "cost_ms_per_op", 3.93, 3.89),
    cell("8+8/deletion/mu", "cost_ms_per_op", 1.41, 1.39),
    cell("16+16/retrieval/bplus", "reads_per_op", 1.67, 1.66),
    cell("16+16/retrieval/mu", "reads_per_op", 1.90, 1.89),
    cell("16+16/retrieval/bplus", "programs_per_op", 0.00, 0.00),
    cell("16+16/retrieval/mu", "programs_per_op", 0.00, 0.00),
    cell("16+16/retrieval/bplus", "cost_ms_per_op", 0.28, 0.28),
    cell("16+16/retrieval/mu", "cost_ms_per_op", 0.31, 0.31),
    cell("16+16/insertion/bplus", "reads_per_op", 2.03, 2.06),
    cell("16+16/insertion/mu", "reads_per_op", 2.29, 2.31),
    cell("16+16/insertion/bplus", "programs_per_op", 2.75, 2.72),
    cell("16+16/insertion/mu", "programs_per_op", 1.08, 1.08),
    cell("16+16/insertion/bplus", "cost_ms_per_op", 2.85, 2.84),
    cell("16+16/insertion/mu", "cost_ms_per_op", 1.37, 1.37),
    cell("16+16/deletion/bplus", "reads_per_op", 1.82, 2.06),
    cell("16+16/deletion/mu", "reads_per_op", 2.08, 2.30),
    cell("16+16/deletion/bplus", "programs_per_op", 2.74, 2.72),
    cell("16+16/deletion/mu", "programs_per_op", 1.09, 1.07),
    cell("16+16/deletion/bplus", "cost_ms_per_op", 2.84, 2.84),
    cell("16+16/deletion/mu", "cost_ms_per_op", 1.38, 1.36),
];

fn run((kib, name): (usize, &str), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let cache = Cache::paper(kib, kib, PAPER_CHIP.geometry.page_size);
    let structure = match name {
        "bplus" => Structure::Paper(TreeKind::BPlus, cache),
        "mu" => Structure::Paper(TreeKind::Mu, cache),
        _ => Structure::Nandu(2 * kib * 1024),
    };
    let micro = micro::run(structure, context)?;
    Ok(micro.figures(EXPERIMENT.name, &format!("{kib}+{kib}"), name))
}
