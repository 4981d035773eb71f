//! A volume that is open: its blocks, its streams, its checkpoints, and what a cut left of them.

use nandu_media::checksum::checksum;
use nandu_media::tag::TagPlace;
use nandu_media::{Field, Malformed, PageFields, PageKind};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr, ReadStatus};

use crate::anchors::{Anchors, Said, Standing};
use crate::blocks::{Blocks, Flag, Stage};
use crate::chip::{Chip, Programmed};
use crate::disturb::Disturb;
use crate::error::LogError;
use crate::grant::PageInfo;
use crate::heads::{Head, Heads};
use crate::medium::Medium;
use crate::options::Broken;
use crate::order::{Erased, Listed};
use crate::pairs::{Exposure, Pairs};
use crate::parts::Parts;
use crate::raw::{Owner, Owners, Rescued, Whose, is_disguised, whose};
use crate::ready::{End, Ready};
use crate::reserve::OPENED_FLOOR;
use crate::shape::Shape;
use crate::tail::{Tag, Tagged, Tail};

/// Blocks that one page tries before it is given up.
const BLOCKS_TRIED: u32 = 8;

/// Blocks of the pool where a page may be tagged: after a cut one is for the copy of the newest commit, one for that of the page, and one for a leaf, and pages are neither moved nor counted before those of the tail are named.
const TAGGED_FLOOR: u32 = OPENED_FLOOR + 3;

/// Blocks on the ready list with which a page may be tagged: a mount may know of no others, and takes one for the newest commit and one for the last page of the tail; one stays for a recovery from a cut after that.
const TAGGED_READY: usize = 3;

/// Highest sequence of a volume that can be written: far enough from the end that nothing overflows in a mount.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX - (1 << 40);

/// A volume.
pub(crate) struct Volume<'m, N> {
    medium: Medium<'m, N>,
    shape: Shape,
    blocks: Blocks<'m>,
    standing: Standing,
    disturb: Disturb,
    /// Owners of the raw pages of the groups that are filled, and of the one that is emptied.
    owners: &'m mut [Owner],
    pairs: Pairs,
    /// Bytes of pages that nobody else has, by their places there.
    exposed: &'m mut [u8],
    broken: Broken,
}

impl<'m, N: Nand> Volume<'m, N> {
    /// A volume of which nothing is known yet.
    pub(crate) fn new(parts: Parts<'m, N>) -> Volume<'m, N> {
        let Parts { nand, shape, page, exposed, entries, table, owners, reads_back, reads_max, broken } = parts;
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
            pairs: Pairs::NONE,
            exposed,
            broken,
        }
    }

    pub(crate) fn release(self) -> N {
        self.medium.release()
    }

