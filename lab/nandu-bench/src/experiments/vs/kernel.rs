//! The file system on the work that the kernel's flash file systems were counted on.

use nandu::fs::{Fs, Options};
use nandu::nand::Cause;
use nandu_sim::{Ledger, Sim};

use crate::experiments::volume::{Ours, failed, kernel_chip};
use crate::workload::{Durable, Population, Postmark, Updates};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Scale, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vs/kernel",
    about: "the file system on the work on which UBIFS and JFFS2 of Linux 6.1 were counted",
    source: Some(
        "UBIFS and JFFS2 of Linux 6.1 on the kernel's simulated NAND, measured in a guest (`cargo xtask guest --peers`, docs/results/peers.md); `published` is JFFS2's count, `model` UBIFS's",
    ),
    setup: &[
        (
            "chip",
            "no part of the table, the kernel's simulated NAND: 4 KiB pages, 128 in a block, 512 or 256 MiB; read 165.6, program 905.8, erase 1500 us; one bit a cell, as the kernel was told; 16 of the 128 spare bytes \
                are a tag's, none in the cases that end in `untagged`",
        ),
        (
            "memory",
            "`memory` says it: about 250 KiB, and in the cases that end in `2800k`, `1m`, `64k` and `40k` so much and no more than that",
        ),
        ("structure", "file system"),
        (
            "workload",
            "Postmark with synchronous writes, 20,000 synced updates of 100 bytes, 10,000 synced creates, mounts and walks",
        ),
    ],
    notes: NOTES,
    parts: CASES.len(),
    part_name: |part| CASES[part].name(""),
    stated: &[
        Stated::published("postmark-512/both", "programs", 152_658.0).modelled(229_411.0),
        Stated::published("postmark-512/both", "reads", 244_132.0).modelled(85_857.0),
        Stated::published("postmark-256/both", "programs", 152_652.0).modelled(312_243.0),
        Stated::published("postmark-256/both", "reads", 244_052.0).modelled(245_839.0),
        Stated::published("postmark-128k/both", "programs", 80_971.0).modelled(81_456.0),
        Stated::published("postmark-128k/both", "reads", 20_543.0).modelled(1_190.0),
        Stated::published("updates", "programs", 22_092.0).modelled(41_523.0),
        Stated::published("updates", "reads", 38_325.0).modelled(96.0),
        Stated::published("creates", "programs", 10_075.0).modelled(10_353.0),
        Stated::published("creates", "reads", 9_600.0).modelled(26.0),
        Stated::published("mount-10000/clean", "reads", 7_430.0).modelled(2_609.0),
        Stated::published("mount-10000/clean", "programs", 0.0).modelled(2.0),
        Stated::published("mount-1000/cut", "reads", 7_507.0).modelled(5_698.0),
        Stated::published("mount-1000/cut", "programs", 0.0).modelled(158.0),
        Stated::published("mount-10000/walk", "reads", 36_254.0).modelled(30_307.0),
        Stated::published("*/create", "bytes_written", 170_393_600.0),
        Stated::published("*/transactions", "bytes_written", 133_169_152.0),
        Stated::published("*/delete", "files", 1332.0),
        Stated::published("updates", "bytes_written", 2_000_000.0),
        Stated::published("creates", "files", 10_000.0),
    ],
    // The work is the same to the byte.
    accept: &[Accept::absolute("bytes_written", 0.0), Accept::absolute("files", 0.0)],
    limits: &[
        Limit::at_most("of_ubifs", 0.67).in_case("postmark-512/both"),
        Limit::at_most("of_ubifs", 0.5).in_case("postmark-256/both"),
        Limit::at_most("of_jffs2", 0.999_999).in_case("postmark-512/both"),
        Limit::at_most("of_jffs2", 0.999_999).in_case("postmark-256/both"),
        Limit::at_most("of_ubifs", 0.67).in_case("postmark-512/both/untagged"),
        Limit::at_most("of_ubifs", 0.5).in_case("postmark-256/both/untagged"),
        Limit::at_most("of_jffs2", 0.999_999).in_case("postmark-512/both/untagged"),
        Limit::at_most("of_jffs2", 0.999_999).in_case("postmark-256/both/untagged"),
        Limit::at_most("programs_per_op", 1.0).in_case("creates"),
        Limit::at_most("programs_per_op", 2.05).in_case("updates"),
        // UBIFS reads 96 pages with as much memory, its own and the page cache's.
        Limit::at_most("reads", 200.0).in_case("updates/2800k"),
        Limit::at_most("reads", 40.0).in_case("*/clean"),
        Limit::at_most("reads", 40.0).in_case("*/cut"),
        Limit::at_most("reads_per_op", 1.2).in_case("*/walk"),
    ],
    run: |context, part| run(&CASES[part], context),
    ..Experiment::PLAIN
};

