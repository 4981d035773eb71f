//! How much room there is.

use nandu_log::BlockUse;
use nandu_nand::{BlockAddr, CellMode, Nand};

use crate::fs::Fs;
use crate::keys::INO_END;
use crate::{FsError, FsStat};

/// Bytes that a file of one page takes of leaves: its name, its inode and the place of its page. Measured with names of nine bytes, which
/// come in the order of their hashes, so that most leaves were parted: 93 on pages of 2 KiB, 113 on those of 4 KiB.
const RECORDS_SIZE: u32 = 120;

/// Blocks and pages of each region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Blocks that hold nothing.
    pub free_blocks: u32,
    /// Blocks of the tree and of the log, with one bit in a cell.
    pub tree_blocks: u32,
    /// Blocks with pages of files and one bit in a cell.
    pub slc_blocks: u32,
    /// Pages of files there that are needed, at most.
    pub slc_pages: u32,
    /// Blocks with pages of files and two bits in a cell.
    pub mlc_blocks: u32,
    /// Pages of files there that are needed, at most.
    pub mlc_pages: u32,
    /// Blocks that are not used.
    pub bad_blocks: u32,
}

impl<N: Nand> Fs<'_, N> {
    /// What the blocks of the chip are used for. Costs a pass over a table in memory.
    pub fn regions(&self) -> Regions {
        let mut regions = Regions::default();
        for (_, what, live) in self.tree.pages().log().uses() {
            let (blocks, pages) = match what {
                BlockUse::Free => (&mut regions.free_blocks, None),
                BlockUse::Anchors | BlockUse::Headed => (&mut regions.tree_blocks, None),
                BlockUse::Bare(CellMode::Slc) => (&mut regions.slc_blocks, Some(&mut regions.slc_pages)),
                BlockUse::Bare(CellMode::Mlc) => (&mut regions.mlc_blocks, Some(&mut regions.mlc_pages)),
                BlockUse::Bad => (&mut regions.bad_blocks, None),
            };
            *blocks += 1;
            if let Some(pages) = pages {
                *pages += u32::from(live);
            }
        }
        regions
    }

    /// What each block is used for, for a map. Costs a pass over a table in memory.
    pub fn uses(&self) -> impl Iterator<Item = (BlockAddr, BlockUse, u16)> + use<'_, N> {
        self.tree.pages().log().uses()
    }

    fn available_pages(&self) -> u32 {
        let per_leaf = self.page_size() as u32 / RECORDS_SIZE;
        self.tree.pages().page_values_available(self.tree.growth_pages_max(), per_leaf)
    }

    /// How much room there is. Costs nothing.
    ///
    /// Each page of a file in [`FsStat::blocks_available`] may be a file of its own with a short name; in larger files there is room for up to a
    /// fortieth more. The rest is what their inodes, names and places take, and what is kept: an eighth of [`FsStat::blocks`], where blocks have two
    /// modes a sixteenth.
    ///
    /// On a full chip half of what is kept is for records: what is made, renamed, linked, given attributes; and half of the rest for those that
    /// are there and become longer, as an inode whose times come to differ. When that is used too, what takes no more room than it had
    /// still works: overwriting, changes of records that become no longer, and everything that removes.
    ///
    /// # Errors
    ///
    /// None so far.
    pub fn statfs(&mut self) -> Result<FsStat, FsError<N::Error>> {
        let stats = self.stats();
        Ok(FsStat {
            block_size: self.page_size() as u32,
            blocks: u64::from(stats.capacity_pages),
            blocks_free: u64::from(stats.capacity_pages.saturating_sub(stats.live_pages)),
            blocks_available: self.available_pages().into(),
            files_free: INO_END - self.chunk_next,
            name_size_max: self.name_size_max() as u32,
        })
    }
}
