//! `nandu mount`: the file system of an image as a directory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, anyhow};
use clap::Args;
use nandu::fs::{Fs, Options};
use nandu_fuse::{Keeper, MountOptions, serve};
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Ending;
use crate::files::{self, MemoryArgs};
use crate::output::Output;
use crate::session;

/// What the process in the background says once the mount is there.
const READY: &str = "mounted";

#[derive(Args, Debug)]
pub(crate) struct Mount {
    /// The image
    image: PathBuf,
    /// The directory that shows the file system until `fusermount3 -u DIRECTORY` or `umount DIRECTORY`
    directory: PathBuf,
    /// Refuse every change
    #[arg(long)]
    ro: bool,
    /// Stay until the mount ends; Ctrl-C ends it
    #[arg(long)]
    foreground: bool,
    /// Reads change no times; else the first after a change does, and the first of a day
    #[arg(long)]
    noatime: bool,
    /// Let other users in, too
    #[arg(long)]
    allow_other: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// An image file as what keeps a simulated chip: what was acknowledged as durable is in the file.
struct ImageKeeper(Option<ImageFile>);

impl Keeper<Sim> for ImageKeeper {
    fn keep(&mut self, chip: &mut Sim) -> io::Result<()> {
        match &mut self.0 {
            Some(image) => image.commit(chip).map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(args: &Mount, out: &mut Output) -> anyhow::Result<()> {
    if args.foreground { in_foreground(args, out) } else { in_background(args, out) }
}

/// Has another process do it, and waits until the mount is there or has failed.
fn in_background(args: &Mount, out: &mut Output) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program")?;
    let mut command = Command::new(program);
    command.arg("mount").arg(&args.image).arg(&args.directory).arg("--foreground");
    command.args(args.ro.then_some("--ro")).args(args.allow_other.then_some("--allow-other"));
    command.args(args.noatime.then_some("--noatime"));
    command.arg("--cache").arg(args.memory.cache.to_string());
    // A process group of its own: what is typed at the terminal is not for it. Nor does it keep open what this process was given:
    // whoever reads that would wait until the mount ends.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("a process in the background")?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim_end() != READY {
        let mut complaint = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_string(&mut complaint)?;
        }
        let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
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

fn in_foreground(args: &Mount, out: &mut Output) -> anyhow::Result<()> {
    let (mut sim, image) = if args.ro {
        (session::look(&args.image)?, None)
    } else {
        let (image, sim) = session::open_image(&args.image)?;
        (sim, Some(image))
    };
    sim.power_on();
    let options = Options { read_only: args.ro, ..args.memory.options_for(&sim) };
    // The file system outlives this function's frame, in the threads that serve it; there is one mount in a process.
    let memory = Box::leak(files::memory(&sim, &options).into_boxed_slice());
    let explain = |error| files::explain(&args.image, error);
    let fs = Fs::mount(sim, options, memory).map_err(explain)?;
    files::warn_of_loss(&args.image, fs.stats().tail_lost);
    let mount_options = MountOptions {
        name: args.image.display().to_string(),
        read_only: args.ro,
        is_for_all: args.allow_other,
        no_atime: args.noatime,
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    let handle = signals.handle();
    let directory = directory(&args.directory)?;
    let (fs, mut keeper) = serve(fs, ImageKeeper(image), &directory, &mount_options, |mut unmounter| {
        let _ = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                // A directory that is in use stays mounted; the next signal tries again.
                let _ = unmounter.unmount();
            }
        });
    })
    .with_context(|| format!("{}: mount", args.directory.display()))?;
    handle.close();
    let mut sim = fs.unmount().map_err(explain)?;
    keeper.keep(&mut sim).with_context(|| args.image.display().to_string())?;
    out.flush()?;
    Ok(())
}

/// The directory by its full path, so that the mount is found whatever directory a process is in.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let full = path.canonicalize().with_context(|| path.display().to_string())?;
    if full.is_dir() { Ok(full) } else { Err(anyhow!("{}: not a directory", path.display())) }
}
