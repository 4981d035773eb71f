//! What calls on files cost on the paper's chip, with everything that is promised in SLC mode.

use nandu::fs::placement::Class;
use nandu::fs::{Attributes, Format, Fs, Ino, Options, RenameMode, Time};
use nandu_sim::{Chip, Sim};

use super::SOURCE;
use crate::experiments::volume::failed;
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/flexfs-calls",
    about: "time of the chip for calls on files where blocks hold one bit a cell or two, and everything that is promised is written with one",
    source: Some(SOURCE),
    setup: &[
        (
            "chip",
            "paper-flex with 256 MiB: an SLC page takes 431 us, an MLC page 994 in the mean, an MSB page 1557, a read 399 to 409",
        ),
        (
            "structure",
            "file system with both modes, every policy on, 1 MiB for nodes and changes, a 64th of what the paper's board has",
        ),
        (
            "workload",
            "each kind of call again and again, after 1.2 s without requests, in which blocks are erased ahead",
        ),
    ],
    notes: NOTES,
    stated: &[
        Stated::model("append_4k_osync", MEDIAN, 862.0),
        Stated::model("create_2k_fsync", MEDIAN, 431.0),
        Stated::model("rename_over", MEDIAN, 431.0),
        Stated::model("sequential_1m_fsync", MILLISECONDS, 111.0),
        Stated::model("sequential_1m_fsync/mlc", MILLISECONDS, 255.0),
        Stated::model("unlink_1000_sync", MILLISECONDS, 100.0),
        Stated::model("lookup_depth_4", MILLISECONDS, 3.3),
        Stated::model("overwrite_4k_osync", PROGRAMS, 2.0),
    ],
    limits: &[
        Limit::at_most(MEDIAN, 862.0).in_case("append_4k_osync"),
        Limit::at_most(MEDIAN, 431.0).in_case("create_2k_fsync"),
        Limit::at_most(MEDIAN, 431.0).in_case("rename_over"),
        Limit::at_most(MILLISECONDS, 111.5).in_case("sequential_1m_fsync"),
        Limit::at_most(MILLISECONDS, 255.5).in_case("sequential_1m_fsync/mlc"),
        Limit::at_most(MILLISECONDS, 100.0).in_case("unlink_1000_sync"),
        Limit::at_most(MILLISECONDS, 3.3).in_case("lookup_depth_4"),
        Limit::at_most(PROGRAMS, 2.1).in_case("overwrite_4k_osync"),
    ],
    run: |context, _| run(context),
    ..Experiment::PLAIN
};

const MEDIAN: &str = "us_median";
const MEAN: &str = "us_mean";
const MILLISECONDS: &str = "ms";
const PROGRAMS: &str = "programs_per_call";

const NOTES: &str = "`model` is what the programs of a call come to: a page of data and a commit, 431 us each. Time here is all that the chip does, reads of \
    leaves and erases too. Some blocks are erased in idle time, and leaves stay in memory as long as there is room. A file of \
    1 MiB is 256 pages; the 22 programs besides are summaries, one in each block, which the model leaves out, leaves and commits. In `mlc` it takes less than the model says, since \
    where the write begins among the pairs of a block, which any page written before changes, says how many of its pages are MSB pages, 1.13 ms each. \
    Small files do not stand in their inode's record but in the page of their sync. `mlc` is the call for 1 MiB when the policies have seen hardly any \
    idle time to count on: data goes to MLC blocks at once. The mean holds what is done beside a call: leaves that take changes, summaries, checkpoints.";

const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };
const PAGE: usize = 4096;

struct Bench<'m> {
    fs: Fs<'m, Sim>,
    now_us: i64,
    figures: Vec<Figure>,
}

/// Idle time before each kind of call: thirteen steps of background work when a second has passed.
const REST_US: i64 = 1_200_000;

fn time(us: i64) -> Time {
    Time { seconds: us / 1_000_000, nanoseconds: (us % 1_000_000) as u32 * 1000 }
}

/// Times of calls, and the pages that they programmed.
struct Calls {
    us: Vec<f64>,
    programs: u64,
}

impl<'m> Bench<'m> {
    /// Calls so many times.
    fn calls(
        &mut self,
        count: u64,
        mut call: impl FnMut(&mut Fs<'m, Sim>, u64) -> Result<(), BenchError>,
    ) -> Result<Calls, BenchError> {
        self.rest()?;
        let programs = self.fs.nand().counters().programs;
        let now = time(self.now_us);
        let mut us = Vec::new();
        for number in 0..count {
            let before_ns = self.fs.nand().clock_ns();
            // No time passes between two calls, so nothing is moved.
            self.fs.request_begin(now).map_err(failed)?;
            call(&mut self.fs, number)?;
            self.fs.request_end(now);
            us.push((self.fs.nand().clock_ns() - before_ns) as f64 / 1e3);
        }
        Ok(Calls { us, programs: self.fs.nand().counters().programs - programs })
    }

    /// So that blocks are erased before they are needed.
    fn rest(&mut self) -> Result<(), BenchError> {
        self.now_us += REST_US;
        let until = time(self.now_us);
        while let Some(due) = self.fs.step_due()
            && due <= until
            && self.fs.step(due).map_err(failed)?
        {}
        Ok(())
    }

    fn each(&mut self, case: &str, mut calls: Calls) {
        let count = calls.us.len() as f64;
        let mean = calls.us.iter().sum::<f64>() / count;
        calls.us.sort_by(f64::total_cmp);
        let median = calls.us[calls.us.len() / 2];
        let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, case, metric, value, unit);
        let programs = calls.programs as f64 / count;
        self.figures.extend([
            figure(MEDIAN, median, "us"),
            figure(MEAN, mean, "us"),
            figure(PROGRAMS, programs, "pages"),
        ]);
    }

