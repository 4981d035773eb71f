//! What is known of an inode, and changing modes, owners and times.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::inode::{ATIME, CTIME, Inode, MTIME};
use crate::{FileKind, FsError, Ino, SetAttributes, Stat};

/// Seconds after which a read is noted again.
const NOTE_SECONDS: i64 = 24 * 60 * 60;

/// Whether an inode can be changed so.
pub(crate) fn check<E: core::error::Error + 'static>(set: &SetAttributes) -> Result<(), FsError<E>> {
    let is_sound = [set.atime, set.mtime].into_iter().flatten().all(|time| time.nanoseconds < 1_000_000_000);
    if is_sound { Ok(()) } else { Err(FsError::Range) }
}

impl Inode {
    /// Changes what is to change.
    pub(crate) fn set(&mut self, set: &SetAttributes) {
        if let Some(mode) = set.mode {
            self.mode = self.mode & FileKind::MASK | mode & 0o7777;
        }
        self.uid = set.uid.unwrap_or(self.uid);
        self.gid = set.gid.unwrap_or(self.gid);
        self.times[ATIME] = set.atime.unwrap_or(self.times[ATIME]);
        self.times[MTIME] = set.mtime.unwrap_or(self.times[MTIME]);
    }
}

impl<N: Nand> Fs<'_, N> {
    /// What is known of an inode. Reads the leaf that it is in. What a truncation cut off and is not removed yet is not counted as allocated.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; errors of the chip, as every call has them.
    pub fn stat(&mut self, ino: Ino) -> Result<Stat, FsError<N::Error>> {
        let page_size = self.page_size();
        let mut stat = self.inode(ino)?.stat(ino, page_size);
        if self.is_cut_off(ino)? {
            stat.allocated_size = stat.allocated_size.min(stat.size.next_multiple_of(page_size as u64));
        }
        Ok(stat)
    }

    /// Changes an inode. Durable at the next sync. Costs what [`Fs::create`] does.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; [`FsError::Range`] if a time has a billion nanoseconds or more; [`FsError::Full`].
    pub fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), FsError<N::Error>> {
        check(&set)?;
        let put = self.begin_change().and_then(|()| self.put_attributes(ino, &set));
        self.ended(put)
    }

    #[inline(never)]
    fn put_attributes(&mut self, ino: Ino, set: &SetAttributes) -> Result<(), FsError<N::Error>> {
        let mut inode = self.inode(ino)?;
        inode.set(set);
        inode.times[CTIME] = self.now;
        self.commit_inode(ino, &inode)
    }

    /// Changes permissions. As [`Fs::set_attributes`].
    ///
    /// # Errors
    ///
    /// As [`Fs::set_attributes`].
    pub fn chmod(&mut self, ino: Ino, mode: u32) -> Result<(), FsError<N::Error>> {
        self.set_attributes(ino, SetAttributes { mode: Some(mode), ..SetAttributes::default() })
    }

    /// Changes owner and group, where given. As [`Fs::set_attributes`].
    ///
    /// # Errors
    ///
    /// As [`Fs::set_attributes`].
    pub fn chown(&mut self, ino: Ino, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError<N::Error>> {
        self.set_attributes(ino, SetAttributes { uid, gid, ..SetAttributes::default() })
    }

    /// Notes that an inode was read, where somebody may want to know: if it was changed since the last read that was noted, or that is
    /// a day ago. A change like any other, durable at the next sync; it programs nothing itself. Where there is no room, on a volume
    /// that is only read and while a page waits in memory, which is not worth programming for this, nothing is noted.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; errors of the chip.
    pub fn note_read(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        if self.check_writable().is_err() || self.buffer.written.is_some() {
            return Ok(());
        }
        let mut inode = self.inode(ino)?;
        let [changed, modified, read, _] = inode.times;
        let is_old = self.now.seconds.saturating_sub(read.seconds) >= NOTE_SECONDS;
        if read > modified.max(changed) && !is_old || self.now <= read {
            return Ok(());
        }
        inode.times[ATIME] = self.now;
        let noted = self.commit_inode(ino, &inode);
        match self.ended(noted) {
            Err(FsError::Full) => Ok(()),
            other => other,
        }
    }
}
