//! Names that come and go: hard links, symbolic links, removing.

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::commit::Commit;
use crate::create::{TARGET_PART_COUNT_MAX, TARGET_SIZE_MAX};
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::{CTIME, Inode};
use crate::keys::Key;
use crate::{FileKind, FsError, Ino};

/// What becomes of an inode that loses its last name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It has another name.
    Lives,
    /// It is gone with the batch.
    Gone,
    /// It is an orphan now, which is removed at once, in steps.
    Orphan,
    /// It is an orphan until it is closed.
    Open,
}

impl<N: Nand> Fs<'_, N> {
    /// Gives an inode one more name. Durable when it returns. Programs 1 page and its [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// [`FsError::Exists`]; [`FsError::IsDirectory`] of the inode; [`FsError::NoInode`], of one whose last name is gone too;
    /// [`FsError::TooManyLinks`]; those of the directory and the name as [`Fs::create`] has them; [`FsError::Full`].
    pub fn link(&mut self, ino: Ino, directory: Ino, name: &[u8]) -> Result<(), FsError<N::Error>> {
        self.check_name(name)?;
        let begun = self.begin_change();
        let changed =
            begun.and_then(|()| self.change(&[], &mut |fs, batch, _| fs.prepare_link(batch, ino, directory, name)));
        let linked = changed.and_then(|()| self.sync_names());
        self.ended(linked)
    }

    fn prepare_link(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        directory: Ino,
        name: &[u8],
    ) -> Result<Commit, FsError<N::Error>> {
        let mut inode = self.inode(ino)?;
        if inode.is_directory() {
            return Err(FsError::IsDirectory(ino));
        }
        if inode.nlink == 0 {
            return Err(FsError::NoInode(ino));
        }
        let mut parent = self.directory(directory)?;
        if parent.nlink == 0 {
            return Err(FsError::NotFound { directory });
        }
        let position = self.free_position(directory, name)?;
        inode.nlink = inode.nlink.checked_add(1).ok_or(FsError::TooManyLinks(ino))?;
        inode.times[CTIME] = self.now;
        parent.size = parent.size.saturating_add(1);
        parent.modify(self.now);
        Self::put_name(batch, directory, position, inode.kind(), ino, name);
        batch.put_inode(directory, &parent);
        batch.put_inode(ino, &inode);
        Ok(Commit::Records)
    }

    /// Copies the target of a symbolic link and returns how many bytes it has. Reads the leaves that it is in.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`] and [`FsError::NotSymlink`]; [`FsError::BufferSize`]; [`FsError::Corrupt`].
    pub fn read_link(&mut self, ino: Ino, out: &mut [u8]) -> Result<usize, FsError<N::Error>> {
        let inode = self.inode(ino)?;
        if inode.kind() != FileKind::Symlink {
            return Err(FsError::NotSymlink(ino));
        }
        let corrupt = FsError::Corrupt { ino, why: Damage::Target };
        let size = usize::try_from(inode.size).ok().filter(|&size| size <= TARGET_SIZE_MAX).ok_or(corrupt)?;
        let out = out.get_mut(..size).ok_or(FsError::BufferSize { required: size })?;
        let is_whole = self.read_parts(out, 0..TARGET_PART_COUNT_MAX as u16, |part| Key::target(ino.0, part as u8))?;
        if is_whole { Ok(size) } else { Err(FsError::Corrupt { ino, why: Damage::Target }) }
    }

    /// Removes a name that does not lead to a directory. With the last name goes the inode, or when it is closed. Durable at the
    /// next sync, but for the pages of a large file, which are removed in steps. Costs what [`Fs::create`] does.
    ///
    /// # Errors
    ///
    /// [`FsError::NotFound`] and [`FsError::IsDirectory`]; those of the directory and the name as [`Fs::lookup`] has them. A full
    /// chip is none.
    pub fn unlink(&mut self, directory: Ino, name: &[u8]) -> Result<(), FsError<N::Error>> {
        let removed = self.remove(directory, name, false);
        self.ended(removed)
    }

    /// Removes an empty directory. Durable at the next sync.
    ///
    /// # Errors
    ///
    /// [`FsError::NotEmpty`]; [`FsError::NotFound`] and [`FsError::NotDirectory`]; others as [`Fs::lookup`] has them. A full chip is
    /// none.
    pub fn rmdir(&mut self, directory: Ino, name: &[u8]) -> Result<(), FsError<N::Error>> {
        let removed = self.remove(directory, name, true);
        self.ended(removed)
    }

    fn remove(&mut self, directory: Ino, name: &[u8], is_directory: bool) -> Result<(), FsError<N::Error>> {
        self.check_name(name)?;
        self.begin_change()?;
        let mut ended = (directory, Ending::Lives);
        self.change(&[], &mut |fs, batch, _| {
            ended = fs.prepare_removal(batch, directory, name, is_directory)?;
            Ok(Commit::Freeing)
        })?;
        self.conclude_ending(ended.0, ended.1)
    }

    fn prepare_removal(
        &mut self,
        batch: &mut Batch<'_>,
        directory: Ino,
        name: &[u8],
        is_directory: bool,
    ) -> Result<(Ino, Ending), FsError<N::Error>> {
        let mut parent = self.directory(directory)?;
        let found = self.found(directory, name)?;
        let mut inode = self.named_inode(found.ino)?;
        if is_directory {
            self.check_empty_directory(found.ino, &inode)?;
            parent.nlink = parent.nlink.saturating_sub(1);
        } else if inode.is_directory() {
            return Err(FsError::IsDirectory(found.ino));
        }
        parent.size = parent.size.saturating_sub(1);
        parent.modify(self.now);
        batch.delete(Key::name(directory.0, found.position));
        batch.put_inode(directory, &parent);
        Ok((found.ino, self.drop_name(batch, found.ino, &mut inode)?))
    }

    pub(crate) fn check_empty_directory(&self, ino: Ino, inode: &Inode) -> Result<(), FsError<N::Error>> {
        match () {
            () if !inode.is_directory() => Err(FsError::NotDirectory(ino)),
            () if inode.size > 0 => Err(FsError::NotEmpty(ino)),
            () => Ok(()),
        }
    }

    /// Puts into a batch what becomes of an inode that loses a name.
    #[inline(never)]
    pub(crate) fn drop_name(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        inode: &mut Inode,
    ) -> Result<Ending, FsError<N::Error>> {
        inode.times[CTIME] = self.now;
        if !inode.is_directory() && inode.nlink > 1 {
            inode.nlink -= 1;
            batch.put_inode(ino, inode);
            return Ok(Ending::Lives);
        }
        inode.nlink = 0;
        let is_open = self.open.is_open(ino.0);
        if !is_open && self.delete_records(batch, ino)? {
            batch.delete(Key::inode(ino.0));
            if self.has_orphans {
                // What a cut left of it goes with it, and so does the record that says so.
                batch.delete(Key::orphan(ino.0));
            }
            return Ok(Ending::Gone);
        }
        batch.put_inode(ino, inode);
        #[cfg(feature = "_broken")]
        if self.options.broken.without_orphans {
            batch.delete(Key::inode(ino.0));
            return Ok(Ending::Orphan);
        }
        if is_open && self.has_orphans && self.has_orphan_record(ino.0)? {
            self.open.set_cut(ino.0, true);
        }
        // The record that says so comes with the batch that takes the name: after a cut nothing else would lead to these pages.
        batch.put(Key::orphan(ino.0), &[], &[]);
        Ok(if is_open { Ending::Open } else { Ending::Orphan })
    }

    /// After the commit that took the name.
    pub(crate) fn conclude_ending(&mut self, ino: Ino, ending: Ending) -> Result<(), FsError<N::Error>> {
        match ending {
            Ending::Lives | Ending::Gone => Ok(()),
            Ending::Open => {
                self.open.unlink(ino.0);
                Ok(())
            }
            Ending::Orphan => self.remove_orphan(ino),
        }
    }

    /// Opens a file or a directory, so that it lives until it is closed as often. Costs nothing on flash if it was read before.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; [`FsError::TooManyOpen`].
    pub fn open(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        self.inode(ino)?;
        let open_max = self.open.capacity();
        if self.open.open(ino.0) { Ok(()) } else { Err(FsError::TooManyOpen { open_max }) }
    }

    /// Closes what was opened. The last close of a file without a name removes it. Makes nothing durable.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn close(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        if self.open.close(ino.0) {
            // What was written to it last concerns nobody.
            self.buffer.written = self.buffer.written.take().filter(|written| written.ino != ino.0);
            let removed = self.flush().and_then(|()| self.remove_orphan(ino));
            self.ended(removed)?;
        }
        Ok(())
    }
}
