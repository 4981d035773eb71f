//! The policies of placement at work: what they are told, what they decide, and background work one step at a time.

use nandu_index::Edit;
use nandu_log::{Budget, Candidate};
use nandu_nand::{BlockAddr, CellMode, Nand};
use nandu_tree::Pages;

use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::placement::{Class, FullBlock, Head, Placement, PlacementOptions, Reference, Share, WearUsed};
use crate::{FsError, Ino, Time};

/// Blocks whose Summaries are read for one choice of which block to empty, at most.
const TRIES: usize = 4;

/// The policies, and what they need to know of the file system.
pub(crate) struct Placing<'m> {
    policies: Placement<'m>,
    /// What is promised of pages that are written.
    class: Class,
    now_us: u64,
}

fn microseconds(time: Time) -> u64 {
    let seconds = u64::try_from(time.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(u64::from(time.nanoseconds) / 1000)
}

fn time(us: u64) -> Time {
    Time { seconds: (us / 1_000_000) as i64, nanoseconds: (us % 1_000_000) as u32 * 1000 }
}

/// Which of the bare streams a head is.
fn stream_of(head: Head) -> u8 {
    match head {
        Head::SlcCold => 0,
        Head::SlcHot => 1,
        Head::Mlc => 2,
    }
}

impl<'m, N: Nand> Fs<'m, N> {
    /// Begins to place pages by policy, if the options say so and the volume has blocks of both modes.
    pub(crate) fn begin_placing(&mut self, references: &'m mut [Reference], windows: u64) {
        let log = self.tree.pages().log();
        let Some(options) = self.options.placement.filter(|_| log.mlc_streams() > 0) else { return };
        let used = WearUsed { pages: self.worn_pages(&options), windows };
        let now_us = microseconds(self.now);
        let wear = self.options.wear.map(|promise| (promise, used));
        let policies = Placement::new(options, wear, references, now_us);
        self.placing = Some(Placing { policies, class: Class::Normal, now_us });
    }

    /// What of the wear budget is used: the erases of all blocks, which the log keeps across formats.
    fn worn_pages(&self, options: &PlacementOptions) -> u64 {
        let erases = self.tree.pages().log().stats().erase_count_sum;
        erases.saturating_mul(u64::from(options.mlc_pages_per_block))
    }

    /// The windows of a promised lifetime that are over. Reads the leaf that says it, where somebody wants to know.
    pub(crate) fn wear_windows(&mut self) -> Result<u64, FsError<N::Error>> {
        if self.options.wear.is_none() || self.options.placement.is_none() {
            return Ok(0);
        }
        let bytes = self.tree.get(Key::wear().as_slice())?;
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes))
    }

    /// Free blocks as the policies count them, who are to leave as many as the collector wants before it makes operations wait.
    fn free_blocks(&self, options: &PlacementOptions) -> u32 {
        let log = self.tree.pages().log();
        (log.pool_blocks() + options.free_blocks_min).saturating_sub(log.pool_wanted())
    }

    /// A request begins, at this time; until it ends no step of background work is due. Sets the time as [`Fs::set_now`] does. Where
    /// policies place pages, every request is to be within such a pair of calls; else it makes no difference.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn request_begin(&mut self, now: Time) -> Result<(), FsError<N::Error>> {
        self.now = now;
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
        self.now = now;
        if let Some(placing) = &mut self.placing {
            placing.now_us = microseconds(now);
            placing.policies.request_end(placing.now_us);
        }
    }

    /// A window of the promised lifetime is over, which becomes durable with the next sync: a cut before that makes the promise last longer.
    fn close_wear_window(&mut self) -> Result<(), FsError<N::Error>> {
        let Some(options) = self.placing.as_ref().map(|placing| *placing.policies.options()) else { return Ok(()) };
        let pages = self.worn_pages(&options);
        let Some(placing) = &mut self.placing else { return Ok(()) };
        let Some(windows) = placing.policies.account(pages, placing.now_us) else { return Ok(()) };
        self.flush()?;
        let key = Key::wear();
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

    /// The policies, for what only the caller knows: promises of idle time.
    pub fn placement_mut(&mut self) -> Option<&mut Placement<'m>> {
        self.placing.as_mut().map(|placing| &mut placing.policies)
    }

    /// Which bare stream a page of a file goes to.
    pub(crate) fn place_page(&mut self, ino: u64) -> Option<u8> {
        let options = *self.placing.as_ref()?.policies.options();
        let free_blocks = self.free_blocks(&options);
        let placing = self.placing.as_mut()?;
        Some(stream_of(placing.policies.place(ino, placing.class, placing.now_us, free_blocks)))
    }

    pub(crate) fn forget_hotness(&mut self, ino: Ino) {
        if let Some(placing) = &mut self.placing {
            placing.policies.deleted(ino.0);
        }
    }

    /// When the next step of background work may begin, if no request comes before: a second after the last one at first, then step
    /// by step. `None`: there is nothing to do, or no policy. See [`Fs::step`].
    pub fn step_due(&self) -> Option<Time> {
        self.placing.as_ref()?.policies.step_due_us().map(time)
    }

    /// Does a step of background work if one is due: makes changes durable at first, then moves a page to two bits a cell or names some
    /// that were moved, with at most an erase or a checkpoint beside it. Returns whether it did one. Firmware without threads calls it
    /// whenever nothing else is to be done, a mount has a thread for it; how long to wait says [`Fs::step_due`].
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip.
    pub fn step(&mut self, now: Time) -> Result<bool, FsError<N::Error>> {
        self.check_writable()?;
        self.now = now;
        let now_us = microseconds(now);
        let Some(placing) = &mut self.placing else { return Ok(false) };
        placing.now_us = now_us;
        if placing.policies.step_due_us().is_none_or(|due_us| due_us > now_us) {
            return Ok(false);
        }
        placing.policies.step_begins(now_us);
        let worked = self.work()?;
        if let Some(placing) = &mut self.placing
            && !worked
        {
            placing.policies.nothing_to_do();
        }
        Ok(worked)
    }

    fn work(&mut self) -> Result<bool, FsError<N::Error>> {
        if self.buffer.written.is_some() || self.has_orphans || self.tree.has_unsynced() {
            self.flush()?;
            self.reap_some()?;
            // Nothing is moved while changes wait for a sync.
            self.tree.sync()?;
            return Ok(true);
        }
        for _ in 0..2 {
            let own_steps = self.tree.pages().log().own_steps();
            let mut budget = Budget::chosen(1);
            if let Some(examine) = self.tree.pages_mut().next_idle(&mut budget)? {
                let outcome = self.tree.examine(examine)?;
                self.tree.pages_mut().examined(examine, outcome)?;
                return Ok(true);
            }
            if self.tree.pages().log().own_steps() > own_steps {
                return Ok(true);
            }
            // A block is done: what came out of it is named when there is enough, so that leaves are programmed for many.
            if 2 * self.tree.copy_count() > self.options.copy_count && self.tree.name_leaf()? {
                return Ok(true);
            }
            let Some(block) = self.choose_victim()? else { break };
            self.tree.pages_mut().log_mut().empty_next(block);
        }
        Ok(self.tree.name_leaf()?)
    }

    /// The block to empty next: one in SLC mode with cold pages, to migrate them; where blocks are few, one in MLC mode with dead pages; now
    /// and then the least worn one.
    fn choose_victim(&mut self) -> Result<Option<BlockAddr>, FsError<N::Error>> {
        let Some(placing) = &mut self.placing else { return Ok(None) };
        let (options, now_us) = (*placing.policies.options(), placing.now_us);
        let stats = self.tree.pages().log().stats();
        if placing.policies.levelling().is_due(stats.erase_count_min, stats.erase_count_max, now_us) {
            placing.policies.levelling().begins(now_us);
            let log = self.tree.pages().log();
            let both = log.candidates(CellMode::Slc).chain(log.candidates(CellMode::Mlc));
            return Ok(both.min_by_key(|candidate| candidate.erases).map(|candidate| candidate.block));
        }
        let free_blocks = self.free_blocks(&options);
        if let Some(block) = self.choose_slc(free_blocks)? {
            return Ok(Some(block));
        }
        let Some(placing) = &self.placing else { return Ok(None) };
        let ranked = self.tree.pages().log().candidates(CellMode::Mlc).filter_map(|candidate| {
            let rank = placing.policies.rank_mlc(&full_block(&candidate, 0), free_blocks)?;
            Some((rank, candidate.block))
        });
        Ok(ranked.min().map(|(_, block)| block))
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
