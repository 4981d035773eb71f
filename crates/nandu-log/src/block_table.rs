//! What the log knows of each block: eight bytes in memory, four in a checkpoint.

use nandu_media::features::{FILES, MLC};
use nandu_media::table::{ERASE_COUNT_MAX, LIVE_MAX, scale_live, unscale_live};
use nandu_media::{BlockRecord, BlockState, NO_PAGE, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::shape::Shape;

/// What a block is used for, as far as this session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// To be erased before use.
    Free = 0,
    /// In the ready list of the newest checkpoint, to be erased before it is opened.
    Listed = 1,
    /// In the ready list of the newest checkpoint, and erased.
    Ready = 2,
    Open = 3,
    Full = 4,
    Suspect = 5,
    Failing = 6,
    Bad = 7,
    Anchor = 8,
}

const STATE_COUNT: usize = 9;

impl State {
    const ALL: [State; STATE_COUNT] = [
        State::Free,
        State::Listed,
        State::Ready,
        State::Open,
        State::Full,
        State::Suspect,
        State::Failing,
        State::Bad,
        State::Anchor,
    ];

    fn from_media(state: BlockState) -> State {
        match state {
            BlockState::Free => State::Free,
            BlockState::Ready => State::Ready,
            BlockState::Open => State::Open,
            BlockState::Full => State::Full,
            BlockState::Suspect => State::Suspect,
            BlockState::Failing => State::Failing,
            BlockState::Bad => State::Bad,
            BlockState::Anchor => State::Anchor,
        }
    }

    fn to_media(self) -> BlockState {
        match self {
            // The list itself says what is in it.
            State::Free | State::Listed => BlockState::Free,
            State::Ready => BlockState::Ready,
            State::Open => BlockState::Open,
            State::Full => BlockState::Full,
            State::Suspect => BlockState::Suspect,
            State::Failing => BlockState::Failing,
            State::Bad => BlockState::Bad,
            State::Anchor => BlockState::Anchor,
        }
    }

    /// Programmed, to be programmed no further.
    pub(crate) fn is_closed(self) -> bool {
        matches!(self, State::Full | State::Suspect | State::Failing)
    }

    /// Whether pages in it can be live.
    pub(crate) fn holds_data(self) -> bool {
        self == State::Open || self.is_closed()
    }
}

/// Of a ready block: it was erased for a stream with two bits a cell, while other streams have one.
pub(crate) const ERASED_MLC: u32 = 1 << 18;
/// What lives in it was copied, and the copies wait to be named: not to be emptied again meanwhile.
pub(crate) const COPIED: u32 = 1 << 19;
/// Not to be erased before the next checkpoint: open at the newest one, opened after it, or emptied after it.
pub(crate) const HELD: u32 = 1 << 27;
/// Bits begin to flip, to be emptied.
pub(crate) const REFRESH: u32 = 1 << 28;
/// Holds a page that cannot be read and may be live, so it is never erased.
pub(crate) const DAMAGED: u32 = 1 << 29;
/// Of a bad block: its mark is not on the chip yet.
pub(crate) const UNMARKED: u32 = 1 << 30;
/// Of a block that is not bad, in the same place: its mark was looked at in this session, and it is not set.
pub(crate) const MARK_SEEN: u32 = 1 << 30;
/// The live count may be above the truth.
pub(crate) const INEXACT: u32 = 1 << 31;

/// Something in a page of the block table changed that a checkpoint has to say.
const CHANGED: u8 = 2;
/// Live counts in it fell: a checkpoint need not say so, but after a clean one counts are taken for exact.
const LESS_LIVE: u8 = 1;

/// Beside the live count, which takes 13 bits at most: the block is not to be emptied for now. Not an invariant of the
/// chip but a wish of the owner's, so nothing on flash says it.
const PINNED: u16 = 1 << 15;
/// There, too: how many of its reads were drawn since its erase, see `disturb`; 2 bits.
const READS_SHIFT: u32 = 13;
const READS: u16 = 3 << READS_SHIFT;
/// The bits of the live count itself.
const LIVE: u16 = !(PINNED | READS);

