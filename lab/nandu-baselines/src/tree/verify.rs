//! Holds the invariants of the crate's front page against what is on flash.

use nandu_index::Violation;
use nandu_nand::PageAddr;

use crate::entry::Entry;
use crate::layout::decode_into;
use crate::pages::{Pages, Result};
use crate::tree::Tree;

/// The keys that may stand in a subtree.
#[derive(Clone, Copy)]
struct Keys {
    from: u32,
    /// Above all of them; none at the right edge.
    to: Option<u32>,
}

impl<P: Pages> Tree<P> {
    /// Walks the tree and reports each invariant that does not hold.
    pub(crate) fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), P::Chip> {
        let Some(page) = self.root.page else { return Ok(()) };
        let mut found = Found { records: 0, pages: 0 };
        let height = self.root.height;
        self.verify_node(page, height, Keys { from: 0, to: None }, &mut found, report)?;
        if found.records != self.root.records {
            report(Violation { invariant: "B4", page, level: height - 1, index: 0 });
        }
        if found.pages != self.pages.live_pages() {
            report(Violation { invariant: "B5", page, level: height - 1, index: 0 });
        }
        Ok(())
    }

    fn verify_node(
        &mut self,
        page: PageAddr,
        level: u8,
        keys: Keys,
        found: &mut Found,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), P::Chip> {
        self.pages.begin();
        let node = self.pages.node(page, level, self.root.height)?;
        let lowest = node.lowest;
        let mut entries: Vec<Entry> = Vec::new();
        decode_into(node.bytes, &mut entries);
        let mut tell = |invariant, index: usize| {
            report(Violation { invariant, page, level: level - 1, index: index as u32 });
        };
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 && entries[index - 1].key >= entry.key {
                tell("B1", index);
            }
            if entry.key < keys.from || keys.to.is_some_and(|to| entry.key >= to) {
                tell("B2", index);
            }
        }
        if lowest == level {
            found.pages += 1;
            if !self.pages.is_live(page) {
                tell("B5", 0);
            }
        } else if !entries.iter().any(|entry| entry.value == page.0) {
            tell("B3", 0);
        }
        if level == 1 {
            found.records += entries.len() as u64;
            return Ok(());
        }
        if entries.is_empty() {
            tell("B2", 0);
        }
        for (index, entry) in entries.iter().enumerate() {
            let child = Keys { from: entry.key, to: entries.get(index + 1).map(|next| next.key).or(keys.to) };
            self.verify_node(PageAddr(entry.value), level - 1, child, found, report)?;
        }
        Ok(())
    }
}

/// What a walk counted.
struct Found {
    records: u64,
    pages: u64,
}