    /// Whether a test leaves this rule out. Known to the compiler where there are no such tests.
    pub(crate) fn is_broken(&self, rule: impl FnOnce(&Broken) -> bool) -> bool {
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
        self.pairs = Pairs::NONE;
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
        self.standing.ready = self.blocks.list_more(&self.standing.ready, self.shape.ready_max.into());
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

    /// Marks the blocks that the newest checkpoint calls bad.
    ///
    /// After the checkpoint, not before: a block whose mark is on the chip and whose record says that it can be used would
    /// be erased after a cut, and a marked block must not be. The other way round, the record alone is enough.
    fn mark_retired(&mut self) -> Result<(), LogError<N::Error>> {
        for block in self.blocks.addresses() {
            if self.blocks.state(block) == Stage::Bad && self.blocks.has(block, Flag::Mark) {
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
    pub(crate) fn erase(
        &mut self,
        listed: Listed,
        (mode, cause): (CellMode, Cause),
    ) -> Result<Option<Erased>, LogError<N::Error>> {
        let block = listed.block();
        if !self.may_use(block)? {
            self.blocks.found_bad(block);
            return Ok(None);
        }
        // What was erased ahead has one bit a cell (N12).
        let proven = if mode == CellMode::Slc { self.blocks.prove_erased(listed) } else { Err(listed) };
        let listed = match proven {
            Ok(erased) => return Ok(Some(erased)),
            Err(listed) => listed,
        };
        let erasure = self.medium.erase(self.shape.page(block, 0), (mode, cause))?;
        self.blocks.count_erases(block, erasure.count);
        if !erasure.is_done {
            self.blocks.retire(block);
            return Ok(None);
        }
        self.blocks.erased(block);
        Ok(Some(listed.erased()))
    }

    /// A block at an end of the ready list that is not erased yet. Where streams of both modes take from the back, how it is to be erased is not known before.
    fn due_ahead(&self) -> Option<Listed> {
        let is_due = |listed: &Listed| self.blocks.state(listed.block()) == Stage::Listed;
        let ends = if self.shape.has_mlc() { &[End::Front][..] } else { &[End::Front, End::Back] };
        ends.iter().copied().filter_map(|end| self.standing.ready.peek(end)).find(is_due)
    }

    /// Whether the next block for what survives is erased.
    pub(crate) fn is_erased_ahead(&self) -> bool {
        let next = self.standing.ready.peek(End::Back).filter(|_| !self.shape.has_mlc() && self.openable() > 0);
        next.is_some_and(|listed| self.blocks.state(listed.block()) == Stage::Ready)
    }

    /// Erases a block at an end of the ready list, so that the operation that opens it does not have to; `false` if none is due.
    pub(crate) fn erase_ahead(&mut self) -> Result<bool, LogError<N::Error>> {
        if self.due_ahead().is_none() {
            return Ok(false);
        }
        self.leave_clean()?;
        if let Some(listed) = self.due_ahead()
            && self.erase(listed, (CellMode::Slc, Cause::Gc))?.is_none()
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
            if let Some(erased) = self.erase(listed, (self.standing.heads.mode(stream), Cause::Gc))? {
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
    pub(crate) fn begin_block(&mut self, stream: u8, erased: Erased, slot: u8) {
        self.standing.heads.begin(stream, erased.block(), 0, Some(slot));
        self.blocks.open(erased, (stream, self.standing.heads.is_raw(stream)));
    }

    /// A page was programmed in the block of a stream, and lives.
    pub(crate) fn grow(&mut self, stream: u8, block: BlockAddr) {
        self.blocks.gain(block);
        self.advance(stream);
    }

    /// The next page of a stream is the one behind.
    fn advance(&mut self, stream: u8) {
        if let Some(full) = self.standing.heads.advance(stream) {
            self.blocks.close(full);
            self.settle_pairs(stream);
        }
    }

    /// Nothing more goes to the block of a stream, so nothing more can happen to its pages.
    fn settle_pairs(&mut self, stream: u8) {
        if self.standing.heads.mode(stream) == CellMode::Mlc {
            self.pairs.close();
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
        (mode, exposure, cause): (CellMode, Exposure, Cause),
    ) -> Result<PageAddr, LogError<N::Error>> {
        self.check_writable()?;
        self.leave_clean()?;
        let Some(stream) = self.standing.heads.raw(mode) else { return Err(LogError::Full) };
        for _ in 0..BLOCKS_TRIED {
            let (head, page) = self.raw_head((stream, mode), bytes)?;
            debug_assert!(!is_disguised(bytes, page) && !self.shape.is_summary((mode, head.next)));
            let tag = tag.and_then(|tag| Some(self.tag_place(page)?.seal(checksum(bytes), tag)));
            let outcome = match self.medium.program_raw(page, bytes, (tag.as_ref(), cause)) {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.close(stream, Programmed::Unknown);
                    return Err(error);
                }
            };
            if outcome == Programmed::Done {
                self.begin_group((mode, head));
                Owners::filled(self.owners, &self.shape, mode).set(&self.shape, (mode, head.next), owner);
                self.expose(page, bytes, (owner, exposure));
                self.grow(stream, head.block);
                let is_seen = tag.is_some() || !self.medium.chip().is_erased(bytes);
                self.standing.tail.grow(page, (tag.is_some(), is_seen));
                self.summarize((stream, mode), false)?;
                self.end_block((stream, mode))?;
                return Ok(page);
            }
            self.give_up(stream, outcome)?;
        }
        Err(self.end())
    }

    /// Where the next raw page of a stream goes: not over the cells of what a commit named, and not where it would pass for a page of the log.
    fn raw_head(&mut self, of: (u8, CellMode), bytes: &[u8]) -> Result<(Head, PageAddr), LogError<N::Error>> {
        loop {
            self.summarize(of, false)?;
            let head = self.head_for(of.0, false)?;
            let page = self.shape.page_in(of.1, head.block, head.next);
            if self.passes_left_out(of) {
                continue;
            }
            if !is_disguised(bytes, page) {
                return Ok((head, page));
            }
            self.pass(of, page);
            self.standing.tail.end();
        }
    }

    /// A page of the open block of a stream is behind it: programmed by the log itself, or not programmed.
    fn pass(&mut self, (stream, mode): (u8, CellMode), page: PageAddr) {
        debug_assert!(self.standing.heads.open(stream).is_some_and(|head| head.block == self.shape.block_of(page)));
        if mode == CellMode::Mlc {
            self.pairs.passed(&self.shape, page);
        }
        self.advance(stream);
    }

    /// Passes over the next page of a stream if that is to be left out; returns whether it is.
    fn passes_left_out(&mut self, (stream, mode): (u8, CellMode)) -> bool {
        let head = self.standing.heads.open(stream).filter(|_| mode == CellMode::Mlc);
        let next = head.map(|head| self.shape.page_in(mode, head.block, head.next));
        let left_out = next.filter(|&next| self.pairs.is_left_out(&self.shape, next));
        if let Some(page) = left_out {
            self.pairs.leave_out();
            self.pass((stream, mode), page);
        }
        left_out.is_some()
    }

    /// A raw page was programmed: if it shares its cells with one that is to be programmed yet, and nobody else has its bytes, these are kept.
    fn expose(&mut self, page: PageAddr, bytes: &[u8], of: (Owner, Exposure)) {
        if self.blocks.mode(self.shape.block_of(page)) == CellMode::Mlc
            && let Some(place) = self.pairs.programmed(&self.shape, page, of)
            && let Some(room) = self.exposed.chunks_exact_mut(bytes.len()).nth(place)
        {
            room.copy_from_slice(bytes);
        }
    }

    /// Whether a commit may name a page.
    pub(crate) fn is_settled(&self, page: PageAddr) -> bool {
        !matches!(self.pairs.exposure(page), Some(Exposure::Copy(_))) || self.is_broken(|it| it.early)
    }

    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    pub(crate) fn pairs_mut(&mut self) -> &mut Pairs {
        &mut self.pairs
    }

    /// A page that shared its cells with one that failed, if there is one. If it is no copy, it is programmed elsewhere, with one bit a cell, from `bytes`, which get what it held.
    pub(crate) fn rescue(&mut self, bytes: &mut [u8]) -> Result<Option<Rescued>, LogError<N::Error>> {
        let Some((place, lost)) = self.pairs.lost().filter(|_| self.shape.has_mlc()) else { return Ok(None) };
        let kept = self.exposed.chunks_exact(bytes.len()).nth(place).filter(|_| lost.exposure == Exposure::Named);
        debug_assert!(kept.is_some() || lost.exposure != Exposure::Named, "what nobody else has is kept");
        let mut to = None;
        if let Some(kept) = kept {
            bytes.copy_from_slice(kept);
            to = Some(self.append_raw(bytes, (lost.owner, None), (CellMode::Slc, Exposure::Named, Cause::Value))?);
        }
        self.pairs.end_lost(place);
        Ok(Some(Rescued { from: lost.page, to, owner: lost.owner }))
    }

    /// If a commit now would leave nothing of the open block of a stream, its summary comes now, and nothing behind it. Not with the commit: if its program fails, that takes a page along which the commit names.
    fn end_block(&mut self, (stream, mode): (u8, CellMode)) -> Result<(), LogError<N::Error>> {
        let Some(head) = self.standing.heads.open(stream).filter(|_| mode == CellMode::Mlc) else { return Ok(()) };
        let mut shielded = self.pairs;
        shielded.shield();
        let mut left = (head.next..self.shape.pages_max()).map(|nth| self.shape.page_in(mode, head.block, nth));
        if left.all(|page| shielded.is_left_out(&self.shape, page)) {
            Owners::filled(self.owners, &self.shape, mode).end_at(head.next);
            self.summarize((stream, mode), true)?;
            self.close(stream, Programmed::Done);
        }
        Ok(())
    }

    /// A commit comes, which may name whatever an owner appended: nothing is programmed over that from here on (N13).
    pub(crate) fn shield(&mut self) {
        if let Some(stream) = self.standing.heads.raw(CellMode::Mlc).filter(|_| !self.is_broken(|it| it.shield)) {
            self.pairs.shield();
            while self.passes_left_out((stream, CellMode::Mlc)) {}
        }
    }

    /// A commit with this sequence was programmed: behind it a tail begins, where the stream of raw pages stands.
    fn begin_tail(&mut self, commit: u64) {
        let raw = self.standing.heads.raw(CellMode::Slc).filter(|_| self.shape.has_tags());
        let head = raw.and_then(|raw| self.standing.heads.open(raw)).filter(|head| head.next > 0);
        self.standing.tail.begin(commit, head.map(|head| self.shape.page(head.block, head.next)));
    }

    /// What the next raw page has to say to be one of the tail, if it can be one: a mount would find it, and a recovery finds a block.
    pub(crate) fn tag_next(&self) -> Option<TagPlace> {
        let head = self.standing.heads.open(self.standing.heads.raw(CellMode::Slc)?)?;
        self.tag_place(self.shape.page(head.block, head.next))
    }

    fn tag_place(&self, page: PageAddr) -> Option<TagPlace> {
        // A tagged page is programmed once.
        let is_safe = self.standing.heads.commits() == 1
            && self.blocks.pool() >= TAGGED_FLOOR
            && self.standing.ready.remaining() >= TAGGED_READY;
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
        let is_end = standing.tail.found_at(place, found);
        Ok(if is_end { Tagged::End } else { found })
    }

    /// The owners in memory are those of the group in which a stream goes on.
    fn begin_group(&mut self, (mode, head): (CellMode, Head)) {
        let first = head.next - head.next % self.shape.raw_span(mode);
        let erases = self.blocks.erase_count(head.block);
        Owners::filled(self.owners, &self.shape, mode).begin(head.block, erases, first);
    }

    /// Programs the summary of the group of raw pages that is filled, if it is full, or in any case if it is to be early and would say anything.
    fn summarize(&mut self, (stream, mode): (u8, CellMode), is_early: bool) -> Result<(), LogError<N::Error>> {
        let Some(head) = self.standing.heads.open(stream) else { return Ok(()) };
        self.begin_group((mode, head));
        let is_told = is_early && !Owners::filled(self.owners, &self.shape, mode).is_empty();
        let is_due = is_told || self.shape.is_summary((mode, head.next));
        if !is_due || self.passes_left_out((stream, mode)) {
            return Ok(());
        }
        let page = self.shape.page_in(mode, head.block, head.next);
        let positions = self.standing.heads.positions_with(stream);
        let Volume { medium, owners, shape, standing, .. } = self;
        medium.compose(shape.header_size(), |body| Owners::filled(owners, shape, mode).write(body));
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
                self.pass((stream, mode), page);
                // An early one may stand right before the place of the last one.
                if is_early { self.summarize((stream, mode), false) } else { Ok(()) }
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
        for mode in [CellMode::Slc, CellMode::Mlc] {
            if let Some(stream) = self.standing.heads.raw(mode) {
                while self.passes_left_out((stream, mode)) {}
                self.summarize((stream, mode), true)?;
            }
        }
        Ok(())
    }

    /// After a clean mount: whose the raw pages are of a group that is filled says the page before the next one. If it does not, nothing more goes to that block. One read for each.
    pub(crate) fn resume_raw(&mut self) -> Result<(), LogError<N::Error>> {
        for mode in [CellMode::Slc, CellMode::Mlc] {
            let Some(stream) = self.standing.heads.raw(mode) else { continue };
            let Some(head) = self.standing.heads.open(stream) else { continue };
            self.begin_group((mode, head));
            let page = self.shape.page_in(mode, head.block, head.next.saturating_sub(1));
            let Volume { medium, owners, shape, .. } = self;
            let mut filled = Owners::filled(owners, shape, mode);
            let is_begun = !head.next.is_multiple_of(shape.raw_span(mode));
            if shape.is_summary((mode, head.next)) || is_begun && !filled.read_from(medium, (shape, page))? {
                self.close(stream, Programmed::Unknown);
            } else if mode == CellMode::Mlc {
                self.pairs.resume(&self.shape, self.shape.page_in(mode, head.block, head.next));
            }
        }
        Ok(())
    }

    /// Whose a page in a block of raw pages is. Reads the summary of its group, unless that is the one that is emptied.
    pub(crate) fn whose(&mut self, page: PageAddr) -> Result<Whose, LogError<N::Error>> {
        let Volume { medium, shape, blocks, owners, .. } = self;
        let block = shape.block_of(page);
        whose((medium, shape), owners, page, (blocks.mode(block), blocks.erase_count(block)))
    }

    /// Programs and erases since the mount.
    pub(crate) fn spent(&self) -> (u64, u64) {
        let counters = self.medium.chip().counters();
        (counters.programs.iter().sum(), counters.erases)
    }

    /// A key names a raw page, which may be one of the group that is emptied.
    pub(crate) fn found_owner(&mut self, page: PageAddr, key: &[u8]) {
        let mode = self.blocks.mode(self.shape.block_of(page));
        Owners::emptied(self.owners, &self.shape).found(&self.shape, (mode, page), key);
    }

    /// Every key was asked.
    pub(crate) fn found_owners(&mut self) {
        Owners::emptied(self.owners, &self.shape).set_known();
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
        self.settle_pairs(stream);
        debug_assert!(self.standing.heads.open(stream).is_none() && self.blocks.state(head.block).is_closed());
    }

    /// A program failed, or nobody knows: no more of them in this block.
    fn give_up(&mut self, stream: u8, outcome: Programmed) -> Result<(), LogError<N::Error>> {
        let Some(head) = self.standing.heads.open(stream) else { return Ok(()) };
        if self.standing.heads.mode(stream) == CellMode::Mlc {
            self.pairs.failed(&self.shape, self.shape.page_in(CellMode::Mlc, head.block, head.next));
        }
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
}
