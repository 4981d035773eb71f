//! Snapshots of a file system: for backups, and for going back after an update.

use nandu_nand::Nand;

use crate::FsError;
use crate::fs::Fs;

impl<N: Nand> Fs<'_, N> {
    /// Takes a snapshot of all that there is, with what was written and not synced; durable when it returns, as all before it. Returns its number, with which it is mounted
    /// ([`Options::snapshot`](crate::Options::snapshot)) and released. 1 program, and what a sync takes; nothing is copied. From here on what a change replaces is kept, and takes room: a file that is written over takes its pages twice.
    ///
    /// # Errors
    ///
    /// [`FsError::TooManySnapshots`]; those of [`Fs::sync`].
    pub fn snapshot(&mut self) -> Result<u32, FsError<N::Error>> {
        self.check_writable()?;
        self.flush()?;
        let taken = self.tree.snapshot();
        Ok(self.ended(taken)?)
    }

    /// Releases a snapshot; durable when it returns. Its room comes back with the calls that follow and in idle time.
    ///
    /// # Errors
    ///
    /// [`FsError::NoSnapshot`]; errors of the chip.
    pub fn release_snapshot(&mut self, number: u32) -> Result<(), FsError<N::Error>> {
        self.check_writable()?;
        let released = self.tree.release(number);
        Ok(self.ended(released)?)
    }

    /// The snapshots that there are, the oldest first. Costs nothing.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = u32> {
        self.tree.snapshots()
    }
}
