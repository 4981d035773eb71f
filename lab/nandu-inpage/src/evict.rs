//! What leaves the buffer: LRU, clean-first LRU, and clean-first with a semi-clean state.
//!
//! Inner nodes have a share of the buffer to themselves, under every policy: they are nearly always clean, and a policy that
//! lets clean units go first would read them again and again.

use nandu_nand::Nand;

use crate::buffer::List;
use crate::inpage::{InPage, Result};
use crate::nodes::{NEW, ROOT};
use crate::options::Policy;

/// Among so many of the oldest units with changes alone, one is sought whose flushing splits nothing.
const SCAN: usize = 32;

impl<N: Nand> InPage<'_, N> {
    /// Whether a unit is kept whole: inner nodes, and the root whatever it is.
    fn is_whole(&self, unit: u32) -> bool {
        let entry = &self.nodes[self.buffer[unit].node];
        entry.level > 0 || entry.id == ROOT
    }

    fn is_clean(&self, unit: u32) -> bool {
        !self.buffer[unit].has_changes() && !self.nodes[self.buffer[unit].node].has(NEW)
    }

    /// Whether the base of a unit can be dropped although it has changes.
    fn can_drop_base(&self, unit: u32) -> bool {
        let is_new = self.nodes[self.buffer[unit].node].has(NEW);
        self.options.policy == Policy::SemiClean
            && self.buffer[unit].base().is_some()
            && !is_new
            && !self.is_whole(unit)
    }

    /// Notes that a unit was used.
    pub(crate) fn touch(&mut self, unit: u32) {
        let list = if self.is_whole(unit) { List::Inner } else { List::Hot };
        self.buffer.enlist(unit, list);
        let share = self.buffer.capacity / 100 * usize::from(self.options.inner_percent);
        while self.buffer.list_size(List::Inner) > share {
            let Some(last) = self.buffer.last(List::Inner) else { break };
            self.buffer.enlist(last, List::Hot);
        }
        self.rebalance();
    }

    /// Lets units that were not used for long into the window.
    fn rebalance(&mut self) {
        if self.options.policy == Policy::Lru {
            return;
        }
        let hot = self.buffer.capacity / 100 * usize::from(100 - self.options.window_percent.min(100));
        while self.buffer.list_size(List::Hot) > hot {
            let Some(last) = self.buffer.last(List::Hot) else { break };
            let goes_first = self.is_clean(last) || self.can_drop_base(last);
            self.buffer.enlist(last, if goes_first { List::Clean } else { List::Dirty });
        }
    }

    /// Makes room for so many bytes. Reads nothing into the buffer; what it flushes is read, if at all, into scratch
    /// frames. Where everything is pinned it leaves the buffer larger than it should be.
    pub(crate) fn make_room(&mut self, size: usize) -> Result<(), N> {
        while self.buffer.used() + size > self.buffer.capacity {
            let dirty_max = self.buffer.capacity / 100 * usize::from(self.options.dirty_max_percent);
            let too_dirty = self.options.dirty_max_percent < 100 && self.buffer.dirty_size > dirty_max;
            let clean = self.buffer.last(List::Clean).filter(|_| !too_dirty);
            let victim = clean
                .or_else(|| self.dirty_victim())
                .or_else(|| self.buffer.last(List::Clean))
                .or_else(|| self.buffer.last(List::Hot))
                .or_else(|| self.buffer.last(List::Inner));
            let Some(victim) = victim else { return Ok(()) };
            self.evict(victim, clean == Some(victim))?;
            self.rebalance();
        }
        Ok(())
    }

    /// Of the oldest units in the window with changes alone, one whose flushing splits nothing.
    fn dirty_victim(&self) -> Option<u32> {
        let splits = |unit: &u32| self.nodes[self.buffer[*unit].node].size > self.node_limit();
        let mut oldest = self.buffer.oldest(List::Dirty).filter(|&unit| !self.buffer.is_pinned(unit)).take(SCAN);
        if self.options.policy != Policy::SemiClean {
            return oldest.next();
        }
        let first = oldest.next()?;
        if !splits(&first) {
            return Some(first);
        }
        Some(oldest.find(|unit| !splits(unit)).unwrap_or(first))
    }

    /// Lets a unit go, or from the window's clean list only its base.
    fn evict(&mut self, unit: u32, is_from_clean: bool) -> Result<(), N> {
        if self.is_clean(unit) {
            self.stats.clean_drops += 1;
        } else if is_from_clean && self.can_drop_base(unit) {
            self.stats.base_drops += 1;
            self.buffer.drop_base(unit);
            self.buffer.enlist(unit, List::Dirty);
            return Ok(());
        } else {
            self.stats.dirty_evictions += 1;
            let index = self.buffer[unit].node;
            self.flush(unit)?;
            // What the flush had to do may have taken the unit away.
            if self.nodes[index].unit != unit || !self.is_clean(unit) {
                return Ok(());
            }
        }
        self.forget_unit(unit);
        Ok(())
    }

    /// Takes away units with nothing in them, which packed flushes leave.
    pub(crate) fn sweep(&mut self) {
        for unit in self.buffer.indexes() {
            let is_empty = self.buffer.is_used(unit) && self.buffer.size(unit) == 0;
            if is_empty && !self.buffer.is_pinned(unit) {
                self.forget_unit(unit);
            }
        }
    }
}
