//! What the collector moves, with one log and with an area for each kind of page.

use nandu::fs::Fs;
use nandu::nand::Cause;
use nandu_dffs::{Area, Dffs};
use nandu_sim::{Chip, Sim};

use super::{DFFS_OPTIONS, OPTIONS, SOURCE, device, paper_chip};
use crate::experiments::volume::{Ours, Published};
use crate::models::{Classic, Model, ParentUpdate, is_full};
use crate::workload::{Chooser, Durable, Files, Population, Skew};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Scale};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/dffs-gc",
    about: "what the collector moves for each program asked for, of ours and of DFFS as it was published, and of the programs of DFFS in one log and in six areas",
    source: Some(SOURCE),
    setup: &[
        ("chip", "the paper's, 2 KiB pages, 64 in a block, 250 MiB"),
        ("memory", "about 250 KiB for ours, 95 KiB for DFFS; the models count none"),
        (
            "structure",
            "`nandu`: ours, `dffs`: DFFS itself; `six-areas` and `one-log`: the model of DFFS with its programs in an area for each kind, and in one log",
        ),
        (
            "workload",
            "files of 32 KiB in 100 directories, written 4 KB at a time, each write synced; pages and inodes of DFFS fill 60 to 90 % of the chip. Then files are \
             removed and written anew, nine of ten times one of the hot tenth: half the chip before anything is counted, and as much again while it is",
        ),
    ],
    notes: NOTES,
    parts: FILLS.len(),
    limits: &[
        // What the paper claims.
        Limit::at_most("moved_over_one_log", 1.0).in_case("*/six-areas"),
        Limit::at_most("moved_over_one_log", 1.0).in_case("*/dffs"),
    ],
    plots: &[Plot {
        title: "What the collector moves",
        metric: MOVED,
        cases: "{x}/{series}",
        x: "chip in use (%)",
        y: "programs moved for each asked for",
        kind: PlotKind::Lines,
    }],
    run: |context, part| run(FILLS[part], context),
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper claims that an area for each kind of page makes collection cheap, since inodes, which die soon, are apart from data. `one-log` and `six-areas` are the same programs of one \
    model, with the same choice of the block with the fewest live pages: in one log the collector moves about four times as much, and with 80 % of the chip in use one log finds no room any more, since moving a page \
    takes along its inode and its directory, which is as much as an emptied block gains. So the claim holds.

It does not make DFFS the better file system. Ours is one log, too, in which one tree leads to everything. With 60 % in use it moves a sixth of what DFFS moves, with 70 % about as much, and it programs fewer pages for \
    each page written in both (`programs_per_page`). With 80 % and more DFFS alone goes on, at 3.8 and 8.5 programs for each page; ours keeps a quarter of the chip for its collector and takes no such files.

`dffs` moves less than its model, since buckets are brought up to date with checkpoints, many at once. About half of what it moves, and up to two thirds, is no data: a page of data that moves takes its inode along, and an inode its directory.";

/// Programs of the collector over those that were asked for.
const MOVED: &str = "moved_per_program";

/// Bytes of a file.
const SIZE: usize = 32_768;

/// Hundredths of the chip's pages that live.
const FILLS: [u64; 4] = [60, 70, 80, 90];

/// Those of small runs, on a chip of which the reserve of DFFS is a larger part.
const FILLS_SMALL: [u64; 2] = [60, 80];

/// Nine of ten times one of the hot tenth.
const SKEW: Skew = Skew::HotCold { choices: 0.9, items: 0.1 };

/// What was done while it counted.
struct Outcome {
    programs: u64,
    moved: u64,
    /// What was moved, by area.
    areas: Vec<(&'static str, u64)>,
}

impl Outcome {
    fn since(self, before: &Outcome) -> Outcome {
        let areas = self.areas.iter().zip(&before.areas).map(|((name, now), (_, then))| (*name, now - then));
        Outcome { programs: self.programs - before.programs, moved: self.moved - before.moved, areas: areas.collect() }
    }

