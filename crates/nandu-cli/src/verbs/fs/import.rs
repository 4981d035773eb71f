//! `nandu fs import`: a directory of this machine into a file system.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use nandu_files::errno::EEXIST;
use nandu_files::{Attributes, FileError, FileKind, FileSystem, Ino, SetAttributes, Time, XattrMode};
use serde_json::json;

use crate::files::{self, MemoryArgs};
use crate::output::Output;
use crate::progress::Progress;
use crate::session::SessionArgs;
use crate::units;
use crate::volume::{Volume, VolumeError};

/// Bytes copied at once.
const PIECE_SIZE: usize = 1 << 17;

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The directory of this machine; what is in it comes into the directory of the file system
    source: PathBuf,
    #[command(flatten)]
    session: SessionArgs,
    /// The directory of the file system
    #[arg(long, value_name = "PATH", default_value = "/")]
    to: String,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) links: u64,
    pub(super) bytes: u64,
}

pub(crate) fn run(args: &Import, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.session.image;
    let (copied, programs) = files::change(&args.session, args.memory, |fs| {
        let before = fs.nand().counters().programs;
        let to = files::find(fs, image, &args.to)?;
        if to.kind != FileKind::Directory {
            return Err(anyhow!("{}: {}: not a directory", image.display(), args.to));
        }
        let copied = import(fs, image, &args.source, to.ino)?;
        Ok((copied, fs.nand().counters().programs - before))
    })?;
    print(&copied, programs, out)
}

pub(super) fn print(copied: &Copied, programs: u64, out: &mut Output) -> anyhow::Result<()> {
    let Copied { files, directories, links, bytes } = *copied;
    if out.is_json() {
        out.json(&json!({
            "files": files,
            "directories": directories,
            "links": links,
            "bytes": bytes,
            "programs": programs,
        }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{} in {}, {}, {}; {}",
        units::things(files, "file"),
        if directories == 1 {
            "1 directory".to_owned()
        } else {
            format!("{} directories", units::count_of(directories))
        },
        units::things(links, "symbolic link"),
        units::things(bytes, "byte"),
        units::things(programs, "page program")
    )?;
    Ok(())
}

/// Copies what is in a directory of this machine into one of the file system, and makes it durable.
pub(super) fn import(fs: &mut Volume<'_>, image: &Path, source: &Path, to: Ino) -> anyhow::Result<Copied> {
    let mut import = Importer {
        fs,
        image,
        names: HashMap::new(),
        copied: Copied::default(),
        progress: Progress::new("importing"),
        bytes_total: 0,
    };
    import.bytes_total = import.measure(source)?;
    import.directory(source, to)?;
    let copied = import.copied;
    fs.sync().map_err(|error| files::explain(image, error))?;
    Ok(copied)
}

struct Importer<'a, 'm> {
    fs: &'a mut Volume<'m>,
    image: &'a Path,
    /// Inodes of files that have several names here, by device and number.
    names: HashMap<(u64, u64), Ino>,
    copied: Copied,
    progress: Progress,
    bytes_total: u64,
}

impl Importer<'_, '_> {
    /// Bytes that the files below a directory take, for the progress bar.
    fn measure(&self, directory: &Path) -> anyhow::Result<u64> {
        let mut total = 0;
        let mut directories = vec![directory.to_path_buf()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
                let path = entry.with_context(|| directory.display().to_string())?.path();
                let metadata = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
                if metadata.is_dir() {
                    directories.push(path);
                } else if metadata.is_file() {
                    total += metadata.blocks() * 512;
                }
            }
        }
        Ok(total)
    }

    fn complain(&self, path: &Path, error: VolumeError) -> anyhow::Error {
        files::complain(self.image, &path.display().to_string(), error)
    }

    fn directory(&mut self, source: &Path, to: Ino) -> anyhow::Result<()> {
        self.copied.directories += 1;
        let mut names: Vec<OsString> = fs::read_dir(source)
            .with_context(|| source.display().to_string())?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()
            .with_context(|| source.display().to_string())?;
        // The order of a directory is that of chance on some file systems; the same files make the same image.
        names.sort();
        for name in names {
            let path = source.join(&name);
            let metadata = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
            self.entry(&path, name.as_bytes(), &metadata, to)?;
        }
        let metadata = fs::symlink_metadata(source).with_context(|| source.display().to_string())?;
        // Last, since each name that came changed the times.
        self.attributes(source, &metadata, to)
    }

    fn entry(&mut self, path: &Path, name: &[u8], metadata: &Metadata, to: Ino) -> anyhow::Result<()> {
        let several = (metadata.nlink() > 1 && !metadata.is_dir()).then_some((metadata.dev(), metadata.ino()));
        if let Some(&ino) = several.and_then(|key| self.names.get(&key)) {
            return self.fs.link(ino, to, name).map_err(|error| self.complain(path, error));
        }
        let kind = metadata.file_type();
        let attributes =
            Attributes { mode: metadata.mode(), uid: metadata.uid(), gid: metadata.gid(), rdev: metadata.rdev() };
        let ino = if kind.is_dir() {
            let ino = match self.fs.mkdir(to, name, attributes) {
                Err(error) if error.errno() == EEXIST => {
                    self.fs.lookup(to, name).map_err(|error| self.complain(path, error))?
                }
                made => made.map_err(|error| self.complain(path, error))?,
            };
            return self.directory(path, ino);
        } else if kind.is_symlink() {
            let target = fs::read_link(path).with_context(|| path.display().to_string())?;
            self.copied.links += 1;
            let target = target.into_os_string().into_vec();
            self.fs.symlink(to, name, &target, attributes).map_err(|error| self.complain(path, error))?
        } else if kind.is_file() {
            let ino = self.fs.create(to, name, attributes).map_err(|error| self.complain(path, error))?;
            self.content(path, metadata, ino)?;
            self.copied.files += 1;
            ino
        } else {
            debug_assert!(kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device());
            self.fs.create(to, name, attributes).map_err(|error| self.complain(path, error))?
        };
        if let Some(key) = several {
            self.names.insert(key, ino);
        }
        self.attributes(path, metadata, ino)
    }

    /// Copies what of a file is not a hole.
    fn content(&mut self, path: &Path, metadata: &Metadata, ino: Ino) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        let mut file = File::open(path).with_context(here)?;
        let size = metadata.len();
        let mut buffer = vec![0; PIECE_SIZE];
        let mut offset = 0;
        while let Some((start, end)) = data_from(&file, offset, size).with_context(here)? {
            file.seek(SeekFrom::Start(start)).with_context(here)?;
            let mut at = start;
            while at < end {
                let wanted = buffer.len().min((end - at) as usize);
                let count = file.read(&mut buffer[..wanted]).with_context(here)?;
                if count == 0 {
                    return Err(anyhow!("{}: became shorter while it was read", path.display()));
                }
                let mut rest = &buffer[..count];
                while !rest.is_empty() {
                    let written = self.fs.write_at(ino, at, rest).map_err(|error| self.complain(path, error))?;
                    rest = &rest[written..];
                    at += written as u64;
                }
                self.copied.bytes += count as u64;
                self.progress.set(self.copied.bytes, self.bytes_total.max(self.copied.bytes));
            }
            offset = end;
        }
        self.fs.truncate(ino, size).map_err(|error| self.complain(path, error))
    }

    /// Extended attributes, permissions and times.
    fn attributes(&mut self, path: &Path, metadata: &Metadata, ino: Ino) -> anyhow::Result<()> {
        for (name, value) in xattrs(path)? {
            let set = self.fs.set_xattr(ino, name.as_bytes(), &value, XattrMode::Set);
            set.map_err(|error| self.complain(path, error))?;
        }
        let time = |seconds: i64, nanoseconds: i64| Some(Time { seconds, nanoseconds: nanoseconds as u32 });
        let set = SetAttributes {
            mode: Some(metadata.mode() & 0o7777),
            uid: Some(metadata.uid()),
            gid: Some(metadata.gid()),
            atime: time(metadata.atime(), metadata.atime_nsec()),
            mtime: time(metadata.mtime(), metadata.mtime_nsec()),
        };
        self.fs.set_attributes(ino, set).map_err(|error| self.complain(path, error))
    }
}

