//! The pages of a chip in the order in which they are programmed, and where the next one goes.

use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, NandError, NandErrorKind, PageAddr};

use super::BftlOptions;
use super::page::{HEADER_SIZE, Header, Kind};
use super::table::{Place, Table};
use super::unit::{Group, UNIT_SIZE, decode, encode};
use crate::BaselineError;
use crate::options::Stats;
use crate::pager::Recent;
use crate::pages::Result;

/// How often a read or an erase is tried that ends without an answer, and a program that fails.
const TRIES_MAX: u32 = 4;

/// Blank blocks that commits leave: three for mounts that are cut one after the other, one for the collector, one for a
/// program that fails.
pub(super) const RESERVE_BLOCKS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Holds nothing that is needed. Erased before its first page is programmed, unless that was done in this mount.
    Blank { is_erased: bool },
    /// Being filled.
    Open,
    /// Full, or not to be filled further.
    Closed,
    /// A program failed in it: to be emptied and marked.
    Failing,
    /// Not to be used.
    Bad,
}

/// Which commits are void: they were cut, and their pages may still be on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Void {
    pub(super) from: u64,
    pub(super) count: u32,
}

impl Void {
    pub(super) fn contains(&self, commit: u64) -> bool {
        commit >= self.from && commit - self.from < u64::from(self.count)
    }
}

/// The chip with its translation table.
#[derive(Debug)]
pub(super) struct Store<N: Nand> {
    pub(super) nand: N,
    pub(super) options: BftlOptions,
    pub(super) geometry: Geometry,
    /// Places in a block of the pages that are used: all, or those that no later program can harm.
    pub(super) indices: Vec<u32>,
    pub(super) states: Vec<State>,
    open: Option<(BlockAddr, u32)>,
    pub(super) table: Table,
    pub(super) next_commit: u64,
    pub(super) next_sequence: u64,
    /// Records as of the newest commit.
    pub(super) records: u64,
    pub(super) void: Void,
    /// Holds the newest settle page, and is left alone by the collector.
    pub(super) pinned: Option<BlockAddr>,
    /// Blocks with pages of the newest commit, which no other page calls complete yet.
    pub(super) newest: Vec<BlockAddr>,
    /// Blocks with torn pages and pages of void commits, which are cleaned before the next commit.
    pub(super) suspects: Vec<BlockAddr>,
    pub(super) stats: Stats,
    pub(super) recent: Recent,
}

impl<N: Nand> Store<N> {
    pub(super) fn new(mut nand: N, options: BftlOptions) -> Result<Store<N>, N::Error> {
        let geometry = *nand.geometry();
        if geometry.validate().is_err() {
            return Err(BaselineError::Unsuitable { what: "the chip describes itself as no chip can be" });
        }
        let used =
            (0..geometry.pages_in_mode(CellMode::Slc)).filter_map(|nth| geometry.nth_in_mode(CellMode::Slc, nth));
        let indices: Vec<u32> = used.collect();
        if indices.len() < 4 || options.buffer_units == 0 || !(1..=255).contains(&options.list_bound) {
            return Err(BaselineError::Unsuitable { what: "blocks of four pages, a unit and a group are the least" });
        }
        let mut states = vec![State::Blank { is_erased: false }; geometry.block_count as usize];
        for block in 0..geometry.block_count {
            if is_bad(&mut nand, BlockAddr(block))? {
                states[block as usize] = State::Bad;
            }
        }
        if states.iter().filter(|state| **state != State::Bad).count() < RESERVE_BLOCKS as usize + 4 {
            return Err(BaselineError::Worn);
        }
        let read_pages = options.read_pages;
        Ok(Store {
            nand,
            options,
            geometry,
            indices,
            states,
            open: None,
            table: Table::new(geometry.page_count()),
            next_commit: 1,
            next_sequence: 1,
            records: 0,
            void: Void::default(),
            pinned: None,
            newest: Vec::new(),
            suspects: Vec::new(),
            stats: Stats::default(),
            recent: Recent::new(read_pages),
        })
    }

    pub(super) fn units_per_page(&self) -> usize {
        ((self.geometry.page_size as usize - HEADER_SIZE) / UNIT_SIZE).min(usize::from(u16::MAX))
    }

