//! The operations of [`ops`](super::ops) within the limits of DFFS: on the file system itself, on ours, and on the models.

use nandu::fs::Fs;
use nandu_dffs::{Dffs, ParentUpdate};
use nandu_sim::{Chip, Sim};

use super::{CLASSIC, DFFS_OPTIONS, MODELS, OPTIONS, paper_chip};
use crate::experiments::volume::{Ours, Published};
use crate::workload::{FileName, Files};
use crate::{BenchError, Context, Figure};

pub(super) const PROGRAMS: &str = "programs_per_op";

/// What the file system programs over what the model of it does.
pub(super) const OVER_MODEL: &str = "programs_over_model";

/// As many as Postmark has.
const DIRECTORIES: u32 = 100;

/// A file has at most 434 pages of 2 KiB.
const FILE_WRITES: u64 = 200;

static BYTES: [u8; 131_072] = [0xA5; 131_072];

type Found = Vec<(&'static str, f64)>;

/// Every figure. DFFS with a bucket brought up to date at each sync is `each`, ours `nandu`, models have their names.
pub(super) fn figures(experiment: &'static str, context: &Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = paper_chip(context.scaled(250, 32));
    let mut figures = Vec::new();
    let mut tell =
        |found: &Found, name: &str| {
            figures.extend(found.iter().map(|(case, value)| {
                Figure::new(experiment, &format!("dffs/{case}{name}"), PROGRAMS, *value, "programs")
            }));
        };
    let close = dffs(&chip, ParentUpdate::Close, context)?;
    let each = dffs(&chip, ParentUpdate::Each, context)?;
    tell(&close, "");
    tell(&each, "/each");
    tell(&ours(&chip, context)?, "/nandu");
    let mut ratios = Vec::new();
    for (name, kind) in MODELS.into_iter().chain(CLASSIC) {
        let mut model = kind.model(&chip);
        let modelled = measure(&mut model, &|model| model.counts().programs, context)?;
        tell(&modelled, &format!("/{name}"));
        let (real, suffix) = match name {
            "classic" => (&close, ""),
            "classic-each" => (&each, "/each"),
            _ => continue,
        };
        ratios.extend(real.iter().zip(&modelled).map(|((case, real), (_, modelled))| {
            Figure::new(experiment, &format!("dffs/{case}{suffix}"), OVER_MODEL, real / modelled, "ratio")
        }));
    }
    figures.append(&mut ratios);
    Ok(figures)
}

fn dffs(chip: &Chip, parent_update: ParentUpdate, context: &Context<'_>) -> Result<Found, BenchError> {
    let options = nandu_dffs::Options { parent_update, ..DFFS_OPTIONS };
    let mut memory = vec![0; Dffs::<Sim>::memory_required(&chip.geometry, &options)];
    let mut volume = Published::format_dffs(Sim::with_seed(*chip, context.seed), options, &mut memory)?;
    let found = measure(&mut volume, &|volume| volume.fs.nand().counters().programs, context)?;
    let collected: u64 = volume.fs.stats().collected.iter().sum();
    if collected > 0 {
        return Err(BenchError::Other(format!("{collected} blocks were collected where none should be")));
    }
    Ok(found)
}

fn ours(chip: &Chip, context: &Context<'_>) -> Result<Found, BenchError> {
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS)];
    let mut volume = Ours::format(Sim::with_seed(*chip, context.seed), OPTIONS, &mut memory)?;
    measure(&mut volume, &|volume| volume.fs.nand().counters().programs, context)
}

fn file(number: u64) -> FileName {
    FileName { directory: Some(number as u32 % DIRECTORIES), number }
}

/// Programs of each operation in the mean.
fn measure<F: Files>(files: &mut F, programs: &dyn Fn(&F) -> u64, context: &Context<'_>) -> Result<Found, BenchError> {
    let mut found = Found::new();
    let each = |files: &mut F, count: u64, operation: &mut dyn FnMut(&mut F, u64) -> Result<(), BenchError>| {
        let before = programs(files);
        (0..count).try_for_each(|number| operation(files, number))?;
        Ok::<u64, BenchError>(programs(files) - before)
    };
    let mean = |programs: u64, count: u64| programs as f64 / count as f64;
    (0..DIRECTORIES).try_for_each(|directory| files.make_directory(directory))?;
    let count = context.scaled(1000, 300);
    let made = each(files, count, &mut |files, number| {
        files.create(file(number))?;
        files.fsync()?;
        files.close()
    })?;
    found.push(("create_fsync", mean(made, count)));
    let rounds = context.scaled(20, 3);
    let (mut appended, mut overwritten) = (0, 0);
    for round in 0..rounds {
        files.create(file(count + round))?;
        let mut at = |files: &mut F, place: u64| files.write(place * 4096, &BYTES[..4096], true);
        appended += each(files, FILE_WRITES, &mut at)?;
        overwritten += each(files, FILE_WRITES, &mut |files, nth| at(files, nth * 7919 % FILE_WRITES))?;
        files.close()?;
    }
    found.push(("append_4k_osync", mean(appended, rounds * FILE_WRITES)));
    found.push(("overwrite_4k_osync", mean(overwritten, rounds * FILE_WRITES)));
    let rounds = context.scaled(20, 3);
    let mut appended = 0;
    for round in 0..rounds {
        files.create(file(2 * count + round))?;
        appended += each(files, 12, &mut |files, nth| files.write(nth << 16, &BYTES[..1 << 16], true))?;
        files.close()?;
    }
    found.push(("append_64k_osync", mean(appended, 12 * rounds)));
    let large = context.scaled(200, 16);
    let made = each(files, large, &mut |files, number| {
        files.create(file(3 * count + number))?;
        files.write(0, &BYTES, true)?;
        files.close()
    })?;
    found.push(("file_128k", mean(made, large)));
    let renamed = each(files, count, &mut |files, number| files.rename(file(number), file(4 * count + number)))?;
    found.push(("rename", mean(renamed, count)));
    let removed = each(files, count, &mut |files, number| files.unlink(file(4 * count + number)))?;
    found.push(("unlink", mean(removed, count)));
    for round in 0..context.scaled(20, 3) {
        files.expect(file(count + round), &BYTES.repeat(7)[..FILE_WRITES as usize * 4096])?;
    }
    Ok(found)
}
