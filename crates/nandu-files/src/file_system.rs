//! The trait.

use core::fmt;
use core::ops::ControlFlow;

use nandu_nand::Nand;

use crate::{
    Allocation, Attributes, Capabilities, DirEntry, Feature, FileError, FsStat, Ino, RenameMode, SetAttributes, Stat,
    Time, XattrMode,
};

/// A file system on a chip.
///
/// Directories and files are named by the numbers of their inodes; the root is [`Ino::ROOT`]. No permissions are checked: whoever calls does.
/// What an operation costs on flash, each system says of itself.
///
/// An operation that returned an error has not happened, but for the part of a write, a truncation or a deletion in steps that was done
/// already. What is durable when, and what a power cut may leave, is declared in [`Capabilities::cuts`].
///
/// Names are bytes without `/` and zero, neither empty nor `.` nor `..`, which [`FileSystem::lookup`] alone takes.
///
/// The methods with a body are of what a system may lack: they refuse with the error that its users expect.
pub trait FileSystem {
    /// What can go wrong.
    type Error: FileError;

    /// The chip that it stands on.
    type Chip: Nand;

    /// What it can do. Costs nothing.
    fn capabilities(&self) -> Capabilities;

    /// The chip, for looking at it.
    fn nand(&self) -> &Self::Chip;

    /// The chip, for its clock and its counters. Programming or erasing past the file system destroys it.
    fn nand_mut(&mut self) -> &mut Self::Chip;

