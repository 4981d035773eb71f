//! Mounting: reading the newest checkpoint, rolling forward to the newest commit, and putting right what a cut left.

use nandu_media::anchor::MODE_MLC;
use nandu_media::table::RECORD_SIZE;
use nandu_media::{Anchor, BlockRecord, Malformed, Page, PageFields, PageKind, Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::access::{Found, Probe, Programmed};
use crate::anchor::NewestAnchor;
use crate::block_table::{HELD, INEXACT, State};
use crate::error::LogError;
use crate::log::{Condition, Frontier, Log, ReadyList};
use crate::options::LogOptions;

/// By how much the sequence jumps after a cut. Pages that a cut left unread have numbers below: there are at most as many
/// as one recovery programs, and one.
pub(crate) const SEQUENCE_GAP: u64 = 4096;

/// Highest sequence of a volume that can be written: far enough from the end that nothing overflows in a mount.
const SEQUENCE_MAX: u64 = u64::MAX - (1 << 40);

/// How often a mount is tried. A page that was being programmed at the cut may read well once and badly the next time, even
/// within one mount; then another attempt sees it one way, and in the end it reads badly always.
const MOUNT_ATTEMPTS: u32 = 8;

/// What roll-forward found.
#[derive(Clone, Copy, Debug)]
struct Rolled {
    /// Entries of the ready list that were opened from its front.
    front: usize,
    /// Entries of the ready list that were opened from its back.
    back: usize,
    /// Where each stream stands.
    positions: [Position; STREAM_COUNT_MAX],
    /// The newest valid page programmed after the checkpoint.
    newest: Option<Found>,
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
    pub fn mount(mut nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        nand.attribute(Cause::Mount);
        let result = Self::mount_attributed(nand, options, memory);
        result.map(|mut log| {
            log.nand.attribute(Cause::Other);
            log
        })
    }

    fn mount_attributed(mut nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        let mut attempt = 1;
        let (newest, stored) = loop {
            let mut search = Log::blank(&mut nand, options, &mut *memory)?;
            let result = search.find_volume();
            match result {
                Err(LogError::Corrupt { .. }) if attempt < MOUNT_ATTEMPTS => attempt += 1,
                result => break result?,
            }
        };
        let mut log = Log::blank(nand, stored, memory)?;
        let mut result = log.open(newest);
        while let Err(LogError::Corrupt { .. }) = result {
            if attempt == MOUNT_ATTEMPTS {
                break;
            }
            attempt += 1;
            log.forget();
            result = log.find_volume().and_then(|(newest, _)| log.open(newest));
        }
        result?;
        log.options.volume = options.volume;
        if options.volume.is_some_and(|volume| volume != log.volume) {
            return Err(LogError::WrongFormat { what: "volume id" });
        }
        Ok(log)
    }

    /// The newest anchor, and the options of its volume.
    fn find_volume(&mut self) -> Result<(NewestAnchor, LogOptions), LogError<N::Error>> {
        let newest = self.find_anchor()?.ok_or(LogError::NotFormatted)?;
        Ok((newest, self.stored_options(newest.found.page)?))
    }

    /// Takes over a checkpoint and what was programmed after it, and repairs what a cut left.
    fn open(&mut self, newest: NewestAnchor) -> Result<(), LogError<N::Error>> {
        self.volume = newest.found.volume;
        self.load_checkpoint(newest)?;
        if self.anchors.is_clean {
            self.check_clean()?;
            self.hold_commit()?;
            self.start_births();
            return Ok(());
        }
        let mut rolled = self.roll_forward()?;
        self.sequence = self.sequence.saturating_add(SEQUENCE_GAP);
        if self.sequence > SEQUENCE_MAX {
            self.condition = Condition::ReadOnly;
        }
        self.find_commit(&mut rolled)?;
        self.for_cause(Cause::Recovery, |log| log.recover(&rolled))?;
        self.start_births();
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
        let geometry = self.shape.geometry;
        let wrong = |what| Err(LogError::WrongFormat { what });
        if anchor.page_size() != geometry.page_size {
            return wrong("page size");
        }
        if anchor.pages_per_block() != geometry.pages_per_block {
            return wrong("pages per block");
        }
        if anchor.block_count() != geometry.block_count {
            return wrong("block count");
        }
        let mode = if anchor.mode() == MODE_MLC { CellMode::Mlc } else { CellMode::Slc };
        if mode != self.options.mode {
            return wrong("cell mode");
        }
        if self.options.stream_count.is_some_and(|count| count != parsed.stream_count()) {
            return wrong("stream count");
        }
        if self.options.ready_max.is_some_and(|count| count != anchor.ready_max()) {
            return wrong("ready list");
        }
        Ok(LogOptions {
            stream_count: Some(parsed.stream_count()),
            ready_max: Some(anchor.ready_max()),
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
        if newest.sequence >= SEQUENCE_MAX {
            self.condition = Condition::ReadOnly;
        }
        self.committed = newest.found.committed.map(PageAddr);
        if self.committed.is_some_and(|page| !geometry.contains_page(page)) {
            return Err(corrupt(Malformed::Range("committed")));
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
        self.anchors.current = current.ok_or(Malformed::Range("anchors"))?;
        self.anchors.is_clean = parsed.is_clean();
        for (stream, head) in anchor.heads().enumerate() {
            self.frontiers[stream] = match head {
                Some(head) if head.next >= self.shape.pages => return Err(Malformed::Range("heads")),
                Some(head) => Some(Frontier {
                    block: BlockAddr(head.block),
                    next: head.next,
                    slot: Position::SLOT_OPEN,
                    is_closed: false,
                }),
                None => None,
            };
        }
        for block in anchor.ready() {
            self.ready.push(BlockAddr(block));
        }
        if anchor.table().len() != self.blocks.table_page_count() as usize {
            return Err(Malformed::Range("table_page_count"));
        }
        for (index, address) in anchor.table().enumerate() {
            self.blocks.set_table_address(index as u16, address, false);
        }
        for (block, record) in self.blocks.addresses().zip(anchor.records()) {
            self.blocks.load(block, BlockRecord::parse(*record)?);
        }
        Ok(())
    }

    fn load_table_page(&mut self, index: u16, anchor_sequence: u64) -> Result<(), LogError<N::Error>> {
        let page = PageAddr(self.blocks.table_address(index));
        let corrupt = |why| LogError::Corrupt { page, why };
        let found = self.load(page)?;
        if found.kind != PageKind::Table {
            return Err(corrupt(Malformed::Kind(found.kind as u8)));
        }
        if found.sequence >= anchor_sequence {
            return Err(corrupt(Malformed::Sequence(found.sequence)));
        }
        let bytes = core::mem::take(&mut self.blocks.page);
        let mut outcome = Ok(());
        let (records, _) = bytes[self.shape.header_size..].as_chunks::<RECORD_SIZE>();
        for (block, &record) in self.blocks.blocks_of_table_page(index).zip(records) {
            match BlockRecord::parse(record) {
                Ok(record) => self.blocks.load(BlockAddr(block), record),
                Err(why) => outcome = Err(corrupt(why)),
            }
        }
        self.blocks.page = bytes;
        self.blocks.set_table_address(index, page.0, false);
        outcome
    }

    /// Whether the parts of the checkpoint agree; a hostile image may say anything.
    fn check_checkpoint(&mut self) -> Result<(), Malformed> {
        let blocks = &self.blocks;
        let ready = self.ready.unopened();
        let is_listed_twice = |place: usize| ready[..place].contains(&ready[place]);
        if ready.iter().any(|&block| blocks.state(block) != State::Ready)
            || (0..ready.len()).any(is_listed_twice)
            || blocks.count(State::Ready) as usize != ready.len()
        {
            return Err(Malformed::Range("ready"));
        }
        let heads = || self.frontiers.iter().flatten();
        if heads().any(|head| blocks.state(head.block) != State::Open)
            || blocks.count(State::Open) as usize != heads().count()
            || heads().any(|head| heads().filter(|other| other.block == head.block).count() != 1)
        {
            return Err(Malformed::Range("heads"));
        }
        let anchors = || self.anchors.blocks.iter().flatten();
        if anchors().any(|&block| blocks.state(block) != State::Anchor) {
            return Err(Malformed::Range("anchors"));
        }
        for frontier in self.frontiers.into_iter().flatten() {
            self.blocks.set(frontier.block, HELD, true);
        }
        Ok(())
    }

    /// Finds what was programmed after the checkpoint.
    ///
    /// The opened blocks are both ends of the ready list (L3). A binary search over first pages finds where the front ends;
    /// those pages say where every stream stood, and with it nearly where the back ends. From the last block opened, each
    /// stream has moved on within its block only. About the logarithm of the ready list, the logarithm of a block, and one
    /// read a stream.
    fn roll_forward(&mut self) -> Result<Rolled, LogError<N::Error>> {
        let mut rolled = Rolled { front: 0, back: 0, positions: self.positions(), newest: None };
        let (mut low, mut high) = (0, self.ready.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_current_page(self.ready.blocks[middle])? {
                Some(found) => {
                    rolled.take(found);
                    if ReadyList::is_front(found.stream) { low = middle + 1 } else { high = middle }
                }
                None => high = middle,
            }
        }
        rolled.front = low;
        loop {
            rolled.back = rolled.back.max(rolled.back_known(self.ready.count));
            if rolled.front + rolled.back >= self.ready.count {
                break;
            }
            match self.first_current_page(self.ready.blocks[self.ready.count - 1 - rolled.back])? {
                Some(found) => {
                    rolled.back += 1;
                    rolled.take(found);
                }
                None => break,
            }
        }
        let first = rolled.newest.map_or(0, |found| found.stream);
        for step in 0..self.shape.streams {
            let stream = (first + step) % self.shape.streams;
            self.roll_stream(stream, step == 0, &mut rolled)?;
        }
        if let Some(found) = rolled.newest {
            self.sequence = self.sequence.max(found.sequence.saturating_add(1));
        }
        Ok(rolled)
    }

    /// The first page of a block if it was programmed after the checkpoint, or the second if the first is damaged.
    fn first_current_page(&mut self, block: BlockAddr) -> Result<Option<Found>, LogError<N::Error>> {
        self.current_at_or_after(block, 0).map(|found| found.map(|(_, found)| found))
    }

    /// The page if it was programmed after the checkpoint; the one after it if this one is damaged.
    fn current_at_or_after(&mut self, block: BlockAddr, nth: u16) -> Result<Option<(u16, Found)>, LogError<N::Error>> {
        for nth in nth..self.shape.pages.min(nth.saturating_add(2)) {
            match self.probe(self.shape.data_page(block, nth))? {
                Probe::Valid(found) if self.is_current(&found) => return Ok(Some((nth, found))),
                Probe::Valid(found) if self.is_of_a_lost_checkpoint(&found) => {
                    return Err(LogError::Corrupt { page: found.page, why: Malformed::Sequence(found.sequence) });
                }
                Probe::Valid(_) => return Ok(None),
                Probe::Erased => return Ok(None),
                Probe::Garbage => {}
            }
        }
        Ok(None)
    }

    fn is_current(&self, found: &Found) -> bool {
        // A copy made by a recovery that was cut carries the number of the checkpoint that was never completed.
        let is_slot_sound = |position: &Position| match position.slot() {
            Some(Position::SLOT_OPEN) | None => true,
            Some(slot) => (slot as usize) < self.ready.count,
        };
        found.checkpoint == self.anchors.number
            && found.sequence > self.anchors.sequence
            && !found.kind.is_of_the_log()
            && found.stream < self.shape.streams
            && found.positions.iter().all(is_slot_sound)
    }

    /// Whether a page was appended after a checkpoint newer than the newest one found, so that that one must have decayed.
    /// What is left is too old to build on. A copy made by a recovery that was cut has no positions, and is no such page.
    fn is_of_a_lost_checkpoint(&self, found: &Found) -> bool {
        found.checkpoint > self.anchors.number
            && found.sequence > self.anchors.sequence
            && found.positions.iter().any(|position| position.slot().is_some())
    }

    /// Nothing may have been appended after a clean checkpoint. If something was, a newer checkpoint has decayed. One read a
    /// stream, and one for the first block that would have been opened.
    fn check_clean(&mut self) -> Result<(), LogError<N::Error>> {
        for frontier in self.frontiers.into_iter().flatten() {
            self.current_at_or_after(frontier.block, frontier.next)?;
        }
        let ends = [self.ready.unopened().first().copied(), self.ready.unopened().last().copied()];
        for block in ends.into_iter().flatten() {
            self.first_current_page(block)?;
        }
        Ok(())
    }

    /// The block and next page of a stream's position.
    fn resolve(&self, stream: u8, position: Position) -> Option<(BlockAddr, u16)> {
        let block = match position.slot()? {
            Position::SLOT_OPEN => self.frontiers[stream as usize]?.block,
            slot => *self.ready.blocks[..self.ready.count].get(slot as usize)?,
        };
        Some((block, (position.last() + 1).min(self.shape.pages)))
    }

    /// Follows a stream from where it is known to stand to its last page.
    fn roll_stream(&mut self, stream: u8, is_far: bool, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        let Some((block, next)) = self.resolve(stream, rolled.positions[stream as usize]) else { return Ok(()) };
        let (mut low, mut high) = (next, self.shape.pages);
        // The stream that opened the last block is likely to be far into it; the others are likely to stand still.
        let mut is_far = is_far;
        while low < high {
            let middle = if is_far { low + (high - low) / 2 } else { low };
            is_far = true;
            match self.current_at_or_after(block, middle)? {
                Some((nth, found)) => {
                    low = nth + 1;
                    rolled.take(found);
                    let own = Position::new(rolled.positions[stream as usize].slot().unwrap_or(0), nth);
                    rolled.positions[stream as usize] = own.unwrap_or(Position::NONE);
                }
                None => high = middle,
            }
        }
        Ok(())
    }

    /// Finds the newest commit page and reads it, so that what the owner begins from is known to be there.
    ///
    /// If no block is free, every move since the newest promise is undone: their blocks hold nothing else, and are free then.
    fn find_commit(&mut self, rolled: &mut Rolled) -> Result<(), LogError<N::Error>> {
        if let Some(found) = rolled.newest {
            let stays = found.is_commit && (!found.is_moved || self.options.skips_quarantine());
            self.committed = if stays { Some(found.page) } else { found.committed.map(PageAddr) };
        }
        let mut found = self.load_commit()?;
        let is_cramped = rolled.front + rolled.back == self.ready.count && self.blocks.count(State::Free) == 0;
        if is_cramped && rolled.newest.is_some_and(|newest| !newest.is_commit || newest.is_moved) {
            // A commit at or before the checkpoint is left alone: what it replaced may be erased.
            while let Some(moved) = found.filter(|found| found.is_moved && found.sequence > self.anchors.sequence) {
                self.committed = moved.committed.map(PageAddr);
                found = self.load_commit()?;
                if found.is_some_and(|found| found.sequence >= moved.sequence) {
                    return Err(LogError::Corrupt { page: moved.page, why: Malformed::Range("committed") });
                }
            }
            let promised = found.map_or(0, |found| found.sequence).max(self.anchors.sequence);
            while rolled.front > 0 && self.is_begun_after(rolled.front - 1, promised)? {
                rolled.front -= 1;
            }
            while rolled.back > 0 && self.is_begun_after(self.ready.count - rolled.back, promised)? {
                rolled.back -= 1;
            }
            rolled.forget_unopened(self.ready.count);
        }
        Ok(())
    }

    /// Whether a block of the ready list was opened after the page with this sequence.
    fn is_begun_after(&mut self, place: usize, sequence: u64) -> Result<bool, LogError<N::Error>> {
        let first = self.first_current_page(self.ready.blocks[place])?;
        Ok(first.is_some_and(|first| first.sequence > sequence))
    }

    /// Reads the newest commit page, if there is one.
    fn load_commit(&mut self) -> Result<Option<Found>, LogError<N::Error>> {
        let Some(page) = self.committed else { return Ok(None) };
        if !self.shape.geometry.contains_page(page) {
            return Err(LogError::Corrupt { page, why: Malformed::Range("committed") });
        }
        let found = self.load(page)?;
        if !found.is_commit || found.kind.is_of_the_log() {
            return Err(LogError::Corrupt { page, why: Malformed::Kind(found.kind as u8) });
        }
        if found.sequence >= self.sequence {
            return Err(LogError::Corrupt { page, why: Malformed::Sequence(found.sequence) });
        }
        Ok(Some(found))
    }

    /// The block of the newest commit page has to hold data, and at least that page; a hostile image may say otherwise.
    fn hold_commit(&mut self) -> Result<(), LogError<N::Error>> {
        let Some(page) = self.committed else { return Ok(()) };
        let block = self.shape.geometry.block_of(page);
        if !self.blocks.state(block).holds_data() {
            return Err(LogError::Corrupt { page, why: Malformed::Range("committed") });
        }
        if self.blocks.live(block) == 0 {
            self.blocks.set_live(block, 1);
        }
        Ok(())
    }

    /// Puts right what a cut left. Re-entrant: it erases nothing that the newest checkpoint or the one before it needs,
    /// and what it programs counts only once its own checkpoint is complete.
    fn recover(&mut self, rolled: &Rolled) -> Result<(), LogError<N::Error>> {
        let spare = self.classify(rolled);
        self.hold_commit()?;
        if self.condition == Condition::ReadOnly {
            return Ok(());
        }
        if self.options.skips_quarantine() {
            return self.write_checkpoint(false);
        }
        // A page that another one followed was complete, and so was one that the checkpoint names. Only the newest page of
        // all may be the one that was being programmed when the power went; it may read well now and not later. If it only
        // moved something, the commit before it says the same and is complete.
        if let Some(found) = rolled.newest
            && found.is_commit
            && !found.is_moved
            && !self.copy_commit(found.page, spare)?
        {
            self.condition = Condition::ReadOnly;
            return Ok(());
        }
        if self.options.skips_erase_proof() {
            self.believe_erased();
        }
        match self.write_checkpoint(false) {
            Err(LogError::ReadOnly) => Ok(()),
            result => result,
        }
    }

    /// Sets the states of the blocks that were open at the checkpoint or opened since, and returns the first block of the
    /// ready list that looks unopened.
    fn classify(&mut self, rolled: &Rolled) -> Option<BlockAddr> {
        let pages = self.shape.pages;
        for block in self.blocks.addresses() {
            if self.blocks.state(block).is_closed() {
                self.blocks.set(block, INEXACT, true);
            }
        }
        for frontier in self.frontiers.into_iter().flatten() {
            let live = self.blocks.live(frontier.block) + (pages - frontier.next);
            self.blocks.set_state(frontier.block, State::Full);
            self.blocks.set_live(frontier.block, live);
            self.blocks.set(frontier.block, INEXACT | HELD, true);
        }
        let count = self.ready.count;
        for place in (0..rolled.front).chain(count - rolled.back..count) {
            let block = self.ready.blocks[place];
            self.blocks.set_state(block, State::Full);
            self.blocks.set_live(block, pages);
            self.blocks.set(block, INEXACT | HELD, true);
        }
        let mut frontiers = [None; STREAM_COUNT_MAX];
        for stream in 0..self.shape.streams {
            let position = rolled.positions[stream as usize];
            let Some((block, next)) = self.resolve(stream, position) else { continue };
            if next >= pages {
                continue;
            }
            self.blocks.set_state(block, State::Suspect);
            let live = self.blocks.live(block).saturating_sub(pages - next);
            self.blocks.set_live(block, live);
            frontiers[stream as usize] = Some(Frontier { block, next, slot: Position::SLOT_OPEN, is_closed: false });
        }
        self.frontiers = [None; STREAM_COUNT_MAX];
        if self.options.skips_quarantine() {
            self.continue_blocks(frontiers);
        }
        self.ready.front = rolled.front;
        self.ready.back = rolled.back;
        let spare = self.ready.unopened().first().copied();
        let last = self.ready.unopened().last().copied();
        if !self.options.skips_quarantine() {
            // The first and the last one that look unopened may be the one whose first program was cut without a trace. Those
            // between them were not touched.
            self.ready.front += usize::from(spare.is_some());
            self.ready.back += usize::from(last != spare);
            for block in spare.into_iter().chain(last) {
                self.blocks.set_state(block, State::Free);
            }
        }
        spare
    }

    /// Test switch: goes on in the blocks that were open.
    fn continue_blocks(&mut self, frontiers: [Option<Frontier>; STREAM_COUNT_MAX]) {
        self.frontiers = frontiers;
        for frontier in frontiers.into_iter().flatten() {
            self.blocks.set_state(frontier.block, State::Open);
        }
    }

    /// Test switch: takes blocks for erased whose first page looks erased.
    fn believe_erased(&mut self) {
        for block in self.blocks.addresses() {
            let is_unused = match self.blocks.state(block) {
                State::Free => true,
                State::Full | State::Suspect => self.blocks.live(block) == 0 && !self.blocks.has(block, HELD),
                _ => false,
            };
            let page = self.shape.data_page(block, 0);
            if is_unused && matches!(self.probe(page), Ok(Probe::Erased)) {
                self.blocks.set_state(block, State::Erased);
            }
        }
    }

    /// Copies the newest commit page to a block that is erased here; `false` if there is no block for it.
    ///
    /// The block is `spare` or a free one, which neither this checkpoint nor the one before it needs; a cut leaves in it
    /// a page with the number of a checkpoint that does not exist, which roll-forward passes over.
    fn copy_commit(&mut self, page: PageAddr, spare: Option<BlockAddr>) -> Result<bool, LogError<N::Error>> {
        let mut next = spare;
        for _ in 0..self.blocks.block_count() {
            let free = |block: &BlockAddr| self.blocks.state(*block) == State::Free;
            let least_worn = || self.blocks.addresses().filter(free).min_by_key(|&b| self.blocks.erase_count(b));
            let Some(block) = next.take().filter(free).or_else(least_worn) else { return Ok(false) };
            let mode = self.shape.mode;
            if !self.erase(block, mode)? {
                self.retire(block);
                continue;
            }
            let now = self.now();
            self.blocks.open(block, 0, now);
            if self.program_copy(page, self.shape.data_page(block, 0))? == Programmed::Done {
                self.frontiers[0] = Some(Frontier { block, next: 1, slot: Position::SLOT_OPEN, is_closed: false });
                self.blocks.add_live(block);
                self.supersede(page);
                self.committed = Some(self.shape.data_page(block, 0));
                return Ok(true);
            }
            self.stats.program_failures += 1;
            self.blocks.set_state(block, State::Failing);
            self.condemn(block);
        }
        Ok(false)
    }

    fn program_copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Programmed, LogError<N::Error>> {
        let found = self.load(from)?;
        let sequence = self.sequence;
        self.sequence += 1;
        self.buffered = None;
        PageFields {
            kind: found.kind,
            sequence,
            page: to.0,
            volume: self.volume,
            committed: found.committed,
            checkpoint: self.anchors.number.saturating_add(1),
            stream: 0,
            flags: nandu_media::header::FLAG_COMMIT,
            positions: &[Position::NONE; STREAM_COUNT_MAX][..self.shape.streams as usize],
        }
        .seal(self.blocks.page);
        self.stats.count(Cause::Recovery);
        Self::program(&mut self.nand, to, self.blocks.page, self.options.read_back)
            .map_err(|error| self.chip_error(error))
    }
}

impl Rolled {
    /// Streams do not stand in blocks that are taken for unopened.
    fn forget_unopened(&mut self, count: usize) {
        let unopened = self.front..count - self.back;
        for position in &mut self.positions {
            if position.slot().is_some_and(|slot| unopened.contains(&(slot as usize))) {
                *position = Position::NONE;
            }
        }
    }

    /// How many entries were opened from the back, as far as the positions tell.
    fn back_known(&self, count: usize) -> usize {
        let slots = self.positions.iter().skip(1).filter_map(|position| position.slot());
        let first = slots.map(usize::from).filter(|slot| (self.front..count).contains(slot)).min();
        first.map_or(0, |first| count - first)
    }

    /// A page was found: if it is newer than what is known, it knows better where the streams stood.
    fn take(&mut self, found: Found) {
        if self.newest.is_none_or(|newest| found.sequence > newest.sequence) {
            self.positions = found.positions;
            self.newest = Some(found);
        }
    }
}
