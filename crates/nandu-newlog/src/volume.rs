//! A volume that is open: its blocks, its streams, its checkpoints, and what a cut left of them.

use nandu_media::checksum::checksum;
use nandu_media::tag::TagPlace;
use nandu_media::{Field, Malformed, PageFields, PageKind};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr, ReadStatus};

use crate::anchors::{Anchors, Said, Standing};
use crate::blocks::{Blocks, Flag, State};
use crate::chip::{Chip, Programmed};
use crate::classify::classify;
use crate::disturb::Disturb;
use crate::error::LogError;
use crate::grant::PageInfo;
use crate::heads::{Head, Heads};
use crate::medium::{Found, Medium, Probe};
use crate::options::Broken;
use crate::order::{Erased, Listed};
use crate::parts::Parts;
use crate::raw::{Owner, Owners, Whose, is_disguised};
use crate::ready::{End, Ready};
use crate::reserve::OPENED_FLOOR;
use crate::roll::{Roll, Rolled};
use crate::shape::Shape;
use crate::tail::{Tag, Tagged, Tail};

/// Blocks that one page tries before it is given up.
const BLOCKS_TRIED: u32 = 8;

/// Blocks of the pool where a page may be tagged: after a cut one is for the copy of the newest commit, one for that of the page, and one for a leaf, and pages are neither moved nor counted before those of the tail are named.
const TAGGED_FLOOR: u32 = OPENED_FLOOR + 3;

/// Blocks on the ready list with which a page may be tagged: a mount may know of no others, and takes one for the newest commit and one for the last page of the tail; one stays for a recovery from a cut after that.
const TAGGED_READY: usize = 3;

/// By how much the sequence jumps after a cut: more pages than one operation programs, or a recovery.
const SEQUENCE_GAP: u64 = 4096;

/// Highest sequence of a volume that can be written: far enough from the end that nothing overflows in a mount.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX - (1 << 40);

/// A volume.
pub(crate) struct Volume<'m, N> {
    medium: Medium<'m, N>,
    shape: Shape,
    blocks: Blocks<'m>,
    standing: Standing,
    disturb: Disturb,
    /// Owners of the raw pages of the group that is filled, and of the one that is emptied.
    owners: &'m mut [Owner],
    broken: Broken,
}

impl<'m, N: Nand> Volume<'m, N> {
    /// A volume of which nothing is known yet.
    pub(crate) fn new(parts: Parts<'m, N>) -> Volume<'m, N> {
        let Parts { nand, shape, page, entries, table, owners, reads_back, reads_max, broken } = parts;
        Volume {
            medium: Medium::new(Chip::new(nand, reads_back), page),
            shape,
            blocks: Blocks::new(entries, table),
            standing: Standing {
                anchors: Anchors::UNKNOWN,
                heads: shape.no_heads(),
                ready: Ready::EMPTY,
                committed: None,
                tail: Tail::NONE,
                is_exact: true,
                is_read_only: false,
            },
            disturb: Disturb::new(reads_max),
            owners,
            broken,
        }
    }

    pub(crate) fn release(self) -> N {
        self.medium.release()
    }

    /// Whether a test leaves this rule out. Known to the compiler where there are no such tests.
    fn is_broken(&self, rule: impl FnOnce(&Broken) -> bool) -> bool {
        cfg!(feature = "_broken") && rule(&self.broken)
    }

    pub(crate) fn medium(&self) -> &Medium<'m, N> {
        &self.medium
    }

