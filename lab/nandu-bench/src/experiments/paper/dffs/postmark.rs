//! Postmark on partitions of several sizes, with writes of several sizes.

use nandu::fs::Fs;
use nandu::nand::Cause;
use nandu_dffs::{Area, Dffs, ParentUpdate};
use nandu_sim::{Chip, Sim};

use super::{DFFS_OPTIONS, Kind, MODELS, OPTIONS, SOURCE, flash_s, paper_chip};
use crate::experiments::volume::{Ours, Published, failed, kernel_chip};
use crate::models::{Counts, Flush};
use crate::workload::{Durable, Files, Population, Postmark};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/dffs-postmark",
    about: "Postmark with synchronous writes, on ours and on DFFS as it was published, beside models of JFFS2, YAFFS2 and UBIFS",
    source: Some(SOURCE),
    setup: &[
        (
            "chip",
            "the paper's, 2 KiB pages, 64 in a block, 250 or 400 MiB; `tags`: the same if 16 of its 64 spare bytes were protected; `kernel`: 4 KiB pages, 128 in a block, 512 or 256 MiB",
        ),
        ("memory", "about 250 KiB for ours, 95 KiB for DFFS; the models count none"),
        (
            "structure",
            "`nandu`: ours; `dffs`: DFFS itself, on the paper's chip, `dffs-each`: with the bucket brought up to date at each sync; the rest: models",
        ),
        ("workload", "100 directories, 1,300 files of 128 KiB, 2,000 times one made or removed, all removed"),
    ],
    notes: NOTES,
    parts: SETTINGS.len(),
    stated: &[
        Stated::model("250/4k/nandu", "flash_s", 54.0),
        Stated::model("250/4k/ubifs", "flash_s", 89.0),
        Stated::model("250/4k/dffs", "flash_s", 55.0),
        Stated::model("250/4k/dffs-each", "flash_s", 74.0),
        Stated::model("250/4k/jffs2", "flash_s", 34.0),
        Stated::model("250/4k/jffs2-flushed", "flash_s", 59.0),
        Stated::model("250/4k/yaffs2", "flash_s", 35.0),
        Stated::model("250/4k/yaffs2-flushed", "flash_s", 102.0),
        Stated::published("250/4k/nandu", "speedup_over_ubifs", 3.5).modelled(1.65),
        Stated::model("400/4k/nandu", "speedup_over_ubifs", 1.41),
        Stated::published("kernel-512/4k/ubifs", "programs", 229_411.0),
        Stated::published("kernel-256/4k/ubifs", "programs", 312_256.0),
        Stated::published("kernel-512/128k/ubifs", "programs", 81_456.0),
        Stated::published("kernel-512/4k/jffs2-kernel", "programs", 152_660.0),
        Stated::published("kernel-256/4k/jffs2-kernel", "programs", 152_653.0),
        Stated::published("kernel-512/128k/jffs2-kernel", "programs", 80_974.0),
    ],
    // The models are good to a twentieth of what the kernel's own took.
    accept: &[
        Accept::relative("programs", 0.05).in_case("kernel-512/4k/*"),
        Accept::relative("programs", 0.05).in_case("kernel-256/4k/*"),
        Accept::relative("programs", 0.05).in_case("kernel-512/128k/*"),
        Accept::relative("flash_s", 0.07).in_case("250/4k/*"),
    ],
    limits: &[
        Limit::at_least("speedup_over_ubifs", 1.6).in_case("250/4k/nandu"),
        Limit::at_least("speedup_over_ubifs", 1.6).in_case("250/4k-tags/nandu"),
        Limit::at_most("collector_share", 0.01).in_case("250/4k/nandu"),
        Limit::at_most("collector_share", 0.01).in_case("250/4k-tags/nandu"),
    ],
    run: |context, part| run(&SETTINGS[part], context),
    ..Experiment::PLAIN
};

const NOTES: &str = "Times are the chip's alone. The paper measured a whole device and published about 3.5 times UBIFS; counts of operations explain 1.4 to 2.5 \
    of that, the rest is software of ten years ago, so it is stated and not aimed at.

`speedup_over_ubifs` is the time of the UBIFS model over the time of the same work here. On the kernel's chip `programs` of the models stands \
    beside what the kernel's own took for the same work, without the removal of all files at the end, which tells how good the models are.

