//! Migration, garbage collection and static levelling.
//!
//! All three move the live pages of a block, one in a step, into the open MLC block. Until that block is complete the pages that were
//! moved are still read where they were, and a block from which all were moved is held: the program of an MSB page, if the
//! power is cut in it, may destroy a page that was moved before, and then the source has to be there.

use nandu::fs::placement::{FullBlock, Head, Rank, Region};
use nandu::nand::{Cause, Nand, PageAddr};

use super::block::{Block, State};
use super::volume::{NOBODY, Owner, Volume};
use super::{BenchResult, Choice};

/// A block that is being emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    block: u32,
    region: Region,
    /// The page looked at next, in the block.
    next: u32,
    /// The incomplete block into which pages of it went.
    destination: Option<u32>,
}

/// A page that was moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    owner: Owner,
    old: PageAddr,
    new: PageAddr,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It moved a page.
    Page,
    /// It made a block ready for pages, or gave one back.
    Erase,
    /// There was nothing to do.
    Nothing,
}

impl Volume<'_> {
    /// Moves one page, of the victim or of a new one.
    pub(super) fn step(&mut self) -> BenchResult<Step> {
        let victim = match self.victim {
            Some(victim) => victim,
            None => match self.pick() {
                Some(victim) => victim,
                None => return Ok(Step::Nothing),
            },
        };
        self.blocks.all[victim.block as usize].state = State::Victim(victim.region);
        let Some((owner, old)) = self.next_live(&victim) else {
            self.release(&victim);
            return Ok(Step::Erase);
        };
        self.sim.attribute(if victim.region == Region::Slc { Cause::Migration } else { Cause::Gc });
        self.victim = Some(victim);
        if self.head(Head::Mlc).is_none() {
            self.open(Head::Mlc)?;
            return Ok(Step::Erase);
        }
        let destination = *self.head(Head::Mlc);
        self.read_page(old)?;
        self.sim.advance_ns(self.setup.move_cpu_us * 1000);
        let new = self.program(Head::Mlc, owner)?;
        self.moved.push(Move { owner, old, new });
        let next = self.setup.chip.geometry.index_in_block(old) + 1;
        self.victim = Some(Victim { next, destination, ..victim });
        match victim.region {
            Region::Slc => {
                self.done.migrated += 1;
                self.done.migrated_hot += u64::from(self.placement.is_hot(u64::from(owner.ino)));
            }
            Region::Mlc => self.done.collected += 1,
        }
        self.close_if_full(Head::Mlc);
        Ok(Step::Page)
    }

    /// The destination is complete: what was moved into it is the truth now, as far as it was not written again or deleted since, and
    /// sources are free. In a file system this is where maps are written.
    pub(super) fn commit(&mut self, destination: u32) {
        for Move { owner, old, new } in std::mem::take(&mut self.moved) {
            if self.address(owner) != Some(old) {
                continue;
            }
            if let Some(place) = self.files.get_mut(&owner.ino).and_then(|file| file.get_mut(owner.page as usize)) {
                *place = Some(new);
            }
            self.page_dead(old);
            self.blocks.all[destination as usize].live += 1;
        }
        for block in 0..self.blocks.all.len() as u32 {
            if self.blocks.all[block as usize].state == (State::Held { destination }) {
                self.blocks.free(block);
            }
        }
        if let Some(victim) = &mut self.victim {
            victim.destination = victim.destination.filter(|&of| of != destination);
        }
    }

    /// Closes the open MLC block before it is full, so that blocks are no longer held for it.
    pub(super) fn seal(&mut self) {
        let Some(block) = self.head(Head::Mlc).take() else { return };
        let state = &mut self.blocks.all[block as usize];
        let wasted = u64::from(self.setup.chip.geometry.pages_per_block - state.taken);
        state.state = State::Full(Region::Mlc);
        self.placement.programmed(Region::Mlc, wasted);
        self.done.wasted += wasted;
        self.commit(block);
    }

    /// Takes the least worn full block as a victim if wear is to be evened out, and there is a free one that is more worn; says whether it did.
    pub(super) fn begin_levelling(&mut self) -> bool {
        let now_us = self.now_us();
        let full = |&block: &u32| matches!(self.blocks.all[block as usize].state, State::Full(_));
        let blocks = (0..self.blocks.all.len() as u32).filter(full);
        let (Some(block), Some(destination)) = (self.blocks.least_worn(blocks), self.most_worn_free()) else {
            return false;
        };
        let [least, destination] = [block, destination].map(|block| self.blocks.all[block as usize].cycles);
        if self.setup.choice == Choice::Random || !self.placement.levelling().is_due(least, destination, now_us) {
            return false;
        }
        let State::Full(region) = self.blocks.all[block as usize].state else { return false };
        self.placement.levelling().begins(now_us);
        self.wants_worn = true;
        self.victim = Some(Victim { block, region, next: 0, destination: None });
        true
    }

    pub(super) fn most_worn_free(&self) -> Option<u32> {
        let is_free = |block: &u32| matches!(self.blocks.all[*block as usize].state, State::Free(_));
        let free = (0..self.blocks.all.len() as u32).filter(is_free);
        free.max_by_key(|&block| self.blocks.all[block as usize].cycles)
    }

    /// The next victim: a block without live pages, else the first SLC block by rank, else the first MLC block.
    fn pick(&self) -> Option<Victim> {
        let free = self.blocks.free_count;
        let full = self.blocks.all.iter().enumerate().filter_map(|(index, block)| match block.state {
            State::Full(region) => Some((index as u32, region, block)),
            _ => None,
        });
        let mut best: [Option<(Rank, u32)>; 3] = [None; 3];
        for (index, region, block) in full {
            let known = self.known(index, region, block);
            let rank = match region {
                Region::Slc => self.placement.rank_slc(&known, free),
                Region::Mlc => self.placement.rank_mlc(&known, free),
            };
            let Some(rank) = rank else { continue };
            let place = match region {
                _ if known.live_pages == 0 => 0,
                Region::Slc => 1,
                Region::Mlc => 2,
            };
            if best[place].is_none_or(|(other, _)| rank < other) {
                best[place] = Some((rank, index));
            }
        }
        let (_, block) = best.into_iter().flatten().next()?;
        let State::Full(region) = self.blocks.all[block as usize].state else { return None };
        Some(Victim { block, region, next: 0, destination: None })
    }

    /// What the policies ask of a full block.
    fn known(&self, index: u32, region: Region, block: &Block) -> FullBlock {
        let is_counted = region == Region::Slc && block.live > 0 && self.setup.placement.policy.locality;
        let hot_pages = if is_counted {
            let pages = self.setup.chip.geometry.pages_per_block;
            let is_hot = |place: &u32| {
                let (owner, address) = (self.owners[*place as usize], PageAddr(*place));
                self.address(owner) == Some(address) && self.placement.is_hot(u64::from(owner.ino))
            };
            (index * pages..(index + 1) * pages).filter(is_hot).count() as u32
        } else {
            0
        };
        let pages = self.setup.chip.geometry.pages_in_mode(region.mode());
        FullBlock { pages, live_pages: block.live, hot_pages, birth: block.birth }
    }

    /// The next live page of a victim.
    fn next_live(&self, victim: &Victim) -> Option<(Owner, PageAddr)> {
        let pages = self.setup.chip.geometry.pages_per_block;
        let places = (victim.next..pages).map(|index| PageAddr(victim.block * pages + index));
        let owned = places.map(|address| (self.owners[address.0 as usize], address));
        owned.filter(|(owner, _)| *owner != NOBODY).find(|(owner, address)| self.address(*owner) == Some(*address))
    }

    /// A victim has no page left to move.
    fn release(&mut self, victim: &Victim) {
        self.victim = None;
        match victim.destination {
            Some(destination) => {
                self.blocks.all[victim.block as usize].state = State::Held { destination };
                self.done.held_max = self.done.held_max.max(self.blocks.held_count());
            }
            None => self.blocks.free(victim.block),
        }
    }
}
