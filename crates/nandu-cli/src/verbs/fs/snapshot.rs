//! `nandu fs snapshot`: states of the file system that are kept.

use std::path::Path;

use clap::{Args, Subcommand};
use nandu::fs::Fs;
use serde_json::{Map, json};

use crate::cost::Cost;
use crate::files::{self, LookArgs, MemoryArgs};
use crate::flash::Flash;
use crate::output::Output;
use crate::session::SessionArgs;
use crate::units;
use crate::volume::{Volume, VolumeError};

/// Programs that what was released is removed with between two looks at whether anything is left.
const STEP_PROGRAMS: u32 = 1024;

#[derive(Args, Debug)]
pub(crate) struct Keep {
    #[command(flatten)]
    session: SessionArgs,
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    memory: MemoryArgs,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum What {
    /// Keep the file system as it is now; it stays kept over power cuts, until it is released
    Take,
    /// Print the numbers of the snapshots there are, the oldest first; what happens without a command
    List,
    /// End a snapshot and free what only it kept
    Release {
        /// Its number
        number: u32,
    },
}

/// The file system of nandu's, which alone has snapshots.
fn nandu<'v, 'm>(image: &Path, fs: &'v mut Volume<'m>) -> anyhow::Result<&'v mut Fs<'m, &'m mut Flash>> {
    match fs {
        Volume::Nandu(fs) => Ok(fs),
        Volume::Dffs(_) => Err(files::no_snapshots(image)),
    }
}

pub(crate) fn run(args: &Keep, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.session.image;
    let explain = |error| files::explain(image, VolumeError::Nandu(error));
    match args.what.unwrap_or(What::List) {
        What::Take => {
            let (number, cost) = files::change(&args.session, args.memory, |fs| {
                let fs = nandu(image, fs)?;
                let before = Cost::at(fs.nand());
                let number = fs.snapshot().map_err(explain)?;
                Ok((number, before.until(fs.nand())))
            })?;
            if out.is_json() {
                return cost.print_json(object(number), out);
            }
            writeln!(out, "snapshot {number}; {cost}")?;
        }
        What::Release { number } => {
            let (freed, cost) = files::change(&args.session, args.memory, |fs| {
                let fs = nandu(image, fs)?;
                let (before, live) = (Cost::at(fs.nand()), fs.stats().live_pages);
                fs.release_snapshot(number).map_err(explain)?;
                while fs.idle(STEP_PROGRAMS).map_err(explain)? {}
                Ok((live.saturating_sub(fs.stats().live_pages), before.until(fs.nand())))
            })?;
            if out.is_json() {
                let mut object = object(number);
                object.insert("pages_freed".to_owned(), freed.into());
                return cost.print_json(object, out);
            }
            writeln!(out, "released snapshot {number}: {} freed; {cost}", units::things(freed.into(), "page"))?;
        }
        What::List => {
            let found = files::look(image, LookArgs::now(args.memory), |fs| {
                Ok(nandu(image, fs)?.snapshots().collect::<Vec<u32>>())
            })?;
            for number in found {
                if out.is_json() {
                    out.json(&json!({ "snapshot": number }))?;
                } else {
                    writeln!(out, "snapshot {number}")?;
                }
            }
        }
    }
    Ok(())
}

fn object(number: u32) -> Map<String, serde_json::Value> {
    let mut object = Map::new();
    object.insert("snapshot".to_owned(), json!(number));
    object
}
