//! Mounting, and the memory that it takes, by the number of files.

use nandu::fs::{Fs, Options};
use nandu_dffs::Dffs;
use nandu_files::FileSystem;
use nandu_sim::{Chip, Sim};

use super::{DFFS_OPTIONS, Kind, SOURCE, paper_chip};
use crate::experiments::volume::{Ours, Published, Volume};
use crate::models::Flush;
use crate::workload::{Durable, Population};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/dffs-mount",
    about: "page reads and time of a mount, and its memory, by the number of files, of ours and of DFFS as it was published, beside models of JFFS2, YAFFS2 and UBIFS",
    source: Some(SOURCE),
    setup: &[
        ("chip", "the paper's, 2 KiB pages, 64 in a block, 256 MiB"),
        (
            "memory",
            "`memory` of ours and of DFFS is all that they are given, `memory_touched` what of it a mount changes; that of the models is what they need beside their code",
        ),
        ("structure", "`nandu`: ours; `dffs`: DFFS itself; the rest: models"),
        (
            "workload",
            "100 to 1,300 files of 128 KiB, and 10 and 10,000 of 2 KiB (`small`), in 100 directories, unmounted, mounted; `cut`: mounted after the power went",
        ),
    ],
    notes: NOTES,
    parts: COUNTS.len() + 1,
    stated: &[
        Stated::model("100/jffs2", "memory", 60e3),
        Stated::model("1300/jffs2", "memory", 780e3),
        Stated::model("100/yaffs2", "memory", 26e3),
        Stated::model("1300/yaffs2", "memory", 340e3),
        Stated::published("*/ubifs", "memory", 400e3),
        Stated::model("*/dffs", "memory_touched", 12e3),
        Stated::model("*/*/dffs", "memory_touched", 12e3),
        Stated::model("*/nandu", "memory_touched", 48e3),
        Stated::model("*/*/nandu", "memory_touched", 48e3),
    ],
    accept: &[
        Accept::relative("memory", 0.1).in_case("*/jffs2"),
        Accept::relative("memory", 0.1).in_case("*/yaffs2"),
        Accept::relative("memory", 0.1).in_case("*/ubifs"),
    ],
    limits: &[
        Limit::at_most("reads", 40.0).in_case("*/nandu"),
        Limit::at_most("reads", 40.0).in_case("small/*/nandu"),
        Limit::at_most("mount_ms", 10.0).in_case("*/nandu"),
        Limit::at_most("mount_ms", 10.0).in_case("small/*/nandu"),
        Limit::at_most("mount_ms", 350.0).in_case("*/nandu-cut"),
        Limit::at_most("mount_ms", 350.0).in_case("small/*/nandu-cut"),
        Limit::at_most("mount_ms", 5.0).in_case("*/dffs"),
        Limit::at_most("mount_ms", 5.0).in_case("small/*/dffs"),
        Limit::at_most("mount_ms", 350.0).in_case("*/dffs-cut"),
        Limit::at_most("mount_ms", 350.0).in_case("small/*/dffs-cut"),
        // What the paper shows as a flat line: not a byte more with a thousand times the files.
        Limit::at_most("memory_over_few", 1.0).in_case("small/*/nandu"),
        Limit::at_most("memory_over_few", 1.0).in_case("small/*/dffs"),
        Limit::at_most("memory_touched_over_few", 1.0).in_case("small/*/dffs"),
    ],
    run,
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper shows curves: the mounts of JFFS2 and YAFFS2 and their memory grow with the files, those of DFFS do not. The models read every page in \
    use, JFFS2 for the nodes in it and YAFFS2 for its spare area, and one page of each block that is free; the time is the chip's.

Their memory: JFFS2 has 16 bytes for each node and 28 for each inode, YAFFS2 104 for each object and two for each chunk, in nodes of 16 and 8. Directories are left out of both. UBIFS has \
    three buffers of a block less the two pages of UBI, for scans, for the table of properties and for commits, three for writes of a page, and one for the largest node; its mount is not modelled.

`dffs` is the file system itself. What it is given is the same for 10 files and for 10,000, and so is what a mount changes of it: 31 KB, most of it eight bytes for each block and four for each \
    directory that there can be; the 12 KB of the other simulation have no table of blocks. Of the reads of a mount left in order most are of checkpoints, of which a block holds some and the newest \
    is looked for. The paper says nothing of cuts: here a mount reads the first page of each free block then, and the inodes since the checkpoint. Ours reads its roots and journals, whatever is free.";

