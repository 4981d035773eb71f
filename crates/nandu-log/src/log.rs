//! The log as its owner sees it.

use core::fmt;

use nandu_media::{PageKind, STREAM_COUNT_MAX};
use nandu_nand::{CellMode, Geometry, Nand, PageAddr, ReadStatus};

use crate::anchors::Anchors;
use crate::block_table::BlockTable;
use crate::collector::Collector;
use crate::error::LogError;
use crate::found::Found;
use crate::losses::Losses;
use crate::memory::{self, Parts};
use crate::options::LogOptions;
use crate::placement::Lifetimes;
use crate::ready::{Frontier, ReadyList};
use crate::runs::Runs;
use crate::sampler::Sampler;
use crate::shape::{Shape, ShapeError};
use crate::slots::Pairs;
use crate::stats::Stats;
use crate::tail::Tags;

/// Whether the log can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Working,
    ReadOnly,
    Poisoned,
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
    pub(crate) losses: Losses,
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

impl<N: Nand> fmt::Debug for Log<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("volume", &self.volume)
            .field("sequence", &self.sequence)
            .field("committed", &self.committed)
            .field("condition", &self.condition)
            .finish_non_exhaustive()
    }
}

impl<'m, N: Nand> Log<'m, N> {
    /// Bytes of memory that a log on this chip takes, exactly: 8 for each block, one page, and 8 for each page that the
    /// block table may take. With `mlc_streams`, where a cut may tear a pair, for each of them also
    /// as many pages as may wait for their partner at once (4 with [`Pairing::SchemeA`](nandu_nand::Pairing), 2 with `Dist3`)
    /// and 8 bytes for each.
    ///
    /// Buffers for whole pages come first: they are as aligned as the memory, to 32 bytes and more.
    pub const fn memory_required(geometry: &Geometry, options: &LogOptions) -> usize {
        memory::required_for(geometry, options)
    }

    /// The shape of a volume on this chip.
    fn shape_for(nand: &N, options: &LogOptions) -> Result<Shape, LogError<N::Error>> {
        Shape::new(nand.geometry(), options).map_err(|error| match error {
            ShapeError::Geometry(error) => LogError::Geometry(error),
            ShapeError::Unsuitable(what) => LogError::Unsuitable { what },
            ShapeError::NotCompiled(feature) => LogError::NotCompiled { feature },
        })
    }

    /// The shape of a volume on this chip, and the memory divided for it.
    pub(crate) fn divide<'d>(
        nand: &N,
        options: &LogOptions,
        memory: &'d mut [u8],
    ) -> Result<(Shape, Parts<'d>), LogError<N::Error>> {
        let shape = Self::shape_for(nand, options)?;
        let required = memory::required(&shape);
        let parts = memory::divide(&shape, memory).ok_or(LogError::Memory { required })?;
        Ok((shape, parts))
    }

    /// Goes on with the options that the volume found was formatted with, which agree in what the memory was divided by.
    pub(crate) fn take_options(&mut self, stored: LogOptions) -> Result<(), LogError<N::Error>> {
        self.shape = Self::shape_for(&self.nand, &stored)?;
        self.options = stored;
        self.blocks.reshape(&self.shape);
        Ok(())
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
            losses: Losses::NONE,
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

    /// Whether an operation failed so that the volume has to be mounted again.
    pub fn is_poisoned(&self) -> bool {
        self.condition == Condition::Poisoned
    }

    /// The chip, for inspection.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, for attribution and inspection. Programming or erasing past the log destroys the volume.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Refuses unless the log can be written.
    pub(crate) fn check_writable(&self) -> Result<(), LogError<N::Error>> {
        match self.condition {
            Condition::Working => Ok(()),
            Condition::ReadOnly => Err(LogError::ReadOnly),
            Condition::Poisoned => Err(LogError::Poisoned),
        }
    }

    /// Gives the chip back as it is, as if the power had gone.
    pub fn abandon(self) -> N {
        self.nand
    }
}
