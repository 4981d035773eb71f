//! `nandu fs regions`: how many blocks hold one bit in a cell and how many two.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::Args;
use nandu::fs::Regions;
use nandu_fuse::REGIONS_XATTR;
use serde_json::{Value, json};

use crate::files::{self, LookArgs, MemoryArgs};
use crate::output::Output;
use crate::units;
use crate::volume::Volume;

/// Time between two looks at an image that is watched.
const WATCH_TICK: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
pub(crate) struct RegionsArgs {
    /// The image, or a directory of the mount that it is in use by
    image: PathBuf,
    /// Go on looking, and print a line whenever something has changed, until it is gone or Ctrl-C is typed
    #[arg(long)]
    watch: bool,
}

pub(super) fn json(regions: &Regions) -> Value {
    json!({
        "free_blocks": regions.free_blocks,
        "tree_blocks": regions.tree_blocks,
        "slc_blocks": regions.slc_blocks,
        "slc_pages": regions.slc_pages,
        "mlc_blocks": regions.mlc_blocks,
        "mlc_pages": regions.mlc_pages,
        "bad_blocks": regions.bad_blocks,
    })
}

/// The same in a line of text.
pub(super) fn line(regions: &Regions) -> String {
    let of = |blocks: u32, pages: u32| {
        let (blocks, pages) = (units::things(blocks.into(), "block"), units::things(pages.into(), "page"));
        format!("{blocks} with {pages}")
    };
    format!(
        "files: {} at one bit a cell, {} at two; tree and log: {}; free: {}",
        of(regions.slc_blocks, regions.slc_pages),
        of(regions.mlc_blocks, regions.mlc_pages),
        units::things(regions.tree_blocks.into(), "block"),
        units::things(regions.free_blocks.into(), "block")
    )
}

fn look(image: &Path) -> anyhow::Result<Regions> {
    if image.is_dir() {
        return ask(image);
    }
    files::look(image, LookArgs::now(MemoryArgs::DEFAULT), |fs| match fs {
        Volume::Nandu(fs) => Ok(fs.regions()),
        Volume::Dffs(_) => bail!("{}: DFFS has no regions; 'nandu map' shows its areas", image.display()),
    })
}

/// Asks whoever serves the mount that a directory is in.
fn ask(directory: &Path) -> anyhow::Result<Regions> {
    let name = directory.display();
    let mut text = [0; 128];
    let size = rustix::fs::getxattr(directory, REGIONS_XATTR, &mut text[..])
        .map_err(|_| anyhow!("{name}: not a directory of a mount of nandu"))?;
    let text = String::from_utf8_lossy(&text[..size]);
    let numbers: Vec<u32> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [free_blocks, tree_blocks, slc_blocks, slc_pages, mlc_blocks, mlc_pages, bad_blocks] = numbers[..] else {
        bail!("{name}: the mount says '{text}'");
    };
    Ok(Regions { free_blocks, tree_blocks, slc_blocks, slc_pages, mlc_blocks, mlc_pages, bad_blocks })
}

fn print(regions: &Regions, image: &Path, since: Option<Duration>, out: &mut Output) -> anyhow::Result<()> {
    if out.is_json() {
        let mut value = json(regions);
        value["image"] = image.display().to_string().into();
        if let Some(since) = since {
            value["seconds"] = since.as_secs_f64().into();
        }
        out.json(&value)?;
    } else {
        let name = since.map_or(image.display().to_string(), |since| format!("{:.1} s", since.as_secs_f64()));
        writeln!(out, "{name}: {}", line(regions))?;
    }
    Ok(())
}

pub(crate) fn run(args: &RegionsArgs, out: &mut Output) -> anyhow::Result<()> {
    let mut seen = look(&args.image)?;
    print(&seen, &args.image, None, out)?;
    if !args.watch {
        return Ok(());
    }
    let begin = Instant::now();
    out.flush()?;
    while args.image.exists() {
        thread::sleep(WATCH_TICK);
        // While somebody writes the image it may not be readable; the next look finds it as it is then.
        let Ok(now) = look(&args.image) else { continue };
        if now != seen {
            print(&now, &args.image, Some(begin.elapsed()), out)?;
            out.flush()?;
            seen = now;
        }
    }
    Ok(())
}
