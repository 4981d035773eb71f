//! `nandu fs df`: how full and how worn a file system is.

use std::path::PathBuf;

use clap::Args;
use nandu_files::FileSystem;
use serde_json::json;

use crate::files::{self, LookArgs, MemoryArgs};
use crate::output::Output;
use crate::units;
use crate::verbs::fs::regions;

#[derive(Args, Debug)]
pub(crate) struct Df {
    /// The image
    image: PathBuf,
    #[command(flatten)]
    memory: MemoryArgs,
}

pub(crate) fn run(args: &Df, out: &mut Output) -> anyhow::Result<()> {
    let (stat, (bad_blocks, was_cut), regions) = files::look(&args.image, LookArgs::now(args.memory), |fs| {
        let stat = fs.statfs().map_err(|error| files::explain(&args.image, error))?;
        Ok((stat, (fs.bad_blocks(), fs.was_cut()), fs.regions()))
    })?;
    let size = u64::from(stat.block_size);
    let used = stat.blocks - stat.blocks_free;
    if out.is_json() {
        let mut line = json!({
            "image": args.image.display().to_string(),
            "page_size": size,
            "pages": stat.blocks,
            "pages_free": stat.blocks_free,
            "pages_available": stat.blocks_available,
            "files_free": stat.files_free,
            "bad_blocks": bad_blocks,
            "was_cut": was_cut,
        });
        if let Some(regions) = regions {
            line["regions"] = regions::json(&regions);
        }
        out.json(&line)?;
        return Ok(());
    }
    writeln!(
        out,
        "{}: {} of {} used, {} %; {} available to files",
        args.image.display(),
        units::bytes(used * size),
        units::bytes(stat.blocks * size),
        units::percent(used, stat.blocks),
        units::bytes(stat.blocks_available * size)
    )?;
    if let Some(regions) = regions {
        writeln!(out, "{}", regions::line(&regions))?;
    }
    writeln!(out, "{} bad; names to {} bytes", units::things(bad_blocks.into(), "block"), stat.name_size_max)?;
    Ok(())
}
