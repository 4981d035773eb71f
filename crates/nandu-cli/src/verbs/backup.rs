//! `nandu backup`: a copy of an image that may be in use.

use std::path::PathBuf;

use clap::Args;
use nandu_sim::image;
use serde_json::json;

use crate::output::Output;
use crate::progress::Progress;

#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// The image; it may be mounted, and is not held up
    image: PathBuf,
    /// The file to make: the image as it would be had the mount been killed just now, with everything that was synced
    copy: PathBuf,
}

pub(crate) fn run(args: &Backup, out: &mut Output) -> anyhow::Result<()> {
    let mut progress = Progress::new("copying the image");
    image::backup(&args.image, &args.copy, &mut |done, total| progress.set(done, total))?;
    if out.is_json() {
        out.json(&json!({
            "image": args.image.display().to_string(),
            "copy": args.copy.display().to_string(),
        }))?;
    }
    Ok(())
}
