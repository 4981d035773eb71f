//! The workloads on which the kernel's flash file systems are counted, on a directory of whatever is mounted.
//!
//! `cargo xtask guest --peers` runs it in a guest. Each phase prints a line: its name, then what it did and cost as `name=number`.
//! Page operations are the kernel's own counts of its functions that read, program and erase, which the guest asked it to take.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use nandu_bench::BenchError;
use nandu_bench::workload::{Durable, FileName, Files, Population, Postmark, Updates};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

const USAGE: &str = "\
usage: nandu-work postmark DIRECTORY WRITE_SIZE
       nandu-work updates|creates|file|full|walk DIRECTORY
       nandu-work populate DIRECTORY FILES
       nandu-work run PHASE COMMAND...
       nandu-work memory POINT";

/// The seed that the kernel's figures were always counted with.
const SEED: u64 = 1;

/// `O_SYNC` of Linux, but for architectures that this is not run on.
const O_SYNC: i32 = 0o4_010_000;

/// Where the kernel says how often each of its functions was called.
const COUNTS: &str = "/sys/kernel/tracing/kprobe_profile";

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["postmark", at, write_size] => number(write_size).and_then(|size| postmark(Path::new(at), size as usize)),
        ["updates", at] => updates(Path::new(at)),
        ["creates", at] => creates(Path::new(at)),
        ["file", at] => one_file(Path::new(at)),
        ["full", at] => full(Path::new(at)),
        ["walk", at] => walk(Path::new(at)),
        ["populate", at, files] => number(files).and_then(|files| populate(Path::new(at), files)),
        ["run", phase, command, arguments @ ..] => run(phase, command, arguments),
        ["memory", point] => memory(point),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nandu-work: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u64, Box<dyn Error + Send + Sync>> {
    Ok(text.parse()?)
}

/// A phase that is under way.
struct Phase {
    name: String,
    before: Counts,
    begin: Instant,
}

/// What the kernel counted so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    reads: u64,
    programs: u64,
    erases: u64,
    /// Times that it had to leave out a count.
    missed: u64,
    /// Hundredths of a second that the processor was busy.
    busy: u64,
}

impl Counts {
    fn now() -> io::Result<Counts> {
        let mut counts = Counts::default();
        for line in fs::read_to_string(COUNTS)?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, hits, missed] = words.as_slice() else { continue };
            let hits = hits.parse().unwrap_or(0);
            match *name {
                "read" => counts.reads = hits,
                "program" => counts.programs = hits,
                "erase" => counts.erases = hits,
                _ => continue,
            }
            counts.missed += missed.parse::<u64>().unwrap_or(0);
        }
        let stat = fs::read_to_string("/proc/stat")?;
        let of_all = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        // The fourth and fifth are idle times.
        let busy = of_all.enumerate().filter(|(index, _)| !(3..5).contains(index));
        counts.busy = busy.map(|(_, text)| text.parse::<u64>().unwrap_or(0)).sum();
        Ok(counts)
    }
}

impl Phase {
    fn begin(name: &str) -> io::Result<Phase> {
        Ok(Phase { name: name.to_owned(), before: Counts::now()?, begin: Instant::now() })
    }

    fn end(self, operations: u64, bytes: u64) -> io::Result<()> {
        let wall = self.begin.elapsed();
        let (before, after) = (self.before, Counts::now()?);
        println!(
            "#phase {} ops={operations} bytes={bytes} reads={} programs={} erases={} missed={} wall_ms={} busy_ms={}",
            self.name,
            after.reads - before.reads,
            after.programs - before.programs,
            after.erases - before.erases,
            after.missed - before.missed,
            wall.as_millis(),
            10 * (after.busy - before.busy),
        );
        Ok(())
    }
}

/// A directory of whatever file system, under the workloads.
struct Directory {
    root: PathBuf,
    /// Files are made to be synced with each write.
    is_synced: bool,
    open: Option<(PathBuf, File)>,
    /// The same file, opened once more to sync each write.
    synced: Option<File>,
}

impl Directory {
    fn new(root: &Path, is_synced: bool) -> Directory {
        Directory { root: root.to_owned(), is_synced, open: None, synced: None }
    }

    fn path(&self, file: FileName) -> PathBuf {
        let directory = file.directory.map(FileName::directory_name).unwrap_or_default();
        self.root.join(directory).join(file.name())
    }
}

