//! `nandu mount`: the file system of an image as a directory.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, anyhow};
use clap::Args;
use nandu::fs::{Fs, Options};
use nandu_dffs::Dffs;
use nandu_fuse::{Keeper, MountOptions, Volume, serve};
use nandu_nand::Nand;
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;
use rustix::mount::MountFlags;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Ending, usage};
use crate::files::{self, LookArgs, MemoryArgs};
use crate::flash::Flash;
use crate::fstab::{End, Role, Words};
use crate::health::Health;
use crate::output::Output;
use crate::volume::{System, VolumeError};
use crate::{device, kind, session};

/// What the process in the background says once the mount is there.
const READY: &str = "mounted";

/// The same of a volume that cannot be changed any more.
const READY_TO_BE_READ: &str = "mounted, and can only be read";

/// Bytes of a chip that are in memory only, counted in blocks, at which they are written to the image.
const UNKEPT_SIZE_MAX: u64 = 32 << 20;

/// Bytes that a file for complaints has room for, however full the disk is.
const LOG_ROOM: u64 = 16 << 10;

/// What a mount does not have though programs may ask for it.
const LIMITS: &str = "Not there: files without a name from the start (O_TMPFILE), times of birth, flags of chattr, room that is promised \
    beforehand (fallocate without a mode), extended attributes of more than 65,536 bytes, and access lists of more than 4096: \
    setting one says then that no space is left.";

#[derive(Args, Debug)]
#[command(after_help = LIMITS)]
pub(crate) struct Mount {
    /// The image, or an MTD device: /dev/mtdN, or mtd:NAME by the name that the board gives it
    image: PathBuf,
    /// The directory that shows the file system until `fusermount3 -u DIRECTORY` or `umount DIRECTORY`
    directory: PathBuf,
    /// Refuse every change
    #[arg(long)]
    ro: bool,
    /// Stay until the mount ends; Ctrl-C ends it
    #[arg(long)]
    foreground: bool,
    /// The file for what goes wrong once the mount is there; in the background IMAGE.log, or of a device /run/nandu-mtdN.log, if not said otherwise. None is left where nothing goes wrong
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Reads change no times; else the first after a change does, and the first of a day
    #[arg(long)]
    noatime: bool,
    /// Let other users in, too
    #[arg(long)]
    allow_other: bool,
    /// Options as `mount` and fstab have them, with commas between them: ro, noatime, allow_other, noexec, cache=BYTES, at=NUMBER, and for root suid
    /// and dev, without which programs run as who calls them, and devices are none
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<String>,
    #[command(flatten)]
    look: LookArgs,
}

/// An image file as what keeps a simulated chip: what was acknowledged as durable is in the file. A device, which has none, keeps itself.
struct ImageKeeper(Option<ImageFile>);

impl Keeper<Flash> for ImageKeeper {
    fn keep(&mut self, chip: &mut Flash) -> io::Result<()> {
        session::commit(&mut self.0, chip).map_err(io::Error::other)
    }

    fn is_behind(&self, chip: &Flash) -> bool {
        self.0.is_some() && chip.sim().is_some_and(Sim::is_unkept)
    }

    fn is_due(&self, chip: &Flash) -> bool {
        self.0.is_some() && chip.sim().is_some_and(|sim| sim.unkept_size() > UNKEPT_SIZE_MAX)
    }
}

/// Has what is said on standard error go to a file from now on: nobody reads what a process in the background says.
fn redirect_complaints(path: &Path) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(path)?;
    // The likeliest complaint is that there is no room, and the file may be where the image is.
    let _ = rustix::fs::fallocate(&log, rustix::fs::FallocateFlags::KEEP_SIZE, 0, LOG_ROOM);
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

