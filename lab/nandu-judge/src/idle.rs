//! What idle time programs after the last change.

use nandu::{Durability, Options};
use nandu_bench::records::{self, Cells};
use nandu_files::{Attributes, FileSystem, Ino};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, System};

use crate::files::Files;
use crate::measure::{Form, Values, Wrong};
use crate::pages::failed;

/// Blocks of the chip.
const BLOCKS: (u32, u32) = (64, 1_024);
/// Bytes that are written, of which a third is changed.
const SIZE: (usize, usize) = (1 << 20, 5 << 20);
/// Pages that a call for idle work may be about.
const STEP: u32 = 8;
/// Calls until it has to be done.
const UNTIL: u32 = 3_600;
/// Calls after that, one a second: an hour.
const AFTER: u32 = 3_600;

/// Which time.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// From the last change on, until there should be nothing to do.
    Until,
    /// The hour after that.
    After,
}

/// What was programmed.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// In percent of the live pages.
    until: Values,
    after: Values,
}

impl Idle {
    pub(crate) fn values(&self, part: Part) -> Values {
        match part {
            Part::Until => self.until.clone(),
            Part::After => self.after.clone(),
        }
    }

    fn add(&mut self, case: &str, live_pages: u32, [begin, done, end]: [u64; 3]) {
        self.until.insert(case.to_owned(), 100.0 * (done - begin) as f64 / f64::from(live_pages.max(1)));
        self.after.insert(case.to_owned(), (end - done) as f64);
    }
}

pub(crate) fn measure(form: Form) -> Result<Idle, Wrong> {
    let mut idle = Idle::default();
    records(form, &mut idle)?;
    files(&Files::new(16 << 10, 8 << 10), form, &mut idle)?;
    Ok(idle)
}

fn chip(form: Form) -> Chip {
    Chip::W25N01GV.with_blocks(form.pick(BLOCKS.0, BLOCKS.1))
}

fn records(form: Form, idle: &mut Idle) -> Result<(), Wrong> {
    let options =
        Options { cache_size: 16 << 10, durability: Durability::OnSync, pending_size: 8 << 10, ..Options::DEFAULT };
    let mut sim = Sim::new(chip(form));
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let (value, mut chance) = ([7; 100], Chance::new(1));
    let count = form.pick(SIZE.0, SIZE.1) / value.len();
    for done in 0..count + count / 3 {
        let number = if done < count { done } else { chance.below(count) };
        store.put(&(number as u32).wrapping_mul(0x9E37_79B1).to_be_bytes(), &value)?;
        if done % 16 == 0 {
            store.sync()?;
        }
    }
    store.sync()?;
    let live_pages = store.stats().live_pages;
    let mut programs = [store.nand().counters().programs; 3];
    for (nth, calls) in [UNTIL, AFTER].into_iter().enumerate() {
        for _ in 0..calls {
            store.nand_mut().advance_ns(1_000_000_000);
            store.idle(STEP)?;
        }
        programs[nth + 1] = store.nand().counters().programs;
    }
    idle.add("records", live_pages, programs);
    Ok(())
}

fn files<S: System>(system: &S, form: Form, idle: &mut Idle) -> Result<(), Wrong> {
    let chip = chip(form);
    let mut memory = system.memory(&chip.geometry);
    let mut fs = system.format(Sim::new(chip), &mut memory).map_err(failed)?;
    let (page, mut chance) = (vec![7; chip.geometry.page_size as usize], Chance::new(1));
    let pages = form.pick(SIZE.0, SIZE.1) / page.len();
    let file = fs.create(Ino::ROOT, b"file", Attributes::FILE).map_err(failed)?;
    for done in 0..pages + pages / 3 {
        let place = if done < pages { done } else { chance.below(pages) };
        fs.write_at(file, (place * page.len()) as u64, &page).map_err(failed)?;
        if done % 16 == 0 {
            fs.fsync(file).map_err(failed)?;
        }
    }
    fs.sync().map_err(failed)?;
    let stat = fs.statfs().map_err(failed)?;
    let live_pages = (stat.blocks - stat.blocks_free) as u32;
    let mut programs = [fs.nand().counters().programs; 3];
    for (nth, calls) in [UNTIL, AFTER].into_iter().enumerate() {
        for _ in 0..calls {
            fs.nand_mut().advance_ns(1_000_000_000);
            fs.idle(STEP).map_err(failed)?;
        }
        programs[nth + 1] = fs.nand().counters().programs;
    }
    idle.add("files", live_pages, programs);
    Ok(())
}