const NOTES: &str = "The same calls with the same bytes as the program that ran on the kernel, made on the file system itself: there is no page \
    cache and no VFS between, so reads are of the file system's own. `postmark-512/create` and `/transactions` together are what the kernel's \
    figures count, which stand beside `postmark-512/both`; `of_ubifs` and `of_jffs2` are our programs over theirs.

Error correction of the kernel's takes 48 of the 128 spare bytes and the mark 2. Of the other 78 ours takes 16 for the tag of a page, which a driver has to protect as well \
    as the rest, if only by a second copy; the kernel's file systems leave them alone. In the cases that end in `untagged` it does as well, and each page that is \
    synced costs a commit besides. With 256 MiB those are 1.06 times JFFS2's programs: both take two for each page, and JFFS2 moves what lives in the bytes \
    that padding would take.

Where the programs go is said by `data_programs` (pages of files), `commit_programs` (syncs, and leaves that changes are brought to), \
    `index_programs` (leaves that were split, leaves that no sync takes along, summaries), `checkpoint_programs` and `collector_programs`; together they are all.

Ours are measured on the simulated chip, all of theirs in the guest. Behind a mount in the same guest nandu took up to 1 % more programs, and 2.8 % more for Postmark on 512 MiB with tags, \
    when that was measured, with the log, tree and files before those of today (docs/results/peers.md). \
    Its mount of 10,000 files takes 55 reads more there, since the command looks at the blocks in front before it knows what volume it is.

The cases that end in `2800k` have a memory between those that UBIFS had behind a mount and behind a walk of 10,000 files, 1.3 and 18 MB without page cache; for `updates` \
    UBIFS reads 96 pages. 2.5 MiB of nodes hold all leaves. Those that end in `40k` have the least that there may be.

With 10,000 files the system with UBIFS had 1.3 MB more when it was mounted and 18.0 MB after the walk, with JFFS2 1.0 and 10.9 MB, with nandu's mount, its process included, \
    1.6 and 14.2 MB. JFFS2 answered 7,430 reads after a clean unmount, but reads \
    another 36,254 before it has seen all files. The kernel keeps what it read: its reads for the updates are few since the file was in the page cache.";

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

/// Memory that the file system is given.
#[derive(Clone, Copy)]
struct Memory {
    /// Nodes of the tree that are kept.
    cache_size: usize,
    /// Changes that wait for their leaves.
    pending_size: usize,
}

const SOME: Memory = Memory { cache_size: 192 << 10, pending_size: 16_384 };
/// With more changes in memory fewer leaves are programmed, and a mount reads more pages of them.
const MUCH: Memory = Memory { cache_size: 1 << 20, pending_size: 65_535 };
/// Less than UBIFS takes with 10,000 files, and room for all leaves.
const UBIFS: Memory = Memory { cache_size: 5 << 19, pending_size: 65_535 };
const LITTLE: Memory = Memory { cache_size: 4096, pending_size: 8192 };
/// As little as there may be.
const LEAST: Memory = Memory { cache_size: 0, pending_size: 2048 };

/// Behind the names of cases on a chip without room for tags.
const UNTAGGED: &str = "/untagged";

/// The chip has 128 spare bytes, of which error correction takes 48.
const TAG_SIZE: u32 = 16;

struct Case {
    name: &'static str,
    size_mib: u32,
    work: Work,
    memory: Memory,
    /// Bytes of a tag that a page of a file may have in the spare area.
    tag_size: u32,
    /// Behind the names of the figures' cases.
    suffix: &'static str,
}

const fn case(name: &'static str, size_mib: u32, work: Work) -> Case {
    Case { name, size_mib, work, memory: SOME, tag_size: TAG_SIZE, suffix: "" }
}

const fn much(case: Case) -> Case {
    Case { memory: MUCH, suffix: "/1m", ..case }
}

const fn like_ubifs(case: Case) -> Case {
    Case { memory: UBIFS, suffix: "/2800k", ..case }
}

