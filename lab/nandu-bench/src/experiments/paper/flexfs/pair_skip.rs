//! E12: what a sync costs in an MLC block.

use nandu::nand::{BlockAddr, CellMode, Nand, Pairing};
use nandu_sim::{Chip, Sim};

use super::{CHIP, SOURCE};
use crate::flexfs::PairSkip;
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/flexfs-e12",
    about: "the share of an MLC block that can be used if every k-th page is synced and no promised page is ever endangered",
    source: Some(SOURCE),
    setup: &[
        CHIP,
        (
            "structure",
            "an MLC head that leaves out the MSB partner of a page that was synced before the partner's turn",
        ),
        ("workload", "pages in order, a sync after every k-th, over 64 blocks"),
    ],
    notes: NOTES,
    parts: PAIRINGS.len(),
    run: |context, part| run(PAIRINGS[part], context),
    stated: &[
        Stated::model("scheme-a/4", "usable_percent", 50.0),
        Stated::model("scheme-a/8", "usable_percent", 69.0),
        Stated::model("scheme-a/16", "usable_percent", 81.0),
        Stated::model("scheme-a/32", "usable_percent", 89.0),
        Stated::model("scheme-a/64", "usable_percent", 94.0),
    ],
    accept: &[crate::Accept::absolute("usable_percent", 1.0)],
    limits: &[
        Limit::at_least("usable_percent", 49.0).in_case("scheme-a/4"),
        Limit::at_least("usable_percent", 67.0).in_case("dist3/4"),
    ],
    plots: &[Plot {
        title: "Pages that can be used, by pages between two syncs",
        metric: "usable_percent",
        cases: "{series}/{x}",
        x: "pages between syncs",
        y: "% of an MLC block",
        kind: PlotKind::LogLines,
    }],
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper says nothing of paired pages: a cut during the program of an MSB page destroys an LSB page that fsync has answered for. \
With a sync after every fourth page an MLC block holds no more than an SLC block does, so nandu syncs into SLC blocks and leaves pairs out only \
where there is no room for these. `ms_per_page` is the chip's time for a page, erase included: leaving MSB pages out also \
saves their time, since only they are slow.";

const PAIRINGS: [(&str, Pairing); 2] = [("scheme-a", Pairing::SchemeA), ("dist3", Pairing::Dist3)];
const SYNC_EVERY: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

fn run((name, pairing): (&str, Pairing), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let blocks = context.scaled(64, 8);
    let mut chip = Chip::PAPER_FLEX.with_blocks(blocks);
    chip.geometry.pairing = pairing;
    let geometry = chip.geometry;
    let data = vec![0x5A; geometry.page_size as usize];
    let mut figures = Vec::new();
    for (nth, sync_every) in SYNC_EVERY.into_iter().enumerate() {
        let mut sim = Sim::new(chip);
        let mut written = 0;
        for block in (0..blocks).map(BlockAddr) {
            sim.erase(block, CellMode::Mlc)?;
            let mut skip = PairSkip::new();
            while let Some(index) = skip.take(&geometry.pairing, geometry.pages_per_block) {
                sim.program(geometry.page_at(block, index), 0, &data)?;
                written += 1;
                if written % sync_every == 0 {
                    skip.sync();
                }
            }
        }
        let all = u64::from(blocks) * u64::from(geometry.pages_per_block);
        let case = format!("{name}/{sync_every}");
        let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &case, metric, value, unit);
        figures.push(figure("usable_percent", written as f64 * 100.0 / all as f64, "%"));
        figures.push(figure("ms_per_page", sim.counters().busy_ns as f64 / 1e6 / written as f64, "ms"));
        context.tell(nth as u64 + 1, SYNC_EVERY.len() as u64);
    }
    Ok(figures)
}
