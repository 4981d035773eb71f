//! The loads of E1 to E5, E7 and E10 through the file system itself.

use nandu::fs::placement::{PlacementOptions, Policy, WearPromise};
use nandu::fs::{Fs, Options};
use nandu_sim::{Chip, Sim};

use super::bursts::{BURST_PAGES, Burst, COLD_INO, HOST_CPU_US, HOT_INO, HOT_PAGES, MOVE_CPU_US, rate_of};
use super::wear::WINDOWS_MB;
use super::{HOST, SOURCE, alphas, throughput};
use crate::flexfs::FileSystem;
use crate::{BenchError, Context, Experiment, Figure, Limit, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/flexfs-files",
    about: "the loads of E1 to E5, E7 and E10 through the file system: throughput of bursts, shares, and the wear that was promised",
    source: Some(SOURCE),
    setup: &[
        (
            "chip",
            "paper-flex with 96 MiB as MLC (120 MiB for `wear`); an SLC page takes 431 us, an MLC page 994 in the mean, an MSB page 1557, an erase 872",
        ),
        ("structure", "file system with both modes, 1 MiB for nodes and changes; maps on flash"),
        HOST,
        (
            "workload",
            "4 MiB in a file of its own every 25 s (`idle`), every 10 s (`busy`), without a pause (`plain`), every 10 s with every fourth page in a file of \
             1 MiB (`locality`), until 95 % of what is offered are written; the ten windows of E7 (`wear`)",
        ),
    ],
    notes: NOTES,
    parts: 3,
    part_name: |part| ["idle", "busy", "wear"][part].to_owned(),
    run: |context, part| match part {
        0 => run_idle(context),
        1 => run_busy(context),
        _ => run_wear(context),
    },
    stated: &[
        Stated::published("idle/baseline/all", "mb_per_s_first", 3.0).modelled(3.04),
        Stated::published("idle/migrated/all", "fall_percent", 94.0).modelled(94.0),
        Stated::published("busy/da/all", "alpha_settled", 0.5).modelled(0.49),
        Stated::published("locality/da/all", "mb_per_s", 2.45).modelled(2.51),
        Stated::published("locality/la/all", "mb_per_s", 2.66).modelled(2.65),
        Stated::published("locality/la/all", "alpha_settled", 0.7),
        Stated::published("wear/all", "wear_mb", 1200.0).modelled(1172.0),
    ],
    limits: LIMITS,
    plots: &[throughput("Bursts through the file system"), alphas("The share for SLC blocks")],
    ..Experiment::PLAIN
};

const LIMITS: &[Limit] = &[
    Limit { metric: "mb_per_s_fallen", case: Some("idle/baseline/all"), least: 0.8, most: 0.9 },
    Limit::at_least("fall_percent", 93.0).in_case("idle/migrated/all"),
    Limit { metric: "alpha_settled", case: Some("busy/da/all"), least: 0.45, most: 0.55 },
    Limit { metric: "mb_per_s_to_92", case: Some("busy/da/all"), least: 2.4, most: 2.6 },
    Limit { metric: "alpha_settled", case: Some("locality/la/all"), least: 0.645, most: 0.745 },
    Limit { metric: "ahead_percent", case: Some("locality/la/all"), least: 5.0, most: 9.0 },
    Limit::at_least("slowest_by_plain", 1.0),
    Limit::at_most("erases_most", 11.0).in_case("wear/all"),
    Limit { metric: "wear_mb", case: Some("wear/all"), least: 1160.0, most: 1200.0 },
];

const NOTES: &str = "The demands are those of the experiments on a volume of pages (`paper/flexfs-e1` to `-e5`, `-e10`), whose maps are in memory. Here leaves are \
programmed for what was written and a summary for each block, so a burst in SLC blocks takes 4.6 % longer: 2.91 MiB/s for 3.04. Shares of what was written are of what \
the file system offers, three quarters of the MLC capacity; SLC blocks alone hold 63 % of that, a little less than half of the capacity. \
`mb_per_s_fallen` is of the bursts after the fall, where the collector works while the host waits. `plain` is the same file system when no idle time was ever seen: \
all goes to MLC blocks at once. `slowest_by_plain` holds the slowest burst of a load against the slowest of these.

`wear` is what all erases come to, those of leaves, summaries and checkpoints and of the blocks erased ahead or open at the end among them. Equation 8 knows nothing of \
these; what the last three windows wore beyond it is allowed for, so delta is lower than on the volume of pages. All the same 1.6 % more is worn than was promised.";

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    policy: Policy,
    period_s: u64,
    has_hot: bool,
}

