//! Committing the reservation buffer: units of all nodes packed into few pages, long lists made short.

use nandu_nand::Nand;

use super::buffer::Buffer;
use super::pack::first_fit;
use super::store::Store;
use super::unit::Group;
use crate::pages::Result;

/// What a commit did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Committed {
    pub(super) pages: u64,
    pub(super) units: u64,
    pub(super) compactions: u64,
}

impl<N: Nand> Store<N> {
    /// Commits what waits. A node whose list is at its bound, or of which more waits than a page holds, is written whole.
    pub(super) fn commit_buffer(&mut self, buffer: &Buffer, records: u64) -> Result<Committed, N::Error> {
        let mut groups = Vec::with_capacity(buffer.node_count());
        let mut done = Committed::default();
        for (id, waiting) in buffer.nodes() {
            let listed_count = self.table.get(id).map_or(0, |listed| listed.places.len());
            let is_long = listed_count >= self.options.list_bound || waiting.changes.len() > self.units_per_page();
            let (ordinal, changes) = if is_long || waiting.is_base {
                // Changes behind a base, one that waits included, are merged into it.
                (0, self.load(id, Some(buffer))?.base())
            } else {
                (listed_count as u8, waiting.changes.clone())
            };
            done.compactions += u64::from(is_long && !waiting.is_base);
            done.units += changes.len() as u64;
            groups.push(Group { node: id, level: waiting.level, ordinal, sequence: self.next_sequence, changes });
        }
        let pages = first_fit(groups, self.units_per_page());
        done.pages = pages.len() as u64;
        if !pages.is_empty() {
            self.commit(&pages, records)?;
            self.next_sequence += 1;
        }
        for id in buffer.removed() {
            self.table.remove(id);
        }
        Ok(done)
    }
}
