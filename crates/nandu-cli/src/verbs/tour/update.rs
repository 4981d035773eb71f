//! Changing records, one at a time, each durable before the next.

use nandu_nand::Cause;
use nandu_sim::{Counters, Ledger};
use serde_json::{Map, Value, json};

use super::guide::Guide;
use super::{Dice, Model, Records, fail};
use crate::progress::Progress;
use crate::report as tables;
use crate::units;

/// Changes for each record, and in all: several times as many as the chip has pages, so that for most of them blocks have
/// to be emptied.
const UPDATES_PER_RECORD: u64 = 3;
const UPDATES_MAX: u64 = 500_000;

/// Time of the first change; each one is a second later.
pub(super) const TOUCHED_S: i64 = 1_800_000_000;

pub(super) fn run(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    model: &mut Model,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    guide.step("Changing them")?;
    let updates = (model.len() as u64 * UPDATES_PER_RECORD).min(UPDATES_MAX);
    let pages = u64::from(store.nand().chip().geometry.page_count());
    let why =
        if updates > pages { ", and more than the chip has pages, so that blocks are emptied on the way" } else { "" };
    guide.say(&format!("{} random touches, each durable before the next{why}.", units::count_of(updates)))?;
    let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
    let before = store.nand().ledger().clone();
    let (mut dice, mut worst_ns) = (Dice(2), 0);
    let mut progress = Progress::new("   touching");
    for count in 0..updates {
        let key = &keys[dice.below(keys.len())];
        let Some(facts) = model.get_mut(key) else { continue };
        facts.modified_s = TOUCHED_S + count as i64;
        let start_ns = store.nand().clock_ns();
        store.put(key, &facts.to_bytes()).map_err(fail)?;
        worst_ns = worst_ns.max(store.nand().clock_ns() - start_ns);
        if count % 1024 == 0 {
            progress.set(count, updates);
        }
    }
    drop(progress);
    let causes = since(store.nand().ledger(), &before);
    summarise(guide, updates, &causes, worst_ns, report)
}

/// What was booked to each cause since then.
fn since(ledger: &Ledger, before: &Ledger) -> Vec<(Cause, Counters)> {
    let causes = ledger.iter().map(|(cause, entry)| (cause, entry.since(before.of(cause))));
    causes.filter(|(_, entry)| *entry != Counters::ZERO).collect()
}

fn summarise(
    guide: &mut Guide<'_>,
    updates: u64,
    causes: &[(Cause, Counters)],
    worst_ns: u64,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let mut total = Counters::ZERO;
    causes.iter().for_each(|(_, entry)| total.add(entry));
    let asked = causes.iter().filter(|(cause, _)| matches!(cause, Cause::Host | Cause::Tree));
    let asked: u64 = asked.map(|(_, entry)| entry.programs).sum();
    let each = |count: u64| count as f64 / updates as f64;
    let amplification = total.programs as f64 / asked.max(1) as f64;
    guide.say(&format!(
        "Each took {:.3} page programs and {:.2} page reads, everything included; {} on average, {} at worst. Where \
         the time went:",
        each(total.programs),
        each(total.reads),
        units::duration_ns(total.busy_ns / updates / 1000 * 1000),
        units::duration_ns(worst_ns / 1000 * 1000)
    ))?;
    guide.table(&tables::brief_causes_table(causes))?;
    report.insert(
        "updates".to_owned(),
        json!({
            "count": updates,
            "programs": total.programs,
            "programs_per_update": each(total.programs),
            "reads_per_update": each(total.reads),
            "erases": total.erases,
            "busy_ns": total.busy_ns,
            "worst_ns": worst_ns,
            "write_amplification": amplification,
            "causes": causes.iter().map(|(cause, entry)| (cause.name().to_owned(), tables::counters(entry)))
                .collect::<Map<_, _>>(),
        }),
    );
    Ok(())
}
