//! Tables 2 and 3: the chip's times, and what a read, the erases and the space come to.

use nandu::nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_inpage::Options;
use nandu_sim::Sim;

use super::rig::{self, Outcome, Run};
use super::{SETUP, SOURCE};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/grr-table2",
    about: "what a node costs to read, the erases and the space of GRR beside IPL, and the times of the chip",
    source: Some(SOURCE),
    setup: SETUP,
    notes: NOTES,
    parts: 1 + MIXES.len(),
    run: |context, part| match part.checked_sub(1).map(|nth| MIXES[nth]) {
        None => chip(context),
        Some(mix) => run_mix(mix, context),
    },
    stated: &[
        Stated::published("chip", "read_us", 80.0),
        Stated::published("chip", "program_us", 200.0),
        Stated::published("chip", "erase_us", 1500.0),
        Stated::published("*/*/ipl", "reads_per_load", 2.0),
    ],
    accept: &[
        Accept::absolute("read_us", 0.0),
        Accept::absolute("program_us", 0.0),
        Accept::absolute("erase_us", 0.0),
        Accept::relative("reads_per_load", 0.1).in_case("0/100/ipl"),
        Accept::relative("reads_per_load", 0.1).in_case("20/80/ipl"),
    ],
    limits: &[
        Limit::at_most("erases_over_ipl", 1.0),
        // The page of the node and each of four log pages.
        Limit::at_most("reads_per_load", 5.0).in_case("*/*/grr"),
    ],
    ..Experiment::PLAIN
};

const NOTES: &str = "`reads_per_load` is the pages read when a node comes into the buffer: its own, and the log pages of its block that have \
anything in them. The paper's table says two for IPL, which is so as soon as the one log page is begun; a merge leaves it empty, so \
the mean is a little less. For GRR the table has two as the least and a term that is garbled as the most; with four log pages five are \
possible. Reads alone find no log page begun, and then both read one page.

`blocks_used` is the space: GRR keeps four pages of a block for logs where IPL keeps one. `erase_count_most` and `erase_count_mean` are whole \
erases of a block since it was new, loading included.";

/// Names, and puts in 100 operations.
const MIXES: [(&str, u32); 3] = [("100/0", 0), ("20/80", 80), ("0/100", 100)];

/// An erase, a program and a read of a whole page.
fn chip(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let kind = rig::chip(rig::SMALL.blocks);
    let mut chip = Sim::with_seed(kind, context.seed);
    let mut page = vec![0; kind.geometry.page_size as usize];
    let mut figures = Vec::new();
    let mut clock_ns = chip.clock_ns();
    let mut figure = |metric, now_ns: u64| {
        let spent_us = (now_ns - clock_ns) as f64 / 1e3;
        clock_ns = now_ns;
        figures.push(Figure::new(EXPERIMENT.name, "chip", metric, spent_us, "us"));
    };
    chip.erase(BlockAddr(0), CellMode::Slc)?;
    figure("erase_us", chip.clock_ns());
    chip.program(PageAddr(0), 0, &page)?;
    figure("program_us", chip.clock_ns());
    let _ = chip.read(PageAddr(0), 0, &mut page)?;
    figure("read_us", chip.clock_ns());
    Ok(figures)
}

fn run_mix((mix, writes): (&'static str, u32), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let ipl = rig::run(Run { options: Options::IPL, is_blind: false, writes }, context, (0, 2))?;
    let grr = rig::run(Run { options: Options::GRR, is_blind: false, writes }, context, (1, 2))?;
    let mut figures = Vec::new();
    for (name, outcome) in [("ipl", &ipl), ("grr", &grr)] {
        let Outcome { stats, counters, extent, .. } = outcome;
        let case = format!("{mix}/{name}");
        let mut figure = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
        let log_pages = stats.log_pages_read as f64 / stats.loads.max(1) as f64;
        figure("reads_per_load", 1.0 + log_pages, "reads");
        figure("programs", counters.programs as f64, "programs");
        figure("erases", counters.erases as f64, "erases");
        figure("blocks_used", f64::from(extent.blocks_used), "blocks");
        figure("erase_count_most", f64::from(extent.erase_count_max), "erases");
        figure("erase_count_mean", f64::from(extent.erase_count_mean), "erases");
    }
    let case = format!("{mix}/all");
    let mut ratio = |metric, ours: f64, theirs: f64| {
        figures.push(Figure::new(EXPERIMENT.name, &case, metric, ours / theirs.max(1.0), "ratio"));
    };
    ratio("erases_over_ipl", grr.counters.erases as f64, ipl.counters.erases as f64);
    ratio("programs_over_ipl", grr.counters.programs as f64, ipl.counters.programs as f64);
    ratio("blocks_over_ipl", f64::from(grr.extent.blocks_used), f64::from(ipl.extent.blocks_used));
    Ok(figures)
}
