//! `nandu raw`: single operations on a chip, as a driver would do them.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::trace::IllegalUse;
use nandu_sim::{Sim, SimError, Tear};
use serde_json::{Value, json};

use crate::failure::usage;
use crate::hexdump;
use crate::output::Output;
use crate::session::{Session, SessionArgs};
use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum Raw {
    /// Read a page through error correction
    Read(ReadPage),
    /// Program a page with the bytes of a file or of standard input, filled up with ones
    Program(ProgramPage),
    /// Erase a block
    Erase(EraseBlock),
    /// Mark a block as bad
    MarkBad(MarkBad),
}

/// Where a cell mode is asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// One bit a cell
    Slc,
    /// Two bits a cell
    Mlc,
}

#[derive(Args, Debug)]
pub(crate) struct ReadPage {
    /// The page, counted from 0 over the whole chip
    page: u32,
    #[command(flatten)]
    session: SessionArgs,
    /// First column
    #[arg(long, value_name = "N", default_value_t = 0)]
    column: u32,
    /// Bytes; the rest of the main area if not given
    #[arg(long, value_name = "N")]
    length: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct ProgramPage {
    /// The page, counted from 0 over the whole chip
    page: u32,
    #[command(flatten)]
    session: SessionArgs,
    /// The file that holds the bytes; standard input if not given
    data: Option<PathBuf>,
    /// First column
    #[arg(long, value_name = "N", default_value_t = 0)]
    column: u32,
    #[command(flatten)]
    cut: Cut,
}

#[derive(Args, Debug)]
pub(crate) struct EraseBlock {
    /// The block
    block: u32,
    #[command(flatten)]
    session: SessionArgs,
    /// How many bits a cell holds until the next erase; all it can if not given
    #[arg(long)]
    mode: Option<Mode>,
    #[command(flatten)]
    cut: Cut,
}

#[derive(Args, Debug)]
pub(crate) struct MarkBad {
    /// The block
    block: u32,
    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Args, Debug)]
struct Cut {
    /// Cut the power during the operation and leave this tear, such as prefix, some-bits-lost, unstable, half-erased
    #[arg(long, value_name = "TEAR", value_parser = tear)]
    cut: Option<Tear>,
}

fn tear(name: &str) -> Result<Tear, String> {
    name.parse().map_err(|_| format!("tears are {}", Tear::ALL.map(Tear::name).join(", ")))
}

pub(crate) fn run(args: &Raw, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Raw::Read(args) => read(args, out),
        Raw::Program(args) => program(args, out),
        Raw::Erase(args) => erase(args, out),
        Raw::MarkBad(args) => mark_bad(args, out),
    }
}

fn read(args: &ReadPage, out: &mut Output) -> anyhow::Result<()> {
    let mut session = Session::open(&args.session)?;
    let page = PageAddr(args.page);
    let rest = session.sim()?.geometry().page_size.saturating_sub(args.column);
    let length = args.length.unwrap_or(rest) as usize;
    allowed(session.sim()?.may_read(page, args.column, length), "read of page", page.0)?;
    let mut bytes = vec![0; length];
    let outcome = perform(session.sim()?, None, |sim| sim.read(page, args.column, &mut bytes))?;
    session.finish()?;
    let status = match outcome {
        Ok(status) => status,
        Err(error) => bail!(error),
    };
    if out.is_json() {
        let (bits, max) = match status {
            ReadStatus::Clean => (0, None),
            ReadStatus::Corrected { bits, max } | ReadStatus::RefreshAdvised { bits, max } => (bits, Some(max)),
        };
        out.json(&json!({
            "page": page.0,
            "column": args.column,
            "corrected_bits": bits,
            "correctable_bits": max,
            "refresh_advised": status.refresh_advised(),
            "bytes": hexdump::digits(&bytes),
        }))?;
        return Ok(());
    }
    match status {
        ReadStatus::Clean => writeln!(out, "page {page}: clean\n")?,
        ReadStatus::Corrected { bits, max } => writeln!(out, "page {page}: {bits} of {max} bits corrected\n")?,
        ReadStatus::RefreshAdvised { bits, max } => {
            writeln!(out, "page {page}: {bits} of {max} bits corrected, refresh advised\n")?;
        }
    }
    hexdump::print(&bytes, args.column, out)?;
    Ok(())
}