const BASELINE: Case = Case { name: "idle/baseline", policy: Policy::BASELINE, period_s: 25, has_hot: false };
const MIGRATED: Case = Case { name: "idle/migrated", policy: Policy::BACKGROUND, ..BASELINE };
const PLAIN: Case = Case { name: "plain", policy: Policy::DYNAMIC, period_s: 0, has_hot: false };
const BUSY: Case = Case { name: "busy/da", period_s: 10, ..PLAIN };
const UNTOLD: Case = Case { name: "locality/da", has_hot: true, ..BUSY };
const TOLD: Case = Case { name: "locality/la", policy: Policy::LOCALITY, ..UNTOLD };

/// As many as 64 MiB of files need.
const BLOCKS: u32 = 192;

/// What a file system takes on a chip, with these policies.
pub(super) fn options(chip: &Chip, policy: Policy, promise: Option<WearPromise>) -> Options {
    let placement = PlacementOptions { policy, ..PlacementOptions::for_geometry(&chip.geometry) };
    let memory = Options { cache_size: 1 << 20, pending_size: 24 << 10, ..Options::DEFAULT };
    Options { placement: Some(placement), wear: promise, ..memory.both_modes(&chip.geometry) }
}

fn with_files<T>(
    chip: Chip,
    options: Options,
    seed: u64,
    work: impl FnOnce(&mut FileSystem<'_>) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let sim = Sim::with_seed(chip, seed);
    let mut files = FileSystem::format(sim, options, &mut memory, (HOST_CPU_US, MOVE_CPU_US))?;
    let result = work(&mut files)?;
    files.verify()?;
    Ok(result)
}

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Burst>, BenchError> {
    let chip = Chip::PAPER_FLEX.with_blocks(context.scaled(BLOCKS, 64));
    let options = options(&chip, case.policy, None);
    let seed = context.seed;
    with_files(chip, options, seed, |files| write_bursts(case, files, context))
}

fn run_idle(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let [baseline, migrated] = [run(&BASELINE, context)?, run(&MIGRATED, context)?];
    let wholes = [whole(&BASELINE, &baseline), whole(&MIGRATED, &migrated)].concat();
    Ok([wholes, series(&BASELINE, &baseline), series(&MIGRATED, &migrated)].concat())
}

fn run_busy(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let plain = run(&PLAIN, context)?;
    let mut figures = whole(&PLAIN, &plain);
    let mut untold = 0.0;
    for case in [&BUSY, &UNTOLD, &TOLD] {
        let bursts = run(case, context)?;
        figures.extend(whole(case, &bursts));
        let all = format!("{}/all", case.name);
        let mut push = |metric, value, unit| figures.push(Figure::new(EXPERIMENT.name, &all, metric, value, unit));
        push("slowest_by_plain", slowest(&bursts) / slowest(&plain), "ratio");
        match case.name {
            name if name == UNTOLD.name => untold = rate_of(&bursts),
            name if name == TOLD.name => push("ahead_percent", (rate_of(&bursts) / untold - 1.0) * 100.0, "%"),
            _ => {}
        }
        figures.extend(series(case, &bursts));
    }
    figures.extend(series(&PLAIN, &plain));
    Ok(figures)
}

/// Rate of the slowest burst.
fn slowest(bursts: &[Burst]) -> f64 {
    bursts.iter().map(Burst::mb_per_s).fold(f64::INFINITY, f64::min)
}

fn write_bursts(case: &Case, files: &mut FileSystem<'_>, context: &mut Context<'_>) -> Result<Vec<Burst>, BenchError> {
    let capacity = files.available_pages()?;
    let since_us = files.now_us();
    let (mut written, mut bursts) = (0, Vec::<Burst>::new());
    while written * 100 < capacity * 95 {
        let nth = bursts.len() as u64;
        files.idle_until(since_us + nth * case.period_s * 1_000_000)?;
        let (begun_us, before) = (files.now_us(), written);
        let mut cold = 0;
        for place in 0..BURST_PAGES {
            if case.has_hot && place % 4 == 3 {
                files.write(HOT_INO, (place / 4 % HOT_PAGES) as u32)?;
            } else {
                files.write(COLD_INO + nth as u32, cold)?;
                cold += 1;
            }
            written += 1;
            if written * 100 >= capacity * 95 {
                break;
            }
        }
        let busy_us = files.now_us() - begun_us;
        let alpha = files.fs().placement().map_or(0, |placement| placement.allocation().alpha().millionths());
        bursts.push(Burst {
            pages: written - before,
            busy_us,
            written: written as f64 * 100.0 / capacity as f64,
            alpha: f64::from(alpha) / 1e6,
            free_blocks: files.fs().regions().free_blocks,
        });
        context.tell(written.min(capacity), capacity);
    }
    Ok(bursts)
}

fn whole(case: &Case, bursts: &[Burst]) -> Vec<Figure> {
    let all = format!("{}/all", case.name);
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &all, metric, value, unit);
    let first = bursts.first().map_or(0.0, Burst::mb_per_s);
    let is_fallen = |burst: &&Burst| burst.mb_per_s() < 0.9 * first;
    let fallen: Vec<Burst> = bursts.iter().skip_while(|burst| !is_fallen(burst)).copied().collect();
    let to_92: Vec<Burst> = bursts.iter().copied().filter(|burst| burst.written <= 92.0).collect();
    let mut figures = vec![
        figure("mb_per_s", rate_of(bursts), "MiB/s"),
        figure("mb_per_s_first", first, "MiB/s"),
        figure("mb_per_s_slowest", slowest(bursts), "MiB/s"),
        figure("mb_per_s_to_92", rate_of(&to_92), "MiB/s"),
        figure("fall_percent", fallen.first().map_or(100.0, |burst| burst.written), "%"),
        figure("alpha_settled", to_92.last().map_or(0.0, |burst| burst.alpha), "ratio"),
    ];
    if !fallen.is_empty() {
        figures.push(figure("mb_per_s_fallen", rate_of(&fallen), "MiB/s"));
    }
    figures
}

