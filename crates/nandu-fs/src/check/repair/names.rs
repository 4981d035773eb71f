//! Names: each leads to something, stands where it is looked for, and says what it leads to.

use nandu_nand::Nand;

use super::{Mended, Teller};
use crate::check::walk::NameAt;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::Key;
use crate::names::Search;
use crate::{FsError, Ino};

impl<N: Nand> Fs<'_, N> {
    /// An inode, `None` if there is none that can be understood.
    pub(super) fn sound_inode(&mut self, ino: Ino) -> Result<Option<Inode>, FsError<N::Error>> {
        match self.find_inode(ino) {
            Err(FsError::Corrupt { .. }) => Ok(None),
            other => other,
        }
    }

    /// Repairs the names in a directory, and of the directories in it which one is above them.
    pub(super) fn repair_directory_names(
        &mut self,
        directory: u64,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        if !self.sound_inode(Ino(directory))?.is_some_and(|inode| inode.is_directory()) {
            return Ok(());
        }
        let (mut next, mut last) = (0, None);
        while let Some(at) = self.next_name(directory, next)? {
            next = at.position + 1;
            let bucket = at.position >> 8;
            let shares_bucket = last == Some(bucket);
            last = Some(bucket);
            self.repair_name(directory, &at, shares_bucket, teller)?;
        }
        Ok(())
    }

    fn repair_name(
        &mut self,
        directory: u64,
        at: &NameAt,
        shares_bucket: bool,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let remove = |fs: &mut Self, teller: &mut Teller<'_>, what| {
            fs.mend(|batch| batch.delete(Key::name(directory, at.position)))?;
            teller.tell_name(directory, at.name(), what);
            Ok(())
        };
        let child = self.sound_inode(at.ino)?;
        let Some(child) = child else { return remove(self, teller, Mended::NameLost) };
        if at.ino == Ino::ROOT {
            return remove(self, teller, Mended::NameSurplus);
        }
        let mut position = at.position;
        if self.hash(at.name()) >> 8 != at.position >> 8 || shares_bucket {
            match self.search(Ino(directory), at.name())? {
                Search::Found(found) if found.position == at.position => {}
                // The same name a second time: what it leads to is found by its other names, or has none any more.
                Search::Found(_) => return remove(self, teller, Mended::NameSurplus),
                Search::Free(None) => return remove(self, teller, Mended::NameLost),
                Search::Free(Some(free)) => position = free,
            }
        }
        if child.is_directory() && child.parent != directory {
            if self.name_leading_to(child.parent, at.ino)?.is_some() {
                return remove(self, teller, Mended::NameSurplus);
            }
            self.mend(|batch| batch.put_inode(at.ino, &Inode { parent: directory, ..child }))?;
            teller.tell(at.ino.0, Mended::Parent);
        }
        if position != at.position || at.kind != child.kind() {
            self.mend(|batch| {
                batch.delete(Key::name(directory, at.position));
                Self::put_name(batch, Ino(directory), position, child.kind(), at.ino, at.name());
            })?;
            teller.tell_name(directory, at.name(), Mended::NameSet);
        }
        Ok(())
    }

    /// The first name in a directory that leads to an inode. Reads the names before it.
    pub(super) fn name_leading_to(&mut self, directory: u64, ino: Ino) -> Result<Option<NameAt>, FsError<N::Error>> {
        let is_directory = self.sound_inode(Ino(directory))?.is_some_and(|inode| inode.is_directory());
        let mut next = 0;
        while is_directory && let Some(at) = self.next_name(directory, next)? {
            if at.ino == ino {
                return Ok(Some(at));
            }
            next = at.position + 1;
        }
        Ok(None)
    }

    /// Counts again how many names and directories a directory has.
    pub(super) fn repair_directory_counts(
        &mut self,
        directory: u64,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let Some(inode) = self.sound_inode(Ino(directory))?.filter(Inode::is_directory) else { return Ok(()) };
        let (mut names, mut directories) = (0, 0);
        self.read_dir(Ino(directory), 2, |entry| {
            names += 1;
            directories += u32::from(entry.kind == crate::FileKind::Directory);
            core::ops::ControlFlow::Continue(())
        })?;
        let is_named = inode.nlink > 0 || directory == Ino::ROOT.0;
        let nlink = if is_named { directories.saturating_add(2) } else { 0 };
        if (inode.size, inode.nlink) != (names, nlink) {
            self.mend(|batch| batch.put_inode(Ino(directory), &Inode { size: names, nlink, ..inode }))?;
            teller.tell(directory, Mended::Counts);
        }
        Ok(())
    }
}
