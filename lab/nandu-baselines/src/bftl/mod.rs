//! BFTL: a B-tree whose nodes are scattered over a log as index units (C.-H. Wu, T.-W. Kuo, L.-P. Chang, "An Efficient B-Tree Layer
//! Implementation for Flash-Memory Storage Systems", RTCSA 2003 and ACM TECS 6(3), 2007).
//!
//! A change becomes small units in a reservation buffer in memory. When it is full, its units are packed into as few pages as first fit
//! finds, those of a node together, so that a page mixes nodes; a node translation table in memory lists for each node the pages
//! that hold units of it. Reading a node reads all of them. A list that would grow beyond its bound is made short by writing
//! the node whole.
//!
//! **The key decision** is that the pages are raw ones and the translation table is their only map. Over a page-mapped FTL every read
//! would go through two tables that say the same thing, and a page of which one unit lives would be moved whole. Here the
//! collector sees which units live, packs them anew, and all it reads, programs and erases is counted as in the other baselines;
//! it is greedy and keeps 7 % spare, as that FTL would.
//!
//! The original has no answer to a power cut. Here each page says which commit it belongs to, and `page.rs`, `store.rs` and
//! `mount.rs` say why that is enough.

mod buffer;
mod change;
mod clean;
mod commit;
mod mount;
mod node;
mod pack;
mod page;
mod scan;
mod store;
mod table;
mod unit;
mod verify;

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_nand::{BlockAddr, Cause, Nand};

use crate::pages::Result;
use crate::word::{bound, word};
use crate::{BaselineError, Stats};
use buffer::Buffer;
use store::Store;
use unit::{Change, Group};

/// How BFTL is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BftlOptions {
    /// Units in the reservation buffer; when an operation fills it, it is committed. 60 in the original.
    pub buffer_units: usize,
    /// Groups in the list of a node, each in a page of its own until the collector packs them; 4 in the original, 255 at most.
    pub list_bound: usize,
    /// Pages of the read cache, least recently used first out.
    pub read_pages: usize,
    /// Distinguishes this volume from others on the chip before it.
    pub volume: u32,
}

impl BftlOptions {
    /// The parameters of the original's evaluation, without a read cache.
    pub const ORIGINAL: BftlOptions = BftlOptions { buffer_units: 60, list_bound: 4, read_pages: 0, volume: 1 };
}

/// What only BFTL does, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BftlStats {
    /// Commits of the reservation buffer.
    pub commits: u64,
    /// Pages they programmed.
    pub commit_pages: u64,
    /// Units in them.
    pub commit_units: u64,
    /// Nodes written whole because their list was at its bound, or more waited than a page holds.
    pub compactions: u64,
    /// Array reads of the mount's search through all pages.
    pub mount_scan_reads: u64,
    /// Array reads of the mount's walk over the nodes above the leaves, and to copy the newest page.
    pub mount_walk_reads: u64,
}

/// BFTL with keys and values of four bytes. A change is durable when it was committed: after [`sync`](OrderedIndex::sync), or when
/// the buffer was full. Until then it is in memory alone.
///
/// ```
/// use nandu_baselines::{Bftl, BftlOptions};
/// use nandu_index::OrderedIndex;
/// use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut tree = Bftl::format(Sim::new(Chip::TINY), BftlOptions::ORIGINAL)?;
/// tree.insert(7, 700)?;
/// tree.sync()?;
/// let mut tree = Bftl::mount(tree.into_nand(), BftlOptions::ORIGINAL)?;
/// assert_eq!(tree.get(7)?, Some(700));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Bftl<N: Nand> {
    store: Store<N>,
    buffer: Buffer,
    next_node: u32,
    /// Changes that wait included.
    records: u64,
    extra: BftlStats,
    is_poisoned: bool,
    key: [u8; 4],
    value: [u8; 4],
}

/// Number of the root, which never changes.
const ROOT: u32 = 0;

impl<N: Nand> Bftl<N> {
    fn with(store: Store<N>, next_node: u32) -> Bftl<N> {
        Bftl {
            records: store.records,
            store,
            buffer: Buffer::default(),
            next_node,
            extra: BftlStats::default(),
            is_poisoned: false,
            key: [0; 4],
            value: [0; 4],
        }
    }

    /// Makes an empty tree on a chip, all of which is erased.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Unsuitable`], [`BaselineError::Worn`], and what the chip answers.
    pub fn format(nand: N, options: BftlOptions) -> Result<Bftl<N>, N::Error> {
        let mut store = Store::new(nand, options)?;
        let _ = store.nand.attribute(Cause::Format);
        // Without a settle page nothing is found, so a cut leaves no tree.
        for block in (0..store.geometry.block_count).map(BlockAddr) {
            if store.state(block) != store::State::Bad {
                let _ = store.erase(block)?;
            }
        }
        let root = Group { node: ROOT, level: 0, ordinal: 0, sequence: 0, changes: vec![Change::Nothing] };
        store.commit(&[vec![root]], 0)?;
        store.settle()?;
        Ok(Bftl::with(store, ROOT + 1))
    }

    /// Opens the tree on a chip, in the state that the last commit left. Reads every programmed page, erases a block and programs three
    /// pages, so that nothing depends on pages that a cut may have torn.
    ///
    /// # Errors
    ///
    /// [`BaselineError::NotFormatted`], [`BaselineError::Corrupt`], and what the chip answers.
    pub fn mount(nand: N, options: BftlOptions) -> Result<Bftl<N>, N::Error> {
        let mut store = Store::new(nand, options)?;
        let _ = store.nand.attribute(Cause::Mount);
        let (next_node, scan_reads) = store.mount()?;
        let mut tree = Bftl::with(store, next_node);
        tree.extra.mount_scan_reads = scan_reads;
        tree.extra.mount_walk_reads = tree.store.stats.reads - scan_reads;
        Ok(tree)
    }

