//! A mount against a directory of this machine: the same random calls on both, with descriptors that stay open while names come and go;
//! what they answer and what is there afterwards must be the same. What differs is made as short as can be and printed.
//!
//! A hundred thousand calls in `cargo test`, and twenty thousand on a mount of DFFS; `NANDU_DIFFERENTIAL=1000000` makes as many, `NANDU_DIFFERENTIAL_SEED=7` others.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, OFlags, RenameFlags, XattrFlags};

use crate::mounted::{Mounted, Random};

/// Calls before everything is thrown away and begun anew.
const EPISODE: usize = 500;

/// Attempts at leaving calls out of a sequence that fails.
const SHRINKS: usize = 600;

const DESCRIPTORS: u64 = 6;

/// Paths that calls are about. Each may be a file, a directory, a link or nothing.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "d/a", "d/b", "d/e", "e/a", "e/d", "e/d/a", "d/e/c"];

/// A call. Numbers are of descriptors and of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Open { at: usize, name: usize, flags: i32 },
    Close(usize),
    Write { at: usize, offset: u64, size: usize, byte: u8 },
    Read { at: usize, offset: u64, size: usize },
    Truncate { at: usize, size: u64 },
    TruncateName { name: usize, size: u64 },
    Allocate { at: usize, how: How, offset: u64, size: u64 },
    Copy { from: usize, to: usize, offset: u64, into: u64, size: usize },
    Sync(usize),
    StatOpen(usize),
    ChmodOpen { at: usize, mode: u32 },
    Stat(usize),
    Chmod { name: usize, mode: u32 },
    Unlink(usize),
    Rename { from: usize, to: usize, how: How },
    Link { from: usize, to: usize },
    Symlink { target: usize, name: usize },
    ReadLink(usize),
    MakeDirectory(usize),
    RemoveDirectory(usize),
    List(usize),
    SetXattr { name: usize, xattr: u8, size: usize },
    GetXattr { name: usize, xattr: u8 },
    RemoveXattr { name: usize, xattr: u8 },
    ListXattrs(usize),
}

/// The flag of an allocation or a renaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Plain,
    NoReplace,
    Exchange,
    Punch,
    Zero,
    ZeroKeepSize,
}

/// What a call has to say; `None` if there is no such descriptor.
type Said = Option<Result<Answer, i32>>;

#[derive(Clone, PartialEq, Eq)]
enum Answer {
    Done,
    Count(u64),
    Bytes(Vec<u8>),
    /// Type and permissions, owner, group, names, size.
    Stat(u32, u32, u32, u64, u64),
    Names(Vec<String>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Count(count) => write!(f, "{count}"),
            Answer::Bytes(bytes) => {
                write!(f, "{} bytes:", bytes.len())?;
                // Runs of the same byte.
                for run in bytes.chunk_by(|one, other| one == other).take(20) {
                    write!(f, " {} of {:#04x}", run.len(), run[0])?;
                }
                Ok(())
            }
            Answer::Stat(mode, uid, gid, nlink, size) => {
                write!(f, "mode {mode:o}, owner {uid}:{gid}, {nlink} names, {size} bytes")
            }
            Answer::Names(names) => write!(f, "{names:?}"),
        }
    }
}

/// A directory and the descriptors that are open.
struct World {
    root: PathBuf,
    open: Vec<Option<File>>,
}

fn answer(done: io::Result<Answer>) -> Result<Answer, i32> {
    const EEXIST: i32 = 17;
    const ENOTEMPTY: i32 = 39;
    done.map_err(|error| match error.raw_os_error().unwrap_or(0) {
        // POSIX leaves the choice of a directory that is not empty.
        ENOTEMPTY => EEXIST,
        number => number,
    })
}

fn stat(metadata: &fs::Metadata) -> Answer {
    // Size and number of names of a directory are the file system's own affair.
    let (nlink, size) = if metadata.is_file() { (metadata.nlink(), metadata.size()) } else { (0, 0) };
    Answer::Stat(metadata.mode(), metadata.uid(), metadata.gid(), nlink, size)
}

fn xattr_name(xattr: u8) -> String {
    format!("user.{}", char::from(b'a' + xattr))
}

fn names_of_xattrs(path: &Path) -> io::Result<Vec<String>> {
    let mut list = [0; 1024];
    let size = rustix::fs::llistxattr(path, &mut list[..])?;
    let names = list[..size].split(|&byte| byte == 0).filter(|name| name.starts_with(b"user."));
    let mut names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    Ok(names)
}

