//! The file system: its memory, its inodes, and how changes are committed.

use core::fmt;

use nandu_log::LogStats;
use nandu_nand::{Geometry, Nand};
use nandu_tree::{ByteCells, OnLog, Tree, TreeError};

use crate::batch::{Batch, EDIT_COUNT_MAX, InodeRoom, NO_EDIT};
use crate::error::Damage;
use crate::fragments::FragmentLimits;
use crate::inode::Inode;
use crate::keys::{INO_END, Key};
use crate::open_files::OpenFiles;
use crate::placing::Placing;
use crate::tags::Tagging;
use crate::write_buffer::WriteBuffer;
use crate::{FsError, Ino, Options, Stat, Time};

/// Part of what is kept, as a divisor, that is left by changes that add records. The collector gets on with a sixteenth of the capacity where
/// an eighth is kept, and with nothing where a sixteenth is.
const ADDED_SHARE: u32 = 2;

/// The same by changes of records that are there: an inode becomes some bytes longer when its times come to differ.
const CHANGED_SHARE: u32 = 4;

/// What changes of records take more than what they replace.
struct Growth {
    bytes: isize,
    /// Whether there is a record more.
    adds: bool,
}

/// What changes take on a full chip.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// They are of records, and may take what is kept for them ([`FsStat`](crate::FsStat)).
    Records,
    /// They are of the content of files, for which there is less room: else it would take what changes of records need.
    Data,
    /// They leave no less room than there was, and are possible on a full chip.
    Freeing,
}

/// Names and values that a change lends to its records: those of attributes, or the target of a link.
pub(crate) type Lent<'a> = &'a [(&'a [u8], &'a [u8])];

