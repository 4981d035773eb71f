//! Pages in memory: frames to work in, and those that were read or programmed last.

use nandu_media::dffs::{self as media, Fields, Kind};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand, PageAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::chip;
use crate::dffs::{Dffs, Result};
use crate::error::Error;

/// Frames for work.
pub(crate) const FRAME_COUNT: usize = 7;

/// A page of memory to work in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) usize);

/// A page of a directory's chain.
pub(crate) const CHAIN: Frame = Frame(0);
/// Another one.
pub(crate) const OTHER: Frame = Frame(1);
/// The inode of a name.
pub(crate) const NODE: Frame = Frame(2);
/// What an inode was before.
pub(crate) const OLD: Frame = Frame(3);
/// A page that is moved.
pub(crate) const COPY: Frame = Frame(4);
/// Whose the pages of the block of data are that is being filled.
pub(crate) const SUMMARY: Frame = Frame(5);
/// A page of the map or of a checkpoint.
pub(crate) const OUT: Frame = Frame(6);

/// A page that is kept.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct CacheEntry {
    /// Address, or 0.
    page: u32,
    used: u32,
}

/// Frames, then two pages for each file that is open, then those kept.
#[derive(Debug)]
pub(crate) struct Pages<'m> {
    size: usize,
    cache: &'m mut [CacheEntry],
    cache_at: usize,
    clock: u32,
    bytes: &'m mut [u8],
}

impl<'m> Pages<'m> {
    pub(crate) fn new(size: usize, cache: &'m mut [CacheEntry], bytes: &'m mut [u8]) -> Pages<'m> {
        cache.fill(CacheEntry { page: 0, used: 0 });
        let cache_at = bytes.len() / size - cache.len();
        Pages { size, cache, cache_at, clock: 0, bytes }
    }

    pub(crate) fn get(&self, frame: Frame) -> &[u8] {
        &self.bytes[frame.0 * self.size..][..self.size]
    }

    pub(crate) fn get_mut(&mut self, frame: Frame) -> &mut [u8] {
        &mut self.bytes[frame.0 * self.size..][..self.size]
    }

    pub(crate) fn copy(&mut self, from: Frame, to: Frame) {
        self.bytes.copy_within(from.0 * self.size..(from.0 + 1) * self.size, to.0 * self.size);
    }

    /// The kept page of this address goes to a frame; `false` if there is none.
    fn recall(&mut self, page: PageAddr, frame: Frame) -> bool {
        let Some(at) = self.cache.iter().position(|entry| entry.page == page.0 && page.0 != 0) else { return false };
        self.clock = self.clock.wrapping_add(1);
        self.cache[at].used = self.clock;
        self.copy(Frame(self.cache_at + at), frame);
        true
    }

    /// Keeps what is in a frame.
    fn keep(&mut self, page: PageAddr, frame: Frame) {
        let clock = self.clock;
        let oldest =
            |(_, entry): &(usize, &CacheEntry)| if entry.page == 0 { u32::MAX } else { clock.wrapping_sub(entry.used) };
        let Some(at) = self.cache.iter().enumerate().max_by_key(oldest).map(|(at, _)| at) else { return };
        self.clock = clock.wrapping_add(1);
        self.cache[at] = CacheEntry { page: page.0, used: self.clock };
        self.copy(frame, Frame(self.cache_at + at));
    }

    /// Keeps nothing.
    pub(crate) fn forget_all(&mut self) {
        self.forget(|_| true);
    }

    fn forget(&mut self, is_gone: impl Fn(PageAddr) -> bool) {
        self.cache.iter_mut().filter(|entry| is_gone(PageAddr(entry.page))).for_each(|entry| entry.page = 0);
    }
}

impl<N: Nand> Dffs<'_, N> {
    /// Reads a page of an inode, of the map or of a summary into a frame. What is wrong with it is returned and not an error. Costs a
    /// read, unless it is kept.
    pub(crate) fn inspect(
        &mut self,
        page: PageAddr,
        frame: Frame,
    ) -> Result<core::result::Result<Fields, Malformed>, N> {
        if page.0 == 0 || !self.geometry.contains_page(page) {
            return Ok(Err(Malformed::Range(Field::Page)));
        }
        if self.pages.recall(page, frame) {
            return Ok(Fields::read(self.pages.get(frame)));
        }
        self.stats.reads += 1;
        let Some(is_worn) = chip::read(&mut self.nand, page, 0, self.pages.get_mut(frame))? else {
            return Ok(Err(Malformed::Unreadable));
        };
        if is_worn {
            self.note_worn(page);
        }
        let bytes = self.pages.get(frame);
        let fields = media::open(bytes, self.volume, page.0);
        if fields.is_err()
            && chip::is_erased(bytes, self.geometry.ecc.codeword_size, self.geometry.ecc.correctable_bits)
        {
            return Ok(Err(Malformed::Erased));
        }
        if matches!(fields, Ok(Fields { kind: Kind::Directory | Kind::Virtual | Kind::File, .. })) {
            self.pages.keep(page, frame);
        }
        Ok(fields)
    }

    /// Reads a page that is needed.
    pub(crate) fn load(&mut self, page: PageAddr, frame: Frame) -> Result<Fields, N> {
        self.inspect(page, frame)?.map_err(|why| Error::Corrupt { page, why })
    }

    /// Keeps what was programmed.
    pub(crate) fn keep(&mut self, page: PageAddr, frame: Frame) {
        self.pages.keep(page, frame);
    }

    /// Keeps nothing of a block that was erased.
    pub(crate) fn forget_block(&mut self, block: BlockAddr) {
        let geometry = self.geometry;
        self.pages.forget(|page| geometry.block_of(page) == block);
    }

    /// What the front of the page in a frame says. Only for frames that were loaded or written here.
    pub(crate) fn fields(&self, frame: Frame) -> Result<Fields, N> {
        Fields::read(self.pages.get(frame)).map_err(|why| Error::Corrupt { page: PageAddr(0), why })
    }

    /// Changes the front of the page in a frame.
    pub(crate) fn set_fields(&mut self, frame: Frame, fields: &Fields) {
        fields.write(self.pages.get_mut(frame));
    }

    pub(crate) fn word(&self, frame: Frame, at: usize) -> u32 {
        media::word(self.pages.get(frame), at)
    }

    pub(crate) fn set_word(&mut self, frame: Frame, at: usize, value: u32) {
        media::set_word(self.pages.get_mut(frame), at, value);
    }

    /// The pointer in a bucket.
    pub(crate) fn pointer(&self, frame: Frame, bucket: u16) -> u32 {
        self.word(frame, media::FRONT_SIZE + usize::from(bucket) * 4)
    }

    /// The second hash of a bucket.
    pub(crate) fn second(&self, frame: Frame, bucket: u16) -> u8 {
        self.pages.get(frame)[media::FRONT_SIZE + self.bucket_count * 4 + usize::from(bucket)]
    }

    /// Fills or clears a bucket and keeps the count of those in use.
    pub(crate) fn set_bucket(&mut self, frame: Frame, bucket: u16, pointer: u32, second: u8) -> Result<(), N> {
        let mut fields = self.fields(frame)?;
        let (before, after) = (self.pointer(frame, bucket) != 0, pointer != 0);
        fields.used = (fields.used + u16::from(after)).saturating_sub(u16::from(before));
        self.set_fields(frame, &fields);
        self.set_word(frame, media::FRONT_SIZE + usize::from(bucket) * 4, pointer);
        let at = media::FRONT_SIZE + self.bucket_count * 4 + usize::from(bucket);
        self.pages.get_mut(frame)[at] = second;
        Ok(())
    }
}
