//! The table of blocks: what each is used for, how much of it lives, how often it was erased.

use nandu_nand::BlockAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One of the six areas of the flash, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Area {
    /// No area: its content is not needed.
    Free = 0,
    /// Pages of the map of logical numbers.
    Map = 1,
    /// Inodes of directories with their buckets.
    Directory = 2,
    /// More buckets.
    Virtual = 3,
    /// Inodes of files.
    File = 4,
    /// Content of files.
    Data = 5,
    /// Superblock and checkpoints.
    Checkpoint = 6,
    /// No area: bad, by the factory or by failing.
    Bad = 7,
}

impl Area {
    /// Every one, in the order of its number.
    pub const ALL: [Area; 8] =
        [Area::Free, Area::Map, Area::Directory, Area::Virtual, Area::File, Area::Data, Area::Checkpoint, Area::Bad];

    pub(crate) fn from_number(number: u8) -> Area {
        Area::ALL[usize::from(number & 7)]
    }

    /// A lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Area::Free => "free",
            Area::Map => "map",
            Area::Directory => "directory",
            Area::Virtual => "virtual",
            Area::File => "file",
            Area::Data => "data",
            Area::Checkpoint => "checkpoint",
            Area::Bad => "bad",
        }
    }
}

/// Owners in the summary may be wrong, or there is no summary: the inodes of files say whose the pages are.
pub(crate) const SCAN: u8 = 16;
/// Bits flip: to be moved soon.
pub(crate) const REFRESH: u8 = 32;
/// A program failed: to be emptied and retired.
pub(crate) const FAILED: u8 = 64;
/// A page that is needed cannot be read: left alone.
pub(crate) const KEPT: u8 = 128;
/// In memory only: collected, free at the next checkpoint.
pub(crate) const PENDING: u8 = 1;
/// In memory only: taken into use since the last checkpoint.
pub(crate) const NEW: u8 = 2;
/// In memory only: its mark was looked at.
pub(crate) const SEEN: u8 = 4;

/// Flags that a checkpoint keeps.
pub(crate) const STORED: u8 = SCAN | REFRESH | FAILED | KEPT;

/// A block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct BlockEntry {
    pub(crate) erase_count: u32,
    pub(crate) live: u16,
    area: u8,
    pub(crate) flags: u8,
}

impl BlockEntry {
    pub(crate) fn area(&self) -> Area {
        Area::from_number(self.area)
    }

    pub(crate) fn set_area(&mut self, area: Area) {
        self.area = area as u8;
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether it may be taken into use.
    pub(crate) fn is_free(&self) -> bool {
        self.area() == Area::Free
    }

    /// The five bytes that a checkpoint has of it.
    pub(crate) fn to_bytes(self) -> [u8; 5] {
        // What is pending is free for whoever starts from this checkpoint, but for a block that fails.
        let area = match self.has(PENDING) {
            true if self.has(FAILED) => Area::Bad,
            true => Area::Free,
            false => self.area(),
        };
        let is_used = !matches!(area, Area::Free | Area::Bad);
        let (flags, live) = if is_used { (self.flags & STORED, u32::from(self.live)) } else { (0, 0) };
        let word = (live.min(0x7ff) << 21) | self.erase_count.min(0x1f_ffff);
        let [a, b, c, d] = word.to_le_bytes();
        [area as u8 | flags, a, b, c, d]
    }

    pub(crate) fn from_bytes(bytes: [u8; 5]) -> BlockEntry {
        let [first, a, b, c, d] = bytes;
        let word = u32::from_le_bytes([a, b, c, d]);
        BlockEntry { erase_count: word & 0x1f_ffff, live: (word >> 21) as u16, area: first & 7, flags: first & STORED }
    }
}

/// All blocks, with sums that are kept up to date.
#[derive(Debug)]
pub(crate) struct Blocks<'m> {
    entries: &'m mut [BlockEntry],
    free: u32,
    pending: u32,
    live: u64,
}

impl<'m> Blocks<'m> {
    pub(crate) fn new(entries: &'m mut [BlockEntry]) -> Blocks<'m> {
        let mut blocks = Blocks { entries, free: 0, pending: 0, live: 0 };
        blocks.clear();
        blocks
    }

    /// All are free and nothing is known of them.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(BlockEntry { erase_count: 0, live: 0, area: 0, flags: 0 });
        (self.free, self.pending, self.live) = (self.entries.len() as u32, 0, 0);
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        (0..self.entries.len() as u32).map(BlockAddr)
    }

    pub(crate) fn get(&self, block: BlockAddr) -> &BlockEntry {
        &self.entries[block.0 as usize]
    }

    /// Changes a block; the sums follow.
    pub(crate) fn update(&mut self, block: BlockAddr, change: impl FnOnce(&mut BlockEntry)) {
        let entry = &mut self.entries[block.0 as usize];
        let before = *entry;
        change(entry);
        self.free = self.free - u32::from(before.is_free()) + u32::from(entry.is_free());
        self.pending = self.pending - u32::from(before.has(PENDING)) + u32::from(entry.has(PENDING));
        self.live = (self.live + u64::from(entry.live)).saturating_sub(u64::from(before.live));
    }

    /// Blocks that may be taken into use.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// Blocks that a checkpoint makes free.
    pub(crate) fn pending(&self) -> u32 {
        self.pending
    }

    /// Pages that live, in all blocks.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    pub(crate) fn count(&self, area: Area) -> u32 {
        self.entries.iter().filter(|entry| entry.area() == area).count() as u32
    }

    /// The free block with the fewest erases.
    pub(crate) fn least_worn(&self) -> Option<BlockAddr> {
        let free = self.addresses().filter(|&block| self.get(block).is_free());
        free.min_by_key(|&block| self.get(block).erase_count)
    }

    pub(crate) fn erase_count_max(&self) -> u32 {
        self.entries.iter().map(|entry| entry.erase_count).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_bytes_keep_a_block() {
        let entry = BlockEntry { erase_count: 100_000, live: 64, area: Area::Data as u8, flags: SCAN | NEW | SEEN };
        let back = BlockEntry::from_bytes(entry.to_bytes());
        assert_eq!((back.erase_count, back.live, back.area(), back.flags), (100_000, 64, Area::Data, SCAN));
        let pending = BlockEntry { flags: PENDING, ..entry };
        assert!(BlockEntry::from_bytes(pending.to_bytes()).is_free());
        let failed = BlockEntry { flags: PENDING | FAILED, ..entry };
        assert_eq!(BlockEntry::from_bytes(failed.to_bytes()).area(), Area::Bad);
    }
}