/// The file that a mount of this image in the background complains to.
fn log_of(image: &Path) -> PathBuf {
    if let Ok(Some(device)) = device::path(image) {
        // Beside a device is no place for files.
        let run = PathBuf::from("/run");
        let name = device.file_name().unwrap_or_default().display().to_string();
        return if run.is_dir() { run } else { std::env::temp_dir() }.join(format!("nandu-{name}.log"));
    }
    let mut name = image.as_os_str().to_owned();
    name.push(".log");
    PathBuf::from(name)
}

pub(crate) fn run(args: &Mount, out: &mut Output) -> anyhow::Result<()> {
    let mut words = Words::default();
    for text in &args.options {
        words.take(text).or_else(usage)?;
    }
    words.ro |= args.ro;
    words.noatime |= args.noatime;
    words.allow_other |= args.allow_other;
    let memory = words.cache.map_or(args.look.memory, |cache| MemoryArgs { cache });
    let look = LookArgs { memory, at: words.at.or(args.look.at) };
    // What a snapshot keeps does not change.
    words.ro |= look.at.is_some();
    if words.remount {
        remount(args, words)
    } else if args.foreground {
        in_foreground(args, words, look, out)
    } else {
        in_background(args, words, look, out)
    }
}

/// Changes the flags of a mount that is there. The process that serves it need not know.
fn remount(args: &Mount, words: Words) -> anyhow::Result<()> {
    let flags = [
        (words.ro, MountFlags::RDONLY),
        (words.noatime, MountFlags::NOATIME),
        (!words.suid, MountFlags::NOSUID),
        (!words.dev, MountFlags::NODEV),
        (words.noexec, MountFlags::NOEXEC),
    ];
    let flags = flags.into_iter().filter(|&(is_set, _)| is_set).fold(MountFlags::empty(), |all, (_, flag)| all | flag);
    let done = rustix::mount::mount_remount(&args.directory, flags, "");
    done.with_context(|| format!("{}: remount", args.directory.display()))
}

/// Has another process do it, and waits until the mount is there or has failed.
fn in_background(args: &Mount, words: Words, look: LookArgs, out: &mut Output) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program")?;
    let mut command = Command::new(program);
    // Not by the name of a helper, whose command line is another.
    command.arg0("nandu");
    command.arg("mount").arg(&args.image).arg(&args.directory).arg("--foreground");
    command.args(words.ro.then_some("--ro")).args(words.allow_other.then_some("--allow-other"));
    command.args(words.noatime.then_some("--noatime"));
    let others = [(words.suid, "suid"), (words.dev, "dev"), (words.noexec, "noexec")];
    for (_, word) in others.into_iter().filter(|&(is_set, _)| is_set) {
        command.args(["-o", word]);
    }
    command.arg("--cache").arg(look.memory.cache.to_string());
    if let Some(number) = look.at {
        command.arg("--at").arg(number.to_string());
    }
    command.arg("--log").arg(args.log.clone().unwrap_or_else(|| log_of(&args.image)));
    // A process group of its own: what is typed at the terminal is not for it. Nor does it keep open what this process was given:
    // whoever reads that would wait until the mount ends.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("a process in the background")?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim_end() == READY_TO_BE_READ {
        files::warn_of_read_only(&args.image);
    } else if line.trim_end() != READY {
        let mut complaint = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_string(&mut complaint)?;
        }
        let code = match child.wait()?.code().and_then(|code| u8::try_from(code).ok()) {
            // The child is called by the program's own name.
            Some(2) => Role::here().code(End::Usage),
            None | Some(1) => Role::here().code(End::Failed),
            Some(code) => code,
        };
        let complaint = complaint.trim_end().strip_prefix("nandu: ").unwrap_or(complaint.trim_end());
        return Err(Ending::new(code, complaint.to_owned()).into());
    }
    if out.is_json() {
        out.json(&json!({
            "image": args.image.display().to_string(),
            "directory": args.directory.display().to_string(),
            "process": child.id(),
        }))?;
    }
    Ok(())
}

