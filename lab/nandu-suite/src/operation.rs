//! Operations by chance, applied to a file system.

use nandu_files::{
    Allocation, Attributes, Capabilities, Feature, FileError, FileSystem, Ino, RenameMode, SetAttributes, Time,
    XattrMode,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Names from the root on.
pub type Path = Vec<&'static [u8]>;

/// An operation on what stands at paths, or is open.
#[derive(Clone, Debug)]
pub enum Op {
    /// Makes a file.
    Create(Path),
    /// Makes a directory.
    Mkdir(Path),
    /// Makes a symbolic link with a target.
    Symlink(Path, Vec<u8>),
    /// Gives what is at the first path the second too.
    Link(Path, Path),
    /// Removes what is no directory.
    Unlink(Path),
    /// Removes a directory.
    Rmdir(Path),
    /// Moves from the first path to the second.
    Rename(Path, Path, RenameMode),
    /// Writes at an offset.
    Write(Path, u64, Vec<u8>),
    /// Writes at the end.
    Append(Path, Vec<u8>),
    /// Makes a file so long.
    Truncate(Path, u64),
    /// Changes what is allocated from an offset on, for so many bytes.
    Allocate(Path, Allocation, u64, u64),
    /// Changes attributes.
    Set(Path, SetAttributes),
    /// Sets an extended attribute.
    SetXattr(Path, &'static [u8], Vec<u8>),
    /// Removes an extended attribute.
    RemoveXattr(Path, &'static [u8]),
    /// Sets or removes an attribute and changes the inode in one step.
    SetBoth(Path, &'static [u8], Option<Vec<u8>>, SetAttributes),
    /// Makes a file with attributes.
    CreateWith(Path, Vec<(&'static [u8], Vec<u8>)>),
    /// Makes a directory with attributes.
    MkdirWith(Path, Vec<(&'static [u8], Vec<u8>)>),
    /// Opens into a slot; what was open there is closed.
    Open(Path, usize),
    /// Writes to what is open in a slot.
    WriteOpen(usize, u64, Vec<u8>),
    /// Closes what is open in a slot.
    Close(usize),
    /// Makes what is at a path durable.
    Fsync(Path),
    /// Makes everything durable.
    Sync,
    /// Nothing is asked for, and there is time for background work.
    Idle,
}

/// Files that are open.
pub type Slots = [Option<Ino>; 2];

/// Names that paths are made of.
pub const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"dd", b"e-name-of-some-length", b"f"];
const XATTRS: [&[u8]; 3] = [b"user.x", b"user.yy", b"security.zzz"];

/// Numbers that look like chance, for operations of any number.
#[derive(Debug)]
pub struct Chance {
    random: ChaCha8Rng,
    /// Paths that were to be made last.
    made: Vec<Path>,
}

impl Chance {
    /// Chance of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance { random: ChaCha8Rng::seed_from_u64(seed), made: Vec::new() }
    }

    /// Chance that knows what there is.
    pub fn with_paths(seed: u64, made: Vec<Path>) -> Chance {
        Chance { made, ..Chance::new(seed) }
    }

    /// A number below this.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// A path of something that may be there.
    fn path(&mut self) -> Path {
        if self.made.is_empty() || self.below(8) == 0 {
            return self.any_path();
        }
        let index = self.below(self.made.len());
        self.made[index].clone()
    }

    /// A path of something new.
    fn new_path(&mut self) -> Path {
        let path = self.any_path();
        self.made.push(path.clone());
        if self.made.len() > 10 {
            self.made.remove(0);
        }
        path
    }

    fn any_path(&mut self) -> Path {
        let depth = [1, 1, 1, 1, 1, 2, 2, 3][self.below(8)];
        (0..depth).map(|_| NAMES[self.below(NAMES.len())]).collect()
    }

    /// So many bytes.
    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        let first = self.below(255) as u8 + 1;
        // Never zero, so that what was not written can be told from what was.
        (0..size).map(|at| (first.wrapping_add((at / 7) as u8)).max(1)).collect()
    }

    /// Sizes that fit records, lie over pages, or are pages.
    fn size(&mut self, page_size: usize) -> usize {
        match self.below(8) {
            0 => self.below(4),
            1..4 => self.below(40),
            4 | 5 => self.below(page_size / 4),
            6 => self.below(page_size),
            _ => page_size * (1 + self.below(3)),
        }
    }

    fn offset(&mut self, page_size: usize) -> u64 {
        let offset = match self.below(6) {
            0 | 1 => 0,
            2 => self.below(50),
            3 => page_size * self.below(4),
            4 => self.below(3 * page_size),
            _ => page_size - 10 + self.below(20),
        };
        offset as u64
    }

    /// An operation by chance, of those that a file system does not lack.
    pub fn op(&mut self, page_size: usize, capabilities: &Capabilities) -> Op {
        loop {
            let op = self.any_op(page_size);
            if op.feature().is_none_or(|feature| capabilities.has(feature)) {
                return op;
            }
        }
    }

    fn any_op(&mut self, page_size: usize) -> Op {
        match self.below(64) {
            0..8 => Op::Create(self.new_path()),
            8..12 => Op::Mkdir(self.new_path()),
            12 | 13 => {
                let size = [3, 3, 60, 200][self.below(4)];
                Op::Symlink(self.new_path(), self.bytes(size))
            }
            14..16 => Op::Link(self.path(), self.new_path()),
            16..20 => Op::Unlink(self.path()),
            20..22 => Op::Rmdir(self.path()),
            22..28 => {
                let mode = [RenameMode::Replace, RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = mode[self.below(4)];
                Op::Rename(self.path(), if mode == RenameMode::Exchange { self.path() } else { self.new_path() }, mode)
            }
            28..40 => {
                let (path, offset, size) = (self.path(), self.offset(page_size), self.size(page_size));
                Op::Write(path, offset, self.bytes(size))
            }
            40..43 => {
                let (path, size) = (self.path(), self.size(page_size));
                Op::Append(path, self.bytes(size))
            }
            43..46 => Op::Truncate(self.path(), self.offset(page_size)),
            46 | 47 => {
                let kinds = [
                    Allocation::Extend,
                    Allocation::KeepSize,
                    Allocation::PunchHole,
                    Allocation::Zero,
                    Allocation::ZeroKeepSize,
                ];
                let kind = kinds[self.below(5)];
                let (offset, size) = (self.offset(page_size), 1 + self.size(page_size) as u64);
                Op::Allocate(self.path(), kind, offset, size)
            }
            48 | 49 => {
                let set = SetAttributes {
                    mode: (self.below(2) == 0).then_some(0o600 + self.below(64) as u32),
                    uid: (self.below(3) == 0).then_some(self.below(1000) as u32),
                    gid: (self.below(3) == 0).then_some(self.below(1000) as u32),
                    atime: (self.below(4) == 0).then_some(Time::from_seconds(self.below(100_000) as i64 - 50_000)),
                    mtime: (self.below(4) == 0).then_some(Time::from_seconds(self.below(100_000) as i64)),
                };
                Op::Set(self.path(), set)
            }
            50 | 51 => {
                let (path, name) = (self.path(), XATTRS[self.below(3)]);
                let size = [0, 9, 100, 300][self.below(4)];
                Op::SetXattr(path, name, self.bytes(size))
            }
            52 => Op::RemoveXattr(self.path(), XATTRS[self.below(3)]),
            53 => Op::Open(self.path(), self.below(2)),
            54..56 => {
                let (slot, offset, size) = (self.below(2), self.offset(page_size), self.size(page_size));
                Op::WriteOpen(slot, offset, self.bytes(size))
            }
            56 => Op::Close(self.below(2)),
            57 => Op::Idle,
            58 => Op::Fsync(self.path()),
            _ => Op::Sync,
        }
    }
}

impl Op {
    /// Whether something is durable when it has succeeded: all names, and content and attributes at least of what it concerns.
    pub fn is_durable(&self, capabilities: &Capabilities) -> bool {
        let cuts = &capabilities.cuts;
        match self {
            Op::Create(_) => cuts.create_is_durable,
            Op::Mkdir(_) | Op::MkdirWith(..) => cuts.mkdir_is_durable,
            Op::Unlink(_) | Op::Rmdir(_) => cuts.removal_is_durable,
            Op::Rename(..) => cuts.rename_is_durable,
            Op::Symlink(..) | Op::Link(..) => cuts.links_are_durable,
            Op::Fsync(_) | Op::Sync | Op::Idle => true,
            _ => false,
        }
    }

    /// What it needs that a file system may lack.
    pub fn feature(&self) -> Option<Feature> {
        match self {
            Op::Symlink(..) => Some(Feature::Symlinks),
            Op::Link(..) => Some(Feature::HardLinks),
            Op::Rename(_, _, RenameMode::Exchange) => Some(Feature::Exchange),
            Op::Allocate(..) => Some(Feature::Allocation),
            Op::SetXattr(..) | Op::RemoveXattr(..) | Op::SetBoth(..) | Op::CreateWith(..) | Op::MkdirWith(..) => {
                Some(Feature::Xattrs)
            }
            _ => None,
        }
    }
}

/// What a path leads to.
pub fn resolve<F: FileSystem>(fs: &mut F, path: &[&[u8]]) -> Result<Ino, F::Error> {
    path.iter().try_fold(Ino::ROOT, |at, name| fs.lookup(at, name))
}

/// Attributes as a file system takes them.
fn lent<'a>(xattrs: &'a [(&'static [u8], Vec<u8>)]) -> Vec<(&'a [u8], &'a [u8])> {
    xattrs.iter().map(|(name, value)| (*name, value.as_slice())).collect()
}

fn parent<'p, F: FileSystem>(fs: &mut F, path: &'p [&'static [u8]]) -> Result<(Ino, &'p [u8]), F::Error> {
    let (name, above) = path.split_last().unwrap();
    Ok((resolve(fs, above)?, name))
}

/// What is made is made with.
pub const NEW: Attributes = Attributes { mode: 0o644, uid: 3, gid: 4, rdev: 0 };

/// Writes all of it: where only a part finds room, the next call has to say so.
fn write_all<F: FileSystem>(fs: &mut F, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), F::Error> {
    let mut done = fs.write_at(ino, offset, bytes)?;
    while done < bytes.len() {
        let count = fs.write_at(ino, offset + done as u64, &bytes[done..])?;
        assert!(count > 0, "a write of nothing is refused with an error");
        done += count;
    }
    Ok(())
}

/// Applies an operation; the number of the error if it was refused.
pub fn apply_errno<F: FileSystem>(fs: &mut F, slots: &mut Slots, op: &Op) -> Result<(), i32> {
    apply(fs, slots, op).map_err(|error| error.errno())
}

/// Applies an operation.
pub fn apply<F: FileSystem>(fs: &mut F, slots: &mut Slots, op: &Op) -> Result<(), F::Error> {
    match op {
        Op::Create(path) => {
            let (above, name) = parent(fs, path)?;
            fs.create(above, name, NEW).map(|_| ())
        }
        Op::Mkdir(path) => {
            let (above, name) = parent(fs, path)?;
            fs.mkdir(above, name, NEW).map(|_| ())
        }
        Op::Symlink(path, target) => {
            let (above, name) = parent(fs, path)?;
            fs.symlink(above, name, target, NEW).map(|_| ())
        }
        Op::Link(from, to) => {
            let ino = resolve(fs, from)?;
            let (above, name) = parent(fs, to)?;
            fs.link(ino, above, name)
        }
        Op::Unlink(path) => {
            let (above, name) = parent(fs, path)?;
            fs.unlink(above, name)
        }
        Op::Rmdir(path) => {
            let (above, name) = parent(fs, path)?;
            fs.rmdir(above, name)
        }
        Op::Rename(from, to, mode) => {
            let (above, name) = parent(fs, from)?;
            let (new_above, new_name) = parent(fs, to)?;
            fs.rename(above, name, new_above, new_name, *mode)
        }
        Op::Write(path, offset, bytes) => {
            let ino = resolve(fs, path)?;
            write_all(fs, ino, *offset, bytes)
        }
        Op::Append(path, bytes) => {
            let ino = resolve(fs, path)?;
            fs.append(ino, bytes).map(|_| ())
        }
        Op::Truncate(path, size) => {
            let ino = resolve(fs, path)?;
            fs.truncate(ino, *size)
        }
        Op::Allocate(path, what, offset, size) => {
            let ino = resolve(fs, path)?;
            fs.allocate(ino, *what, *offset, *size)
        }
        Op::Set(path, set) => {
            let ino = resolve(fs, path)?;
            fs.set_attributes(ino, *set)
        }
        Op::SetXattr(path, name, value) => {
            let ino = resolve(fs, path)?;
            fs.set_xattr(ino, name, value, XattrMode::Set)
        }
        Op::RemoveXattr(path, name) => {
            let ino = resolve(fs, path)?;
            fs.remove_xattr(ino, name)
        }
        Op::SetBoth(path, name, value, set) => {
            let ino = resolve(fs, path)?;
            match value {
                Some(value) => fs.set_xattr_with(ino, name, value, XattrMode::Set, *set),
                None => fs.remove_xattr_with(ino, name, *set),
            }
        }
        Op::CreateWith(path, xattrs) => {
            let (above, name) = parent(fs, path)?;
            fs.create_with(above, name, NEW, &lent(xattrs)).map(|_| ())
        }
        Op::MkdirWith(path, xattrs) => {
            let (above, name) = parent(fs, path)?;
            fs.mkdir_with(above, name, NEW, &lent(xattrs)).map(|_| ())
        }
        Op::Open(path, slot) => {
            let ino = resolve(fs, path)?;
            fs.open(ino)?;
            match slots[*slot].replace(ino) {
                Some(before) => fs.close(before),
                None => Ok(()),
            }
        }
        Op::WriteOpen(slot, offset, bytes) => {
            let Some(ino) = slots[*slot] else { return Ok(()) };
            write_all(fs, ino, *offset, bytes)
        }
        Op::Close(slot) => match slots[*slot].take() {
            Some(ino) => fs.close(ino),
            None => Ok(()),
        },
        Op::Fsync(path) => {
            let ino = resolve(fs, path)?;
            fs.fsync(ino)
        }
        Op::Sync => fs.sync(),
        Op::Idle => fs.idle(3).map(|_| ()),
    }
}
