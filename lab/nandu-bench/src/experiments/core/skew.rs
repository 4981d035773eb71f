//! Garbage collection and wear when a few pages are updated most of the time and the chip is nearly full.
//!
//! What is skewed is the popularity of **pages**, as in the models of garbage collection: popularity falls with the order
//! of keys, so that a leaf is as popular as its entries are. Entries are as large as they may be and are loaded in random
//! order, so that a leaf holds two or three and neighbours in the order of keys are no neighbours on the chip.
//!
//! The chip is 80 % full when its live pages are 80 % of all its pages, those of bad blocks and of the reserve included. Its capacity is
//! all its pages, too. After four times that many updates, one capacity more is measured.

use nandu::Options;
use nandu::nand::{BlockAddr, Cause};
use nandu_sim::{Chip, Ledger, Sim};

use crate::records::{self, Cells, Outcome, Records};
use crate::rig::TELL_EVERY;
use crate::workload::{Chooser, RandomKeys, Skew};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/skew",
    about: "skewed updates of pages on a chip that is 80 % full, after four times its capacity was written",
    limits: &[
        Limit::at_most("write_amplification", 1.7).in_case("95-5"),
        Limit::at_most("write_amplification", 2.5).in_case("zipf-0.99"),
        Limit::at_least("evenness_over_wa", 0.5).in_case("95-5"),
        Limit::at_most("levelling_share", 0.01),
    ],
    small_limits: &[
        Limit::at_most("write_amplification", 1.65).in_case("95-5"),
        Limit::at_most("write_amplification", 2.85).in_case("zipf-0.99"),
        Limit::at_least("evenness_over_wa", 0.5).in_case("95-5"),
    ],
    setup: &[
        ("chip", "w25n01gv (128 MiB), 80 % of its pages live"),
        ("memory", "16 KiB of node cache"),
        ("structure", "store of byte strings, entries as large as they may be"),
        ("workload", "skewed updates of pages: four times the capacity, then one capacity that is measured"),
    ],
    stated: &[
        Stated::model("95-5", "write_amplification", 1.31),
        Stated::model("95-5", "evenness_over_wa", 0.70),
        Stated::model("zipf-0.99", "write_amplification", 1.95),
    ],
    plots: &[Plot {
        title: "Write amplification",
        metric: "write_amplification",
        cases: "{x}",
        x: "which pages are updated",
        y: "programs per program asked for",
        kind: PlotKind::Bars,
    }],
    parts: CASES.len(),
    part_name: |part| CASES[part].name.to_owned(),
    run: |context, part| run_case(&CASES[part], context),
    ..Experiment::PLAIN
};

struct Case {
    name: &'static str,
    skew: Skew,
}

const CASES: [Case; 2] = [
    Case { name: "95-5", skew: Skew::HotCold { choices: 0.95, items: 0.05 } },
    Case { name: "zipf-0.99", skew: Skew::Zipf(0.99) },
];

const CHIP: Chip = Chip::W25N01GV;
const BLOCK_COUNT_SMALL: u32 = 256;
/// Enough for what is asked for often; reads are not measured here.
const CACHE_SIZE: usize = 16 * 1024;
const LIVE_SHARE: f64 = 0.8;
/// Entries loaded between two looks at how full the chip is, which take time.
const LOOK_EVERY: u32 = 64;
/// Capacities written before measuring.
const WARM_UP: u32 = 4;

fn run_case(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = CHIP.with_blocks(context.scaled(CHIP.geometry.block_count, BLOCK_COUNT_SMALL));
    let page_count = chip.geometry.page_count();
    let options = Options { cache_size: CACHE_SIZE, ..Options::DEFAULT };
    let mut sim = Sim::with_seed(chip, context.seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let keys = load(&mut *store, (f64::from(page_count) * LIVE_SHARE) as u32, context.seed)?;

    let mut chooser = Chooser::in_order(keys.len() as u32, case.skew, context.seed)?;
    let total = u64::from(page_count * (WARM_UP + 1));
    let mut before = store.nand().ledger().clone();
    for done in 0..page_count * (WARM_UP + 1) {
        if done == page_count * WARM_UP {
            before = store.nand().ledger().clone();
        }
        put(&mut *store, keys[chooser.choose() as usize], 1)?;
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(done.into(), total);
        }
    }

    let after = store.nand().ledger();
    let asked: u64 = [Cause::Host, Cause::Tree, Cause::Value].map(|cause| programs(&before, after, cause)).iter().sum();
    let all: u64 = Cause::ALL.map(|cause| programs(&before, after, cause)).iter().sum();
    let amplification = all as f64 / asked as f64;
    let evenness = evenness(store.nand());
    let levelling = programs(&Ledger::EMPTY, after, Cause::Levelling) as f64;
    let stats = store.stats();
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case.name, metric, value, unit);
    Ok(vec![
        figure("live_share", f64::from(stats.live_pages) / f64::from(page_count), "ratio"),
        figure("write_amplification", amplification, "ratio"),
        figure("evenness", evenness, "ratio"),
        figure("evenness_over_wa", evenness / amplification, "ratio"),
        figure("levelling_share", levelling / after.total().programs as f64, "ratio"),
        figure("erase_count_mean", f64::from(stats.erase_count_mean), "erases"),
        figure("erase_count_max", f64::from(stats.erase_count_max), "erases"),
    ])
}

/// Loads entries with random keys until so many pages live; returns the keys in rising order.
fn load(store: &mut dyn Records, live_pages: u32, seed: u64) -> Result<Vec<u32>, BenchError> {
    let random = RandomKeys::new(seed);
    let mut keys = Vec::new();
    for index in 0.. {
        if index % LOOK_EVERY == 0 && store.stats().live_pages >= live_pages {
            break;
        }
        keys.push(random.at(index));
        put(store, random.at(index), 0)?;
    }
    keys.sort_unstable();
    Ok(keys)
}

fn put(store: &mut dyn Records, key: u32, version: u8) -> Outcome<()> {
    let key = key.to_be_bytes();
    let value = [version; 4096];
    let value_size = (store.entry_size_max() - key.len()).min(value.len());
    store.put(&key, &value[..value_size]).map(drop)
}

fn programs(before: &Ledger, after: &Ledger, cause: Cause) -> u64 {
    after.of(cause).programs - before.of(cause).programs
}

/// How evenly the blocks are worn: mean of their erase counts over the highest one. The chip lives as long as its most
/// worn block, so this over write amplification is the share of the ideal life that it reaches. Anchor blocks count as
/// any other; blocks that are bad do not wear.
fn evenness(chip: &Sim) -> f64 {
    let blocks = (0..chip.chip().geometry.block_count).map(|block| chip.block_state(BlockAddr(block)));
    let erases: Vec<u32> =
        blocks.filter(|block| !block.factory_bad && !block.grown_bad).map(|block| block.counters.erases).collect();
    let most = erases.iter().max().copied().unwrap_or(0);
    let sum: u64 = erases.iter().copied().map(u64::from).sum();
    sum as f64 / erases.len().max(1) as f64 / f64::from(most.max(1))
}
