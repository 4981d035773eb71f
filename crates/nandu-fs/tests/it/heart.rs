//! Lives that ended once: nothing but a write is refused for want of room, and mounts are short, on chips of shapes on which that was not so.

use nandu_files::errno::{EIO, ENOSPC};
use nandu_files::{FileError, Ino};
use nandu_fs::{Fs, FsError, LogOptions, Options};
use nandu_sim::{Chip, Sim, Tear};
use nandu_suite::liveness::{Files, serves_again};
use nandu_suite::{Chance, NEW};

use crate::rig::{FORMAT, Nandu, memory};

/// What lives are lived on: a part with other pages and blocks, and how often the power goes.
#[derive(Clone, Copy, Debug)]
struct World {
    part: Chip,
    page_size: u32,
    block_pages: u32,
    blocks: u32,
    options: Options,
    /// A cut in so many steps; 0 for none.
    cut_every: usize,
    steps: usize,
}

impl World {
    fn chip(&self) -> Chip {
        let mut chip = self.part.with_blocks(self.blocks);
        chip.geometry.page_size = self.page_size;
        chip.geometry.program_unit = self.page_size;
        chip.geometry.pages_per_block = self.block_pages;
        chip
    }
}

/// What may never be refused for want of room.
fn granted<T, E: FileError>(outcome: Result<T, E>, place: &str, what: &str) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) if error.errno() == EIO => None,
        Err(error) => panic!("{place}: {what}: {error}"),
    }
}

/// A life of writes, removals, syncs, rests, mounts and cuts, at the end of which every file is removed and the volume unmounted. Writes may be
/// refused for want of room; nothing else may. Returns the most reads of a mount, not
/// counting two for each block that it erases.
fn live(world: &World, seed: u64) -> u64 {
    let (chip, options) = (world.chip(), world.options);
    let mut memory = memory(&chip.geometry, &options);
    let mut chance = Chance::new(seed);
    let sim = Fs::format(Sim::new(chip), options, FORMAT, &mut memory).unwrap().unmount().unwrap();
    let mut fs = Fs::mount(sim, options, &mut memory).unwrap();
    let names = 4 + chance.below(100);
    let size_max = [300, 3000, 12_000, 60_000][chance.below(4)];
    let mut reads_max = 0;
    for step in 0..world.steps {
        let place = format!("seed {seed}, step {step}");
        if fs.nand().is_off() || chance.below(150) == 0 {
            fs.nand_mut().clear_cuts();
            let mut sim = if fs.nand().is_off() || chance.below(2) == 0 {
                fs.abandon()
            } else {
                granted(fs.unmount(), &place, "unmount").unwrap()
            };
            sim.clear_cuts();
            sim.power_on();
            let before = *sim.counters();
            fs = Fs::mount(sim, options, &mut memory).unwrap();
            let cost = fs.nand().counters().since(&before);
            // With `read_back` each block that is erased is looked at.
            reads_max = reads_max.max(cost.reads - cost.reads.min(2 * cost.erases));
        }
        if world.cut_every > 0 && chance.below(world.cut_every) == 0 {
            let at = fs.nand().operation_count() + chance.below(60) as u64;
            let tear = [Tear::Before, Tear::Prefix, Tear::Complete][chance.below(3)];
            fs.nand_mut().cut_at(at, tear);
        }
        let name = chance.below(names).to_string();
        match chance.below(12) {
            0 | 1 => drop(granted(fs.sync(), &place, "sync")),
            2 if chance.below(8) == 0 => drop(granted(fs.idle(8), &place, "idle")),
            2..5 => match fs.unlink(Ino::ROOT, name.as_bytes()) {
                Err(FsError::NotFound { .. }) => {}
                outcome => drop(granted(outcome, &place, "unlink")),
            },
            _ => {
                let found = match fs.lookup(Ino::ROOT, name.as_bytes()) {
                    Err(FsError::NotFound { .. }) => fs.create(Ino::ROOT, name.as_bytes(), NEW),
                    found => found,
                };
                let at = if chance.below(2) == 0 { 0 } else { chance.below(size_max) };
                let size = 1 + chance.below(size_max);
                let bytes = chance.bytes(size);
                match found.and_then(|ino| fs.write_at(ino, at as u64, &bytes)) {
                    Err(error) if [ENOSPC, EIO].contains(&error.errno()) => {}
                    outcome => drop(outcome.unwrap()),
                }
            }
        }
    }
    let place = format!("seed {seed}, at the end");
    if fs.nand().is_off() {
        let mut sim = fs.abandon();
        sim.clear_cuts();
        sim.power_on();
        fs = Fs::mount(sim, options, &mut memory).unwrap();
    }
    fs.nand_mut().clear_cuts();
    for number in 0..names {
        match fs.unlink(Ino::ROOT, number.to_string().as_bytes()) {
            Err(FsError::NotFound { .. }) => {}
            outcome => drop(granted(outcome, &place, "unlink")),
        }
    }
    let mut sim = granted(fs.unmount(), &place, "unmount").unwrap();
    // With `read_back` a mount reads more.
    if !options.log.read_back
        && let Err(what) = serves_again(&Files(&Nandu(options)), &mut sim)
    {
        panic!("{place}: {what}");
    }
    reads_max
}

