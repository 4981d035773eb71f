//! E9: half an hour of a mobile phone.

use std::collections::BTreeMap;

use nandu::fs::placement::{Class, Policy, Region, WearPromise};

use super::bursts::{self, Scheme, rate};
use super::{CHIP, HOST, SOURCE, VOLUME};
use crate::flexfs::Volume;
use crate::workload::{CallTrace, FileVerb};
use crate::{Accept, BenchError, Context, Experiment, Figure, Plot, PlotKind, Stated};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/flexfs-e9",
    about: "half an hour of a mobile phone with SLC blocks alone, with all policies, and with MLC blocks alone, as table 6 of the FlexFS paper",
    source: Some(SOURCE),
    setup: &[
        CHIP,
        ("capacity", "512 MiB; 10,000 erases a block; promised for 3 years, in windows of 10 minutes"),
        VOLUME,
        HOST,
        (
            "workload",
            "made up: messages, address book, memos, a game, 18 MiB of MP3 files from 750 s on, 18 MiB of pictures from 930 s on; \
             39 MB in 38,600 writes, 89 % of the time idle",
        ),
    ],
    notes: NOTES,
    parts: CASES.len(),
    part_name: |part| CASES[part].name.to_owned(),
    run: |context, part| run(&CASES[part], context),
    stated: &[
        Stated::published("slc/all", "write_us", 334.0).modelled(334.0),
        Stated::published("flexfs/all", "write_us", 345.0).modelled(347.0),
        Stated::published("mlc/all", "write_us", 473.0).modelled(473.0),
        Stated::published("slc/all", "mb_per_s", 3.02).modelled(3.04),
        Stated::published("flexfs/all", "mb_per_s", 2.93).modelled(3.01),
        Stated::published("mlc/all", "mb_per_s", 2.12).modelled(2.11),
    ],
    accept: &[Accept::relative("write_us", 0.03), Accept::relative("mb_per_s", 0.03)],
    plots: &[
        plot("Blocks in use", "blocks", "{series}/blocks/{x}", "blocks"),
        plot("The wear index", "delta", "{series}/at/{x}", "delta"),
    ],
    ..Experiment::PLAIN
};

const NOTES: &str = "The paper's recording is not published; the load is made up after what it tells of it (sizes, counts, the share of idle time, \
when the MP3 files come). What the paper calls JFFS2 is here the same volume with MLC blocks alone, and its FlexFS_SLC the same with SLC \
blocks alone. `write_us` is the time within writes and closes, by the number of writes: most of these only fill a page in memory. \
`mb_per_s` is of the MP3 files. Reads are replayed and their time is not given: there is no page cache here, and in the paper nearly all of them \
are answered by one.

What FlexFS loses to SLC alone it loses to the promise: the MP3 files and five pictures take the wear of their window, so from 1,200 s on \
delta sends a part of the pictures to MLC blocks, in the paper as here.";

const fn plot(title: &'static str, metric: &'static str, cases: &'static str, y: &'static str) -> Plot {
    Plot { title, metric, cases, x: "time (s)", y, kind: PlotKind::Lines }
}

struct Case {
    name: &'static str,
    forced: Option<Region>,
}

const CASES: [Case; 3] = [
    Case { name: "slc", forced: Some(Region::Slc) },
    Case { name: "flexfs", forced: None },
    Case { name: "mlc", forced: Some(Region::Mlc) },
];

const PAGE_SIZE: u64 = 4096;
const SAMPLE_US: u64 = 30_000_000;
const THREE_YEARS_S: u64 = 3 * 365 * 86_400;

/// Files of which the last page that was written to waits in memory until it is full or the file is closed.
#[derive(Default)]
pub(super) struct Files {
    waiting: BTreeMap<u32, u32>,
}

impl Files {
    /// The pages that a call writes to flash.
    pub(super) fn pages(&mut self, verb: FileVerb) -> Vec<(u32, u32)> {
        match verb {
            FileVerb::Write { file, offset, length } => {
                let end = offset + u64::from(length);
                let (first, last) = ((offset / PAGE_SIZE) as u32, ((end.max(1) - 1) / PAGE_SIZE) as u32);
                let waiting = self.waiting.remove(&file).filter(|&page| page != first);
                let mut pages: Vec<(u32, u32)> = waiting.into_iter().map(|page| (file, page)).collect();
                let is_full = end.is_multiple_of(PAGE_SIZE);
                let whole = if is_full { last + 1 } else { last };
                pages.extend((first..whole).map(|page| (file, page)));
                if !is_full {
                    self.waiting.insert(file, last);
                }
                pages
            }
            FileVerb::Sync { file } | FileVerb::Close { file } => {
                self.waiting.remove(&file).map(|page| (file, page)).into_iter().collect()
            }
            FileVerb::Delete { file } => {
                self.waiting.remove(&file);
                Vec::new()
            }
            FileVerb::Read { .. } => Vec::new(),
        }
    }
}

