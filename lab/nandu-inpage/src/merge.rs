//! Merging a block: its nodes, with their logs, go to another block, and it is erased.

use nandu_index::KeyBuf;
use nandu_media::inpage::FLAG_MOVED;
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Cause, Nand};

use crate::arena::Frame;
use crate::blocks::State;
use crate::descent::BUILD;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::load::READS;
use crate::node::{High, NodeMut};
use crate::nodes::{LINKED, LOST, MISFENCED, NONE, SPLITTING};
use crate::options::{Layout, LogPages};

/// Merges that may follow from failed programs in one operation.
const FAILURES_MAX: u32 = 16;

impl<N: Nand> InPage<'_, N> {
    /// Moves all nodes of a block, with their logs and with the changes of one unit, to a free block, and erases it.
    ///
    /// Costs a read for each node and each log page, a program for each node, and an erase.
    pub(crate) fn merge(&mut self, block: BlockAddr, with: Option<u32>) -> Result<(), N> {
        let before = self.nand.attribute(Cause::Gc);
        let result = self.merge_into(block, with, true);
        self.nand.attribute(before);
        self.stats.merges += 1;
        self.note_idle();
        result?;
        self.keep_erase_counts()
    }

    /// Moves all nodes of a block to where new nodes go, and erases it.
    pub(crate) fn evacuate(&mut self, block: BlockAddr) -> Result<(), N> {
        let before = self.nand.attribute(Cause::Gc);
        let result = self.merge_into(block, None, false);
        self.nand.attribute(before);
        self.stats.evacuations += 1;
        result
    }

    fn merge_into(&mut self, old: BlockAddr, with: Option<u32>, has_target: bool) -> Result<(), N> {
        let logs = self.read_logs(old)?;
        let entry = self.blocks[old];
        let granted = self.new_grant(old);
        let mut target = None;
        if has_target {
            let new = self.take_block(entry.group, entry.position, granted)?;
            self.replace_in_group(old, Some(new));
            target = Some(new);
        } else {
            self.replace_in_group(old, None);
        }
        let is_failing = self.blocks[old].state() == State::Failing;
        if !is_failing {
            // From here on no sector is added (I3): the page of a node that was moved would hide it.
            self.blocks.set_state(old, State::Merging);
        }
        // Inner nodes first: once the links among the changes are durable, leaves can be clipped.
        for is_inner in [true, false] {
            let mut index = self.blocks[old].first;
            while index != NONE {
                // It leaves the list when it is moved.
                let next = self.nodes[index].next;
                if (self.nodes[index].level > 0) == is_inner && !self.nodes[index].has(LOST) {
                    self.move_node(index, old, logs, with, &mut target)?;
                }
                index = next;
            }
        }
        self.drop_lost(old);
        #[cfg(feature = "_broken")]
        self.break_merge(old, with)?;
        if is_failing {
            self.failing -= 1;
            return self.retire(old);
        }
        // The erase comes last (I5): until then the old versions answer for what was not moved.
        self.erase(old).map(drop)
    }

    /// Reads the programmed log pages of a block.
    fn read_logs(&mut self, block: BlockAddr) -> Result<u16, N> {
        let used = self.log_pages_used(block);
        let dialect = self.dialect();
        for number in 0..used {
            let page = self.log_page(block, number);
            let at = usize::from(number) * self.page_size();
            let page_size = self.page_size();
            Self::read_log_page(&mut self.nand, dialect, page, &mut self.logs[at..at + page_size])?;
        }
        self.stats.merge_reads += u64::from(used);
        Ok(used)
    }

    /// Moves a node of a block that is merged.
    fn move_node(
        &mut self,
        index: u32,
        old: BlockAddr,
        logs: u16,
        with: Option<u32>,
        target: &mut Option<BlockAddr>,
    ) -> Result<(), N> {
        let frame = self.buffer.arena.scratch(BUILD);
        match self.rebuild(index, old, logs, frame) {
            Ok(()) => {}
            Err(Error::Corrupt { .. }) if !self.is_recovering => {
                // Its keys are lost, and every access says so; the other nodes of the block are not.
                self.nodes[index].set(LOST, true);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let unit = with.filter(|&unit| self.buffer[unit].node == index);
        let guest = (unit.is_none() && self.options.absorb && self.may_go_along(index)).then(|| self.nodes[index].unit);
        if let Some(guest) = guest {
            self.apply_changes(guest, frame)?;
        }
        #[cfg(feature = "_broken")]
        let unit = unit.filter(|_| !self.options.broken.sector_after_merge);
        if let Some(unit) = unit {
            self.apply_changes(unit, frame)?;
        }
        #[cfg(feature = "_broken")]
        if self.options.broken.erase_before_copy && self.blocks[old].live == 1 {
            self.nand.erase(old, nandu_nand::CellMode::Slc).map_err(Error::Nand)?;
        }
        self.program_moved(frame, index, target)?;
        if let Some(unit) = unit {
            // Before the next node is moved: the links are durable with this page.
            self.settle(unit);
        }
        if let Some(guest) = guest {
            // Only now: until the page is programmed they are nowhere else.
            self.buffer.drop_changes(guest);
            self.stats.absorbed += 1;
        }
        self.stats.merge_programs += 1;
        Ok(())
    }

    /// Puts together in a frame a node of a block whose log pages were read.
    fn rebuild(&mut self, index: u32, old: BlockAddr, logs: u16, frame: Frame) -> Result<(), N> {
        let sequence = self.read_node(index, frame)?;
        self.stats.merge_reads += u64::from(self.node_pages());
        let bound = self.durable_bound(index, frame)?;
        let high = bound.as_ref().map(KeyBuf::as_slice);
        let mut attempt = 1;
        while self.apply_logs(sequence, old, logs, frame, high)? < self.nodes[index].sectors {
            // As when a node is read: a log page was read by mistake, or it decayed.
            if attempt == READS {
                let page = self.page_of(old, self.nodes[index].page);
                return Err(Error::Corrupt { page, why: Malformed::Range(Field::LogSectors) });
            }
            attempt += 1;
            self.read_logs(old)?;
            self.read_node(index, frame)?;
            let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
            node.clip(high).ok_or(Error::Poisoned)?;
        }
        Ok(())
    }

    /// Does to a node what the log pages that were read say of it. Returns how many sectors of the node there were.
    fn apply_logs(&mut self, sequence: u64, old: BlockAddr, logs: u16, frame: Frame, high: High<'_>) -> Result<u16, N> {
        let dialect = self.dialect();
        let mut count = 0;
        for number in 0..logs {
            let page = self.log_page(old, number);
            let at = usize::from(number) * self.page_size();
            let log = &self.logs[at..at + self.geometry.page_size as usize];
            let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
            count += dialect.apply(&mut node, sequence, log, page, high).map_err(|why| Error::Corrupt { page, why })?;
        }
        Ok(count)
    }

    /// Programs a node where the merge goes, or, if there is no more room or the program fails, where new nodes go.
    fn program_moved(&mut self, frame: Frame, index: u32, target: &mut Option<BlockAddr>) -> Result<(), N> {
        // A base in the buffer may be smaller than what flash holds, or larger by changes to come.
        let size = self.nodes[index].size;
        if let Some(block) = target.filter(|&block| self.has_node_room(block)) {
            if self.program_node(frame, index, block, FLAG_MOVED)? {
                self.keep_size(index, size);
                return Ok(());
            }
            self.replace_in_group(block, None);
            *target = None;
        }
        self.write_node(frame, index)?;
        self.keep_size(index, size);
        Ok(())
    }

    /// With changes in the buffer the bound of the node's size stays; without, what was programmed is exact.
    fn keep_size(&mut self, index: u32, bound: u32) {
        let unit = self.nodes[index].unit;
        if unit != NONE && (self.buffer[unit].has_changes() || self.buffer[unit].base().is_some()) {
            self.nodes[index].size = bound;
        }
    }

    /// The upper fence of a node whose page is in a frame, as it holds on flash; and drops from the node what another one
    /// answers for.
    ///
    /// The page says it, unless the node was split since, or a neighbour was removed. Then the fence is the lower one of the
    /// first node to the right whose link is durable. A link that is not must not count: if the power goes, this node
    /// answers for that range again.
    fn durable_bound(&mut self, index: u32, frame: Frame) -> Result<Option<KeyBuf>, N> {
        if !self.nodes[index].has(MISFENCED) {
            let node = crate::node::Node::new(self.buffer.arena.frame(frame), self.options.cells);
            return Ok(node.high().and_then(KeyBuf::new));
        }
        let level = self.nodes[index].level;
        let node = crate::node::Node::new(self.buffer.arena.frame(frame), self.options.cells);
        let mut key = KeyBuf::new(node.low()).unwrap_or_default();
        let bound = loop {
            self.locate(key.as_slice(), false, level)?;
            let Some(high) = self.far.high() else { break None };
            let next = KeyBuf::new(high).unwrap_or_default();
            let sibling = self.locate(next.as_slice(), false, level)?;
            // Fences rise from step to step, so this ends; keys that do not rise are corruption.
            if next.as_slice() <= key.as_slice() {
                break None;
            }
            key = next;
            if self.nodes[sibling].has(LINKED) {
                break Some(key);
            }
        };
        let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
        node.clip(bound.as_ref().map(KeyBuf::as_slice)).ok_or(Error::Poisoned)?;
        let is_splitting = self.nodes[index].has(SPLITTING);
        self.nodes[index].set(MISFENCED, is_splitting);
        Ok(bound)
    }

    /// Nodes of a merged block that could not be read stand nowhere any more.
    fn drop_lost(&mut self, block: BlockAddr) {
        while self.blocks[block].first != NONE {
            let index = self.blocks[block].first;
            let place = self.nodes[index].page;
            self.blocks.detach(&mut self.nodes, index);
            self.nodes[index].page = place;
        }
    }

    /// Log pages for the block that a merged one becomes.
    ///
    /// Source: the cost of an update is that of a flush with its share of a merge, M / (s k), and that of a load with half
    /// of the log pages; the number for which the sum is least is the root of 2 f M / (s r t), with f flushes and r loads
    /// since the last merge, and M about what reading and programming a block takes.
    fn new_grant(&self, block: BlockAddr) -> u8 {
        let entry = &self.blocks[block];
        if !matches!(self.options.log_pages, LogPages::Adaptive(_)) {
            return self.options.log_pages.first();
        }
        let times = self.options.times;
        let pages = u64::from(self.geometry.pages_per_block);
        let merge = pages * (u64::from(times.read_ns) + u64::from(times.program_ns)) + u64::from(times.erase_ns);
        let sectors = match self.options.layout {
            Layout::Sectors => u64::from(self.sectors_per_page()),
            Layout::Pages => 1,
        };
        // A log page is as many pages as a node, and so holds as many times more and takes as many times longer to read.
        let node_pages = u64::from(self.node_pages());
        let sectors = sectors * node_pages * node_pages;
        let (flushes, loads) = (u64::from(entry.flushes.max(1)), u64::from(entry.loads.max(1)));
        // Four times the square, so that half of its root rounds to the nearest.
        let square = 8 * flushes.saturating_mul(merge) / (sectors * loads * u64::from(times.read_ns)).max(1);
        (square.isqrt().div_ceil(2)).clamp(1, u64::from(self.options.log_pages_max)) as u8
    }

    /// Merges blocks in which a program failed, while there are any.
    pub(crate) fn empty_failing(&mut self) -> Result<(), N> {
        for _ in 0..FAILURES_MAX {
            if self.failing == 0 {
                return Ok(());
            }
            let failing = self.blocks.addresses().find(|&block| self.blocks[block].state() == State::Failing);
            let Some(block) = failing else { return Ok(()) };
            if self.blocks[block].live == 0 {
                self.failing -= 1;
                self.replace_in_group(block, None);
                self.retire(block)?;
                continue;
            }
            self.merge(block, None)?;
        }
        Err(Error::ReadOnly)
    }

    /// Merges every block that has logs, so that each node is read with its page alone until it is changed again. For idle
    /// time.
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn compact(&mut self) -> Result<(), N> {
        self.guarded(|index| {
            index.open_for_writing()?;
            for block in index.blocks.addresses() {
                let entry = &index.blocks[block];
                if entry.state() == State::Nodes && entry.logs > 0 {
                    index.merge(block, None)?;
                }
            }
            index.empty_failing()
        })
    }

    /// Remembers the least worn block that holds nodes, if others wear much more: what stands in it does not change.
    fn note_idle(&mut self) {
        let Some(gap) = self.options.levelling_gap else { return };
        let in_use = |block: &BlockAddr| !matches!(self.blocks[*block].state(), State::Bad | State::Anchor);
        let most = self.blocks.addresses().filter(in_use).map(|block| self.blocks[block].erase_count).max();
        let idle = (self.blocks.addresses())
            .filter(|&block| self.blocks[block].state() == State::Nodes)
            .min_by_key(|&block| self.blocks[block].erase_count);
        self.idle = idle.filter(|&idle| most.is_some_and(|most| most - self.blocks[idle].erase_count > gap));
    }

    /// Merges the blocks that the last operations found to be due.
    pub(crate) fn merge_due(&mut self) -> Result<(), N> {
        if let Some(block) = self.idle.take()
            && self.blocks[block].state() == State::Nodes
            && self.blocks.free() >= 2
            && !self.is_read_only
        {
            self.open_for_writing()?;
            self.stats.levellings += 1;
            self.is_levelling = true;
            let result = self.merge(block, None);
            self.is_levelling = false;
            result?;
        }
        let Some(block) = self.due.take() else { return Ok(()) };
        if self.blocks[block].state() != State::Nodes || self.blocks.free() < 2 || self.is_read_only {
            return Ok(());
        }
        self.open_for_writing()?;
        if self.blocks[block].is_worn != 0 {
            self.stats.refreshes += 1;
        } else {
            self.stats.early_merges += 1;
        }
        self.merge(block, None)
    }

    /// Empties the block with the fewest nodes that is not being filled, if that makes room.
    pub(crate) fn evacuate_one(&mut self) -> Result<(), N> {
        let gain_from = self.nodes_beside(self.options.log_pages.first());
        let is_open = |block: BlockAddr| self.group.blocks.contains(&Some(block));
        let candidate = (self.blocks.addresses())
            .filter(|&block| self.blocks[block].state() == State::Nodes && !is_open(block))
            .min_by_key(|&block| self.blocks[block].live)
            .filter(|&block| u32::from(self.blocks[block].live) < gain_from && self.blocks.free() > 0);
        match candidate {
            Some(block) => self.evacuate(block),
            None => Err(Error::Full),
        }
    }
}

#[cfg(feature = "_broken")]
impl<N: Nand> InPage<'_, N> {
    /// Adds a sector where none may be added any more, if the options ask for it.
    fn break_merge(&mut self, old: BlockAddr, with: Option<u32>) -> Result<(), N> {
        let Some(unit) = with.filter(|_| self.options.broken.sector_after_merge) else { return Ok(()) };
        let (number, size) = (u32::from(self.blocks[old].logs), self.buffer.changes_size(unit));
        let log = (number / self.sectors_per_page()) as u16;
        if u32::from(self.blocks[old].used + log) < self.geometry.pages_per_block
            && let Some(chunk) = self.buffer[unit].chunk()
        {
            let (page, column) = (self.log_page(old, log), number % self.sectors_per_page() * self.options.sector_size);
            let place = nandu_media::inpage::sector::Place { volume: self.volume, page: page.0, column };
            let (id, sequence) = (self.nodes[self.buffer[unit].node].id, self.next_sequence());
            let bytes = self.buffer.arena.chunk_mut(chunk);
            nandu_media::inpage::sector::seal(bytes, id, sequence, 1, size, place);
            Self::program(&mut self.nand, page, column, bytes, None)?;
        }
        Ok(())
    }
}
