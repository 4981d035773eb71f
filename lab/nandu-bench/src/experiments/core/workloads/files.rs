//! Files that programs write: logs, records, small ones, large ones.

use nandu::fs::{Attributes, Fs, Ino, Options, RenameMode};
use nandu_sim::{Chip, Sim};
use rand::RngExt;

use super::{MEMORY, Phase, STATIC_SIZE, chance, chip, expect, filled, random_bytes, verify, write_all};
use crate::experiments::volume::{failed, kernel_chip};
use crate::workload::{Durable, FileName, Files, Population, Postmark, Updates};
use crate::{BenchError, Context, Figure};

/// Bytes of a tag where a chip has room for it.
pub(super) const TAGS: u32 = 16;

/// As much as a file system on a small computer may take.
pub(super) const MUCH: Options = Options { cache_size: 192 << 10, pending_size: 16 << 10, ..Options::DEFAULT };

const APPEND_SIZE: usize = 300;
const LOG_SIZE_MAX: u64 = 256 << 10;

/// What a program does to files.
pub(super) enum Work {
    /// A log that grows.
    Appends,
    /// Records of a file, a sync after every `k`.
    Updates { k: u64 },
    /// Small files, made and removed.
    SmallFiles,
    /// Postmark on a chip with tags of so many bytes.
    Postmark { tag_size: u32, options: &'static Options },
    /// One large file.
    Large,
}

impl Work {
    /// Does it.
    pub(super) fn run(&self, case: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
        match *self {
            Work::Appends => appends(case, context),
            Work::Updates { k } => updates(case, k, context),
            Work::SmallFiles => small_files(case, context),
            Work::Postmark { tag_size, options } => postmark(case, tag_size, *options, context),
            Work::Large => large(case, context),
        }
    }
}

/// Bytes of a page of files.
fn page_size(fs: &mut Fs<'_, Sim>) -> Result<usize, BenchError> {
    Ok(fs.statfs().map_err(failed)?.block_size as usize)
}

/// A log to which 300 bytes are appended and synced. When it is full it takes the place of the one before.
fn appends(case: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(chip(context.scaled(128, 48)), MEMORY, 75, &mut memory, context)?;
    let fs = &mut volume.fs;
    let (warm, count) = context.scaled((4_000, 12_000), (500, 1_500));
    let mut random = chance(1);
    let mut log = fs.create(Ino::ROOT, b"log", Attributes::default()).map_err(failed)?;
    let mut content = Vec::new();
    let mut phase = Phase::start(fs.nand());
    for done in 0..warm + count {
        if done == warm {
            phase = Phase::start(fs.nand());
        }
        let record = random_bytes(&mut random, APPEND_SIZE);
        fs.append(log, &record).map_err(failed)?;
        fs.fsync(log).map_err(failed)?;
        content.extend_from_slice(&record);
        if content.len() as u64 >= LOG_SIZE_MAX {
            fs.rename(Ino::ROOT, b"log", Ino::ROOT, b"log.1", RenameMode::Replace).map_err(failed)?;
            log = fs.create(Ino::ROOT, b"log", Attributes::default()).map_err(failed)?;
            content.clear();
        }
        context.tell(done, warm + count);
    }
    let figures = phase.figures(case, fs.nand(), count);
    expect(fs, log, &content)?;
    verify(fs)?;
    Ok(figures)
}

/// Records of 100 bytes of a file of 4 MiB overwritten by chance, a sync after every `k`.
fn updates(case: &str, k: u64, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(chip(context.scaled(128, 48)), MEMORY, context.scaled(45, 40), &mut memory, context)?;
    let mut updates = Updates::new(context.scaled(4 << 20, 1 << 20), 100, 1);
    updates.fill(&mut volume, 16 << 10)?;
    let (warm, count) = context.scaled((8_000_u64, 16_000_u64), (800, 1_600));
    let mut phase = Phase::start(volume.fs.nand());
    for done in 0..warm + count {
        if done == warm {
            phase = Phase::start(volume.fs.nand());
        }
        updates.update_synced(&mut volume, (done + 1).is_multiple_of(k))?;
        context.tell(done, warm + count);
    }
    let mut figures = phase.figures(case, volume.fs.nand(), count);
    let phase = Phase::start(volume.fs.nand());
    updates.verify(&mut volume)?;
    let pages = updates.size as u64 / page_size(&mut volume.fs)? as u64;
    figures.push(phase.reads(&format!("{case}/read"), volume.fs.nand(), pages));
    verify(&mut volume.fs)?;
    Ok(figures)
}

/// Files of 2 KiB on pages of 4 KiB, each made, written and synced, and the oldest removed.
fn small_files(case: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(kernel_chip(32), MEMORY, 50, &mut memory, context)?;
    let (warm, count) = context.scaled((4_000, 8_000), (400, 800));
    let kept = context.scaled(1_000, 300);
    let name = |number: u64| FileName { directory: None, number };
    let mut phase = Phase::start(volume.fs.nand());
    for done in 0..warm + count {
        if done == warm {
            phase = Phase::start(volume.fs.nand());
        }
        volume.create(name(done))?;
        volume.write(0, &[done as u8; 2048], true)?;
        volume.close()?;
        if done >= kept {
            volume.unlink(name(done - kept))?;
        }
        context.tell(done, warm + count);
    }
    let figures = phase.figures(case, volume.fs.nand(), count);
    volume.expect(name(warm), &[warm as u8; 2048]).or_else(|error| if kept < count { Ok(()) } else { Err(error) })?;
    verify(&mut volume.fs)?;
    Ok(figures)
}

/// Postmark with writes of 4 KiB, each synced; the chip is as full as the 256 MiB on which the kernel's file systems were counted.
fn postmark(case: &str, tag_size: u32, options: Options, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut chip: Chip = kernel_chip(context.scaled(96, 32));
    chip.geometry.tag_size = tag_size;
    let mut memory = Vec::new();
    let mut volume = filled(chip, options, 0, &mut memory, context)?;
    let (files, transactions) = context.scaled((400, 800), (80, 100));
    let population = Population {
        files,
        directories: context.scaled(30, 6),
        size: STATIC_SIZE,
        write_size: 4096,
        durable: Durable::EachWrite,
    };
    let mut postmark = Postmark::new(population, 1);
    let phase = Phase::start(volume.fs.nand());
    let total = files + transactions;
    postmark.create(&mut volume, &mut |done| context.tell(done, total))?;
    let made = postmark.transact(transactions, &mut volume, &mut |done| context.tell(files + done, total))?;
    let writes = (files + made) * (STATIC_SIZE / 4096) as u64;
    let mut figures = phase.figures(case, volume.fs.nand(), writes);
    let phase = Phase::start(volume.fs.nand());
    let removed = postmark.delete(&mut volume)?;
    volume.fs.sync().map_err(failed)?;
    figures.extend(phase.figures(&format!("{case}/delete"), volume.fs.nand(), removed));
    verify(&mut volume.fs)?;
    Ok(figures)
}

/// One file of 16 MiB, written once, synced and read.
fn large(case: &str, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(chip(context.scaled(512, 64)), MEMORY, 50, &mut memory, context)?;
    let fs = &mut volume.fs;
    // Holes all over the chip, so that what is written needs the collector.
    let directory = fs.lookup(Ino::ROOT, b"static").map_err(failed)?;
    let mut random = chance(2);
    let count = context.scaled(200, 20);
    for _ in 0..count {
        let file = fs.lookup(directory, format!("{}", random.random_range(0..count / 2)).as_bytes()).map_err(failed)?;
        let place = random.random_range(0..STATIC_SIZE as u64 / 16_384) * 16_384;
        write_all(fs, file, place, &[0xA5; 16_384])?;
    }
    fs.sync().map_err(failed)?;
    let size = context.scaled(16 << 20, 1 << 20);
    let content = random_bytes(&mut random, size);
    let pages = (size / page_size(fs)?) as u64;
    let phase = Phase::start(fs.nand());
    let file = fs.create(Ino::ROOT, b"large", Attributes::default()).map_err(failed)?;
    for (part, bytes) in content.chunks(64 << 10).enumerate() {
        write_all(fs, file, (part * (64 << 10)) as u64, bytes)?;
        context.tell((part * (64 << 10)) as u64, size as u64);
    }
    fs.fsync(file).map_err(failed)?;
    let mut figures = phase.figures(&format!("{case}/write"), fs.nand(), pages);
    let phase = Phase::start(fs.nand());
    expect(fs, file, &content)?;
    figures.extend(phase.figures(&format!("{case}/read"), fs.nand(), pages));
    verify(fs)?;
    Ok(figures)
}
