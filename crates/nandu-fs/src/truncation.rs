//! Truncations: what they cut off is removed in steps, with the changes that follow, and before it could come to light.
//!
//! The change that makes a file shorter says so in the inode, and in an orphan's record if not all that is cut off goes with it. From then on whatever lies behind the end of the file is to be removed. A file that grows has it removed first, as far as it grows.

use nandu_nand::Nand;

use crate::batch::batch_in;
use crate::fs::Fs;
use crate::keys::Key;
use crate::orphans::StepRoom;
use crate::{FsError, Ino};

impl<N: Nand> Fs<'_, N> {
    /// Removes what a truncation cut off, or begins to.
    pub(crate) fn remove_cut_off(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        let is_all = self.reap_step(ino, &mut { Key::EMPTY })?;
        if is_all {
            self.open.set_cut(ino.0, false);
        }
        self.has_orphans |= !is_all;
        Ok(())
    }

    /// Whether something of a file may be left that a truncation cut off, or of an inode that its last name left.
    pub(crate) fn is_cut_off(&mut self, ino: Ino) -> Result<bool, FsError<N::Error>> {
        Ok(self.open.is_cut(ino.0) || self.has_orphans && self.has_orphan_record(ino.0)?)
    }

    /// Before a file is changed up to here: of what a truncation left behind its end goes what would come to light if the file grew so far; all of it where all is removed at once.
    pub(crate) fn finish_truncation(&mut self, ino: Ino, end: u64) -> Result<(), FsError<N::Error>> {
        let is_cut = self.open.is_cut(ino.0);
        if !self.is_cut_off(ino)? {
            return Ok(());
        }
        // With what waits in memory to be written the file may be longer: its end is where that ends.
        self.flush()?;
        let Some(inode) = self.find_inode(ino)?.filter(|inode| is_cut || inode.nlink > 0) else { return Ok(()) };
        let page_size = self.page_size() as u64;
        let page = |size: u64| u32::try_from(size.div_ceil(page_size)).unwrap_or(u32::MAX);
        let (first, last) = (page(inode.size), page(end));
        if last == u32::MAX {
            return self.reap(ino);
        }
        let mut removed = Key::EMPTY;
        while first < last
            && !self.remove_pages(ino, (Key::page(ino.0, first), Key::page(ino.0, last)), &mut removed)?
        {
            self.tree.end_call();
        }
        Ok(())
    }

    /// Removes a step of the pages of a file between two keys. Returns whether these were all.
    #[inline(never)]
    fn remove_pages(&mut self, ino: Ino, range: (Key, Key), last: &mut Key) -> Result<bool, FsError<N::Error>> {
        let Some(mut inode) = self.find_inode(ino)? else { return Ok(true) };
        batch_in!(batch: StepRoom);
        let doomed = self.doom_next(&mut batch, last, range)?;
        if !batch.is_empty() {
            inode.blocks = inode.blocks.saturating_sub(doomed.pages);
            batch.put_inode(ino, &inode);
            self.tree.batch_freeing(batch.edits())?;
        }
        Ok(doomed.is_all)
    }
}