fn program(args: &ProgramPage, out: &mut Output) -> anyhow::Result<()> {
    let mut session = Session::open(&args.session)?;
    let geometry = *session.sim()?.geometry();
    let page = PageAddr(args.page);
    let mut data = Vec::new();
    // One byte more than fits, so that too many are noticed.
    let limit = u64::from(geometry.column_count()) + 1;
    match &args.data {
        Some(path) => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut data)),
        None => io::stdin().take(limit).read_to_end(&mut data),
    }
    .with_context(|| args.data.as_ref().map_or("standard input".into(), |path| path.display().to_string()))?;
    let end = args.column as usize + data.len();
    let main_end = end.min(geometry.page_size as usize).next_multiple_of(geometry.program_unit as usize);
    if data.is_empty() || end > geometry.column_count() as usize {
        return usage(format!("a page takes 1 to {} bytes", geometry.column_count()));
    }
    if end < main_end {
        data.resize(main_end - args.column as usize, 0xFF);
    }
    allowed(session.sim()?.may_program(page, args.column, data.len()), "program of page", page.0)?;
    let outcome = perform(session.sim()?, args.cut.cut, |sim| sim.program(page, args.column, &data))?;
    conclude(session, outcome, json!({ "page": page.0, "column": args.column, "length": data.len() }), out)
}

fn erase(args: &EraseBlock, out: &mut Output) -> anyhow::Result<()> {
    let mut session = Session::open(&args.session)?;
    let block = BlockAddr(args.block);
    allowed(session.sim()?.may_erase(block), "erase of block", block.0)?;
    let mode = match args.mode {
        None => session.sim()?.chip().full_mode(),
        Some(Mode::Slc) => CellMode::Slc,
        Some(Mode::Mlc) => CellMode::Mlc,
    };
    if !session.sim()?.geometry().supports(mode) {
        return usage(format!("a {} has one bit a cell", session.sim()?.chip().name));
    }
    let outcome = perform(session.sim()?, args.cut.cut, |sim| sim.erase(block, mode))?;
    conclude(session, outcome, json!({ "block": block.0 }), out)
}

fn mark_bad(args: &MarkBad, out: &mut Output) -> anyhow::Result<()> {
    let mut session = Session::open(&args.session)?;
    let block = BlockAddr(args.block);
    if !session.sim()?.geometry().contains_block(block) {
        allowed(Err(IllegalUse::Address), "mark of block", block.0)?;
    }
    let outcome = perform(session.sim()?, None, |sim| sim.mark_bad(block))?;
    conclude(session, outcome, json!({ "block": block.0 }), out)
}

/// What no chip would take is the user's mistake.
fn allowed(permission: Result<(), IllegalUse>, what: &str, address: u32) -> anyhow::Result<()> {
    match permission {
        Ok(()) => Ok(()),
        Err(why) => usage(format!("{what} {address}: {why}")),
    }
}

/// Does an operation with the power on, or cut during it.
fn perform<T>(
    sim: &mut Sim,
    cut: Option<Tear>,
    operation: impl FnOnce(&mut Sim) -> Result<T, SimError>,
) -> anyhow::Result<Result<T, SimError>> {
    sim.power_on();
    sim.attribute(Cause::Host);
    if let Some(tear) = cut {
        sim.cut_at(sim.operation_count(), tear);
    }
    Ok(operation(sim))
}

/// Commits, and says how the operation ended. One that fails has happened all the same.
fn conclude(
    mut session: Session,
    outcome: Result<(), SimError>,
    mut description: Value,
    out: &mut Output,
) -> anyhow::Result<()> {
    let cut = match outcome {
        Err(error) if error.kind == NandErrorKind::Gone => session.sim()?.last_cut(),
        _ => None,
    };
    let clock_ns = session.sim()?.clock_ns();
    session.finish()?;
    if let (Err(error), None) = (outcome, cut) {
        bail!(error);
    }
    if out.is_json() {
        description["clock_ns"] = clock_ns.into();
        description["cut"] = cut.map(|cut| cut.tear.name()).into();
        out.json(&description)?;
    } else if let Some(cut) = cut {
        writeln!(out, "{cut}; the clock is at {}", units::duration_ns(clock_ns))?;
    } else {
        writeln!(out, "done; the clock is at {}", units::duration_ns(clock_ns))?;
    }
    Ok(())
}
