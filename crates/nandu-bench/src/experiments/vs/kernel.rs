//! The file system on the work that the kernel's flash file systems were counted on.

use nandu::fs::{Attributes, FileKind, Format, Fs, FsError, Ino, LogOptions, Options};
use nandu_sim::{Chip, Counters, Sim, SimError};
use std::ops::ControlFlow;

use crate::workload::{Durable, FileName, Files, Population, Postmark, Updates};
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vs/kernel",
    about: "the file system on the work on which UBIFS and JFFS2 of Linux 6.1 were counted",
    source: Some(
        "UBIFS and JFFS2 of Linux 6.1 on the kernel's simulated NAND, every page operation counted; `published` is JFFS2's count, `model` UBIFS's",
    ),
    setup: &[
        ("chip", "4 KiB pages, 128 in a block, 512 or 256 MiB; read 165.6, program 905.8, erase 1500 us"),
        (
            "memory",
            "1 MiB of nodes, 64 KiB of changes that wait; UBIFS took 2.8 MB when mounted with 10,000 files, 19 MB after a walk",
        ),
        ("structure", "file system"),
        (
            "workload",
            "Postmark with synchronous writes, 20,000 synced updates of 100 bytes, 10,000 synced creates, mounts and walks",
        ),
    ],
    notes: "The same calls with the same bytes as the program that ran on the kernel, made on the file system itself: there is no page cache and no \
        VFS between, so reads are of the file system's own. `postmark-512/create` and `/transactions` together are what the kernel's figures count, \
        which stand beside `postmark-512/both`.",
    parts: CASES.len(),
    stated: &[
        Stated::published("postmark-512/both", "programs", 152_660.0).modelled(229_411.0),
        Stated::published("postmark-512/both", "reads", 244_114.0).modelled(85_857.0),
        Stated::published("postmark-256/both", "programs", 152_653.0).modelled(312_256.0),
        Stated::published("postmark-256/both", "reads", 244_194.0).modelled(245_712.0),
        Stated::published("postmark-128k/both", "programs", 80_974.0).modelled(81_456.0),
        Stated::published("postmark-128k/both", "reads", 20_442.0).modelled(1_190.0),
        Stated::published("updates", "programs", 22_089.0).modelled(41_524.0),
        Stated::published("updates", "reads", 38_325.0).modelled(96.0),
        Stated::published("creates", "programs", 10_075.0).modelled(10_353.0),
        Stated::published("creates", "reads", 9_600.0).modelled(26.0),
        Stated::published("mount-10000/clean", "reads", 7_429.0).modelled(2_609.0),
        Stated::published("mount-1000/cut", "reads", 7_507.0).modelled(5_698.0),
        Stated::published("mount-10000/walk", "reads", 30_672.0).modelled(30_307.0),
    ],
    limits: &[
        Limit::at_most("programs", 152_659.0).in_case("postmark-512/both"),
        Limit::at_most("programs", 152_652.0).in_case("postmark-256/both"),
        Limit::at_most("programs_per_op", 1.0).in_case("creates"),
        Limit::at_most("programs_per_op", 2.05).in_case("updates"),
        Limit::at_most("reads", 40.0).in_case("*/clean"),
        Limit::at_most("reads", 40.0).in_case("*/cut"),
        Limit::at_most("reads_per_op", 1.2).in_case("*/walk"),
    ],
    run: |context, part| run(&CASES[part], context),
    ..Experiment::PLAIN
};

/// What is done.
#[derive(Clone, Copy)]
enum Work {
    /// Postmark with writes of so many bytes.
    Postmark { write_size: usize },
    /// Records of a file of 16 MiB overwritten.
    Updates,
    /// Empty files made in one directory.
    Creates,
    /// So many files of 1 KiB, mounted.
    Mount { files: u64 },
}

struct Case {
    name: &'static str,
    size_mib: u32,
    work: Work,
}

const CASES: [Case; 7] = [
    Case { name: "postmark-512", size_mib: 512, work: Work::Postmark { write_size: 4096 } },
    Case { name: "postmark-256", size_mib: 256, work: Work::Postmark { write_size: 4096 } },
    Case { name: "postmark-128k", size_mib: 512, work: Work::Postmark { write_size: 131_072 } },
    Case { name: "updates", size_mib: 512, work: Work::Updates },
    Case { name: "creates", size_mib: 512, work: Work::Creates },
    Case { name: "mount-1000", size_mib: 512, work: Work::Mount { files: 1_000 } },
    Case { name: "mount-10000", size_mib: 512, work: Work::Mount { files: 10_000 } },
];

