//! UBIFS on UBI: nodes in a journal of several heads, an index of all nodes that commits write.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::flash::{Flash, Head, Item, Rules};
use super::index::Index;
use super::{Counts, Device, Model, host_pages, missing};
use crate::BenchError;
use crate::workload::{FileName, Files};

/// Bytes of nodes: an inode; a directory entry before its name and the zero behind it; data before them; an index node before its
/// branches, and a branch.
const INODE_SIZE: u64 = 160;
const ENTRY_SIZE: u64 = 56;
const DATA_SIZE: u64 = 48;
const INDEX_SIZE: u64 = 28;
const BRANCH_SIZE: u64 = 20;

/// Bytes of data in a node.
const DATA_BLOCK_SIZE: u64 = 4096;

const BASE: Head = Head(0);
const DATA: Head = Head(1);
const COLLECTOR: Head = Head(2);
const INDEX: Head = Head(3);

/// UBI's two headers, in a page each since no page is programmed twice; for the heads of the journal, a reference in the log too.
const RULES: Rules = Rules { front_pages: 2, opening: &[3, 3, 2, 2], reserve: 0 };

/// Programs of a commit beside the index: its mark in the log, two masters, the table of free space.
const COMMIT_PROGRAMS: u64 = 5;

/// Of the main area for the journal, as a divisor, and most bytes of it; and how full it is when a commit begins.
const JOURNAL_SHARE: u64 = 20;
const JOURNAL_SIZE_MAX: u64 = 32 << 20;
const JOURNAL_FILL: (u64, u64) = (13, 16);

/// Blocks that are kept free beside what the index needs to be written anew.
const RESERVE: u32 = 4;

/// Blocks that are emptied before one operation at most: on a device that is nearly full room stays short.
const COLLECTED_MAX: u32 = 4;

const KIND_INODE: u64 = 0;
const KIND_DATA: u64 = 1;
const KIND_ENTRY: u64 = 2;

fn key(inode: u64, kind: u64, number: u64) -> u64 {
    inode << 36 | kind << 34 | number & ((1 << 34) - 1)
}

fn aligned(size: u64) -> u64 {
    size.next_multiple_of(8)
}

struct File {
    number: u64,
    size: u64,
    entry: Option<Item>,
    inode: Option<Item>,
    blocks: BTreeMap<u64, Option<Item>>,
}

/// The model.
pub struct Ubifs {
    flash: Flash,
    index: Index,
    directories: HashMap<Option<u32>, File>,
    files: HashMap<FileName, File>,
    open: Option<FileName>,
    next: u64,
    /// Blocks of the journal that begin a commit, and how many there were at the last one.
    journal_blocks: u64,
    committed: u64,
}

