//! Truncations of files of many pages, which are removed in steps, among writes: held against a model.

use nandu_fs::{Allocation, Fs, Ino, Options};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, content, violations};

use crate::rig::{FILE, OPTIONS, formatted_with, memory};

const CHIP: Chip = Chip::W25N01GV.with_blocks(48);

/// Bytes of a file at most.
const SIZE_MAX: usize = 120 * 2_048;

/// What a file should have, now and at the last sync.
struct Expected {
    ino: Ino,
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

fn life(seed: u64) -> usize {
    let mut chance = Chance::new(seed);
    let options = Options { pending_size: 600 + chance.below(8_000), cache_size: 2_048, ..OPTIONS };
    let mut bytes = memory(&CHIP.geometry, &options);
    let mut fs: Fs<'_, Sim> = Fs::mount(formatted_with(CHIP, options), options, &mut bytes).unwrap();
    let mut files: Vec<Expected> = (0..3_u8)
        .map(|name| Expected {
            ino: fs.create(Ino::ROOT, &[b'a' + name], FILE).unwrap(),
            bytes: Vec::new(),
            synced: Vec::new(),
        })
        .collect();
    fs.sync().unwrap();
    let mut cut_off = 0;
    for step in 0..700 {
        let which = if chance.below(4) == 0 { chance.below(files.len()) } else { step / 50 % files.len() };
        let file = &mut files[which];
        let size_max = [400, 400, 5_000, 60_000][chance.below(4)];
        let (at, size) = (chance.below(SIZE_MAX), 1 + chance.below(size_max));
        match chance.below(10) {
            0..5 => {
                let at =
                    if chance.below(4) == 0 { at } else { file.bytes.len() + chance.below(3) * 2_000 }.min(SIZE_MAX);
                fs.write_at(file.ino, at as u64, &vec![step as u8; size]).unwrap();
                file.bytes.resize(file.bytes.len().max(at + size), 0);
                file.bytes[at..at + size].fill(step as u8);
            }
            5..7 => {
                // All of it, most often.
                let at = if chance.below(3) == 0 { at } else { chance.below(3_000) };
                cut_off += file.bytes.len().saturating_sub(at) / 2_048;
                fs.truncate(file.ino, at as u64).unwrap();
                file.bytes.resize(at, 0);
            }
            7 => {
                fs.allocate(file.ino, Allocation::PunchHole, at as u64, size as u64).unwrap();
                let end = (at + size).min(file.bytes.len());
                file.bytes[at.min(end)..end].fill(0);
            }
            _ => {
                fs.allocate(file.ino, Allocation::Extend, at as u64, size as u64).unwrap();
                file.bytes.resize(file.bytes.len().max(at + size), 0);
            }
        }
        assert_eq!(content(&mut fs, file.ino).unwrap(), file.bytes, "life {seed}, step {step}");
        if chance.below(12) == 0 {
            fs.sync().unwrap();
            files.iter_mut().for_each(|file| file.synced.clone_from(&file.bytes));
            if chance.below(3) == 0 {
                fs = Fs::mount(fs.abandon(), options, &mut bytes).unwrap();
            }
            for file in &files {
                assert_eq!(content(&mut fs, file.ino).unwrap(), file.synced, "life {seed}, step {step}");
            }
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "life {seed}, step {step}");
        }
    }
    cut_off
}

#[test]
fn what_is_cut_off_stays_away_and_what_is_written_stays() {
    let cut_off: usize = (0..12).map(life).sum();
    assert!(cut_off > 20_000, "{cut_off} pages");
}

/// A file that is cut off and written again and again, and the power goes at any program: what is found is one of its states since the last sync. Returns how many cuts there were.
fn cut_life(seed: u64) -> usize {
    let mut chance = Chance::new(seed);
    let options = Options { pending_size: 600 + chance.below(8_000), cache_size: 2_048, ..OPTIONS };
    let mut bytes = memory(&CHIP.geometry, &options);
    let mut sim = formatted_with(CHIP, options);
    // The states since the last sync, the newest last.
    let (mut states, mut cuts) = (vec![Vec::new()], 0);
    let mut fs = Fs::mount(&mut sim, options, &mut bytes).unwrap();
    let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
    fs.sync().unwrap();
    fs.abandon();
    for _ in 0..25 {
        let operation = sim.operation_count() + 40 + chance.below(150) as u64;
        sim.cut_somehow_at(operation);
        if let Ok(mut fs) = Fs::mount(&mut sim, options, &mut bytes) {
            for step in 0..120_u8 {
                let mut state: Vec<u8> = states[states.len() - 1].clone();
                let done = if chance.below(6) == 0 {
                    let size = if chance.below(3) == 0 { chance.below(SIZE_MAX) } else { chance.below(3_000) };
                    state.resize(size, 0);
                    fs.truncate(file, size as u64)
                } else {
                    // A page at a time, which is there wholly or not.
                    let page = (state.len() / 2_048 + chance.below(20)).min(119);
                    let at = 2_048 * page + chance.below(2) * 700;
                    let size = [300, 1_348, 2_048 - at % 2_048][chance.below(3)];
                    state.resize(state.len().max(at + size), 0);
                    state[at..at + size].fill(step);
                    fs.write_at(file, at as u64, &vec![step; size]).map(drop)
                };
                states.push(state);
                if done.is_err() {
                    break;
                }
                if chance.below(4) == 0 {
                    if fs.sync().is_err() {
                        break;
                    }
                    states.drain(..states.len() - 1);
                }
            }
        }
        cuts += usize::from(sim.operation_count() >= operation);
        sim.clear_cuts();
        sim.power_off();
        sim.power_on();
        let mut fs = Fs::mount(&mut sim, options, &mut bytes).unwrap();
        let found = content(&mut fs, file).unwrap();
        assert!(states.contains(&found), "life {seed}: {} bytes, none of {} states", found.len(), states.len());
        assert_eq!(violations(&mut fs), Vec::<String>::new(), "life {seed}");
        fs.sync().unwrap();
        fs.abandon();
        states = vec![found];
    }
    cuts
}

#[test]
fn a_cut_leaves_a_truncation_done_or_not() {
    let cuts: usize = (0..10).map(cut_life).sum();
    assert!(cuts > 150, "{cuts} cuts");
}