/// Bytes of a block.
const BLOCK_SIZE: u32 = 128 * 4096;

/// The workloads' seed: those of the kernel's figures had this one whatever the run's seed is.
const WORKLOAD_SEED: u64 = 1;

fn chip(size_mib: u32) -> Chip {
    Chip { timing: nandu_sim::Timing::slc(165_600, 905_800, 1_500_000, nandu_sim::Bus::INCLUDED), ..Chip::PAPER_MLC }
        .with_blocks(size_mib * (1 << 20) / BLOCK_SIZE)
}

fn options() -> Options {
    Options {
        log: LogOptions { ..Options::DEFAULT.log },
        cache_size: 1 << 20,
        pending_size: 65_535,
        ..Options::DEFAULT
    }
}

/// The file system as the workloads see it.
struct Volume<'m> {
    fs: Fs<'m, Sim>,
    /// Inodes of the directories, by number.
    directories: Vec<Ino>,
    open: Ino,
}

impl Volume<'_> {
    fn directory(&self, directory: Option<u32>) -> Ino {
        directory.map_or(Ino::ROOT, |directory| self.directories[directory as usize])
    }
}

fn failed(error: FsError<SimError>) -> BenchError {
    BenchError::structure(error)
}

impl Files for Volume<'_> {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let name = FileName::directory_name(directory);
        let ino = self.fs.mkdir(Ino::ROOT, name.as_bytes(), Attributes::default()).map_err(failed)?;
        self.directories.push(ino);
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        self.fs.rmdir(Ino::ROOT, FileName::directory_name(directory).as_bytes()).map_err(failed)
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        self.open = self.fs.create(directory, file.name().as_bytes(), Attributes::default()).map_err(failed)?;
        self.fs.open(self.open).map_err(failed)
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.fs.write_at(self.open, offset + done as u64, &bytes[done..]).map_err(failed)?;
        }
        if is_synced { self.fsync() } else { Ok(()) }
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        self.fs.fsync(self.open).map_err(failed)
    }

    fn close(&mut self) -> Result<(), BenchError> {
        self.fs.close(self.open).map_err(failed)
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        self.fs.unlink(directory, file.name().as_bytes()).map_err(failed)
    }

    fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        let ino = self.fs.lookup(directory, file.name().as_bytes()).map_err(failed)?;
        let mut bytes = vec![0; content.len() + 1];
        let count = self.fs.read_at(ino, 0, &mut bytes).map_err(failed)?;
        if bytes[..count] == *content { Ok(()) } else { Err(BenchError::Other(format!("{} differs", file.name()))) }
    }
}

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = chip(context.scaled(case.size_mib, 32));
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options())];
    let format =
        Format { hash_key: context.seed.to_le_bytes().repeat(2).try_into().unwrap_or_default(), ..Format::default() };
    let fs = Fs::format(Sim::with_seed(chip, context.seed), options(), format, &mut memory).map_err(failed)?;
    let volume = Volume { fs, directories: Vec::new(), open: Ino::ROOT };
    match case.work {
        Work::Postmark { write_size } => postmark(case, write_size, volume, context),
        Work::Updates => updates(case, volume, context),
        Work::Creates => creates(case, volume, context),
        Work::Mount { files } => mount(case, files, volume, context),
    }
}

/// The figures of a phase: operations, and what the chip did.
fn figures(case: &str, before: &Counters, chip: &Sim, operations: u64) -> Vec<Figure> {
    let done = chip.counters().since(before);
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case, metric, value, unit);
    vec![
        figure("programs", done.programs as f64, "programs"),
        figure("reads", done.reads as f64, "reads"),
        figure("erases", done.erases as f64, "erases"),
        figure("programs_per_op", done.programs as f64 / operations as f64, "programs"),
        figure("reads_per_op", done.reads as f64 / operations as f64, "reads"),
        figure("flash_s", done.busy_ns as f64 / 1e9, "s"),
    ]
}

