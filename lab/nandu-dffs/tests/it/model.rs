//! What a volume should hold, and what it may hold after a cut.

use std::collections::BTreeMap;

use nandu_dffs::{Dffs, Error, Node};
use nandu_nand::Nand;

use crate::rig::{Chance, Everything, NEW, Outcome, parent, resolve};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create(String),
    Mkdir(String),
    Unlink(String),
    Rmdir(String),
    Rename(String, String),
    Write(String, usize, Vec<u8>),
    Truncate(String, usize),
    Fsync(String),
    Close(String),
    Sync,
}

/// What is at a path: a directory, or a file with every content that a cut may leave, the last of which is the present one.
#[derive(Clone, Debug)]
pub(crate) enum Thing {
    Directory,
    File(Vec<Vec<u8>>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) things: BTreeMap<String, Thing>,
}

fn is_below(path: &str, above: &str) -> bool {
    path.len() > above.len() && path.starts_with(above) && path.as_bytes()[above.len()] == b'/'
}

impl Model {
    pub(crate) fn of(found: &Everything) -> Model {
        let thing = |content: &Option<Vec<u8>>| match content {
            Some(content) => Thing::File(vec![content.clone()]),
            None => Thing::Directory,
        };
        Model { things: found.iter().map(|(path, content)| (path.clone(), thing(content))).collect() }
    }

    pub(crate) fn now(&self) -> Everything {
        let content = |thing: &Thing| match thing {
            Thing::Directory => None,
            Thing::File(versions) => versions.last().cloned(),
        };
        self.things.iter().map(|(path, thing)| (path.clone(), content(thing))).collect()
    }

    /// Whether a cut may leave this.
    pub(crate) fn allows(&self, found: &Everything) -> bool {
        self.things.len() == found.len()
            && self.things.iter().all(|(path, thing)| match (thing, found.get(path)) {
                (Thing::Directory, Some(None)) => true,
                (Thing::File(versions), Some(Some(content))) => versions.contains(content),
                _ => false,
            })
    }

    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || matches!(self.things.get(path), Some(Thing::Directory))
    }

    fn above_is_there(&self, path: &str) -> bool {
        self.is_directory(path.rsplit_once('/').map_or("", |(above, _)| above))
    }

    fn has_below(&self, path: &str) -> bool {
        self.things.keys().any(|other| is_below(other, path))
    }

    fn versions(&mut self, path: &str) -> Option<&mut Vec<Vec<u8>>> {
        match self.things.get_mut(path) {
            Some(Thing::File(versions)) => Some(versions),
            _ => None,
        }
    }

    fn settle(&mut self, path: &str) {
        if let Some(versions) = self.versions(path) {
            versions.drain(..versions.len() - 1);
        }
    }

    /// Makes an operation; `false` if it has to be refused. Parts of pages of a write may each be there after a cut.
    pub(crate) fn apply(&mut self, op: &Op, page_size: usize, file_size_max: usize) -> bool {
        match op {
            Op::Create(path) | Op::Mkdir(path) => {
                if !self.above_is_there(path) || self.things.contains_key(path) {
                    return false;
                }
                let thing = if matches!(op, Op::Mkdir(_)) { Thing::Directory } else { Thing::File(vec![Vec::new()]) };
                self.things.insert(path.clone(), thing);
            }
            Op::Unlink(path) => {
                if self.versions(path).is_none() {
                    return false;
                }
                self.things.remove(path);
            }
            Op::Rmdir(path) => {
                if path.is_empty() || !self.is_directory(path) || self.has_below(path) {
                    return false;
                }
                self.things.remove(path);
            }
            Op::Rename(from, to) => return self.rename(from, to),
            Op::Write(path, offset, bytes) => {
                let Some(versions) = self.versions(path) else { return false };
                if offset + bytes.len() > file_size_max {
                    return false;
                }
                let mut done = 0;
                while done < bytes.len() {
                    let at = offset + done;
                    let count = (page_size - at % page_size).min(bytes.len() - done);
                    let mut content = versions.last().unwrap().clone();
                    content.resize(content.len().max(at + count), 0);
                    content[at..at + count].copy_from_slice(&bytes[done..done + count]);
                    versions.push(content);
                    done += count;
                }
            }
            Op::Truncate(path, size) => {
                let Some(versions) = self.versions(path) else { return false };
                if *size > file_size_max {
                    return false;
                }
                let mut content = versions.last().unwrap().clone();
                content.resize(*size, 0);
                versions.push(content);
            }
            Op::Fsync(path) | Op::Close(path) => {
                if self.versions(path).is_none() {
                    return false;
                }
                self.settle(path);
            }
            Op::Sync => {
                let paths: Vec<_> = self.things.keys().cloned().collect();
                paths.iter().for_each(|path| self.settle(path));
            }
        }
        true
    }

    fn rename(&mut self, from: &str, to: &str) -> bool {
        let (from_directory, to_directory) = (self.is_directory(from), self.is_directory(to));
        if !self.things.contains_key(from) || !self.above_is_there(to) || is_below(to, from) {
            return false;
        }
        if from == to {
            return true;
        }
        if self.things.contains_key(to) && (from_directory != to_directory || to_directory && self.has_below(to)) {
            return false;
        }
        self.settle(from);
        self.things.remove(to);
        let moved: Vec<_> = self.things.keys().filter(|path| *path == from || is_below(path, from)).cloned().collect();
        for path in moved {
            let thing = self.things.remove(&path).unwrap();
            self.things.insert(format!("{to}{}", &path[from.len()..]), thing);
        }
        true
    }
}

