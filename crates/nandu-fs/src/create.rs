//! Making files, directories and other things that have a name.

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::commit::{Commit, Lent};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{INO_END, Key};
use crate::super_block::CHUNK_SIZE;
use crate::{Attributes, FileKind, FsError, Ino};

/// Bit of a directory's mode: what is made in it gets its group.
const SET_GID: u32 = 0o2000;

/// Most bytes of a symbolic link's target.
pub(crate) const TARGET_SIZE_MAX: usize = 4095;

/// Most records that a target takes.
pub(crate) const TARGET_PART_COUNT_MAX: usize = 32;

/// Bytes of the key of a part of a target.
const TARGET_KEY_SIZE: usize = 8;

impl<N: Nand> Fs<'_, N> {
    /// Makes a file, or with another type in the mode a pipe, a socket or a device. Durable at the next sync, with one program for
    /// name and inode together. Programs nothing as a rule; a page for each leaf concerned where memory for changes is used up, and its
    /// [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// [`FsError::Exists`]; [`FsError::Name`] and [`FsError::NameSize`]; [`FsError::NoInode`] and [`FsError::NotDirectory`] of the
    /// directory; [`FsError::Range`] if the mode says directory, symbolic link or nothing there is; [`FsError::Full`].
    pub fn create(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, FsError<N::Error>> {
        self.create_with(directory, name, attributes, &[])
    }

    /// The same with extended attributes, each a name and a value: it is there with all of them or, if this is cut, not at all, so that nobody
    /// ever gets in whom an access list among them keeps out.
    ///
    /// # Errors
    ///
    /// As [`Fs::create`] and [`Fs::set_xattr`]; [`FsError::Name`] if two attributes have one name.
    pub fn create_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, FsError<N::Error>> {
        let typed = attributes.mode & FileKind::MASK != 0;
        let mode = if typed { attributes.mode } else { attributes.mode | FileKind::File.mode() };
        match FileKind::of_mode(mode) {
            None | Some(FileKind::Directory | FileKind::Symlink) => return Err(FsError::Range),
            Some(_) => {}
        }
        let made = self.make(directory, name, Attributes { mode, ..attributes }, xattrs);
        self.ended(made)
    }

    /// Makes a directory. Durable when it returns. Programs 1 page and its [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// As [`Fs::create`]; [`FsError::TooManyLinks`].
    pub fn mkdir(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, FsError<N::Error>> {
        self.mkdir_with(directory, name, attributes, &[])
    }

    /// The same with extended attributes, as [`Fs::create_with`] has them. Programs 1 page, as many more
    /// as they fill, and its [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// As [`Fs::mkdir`] and [`Fs::create_with`].
    pub fn mkdir_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, FsError<N::Error>> {
        let mode = attributes.mode & !FileKind::MASK | FileKind::Directory.mode();
        self.make_durably(directory, name, Attributes { mode, rdev: 0, ..attributes }, xattrs)
    }

    /// Makes a symbolic link. Durable when it returns. Programs 1 page, more where the target has some hundred bytes, and
    /// its [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// As [`Fs::create`]; [`FsError::NameSize`] of a target of more than 4,095 bytes, or of none.
    pub fn symlink(
        &mut self,
        directory: Ino,
        name: &[u8],
        target: &[u8],
        attributes: Attributes,
    ) -> Result<Ino, FsError<N::Error>> {
        let size_max = TARGET_SIZE_MAX.min(TARGET_PART_COUNT_MAX * self.target_part_size());
        if target.is_empty() || target.len() > size_max {
            return Err(FsError::NameSize { size: target.len(), size_max });
        }
        let mode = 0o777 | FileKind::Symlink.mode();
        self.make_durably(directory, name, Attributes { mode, rdev: 0, ..attributes }, &[(&[], target)])
    }

    /// As [`Fs::make`], with a sync.
    fn make_durably(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        lent: Lent<'_>,
    ) -> Result<Ino, FsError<N::Error>> {
        let made = self.make(directory, name, attributes, lent);
        let durable = made.and_then(|ino| self.sync_names().map(|()| ino));
        self.ended(durable)
    }

    /// Bytes of a target in one record.
    fn target_part_size(&self) -> usize {
        self.tree.entry_size_max() - TARGET_KEY_SIZE
    }

    fn put_target<'a>(&self, batch: &mut Batch<'a>, ino: Ino, target: &'a [u8]) {
        for (part, bytes) in (0..).zip(target.chunks(self.target_part_size())) {
            batch.put_lent(Key::target(ino.0, part), bytes);
        }
    }

    /// Makes what a directory has a name for; `lent` is attributes, or the target of a symbolic link.
    fn make(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        lent: Lent<'_>,
    ) -> Result<Ino, FsError<N::Error>> {
        self.check_name(name)?;
        let is_link = FileKind::of_mode(attributes.mode) == Some(FileKind::Symlink);
        let xattr_size = if is_link { 0 } else { self.first_xattrs_size(lent)? };
        self.begin_change()?;
        let (mut ino, mut chunk_next) = (Ino(0), 0);
        self.change(lent, &mut |fs, batch, lent| {
            (ino, chunk_next) = fs.prepare_make(batch, directory, name, attributes, xattr_size, lent)?;
            Ok(Commit::Records)
        })?;
        self.chunk_next = chunk_next;
        Ok(ino)
    }

    /// Returns the number that what is made gets, and the first one that no chunk has then.
    pub(crate) fn prepare_make<'a>(
        &mut self,
        batch: &mut Batch<'a>,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattr_size: u32,
        lent: Lent<'a>,
    ) -> Result<(Ino, u64), FsError<N::Error>> {
        let mut parent = self.directory(directory)?;
        if parent.nlink == 0 {
            // A directory that was removed and is still open takes no names.
            return Err(FsError::NotFound { directory });
        }
        let position = self.free_position(directory, name)?;
        let mut inode = self.new_inode(&parent, attributes);
        let (ino, chunk_next) = self.take_number(&mut parent, &mut inode)?;
        parent.size = parent.size.saturating_add(1);
        parent.modify(self.now);
        if inode.is_directory() {
            inode.parent = directory.0;
            parent.nlink = parent.nlink.checked_add(1).ok_or(FsError::TooManyLinks(directory))?;
        }
        inode.xattr_size = xattr_size;
        if chunk_next != self.chunk_next {
            self.put_super_block(batch, chunk_next);
        }
        Self::put_name(batch, directory, position, inode.kind(), ino, name);
        batch.put_inode(directory, &parent);
        #[cfg(feature = "_broken")]
        if self.options.broken.name_first {
            self.commit(batch, Commit::Records)?;
            self.tree.sync()?;
            batch.clear();
        }
        // S12: the name in the same commit as the inode and its attributes. With the name first, a cut would leave a name that leads to nothing,
        // or to what lets in whom an access list keeps out.
        if inode.kind() == FileKind::Symlink {
            for &(_, target) in lent {
                inode.size = target.len() as u64;
                self.put_target(batch, ino, target);
            }
        } else {
            self.put_first_xattrs(batch, ino, lent)?;
        }
        batch.put_inode(ino, &inode);
        Ok((ino, chunk_next))
    }

    fn new_inode(&self, parent: &Inode, attributes: Attributes) -> Inode {
        let Attributes { mut mode, uid, mut gid, rdev } = attributes;
        if parent.mode & SET_GID != 0 {
            gid = parent.gid;
            mode |= if mode & FileKind::MASK == FileKind::Directory.mode() { SET_GID } else { 0 };
        }
        let is_device = matches!(FileKind::of_mode(mode), Some(FileKind::BlockDevice | FileKind::CharDevice));
        Inode {
            mode,
            uid,
            gid,
            nlink: if mode & FileKind::MASK == FileKind::Directory.mode() { 2 } else { 1 },
            rdev: if is_device { rdev } else { 0 },
            times: [self.now; 4],
            ..Inode::EMPTY
        }
    }

    /// A number for a new inode, from its directory's chunk, so that its record lies near those of its siblings. A directory gets a
    /// chunk of its own, of which the first number is its own. Returns the first number that no chunk has then.
    fn take_number(&self, parent: &mut Inode, inode: &mut Inode) -> Result<(Ino, u64), FsError<N::Error>> {
        let is_directory = inode.is_directory();
        if !is_directory && parent.chunk_next < parent.chunk_end {
            parent.chunk_next += 1;
            return Ok((Ino(parent.chunk_next - 1), self.chunk_next));
        }
        let ino = self.chunk_next;
        let chunk_end = ino + CHUNK_SIZE;
        if chunk_end > INO_END {
            return Err(FsError::Full);
        }
        let taker = if is_directory { inode } else { parent };
        (taker.chunk_next, taker.chunk_end) = (ino + 1, chunk_end);
        Ok((Ino(ino), chunk_end))
    }
}
