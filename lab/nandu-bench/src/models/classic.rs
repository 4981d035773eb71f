//! DFFS as it was published: a page for each inode, directories as hash tables of pointers, one log for each kind of object.
//!
//! What is programmed when stands in the paper; what it leaves open (how a chain is kept in order when names go, when the map of
//! directories is written, that closing a file that was written brings its inode and its parent to flash) is decided here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::flash::{Flash, Head, Item, Rules};
use super::{Counts, Device, FULL, Model, missing, parts};
use crate::BenchError;
use crate::workload::{FileName, Files};

const DIRECTORY: Head = Head(0);
const OVERFLOW: Head = Head(1);
const INODE: Head = Head(2);
const DATA: Head = Head(3);
const MAP: Head = Head(4);

/// Blocks kept free: as many as the paper keeps.
const RULES: Rules = Rules { front_pages: 0, opening: &[0; 5], reserve: 7 };

/// The map of directories is written once in so many of their pages.
const MAP_EVERY: u64 = 64;

/// Bytes in front of a directory's buckets, and behind them.
const FRONT_SIZE: u32 = 308;
const BACK_SIZE: u32 = 4;

/// Bytes of a bucket: a pointer and a byte of hash.
const BUCKET_SIZE: u32 = 5;

/// Files whose directory may not know yet where the collector moved their inode.
const BEHIND_MAX: usize = 64;

/// When a file's directory learns where its inode went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentUpdate {
    /// When the file is closed.
    OnClose,
    /// At each sync of the file.
    Each,
}

/// A page of a directory's chain: where it is, and the buckets in use with what they lead to.
#[derive(Default)]
struct Page {
    item: Option<Item>,
    buckets: HashMap<u64, u64>,
}

#[derive(Default)]
struct File {
    inode: Option<Item>,
    pages: BTreeMap<u64, Option<Item>>,
    is_written: bool,
}

/// The model.
pub struct Classic {
    flash: Flash,
    parent_update: ParentUpdate,
    bucket_count: u64,
    /// Chains, by directory; the root's by none.
    chains: HashMap<Option<u32>, Vec<Page>>,
    files: HashMap<FileName, File>,
    /// The files, by number.
    names: HashMap<u64, FileName>,
    /// Numbers of files whose directory is behind.
    behind: BTreeSet<u64>,
    open: Option<FileName>,
    map: Option<Item>,
    /// Blocks that are emptied before one operation at most.
    round_max: u32,
    /// Whether all kinds of pages go to one log.
    has_one_log: bool,
    /// Pages of directories programmed since the map was.
    unmapped: u64,
}

