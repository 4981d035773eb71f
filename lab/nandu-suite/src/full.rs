//! Chips that are full most of the time.

use std::collections::BTreeMap;

use nandu_files::errno::ENOSPC;
use nandu_files::{FileError, FileSystem, Ino};
use nandu_sim::{Chip, Sim};

use crate::liveness::{self, serves_again};
use crate::operation::{Chance, NEW};
use crate::refused::Refused;
use crate::seen::{content, violations};
use crate::system::System;

/// What may be refused on a full chip.
pub const WRITES: &str = "writes";

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// A file system that is filled, what should be in it, and what it refused.
struct Filled<F> {
    fs: F,
    files: Files,
    refused: Refused,
}

/// What was returned, unless there was no room.
fn count_full<T, E: FileError>(refused: &mut Refused, what: &'static str, outcome: Result<T, E>) -> Option<T> {
    refused.count(what, outcome, |error| error.errno() == ENOSPC)
}

impl<F: FileSystem> Filled<F> {
    fn into_parts(self) -> (F, Files, Refused) {
        (self.fs, self.files, self.refused)
    }

    fn sync(&mut self) {
        count_full(&mut self.refused, "syncs", self.fs.sync());
    }

    fn unlink(&mut self, name: &[u8]) -> bool {
        let is_gone = count_full(&mut self.refused, "unlinks", self.fs.unlink(Ino::ROOT, name)).is_some();
        if is_gone {
            self.files.remove(name);
        }
        is_gone
    }

    fn allocated(&mut self, name: &[u8]) -> u64 {
        let ino = self.fs.lookup(Ino::ROOT, name).unwrap();
        self.fs.stat(ino).unwrap().allocated_size
    }

    /// Removes every second file, and of the others as many as it takes until half of what files hold is gone: some hold nothing, and some
    /// are holes for the most part.
    fn remove_half(&mut self) {
        let names: Vec<_> = self.files.keys().cloned().collect();
        let (second, others): (Vec<_>, Vec<_>) = names.into_iter().enumerate().partition(|(place, _)| place % 2 == 0);
        let held: Vec<u64> = second.iter().chain(&others).map(|(_, name)| self.allocated(name)).collect();
        let (all, mut gone) = (held.iter().sum::<u64>(), 0);
        for (place, ((_, name), held)) in second.iter().chain(&others).zip(held).enumerate() {
            if place < second.len() || 2 * gone < all {
                self.unlink(name);
                gone += held;
            }
        }
    }

    /// Writes to a file, which is made if it is not there; whether all of it found room.
    fn write(&mut self, name: &[u8], at: usize, bytes: &[u8], what: &'static str) -> bool {
        if !self.files.contains_key(name) {
            if count_full(&mut self.refused, what, self.fs.create(Ino::ROOT, name, NEW)).is_none() {
                return false;
            }
            self.files.insert(name.to_vec(), Vec::new());
        }
        let ino = self.fs.lookup(Ino::ROOT, name).unwrap();
        // Its number stays what it is.
        self.fs.open(ino).unwrap();
        let mut done = 0;
        let mut is_done = true;
        while done < bytes.len() && is_done {
            let outcome = self.fs.write_at(ino, (at + done) as u64, &bytes[done..]);
            match count_full(&mut self.refused, what, outcome) {
                Some(count) => done += count,
                None => is_done = false,
            }
        }
        if is_done {
            let file = self.files.get_mut(name).unwrap();
            file.resize(file.len().max(at + bytes.len()), 0);
            file[at..at + bytes.len()].copy_from_slice(bytes);
        } else {
            // A part of it may be there.
            self.files.insert(name.to_vec(), content(&mut self.fs, ino).unwrap());
        }
        self.fs.close(ino).unwrap();
        is_done
    }

    fn compare(&mut self, whose: &str) {
        for (name, expected) in &self.files {
            let ino = self.fs.lookup(Ino::ROOT, name).unwrap();
            assert!(content(&mut self.fs, ino).unwrap() == *expected, "{whose}: {}", name.escape_ascii());
        }
        assert_eq!(violations(&mut self.fs), Vec::<String>::new(), "{whose}");
    }
}

