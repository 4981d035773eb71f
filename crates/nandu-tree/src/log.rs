//! The log as the medium of a tree.

use core::fmt;

use nandu_log::{Append, Budget, Growth, Log, LogError, LogOptions, PageKind, TAG_OWNER_SIZE};
use nandu_media::features::{BLOBS, FILES, MLC, TAGS};
use nandu_nand::{Cause, Nand, PageAddr};

use crate::memory::Options;
use crate::pages::{Counted, Examine, Examined, Found, Need, Pages, Placement, SummaryRead};

/// Pages of a [`Log`] for one tree, and the collector's work between two operations of it.
pub struct OnLog<'m, N: Nand> {
    log: Log<'m, N>,
    /// What the operation that is being prepared still pays for the collector.
    budget: Option<Budget>,
    /// Whether the operation that is being prepared was given erases and checkpoints alone last.
    tried_steps: bool,
    /// Pages examined for it.
    examinations: u64,
    /// The log's own steps before it.
    steps_before: u64,
    /// The page that the log asked about.
    examining: Option<nandu_log::Examine>,
    /// Whether there are large values, or were.
    has_values: bool,
    /// How many snapshots there are.
    snapshots: usize,
    /// Pages of the newest tree that these reach, at most.
    shared: u32,
    /// Why that page cannot be read.
    why: nandu_log::Malformed,
}

impl<N: Nand> fmt::Debug for OnLog<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnLog").field("log", &self.log).finish_non_exhaustive()
    }
}

/// Examinations that are added to an operation's budget as often as the log wants more work done first.
const MORE_EXAMINATIONS: u32 = 16;

/// The log holds at least three blocks ready, one of them for recovery.
const RESERVED_BLOCKS_MAX: u32 = 2;

/// Examinations for one operation, by the pages of the chip, after which the chip is taken for full: to empty every block
/// several times over would not make room either.
const EXAMINATIONS_MAX: u64 = 4;

/// Erases and checkpoints for one page of a change that grows, while there are snapshots, or large values and no bare pages, after which the
/// chip is taken for full: a move programs a page for each tree or a leaf then, so that little is gained by wearing it. Beside bare pages files
/// would refuse names to go. In 170 random lives of stores no page took more than 10.
const STEPS_MAX: u64 = 16;

/// Share of the capacity that stays free beside what deletes need while there are snapshots.
const SHARED_HEADROOM: u32 = 16;

/// Share of the capacity that stays free where there are large values. Moving one of their pages rewrites a leaf as well, so
/// with few dead pages in each block the collector would need more room than it makes. Measured with values of one to six
/// pages on blocks of 8 pages, the worst there are: at a fifth operations begin to fail, at a quarter none does.
const VALUE_HEADROOM: u32 = 4;

/// The same where values of a page stand in bare pages, many of which move with one leaf. Measured with files of 1 to 40 pages on
/// blocks of 8 to 128 of them, on a chip that was filled, of which a fiftieth was deleted and then pages were overwritten at random: none
/// fails, with a sixteenth either, but an overwrite costs 8 to 24 programs, and 16 to 32 with a sixteenth.
const PAGE_VALUE_HEADROOM: u32 = 8;

/// The same where some of them have two bits a cell, since the log keeps a sixth of the blocks as slack there and not a twelfth. Measured
/// with 64 and 200 blocks of the paper's chip that were filled with files of one page and of 200, of which a hundredth was deleted, and pages
/// overwritten at random and synced one by one: none fails, with nothing kept either. An overwrite costs 6.4 and 8.6 programs with small files,
/// 5.7 and 8.5 with large ones; with an eighth 6.4, 7.0, 4.8 and 6.6, with nothing 8.3, 11.7, 6.7 and 11.8.
const PAIRED_VALUE_HEADROOM: u32 = 16;

/// Pages that must be able to live beside page values for a tree of one leaf to take a change: the leaf, all that a change may append
/// ([`Tree::split_pages_max`](crate::Tree) and two), and one page as the smallest headroom. Without page values four are enough, which the smallest
/// blocks that anybody uses hold.
const CHANGE_MIN: u32 = 9;

