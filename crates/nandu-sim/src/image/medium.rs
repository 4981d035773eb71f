//! What an image is written to.

use std::fs::File;
use std::io;

/// What an image is written to: a file, or in a test something that records or forgets.
///
/// A chip that was opened from an image reads from it while the image is written to, so that all calls take a shared reference.
///
/// # What is assumed of it
///
/// * After [`sync`](Medium::sync) returned, everything written before survives a crash of the machine.
/// * Of what was written since the last `sync`, a crash may lose any part, down to single bytes and in any order.
/// * A write never changes bytes outside its range, cut or not.
/// * A change of length happens wholly or not at all.
pub trait Medium: Send + Sync + 'static {
    /// Bytes in the medium.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buf` with the bytes at `offset`; fewer than asked for is an error.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes `data` at `offset`, beyond the end if need be.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts or extends the medium to `size` bytes; what is added reads as zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Returns when everything written before is safe.
    fn sync(&self) -> io::Result<()>;
}

impl Medium for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, data, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, buf, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    offset += count as u64;
                    buf = &mut buf[count..];
                }
            }
        }
        Ok(())
    }

    #[cfg(windows)]
    fn write_at(&self, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(self, data, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    offset += count as u64;
                    data = &data[count..];
                }
            }
        }
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        // The length of a file that grew is among what this makes safe.
        self.sync_data()
    }
}