impl World {
    fn new(root: PathBuf) -> World {
        fs::create_dir(&root).unwrap();
        World { root, open: (0..DESCRIPTORS).map(|_| None).collect() }
    }

    fn path(&self, name: usize) -> PathBuf {
        self.root.join(NAMES[name])
    }

    fn call(&mut self, call: Call) -> Said {
        match call {
            Call::Open { at, name, flags } => {
                let mut options = OpenOptions::new();
                let opened = options.read(true).write(true).mode(0o644).custom_flags(flags).open(self.path(name));
                let said = opened.map(|file| {
                    self.open[at] = Some(file);
                    Answer::Done
                });
                Some(answer(said))
            }
            Call::Close(at) => self.open[at].take().map(|_| Ok(Answer::Done)),
            _ => self.call_open(call).unwrap_or_else(|| Some(answer(self.call_name(call)))),
        }
    }

    /// A call on a descriptor; `None` if this is another kind.
    fn call_open(&self, call: Call) -> Option<Said> {
        let at = match call {
            Call::Write { at, .. }
            | Call::Read { at, .. }
            | Call::Truncate { at, .. }
            | Call::Allocate { at, .. }
            | Call::Copy { from: at, .. }
            | Call::Sync(at)
            | Call::StatOpen(at)
            | Call::ChmodOpen { at, .. } => at,
            _ => return None,
        };
        let Some(file) = &self.open[at] else { return Some(None) };
        let said = match call {
            Call::Write { offset, size, byte, .. } => {
                file.write_all_at(&vec![byte; size], offset).map(|()| Answer::Done)
            }
            Call::Read { offset, size, .. } => read(file, offset, size),
            Call::Truncate { size, .. } => file.set_len(size).map(|()| Answer::Done),
            Call::Allocate { how, offset, size, .. } => {
                let flags = match how {
                    How::Zero => FallocateFlags::ZERO_RANGE,
                    How::ZeroKeepSize => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
                    _ => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                };
                rustix::fs::fallocate(file, flags, offset, size).map(|()| Answer::Done).map_err(io::Error::from)
            }
            Call::Copy { to, offset, into, size, .. } => {
                let Some(target) = self.open[to].as_ref().filter(|_| to != at) else { return Some(None) };
                let (mut offset, mut into) = (offset, into);
                let copied = rustix::fs::copy_file_range(file, Some(&mut offset), target, Some(&mut into), size);
                copied.map(|count| Answer::Count(count as u64)).map_err(io::Error::from)
            }
            Call::Sync(_) => file.sync_all().map(|()| Answer::Done),
            Call::ChmodOpen { mode, .. } => file.set_permissions(Permissions::from_mode(mode)).map(|()| Answer::Done),
            _ => file.metadata().map(|metadata| stat(&metadata)),
        };
        Some(Some(answer(said)))
    }

    fn call_name(&self, call: Call) -> io::Result<Answer> {
        let done = |()| Answer::Done;
        match call {
            Call::TruncateName { name, size } => {
                OpenOptions::new().write(true).open(self.path(name))?.set_len(size).map(done)
            }
            Call::Stat(name) => fs::symlink_metadata(self.path(name)).map(|metadata| stat(&metadata)),
            Call::Chmod { name, mode } => fs::set_permissions(self.path(name), Permissions::from_mode(mode)).map(done),
            Call::Unlink(name) => fs::remove_file(self.path(name)).map(done),
            Call::Rename { from, to, how } => {
                let flags = match how {
                    How::NoReplace => RenameFlags::NOREPLACE,
                    How::Exchange => RenameFlags::EXCHANGE,
                    _ => RenameFlags::empty(),
                };
                let renamed = rustix::fs::renameat_with(CWD, self.path(from), CWD, self.path(to), flags);
                renamed.map(done).map_err(io::Error::from)
            }
            Call::Link { from, to } => fs::hard_link(self.path(from), self.path(to)).map(done),
            Call::Symlink { target, name } => std::os::unix::fs::symlink(NAMES[target], self.path(name)).map(done),
            Call::ReadLink(name) => {
                fs::read_link(self.path(name)).map(|target| Answer::Names(vec![target.display().to_string()]))
            }
            Call::MakeDirectory(name) => fs::create_dir(self.path(name)).map(done),
            Call::RemoveDirectory(name) => fs::remove_dir(self.path(name)).map(done),
            Call::List(name) => {
                let mut names = Vec::new();
                for entry in fs::read_dir(self.path(name))? {
                    let entry = entry?;
                    let kind = entry.file_type()?;
                    names.push(format!("{:?} {} {}", entry.file_name(), kind.is_dir(), kind.is_symlink()));
                    assert!(!kind.is_block_device());
                }
                names.sort();
                Ok(Answer::Names(names))
            }
            Call::SetXattr { name, xattr, size } => {
                let value = vec![b'0' + xattr; size];
                let set = rustix::fs::setxattr(self.path(name), xattr_name(xattr), &value, XattrFlags::empty());
                set.map(done).map_err(io::Error::from)
            }
            Call::GetXattr { name, xattr } => {
                let mut value = vec![0; 1024];
                let size = rustix::fs::getxattr(self.path(name), xattr_name(xattr), &mut value[..])?;
                value.truncate(size);
                Ok(Answer::Bytes(value))
            }
            Call::RemoveXattr { name, xattr } => {
                rustix::fs::removexattr(self.path(name), xattr_name(xattr)).map(done).map_err(io::Error::from)
            }
            Call::ListXattrs(name) => names_of_xattrs(&self.path(name)).map(Answer::Names),
            _ => Ok(Answer::Done),
        }
    }

