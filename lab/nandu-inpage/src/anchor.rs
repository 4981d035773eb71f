//! Anchors: what the volume is, which blocks are bad, and whether it was left in order.
//!
//! Three blocks take them. The newest anchor found after a cut may have been under way when the power went, and may become
//! unreadable later; so each names a block in which one stands that is known to be sound, and neither that block nor the
//! newest is erased.
//!
//! Each also says of some blocks how often they were erased, and the next one of the next blocks. Of all blocks it is said at an
//! orderly end; in each anchor block that is begun, since the one that said it may be erased soon; and after as many erases as a sixteenth of
//! the blocks, which costs less than a hundredth of what these erases cost. So a cut makes no more forgotten than that.

use nandu_media::inpage::anchor::{ANCHOR_COUNT, AnchorFields, EraseCounts};
use nandu_media::inpage::{FrontFields, Kind};
use nandu_media::{Field, Malformed, NO_BLOCK};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::blocks::State;
use crate::chip::{Read, is_erased};
use crate::descent::WALK;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::nodes::ROOT;
use crate::options::{self, Layout, Options};

/// Blocks at the front of the chip among which anchors are, beyond those that may be bad.
const WINDOW_SPARE: u32 = 8;

/// Least erases after which erase counts are said again.
const ERASES_MIN: u32 = 16;

/// The anchor blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchors {
    blocks: [Option<BlockAddr>; ANCHOR_COUNT],
    /// The block that holds the newest.
    current: usize,
    /// A block that holds one known to be sound.
    stable: usize,
    /// Where the next one goes in the current block; `None`: in another block.
    next: Option<u16>,
    /// Whether the newest says that nothing came after it.
    pub(crate) is_clean: bool,
    /// Whether the newest says that journal pages may follow.
    pub(crate) has_journal: bool,
    /// The block whose erase count the next one says first.
    count_first: u32,
    /// Of how many blocks the erase counts were said since they had to be.
    count_said: u32,
    /// None was programmed since a cut. What the first change after it erases would be forgotten with another cut, and so in each of many
    /// short sessions.
    pub(crate) is_silent: bool,
    /// Erases since the counts of all blocks were said.
    pub(crate) erases: u32,
}

impl Anchors {
    pub(crate) const NONE: Anchors = Anchors {
        blocks: [None; ANCHOR_COUNT],
        current: 0,
        stable: 0,
        next: None,
        is_clean: false,
        has_journal: false,
        count_first: 0,
        count_said: 0,
        is_silent: false,
        erases: 0,
    };
}

/// The newest anchor of a chip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) page: PageAddr,
    pub(crate) sequence: u64,
    pub(crate) volume: u32,
}

