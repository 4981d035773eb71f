//! `nandu trace`: records of operations.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use nandu_sim::trace::{Replay, Replayer, TraceError};
use serde_json::json;

use crate::output::Output;
use crate::progress::Progress;
use crate::{report, session, units};

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Do what a trace tells on a chip in memory, check that everything ends as it did, and sum up
    Replay(ReplayArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The trace, as `--trace` wrote it
    trace: PathBuf,
    /// The image as it was when the recording began, where it had been used before; it is not changed
    #[arg(long, value_name = "IMAGE")]
    image: Option<PathBuf>,
}

pub(crate) fn run(args: &Trace, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Trace::Replay(args) => replay(args, out),
    }
}

fn replay(args: &ReplayArgs, out: &mut Output) -> anyhow::Result<()> {
    let name = args.trace.display().to_string();
    let failed = |error: TraceError| match error {
        TraceError::NeedsChip => anyhow!("it began on a chip in use; give the image as it was then with --image"),
        other => other.into(),
    };
    let file = File::open(&args.trace).with_context(|| name.clone())?;
    let size = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let replayer = Replayer::new(BufReader::new(file)).map_err(failed).with_context(|| name.clone())?;
    let chip = args.image.as_deref().map(session::look_at_image).transpose()?;
    let mut progress = Progress::new("replaying");
    let replay = replayer
        .run(chip, &mut |bytes| progress.set(bytes.min(size), size))
        .map_err(failed)
        .with_context(|| name.clone())?;
    drop(progress);
    if out.is_json() { print_json(&name, &replay, out) } else { print_text(&name, &replay, out) }
}

fn print_json(name: &str, replay: &Replay, out: &mut Output) -> anyhow::Result<()> {
    out.json(&json!({
        "trace": name,
        "chip": replay.sim.chip().name,
        "seed": replay.sim.seed(),
        "operation_count": replay.operation_count,
        "duration_ns": replay.duration_ns,
        "complete": replay.complete,
        "compared_content": replay.compared_content,
        "counters": report::counters(&replay.counters()),
        "ledger": report::ledger(&replay.ledger),
    }))?;
    Ok(())
}

fn print_text(name: &str, replay: &Replay, out: &mut Output) -> anyhow::Result<()> {
    writeln!(
        out,
        "{name}: {} on {}, seed {}, in {} of the chip's time; everything ended as recorded",
        units::things(replay.operation_count, "operation"),
        replay.sim.chip().name,
        replay.sim.seed(),
        units::duration_ns(replay.duration_ns)
    )?;
    if !replay.compared_content {
        writeln!(out, "the trace has no bytes, so those that were read were not compared")?;
    }
    if !replay.complete {
        writeln!(out, "the trace was cut short: its last line is missing")?;
    }
    writeln!(out, "\n{}", report::ledger_table(&replay.ledger))?;
    Ok(())
}
