//! `nandu dump`: the bytes of a page.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use nandu_media::Malformed;
use nandu_media::inpage::{FrontFields, Kind as FrontKind, NodeFields};
use nandu_nand::{CellMode, Nand, PageAddr};
use nandu_sim::{Condition, Sim};
use serde_json::{Value, json};

use crate::device::Device;
use crate::failure::usage;
use crate::flash::Flash;
use crate::hexdump;
use crate::log_page::{self, Place};
use crate::output::Output;
use crate::{dffs_page, report, session, units};

#[derive(Debug, Subcommand)]
pub(crate) enum Dump {
    /// What the cells of a page hold, whatever a read would make of it
    Page(Page),
}

#[derive(Args, Debug)]
pub(crate) struct Page {
    /// The page, counted from 0 over the whole chip
    page: u32,
    /// The image
    image: PathBuf,
    /// Show the spare area too
    #[arg(long)]
    spare: bool,
}

pub(crate) fn run(args: &Dump, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Dump::Page(args) => page(args, out),
    }
}

fn page(args: &Page, out: &mut Output) -> anyhow::Result<()> {
    let flash = session::look(&args.image)?;
    let geometry = flash.chip().geometry;
    let page = PageAddr(args.page);
    if !geometry.contains_page(page) {
        return usage(format!("page {page} is outside the chip, whose last is {}", geometry.page_count() - 1));
    }
    let (block, index) = (geometry.block_of(page), geometry.index_in_block(page));
    let sim = match &flash {
        Flash::Sim(sim) => sim,
        Flash::Device(device) => return device_page(args, &flash, device, out),
    };
    let (state, block_state) = (sim.page_state(page), sim.block_state(block));
    let bytes = sim.peek(page);
    let (main, spare) = bytes.split_at(geometry.page_size as usize);
    let place = Place { geometry: &geometry, page, mode: block_state.mode };
    if out.is_json() {
        out.json(&json!({
            "page": page.0,
            "block": block.0,
            "page_in_block": index,
            "programs": state.programs,
            "programmed_ns": state.programmed_ns,
            "reads": state.reads,
            "holds_bytes": state.held,
            "harmed": state.harmed,
            "block_mode": report::mode_name(block_state.mode),
            "block_erases": block_state.counters.erases,
            "block_bad": block_state.factory_bad || block_state.grown_bad,
            "header": header_json(&flash, main, place),
            "main": hexdump::digits(main),
            "spare": args.spare.then(|| hexdump::digits(spare)),
        }))?;
        return Ok(());
    }
    writeln!(out, "page {page}: {}", describe_page(sim, page))?;
    writeln!(out, "block {block}: {}; this is its page {index}", describe_block(sim, page))?;
    if let Some(header) = describe_header(&flash, main, place) {
        writeln!(out, "{header}")?;
    }
    writeln!(out)?;
    hexdump::print(main, 0, out)?;
    if args.spare {
        writeln!(out, "\nspare area")?;
        hexdump::print(spare, geometry.page_size, out)?;
    }
    Ok(())
}

/// The same of a device, which is read.
fn device_page(args: &Page, flash: &Flash, device: &Device, out: &mut Output) -> anyhow::Result<()> {
    let geometry = flash.chip().geometry;
    let page = PageAddr(args.page);
    let (block, index) = (geometry.block_of(page), geometry.index_in_block(page));
    let mut main = vec![0; geometry.page_size as usize];
    let here = || args.image.display().to_string();
    let is_bad = device.is_marked(block).with_context(here)?;
    let status = device.mtd().read(page, 0, &mut main).with_context(here)?;
    let spare = if args.spare { Some(device.mtd().raw_spare(page).with_context(here)?) } else { None };
    let is_erased = main.iter().all(|&byte| byte == 0xFF);
    let place = Place { geometry: &geometry, page, mode: CellMode::Slc };
    if out.is_json() {
        out.json(&json!({
            "page": page.0,
            "block": block.0,
            "page_in_block": index,
            "corrected_bits": status.corrected_bits(),
            "refresh_advised": status.refresh_advised(),
            "holds_bytes": !is_erased,
            "block_bad": is_bad,
            "header": header_json(flash, &main, place),
            "main": hexdump::digits(&main),
            "spare": spare.as_deref().map(hexdump::digits),
        }))?;
        return Ok(());
    }
    let state = if is_erased { "reads as erased" } else { "programmed" };
    writeln!(out, "page {page}: {state}, {} corrected", units::things(status.corrected_bits().into(), "bit"))?;
    writeln!(out, "block {block}: {}; this is its page {index}", if is_bad { "marked bad" } else { "good" })?;
    if let Some(header) = describe_header(flash, &main, place) {
        writeln!(out, "{header}")?;
    }
    writeln!(out)?;
    hexdump::print(&main, 0, out)?;
    if let Some(spare) = spare {
        writeln!(out, "\nspare area, as the device has it")?;
        hexdump::print(&spare, geometry.page_size, out)?;
    }
    Ok(())
}

