//! Requests of the host, and idle time.

use std::collections::BTreeMap;

use nandu::fs::placement::{Class, Head, Placement, Reference, Region, WearUsed};
use nandu::nand::{BlockAddr, Cause, Nand, PageAddr};
use nandu_sim::Sim;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::block::{Blocks, State};
use super::mover::{Move, Step, Victim};
use super::{Choice, Done, Setup};
use crate::BenchError;

/// Erased blocks that are kept ready in idle time: so many, of which so many for MLC pages.
const READY_COUNT: usize = 8;
const READY_MLC_COUNT: usize = 2;

/// A page of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) ino: u32,
    pub(super) page: u32,
}

/// A volume of pages.
pub(crate) struct Volume<'m> {
    pub(super) sim: Sim,
    pub(super) setup: Setup,
    pub(super) placement: Placement<'m>,
    pub(super) blocks: Blocks,
    /// Whose each page is that was programmed since its block was erased.
    pub(super) owners: Vec<Owner>,
    /// Where the pages of files are.
    pub(super) files: BTreeMap<u32, Vec<Option<PageAddr>>>,
    /// The open block of each of [`Head::ALL`].
    pub(super) heads: [Option<u32>; 3],
    pub(super) victim: Option<Victim>,
    /// Pages moved into the open MLC block.
    pub(super) moved: Vec<Move>,
    /// The MLC block opened next is to be the most worn one.
    pub(super) wants_worn: bool,
    pub(super) done: Done,
    rng: ChaCha8Rng,
    buffer: Vec<u8>,
}

pub(super) const NOBODY: Owner = Owner { ino: u32::MAX, page: u32::MAX };

impl<'m> Volume<'m> {
    /// A new volume, formatted: every block is erased. Counters and the clock of the chip begin after that.
    pub(crate) fn format(setup: Setup, memory: &'m mut [Reference]) -> Result<Volume<'m>, BenchError> {
        let mut sim = Sim::with_seed(setup.chip, setup.seed);
        let geometry = setup.chip.geometry;
        sim.attribute(Cause::Format);
        for block in 0..geometry.block_count {
            sim.erase(BlockAddr(block), Region::Slc.mode())?;
        }
        sim.reset_counters();
        let now_us = sim.clock_ns() / 1000;
        let wear = setup.promise.map(|promise| (promise, WearUsed::default()));
        Ok(Volume {
            placement: Placement::new(setup.placement, wear, memory, now_us),
            blocks: Blocks::erased(geometry.block_count),
            owners: vec![NOBODY; geometry.page_count() as usize],
            files: BTreeMap::new(),
            heads: [None; 3],
            victim: None,
            moved: Vec::new(),
            wants_worn: false,
            done: Done { free_min: geometry.block_count, ..Done::default() },
            rng: ChaCha8Rng::seed_from_u64(setup.seed),
            buffer: vec![0; geometry.page_size as usize],
            sim,
            setup,
        })
    }

    /// The chip's clock, microseconds.
    pub(crate) fn now_us(&self) -> u64 {
        self.sim.clock_ns() / 1000
    }

    pub(crate) fn done(&self) -> Done {
        self.done
    }

    pub(crate) fn placement(&self) -> &Placement<'m> {
        &self.placement
    }

    pub(crate) fn sim(&self) -> &Sim {
        &self.sim
    }

    pub(crate) fn free_blocks(&self) -> u32 {
        self.blocks.free_count
    }

    /// Pages that live.
    pub(crate) fn live_pages(&self) -> u64 {
        self.blocks.all.iter().map(|block| u64::from(block.live)).sum()
    }

    /// How often each block was filled and freed.
    pub(crate) fn cycles(&self) -> impl Iterator<Item = u32> {
        self.blocks.all.iter().map(|block| block.cycles)
    }

    /// Blocks in use with pages of this region.
    pub(crate) fn blocks_of(&self, region: Region) -> u32 {
        let is_of = |block: &&super::block::Block| match block.state {
            State::Open(of) | State::Full(of) | State::Victim(of) => of == region,
            State::Held { .. } => region == Region::Slc,
            State::Free(_) => false,
        };
        self.blocks.all.iter().filter(is_of).count() as u32
    }

    /// Lets idle time pass until then: background steps are made when they are due. One that has begun is brought to its end, so it
    /// may be later when this returns.
    pub(crate) fn idle_until(&mut self, at_us: u64) -> Result<(), BenchError> {
        while self.now_us() < at_us {
            let now_us = self.now_us();
            let due_us = self.placement.step_due_us().map(|due_us| due_us.max(now_us)).filter(|&due_us| due_us < at_us);
            let Some(due_us) = due_us else {
                self.sim.advance_ns((at_us - now_us) * 1000);
                break;
            };
            self.sim.advance_ns((due_us - now_us) * 1000);
            self.background_step()?;
        }
        Ok(())
    }

