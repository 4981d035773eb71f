//! Pages of a file, each written and synced.

use nandu::nand::{Geometry, Pairing, TearScope};
use nandu_bench::BenchError;
use nandu_files::{Attributes, FileSystem, Ino};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, System};

use crate::files::Files;
use crate::measure::{Form, Values, Wrong};

/// Bytes of a tag.
const TAG_SIZE: u32 = 16;

/// Pages of the file that is written over.
const FILE_PAGES: usize = 1_024;

pub(crate) fn failed(error: impl std::fmt::Display) -> Wrong {
    Wrong::Bench(BenchError::Other(error.to_string()))
}

/// Programs for each page of 4 KiB that is written over at random and synced, with tags and without. At most an eighth of the chip lives, so that
/// the collector has little to move.
pub(crate) fn values(form: Form) -> Result<Values, Wrong> {
    let mut values = Values::new();
    for (case, tag_size) in [("tagged", TAG_SIZE), ("untagged", 0)] {
        values.insert(case.to_owned(), programs(&Files::new(16 << 10, 8 << 10), tag_size, form)?);
    }
    Ok(values)
}

fn programs<S: System>(system: &S, tag_size: u32, form: Form) -> Result<f64, Wrong> {
    // Pages of 4 KiB with one bit a cell, as the kernel's file systems were counted on.
    let chip = Chip::PAPER_MLC.with_blocks(form.pick(64, 192));
    let geometry = Geometry { pairing: Pairing::None, tear: TearScope::Page, tag_size, ..chip.geometry };
    let page_size = geometry.page_size as usize;
    let mut memory = system.memory(&geometry);
    let mut fs = system.format(Sim::new(Chip { geometry, ..chip }), &mut memory).map_err(failed)?;
    let file = fs.create(Ino::ROOT, b"file", Attributes::FILE).map_err(failed)?;
    for page in 0..FILE_PAGES {
        fs.write_at(file, (page * page_size) as u64, &vec![1; page_size]).map_err(failed)?;
    }
    fs.fsync(file).map_err(failed)?;
    let mut chance = Chance::new(1);
    let count = form.pick(2_000, 20_000);
    let mut before = *fs.nand().counters();
    // As many before as the chip has pages, so that the collector works.
    let warm = geometry.page_count() as usize;
    for done in 0..warm + count {
        if done == warm {
            before = *fs.nand().counters();
        }
        let page = chance.below(FILE_PAGES);
        fs.write_at(file, (page * page_size) as u64, &vec![done as u8; page_size]).map_err(failed)?;
        fs.fsync(file).map_err(failed)?;
    }
    Ok(fs.nand().counters().since(&before).programs as f64 / count as f64)
}