/// A mount reads every page that holds changes, so there is memory for fewer of them than elsewhere.
const OPTIONS: Options = Options { pending_size: 8192, ..super::OPTIONS };

const COUNTS: [u64; 5] = [100, 400, 700, 1000, 1300];

/// The numbers of small files, of which the second is compared with the first.
const FEW_AND_MANY: [u64; 2] = [10, 10_000];

/// Bytes of a file.
const FILE_SIZE: usize = 131_072;
const SMALL_SIZE: usize = 2048;

/// Bytes of the host's pages.
const NODE_SIZE: u64 = 4096;

/// What a mount took.
struct Mounted {
    reads: u64,
    mount_ms: f64,
    /// Bytes of memory that are not what they were before.
    touched: usize,
}

/// Mounts of a file system, after it was left in order and after a cut, and the memory that it was given.
struct Mounts {
    name: &'static str,
    clean: Mounted,
    cut: Mounted,
    memory: usize,
}

fn run(context: &mut Context<'_>, part: usize) -> Result<Vec<Figure>, BenchError> {
    let directories = context.scaled(100, 10);
    let population =
        Population { files: 0, directories, size: FILE_SIZE, write_size: FILE_SIZE, durable: Durable::OnClose };
    match COUNTS.get(part) {
        Some(&files) => {
            let files = context.scaled(files, files / 10);
            let population = Population { files, ..population };
            let (mounts, models) = all(population, context)?;
            Ok(figures(&files.to_string(), &mounts, &models))
        }
        None => few_and_many(Population { size: SMALL_SIZE, write_size: SMALL_SIZE, ..population }, context),
    }
}

/// Memory has to be the same for few files and for many.
fn few_and_many(population: Population, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let counts = [FEW_AND_MANY[0], context.scaled(FEW_AND_MANY[1], 1000)];
    let mut found = Vec::new();
    let mut of = Vec::new();
    for files in counts {
        let (mounts, models) = all(Population { files, ..population }, context)?;
        found.extend(figures(&format!("small/{files}"), &mounts, &models));
        of.push((mounts, models));
    }
    let [(few, few_models), (many, many_models)] = &of[..] else { return Ok(found) };
    let mut ratio = |name: &str, metric: &'static str, few: f64, many: f64| {
        found.push(Figure::new(EXPERIMENT.name, &format!("small/{}/{name}", counts[1]), metric, many / few, "ratio"));
    };
    for (few, many) in few.iter().zip(many) {
        ratio(few.name, "memory_over_few", few.memory as f64, many.memory as f64);
        ratio(few.name, "memory_touched_over_few", few.clean.touched as f64, many.clean.touched as f64);
    }
    for (few, many) in few_models.iter().zip(many_models) {
        ratio(few.name, "memory_over_few", few.memory as f64, many.memory as f64);
    }
    Ok(found)
}

fn figures(load: &str, mounts: &[Mounts], models: &[Modelled]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut figure = |name: &str, metric, value, unit| {
        figures.push(Figure::new(EXPERIMENT.name, &format!("{load}/{name}"), metric, value, unit));
    };
    for Mounts { name, clean, cut, memory } in mounts {
        for (name, mounted) in [((*name).to_owned(), clean), (format!("{name}-cut"), cut)] {
            figure(&name, "reads", mounted.reads as f64, "reads");
            figure(&name, "mount_ms", mounted.mount_ms, "ms");
            figure(&name, "memory_touched", mounted.touched as f64, "bytes");
        }
        figure(name, "memory", *memory as f64, "bytes");
    }
    for Modelled { name, reads, memory } in models {
        if let Some((reads, mount_ms)) = reads {
            figure(name, "reads", *reads as f64, "reads");
            figure(name, "mount_ms", *mount_ms, "ms");
        }
        figure(name, "memory", *memory as f64, "bytes");
    }
    figures
}

