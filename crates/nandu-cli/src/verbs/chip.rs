//! `nandu chip`: kinds of chips.

use clap::Subcommand;
use nandu_nand::CopyRule;
use serde_json::json;

use crate::output::Output;
use crate::{report, units};

#[derive(Debug, Subcommand)]
pub(crate) enum Chip {
    /// Every kind of chip that `create --chip` knows
    List,
}

pub(crate) fn run(args: &Chip, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Chip::List => list(out),
    }
}

fn list(out: &mut Output) -> anyhow::Result<()> {
    if out.is_json() {
        for chip in nandu_sim::Chip::PRESETS {
            out.json(&json!({
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
         bytes; times in microseconds, LSB/MSB; P/E: rated erases of a block. The default is {}.",
        nandu_sim::Chip::DEFAULT.name
    )?;
    Ok(())
}

fn microseconds(lsb_ns: u32, msb_ns: u32) -> String {
    let one = |ns: u32| (f64::from(ns) / 1000.0).to_string();
    if lsb_ns == msb_ns { one(lsb_ns) } else { format!("{}/{}", one(lsb_ns), one(msb_ns)) }
}