    /// The value of a key. Reads every page in the list of each node from the root to the leaf.
    ///
    /// # Errors
    ///
    /// What the chip answers, and [`BaselineError::Corrupt`].
    pub fn get(&mut self, key: u32) -> Result<Option<u32>, N::Error> {
        self.begin(Cause::Lookup)?;
        let (_, leaf) = self.descend(key)?;
        Ok(leaf.find(key).ok().map(|at| leaf.entries[at].value))
    }

    /// Puts a value at a key. Says whether the key was there. Reads as [`get`](Bftl::get) does; programs when the buffer is full.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Full`], after which nothing has changed, [`BaselineError::Poisoned`], and what the chip answers.
    pub fn insert(&mut self, key: u32, value: u32) -> Result<bool, N::Error> {
        self.change(&[(key, Some(value))])
    }

    /// Deletes a key. Says whether it was there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Bftl::insert).
    pub fn delete(&mut self, key: u32) -> Result<bool, N::Error> {
        self.change(&[(key, None)])
    }

    /// What was done since the tree was opened.
    pub fn stats(&self) -> &Stats {
        &self.store.stats
    }

    /// What of it only BFTL does.
    pub fn bftl_stats(&self) -> &BftlStats {
        &self.extra
    }

    /// Records in all, those that wait included.
    pub fn record_count(&self) -> u64 {
        self.records
    }

    /// Nodes in the translation table, and groups in all their lists: what the table's memory grows with.
    pub fn table_size(&self) -> (usize, usize) {
        (self.store.table.node_count(), self.store.table.place_count())
    }

    /// Bytes that it has to keep in memory, allocated or not: in the translation table 8 for each node and 14 for each group, a byte for
    /// each page of the chip and four for each block, the reservation buffer, the pages of the read cache, or one, and two nodes
    /// to work on.
    pub fn memory_size(&self) -> usize {
        let (nodes, groups) = self.table_size();
        let geometry = &self.store.geometry;
        let options = &self.store.options;
        let tables = 8 * nodes + 14 * groups + geometry.page_count() as usize + 4 * geometry.block_count as usize;
        let pages = options.read_pages.max(1) + 2;
        tables + options.buffer_units * unit::UNIT_SIZE + pages * geometry.page_size as usize
    }

    /// Pages of which a unit is in the translation table.
    pub fn live_pages(&self) -> u64 {
        self.store.table.live_page_count()
    }

    /// Units that wait in memory.
    pub fn waiting_units(&self) -> usize {
        self.buffer.unit_count()
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.store.nand
    }

    /// The chip, to set faults and cuts.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.store.nand
    }

    /// Gives the chip back. What was committed is on it.
    pub fn into_nand(self) -> N {
        self.store.nand
    }

    fn begin(&mut self, cause: Cause) -> Result<(), N::Error> {
        if self.is_poisoned {
            return Err(BaselineError::Poisoned);
        }
        let _ = self.store.nand.attribute(cause);
        self.store.recent.begin();
        Ok(())
    }

    /// Commits what waits.
    fn commit(&mut self) -> Result<(), N::Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // Until it is done: after a failure, pages of it may be on flash under a number that must not be used again.
        self.is_poisoned = true;
        let done = self.store.commit_buffer(&self.buffer, self.records)?;
        self.is_poisoned = false;
        self.buffer = Buffer::default();
        self.extra.commits += 1;
        self.extra.commit_pages += done.pages;
        self.extra.commit_units += done.units;
        self.extra.compactions += done.compactions;
        Ok(())
    }
}

impl<N: Nand> OrderedIndex for Bftl<N> {
    type Error = BaselineError<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, N::Error> {
        let found = Bftl::get(self, word(key)?)?;
        Ok(found.map(|value| {
            self.value = value.to_be_bytes();
            &self.value[..]
        }))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N::Error> {
        self.insert(word(key)?, word(value)?)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, N::Error> {
        Bftl::delete(self, word(key)?)
    }

    /// All changes wait together and are committed together.
    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), N::Error> {
        if edits.windows(2).any(|pair| pair[0].key >= pair[1].key) {
            return Err(BaselineError::Order);
        }
        let mut changes = Vec::with_capacity(edits.len());
        for edit in edits {
            changes.push((word(edit.key)?, edit.value.map(word::<N::Error>).transpose()?));
        }
        self.change(&changes).map(drop)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), N::Error> {
        self.begin(Cause::Lookup)?;
        self.scan(bound(from)?, bound(to)?, direction, &mut |key, value| {
            visit(Entry { key: &key.to_be_bytes(), value: &value.to_be_bytes(), large: None })
        })
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, N::Error> {
        self.end(Direction::Forward)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, N::Error> {
        self.end(Direction::Backward)
    }

    fn count(&mut self) -> Result<u64, N::Error> {
        Ok(self.records)
    }

    /// Commits the reservation buffer.
    fn sync(&mut self) -> Result<(), N::Error> {
        self.begin(Cause::Host)?;
        self.commit()
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N::Error> {
        self.begin(Cause::Verify)?;
        self.check_all(report)
    }
}

impl<N: Nand> Bftl<N> {
    fn end(&mut self, direction: Direction) -> Result<Option<Entry<'_>>, N::Error> {
        self.begin(Cause::Lookup)?;
        let mut found = None;
        self.scan(Bound::Unbounded, Bound::Unbounded, direction, &mut |key, value| {
            found = Some((key, value));
            ControlFlow::Break(())
        })?;
        Ok(found.map(|(key, value)| {
            (self.key, self.value) = (key.to_be_bytes(), value.to_be_bytes());
            Entry { key: &self.key, value: &self.value, large: None }
        }))
    }
}