    /// A request of the host to write a page of a file. It takes until the clock of the volume says.
    pub(crate) fn write(&mut self, ino: u32, page: u32, class: Class) -> Result<(), BenchError> {
        self.placement.request_begin(self.now_us());
        self.sim.advance_ns(self.setup.host_cpu_us * 1000);
        self.sim.attribute(Cause::Host);
        let head = self.placement.place(u64::from(ino), class, self.now_us(), self.blocks.free_count);
        let head = match self.setup.forced {
            None => head,
            Some(Region::Slc) => Head::SlcCold,
            Some(Region::Mlc) => Head::Mlc,
        };
        if self.head(head).is_none() {
            self.make_room()?;
            self.sim.attribute(Cause::Host);
            self.open(head)?;
        }
        let owner = Owner { ino, page };
        let address = self.program(head, owner)?;
        let block = self.block_of(address);
        self.blocks.all[block as usize].live += 1;
        let file = self.files.entry(ino).or_default();
        if file.len() <= page as usize {
            file.resize(page as usize + 1, None);
        }
        if let Some(old) = file[page as usize].replace(address) {
            self.page_dead(old);
        }
        match head.region() {
            Region::Slc => self.done.host_slc += 1,
            Region::Mlc => self.done.host_mlc += 1,
        }
        self.close_if_full(head);
        self.placement.request_end(self.now_us());
        Ok(())
    }

    /// A request of the host to read a page of a file.
    pub(crate) fn read(&mut self, ino: u32, page: u32) -> Result<(), BenchError> {
        self.placement.request_begin(self.now_us());
        self.sim.attribute(Cause::Lookup);
        if let Some(address) = self.address(Owner { ino, page }) {
            self.read_page(address)?;
        }
        self.placement.request_end(self.now_us());
        Ok(())
    }

    /// Deletes a file. What that costs on flash is the file layer's.
    pub(crate) fn delete(&mut self, ino: u32) {
        for address in self.files.remove(&ino).into_iter().flatten().flatten() {
            self.page_dead(address);
        }
        self.placement.deleted(u64::from(ino));
    }

    /// Reads every page of every file and counts again what is counted.
    pub(crate) fn verify(&mut self) -> Result<(), BenchError> {
        self.sim.attribute(Cause::Verify);
        let mut live = vec![0; self.blocks.all.len()];
        let pages: Vec<PageAddr> = self.files.values().flatten().flatten().copied().collect();
        for address in pages {
            self.read_page(address)?;
            live[self.block_of(address) as usize] += 1;
        }
        let counted: Vec<u32> = self.blocks.all.iter().map(|block| block.live).collect();
        if live != counted {
            return Err(BenchError::Other("live pages are counted wrong".to_owned()));
        }
        Ok(())
    }

    /// One step of background work: an erase ahead, or a page, or nothing to do.
    fn background_step(&mut self) -> Result<(), BenchError> {
        if self.make_ready()? {
            return Ok(());
        }
        let now_us = self.now_us();
        match self.step()? {
            Step::Page => self.placement.step_begins(now_us),
            Step::Erase => {}
            Step::Nothing if self.begin_levelling() => {}
            Step::Nothing => self.placement.nothing_to_do(),
        }
        Ok(())
    }

    /// Erases a free block ahead, if there are too few that are erased; says whether there were.
    fn make_ready(&mut self) -> Result<bool, BenchError> {
        let mlc_count = self.blocks.free_as(Some(Region::Mlc)).count();
        let slc_count = self.blocks.free_as(Some(Region::Slc)).count();
        if mlc_count + slc_count >= READY_COUNT {
            return Ok(false);
        }
        let region = if mlc_count < READY_MLC_COUNT { Region::Mlc } else { Region::Slc };
        let Some(block) = self.choose(None) else { return Ok(false) };
        self.sim.attribute(Cause::Migration);
        self.sim.erase(BlockAddr(block), region.mode())?;
        self.blocks.all[block as usize].state = State::Free(Some(region));
        Ok(true)
    }

    /// The free block to take of those erased for a region, or of those to be erased.
    fn choose(&mut self, erased: Option<Region>) -> Option<u32> {
        match self.setup.choice {
            Choice::LeastWorn => self.blocks.least_worn(self.blocks.free_as(erased)),
            Choice::Random => {
                let blocks: Vec<u32> = self.blocks.free_as(erased).collect();
                (!blocks.is_empty()).then(|| blocks[self.rng.random_range(0..blocks.len())])
            }
        }
    }

