//! Working on the chip of an image: opened, observed, committed.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_sim::Sim;
use nandu_sim::image::{ImageError, ImageFile, ImageProblem};
use nandu_sim::trace::{Content, Recording};

use crate::progress::Progress;

/// How long an image that is in use is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long nothing is said of that.
const SILENCE: Duration = Duration::from_millis(500);

/// Time between two attempts.
const WAIT_TICK: Duration = Duration::from_millis(20);

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
        let (image, mut sim) = patiently(&args.image, || {
            ImageFile::open_watched(&args.image, &mut |done, total| progress.set(done, total))
        })?;
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

/// Opens an image, and waits for one that is in use: `umount` returns before the process that served the mount has written the end.
/// An image that is still mounted is not waited for.
fn patiently<T>(image: &Path, mut open: impl FnMut() -> Result<T, ImageError>) -> Result<T, ImageError> {
    let begin = Instant::now();
    let mut has_said = false;
    loop {
        match open() {
            Err(error)
                if matches!(error.problem(), ImageProblem::InUse)
                    && begin.elapsed() < PATIENCE
                    && !is_mounted(image) =>
            {
                // Who is no terminal gets one line, and that is how it ended.
                if !has_said && begin.elapsed() > SILENCE && io::stderr().is_terminal() {
                    has_said = true;
                    let _ = writeln!(io::stderr(), "nandu: {error}; waiting for it");
                }
                thread::sleep(WAIT_TICK);
            }
            done => return done,
        }
    }
}

/// Whether the list of mounts has one of this image.
fn is_mounted(image: &Path) -> bool {
    let Ok(image) = image.canonicalize() else { return false };
    // The kernel writes the number of what could end a word or a line.
    let escapes = [('\\', "\\134"), (' ', "\\040"), ('\t', "\\011"), ('\n', "\\012"), ('#', "\\043")];
    let escape = |text: String| escapes.iter().fold(text, |text, &(letter, number)| text.replace(letter, number));
    let name = escape(image.display().to_string());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    mounts.any(|mut words| words.next() == Some(&name) && words.nth(1) == Some("fuse.nandu"))
}

/// The chip of an image and the image, to be committed whenever the caller likes.
pub(crate) fn open_image(image: &Path) -> anyhow::Result<(ImageFile, Sim)> {
    let mut progress = Progress::new("reading the image");
    Ok(patiently(image, || ImageFile::open_watched(image, &mut |done, total| progress.set(done, total)))?)
}

/// The chip of an image, to be looked at: others may look at the same time.
pub(crate) fn look(image: &PathBuf) -> anyhow::Result<Sim> {
    let mut progress = Progress::new("reading the image");
    Ok(patiently(image, || ImageFile::load_watched(image, &mut |done, total| progress.set(done, total)))?)
}
