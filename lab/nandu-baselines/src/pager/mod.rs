//! The pages of the paper's trees: allocation, the caches, validity in memory, the choice of victims.
//!
//! Nothing here survives a power cut. What is measured is what the paper measured.

mod blocks;
mod clean;
mod recent;
mod write;

use nandu_nand::{CellMode, Geometry, Nand, PageAddr};

use crate::BaselineError;
use crate::layout::{Image, Layout};
use crate::options::{Cache, PaperOptions, Stats};
use crate::pages::{Node, Pages, Result, Root};
use blocks::Blocks;
use clean::Clean;
pub(crate) use recent::Recent;
use write::WriteCache;

/// The pages.
#[derive(Debug)]
pub(crate) struct Pager<N: Nand> {
    nand: N,
    layout: Layout,
    options: PaperOptions,
    blocks: Blocks,
    write: WriteCache,
    recent: Recent,
    clean: Clean,
    stats: Stats,
    is_poisoned: bool,
}

/// Where a page was found.
enum Found {
    Recent(usize),
    Written(usize),
    Flushed(usize),
}

impl<N: Nand> Pager<N> {
    /// Takes a chip. What it holds is given up; blocks are erased when they are first used.
    pub(crate) fn new(mut nand: N, options: PaperOptions) -> Result<Pager<N>, N::Error> {
        let geometry = *nand.geometry();
        if geometry.validate().is_err() {
            return Err(BaselineError::Unsuitable { what: "the chip describes itself as no chip can be" });
        }
        let layout = Layout::without_header(options.kind, &geometry)?;
        // The paper's chip programs every page of its blocks and is not asked about paired ones.
        let mode = if geometry.supports(CellMode::Mlc) { CellMode::Mlc } else { CellMode::Slc };
        let blocks = Blocks::new(&mut nand, mode)?;
        if blocks.free_count() <= options.free_blocks_min {
            return Err(BaselineError::Unsuitable { what: "too few good blocks" });
        }
        let read_pages = match options.cache {
            Cache::Pages { read_pages, .. } => read_pages,
            Cache::Nodes { .. } | Cache::WholePages { .. } => 0,
        };
        let clean = match options.cache {
            Cache::Pages { .. } => Clean::new(0, None),
            Cache::Nodes { bytes } => Clean::new(bytes, None),
            Cache::WholePages { bytes } => Clean::new(bytes, Some(geometry.page_size as usize)),
        };
        Ok(Pager {
            nand,
            layout,
            options,
            blocks,
            write: WriteCache::new(options.cache.write_pages()),
            recent: Recent::new(read_pages),
            clean,
            stats: Stats::default(),
            is_poisoned: false,
        })
    }

    pub(crate) fn nand(&self) -> &N {
        &self.nand
    }

    pub(crate) fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    pub(crate) fn into_nand(self) -> N {
        self.nand
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    /// Programs what waits in the write cache.
    pub(crate) fn flush(&mut self) -> Result<(), N::Error> {
        let outcome = self.write.flush(&mut self.nand, &mut self.stats);
        self.is_poisoned |= outcome.is_err();
        outcome
    }

    /// An error if an earlier change failed half way.
    pub(crate) fn check(&self) -> Result<(), N::Error> {
        if self.is_poisoned { Err(BaselineError::Poisoned) } else { Ok(()) }
    }

    /// Whether blocks have to be freed before the next change.
    pub(crate) fn is_short(&self) -> bool {
        self.blocks.free_count() < self.options.free_blocks_min
    }

    /// Whether so many pages can be allocated.
    pub(crate) fn has_room(&self, pages: u32) -> bool {
        self.blocks.room() >= pages
    }

    /// The block with the fewest live pages. Blocks that the write cache has pages in are left out.
    pub(crate) fn victim(&self) -> Option<nandu_nand::BlockAddr> {
        let geometry = *self.geometry();
        self.blocks.victim(|block| self.write.uses(|page| geometry.block_of(page) == block))
    }

    /// The live pages of a block.
    pub(crate) fn live_in(&self, block: nandu_nand::BlockAddr) -> Vec<PageAddr> {
        self.blocks.live_in(block)
    }

    /// A block whose pages were moved is free again.
    pub(crate) fn reclaim(&mut self, block: nandu_nand::BlockAddr) {
        self.blocks.reclaim(block);
        self.stats.gc_runs += 1;
    }

    fn find(&mut self, page: PageAddr) -> Result<Found, N::Error> {
        if let Some(at) = self.recent.find(page) {
            return Ok(Found::Recent(at));
        }
        if let Some(at) = self.write.find(page) {
            return Ok(Found::Written(at));
        }
        if let Some(at) = self.write.find_flushed(page) {
            return Ok(Found::Flushed(at));
        }
        self.stats.reads += 1;
        let buffer = self.recent.make_room(self.layout.size);
        let outcome = self.nand.read(page, 0, buffer);
        if let Err(error) = outcome {
            self.recent.give_up();
            return Err(BaselineError::Nand(error));
        }
        Ok(Found::Recent(self.recent.keep(page)))
    }

    fn bytes(&self, found: &Found) -> &[u8] {
        match *found {
            Found::Recent(at) => self.recent.bytes(at),
            Found::Written(at) => self.write.bytes(at),
            Found::Flushed(at) => self.write.flushed_bytes(at),
        }
    }
}

impl<N: Nand> Pages for Pager<N> {
    type Chip = N::Error;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn allocates_early(&self) -> bool {
        self.options.alloc_before_descent
    }

