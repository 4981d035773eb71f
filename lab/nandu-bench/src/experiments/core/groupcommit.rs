//! Random updates of a million small entries that become durable together, `k` at a time.

use nandu::nand::{Pairing, TearScope};
use nandu::{Durability, Options};
use nandu_sim::{Chip, Sim};

use crate::records::{self, Cells};
use crate::rig::{Phase, TELL_EVERY};
use crate::workload::{Chooser, RandomKeys, Skew};
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/groupcommit",
    about: "random updates of a million entries, a sync after every k of them, 32 KiB for nodes and changes",
    limits: &[
        Limit::at_most("programs_per_update", 1.03).in_case("k1"),
        Limit::at_most("programs_per_update", 0.5).in_case("k16"),
        Limit::at_most("programs_per_update", 0.5).in_case("k256"),
    ],
    small_limits: &[
        Limit::at_most("programs_per_update", 1.04).in_case("k1"),
        Limit::at_most("programs_per_update", 0.35).in_case("k4"),
        Limit::at_most("programs_per_update", 0.355).in_case("k16"),
        Limit::at_most("programs_per_update", 0.35).in_case("k64"),
        Limit::at_most("programs_per_update", 0.35).in_case("k256"),
    ],
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB, all of them used"),
        ("memory", "8 KiB of node cache, 24 KiB for changes that wait"),
        ("structure", "map of integers, 4 + 4 bytes an entry"),
        ("workload", "1,000,000 inserts of random keys; 400,000 random updates, of which the second half is measured"),
    ],
    stated: &[
        Stated::model("k1", "programs_per_update", 1.0),
        Stated::model("k4", "programs_per_update", 0.31),
        Stated::model("k16", "programs_per_update", 0.31),
        Stated::model("k64", "programs_per_update", 0.32),
        Stated::model("k256", "programs_per_update", 0.32),
    ],
    parts: CASES.len(),
    part_name: |part| format!("k{}", CASES[part]),
    run: |context, part| run_case(CASES[part], context),
    ..Experiment::PLAIN
};

/// Updates between two syncs.
const CASES: [u32; 5] = [1, 4, 16, 64, 256];

/// Memory beyond page buffers and the log: inner nodes, and changes that are not in their leaves.
const CACHE_SIZE: usize = 8192;
const PENDING_SIZE: usize = 24_576;

const RECORD_COUNT: u32 = 1_000_000;
const UPDATE_COUNT: u32 = 200_000;
/// By how much fewer records, updates and bytes for changes there are at small scale.
const SHRINK: u32 = 8;

fn run_case(k: u32, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let (record_count, update_count) = (RECORD_COUNT / shrink, UPDATE_COUNT / shrink);
    // Every page is used, and a cut harms no other page than its own: as in the paper.
    let mut chip = Chip::PAPER_MLC.with_blocks(Chip::PAPER_MLC.geometry.block_count / shrink.min(4));
    chip.geometry.pairing = Pairing::None;
    chip.geometry.tear = TearScope::Page;
    let options = Options {
        cache_size: CACHE_SIZE,
        durability: Durability::OnSync,
        pending_size: PENDING_SIZE / shrink as usize,
        ..Options::DEFAULT
    };
    let total = u64::from(record_count + 2 * update_count);

    let mut sim = Sim::with_seed(chip, context.seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut map = records::format(&mut sim, Cells::Fixed, options, &mut memory)?;
    let keys = RandomKeys::new(context.seed);
    for index in 0..record_count {
        map.put(&keys.at(index).to_be_bytes(), &index.to_be_bytes())?;
        if index.is_multiple_of(TELL_EVERY) {
            context.tell(u64::from(index), total);
        }
    }
    map.sync()?;

    let mut chooser = Chooser::new(record_count, Skew::Uniform, context.seed)?;
    // The first half fills the memory with changes as this case leaves them.
    let mut updates = Phase::start(map.nand(), update_count);
    for done in 0..2 * update_count {
        if done == update_count {
            updates = Phase::start(map.nand(), update_count);
        }
        let index = chooser.choose();
        map.put(&keys.at(index).to_be_bytes(), &index.to_be_bytes())?;
        if (done + 1).is_multiple_of(k) {
            map.sync()?;
        }
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(u64::from(record_count + done), total);
        }
    }
    let programs = updates.programs_per_operation(map.nand());
    let reads = updates.reads_per_operation(map.nand());
    drop(map);
    let before = *sim.counters();
    let map = records::open(&mut sim, Cells::Fixed, options, &mut memory)?;
    let mount = map.nand().counters().since(&before).reads as f64;

    let case = format!("k{k}");
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &case, metric, value, unit);
    Ok(vec![
        figure("programs_per_update", programs, "programs"),
        figure("reads_per_update", reads, "reads"),
        figure("mount_loads_cut", mount, "reads"),
    ])
}
