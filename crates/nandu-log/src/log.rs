//! The log as its owner sees it.

use core::fmt;

use nandu_media::PageKind;
use nandu_nand::{BlockAddr, Cause, CellMode, Geometry, Nand, PageAddr};

use crate::choice::{BlockUse, Choice, uses};
use crate::collector::{Budget, Collector, Weight, give_up, limit, rest, spend, wait_for_commit};
use crate::dying::{DYING_MAX, Dying};
use crate::error::LogError;
use crate::format;
use crate::grant::{Claimed, Fate, Grant, Kind, PageInfo, Victim};
use crate::mount::mount;
use crate::options::LogOptions;
use crate::pairs::Exposure;
use crate::parts::{Parts, memory_required};
use crate::raw::{Owner, Rescued, Whose};
use crate::reserve::{FLOOR, OPENED_FLOOR};
use crate::room::{Claim, Room};
use crate::stats::LogStats;
use crate::step::{is_levelling_due, leave_for_less, moves_due, moves_left, pick, step};
use crate::survivors::{moves_by_commit, stream_of_copy};
use crate::tail::Tagged;
use crate::twice::commit_again;
use crate::verify::{Violation, verify};
use crate::victims::Victims;
use crate::volume::Volume;

/// Blocks that an operation may open for which there is always room, but at the end of the chip's life: one for commits, one for nodes.
const OPENED_SURE: u32 = 2;

/// Most pages between two commits. A mount goes on with sequences that are further ahead.
const UNCOMMITTED_MAX: u32 = 2048;

/// An append-only log over the blocks of a chip. See the crate's documentation.
pub struct Log<'m, N: Nand> {
    volume: Volume<'m, N>,
    dying: Dying,
    collector: Collector,
    /// Pages since the newest commit.
    uncommitted: u32,
    was_cut: bool,
    /// Live counts are being made anew.
    is_counting: bool,
    /// Operations do not move what is in danger, or what wears unevenly: idle time does.
    leaves_to_idle: bool,
    dies_at_once: bool,
    /// Of the pages that live, those that others name without a path of their own, and how many of them stand together.
    value_pages: (u32, u32),
}

impl<N: Nand> fmt::Debug for Log<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("volume", &self.volume.medium().volume()).finish_non_exhaustive()
    }
}

impl<'m, N: Nand> Log<'m, N> {
    /// Bytes of memory that a log on this chip takes, exactly: a page, 6 for each block, and 8 for each page that the block table may take; and where there are raw pages 24 for each of a group and 24 more. With two bits a cell 36 for each page of a block, and five pages on most chips.
    pub const fn memory_required(geometry: &Geometry, options: &LogOptions) -> usize {
        memory_required(geometry, options)
    }

    /// A log that knows nothing of its volume yet: for who keeps it in a place of its own, where [`Log::format`] or [`Log::mount`] begins it. It is good for
    /// nothing else before. Cannot fail, so that no other log is on the stack. Costs nothing.
    pub fn unopened(parts: Parts<'m, N>) -> Self {
        let dies_at_once = parts.broken.dying;
        Log {
            volume: Volume::new(parts),
            dying: Dying::NONE,
            collector: Collector::IDLE,
            uncommitted: 0,
            was_cut: false,
            is_counting: false,
            leaves_to_idle: false,
            dies_at_once,
            value_pages: (0, 1),
        }
    }

    /// Makes an empty volume, whatever the chip holds. Respects every bad-block mark, and keeps the erase counts of a volume that stands there.
    ///
    /// Looks at the mark of every block and at its first two pages, erases the four anchor blocks and the first blocks for data, and
    /// makes a checkpoint. A chip on which this was cut has no volume, or the new one; or the old one, if there was one.
    ///
    /// # Errors
    ///
    /// [`LogError::Unsuitable`] if too few blocks are good; [`LogError::Nand`].
    pub fn format(&mut self, options: &LogOptions) -> Result<(), LogError<N::Error>> {
        self.for_cause(Cause::Format, |log| format::format(&mut log.volume, options))?;
        if self.capacity_pages() == 0 {
            return Err(LogError::Unsuitable { what: &"too few good blocks" });
        }
        self.volume.start();
        Ok(())
    }

