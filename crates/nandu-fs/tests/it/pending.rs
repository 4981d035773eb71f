//! Random lives of file systems whose changes wait in little memory: no name is refused to go, and what is removed makes room.

use std::collections::BTreeMap;

use nandu_fs::{Attributes, Fs, FsError, Ino, LogOptions, Options};
use nandu_sim::{Chip, Sim, SimError};

use crate::operation::Chance;
use crate::rig::{self, FORMAT, OPTIONS, content, formatted_with, memory, violations};

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// What random lives are lived on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    blocks: u32,
    pending: (usize, usize),
    steps: u32,
}

pub(crate) const SMALL: World = World { blocks: 38, pending: (200, 1000), steps: 800 };

impl World {
    pub(crate) const fn with_pending(self, least: usize, most: usize) -> World {
        World { pending: (least, most), ..self }
    }
}

fn chip(world: &World) -> Chip {
    let mut chip = Chip::W25N01GV.with_blocks(world.blocks);
    chip.geometry.pages_per_block = 8;
    chip
}

/// What was refused in a life.
#[derive(Debug, Default)]
struct Refused {
    writes: u32,
    unlinks: u32,
    syncs: u32,
    idles: u32,
    /// Files that could not be made after half of the others were removed.
    after_half: u32,
}

impl Refused {
    fn is_sound(&self) -> bool {
        self.unlinks + self.syncs + self.idles + self.after_half == 0
    }
}

fn count_full<T>(outcome: Result<T, FsError<SimError>>, refused: &mut u32, what: &str) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(FsError::Full) => {
            *refused += 1;
            None
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn unlink(fs: &mut Fs<'_, Sim>, files: &mut Files, name: &[u8], refused: &mut Refused) {
    if count_full(fs.unlink(Ino::ROOT, name), &mut refused.unlinks, "unlink").is_some() {
        files.remove(name);
    }
}

fn write(fs: &mut Fs<'_, Sim>, files: &mut Files, name: &[u8], at: usize, bytes: &[u8], refused: &mut u32) -> bool {
    let attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };
    if !files.contains_key(name) {
        if count_full(fs.create(Ino::ROOT, name, attributes), refused, "create").is_none() {
            return false;
        }
        files.insert(name.to_vec(), Vec::new());
    }
    let ino = fs.lookup(Ino::ROOT, name).unwrap();
    let mut done = 0;
    while done < bytes.len() {
        match count_full(fs.write_at(ino, (at + done) as u64, &bytes[done..]), refused, "write") {
            Some(count) => done += count,
            None => {
                // A part of it may be there.
                files.insert(name.to_vec(), content(fs, ino).unwrap());
                return false;
            }
        }
    }
    let file = files.get_mut(name).unwrap();
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    true
}

