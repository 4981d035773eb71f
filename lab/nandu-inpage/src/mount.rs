//! Opening a volume: finding every node and what was logged of it, and putting right what a cut left.
//!
//! Each block that holds anything is read once. Of each node the page with the highest sequence is the current one (I1), and
//! sectors count that stand in its block and are newer (I2). Then the tree is walked from the root: what it does not reach
//! is dead, whatever stopped it from being linked.

use nandu_index::KeyBuf;
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::blocks::{DECAYED, MAYBE_TORN, State};
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::Node;
use crate::nodes::{LINKED, LOST, MISFENCED, NONE, REACHED, ROOT};
use crate::options::{GroupSize, Options};
use crate::placement::{GROUP_MAX, Group};
use crate::scan::{Newest, fence_mark};

/// How often opening begins anew.
const ATTEMPTS: u32 = 3;

impl<'m, N: Nand> InPage<'m, N> {
    /// Opens the index on a chip.
    ///
    /// Reads the first page of each block and every page of those that hold something; then inner nodes with their logs.
    /// After a cut it merges the block that was programmed last, and makes the changes of the journal again; if there is no block
    /// left for that, the index can only be read.
    ///
    /// # Errors
    ///
    /// [`Error::NotFormatted`], [`Error::WrongFormat`], [`Error::Corrupt`] if the tree cannot be followed: nothing was
    /// changed. [`Error::Geometry`], [`Error::Unsuitable`], [`Error::Memory`], [`Error::Nand`].
    pub fn open(nand: N, options: Options, memory: &'m mut [u8]) -> Result<InPage<'m, N>, N> {
        let mut index = InPage::blank(nand, options, memory)?;
        let before = index.nand.attribute(Cause::Mount);
        let mut attempt = 1;
        loop {
            match index.mount(attempt) {
                // What a cut left unstable may be lost between two reads of it. It is passed over from the beginning, then.
                Err(Error::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
            index.forget_all();
        }
        index.buffer.unpin();
        index.nand.attribute(before);
        index.stats = crate::stats::Stats { torn: index.stats.torn, ..crate::stats::Stats::default() };
        Ok(index)
    }

    fn mount(&mut self, attempt: u32) -> Result<(), N> {
        self.nand.attribute(Cause::Mount);
        let anchor = self.find_anchor()?.ok_or(Error::NotFormatted)?;
        let clean_root = self.adopt_anchor(anchor)?;
        let mut newest = Newest { sequence: anchor.sequence, block: None };
        for block in self.blocks.addresses() {
            if self.blocks[block].is_free() {
                self.scan_block(block, &mut newest)?;
            }
        }
        if self.anchors.has_journal && !self.anchors.is_clean {
            self.expect_free()?;
        }
        self.trim_ring();
        self.sequence = newest.sequence + 1;
        let clean_root = clean_root.filter(|_| newest.block.is_none());
        let root = self.root()?;
        if clean_root.is_some_and(|sequence| sequence != self.nodes[root].sequence) {
            // An older page of the root would pass for the whole tree.
            return Err(Error::Corrupt { page: anchor.page, why: Malformed::Sequence });
        }
        self.note_damage(clean_root.is_some());
        // A leaf may seem lost because its block was taken for erased by mistake: that is said when it was looked for twice.
        self.walk(attempt > 1)?;
        self.settle_tables();
        self.note_marked();
        if clean_root.is_some() {
            return Ok(());
        }
        self.was_cut = true;
        self.nand.attribute(Cause::Recovery);
        self.is_recovering = true;
        let recovered = self.recover(newest);
        self.is_recovering = false;
        match recovered {
            // Without a block to copy into, what there is can be read, and nothing else can be done with it. With changes in the
            // journal that would be less than what was synced.
            Err(Error::Full | Error::ReadOnly) if self.journal.found.is_none() => {
                self.is_read_only = true;
                Ok(())
            }
            other => other.and_then(|()| self.recover_journal()),
        }
    }

    /// Log pages that are not what they were have decayed, and not been torn, if the volume was left in order, or if others were
    /// programmed after them. What they held nobody knows: the nodes of their blocks may be older than they seem, and count as
    /// lost.
    fn note_damage(&mut self, is_clean: bool) {
        let least = if is_clean { MAYBE_TORN } else { DECAYED };
        for index in self.nodes.indexes() {
            let block = self.nodes[index].block();
            if block.is_some_and(|block| self.blocks[block].is_suspect >= least) {
                self.nodes[index].set(LOST, true);
            }
        }
        for block in self.blocks.addresses() {
            self.blocks[block].is_suspect = 0;
        }
    }

    /// Blocks that hold nodes and carry a mark are emptied with the first change.
    fn note_marked(&mut self) {
        for block in self.blocks.addresses() {
            let entry = &self.blocks[block];
            if entry.state() == State::Nodes && entry.is_mark_seen == 0 {
                self.replace_in_group(block, None);
                self.note_failing(block);
            }
        }
    }

    /// As before anything was read.
    fn forget_all(&mut self) {
        self.nodes.clear();
        self.blocks.clear();
        self.buffer.clear();
        self.journal.clear();
        self.is_recovering = false;
        self.is_read_only = false;
        self.stats.torn = 0;
        self.failing = 0;
        self.due = None;
        self.idle = None;
        self.next_id = ROOT + 1;
    }

    /// Follows the tree from the root, level by level, and marks what is reached.
    fn walk(&mut self, may_lose: bool) -> Result<(), N> {
        let root = self.root()?;
        self.nodes[root].set(REACHED | LINKED, true);
        for level in (1..=self.nodes[root].level).rev() {
            let mut key = KeyBuf::EMPTY;
            if let nandu_media::inpage::record::Cells::Fixed { key: size, .. } = self.options.cells {
                key.set(&[0; u8::MAX as usize][..usize::from(size)]);
            }
            loop {
                let spot = self.descend(key.as_slice(), false, level)?;
                let unit = self.ensure(spot.node)?;
                self.buffer.pin(1, unit);
                self.reach_children(spot.node, unit, may_lose)?;
                let Some(high) = self.near.high().and_then(KeyBuf::new) else { break };
                if high.as_slice() <= key.as_slice() {
                    return Err(self.broken_walk(spot.node));
                }
                key = high;
            }
        }
        Ok(())
    }

    fn broken_walk(&self, index: u32) -> Error<N::Error> {
        let entry = &self.nodes[index];
        let page = entry.block().map_or(PageAddr(0), |block| self.page_of(block, entry.page));
        Error::Corrupt { page, why: Malformed::Range(Field::Fences) }
    }

    /// Marks the children of an inner node in the buffer.
    fn reach_children(&mut self, index: u32, unit: u32, may_lose: bool) -> Result<(), N> {
        let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
        let level = self.nodes[index].level;
        let mut at = Node::new(self.buffer.arena.frame(frame), self.options.cells).first();
        loop {
            let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
            let Some(cell) = node.read(at) else { return Ok(()) };
            let high = node.read(cell.at + cell.size).map(|next| next.key).or(node.high());
            let (id, mark) = (cell.child(), fence_mark(high));
            at += cell.size;
            match self.nodes.find(id) {
                Some(child) if self.nodes[child].level + 1 == level && !self.nodes[child].has(REACHED) => {
                    let is_misfenced = self.nodes[child].next != mark;
                    self.nodes[child].set(REACHED | LINKED, true);
                    self.nodes[child].set(MISFENCED, is_misfenced);
                }
                // The keys of a leaf that is lost are lost; the others are not.
                None if level == 1 && id != 0 && may_lose => {
                    self.nodes.add(id, 0, REACHED | LINKED | LOST).ok_or(self.broken_walk(index))?;
                }
                _ => return Err(self.broken_walk(index)),
            }
        }
    }

    /// Forgets what was not reached, and lists the nodes of each block.
    fn settle_tables(&mut self) {
        for index in self.nodes.indexes() {
            if self.nodes[index].id == 0 {
                continue;
            }
            if !self.nodes[index].has(REACHED) {
                self.nodes.remove(index);
                continue;
            }
            self.nodes[index].set(REACHED, false);
            self.nodes[index].next = NONE;
            self.blocks.attach(&mut self.nodes, index);
        }
        let mut number = 0;
        for block in self.blocks.addresses() {
            if self.blocks[block].state() != State::Nodes {
                continue;
            }
            number = number.max(self.blocks[block].group);
            if self.blocks[block].live == 0 {
                self.blocks[block].clear();
                self.blocks.set_state(block, State::Unknown);
            }
        }
        self.reopen_group(number);
    }

    /// The group that was filled last goes on being filled.
    fn reopen_group(&mut self, number: u32) {
        let mut group = Group { number, size: 1, next: 0, blocks: [None; GROUP_MAX] };
        for block in self.blocks.addresses() {
            let entry = &self.blocks[block];
            let position = usize::from(entry.position);
            if entry.state() == State::Nodes && entry.group == number && position < GROUP_MAX {
                group.blocks[position] = Some(block);
                group.size = group.size.max(entry.position + 1);
            }
        }
        if let GroupSize::Fixed(size) = self.options.group {
            group.size = group.size.max(size);
        }
        self.group = group;
    }

    /// After a cut: what was programmed last may read well now and not later, so it is copied out with its block. And a
    /// program that left no trace may have hit any block that was not full, so nothing is programmed into these before they
    /// are erased: each is merged when it is written to next.
    fn recover(&mut self, newest: Newest) -> Result<(), N> {
        self.anchors.is_clean = false;
        self.anchors.is_silent = true;
        self.blocks.spread((self.sequence % u64::from(self.geometry.block_count)) as u32);
        self.records = None;
        for block in self.blocks.addresses() {
            let entry = &mut self.blocks[block];
            if entry.state() == State::Nodes {
                entry.used = self.geometry.pages_per_block as u16;
                entry.is_suspect = MAYBE_TORN;
            }
        }
        self.group = Group { number: self.group.number, ..Group::CLOSED };
        if let Some(block) = newest.block
            && self.blocks[block].state() == State::Nodes
        {
            self.merge(block, None)?;
        }
        self.finish_merges()?;
        self.empty_failing()
    }

    /// Empties the old block of each merge that a cut stopped: blocks with the same place in the same group. Nothing would
    /// be wrong without, but for one thing: if it was recovery that was stopped, what it was copying out may be unstable.
    fn finish_merges(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            if self.blocks[block].state() != State::Nodes {
                continue;
            }
            let age = self.newest_in(block);
            let is_old = self.blocks.addresses().any(|other| {
                let (entry, this) = (&self.blocks[other], &self.blocks[block]);
                let is_twin = entry.group == this.group && entry.position == this.position;
                other != block && entry.state() == State::Nodes && is_twin && self.newest_in(other) > age
            });
            if is_old {
                self.evacuate(block)?;
            }
        }
        Ok(())
    }

    /// Highest sequence of a block's nodes.
    fn newest_in(&self, block: BlockAddr) -> u64 {
        let mut at = self.blocks[block].first;
        let mut newest = 0;
        while at != NONE {
            newest = newest.max(self.nodes[at].sequence);
            at = self.nodes[at].next;
        }
        newest
    }
}
