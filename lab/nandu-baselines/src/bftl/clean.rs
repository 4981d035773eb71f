//! Greedy cleaning: the block with the fewest units that count is emptied and erased.

use nandu_nand::{BlockAddr, Cause, Nand};

use super::pack::first_fit;
use super::page::Kind;
use super::store::{RESERVE_BLOCKS, State, Store};
use super::unit::Group;
use crate::BaselineError;
use crate::pages::Result;

/// Of a hundred pages so many are not filled with units that count.
const SPARE_PERCENT: u64 = 7;

impl<N: Nand> Store<N> {
    /// Makes room for a commit of so many pages, after which it cannot fail for want of it, and has the reserve whole, since
    /// each mount takes a block of it.
    pub(super) fn make_room(&mut self, pages: u32) -> Result<(), N::Error> {
        if self.has_room(pages) && self.suspects.is_empty() {
            return Ok(());
        }
        let usable = self.states.iter().filter(|state| **state != State::Bad).count() as u64;
        let usable = usable.saturating_sub(u64::from(RESERVE_BLOCKS) + 2) * u64::from(self.pages_per_block());
        let units = (usable * (100 - SPARE_PERCENT) / 100).saturating_sub(u64::from(pages));
        if self.table.live_total() > units * self.units_per_page() as u64 {
            return Err(BaselineError::Full);
        }
        let before = self.nand.attribute(Cause::Gc);
        let outcome = self.clean_for(pages);
        let _ = self.nand.attribute(before);
        outcome
    }

    fn has_room(&self, pages: u32) -> bool {
        self.room() >= pages && self.blank_count() >= RESERVE_BLOCKS
    }

    fn clean_for(&mut self, pages: u32) -> Result<(), N::Error> {
        // A void commit is told from a good one by its number alone, and a torn page may read well one day. So they are
        // gone before a commit follows that would make a second range of numbers void.
        while let Some(&block) = self.suspects.last() {
            if matches!(self.state(block), State::Closed | State::Failing) && Some(block) != self.pinned {
                self.clean(block, false)?;
            }
            self.suspects.pop();
        }
        // Each round makes a page of room or more, or ends.
        while !self.has_room(pages) {
            let victim = self.victim().ok_or(BaselineError::Full)?;
            self.clean(victim, true)?;
        }
        Ok(())
    }

    fn live_units(&self, block: BlockAddr) -> u32 {
        self.pages_of(block).into_iter().map(|page| self.table.live_units(page)).sum()
    }

    /// The block with the fewest units that count. What the newest commit is in stays, since it is complete only as long as
    /// all its pages are there, until a later page calls it so.
    fn victim(&self) -> Option<BlockAddr> {
        let is_candidate = |&block: &BlockAddr| {
            matches!(self.state(block), State::Closed | State::Failing)
                && Some(block) != self.pinned
                && !self.newest.contains(&block)
        };
        self.blocks().filter(is_candidate).min_by_key(|&block| self.live_units(block))
    }

    /// Copies what counts in a block and erases it. Where there has to be a gain, the block is refused that has none.
    fn clean(&mut self, block: BlockAddr, has_to_gain: bool) -> Result<(), N::Error> {
        let mut found: Vec<Vec<Group>> = Vec::new();
        for page in self.pages_of(block) {
            if self.table.live_units(page) > 0 {
                let mut groups = self.groups(page)?;
                groups.retain(|group| self.table.holds(group.node, group.sequence, page));
                found.push(groups);
            }
        }
        let packed = first_fit(found.iter().flatten().cloned().collect(), self.units_per_page());
        // First fit is not always as good as the pages were.
        let copies = if packed.len() <= found.len() { packed } else { found };
        if has_to_gain && copies.len() as u32 >= self.pages_per_block() {
            return Err(BaselineError::Full);
        }
        for groups in &copies {
            self.stats.gc_moves += 1;
            self.copy(Kind::Move, groups)?;
        }
        // The copies were programmed before: a cut in the erase may leave nothing of the block.
        self.stats.gc_runs += 1;
        if self.state(block) == State::Failing { self.retire(block) } else { self.erase(block).map(drop) }
    }
}