fn options(pending_size: usize) -> Options {
    Options { cache_size: 4096, pending_size, open_max: 8, ..Options::DEFAULT }
}

/// Lives of each kind: the short form, or as many as `NANDU_HEART_LIVES` says.
fn seeds() -> u64 {
    std::env::var("NANDU_HEART_LIVES").ok().and_then(|count| count.parse().ok()).unwrap_or(12)
}

/// A file system that was 16 % full once said Full to write, unlink, sync, idle and unmount, in one of 2,900 lives.
#[test]
fn nothing_but_a_write_is_refused_with_much_memory_for_changes() {
    let log = LogOptions { read_back: true, ..options(0).log };
    for pending_size in [65_535, 16_000] {
        let world = World {
            part: Chip::W25N01GV,
            page_size: 4096,
            block_pages: 32,
            blocks: 52,
            options: Options { log, ..options(pending_size) },
            cut_every: 0,
            steps: 800,
        };
        (0..seeds()).for_each(|seed| _ = live(&world, seed));
    }
}

/// The unlink of 91 of 91 files was refused once with 218 of 253 pages live, in the first life.
#[test]
fn nothing_but_a_write_is_refused_with_two_bits_a_cell_and_cuts() {
    let part = Chip::PAPER_FLEX;
    for (page_size, block_pages, blocks, pending_size) in
        [(4096, 8, 62, 16_000), (4096, 8, 62, 4096), (1024, 16, 46, 16_000)]
    {
        let options = options(pending_size);
        let mut world = World { part, page_size, block_pages, blocks, options, cut_every: 100, steps: 1200 };
        world.options = world.options.both_modes(&world.chip().geometry);
        (0..seeds()).for_each(|seed| _ = live(&world, seed));
    }
}

/// A mount with `read_back` read all of each block that it erased once, in pieces of 128 bytes: 8,351 reads on pages of 16 KiB.
#[test]
fn a_mount_that_reads_back_stays_short() {
    for (page_size, block_pages) in [(2048, 16), (4096, 32), (16_384, 64)] {
        let plain = options(page_size as usize + 2048);
        let log = LogOptions { read_back: true, ..plain.log };
        let options = Options { log, cache_size: page_size as usize, ..plain };
        let world =
            World { part: Chip::W25N01GV, page_size, block_pages, blocks: 40, options, cut_every: 20, steps: 400 };
        for seed in 0..6 {
            let reads = live(&world, seed);
            assert!(reads <= READS_MAX, "{page_size} bytes, seed {seed}: {reads} reads");
        }
    }
}

/// What mounts read at most with `read_back`, where what does not seem to be there is read twice. 40 without.
const READS_MAX: u64 = 46;
