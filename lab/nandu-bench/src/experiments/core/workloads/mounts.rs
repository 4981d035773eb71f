//! Mounts after cuts at random operations.

use nandu::fs::{Attributes, Fs, Ino};
use nandu::{Durability, Options, Store};
use nandu_sim::Sim;
use rand::RngExt;

use super::{EXPERIMENT, MEMORY, chance, chip};
use crate::experiments::volume::{Ours, failed};
use crate::{BenchError, Context, Figure, rig};

/// Reads of mounts.
#[derive(Default)]
struct Loads {
    most: u64,
    sum: u64,
    count: u64,
}

impl Loads {
    fn add(&mut self, reads: u64) {
        (self.most, self.sum, self.count) = (self.most.max(reads), self.sum + reads, self.count + 1);
    }

    fn figures(&self, case: &str) -> Vec<Figure> {
        let figure = |metric, value| Figure::new(EXPERIMENT.name, case, metric, value, "reads");
        vec![figure("reads_worst", self.most as f64), figure("reads_per_op", self.sum as f64 / self.count as f64)]
    }
}

/// The power goes in one of the next operations of the chip.
fn cut_soon(chip: &mut Sim, soon: u64) {
    let operation = chip.operation_count() + soon;
    chip.cut_somehow_at(operation);
}

/// A store whose changes wait for a sync, of 1,024 blocks.
pub(super) fn store(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    const RECORDS: u32 = 20_000;
    let chip = chip(1024);
    let options =
        Options { cache_size: 16 << 10, durability: Durability::OnSync, pending_size: 8 << 10, ..Options::DEFAULT };
    let mut memory = rig::memory(&chip, &options);
    let mut random = chance(4);
    let mut store = Store::format(Sim::with_seed(chip, context.seed), options, &mut memory)?;
    store.load((0..RECORDS).map(|index| (index.to_be_bytes(), [0; 100])))?;
    let mut chip = store.unmount()?;
    let mut loads = Loads::default();
    let rounds = context.scaled(400, 40);
    for round in 0..rounds {
        let mut store = Store::open(chip, options, &mut memory)?;
        cut_soon(store.nand_mut(), random.random_range(200..2_000));
        while !store.nand().is_off() {
            let key = random.random_range(0..RECORDS).to_be_bytes();
            let outcome =
                store.put(&key, &[round as u8; 100]).map(drop).and_then(|()| match random.random_range(0..4) {
                    0 => store.sync(),
                    _ => Ok(()),
                });
            if let Err(error) = outcome
                && !store.nand().is_off()
            {
                return Err(error.into());
            }
        }
        chip = store.abandon();
        chip.power_on();
        let before = *chip.counters();
        let store = Store::open(chip, options, &mut memory)?;
        loads.add(store.nand().counters().since(&before).reads);
        chip = store.abandon();
        context.tell(round, rounds);
    }
    Ok(loads.figures("mounts/store"))
}

/// A file system with changes that wait and pages behind the newest commit, of 1,024 blocks, with tags of so many bytes.
pub(super) fn files(case: &str, tag_size: u32, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    const FILES: u64 = 64;
    let mut chip = chip(1024);
    chip.geometry.tag_size = tag_size;
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &MEMORY)];
    let mut random = chance(5);
    let mut volume = Ours::format(Sim::with_seed(chip, context.seed), MEMORY, &mut memory)?;
    for file in 0..FILES {
        volume.fs.create(Ino::ROOT, format!("{file}").as_bytes(), Attributes::default()).map_err(failed)?;
    }
    let mut chip = volume.fs.unmount().map_err(failed)?;
    let mut loads = Loads::default();
    let rounds = context.scaled(400, 40);
    for round in 0..rounds {
        let mut volume = Ours::mount(chip, MEMORY, &mut memory)?;
        let fs = &mut volume.fs;
        cut_soon(fs.nand_mut(), random.random_range(200..2_000));
        while !fs.nand().is_off() {
            let name = format!("{}", random.random_range(0..FILES));
            let (size, page) = (random.random_range(50..6_000), random.random_range(0..40));
            let outcome = fs.lookup(Ino::ROOT, name.as_bytes()).and_then(|file| {
                fs.write_at(file, page * 2048, &vec![round as u8; size])?;
                if size % 2 == 0 { fs.fsync(file) } else { Ok(()) }
            });
            if let Err(error) = outcome
                && !fs.nand().is_off()
            {
                return Err(failed(error));
            }
        }
        chip = volume.fs.abandon();
        chip.power_on();
        let before = *chip.counters();
        let volume = Ours::mount(chip, MEMORY, &mut memory)?;
        loads.add(volume.fs.nand().counters().since(&before).reads);
        chip = volume.fs.abandon();
        context.tell(round, rounds);
    }
    Ok(loads.figures(case))
}
