//! The table of blocks: what each is used for, and how far it is filled.

use nandu_nand::BlockAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::nodes::{NONE, NodeTable};

/// Most log pages of a block.
pub(crate) const LOG_PAGES_MAX: usize = 16;

/// A cut may have hit the block.
pub(crate) const MAYBE_TORN: u8 = 1;
/// Something in the block that may have held logs decayed.
pub(crate) const DECAYED: u8 = 2;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Holds nothing that is needed; is erased before it is used.
    Unknown = 0,
    /// Erased since the index was opened.
    Erased = 1,
    /// Holds nodes.
    Nodes = 2,
    /// Is being emptied: no sector is added.
    Merging = 3,
    /// A program failed: is emptied and then retired.
    Failing = 4,
    /// Not used any more.
    Bad = 5,
    /// Holds anchors.
    Anchor = 6,
    /// Part of the write-ahead ring.
    Journal = 7,
}

impl State {
    const ALL: [State; 8] = [
        State::Unknown,
        State::Erased,
        State::Nodes,
        State::Merging,
        State::Failing,
        State::Bad,
        State::Anchor,
        State::Journal,
    ];
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct BlockEntry {
    /// Nanoseconds spent on reading its log pages since its last merge.
    pub(crate) log_read_ns: u64,
    /// Group that it belongs to.
    pub(crate) group: u32,
    /// The first of its nodes.
    pub(crate) first: u32,
    pub(crate) erase_count: u32,
    /// Nodes loaded since its last merge.
    pub(crate) loads: u32,
    /// Sectors flushed since its last merge.
    pub(crate) flushes: u32,
    /// Pages used from the front: by nodes; in whole-page layout by logs too.
    pub(crate) used: u16,
    /// Log sectors used; in whole-page layout log pages.
    pub(crate) logs: u16,
    state: u8,
    /// Place in its group.
    pub(crate) position: u8,
    /// Log pages granted.
    pub(crate) granted: u8,
    /// Whether a read of it needed so much correction that it is to be merged.
    pub(crate) is_worn: u8,
    /// Nodes that stand in it.
    pub(crate) live: u16,
    /// 0, or [`MAYBE_TORN`]: nothing is programmed into it before it is erased. While the index is opened also [`DECAYED`].
    pub(crate) is_suspect: u8,
    /// Whether the chip's mark was looked at since the index was opened, and lets the block be used.
    pub(crate) is_mark_seen: u8,
    /// In whole-page layout, where its log pages are.
    pub(crate) log_at: [u16; LOG_PAGES_MAX],
}

impl BlockEntry {
    pub(crate) fn state(&self) -> State {
        State::ALL[usize::from(self.state) % State::ALL.len()]
    }

    pub(crate) fn set_state(&mut self, state: State) {
        self.state = state as u8;
    }

    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state(), State::Unknown | State::Erased)
    }

    /// As it is after an erase.
    pub(crate) fn clear(&mut self) {
        let BlockEntry { state, erase_count, is_mark_seen, .. } = *self;
        *self = BlockEntry { state, erase_count, is_mark_seen, ..BlockEntry::BLANK };
    }

    pub(crate) const BLANK: BlockEntry = BlockEntry {
        log_read_ns: 0,
        group: 0,
        first: NONE,
        erase_count: 0,
        loads: 0,
        flushes: 0,
        used: 0,
        logs: 0,
        state: State::Unknown as u8,
        position: 0,
        granted: 0,
        is_worn: 0,
        live: 0,
        is_suspect: 0,
        is_mark_seen: 0,
        log_at: [0; LOG_PAGES_MAX],
    };
}

/// The blocks of the chip.
#[derive(Debug)]
pub(crate) struct BlockTable<'m> {
    entries: &'m mut [BlockEntry],
    /// Blocks that are free, kept as a count since each operation asks.
    free: u32,
    /// Of blocks that were erased as often, the first from this one on is taken first.
    from: u32,
}

impl core::ops::Index<BlockAddr> for BlockTable<'_> {
    type Output = BlockEntry;

    fn index(&self, block: BlockAddr) -> &BlockEntry {
        &self.entries[block.0 as usize]
    }
}

impl core::ops::IndexMut<BlockAddr> for BlockTable<'_> {
    fn index_mut(&mut self, block: BlockAddr) -> &mut BlockEntry {
        &mut self.entries[block.0 as usize]
    }
}

impl<'m> BlockTable<'m> {
    pub(crate) fn new(entries: &'m mut [BlockEntry]) -> BlockTable<'m> {
        entries.fill(BlockEntry::BLANK);
        let free = entries.len() as u32;
        BlockTable { entries, free, from: 0 }
    }

    /// Forgets what is known of all blocks.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(BlockEntry::BLANK);
        self.free = self.entries.len() as u32;
        self.from = 0;
    }

    /// Begins with another block where several were erased as often: after a cut some counts are too low, and those blocks would be
    /// taken again after each.
    pub(crate) fn spread(&mut self, from: u32) {
        self.from = from;
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        (0..self.entries.len() as u32).map(BlockAddr)
    }

    /// Blocks that are free.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    pub(crate) fn set_state(&mut self, block: BlockAddr, state: State) {
        let entry = &mut self[block];
        let was_free = entry.is_free();
        entry.set_state(state);
        let is_free = entry.is_free();
        self.free = self.free + u32::from(is_free) - u32::from(was_free);
    }

    /// The free block that was erased least often; one that is erased already, if there are several.
    pub(crate) fn least_worn(&self) -> Option<BlockAddr> {
        let free = self.addresses().filter(|&block| self[block].is_free());
        let count = self.entries.len() as u32;
        let turn = |block: BlockAddr| (block.0 + count - self.from) % count;
        free.min_by_key(|&block| (self[block].erase_count, self[block].state() == State::Unknown, turn(block)))
    }

    /// The free block that was erased most often.
    pub(crate) fn most_worn(&self) -> Option<BlockAddr> {
        self.addresses().filter(|&block| self[block].is_free()).max_by_key(|&block| self[block].erase_count)
    }

    /// Blocks in a state.
    pub(crate) fn count(&self, state: State) -> u32 {
        self.entries.iter().filter(|entry| entry.state() == state).count() as u32
    }

    /// Puts a node at the front of its block's list.
    pub(crate) fn attach(&mut self, nodes: &mut NodeTable<'_>, index: u32) {
        let Some(block) = nodes[index].block() else { return };
        nodes[index].next = self[block].first;
        self[block].first = index;
        self[block].live += 1;
    }

    /// Takes a node out of its block's list.
    pub(crate) fn detach(&mut self, nodes: &mut NodeTable<'_>, index: u32) {
        let Some(block) = nodes[index].block() else { return };
        let next = nodes[index].next;
        if self[block].first == index {
            self[block].first = next;
        } else {
            let mut at = self[block].first;
            while at != NONE && nodes[at].next != index {
                at = nodes[at].next;
            }
            if at != NONE {
                nodes[at].next = next;
            }
        }
        self[block].live -= 1;
        nodes[index].set_block(None);
        nodes[index].next = NONE;
    }
}
