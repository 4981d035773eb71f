//! `nandu info`: what an image holds.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nandu_inpage::Cells;
use nandu_nand::{BlockAddr, ProgramOrder};
use nandu_sim::{BlockInfo, Sim};
use serde_json::{Map, Value, json};

use crate::flash::Flash;
use crate::health::Health;
use crate::kind::Kind;
use crate::output::Output;
use crate::report::{self, BlockClass};
use crate::verbs::device_info;
use crate::verbs::fs::check as files;
use crate::volume::System;
use crate::{inpage, kind, session, units};

#[derive(Args, Debug)]
pub(crate) struct Info {
    /// The image, an MTD device, or a directory of the mount that it is in use by, of which wear and losses are told
    image: PathBuf,
    /// Print wear and losses of the volume as text for Prometheus, and nothing else
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
}

pub(crate) fn run(args: &Info, out: &mut Output) -> anyhow::Result<()> {
    if args.image.is_dir() {
        return health(args, Health::ask(&args.image)?, out);
    }
    let flash = session::look(&args.image)?;
    if args.prometheus {
        let found = device_info::health(&flash);
        let found =
            found.ok_or_else(|| anyhow!("{}: no volume of nandu's that can be opened", args.image.display()))?;
        return health(args, found, out);
    }
    match &flash {
        Flash::Device(device) => device_info::run(&args.image, &flash, device, out),
        Flash::Sim(sim) => {
            let survey = Survey::of(&flash);
            if out.is_json() {
                print_json(args, &flash, sim, &survey, out)
            } else {
                print_text(args, &flash, sim, &survey, out)
            }
        }
    }
}

/// Wear and losses alone.
fn health(args: &Info, health: Health, out: &mut Output) -> anyhow::Result<()> {
    let name = args.image.display().to_string();
    for warning in health.warnings() {
        eprintln!("nandu: {name}: {warning}");
    }
    if args.prometheus {
        out.bytes(health.prometheus(&name).as_bytes())?;
    } else if out.is_json() {
        out.json(&json!({ "image": name, "health": health.json() }))?;
    } else {
        writeln!(out, "{name}: {health}")?;
    }
    Ok(())
}

/// What a pass over all blocks finds.
struct Survey {
    factory_bad: Vec<u32>,
    grown_bad: Vec<u32>,
    /// Blocks whose mark reads as the opposite of the truth.
    mark_wrong: Vec<u32>,
    class_counts: [u64; BlockClass::ALL.len()],
    wear: Wear,
}

/// How often blocks were erased, bad ones left out.
struct Wear {
    erases_min: u32,
    erases_max: u32,
    erases_mean: f64,
    /// Standard deviation.
    erases_spread: f64,
}

impl Survey {
    fn of(flash: &Flash) -> Survey {
        let blocks: Vec<(BlockAddr, BlockInfo)> = report::blocks(flash).collect();
        let numbers = |which: &dyn Fn(&BlockInfo) -> bool| {
            blocks.iter().filter(|(_, state)| which(state)).map(|(block, _)| block.0).collect()
        };
        let mut class_counts = [0; BlockClass::ALL.len()];
        for (block, state) in &blocks {
            class_counts[BlockClass::of(flash, *block, state) as usize] += 1;
        }
        Survey {
            factory_bad: numbers(&|state| state.factory_bad),
            grown_bad: numbers(&|state| state.grown_bad && !state.factory_bad),
            mark_wrong: numbers(&|state| state.reads_bad != (state.factory_bad || state.grown_bad)),
            class_counts,
            wear: Wear::of(&blocks),
        }
    }

    fn bad_count(&self) -> u64 {
        (self.factory_bad.len() + self.grown_bad.len()) as u64
    }
}

