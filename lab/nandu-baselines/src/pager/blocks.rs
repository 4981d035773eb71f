//! Which blocks are free, which pages live, and the frontier.

use std::collections::VecDeque;

use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, NandError, NandErrorKind, PageAddr};

use crate::BaselineError;
use crate::options::Stats;
use crate::pages::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
    Bad,
}

/// All blocks of the chip. Validity is kept in memory, page by page: the paper's is partly on flash, at no cost it counts.
#[derive(Debug)]
pub(super) struct Blocks {
    geometry: Geometry,
    mode: CellMode,
    states: Vec<State>,
    live: Vec<bool>,
    live_counts: Vec<u32>,
    live_total: u64,
    free: VecDeque<BlockAddr>,
    /// The block being filled, and the next page in it.
    open: Option<(BlockAddr, u32)>,
}

impl Blocks {
    /// Asks of each block whether it is bad.
    pub(super) fn new<N: Nand>(nand: &mut N, mode: CellMode) -> Result<Blocks, N::Error> {
        let geometry = *nand.geometry();
        let mut states = Vec::new();
        let mut free = VecDeque::new();
        for number in 0..geometry.block_count {
            let is_bad = nand.is_bad(BlockAddr(number)).map_err(BaselineError::Nand)?;
            states.push(if is_bad { State::Bad } else { State::Free });
            if !is_bad {
                free.push_back(BlockAddr(number));
            }
        }
        Ok(Blocks {
            geometry,
            mode,
            states,
            live: vec![false; geometry.page_count() as usize],
            live_counts: vec![0; geometry.block_count as usize],
            live_total: 0,
            free,
            open: None,
        })
    }

    pub(super) fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Pages that can be allocated.
    pub(super) fn room(&self) -> u32 {
        let open = self.open.map_or(0, |(_, next)| self.geometry.pages_per_block - next);
        open + self.free_count() * self.geometry.pages_per_block
    }

    pub(super) fn is_live(&self, page: PageAddr) -> bool {
        self.live[page.0 as usize]
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

    /// The next page of the frontier. Opens and erases a block where the last one is full.
    pub(super) fn next<N: Nand>(&mut self, nand: &mut N, stats: &mut Stats) -> Result<PageAddr, N::Error> {
        loop {
            if let Some((block, next)) = &mut self.open {
                if *next < self.geometry.pages_per_block {
                    *next += 1;
                    return Ok(self.geometry.page_at(*block, *next - 1));
                }
                self.states[block.0 as usize] = State::Closed;
                self.open = None;
            }
            let block = self.free.pop_front().ok_or(BaselineError::Full)?;
            stats.erases += 1;
            match nand.erase(block, self.mode) {
                Ok(()) => {
                    self.states[block.0 as usize] = State::Open;
                    self.open = Some((block, 0));
                }
                Err(error) if error.kind() == NandErrorKind::EraseFailed => {
                    self.states[block.0 as usize] = State::Bad;
                    nand.mark_bad(block).map_err(BaselineError::Nand)?;
                }
                Err(error) => return Err(BaselineError::Nand(error)),
            }
        }
    }

    /// The block with the fewest live pages, where `is_used` does not say that it cannot be.
    pub(super) fn victim(&self, is_used: impl Fn(BlockAddr) -> bool) -> Option<BlockAddr> {
        let closed = (0..self.geometry.block_count).filter(|&number| self.states[number as usize] == State::Closed);
        closed
            .filter(|&number| !is_used(BlockAddr(number)))
            .min_by_key(|&number| self.live_counts[number as usize])
            .map(BlockAddr)
    }

    pub(super) fn live_in(&self, block: BlockAddr) -> Vec<PageAddr> {
        let pages = (0..self.geometry.pages_per_block).map(|index| self.geometry.page_at(block, index));
        pages.filter(|&page| self.is_live(page)).collect()
    }

    /// A block is free. It is erased when it is opened.
    pub(super) fn reclaim(&mut self, block: BlockAddr) {
        assert_eq!(self.live_counts[block.0 as usize], 0, "a block with live pages must not be erased");
        self.states[block.0 as usize] = State::Free;
        self.free.push_back(block);
    }
}
