//! A million small entries on the chip of the mu-Tree paper, with the memory of one of the paper's rows.
//!
//! In SLC mode the chip has half its pages. For that case the number of programs has a limit of its own: with 7,296 pages
//! in use and 2,285 live ones under uniform updates, a block that is emptied first in, first out has a share p of live pages
//! with p = exp(-(1 - p) * 7296 / 2285) = 0.047, so that garbage collection alone makes 1.049 programs of one.

use nandu::nand::{Pairing, TearScope};
use nandu::{Map, Options};
use nandu_sim::{Chip, Sim};

use crate::Figure;
use crate::experiment::{BenchError, Context, Experiment, Limit};
use crate::rig::{self, Phase, TELL_EVERY};
use crate::workload::{Chooser, RandomKeys, Skew};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/million",
    about: "a million entries of 8 bytes with random keys on paper-mlc, 8 KiB of node cache",
    limits: &[
        Limit::at_most("programs_per_update", 1.03).in_case("whole-blocks"),
        Limit::at_most("programs_per_update", 1.06).in_case("slc-mode"),
        Limit::at_most("reads_per_lookup", 1.2),
        Limit::at_most("pages_live", 2500.0),
    ],
    run,
};

struct Case {
    name: &'static str,
    chip: Chip,
    /// Programs for an update.
    model_update: f64,
}

const CASES: [Case; 2] = [
    // As the paper used the chip: every page, and a cut harms no other page than its own.
    Case { name: "whole-blocks", chip: unpaired(Chip::PAPER_MLC), model_update: 1.001 },
    // As it is used safely: only the pages that no later program can harm, half of the capacity.
    Case { name: "slc-mode", chip: Chip::PAPER_MLC, model_update: 1.049 },
];

const fn unpaired(mut chip: Chip) -> Chip {
    chip.geometry.pairing = Pairing::None;
    chip.geometry.tear = TearScope::Page;
    chip
}

const CACHE_SIZE: usize = 8192;
const RECORD_COUNT: u32 = 1_000_000;
const UPDATE_COUNT: u32 = 500_000;
const LOOKUP_COUNT: u32 = 200_000;
/// By how much fewer records, blocks and operations there are at small scale.
const SHRINK: u32 = 8;

fn run(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (nth, case) in CASES.iter().enumerate() {
        figures.extend(run_case(case, nth as u64, context)?);
    }
    Ok(figures)
}

fn run_case(case: &Case, nth: u64, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let shrink = context.scaled(1, SHRINK);
    let (record_count, update_count, lookup_count) =
        (RECORD_COUNT / shrink, UPDATE_COUNT / shrink, LOOKUP_COUNT / shrink);
    let chip = case.chip.with_blocks(case.chip.geometry.block_count / shrink.min(4));
    let total = CASES.len() as u64 * u64::from(record_count + update_count + lookup_count);
    let first = total / CASES.len() as u64 * nth;

    let options = Options { cache_size: CACHE_SIZE, ..Options::DEFAULT };
    let mut memory = rig::memory(&chip, &options);
    let mut map: Map<Sim, u32, 4, u32, 4> = Map::format(Sim::with_seed(chip, context.seed), options, &mut memory)?;
    let keys = RandomKeys::new(context.seed);
    let inserts = Phase::start(map.nand(), record_count);
    for index in 0..record_count {
        map.put(keys.at(index), index)?;
        if index.is_multiple_of(TELL_EVERY) {
            context.tell(first + u64::from(index), total);
        }
    }
    let programs_per_insert = inserts.programs_per_operation(map.nand());
    let reads_per_insert = inserts.reads_per_operation(map.nand());

    let mut chooser = Chooser::new(record_count, Skew::Uniform, context.seed)?;
    let updates = Phase::start(map.nand(), update_count);
    for done in 0..update_count {
        let index = chooser.choose();
        map.put(keys.at(index), index)?;
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(first + u64::from(record_count + done), total);
        }
    }
    let programs_per_update = updates.programs_per_operation(map.nand());
    let reads_per_update = updates.reads_per_operation(map.nand());

    let lookups = Phase::start(map.nand(), lookup_count);
    for done in 0..lookup_count {
        let index = chooser.choose();
        if map.get(keys.at(index))? != Some(index) {
            return Err(BenchError::Wrong(keys.at(index)));
        }
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(first + u64::from(record_count + update_count + done), total);
        }
    }
    let reads_per_lookup = lookups.reads_per_operation(map.nand());

    // The model knows the full size only.
    let model = |value| context.scaled(Some(value), None);
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case.name, metric, value, unit);
    Ok(vec![
        figure("programs_per_insert", programs_per_insert, "programs").with_model(model(1.001)),
        figure("reads_per_insert", reads_per_insert, "reads").with_model(model(1.0)),
        figure("programs_per_update", programs_per_update, "programs").with_model(model(case.model_update)),
        figure("reads_per_update", reads_per_update, "reads").with_model(model(1.0)),
        figure("reads_per_lookup", reads_per_lookup, "reads").with_model(model(1.0)),
        figure("pages_live", f64::from(map.stats().live_pages), "pages").with_model(model(2252.0)),
    ])
}
