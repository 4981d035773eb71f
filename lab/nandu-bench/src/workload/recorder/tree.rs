//! The files below the recorded directory, and what each change of them is in the index.

use std::collections::{BTreeMap, BTreeSet};

use super::BadRecord;
use crate::workload::trace::{BLOCK_COUNT, Item, SLOT_COUNT, Step, Trace, Verb};

const BLOCK_SIZE: u64 = 4096;
/// Place of the directory itself among the nodes.
const ROOT: usize = 0;

/// What a file is made of.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A directory: its names.
    Folder(BTreeMap<String, Entry>),
    /// A file: its bytes, and the blocks that are in the index.
    File { size: u64, blocks: BTreeSet<u16> },
}

impl Content {
    pub(super) fn folder() -> Content {
        Content::Folder(BTreeMap::new())
    }

    pub(super) fn file() -> Content {
        Content::file_of_size(0)
    }

    /// A symbolic link, whose path stands with its attributes.
    pub(super) fn link() -> Content {
        Content::file()
    }

    /// A file whose blocks are all there, as many as count.
    pub(super) fn file_of_size(size: u64) -> Content {
        let blocks = size.div_ceil(BLOCK_SIZE).min(BLOCK_COUNT.into()) as u16;
        Content::File { size, blocks: (0..blocks).collect() }
    }
}

/// A name: where it leads to, and its number in the directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    node: usize,
    slot: u16,
}

#[derive(Clone, Debug)]
struct Node {
    inode: u16,
    links: u32,
    /// Written to since its attributes were put.
    dirty: bool,
    content: Content,
}