    fn all(&mut self, case: &str, calls: &Calls) {
        let ms = calls.us.iter().sum::<f64>() / 1e3;
        self.figures.push(Figure::new(EXPERIMENT.name, case, MILLISECONDS, ms, "ms"));
        self.figures.push(Figure::new(EXPERIMENT.name, case, "programs", calls.programs as f64, "pages"));
    }

    fn create(&mut self, name: &[u8]) -> Result<Ino, BenchError> {
        self.fs.create(Ino::ROOT, name, FILE).map_err(failed)
    }

    /// A file of 1 MiB, which is there and empty, written and synced.
    fn sequential(&mut self, name: &[u8], case: &str) -> Result<(), BenchError> {
        let file = self.create(name)?;
        self.fs.sync().map_err(failed)?;
        let bytes = vec![0x5A; 1 << 20];
        let calls = self.calls(1, |fs, _| {
            fs.write_at(file, 0, &bytes).map_err(failed)?;
            fs.fsync(file).map_err(failed)
        })?;
        self.all(case, &calls);
        Ok(())
    }
}

fn run(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = Chip::PAPER_FLEX.with_blocks(512);
    let memory = Options { cache_size: 1 << 20, pending_size: 24 << 10, ..Options::DEFAULT };
    let options = memory.both_modes(&chip.geometry);
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let sim = Sim::with_seed(chip, context.seed);
    let fs = Fs::format(sim, options, Format::default(), &mut memory).map_err(failed)?;
    let mut bench = Bench { fs, now_us: 1_000_000, figures: Vec::new() };
    bench.sequential(b"one", "sequential_1m_fsync")?;
    bench.fs.set_class(Class::Synced);
    small_calls(&mut bench, context.scaled(1000, 200))?;
    bench.fs.set_class(Class::Normal);
    // A window without idle time: those that follow cannot count on any.
    let file = bench.create(b"window")?;
    bench.calls(1, |fs, _| fs.write_at(file, 0, &vec![1; 5 << 20]).map_err(failed).map(|_| ()))?;
    bench.sequential(b"two", "sequential_1m_fsync/mlc")?;
    deep_directories(&mut bench)?;
    let Bench { fs, now_us, figures } = bench;
    let chip = fs.unmount().map_err(failed)?;
    let fs = Fs::mount(chip, options, &mut memory).map_err(failed)?;
    let mut bench = Bench { fs, now_us, figures };
    // A path of four names, with nothing of it in memory.
    let calls = bench.calls(1, |fs, _| {
        [b"a", b"b", b"c", b"d"].into_iter().try_fold(Ino::ROOT, |at, name| fs.lookup(at, name)).map_err(failed)?;
        Ok(())
    })?;
    bench.all("lookup_depth_4", &calls);
    Ok(bench.figures)
}

fn small_calls(bench: &mut Bench<'_>, count: u64) -> Result<(), BenchError> {
    let page = [0x5A; PAGE];
    let file = bench.create(b"log")?;
    let calls = bench.calls(count, |fs, number| {
        fs.write_at(file, number * PAGE as u64, &page).map_err(failed)?;
        fs.fsync(file).map_err(failed)
    })?;
    bench.each("append_4k_osync", calls);
    let calls = bench.calls(count, |fs, number| {
        let at = number.wrapping_mul(40_503) % count;
        fs.write_at(file, at * PAGE as u64, &page).map_err(failed)?;
        fs.fsync(file).map_err(failed)
    })?;
    bench.each("overwrite_4k_osync", calls);
    let name = |number: u64| format!("file-{number:05}").into_bytes();
    let calls = bench.calls(1000, |fs, number| {
        let file = fs.create(Ino::ROOT, &name(number), FILE).map_err(failed)?;
        fs.write_at(file, 0, &page[..2048]).map_err(failed)?;
        fs.fsync(file).map_err(failed)
    })?;
    bench.each("create_2k_fsync", calls);
    for number in 0..count {
        bench.create(format!("new-{number:05}").as_bytes())?;
    }
    bench.fs.sync().map_err(failed)?;
    let calls = bench.calls(count, |fs, number| {
        let new = format!("new-{number:05}");
        let target = name(number % 1000);
        fs.rename(Ino::ROOT, new.as_bytes(), Ino::ROOT, &target, RenameMode::Replace).map_err(failed)
    })?;
    bench.each("rename_over", calls);
    let unlinks = bench.calls(1000, |fs, number| fs.unlink(Ino::ROOT, &name(number)).map_err(failed))?;
    let sync = bench.calls(1, |fs, _| fs.sync().map_err(failed))?;
    let us = unlinks.us.into_iter().chain(sync.us).collect();
    bench.all("unlink_1000_sync", &Calls { us, programs: unlinks.programs + sync.programs });
    Ok(())
}

fn deep_directories(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let mut at = Ino::ROOT;
    for name in [b"a", b"b", b"c"] {
        at = bench.fs.mkdir(at, name, Attributes { mode: 0o755, ..FILE }).map_err(failed)?;
        for number in 0..300 {
            bench.fs.create(at, format!("other-{number}").as_bytes(), FILE).map_err(failed)?;
        }
    }
    bench.fs.create(at, b"d", FILE).map_err(failed)?;
    bench.fs.sync().map_err(failed)
}
