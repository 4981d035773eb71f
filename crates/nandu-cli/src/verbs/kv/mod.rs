//! `nandu kv`: a store of ordered records on the chip of an image.

mod columns;
mod export;
mod format;
mod formats;
mod get;
mod import;
mod lines;
mod pieces;
mod put;
mod scan;
mod snapshot;
mod stats;

use clap::{Args, Subcommand};

use crate::output::Output;
use crate::verbs::check;

#[derive(Debug, Subcommand)]
pub(crate) enum Kv {
    /// Make an empty store on the chip of an image
    Format(format::Format),
    /// Put a value at a key; it is durable when the command ends
    Put(put::Put),
    /// Print the value of a key
    Get(get::Get),
    /// Delete a key
    Del(put::Delete),
    /// Print records in the order of their keys
    Scan(scan::Scan),
    /// Put the records of a file
    Import(import::Import),
    /// Print all records so that import reads them back
    Export(export::Export),
    /// Keep the store as it is, list what is kept, or end that
    Snapshot(snapshot::Keep),
    /// How many records, how full, how worn, and what everything has cost
    Stats(stats::Stats),
    /// Check every invariant of the store; the same as `nandu check`
    Check(check::Check),
}

/// How keys and values stand on the command line.
#[derive(Args, Clone, Copy, Debug)]
struct HexArgs {
    /// Keys and values are pairs of hexadecimal digits, here and in the output
    #[arg(long)]
    hex: bool,
}

pub(crate) fn run(args: &Kv, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Kv::Format(args) => format::run(args, out),
        Kv::Put(args) => put::put(args, out),
        Kv::Get(args) => get::run(args, out),
        Kv::Del(args) => put::delete(args, out),
        Kv::Scan(args) => scan::run(args, out),
        Kv::Import(args) => import::run(args, out),
        Kv::Export(args) => export::run(args, out),
        Kv::Snapshot(args) => snapshot::run(args, out),
        Kv::Stats(args) => stats::run(args, out),
        Kv::Check(args) => check::run(args, out),
    }
}
