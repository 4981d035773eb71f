//! What any file system can do, as this one does it.
//!
//! The number of a file says where its name belongs, since DFFS finds an inode by that alone: its directory, bucket and second hash stand in it
//! beside the number that the file has for life. So it is another after a rename, but for a file that is open, which is known by the number that
//! it was opened with.
//!
//! ```text
//! bits from the highest on  15  logical number of the directory
//!                            k  bucket, as many as the buckets of a page take
//!                            8  second hash
//!                     the rest  number of the file, less 65,536
//! ```
//!
//! A directory's number is its logical number, 16 bits, behind 32 bits of its generation: whoever holds the number of one that is gone does not
//! meet another that has its logical number.

use core::fmt;
use core::ops::ControlFlow;

use nandu_files::{
    Attributes, Capabilities, Cuts, DirEntry, Feature, FileError, FileKind, FileSystem, FsStat, Ino, Order, RenameMode,
    SetAttributes, Time, errno,
};
use nandu_nand::Nand;

use crate::blocks::Area;
use crate::dffs::{Dffs, NUMBER_MIN};
use crate::error::Error;
use crate::node::{Changes, Directory, File, Node, Permissions};
use crate::stats::BlockUse;

/// Bits of the logical number of a directory.
const DIRECTORY_BITS: u32 = 15;

/// Bits of the logical number where a directory is meant.
const DIRECTORY_NUMBER_BITS: u32 = 16;

/// Bits of a second hash.
const SECOND_BITS: u32 = 8;

/// Cookies of `.` and `..`, which stand before those of names.
const DOT_COOKIES: u64 = 2;

/// Bit of a directory's mode: what is made in it gets its group.
const SET_GID: u32 = 0o2000;

/// Names are programmed before a call returns, in order. A file's inode is with its fsync, when its place in memory is needed, or at a checkpoint.
const CUTS: Cuts = Cuts {
    order: Order::Names,
    create_is_durable: true,
    mkdir_is_durable: true,
    removal_is_durable: true,
    rename_is_durable: true,
    links_are_durable: false,
};

impl<E: core::error::Error + 'static> FileError for Error<E> {
    fn errno(&self) -> i32 {
        match self {
            Error::Nand(_) | Error::Poisoned => errno::EIO,
            Error::Corrupt { .. } => errno::EUCLEAN,
            Error::Full | Error::TooManyDirectories => errno::ENOSPC,
            Error::ReadOnly => errno::EROFS,
            Error::NotFound => errno::ENOENT,
            Error::Gone => errno::ESTALE,
            Error::Exists => errno::EEXIST,
            Error::NotDirectory => errno::ENOTDIR,
            Error::IsDirectory => errno::EISDIR,
            Error::NotEmpty => errno::ENOTEMPTY,
            Error::NameTooLong(_) => errno::ENAMETOOLONG,
            Error::FileTooLarge { .. } => errno::EFBIG,
            Error::TooManyOpen => errno::ENFILE,
            Error::Unsupported(feature) => feature.errno(),
            Error::Memory { .. } => errno::ENOMEM,
            Error::Invalid
            | Error::NotFormatted
            | Error::WrongFormat { .. }
            | Error::Unsuitable { .. }
            | Error::Geometry(_) => errno::EINVAL,
        }
    }

    fn lacks(feature: Feature) -> Self {
        Error::Unsupported(feature)
    }
}

/// A file that a caller still holds is gone, or has another name.
fn gone<E: core::error::Error + 'static>(error: Error<E>) -> Error<E> {
    if matches!(error, Error::NotFound) { Error::Gone } else { error }
}

/// A number of a user or group.
fn owner<E: core::error::Error + 'static>(number: u32) -> Result<u16, Error<E>> {
    u16::try_from(number).map_err(|_| Error::Invalid)
}

/// A time in seconds, the nearest that there is.
fn seconds<E: core::error::Error + 'static>(time: Time) -> Result<u32, Error<E>> {
    if time.nanoseconds >= 1_000_000_000 {
        return Err(Error::Invalid);
    }
    Ok(time.seconds.clamp(0, u32::MAX.into()) as u32)
}

/// How the number of a file is put together on pages with so many buckets.
#[derive(Clone, Copy)]
struct Packing {
    bucket_bits: u32,
}

impl Packing {
    fn new(bucket_count: usize) -> Packing {
        Packing { bucket_bits: usize::BITS - bucket_count.leading_zeros() }
    }

    /// Bits of a file's own number.
    fn number_bits(self) -> u32 {
        u64::BITS - DIRECTORY_BITS - SECOND_BITS - self.bucket_bits
    }