fn failed(error: io::Error) -> BenchError {
    BenchError::Structure(error.into())
}

impl Files for Directory {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        fs::create_dir(self.root.join(FileName::directory_name(directory))).map_err(failed)
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        fs::remove_dir(self.root.join(FileName::directory_name(directory))).map_err(failed)
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        let path = self.path(file);
        let flags = if self.is_synced { O_SYNC } else { 0 };
        let file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(&path).map_err(failed)?;
        self.open = Some((path, file));
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let Some((path, file)) = &self.open else { return Err(BenchError::Other("no file is open".to_owned())) };
        if !is_synced || self.is_synced {
            return file.write_all_at(bytes, offset).map_err(failed);
        }
        let synced = match self.synced.take() {
            Some(file) => file,
            None => OpenOptions::new().write(true).custom_flags(O_SYNC).open(path).map_err(failed)?,
        };
        synced.write_all_at(bytes, offset).map_err(failed)?;
        self.synced = Some(synced);
        Ok(())
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        self.open.as_ref().map_or(Ok(()), |(_, file)| file.sync_all()).map_err(failed)
    }

    fn close(&mut self) -> Result<(), BenchError> {
        (self.open, self.synced) = (None, None);
        Ok(())
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        fs::remove_file(self.path(file)).map_err(failed)
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        fs::rename(self.path(from), self.path(to)).map_err(failed)
    }

    fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError> {
        let path = self.path(file);
        let read = fs::read(&path).map_err(failed)?;
        if read == content { Ok(()) } else { Err(BenchError::Other(format!("{} differs", path.display()))) }
    }
}

fn postmark(at: &Path, write_size: usize) -> Outcome {
    let (files, transactions) = (1300, 2000);
    let population = Population { files, directories: 100, size: 131_072, write_size, durable: Durable::EachWrite };
    let size = population.size as u64;
    let mut directory = Directory::new(at, true);
    let mut postmark = Postmark::new(population, SEED);
    let phase = Phase::begin("create")?;
    postmark.create(&mut directory, &mut |_| {})?;
    phase.end(files, files * size)?;
    let phase = Phase::begin("transactions")?;
    let made = postmark.transact(transactions, &mut directory, &mut |_| {})?;
    phase.end(transactions, made * size)?;
    forget_pages()?;
    let phase = Phase::begin("verify")?;
    postmark.verify(&mut directory)?;
    phase.end(1, 0)?;
    let phase = Phase::begin("delete")?;
    let deleted = postmark.delete(&mut directory)?;
    phase.end(deleted, 0)?;
    Ok(())
}

fn updates(at: &Path) -> Outcome {
    let (size, count) = (16 << 20, 20_000);
    let mut directory = Directory::new(at, false);
    let mut updates = Updates::new(size, 100, SEED);
    let phase = Phase::begin("fill")?;
    updates.fill(&mut directory, 131_072)?;
    phase.end(1, size as u64)?;
    let phase = Phase::begin("update")?;
    for _ in 0..count {
        updates.update(&mut directory)?;
    }
    phase.end(count, count * updates.record as u64)?;
    forget_pages()?;
    let phase = Phase::begin("verify")?;
    updates.verify(&mut directory)?;
    phase.end(1, size as u64)?;
    Ok(())
}

fn creates(at: &Path) -> Outcome {
    let population = Population { files: 10_000, directories: 0, size: 0, write_size: 4096, durable: Durable::OnClose };
    let phase = Phase::begin("create")?;
    population.create_all(SEED, &mut Directory::new(at, false), &mut |_| {})?;
    phase.end(population.files, 0)?;
    Ok(())
}

/// Files of 1 KiB in 100 directories.
fn populate(at: &Path, files: u64) -> Outcome {
    let population = Population { files, directories: 100, size: 1024, write_size: 4096, durable: Durable::OnClose };
    let phase = Phase::begin("populate")?;
    population.create_all(SEED, &mut Directory::new(at, false), &mut |_| {})?;
    phase.end(files, files * 1024)?;
    Ok(())
}

