//! JFFS2: nodes in one log, everything else in memory.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::flash::{Flash, Head, Item, Rules};
use super::{Counts, Device, Model, host_pages, missing};
use crate::BenchError;
use crate::workload::{FileName, Files};

/// Bytes of an inode node before its data, and of a directory entry before its name.
const INODE_SIZE: u64 = 68;
const ENTRY_SIZE: u64 = 40;

const LOG: Head = Head(0);

/// A block's summary takes a page, and each block gets a mark when it is erased, in the spare area of its first page.
const RULES: Rules = Rules { front_pages: 1, opening: &[1], reserve: 5 };
const MARKED: Rules = Rules { opening: &[2], ..RULES };

/// What a sync does with a page that is partly filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Nothing: syncs are not honoured.
    Never,
    /// Pads it.
    Pads,
    /// Fills it with what the collector moves, as the kernel does, and counts the mark of each block.
    Collects,
}

struct Node {
    start: u64,
    end: u64,
    item: Item,
}

struct File {
    entry: Item,
    inode: Item,
    /// By page of the host.
    pages: BTreeMap<u64, Vec<Node>>,
}

/// The model.
pub struct Jffs2 {
    flash: Flash,
    flush: Flush,
    directories: HashMap<u32, [Item; 2]>,
    files: HashMap<FileName, File>,
    open: Option<FileName>,
}

impl fmt::Debug for Jffs2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jffs2").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Jffs2 {
    /// On an empty device.
    pub fn new(device: &Device, flush: Flush) -> Jffs2 {
        let rules = if flush == Flush::Collects { MARKED } else { RULES };
        let flash = Flash::new(device, rules);
        Jffs2 { flash, flush, directories: HashMap::new(), files: HashMap::new(), open: None }
    }

    fn node(&mut self, size: u64) -> Result<Item, BenchError> {
        while self.flash.is_short() && self.flash.collect(LOG, &mut Vec::new())? {}
        self.flash.append(LOG, size.next_multiple_of(4), 0)
    }

    fn entry(&mut self, name: &str) -> Result<Item, BenchError> {
        self.node(ENTRY_SIZE + name.len() as u64)
    }

    /// An entry that says that a name is gone: it is needed until the old one is erased, which is taken to be soon.
    fn gone(&mut self, name: &str) -> Result<(), BenchError> {
        let item = self.entry(name)?;
        self.flash.kill(item);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), BenchError> {
        match self.flush {
            Flush::Never => {}
            Flush::Pads => self.flash.pad(LOG),
            Flush::Collects => self.fill()?,
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), BenchError> {
        if self.flash.waiting(LOG) == 0 {
            return Ok(());
        }
        let before = self.flash.counts.programs;
        while self.flash.counts.programs == before {
            if !self.flash.collect_one(LOG)? {
                self.flash.pad(LOG);
            }
        }
        Ok(())
    }
}

impl Files for Jffs2 {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let items = [self.node(INODE_SIZE)?, self.entry(&FileName::directory_name(directory))?];
        self.directories.insert(directory, items);
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        self.gone(&FileName::directory_name(directory))?;
        let items = self.directories.remove(&directory).ok_or_else(missing)?;
        items.into_iter().for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        let (inode, entry) = (self.node(INODE_SIZE)?, self.entry(&file.name())?);
        self.files.insert(file, File { entry, inode, pages: BTreeMap::new() });
        self.open = Some(file);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        for (page, start, count) in host_pages(offset, bytes.len()) {
            let item = self.node(INODE_SIZE + count)?;
            let end = start + count;
            let nodes = self.files.get_mut(&name).ok_or_else(missing)?.pages.entry(page).or_default();
            // What is covered in part stays.
            let flash = &mut self.flash;
            nodes.retain(|node| {
                let is_covered = start <= node.start && node.end <= end;
                if is_covered {
                    flash.kill(node.item);
                }
                !is_covered
            });
            nodes.push(Node { start, end, item });
        }
        if is_synced { self.sync() } else { Ok(()) }
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        self.sync()
    }

    fn close(&mut self) -> Result<(), BenchError> {
        self.open = None;
        Ok(())
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        self.gone(&file.name())?;
        let File { entry, inode, pages } = self.files.remove(&file).ok_or_else(missing)?;
        let nodes = pages.into_values().flatten().map(|node| node.item);
        nodes.chain([entry, inode]).for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        let new = self.entry(&to.name())?;
        self.gone(&from.name())?;
        let mut file = self.files.remove(&from).ok_or_else(missing)?;
        self.flash.kill(std::mem::replace(&mut file.entry, new));
        self.files.insert(to, file);
        Ok(())
    }

    fn expect(&mut self, file: FileName, _content: &[u8]) -> Result<(), BenchError> {
        self.files.contains_key(&file).then_some(()).ok_or_else(missing)
    }
}

impl Model for Jffs2 {
    fn counts(&self) -> Counts {
        self.flash.counts
    }
}
