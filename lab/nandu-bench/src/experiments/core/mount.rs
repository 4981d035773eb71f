//! Page reads to mount, whatever the capacity and however many records there are.

use nandu::{Edit, FixedCells, Options, Store};
use nandu_sim::{Chip, Sim, SimError};

use crate::rig;
use crate::workload::{Chooser, Skew};
use crate::{BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "core/mount",
    about: "page reads to mount, the most of many mounts, clean and after a power cut",
    limits: &[Limit::at_most("mount_loads_clean", 40.0), Limit::at_most("mount_loads_cut", 40.0)],
    small_limits: &[
        Limit::at_most("mount_loads_clean", 16.0),
        Limit::at_most("mount_loads_cut", 29.0).in_case("w25n01gv/*"),
        Limit::at_most("mount_loads_cut", 30.0).in_case("8gib/*"),
    ],
    setup: &[
        ("chips", "w25n01gv (128 MiB), and one of 8 GiB with pages of 8 KiB"),
        ("structure", "store with entries of 4 + 4 bytes and default options"),
        ("workload", "1 to 16 blocks of random updates before each mount; half of the mounts after a power cut"),
    ],
    plots: &[
        Plot {
            title: "Mounts after a clean unmount",
            metric: "mount_loads_clean",
            cases: "{series}/{x}",
            x: "records",
            y: "page reads, at most",
            kind: PlotKind::Bars,
        },
        Plot {
            title: "Mounts after a power cut",
            metric: "mount_loads_cut",
            cases: "{series}/{x}",
            x: "records",
            y: "page reads, at most",
            kind: PlotKind::Bars,
        },
    ],
    parts: CASES.len(),
    run: |context, part| run_case(&CASES[part], context),
    ..Experiment::PLAIN
};

struct Case {
    name: &'static str,
    chip: Chip,
    record_count: u32,
}

const CASES: [Case; 4] = [
    Case { name: "w25n01gv/10", chip: Chip::W25N01GV, record_count: 10 },
    Case { name: "w25n01gv/1000000", chip: Chip::W25N01GV, record_count: 1_000_000 },
    Case { name: "8gib/10", chip: EIGHT_GIB, record_count: 10 },
    Case { name: "8gib/1000000", chip: EIGHT_GIB, record_count: 1_000_000 },
];

/// A large chip with one bit a cell: 8 KiB pages, 256 in a block, 4096 blocks.
const EIGHT_GIB: Chip = {
    let mut chip = Chip::MT29F4G01.with_blocks(4096);
    chip.name = "8gib";
    chip.geometry.page_size = 8192;
    chip.geometry.program_unit = 8192;
    chip.geometry.spare_size = 512;
    chip.geometry.pages_per_block = 256;
    chip
};

/// Mounts of each kind in each case.
const MOUNT_COUNT: u32 = 100;
/// Most blocks that updates fill between two mounts: more than there are between two checkpoints.
const BLOCKS_MAX: u32 = 16;
/// Records that are loaded by one batch.
const BATCH_SIZE: usize = 1000;

type Cells = FixedCells<4, 4>;

fn run_case(case: &Case, context: &Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let options = Options::DEFAULT;
    let mut memory = rig::memory(&case.chip, &options);
    let chip = Sim::with_seed(case.chip, context.seed);
    let mut store = Store::format_with(chip, FixedCells, options, &mut memory)?;
    load(&mut store, case.record_count)?;
    let chip = store.unmount()?;

    let mut chooser = Chooser::new(case.record_count, Skew::Uniform, context.seed)?;
    let mut update =
        |store: &mut Store<'_, Sim, Cells>| store.put(&chooser.choose().to_be_bytes(), &[0xA5; 4]).map(drop);
    let mount_count = context.scaled(MOUNT_COUNT, MOUNT_COUNT / 20);
    let updates_max = BLOCKS_MAX * case.chip.geometry.pages_per_block;
    let mounts = rig::mount_loads(chip, FixedCells, options, mount_count, updates_max, &mut update)?;
    let figure = |metric, value| Figure::new(EXPERIMENT.name, case.name, metric, value, "reads");
    Ok(vec![figure("mount_loads_clean", mounts.clean as f64), figure("mount_loads_cut", mounts.cut as f64)])
}

/// Puts records in rising order, a batch at a time.
fn load(store: &mut Store<'_, Sim, Cells>, record_count: u32) -> Result<(), nandu::Error<SimError>> {
    let keys: Vec<[u8; 4]> = (0..record_count).map(u32::to_be_bytes).collect();
    for keys in keys.chunks(BATCH_SIZE) {
        let edits: Vec<Edit<'_>> = keys.iter().map(|key| Edit { key, value: Some(key) }).collect();
        store.batch(&edits)?;
    }
    Ok(())
}
