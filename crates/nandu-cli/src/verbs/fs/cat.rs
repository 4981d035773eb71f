//! `nandu fs cat`: the content of a file.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nandu_files::{FileKind, FileSystem};

use crate::files::{self, LookArgs};
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct Cat {
    /// The image
    image: PathBuf,
    /// The file
    path: String,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) fn run(args: &Cat, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.image;
    files::look(image, args.look, |fs| {
        let stat = files::find(fs, image, &args.path)?;
        if stat.kind != FileKind::File {
            return Err(anyhow!("{}: {}: not a regular file", image.display(), args.path));
        }
        let mut buffer = vec![0; 1 << 16];
        let mut offset = 0;
        loop {
            let count = fs.read_at(stat.ino, offset, &mut buffer);
            match count.map_err(|error| files::complain(image, &args.path, error))? {
                0 => return Ok(()),
                count => {
                    out.bytes(&buffer[..count])?;
                    offset += count as u64;
                }
            }
        }
    })
}