impl fmt::Debug for Classic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classic").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Classic {
    /// On an empty device.
    pub fn new(device: &Device, parent_update: ParentUpdate) -> Classic {
        let most = u64::from((device.page_size - FRONT_SIZE - BACK_SIZE) / BUCKET_SIZE);
        let bucket_count = (2..=most).rev().find(|&count| is_prime(count)).unwrap_or(2);
        Classic {
            flash: Flash::new(device, RULES),
            parent_update,
            bucket_count,
            chains: HashMap::from([(None, vec![Page::default()])]),
            files: HashMap::new(),
            names: HashMap::new(),
            behind: BTreeSet::new(),
            open: None,
            map: None,
            round_max: 2 * device.block_count,
            has_one_log: false,
            unmapped: 0,
        }
    }

    /// The same programs in one log instead of one for each kind of page.
    #[must_use]
    pub fn with_one_log(self) -> Classic {
        Classic { has_one_log: true, ..self }
    }

    /// Buckets of a page of a directory.
    pub fn bucket_count(&self) -> u64 {
        self.bucket_count
    }

    fn bucket(&self, number: u64) -> u64 {
        // Any hash does that spreads names evenly: the names here are numbers.
        let mixed = (number ^ number >> 31).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) % self.bucket_count
    }

    fn page(&mut self, item: &mut Option<Item>, head: Head, tag: u64) -> Result<(), BenchError> {
        let size = self.flash.page_size();
        self.flash.replace(item, if self.has_one_log { DATA } else { head }, size, tag)
    }

    /// Empties blocks while room is short; what lives goes to the end of its log. What a moved page was pointed to by directly is programmed, too: the
    /// inode of a page of data, and the directory of an inode, once for all of its files that are behind.
    fn prepare(&mut self) -> Result<(), BenchError> {
        let mut rounds = 0;
        while self.flash.is_short() {
            // What moving takes along can be as much as it gains, for ever.
            rounds += 1;
            if rounds > self.round_max {
                return Err(BenchError::Other(FULL.into()));
            }
            let mut moved = Vec::new();
            if !self.flash.collect_apart(&mut moved)? {
                break;
            }
            let owners: BTreeSet<u64> = moved.into_iter().filter(|&tag| tag > 0).collect();
            for tag in owners {
                self.follow(tag)?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, tag: u64) -> Result<(), BenchError> {
        let (number, is_data) = ((tag >> 1) - 1, tag & 1 == 1);
        let Some(&name) = self.names.get(&number) else { return Ok(()) };
        let before = self.flash.counts.programs;
        if is_data {
            self.write_inode(name)?;
        }
        self.behind.insert(number);
        while self.parent_update == ParentUpdate::Each || self.behind.len() > BEHIND_MAX {
            let Some(number) = self.behind.pop_first() else { break };
            let name = *self.names.get(&number).ok_or_else(missing)?;
            self.write_parent(name)?;
        }
        self.flash.counts.collector_programs += self.flash.counts.programs - before;
        Ok(())
    }

    fn write_inode(&mut self, name: FileName) -> Result<(), BenchError> {
        let mut inode = self.files.get_mut(&name).ok_or_else(missing)?.inode.take();
        self.page(&mut inode, INODE, (name.number + 1) << 1)?;
        self.files.get_mut(&name).ok_or_else(missing)?.inode = inode;
        Ok(())
    }

    /// Programs a page of a chain, and now and then the map.
    fn write_chain(&mut self, directory: Option<u32>, place: usize) -> Result<(), BenchError> {
        let page = self.chains.get_mut(&directory).and_then(|chain| chain.get_mut(place)).ok_or_else(missing)?;
        let mut item = page.item.take();
        self.page(&mut item, if place == 0 { DIRECTORY } else { OVERFLOW }, 0)?;
        if let Some(page) = self.chains.get_mut(&directory).and_then(|chain| chain.get_mut(place)) {
            page.item = item;
        }
        self.catch_up(directory, place);
        self.unmapped += 1;
        if self.unmapped == MAP_EVERY {
            self.unmapped = 0;
            let mut map = self.map.take();
            self.page(&mut map, MAP, 0)?;
            self.map = map;
        }
        Ok(())
    }

    /// A page of a chain that is programmed knows where its inodes are.
    fn catch_up(&mut self, directory: Option<u32>, place: usize) {
        let Some(page) = self.chains.get(&directory).and_then(|chain| chain.get(place)) else { return };
        let is_here = |number: &u64| {
            let is_near = self.names.get(number).is_some_and(|name| name.directory == directory);
            is_near && page.buckets.get(&self.bucket(*number)) == Some(number)
        };
        let told: Vec<u64> = self.behind.iter().copied().filter(is_here).collect();
        self.behind.retain(|number| !told.contains(number));
    }

    fn write_parent(&mut self, name: FileName) -> Result<(), BenchError> {
        let chain = self.chains.get(&name.directory).ok_or_else(missing)?;
        let bucket = self.bucket(name.number);
        let place = chain.iter().position(|page| page.buckets.get(&bucket) == Some(&name.number));
        self.write_chain(name.directory, place.ok_or_else(missing)?)
    }

    /// Puts a name into the first page of the chain whose bucket is free; a new page is linked behind the last.
    fn insert(&mut self, directory: Option<u32>, number: u64) -> Result<(), BenchError> {
        let bucket = self.bucket(number);
        let chain = self.chains.get_mut(&directory).ok_or_else(missing)?;
        let free = chain.iter().position(|page| !page.buckets.contains_key(&bucket));
        let place = free.unwrap_or(chain.len());
        if free.is_none() {
            chain.push(Page::default());
        }
        chain[place].buckets.insert(bucket, number);
        self.write_chain(directory, place)?;
        if free.is_none() && place > 0 { self.write_chain(directory, place - 1) } else { Ok(()) }
    }

    /// Clears a bucket; the last entry of that bucket along the chain takes the place, and a page that is empty is unlinked.
    fn remove(&mut self, directory: Option<u32>, number: u64) -> Result<(), BenchError> {
        let bucket = self.bucket(number);
        let chain = self.chains.get_mut(&directory).ok_or_else(missing)?;
        let holds = |page: &Page| page.buckets.get(&bucket) == Some(&number);
        let place = chain.iter().position(holds).ok_or_else(missing)?;
        let last = chain.iter().rposition(|page| page.buckets.contains_key(&bucket)).unwrap_or(place);
        let moved = chain[last].buckets.remove(&bucket);
        if last > place
            && let Some(moved) = moved
        {
            chain[place].buckets.insert(bucket, moved);
        }
        self.write_chain(directory, place)?;
        if last > place {
            self.drop_or_write(directory, last)?;
        }
        Ok(())
    }

    fn drop_or_write(&mut self, directory: Option<u32>, place: usize) -> Result<(), BenchError> {
        let chain = self.chains.get_mut(&directory).ok_or_else(missing)?;
        if !chain[place].buckets.is_empty() {
            return self.write_chain(directory, place);
        }
        let is_last = place + 1 == chain.len();
        chain.remove(place).item.into_iter().for_each(|item| self.flash.kill(item));
        self.write_chain(directory, place - 1)?;
        if is_last { Ok(()) } else { self.write_chain(directory, place) }
    }
}

fn is_prime(number: u64) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

/// The number that stands for a directory's name among the names of the root.
fn directory_number(directory: u32) -> u64 {
    1 << 40 | u64::from(directory)
}

impl Files for Classic {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        self.prepare()?;
        self.chains.insert(Some(directory), vec![Page::default()]);
        self.write_chain(Some(directory), 0)?;
        self.insert(None, directory_number(directory))
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        self.prepare()?;
        self.remove(None, directory_number(directory))?;
        let chain = self.chains.remove(&Some(directory)).ok_or_else(missing)?;
        chain.into_iter().filter_map(|page| page.item).for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        self.prepare()?;
        self.files.insert(file, File::default());
        self.names.insert(file.number, file);
        self.write_inode(file)?;
        self.open = Some(file);
        self.insert(file.directory, file.number)
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        let page_size = self.flash.page_size();
        for (index, _, _) in parts(offset, bytes.len() as u64, page_size) {
            self.prepare()?;
            let file = self.files.get_mut(&name).ok_or_else(missing)?;
            file.is_written = true;
            let mut page = file.pages.remove(&index).flatten();
            self.page(&mut page, DATA, (name.number + 1) << 1 | 1)?;
            self.files.get_mut(&name).ok_or_else(missing)?.pages.insert(index, page);
        }
        if is_synced { self.fsync() } else { Ok(()) }
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        if !self.files.get(&name).ok_or_else(missing)?.is_written {
            return Ok(());
        }
        self.write_inode(name)?;
        if self.parent_update == ParentUpdate::Each { self.write_parent(name) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), BenchError> {
        let name = self.open.take().ok_or_else(missing)?;
        let file = self.files.get_mut(&name).ok_or_else(missing)?;
        if std::mem::take(&mut file.is_written) {
            self.write_inode(name)?;
            self.write_parent(name)?;
        }
        Ok(())
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        self.prepare()?;
        self.remove(file.directory, file.number)?;
        self.names.remove(&file.number);
        self.behind.remove(&file.number);
        let File { inode, pages, .. } = self.files.remove(&file).ok_or_else(missing)?;
        pages.into_values().chain([inode]).flatten().for_each(|item| self.flash.kill(item));
        Ok(())
    }

    /// The paper has none: the name stands in the inode, and the bucket follows the name.
    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        self.prepare()?;
        let file = self.files.remove(&from).ok_or_else(missing)?;
        self.files.insert(to, file);
        self.names.remove(&from.number);
        self.names.insert(to.number, to);
        self.behind.remove(&from.number);
        self.write_inode(to)?;
        self.insert(to.directory, to.number)?;
        self.remove(from.directory, from.number)
    }

    fn expect(&mut self, file: FileName, _content: &[u8]) -> Result<(), BenchError> {
        self.files.contains_key(&file).then_some(()).ok_or_else(missing)
    }
}

impl Model for Classic {
    fn counts(&self) -> Counts {
        self.flash.counts
    }
}
