//! Which blocks are what, which pages live, and the frontier.

use std::collections::VecDeque;

use nandu_nand::{BlockAddr, CellMode, Geometry, PageAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Holds pages of the tree, live or not.
    Data,
    /// Being filled.
    Open,
    /// Erased, and to be filled.
    Ready,
    /// Holds the beginning of the chain.
    Anchor,
    /// Holds pages of the chain.
    Chain,
    /// Not to be used, though live pages may still be in it.
    Bad,
}

/// All blocks of the chip.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) geometry: Geometry,
    /// Places in a block of the pages that are used: all, or those that no later program can harm.
    indices: Vec<u32>,
    pub(super) roles: Vec<Role>,
    live: Vec<bool>,
    live_counts: Vec<u32>,
    live_total: u64,
    /// Blocks filled since the newest superblock: a mount reads through them, so they are not erased.
    since: Vec<bool>,
    pub(super) open: Option<(BlockAddr, u32)>,
    pub(super) ready: VecDeque<BlockAddr>,
    /// Blocks with a failed page, whose live pages are to be moved.
    pub(super) evacuate: Vec<BlockAddr>,
    /// Blocks that are bad and do not carry a mark yet.
    pub(super) unmarked: Vec<BlockAddr>,
    /// Where the search for an erasable block goes on, so that all blocks wear.
    cursor: u32,
}

impl Space {
    pub(super) fn new(geometry: &Geometry) -> Space {
        let used =
            (0..geometry.pages_in_mode(CellMode::Slc)).filter_map(|nth| geometry.nth_in_mode(CellMode::Slc, nth));
        let blocks = geometry.block_count as usize;
        Space {
            geometry: *geometry,
            indices: used.collect(),
            roles: vec![Role::Data; blocks],
            live: vec![false; geometry.page_count() as usize],
            live_counts: vec![0; blocks],
            live_total: 0,
            since: vec![false; blocks],
            open: None,
            ready: VecDeque::new(),
            evacuate: Vec::new(),
            unmarked: Vec::new(),
            cursor: 0,
        }
    }

    pub(super) fn pages_per_block(&self) -> u32 {
        self.indices.len() as u32
    }

    /// The n-th used page of a block.
    pub(super) fn page(&self, block: BlockAddr, nth: u32) -> PageAddr {
        self.geometry.page_at(block, self.indices[nth as usize])
    }

    pub(super) fn role(&self, block: BlockAddr) -> Role {
        self.roles[block.0 as usize]
    }

    pub(super) fn set_role(&mut self, block: BlockAddr, role: Role) {
        self.roles[block.0 as usize] = role;
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        (0..self.geometry.block_count).map(BlockAddr)
    }

    pub(super) fn is_live(&self, page: PageAddr) -> bool {
        self.live.get(page.0 as usize).copied().unwrap_or(false)
    }

    pub(super) fn live_count(&self) -> u64 {
        self.live_total
    }

    pub(super) fn set_live(&mut self, page: PageAddr) {
        if !std::mem::replace(&mut self.live[page.0 as usize], true) {
            self.live_counts[self.geometry.block_of(page).0 as usize] += 1;
            self.live_total += 1;
        }
    }

    pub(super) fn set_dead(&mut self, page: PageAddr) {
        if std::mem::replace(&mut self.live[page.0 as usize], false) {
            self.live_counts[self.geometry.block_of(page).0 as usize] -= 1;
            self.live_total -= 1;
        }
    }

    pub(super) fn live_in(&self, block: BlockAddr) -> Vec<PageAddr> {
        (0..self.pages_per_block()).map(|nth| self.page(block, nth)).filter(|&page| self.is_live(page)).collect()
    }

    /// Pages left in the open block.
    pub(super) fn rest(&self) -> u32 {
        self.open.map_or(0, |(_, next)| self.pages_per_block() - next)
    }

    /// Pages that can be programmed without a superblock in between.
    pub(super) fn room(&self) -> u32 {
        self.rest() + self.ready.len() as u32 * self.pages_per_block()
    }

    /// The next pages of the frontier.
    pub(super) fn peek(&self, count: u32) -> Option<Vec<PageAddr>> {
        let per_block = self.pages_per_block();
        let open = self.open.into_iter().flat_map(|(block, next)| (next..per_block).map(move |nth| (block, nth)));
        let ready = self.ready.iter().flat_map(|&block| (0..per_block).map(move |nth| (block, nth)));
        let pages: Vec<PageAddr> =
            open.chain(ready).take(count as usize).map(|(block, nth)| self.page(block, nth)).collect();
        (pages.len() == count as usize).then_some(pages)
    }

    /// The frontier moves on by a page. None if there is no block to open.
    pub(super) fn advance(&mut self) -> Option<PageAddr> {
        if self.rest() == 0 {
            self.close(Role::Data);
            let block = self.ready.pop_front()?;
            self.set_role(block, Role::Open);
            self.since[block.0 as usize] = true;
            self.open = Some((block, 0));
        }
        let (block, next) = self.open?;
        self.open = Some((block, next + 1));
        Some(self.page(block, next))
    }

    /// The open block is not filled any further.
    pub(super) fn close(&mut self, role: Role) {
        if let Some((block, _)) = self.open.take() {
            self.set_role(block, role);
        }
    }

    /// A superblock to come must not call the block safe.
    pub(super) fn hold(&mut self, block: BlockAddr) {
        self.since[block.0 as usize] = true;
    }

    /// A mount reads on from here.
    pub(super) fn note_superblock(&mut self) {
        self.since.fill(false);
        if let Some((block, _)) = self.open {
            self.since[block.0 as usize] = true;
        }
    }

    /// Whether nothing on flash needs the block: it holds no live page, and no mount reads through it.
    pub(super) fn is_erasable(&self, block: BlockAddr) -> bool {
        let number = block.0 as usize;
        self.roles[number] == Role::Data && self.live_counts[number] == 0 && !self.since[number]
    }

    pub(super) fn erasable_count(&self) -> u32 {
        self.blocks().filter(|&block| self.is_erasable(block)).count() as u32
    }

    /// Whether a superblock would make a block erasable.
    pub(super) fn is_held_back(&self) -> bool {
        let held = |block: &BlockAddr| {
            let number = block.0 as usize;
            self.roles[number] == Role::Data && self.live_counts[number] == 0 && self.since[number]
        };
        self.blocks().any(|block| held(&block))
    }

    /// The next erasable block after the one found last.
    pub(super) fn next_erasable(&mut self) -> Option<BlockAddr> {
        let count = self.geometry.block_count;
        let mut candidates = (0..count).map(|step| BlockAddr((self.cursor + step) % count));
        let found = candidates.find(|&block| self.is_erasable(block))?;
        self.cursor = (found.0 + 1) % count;
        Some(found)
    }

    /// The block with the fewest live pages, among those with any.
    pub(super) fn victim(&self) -> Option<(BlockAddr, u32)> {
        let count = |block: &BlockAddr| self.live_counts[block.0 as usize];
        let with_live = self.blocks().filter(|block| self.role(*block) == Role::Data && count(block) > 0);
        with_live.min_by_key(count).map(|block| (block, count(&block)))
    }
}