/// Applies an operation to a volume.
pub(crate) fn apply<N: Nand>(fs: &mut Dffs<'_, N>, op: &Op) -> Outcome<(), N> {
    let file = |fs: &mut Dffs<'_, N>, path: &str| match resolve(fs, path)? {
        Node::File(file) => Ok(file),
        Node::Directory(_) => Err(Error::IsDirectory),
    };
    match op {
        Op::Create(path) => {
            let (directory, name) = parent(fs, path)?;
            fs.create(directory, name, NEW).map(|_| ())
        }
        Op::Mkdir(path) => {
            let (directory, name) = parent(fs, path)?;
            fs.mkdir(directory, name, NEW).map(|_| ())
        }
        Op::Unlink(path) => {
            let (directory, name) = parent(fs, path)?;
            fs.unlink(directory, name)
        }
        Op::Rmdir(path) => {
            let (directory, name) = parent(fs, path)?;
            fs.rmdir(directory, name)
        }
        Op::Rename(from, to) => {
            let (directory, name) = parent(fs, from)?;
            let (new_directory, new_name) = parent(fs, to)?;
            fs.rename(directory, name, new_directory, new_name, true).map(|_| ())
        }
        Op::Write(path, offset, bytes) => {
            let file = file(fs, path)?;
            match fs.write(file, *offset as u64, bytes)? {
                count if count == bytes.len() => Ok(()),
                _ => Err(Error::Full),
            }
        }
        Op::Truncate(path, size) => {
            let file = file(fs, path)?;
            fs.truncate(file, *size as u64)
        }
        Op::Fsync(path) => {
            let file = file(fs, path)?;
            fs.fsync(file)
        }
        Op::Close(path) => {
            let file = file(fs, path)?;
            fs.close(file)
        }
        Op::Sync => fs.sync(),
    }
}

/// An operation by chance on what there is and a few names.
pub(crate) fn choose(model: &Model, chance: &mut Chance, names: usize, page_size: usize) -> Op {
    let directories: Vec<_> = std::iter::once(String::new())
        .chain(model.things.iter().filter(|(_, thing)| matches!(thing, Thing::Directory)).map(|(path, _)| path.clone()))
        .collect();
    let fresh = |chance: &mut Chance| {
        let above = &directories[chance.below(directories.len().min(5))];
        let name = format!("n{}", chance.below(names));
        if above.is_empty() { name } else { format!("{above}/{name}") }
    };
    let paths: Vec<_> = model.things.keys().cloned().collect();
    let known = |chance: &mut Chance| match paths.len() {
        0 => fresh(chance),
        count if chance.below(12) > 0 => paths[chance.below(count)].clone(),
        _ => fresh(chance),
    };
    match chance.below(30) {
        0..6 => Op::Create(fresh(chance)),
        6 | 7 => Op::Mkdir(fresh(chance)),
        8..11 => Op::Unlink(known(chance)),
        11 | 12 => Op::Rmdir(known(chance)),
        13..17 => {
            let from = known(chance);
            let to = if chance.below(3) == 0 { known(chance) } else { fresh(chance) };
            Op::Rename(from, to)
        }
        17..22 => {
            let offset = if chance.below(3) == 0 { 0 } else { chance.below(4 * page_size) };
            let bytes = (0..1 + chance.below(3 * page_size)).map(|_| 1 + chance.below(255) as u8).collect();
            Op::Write(known(chance), offset, bytes)
        }
        22 | 23 => Op::Truncate(known(chance), chance.below(5 * page_size)),
        24..27 => Op::Fsync(known(chance)),
        27 | 28 => Op::Close(known(chance)),
        _ => Op::Sync,
    }
}