/// A block in memory: erase count (18 bits), flags (2), state (4), stream (3), flags (5); live pages (13), reads drawn (2) and
/// whether the block is pinned; coarse time of opening.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockEntry {
    word: U32,
    live: U16,
    birth: U16,
}

/// A page of the block table: where it was programmed last, and whether it has changed since.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TablePage {
    address: U32,
    changed: u8,
    reserved: [u8; 3],
}

/// The stream in the word of a block.
fn stream_of(word: u32) -> u8 {
    (word >> 24 & 7) as u8
}

/// The block table with its sums.
pub(crate) struct BlockTable<'m> {
    entries: &'m mut [BlockEntry],
    /// As many as the table of any volume takes; the first ones are in use.
    table_pages: &'m mut [TablePage],
    table_page_count: u16,
    pub(crate) page: &'m mut [u8],
    records_per_page: u32,
    pages: u16,
    /// Mode of blocks, but for those of streams from `first_mlc` on, and pages of these.
    mode: CellMode,
    mlc_pages: u16,
    /// The first stream that is bare; one that there is not, if none is.
    first_bare: u8,
    /// The first stream with two bits a cell while others have one; one that there is not, if none has.
    first_mlc: u8,
    counts: [u32; STATE_COUNT],
    /// Blocks that are full or suspect and hold nothing live.
    empty: u32,
    /// Blocks that may be erased now.
    erasable: u32,
    live_total: u32,
    /// Of these, in bare blocks.
    live_bare: u32,
    inexact: u32,
    refresh: u32,
    damaged: u32,
    /// Of all blocks together.
    erase_count_sum: u64,
}

