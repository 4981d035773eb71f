//! `nandu kv put` and `nandu kv del`: one change.

use std::io::{self, Read};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_nand::Cause;
use serde_json::{Map, Value};

use super::HexArgs;
use crate::failure::usage;
use crate::output::Output;
use crate::session::SessionArgs;
use crate::store::{self, CacheArgs};
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
    cache: CacheArgs,
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
    cache: CacheArgs,
}

pub(crate) fn put(args: &Put, out: &mut Output) -> anyhow::Result<()> {
    let key = record::argument(&args.key, args.hex.hex)?;
    let value = value(args)?;
    let image = &args.session.image;
    let (replaced, cost) = store::change(&args.session, args.cache, |store| {
        store::check_value(store, &key, &value)?;
        let before = Cost::at(store);
        let replaced = store.put(&key, &value).map_err(|error| store::explain(image, error))?;
        Ok((replaced, before.until(store)))
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
    let cost = store::change(&args.session, args.cache, |store| {
        store::check_key(store, &key)?;
        let before = Cost::at(store);
        if !store.delete(&key).map_err(|error| store::explain(image, error))? {
            return Err(anyhow!("{}: no record has the key '{}'", image.display(), record::shown(&key)));
        }
        Ok(before.until(store))
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
    /// Those of the change itself; the others are the checkpoint and the like that come with opening a store.
    programs_asked: u64,
    reads: u64,
    busy_ns: u64,
}

impl Cost {
    pub(super) fn at(store: &store::Records<'_>) -> Cost {
        let (counters, ledger) = (store.nand().counters(), store.nand().ledger());
        Cost {
            programs: counters.programs,
            programs_asked: [Cause::Host, Cause::Tree, Cause::Value]
                .map(|cause| ledger.of(cause).programs)
                .iter()
                .sum(),
            reads: counters.reads,
            busy_ns: counters.busy_ns,
        }
    }

    pub(super) fn until(self, store: &store::Records<'_>) -> Cost {
        let now = Cost::at(store);
        Cost {
            programs: now.programs - self.programs,
            programs_asked: now.programs_asked - self.programs_asked,
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
        if self.programs > self.programs_asked {
            write!(f, " (and {} for the checkpoint after opening)", self.programs - self.programs_asked)?;
        }
        write!(f, ", {}", units::duration_ns(self.busy_ns))
    }
}