fn postmark(
    case: &Case,
    write_size: usize,
    mut volume: Volume<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let (files, transactions) = context.scaled((1300, 2000), (65, 100));
    let population = Population {
        files,
        directories: context.scaled(100, 5),
        size: 131_072,
        write_size,
        durable: Durable::EachWrite,
    };
    let mut postmark = Postmark::new(population, WORKLOAD_SEED);
    let total = files + transactions;
    let begin = *volume.fs.nand().counters();
    postmark.create(&mut volume, &mut |done| context.tell(done, total))?;
    let created = *volume.fs.nand().counters();
    let mut all = figures(&format!("{}/create", case.name), &begin, volume.fs.nand(), files);
    postmark.transact(transactions, &mut volume, &mut |done| context.tell(files + done, total))?;
    all.extend(figures(&format!("{}/transactions", case.name), &created, volume.fs.nand(), transactions));
    all.extend(figures(&format!("{}/both", case.name), &begin, volume.fs.nand(), total));
    postmark.verify(&mut volume)?;
    let verified = *volume.fs.nand().counters();
    let deleted = postmark.delete(&mut volume)?;
    volume.fs.sync().map_err(failed)?;
    all.extend(figures(&format!("{}/delete", case.name), &verified, volume.fs.nand(), deleted));
    Ok(all)
}

fn updates(case: &Case, mut volume: Volume<'_>, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let (size, count) = context.scaled((16 << 20, 20_000_u64), (1 << 20, 1_000));
    let mut updates = Updates::new(size, 100, WORKLOAD_SEED);
    updates.fill(&mut volume, 131_072)?;
    let before = *volume.fs.nand().counters();
    for done in 0..count {
        updates.update(&mut volume)?;
        context.tell(done, count);
    }
    let figures = figures(case.name, &before, volume.fs.nand(), count);
    updates.verify(&mut volume)?;
    Ok(figures)
}

fn creates(case: &Case, mut volume: Volume<'_>, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let files = context.scaled(10_000, 300);
    let population = Population { files, directories: 0, size: 0, write_size: 4096, durable: Durable::OnClose };
    let before = *volume.fs.nand().counters();
    population.create_all(WORKLOAD_SEED, &mut volume, &mut |done| context.tell(done, files))?;
    Ok(figures(case.name, &before, volume.fs.nand(), files))
}

/// Files of 1 KiB in 100 directories; mounted after an unmount and walked, and mounted after the power was cut.
fn mount(
    case: &Case,
    files: u64,
    mut volume: Volume<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let files = context.scaled(files, files / 20);
    let population = Population {
        files,
        directories: context.scaled(100, 5),
        size: 1024,
        write_size: 4096,
        durable: Durable::OnClose,
    };
    population.create_all(WORKLOAD_SEED, &mut volume, &mut |done| context.tell(done, files))?;
    let cut = volume.fs.nand().clone();
    let chip = volume.fs.unmount().map_err(failed)?;

    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options())];
    let before = *chip.counters();
    let mut fs = Fs::mount(chip, options(), &mut memory).map_err(failed)?;
    let mut all = figures(&format!("{}/clean", case.name), &before, fs.nand(), 1);
    let mounted = *fs.nand().counters();
    let walked = walk(&mut fs)?;
    if walked != files {
        return Err(BenchError::Other(format!("{walked} files were found, not {files}")));
    }
    all.extend(figures(&format!("{}/walk", case.name), &mounted, fs.nand(), files));
    drop(fs);

    let before = *cut.counters();
    let fs = Fs::mount(cut, options(), &mut memory).map_err(failed)?;
    all.extend(figures(&format!("{}/cut", case.name), &before, fs.nand(), 1));
    Ok(all)
}

/// Reads every directory and what is known of every name; returns how many files there are.
fn walk(fs: &mut Fs<'_, Sim>) -> Result<u64, BenchError> {
    let mut directories = vec![Ino::ROOT];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        let mut names = Vec::new();
        let visited = fs.read_dir(directory, 2, |entry| {
            names.push(entry.name.to_vec());
            ControlFlow::Continue(())
        });
        visited.map_err(failed)?;
        for name in names {
            let ino = fs.lookup(directory, &name).map_err(failed)?;
            match fs.stat(ino).map_err(failed)?.kind {
                FileKind::Directory => directories.push(ino),
                _ => files += 1,
            }
        }
    }
    Ok(files)
}
