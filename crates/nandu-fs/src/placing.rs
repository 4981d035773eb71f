//! The policies of placement at work: what they are told, what they decide, and background work one step at a time.

use nandu_index::Edit;
use nandu_log::{Budget, Candidate, OpenBlock};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand};
use nandu_tree::{Examined, Pages};

use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::placement::{
    Class, FullBlock, Head, Hotness, Levelling, Placement, PlacementOptions, Reference, Share, WearUsed,
};
use crate::{FsError, Ino, Options, Time};

/// Blocks whose Summaries are read for one choice of which block to empty, at most.
const TRIES: usize = 4;

/// Pages of an open block that pages moved to even out wear may share with any others, at most: one in so many of its pages.
const OPEN_SHARE: u16 = 8;

/// The policies, and what they need to know of the file system.
pub(crate) struct Placing<'m> {
    policies: Placement<'m>,
    /// What is promised of pages that are written.
    class: Class,
    now_us: u64,
    /// When the request was over that made the first of the changes that wait for a sync.
    waiting_since_us: Option<u64>,
    /// Whether a block was found that is to be moved to even out wear, when there has been idle time enough.
    is_to_level: bool,
}

impl Placing<'_> {
    fn write_back_due_us(&self) -> Option<u64> {
        let write_back_us = self.policies.options().write_back_us;
        self.waiting_since_us
            .and_then(|since_us| self.policies.late_step_due_us(since_us.saturating_add(write_back_us)))
    }

    fn levelling_due_us(&self) -> Option<u64> {
        if self.is_to_level { self.policies.late_step_due_us(self.policies.levelling_us()) } else { None }
    }

    fn step_due_us(&self) -> Option<u64> {
        let due = [self.policies.step_due_us(), self.write_back_due_us(), self.levelling_due_us()];
        due.into_iter().flatten().min()
    }

    /// Whether changes have waited long enough; those of which nobody said when a request ended have.
    fn is_write_back_due(&self) -> bool {
        self.write_back_due_us().is_none_or(|due_us| due_us <= self.now_us)
    }
}

/// Bytes of memory for policies.
pub(crate) const fn memory_size(options: &Options) -> usize {
    let reference_count = if options.placement.is_some() { Hotness::HOT_COUNT + Hotness::COLD_COUNT } else { 0 };
    size_of::<Reference>() * reference_count
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
    pub(crate) fn begin_placing(&mut self, memory: &'m mut [u8], windows: u64) {
        let (references, _) = memory.as_chunks_mut();
        let log = self.tree.pages().log();
        let Some(options) = self.options.placement.filter(|_| log.mlc_streams() > 0) else { return };
        let used = WearUsed { pages: self.worn_pages(&options), windows };
        let now_us = microseconds(self.now);
        let wear = self.options.wear.map(|promise| (promise, used));
        let policies = Placement::new(options, wear, references, now_us);
        self.placing =
            Some(Placing { policies, class: Class::Normal, now_us, waiting_since_us: None, is_to_level: false });
    }

    /// What of the wear budget is used: the erases of all blocks, which the log keeps across formats, and those that may follow before the next
    /// account although nothing is written, of all blocks that can be erased ahead. So at the end they are not beyond what was promised.
    fn worn_pages(&self, options: &PlacementOptions) -> u64 {
        let log = self.tree.pages().log();
        let erases = log.stats().erase_count_sum + u64::from(log.erased_ahead_max());
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
    /// by step; and when changes have waited for [`PlacementOptions::write_back_us`]. `None`: there is nothing to do, or no policy. See
    /// [`Fs::step`].
    pub fn step_due(&self) -> Option<Time> {
        self.placing.as_ref()?.step_due_us().map(time)
    }

    /// Does a step of background work if one is due: moves a page to two bits a cell or names some that were moved, with at most an erase
    /// or a checkpoint beside it. Returns whether it did one. Firmware without threads calls it whenever nothing else is to be done,
    /// a mount has a thread for it; how long to wait says [`Fs::step_due`].
    ///
    /// What nobody synced is made durable by a step before anything is moved, and at the latest when the first of it has waited for
    /// [`PlacementOptions::write_back_us`], 30 seconds unless the options say something else: with the first step after that, which is
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
    /// one in MLC mode with dead pages.
    fn choose_victim(&mut self) -> Result<Option<(BlockAddr, Cause)>, FsError<N::Error>> {
        let Some(placing) = &self.placing else { return Ok(None) };
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
