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

use crate::device::{self, Access, Device};
use crate::dumped;
use crate::failure::usage;
use crate::flash::Flash;
use crate::kind;
use crate::progress::Progress;

/// How long an image that is in use is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long nothing is said of that.
const SILENCE: Duration = Duration::from_millis(500);

/// Time between two attempts.
pub(crate) const WAIT_TICK: Duration = Duration::from_millis(20);

/// What every verb takes that works on a chip.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// The image, or an MTD device
    pub(crate) image: PathBuf,
    /// Record the operations in a new file, for `trace replay`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record their bytes too, so that the replay compares what is read
    #[arg(long, requires = "trace")]
    trace_data: bool,
}

/// The chip of an image, to be worked on, or a device.
///
/// Nothing of what is done reaches an image before [`finish`](Session::finish). What is done to a device is done.
pub(crate) struct Session {
    pub(crate) flash: Flash,
    image: Option<ImageFile>,
    recording: Option<(PathBuf, Recording<BufWriter<File>>)>,
}

impl Session {
    pub(crate) fn open(args: &SessionArgs) -> anyhow::Result<Session> {
        let Some(path) = device::path(&args.image)? else { return Session::open_image(args) };
        if args.trace.is_some() {
            return usage("--trace records operations of simulated chips, and this is a device");
        }
        Ok(Session { flash: open_device(&path, Access::Change)?, image: None, recording: None })
    }

    /// The same for who makes a volume: whether the one before had tags does not matter.
    pub(crate) fn open_blank(args: &SessionArgs, has_tags: bool) -> anyhow::Result<Session> {
        match device::path(&args.image)? {
            Some(path) if args.trace.is_none() => {
                let flash = Flash::Device(Device::open(&path, Access::Change, has_tags)?);
                Ok(Session { flash, image: None, recording: None })
            }
            _ => Session::open(args),
        }
    }

    fn open_image(args: &SessionArgs) -> anyhow::Result<Session> {
        let mut progress = Progress::new("reading the image");
        let (image, mut sim) = patiently(&args.image, || {
            ImageFile::open_watched(&args.image, &mut |done, total| progress.set(done, total))
        })
        .map_err(|error| complain(&args.image, error))?;
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
        Ok(Session { flash: sim.into(), image: Some(image), recording })
    }

    /// The simulated chip, for what only one can do.
    pub(crate) fn sim(&mut self) -> anyhow::Result<&mut Sim> {
        match &mut self.flash {
            Flash::Sim(sim) => Ok(sim),
            Flash::Device(_) => usage(
                "single operations are done to simulated chips; to devices nanddump, nandwrite and flash_erase do them",
            ),
        }
    }

    /// Writes what was done into the image, and ends the trace.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let (Some(image), Flash::Sim(sim)) = (&mut self.image, &mut self.flash) else { return Ok(()) };
        let mut progress = Progress::new("writing the image");
        image.commit_watched(sim, &mut |done, total| progress.set(done, total))?;
        if let Some((path, recording)) = self.recording {
            recording.finish(sim).with_context(|| path.display().to_string())?;
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

/// The chip of an image and the image, to be committed whenever the caller likes; a device has none.
pub(crate) fn open(image: &Path) -> anyhow::Result<(Option<ImageFile>, Flash)> {
    if let Some(path) = device::path(image)? {
        return Ok((None, open_device(&path, Access::Change)?));
    }
    let mut progress = Progress::new("reading the image");
    let (file, sim) = patiently(image, || ImageFile::open_watched(image, &mut |done, total| progress.set(done, total)))
        .map_err(|error| complain(image, error))?;
    Ok((Some(file), sim.into()))
}

/// Writes what was done into the image, where there is one.
pub(crate) fn commit(image: &mut Option<ImageFile>, flash: &mut Flash) -> Result<(), ImageError> {
    match (image, flash) {
        (Some(image), Flash::Sim(sim)) => image.commit(sim),
        _ => Ok(()),
    }
}

/// The chip of an image, or a device, to be looked at: others may look at the same time, and whatever is done to it stays in memory.
pub(crate) fn look(image: &Path) -> anyhow::Result<Flash> {
    if let Some(path) = device::path(image)? {
        return open_device(&path, Access::Look);
    }
    Ok(look_at_image(image)?.into())
}

/// The chip of an image, or of a dump of a device, to be looked at.
pub(crate) fn look_at_image(image: &Path) -> anyhow::Result<Sim> {
    let mut progress = Progress::new("reading the image");
    let loaded = patiently(image, || ImageFile::load_watched(image, &mut |done, total| progress.set(done, total)));
    drop(progress);
    match loaded {
        Err(error) if matches!(error.problem(), ImageProblem::NotAnImage) => match dumped::open(image)? {
            Some(sim) => Ok(sim),
            None => Err(error.into()),
        },
        done => Ok(done?),
    }
}

/// Why an image cannot be opened to be changed. A dump is none.
fn complain(image: &Path, error: ImageError) -> anyhow::Error {
    let is_dump = matches!(error.problem(), ImageProblem::NotAnImage) && matches!(dumped::open(image), Ok(Some(_)));
    if is_dump { anyhow!("{}: a dump of a device, which can only be looked at", image.display()) } else { error.into() }
}

/// Opens a device, with tags if the volume on it has them.
fn open_device(path: &Path, access: Access) -> anyhow::Result<Flash> {
    match Flash::Device(Device::open(path, access, false)?) {
        flash if !kind::uses_tags(&flash) => Ok(flash),
        Flash::Device(device) => Ok(Flash::Device(device.with_tags(path, access)?)),
        flash @ Flash::Sim(_) => Ok(flash),
    }
}

/// What is said behind an error of a verb that changes something: of an image nothing was written.
pub(crate) fn as_it_was(image: &Path) -> &'static str {
    if device::is_device(image) { "" } else { "; the image is as it was" }
}