    fn pack(self, node: Node) -> Ino {
        let file = match node {
            Node::Directory(Directory { number, generation }) => {
                return Ino(u64::from(generation) << DIRECTORY_NUMBER_BITS | u64::from(number));
            }
            Node::File(file) => file,
        };
        let upper = u64::from(file.directory) << self.bucket_bits | u64::from(file.bucket);
        // No volume lives so long that numbers have more bits than that.
        let number = u64::from(file.number.saturating_sub(NUMBER_MIN)) & ((1 << self.number_bits()) - 1);
        Ino((upper << SECOND_BITS | u64::from(file.second)) << self.number_bits() | number)
    }

    fn unpack(self, ino: Ino) -> Node {
        // A file's directory is at least the root, in the highest bits.
        if ino.0 >> (u64::BITS - DIRECTORY_BITS) == 0 {
            let number = (ino.0 & ((1 << DIRECTORY_NUMBER_BITS) - 1)) as u32;
            return Node::Directory(Directory { number, generation: (ino.0 >> DIRECTORY_NUMBER_BITS) as u32 });
        }
        let number = (ino.0 & ((1 << self.number_bits()) - 1)) as u32;
        let upper = ino.0 >> self.number_bits();
        let (second, upper) = (upper as u8, upper >> SECOND_BITS);
        let bucket = (upper & ((1 << self.bucket_bits) - 1)) as u16;
        let directory = (upper >> self.bucket_bits) as u32;
        Node::File(File { directory, number: number.saturating_add(NUMBER_MIN), bucket, second })
    }
}

impl<N: Nand> Dffs<'_, N> {
    fn packing(&self) -> Packing {
        Packing::new(self.bucket_count)
    }

    /// The number of what a name leads to.
    fn ino_of(&self, node: Node) -> Ino {
        let open = match node {
            Node::File(file) => self.find_slot(file.number).map_or(0, |slot| self.slots[slot].handle),
            Node::Directory(_) => 0,
        };
        if open != 0 { Ino(open) } else { self.packing().pack(node) }
    }

    /// What a number leads to.
    fn node_of(&self, ino: Ino) -> Node {
        match self.slots.iter().find(|slot| slot.number != 0 && slot.handle == ino.0 && ino.0 != 0) {
            Some(slot) => {
                let (directory, number) = (slot.directory, slot.number);
                Node::File(File { directory, number, bucket: slot.bucket, second: slot.second })
            }
            None => self.packing().unpack(ino),
        }
    }

    /// A directory that a caller names.
    fn directory_of(&self, ino: Ino) -> Result<Directory, Error<N::Error>> {
        match self.node_of(ino) {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(Error::NotDirectory),
        }
    }

    /// A file that a caller names.
    fn file_of(&self, ino: Ino) -> Result<File, Error<N::Error>> {
        match self.node_of(ino) {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(Error::IsDirectory),
        }
    }

    /// Permissions of what is made in a directory, which may give it its group.
    fn permissions(
        &mut self,
        directory: Directory,
        attributes: Attributes,
        is_directory: bool,
    ) -> Result<Permissions, Error<N::Error>> {
        let above = Dffs::stat(self, Node::Directory(directory))?;
        let mut mode = (attributes.mode & 0o7777) as u16;
        let (uid, mut gid) = (owner(attributes.uid)?, owner(attributes.gid)?);
        if u32::from(above.mode) & SET_GID != 0 {
            gid = above.gid;
            mode |= if is_directory { SET_GID as u16 } else { 0 };
        }
        Ok(Permissions { mode, uid, gid })
    }

    /// Whether the volume was not left in order before this mount.
    pub fn was_cut(&self) -> bool {
        self.stats().was_cut
    }

    /// Blocks that are not used.
    pub fn bad_blocks(&self) -> u32 {
        self.blocks().filter(|BlockUse { area, .. }| *area == Area::Bad).count() as u32
    }
}