/// A file system on a chip `N`, in memory handed over when it is formatted or mounted.
///
/// It checks no permissions: whoever calls it does.
pub struct Fs<'m, N: Nand> {
    pub(crate) tree: Tree<'m, OnLog<'m, N>, ByteCells>,
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
    /// Bytes of memory that [`Fs::format`] and [`Fs::mount`] take, exactly. The file system itself is `size_of::<Fs<N>>()` bytes beside, and nothing
    /// else is used but stack. For a geometry that is known beforehand it can size a static buffer.
    ///
    /// # Alignment
    ///
    /// Memory of any alignment will do. Whole pages go to the chip from buffers in it and come into them, and those lie at multiples of 8 from its
    /// beginning, with [`Options::aligned`] of 32: in memory aligned likewise, as [`Aligned`](nandu_nand::Aligned) is, each begins and ends at a line of a Cortex-M7's data cache.
    /// Whole pages of a file that [`write_at`](Fs::write_at) and [`read_at`](Fs::read_at) move go straight from and to the caller's buffer: they are
    /// as aligned as that if the offset is a multiple of the page size. Shorter reads, of headers above all, go to the stack and are not aligned.
    pub const fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        options.memory_required::<N>(geometry)
    }

    /// Sets the time that changes from now on are stamped with. It counts in whole milliseconds, rounded down, since that is what a tag has room
    /// for; times that [`Fs::set_attributes`] sets are kept to the nanosecond.
    pub fn set_now(&mut self, now: Time) {
        self.now = Time { nanoseconds: now.nanoseconds - now.nanoseconds % 1_000_000, ..now };
    }

    /// What is known of an inode. Reads the leaf that it is in.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; errors of the chip, as every call has them.
    pub fn stat(&mut self, ino: Ino) -> Result<Stat, FsError<N::Error>> {
        let page_size = self.page_size();
        Ok(self.inode(ino)?.stat(ino, page_size))
    }

    /// Makes all changes so far durable. Programs one page, and one more where a page is partly written and is not small, and more
    /// where a leaf goes with it and overflows; nothing if nothing has changed, or if all that has are pages of files that tags tell of,
    /// on a volume with tags.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] if there is no room for a page that is partly written.
    pub fn sync(&mut self) -> Result<(), FsError<N::Error>> {
        self.flush()?;
        Ok(self.tree.sync_untagged()?)
    }

    /// Makes a file durable, and with it everything that was changed before. Costs what [`Fs::sync`] does. It is `fdatasync` too: times are in
    /// the same commit as the rest, so leaving them out would save nothing.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; [`FsError::Full`] as in [`Fs::sync`].
    pub fn fsync(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        self.inode(ino)?;
        self.sync()
    }

    /// What was done since the file system was mounted, by cause, and how full and how worn the chip is.
    pub fn stats(&self) -> LogStats {
        self.tree.pages().log().stats()
    }

    /// The chip, for looking at it.
    pub fn nand(&self) -> &N {
        self.tree.pages().log().nand()
    }

    /// The chip, for its clock and its counters. Programming or erasing past the file system destroys it.
    pub fn nand_mut(&mut self) -> &mut N {
        self.tree.pages_mut().log_mut().nand_mut()
    }

    /// Bytes of a page: what is best read and written at once.
    pub fn page_size(&self) -> usize {
        self.tree.pages().log().page_size()
    }

    pub(crate) fn fragment_limits(&self) -> FragmentLimits {
        FragmentLimits::new(self.page_size(), self.tree.entry_size_max())
    }

    /// An inode, as it is in memory if it is being written.
    pub(crate) fn inode(&mut self, ino: Ino) -> Result<Inode, FsError<N::Error>> {
        if let Some(inode) = self.buffer.inode(ino.0) {
            return Ok(inode);
        }
        self.find_inode(ino)?.ok_or(FsError::NoInode(ino))
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

    /// A change of nothing but an inode.
    pub(crate) fn commit_inode(&mut self, ino: Ino, inode: &Inode) -> Result<(), FsError<N::Error>> {
        let mut room = InodeRoom::new();
        let mut batch = room.batch();
        batch.put_inode(ino, inode);
        self.commit(&batch, Commit::Records)
    }

    /// Makes what `prepare` puts into a batch, and nothing where that is nothing. No page is being written meanwhile: its memory holds keys and values.
    /// What `prepare` needs of the stack is free again when the changes are made.
    #[inline(never)]
    pub(crate) fn change(
        &mut self,
        lent: Lent<'_>,
        prepare: &mut dyn for<'a> FnMut(&mut Self, &mut Batch<'a>, Lent<'a>) -> Result<Commit, FsError<N::Error>>,
    ) -> Result<(), FsError<N::Error>> {
        let memory = core::mem::take(&mut self.buffer.memory);
        let mut edits = [NO_EDIT; EDIT_COUNT_MAX];
        let mut batch = Batch::new(&mut edits, memory);
        let outcome = match prepare(self, &mut batch, lent) {
            Ok(_) if batch.is_empty() => Ok(()),
            Ok(how) => self.commit(&batch, how),
            Err(error) => Err(error),
        };
        self.buffer.memory = memory;
        outcome
    }

    /// Before each change: the page that is being written goes to the tree, and what a cut left over is removed a step further.
    pub(crate) fn begin_change(&mut self) -> Result<(), FsError<N::Error>> {
        self.check_writable()?;
        self.flush()?;
        self.reap_some()
    }

    pub(crate) fn check_writable(&self) -> Result<(), FsError<N::Error>> {
        let is_read_only = self.options.read_only || self.tree.pages().log().is_read_only();
        if is_read_only { Err(FsError::ReadOnly) } else { Ok(()) }
    }

    /// Makes all these changes or none.
    #[inline(never)]
    pub(crate) fn commit(&mut self, batch: &Batch<'_>, how: Commit) -> Result<(), FsError<N::Error>> {
        let mut has_more = true;
        while how != Commit::Freeing {
            match self.tree.batch(batch.edits()).map_err(FsError::from) {
                Err(FsError::Full) => {}
                other => return other,
            }
            if self.has_kept_room(batch, how == Commit::Data)? {
                break;
            }
            if !has_more || !self.make_room()? {
                return Err(FsError::Full);
            }
            has_more = false;
        }
        match self.tree.batch_freeing(batch.edits()).map_err(FsError::from) {
            Err(FsError::Full) if self.make_room()? => Ok(self.tree.batch_freeing(batch.edits())?),
            other => other,
        }
    }

    /// Whether changes for which there is no room may take what is kept: those of records as long as enough of it is left, and whatever leaves
    /// no less room than there was.
    fn has_kept_room(&mut self, batch: &Batch<'_>, is_data: bool) -> Result<bool, FsError<N::Error>> {
        let growth = self.growth(batch)?;
        let (pages, share) = (self.tree.growth_pages_max(), if growth.adds { ADDED_SHARE } else { CHANGED_SHARE });
        Ok(growth.bytes <= 0 || !is_data && self.tree.pages().has_capacity_for_records(pages, share))
    }

    /// What changes of records take more than there is. Reads the leaves concerned.
    fn growth(&mut self, batch: &Batch<'_>) -> Result<Growth, FsError<N::Error>> {
        let mut growth = Growth { bytes: 0, adds: false };
        for edit in batch.edits() {
            let size = |value: usize| (edit.key.len() + value) as isize;
            let before = self.tree.value_len(edit.key)?;
            growth.adds |= before.is_none() && edit.value.is_some();
            growth.bytes += edit.value.map_or(0, |value| size(value.len())) - before.map_or(0, size);
        }
        Ok(growth)
    }

    /// After a change of names that is durable when it returns (S11). Otherwise a program that renames a file into place and then
    /// tells somebody could be undone by a cut.
    pub(crate) fn sync_names(&mut self) -> Result<(), FsError<N::Error>> {
        #[cfg(feature = "_broken")]
        if self.options.broken.without_sync {
            return Ok(());
        }
        Ok(self.tree.sync()?)
    }
}
