//! What a lookup reads, by the depth of a path and by the names of a directory.

use nandu::fs::{Attributes, Fs, Ino};
use nandu_dffs::Dffs;
use nandu_files::FileSystem;
use nandu_sim::Sim;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{DFFS_OPTIONS, OPTIONS, SOURCE, paper_chip};
use crate::experiments::volume::{Ours, Published};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Scale, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/dffs-directories",
    about: "page reads of a lookup by the depth of the path and by the names of the directory, of ours and of DFFS as it was published, with its collisions and virtual pages",
    source: Some(SOURCE),
    setup: &[
        ("chip", "the paper's, 2 KiB pages, 64 in a block, 512 MiB"),
        (
            "memory",
            "about 250 KiB for ours, 95 KiB for DFFS, of which 32 KiB are for pages of inodes; names are made with more",
        ),
        ("structure", "`nandu`: ours; `dffs`: DFFS itself"),
        (
            "workload",
            "`names`: so many empty files in a directory below the root, which are looked up by chance; `depth`: paths of so many names, each directory with ten. \
             `reads_cold` are those of the first path after a mount, `reads_warm` those of one after others, `reads_miss` of a name that is not there, and \
             `reads_bare` those in the directory alone with no page kept",
        ),
    ],
    notes: NOTES,
    parts: SIZES.len() + 1,
    stated: &[Stated::model("depth/4/nandu", "reads_cold", 8.0)],
    accept: &[Accept::relative("reads_bare", 0.05)],
    limits: &[
        // A directory's inode and its entries are one page, so a name of a path costs one.
        Limit::at_most("reads_per_name", 1.0).in_case("depth/*/dffs"),
        Limit::at_most("reads_cold", 2.0).in_case("names/10/dffs"),
    ],
    plots: &[
        Plot {
            title: "A lookup in a directory, the first after a mount",
            metric: "reads_cold",
            cases: "names/{x}/{series}",
            x: "names in the directory",
            y: "reads",
            kind: PlotKind::LogLines,
        },
        Plot {
            title: "A path, the first after a mount",
            metric: "reads_cold",
            cases: "depth/{x}/{series}",
            x: "names of the path",
            y: "reads",
            kind: PlotKind::Lines,
        },
    ],
    run,
    ..Experiment::PLAIN
};

const NOTES: &str = "A name of a path costs DFFS one read, since a directory's inode and its entries are a page, and that page has the directory's name. It stays so while a directory has \
    tens of names. Two names in one of the 347 buckets need a virtual directory: a name is as many pages down the chain as others of its bucket stand in front of it, and a lookup reads them all. \
    So `reads_bare` is 2 and half of the other names over 347, which is the number of the model beside it; a second hash keeps nearly all inodes of others from being read. A name that is not \
    there costs the whole chain of its bucket.

Ours finds names by a tree. With 1,000 names it reads about half as much as DFFS, with 100,000 a fiftieth. A mount of ours leaves the nodes that it read in memory, which are the whole tree where that is small, so a path of \
    four names costs one read; the eight of the other simulation are a page for each inode and each directory.

`programs_per_name`: a name of DFFS is durable when it is made; ours were synced once, at the end.";

/// Names of a directory.
const SIZES: [u32; 5] = [10, 100, 1000, 10_000, 100_000];

/// The most of a small run.
const SIZE_SMALL: u32 = 1000;

/// Names of a path, and of each directory on the way.
const DEPTHS: [usize; 5] = [1, 2, 4, 8, 16];
const SIBLINGS: u32 = 10;

/// Buckets of a page of 2 KiB, and values of the second hash.
const BUCKETS: f64 = 347.0;
const SECONDS: f64 = 255.0;

/// Memory while names are made, so that reading the chain again and again takes no hours.
const MAKING: nandu_dffs::Options = nandu_dffs::Options { cache_pages: 512, ..DFFS_OPTIONS };

/// No page is kept.
const BARE: nandu_dffs::Options = nandu_dffs::Options { cache_pages: 0, ..DFFS_OPTIONS };

#[derive(Clone, Copy)]
enum Subject {
    Nandu,
    Dffs(nandu_dffs::Options),
}

/// Names from the root on.
type Path = Vec<String>;

/// What is done to a volume.
enum Work<'a> {
    /// Makes directories, and then empty files, on a new volume.
    Make { directories: &'a [Path], files: &'a [Path] },
    /// Looks paths up on one that is mounted.
    Look { paths: &'a [Path], are_there: bool },
}

