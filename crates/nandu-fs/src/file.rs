//! A file that is open, with a position.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::{Attributes, FsError, Ino};

/// How [`File::open`] treats what is there and what is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Make the file if there is none of this name, with these attributes.
    pub create: Option<Attributes>,
    /// Refuse with [`FsError::Exists`] if there is one.
    pub new: bool,
    /// Cut a file that is there to nothing.
    pub truncate: bool,
    /// Each write goes to the end of the file.
    pub append: bool,
}

/// A file that is open, with a position.
///
/// It borrows nothing, so any number of files can be open, as many as [`Options::open_max`](crate::Options::open_max) says. It is to be
/// closed with [`File::close`]; one that is dropped instead stays open until the file system is unmounted, and keeps its room if its name is removed.
/// With the feature `embedded-io`, `File::on` has the traits of that crate.
///
/// ```
/// use nandu_fs::{Attributes, File, Format, Fs, OpenOptions, Options};
/// use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let chip = Sim::new(Chip::W25N01GV);
/// let options = Options::default();
/// let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];
/// let mut fs = Fs::format(chip, options, Format::default(), &mut memory)?;
/// let (directory, name) = fs.lookup_parent(b"/log")?;
/// fs.mkdir(directory, name, Attributes::DIRECTORY)?;
///
/// let how = OpenOptions { create: Some(Attributes::FILE), append: true, ..OpenOptions::default() };
/// let mut file = File::open(&mut fs, b"/log/today", how)?;
/// file.write_all(&mut fs, b"21.5 C\n")?;
/// file.sync(&mut fs)?;
/// file.set_position(0);
/// let mut text = [0; 16];
/// assert_eq!(file.read(&mut fs, &mut text)?, 7);
/// file.close(&mut fs)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a file that is not closed stays open"]
#[derive(Debug)]
pub struct File {
    ino: Ino,
    position: u64,
    append: bool,
}

impl File {
    /// Opens the file at a path, at its beginning. Reads what [`Fs::lookup_path`] does; costs what [`Fs::create`] and [`Fs::truncate`] do where it does
    /// those.
    ///
    /// # Errors
    ///
    /// As [`Fs::lookup_path`], [`Fs::create`] and [`Fs::truncate`]; [`FsError::IsDirectory`] and [`FsError::NotFile`];
    /// [`FsError::Exists`] with [`OpenOptions::new`]; [`FsError::TooManyOpen`].
    pub fn open<N: Nand>(fs: &mut Fs<'_, N>, path: &[u8], how: OpenOptions) -> Result<File, FsError<N::Error>> {
        let ino = match (fs.lookup_path(path), how.create) {
            (Ok(ino), _) if how.new => {
                let (directory, _) = fs.lookup_parent(path)?;
                return Err(FsError::Exists { directory, ino });
            }
            (Ok(ino), _) => {
                fs.file(ino)?;
                if how.truncate {
                    fs.truncate(ino, 0)?;
                }
                ino
            }
            (Err(FsError::NotFound { .. }), Some(attributes)) => {
                let (directory, name) = fs.lookup_parent(path)?;
                fs.create(directory, name, attributes)?
            }
            (Err(error), _) => return Err(error),
        };
        fs.open(ino)?;
        Ok(File { ino, position: 0, append: how.append })
    }

    /// Closes the file. One without a name is removed. Makes nothing durable.
    ///
    /// # Errors
    ///
    /// As [`Fs::close`].
    pub fn close<N: Nand>(self, fs: &mut Fs<'_, N>) -> Result<(), FsError<N::Error>> {
        fs.close(self.ino)
    }

    /// Its inode, for all that takes one.
    pub fn ino(&self) -> Ino {
        self.ino
    }

    /// Where the next read begins, and the next write unless each goes to the end.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to an offset, also behind the end: a read there finds nothing, and a write leaves a hole before it.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Reads from the position on, which moves behind what was read; returns how many bytes, 0 at the end. Costs what [`Fs::read_at`] does.
    ///
    /// # Errors
    ///
    /// As [`Fs::read_at`].
    pub fn read<N: Nand>(&mut self, fs: &mut Fs<'_, N>, out: &mut [u8]) -> Result<usize, FsError<N::Error>> {
        let count = fs.read_at(self.ino, self.position, out)?;
        self.position += count as u64;
        Ok(count)
    }

    /// Writes at the position, or at the end with [`OpenOptions::append`]; the position moves behind what was written. Returns how many bytes, fewer
    /// than given if there is room for no more. Costs what [`Fs::write_at`] does.
    ///
    /// # Errors
    ///
    /// As [`Fs::write_at`].
    pub fn write<N: Nand>(&mut self, fs: &mut Fs<'_, N>, bytes: &[u8]) -> Result<usize, FsError<N::Error>> {
        let offset = if self.append { fs.stat(self.ino)?.size } else { self.position };
        let count = fs.write_at(self.ino, offset, bytes)?;
        self.position = offset + count as u64;
        Ok(count)
    }

    /// Writes all of it. After [`FsError::Full`] a part may stand there, and the position is behind that part.
    ///
    /// # Errors
    ///
    /// As [`Fs::write_at`].
    pub fn write_all<N: Nand>(&mut self, fs: &mut Fs<'_, N>, mut bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        while !bytes.is_empty() {
            match self.write(fs, bytes)? {
                0 => return Err(FsError::Full),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Makes the file durable, with all that was done to it and all that was done before. Costs what [`Fs::sync`] does.
    ///
    /// # Errors
    ///
    /// As [`Fs::fsync`].
    pub fn sync<N: Nand>(&self, fs: &mut Fs<'_, N>) -> Result<(), FsError<N::Error>> {
        fs.fsync(self.ino)
    }
}
