//! Mounting: the newest checkpoint, read and checked; then what came after it.

use core::fmt;

use nandu_media::anchor::MODE_MLC;
use nandu_media::table::RECORD_SIZE;
use nandu_media::{Anchor, BlockRecord, Field, Malformed, Page, PageKind, Position};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::access::Probe;
use crate::block_table::{HELD, State};
use crate::compiled::{COMPILED, Uses};
use crate::error::LogError;
use crate::log::{Condition, Log};
use crate::memory::Parts;
use crate::options::LogOptions;
use crate::ready::Frontier;
use crate::search::NewestAnchor;
use crate::shape::Shape;

/// By how much the sequence jumps after a cut. Pages that a cut left unread have numbers below: there are at most as many
/// as one recovery programs, and one; and pages of bare streams, for which it jumps further.
pub(crate) const SEQUENCE_GAP: u64 = 4096;

/// Highest sequence of a volume that can be written: far enough from the end that nothing overflows in a mount.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX - (1 << 40);

/// How often a mount is tried. A page that was being programmed at the cut may read well once and badly the next time, even
/// within one mount; then another attempt sees it one way, and in the end it reads badly always.
const MOUNT_ATTEMPTS: u32 = 8;

/// Memory divided for a log, see [`Log::memory_for`].
pub struct Place<'m> {
    shape: Shape,
    parts: Parts<'m>,
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<'m, N: Nand> Log<'m, N> {
    /// Opens a volume. After a cut, repairs it first: the newest commit page is copied to a fresh block, since it may be
    /// the very page that was being programmed, and blocks that were open are never programmed further.
    ///
    /// Reads at most 40 pages on the chips of the presets with up to 4,096 blocks; a clean mount programs nothing, one
    /// after a cut makes one erase, one program and a checkpoint with its erase. A mount that is cut can be repeated.
    ///
    /// # Errors
    ///
    /// [`LogError::NotFormatted`]; [`LogError::WrongFormat`] if chip or options are not those of the volume;
    /// [`LogError::Corrupt`]; [`LogError::Memory`]; [`LogError::Nand`]. A volume that can be read and not repaired is
    /// mounted read-only.
    #[inline(never)]
    pub fn mount(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        let place = Self::memory_for(&nand, &options, memory)?;
        let mut log = Log::unopened(nand, options, place);
        log.open_here()?;
        Ok(log)
    }

    /// Memory for the log of a chip, as [`Log::mount`] takes it.
    ///
    /// # Errors
    ///
    /// [`LogError::Memory`], [`LogError::Geometry`], [`LogError::Unsuitable`].
    pub fn memory_for(nand: &N, options: &LogOptions, memory: &'m mut [u8]) -> Result<Place<'m>, LogError<N::Error>> {
        let (shape, parts) = Self::divide(nand, options, memory)?;
        Ok(Place { shape, parts })
    }

    /// A log that knows nothing yet: [`Log::open_here`] comes next, before any other call. It cannot fail, so whoever holds the log makes it where it
    /// stays, and has one of it on the stack. Costs nothing.
    #[inline(never)]
    pub fn unopened(nand: N, options: LogOptions, place: Place<'m>) -> Self {
        Log::blank(nand, options, place.shape, place.parts)
    }

    /// Opens the volume in place. Costs what [`Log::mount`] does.
    ///
    /// # Errors
    ///
    /// As [`Log::mount`].
    pub fn open_here(&mut self) -> Result<(), LogError<N::Error>> {
        self.nand.attribute(Cause::Mount);
        self.find_and_open()?;
        self.nand.attribute(Cause::Other);
        Ok(())
    }

    /// Finds the volume and opens it in place.
    #[inline(never)]
    fn find_and_open(&mut self) -> Result<(), LogError<N::Error>> {
        let volume = self.options.volume;
        let mut attempt = 1;
        loop {
            match self.find_volume().and_then(|newest| self.open(newest)) {
                Err(LogError::Corrupt { .. }) if attempt < MOUNT_ATTEMPTS => {
                    attempt += 1;
                    self.forget();
                }
                result => break result?,
            }
        }
        self.options.volume = volume;
        if volume.is_some_and(|volume| volume != self.volume) {
            return Err(LogError::WrongFormat { what: "volume id" });
        }
        Ok(())
    }

    /// The newest anchor; the log has the options of its volume then. What the search needs is off the stack when the volume is opened.
    #[inline(never)]
    fn find_volume(&mut self) -> Result<NewestAnchor, LogError<N::Error>> {
        let newest = self.find_anchor()?.ok_or(LogError::NotFormatted)?;
        let stored = self.stored_options(newest.found.page)?;
        // What was stashed there is no block table.
        self.stashed = None;
        self.take_options(stored)?;
        Ok(newest)
    }

    /// Takes over a checkpoint and what was programmed after it, and repairs what a cut left.
    fn open(&mut self, newest: NewestAnchor) -> Result<(), LogError<N::Error>> {
        self.volume = newest.found.volume;
        self.load_checkpoint(newest)?;
        self.prove_checkpoint(newest)?;
        if self.anchors.is_clean {
            self.tags.take_stored_due();
            self.check_clean()?;
            self.protect_open_blocks();
            self.hold_commit()?;
            self.start_births();
            self.start_sampling();
            return Ok(());
        }
        self.was_cut = true;
        let mut rolled = self.roll_forward()?;
        self.sequence = self.sequence.saturating_add(SEQUENCE_GAP + self.shape.untraced_max());
        if self.sequence > SEQUENCE_MAX {
            self.condition = Condition::ReadOnly;
        }
        self.find_commit(&mut rolled)?;
        self.for_cause(Cause::Recovery, |log| log.recover(&rolled))?;
        self.start_births();
        self.start_sampling();
        Ok(())
    }

    /// Where anchor blocks were lost, takes over no checkpoint of which it is not known that the next mount will find it, too: recovery
    /// may have no other block to write to than the one with the checkpoint before.
    ///
    /// In doubt is the first checkpoint of a block, which is made twice (`Log::repeats_first_checkpoints`). If the second one was
    /// begun, the first is complete. If not, nothing was programmed or erased since the checkpoint before, but these pages, and
    /// that one says all: it is taken, as if the cut had come before the block was begun. Where that one is gone, an earlier
    /// mount saw the second one, and erased it.
    ///
    /// Nothing is read on a volume with all its anchor blocks; else one page, and in doubt as much as in a search for an anchor.
    fn prove_checkpoint(&mut self, newest: NewestAnchor) -> Result<(), LogError<N::Error>> {
        let (current, base) = (self.anchors.current, self.anchors.base);
        if current == base || !self.repeats_first_checkpoints() {
            return Ok(());
        }
        let block = self.shape.geometry.block_of(newest.found.page);
        let behind = (0..self.shape.anchor_pages)
            .map(|nth| self.shape.anchor_page(block, nth))
            .find(|&page| page > newest.found.page);
        let is_followed = match behind {
            Some(page) => !matches!(self.probe_twice(page)?, Probe::Erased),
            None => false,
        };
        let before = match self.anchors.blocks[base].filter(|_| !is_followed) {
            Some(block) => {
                self.forget();
                self.volume = newest.found.volume;
                let before = self.newest_anchor_of(block)?;
                self.stashed = None;
                before.filter(|before| before.volume == self.volume && before.sequence < newest.found.sequence)
            }
            None => None,
        };
        if let Some(found) = before {
            self.blocks.clear();
            match self.load_checkpoint(NewestAnchor { found, sequence: newest.sequence }) {
                Err(LogError::Corrupt { .. }) => {}
                result => {
                    // Whoever began the other block knew that this one is stable.
                    self.anchors.base = self.anchors.current;
                    return result;
                }
            }
        }
        self.forget();
        self.volume = newest.found.volume;
        self.load_checkpoint(newest)?;
        self.anchors.base = self.anchors.current;
        Ok(())
    }

    fn start_births(&mut self) {
        let now = self.now();
        for block in self.blocks.addresses() {
            self.blocks.set_birth(block, now);
        }
    }

    /// The options that the volume was formatted with, if chip and wishes agree with them.
    fn stored_options(&mut self, page: PageAddr) -> Result<LogOptions, LogError<N::Error>> {
        self.buffer_page(page)?;
        let parsed = Page::parse(self.blocks.page).map_err(|why| LogError::Corrupt { page, why })?;
        let anchor = Anchor::parse(&parsed).map_err(|why| Self::bad_anchor(page, why))?;
        let uses =
            Uses { bare: anchor.bare_streams() > 0, mlc: anchor.mlc_streams() > 0, tags: anchor.tags().is_some() };
        if let Some(feature) = COMPILED.lacks(uses) {
            return Err(LogError::NotCompiled { feature });
        }
        let (geometry, options) = (&self.shape.geometry, &self.options);
        let is_mlc = anchor.mode() == MODE_MLC;
        let differs = |wish: Option<u8>, found: u8| wish.is_some_and(|wish| wish != found);
        let differences = [
            (anchor.has_commit_stream(), "features"),
            (anchor.page_size() != geometry.page_size, "page size"),
            (anchor.pages_per_block() != geometry.pages_per_block, "pages per block"),
            (anchor.block_count() != geometry.block_count, "block count"),
            (is_mlc != (options.mode == CellMode::Mlc), "cell mode"),
            (anchor.bare_streams() != options.bare_streams, "bare streams"),
            (anchor.mlc_streams() != options.mlc_streams, "streams with two bits a cell"),
            (uses.tags && !self.shape.has_tags(), "tags"),
            (differs(options.stream_count, parsed.stream_count()), "stream count"),
            (differs(options.ready_max, anchor.ready_max()), "ready list"),
        ];
        if let Some(&(_, what)) = differences.iter().find(|(is_other, _)| *is_other) {
            return Err(LogError::WrongFormat { what });
        }
        Ok(LogOptions {
            stream_count: Some(parsed.stream_count()),
            ready_max: Some(anchor.ready_max()),
            tags: uses.tags,
            ..self.options
        })
    }

    /// Takes over what the newest anchor says.
    fn load_checkpoint(&mut self, newest: NewestAnchor) -> Result<(), LogError<N::Error>> {
        let page = newest.found.page;
        let geometry = self.shape.geometry;
        let corrupt = |why| LogError::Corrupt { page, why };
        self.load(page)?;
        let bytes = core::mem::take(&mut self.blocks.page);
        let outcome = Page::parse(bytes).and_then(|parsed| self.take_anchor(&parsed));
        self.blocks.page = bytes;
        outcome.map_err(corrupt)?;
        self.anchors.page = Some(page);
        self.anchors.number = newest.found.checkpoint;
        self.anchors.sequence = newest.found.sequence;
        self.sequence = newest.sequence.saturating_add(1);
        // A recovery needs the next number, for what it copies and for its checkpoint.
        if newest.sequence >= SEQUENCE_MAX || newest.found.checkpoint == u32::MAX {
            self.condition = Condition::ReadOnly;
        }
        self.committed = newest.found.committed.map(PageAddr);
        if self.committed.is_some_and(|page| !geometry.contains_page(page)) {
            return Err(corrupt(Malformed::Range(Field::Committed)));
        }
        for index in 0..self.blocks.table_page_count() {
            self.load_table_page(index, newest.found.sequence)?;
        }
        self.check_checkpoint().map_err(corrupt)
    }

    fn take_anchor(&mut self, parsed: &Page<'_>) -> Result<(), Malformed> {
        let anchor = Anchor::parse(parsed)?;
        let block = self.shape.geometry.block_of(PageAddr(parsed.page()));
        if anchor.is_read_only() {
            self.condition = Condition::ReadOnly;
        }
        self.anchors.blocks = anchor.anchors().map(|block| block.map(BlockAddr));
        self.anchors.base = anchor.base() as usize;
        let current = self.anchors.blocks.iter().position(|&listed| listed == Some(block));
        self.anchors.current = current.ok_or(Malformed::Range(Field::Anchors))?;
        self.anchors.is_clean = parsed.is_clean();
        self.tags.load(anchor.tags().flatten());
        for (stream, head) in anchor.heads().enumerate() {
            self.frontiers[stream] = match head {
                Some(head) if head.next >= self.shape.pages_of(stream as u8) => {
                    return Err(Malformed::Range(Field::Heads));
                }
                Some(head) => Some(Frontier {
                    block: BlockAddr(head.block),
                    next: head.next,
                    slot: Position::SLOT_OPEN,
                    is_closed: false,
                    skipped: 0,
                }),
                None => None,
            };
        }
        for block in anchor.ready() {
            self.ready.push(BlockAddr(block));
        }
        self.ready.divide(self.shape.has_mlc());
        if anchor.table().len() != self.blocks.table_page_count() as usize {
            return Err(Malformed::Range(Field::TablePageCount));
        }
        for (index, address) in anchor.table().enumerate() {
            self.blocks.set_table_address(index as u16, address, false);
        }
        for (block, record) in self.blocks.addresses().zip(anchor.records()) {
            if !self.blocks.load(block, BlockRecord::from_bytes(*record)) {
                return Err(Malformed::Range(Field::Records));
            }
        }
        Ok(())
    }

    fn load_table_page(&mut self, index: u16, anchor_sequence: u64) -> Result<(), LogError<N::Error>> {
        let page = PageAddr(self.blocks.table_address(index));
        let corrupt = |why| LogError::Corrupt { page, why };
        self.load(page)?;
        if self.found.kind != PageKind::Table {
            return Err(corrupt(Malformed::Kind(self.found.kind as u8)));
        }
        if self.found.sequence >= anchor_sequence {
            return Err(corrupt(Malformed::Sequence));
        }
        let bytes = core::mem::take(&mut self.blocks.page);
        let (records, _) = bytes[self.shape.header_size..].as_chunks::<RECORD_SIZE>();
        let mut is_sound = true;
        for (block, &record) in self.blocks.blocks_of_table_page(index).zip(records) {
            is_sound &= self.blocks.load(BlockAddr(block), BlockRecord::from_bytes(record));
        }
        self.blocks.page = bytes;
        if !is_sound {
            return Err(corrupt(Malformed::Range(Field::Records)));
        }
        self.blocks.set_table_address(index, page.0, false);
        Ok(())
    }

    /// Whether the parts of the checkpoint agree; a hostile image may say anything.
    fn check_checkpoint(&mut self) -> Result<(), Malformed> {
        for place in 0..self.ready.count {
            let block = self.ready.blocks[place];
            if self.blocks.state(block) == State::Free {
                self.blocks.set_state(block, State::Listed);
            }
        }
        let ready = &self.ready.blocks[..self.ready.count];
        let is_misplaced = |(place, &block): (usize, &BlockAddr)| {
            !matches!(self.blocks.state(block), State::Ready | State::Listed) || ready[..place].contains(&block)
        };
        if ready.iter().enumerate().any(is_misplaced) || self.blocks.listed() as usize != ready.len() {
            return Err(Malformed::Range(Field::Ready));
        }
        let mut heads = 0;
        for stream in 0..self.frontiers.len() {
            let Some(Frontier { block, .. }) = self.frontiers[stream] else { continue };
            let is_twice = self.frontiers[..stream].iter().flatten().any(|other| other.block == block);
            if is_twice
                || self.blocks.state(block) != State::Open
                || self.blocks.is_bare(block) != self.shape.is_bare_stream(stream as u8)
                || self.blocks.mode(block) != self.shape.mode_of(stream as u8)
            {
                return Err(Malformed::Range(Field::Heads));
            }
            self.blocks.set(block, HELD, true);
            heads += 1;
        }
        if self.blocks.count(State::Open) != heads {
            return Err(Malformed::Range(Field::Heads));
        }
        if self.anchors.blocks.iter().flatten().any(|&block| self.blocks.state(block) != State::Anchor) {
            return Err(Malformed::Range(Field::Anchors));
        }
        Ok(())
    }

    /// Makes a clean checkpoint, so that the next mount has nothing to recover, and gives the chip back. Costs at most
    /// one checkpoint; nothing if since a clean mount nothing was programmed and little was read.
    ///
    /// # Errors
    ///
    /// The error, with the chip: what was committed is durable all the same.
    pub fn unmount(mut self) -> Result<N, (LogError<N::Error>, N)> {
        match self.unmount_here() {
            Ok(()) => Ok(self.nand),
            Err(error) => Err((error, self.nand)),
        }
    }

    /// As [`unmount`](Log::unmount), for who drops the log afterwards where it lies, so that it is not moved. It is not to be used after this: what
    /// would be appended, the next mount would not look for.
    ///
    /// # Errors
    ///
    /// As [`unmount`](Log::unmount).
    pub fn unmount_here(&mut self) -> Result<(), LogError<N::Error>> {
        if self.condition != Condition::Working || (self.anchors.is_clean && !self.has_read_much()) {
            return Ok(());
        }
        // What tags alone say is found after a cut only.
        if self.tail_len() > 0 {
            return Ok(());
        }
        self.write_checkpoint(true)
    }
}