/// What a page says of itself; `None` if nobody knows.
fn describe_header(flash: &Flash, bytes: &[u8], place: Place<'_>) -> Option<String> {
    if let Some(page) = dffs_page::read(flash, place.page) {
        return Some(dffs_page::describe(&page));
    }
    let text = log_page::describe(bytes, place).or_else(|| describe_front(bytes, place.page));
    if text.is_some() || bytes.iter().all(|&byte| byte == 0xFF) {
        return text;
    }
    log_page::owner(place, |page| flash.content(page))
}

/// The same for programs.
fn header_json(flash: &Flash, bytes: &[u8], place: Place<'_>) -> Value {
    match dffs_page::read(flash, place.page) {
        Some(page) => dffs_page::json(&page),
        None => log_page::json(bytes, place).unwrap_or_else(|| front_json(bytes)),
    }
}

/// What a page says of itself that belongs to an index that logs in its blocks.
fn describe_front(bytes: &[u8], page: PageAddr) -> Option<String> {
    let front = match FrontFields::parse(bytes) {
        Ok(front) => front,
        Err(Malformed::Size | Malformed::Magic) => return None,
        Err(why) => return Some(format!("nandu: begins as a page of nandu, but is none: {why}")),
    };
    let (kind, sequence) = (front_kind_name(front.kind), units::count_of(front.sequence));
    let mut text = format!("nandu: {kind} page of an in-page-logging index, sequence {sequence}");
    if front.page != page.0 {
        text.push_str(&format!(", misplaced: it says that it is page {}", front.page));
    }
    text.push_str(&format!("\n       volume {:#010x}", front.volume));
    if let Some(node) = (front.kind == FrontKind::Node).then(|| NodeFields::parse(bytes).ok()).flatten() {
        let entries = if node.entry_count == 1 { "entry" } else { "entries" };
        text.push_str(&format!(", node {} at level {}, {} {entries}", node.node, node.level, node.entry_count));
    }
    Some(text)
}

fn front_json(bytes: &[u8]) -> Value {
    match FrontFields::parse(bytes) {
        Ok(front) => json!({
            "kind": front_kind_name(front.kind),
            "sequence": front.sequence,
            "page": front.page,
            "volume": front.volume,
            "erase_count": front.erase_count,
        }),
        Err(Malformed::Size | Malformed::Magic) => Value::Null,
        Err(why) => json!({ "malformed": why.to_string() }),
    }
}

fn front_kind_name(kind: FrontKind) -> &'static str {
    match kind {
        FrontKind::Node => "node",
        FrontKind::Log => "log",
        FrontKind::Anchor => "anchor",
        FrontKind::Journal => "journal",
        FrontKind::Part => "further node",
    }
}

fn describe_page(sim: &Sim, page: PageAddr) -> String {
    let state = sim.page_state(page);
    let mut text = match state.programs {
        0 if state.held => "not programmed since the erase, but holds bytes".to_owned(),
        0 => return if state.harmed { "not programmed, and harmed".to_owned() } else { "not programmed".to_owned() },
        1 => format!("programmed at {}", units::duration_ns(state.programmed_ns)),
        programs => format!("programmed {programs} times, last at {}", units::duration_ns(state.programmed_ns)),
    };
    if !state.held {
        text.push_str(", but holds nothing");
    }
    if state.harmed {
        text.push_str(", harmed: a read may say otherwise");
    }
    text.push_str(&format!(", {}", units::things(state.reads.into(), "read")));
    text
}

fn describe_block(sim: &Sim, page: PageAddr) -> String {
    let state = sim.block_state(sim.chip().geometry.block_of(page));
    let condition = match state.condition {
        Condition::NeverErased => "never erased".to_owned(),
        Condition::Erased => {
            format!("{} mode, {}", report::mode_name(state.mode), units::things(state.counters.erases.into(), "erase"))
        }
        Condition::WeaklyErased => "an erase was cut".to_owned(),
        Condition::EraseFailed => "an erase failed".to_owned(),
    };
    let bad = match (state.factory_bad, state.grown_bad) {
        (true, _) => ", bad from the factory",
        (_, true) => ", marked bad",
        _ => "",
    };
    format!("{condition}{bad}, {} programmed", units::things(state.pages_programmed.into(), "page"))
}
