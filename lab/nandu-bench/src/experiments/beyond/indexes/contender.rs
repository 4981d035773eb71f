//! The indexes, each opened with as much memory.

use nandu::{Durability, FixedCells, Options, Store};
use nandu_baselines::{Bftl, BftlOptions, DurableOptions, DurableTree, TreeKind};
use nandu_index::OrderedIndex;
use nandu_inpage::{Cells, InPage, Layout, LogPages, LogRead};
use nandu_sim::{Chip, Sim};

use crate::BenchError;

/// An index of 4-byte keys and values on a simulated chip.
pub(super) trait Contender: OrderedIndex<Error: Send + Sync + 'static> {
    /// Puts a record, without reading what it replaces if the index can do that and `is_blind` says so.
    fn put_record(&mut self, key: [u8; 4], value: [u8; 4], is_blind: bool) -> Result<(), Self::Error> {
        let _ = is_blind;
        self.put(&key, &value).map(drop)
    }

    fn chip(&self) -> &Sim;

    fn chip_mut(&mut self) -> &mut Sim;

    /// Pages that are of no use to anything else.
    fn pages_used(&self) -> u64;

    /// Bytes that the index itself says it keeps; `None` if that is what it was given.
    fn memory_size(&self) -> Option<usize> {
        None
    }
}

impl Contender for Store<'_, Sim, FixedCells<4, 4>> {
    fn chip(&self) -> &Sim {
        self.nand()
    }

    fn chip_mut(&mut self) -> &mut Sim {
        self.nand_mut()
    }

    fn pages_used(&self) -> u64 {
        self.stats().live_pages.into()
    }
}

impl Contender for InPage<'_, Sim> {
    fn put_record(&mut self, key: [u8; 4], value: [u8; 4], is_blind: bool) -> Result<(), Self::Error> {
        if is_blind { self.put_blind(&key, &value) } else { self.put(&key, &value).map(drop) }
    }

    fn chip(&self) -> &Sim {
        self.nand()
    }

    fn chip_mut(&mut self) -> &mut Sim {
        self.nand_mut()
    }

    /// Blocks are filled with nodes and their logs alone.
    fn pages_used(&self) -> u64 {
        u64::from(self.size().blocks_used) * u64::from(self.nand().chip().geometry.pages_per_block)
    }
}

impl Contender for DurableTree<Sim> {
    fn chip(&self) -> &Sim {
        self.nand()
    }

    fn chip_mut(&mut self) -> &mut Sim {
        self.nand_mut()
    }

    fn pages_used(&self) -> u64 {
        self.live_pages()
    }

    fn memory_size(&self) -> Option<usize> {
        Some(DurableTree::memory_size(self))
    }
}

impl Contender for Bftl<Sim> {
    fn chip(&self) -> &Sim {
        self.nand()
    }

    fn chip_mut(&mut self) -> &mut Sim {
        self.nand_mut()
    }

    fn pages_used(&self) -> u64 {
        self.live_pages()
    }

    fn memory_size(&self) -> Option<usize> {
        Some(Bftl::memory_size(self))
    }
}

/// Which index, and how.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// nandu's mu-Tree.
    Nandu,
    /// The wandering B+-tree.
    BPlus {
        /// Changed nodes above the leaves wait in a quarter of the memory.
        has_journal: bool,
    },
    Bftl,
    Ipl,
    Grr {
        /// Puts do not read their leaf.
        is_blind: bool,
        /// Changes go to a write-ahead ring first.
        has_ring: bool,
    },
}

impl Kind {
    pub(super) const fn is_blind(self) -> bool {
        matches!(self, Kind::Grr { is_blind: true, .. })
    }
}

/// An index on a chip with so much memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) kind: Kind,
    pub(super) chip: Chip,
    /// Bytes in all.
    pub(super) memory_size: usize,
    /// Records that the index has to have room for.
    pub(super) record_count: u32,
    /// Changes between two syncs.
    pub(super) sync_every: u32,
}

/// What is done with an index while it is open.
pub(super) trait Work {
    fn run<C: Contender>(&mut self, index: &mut C) -> Result<(), BenchError>;
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Format,
    Mount,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In order, as far as the index knows an order.
    Clean,
    /// As it is.
    Abandoned,
}

impl Setup {
    /// Opens the index on a chip, works with it, and gives the chip back.
    pub(super) fn session(&self, chip: Sim, start: Start, end: End, work: &mut impl Work) -> Result<Sim, BenchError> {
        match self.kind {
            Kind::Nandu => self.nandu(chip, start, end, work),
            Kind::BPlus { has_journal } => {
                let options = self.bplus(has_journal);
                let open = if start == Start::Format { DurableTree::format } else { DurableTree::mount };
                let mut tree = open(chip, options).map_err(BenchError::structure)?;
                work.run(&mut tree)?;
                Ok(tree.into_nand())
            }
            Kind::Bftl => {
                let open = if start == Start::Format { Bftl::format } else { Bftl::mount };
                let mut tree = open(chip, self.bftl()).map_err(BenchError::structure)?;
                work.run(&mut tree)?;
                if end == End::Clean {
                    tree.sync().map_err(BenchError::structure)?;
                }
                Ok(tree.into_nand())
            }
            Kind::Ipl | Kind::Grr { .. } => self.inpage(chip, start, end, work),
        }
    }

    fn nandu(&self, chip: Sim, start: Start, end: End, work: &mut impl Work) -> Result<Sim, BenchError> {
        let options = self.nandu_options()?;
        let mut memory = crate::rig::memory(&self.chip, &options);
        let open = if start == Start::Format { Store::format_with } else { Store::open_with };
        let mut store = open(chip, FixedCells::<4, 4>, options, &mut memory)?;
        work.run(&mut store)?;
        Ok(if end == End::Clean { store.unmount()? } else { store.abandon() })
    }

