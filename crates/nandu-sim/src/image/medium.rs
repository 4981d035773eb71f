//! What an image is written to.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// What an image is written to: a file, or in a test something that records or forgets.
///
/// # What is assumed of it
///
/// * After [`sync`](Medium::sync) returned, everything written before survives a crash of the machine.
/// * Of what was written since the last `sync`, a crash may lose any part, down to single bytes and in any order.
/// * A write never changes bytes outside its range, cut or not.
/// * A change of length happens wholly or not at all.
pub trait Medium {
    /// Bytes in the medium.
    fn size(&mut self) -> io::Result<u64>;

    /// Fills `buf` with the bytes at `offset`; fewer than asked for is an error.
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes `data` at `offset`, beyond the end if need be.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts or extends the medium to `size` bytes; what is added reads as zeros.
    fn set_size(&mut self, size: u64) -> io::Result<()>;

    /// Returns when everything written before is safe.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.read_exact(buf)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(data)
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
