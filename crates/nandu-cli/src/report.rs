//! What several verbs say of a chip, for people and for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use nandu_nand::{BlockAddr, Cause, CellMode, CopyRule, Geometry, Pairing, ProgramOrder, TearScope};
use nandu_sim::{BlockInfo, Condition, Counters, Ledger, Timing};
use serde_json::{Map, Value, json};

use crate::flash::Flash;
use crate::units;

/// What a block is, for someone who looks at all of them. The order is that of how much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BlockClass {
    NeverErased,
    Erased,
    Partial,
    Full,
    Harmed,
    GrownBad,
    FactoryBad,
}

impl BlockClass {
    pub(crate) const ALL: [BlockClass; 7] = [
        BlockClass::NeverErased,
        BlockClass::Erased,
        BlockClass::Partial,
        BlockClass::Full,
        BlockClass::Harmed,
        BlockClass::GrownBad,
        BlockClass::FactoryBad,
    ];

    pub(crate) fn of(flash: &Flash, block: BlockAddr, state: &BlockInfo) -> BlockClass {
        if state.factory_bad {
            BlockClass::FactoryBad
        } else if state.grown_bad {
            BlockClass::GrownBad
        } else if is_harmed(flash, block, state) {
            BlockClass::Harmed
        } else if state.condition == Condition::NeverErased {
            BlockClass::NeverErased
        } else if state.pages_programmed == 0 {
            BlockClass::Erased
        } else if state.pages_programmed < flash.chip().geometry.pages_in_mode(state.mode) {
            BlockClass::Partial
        } else {
            BlockClass::Full
        }
    }

    /// One word or two, as a legend shows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BlockClass::NeverErased => "never erased",
            BlockClass::Erased => "erased",
            BlockClass::Partial => "partly programmed",
            BlockClass::Full => "programmed",
            BlockClass::Harmed => "harmed",
            BlockClass::GrownBad => "grown bad",
            BlockClass::FactoryBad => "factory bad",
        }
    }

    /// The name in machine-readable output.
    pub(crate) fn key(self) -> &'static str {
        match self {
            BlockClass::NeverErased => "never_erased",
            BlockClass::Erased => "erased",
            BlockClass::Partial => "partly_programmed",
            BlockClass::Full => "programmed",
            BlockClass::Harmed => "harmed",
            BlockClass::GrownBad => "grown_bad",
            BlockClass::FactoryBad => "factory_bad",
        }
    }
}

/// Whether a cut or a fault left something in the block that is not what it seems.
fn is_harmed(flash: &Flash, block: BlockAddr, state: &BlockInfo) -> bool {
    let geometry = &flash.chip().geometry;
    matches!(state.condition, Condition::WeaklyErased | Condition::EraseFailed)
        || (0..geometry.pages_per_block).any(|index| flash.is_harmed(geometry.page_at(block, index)))
}

/// Every block of a chip.
pub(crate) fn blocks(flash: &Flash) -> impl Iterator<Item = (BlockAddr, BlockInfo)> {
    (0..flash.chip().geometry.block_count).map(BlockAddr).map(|block| (block, flash.block_state(block)))
}

pub(crate) fn mode_name(mode: CellMode) -> &'static str {
    match mode {
        CellMode::Slc => "slc",
        CellMode::Mlc => "mlc",
    }
}

/// Between which pages a chip copies inside.
pub(crate) fn copies_name(rule: CopyRule) -> &'static str {
    match rule {
        CopyRule::Never => "never",
        CopyRule::Die => "in a die",
        CopyRule::Plane => "in a plane",
        CopyRule::Parity => "in a plane, even to even and odd to odd blocks",
    }
}

pub(crate) fn pairing_name(pairing: &Pairing) -> &'static str {
    match pairing {
        Pairing::None => "none",
        Pairing::SchemeA => "scheme-a",
        Pairing::Dist3 => "dist3",
        Pairing::Table(_) => "table",
    }
}

pub(crate) fn geometry(geometry: &Geometry) -> Value {
    json!({
        "capacity_size": geometry.capacity(),
        "page_size": geometry.page_size,
        "spare_size": geometry.spare_size,
        "tag_size": geometry.tag_size,
        "pages_per_block": geometry.pages_per_block,
        "block_count": geometry.block_count,
        "pairing": pairing_name(&geometry.pairing),
        "order": match geometry.order {
            ProgramOrder::Ascending => "ascending",
            ProgramOrder::Any => "any",
        },
        "programs_per_page": geometry.programs_per_page,
        "program_unit_size": geometry.program_unit,
        "tear": match geometry.tear {
            TearScope::Range => "range",
            TearScope::Page => "page",
            TearScope::Pair => "pair",
        },
        "ecc_codeword_size": geometry.ecc.codeword_size,
        "ecc_correctable_bits": geometry.ecc.correctable_bits,
        "endurance_erases": geometry.endurance,
        "bad_block_max": geometry.bad_block_max,
        "plane_count": geometry.plane_count,
        "die_count": geometry.die_count,
        "copies": copies_name(geometry.copies),
    })
}

