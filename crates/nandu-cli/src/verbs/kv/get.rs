//! `nandu kv get`: the value of a key.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::HexArgs;
use crate::index::{self, IndexArgs};
use crate::output::Output;
use crate::view::AtArgs;
use crate::{hexdump, record};

#[derive(Args, Debug)]
pub(crate) struct Get {
    /// The image; it stays as it is
    image: PathBuf,
    /// The key
    key: String,
    /// Print the value without a line end after it
    #[arg(long, conflicts_with = "hex")]
    raw: bool,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    index: IndexArgs,
}

pub(crate) fn run(args: &Get, out: &mut Output) -> anyhow::Result<()> {
    let key = record::argument(&args.key, args.hex.hex)?;
    let value = index::look(&args.image, args.index, |index| {
        index.check_key(&key)?;
        let explain = |error| index::explain(&args.image, error);
        let mut view = args.at.view(&args.image, index)?;
        let Some(size) = view.value_len(&key).map_err(explain)? else { return Ok(None) };
        let mut value = vec![0; size];
        view.read(&key, 0, &mut value).map_err(explain)?;
        Ok(Some(value))
    })?;
    let Some(value) = value else {
        return Err(anyhow!("{}: no record has the key '{}'", args.image.display(), record::shown(&key)));
    };
    if out.is_json() {
        out.json(&record::json(&key, &value))?;
    } else if args.hex.hex {
        writeln!(out, "{}", hexdump::digits(&value))?;
    } else {
        out.bytes(&value)?;
        if !args.raw {
            writeln!(out)?;
        }
    }
    Ok(())
}
