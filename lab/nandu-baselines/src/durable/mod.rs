//! Trees that are found again, whenever the power goes.

mod chain;
mod format;
mod mount;
mod room;
mod space;
mod store;

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_nand::{Cause, Nand};

use crate::pages::{Pages, Result};
use crate::tree::Tree;
use crate::word::{bound, word};
use crate::{BaselineError, Stats, TreeKind};
use store::Store;

/// How a durable tree is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableOptions {
    /// Which tree.
    pub kind: TreeKind,
    /// Pages of the read cache, least recently used first out. Changes are programmed when they are made.
    pub read_pages: usize,
    /// Journal tree: so many changed nodes above the leaves stay in memory and are programmed in bulk. A change then programs
    /// its leaf alone, and a mount links the leaves that no index node points to yet. 0 for none; B+-tree only.
    pub journal_nodes: u32,
    /// A superblock is written at the latest when so many pages were programmed since the last one. A mount reads them.
    pub superblock_interval_pages: u32,
    /// Distinguishes this volume from others on the chip before it.
    pub volume: u32,
}

impl DurableOptions {
    /// Without caches and journal.
    pub const fn new(kind: TreeKind) -> DurableOptions {
        DurableOptions { kind, read_pages: 0, journal_nodes: 0, superblock_interval_pages: 64, volume: 1 }
    }
}

/// Array reads of a mount, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReads {
    /// From the anchors along the chain to the newest superblock.
    pub chain: u64,
    /// Pages programmed after it.
    pub tail: u64,
    /// Nodes above the leaves, to find out which pages live.
    pub index: u64,
    /// Writing the newest page again.
    pub repair: u64,
}

/// The wandering B+-tree, with or without a journal tree, or the mu-Tree with the paper's layout. Each change is durable
/// when its call returns.
///
/// ```
/// use nandu_baselines::{DurableOptions, DurableTree, TreeKind};
/// use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = DurableOptions::new(TreeKind::BPlus);
/// let mut tree = DurableTree::format(Sim::new(Chip::W25N01GV), options)?;
/// tree.insert(7, 700)?;
/// // As if the power went: nothing is told to the tree.
/// let mut tree = DurableTree::mount(tree.into_nand(), options)?;
/// assert_eq!(tree.get(7)?, Some(700));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DurableTree<N: Nand> {
    tree: Tree<Store<N>>,
    key: [u8; 4],
    value: [u8; 4],
}

impl<N: Nand> DurableTree<N> {
    /// Makes an empty tree on a chip, whose content is given up.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Unsuitable`], and what the chip answers.
    pub fn format(nand: N, options: DurableOptions) -> Result<DurableTree<N>, N::Error> {
        let store = Store::format(nand, options)?;
        let root = store.committed;
        Ok(DurableTree { tree: Tree::new(store, root), key: [0; 4], value: [0; 4] })
    }

    /// Opens the tree on a chip, in the state that the last change left. Erases a block or two and programs two pages or more,
    /// so that nothing depends on pages that a cut may have torn.
    ///
    /// # Errors
    ///
    /// [`BaselineError::NotFormatted`], [`BaselineError::WrongFormat`], [`BaselineError::Corrupt`], and what the chip answers.
    pub fn mount(mut nand: N, options: DurableOptions) -> Result<DurableTree<N>, N::Error> {
        let _ = nand.attribute(Cause::Mount);
        Ok(DurableTree { tree: Store::mount(nand, options)?, key: [0; 4], value: [0; 4] })
    }

    /// The value of a key. Reads a page for each level, less what is in memory.
    ///
    /// # Errors
    ///
    /// What the chip answers, and [`BaselineError::Corrupt`].
    pub fn get(&mut self, key: u32) -> Result<Option<u32>, N::Error> {
        self.attribute(Cause::Lookup);
        self.tree.get(key)
    }

    /// Puts a value at a key. Says whether the key was there.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Full`], after which nothing has changed, [`BaselineError::Poisoned`], and what the chip answers.
    pub fn insert(&mut self, key: u32, value: u32) -> Result<bool, N::Error> {
        self.change(|tree| tree.insert(key, value))
    }

    /// Deletes a key. Says whether it was there.
    ///
    /// # Errors
    ///
    /// As [`insert`](DurableTree::insert).
    pub fn delete(&mut self, key: u32) -> Result<bool, N::Error> {
        self.change(|tree| tree.delete(key))
    }

    /// What was done since the tree was opened.
    pub fn stats(&self) -> &Stats {
        &self.tree.pages().stats
    }

    /// What the mount read; nothing after a format.
    pub fn mount_reads(&self) -> &MountReads {
        &self.tree.pages().mount_reads
    }

    /// Levels in all.
    pub fn height(&self) -> u32 {
        u32::from(self.tree.root().height)
    }

    /// Records in all.
    pub fn record_count(&self) -> u64 {
        self.tree.root().records
    }

