//! File-system work replayed on a structure.

use nandu_baselines::{Cache, TreeKind};

use crate::subject::{self, Cost, PAPER_CHIP, Structure};
use crate::workload::{FileMix, Operation, Trace};
use crate::{BenchError, Context};

/// What is replayed: the mixes of the paper, made up, and the recorded sample.
pub(super) const WORK: [&str; 4] = ["kernel_compile", "postmark", "mp3", "recorded"];
pub(super) const STRUCTURES: [&str; 3] = ["bplus", "mu", "nandu"];

/// By how much fewer operations there are at small scale.
const SHRINK: u32 = 200;
const BLOCK_COUNT_SMALL: u32 = 16;

/// Operations before those that count, and these.
fn operations(work: &str, context: &Context<'_>) -> Result<(Vec<Operation>, Vec<Operation>), BenchError> {
    if let Some(mix) = FileMix::ALL.iter().find(|mix| mix.name == work) {
        return Ok((Vec::new(), mix.shrunk(context.scaled(1, SHRINK)).operations(context.seed)));
    }
    let trace = Trace::sample().map_err(|error| BenchError::Other(error.to_string()))?;
    let mut load = trace.operations();
    let mut run = load.split_off(trace.load_count());
    run.truncate(context.scaled(usize::MAX, 10_000));
    Ok((load, run))
}

/// Replays work with caches of so many pages each, or as much in all for nandu's nodes. Returns what it costs and how high
/// the tree became.
pub(super) fn run(
    work: &str,
    structure: &str,
    cache_pages: usize,
    context: &mut Context<'_>,
) -> Result<(Cost, u32), BenchError> {
    let chip = PAPER_CHIP.with_blocks(context.scaled(PAPER_CHIP.geometry.block_count, BLOCK_COUNT_SMALL));
    let cache_size = 2 * cache_pages * chip.geometry.page_size as usize;
    let cache = Cache::Pages { read_pages: cache_pages, write_pages: cache_pages };
    let structure = match structure {
        "bplus" => Structure::Paper(TreeKind::BPlus, cache),
        "mu" => Structure::Paper(TreeKind::Mu, cache),
        _ => Structure::Nandu(cache_size),
    };
    let (load, run) = operations(work, context)?;
    let total = run.len() as u64;
    subject::with(structure, chip, context, |subject, context| {
        subject.run(load, |_| {})?;
        let mut height = 0;
        let mut counted = subject.run([], |_| {})?;
        // The height is looked at now and then, for the tree is empty again in the end.
        for (nth, piece) in run.chunks(run.len().div_ceil(20).max(1)).enumerate() {
            let cost = subject.run(piece.iter().copied(), |_| {})?;
            context.tell((nth as u64 + 1) * total / 20, total);
            counted.add(&cost);
            height = height.max(subject.height());
        }
        Ok((counted, height))
    })
}