/// What it took.
#[derive(Default)]
struct Done {
    programs: u64,
    /// Of each path: reads in all, and reads of its last name.
    reads: Vec<(u64, u64)>,
    /// Logical numbers that DFFS has no more.
    numbers: u64,
}

impl Done {
    fn mean(&self) -> f64 {
        self.reads.iter().map(|(all, _)| *all as f64).sum::<f64>() / self.reads.len() as f64
    }
}

fn run(context: &mut Context<'_>, part: usize) -> Result<Vec<Figure>, BenchError> {
    match SIZES.get(part) {
        Some(&size) if context.scale == Scale::Small && size > SIZE_SMALL => Ok(Vec::new()),
        Some(&size) => by_size(size, context),
        None => by_depth(context),
    }
}

fn by_size(size: u32, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let directory = [vec!["d".to_owned()]];
    let path = |name: String| vec!["d".to_owned(), name];
    let files: Vec<Path> = (0..size).map(|number| path(format!("f{number:08}"))).collect();
    let mut random = ChaCha8Rng::seed_from_u64(context.seed);
    let mut some = |count| (0..count).map(|_| files[random.random_range(0..files.len())].clone()).collect::<Vec<_>>();
    let (colds, warms) = (some(context.scaled(200, 20)), some(context.scaled(2000, 200)));
    let misses: Vec<Path> = (0..context.scaled(500, 50)).map(|number| path(format!("g{number:08}"))).collect();
    let mut figures = Vec::new();
    for (name, making, subject) in subjects() {
        let case = format!("names/{size}/{name}");
        let mut figure = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
        let chip = Sim::with_seed(paper_chip(context.scaled(512, 32)), context.seed);
        let (made, mut chip) = perform(making, chip, &Work::Make { directories: &directory, files: &files })?;
        figure("programs_per_name", made.programs as f64 / f64::from(size), "programs");
        let mut cold = Done::default();
        for path in &colds {
            let done;
            (done, chip) = look(subject, chip, std::slice::from_ref(path), true)?;
            cold.reads.extend(done.reads);
        }
        figure("reads_cold", cold.mean(), "reads");
        let (warm, chip) = look(subject, chip, &warms, true)?;
        figure("reads_warm", warm.mean(), "reads");
        let (miss, chip) = look(subject, chip, &misses, false)?;
        figure("reads_miss", miss.mean(), "reads");
        if let Subject::Dffs(_) = subject {
            let (bare, _) = look(Subject::Dffs(BARE), chip, &warms, true)?;
            let count = bare.reads.len() as f64;
            let last = |bare: &Done| bare.reads.iter().map(|(_, last)| *last).collect::<Vec<_>>();
            let collided = last(&bare).iter().filter(|reads| **reads > 2).count();
            figure("collided_share", collided as f64 / count, "ratio");
            // 0 is no number, and the root and the directory have one each.
            figure("virtual_pages", made.numbers as f64 - 3.0, "pages");
            let reads = last(&bare).iter().sum::<u64>() as f64 / count;
            // Of the other names of its bucket half stand in front of a name, and one of 255 has its second hash.
            let before = f64::from(size - 1) / BUCKETS / 2.0;
            let expected = 2.0 + before * (1.0 + 1.0 / SECONDS);
            figures.push(Figure::new(EXPERIMENT.name, &case, "reads_bare", reads, "reads").with_model(Some(expected)));
        }
    }
    Ok(figures)
}

fn by_depth(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let deepest = DEPTHS[DEPTHS.len() - 1];
    let directory = |depth: usize| (0..depth).map(|level| format!("d{level}")).collect::<Path>();
    let file = |depth: usize, number: u32| {
        let mut path = directory(depth - 1);
        path.push(format!("f{number:08}"));
        path
    };
    let directories: Vec<Path> = (1..deepest).map(directory).collect();
    let siblings = |depth| (1..SIBLINGS).map(move |number| file(depth, number));
    let files: Vec<Path> = (1..=deepest).flat_map(siblings).collect();
    let mut figures = Vec::new();
    for (name, making, subject) in subjects() {
        let chip = Sim::with_seed(paper_chip(context.scaled(512, 32)), context.seed);
        let (_, mut chip) = perform(making, chip, &Work::Make { directories: &directories, files: &files })?;
        for depth in DEPTHS {
            let case = format!("depth/{depth}/{name}");
            let mut figure =
                |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
            let mut cold = Done::default();
            for path in siblings(depth) {
                let done;
                (done, chip) = look(subject, chip, &[path], true)?;
                cold.reads.extend(done.reads);
            }
            figure("reads_cold", cold.mean(), "reads");
            figure("reads_per_name", cold.mean() / depth as f64, "reads");
        }
    }
    Ok(figures)
}

