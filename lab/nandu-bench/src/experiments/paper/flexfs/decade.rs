//! Ten years of a mobile phone.

use nandu::fs::placement::{Class, Policy, Region, WearPromise};

use super::bursts::{self, Scheme};
use super::mobile::Files;
use super::{CHIP, HOST, VOLUME};
use crate::flexfs::Volume;
use crate::workload::CallTrace;
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/flexfs-decade",
    about: "ten years of a mobile phone on 512 MiB: wear beside what was promised, with and without management of wear",
    setup: &[
        CHIP,
        ("capacity", "512 MiB, half of it filled with files that never change; 500 erases a block"),
        ("promise", "10 years, in windows of a day"),
        VOLUME,
        HOST,
        ("workload", "the half hour of paper/flexfs-e9 once a day, for 3,650 days"),
    ],
    notes: NOTES,
    parts: CASES.len(),
    run: |context, part| run(&CASES[part], context),
    limits: &[
        Limit { metric: "wear_percent", case: Some("managed/all"), least: 95.0, most: 100.0 },
        Limit::at_most("erases_most", 520.0).in_case("managed/all"),
    ],
    plots: &[
        plot("Wear over ten years", "wear_percent", "{series}/year/{x}", "% of what was promised"),
        plot("Erases of the least and the most worn block", "erases", "{series}/erases/{x}", "erases"),
        plot("Blocks of the regions at the end of a year", "blocks", "{series}/blocks/{x}", "blocks"),
        plot("The wear index", "delta_mean", "{series}/year/{x}", "delta, mean of the year"),
    ],
    ..Experiment::PLAIN
};

const NOTES: &str = "`wear_percent` is what the budget counts, a page in an SLC block as two, by what the chip stands. Without management everything goes \
to SLC blocks first, since there is idle time enough, and the promise is used up before its time. With it, delta rests where the budget of \
each day suffices. Hot files are not told from others here. At the end of a year nothing of the last day waits to be migrated, as far as delta let it go to SLC blocks at all.

Both take two minutes and a half of one core, with a gigabyte of memory. `beyond/flexfs-year` is the file system itself.";

const fn plot(title: &'static str, metric: &'static str, cases: &'static str, y: &'static str) -> Plot {
    Plot { title, metric, cases, x: "years", y, kind: PlotKind::Lines }
}

struct Case {
    name: &'static str,
    is_managed: bool,
}

const CASES: [Case; 2] = [Case { name: "managed", is_managed: true }, Case { name: "unmanaged", is_managed: false }];

pub(super) const ENDURANCE: u32 = 500;
const YEARS: u64 = 10;
pub(super) const DAYS_A_YEAR: u64 = 365;
pub(super) const DAY_S: u64 = 86_400;
/// The first of the files that never change.
pub(super) const STATIC_INO: u32 = 10_000;
pub(super) const STATIC_PAGES: u32 = 1024;

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    // A small run has fewer blocks, erases and days, so that as much of the promise is at stake.
    let (blocks, endurance, days_a_year): (u32, u32, u64) =
        context.scaled((1024, ENDURANCE, DAYS_A_YEAR), (256, 20, 4));
    let policy = Policy { wear: case.is_managed, ..Policy::DYNAMIC };
    let mut setup = bursts::setup(&Scheme::decided(case.name, policy), blocks, context);
    setup.chip.geometry.endurance = endurance;
    setup.placement.endurance = endurance;
    let lifetime_s = YEARS * days_a_year * DAY_S;
    setup.promise = Some(WearPromise::new(u64::from(blocks) * 128, endurance, lifetime_s, DAY_S));
    let mut memory = bursts::queues();
    let mut volume = Volume::format(setup, &mut memory)?;
    let since_us = volume.now_us();
    for file in 0..blocks * 128 / 2 / STATIC_PAGES {
        for page in 0..STATIC_PAGES {
            volume.write(STATIC_INO + file, page, Class::Normal)?;
        }
        volume.idle_until(volume.now_us() + 60_000_000)?;
    }
    let pages = pages_of_a_day(context.seed);
    let mut figures = Vec::new();
    let mut deltas = 0.0;
    for day in 0..YEARS * days_a_year {
        // The static files came on the first day.
        let begin_us = since_us + day * DAY_S * 1_000_000 + DAY_S * 500_000;
        for &(at_us, file, page) in &pages {
            volume.idle_until(begin_us + at_us)?;
            volume.write(file, page, Class::Normal)?;
        }
        let Some(wear) = volume.placement().wear() else { continue };
        deltas += f64::from(wear.delta().millionths()) / 1e6;
        let percent = wear.used().pages as f64 * 100.0 / wear.promise().budget_pages as f64;
        if (day + 1) % days_a_year == 0 {
            let year = (day + 1) / days_a_year;
            let figure = |metric, value, unit| {
                Figure::new(EXPERIMENT.name, &format!("{}/year/{year}", case.name), metric, value, unit)
            };
            figures.push(figure("wear_percent", percent, "%"));
            if case.is_managed {
                figures.push(figure("delta_mean", deltas / days_a_year as f64, "ratio"));
            }
            figures.extend(end_of_year(case.name, year, &volume));
            deltas = 0.0;
        }
        context.tell(day + 1, YEARS * days_a_year);
    }
    volume.verify()?;
    Ok([whole(case, &volume), figures].concat())
}

/// Erases and regions at the end of a year.
fn end_of_year(name: &str, year: u64, volume: &Volume<'_>) -> Vec<Figure> {
    let figure = |case: String, metric, value: u32, unit| {
        Figure::new(EXPERIMENT.name, &format!("{name}, {case}/{year}"), metric, value.into(), unit)
    };
    let (least, most) = (volume.cycles().min().unwrap_or(0), volume.cycles().max().unwrap_or(0));
    let blocks = [
        ("SLC", volume.blocks_of(Region::Slc)),
        ("MLC", volume.blocks_of(Region::Mlc)),
        ("free", volume.free_blocks()),
    ];
    let mut figures = vec![
        figure("least/erases".to_owned(), "erases", least, "erases"),
        figure("most/erases".to_owned(), "erases", most, "erases"),
    ];
    figures.extend(blocks.map(|(what, count)| figure(format!("{what}/blocks"), "blocks", count, "blocks")));
    figures
}

fn whole(case: &Case, volume: &Volume<'_>) -> Vec<Figure> {
    let all = format!("{}/all", case.name);
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &all, metric, value, unit);
    let percent = volume
        .placement()
        .wear()
        .map_or(0.0, |wear| wear.used().pages as f64 * 100.0 / wear.promise().budget_pages as f64);
    let cycles: Vec<u32> = volume.cycles().collect();
    let done = volume.done();
    vec![
        figure("wear_percent", percent, "%"),
        figure("slc_percent", done.host_slc as f64 * 100.0 / (done.host_slc + done.host_mlc) as f64, "%"),
        figure("erases_mean", cycles.iter().sum::<u32>() as f64 / cycles.len() as f64, "erases"),
        figure("erases_least", cycles.iter().min().copied().unwrap_or(0).into(), "erases"),
        figure("erases_most", cycles.iter().max().copied().unwrap_or(0).into(), "erases"),
    ]
}

/// The pages that half an hour of a phone writes: when, of which file, and which page of it.
pub(super) fn pages_of_a_day(seed: u64) -> Vec<(u64, u32, u32)> {
    let mut files = Files::default();
    let calls = CallTrace::mobile(seed).calls;
    let pages = calls
        .into_iter()
        .flat_map(|call| files.pages(call.verb).into_iter().map(move |(file, page)| (call.at_us, file, page)));
    pages.collect()
}
