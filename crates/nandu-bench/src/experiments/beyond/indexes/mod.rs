//! The indexes side by side: nandu's mu-Tree, the wandering B+-tree, BFTL, IPL and GRR, on one chip with as much memory.

mod contender;
mod run;

use nandu::nand::{ProgramOrder, TearScope};
use nandu_sim::{Bus, Chip};

use crate::{BenchError, Context, Experiment, Figure};
use contender::{Kind, Setup};
use run::Size;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "beyond/indexes",
    about: "nandu's mu-Tree, the wandering B+-tree, BFTL, IPL and GRR on one chip with as much memory, and when to choose which",
    parts: PART_COUNT,
    run: |context, part| run_part(part, context),
    notes: "",
    ..Experiment::PLAIN
};

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

const MUTREE: (&str, Kind) = ("mutree", Kind::MuTree);
const BPLUS: (&str, Kind) = ("bplus", Kind::BPlus { has_journal: false });
const BPLUS_JOURNAL: (&str, Kind) = ("bplus-journal", Kind::BPlus { has_journal: true });
const BFTL: (&str, Kind) = ("bftl", Kind::Bftl);
const IPL: (&str, Kind) = ("ipl", Kind::Ipl);
const GRR: (&str, Kind) = ("grr", Kind::Grr { is_blind: false });
const GRR_BLIND: (&str, Kind) = ("grr-blind", Kind::Grr { is_blind: true });

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "256KB",
        memory_size: 256 * 1024,
        chip: ChipKind::AsSold,
        syncs: &[1, 64, 4096],
        contenders: &[MUTREE, BPLUS, BPLUS_JOURNAL, BFTL, IPL, GRR, GRR_BLIND],
    },
    Setting {
        name: "32KB",
        memory_size: 32 * 1024,
        chip: ChipKind::AsSold,
        syncs: &[1, 64],
        contenders: &[MUTREE, BPLUS, BPLUS_JOURNAL],
    },
    Setting {
        name: "256KB-sectors",
        memory_size: 256 * 1024,
        chip: ChipKind::Sectors,
        syncs: &[1, 64, 4096],
        contenders: &[IPL, GRR, GRR_BLIND],
    },
    Setting {
        name: "256KB-sectors-slow",
        memory_size: 256 * 1024,
        chip: ChipKind::SectorsSlowBus,
        syncs: &[1, 64],
        contenders: &[MUTREE, BPLUS_JOURNAL, IPL, GRR, GRR_BLIND],
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
