//! Where a new node goes: round robin over the blocks of a group.

use nandu_media::inpage::record::Cells;
use nandu_media::inpage::{FLAG_MOVED, FrontFields, Kind, NodeFields};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand};

use crate::arena::Frame;
use crate::blocks::State;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::nodes::NEW;
use crate::options::{GroupSize, Layout, LogPages};

/// Most blocks of a group.
pub(crate) const GROUP_MAX: usize = 16;

/// Blocks that only merges and deletes may use.
const RESERVE: u32 = 4;

/// How often a program that fails is tried elsewhere.
const ATTEMPTS: u32 = 8;

/// The blocks that are filled together. Blocks are taken when they are needed first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) number: u32,
    pub(crate) size: u8,
    /// Whose turn it is.
    pub(crate) next: u8,
    pub(crate) blocks: [Option<BlockAddr>; GROUP_MAX],
}

impl Group {
    /// No group.
    pub(crate) const CLOSED: Group = Group { number: 0, size: 0, next: 0, blocks: [None; GROUP_MAX] };
}

impl GroupSize {
    pub(crate) const fn is_possible(self) -> bool {
        let (GroupSize::Fixed(size) | GroupSize::Dynamic(size)) = self;
        size >= 1 && size as usize <= GROUP_MAX
    }
}

