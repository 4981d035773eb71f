//! A year of a mobile phone through the file system.

use nandu::fs::placement::{Policy, WearPromise};
use nandu::fs::{Fs, LogStats};
use nandu::nand::Cause;
use nandu_sim::{Chip, Sim};

use super::bursts::{HOST_CPU_US, MOVE_CPU_US};
use super::decade::{DAY_S, DAYS_A_YEAR, ENDURANCE, STATIC_INO, STATIC_PAGES, pages_of_a_day};
use super::{CHIP, HOST, files};
use crate::flexfs::FileSystem;
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/flexfs-year",
    about: "a year of a mobile phone on 512 MiB through the file system: wear beside what was promised",
    setup: &[
        CHIP,
        (
            "capacity",
            "512 MiB, of which 256 MiB of files never change; 50 erases a block, a tenth of those of beyond/flexfs-decade",
        ),
        ("promise", "1 year, in windows of a day: as much for each day as there"),
        ("structure", "file system with both modes, 1 MiB for nodes and changes; maps on flash"),
        HOST,
        ("workload", "the half hour of paper/flexfs-e9 once a day, for 365 days"),
    ],
    notes: NOTES,
    parts: 1,
    run: |context, _| run(context),
    limits: &[Limit::at_most("wear_percent", 100.0).in_case("all")],
    plots: &[Plot {
        title: "Wear over a year",
        metric: "wear_percent",
        cases: "{series}/twelfth/{x}",
        x: "twelfths of the year",
        y: "% of what was promised",
        kind: PlotKind::Lines,
    }],
    ..Experiment::PLAIN
};

const NOTES: &str = "What a page of the host costs besides its own program: commits, each a page in SLC mode, which counts two; pages migrated, and moved from blocks that are emptied \
to even out wear or for room, with the leaves that name them; and pages left out in MLC blocks, since a sync named their partners. Equation 8, by which delta is chosen, knows only of the pages migrated; \
so what the last three windows wore is held against it, and delta allows for the difference: about a twelfth. What the files of the first day wore is paid by all days that follow.

With 50 erases a block the least difference that is levelled, 16, comes to a third of them, and the most worn block is erased more often than 50 \
times. With the 10,000 of the paper's chip it is a hundredth.";

const TWELFTHS: u64 = 12;

fn run(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let (blocks, endurance, days): (u32, u32, u64) = context.scaled((1024, ENDURANCE / 10, DAYS_A_YEAR), (384, 20, 6));
    let mut chip = Chip::PAPER_FLEX.with_blocks(blocks);
    chip.geometry.endurance = endurance;
    let promise = WearPromise::new(u64::from(blocks) * 128, endurance, days * DAY_S, DAY_S);
    let options = files::options(&chip, Policy { wear: true, ..Policy::DYNAMIC }, Some(promise));
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let sim = Sim::with_seed(chip, context.seed);
    let mut volume = FileSystem::format(sim, options, &mut memory, (HOST_CPU_US, MOVE_CPU_US))?;
    let since_us = volume.now_us();
    for file in 0..blocks * 128 / 2 / STATIC_PAGES {
        for page in 0..STATIC_PAGES {
            volume.write(STATIC_INO + file, page)?;
        }
        volume.idle_until(volume.now_us() + 60_000_000)?;
    }
    let pages = pages_of_a_day(context.seed);
    let mut figures = Vec::new();
    let percent_of =
        |stats: &LogStats| stats.erase_count_sum as f64 * 100.0 / (u64::from(blocks) * u64::from(endurance)) as f64;
    for day in 0..days {
        let begin_us = since_us + day * DAY_S * 1_000_000 + DAY_S * 500_000;
        for &(at_us, file, page) in &pages {
            volume.idle_until(begin_us + at_us)?;
            volume.write(file, page)?;
        }
        volume.idle_until(since_us + (day + 1) * DAY_S * 1_000_000)?;
        let twelfth = (day + 1) * TWELFTHS / days;
        if twelfth > day * TWELFTHS / days {
            let case = format!("files/twelfth/{twelfth}");
            let percent = percent_of(&volume.fs().stats());
            figures.push(Figure::new(EXPERIMENT.name, &case, "wear_percent", percent, "%"));
        }
        context.tell(day + 1, days);
    }
    let stats = volume.fs().stats();
    let pages_all = (u64::from(blocks) * 64 + days * pages.len() as u64) as f64;
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, "all", metric, value, unit);
    let share = |pages: u64| pages as f64 / pages_all;
    let moved = |cause| share(stats.programs_for(cause));
    let whole = vec![
        figure("wear_percent", percent_of(&stats), "%"),
        figure("erases_least", stats.erase_count_min.into(), "erases"),
        figure("erases_most", stats.erase_count_max.into(), "erases"),
        figure("data_programs_per_page", share(stats.programs_for(Cause::Value)), "programs"),
        figure("commits_per_page", share(stats.programs_for(Cause::Host)), "programs"),
        figure("migrated_per_page", moved(Cause::Migration), "programs"),
        figure("levelled_per_page", moved(Cause::Levelling), "programs"),
        figure("collected_per_page", moved(Cause::Gc), "programs"),
        figure("left_out_per_page", share(stats.left_out.into()), "pages"),
    ];
    volume.verify()?;
    Ok([whole, figures].concat())
}
