//! The records go onto the chip.

use nandu::Edit;
use serde_json::{Map, Value, json};

use super::guide::Guide;
use super::{Model, Records, fail};
use crate::progress::Progress;
use crate::units;

/// Records in a batch.
const BATCH_RECORDS: usize = 256;

pub(super) fn run(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    model: &Model,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    guide.step("Storing them")?;
    let before = *store.nand().counters();
    let mut progress = Progress::new("   storing");
    let records: Vec<(&[u8], [u8; super::Facts::SIZE])> =
        model.iter().map(|(key, facts)| (key.as_slice(), facts.to_bytes())).collect();
    let mut batches = 0_u64;
    for batch in records.chunks(BATCH_RECORDS) {
        let edits: Vec<Edit<'_>> = batch.iter().map(|(key, value)| Edit { key, value: Some(value) }).collect();
        store.batch(&edits).map_err(fail)?;
        batches += 1;
        progress.set(batches * BATCH_RECORDS as u64, records.len() as u64);
    }
    drop(progress);
    let cost = store.nand().counters().since(&before);
    let stats = store.stats();
    guide.say(&format!(
        "In batches of {BATCH_RECORDS}, each of them whole or absent: {}, {:.3} a record, {} of the chip's time.",
        units::things(cost.programs, "page program"),
        cost.programs as f64 / records.len() as f64,
        units::duration_ns(cost.busy_ns / 1_000_000 * 1_000_000)
    ))?;
    guide.say(&format!(
        "They are a tree of {} on {} of the {} that the chip has room for.",
        units::things(store.height().into(), "level"),
        units::things(stats.live_pages.into(), "page"),
        units::count_of(stats.capacity_pages.into())
    ))?;
    report.insert(
        "load".to_owned(),
        json!({
            "batches": batches,
            "programs": cost.programs,
            "busy_ns": cost.busy_ns,
            "height": store.height(),
            "live_pages": stats.live_pages,
            "capacity_pages": stats.capacity_pages,
        }),
    );
    Ok(())
}
