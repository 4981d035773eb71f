//! `nandu chip`: kinds of chips.

use clap::Subcommand;
use nandu_nand::CopyRule;
use nandu_spi::{MarkPages, PARTS, Part, SOURCES, SpareRange};
use serde_json::{Value, json};

use crate::failure::usage;
use crate::output::Output;
use crate::{report, units};

#[derive(Debug, Subcommand)]
pub(crate) enum Chip {
    /// Every kind of chip that `create --chip` knows, and every SPI NAND part that the driver nandu-spi knows
    List,
    /// What is known of an SPI NAND part, and where from
    Show {
        /// Its name, as `nandu chip list` has it
        part: String,
    },
}

pub(crate) fn run(args: &Chip, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Chip::List => {
            list(out)?;
            list_parts(out)
        }
        Chip::Show { part } => show(part, out),
    }
}

fn list(out: &mut Output) -> anyhow::Result<()> {
    if out.is_json() {
        for chip in nandu_sim::Chip::PRESETS {
            out.json(&json!({
                "kind": "chip",
                "name": chip.name,
                "source": chip.source,
                "geometry": report::geometry(&chip.geometry),
                "timing": report::timing(&chip.timing),
                "internal_copy": chip.geometry.copies != CopyRule::Never,
                "lsb_recovery": chip.lsb_recovery,
            }))?;
        }
        return Ok(());
    }
    let mut table = report::plain_table();
    table.set_header([
        "chip",
        "size",
        "page+spare",
        "pages",
        "blocks",
        "bits",
        "NOP",
        "ECC",
        "tag",
        "read",
        "program",
        "erase",
        "P/E",
    ]);
    for chip in nandu_sim::Chip::PRESETS {
        let (geometry, timing) = (&chip.geometry, &chip.timing);
        table.add_row([
            chip.name.to_owned(),
            units::bytes(geometry.capacity()),
            format!("{}+{}", geometry.page_size, geometry.spare_size),
            geometry.pages_per_block.to_string(),
            geometry.block_count.to_string(),
            if geometry.pairing.is_paired() { "2" } else { "1" }.to_owned(),
            geometry.programs_per_page.to_string(),
            format!("{}/{}", geometry.ecc.correctable_bits, geometry.ecc.codeword_size),
            geometry.tag_size.to_string(),
            microseconds(timing.read_lsb_ns, timing.read_msb_ns),
            microseconds(timing.program_lsb_ns, timing.program_msb_ns),
            microseconds(timing.erase_ns, timing.erase_ns),
            geometry.endurance.to_string(),
        ]);
    }
    writeln!(out, "{}", report::render(table))?;
    writeln!(
        out,
        "\npages: in a block; bits: in a cell; NOP: programs of a page; ECC: correctable bits in a codeword of so many\n\
         bytes; tag: spare bytes that it protects; times in microseconds, LSB/MSB; P/E: rated erases of a block. The default is {}.",
        nandu_sim::Chip::DEFAULT.name
    )?;
    Ok(())
}

fn microseconds(lsb_ns: u32, msb_ns: u32) -> String {
    let one = |ns: u32| (f64::from(ns) / 1000.0).to_string();
    if lsb_ns == msb_ns { one(lsb_ns) } else { format!("{}/{}", one(lsb_ns), one(msb_ns)) }
}

fn list_parts(out: &mut Output) -> anyhow::Result<()> {
    if out.is_json() {
        for part in PARTS {
            out.json(&part_value(part))?;
        }
        return Ok(());
    }
    writeln!(out, "\nSPI NAND parts that the driver nandu-spi knows:\n")?;
    let mut table = report::plain_table();
    table.set_header([
        "part",
        "maker",
        "identity",
        "size",
        "page+spare",
        "blocks",
        "ECC",
        "tag",
        "marks",
        "bad",
        "P/E",
        "sources",
    ]);
    for part in PARTS {
        let geometry = part.geometry();
        table.add_row([
            part.name.to_owned(),
            part.maker.to_owned(),
            identity(part),
            units::bytes(geometry.capacity()),
            format!("{}+{}", geometry.page_size, geometry.spare_size),
            blocks(part),
            part.ecc_bits.to_string(),
            geometry.tag_size.to_string(),
            part.marks.count().to_string(),
            part.bad_block_max.to_string(),
            part.endurance.to_string(),
            letters(part),
        ]);
    }
    writeln!(out, "{}", report::render(table))?;
    writeln!(
        out,
        "\nECC: correctable bits in 512 bytes; tag: spare bytes that it protects; marks: pages that may have the bad mark; bad:\n\
         blocks that may be bad. `nandu chip show PART` tells more, and what each source says. Sources:"
    )?;
    for (letter, source) in SOURCES {
        writeln!(out, "  {letter}  {source}")?;
    }
    Ok(())
}

