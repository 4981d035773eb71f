//! How much room there is.

use nandu_nand::Nand;

use crate::FsError;
use crate::fs::Fs;
use crate::keys::INO_END;

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// Bytes of a page.
    pub block_size: u32,
    /// Pages that can hold something.
    pub blocks: u64,
    /// Pages of these that hold nothing that is needed, at least.
    pub blocks_free: u64,
    /// Pages of these that can be written: where there are files that fill pages, an eighth of all stays free for the collector.
    pub blocks_available: u64,
    /// Inodes there can still be.
    pub files_free: u64,
    /// Bytes that a name may have.
    pub name_size_max: u32,
}

impl<N: Nand> Fs<'_, N> {
    /// How much room there is. Costs nothing.
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
            blocks_available: u64::from(self.tree.pages().available_pages()),
            files_free: INO_END - self.chunk_next,
            name_size_max: self.name_size_max() as u32,
        })
    }
}