impl<'m, N: Nand> OnLog<'m, N> {
    /// Refuses a log that a tree with these options cannot use: one with a stream of two bits a cell, if there is no memory for pages
    /// on their way there, and one with several of these. To be asked before the log is made or mounted.
    ///
    /// # Errors
    ///
    /// [`LogError::Unsuitable`].
    pub fn check_options(log: &LogOptions, tree: &Options) -> Result<(), LogError<N::Error>> {
        let has_memory = tree.copy_count > 0 && tree.note_count > 0;
        match log.mlc_streams {
            0 => Ok(()),
            1 if has_memory => Ok(()),
            1 => Err(LogError::Unsuitable { what: "a stream with two bits a cell without memory for copies" }),
            _ => Err(LogError::Unsuitable { what: "more than one stream with two bits a cell under a tree" }),
        }
    }

    /// Pages of this log. The log serves one tree.
    pub fn new(mut log: Log<'m, N>) -> OnLog<'m, N> {
        if FILES && log.bare_streams() > 0 {
            log.expect_changes_of(CHANGE_MIN);
        }
        OnLog {
            log,
            budget: None,
            tried_steps: false,
            examinations: 0,
            steps_before: 0,
            examining: None,
            has_values: false,
            snapshots: 0,
            shared: 0,
            why: nandu_log::Malformed::Unreadable,
        }
    }

    /// The log.
    pub fn log(&self) -> &Log<'m, N> {
        &self.log
    }

