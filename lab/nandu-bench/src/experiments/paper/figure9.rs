//! How often both trees have to free blocks for the work of file systems.

use super::replay::{self, STRUCTURES, WORK};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-figure9",
    about: "garbage collections of both trees of the mu-Tree paper for file-system work",
    source: Some(super::MUTREE),
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        ("memory", "no cache"),
        ("workload", "the three mixes of the paper's table 4, made up, and a recorded build of a small source tree"),
    ],
    parts: WORK.len(),
    run: |context, part| run(WORK[part], context),
    limits: &[
        // The paper shows bars without numbers: fewer for the mu-Tree in each trace.
        Limit::at_most("gc_ratio", 0.999).in_case("kernel_compile/mu"),
        Limit::at_most("gc_ratio", 0.999).in_case("postmark/mu"),
        Limit::at_most("gc_ratio", 0.999).in_case("mp3/mu"),
    ],
    plots: &[Plot {
        title: "Blocks freed by garbage collection, no cache",
        metric: "gc_runs",
        cases: "{x}/{series}",
        x: "work",
        y: "blocks",
        kind: PlotKind::Bars,
    }],
    notes: "\
A garbage collection frees one block. The paper shows their number as bars and prints none, so what is demanded is that the \
mu-Tree has fewer than the B+-tree. nandu's number is its erases, those of its anchor blocks included; it differs from the \
other two in that it keeps blocks ready and checkpoints.",
    ..Experiment::PLAIN
};

fn run(work: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    let mut bplus = None;
    for (nth, structure) in STRUCTURES.iter().enumerate() {
        context.tell(nth as u64, STRUCTURES.len() as u64);
        let (cost, _) = replay::run(work, structure, 0, &mut Context { progress: None, ..*context })?;
        let case = format!("{work}/{structure}");
        figures.push(Figure::new(EXPERIMENT.name, &case, "gc_runs", cost.gc_runs as f64, "blocks"));
        match bplus {
            None => bplus = Some(cost.gc_runs),
            Some(runs @ 1..) => {
                let ratio = cost.gc_runs as f64 / runs as f64;
                figures.push(Figure::new(EXPERIMENT.name, &case, "gc_ratio", ratio, "ratio"));
            }
            Some(0) => {}
        }
    }
    Ok(figures)
}
