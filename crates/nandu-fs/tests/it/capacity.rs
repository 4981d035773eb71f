//! What a volume says it can take, it takes.

use nandu_fs::{Fs, FsError, Ino, Options, Time};
use nandu_nand::Pairing;
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, violations};

use crate::rig::{FILE, FORMAT, memory};

/// Both modes where the chip has them.
fn options(chip: &Chip) -> Options {
    let options = Options { cache_size: 65_536, pending_size: 16_384, ..Options::DEFAULT };
    if chip.geometry.pairing == Pairing::None { options } else { options.both_modes(&chip.geometry) }
}

/// A file system, what it holds, and the time.
struct Bench<'m> {
    fs: Fs<'m, Sim>,
    seconds: i64,
    /// Name, inode and pages of each file.
    files: Vec<(Vec<u8>, Ino, u64)>,
    named: u64,
    /// Whether there is idle time between bursts.
    rests: bool,
}

fn content(ino: Ino, page: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![(page ^ ino.0) as u8 | 1; size];
    bytes[..8].copy_from_slice(&page.to_le_bytes());
    bytes[8..16].copy_from_slice(&ino.0.to_le_bytes());
    bytes
}

impl Bench<'_> {
    fn now(&self) -> Time {
        Time { seconds: self.seconds, nanoseconds: 0 }
    }

    fn rest(&mut self, seconds: i64) {
        let until = self.seconds + seconds;
        while let Some(due) = self.fs.step_due()
            && due.seconds < until
        {
            self.fs.step(due).unwrap();
        }
        self.seconds = until;
    }

    fn write(&mut self, ino: Ino, page: u64) -> Result<(), FsError<nandu_sim::SimError>> {
        self.fs.request_begin(self.now()).unwrap();
        let size = self.fs.page_size();
        let outcome = self.fs.write_at(ino, page * size as u64, &content(ino, page, size));
        self.fs.request_end(self.now());
        outcome.map(|written| assert_eq!(written, size))
    }

    /// Writes files of so many pages until there is no room; returns the pages written.
    fn fill(&mut self, size: u64) -> u64 {
        let mut written = 0;
        loop {
            let name = format!("file-{}", self.named).into_bytes();
            self.named += 1;
            let ino = match self.fs.create(Ino::ROOT, &name, FILE) {
                Ok(ino) => ino,
                Err(FsError::Full) => break,
                Err(error) => panic!("{error}"),
            };
            self.files.push((name, ino, 0));
            for page in 0..size {
                match self.write(ino, page) {
                    Ok(()) => written += 1,
                    Err(FsError::Full) => {
                        self.fs.sync().unwrap();
                        return written;
                    }
                    Err(error) => panic!("{error}"),
                }
                self.files.last_mut().unwrap().2 += 1;
                if written % 256 == 0 {
                    self.fs.sync().unwrap();
                    if self.rests {
                        self.rest(4);
                    }
                }
            }
        }
        self.fs.sync().unwrap();
        written
    }

    fn delete(&mut self, index: usize) -> u64 {
        let (name, _, pages) = self.files.swap_remove(index);
        self.fs.unlink(Ino::ROOT, &name).unwrap();
        pages
    }

    fn check(&mut self) {
        let size = self.fs.page_size();
        let mut bytes = vec![0; size];
        for (_, ino, pages) in &self.files {
            assert_eq!(self.fs.stat(*ino).unwrap().size, pages * size as u64);
            for page in 0..*pages {
                self.fs.read_at(*ino, page * size as u64, &mut bytes).unwrap();
                assert_eq!(bytes, content(*ino, page, size), "page {page}");
            }
        }
    }
}

fn on<T>(chip: Chip, rests: bool, work: impl FnOnce(&mut Bench<'_>) -> T) -> T {
    let options = options(&chip);
    let mut bytes = memory(&chip.geometry, &options);
    let fs = Fs::format(Sim::new(chip), options, FORMAT, &mut bytes).unwrap();
    let mut bench = Bench { fs, seconds: 100, files: Vec::new(), named: 0, rests };
    let result = work(&mut bench);
    assert_eq!(violations(&mut bench.fs), [""; 0]);
    result
}

/// Fills a volume with files of so many pages; then half is deleted, what is left is overwritten, and it is filled again, three times. Every
/// time all that was said to be there can be written, and later nearly all that was deleted. On the empty volume it is as much more at most as the records of small
/// files would take, for which there has to be room: nine files to a leaf of 2 KiB.
fn life(bench: &mut Bench<'_>, size: u64, seed: u64) {
    let mut chance = Chance::new(seed);
    let mut gone = 0;
    for round in 0..4 {
        let available = bench.fs.statfs().unwrap().blocks_available;
        let written = bench.fill(size);
        let left = bench.fs.statfs().unwrap().blocks_available;
        println!("{size} pages a file, round {round}: {written} of {available}, {left} left, {gone} were deleted");
        assert!(written >= available && left <= HANDFUL, "{written} of {available}, {left}");
        let records = available / (bench.fs.page_size() as u64 / 220);
        assert!(round > 0 || written <= available + records + HANDFUL, "{written} of {available}");
        // Leaves are not as full as they were.
        assert!(written + HANDFUL >= gone * 19 / 20, "{written} after {gone} were deleted");
        let all: u64 = bench.files.iter().map(|(_, _, pages)| pages).sum();
        gone = 0;
        while gone < all / 2 {
            gone += bench.delete(chance.below(bench.files.len()));
        }
        bench.fs.sync().unwrap();
        for _ in 0..all / 2 {
            let Some(&(_, ino, pages)) = bench.files.get(chance.below(bench.files.len().max(1))) else { break };
            if pages > 0 {
                bench.write(ino, chance.below(pages as usize) as u64).unwrap();
            }
        }
        bench.fs.sync().unwrap();
    }
    bench.check();
}

/// Pages that are said to be left when there is no room.
const HANDFUL: u64 = 8;

#[test]
fn what_is_offered_can_be_written_whatever_size_files_have_and_again_after_churn() {
    for (blocks, size, rests) in
        [(32, 13, false), (64, 1, false), (64, 200, true), (64, 13, true), (64, 100_000, false), (160, 40, false)]
    {
        println!("{blocks} blocks, rests {rests}");
        on(Chip::PAPER_FLEX.with_blocks(blocks), rests, |bench| life(bench, size, u64::from(blocks)));
    }
}

#[test]
fn the_same_of_a_volume_with_one_bit_a_cell() {
    for size in [1, 30, 100_000] {
        on(Chip::W25N01GV.with_blocks(48), false, |bench| life(bench, size, 5));
    }
}
