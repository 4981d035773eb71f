//! What the log knows of each block: six bytes in memory, four in a checkpoint.
//!
//! ```text
//!          checkpoint       erase        stream         full, cut, failed
//!   Free -----------> Listed ---> Ready ---------> Open -----------------> Closed --- last page dies ---> empty
//!     ^                  ^                                                   |                              |
//!     |                  +-------------------------- checkpoint ------------ | -----------------------------+
//!     |                                                                      | a program failed
//!   format                                              Bad <--- emptied --- Failing
//! ```
//!
//! A live count is never below the number of pages that the owner needs (N5); it is exact but after a cut.

use nandu_media::features::{FILES, MLC};
use nandu_media::table::{ERASE_COUNT_MAX, scale_live, unscale_live};
use nandu_media::{BlockRecord, BlockState, NO_PAGE};
use nandu_nand::{BlockAddr, CellMode};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::order::{Erased, Listed};
use crate::ready::Ready;
use crate::shape::Shape;

/// What a block is used for, as far as this session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Holds nothing, and no checkpoint lists it.
    Free = 0,
    /// In the ready list of the newest checkpoint, to be erased before it is opened.
    Listed = 1,
    /// In the ready list of the newest checkpoint, and erased.
    Ready = 2,
    Open = 3,
    Closed = 4,
    /// A program failed in it: to be emptied, then retired.
    Failing = 5,
    Bad = 6,
    Anchor = 7,
}

const STATES: [Stage; 8] =
    [Stage::Free, Stage::Listed, Stage::Ready, Stage::Open, Stage::Closed, Stage::Failing, Stage::Bad, Stage::Anchor];

impl Stage {
    fn from_media(state: BlockState) -> Stage {
        match state {
            BlockState::Free => Stage::Free,
            BlockState::Ready => Stage::Ready,
            BlockState::Open => Stage::Open,
            BlockState::Full | BlockState::Suspect => Stage::Closed,
            BlockState::Failing => Stage::Failing,
            BlockState::Bad => Stage::Bad,
            BlockState::Anchor => Stage::Anchor,
        }
    }

    fn to_media(self) -> BlockState {
        match self {
            // The list itself says what is in it.
            Stage::Free | Stage::Listed => BlockState::Free,
            Stage::Ready => BlockState::Ready,
            Stage::Open => BlockState::Open,
            Stage::Closed => BlockState::Full,
            Stage::Failing => BlockState::Failing,
            Stage::Bad => BlockState::Bad,
            Stage::Anchor => BlockState::Anchor,
        }
    }

    /// Programmed, to be programmed no further.
    pub(crate) fn is_closed(self) -> bool {
        matches!(self, Stage::Closed | Stage::Failing)
    }

    /// Whether pages in it can be live.
    pub(crate) fn holds_data(self) -> bool {
        self == Stage::Open || self.is_closed()
    }
}

/// A property of a block beside its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Flag {
    /// Bits begin to flip, or it was read too often: to be emptied.
    Refresh = 1 << 29,
    /// Holds a page that is live and cannot be read, so it is never erased.
    Damaged = 1 << 30,
    /// Of a bad block: its mark is not on the chip yet. Of any other: its mark was looked at in this session, and is not set.
    Mark = 1 << 31,
}

const STATE_SHIFT: u32 = 18;
const STREAM_SHIFT: u32 = 21;
const AGE_SHIFT: u32 = 24;
const STATE_BITS: u32 = 7 << STATE_SHIFT;
const STREAM_BITS: u32 = 7 << STREAM_SHIFT;
const AGE_BITS: u32 = 31 << AGE_SHIFT;

/// How much older blocks are when as many were opened as there are. At 16 none grows older after two times. Of skewed updates at 80 % of the capacity,
/// those under a 95/5 load take as many programs as with ages of 16 bits, and those under a Zipf load 1 % fewer.
const AGES: u32 = 16;

