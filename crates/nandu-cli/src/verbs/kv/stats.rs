//! `nandu kv stats`: an index in figures.

use std::path::PathBuf;

use clap::Args;
use nandu::LogStats;
use nandu_inpage::{Cells, Size};
use nandu_media::inpage::anchor::AnchorFields;
use nandu_sim::{Counters, Ledger};
use serde_json::{Value, json};

use crate::index::{self, Index, IndexArgs, IndexError, Plan, Use};
use crate::kind::Kind;
use crate::output::Output;
use crate::{inpage, report, session, units};

#[derive(Args, Debug)]
pub(crate) struct Stats {
    /// The image; it stays as it is
    image: PathBuf,
    #[command(flatten)]
    index: IndexArgs,
}

/// What is asked of an open index.
struct Figures {
    records: u64,
    height: u8,
    key_size_max: usize,
    entry_size_max: usize,
    mount: Counters,
    kept: Kept,
}

/// What one kind of index alone knows.
enum Kept {
    Tree { pending: usize, log: LogStats },
    InPage { kind: Kind, size: Size, was_cut: bool, fields: AnchorFields },
}

pub(crate) fn run(args: &Stats, out: &mut Output) -> anyhow::Result<()> {
    let mut flash = session::look(&args.image)?;
    flash.power_on();
    let is_device = flash.sim().is_none();
    // What the image has seen, without this look at it.
    let ledger = flash.ledger().clone();
    let endurance = flash.chip().geometry.endurance;
    let before = *flash.counters();
    let found = index::identify(&args.image, &flash, args.index.index)?;
    let mut plan = Plan::new(&flash, found, args.index.cache, Use::Single);
    let memory_size = plan.memory.len();
    let explain = |error: IndexError| index::explain(&args.image, error);
    let mut index = plan.open(&mut flash).map_err(explain)?;
    let mount = index.flash().counters().since(&before);
    let figures = Figures {
        records: index.record_count().map_err(explain)?,
        height: index.height(),
        key_size_max: index.key_size_max(),
        entry_size_max: index.entry_size_max(),
        mount,
        kept: match (&index, found.fields) {
            (Index::InPage(index, kind, _), Some(fields)) => {
                Kept::InPage { kind: *kind, size: index.size(), was_cut: index.was_cut(), fields }
            }
            (Index::Tree(store), _) => Kept::Tree { pending: store.pending_count(), log: store.stats() },
            (Index::InPage(..), None) => return Err(explain(nandu_inpage::Error::NotFormatted.into())),
        },
    };
    if out.is_json() {
        return print_json(args, &figures, memory_size, &ledger, out);
    }
    print_text(args, &figures, memory_size, endurance, out)?;
    // Nobody counted what a device has seen.
    if !is_device {
        writeln!(out, "\n{}", report::ledger_table(&ledger))?;
    }
    Ok(())
}

fn print_json(
    args: &Stats,
    figures: &Figures,
    memory_size: usize,
    ledger: &Ledger,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut causes = report::ledger(ledger);
    for (name, percent) in report::ledger_shares(ledger) {
        causes[name]["time_percent"] = Value::from(percent);
    }
    let mut object = match &figures.kept {
        Kept::Tree { pending, log } => json!({
            "index": Kind::Mutree.name(),
            "live_pages": log.live_pages,
            "capacity_pages": log.capacity_pages,
            "free_blocks": log.pool_blocks,
            "bad_blocks": log.bad_blocks,
            "damaged_blocks": log.damaged_blocks,
            "erase_count_min": log.erase_count_min,
            "erase_count_mean": log.erase_count_mean(),
            "erase_count_max": log.erase_count_max,
            "pending": pending,
            "clean": !log.was_cut,
        }),
        Kept::InPage { kind, size, was_cut, fields } => json!({
            "index": kind.name(),
            "nodes": size.nodes,
            "used_blocks": size.blocks_used,
            "free_blocks": size.blocks_free,
            "bad_blocks": size.blocks_bad,
            "erase_count_mean": size.erase_count_mean,
            "erase_count_max": size.erase_count_max,
            "layout": if fields.layout == 1 { "sectors" } else { "pages" },
            "sector_size": fields.sector_size,
            "node_pages": u32::from(fields.more_pages) + 1,
            "clean": !was_cut,
        }),
    };
    let common = json!({
        "image": args.image.display().to_string(),
        "records": figures.records,
        "height": figures.height,
        "key_size_max": figures.key_size_max,
        "entry_size_max": figures.entry_size_max,
        "memory_size": memory_size,
        "cache_size": args.index.cache.cache,
        "mount": report::counters(&figures.mount),
        "ledger": causes,
    });
    if let (Some(object), Value::Object(common)) = (object.as_object_mut(), common) {
        object.extend(common);
    }
    out.json(&object)?;
    Ok(())
}

