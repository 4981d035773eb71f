//! Operations by chance, applied to a file system.

use nandu_fs::{Allocation, Attributes, Fs, FsError, Ino, RenameMode, SetAttributes, Time, XattrMode};
use nandu_nand::Nand;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

pub(crate) type Path = Vec<&'static [u8]>;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Create(Path),
    Mkdir(Path),
    Symlink(Path, Vec<u8>),
    Link(Path, Path),
    Unlink(Path),
    Rmdir(Path),
    Rename(Path, Path, RenameMode),
    Write(Path, u64, Vec<u8>),
    Append(Path, Vec<u8>),
    Truncate(Path, u64),
    Allocate(Path, Allocation, u64, u64),
    Set(Path, SetAttributes),
    SetXattr(Path, &'static [u8], Vec<u8>),
    RemoveXattr(Path, &'static [u8]),
    /// Sets or removes an attribute and changes the inode in one step.
    SetBoth(Path, &'static [u8], Option<Vec<u8>>, SetAttributes),
    /// Makes a file or a directory with attributes.
    CreateWith(Path, Vec<(&'static [u8], Vec<u8>)>),
    MkdirWith(Path, Vec<(&'static [u8], Vec<u8>)>),
    /// Opens into a slot, which is closed first.
    Open(Path, usize),
    WriteOpen(usize, u64, Vec<u8>),
    Close(usize),
    Sync,
    Idle,
}

/// Files that are open.
pub(crate) type Slots = [Option<Ino>; 2];

pub(crate) const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"dd", b"e-name-of-some-length", b"f"];
const XATTRS: [&[u8]; 3] = [b"user.x", b"user.yy", b"security.zzz"];

/// Numbers that look like chance, for operations of any number.
pub(crate) struct Chance {
    random: ChaCha8Rng,
    /// Paths that were to be made last.
    made: Vec<Path>,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance { random: ChaCha8Rng::seed_from_u64(seed), made: Vec::new() }
    }

    /// Chance that knows what there is.
    pub(crate) fn with_paths(seed: u64, made: Vec<Path>) -> Chance {
        Chance { made, ..Chance::new(seed) }
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
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

    pub(crate) fn bytes(&mut self, size: usize) -> Vec<u8> {
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

    pub(crate) fn op(&mut self, page_size: usize) -> Op {
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
            _ => Op::Sync,
        }
    }
}

impl Op {
    /// Whether everything is durable when it has succeeded.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(
            self,
            Op::Mkdir(_) | Op::MkdirWith(..) | Op::Symlink(..) | Op::Link(..) | Op::Rename(..) | Op::Sync | Op::Idle
        )
    }
}

pub(crate) fn resolve<N: Nand>(fs: &mut Fs<'_, N>, path: &[&[u8]]) -> Result<Ino, FsError<N::Error>> {
    path.iter().try_fold(Ino::ROOT, |at, name| fs.lookup(at, name))
}

fn lent<'a>(xattrs: &'a [(&'static [u8], Vec<u8>)]) -> Vec<(&'a [u8], &'a [u8])> {
    xattrs.iter().map(|(name, value)| (*name, value.as_slice())).collect()
}

fn parent<'p, N: Nand>(fs: &mut Fs<'_, N>, path: &'p [&'static [u8]]) -> Result<(Ino, &'p [u8]), FsError<N::Error>> {
    let (name, above) = path.split_last().unwrap();
    Ok((resolve(fs, above)?, name))
}

const NEW: Attributes = Attributes { mode: 0o644, uid: 3, gid: 4, rdev: 0 };

/// Writes all of it: where only a part finds room, the next call would say so.
fn write_all<N: Nand>(fs: &mut Fs<'_, N>, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
    let count = fs.write_at(ino, offset, bytes)?;
    if count == bytes.len() { Ok(()) } else { Err(FsError::Full) }
}

/// Applies an operation.
pub(crate) fn apply<N: Nand>(fs: &mut Fs<'_, N>, slots: &mut Slots, op: &Op) -> Result<(), FsError<N::Error>> {
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
            if let Some(before) = slots[*slot].take() {
                fs.close(before)?;
            }
            fs.open(ino)?;
            slots[*slot] = Some(ino);
            Ok(())
        }
        Op::WriteOpen(slot, offset, bytes) => {
            let Some(ino) = slots[*slot] else { return Ok(()) };
            write_all(fs, ino, *offset, bytes)
        }
        Op::Close(slot) => match slots[*slot].take() {
            Some(ino) => fs.close(ino),
            None => Ok(()),
        },
        Op::Sync => fs.sync(),
        Op::Idle => fs.idle(3).map(|_| ()),
    }
}
