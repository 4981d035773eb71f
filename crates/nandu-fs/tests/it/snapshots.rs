//! Snapshots of file systems: what was there when they were taken is there when they are mounted, whatever became of it.

use std::collections::BTreeMap;

use nandu_fs::{Fs, FsError, Ino, Options, Time};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_suite::cuts::choose;
use nandu_suite::liveness::{Files, serves_again};
use nandu_suite::{Chance, Everything, Model, SMALL, Slots, System, apply_errno, everything, violations};

use crate::lives::TAGGED;
use crate::rig::{FILE, Nandu, OPTIONS, formatted_with, fresh, memory};

/// What is mounted of a snapshot. Gives the chip back.
fn seen_in(chip: Sim, options: Options, number: u32) -> (Everything, Sim) {
    let options = Options { snapshot: Some(number), ..options };
    let mut bytes = memory(&chip.chip().geometry, &options);
    let mut fs = Fs::mount(chip, options, &mut bytes).unwrap();
    let found = everything(&mut fs).unwrap();
    assert_eq!(fs.mkdir(Ino::ROOT, b"more", FILE), Err(FsError::ReadOnly));
    (found, fs.abandon())
}

/// So many operations by chance, with snapshots that come and go, unmounts and cuts. Returns how many were refused for want of room, and snapshots taken.
fn live(chip: Chip, options: Options, seed: u64, operations: u64) -> (u32, u32) {
    let system = Nandu(options);
    let mut chance = Chance::new(seed);
    let mut model = Model::new(system.capabilities(chip));
    let mut kept: BTreeMap<u32, Everything> = BTreeMap::new();
    let (mut refused, mut taken) = (0, 0);
    let mut fs = fresh(chip, options);
    let mut slots = Slots::default();
    for count in 0..operations {
        model.now = 1000 + count as i64;
        fs.set_now(Time::from_seconds(model.now));
        let op = choose(&model, seed, count, chip.geometry.page_size as usize);
        let before = model.clone();
        match (apply_errno(&mut fs, &mut slots, &op), model.apply(&op)) {
            (Err(28), _) => {
                // A write may have been done in part.
                refused += 1;
                model = Model::of(&everything(&mut fs).unwrap(), *before.capabilities());
                model.now = before.now;
            }
            (found, expected) => assert_eq!(found, expected, "{count}: {op:?}"),
        }
        match chance.below(40) {
            0 => match fs.snapshot() {
                Ok(number) => {
                    taken += 1;
                    assert!(kept.insert(number, everything(&mut fs).unwrap()).is_none());
                }
                Err(error) => assert!(matches!(error, FsError::TooManySnapshots | FsError::Full), "{error}"),
            },
            1 => {
                if let Some(&number) = kept.keys().nth(chance.below(kept.len().max(1))) {
                    fs.release_snapshot(number).unwrap();
                    kept.remove(&number);
                    assert_eq!(fs.release_snapshot(number), Err(FsError::NoSnapshot(number)));
                }
            }
            2 => drop(fs.idle(8).unwrap()),
            3 if chance.below(3) == 0 => {
                fs.sync().unwrap();
                let mut sim = if chance.below(2) == 0 { fs.abandon() } else { fs.unmount().unwrap() };
                for (&number, expected) in &kept {
                    let found;
                    (found, sim) = seen_in(sim, options, number);
                    assert!(found == *expected, "snapshot {number} at {count}");
                }
                model.remount();
                slots = Slots::default();
                fs = Fs::mount(sim, options, memory(&chip.geometry, &options).leak()).unwrap();
                assert!(fs.snapshots().eq(kept.keys().copied()));
                assert_eq!(violations(&mut fs), Vec::<String>::new(), "{count}");
                assert!(everything(&mut fs).unwrap() == model.everything(), "{count}");
            }
            _ => {}
        }
    }
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    if let Err(what) = serves_again(&Files(&system), &mut fs.abandon()) {
        panic!("seed {seed}: {what}");
    }
    (refused, taken)
}

#[test]
fn lives_with_snapshots_find_what_was_there() {
    for (name, chip) in
        [("", SMALL.with_blocks(60)), ("tagged ", TAGGED.with_blocks(60)), ("large ", Chip::W25N01GV.with_blocks(40))]
    {
        for seed in 0..3 {
            let (refused, taken) = live(chip, OPTIONS, seed, 900);
            println!("{name}{seed}: {refused} refused, {taken} taken");
            assert!(taken > 5, "{taken}");
        }
    }
}