fn in_foreground(args: &Mount, words: Words, look: LookArgs, out: &mut Output) -> anyhow::Result<()> {
    let (image, mut flash) = if words.ro { (None, session::look(&args.image)?) } else { session::open(&args.image)? };
    files::refuse_others(&args.image, &flash)?;
    flash.power_on();
    let system = kind::system(&flash);
    let LookArgs { memory, at } = look;
    if at.is_some() {
        files::need_snapshots(&args.image, system)?;
    }
    // The file system outlives this function's frame, in the threads that serve it; there is one mount in a process.
    let bytes = Box::leak(files::volume_memory(&flash, system, memory).into_boxed_slice());
    match system {
        System::Nandu => {
            let explain = |error| files::explain(&args.image, VolumeError::Nandu(error));
            let options = Options { read_only: words.ro, snapshot: at, ..memory.options_for(&flash) };
            let fs = Fs::mount(flash, options, bytes).map_err(explain)?;
            files::warn_of_loss(&args.image, fs.stats().tail.lost);
            if device::is_device(&args.image) {
                for warning in Health::of(&fs.stats(), fs.nand().geometry()).warnings() {
                    eprintln!("nandu: {}: {warning}", args.image.display());
                }
            }
            show(args, words, fs, image, explain, out)
        }
        System::Dffs => {
            let explain = |error| files::explain(&args.image, VolumeError::Dffs(error));
            let fs = Dffs::mount(flash, files::DFFS, bytes).map_err(explain)?;
            show(args, words, fs, image, explain, out)
        }
    }
}

/// Shows a file system as a directory until that is unmounted.
fn show<F: Volume<Chip = Flash>>(
    args: &Mount,
    words: Words,
    fs: F,
    image: Option<ImageFile>,
    explain: impl Fn(F::Error) -> anyhow::Error,
    out: &mut Output,
) -> anyhow::Result<()> {
    let is_read_only = fs.is_read_only();
    if is_read_only {
        files::warn_of_read_only(&args.image);
    }
    let mount_options = MountOptions {
        name: name_of(&args.image).display().to_string(),
        read_only: words.ro || is_read_only,
        is_for_all: words.allow_other,
        no_atime: words.noatime,
        has_set_id: words.suid,
        has_devices: words.dev,
        no_exec: words.noexec,
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    let handle = signals.handle();
    let directory = directory(&args.directory)?;
    let name = directory.display().to_string();
    let log = args.log.clone();
    let (fs, mut keeper) = serve(fs, ImageKeeper(image), &directory, &mount_options, |unmounter| {
        if let Some(log) = &log
            && let Err(error) = redirect_complaints(log)
        {
            // A mount that cannot complain is better than none.
            let _ = writeln!(io::stderr(), "nandu: {}: {error}", log.display());
        }
        let ready = if is_read_only { READY_TO_BE_READ } else { READY };
        let _ = writeln!(io::stdout(), "{ready}").and_then(|()| io::stdout().flush());
        thread::spawn(move || {
            for _ in signals.forever() {
                // A directory that is in use stays mounted; the next signal tries again.
                if let Err(error) = unmounter.unmount() {
                    let _ = writeln!(io::stderr(), "nandu: {name}: stays mounted: {error}");
                }
            }
        });
    })
    .with_context(|| format!("{}: mount", args.directory.display()))?;
    handle.close();
    let mut flash = fs.unmount().map_err(explain)?;
    keeper.keep(&mut flash)?;
    out.flush()?;
    if let Some(log) = &args.log
        && fs::metadata(log).is_ok_and(|metadata| metadata.len() == 0)
    {
        let _ = fs::remove_file(log);
    }
    Ok(())
}

/// What the list of mounts calls an image or a device.
fn name_of(image: &Path) -> PathBuf {
    let path = device::path(image).ok().flatten().unwrap_or_else(|| image.to_owned());
    path.canonicalize().unwrap_or(path)
}

/// The directory by its full path, so that the mount is found whatever directory a process is in.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let full = path.canonicalize().with_context(|| path.display().to_string())?;
    if full.is_dir() { Ok(full) } else { Err(anyhow!("{}: not a directory", path.display())) }
}