#[derive(Debug)]
pub(super) struct Tree {
    /// Nodes stay when their files are gone, for nothing refers to them by number any more.
    nodes: Vec<Node>,
    /// Inodes that were in use and are free.
    free: BTreeSet<u16>,
    /// The first inode never used.
    next: u32,
    trace: Trace,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let root = Node { inode: 1, links: 1, dirty: false, content: Content::folder() };
        let load = vec![Step { verb: Verb::Put, item: Item::Inode(1) }];
        Tree { nodes: vec![root], free: BTreeSet::new(), next: 2, trace: Trace { load, run: Vec::new() } }
    }

    pub(super) fn into_trace(self) -> Trace {
        self.trace
    }

    fn names(&self, folder: usize) -> Option<&BTreeMap<String, Entry>> {
        match &self.nodes[folder].content {
            Content::Folder(names) => Some(names),
            Content::File { .. } => None,
        }
    }

    fn find(&self, path: &str) -> Option<usize> {
        let mut node = ROOT;
        for name in parts(path) {
            node = self.names(node)?.get(name)?.node;
        }
        Some(node)
    }

    /// The directory that a path is in, and the name there.
    fn find_parent<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.find(folder)?;
        (!name.is_empty() && self.names(folder).is_some()).then_some((folder, name))
    }

    pub(super) fn is_there(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Bytes of a file; 0 for what is none.
    pub(super) fn size(&self, path: &str) -> u64 {
        match self.find(path).map(|node| &self.nodes[node].content) {
            Some(Content::File { size, .. }) => *size,
            _ => 0,
        }
    }

    /// The number of a name: its hash or, if another name has that, the next one that is free.
    fn slot(&self, folder: usize, name: &str) -> Result<u16, BadRecord> {
        let names = self.names(folder);
        if let Some(entry) = names.and_then(|names| names.get(name)) {
            return Ok(entry.slot);
        }
        let used: BTreeSet<u16> =
            names.map(|names| names.values().map(|entry| entry.slot).collect()).unwrap_or_default();
        let first = hash(name);
        let free = (0..SLOT_COUNT).map(|step| (first + step) % SLOT_COUNT).find(|slot| !used.contains(slot));
        free.ok_or(BadRecord::TooManyNames)
    }

    fn name_item(&self, folder: usize, slot: u16) -> Item {
        Item::Name { directory: self.nodes[folder].inode, slot }
    }

    fn inode_item(&self, node: usize) -> Item {
        Item::Inode(self.nodes[node].inode)
    }

    /// Adds a node under a name. What is found to be there before gets an inode that was never used, since it had it all
    /// the time.
    fn add(&mut self, folder: usize, name: &str, content: Content, before: bool) -> Result<Entry, BadRecord> {
        let recycled = if before { None } else { self.free.pop_first() };
        let inode = match recycled {
            Some(inode) => inode,
            None => {
                self.next += 1;
                u16::try_from(self.next - 1).map_err(|_| BadRecord::TooManyFiles)?
            }
        };
        self.nodes.push(Node { inode, links: 1, dirty: false, content });
        let entry = Entry { node: self.nodes.len() - 1, slot: self.slot(folder, name)? };
        self.enter(folder, name, entry);
        Ok(entry)
    }

    fn enter(&mut self, folder: usize, name: &str, entry: Entry) {
        if let Content::Folder(names) = &mut self.nodes[folder].content {
            names.insert(name.to_owned(), entry);
        }
    }

    /// What is at a path was there before: its entries are loaded, and those of directories on the way. Returns none where
    /// the path leads through a file.
    pub(super) fn adopt(&mut self, path: &str, content: Content) -> Result<Option<usize>, BadRecord> {
        let mut folder = ROOT;
        let mut names = parts(path).peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            let Some(known) = self.names(folder) else { return Ok(None) };
            if let Some(entry) = known.get(name) {
                folder = entry.node;
                continue;
            }
            let content = if is_last { content.clone() } else { Content::folder() };
            let blocks = match &content {
                Content::File { blocks, .. } => runs(blocks.iter().copied()),
                Content::Folder(_) => Vec::new(),
            };
            let entry = self.add(folder, name, content, true)?;
            let inode = self.nodes[entry.node].inode;
            let items = [self.name_item(folder, entry.slot), Item::Inode(inode)];
            let blocks = blocks.into_iter().map(|(first, count)| Item::Blocks { inode, first, count });
            self.trace.load.extend(items.into_iter().chain(blocks).map(|item| Step { verb: Verb::Put, item }));
            folder = entry.node;
        }
        Ok(Some(folder))
    }

    /// Something is made at a path.
    pub(super) fn create(&mut self, path: &str, content: Content) -> Result<(), BadRecord> {
        self.adopt(path.rsplit_once('/').map_or("", |(folder, _)| folder), Content::folder())?;
        let Some((folder, name)) = self.find_parent(path) else { return Ok(()) };
        if self.find(path).is_some() {
            // Somebody removed it unseen; the index still has it.
            self.remove(path)?;
        }
        self.run(Verb::Get, self.name_item(folder, self.slot(folder, name)?));
        let entry = self.add(folder, name, content, false)?;
        self.run(Verb::Put, self.name_item(folder, entry.slot));
        self.run(Verb::Put, self.inode_item(entry.node));
        Ok(())
    }

    /// A path is looked up and leads somewhere.
    pub(super) fn look_up(&mut self, path: &str, content: Content) -> Result<(), BadRecord> {
        let Some(node) = self.adopt(path, content)? else { return Ok(()) };
        if let Some((folder, name)) = self.find_parent(path) {
            self.run(Verb::Get, self.name_item(folder, self.slot(folder, name)?));
        }
        self.run(Verb::Get, self.inode_item(node));
        Ok(())
    }

    /// A path is looked up and leads nowhere.
    pub(super) fn look_in_vain(&mut self, path: &str) {
        if let Some((folder, name)) = self.find_parent(path)
            && let Ok(slot) = self.slot(folder, name)
        {
            self.run(Verb::Get, self.name_item(folder, slot));
        }
    }

    /// Bytes of a file are read.
    pub(super) fn read(&mut self, path: &str, at: u64, size: u64) -> Result<(), BadRecord> {
        let Some(node) = self.adopt(path, Content::file())? else { return Ok(()) };
        let (first, last) = block_range(at, size)?;
        let inode = self.nodes[node].inode;
        let Content::File { blocks, .. } = &mut self.nodes[node].content else { return Ok(()) };
        let missing: Vec<u16> = (first..=last).filter(|block| blocks.insert(*block)).collect();
        for (first, count) in runs(missing.into_iter()) {
            self.trace.load.push(Step { verb: Verb::Put, item: Item::Blocks { inode, first, count } });
        }
        self.run(Verb::Get, Item::Blocks { inode, first, count: last - first + 1 });
        Ok(())
    }

    /// Bytes of a file are written.
    pub(super) fn write(&mut self, path: &str, at: u64, written: u64) -> Result<(), BadRecord> {
        let Some(node) = self.adopt(path, Content::file())? else { return Ok(()) };
        let (first, last) = block_range(at, written)?;
        let node = &mut self.nodes[node];
        let inode = node.inode;
        node.dirty = true;
        let Content::File { size, blocks } = &mut node.content else { return Ok(()) };
        *size = at.saturating_add(written).max(*size);
        blocks.extend(first..=last);
        self.run(Verb::Put, Item::Blocks { inode, first, count: last - first + 1 });
        Ok(())
    }

    /// A file is cut off or extended.
    pub(super) fn truncate(&mut self, path: &str, size: u64) -> Result<(), BadRecord> {
        let Some(node) = self.adopt(path, Content::file())? else { return Ok(()) };
        if let Content::File { size: own, .. } = &mut self.nodes[node].content {
            *own = size;
        }
        let keep = size.div_ceil(BLOCK_SIZE).min(BLOCK_COUNT.into()) as u16;
        self.delete_blocks(node, keep);
        self.put_attributes_of(node);
        Ok(())
    }

    fn delete_blocks(&mut self, node: usize, keep: u16) {
        let inode = self.nodes[node].inode;
        let Content::File { blocks, .. } = &mut self.nodes[node].content else { return };
        let gone = blocks.split_off(&keep);
        for (first, count) in runs(gone.into_iter()) {
            self.run(Verb::Delete, Item::Blocks { inode, first, count });
        }
    }

    /// A name is removed, and the file with its last name.
    pub(super) fn remove(&mut self, path: &str) -> Result<(), BadRecord> {
        self.look_up(path, Content::file())?;
        self.remove_known(path);
        Ok(())
    }

    fn remove_known(&mut self, path: &str) {
        let Some((folder, name)) = self.find_parent(path) else { return };
        let Content::Folder(names) = &mut self.nodes[folder].content else { return };
        let Some(entry) = names.remove(name) else { return };
        self.run(Verb::Delete, self.name_item(folder, entry.slot));
        self.unlink(entry.node);
    }

    /// A node has a name less.
    fn unlink(&mut self, node: usize) {
        // Names that are left in a directory were removed unseen.
        let left: Vec<String> = self.names(node).map(|names| names.keys().cloned().collect()).unwrap_or_default();
        for name in left {
            let Content::Folder(names) = &mut self.nodes[node].content else { break };
            let Some(entry) = names.remove(&name) else { break };
            self.run(Verb::Delete, self.name_item(node, entry.slot));
            self.unlink(entry.node);
        }
        self.nodes[node].links -= 1;
        if self.nodes[node].links > 0 {
            self.put_attributes_of(node);
            return;
        }
        self.delete_blocks(node, 0);
        self.run(Verb::Delete, self.inode_item(node));
        self.nodes[node].dirty = false;
        self.free.insert(self.nodes[node].inode);
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), BadRecord> {
        self.look_up(from, Content::file())?;
        self.adopt(to.rsplit_once('/').map_or("", |(folder, _)| folder), Content::folder())?;
        let (Some((old, old_name)), Some((new, new_name))) = (self.find_parent(from), self.find_parent(to)) else {
            return Ok(());
        };
        if from == to || self.find(from) == self.find(to) {
            return Ok(());
        }
        let Content::Folder(names) = &mut self.nodes[old].content else { return Ok(()) };
        let Some(entry) = names.remove(old_name) else { return Ok(()) };
        self.run(Verb::Delete, self.name_item(old, entry.slot));
        let slot = self.slot(new, new_name)?;
        let replaced = self.names(new).and_then(|names| names.get(new_name)).copied();
        self.enter(new, new_name, Entry { node: entry.node, slot });
        self.run(Verb::Put, self.name_item(new, slot));
        if let Some(replaced) = replaced {
            self.unlink(replaced.node);
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &str, to: &str) -> Result<(), BadRecord> {
        self.look_up(from, Content::file())?;
        let (Some(node), Some((folder, name))) = (self.find(from), self.find_parent(to)) else { return Ok(()) };
        let slot = self.slot(folder, name)?;
        self.enter(folder, name, Entry { node, slot });
        self.nodes[node].links += 1;
        self.run(Verb::Put, self.name_item(folder, slot));
        self.put_attributes_of(node);
        Ok(())
    }

    /// The names of a directory are listed.
    pub(super) fn list(&mut self, path: &str) {
        let Some(folder) = self.find(path) else { return };
        let count = self.names(folder).map_or(0, BTreeMap::len);
        if count > 0 {
            self.run(Verb::List { count: count as u16 }, self.name_item(folder, 0));
        }
    }

    pub(super) fn put_attributes(&mut self, path: &str) {
        if let Some(node) = self.find(path) {
            self.put_attributes_of(node);
        }
    }

    fn put_attributes_of(&mut self, node: usize) {
        self.nodes[node].dirty = false;
        self.run(Verb::Put, self.inode_item(node));
    }

    /// Attributes of files that were never closed.
    pub(super) fn put_dirty(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].dirty {
                self.put_attributes_of(node);
            }
        }
    }

    /// One step more; blocks that follow those of the last step join them.
    fn run(&mut self, verb: Verb, item: Item) {
        if let Some(last) = self.trace.run.last_mut()
            && let (Item::Blocks { inode, first, count }, Item::Blocks { inode: i, first: f, count: c }) =
                (&mut last.item, item)
            && last.verb == verb
            && (*inode, u32::from(*first) + u32::from(*count)) == (i, u32::from(f))
        {
            *count += c;
            return;
        }
        self.trace.run.push(Step { verb, item });
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// The first and the last block that bytes touch.
fn block_range(at: u64, size: u64) -> Result<(u16, u16), BadRecord> {
    let last = at.saturating_add(size.saturating_sub(1)) / BLOCK_SIZE;
    let last = u16::try_from(last).ok().filter(|last| *last < BLOCK_COUNT).ok_or(BadRecord::FileTooLarge)?;
    Ok(((at / BLOCK_SIZE) as u16, last))
}

/// Numbers that rise, as runs: first and how many.
fn runs(numbers: impl Iterator<Item = u16>) -> Vec<(u16, u16)> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}

/// FNV-1a, folded to the numbers that names have.
fn hash(name: &str) -> u16 {
    let hash = name.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 15) as u16 % SLOT_COUNT
}
