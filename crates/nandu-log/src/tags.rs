//! The tail: bare pages behind the newest commit that promise something by themselves.
//!
//! A bare page says nothing of itself, so that it promises nothing until a commit names it: two programs for a page that has to
//! be durable. Where the chip has protected bytes in its spare area, the page can carry a *tag* ([`nandu_media::tag`]), in which its owner
//! says what a commit would say of it, and one program is enough. The tagged pages behind a commit are its *tail*. It is short
//! ([`TAIL_MAX`]), since a mount after a cut reads all of it; then there is a commit, which names them all.
//!
//! * **L13** The pages of a tail stand one after the other in one block of the first bare stream, from where the newest commit left that
//!   stream on. That is what its header says, or, where a checkpoint came between, the checkpoint ([`Tail`]). So they are found, and
//!   nothing else passes for one: a tag fits its page, its content, its commit and its place only.
//! * **L14** A tagged page is programmed only if an entry of the ready list remains, as L6 says of commits.
//! * **L15** The last page of a tail may be the one that was being programmed at the cut: it is programmed again elsewhere. The others were
//!   complete before it, and are named where they stand. When the owner has taken over all of it ([`Log::due_page`]) it says so
//!   ([`Log::end_tail`]). Until that checkpoint is made
//!   the tail is *due*: every mount finds it, whatever was committed meanwhile, and its block is not erased. Without that, a cut
//!   between two commits of the owner's would lose the rest.
//! * **L16** What is taken over is taken over in order, from the state of the commit on, and from the beginning again after a cut. So what the
//!   owner says in a tag has to mean the same however often it is done. The last page may be torn, and be read by one mount and not by
//!   the next: the change that it tells of goes in one commit with a record of the owner's that names the tail ([`Log::due_tail`]), and a mount
//!   that finds that makes nothing again.
//! * **L17** A page of a tail that cannot be read has decayed if a page whose tag fits stands behind it, since that was programmed only after
//!   the page was complete; otherwise it may be the one that was being programmed, and promises nothing. Its tag is of no use without
//!   the page, so nobody can say whose it was: the owner is told that a page is lost ([`Due::Lost`], [`LogStats::tail_lost`](crate::LogStats::tail_lost)).
//!
//! A move is a commit, and recovery gives up the newest one, since the commit before it says the same. A tail behind it is none the worse: it
//! was found by the move's header, and is taken over from a state that is the same to the owner. Nor is its block among those that are taken for
//! unopened where that undoes moves, since an entry remained (L14).

use nandu_media::Malformed;
use nandu_media::checksum::checksum;
use nandu_media::tag::{TAG_OWNER_SIZE, TAG_SIZE, TagPlace};
use nandu_nand::{Nand, NandError, NandErrorKind, PageAddr};

use crate::block_table::INEXACT;
use crate::error::LogError;
use crate::log::{Condition, Log};
use crate::ready::Frontier;
use crate::tail::OpenTail;

/// Most pages of a tail: a mount after a cut reads each of them twice at most, and every page beyond is one more of that for a
/// smaller share of a commit.
pub const TAIL_MAX: u16 = 15;

/// The same while the collector works. It moves nothing while a tail grows, so the instalments of all its pages are paid at once: on a chip
/// 70 % full of pages that are overwritten by chance, the worst write took 171 ms with 15, 67 ms with 3, 60 ms without tags, the mean
/// one 2.43, 2.47 and 2.75 ms.
const TAIL_MAX_COLLECTING: u16 = 3;

/// What is found of a page of a tail that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The page is as it was programmed.
    Whole {
        /// What its tag says.
        owner: [u8; TAG_OWNER_SIZE],
        /// CRC-32C of the page.
        checksum: u32,
    },
    /// The page, or its tag, cannot be read any more.
    Lost,
}

/// What is read of a page of a tail.
enum Found {
    /// Its tag is erased: no page was programmed there.
    Nothing,
    /// It is as it was programmed; what its tag says, and its checksum.
    Fits([u8; TAG_OWNER_SIZE], u32),
    /// Torn, decayed, or of something else.
    Other,
}

