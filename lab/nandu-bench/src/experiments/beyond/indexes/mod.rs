//! The indexes side by side: nandu's mu-Tree, the wandering B+-tree, BFTL, IPL and GRR, on one chip with as much memory.

mod contender;
mod notes;
mod run;

use nandu::nand::{ProgramOrder, TearScope};
use nandu_sim::{Bus, Chip};

use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};
use contender::{Kind, Setup};
use run::Size;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/indexes",
    about: "nandu's mu-Tree, the wandering B+-tree, BFTL, IPL and GRR on one chip with as much memory, and when to choose which",
    setup: &[
        (
            "chip",
            "w25n01gv with 80 blocks of 64 pages of 2 KiB: as it is sold, or with sectors of 512 bytes that are programmed in any order and torn alone (`sectors`), or that behind one line at 50 MHz (`slow`)",
        ),
        ("memory", "256 or 32 KiB in all, tables, buffers and caches included; what the tables leave is cache"),
        (
            "structure",
            "nandu; the wandering B+-tree without and with a journal tree; BFTL; IPL with its original log region; GRR as nandu-inpage has it: putting after it has read, blind, and blind behind a write-ahead ring",
        ),
        (
            "workload",
            "150,000 random records of 8 bytes, 60,000 updates that do not count, 40,000 operations of each kind; synced after every 1, 64 or 4,096 changes",
        ),
    ],
    parts: PART_COUNT,
    run: |context, part| run_part(part, context),
    limits: &[
        Limit::at_most("memory_bytes", 262_144.0).in_case("256KB/*/room/*"),
        Limit::at_most("memory_bytes", 262_144.0).in_case("256KB-sectors/*/room/*"),
        Limit::at_most("memory_bytes", 262_144.0).in_case("256KB-sectors-slow/*/room/*"),
        Limit::at_most("memory_bytes", 32_768.0).in_case("32KB/*/room/*"),
        Limit::at_most("programs_per_op", 1.03).in_case("*/sync1/updates/nandu"),
        Limit::at_most("reads_after_cut", 48.0).in_case("*/*/mount/nandu"),
    ],
    plots: &[
        plot("An update of any record", "cost_ms_per_op", "256KB/{x}/updates/{series}", "ms per update"),
        plot("An update of neighbouring records", "cost_ms_per_op", "256KB/{x}/clustered/{series}", "ms per update"),
        plot("Loading in random order", "cost_ms_per_op", "256KB/{x}/load/{series}", "ms per record"),
        plot("A lookup", "cost_ms_per_op", "256KB/{x}/reads/{series}", "ms per lookup"),
        plot(
            "Where sectors can be programmed: an update",
            "cost_ms_per_op",
            "256KB-sectors/{x}/updates/{series}",
            "ms per update",
        ),
        Plot {
            x: "work",
            ..plot(
                "Behind a slow bus, each change synced",
                "cost_ms_per_op",
                "256KB-sectors-slow/sync1/{x}/{series}",
                "ms per operation",
            )
        },
        plot("Opening after a cut, at most", "ms_after_cut", "256KB/{x}/mount/{series}", "ms"),
        plot("Pages that are of no other use", "pages_used", "256KB/{x}/room/{series}", "pages"),
    ],
    notes: notes::NOTES,
    ..Experiment::PLAIN
};

const fn plot(title: &'static str, metric: &'static str, cases: &'static str, y: &'static str) -> Plot {
    Plot { title, metric, cases, x: "changes between two syncs", y, kind: PlotKind::Bars }
}

/// A chip, memory, how often changes are synced, and which indexes.
struct Setting {
    name: &'static str,
    memory_size: usize,
    chip: ChipKind,
    syncs: &'static [u32],
    contenders: &'static [(&'static str, Kind)],
}

/// How the chip differs from a W25N01GV.
#[derive(Clone, Copy)]
enum ChipKind {
    AsSold,
    /// Sectors of 512 bytes are programmed in any order, and a cut tears one of them.
    Sectors,
    /// That, behind a bus that takes longer for a page than the chip.
    SectorsSlowBus,
}

