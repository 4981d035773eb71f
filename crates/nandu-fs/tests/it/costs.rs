//! What operations cost on the chip, exactly.

use std::ops::ControlFlow;

use nandu_fs::{Format, Fs, Ino, Options, RenameMode};
use nandu_sim::{Chip, Sim};

use crate::rig::{FILE, formatted_with, memory};

struct Bench<'m> {
    fs: Fs<'m, Sim>,
    table: String,
}

impl Bench<'_> {
    /// Programs and reads for each of so many operations.
    fn measure(&mut self, name: &str, count: u64, mut operation: impl FnMut(&mut Fs<'_, Sim>, u64)) -> (f64, f64) {
        let before = *self.fs.nand().counters();
        for number in 0..count {
            operation(&mut self.fs, number);
        }
        let after = self.fs.nand().counters();
        let each = |difference: u64| difference as f64 / count as f64;
        let (programs, reads) = (each(after.programs - before.programs), each(after.reads - before.reads));
        self.table += &format!("{name:24} {programs:8.4} programs {reads:8.4} reads\n");
        (programs, reads)
    }
}

fn name(number: u64) -> Vec<u8> {
    format!("file-{number:06}").into_bytes()
}

fn costs(chip: Chip, options: Options) -> String {
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let fs =
        Fs::format(Sim::new(chip), options, Format { hash_key: [7; 16], ..Format::default() }, &mut memory).unwrap();
    let mut bench = Bench { fs, table: String::new() };
    let page_size = bench.fs.page_size();
    let directories: Vec<Ino> = (0..20).map(|number| bench.fs.mkdir(Ino::ROOT, &name(number), FILE).unwrap()).collect();
    let directory = |number: u64| directories[number as usize % directories.len()];
    let mut files = Vec::new();
    bench.measure("create_fsync", 2000, |fs, number| {
        let file = fs.create(directory(number), &name(number), FILE).unwrap();
        fs.fsync(file).unwrap();
        files.push(file);
    });
    bench.measure("small_file_fsync", 500, |fs, number| {
        let file = fs.create(directory(number), &name(number + 10_000), FILE).unwrap();
        fs.write_at(file, 0, &[number as u8 | 1; 2048]).unwrap();
        fs.fsync(file).unwrap();
    });
    bench.measure("file_3k_fsync", 200, |fs, number| {
        let file = fs.create(directory(number), &name(number + 50_000), FILE).unwrap();
        fs.write_at(file, 0, &[number as u8 | 1; 3072]).unwrap();
        fs.fsync(file).unwrap();
    });
    bench.measure("append_4k_osync", 500, |fs, number| {
        fs.write_at(files[0], number * 4096, &[number as u8 | 1; 4096]).unwrap();
        fs.fsync(files[0]).unwrap();
    });
    bench.measure("overwrite_4k_osync", 500, |fs, number| {
        fs.write_at(files[0], number * 7919 % 500 * 4096, &[number as u8 | 2; 4096]).unwrap();
        fs.fsync(files[0]).unwrap();
    });
    bench.measure("update_100_osync", 2000, |fs, number| {
        fs.write_at(files[0], number * 7919 % 20_000 * 100, &[number as u8 | 3; 100]).unwrap();
        fs.fsync(files[0]).unwrap();
    });
    bench.measure("rename", 500, |fs, number| {
        let to = [&b"new-"[..], &name(number)].concat();
        fs.rename(directory(number), &name(number), directory(number), &to, RenameMode::Replace).unwrap();
    });
    bench.measure("unlink", 500, |fs, number| fs.unlink(directory(number + 500), &name(number + 500)).unwrap());
    bench.measure("unlink_fsync", 500, |fs, number| {
        fs.unlink(directory(number + 1000), &name(number + 1000)).unwrap();
        fs.fsync(directory(number)).unwrap();
    });
    bench.measure("mkdir", 200, |fs, number| {
        fs.mkdir(directory(number), &name(number + 20_000), FILE).unwrap();
    });
    bench.measure("fsync_unchanged", 10, |fs, _| fs.fsync(files[0]).unwrap());
    let Bench { fs, mut table } = bench;
    let chip = fs.unmount().unwrap();
    let before = *chip.counters();
    let fs = Fs::mount(chip, options, &mut memory).unwrap();
    table += &format!("{:24} {} reads\n", "mount", fs.nand().counters().reads - before.reads);
    let mut bench = Bench { fs, table };
    let mut names = Vec::new();
    bench.measure("read_dir", 20, |fs, number| {
        let directory = directories[number as usize];
        fs.read_dir(directory, 2, |entry| {
            names.push((directory, entry.name.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    });
    let count = names.len() as u64;
    bench.measure("stat_as_listed", count, |fs, number| {
        let (directory, name) = &names[number as usize];
        let file = fs.lookup(*directory, name).unwrap();
        fs.stat(file).unwrap();
    });
    bench.measure("stat", 500, |fs, number| {
        let file = fs.lookup(directory(number + 1500), &name(number + 1500)).unwrap();
        fs.stat(file).unwrap();
    });
    bench.measure("read_4k", 500, |fs, number| {
        let mut bytes = vec![0; 4096];
        assert_eq!(fs.read_at(files[0], number * 7919 % 500 * 4096, &mut bytes), Ok(4096));
    });
    println!("{page_size} bytes a page\n{}", bench.table);
    bench.table
}

#[test]
fn costs_on_pages_of_two_kilobytes() {
    insta::assert_snapshot!(costs(Chip::W25N01GV, Options::DEFAULT));
}

#[test]
fn costs_on_pages_of_four_kilobytes() {
    let options = Options { cache_size: 8192, pending_size: 16384, ..Options::DEFAULT };
    insta::assert_snapshot!(costs(Chip::PAPER_MLC, options));
}

/// However many files there are, after an unmount and after a power cut.
#[test]
fn a_mount_reads_few_pages_however_many_files_there_are() {
    let options = Options::DEFAULT;
    let mut memory = vec![0; Fs::<Sim>::memory_required(&Chip::W25N01GV.geometry, &options)];
    let format = Format { hash_key: [7; 16], ..Format::default() };
    let mut fs = Fs::format(Sim::new(Chip::W25N01GV), options, format, &mut memory).unwrap();
    let mut most = [0, 0];
    for number in 0..6_000 {
        let file = fs.create(Ino::ROOT, &name(number), FILE).unwrap();
        fs.write_at(file, 0, &[1; 700]).unwrap();
        if number % 7 == 0 {
            fs.sync().unwrap();
        }
        if number == 9 || number % 251 == 250 {
            let is_cut = number % 2 == 0;
            let chip = if is_cut { fs.abandon() } else { fs.unmount().unwrap() };
            let before = chip.counters().reads;
            fs = Fs::mount(chip, options, &mut memory).unwrap();
            let reads = fs.nand().counters().reads - before;
            most[usize::from(is_cut)] = most[usize::from(is_cut)].max(reads);
        }
    }
    println!("{} reads after an unmount, {} after a cut", most[0], most[1]);
    assert!(most[0] <= 40 && most[1] <= 40, "{most:?}");
}

#[test]
fn a_name_among_many_takes_four_reads() {
    let options = Options::DEFAULT;
    // As many take some seconds without optimisation, so fewer do by default.
    let count = std::env::var("NANDU_FS_NAMES").map_or(20_000, |count| count.parse().unwrap());
    let mut memory = vec![0; Fs::<Sim>::memory_required(&Chip::W25N01GV.geometry, &options)];
    let format = Format { hash_key: [7; 16], ..Format::default() };
    let mut fs = Fs::format(Sim::new(Chip::W25N01GV), options, format, &mut memory).unwrap();
    for number in 0..count {
        fs.create(Ino::ROOT, &name(number), FILE).unwrap();
    }
    let mut fs = Fs::mount(fs.unmount().unwrap(), options, &mut memory).unwrap();
    let (mut most, mut all) = (0, 0);
    for number in 0..1000 {
        let before = fs.nand().counters().reads;
        fs.lookup(Ino::ROOT, &name(number * 7919 % count)).unwrap();
        let reads = fs.nand().counters().reads - before;
        most = most.max(reads);
        all += reads;
    }
    println!("{count} names: {} reads a lookup, at most {most}", all as f64 / 1000.0);
    assert!(most <= 4 + 1, "{most}");
}

/// Files that come and go, written by synced pages of 4 KB, on a chip that is half full: what collecting garbage adds.
#[test]
fn files_of_synced_pages_on_a_chip_half_full() {
    let chip = Chip::PAPER_MLC.with_blocks(128);
    let options = Options { cache_size: 8192, pending_size: 16384, ..Options::DEFAULT };
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let mut fs =
        Fs::format(Sim::new(chip), options, Format { hash_key: [7; 16], ..Format::default() }, &mut memory).unwrap();
    let directories: Vec<Ino> = (0..10).map(|number| fs.mkdir(Ino::ROOT, &name(number), FILE).unwrap()).collect();
    let make = |fs: &mut Fs<'_, Sim>, number: u64| {
        let directory = directories[number as usize % 10];
        let file = fs.create(directory, &name(number), FILE).unwrap();
        for at in 0..32 {
            if let Err(error) = fs.write_at(file, at * 4096, &[number as u8 | 1; 4096]) {
                panic!("{error} at file {number}, page {at}: {:?}", fs.stats());
            }
            fs.fsync(file).unwrap();
        }
    };
    for number in 0..110 {
        make(&mut fs, number);
    }
    let before = *fs.nand().counters();
    let mut there: Vec<u64> = (0..110).collect();
    for round in 0..300 {
        let gone = there.swap_remove(round as usize * 7919 % there.len());
        fs.unlink(directories[gone as usize % 10], &name(gone)).unwrap();
        make(&mut fs, 110 + round);
        there.push(110 + round);
    }
    let after = *fs.nand().counters();
    let stats = fs.stats();
    let programs = (after.programs - before.programs) as f64 / (300.0 * 32.0);
    println!("{programs:.3} programs for each page, {} of {} pages live", stats.live_pages, stats.capacity_pages);
    let mut found = 0;
    fs.verify(&mut [], &mut |_| found += 1).unwrap();
    assert_eq!(found, 0);
    assert!(programs < 2.4, "{programs}");
}

/// A page that is written and synced is durable with one program where it has a tag; behind nine of them there is a commit.
#[test]
fn a_synced_page_with_a_tag_costs_one_program() {
    let mut memory = memory(&Chip::W25N01GV.geometry, &Options::DEFAULT);
    let chip = formatted_with(Chip::W25N01GV, Options::DEFAULT);
    let mut fs = Fs::mount(chip, Options::DEFAULT, &mut memory).unwrap();
    let ino = fs.create(Ino::ROOT, b"a", FILE).unwrap();
    fs.fsync(ino).unwrap();
    let write = |fs: &mut Fs<'_, Sim>, index: u64| {
        let before = *fs.nand().counters();
        fs.write_at(ino, index * 2048, &[index as u8 + 1; 2048]).unwrap();
        fs.fsync(ino).unwrap();
        let cost = fs.nand().counters().since(&before);
        (cost.programs, cost.reads, cost.erases)
    };
    // No header says yet where the stream of pages stands.
    assert_eq!(write(&mut fs, 0).0, 2);
    for _ in 0..2 {
        for index in 0..TAIL {
            assert_eq!(write(&mut fs, index).0, 1, "page {index}");
        }
        assert_eq!(write(&mut fs, TAIL).0, 2);
    }
    // What else changes is no tag's to say.
    assert_eq!(write(&mut fs, 16).0, 1);
    let before = fs.nand().counters().programs;
    fs.truncate(ino, 16 * 2048 + 7).unwrap();
    fs.fsync(ino).unwrap();
    assert_eq!(fs.nand().counters().programs - before, 1);
}

/// Pages of a tail, behind which a commit comes.
const TAIL: u64 = nandu_log::TAIL_MAX as u64;

/// A mount after a cut reads each page that only a tag tells of, and writes it again.
#[test]
fn a_mount_after_a_cut_takes_over_what_tags_tell_of() {
    let mut bytes = memory(&Chip::W25N01GV.geometry, &Options::DEFAULT);
    let mut fs = Fs::mount(formatted_with(Chip::W25N01GV, Options::DEFAULT), Options::DEFAULT, &mut bytes).unwrap();
    let ino = fs.create(Ino::ROOT, b"a", FILE).unwrap();
    fs.write_at(ino, 0, &[1; 2048]).unwrap();
    fs.fsync(ino).unwrap();
    let mut table = String::new();
    for count in [0, 1, TAIL] {
        for index in 0..count {
            fs.set_now(nandu_fs::Time::from_seconds(100 + index as i64));
            fs.write_at(ino, index * 2048, &[index as u8 + 2; 2048]).unwrap();
            fs.fsync(ino).unwrap();
        }
        let stat = fs.stat(ino).unwrap();
        let before = *fs.nand().counters();
        let chip = fs.abandon();
        fs = Fs::mount(chip, Options::DEFAULT, &mut bytes).unwrap();
        let cost = fs.nand().counters().since(&before);
        table +=
            &format!("{count:2} pages: {} reads, {} programs, {} erases\n", cost.reads, cost.programs, cost.erases);
        assert_eq!((fs.stat(ino).unwrap(), u64::from(fs.stats().tail.pages)), (stat, count));
        for index in 0..count {
            let mut page = [0; 2048];
            assert_eq!(fs.read_at(ino, index * 2048, &mut page).unwrap(), 2048);
            assert_eq!(page, [index as u8 + 2; 2048]);
        }
        // A block of pages is open, and a commit says so: the next tail begins there.
        fs.write_at(ino, 20 * 2048, &[9; 2048]).unwrap();
        fs.fsync(ino).unwrap();
        fs.mkdir(Ino::ROOT, &name(count), FILE).unwrap();
    }
    insta::assert_snapshot!("mounts_with_a_tail", table);
}
