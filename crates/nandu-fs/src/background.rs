//! Background work of a file system with policies of placement, one step at a time, and what the policies are told of requests.

use nandu_index::Edit;
use nandu_log::{Budget, Candidate, OpenBlock};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand};
use nandu_tree::{Examined, Pages};

use crate::fs::Fs;
use crate::keys::{Key, Meaning, WEAR};
use crate::place::stream_of;
use crate::placement::{Class, FullBlock, Head, Levelling, Placement, Share};
use crate::placing::{microseconds, time};
use crate::{FsError, Time};

/// Blocks whose Summaries are read for one choice of which block to empty, at most.
const TRIES: usize = 4;

/// Pages of an open block that pages moved to even out wear may share with any others, at most: one in so many of its pages.
const OPEN_SHARE: u16 = 8;

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
        self.buffer.written.is_some() || self.has_orphans || self.tree.has_unsynced()
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
    /// by step; and when changes have waited for [`PlacementOptions::write_back_us`](crate::placement::PlacementOptions::write_back_us). `None`: there is nothing to do, or no policy. See
    /// [`Fs::step`].
    pub fn step_due(&self) -> Option<Time> {
        self.placing.as_ref()?.step_due_us().map(time)
    }

    /// Does a step of background work if one is due: moves a page to two bits a cell or names some that were moved, with at most an erase
    /// or a checkpoint beside it. Returns whether it did one. Firmware without threads calls it whenever nothing else is to be done,
    /// a mount has a thread for it; how long to wait says [`Fs::step_due`].
    ///
    /// What nobody synced is made durable by a step before anything is moved, and at the latest when the first of it has waited for
    /// [`PlacementOptions::write_back_us`](crate::placement::PlacementOptions::write_back_us), 30 seconds unless the options say something else: with the first step after that, which is
    /// due as soon as no request is under way. Without calls of this function, it waits until
    /// somebody syncs it. What somebody syncs ([`Fs::sync`]) is durable when that returns, as ever.
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
        placing.policies.step_begins(now_us);
        let worked = self.work(is_write_back_due)?;
        let is_waiting = self.is_waiting_for_sync();
        if let Some(placing) = &mut self.placing {
            placing.waiting_since_us = placing.waiting_since_us.filter(|_| is_waiting);
            if !worked {
                placing.policies.nothing_to_do();
            }
        }
        Ok(worked)
    }

    fn work(&mut self, is_write_back_due: bool) -> Result<bool, FsError<N::Error>> {
        if self.is_waiting_for_sync() {
            // Nothing is moved while changes wait for a sync.
            if !is_write_back_due && !self.has_moves()? {
                return self.work_ahead();
            }
            self.flush()?;
            self.reap_some()?;
            self.tree.sync()?;
            return Ok(true);
        }
        for _ in 0..2 {
            let own_steps = self.tree.pages().log().own_steps();
            let mut budget = Budget::chosen(1);
            if let Some(examine) = self.tree.pages_mut().next_idle(&mut budget)? {
                let outcome = self.tree.examine(examine)?;
                self.tree.pages_mut().examined(examine, outcome)?;
                // What stays may be a copy that waits to be named, in a block that is to be refreshed: it moves when it is. Anything else would
                // be looked at again and again.
                return Ok(outcome != Examined::Live || self.tree.name_leaf()?);
            }
            if self.tree.pages().log().own_steps() > own_steps {
                return Ok(true);
            }
            // A block is done: what came out of it is named when there is enough, so that leaves are programmed for many.
            if self.has_copies_to_name() && self.tree.name_leaf()? {
                return Ok(true);
            }
            if !self.choose_next()? {
                break;
            }
            if self.tree.pages().log().own_steps() > own_steps {
                // A checkpoint was made for it.
                return Ok(true);
            }
        }
        Ok(self.tree.name_leaf()?)
    }

    fn has_copies_to_name(&self) -> bool {
        2 * self.tree.copy_count() > self.options.copy_count
    }

    /// Whether there are pages to move, or enough that were moved to be named; chooses a block to be emptied, if there is one.
    fn has_moves(&mut self) -> Result<bool, FsError<N::Error>> {
        Ok(self.has_copies_to_name() || self.tree.pages().log().has_chosen_work() || self.choose_next()?)
    }

    /// An erase or a checkpoint, if one is due, so that requests find erased blocks. Returns whether there was one.
    fn work_ahead(&mut self) -> Result<bool, FsError<N::Error>> {
        let own_steps = self.tree.pages().log().own_steps();
        let examine = self.tree.pages_mut().next_idle(&mut Budget::ahead(1))?;
        debug_assert!(examine.is_none(), "a page is handed out without a budget for it");
        Ok(self.tree.pages().log().own_steps() > own_steps)
    }

    /// Has a block emptied, if one is to be: says whether.
    fn choose_next(&mut self) -> Result<bool, FsError<N::Error>> {
        let Some((block, cause)) = self.choose_victim()? else { return Ok(false) };
        if cause == Cause::Levelling {
            self.tree.pages_mut().log_mut().list_most_worn()?;
        }
        self.tree.pages_mut().log_mut().empty_next(block, cause);
        Ok(true)
    }

    /// The block to empty next, and why: now and then the least worn one; one in SLC mode with cold pages, to migrate them; where blocks are few,
    /// one in MLC mode with dead pages. None where idle time has programmed its share (L18).
    fn choose_victim(&mut self) -> Result<Option<(BlockAddr, Cause)>, FsError<N::Error>> {
        let Some(placing) = &mut self.placing else { return Ok(None) };
        if self.tree.pages().log().idle_programs() == 0 {
            placing.is_to_level = false;
            return Ok(None);
        }
        let options = *placing.policies.options();
        if let Some(block) = self.choose_least_worn() {
            return Ok(Some((block, Cause::Levelling)));
        }
        let free_blocks = self.free_blocks(&options);
        if let Some(block) = self.choose_slc(free_blocks)? {
            return Ok(Some((block, Cause::Migration)));
        }
        let Some(placing) = &self.placing else { return Ok(None) };
        let ranked = self.tree.pages().log().candidates(CellMode::Mlc).filter_map(|candidate| {
            let rank = placing.policies.rank_mlc(&full_block(&candidate, 0), free_blocks)?;
            Some((rank, candidate.block))
        });
        Ok(ranked.min().map(|(_, block)| (block, Cause::Gc)))
    }

    /// The least worn block of those written long ago, if it lags so far behind the one to which its pages would go that it is made to wear,
    /// and nothing was asked for for so long that nothing comes between them.
    fn choose_least_worn(&mut self) -> Option<BlockAddr> {
        let log = self.tree.pages().log();
        let both = || log.candidates(CellMode::Slc).chain(log.candidates(CellMode::Mlc));
        let oldest = both().map(|candidate| candidate.age).max()?;
        let old = Levelling::old(oldest, log.page_count());
        let least = both().filter(|candidate| candidate.age >= old).min_by_key(|candidate| candidate.erases)?;
        let (open, destination) = (log.open_mlc_block(), log.levelling_destination());
        let placing = self.placing.as_mut()?;
        let policies = &placing.policies;
        // The first of its pages go to the block that is open: beside pages that change they would be moved again with the first of these.
        let is_fit = |open: OpenBlock| {
            let is_worn = policies.is_ahead(open.erases, least.erases);
            open.room <= open.pages / OPEN_SHARE || is_worn || open.age >= old
        };
        let is_open_fit = open.is_none_or(is_fit);
        let is_wanted = |destination| policies.is_levelling_wanted(least.erases, destination);
        placing.is_to_level = is_open_fit && destination.is_some_and(is_wanted);
        if !placing.is_to_level || placing.policies.levelling_us() > placing.now_us {
            return None;
        }
        placing.policies.levelling().begins(placing.now_us);
        Some(least.block)
    }

    /// A block in SLC mode whose pages are cold. How many of them are hot is known when its Summary has been read, so only of the few that are
    /// first without that; those that hot files were written to come last.
    fn choose_slc(&mut self, free_blocks: u32) -> Result<Option<BlockAddr>, FsError<N::Error>> {
        let mut spared = [None; TRIES];
        for try_count in 0..TRIES {
            let Some(placing) = &self.placing else { return Ok(None) };
            let log = self.tree.pages().log();
            let hot_stream = log.stream_count() - log.bare_streams() + stream_of(Head::SlcHot);
            let ranked = log.candidates(CellMode::Slc).filter_map(|candidate| {
                let is_spared = spared.contains(&Some(candidate.block));
                let guess =
                    if candidate.stream == hot_stream { u32::from(candidate.live.saturating_sub(1)) / 2 } else { 0 };
                let rank = placing.policies.rank_slc(&full_block(&candidate, guess), free_blocks);
                rank.filter(|_| !is_spared).map(|rank| (rank, candidate.block, candidate.live))
            });
            let Some((_, block, live)) = ranked.min() else { return Ok(None) };
            let share = self.hotness_of(block)?;
            let Some(placing) = &self.placing else { return Ok(None) };
            let block_seen = FullBlock {
                pages: live.into(),
                live_pages: live.into(),
                hot_pages: share.times(live.into()) as u32,
                birth: 0,
            };
            if placing.policies.rank_slc(&block_seen, free_blocks).is_some() {
                return Ok(Some(block));
            }
            spared[try_count] = Some(block);
        }
        Ok(None)
    }

    /// The share of pages in a block that belong to hot files, of those that its Summaries name. Reads them.
    fn hotness_of(&mut self, block: BlockAddr) -> Result<Share, FsError<N::Error>> {
        let page = self.tree.pages().log().geometry().first_page(block);
        let Some(placing) = &self.placing else { return Ok(Share::ZERO) };
        let (mut hot, mut all) = (0, 0);
        let policies = &placing.policies;
        self.tree.visit_owners(page, &mut |key| {
            if let Some(Meaning::Page { ino, .. }) = Meaning::of(key) {
                all += 1;
                hot += u64::from(policies.is_hot(ino));
            }
        })?;
        Ok(if all == 0 { Share::ZERO } else { Share::of(hot, all) })
    }
}

fn full_block(candidate: &Candidate, hot_pages: u32) -> FullBlock {
    FullBlock {
        pages: candidate.live_max.into(),
        live_pages: candidate.live.into(),
        hot_pages,
        birth: u64::MAX - candidate.age,
    }
}
