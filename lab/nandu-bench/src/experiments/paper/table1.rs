//! The times of the paper's chips, as the simulator takes them.

use nandu::nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::{Accept, BenchError, Context, Experiment, Figure, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-table1",
    about: "times of the chips that the mu-Tree paper reckons with",
    source: Some(super::MUTREE),
    setup: &[("chips", "paper-slc, paper-mlc"), ("workload", "an erase, a program and a read of a whole page")],
    parts: CHIPS.len(),
    run: |context, part| run(CHIPS[part], context),
    stated: &[
        Stated::published("slc", "read_us", 77.8),
        Stated::published("slc", "program_us", 252.8),
        Stated::published("slc", "erase_us", 1500.0),
        Stated::published("mlc", "read_us", 165.6),
        Stated::published("mlc", "program_us", 905.8),
        Stated::published("mlc", "erase_us", 1500.0),
    ],
    accept: &[Accept::absolute("read_us", 0.0), Accept::absolute("program_us", 0.0), Accept::absolute("erase_us", 0.0)],
    notes: "The paper's times contain the transfer of the bytes, so the simulated bus takes no time.",
    ..Experiment::PLAIN
};

const CHIPS: [(&str, Chip); 2] = [("slc", Chip::PAPER_SLC), ("mlc", Chip::PAPER_MLC)];

fn run((case, kind): (&str, Chip), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut chip = Sim::with_seed(kind, context.seed);
    let mut page = vec![0; kind.geometry.page_size as usize];
    let mut clock_ns = [chip.clock_ns(); 4];
    chip.erase(BlockAddr(0), CellMode::Slc)?;
    clock_ns[1] = chip.clock_ns();
    chip.program(PageAddr(0), 0, &page)?;
    clock_ns[2] = chip.clock_ns();
    let _ = chip.read(PageAddr(0), 0, &mut page)?;
    clock_ns[3] = chip.clock_ns();
    let figure = |metric, nth: usize| {
        let spent_us = (clock_ns[nth] - clock_ns[nth - 1]) as f64 / 1e3;
        Figure::new(EXPERIMENT.name, case, metric, spent_us, "us")
    };
    Ok(vec![figure("read_us", 3), figure("program_us", 2), figure("erase_us", 1)])
}