impl<N: Nand> Log<'_, N> {
    /// The stream that a tail is in.
    pub(crate) fn tail_stream(&self) -> u8 {
        self.shape.headed()
    }

    /// Whether a page appended now to the stream of new bare pages would be durable by its tag: if there is room for the tail and the
    /// pages behind it.
    pub fn can_tag(&self) -> bool {
        let stream = self.tail_stream();
        let frontier = self.frontiers.get(usize::from(stream)).copied().flatten();
        let is_next = |page: PageAddr| {
            let next = frontier.filter(|frontier| !frontier.is_closed);
            next.is_some_and(|next| self.shape.page_of(stream, next.block, next.next) == page)
        };
        self.next_tagged().is_some_and(is_next) && self.bare_room(stream) > 1
    }

    /// Tagged pages behind the newest commit.
    pub fn tail_len(&self) -> u16 {
        self.tags.open().map_or(0, |open| open.count)
    }

    /// Where the next page of the tail has to stand.
    fn next_tagged(&self) -> Option<PageAddr> {
        let most = if self.is_pool_low() { TAIL_MAX_COLLECTING } else { TAIL_MAX };
        let open = self.tags.open().filter(|open| open.count < most)?;
        let has_entry = self.ready.remaining() > 0;
        has_entry.then_some(PageAddr(open.first.0 + u32::from(open.count)))
    }

    /// The tag of a page that is about to be programmed, if it has one there.
    pub(crate) fn tag_of(
        &self,
        stream: u8,
        page: PageAddr,
        main: &[u8],
        owner: Option<&[u8; TAG_OWNER_SIZE]>,
    ) -> Option<[u8; TAG_SIZE]> {
        let open = self.tags.open()?;
        let is_next = stream == self.tail_stream() && self.next_tagged() == Some(page);
        let place = TagPlace { volume: self.volume, page: page.0, commit: open.commit, place: open.count.into() };
        is_next.then(|| owner.map(|owner| place.seal(checksum(main), owner)))?
    }

    /// A tagged page was programmed.
    pub(crate) fn grow_tail(&mut self) {
        self.tags.set_open(self.tags.open().map(|open| OpenTail { count: open.count + 1, ..open }));
    }

    /// A page with this sequence is the newest commit: behind it a tail begins, if anybody would find it (L13).
    pub(crate) fn begin_tail(&mut self, commit: u64) {
        if !self.shape.has_tags() {
            return;
        }
        let stream = self.tail_stream();
        let may = self.tags.due().is_none();
        let frontier = self.frontiers.get(usize::from(stream)).copied().flatten();
        // No header says where a stream stands that has no page in its block yet.
        let is_known = |next: u16| next > 0 && next < self.shape.pages;
        let next = frontier.filter(|frontier| may && !frontier.is_closed && is_known(frontier.next));
        let first = |next: Frontier| self.shape.page_of(stream, next.block, next.next);
        self.tags.set_open(next.map(|next| OpenTail { commit, first: first(next), count: 0 }));
    }

    /// Whether there are tagged pages that the owner has to take over (L15).
    pub fn has_due_tail(&self) -> bool {
        self.tags.due().is_some()
    }

    /// Reads a page of the tail that is to be taken over, from 0 on, and what its tag says. `None` behind the last one. One
    /// read; beside a page that cannot be read, those of the pages behind it, up to one that fits.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`]; [`LogError::Poisoned`].
    pub fn due_page(&mut self, place: u16, bytes: &mut [u8]) -> Result<Option<Due>, LogError<N::Error>> {
        if self.condition == Condition::Poisoned {
            return Err(LogError::Poisoned);
        }
        if bytes.len() != self.page_size() {
            return Err(LogError::Corrupt { page: PageAddr(0), why: Malformed::Size });
        }
        let due = self.read_due(place, bytes)?;
        if due.is_some() {
            self.stats.tail_pages = self.stats.tail_pages.max(u64::from(place) + 1);
        }
        if due == Some(Due::Lost) {
            self.stats.tail_lost |= 1 << place;
        }
        Ok(due)
    }

    /// Where options do not believe a single read that a page is not there, a second one.
    pub(crate) fn read_due(&mut self, place: u16, bytes: &mut [u8]) -> Result<Option<Due>, LogError<N::Error>> {
        match self.read_due_once(place, bytes)? {
            whole @ Some(Due::Whole { .. }) => Ok(whole),
            _ if self.options.read_back => self.read_due_once(place, bytes),
            due => Ok(due),
        }
    }

    fn read_due_once(&mut self, place: u16, bytes: &mut [u8]) -> Result<Option<Due>, LogError<N::Error>> {
        match self.read_tagged(place, bytes)? {
            Found::Nothing => return Ok(None),
            Found::Fits(owner, checksum) => return Ok(Some(Due::Whole { owner, checksum })),
            Found::Other => {}
        }
        // Torn, or decayed (L17).
        for behind in place + 1..TAIL_MAX {
            match self.read_tagged(behind, bytes)? {
                Found::Nothing => break,
                Found::Fits(..) => return Ok(Some(Due::Lost)),
                Found::Other => {}
            }
        }
        Ok(None)
    }

    /// Reads a page of the tail that is due, and its tag. One read.
    fn read_tagged(&mut self, place: u16, bytes: &mut [u8]) -> Result<Found, LogError<N::Error>> {
        let geometry = self.shape.geometry;
        let Some(due) = self.tags.due().filter(|_| place < TAIL_MAX) else { return Ok(Found::Nothing) };
        let page = PageAddr(due.first.saturating_add(place.into()));
        if !geometry.contains_page(page) || geometry.block_of(page) != geometry.block_of(PageAddr(due.first)) {
            return Ok(Found::Nothing);
        }
        let mut tag = [0; TAG_SIZE];
        if !self.reads(page, bytes, &mut tag)? {
            return Ok(Found::Other);
        }
        if tag == [0xFF; TAG_SIZE] {
            return Ok(Found::Nothing);
        }
        let place = TagPlace { volume: self.volume, page: page.0, commit: due.commit, place: place.into() };
        let checksum = checksum(bytes);
        Ok(place.open(checksum, &tag).map_or(Found::Other, |owner| Found::Fits(owner, checksum)))
    }

    /// Reads a page and its tag, which may be torn; `false` if they cannot be read.
    fn reads(&mut self, page: PageAddr, bytes: &mut [u8], tag: &mut [u8]) -> Result<bool, LogError<N::Error>> {
        self.note_read(page);
        match Self::try_reads(|| self.nand.read_tagged(page, bytes, tag)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(self.chip_error(error)),
        }
    }

    /// Where a page of the tail that is due stands.
    pub fn due_address(&self, place: u16) -> Option<PageAddr> {
        self.tags.due().map(|due| PageAddr(due.first.saturating_add(place.into())))
    }

    /// Which tail is due: the sequence of the commit before it, and its first page. No other tail of the volume has both.
    pub fn due_tail(&self) -> Option<(u64, PageAddr)> {
        self.tags.due().map(|due| (due.commit, PageAddr(due.first)))
    }

    /// Says that the tail was taken over, and that it is durable. A checkpoint; nothing where none is due.
    ///
    /// # Errors
    ///
    /// As [`Log::checkpoint`].
    pub fn end_tail(&mut self) -> Result<(), LogError<N::Error>> {
        self.check_writable()?;
        if self.tags.due().is_none() {
            return Ok(());
        }
        self.tags.set_due(None);
        self.write_checkpoint(false)
    }

    /// Counts the pages of a tail that is due as live, before the checkpoint of the recovery: commits are going to name them in a block that
    /// is closed, and after another cut the newest checkpoint must not say less than they do (L5).
    pub(crate) fn count_tail(&mut self) {
        let Some(due) = self.tags.due() else { return };
        let block = self.shape.geometry.block_of(PageAddr(due.first));
        if self.blocks.state(block).holds_data() {
            let live = (self.blocks.live(block) + TAIL_MAX).min(self.blocks.pages(block));
            self.blocks.set_live(block, live);
            self.blocks.set(block, INEXACT, true);
        }
    }
}
