//! The index: its parts, and what they have in common.

use nandu_index::KeyBuf;
use nandu_media::inpage::record::Cells;
use nandu_media::inpage::{FRONT_SIZE, NODE_SIZE};
use nandu_nand::{BlockAddr, Cause, ErrorType, Geometry, Nand, PageAddr, ProgramOrder, TearScope};

use crate::anchor::Anchors;
use crate::arena::{Arena, CHUNKS_MAX};
use crate::blocks::{BlockTable, LOG_PAGES_MAX, State};
use crate::buffer::Buffer;
use crate::error::Error;
use crate::journal::{JOURNAL_BLOCKS_MAX, Journal};
use crate::memory::{Counts, divide};
use crate::nodes::{NodeTable, ROOT};
use crate::options::{Durability, GroupSize, Layout, Options};
use crate::placement::Group;
use crate::stats::{Size, Stats};

/// What calls return.
pub(crate) type Result<T, N> = core::result::Result<T, Error<<N as ErrorType>::Error>>;

/// The range of keys that a node answers for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fences {
    pub(crate) low: KeyBuf,
    high: KeyBuf,
    is_bounded: bool,
}

impl Fences {
    const EMPTY: Fences = Fences { low: KeyBuf::EMPTY, high: KeyBuf::EMPTY, is_bounded: false };

    pub(crate) fn high(&self) -> Option<&[u8]> {
        self.is_bounded.then(|| self.high.as_slice())
    }

    pub(crate) fn set_high(&mut self, high: Option<&[u8]>) {
        self.is_bounded = high.is_some_and(|high| self.high.set(high));
    }
}

/// An in-page-logging B+-tree on a chip, in memory given by the caller. See the documentation of the crate.
#[derive(Debug)]
pub struct InPage<'m, N> {
    pub(crate) nand: N,
    pub(crate) geometry: Geometry,
    pub(crate) options: Options,
    pub(crate) volume: u32,
    /// Sequence of the next program.
    pub(crate) sequence: u64,
    pub(crate) nodes: NodeTable<'m>,
    pub(crate) blocks: BlockTable<'m>,
    pub(crate) buffer: Buffer<'m>,
    /// The log pages of the block that is merged.
    pub(crate) logs: &'m mut [u8],
    /// One log page, or an anchor.
    pub(crate) log: &'m mut [u8],
    pub(crate) group: Group,
    pub(crate) next_id: u32,
    /// Nodes that were never programmed.
    pub(crate) unwritten: u32,
    /// Records, unless blind changes made it uncertain.
    pub(crate) records: Option<u64>,
    /// Of the node that an operation came to last.
    pub(crate) near: Fences,
    /// Of the node that a flush looked for.
    pub(crate) far: Fences,
    pub(crate) stats: Stats,
    /// Share of writes among the last operations, of 2^20.
    pub(crate) write_share: u32,
    /// A block that is to be merged when the operation is done.
    pub(crate) due: Option<BlockAddr>,
    /// A block that is to be merged so that it wears.
    pub(crate) idle: Option<BlockAddr>,
    /// What is merged does not change, and goes to the most worn free block instead of the least.
    pub(crate) is_levelling: bool,
    /// Blocks in which a program failed and that hold nodes still.
    pub(crate) failing: u32,
    pub(crate) anchors: Anchors,
    pub(crate) journal: Journal<'m>,
    pub(crate) is_poisoned: bool,
    /// Opening puts right what a cut left: nothing may be given up that an older page still says.
    pub(crate) is_recovering: bool,
    /// The power went before the index was left in order.
    pub(crate) was_cut: bool,
    /// No block was left to put right what a cut left.
    pub(crate) is_read_only: bool,
}

