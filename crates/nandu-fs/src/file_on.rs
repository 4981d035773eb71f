//! The traits of embedded-io for an open file.

use core::fmt;

use embedded_io::{ErrorKind, ErrorType, Read, Seek, SeekFrom, Write};
use nandu_nand::Nand;

use crate::fs::Fs;
use crate::{File, FsError};

/// An open file on its file system, see [`File::on`]. Flushing makes the file durable, as [`File::sync`] does.
pub struct FileOn<'f, 'm, N: Nand> {
    file: &'f mut File,
    fs: &'f mut Fs<'m, N>,
}

impl File {
    /// The file on its file system, with the traits of embedded-io.
    pub fn on<'f, 'm, N: Nand>(&'f mut self, fs: &'f mut Fs<'m, N>) -> FileOn<'f, 'm, N> {
        FileOn { file: self, fs }
    }
}

impl<N: Nand> fmt::Debug for FileOn<'_, '_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileOn").field(&self.file).finish()
    }
}

impl<N: Nand> ErrorType for FileOn<'_, '_, N> {
    type Error = FsError<N::Error>;
}

impl<N: Nand> Read for FileOn<'_, '_, N> {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Self::Error> {
        self.file.read(self.fs, buf)
    }
}

impl<N: Nand> Write for FileOn<'_, '_, N> {
    fn write(&mut self, buf: &[u8]) -> Result<usize, Self::Error> {
        match self.file.write(self.fs, buf)? {
            0 if !buf.is_empty() => Err(FsError::Full),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> Result<(), Self::Error> {
        self.file.sync(self.fs)
    }
}

impl<N: Nand> Seek for FileOn<'_, '_, N> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64, Self::Error> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.fs.stat(self.file.ino())?.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.file.position().checked_add_signed(offset),
        };
        self.file.set_position(position.ok_or(FsError::Range)?);
        Ok(self.file.position())
    }
}

impl<E: core::error::Error + 'static> embedded_io::Error for FsError<E> {
    fn kind(&self) -> ErrorKind {
        match self {
            FsError::NotFound { .. } | FsError::NoInode(_) => ErrorKind::NotFound,
            FsError::Exists { .. } => ErrorKind::AlreadyExists,
            FsError::ReadOnly => ErrorKind::PermissionDenied,
            FsError::Corrupt { .. } | FsError::CorruptPage { .. } => ErrorKind::InvalidData,
            FsError::Memory { .. } | FsError::TooManyOpen { .. } => ErrorKind::OutOfMemory,
            FsError::Range | FsError::Name | FsError::NotFile(_) | FsError::IsDirectory(_) => ErrorKind::InvalidInput,
            FsError::Lacks(_) | FsError::NotCompiled { .. } => ErrorKind::Unsupported,
            FsError::Full => ErrorKind::WriteZero,
            _ => ErrorKind::Other,
        }
    }
}