/// Beside the live count, which takes 13 bits at most: how many of its reads were drawn since its erase; 2 bits.
const READS_SHIFT: u32 = 13;
const READS: u16 = 3 << READS_SHIFT;

/// And whether its pages are raw.
const RAW: u16 = 1 << 15;

/// Something in a page of the block table changed that a checkpoint has to say.
const CHANGED: u8 = 2;
/// Live counts in it fell: a checkpoint need not say so, but after a clean one counts are taken for exact.
const LESS_LIVE: u8 = 1;

/// A block in memory: erase count (18 bits), state (3), stream (3), age (5), flags (3); live pages (13), reads drawn (2), and whether its pages are raw (1).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockEntry {
    word: U32,
    live: U16,
}

impl BlockEntry {
    fn state(self) -> Stage {
        STATES[(self.word.get() >> STATE_SHIFT & 7) as usize]
    }

    fn live(self) -> u16 {
        self.live.get() & !(READS | RAW)
    }

    fn has(self, flag: Flag) -> bool {
        self.word.get() & flag as u32 != 0
    }

    /// Full of dead pages.
    fn is_empty(self) -> bool {
        self.state() == Stage::Closed && self.live() == 0
    }
}

/// A page of the block table: where it was programmed last, and whether it has changed since.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TablePage {
    address: U32,
    changed: u8,
    reserved: [u8; 3],
}

/// How large the table is, and a block.
#[derive(Clone, Copy, Debug)]
struct Size {
    table_pages: u16,
    records_per_page: u32,
    /// Pages of a block with one bit a cell, and with two; as many where there are none.
    pages: (u16, u16),
    /// Of a block of raw pages those that are the log's.
    summaries: (u16, u16),
    /// The stream with two bits a cell, if there is one.
    mlc: Option<u8>,
}

/// The block table with its sums.
pub(crate) struct Blocks<'m> {
    entries: &'m mut [BlockEntry],
    /// As many as the table of any volume takes; the first ones are in use.
    table: &'m mut [TablePage],
    size: Size,
    counts: [u32; STATES.len()],
    empty: u32,
    live_total: u32,
    refresh: u32,
    damaged: u32,
    erase_count_sum: u64,
    /// Blocks opened since all grew older.
    opened: u32,
}

