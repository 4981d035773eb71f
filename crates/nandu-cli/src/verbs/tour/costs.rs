//! The bill, beside what simpler designs would pay.

use nandu_sim::Sim;
use serde_json::{Map, Value, json};

use super::Model;
use super::facts::Facts;
use super::guide::Guide;
use crate::report as tables;
use crate::units;

pub(super) fn run(
    guide: &mut Guide<'_>,
    sim: &Sim,
    records: &Model,
    memory_size: usize,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    guide.step("The bill")?;
    let figure = |step: &str, name: &str| report.get(step).and_then(|step| step[name].as_f64()).unwrap_or(0.0);
    let (geometry, timing) = (&sim.chip().geometry, &sim.chip().timing);
    let pages = u64::from(geometry.page_count());
    let height = naive_height(records, geometry.page_size.into());
    // A block full of live pages, emptied in one go: each is read, moved over the bus twice and programmed.
    let bus_ns =
        u64::from(geometry.page_size) * u64::from(timing.bus.byte_ps) / 1000 + u64::from(timing.bus.command_ns);
    let copy_ns = u64::from(timing.read_lsb_ns) + u64::from(timing.program_lsb_ns) + 2 * bus_ns;
    let stall_ns = u64::from(geometry.pages_per_block) * copy_ns + u64::from(timing.erase_ns);
    let rows = [
        (
            "programs per durable update",
            format!("{:.3}", figure("updates", "programs_per_update")),
            height.to_string(),
            "each level written anew",
        ),
        (
            "reads per lookup",
            format!("{:.2}", figure("lookups", "reads_per_lookup")),
            height.to_string(),
            "no level in memory",
        ),
        (
            "reads to open after a cut",
            format!("{:.0}", figure("cuts", "mount_reads_max")),
            units::count_of(pages),
            "every page looked at",
        ),
        (
            "worst update, without a cut",
            format!("{:.1} ms", figure("updates", "worst_ns") / 1e6),
            format!("{:.1} ms", stall_ns as f64 / 1e6),
            "a full block moved at once",
        ),
        ("memory", units::bytes(memory_size as u64), units::bytes(pages * 4), "a table of all pages"),
    ];
    let mut table = tables::plain_table();
    table.set_header(["", "nandu", "naive", "which is"]);
    for (what, ours, naive, why) in &rows {
        table.add_row([what, &ours[..], naive, why]);
    }
    guide.table(&tables::render_aligned(table, &[0, 3]))?;
    guide.aside(
        "nandu: measured on this chip just now. Naive: arithmetic, nothing of it was run: a B+-tree with a node in each \
         page, 70 % full, that writes its path anew; without cache, checkpoint and instalments.",
    )?;
    let amplification = figure("updates", "write_amplification");
    guide.say(&format!(
        "Write amplification of the updates: {amplification:.3}, pages programmed for any reason by pages that updates \
         asked for."
    ))?;
    guide.say("Everything the chip did in this tour, by cause:")?;
    let causes = sim.ledger().iter().filter(|(_, entry)| entry.busy_ns > 0);
    let causes: Vec<_> = causes.map(|(cause, entry)| (cause, *entry)).collect();
    guide.table(&tables::brief_causes_table(&causes))?;
    report.insert(
        "naive".to_owned(),
        json!({
            "programs_per_update": height,
            "reads_per_lookup": height,
            "mount_reads": pages,
            "worst_update_ns": stall_ns,
            "memory_size": pages * 4,
        }),
    );
    report.insert("ledger".to_owned(), tables::ledger(sim.ledger()));
    Ok(())
}

/// Levels of a B+-tree of these records whose nodes are pages, 70 % full.
fn naive_height(records: &Model, page_size: f64) -> u32 {
    let room = page_size * 0.7;
    let count = records.len().max(1) as f64;
    let key_size = records.keys().map(Vec::len).sum::<usize>() as f64 / count;
    // Four bytes for the address of a child, two to find an entry in the page.
    let (entry_size, child_size) = (key_size + Facts::SIZE as f64 + 2.0, key_size + 6.0);
    let leaves = (count * entry_size / room).ceil();
    1 + leaves.log(room / child_size).max(0.0).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_naive_tree_has_as_many_levels_as_its_records_need() {
        let facts = Facts { size: 0, modified_s: 0, mode: 0, number: 0 };
        let height = |count: u32| {
            let records = (0..count).map(|number| (number.to_be_bytes().to_vec(), facts)).collect();
            naive_height(&records, 2048.0)
        };
        // 47 records in a leaf, 143 children in a node.
        assert_eq!((height(1), height(47), height(48), height(6_700), height(7_000)), (1, 1, 2, 2, 3));
    }
}
