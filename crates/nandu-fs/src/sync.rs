//! Making changes durable, and what comes before each of them.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::{FsError, Ino};

impl<N: Nand> Fs<'_, N> {
    /// Makes all changes so far durable. Programs one page, and one more where a page is partly written and is not small, and more
    /// where a leaf goes with it and overflows; nothing if nothing has changed, or if all that has are pages of files that tags tell of,
    /// on a volume with tags. Changes that it places pay their [share of collection](Fs#what-calls-cost) besides.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] if there is no room for a page that is partly written.
    pub fn sync(&mut self) -> Result<(), FsError<N::Error>> {
        let synced = self.sync_unpaid();
        self.ended(synced)
    }

    pub(crate) fn sync_unpaid(&mut self) -> Result<(), FsError<N::Error>> {
        self.flush()?;
        Ok(self.tree.sync()?)
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

    /// Before each change: the page that is being written goes to the tree, and what a cut left over is removed a step further.
    pub(crate) fn begin_change(&mut self) -> Result<(), FsError<N::Error>> {
        self.check_writable()?;
        self.flush()?;
        self.reap_some()
    }

    /// A call that changes something ended so: it pays its share of collecting, for all that it did.
    pub(crate) fn ended<T>(&mut self, outcome: T) -> T {
        self.tree.end_call();
        outcome
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
