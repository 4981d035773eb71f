//! The log as its owner sees it.

use nandu_media::anchor::mlc_ready_count;
use nandu_media::features::MLC;
use nandu_media::{ANCHOR_COUNT, Malformed, Page, PageKind, READY_COUNT_MAX, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::access::Found;
use crate::block_table::{BlockTable, INEXACT, REFRESH};
use crate::disturb::Sampler;
use crate::error::LogError;
use crate::gc::Collector;
use crate::memory::{self, Parts};
use crate::options::LogOptions;
use crate::pairs::Pairs;
use crate::placement::Lifetimes;
use crate::shape::{End, Shape, ShapeError};
use crate::stats::Stats;
use crate::tags::Tags;
use crate::victims::Runs;

/// Whether the log can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Working,
    ReadOnly,
    Poisoned,
}

/// A stream's block and how far it is programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    pub(crate) block: BlockAddr,
    /// Pages programmed; the frontier of a closed block stays until the stream opens another.
    pub(crate) next: u16,
    /// Place in the ready list, or that of blocks open at the checkpoint.
    pub(crate) slot: u8,
    pub(crate) is_closed: bool,
    /// Pages that are left out, before here or behind, so that their partners stay as they are.
    pub(crate) skipped: u16,
}

/// The ready list of the newest checkpoint, the least worn block first. Hot streams take from its front, the others, whose
/// pages stay for long, from its back: so worn blocks rest. Where there are bare streams, these alone take from the back. Where
/// some streams have two bits a cell, these alone take from the last entries, and no others do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyList {
    pub(crate) blocks: [BlockAddr; READY_COUNT_MAX],
    pub(crate) count: usize,
    others: usize,
    /// Entries opened since the checkpoint from the front.
    pub(crate) front: usize,
    /// Entries opened since the checkpoint from the back.
    pub(crate) back: usize,
    /// Entries opened since the checkpoint from those for streams with two bits a cell.
    pub(crate) mlc: usize,
}

impl ReadyList {
    pub(crate) const EMPTY: ReadyList =
        ReadyList { blocks: [BlockAddr(0); READY_COUNT_MAX], count: 0, others: 0, front: 0, back: 0, mlc: 0 };

    /// Entries in front of those for streams with two bits a cell: all, where there are none.
    pub(crate) fn others(&self) -> usize {
        if MLC { self.others } else { self.count }
    }

    /// Entries that were not opened, of those that are not for streams with two bits a cell.
    pub(crate) fn remaining(&self) -> usize {
        self.others() - self.front - self.back
    }

    /// The same of those that are.
    pub(crate) fn mlc_remaining(&self) -> usize {
        if MLC { self.count - self.others - self.mlc } else { 0 }
    }

    /// Says which entries are for streams with two bits a cell, now that the list is complete.
    pub(crate) fn divide(&mut self, has_mlc: bool) {
        self.others = self.count - if has_mlc { mlc_ready_count(self.count) } else { 0 };
    }

    pub(crate) fn push(&mut self, block: BlockAddr) {
        self.blocks[self.count] = block;
        self.count += 1;
    }

    pub(crate) fn unopened(&self) -> &[BlockAddr] {
        &self.blocks[self.front..self.others() - self.back]
    }

    pub(crate) fn mlc_unopened(&self) -> &[BlockAddr] {
        &self.blocks[self.others()..self.others() + self.mlc_remaining()]
    }

    pub(crate) fn all_unopened(&self) -> impl Iterator<Item = BlockAddr> + use<'_> {
        self.unopened().iter().chain(self.mlc_unopened()).copied()
    }

    /// Takes the next block from an end, with its place in the list. There has to be one.
    pub(crate) fn take(&mut self, end: End) -> (usize, BlockAddr) {
        let (place, taken) = match end {
            End::Front => (self.front, &mut self.front),
            End::Back => (self.others() - 1 - self.back, &mut self.back),
            End::Mlc => (self.count - 1 - self.mlc, &mut self.mlc),
        };
        *taken += 1;
        (place, self.blocks[place])
    }
}

/// The anchor blocks and the newest checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchors {
    pub(crate) blocks: [Option<BlockAddr>; ANCHOR_COUNT],
    /// Which of them holds the newest checkpoint.
    pub(crate) current: usize,
    /// Which of them holds the newest checkpoint that is known to be stable.
    pub(crate) base: usize,
    /// Pages programmed in the current one.
    pub(crate) next: u16,
    /// Whether the current block was written by this session alone, so that it may be programmed further.
    pub(crate) is_trusted: bool,
    /// The newest anchor.
    pub(crate) page: Option<PageAddr>,
    /// Sequence of the newest anchor at the mount.
    pub(crate) sequence: u64,
    /// Number of the newest checkpoint.
    pub(crate) number: u32,
    /// Whether the newest checkpoint says that nothing was programmed after it.
    pub(crate) is_clean: bool,
}

