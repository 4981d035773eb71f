//! `nandu digest`: 64 bits over all that an image holds, to be kept elsewhere and compared.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use crate::files::{self, LookArgs, MemoryArgs};
use crate::flash::Flash;
use crate::index::{self, Plan, Use};
use crate::output::Output;
use crate::store::CacheArgs;
use crate::verbs::fs::check::is_file_system;
use crate::volume::{Volume, VolumeError};
use crate::{kind, session, view};

#[derive(Args, Debug)]
pub(crate) struct Digest {
    /// The image, which stays as it is
    image: PathBuf,
    /// As the snapshot with this number keeps it
    #[arg(long, value_name = "NUMBER")]
    at: Option<u32>,
}

pub(crate) fn run(args: &Digest, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.image;
    let mut flash = session::look(image)?;
    let (kind, digest) = match is_file_system(&flash) {
        true => ("files", of_files(image, &mut flash, args.at)?),
        false => ("records", of_records(image, &mut flash, args.at)?),
    };
    let digest = format!("{digest:016x}");
    let name = image.display().to_string();
    if out.is_json() {
        out.json(&json!({ "image": name, "kind": kind, "snapshot": args.at, "digest": digest }))?;
    } else {
        writeln!(out, "{digest}  {name}")?;
    }
    Ok(())
}

fn of_records(image: &Path, flash: &mut Flash, at: Option<u32>) -> anyhow::Result<u64> {
    flash.power_on();
    let found = index::identify(image, flash, None)?;
    let mut plan = Plan::new(flash, found, CacheArgs::DEFAULT, Use::Single);
    let mut index = plan.open(flash).map_err(|error| index::explain(image, error))?;
    let store = index.tree(image, "a digest")?;
    let digest = match at {
        None => store.digest(),
        Some(number) => {
            let snapshot = view::find(image, store, number)?;
            store.at(&snapshot).digest()
        }
    };
    digest.map_err(|error| index::explain(image, error))
}

fn of_files(image: &Path, flash: &mut Flash, at: Option<u32>) -> anyhow::Result<u64> {
    files::refuse_others(image, flash)?;
    flash.power_on();
    let (system, memory_args) = (kind::system(flash), MemoryArgs::DEFAULT);
    let mut memory = files::volume_memory(flash, system, memory_args);
    let look = LookArgs { memory: memory_args, at };
    let explain = |error| files::explain(image, error);
    match files::mount(flash, system, look, &mut memory).map_err(explain)? {
        Volume::Nandu(mut fs) => {
            files::warn_of_loss(image, fs.stats().tail.lost);
            fs.digest().map_err(|error| explain(VolumeError::Nandu(error)))
        }
        Volume::Dffs(_) => Err(anyhow!("{}: holds a file system of DFFS, which has no digest", image.display())),
    }
}