    pub(super) fn pages_per_block(&self) -> u32 {
        self.indices.len() as u32
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockAddr> + use<N> {
        (0..self.geometry.block_count).map(BlockAddr)
    }

    pub(super) fn state(&self, block: BlockAddr) -> State {
        self.states[block.0 as usize]
    }

    pub(super) fn set_state(&mut self, block: BlockAddr, state: State) {
        self.states[block.0 as usize] = state;
    }

    /// The pages of a block that are used, in the order of their programming.
    pub(super) fn pages_of(&self, block: BlockAddr) -> Vec<PageAddr> {
        self.indices.iter().map(|&index| self.geometry.page_at(block, index)).collect()
    }

    pub(super) fn blank_count(&self) -> u32 {
        self.states.iter().filter(|state| matches!(state, State::Blank { .. })).count() as u32
    }

    /// Pages that a commit can have without touching the reserve.
    pub(super) fn room(&self) -> u32 {
        let rest = self.open.map_or(0, |(_, nth)| self.pages_per_block() - nth);
        rest + self.blank_count().saturating_sub(RESERVE_BLOCKS) * self.pages_per_block()
    }

    /// Reads a page; none if its bits cannot be corrected.
    pub(super) fn read(&mut self, page: PageAddr) -> Result<Option<&[u8]>, N::Error> {
        let at = match self.recent.find(page) {
            Some(at) => at,
            None => {
                let buffer = self.recent.make_room(self.geometry.page_size as usize);
                let mut tries = 0;
                loop {
                    self.stats.reads += 1;
                    tries += 1;
                    match self.nand.read(page, 0, buffer) {
                        Ok(_) => break,
                        Err(error) if error.kind() == NandErrorKind::Bus && tries < TRIES_MAX => {}
                        Err(error) => {
                            self.recent.give_up();
                            let is_lost = error.kind() == NandErrorKind::Uncorrectable;
                            return if is_lost { Ok(None) } else { Err(BaselineError::Nand(error)) };
                        }
                    }
                }
                self.recent.keep(page)
            }
        };
        Ok(Some(self.recent.bytes(at)))
    }

    /// The groups of a page that the table names.
    pub(super) fn groups(&mut self, page: PageAddr) -> Result<Vec<Group>, N::Error> {
        let volume = self.options.volume;
        let corrupt = BaselineError::Corrupt { page, why: "it does not hold the units that it held" };
        let Some(bytes) = self.read(page)? else { return Err(corrupt) };
        let Some(header) = Header::parse(bytes, page, volume) else { return Err(corrupt) };
        decode(&bytes[HEADER_SIZE..], usize::from(header.unit_count)).ok_or(corrupt)
    }

    /// Erases a block; false if it cannot be and was marked as bad.
    pub(super) fn erase(&mut self, block: BlockAddr) -> Result<bool, N::Error> {
        let geometry = self.geometry;
        self.recent.forget(|page| geometry.block_of(page) == block);
        for _ in 0..TRIES_MAX {
            self.stats.erases += 1;
            match self.nand.erase(block, CellMode::Slc) {
                Ok(()) => {
                    self.set_state(block, State::Blank { is_erased: true });
                    return Ok(true);
                }
                Err(error) if error.kind() == NandErrorKind::Bus => {}
                Err(error) if error.kind() == NandErrorKind::EraseFailed => break,
                Err(error) => return Err(BaselineError::Nand(error)),
            }
        }
        self.retire(block)?;
        Ok(false)
    }

    /// Marks a block, in which nothing is needed, as bad.
    pub(super) fn retire(&mut self, block: BlockAddr) -> Result<(), N::Error> {
        self.set_state(block, State::Bad);
        match self.nand.mark_bad(block) {
            Err(error) if error.kind() == NandErrorKind::Gone => Err(BaselineError::Nand(error)),
            // Without a mark a later mount finds out by itself.
            _ => Ok(()),
        }
    }

    /// The page to be programmed next. A block is erased before it is filled, since after a cut it may only look erased.
    fn next_page(&mut self) -> Result<PageAddr, N::Error> {
        loop {
            if let Some((block, nth)) = self.open {
                let page = self.geometry.page_at(block, self.indices[nth as usize]);
                self.open = Some((block, nth + 1)).filter(|_| nth + 1 < self.pages_per_block());
                if self.open.is_none() {
                    self.set_state(block, State::Closed);
                }
                return Ok(page);
            }
            let is_blank = |&block: &BlockAddr| matches!(self.state(block), State::Blank { .. });
            let block = self.blocks().find(is_blank).ok_or(BaselineError::Full)?;
            if self.state(block) == (State::Blank { is_erased: true }) || self.erase(block)? {
                self.set_state(block, State::Open);
                self.open = Some((block, 0));
            }
        }
    }

    /// The block being filled is filled no further.
    fn close(&mut self, page: PageAddr, kind: NandErrorKind) {
        self.open = None;
        let is_failed = kind == NandErrorKind::ProgramFailed;
        self.set_state(self.geometry.block_of(page), if is_failed { State::Failing } else { State::Closed });
    }

    /// Programs a page of groups, elsewhere if the program fails.
    pub(super) fn program(&mut self, mut header: Header, groups: &[Group]) -> Result<PageAddr, N::Error> {
        header.unit_count = groups.iter().map(|group| group.changes.len() as u16).sum();
        let mut image = vec![0; self.geometry.page_size as usize];
        for _ in 0..TRIES_MAX {
            header.page = self.next_page()?;
            encode(groups, &mut image[HEADER_SIZE..]);
            header.seal(&mut image, self.options.volume);
            self.recent.remove(header.page);
            self.stats.programs += 1;
            match self.nand.program(header.page, 0, &image) {
                Ok(()) => return Ok(header.page),
                // The failed page may read as what was to be in it, which the next one holds too.
                Err(error) if matches!(error.kind(), NandErrorKind::ProgramFailed | NandErrorKind::Bus) => {
                    self.close(header.page, error.kind());
                }
                Err(error) => return Err(BaselineError::Nand(error)),
            }
        }
        Err(BaselineError::Worn)
    }

    /// The header of a commit's page, but for the page's own facts.
    pub(super) fn header(&self, kind: Kind) -> Header {
        let is_settle = kind == Kind::Settle;
        Header {
            commit: self.next_commit,
            complete_to: self.next_commit - 1,
            void_from: if is_settle { self.void.from } else { 0 },
            records: self.records,
            void_count: if is_settle { self.void.count } else { 0 },
            page: PageAddr(0),
            kind,
            unit_count: 0,
            index: 0,
            page_count: 1,
        }
    }

    /// Programs all pages of a commit and takes them into the table.
    ///
    /// The pages count only when the last is there. So a cut between any two of them leaves the state before, and the mount
    /// calls the commit void.
    pub(super) fn commit(&mut self, pages: &[Vec<Group>], records: u64) -> Result<(), N::Error> {
        let mut header = Header { records, page_count: pages.len() as u16, ..self.header(Kind::Data) };
        let mut placed = Vec::with_capacity(pages.len());
        for (index, groups) in pages.iter().enumerate() {
            header.index = index as u16;
            placed.push(self.program(header, groups)?);
        }
        self.next_commit += 1;
        self.records = records;
        self.newest = placed.iter().map(|&page| self.geometry.block_of(page)).collect();
        for (groups, &page) in pages.iter().zip(&placed) {
            for group in groups {
                let place = Place { sequence: group.sequence, page, units: group.changes.len() as u32 };
                self.table.add(group.node, group.level, group.ordinal == 0, place);
            }
        }
        Ok(())
    }

    /// Programs a page of copies and has the table point to it.
    pub(super) fn copy(&mut self, kind: Kind, groups: &[Group]) -> Result<(), N::Error> {
        let page = self.program(self.header(kind), groups)?;
        self.next_commit += 1;
        self.newest.clear();
        for group in groups {
            self.table.relocate(group.node, group.sequence, page);
        }
        Ok(())
    }

    /// Ends a mount or format: two settle pages in one block, the second of which shows that the first was not torn.
    pub(super) fn settle(&mut self) -> Result<(), N::Error> {
        let mut before = None;
        for _ in 0..TRIES_MAX {
            let page = self.program(self.header(Kind::Settle), &[])?;
            self.next_commit += 1;
            self.newest.clear();
            self.pinned = Some(self.geometry.block_of(page));
            if before == self.pinned {
                return Ok(());
            }
            before = self.pinned;
        }
        Err(BaselineError::Worn)
    }
}

/// Whether a block is marked, asked again if there is no answer.
fn is_bad<N: Nand>(nand: &mut N, block: BlockAddr) -> Result<bool, N::Error> {
    for _ in 1..TRIES_MAX {
        match nand.is_bad(block) {
            Err(error) if error.kind() == NandErrorKind::Bus => {}
            outcome => return outcome.map_err(BaselineError::Nand),
        }
    }
    nand.is_bad(block).map_err(BaselineError::Nand)
}
