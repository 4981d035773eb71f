//! Anchors: what the volume is, which blocks are bad, and whether it was left in order.
//!
//! Three blocks take them. The newest anchor found after a cut may have been under way when the power went, and may become
//! unreadable later; so each names a block in which one stands that is known to be sound, and neither that block nor the
//! newest is erased.

use nandu_media::inpage::anchor::{ANCHOR_COUNT, AnchorFields};
use nandu_media::inpage::{FrontFields, Kind};
use nandu_media::{Malformed, NO_BLOCK};
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
}

impl Anchors {
    pub(crate) const NONE: Anchors = Anchors {
        blocks: [None; ANCHOR_COUNT],
        current: 0,
        stable: 0,
        next: None,
        is_clean: false,
        has_journal: false,
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
    pub(crate) fn find_anchor(&mut self) -> Result<Option<Found>, N> {
        let mut newest: Option<Found> = None;
        let mut blocks = 0;
        for block in (0..self.anchor_window()).map(BlockAddr) {
            if blocks == ANCHOR_COUNT {
                break;
            }
            let mut is_anchor = false;
            for place in 0..self.geometry.pages_per_block as u16 {
                let (found, is_erased) = self.read_anchor(self.page_of(block, place))?;
                match found {
                    Some(found) => {
                        is_anchor = true;
                        newest = newest.filter(|newest| newest.sequence >= found.sequence).or(Some(found));
                    }
                    // The first page may be torn and the second sound; behind the last one a torn one may stand.
                    None if is_erased || (place >= 1 && !is_anchor) => break,
                    None => {}
                }
            }
            blocks += usize::from(is_anchor);
        }
        Ok(newest)
    }

    /// The anchor in a page, and whether the page is erased. What is no anchor is read twice: it may be another page that was
    /// read by mistake, and an anchor that is passed over takes the table of bad blocks with it.
    fn read_anchor(&mut self, page: PageAddr) -> Result<(Option<Found>, bool), N> {
        let mut is_erased = false;
        for _ in 0..2 {
            let read = Self::read(&mut self.nand, page, 0, self.log)?;
            if read == Read::Unreadable {
                continue;
            }
            let front = FrontFields::parse(self.log).ok().filter(|front| front.page == page.0);
            if let Some(front) = front.filter(|front| front.kind == Kind::Anchor) {
                return Ok((Some(Found { page, sequence: front.sequence, volume: front.volume }), false));
            }
            is_erased = self.looks_erased();
        }
        Ok((None, is_erased))
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
        self.anchors.current = position(current).ok_or(corrupt(Malformed::Range("anchors")))?;
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

    /// The first change after a clean start has to say that there is one.
    pub(crate) fn open_for_writing(&mut self) -> Result<(), N> {
        if self.is_read_only {
            return Err(Error::ReadOnly);
        }
        if self.anchors.is_clean { self.write_anchor(false) } else { Ok(()) }
    }

    /// Programs an anchor. Costs a program, and an erase when a block of anchors is full.
    pub(crate) fn write_anchor(&mut self, is_clean: bool) -> Result<(), N> {
        let before = self.nand.attribute(Cause::Checkpoint);
        let result = self.try_anchors(is_clean);
        self.nand.attribute(before);
        result
    }

    fn try_anchors(&mut self, is_clean: bool) -> Result<(), N> {
        for _ in 0..2 * ANCHOR_COUNT {
            let Some((place, block, number)) = self.next_anchor()? else { continue };
            let page = self.page_of(block, number);
            let sequence = self.next_sequence();
            let size = self.fill_anchor(is_clean).ok_or(Error::ReadOnly)? as u32;
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
                return Ok(());
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
                // If this one is not finished, the next attempt takes it again, not the block of the newest.
                self.anchors.next = None;
                return Ok(Some((place, block, 0)));
            }
            self.anchors.blocks[place] = None;
        }
        // With two blocks left there is no third to go to: the stable one is all that must stay.
        let spare =
            (0..ANCHOR_COUNT).find(|&place| place != self.anchors.stable && self.anchors.blocks[place].is_some());
        let Some((place, block)) = spare.and_then(|place| Some((place, self.anchors.blocks[place]?))) else {
            return Ok(None);
        };
        if self.erase_anchor(block)? {
            return Ok(Some((place, block, 0)));
        }
        self.anchors.blocks[place] = None;
        Ok(None)
    }

    /// Whether journal pages count: those that are to come, or those that a recovery under way still needs.
    fn may_have_journal(&self) -> bool {
        self.options.journal_blocks > 0 || self.journal.block_count() > 0
    }

    fn fill_anchor(&mut self, is_clean: bool) -> Option<usize> {
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
        fields.write(self.log, bad.map(|block| block.0))
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
