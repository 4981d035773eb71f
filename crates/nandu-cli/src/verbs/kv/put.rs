//! `nandu kv put` and `nandu kv del`: one change.

use std::io::{self, Read};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::Map;

use super::HexArgs;
use crate::cost::Cost;
use crate::failure::usage;
use crate::index::{self, IndexArgs, Use};
use crate::output::Output;
use crate::record;
use crate::session::SessionArgs;

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
