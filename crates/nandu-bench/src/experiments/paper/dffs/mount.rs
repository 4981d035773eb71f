//! Mounting, and the memory that it takes, by the number of files.

use nandu::fs::{Fs, Options};
use nandu_sim::Sim;

use super::{Kind, SOURCE, paper_chip};
use crate::experiments::volume::{Ours, failed};
use crate::models::Flush;
use crate::workload::{Durable, Population};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/dffs-mount",
    about: "page reads and time of a mount, and its memory, by the number of files, beside models of JFFS2 and YAFFS2",
    source: Some(SOURCE),
    setup: &[
        ("chip", "the paper's, 2 KiB pages, 64 in a block, 256 MiB"),
        ("memory", "`memory` of ours is all that it is given; that of the models is what they need beside their code"),
        ("structure", "file system, and models of others"),
        (
            "workload",
            "100 to 1,300 files of 128 KiB in 100 directories, unmounted, mounted; `cut`: mounted after the power went",
        ),
    ],
    notes: NOTES,
    parts: COUNTS.len(),
    stated: &[
        Stated::model("100/jffs2", "memory", 60e3),
        Stated::model("1300/jffs2", "memory", 780e3),
        Stated::model("100/yaffs2", "memory", 26e3),
        Stated::model("1300/yaffs2", "memory", 340e3),
    ],
    accept: &[Accept::relative("memory", 0.1).in_case("*/jffs2"), Accept::relative("memory", 0.1).in_case("*/yaffs2")],
    limits: &[
        Limit::at_most("reads", 40.0).in_case("*/clean"),
        Limit::at_most("mount_ms", 10.0).in_case("*/clean"),
        Limit::at_most("mount_ms", 350.0).in_case("*/cut"),
    ],
    run: |context, part| run(COUNTS[part], context),
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper shows curves: the mounts of JFFS2 and YAFFS2 and their memory grow with the files, those of DFFS do not. The models read every page in \
    use, JFFS2 for the nodes in it and YAFFS2 for its spare area, and one page of each block that is free; the time is the chip's.

Their memory: JFFS2 has 16 bytes for each node and 28 for each inode, YAFFS2 104 for each object and two for each chunk, in nodes of 16 and 8. Directories are left out of both.";

/// A mount reads every page that holds changes, so there is memory for fewer of them than elsewhere.
const OPTIONS: Options = Options { pending_size: 8192, ..super::OPTIONS };

const COUNTS: [u64; 5] = [100, 400, 700, 1000, 1300];

/// Bytes of a file, and pages of the host in it.
const FILE_SIZE: usize = 131_072;
const FILE_NODES: u64 = 32;

fn run(files: u64, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = paper_chip(context.scaled(256, 32));
    let files = context.scaled(files, files / 10);
    let directories = context.scaled(100, 10);
    let population =
        Population { files, directories, size: FILE_SIZE, write_size: FILE_SIZE, durable: Durable::OnClose };
    let mut figures = Vec::new();
    let mut figure = |name: &str, metric, value, unit| {
        figures.push(Figure::new(EXPERIMENT.name, &format!("{files}/{name}"), metric, value, unit));
    };

    let size = Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS);
    let mut memory = vec![0; size];
    let mut volume = Ours::format(Sim::with_seed(chip, context.seed), OPTIONS, &mut memory)?;
    population.create_all(1, &mut volume, &mut |done| context.tell(done, files))?;
    let cut = volume.fs.nand().clone();
    let clean = volume.fs.unmount().map_err(failed)?;
    for (name, chip) in [("clean", clean), ("cut", cut)] {
        let before = *chip.counters();
        let volume = Ours::mount(chip, OPTIONS, &mut memory)?;
        let done = volume.fs.nand().counters().since(&before);
        figure(name, "reads", done.reads as f64, "reads");
        figure(name, "mount_ms", done.busy_ns as f64 / 1e6, "ms");
    }
    figure("clean", "memory", size as f64, "bytes");

    let models = [
        ("jffs2", Kind::Jffs2(Flush::Never), files * ((FILE_NODES + 2) * 16 + 28)),
        ("yaffs2", Kind::Yaffs2 { honours_syncs: false }, yaffs2_memory(files, &chip.geometry)),
    ];
    for (name, kind, memory) in models {
        let mut model = kind.model(&chip);
        population.create_all(1, &mut model, &mut |_| {})?;
        let used = model.counts().programs;
        let free = u64::from(chip.geometry.block_count) - used.div_ceil(chip.geometry.pages_per_block.into());
        let reads = used + free;
        figure(name, "reads", reads as f64, "reads");
        figure(name, "mount_ms", reads as f64 * f64::from(chip.timing.read_lsb_ns) / 1e6, "ms");
        figure(name, "memory", memory as f64, "bytes");
    }
    Ok(figures)
}

fn yaffs2_memory(files: u64, geometry: &nandu::nand::Geometry) -> u64 {
    let chunks = (FILE_SIZE as u64).div_ceil(geometry.page_size.into());
    let leaves = chunks.div_ceil(16);
    // Leaves of 16 chunks, nodes of 8 pointers above them.
    let file = leaves * 32 + leaves.div_ceil(8) * 32;
    files * (104 + file)
}
