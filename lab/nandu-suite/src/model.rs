//! A file system in memory, as simple as can be, that the real one must agree with.

use std::collections::BTreeMap;

use nandu_files::errno::{EEXIST, EFBIG, EINVAL, EISDIR, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY};
use nandu_files::{Allocation, Capabilities, FileKind, RenameMode, SetAttributes};

use crate::operation::{Chance, NAMES, Op, Path};
use crate::seen::{Everything, Seen};
use crate::system::ROOT as ROOT_MADE;

#[derive(Clone, Debug)]
struct Node {
    seen: Seen,
    names: BTreeMap<Vec<u8>, usize>,
    parent: usize,
}

/// A file system in memory with the limits of a real one.
#[derive(Clone, Debug)]
pub struct Model {
    capabilities: Capabilities,
    nodes: BTreeMap<usize, Node>,
    next: usize,
    slots: [Option<usize>; 2],
    /// The time, in seconds since 1970.
    pub now: i64,
    /// The file whose content the operation changed last, if it did nothing else.
    pub written: Option<usize>,
}

const ROOT: usize = 0;

/// The times of what is made now.
fn born(now: i64, capabilities: &Capabilities) -> [i64; 4] {
    [now, now, now, if capabilities.birth_times { now } else { 0 }]
}

/// Operations by chance, of which most succeed.
pub fn workload(seed: u64, count: usize, page_size: usize, capabilities: Capabilities) -> Vec<Op> {
    let mut chance = Chance::new(seed);
    let mut model = Model::new(capabilities);
    let mut ops = Vec::new();
    while ops.len() < count {
        let op = chance.op(page_size, &capabilities);
        if model.apply(&op).is_ok() || chance.below(4) == 0 {
            ops.push(op);
        }
    }
    ops
}

impl Model {
    /// A volume just formatted, of a file system that can do this.
    pub fn new(capabilities: Capabilities) -> Model {
        let seen = Seen {
            mode: ROOT_MADE.mode | FileKind::Directory.mode(),
            owner: (ROOT_MADE.uid, ROOT_MADE.gid),
            nlink: 2,
            size: 0,
            times: born(ROOT_MADE.seconds, &capabilities),
            content: Vec::new(),
            xattrs: BTreeMap::new(),
            same_as: Vec::new(),
        };
        let root = Node { seen, names: BTreeMap::new(), parent: ROOT };
        Model { capabilities, nodes: [(ROOT, root)].into(), next: 1, slots: [None; 2], now: 1, written: None }
    }