const NANDU: (&str, Kind) = ("nandu", Kind::Nandu);
const BPLUS: (&str, Kind) = ("bplus", Kind::BPlus { has_journal: false });
const BPLUS_JOURNAL: (&str, Kind) = ("bplus-journal", Kind::BPlus { has_journal: true });
const BFTL: (&str, Kind) = ("bftl", Kind::Bftl);
const IPL: (&str, Kind) = ("ipl", Kind::Ipl);
const GRR: (&str, Kind) = ("grr", Kind::Grr { is_blind: false, has_ring: false });
const GRR_BLIND: (&str, Kind) = ("grr-blind", Kind::Grr { is_blind: true, has_ring: false });
const GRR_RING: (&str, Kind) = ("grr-ring", Kind::Grr { is_blind: true, has_ring: true });

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "256KB",
        memory_size: 256 * 1024,
        chip: ChipKind::AsSold,
        syncs: &[1, 64, 4096],
        contenders: &[NANDU, BPLUS, BPLUS_JOURNAL, BFTL, IPL, GRR, GRR_BLIND, GRR_RING],
    },
    Setting {
        name: "32KB",
        memory_size: 32 * 1024,
        chip: ChipKind::AsSold,
        syncs: &[1, 64],
        contenders: &[NANDU, BPLUS, BPLUS_JOURNAL],
    },
    Setting {
        name: "256KB-sectors",
        memory_size: 256 * 1024,
        chip: ChipKind::Sectors,
        syncs: &[1, 64],
        contenders: &[IPL, GRR, GRR_BLIND, GRR_RING],
    },
    Setting {
        name: "256KB-sectors-slow",
        memory_size: 256 * 1024,
        chip: ChipKind::SectorsSlowBus,
        syncs: &[1],
        contenders: &[NANDU, BPLUS_JOURNAL, BFTL, IPL, GRR, GRR_BLIND, GRR_RING],
    },
];

const PART_COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < SETTINGS.len() {
        count += SETTINGS[at].syncs.len() * SETTINGS[at].contenders.len();
        at += 1;
    }
    count
};

/// The setting of a part, changes between two syncs, and the index.
fn part(mut nth: usize) -> Option<(&'static Setting, u32, &'static (&'static str, Kind))> {
    static ALL: [Setting; SETTINGS.len()] = SETTINGS;
    for setting in &ALL {
        let count = setting.contenders.len();
        if nth < setting.syncs.len() * count {
            return Some((setting, setting.syncs[nth / count], &setting.contenders[nth % count]));
        }
        nth -= setting.syncs.len() * count;
    }
    None
}

const FULL: Size = Size { records: 150_000, operations: 40_000, warm_up: 60_000, scanned: 100, mounts: 8 };
const SMALL: Size = Size { records: 6_000, operations: 1_000, warm_up: 1_000, scanned: 100, mounts: 2 };
const BLOCK_COUNT: u32 = 80;
const BLOCK_COUNT_SMALL: u32 = 24;

fn chip(kind: ChipKind, block_count: u32) -> Chip {
    let mut chip = Chip::W25N01GV.with_blocks(block_count);
    if !matches!(kind, ChipKind::AsSold) {
        chip.geometry.order = ProgramOrder::Any;
        chip.geometry.tear = TearScope::Range;
    }
    if let ChipKind::SectorsSlowBus = kind {
        chip.timing.bus = Bus::spi(1, 50);
    }
    chip
}

fn run_part(nth: usize, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let Some((setting, sync_every, &(name, kind))) = part(nth) else { return Ok(Vec::new()) };
    let size = context.scaled(FULL, SMALL);
    let chip = chip(setting.chip, context.scaled(BLOCK_COUNT, BLOCK_COUNT_SMALL));
    let setup = Setup { kind, chip, memory_size: setting.memory_size, record_count: size.records, sync_every };
    let failed = |error| BenchError::Other(format!("{}/sync{sync_every}/{name}: {error}", setting.name));
    let outcome = run::run(&setup, size, context).map_err(failed)?;
    let mut figures = Vec::new();
    let mut figure = |what: &str, metric, value: f64, unit| {
        let case = format!("{}/sync{sync_every}/{what}/{name}", setting.name);
        figures.push(Figure::new(EXPERIMENT.name, &case, metric, value, unit));
    };
    for phase in &outcome.phases {
        let per_operation = |count: u64| count as f64 / f64::from(phase.operations);
        let counters = &phase.counters;
        figure(phase.name, "cost_ms_per_op", per_operation(counters.busy_ns) / 1e6, "ms");
        figure(phase.name, "reads_per_op", per_operation(counters.reads), "reads");
        if counters.programs > 0 {
            figure(phase.name, "programs_per_op", per_operation(counters.programs), "programs");
            figure(phase.name, "erases_per_op", per_operation(counters.erases), "erases");
        }
        if ["load", "updates"].contains(&phase.name) {
            figure(phase.name, "worst_ms", phase.worst_ns as f64 / 1e6, "ms");
        }
        if counters.partial_programs > 0 {
            figure(phase.name, "partial_programs_per_op", per_operation(counters.partial_programs), "programs");
        }
    }
    let [clean, cut] = outcome.mounts;
    figure("mount", "reads_clean", clean.reads as f64, "reads");
    figure("mount", "ms_clean", clean.busy_ns as f64 / 1e6, "ms");
    figure("mount", "reads_after_cut", cut.reads as f64, "reads");
    figure("mount", "ms_after_cut", cut.busy_ns as f64 / 1e6, "ms");
    figure("room", "pages_used", outcome.pages_used as f64, "pages");
    figure("room", "memory_bytes", outcome.memory_size.map_or_else(|| setup.memory_given(), Ok)? as f64, "bytes");
    Ok(figures)
}
