//! A file system under the programs whose operations are counted.

use std::error::Error;
use std::ops::ControlFlow;

use nandu::fs::{Attributes, FileKind, Format, Fs, Ino, Options, RenameMode};
use nandu::nand::{Geometry, Pairing, TearScope};
use nandu_dffs::Dffs;
use nandu_files::FileSystem;
use nandu_sim::{Chip, Ledger, Sim};

use crate::BenchError;
use crate::workload::{FileName, Files};

/// Bytes of a block of [`kernel_chip`].
const KERNEL_BLOCK_SIZE: u32 = 128 * 4096;

/// The chip on which the kernel's file systems were counted: shape and times of one with two bits a cell, but no page harms another when it is torn, which is
/// what the kernel was told.
pub(crate) fn kernel_chip(size_mib: u32) -> Chip {
    let chip = Chip::PAPER_MLC.with_blocks(size_mib * (1 << 20) / KERNEL_BLOCK_SIZE);
    Chip { geometry: Geometry { pairing: Pairing::None, tear: TearScope::Page, ..chip.geometry }, ..chip }
}

/// A file system as programs see it.
pub(crate) struct Volume<F> {
    pub(crate) fs: F,
    /// Inodes of the directories, by number.
    directories: Vec<Ino>,
    open: Ino,
}

/// A volume of ours.
pub(crate) type Ours<'m> = Volume<Fs<'m, Sim>>;

/// A volume of DFFS.
pub(crate) type Published<'m> = Volume<Dffs<'m, Sim>>;

impl<F> Volume<F> {
    /// What was formatted or mounted.
    pub(crate) fn of(fs: F) -> Volume<F> {
        Volume { fs, directories: Vec::new(), open: Ino::ROOT }
    }

    fn directory(&self, directory: Option<u32>) -> Ino {
        directory.map_or(Ino::ROOT, |directory| self.directories[directory as usize])
    }
}

impl<'m> Published<'m> {
    /// Formats a chip as DFFS.
    pub(crate) fn format_dffs(
        chip: Sim,
        options: nandu_dffs::Options,
        memory: &'m mut [u8],
    ) -> Result<Published<'m>, BenchError> {
        Ok(Volume::of(Dffs::format(chip, options, memory).map_err(BenchError::structure)?))
    }
}

impl<'m> Ours<'m> {
    /// Formats a chip. The key of its hash comes from the chip's seed.
    pub(crate) fn format(chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Ours<'m>, BenchError> {
        let mut format = Format::default();
        format.hash_key[..8].copy_from_slice(&chip.seed().to_le_bytes());
        Ok(Volume::of(Fs::format(chip, options, format, memory).map_err(failed)?))
    }

    /// Mounts a chip, to be looked at.
    pub(crate) fn mount(chip: Sim, options: Options, memory: &'m mut [u8]) -> Result<Ours<'m>, BenchError> {
        Ok(Volume::of(Fs::mount(chip, options, memory).map_err(failed)?))
    }
}

impl<F: FileSystem<Chip = Sim, Error: Send + Sync>> Volume<F> {
    /// What the chip did so far, by cause.
    pub(crate) fn ledger(&self) -> Ledger {
        self.fs.nand().ledger().clone()
    }

    /// Reads every directory and what is known of every name; returns how many files there are.
    pub(crate) fn walk(&mut self) -> Result<u64, BenchError> {
        let fs = &mut self.fs;
        let mut directories = vec![Ino::ROOT];
        let mut files = 0;
        while let Some(directory) = directories.pop() {
            let mut names = Vec::new();
            let visited = fs.read_dir(directory, 2, &mut |entry| {
                names.push(entry.name.to_vec());
                ControlFlow::Continue(())
            });
            visited.map_err(failed)?;
            for name in names {
                let ino = fs.lookup(directory, &name).map_err(failed)?;
                match fs.stat(ino).map_err(failed)?.kind {
                    FileKind::Directory => directories.push(ino),
                    _ => files += 1,
                }
            }
        }
        Ok(files)
    }
}

/// What any file system says.
pub(crate) fn failed(error: impl Error + Send + Sync + 'static) -> BenchError {
    BenchError::structure(error)
}

impl<F: FileSystem<Chip = Sim, Error: Send + Sync>> Files for Volume<F> {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let name = FileName::directory_name(directory);
        let ino = self.fs.mkdir(Ino::ROOT, name.as_bytes(), Attributes::default()).map_err(BenchError::structure)?;
        self.directories.push(ino);
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        self.fs.rmdir(Ino::ROOT, FileName::directory_name(directory).as_bytes()).map_err(BenchError::structure)
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        self.open =
            self.fs.create(directory, file.name().as_bytes(), Attributes::default()).map_err(BenchError::structure)?;
        self.fs.open(self.open).map_err(BenchError::structure)
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.fs.write_at(self.open, offset + done as u64, &bytes[done..]).map_err(BenchError::structure)?;
        }
        if is_synced { self.fsync() } else { Ok(()) }
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        self.fs.fsync(self.open).map_err(BenchError::structure)
    }

    fn close(&mut self) -> Result<(), BenchError> {
        self.fs.close(self.open).map_err(BenchError::structure)
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        self.fs.unlink(directory, file.name().as_bytes()).map_err(BenchError::structure)
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        let (old, new) = (self.directory(from.directory), self.directory(to.directory));
        let (from, to) = (from.name(), to.name());
        self.fs.rename(old, from.as_bytes(), new, to.as_bytes(), RenameMode::Replace).map_err(BenchError::structure)
    }

    fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError> {
        let directory = self.directory(file.directory);
        let ino = self.fs.lookup(directory, file.name().as_bytes()).map_err(BenchError::structure)?;
        let mut bytes = vec![0; content.len() + 1];
        let count = self.fs.read_at(ino, 0, &mut bytes).map_err(BenchError::structure)?;
        if bytes[..count] == *content { Ok(()) } else { Err(BenchError::Other(format!("{} differs", file.name()))) }
    }
}
