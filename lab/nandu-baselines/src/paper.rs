//! The trees of the paper, as the paper measured them.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_nand::{Cause, Nand};

use crate::pager::Pager;
use crate::pages::{Pages, Result, Root};
use crate::tree::Tree;
use crate::word::{bound, word};
use crate::{BaselineError, PaperOptions, Stats};

/// The paper's mu-Tree or the wandering B+-tree, with the paper's cache, pages without headers, and everything about pages
/// but their content in memory. It cannot be opened again after the power went: see [`PaperTree::new`].
///
/// ```
/// use nandu_baselines::{Cache, PaperOptions, PaperTree, TreeKind};
/// use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = PaperOptions::paper(TreeKind::Mu, Cache::paper(16, 16, 4096));
/// let mut tree = PaperTree::new(Sim::new(Chip::PAPER_MLC), options)?;
/// for key in 0..1000 {
///     tree.insert(key, key * key)?;
/// }
/// let before = *tree.stats();
/// assert_eq!(tree.get(7)?, Some(49));
/// assert!(tree.delete(7)?);
/// assert_eq!(tree.stats().since(&before).programs, 0, "the page waits in the write cache");
/// assert_eq!((tree.height(), tree.record_count()), (2, 999));
/// println!("{} ns", tree.nand().clock_ns());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PaperTree<N: Nand> {
    tree: Tree<Pager<N>>,
    key: [u8; 4],
    value: [u8; 4],
}

impl<N: Nand> PaperTree<N> {
    /// An empty tree on a chip, whose content is given up. Costs a check of each block's mark; blocks are erased when they
    /// are first used.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Unsuitable`] for a chip with less than 28 bytes of spare area or too few good blocks, and what the
    /// chip answers.
    pub fn new(nand: N, options: PaperOptions) -> Result<PaperTree<N>, N::Error> {
        Ok(PaperTree { tree: Tree::new(Pager::new(nand, options)?, Root::EMPTY), key: [0; 4], value: [0; 4] })
    }

    /// The value of a key. Reads a page for each level, less what is in memory.
    ///
    /// # Errors
    ///
    /// What the chip answers.
    pub fn get(&mut self, key: u32) -> Result<Option<u32>, N::Error> {
        self.attribute(Cause::Lookup);
        self.tree.get(key)
    }

    /// Puts a value at a key. Says whether the key was there.
    ///
    /// # Errors
    ///
    /// [`BaselineError::Full`], after which nothing has changed; what the chip answers, after which the tree is poisoned if
    /// it was a program.
    pub fn insert(&mut self, key: u32, value: u32) -> Result<bool, N::Error> {
        self.make_room()?;
        self.attribute(Cause::Host);
        self.tree.insert(key, value)
    }

    /// Deletes a key. Says whether it was there.
    ///
    /// # Errors
    ///
    /// As [`insert`](PaperTree::insert).
    pub fn delete(&mut self, key: u32) -> Result<bool, N::Error> {
        self.make_room()?;
        self.attribute(Cause::Host);
        self.tree.delete(key)
    }

    /// Programs what waits in the write cache.
    ///
    /// # Errors
    ///
    /// What the chip answers, after which the tree is poisoned.
    pub fn sync(&mut self) -> Result<(), N::Error> {
        self.attribute(Cause::Host);
        self.tree.pages_mut().flush()
    }

    /// What was done so far.
    pub fn stats(&self) -> &Stats {
        self.tree.pages().stats()
    }

    /// Levels in all.
    pub fn height(&self) -> u32 {
        u32::from(self.tree.root().height)
    }

    /// Records in all.
    pub fn record_count(&self) -> u64 {
        self.tree.root().records
    }

    /// Pages that hold something of the tree, those in the write cache included.
    pub fn live_pages(&self) -> u64 {
        self.tree.pages().live_pages()
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        self.tree.pages().nand()
    }

    /// Gives the chip back. What waits in the write cache is lost.
    pub fn into_nand(self) -> N {
        self.tree.into_pages().into_nand()
    }

    fn attribute(&mut self, cause: Cause) {
        let _ = self.tree.pages_mut().nand_mut().attribute(cause);
    }

    /// Frees blocks until there are as many as there have to be, each by moving what lives in the block with the fewest
    /// live pages.
    fn make_room(&mut self) -> Result<(), N::Error> {
        self.tree.pages().check()?;
        if !self.tree.pages().is_short() {
            return Ok(());
        }
        self.attribute(Cause::Gc);
        // Each run frees a block, so that a chip with any dead pages to speak of has room long before this.
        let runs_max = 4 * self.tree.pages().geometry().block_count;
        for _ in 0..runs_max {
            if !self.tree.pages().is_short() {
                return Ok(());
            }
            let victim = self.tree.pages().victim().ok_or(BaselineError::Full)?;
            let pages = self.tree.pages().live_in(victim);
            let needed = pages.len() as u32 * self.tree.root().height as u32 + self.tree.pages_per_change();
            if pages.len() as u32 == self.tree.pages().geometry().pages_per_block || !self.tree.pages().has_room(needed)
            {
                return Err(BaselineError::Full);
            }
            for page in pages {
                // Moving a page moves the ancestors of its lowest node too, which may be in this block.
                if self.tree.pages().is_live(page) {
                    self.tree.relocate(page)?;
                    self.tree.pages_mut().stats_mut().gc_moves += 1;
                }
            }
            self.tree.pages_mut().reclaim(victim);
        }
        Err(BaselineError::Full)
    }
}

impl<N: Nand> OrderedIndex for PaperTree<N> {
    type Error = BaselineError<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, N::Error> {
        let found = PaperTree::get(self, word(key)?)?;
        Ok(found.map(|value| {
            self.value = value.to_be_bytes();
            &self.value[..]
        }))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, N::Error> {
        self.insert(word(key)?, word(value)?)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, N::Error> {
        PaperTree::delete(self, word(key)?)
    }

    /// One change after the other: the paper has no batches. What a failure interrupts is half done.
    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), N::Error> {
        if edits.windows(2).any(|pair| pair[0].key >= pair[1].key) {
            return Err(BaselineError::Order);
        }
        for edit in edits {
            word(edit.key)?;
            edit.value.map(word::<N::Error>).transpose()?;
        }
        for edit in edits {
            match edit.value {
                Some(value) => self.put(edit.key, value)?,
                None => OrderedIndex::delete(self, edit.key)?,
            };
        }
        Ok(())
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

    fn sync(&mut self) -> Result<(), N::Error> {
        PaperTree::sync(self)
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N::Error> {
        self.attribute(Cause::Verify);
        self.tree.verify(report)
    }
}

impl<N: Nand> PaperTree<N> {
    fn end(&mut self, direction: Direction) -> Result<Option<Entry<'_>>, N::Error> {
        self.attribute(Cause::Lookup);
        let found = self.tree.end(direction)?;
        Ok(found.map(|(key, value)| {
            (self.key, self.value) = (key.to_be_bytes(), value.to_be_bytes());
            Entry { key: &self.key, value: &self.value, large: None }
        }))
    }
}