/// Lives a life of so many steps on a chip that has room for a part of what is written: no name may be refused to go, and what is removed makes
/// room. Returns what was refused, of which [`WRITES`] alone are sound.
pub fn live<S: System>(system: &S, chip: Chip, seed: u64, chance: &mut Chance, steps: u32) -> Refused {
    let mut memory = system.memory(&chip.geometry);
    let sim = system.format(Sim::new(chip), &mut memory).unwrap().unmount().unwrap();
    let fs = system.mount(sim, &mut memory).unwrap();
    let mut filled = Filled { fs, files: Files::new(), refused: Refused::default() };
    let names = 4 + chance.below(60);
    let size_max = [300, 3000, 12_000, 60_000][chance.below(4)];
    for _ in 0..steps {
        if chance.below(200) == 0 {
            filled.sync();
            let (fs, files, refused) = filled.into_parts();
            let sim = if chance.below(2) == 0 { fs.abandon() } else { fs.unmount().unwrap() };
            filled = Filled { fs: system.mount(sim, &mut memory).unwrap(), files, refused };
        }
        let number = chance.below(names);
        let mut name = format!("{number}").into_bytes();
        name.resize(name.len() + number % 7 * 20, b'x');
        match chance.below(12) {
            0 | 1 => filled.sync(),
            2 if chance.below(8) == 0 => drop(count_full(&mut filled.refused, "idles", filled.fs.idle(8))),
            2..5 => {
                if filled.files.contains_key(&name) {
                    filled.unlink(&name);
                }
            }
            _ => {
                let at = if chance.below(2) == 0 { 0 } else { chance.below(size_max) };
                let size = 1 + chance.below(size_max);
                let bytes = chance.bytes(size);
                if !filled.write(&name, at, &bytes, WRITES) && chance.below(10) == 0 {
                    filled.remove_half();
                    filled.write(b"new", 0, b"content", "writes after half was removed");
                }
            }
        }
    }
    filled.sync();
    filled.compare(&format!("seed {seed}"));
    while let Some(name) = filled.files.keys().next().cloned() {
        if !filled.unlink(&name) {
            break;
        }
    }
    let (fs, _, refused) = filled.into_parts();
    if system.promises_liveness()
        && let Err(what) = serves_again(&liveness::Files(system), &mut fs.abandon())
    {
        panic!("seed {seed}, at the end: {what}");
    }
    refused
}

/// Fills a chip with files, finds all of them after the next mount, removes them, and fills it again with nearly as much, so many times.
pub fn filled_again<S: System>(system: &S, chip: Chip, times: usize) {
    let mut memory = system.memory(&chip.geometry);
    let sim = system.format(Sim::new(chip), &mut memory).unwrap().unmount().unwrap();
    let mut fs = system.mount(sim, &mut memory).unwrap();
    let mut chance = Chance::new(9);
    let mut first = 0;
    for time in 0..times {
        let mut filled = Filled { fs, files: Files::new(), refused: Refused::default() };
        let page_size = chip.geometry.page_size as usize;
        for number in 0.. {
            let size = [1, page_size / 3, page_size, 5 * page_size][chance.below(4)];
            let bytes = chance.bytes(size);
            if !filled.write(format!("{number}").as_bytes(), 0, &bytes, WRITES) {
                break;
            }
        }
        filled.sync();
        let (left, files, refused) = filled.into_parts();
        let sim = if time % 2 == 0 { left.unmount().unwrap() } else { left.abandon() };
        filled = Filled { fs: system.mount(sim, &mut memory).unwrap(), files, refused };
        filled.compare(&format!("time {time}"));
        let bytes: usize = filled.files.values().map(Vec::len).sum();
        first = first.max(bytes);
        assert!(bytes * 10 > first * 8, "{bytes} bytes found room, and {first} before");
        assert!(bytes * 5 > page_size * chip.geometry.pages_per_block as usize * 4, "{bytes} bytes found room");
        let names: Vec<_> = filled.files.keys().cloned().collect();
        for name in names {
            assert!(filled.unlink(&name), "a name goes on a full chip");
        }
        filled.sync();
        assert_eq!(violations(&mut filled.fs), Vec::<String>::new());
        fs = filled.fs;
    }
}

/// Fills a chip with files of three pages and writes their pages over, again and again: each takes the place of the one before, for as long as one likes.
pub fn pages_are_written_over<S: System>(system: &S, chip: Chip) {
    let mut memory = system.memory(&chip.geometry);
    let fs = system.mount(system.formatted(chip), &mut memory).unwrap();
    let mut filled = Filled { fs, files: Files::new(), refused: Refused::default() };
    let page_size = chip.geometry.page_size as usize;
    for number in 0.. {
        if !filled.write(format!("{number}").as_bytes(), 0, &vec![1; 3 * page_size], WRITES) {
            break;
        }
    }
    filled.fs.sync().unwrap();
    assert!(filled.files.len() > 20);
    let mut chance = Chance::new(5);
    let names: Vec<_> =
        filled.files.keys().filter(|name| filled.files[*name].len() == 3 * page_size).cloned().collect();
    for step in 0..3000_usize {
        let name = &names[chance.below(names.len())];
        let at = chance.below(3) * page_size;
        assert!(filled.write(name, at, &vec![step as u8; page_size], "a page that is written over"), "step {step}");
        if chance.below(10) == 0 {
            filled.fs.sync().unwrap();
        }
    }
    filled.compare("written over");
    let names: Vec<_> = filled.files.keys().cloned().collect();
    for name in names {
        filled.fs.unlink(Ino::ROOT, &name).unwrap();
    }
    filled.fs.sync().unwrap();
}
