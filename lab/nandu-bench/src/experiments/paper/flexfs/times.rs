//! Table 1: the times of a chip with two bits a cell, used with one and with two.

use nandu::nand::{BlockAddr, CellMode, Nand, PageAddr, PageGroup};
use nandu_sim::{Chip, Sim};

use super::SOURCE;
use crate::{Accept, BenchError, Context, Experiment, Figure, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/flexfs-table1",
    about: "times of a page and a block with one bit a cell and with two, as table 1 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[
        ("chip", "paper-flex"),
        ("workload", "a block erased, every page of it programmed in order and read, in either mode"),
    ],
    notes: NOTES,
    parts: MODES.len(),
    run: |context, part| run(MODES[part], context),
    stated: &[
        Stated::published("mlc-lsb", "read_us", 409.0),
        Stated::published("mlc-lsb", "program_us", 431.0),
        Stated::published("mlc-lsb", "erase_us", 872.0),
        Stated::published("mlc-both", "read_us", 403.0),
        Stated::published("mlc-both", "program_us", 994.0),
        Stated::published("mlc-both", "erase_us", 872.0),
    ],
    accept: &[Accept::absolute("read_us", 0.0), Accept::absolute("program_us", 0.0), Accept::absolute("erase_us", 0.0)],
    ..Experiment::PLAIN
};

const NOTES: &str = "The chip is given the paper's times, those of MSB pages so that the mean of both kinds is the paper's; what is found here is that blocks \
take them page by page. Whether a real chip does is not for a simulator to say, nor is the paper's third column, a chip with one bit a cell. Times contain the \
transfer.";

const MODES: [(&str, CellMode); 2] = [("mlc-lsb", CellMode::Slc), ("mlc-both", CellMode::Mlc)];

fn run((case, mode): (&'static str, CellMode), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let kind = Chip::PAPER_FLEX;
    let geometry = kind.geometry;
    let mut chip = Sim::with_seed(kind, context.seed);
    let mut bytes = vec![0xA5; geometry.page_size as usize];
    let (pairing, pages_per_block) = (geometry.pairing, geometry.pages_per_block);
    let pages: Vec<PageAddr> = match mode {
        CellMode::Slc => (0..pairing.pair_count(pages_per_block))
            .filter_map(|pair| pairing.page_of(pair, PageGroup::Lsb, pages_per_block))
            .map(PageAddr)
            .collect(),
        CellMode::Mlc => (0..pages_per_block).map(PageAddr).collect(),
    };
    let begun_ns = chip.clock_ns();
    chip.erase(BlockAddr(0), mode)?;
    let erased_ns = chip.clock_ns();
    for page in &pages {
        chip.program(*page, 0, &bytes)?;
    }
    let programmed_ns = chip.clock_ns();
    for page in &pages {
        let _ = chip.read(*page, 0, &mut bytes)?;
    }
    let count = pages.len() as f64;
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case, metric, value, unit);
    Ok(vec![
        figure("read_us", (chip.clock_ns() - programmed_ns) as f64 / 1e3 / count, "us"),
        figure("program_us", (programmed_ns - erased_ns) as f64 / 1e3 / count, "us"),
        figure("erase_us", (erased_ns - begun_ns) as f64 / 1e3, "us"),
        figure("pages", count, "pages"),
    ])
}
