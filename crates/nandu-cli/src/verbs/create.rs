//! `nandu create`: the image of a new chip.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use clap::builder::PossibleValuesParser;
use nandu_nand::BlockAddr;
use nandu_sim::image::{ImageFile, ImageProblem};
use nandu_sim::{Chip, Sim};
use serde_json::json;

use crate::failure::usage;
use crate::output::Output;
use crate::units;

/// Blocks that an image can hold.
const BLOCK_COUNT_MAX: i64 = 1 << 20;

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// The file to make
    image: PathBuf,
    /// The kind of chip; `nandu chip list` shows them
    #[arg(long, value_name = "NAME", default_value = Chip::DEFAULT.name, value_parser = chip_names())]
    chip: String,
    /// Blocks that are bad from the factory, in percent of all, at places that follow from the seed
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    factory_bad: f64,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Another number of blocks than the chip has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=BLOCK_COUNT_MAX))]
    blocks: Option<u32>,
    /// Spare bytes of each page that are protected as the rest is, if not as many as on the chip; with 16 a page of a file that is synced
    /// costs one program, not two
    #[arg(long, value_name = "N")]
    tag_bytes: Option<u32>,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

pub(super) fn chip_names() -> PossibleValuesParser {
    Chip::PRESETS.iter().map(|chip| chip.name).collect::<Vec<_>>().into()
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("it is not from 0 to 100".to_owned()) }
}

pub(crate) fn run(args: &Create, out: &mut Output) -> anyhow::Result<()> {
    let mut chip = Chip::preset(&args.chip).unwrap_or(Chip::DEFAULT);
    if let Some(block_count) = args.blocks {
        chip = chip.with_blocks(block_count);
    }
    if let Err(error) = chip.geometry.validate() {
        return usage(format!("--blocks: {error}"));
    }
    chip.geometry.tag_size = args.tag_bytes.unwrap_or(chip.geometry.tag_size);
    if let Err(error) = chip.geometry.validate() {
        return usage(format!("--tag-bytes: {error}"));
    }
    let mut sim = Sim::with_seed(chip, args.seed).with_factory_bad(args.factory_bad, false);
    let create = if args.force { ImageFile::replace } else { ImageFile::create };
    let image = create(&args.image, &mut sim).map_err(|error| match error.problem() {
        ImageProblem::Exists => anyhow!("{error}; --force replaces it"),
        _ => error.into(),
    })?;
    let blocks = 0..sim.chip().geometry.block_count;
    let bad: Vec<u32> = blocks.filter(|&block| sim.block_state(BlockAddr(block)).factory_bad).collect();
    let block_count = u64::from(chip.geometry.block_count);
    let bad_percent = units::percent(bad.len() as u64, block_count);
    if out.is_json() {
        out.json(&json!({
            "image": args.image.display().to_string(),
            "chip": chip.name,
            "seed": args.seed,
            "block_count": block_count,
            "factory_bad_blocks": bad,
            "factory_bad_percent": bad_percent,
            "file_size": image.file_size(),
        }))?;
    } else {
        writeln!(
            out,
            "{}: {}, {}, {}, {} of them bad ({bad_percent} %), seed {}",
            args.image.display(),
            chip.name,
            units::bytes(chip.geometry.capacity()),
            units::things(block_count, "block"),
            bad.len(),
            args.seed
        )?;
    }
    Ok(())
}
