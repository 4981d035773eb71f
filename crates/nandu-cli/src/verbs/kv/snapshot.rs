//! `nandu kv snapshot`: states of the store that are kept.

use std::path::Path;

use clap::{Args, Subcommand};
use nandu::Snapshot;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::index::{self, IndexArgs, Use};
use crate::output::Output;
use crate::session::SessionArgs;
use crate::store::{Records, StoreError};
use crate::{units, view};

/// Pages that what was released is removed with between two looks at whether anything is left.
const STEP_PAGES: u32 = 1024;

/// What only one kind of index has.
const WHAT: &str = "snapshots";

#[derive(Args, Debug)]
pub(crate) struct Keep {
    #[command(flatten)]
    session: SessionArgs,
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    index: IndexArgs,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum What {
    /// Keep the store as it is now; it stays kept over power cuts, until it is released
    Take,
    /// Print the snapshots there are, the oldest first; what happens without a command
    List,
    /// End a snapshot and free what only it kept
    Release {
        /// Its number
        number: u32,
    },
}

pub(crate) fn run(args: &Keep, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.session.image;
    match args.what.unwrap_or(What::List) {
        What::Take => {
            let (snapshot, records, cost) = index::change(&args.session, args.index, Use::Single, |index| {
                let store = index.tree(image, WHAT)?;
                let before = Cost::at(store.nand());
                let snapshot = store.snapshot().map_err(|error| index::explain(image, error))?;
                Ok((snapshot, store.record_count(), before.until(store.nand())))
            })?;
            if out.is_json() {
                return cost.print_json(object(snapshot, records), out);
            }
            writeln!(out, "snapshot {}: {}; {cost}", snapshot.number(), units::things(records, "record"))?;
        }
        What::Release { number } => {
            let (freed, cost) = index::change(&args.session, args.index, Use::Single, |index| {
                let store = index.tree(image, WHAT)?;
                let snapshot = view::find(image, store, number)?;
                let (before, live) = (Cost::at(store.nand()), store.stats().live_pages);
                let explain = |error: StoreError| index::explain(image, error);
                store.release(snapshot).map_err(explain)?;
                while store.idle(STEP_PAGES).map_err(explain)? {}
                Ok((live.saturating_sub(store.stats().live_pages), before.until(store.nand())))
            })?;
            if out.is_json() {
                let mut object = Map::new();
                object.insert("snapshot".to_owned(), number.into());
                object.insert("pages_freed".to_owned(), freed.into());
                return cost.print_json(object, out);
            }
            writeln!(out, "released snapshot {number}: {} freed; {cost}", units::things(freed.into(), "page"))?;
        }
        What::List => {
            let found = index::look(image, args.index, |index| list(image, index.tree(image, WHAT)?))?;
            for (snapshot, records) in found {
                if out.is_json() {
                    out.json(&Value::Object(object(snapshot, records)))?;
                } else {
                    writeln!(out, "snapshot {}: {}", snapshot.number(), units::things(records, "record"))?;
                }
            }
        }
    }
    Ok(())
}

fn list(image: &Path, store: &mut Records<'_>) -> anyhow::Result<Vec<(Snapshot, u64)>> {
    let snapshots: Vec<Snapshot> = store.snapshots().collect();
    let counted = snapshots.into_iter().map(|snapshot| {
        let records = store.at(&snapshot).record_count().map_err(|error| index::explain(image, error))?;
        Ok((snapshot, records))
    });
    counted.collect()
}

fn object(snapshot: Snapshot, records: u64) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("snapshot".to_owned(), json!(snapshot.number()));
    object.insert("records".to_owned(), json!(records));
    object
}