impl Wear {
    fn of(blocks: &[(BlockAddr, BlockInfo)]) -> Wear {
        let good = blocks.iter().filter(|(_, state)| !state.factory_bad && !state.grown_bad);
        let erases: Vec<u32> = good.map(|(_, state)| state.counters.erases).collect();
        let count = erases.len().max(1) as f64;
        let mean = erases.iter().map(|&erases| f64::from(erases)).sum::<f64>() / count;
        let variance = erases.iter().map(|&erases| (f64::from(erases) - mean).powi(2)).sum::<f64>() / count;
        let hundredths = |value: f64| (value * 100.0).round() / 100.0;
        Wear {
            erases_min: erases.iter().copied().min().unwrap_or(0),
            erases_max: erases.iter().copied().max().unwrap_or(0),
            erases_mean: hundredths(mean),
            erases_spread: hundredths(variance.sqrt()),
        }
    }
}

fn print_json(args: &Info, flash: &Flash, sim: &Sim, survey: &Survey, out: &mut Output) -> anyhow::Result<()> {
    let chip = flash.chip();
    let classes: Map<_, _> = BlockClass::ALL
        .iter()
        .map(|class| (class.key().to_owned(), survey.class_counts[*class as usize].into()))
        .collect();
    out.json(&json!({
        "image": args.image.display().to_string(),
        "chip": chip.name,
        "seed": sim.seed(),
        "index": index_json(flash),
        "geometry": report::geometry(&chip.geometry),
        "timing": report::timing(&chip.timing),
        "bad_blocks": {
            "count": survey.bad_count(),
            "percent": units::percent(survey.bad_count(), u64::from(chip.geometry.block_count)),
            "factory": survey.factory_bad,
            "grown": survey.grown_bad,
            "mark_wrong": survey.mark_wrong,
        },
        "blocks": classes,
        "wear": {
            "erases_min": survey.wear.erases_min,
            "erases_max": survey.wear.erases_max,
            "erases_mean": survey.wear.erases_mean,
            "erases_spread": survey.wear.erases_spread,
        },
        "clock_ns": flash.clock_ns(),
        "operation_count": sim.operation_count(),
        "power": !sim.is_off(),
        "last_cut": sim.last_cut().map(|cut| cut.to_string()),
        "counters": report::counters(flash.counters()),
        "ledger": report::ledger(flash.ledger()),
    }))?;
    Ok(())
}

fn print_text(args: &Info, flash: &Flash, sim: &Sim, survey: &Survey, out: &mut Output) -> anyhow::Result<()> {
    let chip = flash.chip();
    let geometry = &chip.geometry;
    let block_size = u64::from(geometry.pages_per_block) * u64::from(geometry.page_size);
    writeln!(out, "{}: {}, seed {}", args.image.display(), chip.name, sim.seed())?;
    writeln!(out, "{}\n", chip.source)?;
    writeln!(
        out,
        "size        {}: {} of {} of {} + {} bytes; {} a block",
        units::bytes(geometry.capacity()),
        units::things(geometry.block_count.into(), "block"),
        units::things(geometry.pages_per_block.into(), "page"),
        geometry.page_size,
        geometry.spare_size,
        units::bytes(block_size)
    )?;
    if geometry.tag_size > 0 {
        writeln!(out, "tags        {} of the spare bytes are protected", geometry.tag_size)?;
    }
    writeln!(
        out,
        "cells       pairing {}; {} a page in units of {} bytes, {} order",
        report::pairing_name(&geometry.pairing),
        units::things(geometry.programs_per_page.into(), "program"),
        geometry.program_unit,
        match geometry.order {
            ProgramOrder::Ascending => "rising",
            ProgramOrder::Any => "any",
        }
    )?;
    writeln!(
        out,
        "ECC         {} in {} bytes",
        units::things(geometry.ecc.correctable_bits.into(), "bit"),
        geometry.ecc.codeword_size
    )?;
    if kind::system(flash) == System::Dffs {
        let state = if files::is_dffs_read_only(flash) == Some(true) { "; it can only be read" } else { "" };
        writeln!(out, "holds       a file system of DFFS{state}")?;
    } else if let Some(found) = kind::find(flash) {
        let details = found.fields.map_or_else(String::new, |fields| {
            format!(": {}; {}", inpage::describe_cells(fields.cells), inpage::describe_layout(&fields))
        });
        writeln!(out, "index       {}{details}", found.kind)?;
        if holds_files(flash, found.kind) {
            writeln!(out, "holds       a file system")?;
        }
    }
    if kind::is_of_format_one(flash) {
        writeln!(out, "holds       a volume of format 1, which only older versions open")?;
    }
    print_bad(survey, geometry.block_count, out)?;
    let classes = BlockClass::ALL.iter().map(|class| (class, survey.class_counts[*class as usize]));
    let classes: Vec<String> = classes
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| format!("{} {}", units::count_of(count), class.name()))
        .collect();
    writeln!(out, "blocks      {}", classes.join(", "))?;
    let wear = &survey.wear;
    writeln!(
        out,
        "erases      {} to {} a block, mean {}, spread {}; rated for {}",
        wear.erases_min,
        wear.erases_max,
        wear.erases_mean,
        wear.erases_spread,
        units::count_of(geometry.endurance.into())
    )?;
    writeln!(
        out,
        "clock       {} after {}",
        units::duration_ns(flash.clock_ns()),
        units::things(sim.operation_count(), "operation")
    )?;
    if let Some(cut) = sim.last_cut() {
        writeln!(out, "power       {}; last {cut}", if sim.is_off() { "off" } else { "on" })?;
    }
    writeln!(out, "\n{}", report::ledger_table(flash.ledger()))?;
    Ok(())
}