    /// Makes everything durable and gives the chip back.
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::sync`].
    fn unmount(self) -> Result<Self::Chip, Self::Error>
    where
        Self: Sized;

    /// Gives the chip back as it is, as a power cut would leave it.
    fn abandon(self) -> Self::Chip
    where
        Self: Sized;

    /// Sets the time that changes from now on are stamped with.
    fn set_now(&mut self, now: Time);

    /// What a name in a directory leads to; `.` and `..` too.
    ///
    /// # Errors
    ///
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`.
    fn lookup(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, Self::Error>;

    /// Makes a file, or what the type in the mode says.
    ///
    /// # Errors
    ///
    /// `EEXIST`, `ENOTDIR`, `ENAMETOOLONG`, `ENOSPC`; `EINVAL` of a type that is a directory, a symbolic link or none, and of what is no name.
    fn create(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error>;

    /// Makes a directory.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::create`].
    fn mkdir(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error>;

    /// Removes a name that does not lead to a directory. With the last name goes the file, or when it is closed.
    ///
    /// # Errors
    ///
    /// `ENOENT`, `ENOTDIR`, `EISDIR`. Never `ENOSPC`.
    fn unlink(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error>;

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`. Never `ENOSPC`.
    fn rmdir(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error>;

    /// Gives what has a name another name, in the same directory or another, and replaces what has that.
    ///
    /// # Errors
    ///
    /// `ENOENT`; `EEXIST` with [`RenameMode::NoReplace`]; `EISDIR`, `ENOTDIR` and `ENOTEMPTY` of what is to be replaced; `EINVAL` where a directory
    /// would come below itself; `ENOSPC`.
    fn rename(
        &mut self,
        directory: Ino,
        name: &[u8],
        new_directory: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<(), Self::Error>;

    /// Copies what a file has from `offset` on and returns how many bytes: fewer than asked for at its end, none behind it.
    ///
    /// # Errors
    ///
    /// `EISDIR`; `EINVAL` of what is neither file nor directory.
    fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, Self::Error>;

    /// Writes bytes at an offset; the file grows as far as needed, and what lies between its old end and the offset reads as zeros.
    /// Returns how many bytes were written: fewer than given if there is room for no more.
    ///
    /// # Errors
    ///
    /// `EISDIR`; `EINVAL` of what is neither file nor directory; `EFBIG`; `ENOSPC` if not one byte was written.
    fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, Self::Error>;

    /// Writes bytes at the end of a file; returns the offset at which they stand. All of them or none are written.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::write_at`].
    fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, Self::Error>;

    /// Makes a file shorter, or longer by what reads as zeros.
    ///
    /// # Errors
    ///
    /// `EISDIR`; `EINVAL` of what is neither file nor directory; `EFBIG`.
    fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), Self::Error>;

    /// What is known of an inode.
    ///
    /// # Errors
    ///
    /// `ESTALE` if there is none of this number.
    fn stat(&mut self, ino: Ino) -> Result<Stat, Self::Error>;

    /// Changes modes, owners and times.
    ///
    /// # Errors
    ///
    /// `EINVAL` of a time with a billion nanoseconds or more, and of an owner above [`Capabilities::owner_max`]; `ENOSPC`.
    fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), Self::Error>;

    /// Visits the names of a directory, `.` and `..` first with the cookies 1 and 2, until `visit` breaks off. `cookie` is 0 to begin with, or the
    /// cookie of an entry, to go on behind that: names that were there all the time are visited once, whatever came and went meanwhile.
    ///
    /// # Errors
    ///
    /// `ENOTDIR`.
    fn read_dir(
        &mut self,
        directory: Ino,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// Keeps a file, directory or link there until it is closed as often as it was opened, whether it has a name or not, and its number what it is.
    ///
    /// # Errors
    ///
    /// `ENFILE`.
    fn open(&mut self, ino: Ino) -> Result<(), Self::Error>;

    /// Undoes an opening. What has no name any more goes with the last one.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn close(&mut self, ino: Ino) -> Result<(), Self::Error>;

    /// Makes a file or a directory durable, with its names and at least those made before.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if there is no room for what waits in memory.
    fn fsync(&mut self, ino: Ino) -> Result<(), Self::Error>;

    /// Makes everything durable.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::fsync`].
    fn sync(&mut self) -> Result<(), Self::Error>;

    /// How much room there is.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn statfs(&mut self) -> Result<FsStat, Self::Error>;

    /// Walks the whole volume, reports in words each invariant that does not hold, and returns how many. Changes nothing on the chip, but that what
    /// waits in memory may go there first. `scratch` is memory that may spare walks; it may be empty.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn check(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(&dyn fmt::Display)) -> Result<u64, Self::Error>;

    /// Makes everything durable and uses idle time for about so many pages of work, such as collecting garbage. Returns whether there is more to do.
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::sync`].
    fn idle(&mut self, _pages: u32) -> Result<bool, Self::Error> {
        self.sync()?;
        Ok(false)
    }

    /// The first byte of a file from `offset` on that is in no hole, or is in one, of which there is one at its end; `None` if there is none. A file
    /// system that does not know of holes has data everywhere.
    ///
    /// # Errors
    ///
    /// `EISDIR`; `EINVAL` of what is neither file nor directory.
    fn seek(&mut self, ino: Ino, offset: u64, wants_data: bool) -> Result<Option<u64>, Self::Error> {
        let size = self.stat(ino)?.size;
        Ok((offset < size).then_some(if wants_data { offset } else { size }))
    }

    /// Gives a file one more name.
    ///
    /// # Errors
    ///
    /// `EEXIST`, `ENOTDIR`, `ENAMETOOLONG`, `ENOSPC`; `EISDIR` of the inode; `EMLINK`.
    fn link(&mut self, _ino: Ino, _directory: Ino, _name: &[u8]) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::HardLinks))
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::create`]; `ENAMETOOLONG` of a target of more than 4,095 bytes.
    fn symlink(
        &mut self,
        _directory: Ino,
        _name: &[u8],
        _target: &[u8],
        _attributes: Attributes,
    ) -> Result<Ino, Self::Error> {
        Err(Self::Error::lacks(Feature::Symlinks))
    }

    /// Copies the target of a symbolic link and returns how many bytes it has.
    ///
    /// # Errors
    ///
    /// `EINVAL` of what is no symbolic link; `ERANGE`.
    fn read_link(&mut self, _ino: Ino, _out: &mut [u8]) -> Result<usize, Self::Error> {
        Err(Self::Error::lacks(Feature::Symlinks))
    }

    /// Changes what of a file is allocated, is a hole, or is zero.
    ///
    /// # Errors
    ///
    /// `EISDIR`, `EINVAL`, `EFBIG`, `ENOSPC`.
    fn allocate(&mut self, _ino: Ino, _what: Allocation, _offset: u64, _size: u64) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Allocation))
    }

    /// Copies the value of an extended attribute and returns how many bytes it has; with an empty buffer it is only measured.
    ///
    /// # Errors
    ///
    /// `ENODATA`, `ERANGE`.
    fn get_xattr(&mut self, _ino: Ino, _name: &[u8], _out: &mut [u8]) -> Result<usize, Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    ///
    /// `EEXIST` and `ENODATA` as the mode has it; `ENOSPC`.
    fn set_xattr(&mut self, _ino: Ino, _name: &[u8], _value: &[u8], _mode: XattrMode) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }

    /// Sets an extended attribute and changes its inode, both or, if this is cut, neither.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::set_xattr`] and [`FileSystem::set_attributes`].
    fn set_xattr_with(
        &mut self,
        _ino: Ino,
        _name: &[u8],
        _value: &[u8],
        _mode: XattrMode,
        _set: SetAttributes,
    ) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }

    /// Removes an extended attribute and changes its inode, both or, if this is cut, neither.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::remove_xattr`] and [`FileSystem::set_attributes`].
    fn remove_xattr_with(&mut self, _ino: Ino, _name: &[u8], _set: SetAttributes) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }

    /// Makes a file with extended attributes, each a name and a value: with all of them or, if this is cut, not at all.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::create`] and [`FileSystem::set_xattr`].
    fn create_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, Self::Error> {
        match xattrs {
            [] => self.create(directory, name, attributes),
            _ => Err(Self::Error::lacks(Feature::Xattrs)),
        }
    }

    /// Makes a directory so.
    ///
    /// # Errors
    ///
    /// As [`FileSystem::mkdir`] and [`FileSystem::set_xattr`].
    fn mkdir_with(
        &mut self,
        directory: Ino,
        name: &[u8],
        attributes: Attributes,
        xattrs: &[(&[u8], &[u8])],
    ) -> Result<Ino, Self::Error> {
        match xattrs {
            [] => self.mkdir(directory, name, attributes),
            _ => Err(Self::Error::lacks(Feature::Xattrs)),
        }
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    ///
    /// `ENODATA`.
    fn remove_xattr(&mut self, _ino: Ino, _name: &[u8]) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }

    /// Visits the names of the extended attributes of an inode.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn list_xattrs(&mut self, _ino: Ino, _visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        Err(Self::Error::lacks(Feature::Xattrs))
    }
}
