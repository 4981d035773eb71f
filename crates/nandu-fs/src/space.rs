//! How much room there is.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::keys::INO_END;
use crate::{FsError, FsStat};

impl<N: Nand> Fs<'_, N> {
    /// How much room there is. Costs nothing.
    ///
    /// Each page of a file in [`FsStat::blocks_available`] may be a file of its own with a short name; in larger files there is room for up to a
    /// ninth more on pages of 2 KiB. The rest is what their inodes, names and places take, and what is kept: a thirty-second of [`FsStat::blocks`], or 32 pages
    /// where that is more.
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
