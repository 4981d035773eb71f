//! Blocks of a volume.

use nandu::fs::placement::Region;

/// Where a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Free; erased for a region, or to be erased.
    Free(Option<Region>),
    /// A head fills it.
    Open(Region),
    /// Full, or closed before it was.
    Full(Region),
    /// Its pages are being moved.
    Victim(Region),
    /// Every page of it was moved, but until the destination is complete its pages are the truth.
    Held { destination: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) state: State,
    /// Pages that a head has taken.
    pub(super) taken: u32,
    pub(super) live: u32,
    /// When it was opened, or freed if it is free, as a rising number.
    pub(super) birth: u64,
    /// How often it was filled and freed: the erases it has behind it or owes.
    pub(super) cycles: u32,
}

/// All blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) all: Vec<Block>,
    pub(super) free_count: u32,
    birth: u64,
}

impl Blocks {
    /// Blocks that were erased for SLC pages: the first pages of a new volume go there.
    pub(super) fn erased(count: u32) -> Blocks {
        let block = Block { state: State::Free(Some(Region::Slc)), taken: 0, live: 0, birth: 0, cycles: 0 };
        Blocks { all: vec![block; count as usize], free_count: count, birth: 0 }
    }

    pub(super) fn next_birth(&mut self) -> u64 {
        self.birth += 1;
        self.birth
    }

    /// Opens a free block; its pages are taken from 0 on.
    pub(super) fn open(&mut self, block: u32, region: Region) {
        let birth = self.next_birth();
        let state = &mut self.all[block as usize];
        *state = Block { state: State::Open(region), taken: 0, live: 0, birth, cycles: state.cycles };
        self.free_count -= 1;
    }

    /// Frees a block that nothing refers to any more. It is erased when it is wanted.
    pub(super) fn free(&mut self, block: u32) {
        let birth = self.next_birth();
        let state = &mut self.all[block as usize];
        *state = Block { state: State::Free(None), taken: 0, live: 0, birth, cycles: state.cycles + 1 };
        self.free_count += 1;
    }

    pub(super) fn held_count(&self) -> u32 {
        self.all.iter().filter(|block| matches!(block.state, State::Held { .. })).count() as u32
    }

    /// The numbers of free blocks that are erased for one of these.
    pub(super) fn free_as(&self, erased: Option<Region>) -> impl Iterator<Item = u32> {
        let fits = move |(_, block): &(usize, &Block)| block.state == State::Free(erased);
        self.all.iter().enumerate().filter(fits).map(|(index, _)| index as u32)
    }

    /// The least worn of some blocks, of several the one freed first.
    pub(super) fn least_worn(&self, blocks: impl Iterator<Item = u32>) -> Option<u32> {
        blocks.min_by_key(|&block| (self.all[block as usize].cycles, self.all[block as usize].birth))
    }
}