impl fmt::Debug for Ubifs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ubifs").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Ubifs {
    /// On an empty device.
    pub fn new(device: &Device) -> Ubifs {
        let flash = Flash::new(device, RULES);
        let size = flash.block_size() * u64::from(device.block_count) / JOURNAL_SHARE;
        let journal = size.min(JOURNAL_SIZE_MAX) * JOURNAL_FILL.0 / JOURNAL_FILL.1;
        let journal_blocks = (journal / flash.block_size()).max(2);
        let root = File { number: 1, size: 0, entry: None, inode: None, blocks: BTreeMap::new() };
        Ubifs {
            flash,
            index: Index::new(),
            directories: HashMap::from([(None, root)]),
            files: HashMap::new(),
            open: None,
            next: 2,
            journal_blocks,
            committed: 0,
        }
    }

    /// Before each operation: a commit if the journal is full, and the collector if room is short.
    fn prepare(&mut self) -> Result<(), BenchError> {
        if self.flash.opened[BASE.0] + self.flash.opened[DATA.0] - self.committed >= self.journal_blocks {
            self.commit()?;
        }
        let index_size = self.index.node_count() as u64 * aligned(INDEX_SIZE + 8 * BRANCH_SIZE);
        self.flash.rules.reserve = RESERVE + (index_size / self.flash.block_size()) as u32;
        let mut moved = Vec::new();
        for _ in 0..COLLECTED_MAX {
            if !self.flash.is_short() || !self.flash.collect(COLLECTOR, &mut moved)? {
                break;
            }
        }
        // What was moved is found where it is now.
        moved.into_iter().filter(|&key| key > 0).for_each(|key| self.index.put(key));
        Ok(())
    }

    fn commit(&mut self) -> Result<(), BenchError> {
        let flash = &mut self.flash;
        let dead = self.index.commit(|branches, item| {
            flash.replace(item, INDEX, aligned(INDEX_SIZE + branches as u64 * BRANCH_SIZE), 0)
        })?;
        dead.into_iter().for_each(|item| flash.kill(item));
        flash.pad(INDEX);
        flash.program_elsewhere(COMMIT_PROGRAMS);
        self.committed = flash.opened[BASE.0] + flash.opened[DATA.0];
        Ok(())
    }

    fn entry_size(name: &str) -> u64 {
        aligned(ENTRY_SIZE + name.len() as u64 + 1)
    }

    fn entry_key(parent: u64, number: u64) -> u64 {
        // Entries lie by the hash of their name: anywhere among those of their directory.
        key(parent, KIND_ENTRY, number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 35)
    }

    /// A node that is obsolete as soon as it is there: it says that something is gone.
    fn gone(&mut self, size: u64) -> Result<(), BenchError> {
        let item = self.flash.append(BASE, size, 0)?;
        self.flash.kill(item);
        Ok(())
    }

    fn parent(&mut self, directory: Option<u32>) -> Result<u64, BenchError> {
        let parent = self.directories.get_mut(&directory).ok_or_else(missing)?;
        let key = key(parent.number, KIND_INODE, 0);
        self.flash.replace(&mut parent.inode, BASE, INODE_SIZE, key)?;
        self.index.put(key);
        Ok(parent.number)
    }

    /// An entry, an inode, and the inode of the directory.
    fn make(&mut self, directory: Option<u32>, name: &str) -> Result<File, BenchError> {
        self.prepare()?;
        let number = self.next;
        self.next += 1;
        let parent = self.directories.get(&directory).ok_or_else(missing)?.number;
        let (entry_key, inode_key) = (Self::entry_key(parent, number), key(number, KIND_INODE, 0));
        let entry = self.flash.append(BASE, Self::entry_size(name), entry_key)?;
        let inode = self.flash.append(BASE, INODE_SIZE, inode_key)?;
        self.index.put(entry_key);
        self.index.put(inode_key);
        self.parent(directory)?;
        Ok(File { number, size: 0, entry: Some(entry), inode: Some(inode), blocks: BTreeMap::new() })
    }

    /// An entry and an inode that say that it is gone, the inode of the directory, and once more an inode when it is deleted.
    fn unmake(&mut self, directory: Option<u32>, name: &str, file: File) -> Result<(), BenchError> {
        self.prepare()?;
        self.gone(Self::entry_size(name))?;
        self.gone(INODE_SIZE)?;
        let parent = self.parent(directory)?;
        self.gone(INODE_SIZE)?;
        self.index.remove(Self::entry_key(parent, file.number));
        self.index.remove(key(file.number, KIND_INODE, 0));
        for &block in file.blocks.keys() {
            self.index.remove(key(file.number, KIND_DATA, block));
        }
        let items = file.blocks.into_values().chain([file.entry, file.inode]);
        items.flatten().for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn write_inode(flash: &mut Flash, index: &mut Index, file: &mut File) -> Result<(), BenchError> {
        let key = key(file.number, KIND_INODE, 0);
        flash.replace(&mut file.inode, BASE, INODE_SIZE, key)?;
        index.put(key);
        Ok(())
    }

    fn sync(&mut self) {
        self.flash.pad(DATA);
        self.flash.pad(BASE);
    }
}

impl Files for Ubifs {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let made = self.make(None, &FileName::directory_name(directory))?;
        self.directories.insert(Some(directory), made);
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let file = self.directories.remove(&Some(directory)).ok_or_else(missing)?;
        self.unmake(None, &FileName::directory_name(directory), file)
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        let made = self.make(file.directory, &file.name())?;
        self.files.insert(file, made);
        self.open = Some(file);
        Ok(())
    }

    /// A node for each block of data, with the whole block, and the inode if the file grew.
    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        for (block, start, count) in host_pages(offset, bytes.len()) {
            self.prepare()?;
            let file = self.files.get_mut(&name).ok_or_else(missing)?;
            let key = key(file.number, KIND_DATA, block);
            let left = file.size.saturating_sub(block * DATA_BLOCK_SIZE).min(DATA_BLOCK_SIZE);
            let size = aligned(DATA_SIZE + left.max(start + count));
            self.flash.replace(file.blocks.entry(block).or_default(), DATA, size, key)?;
            self.index.put(key);
        }
        let file = self.files.get_mut(&name).ok_or_else(missing)?;
        let end = offset + bytes.len() as u64;
        if end > file.size {
            file.size = end;
            Self::write_inode(&mut self.flash, &mut self.index, file)?;
        }
        if is_synced {
            self.sync();
        }
        Ok(())
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        self.sync();
        Ok(())
    }

    fn close(&mut self) -> Result<(), BenchError> {
        self.open = None;
        Ok(())
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        let gone = self.files.remove(&file).ok_or_else(missing)?;
        self.unmake(file.directory, &file.name(), gone)
    }

    /// A new entry, one that says that the old one is gone, and the inodes of the directories.
    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        self.prepare()?;
        let mut file = self.files.remove(&from).ok_or_else(missing)?;
        self.gone(Self::entry_size(&from.name()))?;
        let parent = self.parent(from.directory)?;
        self.index.remove(Self::entry_key(parent, file.number));
        let parent = if from.directory == to.directory { parent } else { self.parent(to.directory)? };
        let key = Self::entry_key(parent, file.number);
        self.flash.replace(&mut file.entry, BASE, Self::entry_size(&to.name()), key)?;
        self.index.put(key);
        self.files.insert(to, file);
        Ok(())
    }

    fn expect(&mut self, file: FileName, _content: &[u8]) -> Result<(), BenchError> {
        self.files.contains_key(&file).then_some(()).ok_or_else(missing)
    }
}

impl Model for Ubifs {
    fn counts(&self) -> Counts {
        self.flash.counts
    }
}
