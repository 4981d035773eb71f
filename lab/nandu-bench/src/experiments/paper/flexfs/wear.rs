//! E7 and E8: a promised lifetime of ten windows, and how evenly blocks wear in it.

use nandu::fs::placement::{Class, Policy, WearPromise};

use super::bursts::{self, Scheme};
use super::{CHIP, HOST, SOURCE, VOLUME};
use crate::flexfs::{Choice, Volume};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind, Stated};

const WORKLOAD: (&str, &str) = (
    "workload",
    "120 MiB, 10 erases a block, ten windows of 400 s with 40, 40, 40, 80, 80, 20, 20, 40, 40 and 40 MiB in files of 4 MiB, of which \
     the last ten live; gaps that suffice to migrate everything",
);

pub(crate) const BUDGET: Experiment = Experiment {
    name: "paper/flexfs-e7",
    about: "the wear index and what is written to flash over ten windows, as figure 14 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_BUDGET,
    parts: 1,
    run: |context, _| run_budget(context),
    stated: &[
        Stated::published("with/all", "wear_mb", 1200.0).modelled(1172.0),
        Stated::published("with/window/0", "delta", 1.0).modelled(1.0),
        Stated::published("with/window/1", "delta", 1.0).modelled(1.0),
        Stated::published("with/window/2", "delta", 1.0).modelled(1.0),
        Stated::model("with/window/3", "delta", 1.0),
        Stated::model("with/window/4", "delta", 0.44),
        Stated::model("with/window/5", "delta", 0.18),
        Stated::model("with/window/6", "delta", 0.38),
        Stated::model("with/window/7", "delta", 1.0),
        Stated::model("with/window/8", "delta", 1.0),
        Stated::model("with/window/9", "delta", 1.0),
    ],
    accept: &[crate::Accept::absolute("delta", 0.03).beside(crate::Beside::Model)],
    limits: &[Limit { metric: "wear_mb", case: Some("with/all"), least: 1160.0, most: 1200.0 }],
    plots: &[
        plot("The wear index", "delta", "delta"),
        plot("What the host writes", "host_mb", "MiB in the window"),
        plot("Wear, an SLC page counted twice", "wear_mb", "MiB in the window"),
    ],
    ..Experiment::PLAIN
};

const NOTES_BUDGET: &str = "The promise is 1,200 MiB of wear. What the equations alone give for these windows is the model's 1,172 MiB; a real volume \
writes a little more or less, since SLC pages that die before they are migrated cost no second program, and blocks that are open at the end are \
not full. The budget of each window takes account of what was measured, so such errors do not add up. The paper says that delta is 1 in the first \
three windows and smaller for those of 80 MiB; as the mean of the last three windows predicts the next one, it is the window after the first \
large one that is limited first.";

pub(crate) const EVENNESS: Experiment = Experiment {
    name: "paper/flexfs-e8",
    about: "erases of each block after those ten windows, with and without management of wear, as table 4 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[CHIP, VOLUME, HOST, WORKLOAD],
    notes: NOTES_EVENNESS,
    parts: 1,
    run: |context, _| run_evenness(context),
    stated: &[
        Stated::published("with/all", "erases_mean", 9.23).modelled(9.45),
        Stated::published("with/all", "erases_deviation", 1.20).modelled(1.0),
        Stated::published("with/all", "erases_most", 10.0).modelled(11.0),
        Stated::published("without/all", "erases_mean", 10.73).modelled(10.65),
        Stated::published("without/all", "erases_deviation", 2.43).modelled(2.9),
    ],
    limits: &[
        Limit { metric: "erases_mean", case: Some("with/all"), least: 9.3, most: 9.6 },
        Limit::at_most("erases_most", 11.0).in_case("with/all"),
        Limit::at_most("erases_deviation", 1.6).in_case("with/all"),
        Limit { metric: "erases_mean", case: Some("without/all"), least: 10.5, most: 10.8 },
    ],
    plots: &[Plot {
        title: "Blocks by erases",
        metric: "blocks",
        cases: "{series}/erases/{x}",
        x: "erases",
        y: "blocks",
        kind: PlotKind::Bars,
    }],
    ..Experiment::PLAIN
};

const NOTES_EVENNESS: &str = "An erase counts when a block that was filled is given back: blocks are erased only when they are wanted, so at the end \
some erases are owed. The format's are not counted, nor is a second erase of an empty block to change its mode (`chip_erases_mean` has \
these). Without management of wear any free block is opened, as the paper switched levelling off with it.";

const fn plot(title: &'static str, metric: &'static str, y: &'static str) -> Plot {
    Plot { title, metric, cases: "{series}/window/{x}", x: "window of 400 s", y, kind: PlotKind::Lines }
}