    fn asked(&self) -> f64 {
        (self.programs - self.moved) as f64
    }
}

fn run(fill: u64, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    if context.scale == Scale::Small && !FILLS_SMALL.contains(&fill) {
        return Ok(Vec::new());
    }
    let chip = paper_chip(context.scaled(250, 32));
    let churn = Churn::new(fill, &chip, context);
    let mut found = Vec::new();

    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS)];
    let mut ours = Ours::format(Sim::with_seed(chip, context.seed), OPTIONS, &mut memory)?;
    // A quarter of the chip is kept for the collector.
    if ours.fs.statfs().map_err(BenchError::structure)?.blocks_available >= churn.data_pages() {
        found.push(("nandu", churn.run(&mut ours, &ours_so_far)?));
    }

    let mut memory = vec![0; Dffs::<Sim>::memory_required(&chip.geometry, &DFFS_OPTIONS)];
    let mut dffs = Published::format_dffs(Sim::with_seed(chip, context.seed), DFFS_OPTIONS, &mut memory)?;
    found.push(("dffs", churn.run(&mut dffs, &dffs_so_far)?));

    for name in ["six-areas", "one-log"] {
        let model = Classic::new(&device(&chip), ParentUpdate::OnClose);
        let mut model = if name == "one-log" { model.with_one_log() } else { model };
        match churn.run(&mut model, &model_so_far) {
            Err(error) if is_full(&error) => {}
            done => found.push((name, done?)),
        }
    }

    let one_log = found.iter().find(|(name, _)| *name == "one-log").map(|(_, done)| done.moved as f64 / done.asked());
    let mut figures = Vec::new();
    for (subject, done) in &found {
        let case = format!("{fill}/{subject}");
        let mut figure = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
        let moved = done.moved as f64 / done.asked();
        figure(MOVED, moved, "programs");
        figure("programs_per_page", done.programs as f64 / churn.written_pages() as f64, "programs");
        if let Some(one_log) = one_log.filter(|one_log| *subject != "one-log" && *one_log > 0.0) {
            figure("moved_over_one_log", moved / one_log, "ratio");
        }
        done.areas.iter().for_each(|(area, moved)| figure(area, *moved as f64 / done.asked(), "programs"));
    }
    Ok(figures)
}

fn ours_so_far(volume: &Ours<'_>) -> Outcome {
    let ledger = volume.fs.nand().ledger();
    let moved = [Cause::Gc, Cause::Levelling, Cause::Refresh].into_iter().map(|cause| ledger.of(cause).programs);
    Outcome { programs: volume.fs.nand().counters().programs, moved: moved.sum(), areas: Vec::new() }
}

fn dffs_so_far(volume: &Published<'_>) -> Outcome {
    let stats = volume.fs.stats();
    let of = |area: Area| stats.collector_programs[area as usize];
    let areas = vec![
        ("moved_data", of(Area::Data)),
        ("moved_file_inodes", of(Area::File)),
        ("moved_directories", of(Area::Directory) + of(Area::Virtual)),
    ];
    let programs = volume.fs.nand().counters().programs;
    Outcome { programs, moved: stats.collector_program_count(), areas }
}

fn model_so_far(model: &Classic) -> Outcome {
    let counts = model.counts();
    Outcome { programs: counts.programs, moved: counts.collector_programs, areas: Vec::new() }
}

/// Files that are written, and written anew.
struct Churn {
    population: Population,
    /// Pages of data of a file.
    file_pages: u64,
    /// Files written anew before anything is counted, and after that.
    warm: u64,
    counted: u64,
    seed: u64,
}

impl Churn {
    fn new(fill: u64, chip: &Chip, context: &Context<'_>) -> Churn {
        let pages = u64::from(chip.geometry.block_count * chip.geometry.pages_per_block);
        let file_pages = (SIZE as u64).div_ceil(chip.geometry.page_size.into());
        // A file has an inode besides.
        let files = pages * fill / 100 / (file_pages + 1);
        let population = Population {
            files,
            directories: context.scaled(100, 10),
            size: SIZE,
            write_size: 4096,
            durable: Durable::EachWrite,
        };
        Churn {
            population,
            file_pages,
            warm: pages / 2 / file_pages,
            counted: pages / 2 / file_pages,
            seed: context.seed,
        }
    }

    fn data_pages(&self) -> u64 {
        self.population.files * self.file_pages
    }

    fn written_pages(&self) -> u64 {
        self.counted * self.file_pages
    }

    fn run<F: Files>(&self, files: &mut F, so_far: &dyn Fn(&F) -> Outcome) -> Result<Outcome, BenchError> {
        self.population.create_all(self.seed, files, &mut |_| {})?;
        let mut chooser = Chooser::new(self.population.files as u32, SKEW, self.seed).map_err(BenchError::structure)?;
        let bytes = vec![0xA5; self.population.size];
        let mut again = |files: &mut F, count: u64| {
            (0..count).try_for_each(|_| {
                let number = u64::from(chooser.choose());
                files.unlink(self.population.name(number))?;
                self.population.create(number, &bytes, files)
            })
        };
        again(files, self.warm)?;
        let before = so_far(files);
        again(files, self.counted)?;
        Ok(so_far(files).since(&before))
    }
}
