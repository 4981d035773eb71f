//! The workloads that decide whether a mechanism stays.
//!
//! * `records.rs`: random updates of a store, also with a snapshot.
//! * `files.rs`: appends, records of a file, small files, Postmark, a large file.
//! * `programs.rs`: a source tree that is unpacked, and a database.
//! * `mobile.rs`: half an hour of a phone on cells with two bits.
//! * `mounts.rs`: mounts after cuts.
//! * `limits.rs`: what each may cost.

mod files;
mod limits;
mod mobile;
mod mounts;
mod programs;
mod records;

use nandu::Durability;
use nandu::fs::{Attributes, Fs, Ino, Options};
use nandu_files::FileSystem;
use nandu_sim::{Chip, Counters, Sim};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use self::files::Work;
use crate::experiments::volume::{Ours, failed};
use crate::{BenchError, Context, Experiment, Figure};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/workloads",
    about: "what users do, with little memory on chips that are kept full: programs, reads and erases of each operation",
    setup: &[
        (
            "chips",
            "w25n01gv (2 KiB pages, 64 in a block) with 64 to 1024 blocks; Postmark and small files: 4 KiB pages, 128 in a block; mobile: paper-flex with 96 MiB as MLC",
        ),
        (
            "memory",
            "16 KiB for nodes and 8 KiB for changes that wait; `records/sync`, `records/16`: 16 and 16 KiB; `postmark/250k`: 192 and 16 KiB; `mobile`: 64 and 16 KiB",
        ),
        (
            "fill",
            "files or records that never change take so much of the chip that the collector works: with what changes, half to four fifths of what may live",
        ),
        (
            "workload",
            "`appends`: 300 bytes, each synced, to a log that is changed for a new one at 256 KiB. `updates/*`: 100 bytes in a file of 4 MiB, a sync after \
             each or after 16. `records/1`: the same of all records of a store, each durable by itself. `records/sync`, `records/16`: of a table of 6,000 of them, where changes wait, with a sync after each or after 16. `grow`: 40,000 new records with random keys. `snapshot`: `records/1` with one snapshot, taken when 30 % live. `small-files`: 2 KiB made and synced. \
             `postmark/*`: writes of 4 KiB, each synced. `unpack/*`: trees of sources made without a sync, one after another, walked, read, and the one before last removed. \
             `database`: three of 2,048 pages of 8 KiB in a transaction, with a journal of the old ones and two syncs. `large/*`: 16 MiB written once, then read. \
             `mobile`: the calls of paper/flexfs-e9 with idle time. `mounts/*`: after a cut at a random operation",
        ),
    ],
    notes: NOTES,
    parts: PARTS.len(),
    part_name: |part| PARTS[part].0.to_owned(),
    limits: limits::LIMITS,
    small_limits: limits::SMALL_LIMITS,
    run: |context, part| match &PARTS[part] {
        (name, Part::Files(work)) => work.run(name, context),
        (_, Part::Own(run)) => run(context),
    },
    ..Experiment::PLAIN
};

const NOTES: &str = "A mechanism of log, tree or files stays if it closes a fault, or saves a tenth of the programs or reads of one of these workloads; `docs/notes/2026-11-ablation.md` has what each saves. \
Limits are what was measured and a tenth; of a mount, and of the worst change with a snapshot, they are what is promised of any, 40 reads and 16 programs. `mounts/tags` has to take a tail over as well.

`small-files`, `grow` and `snapshot` decide nothing by themselves; they watch what may get worse.";

