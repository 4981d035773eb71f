//! `nandu kv put` and `nandu kv del`: one change.

use std::io::{self, Read};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_nand::Cause;
use serde_json::{Map, Value};

use super::HexArgs;
use crate::failure::usage;
use crate::flash::Flash;
use crate::index::{self, IndexArgs, Use};
use crate::output::Output;
use crate::session::SessionArgs;
use crate::{record, units};

/// More than any store takes, so that a wrong file is not read to its end.
const VALUE_SIZE_MAX: u64 = (16 << 20) + 1;

#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    session: SessionArgs,
    /// The key
    key: String,
    /// The value, or @FILE for the bytes of a file
    #[arg(required_unless_present = "stdin")]
    value: Option<String>,
    /// Take the value from standard input
    #[arg(long, conflicts_with = "value")]
    stdin: bool,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    index: IndexArgs,
}

#[derive(Args, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    session: SessionArgs,
    /// The key
    key: String,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    index: IndexArgs,
}

pub(crate) fn put(args: &Put, out: &mut Output) -> anyhow::Result<()> {
    let key = record::argument(&args.key, args.hex.hex)?;
    let value = value(args)?;
    let image = &args.session.image;
    let (replaced, cost) = index::change(&args.session, args.index, Use::Single, |index| {
        index.check_record(&key, &value)?;
        let before = Cost::at(index.flash());
        let replaced = index.put(&key, &value).map_err(|error| index::explain(image, error))?;
        index.sync().map_err(|error| index::explain(image, error))?;
        Ok((replaced, before.until(index.flash())))
    })?;
    if out.is_json() {
        let mut object = Map::new();
        record::insert(&mut object, "key", &key);
        object.insert("replaced".to_owned(), replaced.into());
        return cost.print_json(object, out);
    }
    let what = if replaced { "replaced" } else { "put" };
    writeln!(out, "{what}: {} + {} bytes; {cost}", key.len(), value.len())?;
    Ok(())
}

pub(crate) fn delete(args: &Delete, out: &mut Output) -> anyhow::Result<()> {
    let key = record::argument(&args.key, args.hex.hex)?;
    let image = &args.session.image;
    let cost = index::change(&args.session, args.index, Use::Single, |index| {
        index.check_key(&key)?;
        let before = Cost::at(index.flash());
        if !index.delete(&key).map_err(|error| index::explain(image, error))? {
            return Err(anyhow!("{}: no record has the key '{}'", image.display(), record::shown(&key)));
        }
        index.sync().map_err(|error| index::explain(image, error))?;
        Ok(before.until(index.flash()))
    })?;
    if out.is_json() {
        let mut object = Map::new();
        record::insert(&mut object, "key", &key);
        return cost.print_json(object, out);
    }
    writeln!(out, "deleted; {cost}")?;
    Ok(())
}

fn value(args: &Put) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let name = match args.value.as_deref() {
        None => {
            io::stdin().take(VALUE_SIZE_MAX).read_to_end(&mut bytes).context("standard input")?;
            return Ok(bytes);
        }
        Some(text) => match text.strip_prefix('@') {
            None => return record::argument(text, args.hex.hex),
            Some(name) => name,
        },
    };
    if name.is_empty() {
        return usage("@ names no file; give a value that begins with @ on standard input");
    }
    let file = std::fs::File::open(name).with_context(|| name.to_owned())?;
    file.take(VALUE_SIZE_MAX).read_to_end(&mut bytes).with_context(|| name.to_owned())?;
    Ok(bytes)
}

/// What one change cost the chip.
pub(super) struct Cost {
    programs: u64,
    /// Those of the change itself; the others are the checkpoint and the like that come with opening a store, and those below.
    programs_asked: u64,
    /// Those that move what stood in a block, perhaps with the change, to make room.
    programs_moved: u64,
    reads: u64,
    busy_ns: u64,
}

impl Cost {
    pub(super) fn at(flash: &Flash) -> Cost {
        let (counters, ledger) = (flash.counters(), flash.ledger());
        Cost {
            programs: counters.programs,
            programs_asked: [Cause::Host, Cause::Tree, Cause::Value, Cause::InPageLog]
                .map(|cause| ledger.of(cause).programs)
                .iter()
                .sum(),
            programs_moved: ledger.of(Cause::Gc).programs,
            reads: counters.reads,
            busy_ns: counters.busy_ns,
        }
    }

    pub(super) fn until(self, flash: &Flash) -> Cost {
        let now = Cost::at(flash);
        Cost {
            programs: now.programs - self.programs,
            programs_asked: now.programs_asked - self.programs_asked,
            programs_moved: now.programs_moved - self.programs_moved,
            reads: now.reads - self.reads,
            busy_ns: now.busy_ns - self.busy_ns,
        }
    }

    pub(super) fn print_json(&self, mut object: Map<String, Value>, out: &mut Output) -> anyhow::Result<()> {
        object.insert("programs".to_owned(), self.programs.into());
        object.insert("programs_asked".to_owned(), self.programs_asked.into());
        object.insert("reads".to_owned(), self.reads.into());
        object.insert("busy_ns".to_owned(), self.busy_ns.into());
        out.json(&Value::Object(object))?;
        Ok(())
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", units::things(self.programs_asked, "page program"))?;
        let checkpoint = self.programs - self.programs_asked - self.programs_moved;
        let moved = self.programs_moved;
        match (checkpoint, moved) {
            (0, 0) => {}
            (_, 0) => write!(f, " (and {checkpoint} for the checkpoint after opening)")?,
            (0, _) => write!(f, " (and {moved} to make room)")?,
            _ => write!(f, " (and {moved} to make room, {checkpoint} for the checkpoint after opening)")?,
        }
        write!(f, ", {}", units::duration_ns(self.busy_ns))
    }
}
