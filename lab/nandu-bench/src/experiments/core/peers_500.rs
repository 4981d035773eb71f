//! A small store under random overwrites, in little memory: the work on which other engines for raw NAND were measured.

use nandu::{ByteCells, Store};
use nandu_sim::{Bus, Chip, Sim, SimError, Timing};

use crate::rig::{self, Phase, TELL_EVERY};
use crate::workload::{Chooser, Skew};
use crate::{BenchError, Context, Experiment, Figure, Limit};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/peers-500",
    about: "500 records of 100 bytes, random durable overwrites, 16 KiB of memory in all",
    limits: &[
        Limit::at_most("programs_per_update", 1.05),
        Limit::at_most("loads_per_update", 2.0),
        Limit::at_most("loads_per_lookup", 1.0),
        Limit::at_most("worst_update_ms", 5.0),
        Limit::at_most("mount_loads_clean", 40.0),
        Limit::at_most("mount_loads_cut", 40.0),
    ],
    small_limits: &[
        Limit::at_most("programs_per_update", 1.03),
        Limit::at_most("loads_per_update", 0.96),
        Limit::at_most("loads_per_lookup", 0.91),
        Limit::at_most("worst_update_ms", 2.7),
        Limit::at_most("mount_loads_clean", 13.0),
        Limit::at_most("mount_loads_cut", 26.0),
    ],
    setup: &[
        (
            "chip",
            "W25N01GV of the part table, 256 blocks of 64 pages of 2 KiB; 16 tag bytes, of which a store uses none; the bus takes no time",
        ),
        ("memory", "16 KiB in all"),
        ("structure", "store of byte strings"),
        ("workload", "500 records of 100 bytes; 200,000 random updates, 100,000 random lookups, 100 mounts"),
    ],
    run: |context, _| run(context),
    ..Experiment::PLAIN
};

const CASE: &str = "nandu";

/// 2 KiB pages, 64 in a block, 256 blocks. The bus takes no time: the engines compared were measured so.
fn chip() -> Chip {
    Chip { timing: Timing::slc(60_000, 250_000, 2_000_000, Bus::INCLUDED), ..Chip::W25N01GV.with_blocks(256) }
}

const MEMORY_SIZE: usize = 16 * 1024;
const RECORD_COUNT: u32 = 500;
/// Bytes of a value; with a key of 4 that makes 100.
const VALUE_SIZE: usize = 96;
/// Every page of the chip is programmed twelve times over.
const UPDATE_COUNT: u32 = 200_000;
const LOOKUP_COUNT: u32 = 100_000;
/// Mounts of each kind.
const MOUNT_COUNT: u32 = 50;
/// Updates between two mounts: more than there are between two checkpoints.
const MOUNT_UPDATES_MAX: u32 = 1000;

type Records<'m> = Store<'m, Sim, ByteCells>;

fn run(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let (chip, total) = (chip(), u64::from(UPDATE_COUNT + LOOKUP_COUNT));
    let options = rig::fit(&chip, MEMORY_SIZE)?;
    let mut memory = vec![0; MEMORY_SIZE];
    let mut store = Store::format(Sim::with_seed(chip, context.seed), options, &mut memory)?;
    let mut chooser = Chooser::new(RECORD_COUNT, Skew::Uniform, context.seed)?;
    let mut versions = vec![0_u32; RECORD_COUNT as usize];
    for record in 0..RECORD_COUNT {
        put(&mut store, record, 0)?;
    }

    let updates = Phase::start(store.nand(), UPDATE_COUNT);
    let mut worst_ns = 0;
    for done in 0..UPDATE_COUNT {
        let record = chooser.choose();
        let version = &mut versions[record as usize];
        *version += 1;
        let started_ns = store.nand().clock_ns();
        put(&mut store, record, *version)?;
        worst_ns = worst_ns.max(store.nand().clock_ns() - started_ns);
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(done.into(), total);
        }
    }
    let programs_per_update = updates.programs_per_operation(store.nand());
    let loads_per_update = updates.reads_per_operation(store.nand());

    let lookups = Phase::start(store.nand(), LOOKUP_COUNT);
    for done in 0..LOOKUP_COUNT {
        let record = chooser.choose();
        if store.get(&record.to_be_bytes())? != Some(&value(record, versions[record as usize])[..]) {
            return Err(BenchError::Wrong(record));
        }
        if done.is_multiple_of(TELL_EVERY) {
            context.tell(u64::from(UPDATE_COUNT + done), total);
        }
    }
    let loads_per_lookup = lookups.reads_per_operation(store.nand());

    let chip = store.unmount()?;
    let mut update = |store: &mut Records<'_>| put(store, chooser.choose(), 0);
    let mounts = rig::mount_loads(chip, ByteCells, options, MOUNT_COUNT, MOUNT_UPDATES_MAX, &mut update)?;
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, CASE, metric, value, unit);
    Ok(vec![
        figure("programs_per_update", programs_per_update, "programs"),
        figure("loads_per_update", loads_per_update, "reads"),
        figure("loads_per_lookup", loads_per_lookup, "reads"),
        figure("worst_update_ms", worst_ns as f64 / 1e6, "ms"),
        figure("mount_loads_clean", mounts.clean as f64, "reads"),
        figure("mount_loads_cut", mounts.cut as f64, "reads"),
    ])
}

fn put(store: &mut Records<'_>, record: u32, version: u32) -> Result<(), nandu::Error<SimError>> {
    store.put(&record.to_be_bytes(), &value(record, version)).map(drop)
}

fn value(record: u32, version: u32) -> [u8; VALUE_SIZE] {
    let mut value = [version as u8; VALUE_SIZE];
    value[..4].copy_from_slice(&version.to_be_bytes());
    value[4..8].copy_from_slice(&record.to_be_bytes());
    value
}