    pub(crate) fn medium_mut(&mut self) -> &mut Medium<'m, N> {
        &mut self.medium
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn blocks(&self) -> &Blocks<'m> {
        &self.blocks
    }

    pub(crate) fn blocks_mut(&mut self) -> &mut Blocks<'m> {
        &mut self.blocks
    }

    pub(crate) fn heads(&self) -> &Heads {
        &self.standing.heads
    }

    pub(crate) fn ready(&self) -> &Ready {
        &self.standing.ready
    }

    pub(crate) fn anchors(&self) -> &Anchors {
        &self.standing.anchors
    }

    pub(crate) fn committed(&self) -> Option<PageAddr> {
        self.standing.committed
    }

    /// Whether live counts are the truth, and not above it.
    pub(crate) fn is_exact(&self) -> bool {
        self.standing.is_exact
    }

    pub(crate) fn set_exact(&mut self, is_exact: bool) {
        self.standing.is_exact = is_exact;
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.standing.is_read_only
    }

    /// The chip is at its end. With a checkpoint, as far as one can be made: the next mount has to know of the bad blocks, too.
    pub(crate) fn end(&mut self) -> LogError<N::Error> {
        let outcome = if self.standing.is_read_only { Ok(()) } else { self.checkpoint(false) };
        self.standing.is_read_only = true;
        match outcome {
            Ok(()) | Err(LogError::ReadOnly) => LogError::ReadOnly,
            Err(error) => error,
        }
    }

    /// Refuses unless the volume can be written.
    pub(crate) fn check_writable(&self) -> Result<(), LogError<N::Error>> {
        if self.medium.chip().is_lost() {
            Err(LogError::Poisoned)
        } else if self.standing.is_read_only {
            Err(LogError::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// The memory is for a volume of this shape.
    pub(crate) fn reshape(&mut self, shape: Shape) {
        self.shape = shape;
        self.blocks.reshape(&shape);
    }

    /// What a mount reads with.
    pub(crate) fn reader(&mut self) -> (&mut Medium<'m, N>, &mut Blocks<'m>, &Shape) {
        (&mut self.medium, &mut self.blocks, &self.shape)
    }

    /// The same, and where a checkpoint is taken over to.
    pub(crate) fn loader(&mut self) -> (&mut Medium<'m, N>, &mut Blocks<'m>, &Shape, &mut Standing) {
        (&mut self.medium, &mut self.blocks, &self.shape, &mut self.standing)
    }

    /// The volume is open: reads are drawn from here on.
    pub(crate) fn start(&mut self) {
        self.disturb.start(self.medium.sequence(), &mut self.blocks);
    }

    /// Whether so much was read since the mount that the next one should not begin as this one did.
    pub(crate) fn has_read_much(&self) -> bool {
        self.disturb.has_read_much()
    }

    /// Reads a page with a header into `bytes`, a whole page, and checks what it says of itself. One read.
    pub(crate) fn read(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<PageInfo, LogError<N::Error>> {
        self.begin_read(page, bytes)?;
        let (kind, sequence, stream, status) = self.medium.read(page, bytes)?;
        self.heed(page, status);
        debug_assert!(sequence < self.medium.sequence());
        Ok(PageInfo { kind, sequence, stream, status })
    }

    /// Reads a raw page into `bytes`, a whole page, as it is. One read.
    pub(crate) fn read_raw(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<(), LogError<N::Error>> {
        self.begin_read(page, bytes)?;
        if !self.blocks.is_raw(self.shape.block_of(page)) {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Page) });
        }
        let status = self.medium.read_raw(page, bytes)?;
        self.heed(page, status);
        Ok(())
    }

    fn begin_read(&mut self, page: PageAddr, bytes: &[u8]) -> Result<(), LogError<N::Error>> {
        if self.medium.chip().is_lost() {
            return Err(LogError::Poisoned);
        }
        if !self.shape.geometry.contains_page(page) {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Page) });
        }
        if bytes.len() != self.shape.geometry.page_size as usize {
            return Err(LogError::Corrupt { page, why: Malformed::Size });
        }
        self.disturb.note(self.shape.block_of(page), &mut self.blocks);
        Ok(())
    }

    /// A page whose bits begin to flip has its block emptied.
    fn heed(&mut self, page: PageAddr, status: ReadStatus) {
        let block = self.shape.block_of(page);
        if status.refresh_advised() && self.blocks.state(block).holds_data() {
            self.blocks.set(block, Flag::Refresh, true);
        }
    }

    /// Takes over a new volume's anchor blocks.
    pub(crate) fn begin(&mut self, anchors: Anchors) {
        self.standing.anchors = anchors;
    }

    /// A checkpoint was read. A volume of which the sequences are at their end is not written.
    pub(crate) fn resume(&mut self) {
        self.standing.is_read_only |= self.medium.sequence() >= SEQUENCE_MAX;
    }

    /// Leaves the state that a clean unmount left: from here on a mount has to look for what was programmed.
    ///
    /// Before the first program or erase after a clean mount: after a cut, a clean checkpoint would have open blocks continued where a page was torn.
    pub(crate) fn leave_clean(&mut self) -> Result<(), LogError<N::Error>> {
        if self.standing.anchors.is_clean() { self.checkpoint(false) } else { Ok(()) }
    }

    /// Makes a checkpoint: what is known of the blocks becomes durable, and blocks that hold nothing can be opened.
    ///
    /// # Errors
    ///
    /// [`LogError::ReadOnly`] if no anchor block is left; [`LogError::Nand`].
    pub(crate) fn checkpoint(&mut self, is_clean: bool) -> Result<(), LogError<N::Error>> {
        self.check_writable()?;
        self.refill();
        self.standing.heads.forget_closed();
        let said = Said {
            shape: &self.shape,
            heads: &self.standing.heads,
            ready: &self.standing.ready,
            committed: self.standing.committed,
            tail: if is_clean { Tail::NONE } else { self.standing.tail },
            is_clean,
            is_exact: self.standing.is_exact,
        };
        if !self.standing.anchors.write(&mut self.medium, &mut self.blocks, &said)? {
            self.standing.is_read_only = true;
            return Err(LogError::ReadOnly);
        }
        self.standing.heads.rebase();
        debug_assert!(!self.medium.chip().is_lost() && self.standing.anchors.is_clean() == is_clean);
        self.mark_retired()
    }

    /// What is left of the ready list, in its order, then blocks that hold nothing, the least worn first.
    ///
    /// In its order: the first unopened block is the one that a recovery erases and copies to. After a cut of this
    /// checkpoint one recovery may see it and another may not, and both have to take the same block.
    fn refill(&mut self) {
        let mut ready = Ready::EMPTY;
        // One that failed meanwhile is bad.
        let is_left = |block: &&BlockAddr| matches!(self.blocks.state(**block), State::Ready | State::Listed);
        self.standing.ready.unopened().iter().filter(is_left).for_each(|&block| ready.push(block));
        while ready.all().len() < usize::from(self.shape.ready_max) {
            let listable = self.blocks.addresses().filter(|&block| self.blocks.is_listable(block));
            let Some(block) = listable.min_by_key(|&block| self.blocks.erase_count(block)) else { break };
            self.blocks.list(block);
            ready.push(block);
        }
        debug_assert!(ready.all().iter().all(|&block| self.blocks.live(block) == 0), "a listed block holds nothing");
        self.standing.ready = ready;
        debug_assert!(self.standing.ready.remaining() == self.standing.ready.all().len());
    }

    /// Marks the blocks that the newest checkpoint calls bad.
    ///
    /// After the checkpoint, not before: a block whose mark is on the chip and whose record says that it can be used would
    /// be erased after a cut, and a marked block must not be. The other way round, the record alone is enough.
    fn mark_retired(&mut self) -> Result<(), LogError<N::Error>> {
        for block in self.blocks.addresses() {
            if self.blocks.state(block) == State::Bad && self.blocks.has(block, Flag::Mark) {
                self.blocks.set(block, Flag::Mark, false);
                self.medium.chip_mut().mark(block)?;
            }
        }
        Ok(())
    }

    /// Whether a block can be used: the block table remembers which ones are bad, but an image may have come to another chip, where others
    /// are. One read for a block that was not looked at in this session.
    fn may_use(&mut self, block: BlockAddr) -> Result<bool, LogError<N::Error>> {
        if self.blocks.has(block, Flag::Mark) {
            return Ok(true);
        }
        let is_marked = self.medium.chip_mut().is_marked(self.shape.page(block, 0))?;
        self.blocks.set(block, Flag::Mark, !is_marked);
        Ok(!is_marked)
    }

    /// Has a block of the ready list erased. If that fails it is out of use.
    ///
    /// Only now, when a checkpoint calls the block empty: torn before, its pages could be taken neither for live nor for
    /// dead. And no checkpoint has to say that the erase came to an end: a mount after a cut believes no erase.
    fn erase(&mut self, listed: Listed, cause: Cause) -> Result<Option<Erased>, LogError<N::Error>> {
        let block = listed.block();
        if !self.may_use(block)? {
            self.blocks.found_bad(block);
            return Ok(None);
        }
        let listed = match self.blocks.prove_erased(listed) {
            Ok(erased) => return Ok(Some(erased)),
            Err(listed) => listed,
        };
        let erasure = self.medium.erase(self.shape.page(block, 0), cause)?;
        self.blocks.count_erases(block, erasure.count);
        if !erasure.is_done {
            self.blocks.retire(block);
            return Ok(None);
        }
        self.blocks.erased(block);
        Ok(Some(listed.erased()))
    }

    /// A block at an end of the ready list that is not erased yet.
    fn due_ahead(&self) -> Option<Listed> {
        let is_due = |listed: &Listed| self.blocks.state(listed.block()) == State::Listed;
        [End::Front, End::Back].into_iter().filter_map(|end| self.standing.ready.peek(end)).find(is_due)
    }

    /// Erases a block at an end of the ready list, so that the operation that opens it does not have to; `false` if none is due.
    pub(crate) fn erase_ahead(&mut self) -> Result<bool, LogError<N::Error>> {
        if self.due_ahead().is_none() {
            return Ok(false);
        }
        self.leave_clean()?;
        if let Some(listed) = self.due_ahead()
            && self.erase(listed, Cause::Gc)?.is_none()
        {
            // At once: roll-forward would take it for the end of the blocks that were opened.
            self.checkpoint(false)?;
        }
        Ok(true)
    }

    /// Blocks that streams can open before a checkpoint lists more. One more stays for a recovery, which erases it to copy the newest commit
    /// there, and can use no other block without destroying what roll-forward may need (N6).
    pub(crate) fn openable(&self) -> u32 {
        self.standing.ready.remaining().saturating_sub(usize::from(!self.is_broken(|it| it.recovery_block))) as u32
    }

    /// Opens the next block of the ready list for a stream; with `takes_last` that of a recovery, too, where the chip would be at its end without it: then a cut ends it.
    fn open(&mut self, stream: u8, takes_last: bool) -> Result<(), LogError<N::Error>> {
        debug_assert!(self.standing.heads.open(stream).is_none() && stream < self.shape.streams);
        debug_assert!(!takes_last || stream == 0, "only a commit takes it");
        let end = if stream == 0 || self.is_broken(|it| it.ends) { End::Front } else { End::Back };
        for _ in 0..BLOCKS_TRIED {
            if self.openable() == 0 && self.blocks.listable() > 0 {
                self.checkpoint(false)?;
            }
            if self.openable() == 0 && !(takes_last && self.standing.ready.remaining() > 0) {
                return Err(LogError::Full);
            }
            let (slot, listed) = self.standing.ready.take(end);
            if let Some(erased) = self.erase(listed, Cause::Gc)? {
                self.begin_block(stream, erased, slot);
                debug_assert!(
                    self.standing.ready.remaining() > 0 || takes_last || self.is_broken(|it| it.recovery_block),
                    "recovery finds a block"
                );
                return Ok(());
            }
            // It cannot be erased, or is bad on this chip. With a checkpoint at once, since roll-forward would take it for the end of the
            // blocks that were opened.
            self.checkpoint(false)?;
        }
        Err(LogError::Full)
    }

    /// A stream goes on in a block that it took from this place of the ready list.
    fn begin_block(&mut self, stream: u8, erased: Erased, slot: u8) {
        self.standing.heads.begin(stream, erased.block(), 0, Some(slot));
        self.blocks.open(erased, (stream, self.standing.heads.raw() == Some(stream)));
    }

    /// A page was programmed in the block of a stream, and lives.
    fn grow(&mut self, stream: u8, block: BlockAddr) {
        self.blocks.gain(block);
        if let Some(full) = self.standing.heads.advance(stream) {
            self.blocks.close(full);
        }
    }

    /// Programs a page of the owner's, which lives. What was said to die does so only with a commit.
    ///
    /// Costs one program; where it opens a block that was not erased ahead, an erase; after a failed program, one more program, or a checkpoint as well.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`] before anything was programmed; [`LogError::ReadOnly`], [`LogError::Poisoned`], [`LogError::Nand`].
    pub(crate) fn append(
        &mut self,
        bytes: &mut [u8],
        kind: PageKind,
        (stream, takes_last): (u8, bool),
        cause: Cause,
    ) -> Result<PageAddr, LogError<N::Error>> {
        debug_assert!((kind == PageKind::Commit) == (stream == 0), "commits go to stream 0, and nothing else does");
        debug_assert!(stream < self.shape.headed(), "a page with a header is no raw one");
        self.check_writable()?;
        self.leave_clean()?;
        for _ in 0..BLOCKS_TRIED {
            let head = self.head_for(stream, takes_last)?;
            let page = self.shape.page(head.block, head.next);
            let positions = self.standing.heads.positions_with(stream);
            let fields = PageFields {
                kind,
                sequence: 0,
                page: page.0,
                volume: 0,
                committed: self.standing.committed.map(|page| page.0),
                checkpoint: self.standing.anchors.number(),
                stream,
                flags: 0,
                positions: &positions[..usize::from(self.shape.positions())],
            };
            let outcome = match self.medium.program(fields, cause, bytes) {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.close(stream, Programmed::Unknown);
                    return Err(error);
                }
            };
            if outcome == Programmed::Done {
                self.grow(stream, head.block);
                if kind == PageKind::Commit {
                    self.standing.committed = Some(page);
                    self.begin_tail(self.medium.sequence() - 1);
                }
                debug_assert!(self.blocks.live(head.block) > 0 && self.blocks.state(head.block).holds_data());
                return Ok(page);
            }
            self.give_up(stream, outcome)?;
        }
        Err(self.end())
    }

    /// Where a stream goes on.
    fn head_for(&mut self, stream: u8, takes_last: bool) -> Result<Head, LogError<N::Error>> {
        match self.standing.heads.open(stream) {
            None => self.open(stream, takes_last)?,
            // The volume was unmounted with this block open, and came to a chip on which it is bad.
            Some(head) if !self.may_use(head.block)? => {
                self.close(stream, Programmed::Failed);
                self.open(stream, takes_last)?;
            }
            Some(_) => {}
        }
        self.standing.heads.open(stream).ok_or(LogError::Full)
    }

    /// Programs a raw page of this owner, which lives, and its summary if it is the last one of its group. Costs as [`Volume::append`], and a program for a summary.
    ///
    /// # Errors
    ///
    /// As [`Volume::append`].
    pub(crate) fn append_raw(
        &mut self,
        bytes: &[u8],
        (owner, tag): (Owner, Option<&Tag>),
        cause: Cause,
    ) -> Result<PageAddr, LogError<N::Error>> {
        self.check_writable()?;
        self.leave_clean()?;
        let Some(stream) = self.standing.heads.raw() else { return Err(LogError::Full) };
        for _ in 0..BLOCKS_TRIED {
            let mut head = self.head_for(stream, false)?;
            let mut page = self.shape.page(head.block, head.next);
            if is_disguised(bytes, page) {
                let _ = self.standing.heads.advance(stream);
                self.standing.tail.end();
                self.summarize(false)?;
                head = self.head_for(stream, false)?;
                page = self.shape.page(head.block, head.next);
            }
            debug_assert!(!is_disguised(bytes, page) && !self.shape.is_summary(head.next));
            let tag = tag.and_then(|tag| Some(self.tag_place(page)?.seal(checksum(bytes), tag)));
            let outcome = match self.medium.program_raw(page, bytes, (tag.as_ref(), cause)) {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.close(stream, Programmed::Unknown);
                    return Err(error);
                }
            };
            if outcome == Programmed::Done {
                self.begin_group(head);
                Owners::filled(self.owners).set(&self.shape, head.next, owner);
                self.grow(stream, head.block);
                let is_seen = tag.is_some() || !self.medium.chip().is_erased(bytes);
                self.standing.tail.grow(page, (tag.is_some(), is_seen));
                self.summarize(false)?;
                return Ok(page);
            }
            self.give_up(stream, outcome)?;
        }
        Err(self.end())
    }

    /// A commit with this sequence was programmed: behind it a tail begins, where the stream of raw pages stands.
    fn begin_tail(&mut self, commit: u64) {
        let raw = self.standing.heads.raw().filter(|_| self.shape.has_tags());
        let head = raw.and_then(|raw| self.standing.heads.open(raw)).filter(|head| head.next > 0);
        self.standing.tail.begin(commit, head.map(|head| self.shape.page(head.block, head.next)));
    }

    /// What the next raw page has to say to be one of the tail, if it can be one: a mount would find it, and a recovery finds a block.
    pub(crate) fn tag_next(&self) -> Option<TagPlace> {
        let head = self.standing.heads.open(self.standing.heads.raw()?)?;
        self.tag_place(self.shape.page(head.block, head.next))
    }

    fn tag_place(&self, page: PageAddr) -> Option<TagPlace> {
        let is_safe = self.blocks.pool() >= TAGGED_FLOOR && self.standing.ready.remaining() >= TAGGED_READY;
        self.standing.tail.open_place(&self.shape, (self.medium.volume(), page)).filter(|_| is_safe)
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.standing.tail
    }

    /// Reads a page of the tail that the newest commit has, into `bytes`, a whole page, and what its owner said of it. One read.
    pub(crate) fn read_tail(&mut self, place: u16, bytes: &mut [u8]) -> Result<Tagged, LogError<N::Error>> {
        let Volume { medium, shape, blocks, standing, .. } = self;
        let Some((page, said)) = standing.tail.place(shape, (medium.volume(), place)) else { return Ok(Tagged::End) };
        if standing.tail.is_open() || !blocks.is_raw(shape.block_of(page)) {
            return Ok(Tagged::End);
        }
        let found = medium.read_tagged(page, bytes, &said)?;
        standing.tail.found_at(place, found);
        Ok(found)
    }

    /// The owners in memory are those of the group in which a stream goes on.
    fn begin_group(&mut self, head: Head) {
        let first = head.next - head.next % self.shape.raw_span;
        Owners::filled(self.owners).begin(head.block, self.blocks.erase_count(head.block), first);
    }

    /// Programs the summary of the group of raw pages that is filled, if it is full, or in any case if it is to be early and would say anything.
    fn summarize(&mut self, is_early: bool) -> Result<(), LogError<N::Error>> {
        let Some(stream) = self.standing.heads.raw() else { return Ok(()) };
        let Some(head) = self.standing.heads.open(stream) else { return Ok(()) };
        self.begin_group(head);
        if !self.shape.is_summary(head.next) && (!is_early || Owners::filled(self.owners).is_empty()) {
            return Ok(());
        }
        let page = self.shape.page(head.block, head.next);
        let positions = self.standing.heads.positions_with(stream);
        let Volume { medium, owners, shape, standing, .. } = self;
        medium.compose(shape.header_size(), |body| Owners::filled(owners).write(body));
        let fields = PageFields {
            kind: PageKind::Summary,
            sequence: 0,
            page: page.0,
            volume: 0,
            committed: standing.committed.map(|page| page.0),
            checkpoint: standing.anchors.number(),
            stream,
            flags: 0,
            positions: &positions[..usize::from(shape.positions())],
        };
        match medium.program_own(fields, Cause::Tree, false) {
            Ok(Programmed::Done) => {
                if let Some(full) = self.standing.heads.advance(stream) {
                    self.blocks.close(full);
                }
                // An early one may stand right before the place of the last one.
                if is_early { self.summarize(false) } else { Ok(()) }
            }
            // The owners are found otherwise.
            Ok(outcome) => self.give_up(stream, outcome),
            Err(error) => {
                self.close(stream, Programmed::Unknown);
                Err(error)
            }
        }
    }

    /// Before a clean checkpoint: says whose the raw pages are of the group that is filled.
    pub(crate) fn leave_raw(&mut self) -> Result<(), LogError<N::Error>> {
        self.summarize(true)
    }

    /// After a clean mount: whose the raw pages are of the group that is filled says the page before the next one. If it does not, nothing more goes to that block. One read.
    pub(crate) fn resume_raw(&mut self) -> Result<(), LogError<N::Error>> {
        let Some(stream) = self.standing.heads.raw() else { return Ok(()) };
        let Some(head) = self.standing.heads.open(stream) else { return Ok(()) };
        self.begin_group(head);
        let page = self.shape.page(head.block, head.next.saturating_sub(1));
        let Volume { medium, owners, shape, .. } = self;
        let is_begun = !head.next.is_multiple_of(shape.raw_span);
        if shape.is_summary(head.next) || is_begun && !Owners::filled(owners).read_from(medium, (shape, page))? {
            self.close(stream, Programmed::Unknown);
        }
        Ok(())
    }

    /// Whose a page in a block of raw pages is. Reads the summary of its group, unless that is the one that is emptied.
    pub(crate) fn whose(&mut self, page: PageAddr) -> Result<Whose, LogError<N::Error>> {
        let Volume { medium, shape, blocks, owners, .. } = self;
        let mut emptied = Owners::emptied(owners);
        let (block, nth) = (shape.block_of(page), shape.nth_of(page));
        if shape.is_summary(nth) {
            return Ok(Whose::Nobodys);
        }
        let first = nth - nth % shape.raw_span;
        if !emptied.begin(block, blocks.erase_count(block), first) {
            let last = (first + shape.raw_span).min(shape.pages) - 1;
            emptied.read_from(medium, (shape, shape.page(block, last)))?;
        }
        Ok(emptied.whose(shape, nth))
    }

    /// A key names a raw page, which may be one of the group that is emptied.
    pub(crate) fn found_owner(&mut self, page: PageAddr, key: &[u8]) {
        Owners::emptied(self.owners).found(&self.shape, page, key);
    }

    /// Every key was asked.
    pub(crate) fn found_owners(&mut self) {
        Owners::emptied(self.owners).set_known();
    }

    /// Open blocks that are to be emptied since they were read too often are closed, where there are others to open. A mount finds the next one by the ready list, as after a failed program.
    pub(crate) fn close_endangered(&mut self) {
        for stream in 0..self.shape.streams {
            let is_endangered = |head: &Head| self.blocks.has(head.block, Flag::Refresh);
            if self.blocks.pool() > OPENED_FLOOR && self.standing.heads.open(stream).as_ref().is_some_and(is_endangered)
            {
                self.close(stream, Programmed::Done);
            }
        }
    }

    /// No more pages go to the block of a stream.
    pub(crate) fn close(&mut self, stream: u8, outcome: Programmed) {
        let Some(head) = self.standing.heads.open(stream) else { return };
        self.standing.heads.close(stream);
        match outcome {
            Programmed::Failed => self.blocks.fail(head.block),
            Programmed::Done | Programmed::Unknown => self.blocks.close(head.block),
        }
        debug_assert!(self.standing.heads.open(stream).is_none() && self.blocks.state(head.block).is_closed());
    }

    /// A program failed, or nobody knows: no more of them in this block.
    fn give_up(&mut self, stream: u8, outcome: Programmed) -> Result<(), LogError<N::Error>> {
        let Some(head) = self.standing.heads.open(stream) else { return Ok(()) };
        self.close(stream, outcome);
        if head.next == 0 {
            // Nothing in it is needed, and no header has to tell of it.
            self.standing.heads.forget(stream);
        }
        // A program that went astray may have hit the only page before it.
        let is_lonely = head.next == 0 || (head.next == 1 && outcome == Programmed::Unknown);
        if stream == 0 && is_lonely {
            // Roll-forward finds the blocks with commits by their first pages. Without a checkpoint here, a cut after the next
            // block was opened would leave a hole there, and everything acknowledged behind it would be lost.
            self.checkpoint(false)?;
        }
        Ok(())
    }

    /// Puts right what a cut left. It can be cut itself and begun again: it erases nothing that the newest checkpoint or the one before it
    /// needs, and what it programs counts only once its own checkpoint is complete.
    pub(crate) fn recover(&mut self, rolled: &Rolled) -> Result<(), LogError<N::Error>> {
        self.medium.pass_sequence(rolled.newest.map_or(0, |found| found.sequence.saturating_add(1)));
        self.medium.pass_sequence(self.medium.sequence().saturating_add(SEQUENCE_GAP));
        self.resume();
        self.standing.is_exact = false;
        self.standing.committed = rolled.newest.map(|found| found.page).or(self.standing.committed);
        if let Some(found) = &rolled.newest {
            self.standing.tail = Roll { shape: &self.shape, standing: &self.standing }.tail_behind(found);
        }
        let doubts = !self.is_broken(|it| it.erase_proof);
        let Volume { blocks, standing, shape, .. } = self;
        let last = classify((blocks, standing), (shape, doubts), rolled);
        debug_assert!(self.blocks.in_state(State::Open) == 0, "nothing goes on where it was");
        if let Some(page) = self.standing.committed {
            self.hold_commit(page)?;
        }
        if self.standing.is_read_only {
            return Ok(());
        }
        // A commit that the checkpoint names was complete. One behind it may be the very page that was being programmed when the power went;
        // it may read well now and not later.
        let is_recovered = match rolled.newest.filter(|_| !self.is_broken(|it| it.quarantine)) {
            Some(found) => self.copy_commit(&found)?,
            None => true,
        };
        if !is_recovered {
            self.standing.is_read_only = true;
            return Ok(());
        }
        self.go_on(last)?;
        match self.checkpoint(false) {
            Err(LogError::ReadOnly) => Ok(()),
            result => result,
        }
    }

    /// Goes on in the block that stream 0 was in, behind the page that may be torn (N9): with commits, or with survivors where the newest commit was copied to another block. The checkpoint
    /// that says so is complete before the next program, so a mount after another cut begins behind that page, however often that happens: a cut takes a page. One read.
    fn go_on(&mut self, last: Option<(BlockAddr, u16)>) -> Result<(), LogError<N::Error>> {
        let torn = u16::from(!self.is_broken(|it| it.quarantine));
        let Some((block, next)) = last.filter(|&(_, next)| next + torn < self.shape.pages) else { return Ok(()) };
        let is_erased = matches!(self.medium.probe(self.shape.page(block, next + torn))?, Probe::Erased);
        if is_erased && self.blocks.state(block) == State::Closed && !self.blocks.has(block, Flag::Refresh) {
            let stream = u8::from(self.standing.heads.open(0).is_some());
            self.standing.heads.begin(stream, block, next + torn, None);
            // An image may say that more live than there are.
            self.blocks.set_live(block, self.blocks.live(block).min(next + torn));
            self.blocks.reopen(block, stream);
        }
        Ok(())
    }

    /// The block of the newest commit has to hold data, and at least that page; a hostile image may say otherwise.
    pub(crate) fn hold_commit(&mut self, page: PageAddr) -> Result<(), LogError<N::Error>> {
        let found = self.medium.load(page)?;
        let block = self.shape.block_of(page);
        let is_right = found.kind == PageKind::Commit && self.blocks.state(block).holds_data();
        if !is_right || found.sequence >= self.medium.sequence() {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Committed) });
        }
        if self.blocks.live(block) == 0 {
            self.blocks.set_live(block, 1);
        }
        debug_assert!(!self.blocks.is_listable(block), "the block of the newest commit is not erased (N7)");
        Ok(())
    }

    /// Copies the newest commit to a block of the ready list, which is erased here; `false` if there is no block for it.
    ///
    /// Neither this checkpoint nor the one before it needs the block. A cut leaves in it a page with the number of a checkpoint that does not exist, which roll-forward passes over.
    fn copy_commit(&mut self, found: &Found) -> Result<bool, LogError<N::Error>> {
        debug_assert!(self.standing.committed == Some(found.page) && found.kind == PageKind::Commit);
        while self.standing.ready.remaining() > 0 {
            let (slot, listed) = self.standing.ready.take(End::Front);
            let Some(erased) = self.erase(listed, Cause::Recovery)? else { continue };
            let block = erased.block();
            self.begin_block(0, erased, slot);
            let page = self.shape.page(block, 0);
            // Where a read between failed, the buffer holds something else.
            self.medium.load(found.page)?;
            let fields = PageFields {
                kind: found.kind,
                sequence: 0,
                page: page.0,
                volume: 0,
                committed: found.committed.map(|page| page.0),
                checkpoint: self.standing.anchors.number().saturating_add(1),
                stream: 0,
                flags: 0,
                positions: self.shape.no_positions(),
            };
            let outcome = self.medium.program_own(fields, Cause::Recovery, false)?;
            if outcome == Programmed::Done {
                self.grow(0, block);
                self.blocks.lose(self.shape.block_of(found.page));
                self.standing.committed = Some(page);
                debug_assert!(self.blocks.live(block) == 1 && page != found.page);
                return Ok(true);
            }
            self.close(0, outcome);
            self.standing.heads.forget(0);
        }
        Ok(false)
    }
}