const fn untagged(case: Case) -> Case {
    Case { tag_size: 0, suffix: UNTAGGED, ..case }
}

const fn little(case: Case) -> Case {
    Case { memory: LITTLE, suffix: "/64k", ..case }
}

const fn least(case: Case) -> Case {
    Case { memory: LEAST, suffix: "/40k", ..case }
}

const POSTMARK: Case = case("postmark-512", 512, Work::Postmark { write_size: 4096 });
const POSTMARK_256: Case = case("postmark-256", 256, Work::Postmark { write_size: 4096 });
const UPDATES: Case = case("updates", 512, Work::Updates);
const CREATES: Case = case("creates", 512, Work::Creates);
const MOUNT_1000: Case = case("mount-1000", 512, Work::Mount { files: 1_000 });
const MOUNT: Case = case("mount-10000", 512, Work::Mount { files: 10_000 });

const CASES: [Case; 26] = [
    POSTMARK,
    POSTMARK_256,
    case("postmark-128k", 512, Work::Postmark { write_size: 131_072 }),
    UPDATES,
    CREATES,
    MOUNT_1000,
    MOUNT,
    much(POSTMARK),
    much(UPDATES),
    much(CREATES),
    much(MOUNT),
    little(POSTMARK),
    little(UPDATES),
    little(CREATES),
    little(MOUNT),
    least(POSTMARK),
    least(UPDATES),
    least(CREATES),
    least(MOUNT),
    like_ubifs(POSTMARK),
    like_ubifs(UPDATES),
    like_ubifs(CREATES),
    like_ubifs(MOUNT),
    untagged(POSTMARK),
    untagged(POSTMARK_256),
    untagged(MOUNT_1000),
];

impl Case {
    fn name(&self, phase: &str) -> String {
        [self.name, phase, self.suffix].concat()
    }
}

/// The workloads' seed: those of the kernel's figures had this one whatever the run's seed is.
const WORKLOAD_SEED: u64 = 1;

fn options(memory: Memory) -> Options {
    let Memory { cache_size, pending_size } = memory;
    Options { cache_size, pending_size, ..Options::DEFAULT }
}

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut chip = kernel_chip(context.scaled(case.size_mib, 32));
    chip.geometry.tag_size = case.tag_size;
    let options = options(case.memory);
    let size = Fs::<Sim>::memory_required(&chip.geometry, &options);
    let mut memory = vec![0; size];
    let volume = Ours::format(Sim::with_seed(chip, context.seed), options, &mut memory)?;
    let mut figures = match case.work {
        Work::Postmark { write_size } => postmark(case, write_size, volume, context),
        Work::Updates => updates(case, volume, context),
        Work::Creates => creates(case, volume, context),
        Work::Mount { files } => mount(case, files, volume, context),
    }?;
    figures.push(Figure::new(EXPERIMENT.name, &case.name(""), "memory", size as f64, "bytes"));
    if context.scale == Scale::Full {
        compare(&mut figures);
    }
    Ok(figures)
}

/// Puts our programs over those of the kernel's file systems behind the figures that have them.
fn compare(figures: &mut Vec<Figure>) {
    for index in 0..figures.len() {
        let figure = &figures[index];
        let case = figure.case.strip_suffix(UNTAGGED).unwrap_or(&figure.case);
        let stated = EXPERIMENT.stated.iter().find(|stated| (stated.case, stated.metric) == (case, "programs"));
        let Some(stated) = stated.filter(|_| figure.metric == "programs") else { continue };
        for (metric, theirs) in [("of_jffs2", stated.published), ("of_ubifs", stated.model)] {
            let Some(theirs) = theirs.filter(|&theirs| theirs > 0.0) else { continue };
            let (case, value) = (figures[index].case.clone(), figures[index].value / theirs);
            figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, "ratio"));
        }
    }
}

/// Where programs go.
const LEDGER: [(&str, &[Cause]); 5] = [
    ("data_programs", &[Cause::Value]),
    ("commit_programs", &[Cause::Host]),
    ("index_programs", &[Cause::Tree]),
    ("checkpoint_programs", &[Cause::Checkpoint]),
    ("collector_programs", &[Cause::Gc, Cause::Levelling, Cause::Refresh, Cause::Recovery, Cause::Retire]),
];

/// What was done of a workload.
struct Done {
    operations: u64,
    files: u64,
    bytes: u64,
}