    /// Pages that hold something of the tree.
    pub fn live_pages(&self) -> u64 {
        self.tree.pages().live_pages()
    }

    /// Bytes that it has to keep in memory, allocated or not: a bit for each page of the chip and four bytes for each block, the
    /// pages of the read cache, or one, those of the journal, and those that one change may take.
    pub fn memory_size(&self) -> usize {
        let store = self.tree.pages();
        let geometry = store.space.geometry;
        let options = &store.options;
        let pages = options.read_pages.max(1) + (options.journal_nodes + self.tree.pages_per_change()) as usize;
        let tables = geometry.page_count() as usize / 8 + 4 * geometry.block_count as usize;
        tables + pages * geometry.page_size as usize
    }

    /// Changed nodes above the leaves that are in memory alone.
    pub fn journal_nodes(&self) -> u32 {
        self.tree.pages().overlay.len()
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.tree.pages().nand
    }

    /// The chip, to set faults and cuts.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.tree.pages_mut().nand
    }

    /// Gives the chip back. Everything that was acknowledged is on it.
    pub fn into_nand(self) -> N {
        self.tree.into_pages().nand
    }

    fn attribute(&mut self, cause: Cause) {
        let _ = self.tree.pages_mut().nand.attribute(cause);
    }

    /// One change with what has to be done before it. An error leaves the tree as it was.
    fn change(&mut self, work: impl FnOnce(&mut Tree<Store<N>>) -> Result<bool, N::Error>) -> Result<bool, N::Error> {
        let pages = self.tree.pages_per_change();
        self.make_room(pages)?;
        self.attribute(Cause::Host);
        self.attempt(work)
    }

    /// Does something that changes the tree, or leaves it as it was.
    fn attempt<T>(&mut self, work: impl FnOnce(&mut Tree<Store<N>>) -> Result<T, N::Error>) -> Result<T, N::Error> {
        let before = (*self.tree.root(), self.tree.pages().overlay.clone());
        let outcome = work(&mut self.tree);
        if outcome.is_err() {
            self.tree.restore(before.0);
            self.tree.pages_mut().restore(before.1);
        }
        outcome
    }
}

impl<N: Nand> OrderedIndex for DurableTree<N> {
    type Error = BaselineError<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, N::Error> {
        let found = DurableTree::get(self, word(key)?)?;
        Ok(found.map(|value| {
            self.value = value.to_be_bytes();
            &self.value[..]
        }))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N::Error> {
        self.insert(word(key)?, word(value)?)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, N::Error> {
        DurableTree::delete(self, word(key)?)
    }

    /// All changes are made in memory and programmed as one group.
    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), N::Error> {
        if edits.windows(2).any(|pair| pair[0].key >= pair[1].key) {
            return Err(BaselineError::Order);
        }
        let mut changes = Vec::with_capacity(edits.len());
        for edit in edits {
            changes.push((word(edit.key)?, edit.value.map(word::<N::Error>).transpose()?));
        }
        if changes.is_empty() {
            return Ok(());
        }
        // How many pages it takes shows when it is done in memory, which is undone if there is no room for them.
        let mut pages = self.tree.pages_per_change();
        loop {
            self.make_room(pages)?;
            self.attribute(Cause::Host);
            let outcome = self.attempt(|tree| {
                tree.pages_mut().is_held = true;
                let done = changes.iter().try_for_each(|&(key, value)| match value {
                    Some(value) => tree.insert(key, value).map(drop),
                    None => tree.delete(key).map(drop),
                });
                tree.pages_mut().is_held = false;
                done?;
                let needed = tree.pages().overlay.len();
                if needed == 0 {
                    return Ok(None);
                }
                if needed > pages {
                    return Ok(Some(needed));
                }
                tree.pages_mut().is_forced = true;
                let done = tree.settle();
                tree.pages_mut().is_forced = false;
                done.map(|()| None)
            })?;
            match outcome {
                None => return Ok(()),
                Some(needed) => pages = needed,
            }
        }
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), N::Error> {
        self.attribute(Cause::Lookup);
        self.tree.range(bound(from)?, bound(to)?, direction, &mut |key, value| {
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
        Ok(self.record_count())
    }

    /// Every change is durable when its call returns.
    fn sync(&mut self) -> Result<(), N::Error> {
        Ok(())
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N::Error> {
        self.attribute(Cause::Verify);
        self.tree.verify(report)
    }
}

impl<N: Nand> DurableTree<N> {
    fn end(&mut self, direction: Direction) -> Result<Option<Entry<'_>>, N::Error> {
        self.attribute(Cause::Lookup);
        let found = self.tree.end(direction)?;
        Ok(found.map(|(key, value)| {
            (self.key, self.value) = (key.to_be_bytes(), value.to_be_bytes());
            Entry { key: &self.key, value: &self.value, large: None }
        }))
    }
}