impl<N: Nand> FileSystem for Dffs<'_, N> {
    type Error = Error<N::Error>;
    type Chip = N;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hard_links: false,
            symlinks: false,
            special_files: false,
            xattrs: false,
            allocation: false,
            exchange: false,
            sparse: true,
            file_size_max: self.file_size_max(),
            name_size_max: 255,
            owner_max: u16::MAX.into(),
            seconds: (0, u32::MAX.into()),
            nanoseconds: false,
            birth_times: false,
            counted_names: false,
            directory_times: false,
            lasting_numbers: false,
            cuts: CUTS,
        }
    }

    fn nand(&self) -> &N {
        Dffs::nand(self)
    }

    fn nand_mut(&mut self) -> &mut N {
        Dffs::nand_mut(self)
    }

    fn unmount(self) -> Result<N, Self::Error> {
        Dffs::unmount(self)
    }

    fn abandon(self) -> N {
        Dffs::abandon(self)
    }

    fn set_now(&mut self, now: Time) {
        self.set_time(now.seconds.clamp(0, u32::MAX.into()) as u32);
    }

    fn lookup(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, Self::Error> {
        let directory = self.directory_of(directory)?;
        match name {
            b"." => Ok(self.ino_of(Node::Directory(directory))),
            b".." => {
                let above = self.parent(directory).map_err(gone)?;
                Ok(self.ino_of(Node::Directory(above)))
            }
            _ => {
                let node = Dffs::lookup(self, directory, name)?;
                Ok(self.ino_of(node))
            }
        }
    }

    fn create(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error> {
        let directory = self.directory_of(directory)?;
        match FileKind::of_mode(attributes.mode) {
            Some(FileKind::File) => {}
            None if attributes.mode & FileKind::MASK == 0 => {}
            None | Some(FileKind::Directory | FileKind::Symlink) => return Err(Error::Invalid),
            Some(_) => return Err(Error::Unsupported(Feature::SpecialFiles)),
        }
        Self::check_name(name)?;
        let permissions = self.permissions(directory, attributes, false)?;
        let file = Dffs::create(self, directory, name, permissions)?;
        Ok(self.ino_of(Node::File(file)))
    }

    fn mkdir(&mut self, directory: Ino, name: &[u8], attributes: Attributes) -> Result<Ino, Self::Error> {
        let directory = self.directory_of(directory)?;
        Self::check_name(name)?;
        let permissions = self.permissions(directory, attributes, true)?;
        let made = Dffs::mkdir(self, directory, name, permissions)?;
        Ok(self.ino_of(Node::Directory(made)))
    }

    fn unlink(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error> {
        let directory = self.directory_of(directory)?;
        Self::check_name(name)?;
        Dffs::unlink(self, directory, name)
    }

    fn rmdir(&mut self, directory: Ino, name: &[u8]) -> Result<(), Self::Error> {
        let directory = self.directory_of(directory)?;
        Self::check_name(name)?;
        Dffs::rmdir(self, directory, name)
    }

    fn rename(
        &mut self,
        directory: Ino,
        name: &[u8],
        new_directory: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<(), Self::Error> {
        if mode == RenameMode::Exchange {
            return Err(Error::Unsupported(Feature::Exchange));
        }
        let (directory, new_directory) = (self.directory_of(directory)?, self.directory_of(new_directory)?);
        let may_replace = mode == RenameMode::Replace;
        Dffs::rename(self, directory, name, new_directory, new_name, may_replace).map(|_| ())
    }

    fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, Self::Error> {
        let file = self.file_of(ino)?;
        self.read(file, offset, out).map_err(gone)
    }

    fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, Self::Error> {
        let file = self.file_of(ino)?;
        self.write(file, offset, bytes).map_err(gone)
    }

    fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, Self::Error> {
        let file = self.file_of(ino)?;
        let offset = Dffs::stat(self, Node::File(file)).map_err(gone)?.size;
        if self.write(file, offset, bytes).map_err(gone)? == bytes.len() {
            return Ok(offset);
        }
        Dffs::truncate(self, file, offset)?;
        // Some of it may be durable by now, and whoever was told that there is no room must not find it after a cut.
        Dffs::fsync(self, file)?;
        Err(Error::Full)
    }

    fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), Self::Error> {
        let file = self.file_of(ino)?;
        Dffs::truncate(self, file, size).map_err(gone)
    }

    fn stat(&mut self, ino: Ino) -> Result<nandu_files::Stat, Self::Error> {
        let node = self.node_of(ino);
        let stat = Dffs::stat(self, node).map_err(gone)?;
        let is_orphan = self.find_slot(node.number()).is_some_and(|slot| self.slots[slot].is_orphan());
        let page_size = self.page_size() as u32;
        let kind = if stat.is_directory { FileKind::Directory } else { FileKind::File };
        let time = |seconds: u32| Time::from_seconds(seconds.into());
        Ok(nandu_files::Stat {
            ino,
            kind,
            mode: kind.mode() | u32::from(stat.mode),
            uid: stat.uid.into(),
            gid: stat.gid.into(),
            nlink: if is_orphan { 0 } else { stat.nlink.into() },
            size: stat.size,
            allocated_size: u64::from(stat.pages) * u64::from(page_size),
            block_size: page_size,
            rdev: 0,
            atime: time(stat.atime),
            mtime: time(stat.mtime),
            ctime: time(stat.ctime),
            btime: time(stat.ctime),
        })
    }

    fn set_attributes(&mut self, ino: Ino, set: SetAttributes) -> Result<(), Self::Error> {
        let changes = Changes {
            mode: set.mode.map(|mode| (mode & 0o7777) as u16),
            uid: set.uid.map(owner).transpose()?,
            gid: set.gid.map(owner).transpose()?,
            atime: set.atime.map(seconds).transpose()?,
            mtime: set.mtime.map(seconds).transpose()?,
        };
        Dffs::set_attributes(self, self.node_of(ino), changes).map_err(gone)
    }

    fn read_dir(
        &mut self,
        directory: Ino,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        let directory = self.directory_of(directory)?;
        let parent = self.parent(directory).map_err(gone)?;
        for (name, node, after) in [(&b"."[..], directory, 1), (&b".."[..], parent, DOT_COOKIES)] {
            let ino = self.packing().pack(Node::Directory(node));
            if cookie < after && visit(DirEntry { name, ino, kind: FileKind::Directory, cookie: after }).is_break() {
                return Ok(());
            }
        }
        let packing = self.packing();
        Dffs::read_dir(self, directory, cookie.saturating_sub(DOT_COOKIES), &mut |entry| {
            let kind = match entry.node {
                Node::Directory(_) => FileKind::Directory,
                Node::File(_) => FileKind::File,
            };
            let (ino, cookie) = (packing.pack(entry.node), entry.cookie + DOT_COOKIES);
            visit(DirEntry { name: entry.name, ino, kind, cookie })
        })
        .map_err(gone)
    }

    fn open(&mut self, ino: Ino) -> Result<(), Self::Error> {
        match self.node_of(ino) {
            Node::Directory(directory) => self.number_of(directory).map(|_| ()).map_err(gone),
            Node::File(file) => {
                Dffs::open(self, file).map_err(gone)?;
                if let Some(slot) = self.find_slot(file.number) {
                    self.slots[slot].handle = ino.0;
                }
                Ok(())
            }
        }
    }

    fn close(&mut self, ino: Ino) -> Result<(), Self::Error> {
        match self.node_of(ino) {
            Node::Directory(_) => Ok(()),
            Node::File(file) => Dffs::close(self, file),
        }
    }

    fn fsync(&mut self, ino: Ino) -> Result<(), Self::Error> {
        match self.node_of(ino) {
            // What is in a directory is durable already.
            Node::Directory(directory) => self.number_of(directory).map(|_| ()).map_err(gone),
            Node::File(file) => Dffs::fsync(self, file).map_err(gone),
        }
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Dffs::sync(self)
    }

    fn idle(&mut self, _pages: u32) -> Result<bool, Self::Error> {
        Dffs::sync(self)?;
        Ok(false)
    }

    fn statfs(&mut self) -> Result<FsStat, Self::Error> {
        let space = self.space();
        let free = space.pages.saturating_sub(space.used);
        Ok(FsStat {
            block_size: self.page_size() as u32,
            blocks: space.pages,
            blocks_free: free,
            blocks_available: free,
            files_free: free,
            name_size_max: 255,
        })
    }

    fn check(&mut self, _scratch: &mut [u8], report: &mut dyn FnMut(&dyn fmt::Display)) -> Result<u64, Self::Error> {
        self.verify(&mut |violation| report(&violation))
    }
}

#[cfg(test)]
mod tests {
    use super::Packing;
    use crate::dffs::NUMBER_MIN;
    use crate::node::{Directory, File, Node};

    #[test]
    fn a_number_says_where_the_name_belongs_on_pages_of_every_size() {
        for bucket_count in [37, 347, 751, 3209] {
            let packing = Packing::new(bucket_count);
            assert!(packing.number_bits() >= 29, "{bucket_count}");
            let file = File {
                directory: 32_767,
                number: NUMBER_MIN + (1 << 28),
                bucket: bucket_count as u16 - 1,
                second: 255,
            };
            let directory = |number, generation| Node::Directory(Directory { number, generation });
            for node in [
                Node::File(file),
                Node::File(File { directory: 1, ..file }),
                directory(1, 0),
                directory(32_767, u32::MAX),
            ] {
                assert_eq!(packing.unpack(packing.pack(node)), node);
            }
        }
    }
}