    /// The log. Pages of the tree must not be appended or superseded through it.
    pub fn log_mut(&mut self) -> &mut Log<'m, N> {
        &mut self.log
    }

    /// Gives the log back, to be unmounted.
    pub fn into_log(self) -> Log<'m, N> {
        self.log
    }

    /// The next page to examine in idle time; see [`Tree::examine`](crate::Tree::examine). `None` if there is nothing
    /// to do or the budget is used up.
    pub fn next_idle(&mut self, budget: &mut Budget) -> Result<Option<Examine>, LogError<N::Error>> {
        let next = self.log.next_work(budget)?;
        Ok(self.hand_out(next))
    }

    fn hand_out(&mut self, next: Option<nandu_log::Examine>) -> Option<Examine> {
        self.examining = next;
        next.map(|examine| Examine { page: examine.page, moves: examine.moves, may_wait: examine.may_wait })
    }

    /// Reads for the user, or for the collector.
    fn for_lookup<T>(&mut self, work: impl FnOnce(&mut Log<'m, N>) -> T) -> T {
        let cause = self.examining.map_or(Cause::Lookup, |examine| examine.cause);
        let before = self.log.nand_mut().attribute(cause);
        let outcome = work(&mut self.log);
        self.log.nand_mut().attribute(before);
        outcome
    }

    /// How a bare page is placed, and to what it is booked.
    fn place_bare(&self, placement: Placement) -> (nandu_log::Placement, Cause) {
        match (self.examining, placement) {
            (Some(examine), _) => (nandu_log::Placement::Survivor { from: examine.page }, examine.cause),
            (None, Placement::Moved { from }) => (nandu_log::Placement::Survivor { from }, Cause::Gc),
            (None, Placement::Update { supersedes: Some(of) }) => (nandu_log::Placement::Update { of }, Cause::Value),
            (None, Placement::Chosen { stream }) => {
                let first = self.log.stream_count() - self.log.bare_streams();
                (nandu_log::Placement::Stream(first.saturating_add(stream)), Cause::Value)
            }
            (None, _) => (nandu_log::Placement::New, Cause::Value),
        }
    }

    /// Whether changes that take so many pages have room, those included that stay free for the collector.
    pub fn has_capacity_for(&self, pages: u32) -> bool {
        self.log.has_capacity_for(self.with_headroom(pages, Growth::Grows))
    }

    /// The same for changes of records where page values have room no longer: of what stays free for the collector they leave this part, as a
    /// divisor.
    pub fn has_capacity_for_records(&self, pages: u32, share: u32) -> bool {
        self.log.has_capacity_for(pages.saturating_add(self.headroom() / share.max(1) / self.log.headed_weight()))
    }

    /// Page values that can still be put, without what stays free for the collector and for changes that append `reserved` pages
    /// ([`Tree::growth_pages_max`](crate::Tree::growth_pages_max)), if a leaf holds the entries of so many and what else is said of them. Costs nothing.
    pub fn page_values_available(&self, reserved: u32, per_leaf: u32) -> u32 {
        let room = u64::from(self.log.room_beside(reserved).saturating_sub(self.headroom()));
        let (per_leaf, per_block) = (u64::from(per_leaf.max(1)), u64::from(self.log.bare_pages_per_block().max(1)));
        // Each takes a page, its share of a leaf and its share of a Summary.
        let values = room * per_leaf * per_block
            / (per_leaf * per_block + per_leaf + u64::from(self.log.headed_weight()) * per_block);
        values as u32
    }

    /// Pages that stay free where there are large values.
    fn headroom(&self) -> u32 {
        // With snapshots, pages of the tree wait for the release of one as large values do.
        let is_apart = self.log.bare_streams() > 0 && self.snapshots == 0;
        let share = match is_apart {
            true if self.log.mlc_streams() > 0 => PAIRED_VALUE_HEADROOM,
            true => PAGE_VALUE_HEADROOM,
            false => VALUE_HEADROOM,
        };
        let capacity = self.log.capacity_pages();
        if self.snapshots == 0 {
            return capacity / share;
        }
        // A delete frees nothing that a snapshot keeps, and may take a page for each page that they share.
        (capacity / share).max((capacity / SHARED_HEADROOM).saturating_add(self.shared))
    }

    /// Says how many pages moving one may program: with snapshots a path for each tree, and their table. A page of a large value takes the list of the
    /// value along, and in each tree a leaf that may not fit the page of its path. Those leaves leave holes elsewhere, so that a block that is
    /// emptied yields less than it held: for that, as much again. Of 200 lives of `snapshot_costs` 8 ended on a chip on which nothing could be moved any
    /// more with only the paths, and 3 without the last half.
    fn expect_moves(&mut self) {
        let paths = self.snapshots as u32 + 1;
        let pages = if self.has_values() { 2 * (2 * paths + 2) } else { paths + 1 };
        self.log.expect_moves_of(if self.snapshots > 0 { pages } else { 1 });
    }

    /// For how many pages to ask the log, so that with large values some stay free.
    fn with_headroom(&self, pages: u32, growth: Growth) -> u32 {
        // The log takes each page that it is asked for to have a header, and with two bits a cell those take the room of two.
        let all = pages.saturating_add(self.headroom() / self.log.headed_weight());
        let is_short =
            (self.has_values() || self.snapshots > 0) && growth == Growth::Grows && !self.log.has_capacity_for(all);
        if is_short { all } else { pages }
    }

    /// Pays an instalment for so many pages, and waits until so many are reserved.
    fn prepare_for(
        &mut self,
        pages: u32,
        reserved: u32,
        live: u32,
        growth: Growth,
    ) -> Result<Option<Examine>, LogError<N::Error>> {
        self.examining = None;
        let mut budget = match self.budget.take() {
            Some(budget) => budget,
            None => {
                self.steps_before = self.log.own_steps();
                self.log.instalment(pages)
            }
        };
        loop {
            let steps = self.log.own_steps().saturating_sub(self.steps_before);
            let is_dear = self.snapshots > 0 || (self.has_values() && self.log.bare_streams() == 0);
            let wears_for_nothing = is_dear && growth == Growth::Grows && steps > STEPS_MAX;
            if wears_for_nothing || self.examinations > EXAMINATIONS_MAX * u64::from(self.log.page_count()) {
                self.examinations = 0;
                return Err(LogError::Full);
            }
            if let Some(examine) = self.log.next_work(&mut budget)? {
                self.examinations += 1;
                self.budget = Some(budget);
                return Ok(self.hand_out(Some(examine)));
            }
            if self.log.reserve_growing(reserved, self.with_headroom(live, growth), growth)? {
                self.tried_steps = false;
                self.examinations = 0;
                return Ok(None);
            }
            // Most often it is erased blocks that are missing, and nothing has to be moved for them.
            self.tried_steps = !self.tried_steps;
            budget = if self.tried_steps { Budget::steps(MORE_EXAMINATIONS) } else { Budget::room(MORE_EXAMINATIONS) };
        }
    }
}

