//! The file system and what it has in memory.

use nandu_media::dffs as media;
use nandu_media::dffs::Owner;
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, PageAddr};

use crate::blocks::{Area, Blocks};
use crate::error::Error;
use crate::lag::Lags;
use crate::memory::{Counts, divide};
use crate::options::Options;
use crate::pages::Pages;
use crate::replay::Cursor;
use crate::slots::SlotEntry;
use crate::stats::Stats;

/// What every function here returns.
pub type Result<T, N> = core::result::Result<T, Error<<N as nandu_nand::ErrorType>::Error>>;

/// Logical number of the root.
pub(crate) const ROOT: u32 = 1;

/// The lowest number of a file, above all logical numbers.
pub(crate) const NUMBER_MIN: u32 = media::POINTER_BASE;

/// The first blocks are for checkpoints.
pub(crate) const CHECKPOINT_BLOCKS: u32 = 6;

/// Areas that are filled page by page.
pub(crate) const HEADS: [Area; 5] = [Area::Map, Area::Directory, Area::Virtual, Area::File, Area::Data];

/// Stands for no block.
pub(crate) const NO_BLOCK: u32 = u32::MAX;

/// Where the next page of an area goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) block: u32,
    /// Place in the block, counted over the pages in use.
    pub(crate) index: u32,
}

impl Head {
    pub(crate) const NONE: Head = Head { block: NO_BLOCK, index: 0 };
}

/// A DFFS volume. See the crate's front page.
#[derive(Debug)]
pub struct Dffs<'m, N: Nand> {
    pub(crate) nand: N,
    pub(crate) geometry: Geometry,
    pub(crate) options: Options,
    /// Pages of a block that are used: all, or the LSB pages of a chip with paired pages.
    pub(crate) block_pages: u32,
    pub(crate) bucket_count: usize,
    pub(crate) pointer_count: usize,
    pub(crate) volume: u32,
    /// Of the page of an inode or a checkpoint that was programmed last.
    pub(crate) sequence: u64,
    /// The number that the next file gets.
    pub(crate) number: u32,
    pub(crate) now: u32,
    pub(crate) blocks: Blocks<'m>,
    /// In the order of [`HEADS`].
    pub(crate) heads: [Head; 5],
    /// Page of each logical number.
    pub(crate) map: &'m mut [u32],
    pub(crate) map_pages: &'m mut [u32],
    pub(crate) map_dirty: &'m mut [u8],
    pub(crate) suspects: &'m mut [u8],
    pub(crate) cursors: &'m mut [Cursor],
    pub(crate) lags: Lags<'m>,
    pub(crate) slots: &'m mut [SlotEntry],
    pub(crate) clock: u64,
    pub(crate) pages: Pages<'m>,
    /// Where the next checkpoint goes: a block of the first ones, or none to begin another.
    pub(crate) anchor: Head,
    /// Whether the newest checkpoint was repeated by the recovery that started from it.
    pub(crate) is_copied: bool,
    /// Sequence of the newest checkpoint.
    pub(crate) checkpoint: u64,
    /// Pages of inodes programmed since then, and blocks taken into use for them.
    pub(crate) since: u32,
    pub(crate) opened: u32,
    /// Whether the newest checkpoint says that the volume is in use.
    pub(crate) is_writing: bool,
    /// Whether the live counts are not exact.
    pub(crate) is_rough: bool,
    /// Whether what is programmed counts only with the checkpoint that ends the recovery.
    pub(crate) is_recovering: bool,
    /// Whether a mount makes do with what can be read.
    pub(crate) is_last_attempt: bool,
    /// Whether something was left half done.
    pub(crate) is_poisoned: bool,
    /// Whether there is no room for a recovery or for checkpoints.
    pub(crate) is_read_only: bool,
    /// Whether something was programmed that belongs with what is still to be programmed.
    pub(crate) is_busy: bool,
    /// Blocks that wait to be moved.
    pub(crate) refreshes: u32,
    pub(crate) is_collecting: bool,
    pub(crate) stats: Stats,
}

