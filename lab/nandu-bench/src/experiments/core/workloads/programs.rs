//! What two programs do to files: an archive is unpacked, and a database commits transactions.

use nandu::fs::{Attributes, Fs, Ino, SetAttributes, Time};
use nandu_sim::Sim;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::{MEMORY, Phase, Sum, chance, chip, expect, filled, random_bytes, verify, write_all};
use crate::experiments::volume::failed;
use crate::{BenchError, Context, Figure};

/// Files of a directory.
const FILES_A_DIRECTORY: u32 = 20;
/// Bytes that a program writes at once.
const BUFFER_SIZE: usize = 10_240;

/// The size of a source file: half of them have less than 4 KiB, and the mean is 11 KiB.
fn source_size(random: &mut ChaCha8Rng) -> usize {
    let doublings = (0..6).map(|_| random.random_range(0.0..2.0_f64)).sum::<f64>();
    (64.0 * doublings.exp2()) as usize + random.random_range(0..64)
}

/// Makes directories and files as an archive's program does: content in parts, then mode and times. Nothing is synced.
fn make_tree(fs: &mut Fs<'_, Sim>, nth: u64, files: u32) -> Result<(), BenchError> {
    let mut random = chance(nth);
    let root = fs.mkdir(Ino::ROOT, format!("tree-{nth}").as_bytes(), Attributes::default()).map_err(failed)?;
    let mut directory = root;
    for number in 0..files {
        if number.is_multiple_of(FILES_A_DIRECTORY) {
            let name = format!("module-{}", number / FILES_A_DIRECTORY);
            directory = fs.mkdir(root, name.as_bytes(), Attributes::default()).map_err(failed)?;
        }
        let name = format!("source_file_{number}.c");
        let file = fs.create(directory, name.as_bytes(), Attributes::default()).map_err(failed)?;
        fs.open(file).map_err(failed)?;
        let content = content(nth, number, &mut random);
        for (part, bytes) in content.chunks(BUFFER_SIZE).enumerate() {
            write_all(fs, file, (part * BUFFER_SIZE) as u64, bytes)?;
        }
        let mtime = Some(Time { seconds: 1_600_000_000 + i64::from(number), nanoseconds: 0 });
        let set = SetAttributes { mode: Some(0o644), uid: Some(1000), gid: Some(1000), atime: None, mtime };
        fs.set_attributes(file, set).map_err(failed)?;
        fs.close(file).map_err(failed)?;
    }
    Ok(())
}

fn content(nth: u64, number: u32, random: &mut ChaCha8Rng) -> Vec<u8> {
    let size = source_size(random);
    (0..size).map(|at| (at as u64 ^ nth ^ u64::from(number)) as u8).collect()
}

/// Takes a directory, the name of a file in it, and the content that the file has to have.
type Visit<'a> = dyn FnMut(&mut Fs<'_, Sim>, Ino, &[u8], &[u8]) -> Result<(), BenchError> + 'a;

/// Calls a function with each file of a tree.
fn each_file(fs: &mut Fs<'_, Sim>, nth: u64, files: u32, visit: &mut Visit<'_>) -> Result<(), BenchError> {
    let mut random = chance(nth);
    let root = fs.lookup(Ino::ROOT, format!("tree-{nth}").as_bytes()).map_err(failed)?;
    let mut directory = root;
    for number in 0..files {
        if number.is_multiple_of(FILES_A_DIRECTORY) {
            directory = fs.lookup(root, format!("module-{}", number / FILES_A_DIRECTORY).as_bytes()).map_err(failed)?;
        }
        let content = content(nth, number, &mut random);
        visit(fs, directory, format!("source_file_{number}.c").as_bytes(), &content)?;
    }
    Ok(())
}

fn remove_tree(fs: &mut Fs<'_, Sim>, nth: u64, files: u32) -> Result<(), BenchError> {
    each_file(fs, nth, files, &mut |fs, directory, name, _| fs.unlink(directory, name).map_err(failed))?;
    let name = format!("tree-{nth}");
    let root = fs.lookup(Ino::ROOT, name.as_bytes()).map_err(failed)?;
    for number in 0..files.div_ceil(FILES_A_DIRECTORY) {
        fs.rmdir(root, format!("module-{number}").as_bytes()).map_err(failed)?;
    }
    fs.rmdir(Ino::ROOT, name.as_bytes()).map_err(failed)
}

