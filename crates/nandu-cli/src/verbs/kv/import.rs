//! `nandu kv import`: the records of a file.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use nandu::{Durability, Edit};
use serde_json::json;

use super::columns::Wishes;
use super::formats::Format;
use super::lines::{Bad, Lines};
use crate::failure::usage;
use crate::index::{self, Index, IndexArgs, IndexError, Use};
use crate::output::Output;
use crate::progress::Progress;
use crate::session::SessionArgs;
use crate::units;

#[derive(Args, Debug)]
pub(crate) struct Import {
    #[command(flatten)]
    session: SessionArgs,
    /// The file; - is standard input
    file: PathBuf,
    /// How its records are written; by the ending of its name if not given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The column or field that is the key, by name, or a column by number from 1; else the one called key, or the first
    #[arg(long, value_name = "COLUMN|FIELD")]
    key: Option<String>,
    /// The column or field that is the value; several, or all others, become JSON
    #[arg(long, value_name = "COLUMN|FIELD")]
    value: Vec<String>,
    /// The first line of a table names its columns, which is clear if --key or --value gives a name
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The first line of a table is a record; where it looks like names of columns, one of the two has to be said
    #[arg(long)]
    no_header: bool,
    /// Go on after a line that cannot be used, and count it
    #[arg(long)]
    skip_bad: bool,
    /// Records that are put together, in order, wholly or not at all (with on-sync: between two syncs); 1 makes each durable by
    /// itself
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    /// When records are durable: with their batch, or each batch at a sync, which takes fewer programs where keys come in no order
    #[arg(long, value_enum, default_value_t = When::Immediate)]
    durability: When,
    #[command(flatten)]
    index: IndexArgs,
}

/// When records are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// Each batch goes to its leaves at once
    Immediate,
    /// Each batch is in a commit or more, and goes to its leaves later; all are there when the import ends
    OnSync,
}

impl When {
    fn name(self) -> &'static str {
        match self {
            When::Immediate => "immediate",
            When::OnSync => "on-sync",
        }
    }
}

/// What an import did.
#[derive(Default)]
struct Tally {
    records: u64,
    added: u64,
    bad: u64,
    batches: u64,
    programs: u64,
    busy_ns: u64,
}

pub(crate) fn run(args: &Import, out: &mut Output) -> anyhow::Result<()> {
    let is_stdin = args.file.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { args.file.display().to_string() };
    let Some(format) = args.format.or_else(|| Format::of(&args.file)) else {
        return usage(format!("the name of {name} says no format; give --format csv, jsonl or tsv"));
    };
    let (reader, size): (Box<dyn Read>, u64) = if is_stdin {
        (Box::new(io::stdin()), 0)
    } else {
        let file = File::open(&args.file).with_context(|| name.clone())?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(file), size)
    };
    let read_size = Rc::new(Cell::new(0));
    let reader = Counted { reader, size: Rc::clone(&read_size) };
    let header = (args.header || args.no_header).then_some(args.header);
    let wishes = Wishes { key: args.key.as_deref(), values: &args.value, header };
    let mut lines = Lines::new(reader, format, wishes);
    let mut progress = Progress::new("importing");
    let durability = match args.durability {
        When::Immediate => Durability::Immediate,
        When::OnSync => Durability::OnSync,
    };
    let tally = index::change(&args.session, args.index, Use::Many(durability), |index| {
        let before = *index.flash().counters();
        let mut loader =
            Loader { image: &args.session.image, when: args.durability, batch: Vec::new(), tally: Tally::default() };
        while let Some(line) = lines.next().with_context(|| name.clone())? {
            let content = line.content.and_then(|(key, value)| match index.refusal(&key, &value) {
                Some(why) => Err(Bad::Line(why)),
                None => Ok((key, value)),
            });
            match content {
                // What does not fit a leaf is no part of a batch: it is put by itself, in its turn.
                Ok((key, value)) if index.is_large(&key, &value) => {
                    loader.flush(index)?;
                    loader.put_alone(index, &key, &value)?;
                }
                Ok(record) => loader.batch.push(record),
                Err(Bad::Line(why)) if args.skip_bad => {
                    loader.tally.bad += 1;
                    eprintln!("nandu: {name}: line {}: {why}; skipped", line.number);
                }
                Err(Bad::Line(why)) => {
                    bail!("{name}: line {}: {why}; nothing was imported (--skip-bad goes on)", line.number)
                }
                Err(Bad::File(why)) => return usage(format!("{name}: {why}")),
            }
            if loader.batch.len() == args.batch as usize {
                loader.flush(index)?;
                progress.set(read_size.get().min(size), size);
            }
        }
        loader.flush(index)?;
        // Whoever opens the index next needs no memory for changes.
        index.merge().map_err(|error| index::explain(&args.session.image, error))?;
        let cost = index.flash().counters().since(&before);
        Ok(Tally { programs: cost.programs, busy_ns: cost.busy_ns, ..loader.tally })
    })?;
    drop(progress);
    print(args, &name, format, lines.has_header(), &tally, out)
}