impl<'m, N: Nand> Dffs<'m, N> {
    /// Bytes of memory that [`format`](Dffs::format) and [`mount`](Dffs::mount) need: by the chip and the options alone.
    pub fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        Counts::new(geometry, options).required()
    }

    /// A file system without content.
    pub(crate) fn blank(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Dffs<'m, N>, N> {
        let geometry = *nand.geometry();
        geometry.validate().map_err(Error::Geometry)?;
        let page_size = geometry.page_size as usize;
        let block_pages = geometry.pages_in_mode(CellMode::Slc);
        let unsuitable = |what| Err(Error::Unsuitable { what });
        let (bucket_count, pointer_count) = (media::bucket_count(page_size), media::pointer_count(page_size));
        if bucket_count < 8 {
            return unsuitable("pages are too small for an inode");
        }
        if !(4..=2047).contains(&block_pages) {
            return unsuitable("blocks have fewer than 4 or more than 2047 pages");
        }
        if media::ATTRIBUTES_SIZE + block_pages as usize * media::OWNER_SIZE + media::BACK_SIZE > page_size {
            return unsuitable("the owners of a block's pages do not fit a page");
        }
        if geometry.page_count() >= u32::MAX - media::POINTER_BASE {
            return unsuitable("too many pages");
        }
        if !(8..=32_768).contains(&options.directory_max) {
            return unsuitable("directory_max is not in 8 to 32768");
        }
        if options.reserve_blocks < 6
            || options.open_files < 3
            || options.lag_max < 2
            || options.checkpoint_interval < 8
        {
            return unsuitable("a reserve, open files, lag or interval is too small");
        }
        if geometry.block_count < CHECKPOINT_BLOCKS + options.reserve_blocks + 4 {
            return unsuitable("too few blocks");
        }
        let counts = Counts::new(&geometry, &options);
        let parts = divide(&counts, memory).ok_or(Error::Memory { required: counts.required() })?;
        if parts.map_pages.len() as u32 > block_pages {
            return unsuitable("the map of directories does not fit a block");
        }
        parts.map.fill(0);
        parts.map_pages.fill(0);
        parts.map_dirty.fill(0);
        parts.suspects.fill(0);
        parts.slots.fill(SlotEntry::EMPTY);
        parts.cursors.fill(Cursor::NONE);
        Ok(Dffs {
            nand,
            geometry,
            options,
            block_pages,
            bucket_count,
            pointer_count,
            volume: 0,
            sequence: 0,
            number: NUMBER_MIN,
            now: 0,
            blocks: Blocks::new(parts.blocks),
            heads: [Head::NONE; 5],
            map: parts.map,
            map_pages: parts.map_pages,
            map_dirty: parts.map_dirty,
            suspects: parts.suspects,
            cursors: parts.cursors,
            lags: Lags::new(parts.lag),
            slots: parts.slots,
            clock: 0,
            pages: Pages::new(page_size, parts.cache, parts.pages),
            anchor: Head::NONE,
            is_copied: false,
            checkpoint: 0,
            since: 0,
            opened: 0,
            is_writing: false,
            is_rough: false,
            is_recovering: false,
            is_last_attempt: true,
            is_poisoned: false,
            is_read_only: false,
            is_busy: false,
            refreshes: 0,
            is_collecting: false,
            stats: Stats::default(),
        })
    }

    /// Back to what it was before anything was read.
    pub(crate) fn forget_all(&mut self) {
        self.map.fill(0);
        self.map_pages.fill(0);
        self.map_dirty.fill(0);
        self.suspects.fill(0);
        self.slots.fill(SlotEntry::EMPTY);
        self.cursors.fill(Cursor::NONE);
        self.lags.clear();
        self.blocks.clear();
        self.pages.forget_all();
        self.heads = [Head::NONE; 5];
        self.anchor = Head::NONE;
        (self.volume, self.sequence, self.checkpoint, self.number) = (0, 0, 0, NUMBER_MIN);
        (self.since, self.opened, self.refreshes) = (0, 0, 0);
        (self.is_copied, self.is_writing, self.is_rough, self.is_recovering) = (false, false, false, false);
        self.is_read_only = false;
    }

    /// Whether the volume can only be read from here on, since its chip fails: too few blocks for checkpoints can be erased and programmed, or
    /// the mount came after a cut and found no free blocks to put right what that left. Then everything acknowledged can be read, and whatever
    /// would change the volume fails with [`Error::ReadOnly`]. What the cut interrupted may show: a file under two names.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether nothing is programmed any more.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_read_only || self.is_poisoned
    }

    /// Refuses where nothing is programmed any more.
    pub(crate) fn expect_writable(&self) -> Result<(), N> {
        match (self.is_read_only, self.is_poisoned) {
            (true, _) => Err(Error::ReadOnly),
            (_, true) => Err(Error::Poisoned),
            _ => Ok(()),
        }
    }

    /// Sets the time that inodes get from here on, in seconds since 1970. It is 0 until then.
    pub fn set_time(&mut self, seconds: u32) {
        self.now = seconds;
    }

    /// Gives the chip back as it is, as if the power had gone.
    pub fn abandon(self) -> N {
        self.nand
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, to change what surrounds it; what it holds is this file system's.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Bytes of a page.
    pub(crate) fn page_size(&self) -> usize {
        self.geometry.page_size as usize
    }

    /// Runs what changes the volume.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T, N>) -> Result<T, N> {
        self.expect_writable()?;
        self.access(change)
    }

    /// Runs what may program, and does not where nothing was changed or nothing may be. An error in the middle of it leaves something half done,
    /// which the next mount puts right: nothing is programmed after it. Memory is as flash is then, step by step, so that all can be read.
    pub(crate) fn access<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T, N>) -> Result<T, N> {
        self.is_busy = false;
        let result = change(self);
        self.is_poisoned |= result.is_err() && self.is_busy;
        result
    }

    /// The page at a place of a block, counted over the pages in use.
    pub(crate) fn page_of(&self, block: BlockAddr, nth: u32) -> PageAddr {
        let index = self.geometry.nth_in_mode(CellMode::Slc, nth).unwrap_or(nth);
        self.geometry.page_at(block, index)
    }

    /// One more page lives.
    pub(crate) fn gain(&mut self, page: PageAddr) {
        self.blocks.update(self.geometry.block_of(page), |entry| entry.live = entry.live.saturating_add(1));
    }

    /// One page fewer lives.
    pub(crate) fn lose(&mut self, page: PageAddr) {
        if page.0 != 0 && self.geometry.contains_page(page) {
            self.blocks.update(self.geometry.block_of(page), |entry| entry.live = entry.live.saturating_sub(1));
        }
    }

    /// What a record of a summary has room for.
    pub(crate) fn owner_fits(owner: &Owner) -> bool {
        owner.directory <= u32::from(u16::MAX)
    }
}
