//! How much fits: the real thing is filled until there is no room, read back, emptied, and filled again. The lesser of both times counts.

use nandu::nand::Geometry;
use nandu::{Durability, Error, Options};
use nandu_bench::BenchError;
use nandu_bench::records::{self, Cells, Records};
use nandu_files::errno::ENOSPC;
use nandu_files::{Attributes, FileError, FileSystem, Ino, Time};
use nandu_sim::{Chip, Sim};
use nandu_suite::System;

use crate::files::Files;
use crate::measure::{Form, Values, Wrong};
use crate::pages::failed;

/// Blocks of the chips. The last takes minutes and is of the full form.
const BLOCKS: [u32; 5] = [16, 24, 40, 128, 1_024];

/// Blocks of the chip with two bits a cell.
const BLOCKS_TWO_BITS: u32 = 192;

/// Bytes of a value, with a key of 4.
const VALUE_SIZE: usize = 100;

/// Seconds between two files.
const REST_S: i64 = 4;

/// Bytes of a file.
const FILE_SIZE: usize = 64 << 10;

fn cases(form: Form) -> impl Iterator<Item = (String, Chip)> {
    let chip = |&blocks: &u32| (format!("{blocks} blocks"), Chip::W25N01GV.with_blocks(blocks));
    BLOCKS[..form.pick(BLOCKS.len() - 1, BLOCKS.len())].iter().map(chip)
}

fn wrong(what: String) -> Wrong {
    Wrong::Bench(BenchError::Other(what))
}

/// Pages that live on a chip full of records, of all its pages, in percent.
pub(crate) fn records(form: Form) -> Result<Values, Wrong> {
    let mut values = Values::new();
    for (case, chip) in cases(form) {
        let options =
            Options { cache_size: 16 << 10, durability: Durability::OnSync, pending_size: 8 << 10, ..Options::DEFAULT };
        let mut sim = Sim::new(chip);
        let mut memory = vec![0; records::memory_required(&sim, &options)];
        let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
        let least = fill_records(&mut *store, 1)?.min(fill_records(&mut *store, 2)?);
        values.insert(case, 100.0 * f64::from(least) / f64::from(chip.geometry.page_count()));
    }
    Ok(values)
}

/// Pages that live when a store took as many records as it takes; then they are deleted.
fn fill_records(store: &mut dyn Records, version: u8) -> Result<u32, Wrong> {
    // Keys in random order, so that leaves are as full as those of a store that grew.
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let mut count = 0;
    let is_full = |outcome: Result<(), Error<_>>| match outcome {
        Ok(()) => Ok(false),
        Err(Error::Full) => Ok(true),
        Err(error) => Err(error),
    };
    loop {
        if is_full(store.put(&key(count), &[version; VALUE_SIZE]).map(drop))? {
            break;
        }
        count += 1;
        if count.is_multiple_of(16) && is_full(store.sync())? {
            break;
        }
    }
    store.sync()?;
    let live = store.stats().live_pages;
    for number in 0..count {
        if store.get(&key(number))? != Some(&[version; VALUE_SIZE]) {
            return Err(wrong(format!("record {number} of {count} on a full chip is not what was put")));
        }
    }
    for number in 0..count {
        store.delete(&key(number))?;
    }
    store.sync()?;
    Ok(live)
}

/// Bytes of files on a full volume, of all bytes of the chip, in percent.
pub(crate) fn files(form: Form) -> Result<Values, Wrong> {
    let mut values = Values::new();
    for (case, chip) in cases(form) {
        let all = u64::from(chip.geometry.page_count()) * u64::from(chip.geometry.page_size);
        let bytes = filled(&Files::new(16 << 10, 8 << 10), chip)?;
        values.insert(case, 100.0 * bytes as f64 / all as f64);
    }
    Ok(values)
}