fn print_text(
    args: &Stats,
    figures: &Figures,
    memory_size: usize,
    endurance: u32,
    out: &mut Output,
) -> anyhow::Result<()> {
    writeln!(out, "{}: {}\n", args.image.display(), units::things(figures.records, "record"))?;
    writeln!(out, "tree        {}", units::things(figures.height.into(), "level"))?;
    let was_cut = match &figures.kept {
        Kept::Tree { pending, log } => {
            print_tree(log, *pending, endurance, out)?;
            log.was_cut
        }
        Kept::InPage { kind, size, was_cut, fields } => {
            print_inpage(*kind, size, fields, endurance, out)?;
            *was_cut
        }
    };
    let cells = match &figures.kept {
        Kept::InPage { fields, .. } if fields.cells != Cells::Bytes => inpage::describe_cells(fields.cells),
        _ => format!("keys to {} bytes, a key and its value to {}", figures.key_size_max, figures.entry_size_max),
    };
    writeln!(out, "limits      {cells}")?;
    let cache = units::count_of(args.index.cache.cache.into());
    let pending = match &figures.kept {
        Kept::Tree { .. } => {
            let size = args.index.cache.options().pending_size;
            format!(", {} for changes that wait", units::count_of(size as u64))
        }
        Kept::InPage { .. } => String::new(),
    };
    let memory = units::count_of(memory_size as u64);
    writeln!(out, "memory      {memory} bytes, {cache} of them cache{pending}")?;
    let left = if was_cut { "the power was cut" } else { "left cleanly" };
    writeln!(
        out,
        "mount       {left}; {}, {}",
        units::things(figures.mount.reads, "page read"),
        units::duration_ns(figures.mount.busy_ns)
    )?;
    Ok(())
}

fn number(count: u32) -> String {
    units::count_of(count.into())
}

fn print_tree(log: &LogStats, pending: usize, endurance: u32, out: &mut Output) -> anyhow::Result<()> {
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
        number(log.erase_count_mean()),
        number(endurance)
    )?;
    if pending > 0 {
        let pending = units::things(pending as u64, "change");
        writeln!(out, "pending     {pending} in commits, for the next ones to bring to their leaves")?;
    }
    Ok(())
}

fn print_inpage(
    kind: Kind,
    size: &Size,
    fields: &AnchorFields,
    endurance: u32,
    out: &mut Output,
) -> anyhow::Result<()> {
    writeln!(out, "index       {kind}, {}", inpage::describe_layout(fields))?;
    let nodes = units::things(size.nodes.into(), "node");
    writeln!(out, "nodes       {nodes} in {}", units::things(size.blocks_used.into(), "block"))?;
    writeln!(out, "blocks      {} free, {} bad", number(size.blocks_free), number(size.blocks_bad))?;
    writeln!(
        out,
        "erases      to {} a block, mean {}; rated for {}",
        number(size.erase_count_max),
        number(size.erase_count_mean),
        number(endurance)
    )?;
    Ok(())
}
