//! The paper's microbenchmark: a million records, then retrievals, deletions and insertions, each counted.

use nandu_sim::Chip;

use crate::subject::{self, Cost, PAPER_CHIP, Structure};
use crate::workload::{KeyOrder, Mix, Operation, Records, Skew};
use crate::{BenchError, Context, Figure};

/// Records before the first operation that counts, in a full run.
pub(crate) const RECORD_COUNT: u32 = 1_000_000;
const OPERATION_COUNT: usize = 10_000;
/// By how much fewer there are at small scale.
const SHRINK: u32 = 50;
const BLOCK_COUNT_SMALL: u32 = 16;

/// What the microbenchmark finds about a structure.
pub(crate) struct Micro {
    /// Each operation's name and cost.
    pub(crate) costs: [(&'static str, Cost); 3],
    pub(crate) live_pages: u64,
    pub(crate) height: u32,
}

/// Runs it. Keys are random and distinct, records are chosen at random, and no record is deleted twice.
pub(crate) fn run(structure: Structure, context: &mut Context<'_>) -> Result<Micro, BenchError> {
    let chip = context.chip(PAPER_CHIP, BLOCK_COUNT_SMALL);
    run_on(structure, chip, RECORD_COUNT, context)
}

/// Runs it on a chip with as many records.
pub(crate) fn run_on(
    structure: Structure,
    chip: Chip,
    record_count: u32,
    context: &mut Context<'_>,
) -> Result<Micro, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let operation_count = OPERATION_COUNT / shrink as usize;
    let mix = Mix { reads: 1.0, updates: 0.0, inserts: 0.0, deletes: 0.0, scans: 0.0, read_modify_writes: 0.0 };
    let records = Records { order: KeyOrder::Random, count: record_count / shrink, skew: Skew::Uniform, mix };
    subject::with(structure, chip, context, |subject, context| {
        let seed = context.seed;
        let total = u64::from(records.count);
        subject.run(records.load(seed), |done| context.tell(done, total))?;
        // As the tree is before anything is deleted.
        let (live_pages, height) = (subject.live_pages(), subject.height());
        let chosen = |mix| Records { mix, ..records }.operations(seed);
        let retrieval = subject.run(chosen(mix)?.take(operation_count), |_| {})?;
        let deletes = chosen(Mix { reads: 0.0, deletes: 1.0, ..mix })?;
        let deletion = subject.run(deletes.take(operation_count), |_| {})?;
        let keys = records.keys(seed);
        let new = (records.count..).take(operation_count);
        let inserts = new.map(|record| Operation::Put { key: keys.at(record), value: record });
        let insertion = subject.run(inserts, |_| {})?;
        let costs = [("retrieval", retrieval), ("insertion", insertion), ("deletion", deletion)];
        Ok(Micro { costs, live_pages, height })
    })
}

impl Micro {
    /// The figures of a setting and a structure: cases `SETTING/OPERATION/STRUCTURE`.
    pub(crate) fn figures(&self, experiment: &'static str, setting: &str, structure: &str) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (operation, cost) in &self.costs {
            let case = format!("{setting}/{operation}/{structure}");
            let mut figure = |metric, value, unit| figures.push(Figure::new(experiment, &case, metric, value, unit));
            figure("reads_per_op", cost.reads_per_op(), "reads");
            figure("programs_per_op", cost.programs_per_op(), "programs");
            figure("erases_per_op", cost.erases_per_op(), "erases");
            figure("cost_ms_per_op", cost.ms_per_op(), "ms");
        }
        let case = format!("{setting}/built/{structure}");
        figures.push(Figure::new(experiment, &case, "pages_live", self.live_pages as f64, "pages"));
        figures.push(Figure::new(experiment, &case, "height", f64::from(self.height), "levels"));
        figures
    }
}
