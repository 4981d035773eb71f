//! One run: an index is loaded and then used, and the chip's time is taken.

use nandu_inpage::{InPage, Options, Size as Extent, Stats};
use nandu_sim::{Chip, Counters, Sim};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::rig::TELL_EVERY;
use crate::workload::{Chooser, Skew};
use crate::{BenchError, Context};

/// Records, and operations after they are loaded.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) records: u32,
    pub(super) operations: u32,
    pub(super) blocks: u32,
}

/// A structure, and how it is used.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) options: Options,
    /// Puts do not read their leaf.
    pub(super) is_blind: bool,
    /// Share of the operations that are puts, percent.
    pub(super) writes: u32,
}

/// What a run cost.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) seconds: f64,
    pub(super) stats: Stats,
    pub(super) counters: Counters,
    /// How large the index is at the end, and how worn its blocks are.
    pub(super) extent: Extent,
}

impl Outcome {
    pub(super) fn hit_ratio(&self) -> f64 {
        self.stats.hits as f64 / self.stats.references.max(1) as f64
    }

    pub(super) fn leaf_hit_ratio(&self) -> f64 {
        self.stats.leaf_hits as f64 / self.stats.leaf_references.max(1) as f64
    }
}

pub(super) const FULL: Size = Size { records: 1_024_000, operations: 400_000, blocks: 700 };
pub(super) const SMALL: Size = Size { records: 24_000, operations: 4_000, blocks: 80 };

/// The chip of the paper. Its preset says that a cut may damage a whole page, as data sheets do; for sectors to be of any use
/// it has to be taken that a cut damages no more than the sector that is being programmed.
pub(super) fn chip(blocks: u32) -> Chip {
    let mut chip = Chip::PAPER_GRR.with_blocks(blocks);
    chip.geometry.tear = nandu::nand::TearScope::Range;
    chip
}

fn key(number: u32) -> [u8; 8] {
    u64::from(number).to_be_bytes()
}

fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; InPage::<Sim>::memory_required(&chip.geometry, options)]
}

/// Loads records in order and gives the chip, and how many nodes there are.
fn load(size: Size, options: Options, seed: u64) -> Result<(Sim, u32), BenchError> {
    let chip = chip(size.blocks);
    let options = Options { buffer_size: 2 << 20, ..options };
    let mut memory = memory(&chip, &options);
    let chip = Sim::with_seed(chip, seed);
    let mut index = InPage::format(chip, options, &mut memory).map_err(BenchError::structure)?;
    for number in 0..size.records {
        index.put(&key(number), &key(number)).map_err(BenchError::structure)?;
    }
    // Both begin with empty logs.
    index.sync().and_then(|()| index.compact()).map_err(BenchError::structure)?;
    let nodes = index.size().nodes;
    Ok((index.unmount().map_err(BenchError::structure)?, nodes))
}

/// Loads all records in order with the buffer that the finished index is entitled to, and takes the time of that.
pub(super) fn ascend(options: Options, context: &mut Context<'_>) -> Result<Outcome, BenchError> {
    let size = context.scaled(FULL, SMALL);
    let chip = chip(size.blocks);
    // Splits leave leaves half full: 125 of 251 records each.
    let page_size = chip.geometry.page_size as usize;
    let nodes = size.records as usize / 125;
    let options = Options { buffer_size: (nodes * page_size / 32).max(6 * page_size), ..options };
    let mut memory = memory(&chip, &options);
    let chip = Sim::with_seed(chip, context.seed);
    let mut index = InPage::format(chip, options, &mut memory).map_err(BenchError::structure)?;
    let before = *index.nand().counters();
    for number in 0..size.records {
        index.put(&key(number), &key(number)).map_err(BenchError::structure)?;
        if number.is_multiple_of(TELL_EVERY) {
            context.tell(u64::from(number), u64::from(size.records));
        }
    }
    index.sync().map_err(BenchError::structure)?;
    let counters = index.nand().counters().since(&before);
    Ok(Outcome { seconds: counters.busy_ns as f64 / 1e9, stats: *index.stats(), counters, extent: index.size() })
}

/// Runs it; `share` says which part of how many this is, for telling how far it is.
pub(super) fn run(run: Run, context: &mut Context<'_>, share: (u64, u64)) -> Result<Outcome, BenchError> {
    let size = context.scaled(FULL, SMALL);
    measure(run, size, context, share)
}

/// As [`run`], of another size.
pub(super) fn measure(
    run: Run,
    size: Size,
    context: &mut Context<'_>,
    share: (u64, u64),
) -> Result<Outcome, BenchError> {
    let (chip, nodes) = load(size, run.options, context.seed)?;
    let node_size = chip.chip().geometry.page_size as usize * usize::from(run.options.node_pages);
    let options = Options { buffer_size: (nodes as usize * node_size / 32).max(6 * node_size), ..run.options };
    let mut memory = memory(chip.chip(), &options);
    let mut index = InPage::open(chip, options, &mut memory).map_err(BenchError::structure)?;
    let before = *index.nand().counters();
    let mut chooser = Chooser::new(size.records, Skew::Uniform, context.seed)?;
    let mut kinds = ChaCha8Rng::seed_from_u64(context.seed ^ 1);
    for done in 0..size.operations {
        let number = chooser.choose();
        if kinds.random_range(0..100) >= run.writes {
            if index.get(&key(number)).map_err(BenchError::structure)?.is_none() {
                return Err(BenchError::Wrong(number));
            }
        } else if run.is_blind {
            index.put_blind(&key(number), &key(done)).map_err(BenchError::structure)?;
        } else if !index.put(&key(number), &key(done)).map_err(BenchError::structure)? {
            return Err(BenchError::Wrong(number));
        }
        if done.is_multiple_of(TELL_EVERY) {
            let operations = u64::from(size.operations);
            context.tell(share.0 * operations + u64::from(done), share.1 * operations);
        }
    }
    index.sync().map_err(BenchError::structure)?;
    let counters = index.nand().counters().since(&before);
    Ok(Outcome { seconds: counters.busy_ns as f64 / 1e9, stats: *index.stats(), counters, extent: index.size() })
}