/// The figures of a phase: operations, what the chip did, and why.
fn figures(case: &str, before: &Ledger, chip: &Sim, done: &Done) -> Vec<Figure> {
    let total = chip.counters().since(&before.total());
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case, metric, value, unit);
    let operations = done.operations as f64;
    let mut figures = vec![
        figure("files", done.files as f64, "files"),
        figure("bytes_written", done.bytes as f64, "bytes"),
        figure("programs", total.programs as f64, "programs"),
        figure("reads", total.reads as f64, "reads"),
        figure("erases", total.erases as f64, "erases"),
        figure("programs_per_op", total.programs as f64 / operations, "programs"),
        figure("reads_per_op", total.reads as f64 / operations, "reads"),
        figure("flash_s", total.busy_ns as f64 / 1e9, "s"),
    ];
    for (metric, causes) in LEDGER {
        let programs: u64 =
            causes.iter().map(|&cause| chip.ledger().of(cause).programs - before.of(cause).programs).sum();
        figures.push(figure(metric, programs as f64, "programs"));
    }
    figures
}

fn postmark(
    case: &Case,
    write_size: usize,
    mut volume: Ours<'_>,
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
    let done = |operations, files: u64| Done { operations, files, bytes: files * population.size as u64 };
    let mut postmark = Postmark::new(population, WORKLOAD_SEED);
    let total = files + transactions;
    let begin = volume.ledger();
    postmark.create(&mut volume, &mut |done| context.tell(done, total))?;
    let created = volume.ledger();
    let mut all = figures(&case.name("/create"), &begin, volume.fs.nand(), &done(files, files));
    let made = postmark.transact(transactions, &mut volume, &mut |done| context.tell(files + done, total))?;
    all.extend(figures(&case.name("/transactions"), &created, volume.fs.nand(), &done(transactions, made)));
    all.extend(figures(&case.name("/both"), &begin, volume.fs.nand(), &done(total, files + made)));
    postmark.verify(&mut volume)?;
    let verified = volume.ledger();
    let deleted = postmark.delete(&mut volume)?;
    volume.fs.sync().map_err(failed)?;
    let done = Done { operations: deleted, files: deleted, bytes: 0 };
    all.extend(figures(&case.name("/delete"), &verified, volume.fs.nand(), &done));
    Ok(all)
}

fn updates(case: &Case, mut volume: Ours<'_>, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let (size, count) = context.scaled((16 << 20, 20_000_u64), (1 << 20, 1_000));
    let mut updates = Updates::new(size, 100, WORKLOAD_SEED);
    updates.fill(&mut volume, 131_072)?;
    let before = volume.ledger();
    for done in 0..count {
        updates.update(&mut volume)?;
        context.tell(done, count);
    }
    let done = Done { operations: count, files: 1, bytes: count * updates.record as u64 };
    let figures = figures(&case.name(""), &before, volume.fs.nand(), &done);
    updates.verify(&mut volume)?;
    Ok(figures)
}

fn creates(case: &Case, mut volume: Ours<'_>, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let files = context.scaled(10_000, 300);
    let population = Population { files, directories: 0, size: 0, write_size: 4096, durable: Durable::OnClose };
    let before = volume.ledger();
    population.create_all(WORKLOAD_SEED, &mut volume, &mut |done| context.tell(done, files))?;
    let done = Done { operations: files, files, bytes: 0 };
    Ok(figures(&case.name(""), &before, volume.fs.nand(), &done))
}

/// Files of 1 KiB in 100 directories; mounted after an unmount and walked, and mounted after the power was cut.
fn mount(case: &Case, files: u64, mut volume: Ours<'_>, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
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

    let options = options(case.memory);
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let once = Done { operations: 1, files, bytes: 0 };
    let before = chip.ledger().clone();
    let mut volume = Ours::mount(chip, options, &mut memory)?;
    let mut all = figures(&case.name("/clean"), &before, volume.fs.nand(), &once);
    let mounted = volume.ledger();
    let walked = volume.walk()?;
    if walked != files {
        return Err(BenchError::Other(format!("{walked} files were found, not {files}")));
    }
    let done = Done { operations: files, ..once };
    all.extend(figures(&case.name("/walk"), &mounted, volume.fs.nand(), &done));
    drop(volume);

    let before = cut.ledger().clone();
    let volume = Ours::mount(cut, options, &mut memory)?;
    all.extend(figures(&case.name("/cut"), &before, volume.fs.nand(), &once));
    Ok(all)
}
