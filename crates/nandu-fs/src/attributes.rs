//! Changing modes, owners and times.

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::fs::Fs;
use crate::inode::FileKind;
use crate::{FsError, Ino, Time};

/// What is to change of an inode; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permissions; bits of a type are ignored.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last read.
    pub atime: Option<Time>,
    /// Time of the last change of the content.
    pub mtime: Option<Time>,
}

impl<N: Nand> Fs<'_, N> {
    /// Changes an inode. Durable at the next sync.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; [`FsError::Range`] if a time has a billion nanoseconds or more; [`FsError::Full`].
    pub fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), FsError<N::Error>> {
        if [set.atime, set.mtime].into_iter().flatten().any(|time| time.nanoseconds >= 1_000_000_000) {
            return Err(FsError::Range);
        }
        self.begin_change()?;
        let mut inode = self.inode(ino)?;
        if let Some(mode) = set.mode {
            inode.mode = inode.mode & FileKind::MASK | mode & 0o7777;
        }
        inode.uid = set.uid.unwrap_or(inode.uid);
        inode.gid = set.gid.unwrap_or(inode.gid);
        inode.atime = set.atime.unwrap_or(inode.atime);
        inode.mtime = set.mtime.unwrap_or(inode.mtime);
        inode.ctime = self.now;
        let mut batch = Batch::new();
        Self::put_inode(&mut batch, ino, &inode);
        self.commit(&batch)
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

    /// Sets times, where given. As [`Fs::set_attributes`].
    ///
    /// # Errors
    ///
    /// As [`Fs::set_attributes`].
    pub fn utimens(&mut self, ino: Ino, atime: Option<Time>, mtime: Option<Time>) -> Result<(), FsError<N::Error>> {
        self.set_attributes(ino, SetAttributes { atime, mtime, ..SetAttributes::default() })
    }
}