    fn begin(&mut self) {
        self.recent.begin();
    }

    fn node(&mut self, page: PageAddr, level: u8, height: u8) -> Result<Node<'_>, N::Error> {
        if let Some(at) = self.clean.find(page, level) {
            return Ok(self.clean.node(at));
        }
        let found = self.find(page)?;
        let facts = self.layout.facts(self.bytes(&found));
        let Some(range) = self.layout.node(&facts, level, height) else {
            return Err(BaselineError::Corrupt { page, why: "it does not hold the level that its parent says" });
        };
        let bytes = match found {
            Found::Recent(at) => self.recent.bytes(at),
            Found::Written(at) => self.write.bytes(at),
            Found::Flushed(at) => self.write.flushed_bytes(at),
        };
        self.clean.add(page, level, height, facts.lowest, &bytes[range.clone()]);
        Ok(Node { bytes: &bytes[range], lowest: facts.lowest })
    }

    fn lowest(&mut self, page: PageAddr, height: u8) -> Result<(u8, Option<u32>), N::Error> {
        let found = self.find(page)?;
        let bytes = self.bytes(&found);
        let facts = self.layout.facts(bytes);
        let Some(range) = self.layout.node(&facts, facts.lowest.max(1), height) else {
            return Err(BaselineError::Corrupt { page, why: "it holds no node" });
        };
        Ok((facts.lowest, crate::entry::decode(&bytes[range]).next().map(|entry| entry.key)))
    }

    fn allocate(&mut self) -> Result<PageAddr, N::Error> {
        self.write.drop_flushed();
        if let Some(page) = self.write.reuse() {
            return Ok(page);
        }
        let page = self.blocks.next(&mut self.nand, &mut self.stats)?;
        self.write.add(page);
        Ok(page)
    }

    fn release(&mut self, page: PageAddr) {
        self.write.discard(page);
    }

    fn put(&mut self, page: PageAddr, image: Image) {
        self.blocks.set_live(page);
        self.write.put(page, image.bytes);
    }

    fn supersede(&mut self, page: PageAddr, level: u8, lowest: u8) {
        self.clean.remove(page, level);
        if level == lowest {
            self.blocks.set_dead(page);
            self.recent.remove(page);
            self.write.discard(page);
        }
    }

    fn end(&mut self, root: &mut Root) -> Result<(), N::Error> {
        if self.clean.is_used() {
            for (page, bytes) in self.write.pending() {
                let facts = self.layout.facts(bytes);
                for level in (facts.lowest..=facts.height).rev() {
                    if let Some(range) = self.layout.node(&facts, level, root.height).filter(|range| !range.is_empty())
                    {
                        self.clean.add(page, level, root.height, facts.lowest, &bytes[range]);
                    }
                }
            }
        }
        if self.write.is_overflowed() { self.flush() } else { Ok(()) }
    }

    fn is_live(&self, page: PageAddr) -> bool {
        self.blocks.is_live(page)
    }

    fn live_pages(&self) -> u64 {
        self.blocks.live_count()
    }

    fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }
}