impl<'m, N: Nand> InPage<'m, N> {
    /// Bytes of memory that an index on this chip needs with these options. Nothing else is allocated.
    ///
    /// 40 bytes for each node there may be and 6 to find it, 72 for each block, the buffer with a tenth for its tables, and
    /// some pages: three nodes to work on, the log pages of a block, one more, and one of the journal.
    pub fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        Counts::new(geometry, options).required()
    }

    /// An index without content.
    pub(crate) fn blank(nand: N, options: Options, memory: &'m mut [u8]) -> Result<InPage<'m, N>, N> {
        let geometry = *nand.geometry();
        geometry.validate().map_err(Error::Geometry)?;
        if let Some(what) = unsuitable(&geometry, &options) {
            return Err(Error::Unsuitable { what });
        }
        let counts = Counts::new(&geometry, &options);
        let required = counts.required();
        let parts = divide(&counts, memory).ok_or(Error::Memory { required })?;
        let node_size = usize::from(options.node_pages) * geometry.page_size as usize;
        let chunk_size = options.sector_size as usize;
        let arena = Arena::new(parts.arena, parts.frames, parts.owners, node_size, chunk_size);
        Ok(InPage {
            nand,
            geometry,
            volume: 0,
            sequence: 1,
            nodes: NodeTable::new(parts.nodes, parts.hash),
            blocks: BlockTable::new(parts.blocks),
            buffer: Buffer::new(parts.units, arena, node_size, chunk_size, buffer_capacity(&geometry, &options)),
            logs: parts.logs,
            log: parts.log,
            group: Group::CLOSED,
            next_id: ROOT + 1,
            unwritten: 0,
            records: Some(0),
            near: Fences::EMPTY,
            far: Fences::EMPTY,
            stats: Stats::default(),
            write_share: 1 << 19,
            due: None,
            idle: None,
            is_levelling: false,
            failing: 0,
            anchors: Anchors::NONE,
            journal: Journal::new(parts.journal),
            is_poisoned: false,
            is_recovering: false,
            was_cut: false,
            is_read_only: false,
            options,
        })
    }

    pub(crate) fn page_size(&self) -> usize {
        self.geometry.page_size as usize
    }

    /// Pages of a node.
    pub(crate) fn node_pages(&self) -> u32 {
        self.options.node_pages.into()
    }

    /// Bytes of memory that a node takes.
    pub(crate) fn node_size(&self) -> usize {
        usize::from(self.options.node_pages) * self.page_size()
    }

    /// Bytes that a node may have on flash: each further page begins with a front of its own.
    pub(crate) fn node_capacity(&self) -> u32 {
        self.geometry.page_size + (self.node_pages() - 1) * (self.geometry.page_size - FRONT_SIZE as u32)
    }

    /// Nodes that a block takes beside so many log pages.
    pub(crate) fn nodes_beside(&self, log_pages: u8) -> u32 {
        self.geometry.pages_per_block / self.node_pages() - u32::from(log_pages)
    }

    /// Bytes above which a node is split. With byte strings some are kept for an upper fence that becomes longer when a
    /// neighbour is removed.
    pub(crate) fn node_limit(&self) -> u32 {
        match self.options.cells {
            Cells::Fixed { .. } => self.node_capacity(),
            Cells::Bytes => self.node_capacity() - self.entry_size_max().min(usize::from(u8::MAX)) as u32,
        }
    }

    /// Log sectors in a page.
    pub(crate) fn sectors_per_page(&self) -> u32 {
        self.geometry.page_size / self.options.sector_size
    }

    pub(crate) fn page_of(&self, block: BlockAddr, place: u16) -> PageAddr {
        self.geometry.page_at(block, u32::from(place))
    }

    /// Entry of the root.
    pub(crate) fn root(&self) -> Result<u32, N> {
        self.nodes.find(ROOT).ok_or(Error::Corrupt { page: PageAddr(0), why: nandu_media::Malformed::Erased })
    }

    /// Takes the next sequence.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        let sequence = self.sequence;
        self.sequence += 1;
        sequence
    }

    /// Runs something with another cause in the chip's ledger.
    pub(crate) fn for_cause<T>(&mut self, cause: Cause, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.nand.attribute(cause);
        let result = work(self);
        self.nand.attribute(before);
        result
    }

    /// Runs a change: refuses if an earlier one failed, and remembers if this one does.
    pub(crate) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, N>) -> Result<T, N> {
        if self.is_poisoned {
            return Err(Error::Poisoned);
        }
        self.buffer.unpin();
        let result = work(self);
        self.buffer.unpin();
        self.is_poisoned = match &result {
            Ok(_) => false,
            Err(error) => !matches!(
                error,
                Error::Full
                    | Error::ReadOnly
                    | Error::KeySize(_)
                    | Error::ValueSize(_)
                    | Error::NotAscending(_)
                    | Error::BatchTooLarge
                    | Error::Corrupt { .. }
            ),
        };
        result
    }

    /// What the index did since it was opened.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// How large the index is. Looks at every block in memory, costs no operation on flash.
    pub fn size(&self) -> Size {
        let mut size = Size {
            nodes: self.nodes.count(),
            height: self.nodes.find(ROOT).map_or(0, |root| self.nodes[root].level + 1),
            blocks_free: self.blocks.free(),
            ..Size::default()
        };
        let (mut sum, mut count) = (0_u64, 0_u64);
        for block in self.blocks.addresses() {
            let entry = &self.blocks[block];
            match entry.state() {
                State::Bad => {
                    size.blocks_bad += 1;
                    continue;
                }
                State::Nodes | State::Merging | State::Failing => size.blocks_used += 1,
                State::Journal => size.blocks_journal += 1,
                _ => {}
            }
            size.erase_count_max = size.erase_count_max.max(entry.erase_count);
            sum += u64::from(entry.erase_count);
            count += 1;
        }
        size.erase_count_mean = sum.checked_div(count).unwrap_or(0) as u32;
        size
    }

    /// Whether the index was not left in order before it was opened.
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Longest key that the index takes, bytes. With keys of one width, that width.
    pub fn key_size_max(&self) -> usize {
        match self.options.cells {
            Cells::Fixed { key, .. } => usize::from(key),
            Cells::Bytes => self.entry_size_max().min(usize::from(u8::MAX)),
        }
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip. Whoever changes what it holds breaks the index.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Gives the chip back as if the power went: changes that were not synced are lost.
    pub fn abandon(self) -> N {
        self.nand
    }

    /// Longest key and value together that the index takes, bytes.
    pub fn entry_size_max(&self) -> usize {
        match self.options.cells {
            Cells::Fixed { key, value } => usize::from(key) + usize::from(value),
            Cells::Bytes => {
                // A record fits a sector, and a few entries with the longest fences fit a node.
                let record = self.options.sector_size as usize - nandu_media::inpage::sector::HEADER_SIZE - 4;
                record.min((self.node_capacity() as usize - NODE_SIZE) / 6)
            }
        }
    }
}