/// Records on their way into the index.
struct Loader<'a> {
    image: &'a Path,
    when: When,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    tally: Tally,
}

impl Loader<'_> {
    /// Puts what was read, in order. Of records with the same key the last one counts.
    fn flush(&mut self, index: &mut Index<'_>) -> anyhow::Result<()> {
        let explain = |error| index::explain(self.image, error);
        let before = index.record_count().map_err(explain)?;
        self.tally.records += self.batch.len() as u64;
        if self.when == When::OnSync {
            for (key, value) in self.batch.drain(..) {
                index.put(&key, &value).map_err(explain)?;
            }
            index.sync().map_err(explain)?;
            self.tally.batches += 1;
            self.tally.added += index.record_count().map_err(explain)? - before;
            return Ok(());
        }
        self.batch.reverse();
        self.batch.sort_by(|one, other| one.0.cmp(&other.0));
        self.batch.dedup_by(|later, kept| later.0 == kept.0);
        let edits: Vec<Edit<'_>> = self.batch.iter().map(|(key, value)| Edit { key, value: Some(value) }).collect();
        put(index, &edits, &mut self.tally.batches).map_err(explain)?;
        self.batch.clear();
        self.tally.added += index.record_count().map_err(explain)? - before;
        Ok(())
    }
}

impl Loader<'_> {
    /// Puts a large value.
    fn put_alone(&mut self, index: &mut Index<'_>, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let was_there = index.put(key, value).map_err(|error| index::explain(self.image, error))?;
        self.tally.records += 1;
        self.tally.added += u64::from(!was_there);
        self.tally.batches += 1;
        Ok(())
    }
}

/// Puts records as one batch; where a chip has no room for so large a one, as smaller ones.
fn put(index: &mut Index<'_>, edits: &[Edit<'_>], batches: &mut u64) -> Result<(), IndexError> {
    if edits.is_empty() {
        return Ok(());
    }
    match index.batch(edits) {
        Err(error) if error.is_too_much() && edits.len() > 1 => {
            let (first, second) = edits.split_at(edits.len() / 2);
            put(index, first, batches)?;
            put(index, second, batches)
        }
        outcome => {
            *batches += 1;
            outcome
        }
    }
}

fn print(
    args: &Import,
    name: &str,
    format: Format,
    has_header: Option<bool>,
    tally: &Tally,
    out: &mut Output,
) -> anyhow::Result<()> {
    if out.is_json() {
        out.json(&json!({
            "image": args.session.image.display().to_string(),
            "file": name,
            "format": format.name(),
            "header": has_header,
            "records": tally.records,
            "added": tally.added,
            "replaced": tally.records - tally.added,
            "bad_lines": tally.bad,
            "batches": tally.batches,
            "batch_records_max": args.batch,
            "durability": args.durability.name(),
            "programs": tally.programs,
            "busy_ns": tally.busy_ns,
        }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{name}: {}, {} of them new, {} replaced; {} skipped",
        units::things(tally.records, "record"),
        units::count_of(tally.added),
        units::count_of(tally.records - tally.added),
        units::things(tally.bad, "bad line")
    )?;
    match has_header {
        Some(true) => writeln!(out, "line 1 names the columns")?,
        Some(false) => writeln!(out, "line 1 is a record, not a header")?,
        None => {}
    }
    let how = match args.durability {
        When::Immediate => "put in batches of",
        When::OnSync => "put one by one, with a sync after",
    };
    writeln!(
        out,
        "{how} up to {}, {} in all: {}, {} of the chip's time",
        units::things(args.batch.into(), "record"),
        units::count_of(tally.batches),
        units::things(tally.programs, "program"),
        units::duration_ns(tally.busy_ns)
    )?;
    Ok(())
}

/// A reader that says how far it is.
struct Counted {
    reader: Box<dyn Read>,
    size: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(bytes)?;
        self.size.set(self.size.get() + count as u64);
        Ok(count)
    }
}