    /// Opens a volume. After a cut, repairs it first: the newest commit is copied to a fresh block, since it may be the very page that was being programmed,
    /// and blocks that were open are never programmed further.
    ///
    /// A clean mount programs nothing, one after a cut makes an erase and a program for the copy, and a checkpoint with its erase. It can be repeated.
    ///
    /// # Errors
    ///
    /// [`LogError::NotFormatted`]; [`LogError::WrongFormat`] if chip or options are not those of the volume; [`LogError::Corrupt`]; [`LogError::Nand`]. A volume that can be read and not repaired is mounted read-only.
    pub fn mount(&mut self, options: &LogOptions) -> Result<(), LogError<N::Error>> {
        self.was_cut = self.for_cause(Cause::Mount, |log| mount(&mut log.volume, options))?;
        self.volume.start();
        Ok(())
    }

    /// Runs something with another cause in the chip's ledger.
    fn for_cause<T>(&mut self, cause: Cause, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.nand_mut().attribute(cause);
        let result = work(self);
        self.nand_mut().attribute(before);
        result
    }

    /// Makes a clean checkpoint, so that the next mount has nothing to recover, and gives the chip back. Costs at most
    /// one checkpoint; nothing if since a clean mount nothing was programmed and little was read.
    ///
    /// What was appended and not committed never happened, but what tags tell of: then the next mount recovers as after a cut.
    ///
    /// # Errors
    ///
    /// The error, with the chip: what was committed is durable all the same.
    pub fn unmount(mut self) -> Result<N, (LogError<N::Error>, N)> {
        let left = self.unmount_here();
        let nand = self.abandon_log();
        if let Err(error) = left { Err((error, nand)) } else { Ok(nand) }
    }

    /// The same of a log that lies in a place of its own, and is good for nothing afterwards.
    ///
    /// # Errors
    ///
    /// As [`Log::unmount`].
    pub fn unmount_here(&mut self) -> Result<(), LogError<N::Error>> {
        let is_done = self.volume.anchors().is_clean() && !self.volume.has_read_much();
        if self.volume.check_writable().is_err() || is_done {
            return Ok(());
        }
        if self.uncommitted > 0 || !self.dying.pages().is_empty() {
            self.volume.set_exact(false);
        }
        self.volume.leave_raw()?;
        self.volume.checkpoint(!self.volume.tail().may_have_pages())
    }

    /// Gives the chip back as it is, as if the power had gone.
    pub fn abandon_log(self) -> N {
        self.volume.release()
    }

