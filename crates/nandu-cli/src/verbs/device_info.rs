//! The part of `nandu info` that is about MTD devices.

use std::path::Path;

use nandu::fs::{Fs, FsError, Options};
use nandu::{LogStats, Store};
use nandu_nand::BlockAddr;
use serde_json::{Value, json};

use crate::device::Device;
use crate::files::{self, MemoryArgs};
use crate::flash::Flash;
use crate::health::Health;
use crate::kind::{self, Kind};
use crate::output::Output;
use crate::store::{self, CacheArgs};
use crate::verbs::info::{holds_files, index_json};
use crate::volume::System;
use crate::{report, units};

/// What the log of the volume on a device counts; looks at a copy. Nothing of other volumes, and of one that cannot be opened.
fn stats(flash: &Flash) -> Option<LogStats> {
    let found = kind::find(flash).filter(|found| found.kind == Kind::Mutree)?;
    let mut copy = flash.clone();
    if holds_files(flash, found.kind) {
        let options = Options { read_only: true, ..MemoryArgs::DEFAULT.options_for(flash) };
        let mut memory = files::memory(&copy, &options);
        return Fs::mount(&mut copy, options, &mut memory).ok().map(|fs| fs.stats());
    }
    let options = CacheArgs { cache: 1 << 16 }.options();
    let mut memory = store::memory(&copy, &options);
    Store::open(&mut copy, options, &mut memory).ok().map(|store| store.stats())
}

/// In what a volume is not one for this device. Of records there is none: that they are no files is another matter.
fn difference(flash: &Flash) -> Option<&'static str> {
    let options = Options { read_only: true, ..MemoryArgs::DEFAULT.options_for(flash) };
    let (mut copy, mut memory) = (flash.clone(), files::memory(flash, &options));
    match Fs::mount(&mut copy, options, &mut memory) {
        Err(FsError::OtherFormat { what }) if what != "raw pages" => Some(what),
        _ => None,
    }
}

pub(crate) fn health(flash: &Flash) -> Option<Health> {
    stats(flash).map(|stats| Health::of(&stats, &flash.chip().geometry))
}

pub(crate) fn run(image: &Path, flash: &Flash, device: &Device, out: &mut Output) -> anyhow::Result<()> {
    let geometry = &flash.chip().geometry;
    let blocks = (0..geometry.block_count).map(BlockAddr);
    let bad: Vec<u32> = blocks.filter(|&block| device.is_marked(block).unwrap_or(true)).map(|block| block.0).collect();
    let health = health(flash);
    for warning in health.iter().flat_map(Health::warnings) {
        eprintln!("nandu: {}: {warning}", image.display());
    }
    let name = image.display().to_string();
    let (bits_advised, counts_bits, spare_free) = {
        let mtd = device.mtd();
        (mtd.bits_advised(), mtd.counts_bits(), mtd.spare_free())
    };
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "chip": flash.chip().name,
            "device": {
                "name": device.mtd().name(),
                "refresh_advised_bits": bits_advised,
                "corrected_bits_by": if counts_bits { "read" } else { "sums" },
                "spare_free_size": spare_free,
            },
            "index": index_json(flash),
            "geometry": report::geometry(geometry),
            "bad_blocks": {
                "count": bad.len(),
                "percent": units::percent(bad.len() as u64, geometry.block_count.into()),
                "marked": bad,
            },
            "health": health.map_or(Value::Null, |health| health.json()),
        }))?;
        return Ok(());
    }
    let block_size = u64::from(geometry.pages_per_block) * u64::from(geometry.page_size);
    writeln!(out, "{name}: {}, {}\n", flash.chip().name, flash.chip().source)?;
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
    let tags = match geometry.tag_size {
        0 => {
            format!("none in use; {spare_free} spare bytes are free, and whether they are protected Linux does not say")
        }
        size => format!("{size} of the {spare_free} free spare bytes"),
    };
    writeln!(out, "tags        {tags}")?;
    writeln!(
        out,
        "ECC         {} in {} bytes; a page is moved from {} on, told {}",
        units::things(geometry.ecc.correctable_bits.into(), "bit"),
        geometry.ecc.codeword_size,
        bits_advised,
        if counts_bits { "with each read" } else { "by sums of the device" }
    )?;
    let holds = match (kind::system(flash), kind::find(flash)) {
        (System::Dffs, _) => "a file system of DFFS".to_owned(),
        (_, Some(found)) if holds_files(flash, found.kind) => "a file system".to_owned(),
        (_, Some(found)) => match difference(flash) {
            Some(what) => format!("a volume of nandu's that differs in {what}"),
            None => format!("{} index of records", found.kind.with_article()),
        },
        (_, None) if kind::is_of_format_one(flash) => "a volume of format 1, which only older versions open".to_owned(),
        (_, None) => "no volume of nandu's".to_owned(),
    };
    writeln!(out, "holds       {holds}")?;
    let percent = units::percent(bad.len() as u64, geometry.block_count.into());
    let numbers: Vec<String> = bad.iter().map(u32::to_string).collect();
    writeln!(
        out,
        "bad blocks  {} of {} ({percent} %) {}",
        units::count_of(bad.len() as u64),
        units::count_of(geometry.block_count.into()),
        numbers.join(" ")
    )?;
    if let Some(health) = health {
        writeln!(out, "health      {health}")?;
    }
    Ok(())
}