/// The next part of a file, from an offset on, that is not a hole.
fn data_from(file: &File, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    if offset >= size {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(start) => start,
        // Nothing but a hole follows.
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        // A file system that knows no holes.
        Err(rustix::io::Errno::INVAL) => return Ok(Some((offset, size))),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(start))?;
    Ok((start < size).then_some((start, end.min(size))))
}

/// Extended attributes of a file that a user may set, by name.
pub(super) fn xattrs(path: &Path) -> anyhow::Result<Vec<(OsString, Vec<u8>)>> {
    const SIZE_MAX: usize = 1 << 16;
    let here = || path.display().to_string();
    let mut list = vec![0; SIZE_MAX];
    let size = match rustix::fs::llistxattr(path, &mut list[..]) {
        Ok(size) => size,
        Err(rustix::io::Errno::NOTSUP) => return Ok(Vec::new()),
        Err(error) => return Err(io::Error::from(error)).with_context(here),
    };
    let names = list[..size].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    // The kernel keeps those of `system.` itself, but for access lists.
    let names = names.filter(|name| !name.starts_with(b"system.") || name.starts_with(b"system.posix_acl_"));
    let mut xattrs = Vec::new();
    for name in names {
        let name = OsString::from_vec(name.to_vec());
        let mut value = vec![0; SIZE_MAX];
        match rustix::fs::lgetxattr(path, name.as_os_str(), &mut value[..]) {
            Ok(size) => value.truncate(size),
            Err(rustix::io::Errno::NODATA) => continue,
            Err(error) => return Err(io::Error::from(error)).with_context(here),
        }
        xattrs.push((name, value));
    }
    xattrs.sort();
    Ok(xattrs)
}