fn all(population: Population, context: &mut Context<'_>) -> Result<(Vec<Mounts>, Vec<Modelled>), BenchError> {
    let chip = paper_chip(context.scaled(256, 32));
    let sim = || Sim::with_seed(chip, context.seed);
    let mut tell = |_| {};

    let size = Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS);
    let mut memory = vec![0; size];
    let (clean, cut) = filled(Ours::format(sim(), OPTIONS, &mut memory)?, population, &mut tell)?;
    let mount = |chip: Sim, memory: &mut [u8]| Ok(*Ours::mount(chip, OPTIONS, memory)?.fs.nand().counters());
    let ours =
        Mounts { name: "nandu", clean: mounted(&clean, size, mount)?, cut: mounted(&cut, size, mount)?, memory: size };

    let size = Dffs::<Sim>::memory_required(&chip.geometry, &DFFS_OPTIONS);
    let mut memory = vec![0; size];
    let (clean, cut) = filled(Published::format_dffs(sim(), DFFS_OPTIONS, &mut memory)?, population, &mut tell)?;
    let mount = |chip: Sim, memory: &mut [u8]| {
        let fs = Dffs::mount(chip, DFFS_OPTIONS, memory).map_err(BenchError::structure)?;
        Ok(*fs.nand().counters())
    };
    let dffs =
        Mounts { name: "dffs", clean: mounted(&clean, size, mount)?, cut: mounted(&cut, size, mount)?, memory: size };
    Ok((vec![ours, dffs], models(&chip, population)?))
}

/// A chip with files on it, as an unmount leaves it and as a cut does.
fn filled<F: FileSystem<Chip = Sim>>(
    mut volume: Volume<F>,
    population: Population,
    tell: &mut dyn FnMut(u64),
) -> Result<(Sim, Sim), BenchError>
where
    F::Error: Send + Sync,
{
    population.create_all(1, &mut volume, tell)?;
    let cut = volume.fs.nand().clone();
    Ok((volume.fs.unmount().map_err(BenchError::structure)?, cut))
}

/// Mounts twice, with memory full of one byte and full of another: what has neither afterwards was touched.
fn mounted(
    chip: &Sim,
    size: usize,
    mount: impl Fn(Sim, &mut [u8]) -> Result<nandu_sim::Counters, BenchError>,
) -> Result<Mounted, BenchError> {
    const FILLS: [u8; 2] = [0x55, 0xAA];
    let mut memories = FILLS.map(|fill| vec![fill; size]);
    mount(chip.clone(), &mut memories[0])?;
    let done = mount(chip.clone(), &mut memories[1])?.since(chip.counters());
    let is_touched = |(first, second): &(&u8, &u8)| **first != FILLS[0] || **second != FILLS[1];
    let touched = memories[0].iter().zip(&memories[1]).filter(is_touched).count();
    Ok(Mounted { reads: done.reads, mount_ms: done.busy_ns as f64 / 1e6, touched })
}

/// What a model says of a mount.
struct Modelled {
    name: &'static str,
    /// Pages and milliseconds.
    reads: Option<(u64, f64)>,
    memory: u64,
}

fn models(chip: &Chip, population: Population) -> Result<Vec<Modelled>, BenchError> {
    let Population { files, size, .. } = population;
    let geometry = &chip.geometry;
    let nodes = (size as u64).div_ceil(NODE_SIZE);
    let scanned = [
        ("jffs2", Kind::Jffs2(Flush::Never), files * ((nodes + 2) * 16 + 28)),
        ("yaffs2", Kind::Yaffs2 { honours_syncs: false }, yaffs2_memory(files, size, geometry)),
    ];
    let mut found = Vec::new();
    for (name, kind, memory) in scanned {
        let mut model = kind.model(chip);
        population.create_all(1, &mut model, &mut |_| {})?;
        let used = model.counts().programs;
        let free = u64::from(geometry.block_count) - used.div_ceil(geometry.pages_per_block.into());
        let reads = used + free;
        let mount_ms = reads as f64 * f64::from(chip.timing.read_lsb_ns) / 1e6;
        found.push(Modelled { name, reads: Some((reads, mount_ms)), memory });
    }
    found.push(Modelled { name: "ubifs", reads: None, memory: ubifs_memory(geometry) });
    Ok(found)
}

fn yaffs2_memory(files: u64, size: usize, geometry: &nandu::nand::Geometry) -> u64 {
    let chunks = (size as u64).div_ceil(geometry.page_size.into());
    let leaves = chunks.div_ceil(16);
    // Leaves of 16 chunks, nodes of 8 pointers above them.
    let file = leaves * 32 + leaves.div_ceil(8) * 32;
    files * (104 + file)
}

/// A node with a page of the host and what stands in front of it is the largest.
fn ubifs_memory(geometry: &nandu::nand::Geometry) -> u64 {
    let page_size = u64::from(geometry.page_size);
    let block = page_size * u64::from(geometry.pages_per_block - 2);
    3 * block + 3 * page_size + NODE_SIZE + 48
}