pub(crate) fn timing(timing: &Timing) -> Value {
    json!({
        "read_lsb_ns": timing.read_lsb_ns,
        "read_msb_ns": timing.read_msb_ns,
        "program_lsb_ns": timing.program_lsb_ns,
        "program_msb_ns": timing.program_msb_ns,
        "erase_ns": timing.erase_ns,
        "bus_byte_ps": timing.bus.byte_ps,
        "bus_command_ns": timing.bus.command_ns,
    })
}

pub(crate) fn counters(counters: &Counters) -> Value {
    json!({
        "reads": counters.reads,
        "programs": counters.programs,
        "partial_programs": counters.partial_programs,
        "erases": counters.erases,
        "copies": counters.copies,
        "mark_checks": counters.mark_checks,
        "marks": counters.marks,
        "bytes_out": counters.bytes_out,
        "bytes_in": counters.bytes_in,
        "busy_ns": counters.busy_ns,
    })
}

/// The causes that something was booked to.
pub(crate) fn ledger(ledger: &Ledger) -> Value {
    let booked = booked(ledger).map(|(cause, entry)| (cause.name().to_owned(), counters(entry)));
    Value::Object(booked.collect::<Map<_, _>>())
}

fn booked(ledger: &Ledger) -> impl Iterator<Item = (Cause, &Counters)> {
    ledger.iter().filter(|(_, entry)| **entry != Counters::ZERO)
}

/// The share of each booked cause in the time, percent; they add up to 100.
pub(crate) fn ledger_shares(ledger: &Ledger) -> Vec<(&'static str, f64)> {
    let times: Vec<u64> = booked(ledger).map(|(_, entry)| entry.busy_ns).collect();
    booked(ledger).map(|(cause, _)| cause.name()).zip(units::percents(&times)).collect()
}

/// The ledger as a table, with shares of the time.
pub(crate) fn ledger_table(ledger: &Ledger) -> String {
    causes_table(&booked(ledger).map(|(cause, entry)| (cause, *entry)).collect::<Vec<_>>())
}

/// What was done for some causes as a table, with shares of the time.
pub(crate) fn causes_table(causes: &[(Cause, Counters)]) -> String {
    let mut table = plain_table();
    table.set_header(["cause", "reads", "programs", "partial", "erases", "bytes in", "bytes out", "time", "share"]);
    let times: Vec<u64> = causes.iter().map(|(_, entry)| entry.busy_ns).collect();
    let mut total = Counters::ZERO;
    let mut row = |name: &str, entry: &Counters, share: f64| {
        table.add_row([
            name.to_owned(),
            units::count_of(entry.reads),
            units::count_of(entry.programs),
            units::count_of(entry.partial_programs),
            units::count_of(entry.erases),
            units::count_of(entry.bytes_in),
            units::count_of(entry.bytes_out),
            units::duration_ns(entry.busy_ns),
            format!("{share:.2} %"),
        ]);
    };
    for ((cause, entry), share) in causes.iter().zip(units::percents(&times)) {
        total.add(entry);
        row(cause.name(), entry, share);
    }
    row("total", &total, if total.busy_ns == 0 { 0.0 } else { 100.0 });
    render(table)
}

/// The same in fewer columns.
pub(crate) fn brief_causes_table(causes: &[(Cause, Counters)]) -> String {
    let mut table = plain_table();
    table.set_header(["cause", "reads", "programs", "erases", "time", "share"]);
    let times: Vec<u64> = causes.iter().map(|(_, entry)| entry.busy_ns).collect();
    let mut total = Counters::ZERO;
    let mut row = |name: &str, entry: &Counters, share: f64| {
        table.add_row([
            name.to_owned(),
            units::count_of(entry.reads),
            units::count_of(entry.programs),
            units::count_of(entry.erases),
            format!("{:.3} s", entry.busy_ns as f64 / 1e9),
            format!("{share:.2} %"),
        ]);
    };
    for ((cause, entry), share) in causes.iter().zip(units::percents(&times)) {
        total.add(entry);
        row(cause.name(), entry, share);
    }
    row("total", &total, if total.busy_ns == 0 { 0.0 } else { 100.0 });
    render(table)
}

/// A table without lines.
pub(crate) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// A table with its numbers, all but the first column, to the right.
pub(crate) fn render(table: Table) -> String {
    render_aligned(table, &[0])
}

/// A table with its numbers to the right; the columns that are text are named.
pub(crate) fn render_aligned(mut table: Table, text: &[usize]) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for (_, column) in table.column_iter_mut().enumerate().filter(|(index, _)| !text.contains(index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