impl<'m> Blocks<'m> {
    /// Takes the memory; there is to be a shape before anything is asked. `table` has room for the table of any volume on the chip.
    pub(crate) fn new(entries: &'m mut [BlockEntry], table: &'m mut [TablePage]) -> Blocks<'m> {
        Blocks {
            entries,
            table,
            size: Size { table_pages: 0, records_per_page: 1, pages: (0, 0), summaries: (0, 0), mlc: None },
            counts: [0; STATES.len()],
            empty: 0,
            live_total: 0,
            refresh: 0,
            damaged: 0,
            erase_count_sum: 0,
            opened: 0,
        }
    }

    /// For a volume of this shape: every block is free and was never erased.
    pub(crate) fn reshape(&mut self, shape: &Shape) {
        debug_assert!(usize::from(shape.table_pages) <= self.table.len());
        self.size = Size {
            table_pages: shape.table_pages,
            records_per_page: shape.records_per_page,
            pages: (shape.pages, shape.pages_max()),
            summaries: (shape.summaries(CellMode::Slc), shape.summaries(CellMode::Mlc)),
            mlc: shape.has_mlc().then(|| shape.streams - 1),
        };
        self.clear();
    }

    /// Back to where every block is free and was never erased.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(BlockEntry { word: U32::ZERO, live: U16::ZERO });
        self.table.fill(TablePage { address: U32::new(NO_PAGE), changed: CHANGED, reserved: [0; 3] });
        self.counts = [0; STATES.len()];
        self.counts[Stage::Free as usize] = self.entries.len() as u32;
        (self.empty, self.live_total, self.refresh, self.damaged, self.erase_count_sum) = (0, 0, 0, 0, 0);
        debug_assert!(self.pool() == self.count() && self.good() == self.count());
    }

    pub(crate) fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        (0..self.entries.len() as u32).map(BlockAddr)
    }

    fn entry(&self, block: BlockAddr) -> BlockEntry {
        self.entries[block.0 as usize]
    }

    fn word(&self, block: BlockAddr) -> u32 {
        self.entry(block).word.get()
    }

    pub(crate) fn state(&self, block: BlockAddr) -> Stage {
        self.entry(block).state()
    }

    pub(crate) fn erase_count(&self, block: BlockAddr) -> u32 {
        self.word(block) & ERASE_COUNT_MAX
    }

    /// The stream that opened a block; 0 after a mount.
    pub(crate) fn stream(&self, block: BlockAddr) -> u8 {
        (self.word(block) >> STREAM_SHIFT & 7) as u8
    }

    /// Pages of a block with one bit a cell.
    pub(crate) fn pages(&self) -> u16 {
        self.size.pages.0
    }

    /// Whether there may be blocks with two bits a cell.
    pub(crate) fn has_mlc(&self) -> bool {
        MLC && self.size.mlc.is_some()
    }

    /// Pages of the block.
    pub(crate) fn pages_of(&self, block: BlockAddr) -> u16 {
        if self.mode(block) == CellMode::Mlc { self.size.pages.1 } else { self.size.pages.0 }
    }

    /// Room of a block, in pages of the densest kind.
    pub(crate) fn units(&self) -> u16 {
        if MLC { self.size.pages.1 } else { self.size.pages.0 }
    }

    /// How the cells of a block are used that holds data.
    pub(crate) fn mode(&self, block: BlockAddr) -> CellMode {
        let is_mlc = MLC && self.size.mlc.is_some_and(|mlc| self.is_raw(block) && self.stream(block) == mlc);
        if is_mlc { CellMode::Mlc } else { CellMode::Slc }
    }

    /// Pages that are live, at most.
    pub(crate) fn live(&self, block: BlockAddr) -> u16 {
        self.entry(block).live()
    }

    /// The same of all blocks.
    pub(crate) fn live_total(&self) -> u32 {
        self.live_total
    }

    /// How long ago a block was opened, in sixteenths of the time in which as many are opened as there are; 31 at most.
    pub(crate) fn age(&self, block: BlockAddr) -> u32 {
        (self.word(block) & AGE_BITS) >> AGE_SHIFT
    }

    /// Reads drawn since the erase.
    pub(crate) fn reads(&self, block: BlockAddr) -> u8 {
        (self.entry(block).live.get() >> READS_SHIFT & 3) as u8
    }

    pub(crate) fn has(&self, block: BlockAddr, flag: Flag) -> bool {
        self.entry(block).has(flag)
    }

    pub(crate) fn in_state(&self, state: Stage) -> u32 {
        self.counts[state as usize]
    }

    /// Blocks to be emptied however much room there is: their bits flip, or a program failed in them.
    pub(crate) fn endangered(&self) -> u32 {
        self.refresh + self.in_state(Stage::Failing)
    }

    pub(crate) fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Erases of all blocks over their number.
    pub(crate) fn erase_count_mean(&self) -> u32 {
        (self.erase_count_sum / self.entries.len().max(1) as u64) as u32
    }

    /// Blocks that hold nothing and are open to nobody.
    pub(crate) fn pool(&self) -> u32 {
        self.listable() + self.in_state(Stage::Listed) + self.in_state(Stage::Ready)
    }

    /// Blocks that the next checkpoint can list and the newest one does not.
    pub(crate) fn listable(&self) -> u32 {
        self.in_state(Stage::Free) + self.empty
    }

    /// Whether the next checkpoint can list a block that the newest one does not.
    pub(crate) fn is_listable(&self, block: BlockAddr) -> bool {
        self.state(block) == Stage::Free || self.entry(block).is_empty()
    }

    /// Blocks that data can use at all.
    pub(crate) fn good(&self) -> u32 {
        let lost = [Stage::Bad, Stage::Anchor, Stage::Failing].map(|state| self.in_state(state)).iter().sum::<u32>();
        self.count().saturating_sub(lost + self.damaged)
    }

    /// Changes a block and keeps the sums.
    fn change(&mut self, block: BlockAddr, word: u32, live: u16) {
        debug_assert!(live <= self.size.pages.1, "block {block} has no {live} pages");
        let old = self.entry(block);
        let new = BlockEntry { word: U32::new(word), live: U16::new(live | old.live.get() & (READS | RAW)) };
        self.entries[block.0 as usize] = new;
        let step = |sum: u32, before: bool, after: bool| sum - u32::from(before) + u32::from(after);
        self.counts[old.state() as usize] -= 1;
        self.counts[new.state() as usize] += 1;
        self.live_total = self.live_total - u32::from(old.live()) + u32::from(live);
        self.empty = step(self.empty, old.is_empty(), new.is_empty());
        self.refresh = step(self.refresh, old.has(Flag::Refresh), new.has(Flag::Refresh));
        self.damaged = step(self.damaged, old.has(Flag::Damaged), new.has(Flag::Damaged));
        let (old_erases, new_erases) = (old.word.get() & ERASE_COUNT_MAX, word & ERASE_COUNT_MAX);
        self.erase_count_sum = self.erase_count_sum - u64::from(old_erases) + u64::from(new_erases);
        debug_assert!(self.empty <= self.in_state(Stage::Closed));
        debug_assert!(self.counts.iter().sum::<u32>() == self.count(), "each block is in one state");
        // A live count that only fell needs no new table page: the recorded one stays an upper bound.
        let change = if old.state() != new.state() || old_erases != new_erases || live > old.live() {
            CHANGED
        } else if live < old.live() {
            LESS_LIVE
        } else {
            return;
        };
        if let Some(page) = self.table.get_mut((block.0 / self.size.records_per_page) as usize) {
            page.changed = page.changed.max(change);
        }
    }

    fn set_state(&mut self, block: BlockAddr, state: Stage) {
        let word = self.word(block) & !STATE_BITS | (state as u32) << STATE_SHIFT;
        if state.holds_data() {
            return self.change(block, word, self.live(block));
        }
        if FILES {
            let live = &mut self.entries[block.0 as usize].live;
            live.set(live.get() & !RAW);
        }
        // What the mark's flag says depends on whether the block is bad.
        let lost =
            if state == Stage::Bad { Flag::Mark as u32 } else { 0 } | Flag::Refresh as u32 | Flag::Damaged as u32;
        self.change(block, word & !lost, 0);
    }

    /// A checkpoint is about to list a block.
    pub(crate) fn list(&mut self, block: BlockAddr) {
        debug_assert!(self.is_listable(block), "a block is listed that holds data");
        self.set_state(block, Stage::Listed);
        debug_assert!(!self.is_listable(block) && self.live(block) == 0);
    }

    /// The list of the next checkpoint: what is left of the one before, in its order, then blocks that hold nothing, the least worn first, so many in all.
    ///
    /// In its order: the first unopened block is the one that a recovery erases and copies to. After a cut of this
    /// checkpoint one recovery may see it and another may not, and both have to take the same block.
    pub(crate) fn list_more(&mut self, before: &Ready, most: usize) -> Ready {
        let mut ready = Ready::EMPTY;
        // One that failed meanwhile is bad.
        let is_left = |block: &&BlockAddr| matches!(self.state(**block), Stage::Ready | Stage::Listed);
        before.unopened().iter().filter(is_left).for_each(|&block| ready.push(block));
        while ready.all().len() < most {
            let listable = self.addresses().filter(|&block| self.is_listable(block));
            let Some(block) = listable.min_by_key(|&block| self.erase_count(block)) else { break };
            self.list(block);
            ready.push(block);
        }
        debug_assert!(ready.all().iter().all(|&block| self.live(block) == 0), "a listed block holds nothing");
        ready
    }

    /// A block of the newest checkpoint's list may not be erased, or is not known to be.
    pub(crate) fn doubt(&mut self, block: BlockAddr) {
        debug_assert!(matches!(self.state(block), Stage::Free | Stage::Listed | Stage::Ready));
        self.set_state(block, Stage::Listed);
    }

    /// An erase of a listed block returned.
    pub(crate) fn erased(&mut self, block: BlockAddr) {
        debug_assert!(matches!(self.state(block), Stage::Listed | Stage::Ready));
        self.set_state(block, Stage::Ready);
        debug_assert!(self.live(block) == 0 && !self.has(block, Flag::Damaged));
    }

    /// A block that was taken from the ready list, if it was erased before.
    pub(crate) fn prove_erased(&self, listed: Listed) -> Result<Erased, Listed> {
        if self.state(listed.block()) == Stage::Ready { Ok(listed.erased()) } else { Err(listed) }
    }

    /// A stream opens a block.
    pub(crate) fn open(&mut self, erased: Erased, (stream, is_raw): (u8, bool)) {
        let block = erased.block();
        debug_assert!(self.state(block) == Stage::Ready && self.live(block) == 0);
        self.opened += 1;
        if self.opened * AGES >= self.count() {
            self.opened = 0;
            for BlockEntry { word, .. } in
                self.entries.iter_mut().filter(|entry| entry.word.get() & AGE_BITS != AGE_BITS)
            {
                word.set(word.get() + (1 << AGE_SHIFT));
            }
        }
        self.entries[block.0 as usize].word.set(self.word(block) & !AGE_BITS);
        self.reopen(block, stream);
        if is_raw {
            self.found_raw(block);
        }
    }

    /// The pages of a block are raw.
    pub(crate) fn found_raw(&mut self, block: BlockAddr) {
        debug_assert!(self.state(block).holds_data() && self.size.summaries.0 > 0);
        let live = &mut self.entries[block.0 as usize].live;
        live.set(live.get() | RAW);
    }

    /// And have two bits a cell.
    pub(crate) fn found_mlc(&mut self, block: BlockAddr) {
        self.found_raw(block);
        let stream = u32::from(self.size.mlc.unwrap_or_default());
        let word = self.word(block) & !STREAM_BITS | stream << STREAM_SHIFT;
        self.entries[block.0 as usize].word.set(word);
        debug_assert!(self.mode(block) == CellMode::Mlc);
    }

    pub(crate) fn is_raw(&self, block: BlockAddr) -> bool {
        FILES && self.entry(block).live.get() & RAW != 0
    }

    /// Pages of a block that an owner may have.
    pub(crate) fn owned(&self, block: BlockAddr) -> u16 {
        let is_mlc = self.mode(block) == CellMode::Mlc;
        let summaries = if is_mlc { self.size.summaries.1 } else { self.size.summaries.0 };
        self.pages_of(block) - if self.is_raw(block) { summaries } else { 0 }
    }

    /// Room of a block that what lives in it takes elsewhere, and room for owners in all: in pages of the densest kind, to which raw pages go.
    pub(crate) fn room_taken(&self, block: BlockAddr) -> (u16, u16) {
        let node = if MLC { self.size.pages.1 / self.size.pages.0.max(1) } else { 1 };
        debug_assert!(self.state(block).holds_data() && node > 0);
        match self.is_raw(block) {
            true => (self.live(block), self.units() - self.size.summaries.1),
            false => (self.live(block) * node, self.units()),
        }
    }

    /// Of that what is nobody's.
    pub(crate) fn dead_room(&self, block: BlockAddr) -> u16 {
        let (live, all) = self.room_taken(block);
        all.saturating_sub(live)
    }

    /// Nothing more goes to a block.
    pub(crate) fn close(&mut self, block: BlockAddr) {
        debug_assert!(self.state(block) == Stage::Open);
        self.set_state(block, Stage::Closed);
        debug_assert!(self.state(block).is_closed());
    }

    /// A program failed in a block.
    pub(crate) fn fail(&mut self, block: BlockAddr) {
        debug_assert!(self.state(block) == Stage::Open);
        self.set_state(block, Stage::Failing);
        debug_assert!(!self.is_listable(block), "a block that failed is not opened again");
    }

    /// After a cut: a block was opened since the checkpoint or was open there, and so many pages in it may be live.
    pub(crate) fn found_used(&mut self, block: BlockAddr, live: u16) {
        self.set_state(block, Stage::Closed);
        self.change(block, self.word(block), live.min(self.pages_of(block)));
        debug_assert!(self.state(block) == Stage::Closed && self.live(block) <= self.pages_of(block));
    }

    /// A stream goes on in a block that was open at a cut.
    pub(crate) fn reopen(&mut self, block: BlockAddr, stream: u8) {
        let word = self.word(block) & !(STATE_BITS | STREAM_BITS);
        let word = word | u32::from(stream & 7) << STREAM_SHIFT | (Stage::Open as u32) << STATE_SHIFT;
        self.change(block, word, self.live(block));
        debug_assert!(self.state(block) == Stage::Open);
    }

    /// A block is out of use; its mark is put on the chip after the next checkpoint.
    pub(crate) fn retire(&mut self, block: BlockAddr) {
        debug_assert!(self.live(block) == 0 || self.state(block) == Stage::Anchor, "a block with live pages is kept");
        self.set_state(block, Stage::Bad);
        self.set(block, Flag::Mark, true);
        debug_assert!(self.live(block) == 0);
    }

    /// A block carries a mark.
    pub(crate) fn found_bad(&mut self, block: BlockAddr) {
        self.set_state(block, Stage::Bad);
    }

    /// A block holds anchors from here on.
    pub(crate) fn make_anchor(&mut self, block: BlockAddr) {
        debug_assert!(self.state(block) == Stage::Free);
        self.set_state(block, Stage::Anchor);
        debug_assert!(!self.is_listable(block));
    }

    pub(crate) fn set_live(&mut self, block: BlockAddr, live: u16) {
        self.change(block, self.word(block), live.min(self.pages_of(block)));
    }

    /// A page of a block lives.
    pub(crate) fn gain(&mut self, block: BlockAddr) {
        debug_assert!(self.state(block).holds_data(), "a page lives in a block that holds none");
        debug_assert!(self.live(block) < self.pages_of(block), "block {block} has no page more");
        self.set_live(block, self.live(block) + 1);
    }

    /// So many pages live of each block that holds data, as far as it has them; of an open one this says how many it has.
    pub(crate) fn set_all_live(&mut self, live: u16, next_in: impl Fn(BlockAddr) -> Option<u16>) {
        for block in self.addresses() {
            if self.state(block).holds_data() {
                self.set_live(block, live.min(next_in(block).unwrap_or(u16::MAX)));
            }
        }
        debug_assert!(live > 0 || self.live_total == 0);
    }

    /// Pages were counted: what was kept for the sake of a count that was wrong can be erased.
    pub(crate) fn release_unreached(&mut self) {
        for block in self.addresses() {
            if self.has(block, Flag::Damaged) && self.live(block) == 0 {
                self.set(block, Flag::Damaged, false);
            }
        }
    }

    /// A page of a block died. Returns false if none lived there: then whoever owns the pages is wrong, as about a damaged tree.
    pub(crate) fn lose(&mut self, block: BlockAddr) -> bool {
        let live = self.live(block);
        self.set_live(block, live.saturating_sub(1));
        debug_assert!(live <= self.size.pages.1 && self.live(block) <= live, "a death takes a page at most");
        live > 0
    }

    pub(crate) fn set(&mut self, block: BlockAddr, flag: Flag, on: bool) {
        let word = if on { self.word(block) | flag as u32 } else { self.word(block) & !(flag as u32) };
        self.change(block, word, self.live(block));
    }

    pub(crate) fn set_reads(&mut self, block: BlockAddr, reads: u8) {
        let live = &mut self.entries[block.0 as usize].live;
        live.set(live.get() & !READS | u16::from(reads & 3) << READS_SHIFT);
    }

    pub(crate) fn count_erases(&mut self, block: BlockAddr, count: u32) {
        debug_assert!(count > 0, "an erase is counted that was none");
        self.keep_erases(block, self.erase_count(block).saturating_add(count));
        self.set_reads(block, 0);
    }

    /// Takes over an erase count from a volume that is about to be replaced.
    pub(crate) fn keep_erases(&mut self, block: BlockAddr, count: u32) {
        let word = self.word(block) & !ERASE_COUNT_MAX | count.min(ERASE_COUNT_MAX);
        self.change(block, word, self.live(block));
    }

    pub(crate) fn record(&self, block: BlockAddr) -> BlockRecord {
        BlockRecord {
            erase_count: self.erase_count(block),
            state: self.state(block).to_media(),
            live: scale_live(self.live(block), self.pages_of(block)),
            is_inexact: false,
            is_raw: self.is_raw(block),
            is_mlc: self.mode(block) == CellMode::Mlc,
        }
    }

    /// Takes a block's record from a checkpoint; `false` if it says what cannot be.
    #[must_use]
    pub(crate) fn load(&mut self, block: BlockAddr, record: BlockRecord) -> bool {
        let state = Stage::from_media(record.state);
        let word = record.erase_count & ERASE_COUNT_MAX | (state as u32) << STATE_SHIFT;
        self.change(block, word, 0);
        let may_be_raw = FILES && self.size.summaries.0 > 0 && state.holds_data();
        let may_be_mlc = may_be_raw && record.is_raw && self.size.mlc.is_some();
        if record.is_raw && may_be_raw {
            self.found_raw(block);
        }
        if record.is_mlc && may_be_mlc {
            self.found_mlc(block);
        }
        if state.holds_data() {
            self.set_live(block, unscale_live(record.live, self.pages_of(block)));
        }
        (!record.is_raw || may_be_raw) && (!record.is_mlc || may_be_mlc) && (state.holds_data() || record.live == 0)
    }

    pub(crate) fn table_pages(&self) -> u16 {
        self.size.table_pages
    }

    /// Where a page of the block table was programmed last.
    pub(crate) fn table_address(&self, index: u16) -> u32 {
        self.table[usize::from(index)].address.get()
    }

    /// A page of the block table stands there, and says what is so.
    pub(crate) fn set_table_address(&mut self, index: u16, address: u32) {
        debug_assert!(index < self.size.table_pages);
        let page = &mut self.table[usize::from(index)];
        page.address.set(address);
        page.changed = 0;
    }

    /// Whether a page of the block table has to be programmed for the next checkpoint.
    pub(crate) fn is_table_page_due(&self, index: u16, is_clean: bool) -> bool {
        self.table[usize::from(index)].changed >= if is_clean { LESS_LIVE } else { CHANGED }
    }

    /// Pages of the block table that the next checkpoint programs.
    pub(crate) fn due_table_pages(&self, is_clean: bool) -> u16 {
        (0..self.table_pages()).filter(|&index| self.is_table_page_due(index, is_clean)).count() as u16
    }

    /// The next checkpoint programs the whole table.
    pub(crate) fn change_every_table_page(&mut self) {
        self.table.iter_mut().for_each(|page| page.changed = CHANGED);
    }

    /// The blocks whose records stand in a page of the block table.
    pub(crate) fn blocks_of_table_page(&self, index: u16) -> core::ops::Range<u32> {
        let first = u32::from(index) * self.size.records_per_page;
        first..(first + self.size.records_per_page).min(self.count())
    }
}
