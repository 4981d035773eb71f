//! Reading a node: all the pages in its list, and what waits in memory.

use nandu_nand::{Nand, PageAddr};

use super::buffer::Buffer;
use super::store::Store;
use super::unit::Node;
use crate::BaselineError;
use crate::pages::Result;

impl<N: Nand> Store<N> {
    /// A node as it is, with what waits or without. Reads each page of its list, once in an operation if they follow each other.
    pub(super) fn load(&mut self, id: u32, buffer: Option<&Buffer>) -> Result<Node, N::Error> {
        let waiting = buffer.and_then(|buffer| buffer.get(id));
        let mut node = Node::default();
        if waiting.is_none_or(|waiting| !waiting.is_base) {
            let missing = BaselineError::Corrupt { page: PageAddr(0), why: "a node is missing" };
            let listed = self.table.get(id).ok_or(missing)?;
            node.level = listed.level;
            for place in listed.places.clone() {
                let found = self.groups(place.page)?;
                let Some(group) = found.iter().find(|group| group.node == id && group.sequence == place.sequence)
                else {
                    return Err(BaselineError::Corrupt { page: place.page, why: "it lacks units of a node" });
                };
                group.changes.iter().for_each(|&change| node.apply(change));
            }
        }
        if let Some(waiting) = waiting {
            node.level = waiting.level;
            waiting.changes.iter().for_each(|&change| node.apply(change));
        }
        if node.entries.len() > self.units_per_page() {
            let page = self.first_page(id);
            return Err(BaselineError::Corrupt { page, why: "the node is larger than a page" });
        }
        Ok(node)
    }

    /// The page with the base of a node, to name it by.
    pub(super) fn first_page(&self, id: u32) -> PageAddr {
        let first = self.table.get(id).and_then(|listed| listed.places.first());
        first.map_or(PageAddr(0), |place| place.page)
    }
}