/// A file that is written over is there twice; when the snapshot is released its room comes back.
#[test]
fn the_room_of_a_released_snapshot_comes_back() {
    let chip = Chip::W25N01GV.with_blocks(40);
    let options = Options { cache_size: 4096, ..Options::DEFAULT };
    let mut fs = fresh(chip, options);
    let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
    let content = |round: u8| vec![round; 400 * 2048];
    fs.write_at(file, 0, &content(1)).unwrap();
    fs.sync().unwrap();
    let before = fs.stats().live_pages;
    for round in 2..8 {
        let number = fs.snapshot().unwrap();
        fs.write_at(file, 0, &content(round)).unwrap();
        fs.sync().unwrap();
        assert!(fs.stats().live_pages > before + 400, "both are there");
        fs.release_snapshot(number).unwrap();
        while fs.idle(16).unwrap() {}
        let live = fs.stats().live_pages;
        assert!(live < before + 30, "round {round}: {live} pages live, {before} before");
    }
}

/// What is there after cuts: what was synced last before a snapshot, and in it, and what was begun.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    kept: BTreeMap<u32, Vec<u8>>,
    now: Vec<Vec<u8>>,
    count: u32,
}

fn contents(fs: &mut Fs<'_, &mut Sim>) -> Option<Vec<u8>> {
    let file = fs.lookup(Ino::ROOT, b"file").ok()?;
    let mut bytes = vec![0; 4096];
    let size = fs.read_at(file, 0, &mut bytes).unwrap();
    bytes.truncate(size);
    Some(bytes)
}

/// A file that is changed and synced, with snapshots of it.
fn workload(options: Options) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        let mut fs = Fs::mount(chip, options, &mut bytes)?;
        let file = match fs.lookup(Ino::ROOT, b"file") {
            Ok(file) => file,
            Err(_) => {
                promise.now = vec![Vec::new()];
                let made = fs.create(Ino::ROOT, b"file", FILE)?;
                fs.sync()?;
                made
            }
        };
        promise.is_open = true;
        promise.now = vec![contents(&mut fs).unwrap_or_default()];
        let numbers: Vec<u32> = fs.snapshots().collect();
        promise.kept.retain(|number, _| numbers.contains(number));
        for _ in 0..24 {
            promise.count += 1;
            let draw = promise.count.wrapping_mul(0x9E37_79B1) >> 8;
            match draw % 6 {
                0 if promise.kept.len() < 3 => {
                    let content = promise.now[0].clone();
                    let number = fs.snapshots().last().unwrap_or(0) + 1;
                    // It is there or not.
                    promise.kept.insert(number, content);
                    let taken = fs.snapshot()?;
                    let content = promise.kept.remove(&number).unwrap_or_default();
                    promise.kept.insert(taken, content);
                }
                1 if !promise.kept.is_empty() => {
                    let number = *promise.kept.keys().nth(draw as usize % promise.kept.len()).unwrap_or(&0);
                    promise.kept.remove(&number);
                    fs.release_snapshot(number)?;
                }
                _ => {
                    let mut after = promise.now[0].clone();
                    let (at, size) = (draw as usize % 3000, 1 + draw as usize / 7 % 900);
                    after.resize(after.len().max(at + size), 0);
                    after[at..at + size].fill(draw as u8);
                    promise.now.push(after.clone());
                    fs.write_at(file, at as u64, &vec![draw as u8; size])?;
                    fs.sync()?;
                    promise.now = vec![after];
                }
            }
        }
        Ok(())
    }
}

fn check(options: Options) -> impl Fn(&mut Sim, &Promise) -> Option<Vec<u8>> {
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let mut bytes = memory(&chip.chip().geometry, &options);
        let before = chip.counters().reads;
        let mut fs = Fs::mount(&mut *chip, options, &mut bytes).unwrap();
        assert!(fs.nand().counters().reads - before <= 40, "reads of a mount");
        let found = contents(&mut fs).unwrap_or_default();
        let is_whole = promise.now.contains(&found);
        let is_part = promise.now.len() == 2 && found.len() <= promise.now[1].len();
        assert!(is_whole || is_part, "neither before nor after");
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let numbers: Vec<u32> = fs.snapshots().collect();
        let _ = fs.abandon();
        for number in numbers.iter().filter(|number| promise.kept.contains_key(number)) {
            let options = Options { snapshot: Some(*number), ..options };
            let mut fs = Fs::mount(&mut *chip, options, &mut bytes).unwrap();
            assert!(contents(&mut fs).unwrap_or_default() == promise.kept[number], "snapshot {number}");
        }
        Some(found)
    }
}

#[test]
fn every_cut_leaves_what_snapshots_of_files_keep() {
    for chip in [SMALL.with_blocks(26), TAGGED.with_blocks(26)] {
        let formatted = formatted_with(chip, OPTIONS);
        let summary = Driver::new(formatted.clone()).resume().every(workload(OPTIONS), check(OPTIONS));
        println!("{summary:?}");
        assert!(summary.cases > 100, "{summary:?}");
        let recover = |chip: &mut Sim| -> Run {
            let mut bytes = memory(&chip.chip().geometry, &OPTIONS);
            Fs::mount(chip, OPTIONS, &mut bytes)?;
            Ok(())
        };
        let summary = Driver::new(formatted).resume().seed(9).random(100, workload(OPTIONS), recover, check(OPTIONS));
        println!("{summary:?}");
    }
}
