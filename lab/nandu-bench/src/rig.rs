//! What experiments do alike: make a store on a chip, count a phase, mount again and again.

use nandu::{Cells, Options, Store};
use nandu_sim::{Chip, Counters, Sim, SimError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::BenchError;

/// How often an experiment tells how far it is: once in so many operations.
pub(crate) const TELL_EVERY: u32 = 4096;

/// Options with as large a cache as fits this many bytes of memory in all.
pub(crate) fn fit(chip: &Chip, memory_size: usize) -> Result<Options, BenchError> {
    Options::DEFAULT.fit::<Sim>(&chip.geometry, memory_size).ok_or(BenchError::Memory(memory_size))
}

/// Zeroed memory, as much as a store with these options takes.
pub(crate) fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.geometry, options)]
}

/// Operations of one kind, and what the chip did for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    before: Counters,
    operations: u32,
}

impl Phase {
    /// Begins to count; so many operations follow.
    pub(crate) fn start(chip: &Sim, operations: u32) -> Phase {
        Phase { before: *chip.counters(), operations }
    }

    /// Programs for each operation, of all causes.
    pub(crate) fn programs_per_operation(&self, chip: &Sim) -> f64 {
        chip.counters().since(&self.before).programs as f64 / f64::from(self.operations)
    }

    /// Array reads for each operation, of all causes.
    pub(crate) fn reads_per_operation(&self, chip: &Sim) -> f64 {
        chip.counters().since(&self.before).reads as f64 / f64::from(self.operations)
    }
}

/// One update of a store.
pub(crate) type Update<'a, C> = dyn FnMut(&mut Store<'_, Sim, C>) -> Result<(), nandu::Error<SimError>> + 'a;

/// Most array reads that a mount took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MountLoads {
    /// After a clean unmount.
    pub(crate) clean: u64,
    /// After a power cut, recovery included.
    pub(crate) cut: u64,
}

/// Unmounts and mounts this many times, and cuts the power and mounts as many times, with a random number of updates
/// before each, at most `updates_max`. What a mount reads depends on how far the log has come since its last checkpoint, so one
/// try would say little.
pub(crate) fn mount_loads<C: Cells + Copy>(
    chip: Sim,
    cells: C,
    options: Options,
    rounds: u32,
    updates_max: u32,
    update: &mut Update<'_, C>,
) -> Result<MountLoads, BenchError> {
    let mut random = ChaCha8Rng::seed_from_u64(chip.seed());
    let mut memory = memory(chip.chip(), &options);
    let mut most = MountLoads::default();
    let mut chip = chip;
    for round in 0..2 * rounds {
        let is_cut = round % 2 == 1;
        let mut store = Store::open_with(chip, cells, options, &mut memory)?;
        for _ in 0..random.random_range(1..=updates_max) {
            update(&mut store)?;
        }
        chip = if is_cut { cut(store, &mut random, update)? } else { store.unmount()? };
        let before = *chip.counters();
        let store = Store::open_with(chip, cells, options, &mut memory)?;
        let reads = store.nand().counters().since(&before).reads;
        let kind = if is_cut { &mut most.cut } else { &mut most.clean };
        *kind = reads.max(*kind);
        // As if the power went again: the next round mounts what recovery left.
        chip = store.abandon();
    }
    Ok(most)
}

/// Updates until the power goes, in the middle of one of the next operations of the chip.
fn cut<C: Cells>(
    mut store: Store<'_, Sim, C>,
    random: &mut ChaCha8Rng,
    update: &mut Update<'_, C>,
) -> Result<Sim, BenchError> {
    let operation = store.nand().operation_count() + random.random_range(0..20);
    store.nand_mut().cut_somehow_at(operation);
    while !store.nand().is_off() {
        if let Err(error) = update(&mut store)
            && !store.nand().is_off()
        {
            return Err(error.into());
        }
    }
    let mut chip = store.abandon();
    chip.power_on();
    Ok(chip)
}