    /// All that is there: below the root, and in files that are open.
    fn all(&self) -> io::Result<BTreeMap<String, Vec<Answer>>> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                let metadata = fs::symlink_metadata(&path)?;
                let mut answers = vec![stat(&metadata)];
                if metadata.is_symlink() {
                    answers.push(Answer::Names(vec![fs::read_link(&path)?.display().to_string()]));
                } else {
                    let names = names_of_xattrs(&path).unwrap_or_default();
                    answers.push(Answer::Names(names));
                }
                if metadata.is_file() {
                    answers.push(Answer::Bytes(fs::read(&path)?));
                } else if metadata.is_dir() {
                    directories.push(path.clone());
                }
                let short = path.strip_prefix(&self.root).unwrap_or(&path).display().to_string();
                found.insert(short, answers);
            }
        }
        for (at, file) in self.open.iter().enumerate() {
            let Some(file) = file else { continue };
            let metadata = file.metadata()?;
            found.insert(format!("descriptor {at}"), vec![stat(&metadata), read(file, 0, metadata.size() as usize)?]);
        }
        Ok(found)
    }
}

fn read(file: &File, offset: u64, size: usize) -> io::Result<Answer> {
    let mut bytes = vec![0xAA; size];
    let mut at = 0;
    while at < size {
        match file.read_at(&mut bytes[at..], offset + at as u64)? {
            0 => break,
            count => at += count,
        }
    }
    bytes.truncate(at);
    Ok(Answer::Bytes(bytes))
}

fn random_call(random: &mut Random) -> Call {
    let at = random.below(DESCRIPTORS) as usize;
    let to = random.below(DESCRIPTORS) as usize;
    let name = random.below(NAMES.len() as u64) as usize;
    let other = random.below(NAMES.len() as u64) as usize;
    // Most of what happens happens at the front of files; some are large.
    let reach = [5_000, 70_000, 600_000][random.below(3) as usize];
    let (offset, into) = (random.below(reach), random.below(reach));
    let size_max = [100, 9_000, 70_000][random.below(3) as usize];
    let size = 1 + random.below(size_max) as usize;
    let end = match random.below(8) {
        0 => 0,
        1 => random.below(9_000_000),
        _ => random.below(reach),
    };
    let mode = [0o644, 0o600, 0o755, 0o400, 0o777][random.below(5) as usize];
    let xattr = random.below(3) as u8;
    match random.below(100) {
        0..=11 => {
            let extra = [OFlags::empty(), OFlags::empty(), OFlags::EXCL, OFlags::TRUNC, OFlags::APPEND];
            let create = if random.below(4) > 0 { OFlags::CREATE } else { OFlags::empty() };
            let flags = create | extra[random.below(5) as usize];
            Call::Open { at, name, flags: flags.bits() as i32 }
        }
        12..=14 => Call::Close(at),
        15..=34 => Call::Write { at, offset, size, byte: 1 + random.below(255) as u8 },
        35..=42 => Call::Read { at, offset, size },
        43..=49 => Call::Truncate { at, size: end },
        50..=51 => Call::TruncateName { name, size: end },
        52..=56 => {
            let how = [How::Punch, How::Punch, How::Zero, How::ZeroKeepSize][random.below(4) as usize];
            Call::Allocate { at, how, offset, size: size as u64 }
        }
        57..=58 => Call::Copy { from: at, to, offset, into, size: size.min(60_000) },
        59 => Call::Sync(at),
        60..=62 => Call::StatOpen(at),
        63 => Call::ChmodOpen { at, mode },
        64..=65 => Call::Stat(name),
        66 => Call::Chmod { name, mode: mode | 0o700 },
        67..=73 => Call::Unlink(name),
        74..=80 => {
            let how = [How::Plain, How::Plain, How::NoReplace, How::Exchange][random.below(4) as usize];
            Call::Rename { from: name, to: other, how }
        }
        81..=84 => Call::Link { from: name, to: other },
        85 => Call::Symlink { target: other, name },
        86 => Call::ReadLink(name),
        87..=90 => Call::MakeDirectory(name),
        91..=92 => Call::RemoveDirectory(name),
        93 => Call::List(name),
        94..=95 => Call::SetXattr { name, xattr, size: random.below(300) as usize },
        96..=97 => Call::GetXattr { name, xattr },
        98 => Call::RemoveXattr { name, xattr },
        _ => Call::ListXattrs(name),
    }
}