fn series(case: &Case, bursts: &[Burst]) -> Vec<Figure> {
    let of_burst = |burst: &Burst| {
        let at = format!("{}/at/{:.1}%", case.name.replace('/', "-"), burst.written);
        [
            Figure::new(EXPERIMENT.name, &at, "mb_per_s", burst.mb_per_s(), "MiB/s"),
            Figure::new(EXPERIMENT.name, &at, "alpha", burst.alpha, "ratio"),
            Figure::new(EXPERIMENT.name, &at, "free_blocks", f64::from(burst.free_blocks), "blocks"),
        ]
    };
    bursts.iter().flat_map(of_burst).collect()
}

const WINDOW_US: u64 = 400_000_000;
const FILE_MB: u64 = 4;
const FILE_PAGES: u32 = 1024;
/// Files of which the data of 40 MiB consists.
const FILES_LIVE: u32 = 10;
const WEAR_BLOCKS: u32 = 240;

/// The ten windows of E7: files of 4 MiB, of which the last ten live.
fn run_wear(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = Chip::PAPER_FLEX.with_blocks(WEAR_BLOCKS);
    let promise = WearPromise::new(u64::from(WEAR_BLOCKS) * 128, 10, 4000, 400);
    let options = options(&chip, Policy { wear: true, ..Policy::DYNAMIC }, Some(promise));
    let seed = context.seed;
    with_files(chip, options, seed, |files| {
        let since_us = files.now_us();
        let (mut figures, mut file) = (Vec::new(), 0);
        for (nth, &size_mb) in WINDOWS_MB.iter().enumerate() {
            let begin_us = since_us + nth as u64 * WINDOW_US;
            let count = size_mb / FILE_MB;
            let mut delta = 0.0;
            for burst in 0..count {
                files.idle_until(begin_us + burst * WINDOW_US / count)?;
                if file >= FILES_LIVE {
                    files.delete(file - FILES_LIVE)?;
                }
                for page in 0..FILE_PAGES {
                    files.write(file, page)?;
                }
                file += 1;
                let wear = files.fs().placement().and_then(|placement| placement.wear());
                delta = wear.map_or(1.0, |wear| f64::from(wear.delta().millionths()) / 1e6);
            }
            files.idle_until(begin_us + WINDOW_US)?;
            figures.push(Figure::new(EXPERIMENT.name, &format!("wear/window/{nth}"), "delta", delta, "ratio"));
            context.tell(nth as u64 + 1, WINDOWS_MB.len() as u64);
        }
        let stats = files.fs().stats();
        let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, "wear/all", metric, value, unit);
        figures.push(figure("wear_mb", stats.erase_count_sum as f64 / 2.0, "MiB"));
        figures.push(figure("erases_most", f64::from(stats.erase_count_max), "erases"));
        figures.push(figure("erases_mean", stats.erase_count_sum as f64 / f64::from(stats.data_blocks), "erases"));
        Ok(figures)
    })
}