/// Whether the records of the tree are those of a file system.
pub(super) fn holds_files(flash: &Flash, kind: Kind) -> bool {
    kind == Kind::Mutree && files::is_file_system(flash)
}

/// The kind of index that the chip holds, and what is fixed in its format; null if there is none.
pub(super) fn index_json(flash: &Flash) -> Value {
    if kind::system(flash) == System::Dffs {
        let read_only = files::is_dffs_read_only(flash);
        return json!({ "kind": System::Dffs.name(), "holds": "files", "read_only": read_only });
    }
    let Some(found) = kind::find(flash) else {
        return if kind::is_of_format_one(flash) { json!({ "format": 1 }) } else { Value::Null };
    };
    let mut index = json!({ "kind": found.kind.name() });
    if holds_files(flash, found.kind) {
        index["holds"] = "files".into();
    }
    if let (Some(object), Some(fields)) = (index.as_object_mut(), found.fields) {
        let (key, value) = match fields.cells {
            Cells::Fixed { key, value } => (key.into(), value.into()),
            Cells::Bytes => (Value::Null, Value::Null),
        };
        object.insert("key_size".to_owned(), key);
        object.insert("value_size".to_owned(), value);
        object.insert("layout".to_owned(), if fields.layout == 1 { "sectors".into() } else { "pages".into() });
        object.insert("sector_size".to_owned(), fields.sector_size.into());
    }
    index
}

fn print_bad(survey: &Survey, block_count: u32, out: &mut Output) -> anyhow::Result<()> {
    let percent = units::percent(survey.bad_count(), block_count.into());
    writeln!(
        out,
        "bad blocks  {} of {} ({percent} %)",
        units::count_of(survey.bad_count()),
        units::count_of(block_count.into())
    )?;
    let width = out.width().saturating_sub(24);
    for (label, blocks) in
        [("factory", &survey.factory_bad), ("grown", &survey.grown_bad), ("mark wrong", &survey.mark_wrong)]
    {
        for (at, line) in lines_of(blocks, width).iter().enumerate() {
            writeln!(out, "            {:<11} {line}", if at == 0 { label } else { "" })?;
        }
    }
    Ok(())
}

/// Numbers in lines of a width.
fn lines_of(numbers: &[u32], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for number in numbers {
        let number = number.to_string();
        match lines.last_mut() {
            Some(line) if line.len() + 1 + number.len() <= width => {
                line.push(' ');
                line.push_str(&number);
            }
            _ => lines.push(number),
        }
    }
    lines
}