    /// Makes free blocks while there are too few: the host waits. Moving every page twice without an end to that means that so many pages
    /// live that there cannot be enough free blocks.
    fn make_room(&mut self) -> Result<(), BenchError> {
        let mut steps_left = 2 * self.owners.len();
        while self.placement.is_short(self.blocks.free_count) {
            steps_left = steps_left.checked_sub(1).ok_or_else(|| {
                let (live, free) = (self.live_pages(), self.blocks.free_count);
                BenchError::Other(format!("the volume is full: {live} pages live, and {free} blocks are free"))
            })?;
            let began_us = self.now_us();
            match self.step()? {
                Step::Nothing if self.blocks.held_count() > 0 => self.seal(),
                Step::Nothing => break,
                Step::Erase => {}
                Step::Page => {
                    self.done.urgent += 1;
                    let due_us = began_us + self.setup.placement.step_period_us;
                    if self.setup.is_urgent_paced && self.now_us() < due_us {
                        self.sim.advance_ns((due_us - self.now_us()) * 1000);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn head(&mut self, head: Head) -> &mut Option<u32> {
        match head {
            Head::SlcCold => &mut self.heads[0],
            Head::SlcHot => &mut self.heads[1],
            Head::Mlc => &mut self.heads[2],
        }
    }

    /// Opens a free block for a head: one that is erased for its region, else one that is to be erased, else one that was erased for the
    /// other region, whose mode only another erase changes.
    pub(super) fn open(&mut self, head: Head) -> Result<(), BenchError> {
        let region = head.region();
        let other = if region == Region::Slc { Region::Mlc } else { Region::Slc };
        let worn = (head == Head::Mlc && std::mem::take(&mut self.wants_worn)).then(|| self.most_worn_free()).flatten();
        let chosen = worn.or_else(|| self.choose(Some(region)));
        let chosen = chosen.or_else(|| self.choose(None)).or_else(|| self.choose(Some(other)));
        let Some(block) = chosen else { return Err(BenchError::Other("no block is free".to_owned())) };
        if self.blocks.all[block as usize].state != State::Free(Some(region)) {
            self.sim.erase(BlockAddr(block), region.mode())?;
        }
        self.blocks.open(block, region);
        let pages = self.setup.chip.geometry.pages_per_block;
        self.owners[(block * pages) as usize..][..pages as usize].fill(NOBODY);
        self.done.free_min = self.done.free_min.min(self.blocks.free_count);
        *self.head(head) = Some(block);
        Ok(())
    }

    /// Programs the next page of the open block of a head.
    pub(super) fn program(&mut self, head: Head, owner: Owner) -> Result<PageAddr, BenchError> {
        let geometry = self.setup.chip.geometry;
        let region = head.region();
        let Some(block) = *self.head(head) else { return Err(BenchError::Other("no block is open".to_owned())) };
        let state = &mut self.blocks.all[block as usize];
        let Some(index) = geometry.nth_in_mode(region.mode(), state.taken) else {
            return Err(BenchError::Other("the open block is full".to_owned()));
        };
        state.taken += 1;
        let address = geometry.page_at(BlockAddr(block), index);
        stamp(&mut self.buffer, owner);
        self.sim.program(address, 0, &self.buffer)?;
        self.owners[address.0 as usize] = owner;
        self.placement.programmed(region, 1);
        Ok(address)
    }

    /// Closes the open block of a head if it is full.
    pub(super) fn close_if_full(&mut self, head: Head) {
        let region = head.region();
        let Some(block) = *self.head(head) else { return };
        if self.blocks.all[block as usize].taken < self.setup.chip.geometry.pages_in_mode(region.mode()) {
            return;
        }
        *self.head(head) = None;
        self.blocks.all[block as usize].state = State::Full(region);
        if head == Head::Mlc {
            self.commit(block);
        }
    }

    /// Reads a page and holds it against what was written there.
    pub(super) fn read_page(&mut self, address: PageAddr) -> Result<(), BenchError> {
        let mut expected = vec![0; self.buffer.len()];
        stamp(&mut expected, self.owners[address.0 as usize]);
        // Nothing ages on this chip, so no bits are corrected.
        let _ = self.sim.read(address, 0, &mut self.buffer)?;
        if self.buffer == expected { Ok(()) } else { Err(BenchError::Wrong(address.0)) }
    }

    pub(super) fn page_dead(&mut self, address: PageAddr) {
        let block = self.block_of(address);
        self.blocks.all[block as usize].live -= 1;
    }

    pub(super) fn block_of(&self, address: PageAddr) -> u32 {
        self.setup.chip.geometry.block_of(address).0
    }

    pub(super) fn address(&self, owner: Owner) -> Option<PageAddr> {
        self.files.get(&owner.ino)?.get(owner.page as usize).copied().flatten()
    }
}

/// What stands in a page of this owner.
fn stamp(buffer: &mut [u8], owner: Owner) {
    buffer.fill(owner.page as u8);
    buffer[..4].copy_from_slice(&owner.ino.to_le_bytes());
    buffer[4..8].copy_from_slice(&owner.page.to_le_bytes());
}