fn run(case: &Case, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let trace = CallTrace::mobile(context.seed);
    let calls = &trace.calls[..trace.calls.len() / context.scaled(1, 8)];
    let blocks = 1024;
    let mut setup = bursts::setup(&Scheme::decided(case.name, Policy::ALL), blocks, context);
    setup.forced = case.forced;
    if case.forced.is_some() {
        setup.placement.policy = Policy::BASELINE;
    }
    setup.promise = Some(WearPromise::new(u64::from(blocks) * 128, 10_000, THREE_YEARS_S, 600));
    let mut memory = bursts::queues();
    let mut volume = Volume::format(setup, &mut memory)?;
    let since_us = volume.now_us();
    let mut files = Files::default();
    let (mut writes, mut write_us, mut pages_all) = (0_u64, 0, 0_u64);
    let (mut song_pages, mut song_us) = (0, 0);
    let mut figures = Vec::new();
    let mut sample_us = 0;
    for (nth, call) in calls.iter().enumerate() {
        while sample_us <= call.at_us {
            volume.idle_until(since_us + sample_us)?;
            figures.extend(sample(case, sample_us, &volume));
            sample_us += SAMPLE_US;
        }
        let at_us = since_us + call.at_us;
        volume.idle_until(at_us)?;
        let class = if matches!(call.verb, FileVerb::Sync { .. }) { Class::Synced } else { Class::Normal };
        let pages = files.pages(call.verb);
        for &(file, page) in &pages {
            volume.write(file, page, class)?;
        }
        match call.verb {
            FileVerb::Read { file, offset, .. } => volume.read(file, (offset / PAGE_SIZE) as u32)?,
            FileVerb::Delete { file } => volume.delete(file),
            FileVerb::Write { file, .. } | FileVerb::Sync { file } | FileVerb::Close { file } => {
                let took_us = if pages.is_empty() { 0 } else { volume.now_us() - at_us };
                writes += u64::from(matches!(call.verb, FileVerb::Write { .. }));
                write_us += took_us;
                pages_all += pages.len() as u64;
                if (100..200).contains(&file) {
                    song_pages += pages.len() as u64;
                    song_us += took_us;
                }
            }
        }
        if nth % 1000 == 0 {
            context.tell(nth as u64, calls.len() as u64);
        }
    }
    volume.verify()?;
    let all = format!("{}/all", case.name);
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, &all, metric, value, unit);
    let mut whole = vec![
        figure("write_us", write_us as f64 / writes as f64, "us"),
        figure("pages_written", pages_all as f64, "pages"),
        figure("pages_to_mlc", volume.done().host_mlc as f64, "pages"),
        figure("wear_pages", volume.placement().wear().map_or(0, |wear| wear.used().pages) as f64, "pages"),
    ];
    if song_us > 0 {
        whole.insert(1, figure("mb_per_s", rate(song_pages, song_us), "MiB/s"));
    }
    whole.extend(figures);
    Ok(whole)
}

/// What is in use at a time, for the volume with all policies.
fn sample(case: &Case, at_us: u64, volume: &Volume<'_>) -> Vec<Figure> {
    if case.forced.is_some() {
        return Vec::new();
    }
    let seconds = at_us / 1_000_000;
    let blocks = |series: &str, region| {
        let case = format!("{series}/blocks/{seconds}");
        Figure::new(EXPERIMENT.name, &case, "blocks", f64::from(volume.blocks_of(region)), "blocks")
    };
    let delta = volume.placement().wear().map_or(1.0, |wear| f64::from(wear.delta().millionths()) / 1e6);
    vec![
        blocks("slc-blocks", Region::Slc),
        blocks("mlc-blocks", Region::Mlc),
        Figure::new(EXPERIMENT.name, &format!("{}/at/{seconds}", case.name), "delta", delta, "ratio"),
    ]
}