`250/4k`: of 232,099 programs 222,336 are the pages of data and a commit for each write; with their erases alone it would be 1.69 times UBIFS. The rest are leaves that creates and \
    deletes are brought to, Summaries (2,400), the collector (0.1 %) and checkpoints, whose block table takes several pages there (1,100); and reads. A page of a file is a record, so \
    the 64 of a file fill a leaf.

`dffs` is the file system itself; `programs_data` includes a Summary in every block of data. On `250/4k` it misses what the other simulation says by 8 s: Summaries (2,400) and checkpoints take \
    1.4 s; that every block is erased right before its first program, where blocks of the models are erased at first, 4.3 s; and reads of directories and inodes, which the models do not count, 1.9 s. \
    `dffs-each` has a bucket brought up to date at each sync, as the paper reads; the other simulation's 74 s are that.

On 184 MiB, which the other simulation has too, 1,340 files of 128 KiB fill 92 %: the model of UBIFS, whose nodes share no block, has no room for them, \
    and neither has ours, of which a quarter of the chip is kept for the collector.";

/// A partition and a size of writes.
struct Setting {
    name: &'static str,
    size_mib: u32,
    write_size: usize,
    /// Whether it is the kernel's chip.
    is_kernel: bool,
    /// Bytes of a tag that a page of a file may have in the spare area.
    tag_size: u32,
}

const fn paper(name: &'static str, size_mib: u32, write_size: usize) -> Setting {
    Setting { name, size_mib, write_size, is_kernel: false, tag_size: 0 }
}

const SETTINGS: [Setting; 9] = [
    paper("250/4k", 250, 4096),
    Setting { tag_size: 16, ..paper("250/4k-tags", 250, 4096) },
    paper("400/4k", 400, 4096),
    paper("250/512", 250, 512),
    paper("250/2k", 250, 2048),
    paper("250/64k", 250, 65_536),
    Setting { name: "kernel-512/4k", size_mib: 512, write_size: 4096, is_kernel: true, tag_size: 0 },
    Setting { name: "kernel-256/4k", size_mib: 256, write_size: 4096, is_kernel: true, tag_size: 0 },
    Setting { name: "kernel-512/128k", size_mib: 512, write_size: 131_072, is_kernel: true, tag_size: 0 },
];

