//! Whether the invariants hold.

use nandu_index::Violation;
use nandu_nand::{Nand, PageAddr};

use super::unit::Node;
use super::{Bftl, ROOT};
use crate::pages::Result;

/// What the walk has seen.
#[derive(Default)]
struct Seen {
    records: u64,
    nodes: usize,
}

impl<N: Nand> Bftl<N> {
    /// Walks the whole tree: B1, B2 and B4 as in the crate's list, and B6.
    pub(super) fn check_all(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N::Error> {
        let mut seen = Seen::default();
        let root = self.node(ROOT)?;
        self.check_node(ROOT, &root, (0, u32::MAX), &mut seen, report)?;
        let page = PageAddr(0);
        if seen.records != self.records {
            report(Violation { invariant: "B4", page, level: root.level, index: 0 });
        }
        // Those that wait may not be in the table yet, and those that vanished may still be.
        if self.buffer.is_empty() && seen.nodes != self.store.table.node_count() {
            report(Violation { invariant: "B6", page, level: root.level, index: 0 });
        }
        Ok(())
    }

    fn check_node(
        &mut self,
        id: u32,
        node: &Node,
        (low, high): (u32, u32),
        seen: &mut Seen,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), N::Error> {
        let page = self.store.first_page(id);
        let mut violate = |invariant, index: usize| {
            report(Violation { invariant, page, level: node.level, index: index as u32 });
        };
        seen.nodes += 1;
        if node.entries.is_empty() && id != ROOT {
            violate("B2", 0);
        }
        for (at, entry) in node.entries.iter().enumerate() {
            if entry.key < low || entry.key > high {
                violate("B2", at);
            }
            if at > 0 && node.entries[at - 1].key >= entry.key {
                violate("B1", at);
            }
        }
        if self.store.table.get(id).is_some_and(|listed| listed.places.len() > self.store.options.list_bound) {
            violate("B6", 0);
        }
        if node.level == 0 {
            seen.records += node.entries.len() as u64;
            return Ok(());
        }
        for (at, entry) in node.entries.iter().enumerate() {
            let lowest = if at == 0 { low } else { entry.key };
            let highest = node.entries.get(at + 1).map_or(high, |next| next.key.saturating_sub(1));
            let child = self.child(entry.value, node.level)?;
            self.check_node(entry.value, &child, (lowest, highest), seen, report)?;
        }
        Ok(())
    }
}
