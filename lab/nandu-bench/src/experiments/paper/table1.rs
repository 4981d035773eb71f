//! The shape and the times of the paper's chips, as the simulator has and takes them.

use nandu::nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::{Accept, BenchError, Context, Experiment, Figure, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-table1",
    about: "shape and times of the chips that the mu-Tree paper reckons with",
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
        Stated::published("slc", "page_bytes", 2048.0),
        Stated::published("slc", "spare_bytes", 64.0),
        Stated::published("slc", "pages_per_block", 64.0),
        Stated::published("slc", "programs_per_page", 4.0),
        Stated::published("mlc", "page_bytes", 4096.0),
        Stated::published("mlc", "spare_bytes", 128.0),
        Stated::published("mlc", "pages_per_block", 128.0),
        Stated::published("mlc", "programs_per_page", 1.0),
    ],
    accept: &[
        Accept::absolute("read_us", 0.0),
        Accept::absolute("program_us", 0.0),
        Accept::absolute("erase_us", 0.0),
        Accept::absolute("page_bytes", 0.0),
        Accept::absolute("spare_bytes", 0.0),
        Accept::absolute("pages_per_block", 0.0),
        Accept::absolute("programs_per_page", 0.0),
    ],
    notes: "The paper's times contain the transfer of the bytes, so the simulated bus takes no time. `programs_per_page` is how often a part of \
        a page may be programmed between two erases (NOP).",
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
    let geometry = kind.geometry;
    let shape = |metric, value: u32, unit| Figure::new(EXPERIMENT.name, case, metric, f64::from(value), unit);
    Ok(vec![
        figure("read_us", 3),
        figure("program_us", 2),
        figure("erase_us", 1),
        shape("page_bytes", geometry.page_size, "bytes"),
        shape("spare_bytes", geometry.spare_size, "bytes"),
        shape("pages_per_block", geometry.pages_per_block, "pages"),
        shape("programs_per_page", geometry.programs_per_page.into(), "programs"),
    ])
}
