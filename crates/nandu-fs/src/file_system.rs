//! What any file system can do, as this one does it.

use core::fmt;
use core::ops::ControlFlow;

use nandu_nand::Nand;

use crate::{
    Allocation, Attributes, Capabilities, Cuts, DirEntry, FileSystem, Fs, FsError, FsStat, Ino, Order, RenameMode,
    SetAttributes, Stat, Time, XattrMode,
};

/// What [`crate`] promises under "What is durable when".
const CUTS: Cuts = Cuts {
    order: Order::Volume,
    create_is_durable: false,
    mkdir_is_durable: true,
    removal_is_durable: false,
    rename_is_durable: true,
    links_are_durable: true,
};

impl<N: Nand> FileSystem for Fs<'_, N> {
    type Error = FsError<N::Error>;
    type Chip = N;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hard_links: true,
            symlinks: true,
            special_files: true,
            xattrs: true,
            allocation: true,
            exchange: true,
            sparse: true,
            file_size_max: self.file_size_max(),
            name_size_max: self.name_size_max() as u32,
            owner_max: u32::MAX,
            seconds: (i64::MIN, i64::MAX),
            nanoseconds: true,
            birth_times: true,
            counted_names: true,
            directory_times: true,
            lasting_numbers: true,
            cuts: CUTS,
        }
    }

    fn nand(&self) -> &N {
        Fs::nand(self)
    }

    fn nand_mut(&mut self) -> &mut N {
        Fs::nand_mut(self)
    }

    fn unmount(self) -> Result<N, Self::Error> {
        Fs::unmount(self)
    }

    fn abandon(self) -> N {
        Fs::abandon(self)
    }

    fn set_now(&mut self, now: Time) {
        Fs::set_now(self, now);
    }

    fn lookup(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, Self::Error> {
        Fs::lookup(self, directory, name)
    }

    fn create(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error> {
        Fs::create(self, directory, name, attributes)
    }

    fn mkdir(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error> {
        Fs::mkdir(self, directory, name, attributes)
    }

    fn unlink(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error> {
        Fs::unlink(self, directory, name)
    }

    fn rmdir(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error> {
        Fs::rmdir(self, directory, name)
    }

    fn rename(
        &mut self,
        directory: Ino,
        name: &[u8],
        new_directory: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<(), Self::Error> {
        Fs::rename(self, directory, name, new_directory, new_name, mode)
    }

    fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, Self::Error> {
        Fs::read_at(self, ino, offset, out)
    }

    fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, Self::Error> {
        Fs::write_at(self, ino, offset, bytes)
    }

    fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, Self::Error> {
        Fs::append(self, ino, bytes)
    }

    fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), Self::Error> {
        Fs::truncate(self, ino, size)
    }

    fn stat(&mut self, ino: Ino) -> Result<Stat, Self::Error> {
        Fs::stat(self, ino)
    }

    fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), Self::Error> {
        Fs::set_attributes(self, ino, set)
    }

    fn read_dir(
        &mut self,
        directory: Ino,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        Fs::read_dir(self, directory, cookie, visit)
    }

    fn open(&mut self, ino: Ino) -> Result<(), Self::Error> {
        Fs::open(self, ino)
    }

    fn close(&mut self, ino: Ino) -> Result<(), Self::Error> {
        Fs::close(self, ino)
    }

    fn fsync(&mut self, ino: Ino) -> Result<(), Self::Error> {
        Fs::fsync(self, ino)
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Fs::sync(self)
    }

    fn statfs(&mut self) -> Result<FsStat, Self::Error> {
        Fs::statfs(self)
    }

    fn check(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(&dyn fmt::Display)) -> Result<u64, Self::Error> {
        self.verify(scratch, &mut |violation| report(&violation))
    }

    fn idle(&mut self, pages: u32) -> Result<bool, Self::Error> {
        Fs::idle(self, pages)
    }

    fn seek(&mut self, ino: Ino, offset: u64, wants_data: bool) -> Result<Option<u64>, Self::Error> {
        let found = if wants_data { self.seek_data(ino, offset) } else { self.seek_hole(ino, offset) };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(FsError::NoMoreData) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn link(&mut self, ino: Ino, directory: Ino, name: &[u8]) -> Result<(), Self::Error> {
        Fs::link(self, ino, directory, name)
    }

    fn symlink(
        &mut self,
        directory: Ino,
        name: &[u8],
        target: &[u8],
        attributes: Attributes,
    ) -> Result<Ino, Self::Error> {
        Fs::symlink(self, directory, name, target, attributes)
    }

    fn read_link(&mut self, ino: Ino, out: &mut [u8]) -> Result<usize, Self::Error> {
        Fs::read_link(self, ino, out)
    }

    fn allocate(&mut self, ino: Ino, what: Allocation, offset: u64, size: u64) -> Result<(), Self::Error> {
        Fs::allocate(self, ino, what, offset, size)
    }

    fn get_xattr(&mut self, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize, Self::Error> {
        Fs::get_xattr(self, ino, name, out)
    }

    fn set_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<(), Self::Error> {
        Fs::set_xattr(self, ino, name, value, mode)
    }

    fn set_xattr_with(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
        set: SetAttributes,
    ) -> Result<(), Self::Error> {
        Fs::set_xattr_with(self, ino, name, value, mode, set)
    }

    fn remove_xattr_with(&mut self, ino: Ino, name: &[u8], set: SetAttributes) -> Result<(), Self::Error> {
        Fs::remove_xattr_with(self, ino, name, set)
    }

    fn create_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, Self::Error> {
        Fs::create_with(self, directory, name, attributes, xattrs)
    }

    fn mkdir_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, Self::Error> {
        Fs::mkdir_with(self, directory, name, attributes, xattrs)
    }

    fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<(), Self::Error> {
        Fs::remove_xattr(self, ino, name)
    }

    fn list_xattrs(&mut self, ino: Ino, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        Fs::list_xattrs(self, ino, visit)
    }
}