/// What was done, without and with the removal of all files at the end.
struct Outcome {
    name: &'static str,
    counts: Counts,
    flash_s: f64,
    /// Programs of each area, of DFFS.
    areas: Vec<(&'static str, u64)>,
}

/// Areas of DFFS, and what is said of their programs.
const AREAS: [(Area, &str); 6] = [
    (Area::Data, "programs_data"),
    (Area::File, "programs_file_inodes"),
    (Area::Directory, "programs_directories"),
    (Area::Virtual, "programs_virtual_directories"),
    (Area::Map, "programs_map"),
    (Area::Checkpoint, "programs_checkpoints"),
];

fn run(setting: &Setting, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut chip = match setting.is_kernel {
        true => kernel_chip(context.scaled(setting.size_mib, 32)),
        false => paper_chip(context.scaled(setting.size_mib, setting.size_mib / 10)),
    };
    chip.geometry.tag_size = setting.tag_size;
    let (files, transactions) = context.scaled((1300, 2000), (1300 / 17, 2000 / 17));
    let population = Population {
        files,
        directories: context.scaled(100, 6),
        size: 131_072,
        write_size: setting.write_size,
        durable: Durable::EachWrite,
    };
    let mut outcomes = vec![ours(&chip, population, transactions, setting.is_kernel, context)?];
    if !setting.is_kernel && setting.tag_size == 0 {
        outcomes.push(dffs("dffs", &chip, population, transactions, context)?);
    }
    if setting.name == "250/4k" {
        outcomes.push(dffs("dffs-each", &chip, population, transactions, context)?);
    }
    for (name, kind) in MODELS {
        if setting.name == "250/4k" || setting.is_kernel || is_compared(kind) {
            outcomes.push(modelled(name, kind, &chip, population, transactions, setting.is_kernel)?);
        }
    }
    let theirs = outcomes.iter().find(|outcome| outcome.name == "ubifs").map(|outcome| outcome.flash_s);
    let nandu_s = outcomes[0].flash_s;
    let mut figures = Vec::new();
    for Outcome { name, counts, flash_s, areas } in outcomes {
        let case = format!("{}/{name}", setting.name);
        let mut figure = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
        figure("programs", counts.programs as f64, "programs");
        figure("collector_share", counts.collector_programs as f64 / counts.programs as f64, "ratio");
        figure("erases", counts.erases as f64, "erases");
        figure("flash_s", flash_s, "s");
        if let Some(theirs) = theirs.filter(|_| name != "ubifs") {
            figure("speedup_over_ubifs", theirs / flash_s, "ratio");
        }
        if name.starts_with("dffs") {
            figure("speedup_over_nandu", nandu_s / flash_s, "ratio");
        }
        areas.into_iter().for_each(|(area, programs)| figure(area, programs as f64, "programs"));
    }
    Ok(figures)
}

/// Whether a model stands beside every setting.
fn is_compared(kind: Kind) -> bool {
    matches!(kind, Kind::Ubifs | Kind::Jffs2(Flush::Pads))
}

fn work(
    files: &mut dyn Files,
    population: Population,
    transactions: u64,
    is_kept: bool,
    tell: &mut dyn FnMut(u64),
) -> Result<(), BenchError> {
    let mut postmark = Postmark::new(population, 1);
    postmark.create(files, tell)?;
    postmark.transact(transactions, files, &mut |done| tell(population.files + done))?;
    if !is_kept {
        postmark.delete(files)?;
    }
    Ok(())
}

fn ours(
    chip: &Chip,
    population: Population,
    transactions: u64,
    is_kept: bool,
    context: &mut Context<'_>,
) -> Result<Outcome, BenchError> {
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS)];
    let mut volume = Ours::format(Sim::with_seed(*chip, context.seed), OPTIONS, &mut memory)?;
    let before = volume.ledger();
    let total = population.files + transactions;
    work(&mut volume, population, transactions, is_kept, &mut |done| context.tell(done, total))?;
    volume.fs.sync().map_err(failed)?;
    let done = volume.fs.nand().counters().since(&before.total());
    let of = |cause| volume.fs.nand().ledger().of(cause).programs - before.of(cause).programs;
    let collector_programs = [Cause::Gc, Cause::Levelling, Cause::Refresh].into_iter().map(of).sum();
    let counts = Counts { reads: done.reads, programs: done.programs, collector_programs, erases: done.erases };
    Ok(Outcome { name: "nandu", counts, flash_s: done.busy_ns as f64 / 1e9, areas: Vec::new() })
}

fn dffs(
    name: &'static str,
    chip: &Chip,
    population: Population,
    transactions: u64,
    context: &mut Context<'_>,
) -> Result<Outcome, BenchError> {
    let parent_update = if name == "dffs" { ParentUpdate::Close } else { ParentUpdate::Each };
    let options = nandu_dffs::Options { parent_update, ..DFFS_OPTIONS };
    let mut memory = vec![0; Dffs::<Sim>::memory_required(&chip.geometry, &options)];
    let mut volume = Published::format_dffs(Sim::with_seed(*chip, context.seed), options, &mut memory)?;
    let (before, stats) = (*volume.fs.nand().counters(), volume.fs.stats());
    let total = population.files + transactions;
    work(&mut volume, population, transactions, false, &mut |done| context.tell(done, total))?;
    volume.fs.sync().map_err(BenchError::structure)?;
    let (done, after) = (volume.fs.nand().counters().since(&before), volume.fs.stats());
    let collector_programs = after.collector_program_count() - stats.collector_program_count();
    let counts = Counts { reads: done.reads, programs: done.programs, collector_programs, erases: done.erases };
    let areas = AREAS.map(|(area, name)| (name, after.programs_of(area) - stats.programs_of(area))).to_vec();
    Ok(Outcome { name, counts, flash_s: done.busy_ns as f64 / 1e9, areas })
}

fn modelled(
    name: &'static str,
    kind: Kind,
    chip: &Chip,
    population: Population,
    transactions: u64,
    is_kept: bool,
) -> Result<Outcome, BenchError> {
    let mut model = kind.model(chip);
    let before = model.counts();
    work(&mut model, population, transactions, is_kept, &mut |_| {})?;
    let counts = model.counts().since(&before);
    Ok(Outcome { name, counts, flash_s: flash_s(chip, &counts), areas: Vec::new() })
}