fn live(world: &World, seed: u64) -> Refused {
    let mut chance = Chance::new(seed);
    let (least, most) = world.pending;
    let pending_size = least + chance.below(most - least + 1);
    let log = LogOptions { bare_streams: 1 + (seed % 2) as u8, ..LogOptions::DEFAULT };
    let options = Options { log, cache_size: 512, pending_size, note_count: 16, open_max: 4, ..Options::DEFAULT };
    let chip = chip(world);
    let mut bytes = memory(&chip.geometry, &options);
    let sim = Fs::format(Sim::new(chip), options, FORMAT, &mut bytes).unwrap().unmount().unwrap();
    let mut fs = Fs::mount(sim, options, &mut bytes).unwrap();
    let mut files = Files::new();
    let mut refused = Refused::default();
    let names = 4 + chance.below(60);
    let size_max = [300, 3000, 12_000, 60_000][chance.below(4)];
    for _ in 0..world.steps {
        if chance.below(200) == 0 {
            count_full(fs.sync(), &mut refused.syncs, "sync");
            let sim = if chance.below(2) == 0 { fs.abandon() } else { fs.unmount().unwrap() };
            fs = Fs::mount(sim, options, &mut bytes).unwrap();
        }
        let number = chance.below(names);
        let mut name = format!("{number}").into_bytes();
        name.resize(name.len() + number % 7 * 20, b'x');
        match chance.below(12) {
            0 | 1 => drop(count_full(fs.sync(), &mut refused.syncs, "sync")),
            2 if chance.below(8) == 0 => drop(count_full(fs.idle(8), &mut refused.idles, "idle")),
            2..5 => {
                if files.contains_key(&name) {
                    unlink(&mut fs, &mut files, &name, &mut refused);
                }
            }
            _ => {
                let at = if chance.below(2) == 0 { 0 } else { chance.below(size_max) };
                let size = 1 + chance.below(size_max);
                let bytes = chance.bytes(size);
                if !write(&mut fs, &mut files, &name, at, &bytes, &mut refused.writes) && chance.below(10) == 0 {
                    let half: Vec<_> = files.keys().step_by(2).cloned().collect();
                    for name in half {
                        unlink(&mut fs, &mut files, &name, &mut refused);
                    }
                    write(&mut fs, &mut files, b"new", 0, b"content", &mut refused.after_half);
                }
            }
        }
    }
    count_full(fs.sync(), &mut refused.syncs, "sync");
    for (name, expected) in &files {
        let ino = fs.lookup(Ino::ROOT, name).unwrap();
        assert!(content(&mut fs, ino).unwrap() == *expected, "seed {seed}: {}", name.escape_ascii());
    }
    assert_eq!(violations(&mut fs), Vec::<String>::new(), "seed {seed}");
    while let Some(name) = files.keys().next().cloned() {
        let before = refused.unlinks;
        unlink(&mut fs, &mut files, &name, &mut refused);
        if refused.unlinks > before {
            break;
        }
    }
    refused
}

/// Lives so many lives, and says which were not sound.
pub(crate) fn live_all(world: &World, seeds: core::ops::Range<u64>) {
    let (mut bad, mut writes) = (0, 0);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let refused = live(world, seed);
        writes += refused.writes;
        if !refused.is_sound() {
            bad += 1;
            println!("seed {seed}: {refused:?}");
        }
    }
    assert!(bad == 0 && writes > 0, "{bad} of {count} lives, {writes} writes refused, {world:?}");
}

#[test]
fn names_are_never_refused_to_go() {
    live_all(&SMALL, 0..20);
}

/// A page that is written over takes the place of the one before, on a chip that is full too, for as long as one likes.
#[test]
fn pages_are_written_over_on_a_full_chip() {
    for pending_size in [300, 4096] {
        let options = Options { pending_size, ..OPTIONS };
        let mut bytes = memory(&rig::SMALL.geometry, &options);
        let mut fs = Fs::mount(formatted_with(rig::SMALL, options), options, &mut bytes).unwrap();
        let page_size = fs.page_size();
        let mut files = Files::new();
        let mut refused = 0;
        for number in 0.. {
            let name = format!("{number}").into_bytes();
            if !write(&mut fs, &mut files, &name, 0, &vec![1; 3 * page_size], &mut refused) {
                break;
            }
        }
        fs.sync().unwrap();
        assert!(files.len() > 20);
        let mut chance = Chance::new(5);
        let names: Vec<_> = files.keys().filter(|name| files[*name].len() == 3 * page_size).cloned().collect();
        for step in 0..3000_usize {
            let name = &names[chance.below(names.len())];
            let at = chance.below(3) * page_size;
            let mut full = 0;
            assert!(write(&mut fs, &mut files, name, at, &vec![step as u8; page_size], &mut full), "step {step}");
            if chance.below(10) == 0 {
                fs.sync().unwrap();
            }
        }
        for (name, expected) in &files {
            let ino = fs.lookup(Ino::ROOT, name).unwrap();
            assert!(content(&mut fs, ino).unwrap() == *expected, "{}", name.escape_ascii());
        }
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        for name in files.keys() {
            fs.unlink(Ino::ROOT, name).unwrap();
        }
        fs.sync().unwrap();
    }
}

/// As many lives as somebody lets run, with memory for changes of any size.
#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_lives() {
    let count = std::env::var("NANDU_LIVES").map_or(1000, |count| count.parse().unwrap());
    live_all(&SMALL.with_pending(0, 8192), 0..count);
}
