//! The trees themselves: what is common to the paper's mu-Tree and the wandering B+-tree, however pages are kept.
//!
//! Levels count from 1, as the paper's do: leaves are at level 1, the root at the level that is the height.

mod change;
mod recover;
mod scan;
mod verify;
mod write_path;

use nandu_nand::PageAddr;

pub(crate) use recover::Leaf;

use crate::entry::{Entry, child_index, find};
use crate::layout::decode_into;
use crate::pages::{Pages, Result, Root};
use crate::{BaselineError, TreeKind};

/// A node on the way from the root to a leaf.
#[derive(Debug, Default)]
pub(crate) struct PathNode {
    /// Where it is; none for the empty leaf of a tree without pages.
    page: Option<PageAddr>,
    /// The lowest level in its page.
    lowest: u8,
    entries: Vec<Entry>,
    /// The place of the child on the way.
    index: usize,
}

/// A tree over pages.
#[derive(Debug)]
pub(crate) struct Tree<P: Pages> {
    pages: P,
    root: Root,
    /// The last path, the leaf first. Its vectors are used again.
    path: Vec<PathNode>,
}

impl<P: Pages> Tree<P> {
    /// A tree that begins there.
    pub(crate) fn new(pages: P, root: Root) -> Tree<P> {
        Tree { pages, root, path: Vec::new() }
    }

    pub(crate) fn pages(&self) -> &P {
        &self.pages
    }

    pub(crate) fn pages_mut(&mut self) -> &mut P {
        &mut self.pages
    }

    pub(crate) fn into_pages(self) -> P {
        self.pages
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The value of a key. Reads one page for each level, less what is in memory.
    pub(crate) fn get(&mut self, key: u32) -> Result<Option<u32>, P::Chip> {
        self.pages.begin();
        let Some(mut page) = self.root.page else { return Ok(None) };
        let height = self.root.height;
        for level in (2..=height).rev() {
            let node = self.pages.node(page, level, height)?;
            if node.bytes.is_empty() {
                return Err(BaselineError::Corrupt { page, why: "an index node is empty" });
            }
            page = PageAddr(crate::entry::entry_at(node.bytes, child_index(node.bytes, key)).value);
        }
        let leaf = self.pages.node(page, 1, height)?;
        Ok(find(leaf.bytes, key))
    }

    /// Reads the path to a key down to a level into `self.path`, which then has the node of that level first.
    fn descend(&mut self, key: u32, lowest: u8) -> Result<(), P::Chip> {
        let height = self.root.height;
        let length = usize::from(height - lowest) + 1;
        self.path.resize_with(length, PathNode::default);
        self.path.iter_mut().for_each(|node| node.entries.clear());
        let (kind, root_capacity) = (self.pages.kind(), self.pages.layout().capacity(height, height));
        let Some(mut page) = self.root.page else {
            // A tree without pages is an empty leaf.
            self.path[0].page = None;
            return Ok(());
        };
        for level in (lowest..=height).rev() {
            let node = self.pages.node(page, level, height)?;
            let step = &mut self.path[usize::from(level - lowest)];
            step.page = Some(page);
            step.lowest = node.lowest;
            decode_into(node.bytes, &mut step.entries);
            if level == height && kind == TreeKind::Mu && step.entries.len() >= root_capacity {
                return Err(BaselineError::Corrupt { page, why: "a full root was not split" });
            }
            if level > 1 {
                step.index = child_index(node.bytes, key);
                let child = step.entries.get(step.index);
                page = PageAddr(child.ok_or(BaselineError::Corrupt { page, why: "an index node is empty" })?.value);
            }
        }
        Ok(())
    }
}