/// Both worlds, and how often they were begun anew.
struct Worlds {
    host: PathBuf,
    mount: PathBuf,
    count: u32,
}

impl Worlds {
    /// Makes the calls in both; what differs first, in words, and after how many calls.
    fn run(&mut self, calls: &[Call]) -> Result<(), (usize, String)> {
        self.count += 1;
        let name = format!("run{}", self.count);
        let (mut host, mut mount) = (World::new(self.host.join(&name)), World::new(self.mount.join(&name)));
        let outcome = Worlds::compare(&mut host, &mut mount, calls);
        drop(host.open);
        drop(mount.open);
        let removed = fs::remove_dir_all(&mount.root);
        fs::remove_dir_all(&host.root).unwrap();
        outcome?;
        removed.map_err(|error| (calls.len(), format!("what is left cannot be removed: {error}")))
    }

    fn compare(host: &mut World, mount: &mut World, calls: &[Call]) -> Result<(), (usize, String)> {
        for (index, &call) in calls.iter().enumerate() {
            let (expected, found) = (host.call(call), mount.call(call));
            if expected != found {
                return Err((index + 1, format!("expected {expected:?}\n   found {found:?}")));
            }
        }
        let end = |error: io::Error| (calls.len(), format!("what is there cannot be read: {error}"));
        let (expected, found) = (host.all().map_err(end)?, mount.all().map_err(end)?);
        for path in expected.keys().chain(found.keys()) {
            let (expected, found) = (expected.get(path), found.get(path));
            if expected != found {
                return Err((calls.len(), format!("{path}: expected {expected:?}\n   found {found:?}")));
            }
        }
        Ok(())
    }

    /// Leaves out what a failure does not need, in pieces that become smaller.
    fn shrink(&mut self, mut calls: Vec<Call>) -> Vec<Call> {
        let mut piece = calls.len().div_ceil(2);
        let mut attempts = 0;
        while piece > 0 {
            let mut at = 0;
            while at < calls.len() && attempts < SHRINKS {
                attempts += 1;
                let mut fewer = calls.clone();
                fewer.drain(at..(at + piece).min(calls.len()));
                match self.run(&fewer) {
                    Err((count, _)) => {
                        fewer.truncate(count);
                        calls = fewer;
                    }
                    Ok(()) => at += piece,
                }
            }
            piece /= 2;
        }
        calls
    }
}

/// Whether the directory of this machine can do what the calls ask for, so that it can be compared with.
fn is_fit(directory: &Path) -> bool {
    let path = directory.join("probe");
    let file = File::create(&path).unwrap();
    fs::write(directory.join("probe2"), b"").unwrap();
    let exchange = rustix::fs::renameat_with(CWD, &path, CWD, directory.join("probe2"), RenameFlags::EXCHANGE);
    let xattr = rustix::fs::setxattr(&path, "user.probe", b"x", XattrFlags::empty());
    let zero = rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 100);
    let why = [("an exchange of names", exchange), ("attributes", xattr), ("zeroing a range", zero)];
    let missing = why.iter().find(|(_, done)| done.is_err());
    if let Some((what, _)) = missing {
        eprintln!("SKIPPED: {} does not have {what}", directory.display());
    }
    missing.is_none()
}