    /// The model of what was found.
    pub fn of(found: &Everything, capabilities: Capabilities) -> Model {
        let mut model = Model::new(capabilities);
        model.nodes.clear();
        let mut ids: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (path, seen) in found {
            let id = *ids.entry(&seen.same_as).or_insert(model.next - 1);
            if id == model.next - 1 {
                let seen = Seen { same_as: Vec::new(), ..seen.clone() };
                model.nodes.insert(id, Node { seen, names: BTreeMap::new(), parent: ROOT });
                model.next += 1;
            }
            if let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
                let above = ids[&found[&path[..slash]].same_as[..]];
                model.node(above).names.insert(path[slash + 1..].to_vec(), id);
                model.node(id).parent = above;
            }
        }
        if !capabilities.counted_names {
            // They did not say.
            let directories: Vec<usize> = model.nodes.keys().copied().filter(|&id| model.is_directory(id)).collect();
            directories.into_iter().for_each(|id| model.count(id));
        }
        model
    }

    /// The inode at a path, by a number that it keeps.
    pub fn id(&self, path: &[&[u8]]) -> Option<usize> {
        self.resolve(path).ok()
    }

    /// What the file system can do that it stands for.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The same at another time.
    pub fn at(mut self, now: i64) -> Model {
        self.now = now;
        self
    }

    /// Every path there is, as operations have them.
    pub fn all_paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let mut left = vec![(Path::new(), ROOT)];
        while let Some((path, id)) = left.pop() {
            for (name, child) in &self.nodes[&id].names {
                let mut below = path.clone();
                below.push(NAMES.iter().find(|known| *known == name).unwrap());
                found.push(below.clone());
                left.push((below, *child));
            }
        }
        found
    }

    /// As a mount finds it: nothing is open, and what had no name is gone.
    pub fn remount(&mut self) {
        for slot in 0..self.slots.len() {
            self.close(slot);
        }
    }

    fn node(&mut self, id: usize) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    fn is_directory(&self, id: usize) -> bool {
        self.nodes[&id].seen.mode & FileKind::MASK == FileKind::Directory.mode()
    }

    fn lookup(&self, directory: usize, name: &[u8]) -> Result<usize, i32> {
        if !self.is_directory(directory) {
            return Err(ENOTDIR);
        }
        self.nodes[&directory].names.get(name).copied().ok_or(ENOENT)
    }

    fn resolve(&self, path: &[&[u8]]) -> Result<usize, i32> {
        path.iter().try_fold(ROOT, |at, name| self.lookup(at, name))
    }

    fn parent<'p>(&self, path: &'p [&'static [u8]]) -> Result<(usize, &'p [u8]), i32> {
        let (name, above) = path.split_last().unwrap();
        Ok((self.resolve(above)?, name))
    }

    fn file(&self, path: &[&[u8]]) -> Result<usize, i32> {
        let id = self.resolve(path)?;
        self.check_file(id).map(|()| id)
    }

    fn check_file(&self, id: usize) -> Result<(), i32> {
        match FileKind::of_mode(self.nodes[&id].seen.mode).unwrap() {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(EISDIR),
            _ => Err(EINVAL),
        }
    }

    fn touch(&mut self, directory: usize) {
        let now = self.now;
        let node = self.node(directory);
        node.seen.times[1] = now;
        node.seen.times[2] = now;
        node.seen.size = node.names.len() as u64;
    }

    fn make(&mut self, path: &[&'static [u8]], mode: u32, content: Vec<u8>) -> Result<(), i32> {
        let (above, name) = self.parent(path)?;
        match self.lookup(above, name) {
            Err(ENOENT) => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(EEXIST),
        }
        let is_directory = mode & FileKind::MASK == FileKind::Directory.mode();
        let seen = Seen {
            mode,
            owner: (3, 4),
            nlink: if is_directory { 2 } else { 1 },
            size: content.len() as u64,
            times: born(self.now, &self.capabilities),
            content,
            xattrs: BTreeMap::new(),
            same_as: Vec::new(),
        };
        self.nodes.insert(self.next, Node { seen, names: BTreeMap::new(), parent: above });
        let id = self.next;
        self.node(above).names.insert(name.to_vec(), id);
        self.next += 1;
        self.recount(above);
        Ok(())
    }

    fn give(&mut self, path: &[&'static [u8]], xattrs: &[(&'static [u8], Vec<u8>)]) -> Result<(), i32> {
        let id = self.resolve(path)?;
        self.node(id).seen.xattrs = xattrs.iter().map(|(name, value)| (name.to_vec(), value.clone())).collect();
        Ok(())
    }

    /// The inode loses a name, which is gone already.
    fn drop_name(&mut self, id: usize) {
        let now = self.now;
        let is_directory = self.is_directory(id);
        let is_open = self.slots.contains(&Some(id));
        let node = self.node(id);
        node.seen.times[2] = now;
        node.seen.nlink = if is_directory { 0 } else { node.seen.nlink - 1 };
        if node.seen.nlink == 0 && !is_open {
            self.nodes.remove(&id);
        }
    }

    fn close(&mut self, slot: usize) {
        let Some(id) = self.slots[slot].take() else { return };
        if self.nodes[&id].seen.nlink == 0 && !self.slots.contains(&Some(id)) {
            self.nodes.remove(&id);
        }
    }

    fn check_size(&self, end: u64) -> Result<(), i32> {
        if end > self.capabilities.file_size_max { Err(EFBIG) } else { Ok(()) }
    }

    fn write(&mut self, id: usize, offset: u64, bytes: &[u8]) -> Result<(), i32> {
        self.check_size(offset + bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let now = self.now;
        let seen = &mut self.node(id).seen;
        let end = offset as usize + bytes.len();
        if seen.content.len() < end {
            seen.content.resize(end, 0);
        }
        seen.content[offset as usize..end].copy_from_slice(bytes);
        seen.size = seen.content.len() as u64;
        (seen.times[1], seen.times[2]) = (now, now);
        self.written = Some(id);
        Ok(())
    }

    fn allocate(&mut self, id: usize, what: Allocation, offset: u64, size: u64) -> Result<(), i32> {
        self.check_size(offset + size)?;
        let now = self.now;
        let seen = &mut self.node(id).seen;
        let (start, end) = (offset as usize, (offset + size) as usize);
        if matches!(what, Allocation::Extend | Allocation::Zero) && seen.content.len() < end {
            seen.content.resize(end, 0);
        }
        if matches!(what, Allocation::PunchHole | Allocation::Zero | Allocation::ZeroKeepSize) {
            let end = end.min(seen.content.len());
            if start < end {
                seen.content[start..end].fill(0);
            }
        }
        seen.size = seen.content.len() as u64;
        (seen.times[1], seen.times[2]) = (now, now);
        self.written = Some(id);
        Ok(())
    }

    fn unlink(&mut self, path: &[&'static [u8]], directory: bool) -> Result<(), i32> {
        let (above, name) = self.parent(path)?;
        let id = self.lookup(above, name)?;
        match (directory, self.is_directory(id)) {
            (true, false) => return Err(ENOTDIR),
            (false, true) => return Err(EISDIR),
            (true, true) if !self.nodes[&id].names.is_empty() => return Err(ENOTEMPTY),
            _ => {}
        }
        self.node(above).names.remove(name);
        self.recount(above);
        self.drop_name(id);
        Ok(())
    }

    fn is_above(&self, id: usize, mut below: usize) -> bool {
        loop {
            match below {
                _ if below == id => return true,
                ROOT => return false,
                _ => below = self.nodes[&below].parent,
            }
        }
    }

    fn rename(&mut self, from: &[&'static [u8]], to: &[&'static [u8]], mode: RenameMode) -> Result<(), i32> {
        let (above, name) = self.parent(from)?;
        let (new_above, new_name) = self.parent(to)?;
        if !self.is_directory(above) || !self.is_directory(new_above) {
            return Err(ENOTDIR);
        }
        let id = self.lookup(above, name)?;
        let is_directory = self.is_directory(id);
        if is_directory && self.is_above(id, new_above) {
            return Err(EINVAL);
        }
        let other = self.lookup(new_above, new_name).ok();
        match (mode, other) {
            (RenameMode::Exchange, None) => return Err(ENOENT),
            (RenameMode::NoReplace, Some(_)) => return Err(EEXIST),
            (_, Some(other)) if other == id => return Ok(()),
            (RenameMode::Exchange, Some(other)) => {
                if self.is_directory(other) && self.is_above(other, above) {
                    return Err(EINVAL);
                }
                self.put(above, name, other);
                self.put(new_above, new_name, id);
                for directory in [above, new_above] {
                    self.recount(directory);
                }
                return Ok(());
            }
            (_, Some(other)) => match (is_directory, self.is_directory(other)) {
                (true, false) => return Err(ENOTDIR),
                (false, true) => return Err(EISDIR),
                (true, true) if !self.nodes[&other].names.is_empty() => return Err(ENOTEMPTY),
                _ => {}
            },
            (_, None) => {}
        }
        self.node(above).names.remove(name);
        self.put(new_above, new_name, id);
        for directory in [above, new_above] {
            self.recount(directory);
        }
        if let Some(other) = other {
            self.drop_name(other);
        }
        Ok(())
    }

    fn put(&mut self, directory: usize, name: &[u8], id: usize) {
        let now = self.now;
        self.node(directory).names.insert(name.to_vec(), id);
        let node = self.node(id);
        node.parent = directory;
        node.seen.times[2] = now;
    }

    fn recount(&mut self, directory: usize) {
        self.count(directory);
        self.touch(directory);
    }

    /// A directory has as many links and names as there are.
    fn count(&mut self, directory: usize) {
        let children: Vec<usize> = self.nodes[&directory].names.values().copied().collect();
        let directories = children.iter().filter(|&&child| self.is_directory(child)).count();
        let seen = &mut self.node(directory).seen;
        (seen.nlink, seen.size) = (2 + directories as u32, children.len() as u64);
    }

    fn set(&mut self, id: usize, set: &SetAttributes) {
        let now = self.now;
        let (first, last) = self.capabilities.seconds;
        let seen = &mut self.node(id).seen;
        if let Some(mode) = set.mode {
            seen.mode = seen.mode & FileKind::MASK | mode;
        }
        seen.owner = (set.uid.unwrap_or(seen.owner.0), set.gid.unwrap_or(seen.owner.1));
        seen.times[0] = set.atime.map_or(seen.times[0], |time| time.seconds.clamp(first, last));
        seen.times[1] = set.mtime.map_or(seen.times[1], |time| time.seconds.clamp(first, last));
        seen.times[2] = now;
    }

    /// Applies an operation.
    pub fn apply(&mut self, op: &Op) -> Result<(), i32> {
        self.written = None;
        match op {
            Op::Create(path) => self.make(path, 0o644 | FileKind::File.mode(), Vec::new()),
            Op::Mkdir(path) => self.make(path, 0o644 | FileKind::Directory.mode(), Vec::new()),
            Op::Symlink(path, target) => self.make(path, 0o777 | FileKind::Symlink.mode(), target.clone()),
            Op::Link(from, to) => {
                let id = self.resolve(from)?;
                let (above, name) = self.parent(to)?;
                if self.is_directory(id) {
                    return Err(EISDIR);
                }
                match self.lookup(above, name) {
                    Err(ENOENT) => {}
                    Err(error) => return Err(error),
                    Ok(_) => return Err(EEXIST),
                }
                self.node(above).names.insert(name.to_vec(), id);
                let now = self.now;
                let seen = &mut self.node(id).seen;
                seen.nlink += 1;
                seen.times[2] = now;
                self.touch(above);
                Ok(())
            }
            Op::Unlink(path) => self.unlink(path, false),
            Op::Rmdir(path) => self.unlink(path, true),
            Op::Rename(from, to, mode) => self.rename(from, to, *mode),
            Op::Write(path, offset, bytes) => {
                let id = self.file(path)?;
                self.write(id, *offset, bytes)
            }
            Op::Append(path, bytes) => {
                let id = self.file(path)?;
                self.write(id, self.nodes[&id].seen.size, bytes)
            }
            Op::Truncate(path, size) => {
                let id = self.file(path)?;
                self.check_size(*size)?;
                let now = self.now;
                let seen = &mut self.node(id).seen;
                seen.content.resize(*size as usize, 0);
                seen.size = *size;
                (seen.times[1], seen.times[2]) = (now, now);
                Ok(())
            }
            Op::Allocate(path, what, offset, size) => {
                let id = self.file(path)?;
                self.allocate(id, *what, *offset, *size)
            }
            Op::Set(path, set) => {
                let id = self.resolve(path)?;
                self.set(id, set);
                Ok(())
            }
            Op::SetXattr(path, name, value) => {
                let id = self.resolve(path)?;
                let now = self.now;
                let seen = &mut self.node(id).seen;
                seen.xattrs.insert(name.to_vec(), value.clone());
                seen.times[2] = now;
                Ok(())
            }
            Op::RemoveXattr(path, name) => {
                let id = self.resolve(path)?;
                let now = self.now;
                let seen = &mut self.node(id).seen;
                seen.xattrs.remove(*name).ok_or(ENODATA)?;
                seen.times[2] = now;
                Ok(())
            }
            Op::SetBoth(path, name, value, set) => {
                let id = self.resolve(path)?;
                let seen = &mut self.node(id).seen;
                match value {
                    Some(value) => seen.xattrs.insert(name.to_vec(), value.clone()),
                    None => Some(seen.xattrs.remove(*name).ok_or(ENODATA)?),
                };
                self.set(id, set);
                Ok(())
            }
            Op::CreateWith(path, xattrs) => {
                self.make(path, 0o644 | FileKind::File.mode(), Vec::new())?;
                self.give(path, xattrs)
            }
            Op::MkdirWith(path, xattrs) => {
                self.make(path, 0o644 | FileKind::Directory.mode(), Vec::new())?;
                self.give(path, xattrs)
            }
            Op::Open(path, slot) => {
                let id = self.resolve(path)?;
                self.close(*slot);
                self.slots[*slot] = Some(id);
                Ok(())
            }
            Op::WriteOpen(slot, offset, bytes) => {
                let Some(id) = self.slots[*slot] else { return Ok(()) };
                self.check_file(id)?;
                self.write(id, *offset, bytes)
            }
            Op::Close(slot) => {
                self.close(*slot);
                Ok(())
            }
            Op::Fsync(path) => self.resolve(path).map(|_| ()),
            Op::Sync | Op::Idle => Ok(()),
        }
    }

    /// Every path there is, and the inode there, by a number that it keeps.
    pub fn ids(&self) -> BTreeMap<Vec<u8>, usize> {
        let mut ids = BTreeMap::new();
        let mut left = vec![(Vec::new(), ROOT)];
        while let Some((path, id)) = left.pop() {
            for (name, child) in &self.nodes[&id].names {
                let mut below: Vec<u8> = path.clone();
                below.push(b'/');
                below.extend(name);
                left.push((below, *child));
            }
            ids.insert(path, id);
        }
        ids
    }

    /// What is to be seen of an inode, wherever it is; `None` if there is none.
    pub fn seen(&self, id: usize) -> Option<Seen> {
        let mut seen = self.nodes.get(&id)?.seen.clone();
        if self.is_directory(id) {
            seen.content.clear();
            if !self.capabilities.counted_names {
                (seen.nlink, seen.size) = (0, 0);
            }
            if !self.capabilities.directory_times {
                seen.times = [0; 4];
            }
        }
        Some(seen)
    }

    /// What is to be seen of it.
    pub fn everything(&self) -> Everything {
        let mut first: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut found = Everything::new();
        for (path, id) in self.ids() {
            // Paths come in order.
            let same_as = first.entry(id).or_insert_with(|| path.clone()).clone();
            if let Some(seen) = self.seen(id) {
                found.insert(path, Seen { same_as, ..seen });
            }
        }
        found
    }

    /// The paths of an inode.
    pub fn paths(&self, id: usize) -> Vec<Vec<u8>> {
        self.ids().into_iter().filter(|(_, at)| *at == id).map(|(path, _)| path).collect()
    }
}
