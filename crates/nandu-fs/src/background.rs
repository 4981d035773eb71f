//! Background work of a file system with policies of placement, one step at a time, and what the policies are told of requests.
//!
//! Pages of cold files move to two bits a cell, block by block: which block comes next is a policy, and moving its pages is the collector's work as any other. Moves are changes that wait, and
//! become durable with the next commit.

use nandu_index::Edit;
use nandu_log::Candidate;
use nandu_nand::{BlockAddr, Cause, CellMode, Nand};

use crate::fs::Fs;
use crate::keys::{Key, Meaning, WEAR};
use crate::placement::{Class, FullBlock, Placement, PlacementOptions};
use crate::placing::{microseconds, time};
use crate::{FsError, Time};

/// Blocks whose summaries are read for one choice of which block to empty, at most.
const TRIES: usize = 4;

/// How often a step looks for a page to move: it asks about sixteen, which may be dead, or of the next block.
const STEP_TRIES: usize = 16;

/// Programs of a step: a page is moved, and what names it may be, too.
const STEP_PROGRAMS: u32 = 1;

impl<'m, N: Nand> Fs<'m, N> {
    /// A request begins, at this time; until it ends no step of background work is due. Sets the time as [`Fs::set_now`] does. Where
    /// policies place pages, every request is to be within such a pair of calls; else it makes no difference.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn request_begin(&mut self, now: Time) -> Result<(), FsError<N::Error>> {
        self.set_now(now);
        let Some(placing) = &mut self.placing else { return Ok(()) };
        placing.now_us = microseconds(now);
        placing.policies.request_begin(placing.now_us);
        if placing.policies.is_account_due(placing.now_us) && self.check_writable().is_ok() {
            self.close_wear_window()?;
        }
        Ok(())
    }

    /// The request that began last is over.
    pub fn request_end(&mut self, now: Time) {
        self.set_now(now);
        let is_waiting = self.is_waiting_for_sync();
        if let Some(placing) = &mut self.placing {
            placing.now_us = microseconds(now);
            placing.policies.request_end(placing.now_us);
            placing.waiting_since_us = placing.waiting_since_us.or(Some(placing.now_us)).filter(|_| is_waiting);
        }
    }

    fn is_waiting_for_sync(&self) -> bool {
        self.buffer.written.is_some() || self.has_orphans || self.tree.is_owed()
    }

    /// A window of the promised lifetime is over, which becomes durable with the next sync: a cut before that makes the promise last longer.
    fn close_wear_window(&mut self) -> Result<(), FsError<N::Error>> {
        let Some(options) = self.placing.as_ref().map(|placing| *placing.policies.options()) else { return Ok(()) };
        let pages = self.worn_pages(&options);
        let Some(placing) = &mut self.placing else { return Ok(()) };
        let Some(windows) = placing.policies.account(pages, placing.now_us) else { return Ok(()) };
        self.flush()?;
        let key = Key::of_volume(WEAR);
        Ok(self.tree.batch(&[Edit { key: key.as_slice(), value: Some(&windows.to_le_bytes()) }])?)
    }

    /// What is promised of pages that are written from now on: [`Class::Synced`] if a sync follows each write, as for a file that
    /// was opened so. Then they are written with one bit a cell as long as there is room.
    pub fn set_class(&mut self, class: Class) {
        if let Some(placing) = &mut self.placing {
            placing.class = class;
        }
    }

    /// The policies, for looking at them. `None`: nothing is placed by policy.
    pub fn placement(&self) -> Option<&Placement<'m>> {
        self.placing.as_ref().map(|placing| &placing.policies)
    }

    /// When the next step of background work may begin, if no request comes before: a second after the last one at first, then step
    /// by step; and when changes have waited for [`PlacementOptions::write_back_us`]. `None`: there is nothing to do, or no policy. See [`Fs::step`].
    pub fn step_due(&self) -> Option<Time> {
        self.placing.as_ref()?.step_due_us().map(time)
    }

    /// Does a step of background work if one is due: moves a page to two bits a cell, or makes count what was moved, with at most an erase
    /// or a checkpoint beside it. Returns whether it did one. Firmware without threads calls it whenever nothing else is to be done,
    /// a mount has a thread for it; how long to wait says [`Fs::step_due`].
    ///
    /// What nobody synced is made durable at the latest when the first of it has waited for [`PlacementOptions::write_back_us`], 30 seconds unless the options say something else: with the first step after
    /// that, which is due as soon as no request is under way. Without calls of this function, it waits until somebody syncs it. What somebody syncs ([`Fs::sync`]) is durable when that returns, as ever.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip.
    pub fn step(&mut self, now: Time) -> Result<bool, FsError<N::Error>> {
        self.check_writable()?;
        self.set_now(now);
        let now_us = microseconds(now);
        let Some(placing) = &mut self.placing else { return Ok(false) };
        placing.now_us = now_us;
        if placing.step_due_us().is_none_or(|due_us| due_us > now_us) {
            return Ok(false);
        }
        // Before the step begins, which puts off the next one.
        let is_write_back_due = placing.is_write_back_due();
        let options = *placing.policies.options();
        placing.policies.step_begins(now_us);
        let worked = self.work(is_write_back_due, &options)?;
        let is_waiting = self.is_waiting_for_sync();
        if let Some(placing) = &mut self.placing {
            placing.waiting_since_us = placing.waiting_since_us.filter(|_| is_waiting);
            if !worked {
                placing.policies.nothing_to_do();
            }
        }
        Ok(worked)
    }

    fn work(&mut self, is_write_back_due: bool, options: &PlacementOptions) -> Result<bool, FsError<N::Error>> {
        if is_write_back_due && self.is_waiting_for_sync() {
            self.flush()?;
            self.reap_some()?;
            self.tree.sync()?;
            return Ok(true);
        }
        if self.is_unchanged() {
            return Ok(false);
        }
        for _ in 0..STEP_TRIES {
            let chosen = if self.tree.choice().is_emptying() { None } else { self.choose_victim(options)? };
            if let Some((block, cause)) = chosen {
                self.tree.choice().empty(block, cause);
            }
            let was_emptying = self.tree.choice().is_emptying();
            if self.tree.step(STEP_PROGRAMS)? {
                return Ok(true);
            }
            if !was_emptying {
                break;
            }
        }
        Ok(false)
    }

    /// The block to empty next, and why: one in SLC mode with cold pages, to migrate them; where blocks are few, one in MLC mode with dead pages.
    fn choose_victim(&mut self, options: &PlacementOptions) -> Result<Option<(BlockAddr, Cause)>, FsError<N::Error>> {
        let free_blocks = self.free_blocks(options);
        if let Some(block) = self.choose_slc(free_blocks)? {
            return Ok(Some((block, Cause::Migration)));
        }
        let Fs { tree, placing: Some(placing), .. } = self else { return Ok(None) };
        let choice = tree.choice();
        let ranked = choice.candidates(CellMode::Mlc).filter_map(|candidate| {
            let rank = placing.policies.rank_mlc(&full_block(&candidate, 0), free_blocks)?;
            Some((rank, candidate.block))
        });
        Ok(ranked.min().map(|(_, block)| (block, Cause::Gc)))
    }

    /// A block in SLC mode whose pages are cold. How many of them are hot is known when its summary has been read, so only of the few that are
    /// first without that.
    fn choose_slc(&mut self, free_blocks: u32) -> Result<Option<BlockAddr>, FsError<N::Error>> {
        let mut spared = [None; TRIES];
        for try_count in 0..TRIES {
            let Fs { tree, placing: Some(placing), .. } = self else { return Ok(None) };
            let choice = tree.choice();
            let ranked = choice.candidates(CellMode::Slc).filter_map(|candidate| {
                let is_spared = spared.contains(&Some(candidate.block));
                let rank = placing.policies.rank_slc(&full_block(&candidate, 0), free_blocks);
                rank.filter(|_| !is_spared).map(|rank| (rank, candidate.block, candidate.live))
            });
            let Some((_, block, live)) = ranked.min() else { return Ok(None) };
            let hot_pages = self.hot_pages_of(block, live.into())?;
            let Some(placing) = &self.placing else { return Ok(None) };
            let seen = FullBlock { pages: live.into(), live_pages: live.into(), hot_pages, birth: 0 };
            if placing.policies.rank_slc(&seen, free_blocks).is_some() {
                return Ok(Some(block));
            }
            spared[try_count] = Some(block);
        }
        Ok(None)
    }

    /// How many of the pages that live in a block are of hot files, about: those that its summaries name, but those that died, which were of hot files first. Reads the summaries.
    fn hot_pages_of(&mut self, block: BlockAddr, live: u32) -> Result<u32, FsError<N::Error>> {
        let Fs { tree, placing: Some(placing), .. } = self else { return Ok(0) };
        let (mut hot, mut all) = (0, 0_u32);
        tree.choice().visit_owners(block, &mut |key| {
            if let Some(Meaning::Page { ino, .. }) = Meaning::of(key) {
                all += 1;
                hot += u32::from(placing.policies.is_hot(ino));
            }
        })?;
        Ok(hot.saturating_sub(all.saturating_sub(live)))
    }
}

fn full_block(candidate: &Candidate, hot_pages: u32) -> FullBlock {
    FullBlock {
        pages: candidate.live_max.into(),
        live_pages: candidate.live.into(),
        hot_pages,
        birth: u64::MAX - u64::from(candidate.age),
    }
}