/// Bytes of the buffer that are left for nodes and changes.
fn buffer_capacity(geometry: &Geometry, options: &Options) -> usize {
    let node_size = usize::from(options.node_pages) * geometry.page_size as usize;
    let (GroupSize::Fixed(blocks) | GroupSize::Dynamic(blocks)) = options.group;
    let log_pages = usize::from(blocks) * usize::from(options.log_pages.first());
    let reserve = log_pages * usize::from(options.log_reserve) * node_size / 100;
    let least = 4 * (node_size + options.sector_size as usize);
    options.buffer_size.saturating_sub(reserve).max(least)
}

/// Most pages of a node.
const NODE_PAGES_MAX: u32 = 8;

/// What in the options does not suit the chip.
fn unsuitable(geometry: &Geometry, options: &Options) -> Option<&'static str> {
    let (page, sector, node_pages) = (geometry.page_size, options.sector_size, u32::from(options.node_pages));
    if !(1..=NODE_PAGES_MAX).contains(&node_pages) {
        return Some("a node has 1 to 8 pages");
    }
    if geometry.pairing.is_paired() {
        return Some("a cut may damage pages programmed long before");
    }
    if sector < 64 || !page.is_multiple_of(sector) || node_pages * page / sector >= CHUNKS_MAX as u32 {
        return Some("the sector size does not divide the page");
    }
    if node_pages * page > u32::from(u16::MAX) {
        return Some("a node is too large");
    }
    let log_max = u32::from(options.log_pages_max) * node_pages;
    if log_max == 0 || log_max > LOG_PAGES_MAX as u32 || log_max + 2 * node_pages > geometry.pages_per_block {
        return Some("so many log pages leave no room for nodes");
    }
    if !(1..=options.log_pages_max).contains(&options.log_pages.first()) {
        return Some("more log pages than the most");
    }
    if !options.group.is_possible() {
        return Some("a group has 1 to 16 blocks");
    }
    if options.journal_blocks > JOURNAL_BLOCKS_MAX {
        return Some("a journal has at most 8 blocks");
    }
    if options.durability == Durability::Immediate && options.journal_blocks == 0 {
        return Some("changes are durable at once only with a journal");
    }
    if options.buffer_size < 4 * (node_pages * page + sector) as usize {
        return Some("the buffer is smaller than four nodes");
    }
    if let Cells::Fixed { key, value } = options.cells {
        let entry = u32::from(key) + u32::from(value).max(4);
        if key == 0 || entry + 1 + 24 > sector || 4 * entry + 2 * u32::from(key) + NODE_SIZE as u32 > page {
            return Some("an entry is too large");
        }
    }
    if options.layout == Layout::Pages && sector > page / 2 {
        return Some("a log page takes no sector of that size");
    }
    if options.layout == Layout::Sectors {
        if geometry.order != ProgramOrder::Any {
            return Some("pages have to be programmed in order");
        }
        let whole = sector == page;
        if !whole
            && (page / sector > u32::from(geometry.programs_per_page) || !sector.is_multiple_of(geometry.program_unit))
        {
            return Some("a page does not take so many programs");
        }
        if !whole && (geometry.tear != TearScope::Range || !sector.is_multiple_of(geometry.ecc.codeword_size)) {
            return Some("a cut may damage sectors programmed before");
        }
    }
    None
}