/// The same call, or one like it, where DFFS can make it; `None` where it has nothing of the kind.
fn within_dffs(call: Call) -> Option<Call> {
    const SIZE_MAX: u64 = 434 * 2048;
    match call {
        Call::Allocate { .. }
        | Call::Link { .. }
        | Call::Symlink { .. }
        | Call::SetXattr { .. }
        | Call::GetXattr { .. }
        | Call::RemoveXattr { .. }
        | Call::ListXattrs(_)
        | Call::Rename { how: How::Exchange, .. } => None,
        Call::Truncate { at, size } => Some(Call::Truncate { at, size: size % SIZE_MAX }),
        Call::TruncateName { name, size } => Some(Call::TruncateName { name, size: size % SIZE_MAX }),
        // Appending again and again would come to where files end.
        Call::Open { at, name, flags } => Some(Call::Open { at, name, flags: flags & !(OFlags::APPEND.bits() as i32) }),
        call => Some(call),
    }
}

/// Random calls of one kind of mount.
struct Calls {
    total: usize,
    seed: u64,
    /// Episodes between two mounts.
    mounted: u64,
    choose: fn(&mut Random) -> Call,
}

/// Makes the calls; what differs, in words.
fn compare(mut mounted: Mounted, calls: &Calls) -> Result<(), String> {
    let host = tempfile::tempdir().unwrap();
    if !is_fit(host.path()) {
        return Ok(());
    }
    let Calls { total, seed, choose, .. } = *calls;
    let mut worlds = Worlds { host: host.path().to_path_buf(), mount: mounted.root(), count: 0 };
    for episode in 0..total.div_ceil(EPISODE) as u64 {
        let mut random = Random((seed << 32 | episode).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut sequence: Vec<Call> = (0..EPISODE).map(|_| choose(&mut random)).collect();
        if let Err((count, said)) = worlds.run(&sequence) {
            sequence.truncate(count);
            let sequence = worlds.shrink(sequence);
            let said = worlds.run(&sequence).map_or_else(|(_, said)| said, |()| format!("not again; at first: {said}"));
            let lines: String = sequence.iter().map(|call| format!("    {call:?}\n")).collect();
            let count = sequence.len();
            return Err(format!("seed {seed}, episode {episode}, {count} calls on {NAMES:?}:\n{lines}{said}"));
        }
        if episode % calls.mounted == calls.mounted - 1 {
            mounted.unmount();
            mounted.check();
            mounted.mount_again();
        }
    }
    mounted.unmount();
    mounted.check();
    Ok(())
}

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

#[test]
fn a_mount_answers_as_a_directory_of_this_machine_does() {
    let total = number("NANDU_DIFFERENTIAL", 100_000) as usize;
    let seed = number("NANDU_DIFFERENTIAL_SEED", 1);
    let Some(mounted) = Mounted::new("w25n01gv") else { return };
    let outcome = compare(mounted, &Calls { total, seed, mounted: 50, choose: random_call });
    if let Err(said) = outcome {
        panic!("{said}");
    }
}

/// The same where pages of files move to two bits a cell.
#[test]
fn a_mount_with_two_bits_a_cell_answers_as_a_directory_of_this_machine_does() {
    let total = number("NANDU_DIFFERENTIAL", 20_000) as usize;
    let seed = number("NANDU_DIFFERENTIAL_SEED", 2);
    let Some(mounted) = Mounted::new("paper-flex") else { return };
    let outcome = compare(mounted, &Calls { total, seed, mounted: 10, choose: random_call });
    if let Err(said) = outcome {
        panic!("{said}");
    }
}

/// As many calls as DFFS can make.
#[test]
fn a_mount_of_dffs_answers_as_a_directory_of_this_machine_does() {
    let total = number("NANDU_DIFFERENTIAL", 20_000) as usize;
    let seed = number("NANDU_DIFFERENTIAL_SEED", 1);
    let create = ["--chip", "w25n01gv", "--factory-bad", "1", "--seed", "3"];
    let Some(mounted) = Mounted::with(&create, &["--system", "dffs"], &[]) else { return };
    let choose = |random: &mut Random| loop {
        if let Some(call) = within_dffs(random_call(random)) {
            return call;
        }
    };
    let outcome = compare(mounted, &Calls { total, seed, mounted: 10, choose });
    if let Err(said) = outcome {
        panic!("{said}");
    }
}
