//! Working on the chip of an image: opened, observed, committed.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;
use nandu_sim::trace::{Content, Recording};

use crate::progress::Progress;

/// What every verb takes that works on a chip.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// The image
    pub(crate) image: PathBuf,
    /// Record the operations in a new file, for `trace replay`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record their bytes too, so that the replay compares what is read
    #[arg(long, requires = "trace")]
    trace_data: bool,
}

/// The chip of an image, to be worked on.
///
/// Nothing of what is done reaches the image before [`finish`](Session::finish).
pub(crate) struct Session {
    pub(crate) sim: Sim,
    image: ImageFile,
    recording: Option<(PathBuf, Recording<BufWriter<File>>)>,
}

impl Session {
    pub(crate) fn open(args: &SessionArgs) -> anyhow::Result<Session> {
        let mut progress = Progress::new("reading the image");
        let (image, mut sim) = ImageFile::open_watched(&args.image, &mut |done, total| progress.set(done, total))?;
        let content = if args.trace_data { Content::Bytes } else { Content::Checksum };
        let recording = match &args.trace {
            None => None,
            Some(path) => {
                // A new file, so that a slip cannot overwrite the image.
                let file = File::create_new(path).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => anyhow!("exists already"),
                    _ => error.into(),
                });
                let started = file.and_then(|file| Ok(Recording::start(&mut sim, BufWriter::new(file), content)?));
                Some((path.clone(), started.with_context(|| path.display().to_string())?))
            }
        };
        Ok(Session { sim, image, recording })
    }

    /// Writes what was done into the image, and ends the trace.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let mut progress = Progress::new("writing the image");
        self.image.commit_watched(&mut self.sim, &mut |done, total| progress.set(done, total))?;
        if let Some((path, recording)) = self.recording {
            recording.finish(&mut self.sim).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// The chip of an image and the image, to be committed whenever the caller likes.
pub(crate) fn open_image(image: &Path) -> anyhow::Result<(ImageFile, Sim)> {
    let mut progress = Progress::new("reading the image");
    Ok(ImageFile::open_watched(image, &mut |done, total| progress.set(done, total))?)
}

/// The chip of an image, to be looked at: others may look at the same time.
pub(crate) fn look(image: &PathBuf) -> anyhow::Result<Sim> {
    let mut progress = Progress::new("reading the image");
    Ok(ImageFile::load_watched(image, &mut |done, total| progress.set(done, total))?)
}
