//! Costs of an operation in a tree of a known height: nothing cached, nothing split, no block freed.

use nandu_baselines::{Cache, TreeKind};
use nandu_sim::Chip;

use crate::subject::{self, PAPER_CHIP, Structure, Subject};
use crate::{Accept, BenchError, Context, Experiment, Figure};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-table3",
    about: "exact page operations of both trees of the mu-Tree paper, by height",
    source: Some(super::MUTREE),
    setup: &[
        ("chip", "paper-mlc"),
        ("memory", "no cache"),
        ("workload", "single operations on keys whose path lies in as many pages as it has levels"),
    ],
    parts: CASES.len(),
    run: |context, part| run(CASES[part], context),
    accept: &[Accept::absolute("reads_per_op", 0.0), Accept::absolute("programs_per_op", 0.0)],
    notes: "\
The paper's table counts a read for each level. The mu-Tree needs fewer where a child lies in the page of its parent, which \
is left out there. So before each operation that is counted, other records under the same nodes are put again, until each \
node of the path is in a page of its own. Operations during which a block was freed or erased do not count.",
    ..Experiment::PLAIN
};

const CASES: [(u32, TreeKind); 6] = [
    (1, TreeKind::BPlus),
    (1, TreeKind::Mu),
    (2, TreeKind::BPlus),
    (2, TreeKind::Mu),
    (3, TreeKind::BPlus),
    (3, TreeKind::Mu),
];

/// Keys whose operations are counted.
const SAMPLES: u32 = 4;

/// A chip with small pages, so that trees are high with few records.
fn small_pages() -> Chip {
    let mut chip = PAPER_CHIP;
    chip.geometry.page_size = 512;
    chip.geometry.program_unit = 512;
    chip
}

/// Entries of the root of a tree of this height, and of nodes of each level below, leaves first, as a split leaves them
/// behind, if a page holds `f`.
fn fanouts(kind: TreeKind, height: u32, f: u32) -> (u32, Vec<u32>) {
    match kind {
        TreeKind::BPlus => (f, vec![f / 2 + 1; height as usize - 1]),
        TreeKind::Mu => (f >> (height - 1), (1..height).map(|level| (f >> level) / 2 + 1).collect()),
    }
}

/// Records after ascending inserts when the root is full.
fn capacity(kind: TreeKind, height: u32, f: u32) -> u32 {
    let (root, below) = fanouts(kind, height, f);
    root * below.iter().product::<u32>()
}

fn run((height, kind): (u32, TreeKind), context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = context.scaled(PAPER_CHIP, small_pages());
    let f = chip.geometry.page_size / 8;
    let record_count = if height == 1 { f / 4 } else { capacity(kind, height - 1, f) / 2 * 3 };
    subject::with(Structure::Paper(kind, Cache::NONE), chip, context, |subject, context| {
        for key in 0..record_count {
            subject.put(key, key)?;
            if key.is_multiple_of(4096) {
                context.tell(key.into(), record_count.into());
            }
        }
        if subject.height() != height {
            return Err(BenchError::Other(format!("{record_count} records make {} levels", subject.height())));
        }
        // Records under a node above the leaves; 1 if there is none.
        let (_, below) = fanouts(kind, height, f);
        let span: u32 = below.iter().take(2).product();
        let mut figures = Vec::new();
        for (operation, published) in operations(kind, height) {
            let mut counted = [0.0; 2];
            let mut samples = 0;
            for nth in 0..SAMPLES * 4 {
                let key = (span * (nth % SAMPLES + 1) + span / 4) % record_count;
                let (counters, gc_runs) = one(subject, operation, key, span, record_count)?;
                if gc_runs == 0 && counters.erases == 0 {
                    counted[0] += counters.reads as f64;
                    counted[1] += counters.programs as f64;
                    samples += 1;
                }
            }
            let case = format!("height-{height}/{operation}/{}", name(kind));
            let figure = |metric, place: usize, unit| {
                Figure::new(EXPERIMENT.name, &case, metric, counted[place] / f64::from(samples), unit)
                    .with_published(published.get(place).copied())
            };
            figures.push(figure("reads_per_op", 0, "reads"));
            figures.push(figure("programs_per_op", 1, "programs"));
        }
        Ok(figures)
    })
}

/// Each operation, and the reads and programs that the paper states.
fn operations(kind: TreeKind, height: u32) -> [(&'static str, [f64; 2]); 3] {
    let reads = f64::from(height);
    let programs = if kind == TreeKind::Mu { 1.0 } else { reads };
    [("retrieval", [reads, 0.0]), ("insertion", [reads, programs]), ("deletion", [reads, programs])]
}

pub(super) fn name(kind: TreeKind) -> &'static str {
    match kind {
        TreeKind::BPlus => "bplus",
        TreeKind::Mu => "mu",
    }
}

/// What one operation costs, and the blocks freed in it.
fn one(
    subject: &mut dyn Subject,
    operation: &str,
    key: u32,
    span: u32,
    record_count: u32,
) -> Result<(nandu_sim::Counters, u64), BenchError> {
    if operation == "insertion" {
        subject.delete(key)?;
    } else {
        subject.put(key, key)?;
    }
    // Now the whole path is in one page. A record of another leaf takes the node above the leaf along to its own page, and a
    // record far away the root.
    for other in [key + span / 4, key + record_count / 2] {
        let other = other % record_count;
        subject.put(other, other)?;
    }
    let before = (subject.counters(), subject.gc_runs());
    match operation {
        "retrieval" => drop(subject.get(key)?),
        "insertion" => subject.put(key, key)?,
        _ => drop(subject.delete(key)?),
    }
    Ok((subject.counters().since(&before.0), subject.gc_runs() - before.1))
}
