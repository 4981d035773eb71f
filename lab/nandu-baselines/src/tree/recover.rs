//! What a mount does with the tree: link leaves that no index node points to yet, and find out what lives.

use nandu_nand::PageAddr;

use crate::BaselineError;
use crate::entry::Entry;
use crate::layout::decode_into;
use crate::pages::{Pages, Result};
use crate::tree::Tree;
use crate::tree::write_path::Placed;

/// A leaf and its first key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    pub(crate) page: PageAddr,
    pub(crate) first_key: u32,
}

impl<P: Pages> Tree<P> {
    /// Puts a leaf that was written, or the two halves of one that was split, in the place of the leaf with these keys. The
    /// nodes above change as they did when the leaf was written, since the same changes happen in the same order.
    pub(crate) fn link(&mut self, left: Leaf, right: Option<Leaf>, records: u64) -> Result<(), P::Chip> {
        self.pages.begin();
        let mut root = self.root;
        root.records = records;
        let child = match right {
            None => Placed::Whole(left.page),
            Some(right) => Placed::Split { left: left.page, right: right.page, separator: right.first_key },
        };
        if root.height == 1 {
            self.path.clear();
            root.page = Some(left.page);
        } else {
            self.descend(left.first_key, 2)?;
        }
        for (level, node) in (2..).zip(&mut self.path) {
            let separator = &mut node.entries[node.index].key;
            *separator = left.first_key.min(*separator);
            if let Some(page) = node.page {
                self.pages.supersede(page, level, node.lowest);
            }
        }
        let mut path = std::mem::take(&mut self.path);
        let outcome = self.replace_bplus(&mut path, 2, Some((left.first_key, child)), &mut root);
        self.path = path;
        outcome?;
        self.pages.end(&mut root)?;
        self.root = root;
        Ok(())
    }

    /// Makes what is only in memory durable, with the root.
    pub(crate) fn settle(&mut self) -> Result<(), P::Chip> {
        let mut root = self.root;
        self.pages.end(&mut root)?;
        self.root = root;
        Ok(())
    }

    /// Goes back to a root.
    pub(crate) fn restore(&mut self, root: crate::pages::Root) {
        self.root = root;
    }

    /// Calls `live` with each page of the tree. Reads every node above the leaves.
    pub(crate) fn walk(&mut self, live: &mut Vec<PageAddr>, pages_max: u32) -> Result<(), P::Chip> {
        let Some(page) = self.root.page else { return Ok(()) };
        let height = self.root.height;
        let mut seen = 0;
        // Each node once; a damaged tree may reach one again and again.
        let mut open: Vec<(PageAddr, u8)> = vec![(page, height)];
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((page, level)) = open.pop() {
            seen += 1;
            if seen > u64::from(pages_max) * u64::from(crate::layout::HEIGHT_MAX) {
                return Err(BaselineError::Corrupt { page, why: "more nodes are reached than there can be" });
            }
            if level == 1 {
                live.push(page);
                continue;
            }
            self.pages.begin();
            let node = self.pages.node(page, level, height)?;
            if node.lowest == level {
                live.push(page);
            }
            decode_into(node.bytes, &mut entries);
            if entries.is_empty() {
                return Err(BaselineError::Corrupt { page, why: "an index node is empty" });
            }
            open.extend(entries.iter().map(|entry| (PageAddr(entry.value), level - 1)));
        }
        Ok(())
    }
}
