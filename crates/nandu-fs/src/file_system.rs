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

/// Methods that do what the ones of [`Fs`] with their names do.
macro_rules! as_fs {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&mut self, $($argument: $type),*) -> $result {
            Fs::$name(self, $($argument),*)
        })*
    };
}

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

    fn unmount(self) -> Result<N, Self::Error> {
        Fs::unmount(self)
    }

    fn abandon(self) -> N {
        Fs::abandon(self)
    }

    fn nand(&self) -> &N {
        Fs::nand(self)
    }

    fn set_now(&mut self, now: Time) {
        Fs::set_now(self, now);
    }

    fn check(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(&dyn fmt::Display)) -> Result<u64, Self::Error> {
        self.verify(scratch, &mut |violation| report(&violation))
    }

    fn seek(&mut self, ino: Ino, offset: u64, wants_data: bool) -> Result<Option<u64>, Self::Error> {
        let found = if wants_data { self.seek_data(ino, offset) } else { self.seek_hole(ino, offset) };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(FsError::NoMoreData) => Ok(None),
            Err(error) => Err(error),
        }
    }

    as_fs! {
        fn nand_mut() -> &mut N;
        fn lookup(directory: Ino, name: &[u8]) -> Result<Ino, Self::Error>;
        fn create(directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error>;
        fn mkdir(directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error>;
        fn unlink(directory: Ino, name: &[u8]) -> Result<(), Self::Error>;
        fn rmdir(directory: Ino, name: &[u8]) -> Result<(), Self::Error>;
        fn rename(
            directory: Ino, name: &[u8], new_directory: Ino, new_name: &[u8], mode: RenameMode
        ) -> Result<(), Self::Error>;
        fn read_at(ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, Self::Error>;
        fn write_at(ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, Self::Error>;
        fn append(ino: Ino, bytes: &[u8]) -> Result<u64, Self::Error>;
        fn truncate(ino: Ino, size: u64) -> Result<(), Self::Error>;
        fn stat(ino: Ino) -> Result<Stat, Self::Error>;
        fn set_attributes(ino: Ino, set: SetAttributes) -> Result<(), Self::Error>;
        fn read_dir(
            directory: Ino, cookie: u64, visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>
        ) -> Result<(), Self::Error>;
        fn open(ino: Ino) -> Result<(), Self::Error>;
        fn close(ino: Ino) -> Result<(), Self::Error>;
        fn fsync(ino: Ino) -> Result<(), Self::Error>;
        fn sync() -> Result<(), Self::Error>;
        fn statfs() -> Result<FsStat, Self::Error>;
        fn idle(pages: u32) -> Result<bool, Self::Error>;
        fn link(ino: Ino, directory: Ino, name: &[u8]) -> Result<(), Self::Error>;
        fn symlink(directory: Ino, name: &[u8], target: &[u8], attributes: Attributes) -> Result<Ino, Self::Error>;
        fn read_link(ino: Ino, out: &mut [u8]) -> Result<usize, Self::Error>;
        fn allocate(ino: Ino, what: Allocation, offset: u64, size: u64) -> Result<(), Self::Error>;
        fn get_xattr(ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize, Self::Error>;
        fn set_xattr(ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<(), Self::Error>;
        fn set_xattr_with(
            ino: Ino, name: &[u8], value: &[u8], mode: XattrMode, set: SetAttributes
        ) -> Result<(), Self::Error>;
        fn remove_xattr_with(ino: Ino, name: &[u8], set: SetAttributes) -> Result<(), Self::Error>;
        fn create_with(
            directory: Ino, name: &[u8], attributes: Attributes, xattrs: &[(&[u8], &[u8])]
        ) -> Result<Ino, Self::Error>;
        fn mkdir_with(
            directory: Ino, name: &[u8], attributes: Attributes, xattrs: &[(&[u8], &[u8])]
        ) -> Result<Ino, Self::Error>;
        fn remove_xattr(ino: Ino, name: &[u8]) -> Result<(), Self::Error>;
        fn list_xattrs(ino: Ino, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;
    }
}