impl<'m> BlockTable<'m> {
    /// Takes the memory; every block is free and was never erased.
    pub(crate) fn new(
        shape: &Shape,
        entries: &'m mut [BlockEntry],
        table_pages: &'m mut [TablePage],
        page: &'m mut [u8],
    ) -> BlockTable<'m> {
        let mut table = BlockTable {
            entries,
            table_pages,
            table_page_count: 0,
            page,
            records_per_page: 1,
            pages: 0,
            mode: shape.mode,
            mlc_pages: 0,
            first_bare: 0,
            first_mlc: 0,
            counts: [0; STATE_COUNT],
            empty: 0,
            erasable: 0,
            live_total: 0,
            live_bare: 0,
            inexact: 0,
            refresh: 0,
            damaged: 0,
            erase_count_sum: 0,
        };
        table.reshape(shape);
        table
    }

    /// For a volume of another shape on the same chip: every block is free and was never erased.
    pub(crate) fn reshape(&mut self, shape: &Shape) {
        self.table_page_count = shape.table_pages;
        self.records_per_page = shape.records_per_page;
        self.pages = shape.pages;
        self.mode = shape.mode;
        self.mlc_pages = shape.mlc_pages();
        self.first_bare = if shape.has_bare() { shape.headed() } else { STREAM_COUNT_MAX as u8 };
        self.first_mlc = if shape.has_mlc() { shape.first_mlc() } else { STREAM_COUNT_MAX as u8 };
        self.clear();
    }

    /// Back to where every block is free and was never erased.
    pub(crate) fn clear(&mut self) {
        let word = U32::new(u32::from(self.unknown_stream()) << 24);
        self.entries.fill(BlockEntry { word, live: U16::ZERO, birth: U16::ZERO });
        self.table_pages.fill(TablePage { address: U32::new(NO_PAGE), changed: CHANGED, reserved: [0; 3] });
        self.counts = [0; STATE_COUNT];
        self.counts[State::Free as usize] = self.entries.len() as u32;
        (self.empty, self.live_total, self.live_bare, self.inexact, self.refresh, self.damaged) = (0, 0, 0, 0, 0, 0);
        self.erasable = self.entries.len() as u32;
        self.erase_count_sum = 0;
    }

    /// The stream noted for a block that holds nothing, if it is not known which stream opened it last.
    fn unknown_stream(&self) -> u8 {
        if self.has_bare() { self.first_bare } else { 0 }
    }

    fn has_bare(&self) -> bool {
        FILES && self.first_bare < STREAM_COUNT_MAX as u8
    }

    /// Keeps the page in the buffer where the entries stand, if they take as much; [`BlockTable::clear`] makes them entries
    /// again.
    pub(crate) fn stash(&mut self) -> bool {
        let place = self.entries.as_mut_bytes().get_mut(..self.page.len());
        place.map(|place| place.copy_from_slice(self.page)).is_some()
    }

    /// The page back to the buffer.
    pub(crate) fn unstash(&mut self) {
        if let Some(place) = self.entries.as_bytes().get(..self.page.len()) {
            self.page.copy_from_slice(place);
        }
    }

    pub(crate) fn block_count(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        (0..self.entries.len() as u32).map(BlockAddr)
    }

    fn word(&self, block: BlockAddr) -> u32 {
        self.entries[block.0 as usize].word.get()
    }

    pub(crate) fn state(&self, block: BlockAddr) -> State {
        State::ALL[(self.word(block) >> 20 & 0xf) as usize % STATE_COUNT]
    }

    pub(crate) fn erase_count(&self, block: BlockAddr) -> u32 {
        self.word(block) & ERASE_COUNT_MAX
    }

    pub(crate) fn stream(&self, block: BlockAddr) -> u8 {
        stream_of(self.word(block))
    }

    /// Whether a block holds pages without header.
    pub(crate) fn is_bare(&self, block: BlockAddr) -> bool {
        self.state(block).holds_data() && self.was_bare(block)
    }

    /// As [`BlockTable::is_bare`], also of a block that holds nothing, for as long as it was not opened again. Where nobody knows,
    /// since a checkpoint does not say it of such a block: yes.
    pub(crate) fn was_bare(&self, block: BlockAddr) -> bool {
        self.is_bare_stream(self.stream(block))
    }

    fn is_bare_stream(&self, stream: u8) -> bool {
        FILES && stream >= self.first_bare
    }

    fn is_mlc_stream(&self, stream: u8) -> bool {
        MLC && stream >= self.first_mlc
    }

    /// Whether the stream that opened a block has two bits a cell while others have one.
    fn is_mlc(&self, block: BlockAddr) -> bool {
        self.is_mlc_stream(self.stream(block))
    }

    /// How the cells of a block are used that holds data.
    pub(crate) fn mode(&self, block: BlockAddr) -> CellMode {
        if self.is_mlc(block) { CellMode::Mlc } else { self.mode }
    }

    /// Pages of a block that holds data.
    pub(crate) fn pages(&self, block: BlockAddr) -> u16 {
        if self.is_mlc(block) { self.mlc_pages } else { self.pages }
    }

    /// Says which stream opened a block, found out after a cut.
    pub(crate) fn assign(&mut self, block: BlockAddr, stream: u8) {
        let word = self.word(block) & !(7 << 24) | u32::from(stream & 7) << 24;
        self.change(block, word, self.live(block));
    }

    /// Erases of all blocks over their number.
    pub(crate) fn erase_count_mean(&self) -> u32 {
        (self.erase_count_sum / self.entries.len().max(1) as u64) as u32
    }

    pub(crate) fn has(&self, block: BlockAddr, flag: u32) -> bool {
        self.word(block) & flag != 0
    }

    pub(crate) fn live(&self, block: BlockAddr) -> u16 {
        self.entries[block.0 as usize].live.get() & LIVE
    }

    /// Whether a block is left alone for now, as the owner wishes or because what lives in it was copied.
    pub(crate) fn is_pinned(&self, block: BlockAddr) -> bool {
        self.entries[block.0 as usize].live.get() & PINNED != 0 || self.has(block, COPIED)
    }

    pub(crate) fn pin(&mut self, block: BlockAddr) {
        let live = &mut self.entries[block.0 as usize].live;
        live.set(live.get() | PINNED);
    }

    /// Reads drawn since the erase.
    pub(crate) fn reads(&self, block: BlockAddr) -> u8 {
        ((self.entries[block.0 as usize].live.get() & READS) >> READS_SHIFT) as u8
    }

    pub(crate) fn set_reads(&mut self, block: BlockAddr, reads: u8) {
        let live = &mut self.entries[block.0 as usize].live;
        live.set(live.get() & !READS | u16::from(reads & 3) << READS_SHIFT);
    }

    /// Ends what was said of every block whose pages were copied.
    pub(crate) fn forget_copied(&mut self) {
        for block in self.addresses() {
            if self.has(block, COPIED) {
                self.set(block, COPIED, false);
            }
        }
    }

    pub(crate) fn unpin_all(&mut self) {
        for entry in self.entries.iter_mut() {
            entry.live.set(entry.live.get() & !PINNED);
        }
    }

    pub(crate) fn birth(&self, block: BlockAddr) -> u16 {
        self.entries[block.0 as usize].birth.get()
    }

    pub(crate) fn count(&self, state: State) -> u32 {
        self.counts[state as usize]
    }

    pub(crate) fn live_total(&self) -> u32 {
        self.live_total
    }

    /// Of the pages that are live, those in bare blocks.
    pub(crate) fn live_bare(&self) -> u32 {
        if FILES { self.live_bare } else { 0 }
    }

    /// Summaries that the live bare pages need, where these fill their blocks; blocks with two bits a cell, if there are any.
    pub(crate) fn summaries(&self) -> u32 {
        self.live_bare().div_ceil(u32::from(self.mlc_pages) - 1)
    }

    /// Pages of a block that can be live: but for a summary, all.
    pub(crate) fn live_max(&self, block: BlockAddr) -> u16 {
        self.pages(block) - u16::from(self.is_bare(block))
    }

    pub(crate) fn inexact(&self) -> u32 {
        self.inexact
    }

    /// Blocks to be emptied however much room there is: their bits flip, or a program failed in them.
    pub(crate) fn endangered(&self) -> u32 {
        self.refresh + self.count(State::Failing)
    }

    pub(crate) fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Blocks that hold nothing and can be made ready.
    pub(crate) fn pool(&self) -> u32 {
        self.can_be_listed() + self.listed()
    }

    /// Blocks in the ready list that were not opened.
    pub(crate) fn listed(&self) -> u32 {
        self.count(State::Ready) + self.count(State::Listed)
    }

    /// Blocks that the next checkpoint can list.
    pub(crate) fn can_be_listed(&self) -> u32 {
        self.count(State::Free) + self.empty
    }

    /// Whether the next checkpoint can list a block: it will call it empty, if none before it did.
    pub(crate) fn may_be_listed(&self, block: BlockAddr) -> bool {
        let state = self.state(block);
        state == State::Free || Self::is_empty(state, self.live(block))
    }

    /// Blocks that data can use at all.
    pub(crate) fn good(&self) -> u32 {
        let lost = self.count(State::Bad) + self.count(State::Anchor) + self.count(State::Failing) + self.damaged;
        self.block_count().saturating_sub(lost)
    }

    /// Blocks that may be erased now.
    pub(crate) fn erasable(&self) -> u32 {
        self.erasable
    }

    /// Whether a block may be erased now.
    pub(crate) fn is_erasable(&self, block: BlockAddr) -> bool {
        Self::may_be_erased(self.state(block), self.live(block), self.word(block))
    }

    /// Not before a checkpoint after a block was closed and emptied (L4). Roll-forward looks for pages in the blocks that were
    /// open at the newest checkpoint or opened after it, and after a cut would miss what lies behind an erased one; and a
    /// block that the checkpoint does not call empty would be examined after a torn erase.
    fn may_be_erased(state: State, live: u16, word: u32) -> bool {
        state == State::Free || (Self::is_empty(state, live) && word & HELD == 0)
    }

    fn is_empty(state: State, live: u16) -> bool {
        live == 0 && matches!(state, State::Full | State::Suspect)
    }

    /// Changes a block and keeps the sums.
    fn change(&mut self, block: BlockAddr, word: u32, live: u16) {
        let old_state = self.state(block);
        let old_word = self.word(block);
        let old_live = self.live(block);
        let old_bare = if self.is_bare_stream(stream_of(old_word)) { u32::from(old_live) } else { 0 };
        let new_bare = if self.is_bare_stream(stream_of(word)) { u32::from(live) } else { 0 };
        let entry = &mut self.entries[block.0 as usize];
        entry.word.set(word);
        entry.live.set(entry.live.get() & !LIVE | live);
        let new_state = self.state(block);
        self.live_bare = self.live_bare - old_bare + new_bare;
        self.counts[old_state as usize] -= 1;
        self.counts[new_state as usize] += 1;
        self.live_total = self.live_total - u32::from(old_live) + u32::from(live);
        self.empty =
            self.empty - u32::from(Self::is_empty(old_state, old_live)) + u32::from(Self::is_empty(new_state, live));
        self.erasable = self.erasable - u32::from(Self::may_be_erased(old_state, old_live, old_word))
            + u32::from(Self::may_be_erased(new_state, live, word));
        self.inexact = self.inexact - u32::from(old_word & INEXACT != 0) + u32::from(word & INEXACT != 0);
        self.refresh = self.refresh - u32::from(old_word & REFRESH != 0) + u32::from(word & REFRESH != 0);
        self.damaged = self.damaged - u32::from(old_word & DAMAGED != 0) + u32::from(word & DAMAGED != 0);
        self.erase_count_sum =
            self.erase_count_sum - u64::from(old_word & ERASE_COUNT_MAX) + u64::from(word & ERASE_COUNT_MAX);
        // A live count that only fell needs no new table page: the recorded one stays an upper bound.
        if old_state != new_state || (old_word ^ word) & ERASE_COUNT_MAX != 0 || live > old_live {
            self.mark_changed(block, CHANGED);
        } else if live < old_live {
            self.mark_changed(block, LESS_LIVE);
        }
    }

    fn mark_changed(&mut self, block: BlockAddr, change: u8) {
        if let Some(page) = self.table_pages.get_mut((block.0 / self.records_per_page) as usize) {
            page.changed = page.changed.max(change);
        }
    }

    pub(crate) fn set_state(&mut self, block: BlockAddr, state: State) {
        let word = self.word(block) & !(0xf << 20) & !ERASED_MLC | (state as u32) << 20;
        let live = if state.holds_data() { self.live(block) } else { 0 };
        let word = if state.holds_data() { word } else { word & !(HELD | REFRESH | DAMAGED | INEXACT | COPIED) };
        // What the bit says depends on whether the block is bad.
        let word = if state == State::Bad { word & !UNMARKED } else { word };
        self.change(block, word, live);
    }

    pub(crate) fn set_live(&mut self, block: BlockAddr, live: u16) {
        let mut word = self.word(block);
        if live == 0 && self.live(block) != 0 {
            // Erased before a checkpoint calls it empty, and torn in that, it would have pages that can be taken neither
            // for live nor for dead.
            word |= HELD;
            self.mark_changed(block, CHANGED);
            // No copy of it waits any more.
            word &= !COPIED;
        }
        self.change(block, word, live.min(self.pages(block)));
    }

    pub(crate) fn add_live(&mut self, block: BlockAddr) {
        self.set_live(block, self.live(block) + 1);
    }

    pub(crate) fn subtract_live(&mut self, block: BlockAddr) {
        self.set_live(block, self.live(block).saturating_sub(1));
    }

    pub(crate) fn set(&mut self, block: BlockAddr, flag: u32, on: bool) {
        let word = if on { self.word(block) | flag } else { self.word(block) & !flag };
        self.change(block, word, self.live(block));
    }

    pub(crate) fn count_erase(&mut self, block: BlockAddr) {
        let word = self.word(block);
        let count = (word & ERASE_COUNT_MAX).saturating_add(1).min(ERASE_COUNT_MAX);
        self.change(block, word & !ERASE_COUNT_MAX | count, self.live(block));
        self.set_reads(block, 0);
    }

    /// Takes over an erase count from a volume that is about to be replaced.
    pub(crate) fn keep_erase_count(&mut self, block: BlockAddr, count: u32) {
        let word = self.word(block) & !ERASE_COUNT_MAX | count.min(ERASE_COUNT_MAX);
        self.change(block, word, self.live(block));
    }

    /// Records which stream a block was opened for, and when.
    pub(crate) fn open(&mut self, block: BlockAddr, stream: u8, birth: u16) {
        let word = self.word(block) & !(7 << 24) & !(0xf << 20) & !(ERASED_MLC | COPIED);
        self.entries[block.0 as usize].birth.set(birth);
        self.change(block, word | u32::from(stream & 7) << 24 | (State::Open as u32) << 20 | HELD, 0);
    }

    pub(crate) fn set_birth(&mut self, block: BlockAddr, birth: u16) {
        self.entries[block.0 as usize].birth.set(birth);
    }

    /// The record of a block for a checkpoint.
    pub(crate) fn record(&self, block: BlockAddr) -> BlockRecord {
        BlockRecord {
            erase_count: self.erase_count(block),
            state: self.state(block).to_media(),
            live: scale_live(self.live(block), self.pages(block)),
            is_inexact: self.has(block, INEXACT),
            is_bare: self.is_bare(block),
            is_mlc: match self.state(block) {
                State::Ready => self.has(block, ERASED_MLC),
                state => state.holds_data() && self.is_mlc(block),
            },
        }
    }

    /// Takes a block's record from a checkpoint; `false` if it calls a block bare, or one with two bits a cell, that cannot be.
    #[must_use]
    pub(crate) fn load(&mut self, block: BlockAddr, record: BlockRecord) -> bool {
        let state = State::from_media(record.state);
        let has_mode = self.is_mlc_stream(STREAM_COUNT_MAX as u8 - 1) && (record.is_bare || state == State::Ready);
        let is_sound = (!record.is_bare || (state.holds_data() && self.has_bare())) && (!record.is_mlc || has_mode);
        let stream = match state.holds_data() {
            true if record.is_bare && record.is_mlc && is_sound => self.first_mlc,
            true if !record.is_bare => 0,
            _ => self.unknown_stream(),
        };
        let pages = if self.is_mlc_stream(stream) { self.mlc_pages } else { self.pages };
        let live = if state.holds_data() { unscale_live(record.live, pages) } else { 0 };
        let is_scaled = pages > u16::from(LIVE_MAX) && live > 0;
        let flags = if live > 0 && (record.is_inexact || is_scaled) { INEXACT } else { 0 }
            | if is_sound && record.is_mlc && state == State::Ready { ERASED_MLC } else { 0 };
        let word = record.erase_count & ERASE_COUNT_MAX | (state as u32) << 20 | u32::from(stream & 7) << 24 | flags;
        self.change(block, word, live);
        is_sound
    }

    pub(crate) fn table_page_count(&self) -> u16 {
        self.table_page_count
    }

    /// Where a page of the block table was programmed last.
    pub(crate) fn table_address(&self, index: u16) -> u32 {
        self.table_pages[index as usize].address.get()
    }

    pub(crate) fn set_table_address(&mut self, index: u16, address: u32, changed: bool) {
        let page = &mut self.table_pages[index as usize];
        page.address.set(address);
        page.changed = if changed { CHANGED } else { 0 };
    }

    /// Whether a page of the block table has to be programmed for the next checkpoint.
    pub(crate) fn table_page_changed(&self, index: u16, is_clean: bool) -> bool {
        self.table_pages[index as usize].changed >= if is_clean { LESS_LIVE } else { CHANGED }
    }

    pub(crate) fn change_every_table_page(&mut self) {
        for page in self.table_pages.iter_mut() {
            page.changed = CHANGED;
        }
    }

    /// Pages of the block table that the next checkpoint programs.
    pub(crate) fn changed_table_pages(&self, is_clean: bool) -> u16 {
        (0..self.table_page_count()).filter(|&index| self.table_page_changed(index, is_clean)).count() as u16
    }

    /// The blocks whose records stand in a page of the block table.
    pub(crate) fn blocks_of_table_page(&self, index: u16) -> core::ops::Range<u32> {
        let first = u32::from(index) * self.records_per_page;
        first..(first + self.records_per_page).min(self.block_count())
    }
}
