//! Two neighbouring leaves that fit one page are joined.
//!
//! A leaf that lost entries is programmed again anyway, so a neighbour that fits beside what is left costs one read and no program, and its
//! page is free. Without it a chip stays full where every second record was deleted: no leaf is empty, and only keys between those that are
//! left have room.
//!
//! The commit that programs the joined leaf supersedes both pages. A cut before it leaves both leaves as they were.

use core::ops::Range;

use crate::TreeError;
use crate::changes::Changes;
use crate::pages::Pages;
use crate::split::Splice;
use crate::tree::Tree;
use nandu_cells::{Cells, LeafRun, Stretch};

/// A neighbour is read when a leaf comes to hold one part less of so many.
const STEPS: usize = 8;

/// How many of these parts a leaf holds at most when a neighbour is read.
const STEPS_MAX: usize = 7;

/// One part of so many stays free in a leaf that is joined, so that the next put does not split it again.
const SPARED: usize = 32;

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Says that the path's leaf shrank, for [`Tree::join`] to look for a neighbour now and then.
    pub(crate) fn note_shrunk(&mut self, before: usize, after: usize) {
        let room = self.tail().saturating_sub(self.front()).max(1);
        let steps = |size: usize| (size * STEPS).div_ceil(room);
        self.pending.is_sparse |= steps(after) < steps(before) && steps(after) <= STEPS_MAX;
    }

    /// Joins the path's leaf, which is to be programmed, with a neighbour, if both fit one page with the changes that wait for the
    /// neighbour. Reads one or two neighbours. Returns whether it did; the keys of both are in `pending.rewritten` then.
    pub(crate) fn join(&mut self, changes: &Changes<'_>) -> Result<bool, TreeError<P::Error>> {
        let is_sparse = core::mem::take(&mut self.pending.is_sparse);
        let slot = self.path[0];
        let is_here = self.pending.dirty && self.pending.lowest == 0 && self.pending.staged.is_none() && slot.present;
        // Pages that a snapshot has are not free when the newest tree leaves them.
        if !is_sparse || !is_here || self.state.height == 1 || !self.snapshots.is_empty() {
            return Ok(false);
        }
        // A root that has two children keeps them.
        if self.cells.inner_count(&self.assembly[self.path[1].range()]) <= 2 {
            return Ok(false);
        }
        Ok(self.join_beside(changes, true)? || self.join_beside(changes, false)?)
    }

    fn join_beside(&mut self, changes: &Changes<'_>, right: bool) -> Result<bool, TreeError<P::Error>> {
        let Some(page) = self.neighbour(right) else { return Ok(false) };
        let waiting = if changes.is_empty() { 0 } else { self.waiting_beside(changes, right) };
        // A leaf that cannot be read is no reason to refuse a change of this one.
        let Ok(place) = self.read_neighbour(page) else { return Ok(false) };
        let entries = self.unspent_of_neighbour(place.clone(), right);
        let Some(size) = self.encode_joined(place, entries, right, waiting) else { return Ok(false) };
        self.stats.joins += 1;
        // A leaf is parted only as it is on flash.
        self.pending.may_part = false;
        self.note_rewritten_with(right);
        for page in [self.path[0].page, page] {
            self.retire_page(page);
            self.cache.drop_node(page, 0);
        }
        let at = self.path[1].index - usize::from(!right);
        self.replace_leaves(&mut Splice { removed: 2, ..Splice::new(at, 1) }, size)?;
        Ok(true)
    }

    /// Bytes of the changes that wait for a neighbour.
    #[inline(never)]
    fn waiting_beside(&mut self, changes: &Changes<'_>, right: bool) -> usize {
        let fences = self.neighbour_fences(right);
        let range = self.changes_between(changes, fences);
        let puts = range.filter_map(|index| changes.stored(index).map(|stored| (changes.key(index), stored)));
        puts.map(|(key, stored)| self.cells.entry_size(key, stored)).sum()
    }

    /// Puts both leaves as one into the scratch buffer and returns its size, if it is not too large.
    #[inline(never)]
    fn encode_joined(
        &mut self,
        place: Range<usize>,
        entries: Range<usize>,
        right: bool,
        waiting: usize,
    ) -> Option<usize> {
        let room = self.tail().saturating_sub(self.front());
        let size_max = (room - room / SPARED).saturating_sub(waiting);
        let own = Stretch::whole(self.cells, &self.assembly[self.path[0].range()]);
        let other = Stretch::new(&self.reading.buf[place], entries);
        let (first, second) = if right { (own, other) } else { (other, own) };
        let run = LeafRun::new(first, second, None);
        let at = self.own_front();
        let end = (at + size_max).min(self.scratch.len());
        self.cells.leaf_encode(&run, 0..run.count(), &mut self.scratch[at..end])
    }
}