impl Anchors {
    const UNKNOWN: Anchors = Anchors {
        blocks: [None; ANCHOR_COUNT],
        current: 0,
        base: 0,
        next: 0,
        is_trusted: false,
        page: None,
        sequence: 0,
        number: 0,
        is_clean: false,
    };
}

/// What a read found out about a page besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// What the page holds.
    pub kind: PageKind,
    /// The page's place in the order of programs.
    pub sequence: u64,
    /// Whether the owner's state was what this page says.
    pub is_commit: bool,
    /// Stream that the page was appended to.
    pub stream: u8,
    /// How many bits had to be corrected.
    pub status: ReadStatus,
}

/// An append-only log over the blocks of a chip. See the crate's documentation.
pub struct Log<'m, N: Nand> {
    pub(crate) nand: N,
    pub(crate) shape: Shape,
    pub(crate) options: LogOptions,
    pub(crate) blocks: BlockTable<'m>,
    pub(crate) pairs: Pairs<'m>,
    pub(crate) tags: Tags,
    pub(crate) frontiers: [Option<Frontier>; STREAM_COUNT_MAX],
    pub(crate) ready: ReadyList,
    pub(crate) anchors: Anchors,
    pub(crate) volume: u32,
    /// The sequence that the next page gets.
    pub(crate) sequence: u64,
    pub(crate) committed: Option<PageAddr>,
    pub(crate) condition: Condition,
    /// Whether the mount found a volume that was not unmounted.
    pub(crate) was_cut: bool,
    /// The page that the log's buffer holds, if it is as it was read.
    pub(crate) buffered: Option<PageAddr>,
    /// What the header said of the last valid page that was read into the log's buffer.
    pub(crate) found: Found,
    /// During the search for a checkpoint: the anchor that stands in the memory of the block table.
    pub(crate) stashed: Option<PageAddr>,
    pub(crate) collector: Collector,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) runs: Runs,
    pub(crate) sampler: Sampler,
    pub(crate) stats: Stats,
}

impl<'m, N: Nand> Log<'m, N> {
    /// Bytes of memory that a log on this chip takes, exactly: 8 for each block, one page, and 8 for each page of the
    /// block table where the table does not fit an anchor. With `mlc_streams`, where a cut may tear a pair, for each of them also
    /// as many pages as may wait for their partner at once (4 with [`Pairing::SchemeA`](nandu_nand::Pairing), 2 with `Dist3`)
    /// and 8 bytes for each. 0 for a chip on which [`Log::format`] fails.
    pub fn memory_required(geometry: &Geometry, options: &LogOptions) -> usize {
        memory::required_for(geometry, options)
    }