impl<N: Nand> Pages for OnLog<'_, N> {
    type Error = LogError<N::Error>;

    fn page_size(&self) -> usize {
        self.log.page_size()
    }

    fn header_size(&self) -> usize {
        self.log.header_size()
    }

    fn page_count(&self) -> u32 {
        self.log.page_count()
    }

    fn committed(&self) -> Option<PageAddr> {
        self.log.committed()
    }

    fn read(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Found, Self::Error> {
        let info = self.for_lookup(|log| log.read(page, buf))?;
        match info.kind {
            PageKind::Tree | PageKind::Journal | PageKind::Snapshots | PageKind::Notes => {}
            PageKind::Value | PageKind::ValueIndex if BLOBS => self.note_values(),
            kind => return Err(LogError::Corrupt { page, why: nandu_log::Malformed::Kind(kind as u8) }),
        }
        Ok(Found { kind: info.kind, sequence: info.sequence })
    }

    fn append(
        &mut self,
        buf: &mut [u8],
        kind: PageKind,
        placement: Placement,
        commit: bool,
    ) -> Result<PageAddr, Self::Error> {
        let is_value = matches!(kind, PageKind::Value | PageKind::ValueIndex);
        if is_value {
            self.note_values();
        }
        let host = if is_value { Cause::Value } else { Cause::Host };
        let (placement, cause) = match (self.examining, placement) {
            (Some(examine), Placement::Passing) => (nandu_log::Placement::Passing, examine.cause),
            (None, Placement::Passing) => (nandu_log::Placement::Passing, Cause::Gc),
            // A leaf that does not fit its path's page any more is as old as what is moved.
            (Some(examine), _) => (nandu_log::Placement::Survivor { from: examine.page }, examine.cause),
            (None, Placement::Moved { from }) => (nandu_log::Placement::Survivor { from }, Cause::Gc),
            // Some syncs later a journal page is not needed any more.
            (None, _) if kind == PageKind::Journal => (nandu_log::Placement::Stream(0), host),
            (None, Placement::Update { supersedes: Some(of) }) => (nandu_log::Placement::Update { of }, host),
            (None, Placement::Update { supersedes: None }) => (nandu_log::Placement::New, host),
            (None, Placement::Split) => (nandu_log::Placement::New, Cause::Tree),
            (None, Placement::Chosen { stream }) => (nandu_log::Placement::Stream(stream), host),
        };
        self.log.append(buf, Append { kind, placement, is_commit: commit, cause })
    }

    #[inline]
    fn has_bare(&self) -> bool {
        FILES && self.log.bare_streams() > 0
    }

    fn bare_stream(&self, placement: Placement) -> u8 {
        self.log.bare_stream(self.place_bare(placement).0)
    }

    fn bare_room(&self, stream: u8) -> u32 {
        self.log.bare_room(stream).into()
    }

    fn bare_stream_of(&self, page: PageAddr) -> Option<u8> {
        self.log.bare_stream_of(page)
    }

    fn append_bare(&mut self, bytes: &[u8], placement: Placement) -> Result<PageAddr, Self::Error> {
        let (placement, cause) = self.place_bare(placement);
        self.log.append_bare(bytes, placement, cause)
    }

    fn append_tagged(
        &mut self,
        bytes: &[u8],
        owner: &[u8; TAG_OWNER_SIZE],
        placement: Placement,
    ) -> Result<PageAddr, Self::Error> {
        let (placement, cause) = self.place_bare(placement);
        self.log.append_tagged(bytes, Some(owner), placement, cause)
    }

    #[inline]
    fn can_tag(&self) -> bool {
        TAGS && self.log.can_tag()
    }

    #[inline]
    fn tail_len(&self) -> u16 {
        if TAGS { self.log.tail_len() } else { 0 }
    }

    fn append_summary(&mut self, buf: &mut [u8], stream: u8) -> Result<Option<PageAddr>, Self::Error> {
        let cause = self.examining.map_or(Cause::Tree, |examine| examine.cause);
        self.log.append_summary(buf, stream, cause)
    }

    #[inline]
    fn has_pairs(&self) -> bool {
        MLC && self.log.mlc_streams() > 0
    }

    fn exposed_max(&self) -> usize {
        self.log.exposed_max()
    }

    fn is_settled(&self, page: PageAddr) -> bool {
        self.log.is_settled(page)
    }

    fn settle(&mut self, page: PageAddr) {
        self.log.settle_copy(page);
    }

    fn rescue(&mut self) -> Result<Option<(PageAddr, PageAddr)>, Self::Error> {
        Ok(self.log.rescue()?.map(|moved| (moved.from, moved.to)))
    }

    fn is_paired(&self, stream: u8) -> bool {
        stream >= self.log.stream_count() - self.log.mlc_streams()
    }

    #[inline]
    fn promises_exposed(&self) -> bool {
        MLC && self.log.promises_exposed()
    }

    #[inline]
    fn summary_due(&self) -> Option<u8> {
        if MLC { self.log.summary_due() } else { None }
    }

    fn forget_copied(&mut self) {
        self.log.forget_copied();
    }

    fn is_lost(&self) -> bool {
        self.log.is_poisoned()
    }

    fn is_full(&self, error: &Self::Error) -> bool {
        matches!(error, LogError::Full)
    }

    fn read_bare(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<(), Self::Error> {
        self.for_lookup(|log| log.read_bare(page, 0, buf)).map(|_| ())
    }

    fn read_summary(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<SummaryRead, Self::Error> {
        match self.for_lookup(|log| log.read(page, buf)) {
            Ok(info) if info.kind == PageKind::Summary => Ok(SummaryRead::Summary),
            Err(LogError::Corrupt { why: nandu_log::Malformed::Erased, .. }) => Ok(SummaryRead::Erased),
            Ok(_) | Err(LogError::Corrupt { .. }) => Ok(SummaryRead::Unclear),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn is_bare(&self, page: PageAddr) -> bool {
        FILES && self.log.is_bare(page)
    }

    fn last_of_block(&self, page: PageAddr) -> PageAddr {
        self.log.last_page(page)
    }

    fn has_room(&mut self, pages: u32) -> Result<bool, Self::Error> {
        let pages = pages.min(RESERVED_BLOCKS_MAX * self.log.geometry().pages_per_block);
        let pages = self.with_headroom(pages, Growth::Grows);
        for _ in 0..2 {
            match self.log.reserve(pages, Growth::Grows) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(LogError::Full) => return Ok(false),
                Err(error) => return Err(error),
            }
            // Erased blocks may be all that is missing.
            let next = self.log.next_work(&mut Budget::steps(MORE_EXAMINATIONS))?;
            debug_assert!(next.is_none(), "no page is examined");
        }
        Ok(false)
    }

    fn has_capacity(&self, pages: u32, overdraws: bool) -> bool {
        let is_apart = self.has_values() || self.snapshots > 0;
        let apart = if is_apart { self.headroom() / self.log.headed_weight() } else { 0 };
        let all = pages.saturating_add(apart);
        if overdraws { self.log.has_overdraft_for(all) } else { self.log.has_capacity_for(all) }
    }

    fn note_snapshots(&mut self, count: usize, shared: u32) {
        (self.snapshots, self.shared) = (count, shared);
        self.expect_moves();
    }

    fn admit_snapshot(&mut self, count: usize, shared: u32) -> Result<(), Self::Error> {
        let before = (self.snapshots, self.shared);
        self.note_snapshots(count, shared);
        let pages = self.with_headroom(1, Growth::Grows);
        if self.log.has_capacity_for(pages) || !self.log.live_pages().1 {
            return Ok(());
        }
        self.note_snapshots(before.0, before.1);
        Err(LogError::Full)
    }

    fn live_pages(&self) -> u32 {
        self.log.live_pages().0
    }

    fn stamp(&self) -> u32 {
        self.log.sequence() as u32
    }

    #[inline]
    fn has_values(&self) -> bool {
        (BLOBS || FILES) && self.has_values
    }

    fn note_values(&mut self) {
        self.has_values = true;
        self.log.expect_named_pages();
        self.expect_moves();
    }

    fn pin(&mut self, page: PageAddr) {
        self.log.pin(page);
    }

    fn unpin_all(&mut self) {
        self.log.unpin_all();
    }

    fn counted(&self, page: PageAddr) -> Option<Counted> {
        let geometry = self.log.geometry();
        let first = geometry.contains_page(page).then(|| geometry.first_page(geometry.block_of(page)).0)?;
        let (erase_count, live) = self.log.closed(page)?;
        Some(Counted { first, pages: geometry.pages_per_block, erase_count, live })
    }

    fn block_of(&self, page: PageAddr) -> u32 {
        self.log.geometry().block_of(page).0
    }

    fn room_in_all(&self) -> u32 {
        self.log.room_in_all()
    }

    fn move_room(&self) -> u32 {
        self.log.move_room()
    }

    fn has_spare_blocks(&self) -> bool {
        self.log.has_spare_blocks()
    }

    fn prepare_value(&mut self, pages: u32) -> Result<Option<Examine>, Self::Error> {
        self.note_values();
        // Only what decides whether all of it has room is asked at once; the rest is paid page by page.
        let has_room = self.with_headroom(pages, Growth::Grows) == pages;
        let pages = if has_room { 1 } else { pages };
        self.prepare_for(1, pages, pages, Growth::Grows)
    }

    fn supersede(&mut self, page: PageAddr) {
        self.log.supersede(page);
    }

    fn doubt(&mut self) {
        self.log.doubt_counts();
    }

    fn prepare(&mut self, need: Need) -> Result<Option<Examine>, Self::Error> {
        let growth = if need.shrinks { Growth::Shrinks } else { Growth::Grows };
        // What is beyond finds its blocks by a checkpoint on the way, and if there is none the batch is undone.
        let reserved = need.pages_max.min(RESERVED_BLOCKS_MAX * self.log.geometry().pages_per_block);
        self.prepare_for(need.pages, reserved, need.live_max, growth)
    }

    fn examined(&mut self, examine: Examine, outcome: Examined) -> Result<(), Self::Error> {
        let Some(asked) = self.examining.take().filter(|asked| asked.page == examine.page) else {
            return Ok(());
        };
        let outcome = match outcome {
            Examined::Dead => nandu_log::Examined::Dead,
            Examined::Moved => nandu_log::Examined::Moved,
            Examined::Copied => nandu_log::Examined::Copied,
            Examined::Live => nandu_log::Examined::Live,
            Examined::Later => nandu_log::Examined::Later,
            Examined::Unreadable => nandu_log::Examined::Unreadable(self.why),
        };
        self.why = nandu_log::Malformed::Unreadable;
        self.log.examined(asked, outcome)
    }

    fn excuse(&mut self, page: PageAddr, error: Self::Error) -> Result<Examined, Self::Error> {
        match error {
            LogError::Corrupt { page: corrupt, why } if corrupt == page => {
                self.why = why;
                Ok(Examined::Unreadable)
            }
            LogError::Full => Ok(Examined::Live),
            error => {
                self.examining = None;
                Err(error)
            }
        }
    }
}
