//! Reading the records: in order, by range, by key.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};

use anyhow::bail;
use nandu::{Direction, Entry};
use serde_json::{Map, Value, json};

use super::census::Census;
use super::facts::{self, Facts};
use super::guide::Guide;
use super::{Dice, Model, Records, fail};
use crate::{record, units};

/// Lookups whose cost is averaged.
const LOOKUPS: u64 = 20_000;

/// Entries of a directory that are shown.
const SHOWN: usize = 5;

pub(super) fn run(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    census: &Census,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    guide.step("Asking for them in order")?;
    let first = store.first().map_err(fail)?.map(|entry| census.path(entry.key)).unwrap_or_default();
    let last = store.last().map_err(fail)?.map(|entry| census.path(entry.key)).unwrap_or_default();
    let room = guide.width() - 11;
    guide.line(&format!("first   {}", shortened(&first, room)))?;
    guide.line(&format!("last    {}", shortened(&last, room)))?;
    list_directory(guide, store, census, report)?;
    look_up(guide, store, &census.records, report)
}

/// Visits all records in order, as long as `visit` says so.
pub(super) fn all(store: &mut Records<'_>, mut visit: impl FnMut(Entry<'_>) -> bool) -> anyhow::Result<()> {
    store
        .range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            if visit(entry) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .map_err(fail)
}

/// The directory with the most entries, and the largest files in it, by one range.
fn list_directory(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    census: &Census,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for key in census.records.keys() {
        *counts.entry(facts::parts(key).0).or_default() += 1;
    }
    let Some((directory, _)) = counts.into_iter().max_by_key(|&(directory, count)| (count, directory)) else {
        return Ok(());
    };
    let (from, to) = (facts::key(directory, b""), facts::key(directory + 1, b""));
    let before = *store.nand().counters();
    let mut entries = Vec::new();
    store
        .range(Bound::Included(&from), Bound::Excluded(&to), Direction::Forward, |entry| {
            if let Some(facts) = Facts::from_bytes(entry.value) {
                entries.push((facts.size, record::shown(facts::parts(entry.key).1), facts.day()));
            }
            ControlFlow::Continue(())
        })
        .map_err(fail)?;
    let cost = store.nand().counters().since(&before);
    entries.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let path = census.directories[directory as usize].display().to_string();
    guide.say(&format!(
        "The fullest directory is {path}: its {} files were listed by one range, in {}. The largest of them:",
        units::count_of(entries.len() as u64),
        units::things(cost.reads, "page read")
    ))?;
    let room = guide.width().saturating_sub(34);
    for (size, name, day) in entries.iter().take(SHOWN) {
        guide.line(&format!("{:>14}  {day}  {}", units::count_of(*size), shortened(name, room)))?;
    }
    report.insert(
        "directory".to_owned(),
        json!({
            "path": path,
            "entries": entries.len(),
            "reads": cost.reads,
            "largest": entries.iter().take(SHOWN).map(|entry| json!({ "name": entry.1, "size": entry.0 }))
                .collect::<Vec<_>>(),
        }),
    );
    Ok(())
}

fn look_up(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    model: &Model,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut dice = Dice(1);
    let before = *store.nand().counters();
    for _ in 0..LOOKUPS {
        let key = keys[dice.below(keys.len())];
        let found = store.get(key).map_err(fail)?.and_then(Facts::from_bytes);
        if found.as_ref() != model.get(key) {
            bail!("the store does not give back what was put");
        }
    }
    let cost = store.nand().counters().since(&before);
    let reads = cost.reads as f64 / LOOKUPS as f64;
    guide.say(&format!(
        "{} by random keys: {reads:.2} page reads each, {} of the chip's time.",
        units::things(LOOKUPS, "lookup"),
        units::duration_ns(cost.busy_ns / LOOKUPS / 1000 * 1000)
    ))?;
    report
        .insert("lookups".to_owned(), json!({ "count": LOOKUPS, "reads_per_lookup": reads, "busy_ns": cost.busy_ns }));
    Ok(())
}

/// Text that fits so many columns; what is too long loses its middle.
pub(super) fn shortened(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room || room < 8 {
        return text.to_owned();
    }
    let head = (room - 3) / 2;
    let tail = room - 3 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijklm", 10), "abc...jklm");
    }
}