    /// The shape of a volume on this chip, and the memory divided for it.
    pub(crate) fn divide<'d>(
        nand: &N,
        options: &LogOptions,
        memory: &'d mut [u8],
    ) -> Result<(Shape, Parts<'d>), LogError<N::Error>> {
        let shape = Shape::new(nand.geometry(), options).map_err(|error| match error {
            ShapeError::Geometry(error) => LogError::Geometry(error),
            ShapeError::Unsuitable(what) => LogError::Unsuitable { what },
            ShapeError::NotCompiled(feature) => LogError::NotCompiled { feature },
        })?;
        let required = memory::required(&shape);
        let parts = memory::divide(&shape, memory).ok_or(LogError::Memory { required })?;
        Ok((shape, parts))
    }

    /// A log that knows nothing yet. It cannot fail, so that no `Result` around it takes the stack of another log.
    pub(crate) fn blank(nand: N, options: LogOptions, shape: Shape, parts: Parts<'m>) -> Self {
        Log {
            nand,
            shape,
            options,
            blocks: BlockTable::new(&shape, parts.entries, parts.table_pages, parts.page),
            pairs: Pairs::new(parts.slots, parts.copies),
            tags: Tags::NONE,
            frontiers: [None; STREAM_COUNT_MAX],
            ready: ReadyList::EMPTY,
            anchors: Anchors::UNKNOWN,
            volume: 0,
            sequence: 1,
            committed: None,
            condition: Condition::Working,
            was_cut: false,
            buffered: None,
            found: Found::NONE,
            stashed: None,
            collector: Collector::IDLE,
            lifetimes: Lifetimes::UNKNOWN,
            runs: Runs::UNKNOWN,
            sampler: Sampler::NEW,
            stats: Stats::ZERO,
        }
    }

    /// Back to knowing nothing, for another attempt to mount.
    pub(crate) fn forget(&mut self) {
        self.blocks.clear();
        self.pairs.clear();
        self.tags = Tags::NONE;
        self.frontiers = [None; STREAM_COUNT_MAX];
        self.ready = ReadyList::EMPTY;
        self.anchors = Anchors::UNKNOWN;
        self.sequence = 1;
        self.committed = None;
        self.condition = Condition::Working;
        self.buffered = None;
        self.stashed = None;
    }

    /// Bytes at the front of every page that the log fills in; the owner's come after them.
    pub fn header_size(&self) -> usize {
        self.shape.header_size
    }

    /// Bytes in a page.
    pub fn page_size(&self) -> usize {
        self.shape.geometry.page_size as usize
    }

    /// Pages of the chip: every page address is below it.
    pub fn page_count(&self) -> u32 {
        self.shape.geometry.page_count()
    }

    /// The chip's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    /// Id of the volume.
    pub fn volume(&self) -> u32 {
        self.volume
    }

    /// Streams of the volume, bare ones among them.
    pub fn stream_count(&self) -> u8 {
        self.shape.streams
    }

    /// How many of the streams, the last ones, are bare.
    pub fn bare_streams(&self) -> u8 {
        self.shape.streams - self.shape.headed()
    }

    /// How many of the bare streams, the last ones, have two bits a cell while the others have one.
    pub fn mlc_streams(&self) -> u8 {
        self.shape.streams - self.shape.first_mlc()
    }

    /// Cell mode of data blocks, but for those of streams for which [`Log::mode_of`] says otherwise.
    pub fn mode(&self) -> CellMode {
        self.shape.mode
    }

    /// Cell mode of the blocks of a stream.
    pub fn mode_of(&self, stream: u8) -> CellMode {
        self.shape.mode_of(stream)
    }

    /// Cell mode of the block of a page, from its opening to its next erase; `None`: it holds no data.
    pub fn mode_of_page(&self, page: PageAddr) -> Option<CellMode> {
        let block = self.shape.geometry.block_of(page);
        let holds_data = self.shape.geometry.contains_page(page) && self.blocks.state(block).holds_data();
        holds_data.then(|| self.blocks.mode(block))
    }

    /// The newest page that was appended with the commit flag: what it says is the owner's state. `None` on a volume
    /// on which nothing was committed yet.
    pub fn committed(&self) -> Option<PageAddr> {
        self.committed
    }

    /// The sequence that the next page will get; every page there is has a lower one.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the volume can be read only.
    pub fn is_read_only(&self) -> bool {
        self.condition == Condition::ReadOnly
    }

    /// The chip, for inspection.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, for attribution and inspection. Programming or erasing past the log destroys the volume.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Reads a page of the owner's into `bytes`, a whole page, and checks everything it says of itself: checksum,
    /// volume, own address, kind, and a sequence that was given out. One read. A page whose bits begin to flip has its
    /// block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read, is erased or is not the owner's; [`LogError::Nand`].
    pub fn read(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<PageInfo, LogError<N::Error>> {
        if self.condition == Condition::Poisoned {
            return Err(LogError::Poisoned);
        }
        let corrupt = |why| Err(LogError::Corrupt { page, why });
        if !self.shape.geometry.contains_page(page) {
            return corrupt(Malformed::Range("page"));
        }
        if bytes.len() != self.page_size() {
            return corrupt(Malformed::Size);
        }
        self.note_read(page);
        let status = match Self::read_page(&mut self.nand, page, bytes) {
            Ok(status) => status,
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => return corrupt(Malformed::Unreadable),
            Err(error) => return Err(self.chip_error(error)),
        };
        let block = self.shape.geometry.block_of(page);
        if status.refresh_advised() && self.blocks.state(block).holds_data() {
            self.blocks.set(block, REFRESH, true);
        }
        let checked = Page::parse(bytes).and_then(|parsed| parsed.expect(self.volume, page.0));
        let parsed = match checked {
            Ok(parsed) => parsed,
            Err(why) => {
                let ecc = self.shape.geometry.ecc;
                let erased = crate::access::is_erased(bytes, ecc.codeword_size, ecc.correctable_bits);
                return corrupt(if erased { Malformed::Erased } else { why });
            }
        };
        if parsed.kind().is_of_the_log() {
            return corrupt(Malformed::Kind(parsed.kind() as u8));
        }
        if parsed.sequence() >= self.sequence {
            return corrupt(Malformed::Sequence);
        }
        Ok(PageInfo {
            kind: parsed.kind(),
            sequence: parsed.sequence(),
            is_commit: parsed.is_commit(),
            stream: parsed.stream(),
            status,
        })
    }

    /// How many pages of a page's block live, if that is known: after a cut it may be fewer than are counted.
    pub fn counted_live(&self, page: PageAddr) -> Option<u16> {
        let block = self.shape.geometry.contains_page(page).then(|| self.shape.geometry.block_of(page))?;
        let is_exact = self.blocks.state(block).holds_data() && !self.blocks.has(block, INEXACT);
        is_exact.then(|| self.blocks.live(block))
    }

    /// Says that a page is needed no longer: a commit that is durable has replaced it, or it belongs to an operation
    /// that was given up. Costs nothing. A page said twice makes a block look emptier than it is, and loses data.
    pub fn supersede(&mut self, page: PageAddr) {
        if !self.shape.geometry.contains_page(page) {
            return;
        }
        // Moved after a failure, and the owner did not ask for it yet.
        let page = self.pairs.superseded(page);
        let block = self.shape.geometry.block_of(page);
        // A tail that is due is taken over by as many mounts as are cut, and each supersedes its pages one by the other: they are all counted
        // until the collector has been through the block.
        if self.holds_due(block) {
            return;
        }
        if self.blocks.state(block).holds_data() {
            self.uncount(page);
            if self.blocks.is_bare(block) && !self.is_being_emptied(block) {
                self.runs.note(block);
            }
            self.blocks.subtract_live(block);
        }
    }

    /// Has the block of a page left alone by the collector until [`Log::unpin_all`]: the page belongs to an operation under
    /// way, and nothing that the owner can find from its root points at it yet. Costs nothing. A mount knows of no pins.
    pub fn pin(&mut self, page: PageAddr) {
        if self.shape.geometry.contains_page(page) {
            self.blocks.pin(self.shape.geometry.block_of(page));
        }
    }

    /// Ends every pin. Costs a pass over the block table in memory.
    pub fn unpin_all(&mut self) {
        self.blocks.unpin_all();
    }

    /// Says that any number of pages may be dead that were not superseded: the live counts are upper bounds from here on, as after
    /// a cut, until the collector has been through a block. Costs a pass over the block table in memory, and later the collector
    /// as many examinations as there are pages, if the chip looks full meanwhile.
    pub fn doubt_counts(&mut self) {
        for block in self.blocks.addresses() {
            if self.blocks.state(block).holds_data() {
                self.blocks.set(block, INEXACT, true);
            }
        }
    }

    /// Pages that can be moved before the blocks that the owner's operations need are touched.
    pub fn move_room(&self) -> u32 {
        self.blocks.pool().saturating_sub(self.shape.floor_host()) * u32::from(self.shape.pages) + self.open_room(false)
    }

    /// Pages with headers that can be programmed before a block is erased.
    pub fn room_in_all(&self) -> u32 {
        self.blocks.pool() * u32::from(self.shape.pages) + self.open_room(false)
    }

    /// Whether more blocks are empty than operations of the owner leave alone, so that one can be taken with nothing reserved.
    pub fn has_spare_blocks(&self) -> bool {
        self.blocks.pool() > self.floor_host()
    }

    /// Pages that can be appended to the blocks that are open: those of bare streams, without the last page of each, which is for
    /// a summary, or those of the others.
    pub(crate) fn open_room(&self, is_bare: bool) -> u32 {
        let of_kind = (0..self.shape.streams).filter(|&stream| self.shape.is_bare_stream(stream) == is_bare);
        of_kind.map(|stream| u32::from(self.room(stream).saturating_sub(u16::from(is_bare)))).sum()
    }

    /// How many pages of a block may be live, at most. An owner that walks its data can hold L5 against it.
    pub fn live_bound(&self, block: BlockAddr) -> u32 {
        if self.shape.geometry.contains_block(block) { u32::from(self.blocks.live(block)) } else { 0 }
    }

    /// Refuses unless the log can be written.
    pub(crate) fn check_writable(&self) -> Result<(), LogError<N::Error>> {
        match self.condition {
            Condition::Working => Ok(()),
            Condition::ReadOnly => Err(LogError::ReadOnly),
            Condition::Poisoned => Err(LogError::Poisoned),
        }
    }

    /// Makes a clean checkpoint, so that the next mount has nothing to recover, and gives the chip back. Costs at most
    /// one checkpoint; nothing if since a clean mount nothing was programmed and little was read.
    ///
    /// # Errors
    ///
    /// The error, with the chip: what was committed is durable all the same.
    pub fn unmount(mut self) -> Result<N, (LogError<N::Error>, N)> {
        if self.condition != Condition::Working || (self.anchors.is_clean && !self.has_read_much()) {
            return Ok(self.nand);
        }
        // What tags alone say is found after a cut only.
        if self.tail_len() > 0 {
            return Ok(self.nand);
        }
        match self.write_checkpoint(true) {
            Ok(()) => Ok(self.nand),
            Err(error) => Err((error, self.nand)),
        }
    }

    /// Gives the chip back as it is, as if the power had gone.
    pub fn abandon(self) -> N {
        self.nand
    }
}