/// Names in cases, how their volumes are made, and how they are looked at.
fn subjects() -> [(&'static str, Subject, Subject); 2] {
    [("nandu", Subject::Nandu, Subject::Nandu), ("dffs", Subject::Dffs(MAKING), Subject::Dffs(DFFS_OPTIONS))]
}

fn look(subject: Subject, chip: Sim, paths: &[Path], are_there: bool) -> Result<(Done, Sim), BenchError> {
    perform(subject, chip, &Work::Look { paths, are_there })
}

/// Formats or mounts a chip for what is done, and gives it back.
fn perform(subject: Subject, chip: Sim, work: &Work<'_>) -> Result<(Done, Sim), BenchError> {
    let is_new = matches!(work, Work::Make { .. });
    let geometry = chip.chip().geometry;
    match subject {
        Subject::Nandu => {
            let mut memory = vec![0; Fs::<Sim>::memory_required(&geometry, &OPTIONS)];
            let begin = if is_new { Ours::format } else { Ours::mount };
            let mut fs = begin(chip, OPTIONS, &mut memory)?.fs;
            let done = work.done(&mut fs)?;
            Ok((done, finish(fs, is_new)?))
        }
        Subject::Dffs(options) => {
            let mut memory = vec![0; Dffs::<Sim>::memory_required(&geometry, &options)];
            let mut fs = match is_new {
                true => Published::format_dffs(chip, options, &mut memory)?.fs,
                false => Dffs::mount(chip, options, &mut memory).map_err(BenchError::structure)?,
            };
            let done = work.done(&mut fs)?;
            let numbers = u64::from(options.directory_max) - fs.space().directories_free;
            Ok((Done { numbers, ..done }, finish(fs, is_new)?))
        }
    }
}

/// What was only looked at is left as it is.
fn finish<F: FileSystem<Chip = Sim>>(fs: F, is_new: bool) -> Result<Sim, BenchError>
where
    F::Error: Send + Sync,
{
    if is_new { fs.unmount().map_err(BenchError::structure) } else { Ok(fs.abandon()) }
}

impl Work<'_> {
    fn done<F: FileSystem<Chip = Sim>>(&self, fs: &mut F) -> Result<Done, BenchError>
    where
        F::Error: Send + Sync,
    {
        let before = fs.nand().counters().programs;
        let mut reads = Vec::new();
        match *self {
            Work::Make { directories, files } => {
                let places = directories.iter().map(|path| (path, true)).chain(files.iter().map(|path| (path, false)));
                let mut parent: (&[String], Ino) = (&[], Ino::ROOT);
                for (path, is_directory) in places {
                    let Some((name, above)) = path.split_last() else { continue };
                    if parent.0 != above {
                        parent = (above, follow(fs, above)?);
                    }
                    let made = match is_directory {
                        true => fs.mkdir(parent.1, name.as_bytes(), Attributes::default()),
                        false => fs.create(parent.1, name.as_bytes(), Attributes::default()),
                    };
                    made.map_err(BenchError::structure)?;
                }
                fs.sync().map_err(BenchError::structure)?;
            }
            Work::Look { paths, are_there } => {
                for path in paths {
                    let Some((name, above)) = path.split_last() else { continue };
                    let so_far = |fs: &F| fs.nand().counters().reads;
                    let first = so_far(fs);
                    let parent = follow(fs, above)?;
                    let last = so_far(fs);
                    if fs.lookup(parent, name.as_bytes()).is_ok() != are_there {
                        return Err(BenchError::Other(format!("{name} is there, or is not")));
                    }
                    reads.push((so_far(fs) - first, so_far(fs) - last));
                }
            }
        }
        Ok(Done { programs: fs.nand().counters().programs - before, reads, numbers: 0 })
    }
}

fn follow<F: FileSystem<Chip = Sim>>(fs: &mut F, path: &[String]) -> Result<Ino, BenchError>
where
    F::Error: Send + Sync,
{
    path.iter()
        .try_fold(Ino::ROOT, |directory, name| fs.lookup(directory, name.as_bytes()))
        .map_err(BenchError::structure)
}
