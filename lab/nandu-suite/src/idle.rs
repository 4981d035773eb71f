//! Idle time comes to rest: behind the last change little is programmed, then nothing for ever.

use nandu_files::errno::ENOSPC;
use nandu_files::{FileError, FileSystem, Ino, Time};
use nandu_nand::CellMode;
use nandu_sim::{Chip, Sim, Tear};

use crate::operation::{Chance, NEW};
use crate::system::System;

/// Pages that a piece of idle time looks at, and pieces after which one that still finds work never ends.
const PIECE: u32 = 64;
const PIECES_MAX: u32 = 20_000;

/// How long a file system rests: long enough for whatever waits for time, in seconds.
const REST: i64 = 3600;

/// Programs and erases so far.
fn wear(chip: &Sim) -> (u64, u64) {
    let counters = chip.counters();
    (counters.programs, counters.erases)
}

/// Rests until nothing is done any more; then again, in which nothing may be programmed or erased. Returns how many pages the first rest
/// programmed.
fn rest<S: System>(system: &S, fs: &mut S::Mounted<'_, Sim>, now: &mut i64, place: &str) -> u64 {
    let (before, _) = wear(fs.nand());
    let mut pieces = 0;
    let mut again = true;
    while again {
        pieces += 1;
        assert!(pieces < PIECES_MAX, "{place}: idle time never ends, after {} programs", wear(fs.nand()).0 - before);
        again = false;
        while let Some(stepped) = system.step(fs, Time::from_seconds(*now)) {
            *now = (*now).max(stepped.at.seconds);
            pieces += 1;
            assert!(
                pieces < PIECES_MAX,
                "{place}: there is always a step, after {} programs",
                wear(fs.nand()).0 - before
            );
        }
        if !system.has_steps() {
            again = fs.idle(PIECE).unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
    let at_rest = wear(fs.nand());
    for _ in 0..50 {
        *now += REST;
        // Somebody looks, which may wake who waits for requests.
        system.begin(fs, Time::from_seconds(*now), false);
        fs.stat(Ino::ROOT).unwrap();
        system.end(fs, Time::from_seconds(*now));
        while let Some(stepped) = system.step(fs, Time::from_seconds(*now)) {
            *now = (*now).max(stepped.at.seconds);
            assert_eq!(wear(fs.nand()), at_rest, "{place}: a step without an end");
        }
        if !system.has_steps() {
            fs.idle(PIECE).unwrap();
        }
        assert_eq!(wear(fs.nand()), at_rest, "{place}: who rests wears the chip");
    }
    at_rest.0 - before
}

/// Writes files over and over, with removals and syncs, until so many percent of the chip are in use and a while longer.
fn change<S: System>(system: &S, fs: &mut S::Mounted<'_, Sim>, chance: &mut Chance, percent: u64, now: &mut i64) {
    let page_size = fs.nand().chip().geometry.page_size as usize;
    let pages = fs.nand().chip().geometry.page_count() as usize;
    for _ in 0..pages / 2 {
        system.begin(fs, Time::from_seconds(*now), false);
        let name = format!("{}", chance.below(pages / 8));
        let stat = fs.statfs().unwrap();
        let is_full = (stat.blocks - stat.blocks_available) * 100 > stat.blocks * percent;
        let outcome = match fs.lookup(Ino::ROOT, name.as_bytes()) {
            Ok(_) if is_full || chance.below(8) == 0 => fs.unlink(Ino::ROOT, name.as_bytes()),
            Ok(ino) => {
                let (at, size) = (chance.below(6) * page_size, 1 + chance.below(4 * page_size));
                let bytes = chance.bytes(size);
                fs.write_at(ino, at as u64, &bytes).map(|_| ())
            }
            Err(_) if is_full => Ok(()),
            Err(_) => fs.create(Ino::ROOT, name.as_bytes(), NEW).map(|_| ()),
        };
        let outcome = if chance.below(10) == 0 { outcome.and_then(|()| fs.sync()) } else { outcome };
        system.end(fs, Time::from_seconds(*now));
        if let Err(error) = outcome {
            assert_eq!(error.errno(), ENOSPC, "{error}");
        }
    }
}

/// Lives of changes, clean mounts and cuts at several fillings of a chip: behind each, idle time programs no more pages than the chip has in use and
/// a block, with two bits a cell twice as many; a second rest programs and erases nothing, nor does the first one of a mount behind an unmount.
pub fn comes_to_rest<S: System>(system: &S, chip: Chip, seed: u64) {
    let mut memory = system.memory(&chip.geometry);
    let mut chance = Chance::new(seed);
    let mut sim = system.formatted(chip);
    let mut now = 1_000_000;
    for (turn, percent) in [5, 50, 80, 95, 100, 100, 40, 100].into_iter().enumerate() {
        let place = format!("seed {seed}, turn {turn}, {percent} %");
        let mut fs = system.mount(sim, &mut memory).unwrap();
        change(system, &mut fs, &mut chance, percent, &mut now);
        if turn % 2 == 1 {
            let at = fs.nand().operation_count() + chance.below(40) as u64;
            fs.nand_mut().cut_at(at, Tear::Prefix);
            for number in 0..60 {
                let _ = fs.create(Ino::ROOT, format!("cut {number}").as_bytes(), NEW).and_then(|_| fs.sync());
            }
            let mut cut = fs.abandon();
            cut.clear_cuts();
            cut.power_on();
            fs = system.mount(cut, &mut memory).unwrap();
            rest(system, &mut fs, &mut now, &format!("{place}, behind a cut"));
            change(system, &mut fs, &mut chance, percent, &mut now);
        }
        match fs.sync() {
            Err(error) if error.errno() == ENOSPC => {}
            outcome => outcome.unwrap(),
        }
        let stat = fs.statfs().unwrap();
        let programs = rest(system, &mut fs, &mut now, &place);
        // With two bits a cell a page that is moved is named afterwards, by its leaf.
        let each = if chip.geometry.supports(CellMode::Mlc) { 2 } else { 1 };
        let most = each * (stat.blocks - stat.blocks_free) + u64::from(chip.geometry.pages_per_block);
        assert!(programs <= most, "{place}: {programs} programs for {most} pages");
        let mut fs = system.mount(fs.unmount().unwrap(), &mut memory).unwrap();
        let programs = rest(system, &mut fs, &mut now, &format!("{place}, mounted again"));
        assert_eq!(programs, 0, "{place}: nobody changed it");
        sim = fs.unmount().unwrap();
    }
}