/// Bytes of files on a full volume that uses both modes of its cells, of all bytes with two bits a cell, in percent.
pub(crate) fn two_bits() -> Result<Values, Wrong> {
    let chip = Chip::PAPER_FLEX.with_blocks(BLOCKS_TWO_BITS);
    let geometry: &Geometry = &chip.geometry;
    let all = u64::from(geometry.page_count()) * u64::from(geometry.page_size);
    let bytes = filled(&Files::new(64 << 10, 16 << 10).both_modes(geometry), chip)?;
    Ok(Values::from([(format!("{BLOCKS_TWO_BITS} blocks"), 100.0 * bytes as f64 / all as f64)]))
}

fn filled<S: System>(system: &S, chip: Chip) -> Result<u64, Wrong> {
    let mut memory = system.memory(&chip.geometry);
    let fs = system.format(Sim::new(chip), &mut memory).map_err(failed)?;
    let mut filling = Filling { system, fs, page_size: chip.geometry.page_size as usize, now: Time::from_seconds(100) };
    let first = filling.filled(1)?;
    Ok(first.min(filling.filled(2)?))
}

/// A volume at a time that passes, as policies of two bits a cell want it.
struct Filling<'s, 'm, S: System> {
    system: &'s S,
    fs: S::Mounted<'m, Sim>,
    page_size: usize,
    now: Time,
}

/// What a call of a file system returns.
type Asked<'m, S, T> = Result<T, <<S as System>::Mounted<'m, Sim> as FileSystem>::Error>;

impl<'m, S: System> Filling<'_, 'm, S> {
    fn request<T>(&mut self, request: impl FnOnce(&mut S::Mounted<'m, Sim>) -> Asked<'m, S, T>) -> Asked<'m, S, T> {
        self.system.begin(&mut self.fs, self.now, false);
        let outcome = request(&mut self.fs);
        self.system.end(&mut self.fs, self.now);
        outcome
    }

    /// Time passes in which pages may move.
    fn rest(&mut self) {
        self.now = Time::from_seconds(self.now.seconds + REST_S);
        while self.system.step(&mut self.fs, self.now).is_some() {}
    }

    /// Writes files until there is no room; returns the bytes of each.
    fn fill(&mut self, version: u8) -> Asked<'m, S, Vec<usize>> {
        let page = vec![version; self.page_size];
        let mut sizes = Vec::new();
        loop {
            let name = name(sizes.len());
            let file = match self.request(|fs| fs.create(Ino::ROOT, &name, Attributes::FILE)) {
                Ok(file) => file,
                Err(error) if error.errno() == ENOSPC => return Ok(sizes),
                Err(error) => return Err(error),
            };
            let mut size = 0;
            while size < FILE_SIZE {
                match self.request(|fs| fs.write_at(file, size as u64, &page)) {
                    Ok(count) => size += count,
                    Err(error) if error.errno() == ENOSPC => {
                        sizes.push(size);
                        return Ok(sizes);
                    }
                    Err(error) => return Err(error),
                }
            }
            sizes.push(size);
            self.rest();
        }
    }

    /// Bytes that files took when there was no room for more, all of them read back; then they are removed.
    fn filled(&mut self, version: u8) -> Result<u64, Wrong> {
        let sizes = self.fill(version).map_err(failed)?;
        self.request(FileSystem::sync).map_err(failed)?;
        let mut bytes = vec![0; FILE_SIZE];
        for (number, &size) in sizes.iter().enumerate() {
            let file = self.fs.lookup(Ino::ROOT, &name(number)).map_err(failed)?;
            let count = self.fs.read_at(file, 0, &mut bytes).map_err(failed)?;
            if count != size || bytes[..count].iter().any(|&byte| byte != version) {
                return Err(wrong(format!("file {number} on a full chip is not what was written")));
            }
        }
        for number in 0..sizes.len() {
            self.request(|fs| fs.unlink(Ino::ROOT, &name(number))).map_err(failed)?;
        }
        self.request(FileSystem::sync).map_err(failed)?;
        self.rest();
        Ok(sizes.iter().sum::<usize>() as u64)
    }
}

fn name(number: usize) -> Vec<u8> {
    format!("{number}").into_bytes()
}
