//! Insertions, deletions, and moves of pages.

use nandu_nand::PageAddr;

use crate::entry::Entry;
use crate::layout::decode_into;
use crate::pages::{Pages, Result};
use crate::tree::Tree;
use crate::{BaselineError, TreeKind};

impl<P: Pages> Tree<P> {
    /// Pages that one change may need: each level may split, and the root on top.
    pub(crate) fn pages_per_change(&self) -> u32 {
        2 * u32::from(self.root.height) + 2
    }

    fn is_at_height_max(&self) -> bool {
        self.root.height >= self.pages.layout().height_max()
    }

    /// Puts a value at a key; says whether the key was there. Costs as many reads as there are levels, and one program in a
    /// mu-Tree, one for each level in a B+-tree.
    pub(crate) fn insert(&mut self, key: u32, value: u32) -> Result<bool, P::Chip> {
        self.pages.begin();
        let early = self.allocate_early()?;
        if let Err(error) = self.descend(key, 1) {
            self.release(early);
            return Err(error);
        }
        if self.is_at_height_max() && self.root_is_nearly_full() {
            self.release(early);
            return Err(BaselineError::Full);
        }
        // A key below all others lowers the separators on its way, or what a split of the first child adds would be below
        // the entry before it.
        for node in &mut self.path[1..] {
            let separator = &mut node.entries[node.index].key;
            *separator = key.min(*separator);
        }
        let entries = &mut self.path[0].entries;
        let mut root = self.root;
        let was_there = match entries.binary_search_by_key(&key, |entry| entry.key) {
            Ok(at) => {
                entries[at].value = value;
                true
            }
            Err(at) => {
                entries.insert(at, Entry { key, value });
                root.records = root.records.saturating_add(1);
                false
            }
        };
        self.replace(1, 1, early, root)?;
        Ok(was_there)
    }

    /// Deletes a key; says whether it was there. Nodes that become empty vanish, and nothing is merged.
    pub(crate) fn delete(&mut self, key: u32) -> Result<bool, P::Chip> {
        self.pages.begin();
        let early = self.allocate_early()?;
        if let Err(error) = self.descend(key, 1) {
            self.release(early);
            return Err(error);
        }
        let Ok(at) = self.path[0].entries.binary_search_by_key(&key, |entry| entry.key) else {
            self.release(early);
            return Ok(false);
        };
        self.path[0].entries.remove(at);
        let mut root = self.root;
        root.records = root.records.saturating_sub(1);
        // The lowest level that still has a node on the path.
        let mut from = 1;
        while from < root.height && self.path[usize::from(from) - 1].entries.is_empty() {
            let parent = &mut self.path[usize::from(from)];
            parent.entries.remove(parent.index);
            self.pages.stats_mut().nodes_removed += 1;
            from += 1;
        }
        let promoted = match self.promote(&mut from, &mut root.height) {
            Ok(promoted) => promoted,
            Err(error) => {
                self.release(early);
                return Err(error);
            }
        };
        for (page, level, lowest) in promoted {
            self.pages.supersede(page, level, lowest);
        }
        self.replace(1, from, early, root)?;
        Ok(true)
    }

    /// Moves a page by writing the path to its lowest node again, which is read once to learn a key of it.
    pub(crate) fn relocate(&mut self, page: PageAddr) -> Result<(), P::Chip> {
        self.pages.begin();
        let height = self.root.height;
        let (lowest, key) = self.pages.lowest(page, height)?;
        if lowest == 0 || lowest > height {
            return Err(BaselineError::Corrupt { page, why: "it holds no node of the tree" });
        }
        let early = self.allocate_early()?;
        // Only the leaf that is the whole tree may be without a key.
        let descent = self.descend(key.unwrap_or(0), lowest);
        if let Err(error) = descent {
            self.release(early);
            return Err(error);
        }
        if self.path[0].page != Some(page) {
            self.release(early);
            return Err(BaselineError::Corrupt { page, why: "it counts as live and is not reached" });
        }
        let root = self.root;
        self.replace(lowest, lowest, early, root)
    }

    fn root_is_nearly_full(&self) -> bool {
        let height = self.root.height;
        let count = self.path.last().map_or(0, |node| node.entries.len());
        count + 1 >= self.pages.layout().capacity(height, height)
    }

    fn allocate_early(&mut self) -> Result<Option<PageAddr>, P::Chip> {
        let is_early = self.pages.kind() == TreeKind::Mu && self.pages.allocates_early();
        if is_early { self.pages.allocate().map(Some) } else { Ok(None) }
    }

    fn release(&mut self, early: Option<PageAddr>) {
        if let Some(page) = early {
            self.pages.release(page);
        }
    }

    /// While the root has one child, the child becomes the root. `from` is the lowest level with a node on the path, which
    /// may be the child that was promoted. Returns the nodes off the path that were taken for it.
    fn promote(&mut self, from: &mut u8, height: &mut u8) -> Result<Vec<(PageAddr, u8, u8)>, P::Chip> {
        let mut taken = Vec::new();
        loop {
            let top = usize::from(*height) - 1;
            match self.path[top].entries.len() {
                // Everything vanished: what is left is an empty leaf.
                0 if *height > 1 => {
                    (*height, *from) = (1, 1);
                    self.path[0].entries.clear();
                    return Ok(taken);
                }
                1 if *height > 1 && *from < *height => {
                    *height -= 1;
                }
                1 if *height > 1 => {
                    // The child on the path vanished, and the other one is in another page.
                    let page = PageAddr(self.path[top].entries[0].value);
                    let level = *height - 1;
                    let node = self.pages.node(page, level, self.root.height)?;
                    taken.push((page, level, node.lowest));
                    let mut entries = Vec::new();
                    decode_into(node.bytes, &mut entries);
                    // The path keeps the pages that are dead now; only what the node holds is another's.
                    self.path[top - 1].entries = entries;
                    (*height, *from) = (level, level);
                }
                _ => return Ok(taken),
            }
        }
    }
}