    /// The chip's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.volume.shape().geometry
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.geometry().page_size as usize
    }

    /// Pages that a checkpoint has besides its anchor, which a mount reads.
    pub fn table_pages(&self) -> usize {
        self.volume.shape().table_pages.into()
    }

    /// Bytes at the front of a page that the log fills in.
    pub fn header_size(&self) -> usize {
        self.volume.shape().header_size()
    }

    /// Id of the volume.
    pub fn volume(&self) -> u32 {
        self.volume.medium().volume()
    }

    /// The newest commit: what it says is the owner's state. `None` on a volume on which nothing was committed yet.
    pub fn committed(&self) -> Option<PageAddr> {
        self.volume.committed()
    }

    /// The sequence that the next page will get; every page there is has a lower one.
    pub fn next_sequence(&self) -> u64 {
        self.volume.medium().sequence()
    }

    /// Whether the volume can be read only.
    pub fn is_read_only(&self) -> bool {
        self.volume.is_read_only()
    }

    /// The chip, for inspection.
    pub fn nand(&self) -> &N {
        self.volume.medium().chip().nand()
    }

    /// The chip, for attribution and inspection. Programming or erasing past the log destroys the volume.
    pub fn nand_mut(&mut self) -> &mut N {
        self.volume.medium_mut().chip_mut().nand_mut()
    }

    /// Reads a page of the owner's into `bytes`, a whole page, and checks everything it says of itself: checksum, volume, own address, kind, and a sequence
    /// that was given out. One read. A page whose bits begin to flip has its block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read, is erased or is not the owner's; [`LogError::Nand`].
    pub fn read(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<PageInfo, LogError<N::Error>> {
        self.volume.read(page, bytes)
    }

    /// Whether a page is in a block of raw pages.
    pub fn is_raw(&self, page: PageAddr) -> bool {
        self.geometry().contains_page(page) && self.volume.blocks().is_raw(self.geometry().block_of(page))
    }

    /// Reads a raw page into `bytes`, a whole page, as it is: whether it is the one that is wanted only its owner can tell. One read. A page whose bits begin to flip has its block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read or is in no block of raw pages; [`LogError::Nand`].
    pub fn read_raw(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<(), LogError<N::Error>> {
        self.volume.read_raw(page, bytes)
    }

    /// Whether raw pages may have tags.
    pub fn has_tags(&self) -> bool {
        self.volume.shape().has_tags()
    }

    /// The place of the next raw page in the tail; `None` if it would be none of it.
    pub fn tag_next(&self) -> Option<u32> {
        self.volume.tag_next().map(|said| said.place)
    }

    /// Whether a page is durable by its tag, right after it was programmed.
    pub fn is_tagged(&self, page: PageAddr) -> bool {
        self.volume.tail().is_newest(page)
    }

    /// Reads what stands in this place of the tail that was found at the mount, into `bytes`, a whole page, up to [`TAIL_MAX`](crate::TAIL_MAX). One read.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub fn read_tail(&mut self, place: u16, bytes: &mut [u8]) -> Result<Tagged, LogError<N::Error>> {
        self.volume.read_tail(place, bytes)
    }

    /// Room for an operation that appends at most `pages` pages, the last of them a commit, after which at most `live` pages more live than
    /// before. Costs a checkpoint at most, where one lists the blocks that are wanted.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`], for an operation that grows: more would live than may; and for one that appends more pages than a block takes: there is no room
    /// for so many at once. [`LogError::ReadOnly`] where so many blocks are bad that nothing can be changed; [`LogError::Poisoned`], [`LogError::Nand`].
    pub fn claim(&mut self, want: Claim, pages: u32, live: u32) -> Result<Claimed, LogError<N::Error>> {
        self.claim_with(want, (pages, None), live)
    }

    /// The same for an operation that appends a raw page besides, which lives, with so many bits in a cell.
    ///
    /// # Errors
    ///
    /// As [`Log::claim`].
    pub fn claim_with(
        &mut self,
        want: Claim,
        (pages, raw): (u32, Option<CellMode>),
        live: u32,
    ) -> Result<Claimed, LogError<N::Error>> {
        let (heads, raws) = (self.volume.heads(), u32::from(raw.is_some()));
        let opened = heads.opened_by(pages) + raw.map_or(0, |mode| heads.opened_by_raw(mode));
        let (pages, live, sure) = (pages + raws, live + raws, OPENED_SURE + raws);
        debug_assert!(pages > 0 && pages <= UNCOMMITTED_MAX / 2 && !self.is_counting);
        self.volume.check_writable()?;
        let capacity = self.capacity_pages();
        if capacity == 0 {
            return Err(self.volume.end());
        }
        let blocks = self.volume.blocks();
        let dying = self.dying.pages().len() as u32;
        debug_assert!(dying <= blocks.live_total(), "what dies was counted");
        if want == Claim::Grow && !self.may_live((blocks.live_total() + live).saturating_sub(dying), live) {
            // Only the truth may refuse.
            return if self.volume.is_exact() { Err(LogError::Full) } else { Ok(Claimed::Recount) };
        }
        let floor = match want {
            Claim::Bury => 0,
            // One that opens a block for nodes leaves that one for survivors.
            _ if !self.volume.heads().commit_opens() || opened > 1 => FLOOR,
            _ => OPENED_FLOOR,
        };
        if want != Claim::Bury && !self.volume.is_exact() && blocks.pool() <= OPENED_FLOOR {
            // From here on blocks are to be emptied, and that begins with the truth.
            return Ok(Claimed::Recount);
        }
        if blocks.pool() >= floor + opened {
            // Where one list is too short for all of them, a checkpoint on the way lists the others.
            let listed = opened.min(u32::from(self.volume.shape().ready_max) - 1);
            // Nor is anything committed while the list has no block for the recovery from a cut after it (N6).
            let is_short = self.volume.openable() < listed || self.volume.ready().remaining() == 0;
            if is_short && blocks.listable() > 0 {
                self.volume.checkpoint(false)?;
            }
            // What makes deaths count is not refused as long as there is a block.
            let has_last = want == Claim::Bury && self.volume.ready().remaining() > 0;
            if self.volume.openable() >= listed || has_last {
                debug_assert!(self.volume.blocks().pool() >= opened);
                return Ok(Claimed::Granted(Grant::new(pages, want)));
            }
        }
        if want != Claim::Bury {
            if !self.volume.is_exact() {
                return Ok(Claimed::Recount);
            }
            if self.frees_by_settling() {
                return Ok(Claimed::Bury);
            }
            // Moves make pages dead elsewhere, so that what is dead can never be gathered all. For many blocks nobody moves much for little.
            let pages = self.volume.shape().pages_max();
            let dead_min = if opened > sure { pages / 2 } else { 1 };
            let is_begun = opened <= sure && self.collector.block().is_some();
            if is_begun || self.victims().emptiest(dead_min).is_some_and(|(block, _)| self.has_live(block)) {
                return Ok(Claimed::Collect(Budget::urgent(dead_min)));
            }
            if dying > 0 {
                return Ok(Claimed::Bury);
            }
            // That there is no room for many pages at once does not say that the chip is at its end.
            if want == Claim::Grow || opened > sure {
                return Err(LogError::Full);
            }
        }
        Err(self.volume.end())
    }

    /// So many of the pages that live are of values, about: moving one may take another page, that of what names it. So many stand together in the mean, and are named by one.
    pub fn weigh(&mut self, value_pages: u32, together: u32) {
        self.value_pages = (value_pages, together);
    }

    /// As [`Room::may_hold`].
    fn may_live(&self, live: u32, more: u32) -> bool {
        self.room().may_hold((live, more), (&self.collector, self.value_pages))
    }

    /// Whether a block would hold nothing if the deaths that were noted counted.
    fn frees_by_settling(&self) -> bool {
        self.dying.pages().iter().any(|&page| !self.has_live(self.geometry().block_of(page)))
    }

    /// Whether pages of a block live that do not die with the next commit.
    fn has_live(&self, block: BlockAddr) -> bool {
        self.volume.blocks().live(block) > self.dying.count_in(block, self.geometry())
    }

    fn room(&self) -> Room<'_, 'm> {
        Room { shape: self.volume.shape(), blocks: self.volume.blocks() }
    }

    fn victims(&self) -> Victims<'_, 'm> {
        Victims { blocks: self.volume.blocks(), skipped: self.collector.skipped() }
    }

    /// Programs a page that promises nothing: it counts once a commit leads to it. `bytes` is a whole page. One with a header has room for that
    /// ([`Log::header_size`]) at its front, where it is filled in; a raw one is programmed as it is, and has a key that is short enough ([`OWNER_MAX`](crate::OWNER_MAX)). The page counts as live from here on.
    ///
    /// Costs one program, and one more behind the last raw page of a group; after a failed program another one, and a checkpoint where it was a block's first.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`] before anything was programmed; [`LogError::Unsuitable`] for a key that is too long; [`LogError::ReadOnly`], [`LogError::Poisoned`], [`LogError::Nand`].
    pub fn append(
        &mut self,
        bytes: &mut [u8],
        kind: Kind<'_>,
        grant: &mut Grant,
    ) -> Result<PageAddr, LogError<N::Error>> {
        grant.spend();
        self.append_kind(bytes, kind, (1, kind.mode(), Exposure::Named, kind.cause()))
    }

    /// Programs a commit. When this returns, it is durable, a mount begins from it, and the deaths that were noted count. Costs as [`Log::append`], or [twice that](crate::LogOptions::commit_twice).
    ///
    /// # Errors
    ///
    /// As [`Log::append`]. After an error the page counts as not committed, unless the chip is gone, when a mount may find it.
    pub fn commit(&mut self, bytes: &mut [u8], grant: Grant) -> Result<PageAddr, LogError<N::Error>> {
        let buries = grant.want() == Claim::Bury;
        let cause = if buries { Cause::Gc } else { Cause::Host };
        self.volume.shield();
        let page = self.append_to(bytes, PageKind::Commit, (0, buries), cause)?;
        let page = if buries { page } else { commit_again(&mut self.volume, bytes, page, cause) };
        self.collector.programmed();
        self.uncommitted = 0;
        let geometry = *self.geometry();
        let blocks = self.volume.blocks_mut();
        // Only now: if the power had gone before, the commit before this one would need them.
        let mut lived = true;
        self.dying.apply(|page| lived &= blocks.lose(geometry.block_of(page)));
        if !lived {
            // A tree that is damaged says so; nothing is erased on the word of counts that cannot be.
            self.volume.set_exact(false);
        }
        debug_assert!(self.dying.pages().is_empty() && self.committed() == Some(page));
        Ok(page)
    }

    /// Pages that a commit takes, but for one that only lets deaths count.
    pub fn commit_pages(&self) -> u32 {
        self.volume.heads().commits().into()
    }

    fn append_kind(
        &mut self,
        bytes: &mut [u8],
        kind: Kind<'_>,
        (stream, mode, exposure, cause): (u8, CellMode, Exposure, Cause),
    ) -> Result<PageAddr, LogError<N::Error>> {
        let Some(key) = kind.key() else { return self.append_to(bytes, kind.of_page(), (stream, false), cause) };
        assert!(bytes.len() == self.page_size(), "a page is appended whole");
        let owner = Owner::new(key).ok_or(LogError::Unsuitable { what: &"the key of a raw page" })?;
        let page = self.volume.append_raw(bytes, (owner, kind.tag()), (mode, exposure, cause))?;
        debug_assert!(self.is_raw(page) && self.has_live(self.geometry().block_of(page)));
        Ok(page)
    }

    fn append_to(
        &mut self,
        bytes: &mut [u8],
        kind: PageKind,
        stream: (u8, bool),
        cause: Cause,
    ) -> Result<PageAddr, LogError<N::Error>> {
        assert!(bytes.len() == self.page_size(), "a page is appended whole");
        assert!(self.uncommitted < UNCOMMITTED_MAX, "more pages follow a commit than a mount leaves room for");
        let page = self.volume.append(bytes, kind, stream, cause)?;
        self.uncommitted += 1;
        Ok(page)
    }

    /// Says that a page is needed no longer once the next commit is durable. At most [`Log::dying_room`] pages.
    ///
    /// An image may lead its owner to a page that the counts do not know of, or to one page on two ways. Then counts are not the truth, and are made anew before they refuse anything.
    pub fn dies(&mut self, page: PageAddr) {
        if !self.geometry().contains_page(page) {
            return;
        }
        let block = self.geometry().block_of(page);
        let is_counted = self.volume.blocks().state(block).holds_data() && self.has_live(block);
        if is_counted && self.dies_at_once {
            self.volume.blocks_mut().lose(block);
        } else if !is_counted || !self.dying.add(page) {
            self.volume.set_exact(false);
        }
    }

    /// How many pages more can die with the next commit.
    pub fn dying_room(&self) -> usize {
        DYING_MAX - self.dying.pages().len()
    }

    /// Whether a commit that makes deaths count opens no block: of those that no operation may take, it takes one.
    pub fn buries_in_place(&self) -> bool {
        self.volume.heads().room(0) > 0
    }

    /// Whether pages were moved or replaced that die with the next commit.
    pub fn has_dying(&self) -> bool {
        !self.dying.pages().is_empty()
    }

    /// The share of collecting of a call that appended so many pages, behind others that left so many moves due: nothing while enough blocks hold nothing, at most four moves for each
    /// page or what has to be moved for none to wait, and no more programs and erases than are left to the call. What it leaves is [due](Budget::left_due).
    pub fn instalment(&mut self, (pages, due): (u32, u32), (programs_left, erases_left): (u32, u32)) -> Budget {
        let (blocks, (_, erases)) = (self.volume.blocks(), self.spent());
        let share = self.room().share(pages, due);
        let urgent = moves_due(&self.volume, &self.collector, &self.dying, pages);
        // Where the pool is just what opening the next block for commits takes, that comes first; and after a clean mount a checkpoint does.
        let is_opening = self.volume.heads().commit_opens() && blocks.pool() == OPENED_FLOOR + 1;
        if is_opening || self.volume.anchors().is_clean() {
            return Budget::share((share, 0), 0, erases_left, erases);
        }
        // Bits flip for months before they are lost, and wear takes years.
        let has_other =
            blocks.endangered() > 0 || self.collector.is_levelling() || is_levelling_due(&self.volume, &self.collector);
        let share = if has_other && !self.leaves_to_idle { share.max(2) } else { share };
        Budget::share((share, urgent), programs_left, erases_left, erases)
    }

    /// Programs and erases since the mount.
    pub fn spent(&self) -> (u64, u64) {
        self.volume.spent()
    }

    /// Does the next piece of work that the budget allows: erases and checkpoints by itself; a page to examine is handed
    /// out and has to be answered. `None`: nothing to do, or the budget is used up.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn victim(&mut self, budget: &mut Budget) -> Result<Option<Victim>, LogError<N::Error>> {
        self.volume.check_writable()?;
        rest(budget, self.spent().1);
        while budget.steps > 0 && step(&mut self.volume, budget)? {}
        if !self.volume.is_exact() && self.volume.blocks().pool() <= OPENED_FLOOR {
            // With counts that are too high, moves may take the last blocks and free none. Counting reads only, and comes first.
            return Ok(None);
        }
        if budget.is_urgent() && self.has_mlc() {
            leave_for_less(&self.volume, &mut self.collector, (&self.dying, budget.dead_min));
        }
        // Every turn begins or ends with a block, and a block that has pages to be asked about ends the loop.
        for _ in 0..2 * self.geometry().block_count {
            let programs = self.collector.programs_of_move(self.value_pages.0 > 0);
            if !budget.has_move(programs) || budget.examinations == 0 || self.dying_room() < 2 {
                return Ok(None);
            }
            let left = |block| moves_left(&self.volume, block, budget.erases_max);
            let most = self.collector.block().map_or(u32::MAX, left);
            if limit(budget, most) < programs {
                return Ok(None);
            }
            let geometry = *self.geometry();
            let dying = |block| self.dying.count_in(block, &geometry);
            if let Some((block, nth, cause)) = self.collector.next(self.volume.blocks(), dying) {
                budget.examinations -= 1;
                // A checkpoint comes before pages are moved, so that what it takes is known.
                budget.steps = 0;
                self.collector.take_programs();
                let page = self.volume.shape().page_in(self.volume.blocks().mode(block), block, nth);
                return Ok(Some(Victim::new(page, cause)));
            }
            let is_exact = self.volume.is_exact();
            give_up(budget, self.collector.pages_left());
            if !self.collector.finish(self.volume.blocks_mut(), is_exact, dying) {
                self.volume.set_exact(false);
            }
            let Some((block, cause)) = pick(&mut self.volume, &mut self.collector, budget) else {
                budget.due = 0;
                return Ok(None);
            };
            if !self.has_live(block) {
                wait_for_commit(budget, self.volume.heads());
                return Ok(None);
            }
            self.collector.begin(self.volume.blocks(), (block, cause), budget.is_urgent());
        }
        Ok(None)
    }

    /// Programs the copy of a page that the log asked about. It promises nothing; the next commit has to lead to it, and the page that
    /// was copied dies with that ([`Log::dies`]). Costs as [`Log::append`].
    ///
    /// # Errors
    ///
    /// [`LogError::Full`]: there is no room, and nothing was programmed. Else as [`Log::append`].
    pub fn copy(&mut self, bytes: &mut [u8], kind: Kind<'_>, victim: &Victim) -> Result<PageAddr, LogError<N::Error>> {
        let block = self.geometry().block_of(victim.page());
        let stream = self.stream_of_copy((block, kind.key().is_some())).ok_or(LogError::Full)?;
        self.collector.programmed();
        let mode = self.volume.heads().mode(stream);
        self.collector.copied(mode);
        self.append_kind(bytes, kind, (stream, mode, Exposure::Copy(victim.page()), victim.cause()))
    }

    /// The choice of a block to empty, for an owner that has a policy.
    pub fn choice(&mut self) -> Choice<'_, 'm, N> {
        Choice::new(&mut self.volume, &mut self.collector, (&self.dying, &mut self.leaves_to_idle))
    }

    /// What each block is used for, and how many pages in it may be live. Costs a pass over the block table in memory.
    pub fn uses(&self) -> impl Iterator<Item = (BlockAddr, BlockUse, u16)> {
        uses(self.volume.blocks())
    }

    /// Whether copies may have to wait until a commit may name them: they go to blocks with two bits a cell.
    pub fn has_mlc(&self) -> bool {
        self.volume.shape().has_mlc()
    }

    /// Whether a commit may name a copy ([`Log::copy`]): its partner was programmed, or is left out. Not before its owner may say that it is named, or that its source dies. True of any other page.
    pub fn is_settled(&self, copy: PageAddr) -> bool {
        self.volume.is_settled(copy)
    }

    /// Settles the copies that wait: their partners are left out. For an owner that needs the room of the sources. Costs a page of the block for each.
    pub fn settle_copies(&mut self) {
        self.volume.pairs_mut().name_copies();
    }

    /// A page that shared its cells with one that failed, if there is one: to be asked for behind each append of a raw page, until there is none. Unless it is a copy, it is programmed elsewhere, from `bytes`, which get what it held. 1 program.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn rescue(&mut self, bytes: &mut [u8]) -> Result<Option<Rescued>, LogError<N::Error>> {
        self.volume.rescue(bytes)
    }

    /// A page is not needed that was programmed since the newest commit, or that no commit names: it is dead at once.
    pub fn forget(&mut self, page: PageAddr) {
        let block = self.geometry().block_of(page);
        debug_assert!(self.volume.blocks().state(block).holds_data());
        if !self.volume.blocks_mut().lose(block) {
            self.volume.set_exact(false);
        }
    }

    /// How often the block of a page was erased.
    pub fn erases(&self, page: PageAddr) -> u32 {
        self.volume.blocks().erase_count(self.geometry().block_of(page))
    }

    /// A page about which the log asked and which was [kept](Fate::Kept), since its copy was not settled, is dead with the next commit.
    pub fn goes_late(&mut self, page: PageAddr) {
        let (shape, block) = (self.volume.shape(), self.geometry().block_of(page));
        let nth = shape.nth_in(self.volume.blocks().mode(block), page);
        self.collector.goes_late((block, nth));
    }

    /// Whose the page is that the log asks about, in a block of raw pages. One read for the pages of a group together. Where nobody knows, the owner names pages
    /// ([`Log::found`]) until it has named all ([`Log::found_all`]).
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub fn whose(&mut self, victim: &Victim) -> Result<Whose, LogError<N::Error>> {
        self.volume.whose(victim.page())
    }

    fn stream_of_copy(&self, of: (BlockAddr, bool)) -> Option<u8> {
        stream_of_copy(self.volume.heads(), self.volume.blocks(), self.volume.shape().headed(), of)
    }

    /// Whether what survives in the victim's block goes into the stream of commits, if it can: no block for survivors has room, and none is opened for them.
    pub fn moves_by_commit(&self, victim: &Victim) -> bool {
        debug_assert!(self.geometry().contains_page(victim.page()));
        moves_by_commit(self.volume.heads(), self.volume.blocks(), self.volume.shape().headed())
    }

    /// Tells the log what became of a page that it asked about.
    pub fn answer(&mut self, victim: Victim, fate: Fate, budget: &mut Budget) {
        debug_assert!(self.geometry().contains_page(victim.page()));
        let programs = self.collector.take_programs();
        let copies = self.collector.take_copies();
        if self.has_mlc() && self.is_raw(victim.page()) {
            self.collector.raw_goes((copies, programs));
        }
        match fate {
            Fate::Dead => self.collector.goes((0, programs), Weight::Node),
            Fate::Copied(pages) => {
                spend(budget, pages, programs);
                self.collector.goes((pages, programs), Weight::Node);
            }
            Fate::Values(pages) => {
                spend(budget, pages, programs);
                self.collector.goes((pages, programs), Weight::Value);
            }
            Fate::Kept => spend(budget, 1, programs),
            Fate::Stays => {}
            Fate::Unreadable => self.collector.is_damaged(),
            Fate::Lost | Fate::Later => self.collector.is_unknown(fate == Fate::Later),
        }
    }

    /// Live counts are made anew: the owner names every page that it needs ([`Log::found`]), with no claim and no death in between. Costs nothing.
    pub fn recount_begin(&mut self) {
        debug_assert!(!self.is_counting, "pages are counted once at a time");
        self.is_counting = true;
        self.set_all_live(0);
    }

    /// A page is needed, and this key names it, if it is a raw one. Each is named once; those are not of which the owner said that they die with the next commit.
    pub fn found(&mut self, page: PageAddr, key: &[u8]) {
        if self.is_counting {
            self.count(page);
        }
        if self.is_raw(page) {
            self.volume.found_owner(page, key);
        }
    }

    /// Every page was named, or the owner could not go on: then every page may live, if they were counted.
    pub fn found_all(&mut self, is_complete: bool) {
        if is_complete {
            self.volume.found_owners();
        }
        if !self.is_counting {
            return;
        }
        // If the power goes before the commit with which they die, the one before it leads there.
        for nth in 0..self.dying.pages().len() {
            self.count(self.dying.pages()[nth]);
        }
        self.is_counting = false;
        self.volume.set_exact(is_complete);
        if is_complete {
            self.volume.blocks_mut().release_unreached();
        } else {
            self.set_all_live(self.volume.shape().pages_max());
        }
        // A mount begins from the newest commit, whether its owner needs anything that stands in it or not (N7).
        if let Some(page) = self.committed() {
            let block = self.geometry().block_of(page);
            let live = self.volume.blocks().live(block).max(1);
            self.volume.blocks_mut().set_live(block, live);
        }
        debug_assert!(self.volume.is_exact() == is_complete);
    }

    /// One page more of its block lives. A damaged tree may lead to pages that were never programmed.
    fn count(&mut self, page: PageAddr) {
        let block = self.geometry().block_of(page);
        let is_there = self.geometry().contains_page(page) && self.volume.blocks().state(block).holds_data();
        let most = self.volume.heads().next_in(block);
        let blocks = self.volume.blocks_mut();
        if is_there && blocks.live(block) < most.unwrap_or(blocks.pages_of(block)) {
            blocks.gain(block);
        }
    }

    fn set_all_live(&mut self, live: u16) {
        let heads = *self.volume.heads();
        self.volume.blocks_mut().set_all_live(live, |block| heads.next_in(block));
    }

    /// Makes a checkpoint: what is known of the blocks becomes durable. The log makes checkpoints by itself; one more shortens the next recovery.
    /// Costs a program for the anchor and one for each page of the block table that changed; when the anchor block is full, and for the first one after a
    /// mount, an erase and a program for every page of the block table, and one more for an anchor if an anchor block was lost.
    ///
    /// # Errors
    ///
    /// [`LogError::ReadOnly`] if no anchor block is left; [`LogError::Poisoned`], [`LogError::Nand`].
    pub fn checkpoint(&mut self) -> Result<(), LogError<N::Error>> {
        self.volume.checkpoint(false)
    }

    /// Pages that are live, at most.
    pub fn live_pages(&self) -> u32 {
        self.volume.blocks().live_total()
    }

    /// Pages that are live behind the next commit, at most.
    pub fn lasting_pages(&self) -> u32 {
        self.live_pages().saturating_sub(self.dying.pages().len() as u32)
    }

    /// Whether live counts are the truth, and not above it as after a cut.
    pub fn is_exact(&self) -> bool {
        self.volume.is_exact()
    }

    /// Pages that may be live.
    pub fn capacity_pages(&self) -> u32 {
        self.room().capacity()
    }

    /// Why an owner that frees or replaces finds no room, however much was moved. Where so many blocks died that more lives than may, the chip is at its end.
    pub fn refuse(&mut self) -> LogError<N::Error> {
        if self.live_pages() > self.capacity_pages() { self.volume.end() } else { LogError::Full }
    }

    /// Whether so many pages more may live.
    pub fn has_room(&self, pages: u32) -> bool {
        self.may_live(self.lasting_pages() + pages, 1)
    }

    /// How many pages of a block may be live, at most. An owner that walks its data can hold N5 against it.
    pub fn live_bound(&self, block: BlockAddr) -> u32 {
        if self.geometry().contains_block(block) { self.volume.blocks().live(block).into() } else { 0 }
    }

    /// What the log did since the mount, and how it stands. Costs a pass over the block table in memory.
    pub fn stats(&self) -> LogStats {
        let volume = &self.volume;
        LogStats {
            checkpoints: volume.anchors().made(),
            left_out: volume.pairs().left_out(),
            was_cut: self.was_cut,
            capacity_pages: self.capacity_pages(),
            ..LogStats::of(volume.blocks(), volume.tail(), volume.medium().chip().counters())
        }
    }

    /// Walks over every page once, reads only, and reports every violation of N1, N2, N5 and N7. Returns how many there were. Costs one read for each page of the chip that may be programmed.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u32, LogError<N::Error>> {
        self.for_cause(Cause::Verify, |log| verify(&mut log.volume, report))
    }
}
