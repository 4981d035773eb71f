//! A leaf lost its last entry: it disappears, and with it what has no child left.

use nandu_media::features::FILES;

use crate::TreeError;
use crate::descent::Slot;
use crate::merge::Span;
use crate::pages::Pages;
use crate::tree::Tree;
use nandu_cells::{Cells, InnerRun};

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Takes the empty leaf out of the path. The lowest node of the page is then the lowest that still has a child;
    /// `key`, which is in its range, will locate it.
    #[inline(never)]
    pub(crate) fn vanish(&mut self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        // Only leaves that were parted show what left them.
        if FILES && !self.broken.wakes_spent() {
            let fences = self.leaf_fences();
            if let Some(span) = self.pending.vanished.insert(Span::ALL) {
                span.put(self.cells, self.assembly, fences);
            }
        }
        self.pending.may_part = false;
        self.retire_page(self.path[0].page);
        self.cache.drop_node(self.path[0].page, 0);
        self.path[0] = Slot::ABSENT;
        self.pending.staged = None;
        self.keys[0].set(key);
        self.reading.forget();
        let mut level = 1_u8;
        loop {
            let slot = self.path[level as usize];
            let node = &self.assembly[slot.range()];
            let count = self.cells.inner_count(node);
            if count > 1 {
                let run = InnerRun {
                    node,
                    page: slot.page,
                    at: slot.index,
                    removed: 1,
                    pages: &[],
                    separators: &[],
                    page_bits: u32::from(self.format.page_bits),
                };
                let size = self.cells.inner_encode(&run, 0..count - 1, self.reading.buf).ok_or(TreeError::TooHigh)?;
                self.replace_inner(level, size, 0)?;
                break;
            }
            self.retire_inner(level);
            self.path[level as usize] = Slot::ABSENT;
            if level == self.top() {
                self.empty();
                return Ok(());
            }
            level += 1;
        }
        self.pending.lowest = level;
        self.collapse()
    }

    /// The leaf that gets the range of one that vanished may have had a part of it once, and still show entries that left it then,
    /// which must not count again: if so, it is programmed without them. Reads that leaf.
    pub(crate) fn clear_heir(&mut self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        if self.pending.lowest == 1 {
            let slot = self.path[1];
            self.path[1].index = self.cells.inner_find(&self.assembly[slot.range()], key, false);
            let place = self.leaf_place(false)?;
            let leaf = self.bytes(&place);
            if FILES && self.shows_spent(leaf) {
                self.take_heir(key)?;
            }
        } else if self.pending.lowest > 1 {
            self.take_heir(key)?;
        }
        self.pending.vanished.clear();
        Ok(())
    }

    /// Whether a leaf of the path holds spent entries that what vanished would have back.
    fn shows_spent(&self, leaf: &[u8]) -> bool {
        let entries = self.between(leaf, self.leaf_fences());
        self.unspent_in(leaf, entries.clone()) != entries
    }

    /// While the root has one child only, that becomes the root.
    fn collapse(&mut self) -> Result<(), TreeError<P::Error>> {
        let page_bits = u32::from(self.format.page_bits);
        while self.pending.lowest == self.top() && self.top() > 0 {
            let top = self.top();
            let slot = self.path[top as usize];
            let node = &self.assembly[slot.range()];
            if self.cells.inner_count(node) > 1 {
                break;
            }
            let child = match self.cells.inner_path(node) {
                Some(_) => slot.page,
                None => self.cells.inner_child(node, 0, page_bits),
            };
            self.retire_inner(top);
            self.path[top as usize] = Slot::ABSENT;
            self.state.height -= 1;
            self.pending.lowest = top - 1;
            if top == 1 {
                self.load_leaf(child)?;
            } else {
                self.load_inner(top - 1, child)?;
                self.cache.drop_node(child, top - 1);
            }
        }
        Ok(())
    }
}