pub(super) const WINDOWS_MB: [u64; 10] = [40, 40, 40, 80, 80, 20, 20, 40, 40, 40];
const WINDOW_US: u64 = 400_000_000;
const FILE_MB: u64 = 4;
const FILE_PAGES: u32 = 1024;
/// Files of which the data of 40 MiB consists.
const FILES_LIVE: u32 = 10;
const BLOCKS: u32 = 240;

/// What a window was like.
struct Window {
    delta: f64,
    wear_pages: u64,
}

/// Runs the ten windows.
fn run(is_managed: bool, context: &mut Context<'_>) -> Result<(Vec<Window>, Outcome), BenchError> {
    let policy = Policy { wear: is_managed, ..Policy::DYNAMIC };
    let mut setup = bursts::setup(&Scheme::decided("wear", policy), BLOCKS, context);
    setup.promise = Some(WearPromise::new(u64::from(BLOCKS) * 128, 10, 4000, 400));
    setup.choice = if is_managed { Choice::LeastWorn } else { Choice::Random };
    let mut memory = bursts::queues();
    let mut volume = Volume::format(setup, &mut memory)?;
    let since_us = volume.now_us();
    let (mut windows, mut file, mut used) = (Vec::new(), 0, 0);
    for (nth, &size_mb) in WINDOWS_MB.iter().enumerate() {
        let begin_us = since_us + nth as u64 * WINDOW_US;
        let count = size_mb / FILE_MB;
        let mut delta = 0.0;
        for burst in 0..count {
            // The data that a file replaces is deleted before.
            volume.idle_until(begin_us + burst * WINDOW_US / count)?;
            if file >= FILES_LIVE {
                volume.delete(file - FILES_LIVE);
            }
            for page in 0..FILE_PAGES {
                volume.write(file, page, Class::Normal)?;
            }
            file += 1;
            delta = volume.placement().wear().map_or(1.0, |wear| f64::from(wear.delta().millionths()) / 1e6);
        }
        volume.idle_until(begin_us + WINDOW_US)?;
        let now_used = volume.placement().wear().map_or(0, |wear| wear.used().pages);
        windows.push(Window { delta: if is_managed { delta } else { 1.0 }, wear_pages: now_used - used });
        used = now_used;
        context.tell(nth as u64 + 1, WINDOWS_MB.len() as u64);
    }
    volume.verify()?;
    let chip_erases = volume.sim().counters().erases as f64 / f64::from(BLOCKS);
    Ok((windows, Outcome { used_pages: used, cycles: volume.cycles().collect(), chip_erases }))
}

/// What is left at the end.
struct Outcome {
    used_pages: u64,
    cycles: Vec<u32>,
    chip_erases: f64,
}

fn run_budget(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (scheme, is_managed) in [("with", true), ("without", false)] {
        let (windows, outcome) = run(is_managed, context)?;
        let figure = |case: &str, metric, value, unit| {
            Figure::new(BUDGET.name, &format!("{scheme}/{case}"), metric, value, unit)
        };
        figures.push(figure("all", "wear_mb", outcome.used_pages as f64 / 256.0, "MiB"));
        for (nth, window) in windows.iter().enumerate() {
            let case = format!("window/{nth}");
            figures.push(figure(&case, "delta", window.delta, "ratio"));
            figures.push(figure(&case, "host_mb", WINDOWS_MB[nth] as f64, "MiB"));
            figures.push(figure(&case, "wear_mb", window.wear_pages as f64 / 256.0, "MiB"));
        }
    }
    Ok(figures)
}

fn run_evenness(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (scheme, is_managed) in [("with", true), ("without", false)] {
        let (_, outcome) = run(is_managed, context)?;
        let count = outcome.cycles.len() as f64;
        let mean = outcome.cycles.iter().sum::<u32>() as f64 / count;
        let square = outcome.cycles.iter().map(|&cycles| (f64::from(cycles) - mean).powi(2)).sum::<f64>() / count;
        let most = outcome.cycles.iter().max().copied().unwrap_or(0);
        let all = format!("{scheme}/all");
        let figure = |metric, value, unit| Figure::new(EVENNESS.name, &all, metric, value, unit);
        figures.push(figure("erases_mean", mean, "erases"));
        figures.push(figure("erases_deviation", square.sqrt(), "erases"));
        figures.push(figure("erases_most", f64::from(most), "erases"));
        figures.push(figure("chip_erases_mean", outcome.chip_erases, "erases"));
        for erases in 0..=most {
            let blocks = outcome.cycles.iter().filter(|&&cycles| cycles == erases).count();
            let case = format!("{scheme}/erases/{erases}");
            figures.push(Figure::new(EVENNESS.name, &case, "blocks", blocks as f64, "blocks"));
        }
    }
    Ok(figures)
}
