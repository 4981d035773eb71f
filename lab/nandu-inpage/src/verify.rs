//! Checking every invariant that can be seen from outside.

use nandu_index::{KeyBuf, Violation};
use nandu_nand::{Cause, Nand, PageAddr};

use crate::blocks::State;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::Node;
use crate::nodes::{LINKED, NEW, NONE, REACHED};

impl<N: Nand> InPage<'_, N> {
    /// Walks the whole tree once and reports each invariant that does not hold. Reads, and flushes only what leaves the
    /// buffer for it.
    ///
    /// # Errors
    ///
    /// As [`get`](InPage::get). A node that cannot be read is reported (V1), not an error.
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N> {
        self.guarded(|index| index.for_cause(Cause::Verify, |index| index.verify_all(report)))
    }

    fn verify_all(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), N> {
        for index in self.nodes.indexes() {
            self.nodes[index].set(REACHED, false);
        }
        let root = self.root()?;
        let height = self.nodes[root].level;
        for level in (0..=height).rev() {
            let mut key = self.lowest_key();
            loop {
                let spot = match self.descend(key.as_slice(), false, level) {
                    Ok(spot) => spot,
                    Err(Error::Corrupt { page, .. }) => {
                        report(Violation { invariant: "V1", page, level, index: 0 });
                        break;
                    }
                    Err(error) => return Err(error),
                };
                self.verify_node(spot.node, report)?;
                let Some(high) = self.near.high().and_then(KeyBuf::new) else { break };
                if high.as_slice() <= key.as_slice() {
                    report(self.violation("V2", spot.node, 0));
                    break;
                }
                key = high;
            }
        }
        self.verify_tables(report);
        Ok(())
    }

    fn lowest_key(&self) -> KeyBuf {
        let mut key = KeyBuf::EMPTY;
        if let nandu_media::inpage::record::Cells::Fixed { key: size, .. } = self.options.cells {
            key.set(&[0; u8::MAX as usize][..usize::from(size)]);
        }
        key
    }

    fn violation(&self, invariant: &'static str, node: u32, index: u32) -> Violation {
        let entry = &self.nodes[node];
        let page = entry.block().map_or(PageAddr(0), |block| self.page_of(block, entry.page));
        Violation { invariant, page, level: entry.level, index }
    }

    /// A node whose range is `near`.
    fn verify_node(&mut self, node: u32, report: &mut dyn FnMut(Violation)) -> Result<(), N> {
        if self.nodes[node].has(REACHED) {
            report(self.violation("V3", node, 0));
        }
        self.nodes[node].set(REACHED, true);
        let unit = match self.ensure(node) {
            Ok(unit) => unit,
            Err(Error::Corrupt { .. }) => {
                report(self.violation("V1", node, 0));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
        let view = Node::new(self.buffer.arena.frame(frame), self.options.cells);
        if view.check().is_err() || view.high() != self.near.high() || view.low() != self.near.low.as_slice() {
            report(self.violation("V2", node, 0));
        }
        let outside = |key: &[u8]| key < view.low() || view.high().is_some_and(|high| key >= high);
        if let Some(place) = view.cells().position(|cell| outside(cell.key)) {
            report(self.violation("V2", node, place as u32));
        }
        let entry = &self.nodes[node];
        if view.size() as u32 != entry.size
            || (view.size() > self.node_capacity() as usize && !self.buffer[unit].has_changes() && !entry.has(NEW))
        {
            report(self.violation("V4", node, 0));
        }
        Ok(())
    }

    /// Tables: every node is reached, and stands in one block, which knows it; the blocks are all accounted for.
    fn verify_tables(&mut self, report: &mut dyn FnMut(Violation)) {
        for index in self.nodes.indexes() {
            let entry = &self.nodes[index];
            let is_waiting = entry.has(NEW) || !entry.has(LINKED);
            if entry.id != 0 && !entry.has(REACHED) && !is_waiting {
                report(self.violation("V3", index, 1));
            }
        }
        for block in self.blocks.addresses() {
            let entry = &self.blocks[block];
            let (mut at, mut live) = (entry.first, 0);
            while at != NONE && live <= self.geometry.pages_per_block {
                live += 1;
                if self.nodes[at].block() != Some(block) {
                    report(self.violation("V5", at, 0));
                }
                at = self.nodes[at].next;
            }
            let is_full = u32::from(entry.used) > self.geometry.pages_per_block;
            let holds = matches!(entry.state(), State::Nodes | State::Merging | State::Failing);
            if live != u32::from(entry.live) || is_full || (live > 0 && !holds) {
                let page = self.geometry.first_page(block);
                report(Violation { invariant: "V5", page, level: 0, index: live });
            }
        }
        for index in self.nodes.indexes() {
            self.nodes[index].set(REACHED, false);
        }
    }
}