/// A file of 100 MiB, written 128 KiB at a time and synced at its end, then read.
fn one_file(at: &Path) -> Outcome {
    let (path, parts, mut bytes) = (at.join("file"), 800_u64, vec![0; 131_072]);
    let size = parts * bytes.len() as u64;
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let phase = Phase::begin("write")?;
    let file = File::create_new(&path)?;
    for part in 0..parts {
        random.fill_bytes(&mut bytes);
        file.write_all_at(&bytes, part * bytes.len() as u64)?;
    }
    file.sync_all()?;
    drop(file);
    phase.end(1, size)?;
    forget_pages()?;
    let phase = Phase::begin("read")?;
    let (mut file, mut expected) = (File::open(&path)?, vec![0; bytes.len()]);
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..parts {
        file.read_exact(&mut bytes)?;
        random.fill_bytes(&mut expected);
        if bytes != expected {
            return Err("the file differs".into());
        }
    }
    phase.end(1, size)?;
    Ok(())
}

/// Files of 128 KiB until there is no room, then as many of them removed that nine tenths are left, then pages of them overwritten at
/// random, each synced: as many bytes as a chip of 117 MiB has.
fn full(at: &Path) -> Outcome {
    let (size, page, overwrites) = (131_072_usize, 4096_usize, 30_000_u64);
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut bytes = vec![0; size];
    let name = |number: u64| at.join(format!("f{number:08}"));
    let phase = Phase::begin("fill")?;
    let mut files = 0_u64;
    loop {
        random.fill_bytes(&mut bytes);
        let file = File::create_new(name(files))?;
        match file.write_all_at(&bytes, 0).and_then(|()| file.sync_all()) {
            Ok(()) => files += 1,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
            Err(error) => return Err(error.into()),
        }
    }
    fs::remove_file(name(files))?;
    phase.end(files, files * size as u64)?;
    let kept = files * 9 / 10;
    let phase = Phase::begin("remove")?;
    for number in kept..files {
        fs::remove_file(name(number))?;
    }
    File::open(at)?.sync_all()?;
    phase.end(files - kept, 0)?;
    let phase = Phase::begin("overwrite")?;
    for _ in 0..overwrites {
        let (number, place) = (random.random_range(0..kept), random.random_range(0..(size / page) as u64));
        random.fill_bytes(&mut bytes[..page]);
        let file = OpenOptions::new().write(true).custom_flags(O_SYNC).open(name(number))?;
        file.write_all_at(&bytes[..page], place * page as u64)?;
    }
    phase.end(overwrites, overwrites * page as u64)?;
    Ok(())
}

/// Asks for what is known of each name.
fn walk(at: &Path) -> Outcome {
    let phase = Phase::begin("stat")?;
    let (mut files, mut directories) = (0, vec![at.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.metadata()?.is_dir() { directories.push(entry.path()) } else { files += 1 }
        }
    }
    phase.end(files, 0)?;
    Ok(())
}

/// A command as a phase.
fn run(phase: &str, command: &str, arguments: &[&str]) -> Outcome {
    let phase = Phase::begin(phase)?;
    let status = Command::new(command).args(arguments).status()?;
    if !status.success() {
        return Err(format!("{command}: {status}").into());
    }
    phase.end(1, 0)?;
    Ok(())
}

/// Empties the page cache, so that what is read next is read from flash.
fn forget_pages() -> io::Result<()> {
    run("flush", "sync", &[]).map_err(io::Error::other)?;
    fs::write("/proc/sys/vm/drop_caches", "1")
}

/// All memory in use but the page cache and what the simulated chip holds: the kernel's own, and that of processes, the program text of
/// nandu's included, since that of the kernel's is.
fn memory(point: &str) -> Outcome {
    let info = fs::read_to_string("/proc/meminfo")?;
    let of = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0)
    };
    let slabs = fs::read_to_string("/proc/slabinfo")?;
    // Slabs, and pages of 4 KiB in each.
    let chip = slabs.lines().find(|line| line.starts_with("nandsim ")).map_or(0, |line| {
        let word = |index| line.split_whitespace().nth(index).and_then(|word: &str| word.parse::<i64>().ok());
        4 * word(14).unwrap_or(0) * word(5).unwrap_or(0)
    });
    let mut used = of("MemTotal") - of("MemFree") - of("Buffers") - of("Cached") - chip;
    for entry in fs::read_dir("/proc")?.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if read("comm").trim() == "nandu" {
            let status = read("status");
            let text = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
            used += text.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0);
        }
    }
    println!("#memory {point} kib={used}");
    Ok(())
}