/// Trees of sources unpacked one after another; of three the oldest is removed.
pub(super) fn unpack(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(chip(context.scaled(384, 96)), MEMORY, context.scaled(25, 20), &mut memory, context)?;
    let fs = &mut volume.fs;
    let (files, trees) = context.scaled((800, 6), (100, 4));
    let (mut unpacked, mut removed) = (Sum::default(), Sum::default());
    for nth in 0..trees {
        let phase = Phase::start(fs.nand());
        make_tree(fs, nth, files)?;
        fs.sync().map_err(failed)?;
        unpacked.add(&phase, fs.nand(), files);
        if nth >= 2 {
            let phase = Phase::start(fs.nand());
            remove_tree(fs, nth - 2, files)?;
            fs.sync().map_err(failed)?;
            removed.add(&phase, fs.nand(), files);
        }
        context.tell(nth, trees);
    }
    let mut figures = unpacked.figures("unpack/write");
    figures.extend(removed.figures("unpack/remove"));
    let phase = Phase::start(fs.nand());
    each_file(fs, trees - 1, files, &mut |fs, directory, name, content| {
        let file = fs.lookup(directory, name).map_err(failed)?;
        let found = fs.stat(file).map_err(failed)?.size;
        if found == content.len() as u64 {
            Ok(())
        } else {
            Err(BenchError::Other(format!("{file:?} has {found} bytes")))
        }
    })?;
    figures.push(phase.reads("unpack/walk", fs.nand(), files.into()));
    let phase = Phase::start(fs.nand());
    each_file(fs, trees - 1, files, &mut |fs, directory, name, content| {
        let file = fs.lookup(directory, name).map_err(failed)?;
        expect(fs, file, content)
    })?;
    figures.push(phase.reads("unpack/read", fs.nand(), files.into()));
    verify(fs)?;
    Ok(figures)
}

/// Bytes of a page of the database.
const DATABASE_PAGE: usize = 8192;
/// Pages that a transaction changes.
const CHANGED: usize = 3;
/// Bytes before the pages in a journal.
const JOURNAL_HEADER: usize = 512;
/// Bytes before and behind each page in a journal: its number and a checksum.
const JOURNAL_ENTRY: usize = DATABASE_PAGE + 8;

/// A database with a journal of old pages that is made for each transaction and removed: the journal is synced, then the pages are written and synced, then
/// the journal's name goes, which is the commit and waits for the next sync.
pub(super) fn database(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut memory = Vec::new();
    let mut volume = filled(chip(context.scaled(384, 64)), MEMORY, context.scaled(30, 20), &mut memory, context)?;
    let fs = &mut volume.fs;
    let pages = context.scaled(2_048, 128);
    let mut random = chance(3);
    let mut content = random_bytes(&mut random, pages * DATABASE_PAGE);
    let file = fs.create(Ino::ROOT, b"data.db", Attributes::default()).map_err(failed)?;
    write_all(fs, file, 0, &content)?;
    fs.sync().map_err(failed)?;
    let (warm, count) = context.scaled((400, 800), (30, 60));
    let mut phase = Phase::start(fs.nand());
    for done in 0..warm + count {
        if done == warm {
            phase = Phase::start(fs.nand());
        }
        let changed: [usize; CHANGED] = std::array::from_fn(|_| random.random_range(0..pages));
        let journal = fs.create(Ino::ROOT, b"data.db-journal", Attributes::default()).map_err(failed)?;
        fs.open(journal).map_err(failed)?;
        write_all(fs, journal, 0, &[done as u8; JOURNAL_HEADER])?;
        for (nth, &page) in changed.iter().enumerate() {
            let at = (JOURNAL_HEADER + nth * JOURNAL_ENTRY) as u64;
            write_all(fs, journal, at, &(page as u32).to_be_bytes())?;
            write_all(fs, journal, at + 4, &content[page * DATABASE_PAGE..][..DATABASE_PAGE])?;
            write_all(fs, journal, at + 4 + DATABASE_PAGE as u64, &[done as u8; 4])?;
        }
        fs.fsync(journal).map_err(failed)?;
        for page in changed {
            let bytes = random_bytes(&mut random, DATABASE_PAGE);
            content[page * DATABASE_PAGE..][..DATABASE_PAGE].copy_from_slice(&bytes);
            write_all(fs, file, (page * DATABASE_PAGE) as u64, &bytes)?;
        }
        fs.fsync(file).map_err(failed)?;
        fs.unlink(Ino::ROOT, b"data.db-journal").map_err(failed)?;
        fs.close(journal).map_err(failed)?;
        context.tell(done, warm + count);
    }
    let mut figures = phase.figures("database", fs.nand(), count);
    let phase = Phase::start(fs.nand());
    expect(fs, file, &content)?;
    figures.push(phase.reads("database/read", fs.nand(), pages as u64));
    verify(fs)?;
    Ok(figures)
}
