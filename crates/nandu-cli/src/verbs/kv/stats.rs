//! `nandu kv stats`: a store in figures.

use std::path::PathBuf;

use clap::Args;
use nandu::LogStats;
use nandu_sim::{Counters, Ledger};
use serde_json::{Value, json};

use crate::output::Output;
use crate::store::{self, CacheArgs};
use crate::{report, session, units};

#[derive(Args, Debug)]
pub(crate) struct Stats {
    /// The image; it stays as it is
    image: PathBuf,
    #[command(flatten)]
    cache: CacheArgs,
}

/// What is asked of an open store.
struct Figures {
    records: u64,
    height: u8,
    key_size_max: usize,
    entry_size_max: usize,
    pending: usize,
    mount: Counters,
    log: LogStats,
}

pub(crate) fn run(args: &Stats, out: &mut Output) -> anyhow::Result<()> {
    let mut sim = session::look(&args.image)?;
    sim.power_on();
    // What the image has seen, without this look at it.
    let ledger = sim.ledger().clone();
    let endurance = sim.chip().geometry.endurance;
    let before = *sim.counters();
    let options = args.cache.options();
    let mut memory = store::memory(&sim, &options);
    let memory_size = memory.len();
    let explain = |error| store::explain(&args.image, error);
    let store = nandu::Store::open(&mut sim, options, &mut memory).map_err(explain)?;
    let figures = Figures {
        records: store.record_count(),
        height: store.height(),
        key_size_max: store.key_size_max(),
        entry_size_max: store.entry_size_max(),
        pending: store.pending_count(),
        mount: store.nand().counters().since(&before),
        log: store.stats(),
    };
    if out.is_json() {
        return print_json(args, &figures, memory_size, &ledger, out);
    }
    print_text(args, &figures, memory_size, endurance, out)?;
    writeln!(out, "\n{}", report::ledger_table(&ledger))?;
    Ok(())
}

fn print_json(
    args: &Stats,
    figures: &Figures,
    memory_size: usize,
    ledger: &Ledger,
    out: &mut Output,
) -> anyhow::Result<()> {
    let log = &figures.log;
    let mut causes = report::ledger(ledger);
    for (name, percent) in report::ledger_shares(ledger) {
        causes[name]["time_percent"] = Value::from(percent);
    }
    out.json(&json!({
        "image": args.image.display().to_string(),
        "records": figures.records,
        "height": figures.height,
        "live_pages": log.live_pages,
        "capacity_pages": log.capacity_pages,
        "free_blocks": log.pool_blocks,
        "bad_blocks": log.bad_blocks,
        "damaged_blocks": log.damaged_blocks,
        "erase_count_min": log.erase_count_min,
        "erase_count_mean": log.erase_count_mean,
        "erase_count_max": log.erase_count_max,
        "key_size_max": figures.key_size_max,
        "entry_size_max": figures.entry_size_max,
        "pending": figures.pending,
        "memory_size": memory_size,
        "cache_size": args.cache.cache,
        "clean": !log.was_cut,
        "mount": report::counters(&figures.mount),
        "ledger": causes,
    }))?;
    Ok(())
}

fn print_text(
    args: &Stats,
    figures: &Figures,
    memory_size: usize,
    endurance: u32,
    out: &mut Output,
) -> anyhow::Result<()> {
    let log = &figures.log;
    let number = |count: u32| units::count_of(count.into());
    writeln!(out, "{}: {}\n", args.image.display(), units::things(figures.records, "record"))?;
    writeln!(out, "tree        {}", units::things(figures.height.into(), "level"))?;
    writeln!(
        out,
        "pages       {} of {} live ({:.2} %)",
        number(log.live_pages),
        number(log.capacity_pages),
        units::percent(log.live_pages.into(), log.capacity_pages.into())
    )?;
    let blocks = [(log.pool_blocks, "free"), (log.bad_blocks, "bad"), (log.damaged_blocks, "damaged")];
    let blocks: Vec<String> = blocks.iter().map(|(count, what)| format!("{} {what}", number(*count))).collect();
    writeln!(out, "blocks      {}", blocks.join(", "))?;
    writeln!(
        out,
        "erases      {} to {} a block, mean {}; rated for {}",
        number(log.erase_count_min),
        number(log.erase_count_max),
        number(log.erase_count_mean),
        number(endurance)
    )?;
    if figures.pending > 0 {
        let pending = units::things(figures.pending as u64, "change");
        writeln!(out, "pending     {pending} in journal pages, for the next change to bring to their leaves")?;
    }
    writeln!(
        out,
        "limits      keys to {} bytes, a key and its value to {}",
        figures.key_size_max, figures.entry_size_max
    )?;
    writeln!(
        out,
        "memory      {} bytes, {} of them cache, {} for changes that wait",
        units::count_of(memory_size as u64),
        number(args.cache.cache),
        units::count_of(args.cache.options().pending_size as u64)
    )?;
    let left = if log.was_cut { "the power was cut" } else { "left cleanly" };
    writeln!(
        out,
        "mount       {left}; {}, {}",
        units::things(figures.mount.reads, "page read"),
        units::duration_ns(figures.mount.busy_ns)
    )?;
    Ok(())
}