fn show(name: &str, out: &mut Output) -> anyhow::Result<()> {
    let Some(part) = Part::by_name(name, PARTS) else {
        return usage(format!("no part has the name `{name}`; `nandu chip list` shows them"));
    };
    if out.is_json() {
        return Ok(out.json(&part_value(part))?);
    }
    let (geometry, times) = (part.geometry(), part.times);
    let protected = match part.protected {
        None => "not known".to_owned(),
        Some(ranges) => {
            let range = |range: &SpareRange| format!("{}..{}", range.offset, range.offset + range.size - 1);
            ranges.iter().map(range).collect::<Vec<_>>().join(", ")
        }
    };
    let marks = match part.marks {
        MarkPages::First => "in the first page",
        MarkPages::FirstTwo => "in the first or second page",
    };
    let parameters = part.parameter_row.map_or_else(|| "no page of them".to_owned(), |row| format!("in row {row}"));
    let locked = if part.power_up.locked { "locked" } else { "unlocked" };
    let continuous = if part.power_up.continuous_read { ", some in continuous read" } else { "" };
    for (what, text) in [
        ("part", format!("{} {}", part.maker, part.name)),
        ("identity", identity(part)),
        ("size", units::bytes(geometry.capacity())),
        ("page+spare", format!("{}+{}", geometry.page_size, geometry.spare_size)),
        ("blocks", format!("{} of {} pages", blocks(part), part.pages_per_block)),
        ("planes", part.plane_count.to_string()),
        ("ECC", format!("{} in 512 bytes, status as {:?}", units::things(part.ecc_bits.into(), "bit"), part.status)),
        ("protected", protected),
        ("NOP", part.programs_per_page.to_string()),
        ("bad mark", marks.to_owned()),
        ("bad blocks", format!("at most {}", part.bad_block_max)),
        ("P/E", part.endurance.to_string()),
        ("copies", report::copies_name(part.copy).to_owned()),
        ("wakes up", format!("{locked}{continuous}")),
        ("parameters", parameters),
        ("times", format!("read {}, program {}, erase {} us", times.read_us, times.program_us, times.erase_us)),
    ] {
        writeln!(out, "{what:<11} {text}")?;
    }
    for (index, source) in part.sources.iter().enumerate() {
        writeln!(out, "{:<11} {source}", if index == 0 { "sources" } else { "" })?;
    }
    Ok(())
}

fn part_value(part: &Part) -> Value {
    let ranges =
        |ranges: &[SpareRange]| -> Vec<[u16; 2]> { ranges.iter().map(|range| [range.offset, range.size]).collect() };
    json!({
        "kind": "part",
        "name": part.name,
        "maker": part.maker,
        "identity": identity(part),
        "geometry": report::geometry(&part.geometry()),
        "status": format!("{:?}", part.status),
        "mark_pages": part.marks.count(),
        "protected_spare": part.protected.map(ranges),
        "wakes_up_locked": part.power_up.locked,
        "wakes_up_in_continuous_read": part.power_up.continuous_read,
        "parameter_row": part.parameter_row,
        "read_us": part.times.read_us,
        "program_us": part.times.program_us,
        "erase_us": part.times.erase_us,
        "sources": part.sources,
    })
}

fn identity(part: &Part) -> String {
    part.id.bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ")
}

fn blocks(part: &Part) -> String {
    if part.die_count == 1 {
        part.blocks_per_die.to_string()
    } else {
        format!("{} x {}", part.die_count, part.blocks_per_die)
    }
}

/// The letters of a row's sources, each once.
fn letters(part: &Part) -> String {
    let is_used = |letter: char| {
        part.sources.iter().any(|source| source.split(": ").next().is_some_and(|names| names.contains(letter)))
    };
    SOURCES.iter().filter(|(letter, _)| is_used(*letter)).map(|(letter, _)| *letter).collect()
}
