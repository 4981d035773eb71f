//! `nandu fs export`: a file system, or a part of it, to a directory of this machine.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_files::{FileKind, FileSystem, Ino, Stat, Time};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};

use super::import::{Copied, print};
use crate::files::{self, LookArgs};
use crate::output::Output;
use crate::progress::Progress;
use crate::volume::{Volume, VolumeError};

/// Bytes copied at once.
const PIECE_SIZE: usize = 1 << 17;

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The image
    image: PathBuf,
    /// The directory of this machine, which is made if it is not there
    target: PathBuf,
    /// The directory of the file system
    #[arg(long, value_name = "PATH", default_value = "/")]
    from: String,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) fn run(args: &Export, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.image;
    let copied = files::look(image, args.look, |fs| {
        let from = files::find(fs, image, &args.from)?;
        if from.kind != FileKind::Directory {
            return Err(anyhow!("{}: {}: not a directory", image.display(), args.from));
        }
        fs::create_dir_all(&args.target).with_context(|| args.target.display().to_string())?;
        let stat = fs.statfs().map_err(|error| files::explain(image, error))?;
        let total = (stat.blocks - stat.blocks_free) * u64::from(stat.block_size);
        let mut exporter = Exporter {
            fs,
            image,
            is_root: rustix::process::geteuid().is_root(),
            names: HashMap::new(),
            copied: Copied::default(),
            progress: Progress::new("exporting"),
            bytes_total: total,
        };
        exporter.directory(&from, &args.target)?;
        Ok(exporter.copied)
    })?;
    print(&copied, 0, out)
}

struct Exporter<'a, 'm> {
    fs: &'a mut Volume<'m>,
    image: &'a Path,
    /// Only root may give files away and make devices.
    is_root: bool,
    /// Where inodes with several names were put first.
    names: HashMap<Ino, PathBuf>,
    copied: Copied,
    progress: Progress,
    bytes_total: u64,
}

impl Exporter<'_, '_> {
    fn complain(&self, path: &Path, error: VolumeError) -> anyhow::Error {
        files::complain(self.image, &path.display().to_string(), error)
    }

    fn directory(&mut self, stat: &Stat, target: &Path) -> anyhow::Result<()> {
        self.copied.directories += 1;
        let mut entries = Vec::new();
        let visited = self.fs.read_dir(stat.ino, 2, &mut |entry| {
            entries.push((entry.name.to_vec(), entry.ino));
            ControlFlow::Continue(())
        });
        visited.map_err(|error| self.complain(target, error))?;
        for (name, ino) in entries {
            let path = target.join(OsStr::from_bytes(&name));
            let stat = self.fs.stat(ino).map_err(|error| self.complain(&path, error))?;
            self.entry(&stat, &path)?;
        }
        // Last, since each name that came changed the times.
        self.attributes(stat, target)
    }

    fn entry(&mut self, stat: &Stat, path: &Path) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        if stat.nlink > 1 && stat.kind != FileKind::Directory {
            if let Some(first) = self.names.get(&stat.ino) {
                return fs::hard_link(first, path).with_context(here);
            }
            self.names.insert(stat.ino, path.to_path_buf());
        }
        match stat.kind {
            FileKind::Directory => {
                fs::create_dir(path).with_context(here)?;
                return self.directory(stat, path);
            }
            FileKind::File => {
                self.content(stat, path)?;
                self.copied.files += 1;
            }
            FileKind::Symlink => {
                let mut target = vec![0; stat.size as usize];
                self.fs.read_link(stat.ino, &mut target).map_err(|error| self.complain(path, error))?;
                symlink(OsStr::from_bytes(&target), path).with_context(here)?;
                self.copied.links += 1;
            }
            FileKind::Fifo => self.node(stat, path, FileType::Fifo)?,
            FileKind::Socket => self.node(stat, path, FileType::Socket)?,
            FileKind::CharDevice => self.node(stat, path, FileType::CharacterDevice)?,
            FileKind::BlockDevice => self.node(stat, path, FileType::BlockDevice)?,
        }
        self.attributes(stat, path)
    }

    fn node(&self, stat: &Stat, path: &Path, kind: FileType) -> anyhow::Result<()> {
        let made = rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(stat.mode & 0o7777), stat.rdev);
        made.map_err(io::Error::from).with_context(|| path.display().to_string())
    }

    /// Copies what of a file is not a hole.
    fn content(&mut self, stat: &Stat, path: &Path) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        let file = File::create_new(path).with_context(here)?;
        let mut buffer = vec![0; PIECE_SIZE];
        let mut offset = 0;
        loop {
            let start = self.fs.seek(stat.ino, offset, true).map_err(|error| self.complain(path, error))?;
            let Some(start) = start else { break };
            let end = self.fs.seek(stat.ino, start, false).map_err(|error| self.complain(path, error))?;
            let end = end.unwrap_or(stat.size);
            offset = start;
            while offset < end {
                let wanted = buffer.len().min((end - offset) as usize);
                let read = self.fs.read_at(stat.ino, offset, &mut buffer[..wanted]);
                let count = read.map_err(|error| self.complain(path, error))?;
                if count == 0 {
                    break;
                }
                file.write_all_at(&buffer[..count], offset).with_context(here)?;
                offset += count as u64;
                self.copied.bytes += count as u64;
                self.progress.set(self.copied.bytes, self.bytes_total.max(self.copied.bytes));
            }
        }
        file.set_len(stat.size).with_context(here)
    }

    /// Extended attributes, owner as far as that is allowed, permissions and times.
    fn attributes(&mut self, stat: &Stat, path: &Path) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        let mut names = Vec::new();
        if self.fs.capabilities().xattrs {
            let listed = self.fs.list_xattrs(stat.ino, &mut |name| names.push(name.to_vec()));
            listed.map_err(|error| self.complain(path, error))?;
        }
        for name in names {
            let mut value = vec![0; 1 << 16];
            let size = self.fs.get_xattr(stat.ino, &name, &mut value).map_err(|error| self.complain(path, error))?;
            let set = rustix::fs::lsetxattr(path, OsStr::from_bytes(&name), &value[..size], XattrFlags::empty());
            set.map_err(io::Error::from).with_context(here)?;
        }
        if self.is_root {
            let (user, group) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
            let given = rustix::fs::chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            given.map_err(io::Error::from).with_context(here)?;
        }
        if stat.kind != FileKind::Symlink {
            fs::set_permissions(path, Permissions::from_mode(stat.mode & 0o7777)).with_context(here)?;
        }
        let time = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() };
        let times = Timestamps { last_access: time(stat.atime), last_modification: time(stat.mtime) };
        let set = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
        set.map_err(io::Error::from).with_context(here)
    }
}
