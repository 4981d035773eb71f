//! `nandu fs put`: one file written.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_files::errno::ENOENT;
use nandu_files::{Attributes, FileError, FileKind, FileSystem};
use serde_json::json;

use crate::files::{self, MemoryArgs};
use crate::output::Output;
use crate::session::SessionArgs;
use crate::units;

#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    session: SessionArgs,
    /// The file; what it held is replaced
    path: String,
    /// File of this machine with the content; by default it is standard input
    source: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
}

pub(crate) fn run(args: &Put, out: &mut Output) -> anyhow::Result<()> {
    let mut source: Box<dyn Read> = match &args.source {
        Some(path) => Box::new(File::open(path).with_context(|| path.display().to_string())?),
        None => Box::new(io::stdin()),
    };
    let image = &args.session.image;
    let (size, programs) = files::change(&args.session, args.memory, |fs| {
        let complain = |error| files::complain(image, &args.path, error);
        let before = fs.nand().counters().programs;
        let (directory, name) = files::find_parent(fs, image, &args.path)?;
        let ino = match fs.lookup(directory, name.as_bytes()) {
            Err(error) if error.errno() == ENOENT => {
                let attributes = Attributes { mode: 0o644, ..Attributes::default() };
                fs.create(directory, name.as_bytes(), attributes).map_err(complain)?
            }
            found => found.map_err(complain)?,
        };
        if fs.stat(ino).map_err(complain)?.kind != FileKind::File {
            return Err(anyhow!("{}: {}: not a regular file", image.display(), args.path));
        }
        fs.truncate(ino, 0).map_err(complain)?;
        let mut buffer = vec![0; 1 << 16];
        let mut size = 0;
        loop {
            let count = source.read(&mut buffer).context("the content")?;
            if count == 0 {
                break;
            }
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let written = fs.write_at(ino, size, rest).map_err(complain)?;
                rest = &rest[written..];
                size += written as u64;
            }
        }
        fs.fsync(ino).map_err(complain)?;
        Ok((size, fs.nand().counters().programs - before))
    })?;
    if out.is_json() {
        out.json(&json!({ "path": args.path, "size": size, "programs": programs }))?;
        return Ok(());
    }
    let (bytes, cost) = (units::things(size, "byte"), units::things(programs, "page program"));
    writeln!(out, "{}: {bytes} written; {cost}", args.path)?;
    Ok(())
}