/// Who runs a workload.
enum Part {
    /// What programs do to files, on any file system.
    Files(Work),
    /// Everything else, which gives the figures itself.
    Own(fn(&mut Context<'_>) -> Result<Vec<Figure>, BenchError>),
}

/// Parts of the experiment by name; those that take long come first, since they are run at the same time.
const PARTS: [(&str, Part); 19] = [
    ("postmark/tags", Part::Files(Work::Postmark { tag_size: files::TAGS, options: &MEMORY })),
    ("postmark/untagged", Part::Files(Work::Postmark { tag_size: 0, options: &MEMORY })),
    ("postmark/250k", Part::Files(Work::Postmark { tag_size: files::TAGS, options: &files::MUCH })),
    ("mobile", Part::Own(mobile::run)),
    ("unpack", Part::Own(programs::unpack)),
    ("database", Part::Own(programs::database)),
    ("mounts/store", Part::Own(mounts::store)),
    ("mounts/files", Part::Own(|context| mounts::files("mounts/files", 0, context))),
    ("mounts/tags", Part::Own(|context| mounts::files("mounts/tags", files::TAGS, context))),
    ("appends", Part::Files(Work::Appends)),
    ("updates/1", Part::Files(Work::Updates { k: 1 })),
    ("updates/16", Part::Files(Work::Updates { k: 16 })),
    ("large", Part::Files(Work::Large)),
    ("small-files", Part::Files(Work::SmallFiles)),
    ("records/1", Part::Own(|context| records::updates("records/1", Durability::Immediate, 1, context))),
    ("records/sync", Part::Own(|context| records::updates("records/sync", Durability::OnSync, 1, context))),
    ("records/16", Part::Own(|context| records::updates("records/16", Durability::OnSync, 16, context))),
    ("snapshot", Part::Own(records::with_snapshot)),
    ("grow", Part::Own(records::grow)),
];

/// What a file system is given where nothing else is said.
const MEMORY: Options = Options { cache_size: 16 << 10, pending_size: 8 << 10, ..Options::DEFAULT };

/// 2 KiB pages, 64 in a block.
fn chip(block_count: u32) -> Chip {
    Chip::W25N01GV.with_blocks(block_count)
}

/// Operations of one kind, and what the chip did for them.
struct Phase {
    before: Counters,
}

impl Phase {
    fn start(chip: &Sim) -> Phase {
        Phase { before: *chip.counters() }
    }

    /// What was done since.
    fn done(&self, chip: &Sim) -> Counters {
        chip.counters().since(&self.before)
    }

    /// Programs, reads and erases of each of so many operations.
    fn figures(&self, case: &str, chip: &Sim, operations: u64) -> Vec<Figure> {
        figures(case, &self.done(chip), operations)
    }

    /// Reads of each of so many operations.
    fn reads(&self, case: &str, chip: &Sim, operations: u64) -> Figure {
        per_operation(case, "reads", self.done(chip).reads, operations)
    }
}

/// Several phases of one kind.
#[derive(Default)]
struct Sum {
    done: Counters,
    operations: u64,
}

impl Sum {
    fn add(&mut self, phase: &Phase, chip: &Sim, operations: u32) {
        self.done.add(&phase.done(chip));
        self.operations += u64::from(operations);
    }

    fn figures(&self, case: &str) -> Vec<Figure> {
        figures(case, &self.done, self.operations)
    }
}

fn figures(case: &str, done: &Counters, operations: u64) -> Vec<Figure> {
    [("programs", done.programs), ("reads", done.reads), ("erases", done.erases)]
        .map(|(unit, count)| per_operation(case, unit, count, operations))
        .into()
}

fn per_operation(case: &str, unit: &'static str, count: u64, operations: u64) -> Figure {
    Figure::new(EXPERIMENT.name, case, format!("{unit}_per_op"), count as f64 / operations as f64, unit)
}

/// A new file system of which static files take so much of what it offers, in percent.
fn filled<'m>(
    chip: Chip,
    options: Options,
    percent: u64,
    memory: &'m mut Vec<u8>,
    context: &Context<'_>,
) -> Result<Ours<'m>, BenchError> {
    memory.resize(Fs::<Sim>::memory_required(&chip.geometry, &options), 0);
    let mut volume = Ours::format(Sim::with_seed(chip, context.seed), options, memory)?;
    let fs = &mut volume.fs;
    let directory = fs.mkdir(Ino::ROOT, b"static", Attributes::default()).map_err(failed)?;
    let statistics = fs.statfs().map_err(failed)?;
    let page_size = u64::from(statistics.block_size);
    let mut left = statistics.blocks_available * percent / 100;
    let bytes = vec![0x5A; STATIC_SIZE];
    for number in 0_u32.. {
        if left < STATIC_SIZE as u64 / page_size {
            break;
        }
        let ino = fs.create(directory, format!("{number}").as_bytes(), Attributes::default()).map_err(failed)?;
        write_all(fs, ino, 0, &bytes)?;
        left -= STATIC_SIZE as u64 / page_size;
    }
    fs.sync().map_err(failed)?;
    Ok(volume)
}

/// Bytes of a file that never changes.
const STATIC_SIZE: usize = 128 << 10;

fn write_all(fs: &mut Fs<'_, Sim>, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), BenchError> {
    let mut done = 0;
    while done < bytes.len() {
        done += fs.write_at(ino, offset + done as u64, &bytes[done..]).map_err(failed)?;
    }
    Ok(())
}

/// Reads a file and compares it.
fn expect(fs: &mut Fs<'_, Sim>, ino: Ino, content: &[u8]) -> Result<(), BenchError> {
    let mut found = vec![0; content.len() + 1];
    let count = fs.read_at(ino, 0, &mut found).map_err(failed)?;
    if found[..count] == *content { Ok(()) } else { Err(BenchError::Other(format!("{ino:?} differs"))) }
}

/// Holds a volume against every invariant.
fn verify(fs: &mut Fs<'_, Sim>) -> Result<(), BenchError> {
    fs.sync().map_err(failed)?;
    let mut violations = Vec::new();
    fs.check(&mut [], &mut |violation| violations.push(violation.to_string())).map_err(failed)?;
    match violations.first() {
        None => Ok(()),
        Some(violation) => Err(BenchError::Other(format!("an invariant is violated: {violation}"))),
    }
}

/// Chance of a workload, the same whatever the run's seed is.
fn chance(number: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(number)
}

/// Random bytes.
fn random_bytes(random: &mut ChaCha8Rng, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    random.fill(&mut bytes[..]);
    bytes
}