impl<N: Nand> InPage<'_, N> {
    fn anchor_window(&self) -> u32 {
        let count = ANCHOR_COUNT as u32 + WINDOW_SPARE;
        self.geometry.bad_block_max.saturating_add(count).min(self.geometry.block_count)
    }

    /// Finds the newest anchor: looks at the first two pages of the first blocks, and at all pages of those with anchors.
    ///
    /// At all of these blocks, though three have been found: one that could not be erased keeps its old anchors, and the newest are
    /// further back.
    pub(crate) fn find_anchor(&mut self) -> Result<Option<Found>, N> {
        let mut newest: Option<Found> = None;
        for block in (0..self.anchor_window()).map(BlockAddr) {
            let mut is_anchor = false;
            for place in 0..self.geometry.pages_per_block as u16 {
                let (found, is_other) = self.read_anchor(self.page_of(block, place))?;
                match found {
                    Some(found) => {
                        self.adopt_counts();
                        is_anchor = true;
                        newest = newest.filter(|newest| newest.sequence >= found.sequence).or(Some(found));
                    }
                    // The first page may be torn and the second sound; behind the last one a torn one may stand.
                    None if is_other || (place >= 1 && !is_anchor) => break,
                    None => {}
                }
            }
        }
        Ok(newest)
    }

    /// The anchor in a page, and whether the page is erased, or belongs to something else. What is neither is read twice: it may be another page that was
    /// read by mistake, and an anchor that is passed over takes the table of bad blocks with it.
    fn read_anchor(&mut self, page: PageAddr) -> Result<(Option<Found>, bool), N> {
        let mut is_other = false;
        for _ in 0..2 {
            let read = Self::read(&mut self.nand, page, 0, self.log)?;
            if read == Read::Unreadable {
                continue;
            }
            let front = FrontFields::parse(self.log).ok().filter(|front| front.page == page.0);
            if let Some(front) = front.as_ref().filter(|front| front.kind == Kind::Anchor) {
                return Ok((Some(Found { page, sequence: front.sequence, volume: front.volume }), false));
            }
            if front.is_some() {
                return Ok((None, true));
            }
            is_other = self.looks_erased();
        }
        Ok((None, is_other))
    }

    /// Takes over the erase counts that the anchor read last says. They only rise, so an older one does no harm.
    fn adopt_counts(&mut self) {
        let Ok(front) = FrontFields::parse(self.log) else { return };
        let own = (self.geometry.block_of(PageAddr(front.page)).0, front.erase_count);
        for (block, erases) in EraseCounts::of_anchor(self.log, front.size).blocks().chain([own]) {
            if block < self.geometry.block_count {
                let entry = &mut self.blocks[BlockAddr(block)];
                entry.erase_count = entry.erase_count.max(erases);
            }
        }
    }

    fn looks_erased(&self) -> bool {
        is_erased(self.log, self.geometry.ecc.codeword_size, self.geometry.ecc.correctable_bits)
    }

    /// Takes over what the newest anchor says. Returns the sequence of the root's page if nothing was programmed after the
    /// anchor, as far as it knows.
    pub(crate) fn adopt_anchor(&mut self, found: Found) -> Result<Option<u64>, N> {
        let corrupt = |why| Error::Corrupt { page: found.page, why };
        if Self::read(&mut self.nand, found.page, 0, self.log)? == Read::Unreadable {
            return Err(corrupt(Malformed::Unreadable));
        }
        let front = FrontFields::parse(self.log).map_err(corrupt)?;
        let (fields, bad) = AnchorFields::parse(self.log, front.size).map_err(corrupt)?;
        if let Some(what) = self.difference(&fields) {
            return Err(Error::WrongFormat { what });
        }
        let count = self.geometry.block_count;
        for block in bad.filter(|&block| block < count).map(BlockAddr) {
            self.blocks.set_state(block, State::Bad);
        }
        let current = self.geometry.block_of(found.page);
        for (place, &block) in self.anchors.blocks.iter_mut().zip(&fields.anchors) {
            *place = (block < count).then_some(BlockAddr(block));
        }
        for block in self.anchors.blocks.into_iter().flatten() {
            if self.blocks[block].state() != State::Bad {
                self.blocks.set_state(block, State::Anchor);
            }
        }
        let position = |block: BlockAddr| self.anchors.blocks.iter().position(|&other| other == Some(block));
        self.anchors.current = position(current).ok_or(corrupt(Malformed::Range(Field::Anchors)))?;
        let stable = (fields.stable != NO_BLOCK).then_some(BlockAddr(fields.stable)).and_then(position);
        self.anchors.stable = stable.unwrap_or(self.anchors.current);
        self.volume = found.volume;
        self.records = fields.records;
        // Not behind the newest, even if all is in order: the power may have gone while the first change after it was
        // announced there, without a trace.
        self.anchors.next = None;
        self.anchors.is_clean = fields.is_clean;
        self.anchors.has_journal = fields.has_journal;
        self.journal.number = fields.journal.max(1);
        self.void_journal();
        self.journal.declared = self.journal.oldest;
        Ok(fields.is_clean.then_some(fields.root))
    }

    /// What an anchor says otherwise than chip and options.
    fn difference(&self, fields: &AnchorFields) -> Option<&'static str> {
        let geometry = &self.geometry;
        if fields.page_size != geometry.page_size {
            return Some("page size");
        }
        if fields.pages_per_block != geometry.pages_per_block || fields.block_count != geometry.block_count {
            return Some("number of pages");
        }
        if fields.kind != kind_number(&self.options) {
            return Some("kind of index");
        }
        if fields.cells != self.options.cells {
            return Some("kind of keys and values");
        }
        if fields.layout != layout_number(&self.options) {
            return Some("layout");
        }
        if fields.sector_size != self.options.sector_size {
            return Some("sector size");
        }
        if u32::from(fields.more_pages) + 1 != self.node_pages() {
            return Some("pages of a node");
        }
        (fields.log_pages_max != self.options.log_pages_max).then_some("most log pages")
    }

    /// Chooses the blocks for the anchors of a new volume and erases them; the one with the newest anchor of an old volume
    /// last.
    pub(crate) fn choose_anchors(&mut self, old: Option<BlockAddr>) -> Result<(), N> {
        for place in 0..ANCHOR_COUNT {
            self.anchors.blocks[place] = self.anchor_candidate();
            if let Some(block) = self.anchors.blocks[place] {
                self.blocks.set_state(block, State::Anchor);
            }
        }
        let chosen = self.anchors.blocks;
        let others = chosen.into_iter().flatten().filter(|&block| Some(block) != old);
        for block in others.chain(old) {
            if self.blocks[block].state() == State::Bad {
                continue;
            }
            let is_erased = self.erase_anchor(block)?;
            let place = self.anchors.blocks.iter().position(|&other| other == Some(block));
            if let Some(place) = place.filter(|_| !is_erased) {
                self.anchors.blocks[place] = None;
            }
        }
        let first = self.anchors.blocks.iter().position(Option::is_some);
        self.anchors.current = first.ok_or(Error::Unsuitable { what: "no good block for anchors" })?;
        self.anchors.stable = self.anchors.current;
        self.anchors.next = Some(0);
        Ok(())
    }

    fn anchor_candidate(&self) -> Option<BlockAddr> {
        (0..self.anchor_window()).map(BlockAddr).find(|&block| self.blocks[block].is_free())
    }

    /// Erases an anchor block; `false` if it is bad now.
    fn erase_anchor(&mut self, block: BlockAddr) -> Result<bool, N> {
        let is_erased = self.try_erase(block)?;
        if !is_erased {
            self.blocks.set_state(block, State::Bad);
        }
        Ok(is_erased)
    }

    /// The first change after a clean start has to say that there is one; after a cut, how often blocks were erased.
    pub(crate) fn open_for_writing(&mut self) -> Result<(), N> {
        if self.is_read_only {
            return Err(Error::ReadOnly);
        }
        if self.anchors.is_clean || self.anchors.is_silent { self.write_anchor(false) } else { Ok(()) }
    }

    /// Programs an anchor. Costs a program, and an erase when a block of anchors is full; where the erase counts of all blocks do not
    /// fit one, at a clean end and in a new block of anchors as many programs as it takes to say them.
    pub(crate) fn write_anchor(&mut self, is_clean: bool) -> Result<(), N> {
        let before = self.nand.attribute(Cause::Checkpoint);
        let result = self.write_anchors(is_clean);
        self.nand.attribute(before);
        result
    }

    fn write_anchors(&mut self, is_clean: bool) -> Result<(), N> {
        if is_clean {
            self.anchors.count_said = 0;
        }
        // At most half of a block, which so is not full before all is said; what is not, later anchors say.
        for rest in (0..self.geometry.pages_per_block.div_ceil(2)).rev() {
            if self.try_anchors(is_clean, rest == 0)? {
                break;
            }
        }
        Ok(())
    }

    /// Says how often blocks were erased, if that was long ago.
    pub(crate) fn keep_erase_counts(&mut self) -> Result<(), N> {
        if self.anchors.erases < (self.geometry.block_count / 16).max(ERASES_MIN) {
            return Ok(());
        }
        self.anchors.count_said = 0;
        self.write_anchor(false)
    }

    /// Programs one anchor. Whether it is the last that is needed to say all erase counts that have to be said; only that one may
    /// say that nothing comes after it.
    fn try_anchors(&mut self, is_clean: bool, is_last: bool) -> Result<bool, N> {
        for _ in 0..2 * ANCHOR_COUNT {
            let Some((place, block, number)) = self.next_anchor()? else { continue };
            let page = self.page_of(block, number);
            let sequence = self.next_sequence();
            let (mut size, said) = self.fill_anchor(false).ok_or(Error::ReadOnly)?;
            let count_said = self.anchors.count_said.saturating_add(said);
            let is_last = is_last || said == 0 || count_said >= self.geometry.block_count;
            let is_clean = is_clean && is_last;
            if is_clean {
                size = self.fill_anchor(true).ok_or(Error::ReadOnly)?.0;
            }
            let erase_count = self.blocks[block].erase_count;
            FrontFields { kind: Kind::Anchor, sequence, page: page.0, volume: self.volume, erase_count, size }
                .seal(self.log);
            self.anchors.next = (u32::from(number) + 1 < self.geometry.pages_per_block).then_some(number + 1);
            let frame = self.buffer.arena.scratch(WALK);
            let read_back = self.options.read_back.then(|| self.buffer.arena.frame_mut(frame));
            if Self::program(&mut self.nand, page, 0, self.log, read_back)? {
                self.anchors.current = place;
                self.anchors.stable = place;
                self.anchors.is_clean = is_clean;
                self.anchors.has_journal = self.may_have_journal();
                self.journal.declared = self.journal.oldest;
                self.anchors.is_silent = false;
                self.anchors.count_said = count_said;
                self.anchors.count_first = (self.anchors.count_first + said) % self.geometry.block_count;
                if is_last {
                    self.anchors.erases = 0;
                }
                return Ok(is_last);
            }
            // The program failed: earlier anchors of the block can be read still, but nothing is added.
            self.anchors.next = None;
        }
        Err(Error::ReadOnly)
    }

    /// Where the next anchor goes. `None` if a block failed and another one is to be tried.
    fn next_anchor(&mut self) -> Result<Option<(usize, BlockAddr, u16)>, N> {
        let current = self.anchors.current;
        if let (Some(block), Some(next)) = (self.anchors.blocks[current], self.anchors.next) {
            return Ok(Some((current, block, next)));
        }
        for place in 0..ANCHOR_COUNT {
            if place == current || place == self.anchors.stable {
                continue;
            }
            if self.anchors.blocks[place].is_none() {
                let candidate = self.anchor_candidate();
                if let Some(block) = candidate {
                    self.blocks.set_state(block, State::Anchor);
                }
                self.anchors.blocks[place] = candidate;
            }
            let Some(block) = self.anchors.blocks[place] else { continue };
            if self.erase_anchor(block)? {
                self.anchors.count_said = 0;
                // If this one is not finished, the next attempt takes it again, not the block of the newest.
                self.anchors.next = None;
                return Ok(Some((place, block, 0)));
            }
            self.anchors.blocks[place] = None;
        }
        // With two blocks left there is no third to go to. The newest anchor stays, though a cut may have hit it: an older one
        // speaks of a journal that was erased long ago.
        let spare =
            (0..ANCHOR_COUNT).find(|&place| place != self.anchors.current && self.anchors.blocks[place].is_some());
        let Some((place, block)) = spare.and_then(|place| Some((place, self.anchors.blocks[place]?))) else {
            return Ok(None);
        };
        self.anchors.stable = self.anchors.current;
        if self.erase_anchor(block)? {
            self.anchors.count_said = 0;
            return Ok(Some((place, block, 0)));
        }
        self.anchors.blocks[place] = None;
        Ok(None)
    }

    /// Whether journal pages count: those that are to come, or those that a recovery under way still needs.
    fn may_have_journal(&self) -> bool {
        self.options.journal_blocks > 0 || self.journal.block_count() > 0
    }

    /// Makes an anchor in `log`. Returns its bytes, and of how many blocks it says how often they were erased.
    fn fill_anchor(&mut self, is_clean: bool) -> Option<(u32, u32)> {
        let number = |block: Option<BlockAddr>| block.map_or(NO_BLOCK, |block| block.0);
        let fields = AnchorFields {
            page_size: self.geometry.page_size,
            pages_per_block: self.geometry.pages_per_block,
            block_count: self.geometry.block_count,
            sector_size: self.options.sector_size,
            layout: layout_number(&self.options),
            log_pages_max: self.options.log_pages_max,
            cells: self.options.cells,
            is_clean,
            records: self.records,
            root: self.nodes.find(ROOT).map_or(0, |root| self.nodes[root].sequence),
            stable: number(self.anchors.blocks[self.anchors.stable]),
            anchors: self.anchors.blocks.map(number),
            has_journal: self.may_have_journal(),
            journal: self.journal.oldest,
            kind: kind_number(&self.options),
            more_pages: self.options.node_pages - 1,
        };
        let bad = self.blocks.addresses().filter(|&block| self.blocks[block].state() == State::Bad);
        let end = fields.write(self.log, bad.map(|block| block.0))?;
        let first = self.anchors.count_first;
        let blocks = &self.blocks;
        let counts = (first..self.geometry.block_count).map(|block| blocks[BlockAddr(block)].erase_count);
        let (size, said) = EraseCounts::write(self.log, end, first, counts);
        Some((size as u32, said))
    }
}

fn kind_number(options: &Options) -> u8 {
    match options.kind {
        options::Kind::Ipl => 1,
        options::Kind::Grr => 2,
    }
}

fn layout_number(options: &Options) -> u8 {
    match options.layout {
        Layout::Sectors => 1,
        Layout::Pages => 2,
    }
}