impl<N: Nand> InPage<'_, N> {
    /// Whether a block takes another node.
    pub(crate) fn has_node_room(&self, block: BlockAddr) -> bool {
        let entry = &self.blocks[block];
        if entry.state() != State::Nodes {
            return false;
        }
        let pages = self.geometry.pages_per_block;
        let granted = u32::from(self.log_pages_granted(block));
        let kept = match self.options.layout {
            Layout::Sectors => granted.max(u32::from(self.log_pages_used(block))),
            Layout::Pages => granted.saturating_sub(u32::from(entry.logs)),
        };
        u32::from(entry.used) + kept + self.node_pages() <= pages
    }

    /// Whether a block takes another log sector, or log page.
    pub(crate) fn has_log_room(&self, block: BlockAddr) -> bool {
        let entry = &self.blocks[block];
        if entry.state() != State::Nodes {
            return false;
        }
        let limit = match self.options.log_pages {
            LogPages::Static(_) => self.log_pages_granted(block),
            _ => self.log_pages_limit(),
        };
        let pages = self.geometry.pages_per_block;
        match self.options.layout {
            Layout::Sectors => {
                let needed = (u32::from(entry.logs) + 1).div_ceil(self.sectors_per_page());
                needed <= u32::from(limit) && u32::from(entry.used) + needed <= pages
            }
            Layout::Pages => entry.logs < limit && u32::from(entry.used) < pages,
        }
    }

    /// Takes the least worn free block, erased, for nodes.
    ///
    /// A block that was not erased since the index was opened is erased now, whatever it looks like: a cut erase leaves
    /// blocks that look erased and are not.
    pub(crate) fn take_block(&mut self, group: u32, position: u8, granted: u8) -> Result<BlockAddr, N> {
        let block = self.take_erased(State::Nodes)?;
        let entry = &mut self.blocks[block];
        entry.group = group;
        entry.position = position;
        entry.granted = granted;
        Ok(block)
    }

    /// Takes the least worn free block, erased; for what is moved because it does not change, the most worn.
    pub(crate) fn take_erased(&mut self, state: State) -> Result<BlockAddr, N> {
        while let Some(block) = if self.is_levelling { self.blocks.most_worn() } else { self.blocks.least_worn() } {
            if self.blocks[block].state() == State::Unknown && !self.erase(block)? {
                continue;
            }
            self.blocks[block].clear();
            self.blocks.set_state(block, state);
            return Ok(block);
        }
        Err(Error::Full)
    }

    /// The block for the next new node.
    fn place(&mut self) -> Result<BlockAddr, N> {
        for _ in 0..2 {
            for step in 0..self.group.size {
                let turn = (self.group.next + step) % self.group.size;
                let block = match self.group.blocks[usize::from(turn)] {
                    Some(block) => block,
                    None => {
                        let block = self.take_block(self.group.number, turn, self.options.log_pages.first())?;
                        self.group.blocks[usize::from(turn)] = Some(block);
                        block
                    }
                };
                if self.has_node_room(block) {
                    self.group.next = (turn + 1) % self.group.size;
                    return Ok(block);
                }
            }
            self.group =
                Group { number: self.group.number + 1, size: self.group_size(), next: 0, blocks: [None; GROUP_MAX] };
        }
        Err(Error::Full)
    }

    /// How many blocks the next group has.
    ///
    /// The largest power of two that is not above a quarter of the blocks in use times the share of writes and a half.
    fn group_size(&self) -> u8 {
        match self.options.group {
            GroupSize::Fixed(size) => size,
            GroupSize::Dynamic(most) => {
                let used = u64::from(self.blocks.count(State::Nodes));
                let wanted = (used * ((1 << 19) + u64::from(self.write_share)) / 4) >> 20;
                let wanted = wanted.clamp(2.min(u64::from(most)), u64::from(most));
                1 << wanted.ilog2()
            }
        }
    }

    /// Forgets that a block belongs to the open group, or that another took its place.
    pub(crate) fn replace_in_group(&mut self, old: BlockAddr, new: Option<BlockAddr>) {
        for place in &mut self.group.blocks {
            if *place == Some(old) {
                *place = new;
            }
        }
    }

    /// Programs a node from a frame into a block; `false` if the program failed. From here on the page is the node's
    /// current version.
    pub(crate) fn program_node(&mut self, frame: Frame, index: u32, block: BlockAddr, flags: u8) -> Result<bool, N> {
        let place = self.blocks[block].used;
        let page = self.page_of(block, place);
        // A sequence more before the program, not after: if the power goes in between, a number is skipped, which is
        // harmless; the other order could give two programs one number.
        let sequence = self.next_sequence();
        let entry = self.blocks[block];
        let capacity = self.node_capacity();
        let bytes = self.buffer.arena.frame_mut(frame);
        let size = crate::node::Node::new(bytes, Cells::Bytes).size() as u32;
        if size > capacity {
            // Only records that no index wrote make a node as large as that.
            return Err(Error::Corrupt { page, why: Malformed::Range(Field::Size) });
        }
        if let Ok(fields) = NodeFields::parse(bytes) {
            let flags = fields.flags & !FLAG_MOVED | flags;
            let (group, position, log_pages) = (entry.group, entry.position, entry.granted);
            NodeFields { flags, group, position, log_pages, ..fields }.write(bytes);
        }
        let (volume, erase_count) = (self.volume, entry.erase_count);
        let front = FrontFields { kind: Kind::Node, sequence, page: page.0, volume, erase_count, size };
        self.blocks[block].used += u16::from(self.options.node_pages);
        if !self.program_parts(front, frame)? {
            self.note_failing(block);
            return Ok(false);
        }
        self.blocks.detach(&mut self.nodes, index);
        let node = &mut self.nodes[index];
        self.unwritten -= u32::from(node.has(NEW));
        node.set(NEW, false);
        node.set_block(Some(block));
        node.page = place;
        node.sequence = sequence;
        node.logs = 0;
        node.sectors = 0;
        node.size = size;
        node.raw = size;
        self.blocks.attach(&mut self.nodes, index);
        Ok(true)
    }

    /// Programs a node where it is its turn. Costs a program for each of its pages.
    pub(crate) fn write_node(&mut self, frame: Frame, index: u32) -> Result<(), N> {
        for _ in 0..ATTEMPTS {
            let block = self.place()?;
            if self.program_node(frame, index, block, 0)? {
                self.stats.node_programs += 1;
                return Ok(());
            }
            self.replace_in_group(block, None);
        }
        Err(Error::ReadOnly)
    }

    /// Nodes that fit the open group and the blocks that are free beyond the reserve.
    fn places_left(&self) -> u32 {
        let per_block = self.nodes_beside(self.options.log_pages.first());
        let used = |block: BlockAddr| u32::from(self.blocks[block].used).div_ceil(self.node_pages());
        let open: u32 = (self.group.blocks.iter().flatten())
            .filter(|&&block| self.has_node_room(block))
            .map(|&block| per_block.saturating_sub(used(block)))
            .sum();
        open + self.blocks.free().saturating_sub(RESERVE + self.journal_reserve()) * per_block
    }

    /// Has room for what a change may need: nodes that wait to be programmed, and a split on each level. Empties blocks
    /// that hold few nodes if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: nothing was changed.
    pub(crate) fn make_places(&mut self) -> Result<(), N> {
        self.make_places_and(0)
    }

    /// The same for a batch, of so many changes beside the first and so many bytes. Each may split a leaf, and every leaf that is
    /// split may split a node above; but a node that is there is split once, and a new one not before it is filled by half.
    pub(crate) fn make_places_for(&mut self, changes: u32, size: usize) -> Result<(), N> {
        let filled = 4 * size as u32 / self.node_limit() + 1;
        self.make_places_and((2 * changes).min(self.nodes.count() + filled))
    }

    fn make_places_and(&mut self, more: u32) -> Result<(), N> {
        let height = self.nodes.find(crate::nodes::ROOT).map_or(1, |root| u32::from(self.nodes[root].level) + 1);
        let needed = self.unwritten + height + 3 + more;
        if self.nodes.room() < height + 3 + more {
            return Err(Error::Full);
        }
        // Each block that is emptied makes room for more nodes than it held, so this ends.
        while self.places_left() < needed {
            self.evacuate_one()?;
        }
        // What is in the journal has to find blocks again after a cut.
        if self.has_journal() && self.blocks.free() < RESERVE { Err(Error::Full) } else { Ok(()) }
    }
}