    fn inpage(&self, chip: Sim, start: Start, end: End, work: &mut impl Work) -> Result<Sim, BenchError> {
        let options = self.inpage_options()?;
        let mut memory = vec![0; InPage::<Sim>::memory_required(&self.chip.geometry, &options)];
        let open = if start == Start::Format { InPage::format } else { InPage::open };
        let mut index = open(chip, options, &mut memory).map_err(BenchError::structure)?;
        work.run(&mut index)?;
        if end == End::Clean {
            return index.unmount().map_err(BenchError::structure);
        }
        Ok(index.abandon())
    }

    /// Where syncs are rare, half of the cache holds changes, of which 64 KiB are used at most.
    fn nandu_options(&self) -> Result<Options, BenchError> {
        let durability = if self.sync_every == 1 { Durability::Immediate } else { Durability::OnSync };
        let whole = crate::rig::fit(&self.chip, self.memory_size)?;
        let pending_size = if self.sync_every == 1 { 0 } else { (whole.cache_size / 2).min(usize::from(u16::MAX)) };
        let options = Options { durability, pending_size, ..Options::DEFAULT };
        options.fit::<Sim>(&self.chip.geometry, self.memory_size).ok_or(BenchError::Memory(self.memory_size))
    }

    fn bplus(&self, has_journal: bool) -> DurableOptions {
        let geometry = &self.chip.geometry;
        // As `DurableTree::memory_size` counts, with a tree of three levels.
        let tables = geometry.page_count() as usize / 8 + 4 * geometry.block_count as usize;
        let pages = self.memory_size.saturating_sub(tables) / geometry.page_size as usize;
        let journal_nodes = if has_journal { pages as u32 / 4 } else { 0 };
        let read_pages = pages.saturating_sub(journal_nodes as usize + 8);
        DurableOptions { read_pages, journal_nodes, ..DurableOptions::new(TreeKind::BPlus) }
    }

    fn bftl(&self) -> BftlOptions {
        let geometry = &self.chip.geometry;
        // As `Bftl::memory_size` counts. A node of half as many entries as a page has room for takes more of the table than there
        // are nodes in the end, and has two groups.
        let nodes = self.record_count as usize / (geometry.page_size as usize / 24 / 2);
        let tables = (8 + 2 * 14) * nodes + geometry.page_count() as usize + 4 * geometry.block_count as usize;
        let buffer_units = BftlOptions::ORIGINAL.buffer_units;
        let rest = self.memory_size.saturating_sub(tables + 24 * buffer_units);
        let read_pages = (rest / geometry.page_size as usize).saturating_sub(2);
        BftlOptions { read_pages, ..BftlOptions::ORIGINAL }
    }

    fn inpage_options(&self) -> Result<nandu_inpage::Options, BenchError> {
        let geometry = &self.chip.geometry;
        let published = match self.kind {
            // The log region of the original: 8 KiB of 128, and of it what holds something of the node is read.
            Kind::Ipl => nandu_inpage::Options {
                log_pages: LogPages::Static(4),
                log_read: LogRead::Smart,
                ..nandu_inpage::Options::IPL
            },
            _ => nandu_inpage::Options::DEFAULT,
        };
        let has_ring = matches!(self.kind, Kind::Grr { has_ring: true, .. });
        let has_sectors = geometry.order == nandu::nand::ProgramOrder::Any;
        let layout = if has_sectors { Layout::Sectors } else { Layout::Pages };
        let base = nandu_inpage::Options {
            layout,
            cells: Cells::Fixed { key: 4, value: 4 },
            log_pages_max: LOG_PAGES_MAX,
            journal_blocks: if has_ring { RING_BLOCKS } else { 0 },
            // Half-full leaves of records of 8 bytes, and a fifth more.
            node_count_max: Some(self.record_count / (geometry.page_size / 8 / 2) * 6 / 5 + 64),
            // Without the bus, so that merges seem somewhat dearer beside reads than they are.
            times: nandu_inpage::Times {
                read_ns: self.chip.timing.read_lsb_ns,
                program_ns: self.chip.timing.program_lsb_ns,
                erase_ns: self.chip.timing.erase_ns,
            },
            ..published
        };
        let with = |pages: usize| nandu_inpage::Options {
            buffer_size: pages * (geometry.page_size + base.sector_size) as usize,
            ..base
        };
        let fits = |pages: &usize| InPage::<Sim>::memory_required(geometry, &with(*pages)) <= self.memory_size;
        let pages = (4..self.memory_size / geometry.page_size as usize).take_while(fits).last();
        pages.map(with).ok_or(BenchError::Memory(self.memory_size))
    }

    /// Bytes of memory that the index is given, or says it keeps.
    pub(super) fn memory_given(&self) -> Result<usize, BenchError> {
        Ok(match self.kind {
            Kind::Nandu => Store::<Sim>::memory_required(&self.chip.geometry, &self.nandu_options()?),
            Kind::Ipl | Kind::Grr { .. } => {
                InPage::<Sim>::memory_required(&self.chip.geometry, &self.inpage_options()?)
            }
            _ => self.memory_size,
        })
    }
}

/// Blocks of the write-ahead ring.
const RING_BLOCKS: u8 = 4;

/// Most log pages of a block: what suits blocks of 64 pages of 2 KiB is more than the paper's eight.
const LOG_PAGES_MAX: u8 = 16;
