//! The file system: its memory, its inodes, and how changes are committed.

use core::fmt;

use nandu_nand::Nand;

use crate::below::{LogStats, Records, TreeError};
use crate::error::Damage;
use crate::fragments::FragmentLimits;
use crate::inode::Inode;
use crate::keys::{INO_END, Key};
use crate::open_files::OpenFiles;
use crate::placing::Placing;
use crate::tagging::Tagging;
use crate::write_buffer::WriteBuffer;
use crate::{FsError, Ino, Options, Time};

/// A file system on a chip `N`, in memory handed over when it is formatted or mounted.
///
/// It checks no permissions: whoever calls it does.
///
/// # What calls cost
///
/// Where a call says what it programs, it says what its own pages take. Each change pays its share of collection besides, once blocks are few
/// (chapter 5 of the design): within 16 programs and two erases together for each page that it writes, most often. In 400 random lives with power cuts on full chips with one bit a cell, without tags, a call took 47 programs and
/// 3 erases at most.
pub struct Fs<'m, N: Nand> {
    pub(crate) tree: Records<'m, N>,
    pub(crate) buffer: WriteBuffer<'m>,
    pub(crate) open: OpenFiles<'m>,
    pub(crate) options: Options,
    pub(crate) hash_key: [u8; 16],
    /// First number that no directory's chunk has.
    pub(crate) chunk_next: u64,
    pub(crate) now: Time,
    /// Whether there may be orphans that are not open.
    pub(crate) has_orphans: bool,
    /// Where pages of files go, if policies say it.
    pub(crate) placing: Option<Placing<'m>>,
    /// Whether a tag tells of the write under way.
    pub(crate) tagging: Tagging,
}

impl<N: Nand> fmt::Debug for Fs<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fs").field("tree", &self.tree).field("options", &self.options).finish_non_exhaustive()
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Sets the time that changes from now on are stamped with. It counts in whole milliseconds, rounded down, since that is what a tag has room
    /// for; times that [`Fs::set_attributes`] sets are kept to the nanosecond.
    pub fn set_now(&mut self, now: Time) {
        self.now = Time { nanoseconds: now.nanoseconds - now.nanoseconds % 1_000_000, ..now };
    }

    /// What was done since the file system was mounted, by cause, and how full and how worn the chip is.
    pub fn stats(&self) -> LogStats {
        self.tree.log().stats()
    }

    /// The chip, for looking at it.
    pub fn nand(&self) -> &N {
        self.tree.log().nand()
    }

    /// The chip, for its clock and its counters. Programming or erasing past the file system destroys it.
    pub fn nand_mut(&mut self) -> &mut N {
        self.tree.nand_mut()
    }

    /// Bytes of a page: what is best read and written at once.
    pub fn page_size(&self) -> usize {
        self.tree.log().page_size()
    }

    pub(crate) fn fragment_limits(&self) -> FragmentLimits {
        FragmentLimits::new(self.page_size(), self.tree.entry_size_max())
    }

    /// An inode, as it is in memory if it is being written. One without a name is there for who has it open.
    pub(crate) fn inode(&mut self, ino: Ino) -> Result<Inode, FsError<N::Error>> {
        if let Some(inode) = self.buffer.inode(ino.0) {
            return Ok(inode);
        }
        let is_open = self.open.is_open(ino.0);
        self.find_inode(ino)?.filter(|inode| inode.nlink > 0 || is_open).ok_or(FsError::NoInode(ino))
    }

    /// The same from the tree alone; `None` if there is none.
    pub(crate) fn find_inode(&mut self, ino: Ino) -> Result<Option<Inode>, FsError<N::Error>> {
        if ino.0 == 0 || ino.0 >= INO_END {
            return Ok(None);
        }
        match self.tree.get(Key::inode(ino.0).as_slice()) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => match Inode::parse(bytes) {
                Some(inode) => Ok(Some(inode)),
                None => Err(FsError::Corrupt { ino, why: Damage::Inode }),
            },
            Err(TreeError::LargeValue(_)) => Err(FsError::Corrupt { ino, why: Damage::Inode }),
            Err(error) => Err(error.into()),
        }
    }

    /// An inode that a name leads to.
    pub(crate) fn named_inode(&mut self, ino: Ino) -> Result<Inode, FsError<N::Error>> {
        match self.inode(ino) {
            Err(FsError::NoInode(ino)) => Err(FsError::Corrupt { ino, why: Damage::Missing }),
            other => other,
        }
    }

    /// The inode of a directory that still has its name.
    pub(crate) fn directory(&mut self, ino: Ino) -> Result<Inode, FsError<N::Error>> {
        let inode = self.inode(ino)?;
        if inode.is_directory() { Ok(inode) } else { Err(FsError::NotDirectory(ino)) }
    }

    /// Bytes of a file with content.
    #[inline(never)]
    pub(crate) fn file_size(&mut self, ino: Ino) -> Result<u64, FsError<N::Error>> {
        self.file(ino).map(|inode| inode.size)
    }

    /// The inode of a file with content.
    pub(crate) fn file(&mut self, ino: Ino) -> Result<Inode, FsError<N::Error>> {
        let inode = self.inode(ino)?;
        match () {
            () if inode.is_file() => Ok(inode),
            () if inode.is_directory() => Err(FsError::IsDirectory(ino)),
            () => Err(FsError::NotFile(ino)),
        }
    }

    pub(crate) fn check_writable(&self) -> Result<(), FsError<N::Error>> {
        let is_read_only = self.options.read_only || self.tree.is_worn_out();
        if is_read_only { Err(FsError::ReadOnly) } else { Ok(()) }
    }

    /// Calls with the memory of the page that is being written, which is nowhere else meanwhile.
    pub(crate) fn with_memory<T>(&mut self, call: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        let memory = core::mem::take(&mut self.buffer.memory);
        let page_size = self.page_size();
        let result = call(self, &mut memory[..page_size]);
        self.buffer.memory = memory;
        result
    }
}
