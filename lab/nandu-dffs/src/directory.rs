//! Names: looking up, making, removing.

use nandu_media::dffs::{self as media, Fields, Kind, NEXT_AT, POINTER_BASE, PREVIOUS_AT};
use nandu_nand::{Cause, Nand, PageAddr};

use crate::blocks::Area;
use crate::chain::{Fold, Found};
use crate::dffs::{Dffs, ROOT, Result};
use crate::error::Error;
use crate::hash::Place;
use crate::node::{Changes, Directory, File, Node, Permissions, Stat};
use crate::pages::{CHAIN, NODE};
use crate::room::Demand;

/// Kinds in a mode, as in POSIX.
const MODE_DIRECTORY: u16 = 0o040_000;
const MODE_FILE: u16 = 0o100_000;

impl<N: Nand> Dffs<'_, N> {
    /// The root.
    pub fn root(&self) -> Directory {
        Directory { number: ROOT, generation: 0 }
    }

    pub(crate) fn check_name(name: &[u8]) -> Result<(), N> {
        match name {
            b"" | b"." | b".." => Err(Error::Invalid),
            _ if name.len() > 255 => Err(Error::NameTooLong(name.len())),
            _ if name.contains(&b'/') || name.contains(&0) => Err(Error::Invalid),
            _ => Ok(()),
        }
    }

    /// What a name leads to. Costs a read for the directory's page and one for the inode where no hashes collide, fewer where pages are
    /// still in memory.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NameTooLong`], [`Error::Corrupt`], [`Error::Nand`].
    pub fn lookup(&mut self, directory: Directory, name: &[u8]) -> Result<Node, N> {
        if name.len() > 255 {
            return Err(Error::NameTooLong(name.len()));
        }
        let before = self.nand.attribute(Cause::Lookup);
        let found = self.find_in(directory.number, Some(directory.generation), name);
        self.nand.attribute(before);
        let found = found?.ok_or(Error::NotFound)?;
        Ok(Node::of(&found.fields, directory.number, found.place))
    }

    /// The directory that holds a directory; the root is its own. Costs a read at most.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for one that was removed, [`Error::Corrupt`], [`Error::Nand`].
    pub fn parent(&mut self, directory: Directory) -> Result<Directory, N> {
        let number = self.number_of(directory)?;
        let above = self.load_head(number)?.parent;
        Ok(Directory::of(&self.load_head(above)?))
    }

    /// The logical number of a directory that is still there. Costs a read at most.
    pub(crate) fn number_of(&mut self, directory: Directory) -> Result<u32, N> {
        let fields = self.load_head(directory.number)?;
        if fields.size == directory.generation { Ok(directory.number) } else { Err(Error::Gone) }
    }

    /// Loads the inode of a directory into [`CHAIN`].
    pub(crate) fn load_head(&mut self, id: u32) -> Result<Fields, N> {
        let fields = self.load_chain(id, CHAIN)?;
        if fields.kind == Kind::Directory { Ok(fields) } else { Err(Error::NotFound) }
    }

    /// Makes a file. Costs two programs, its inode and its directory's page; three where every page of the chain has the bucket in use. When
    /// this returns, a power cut does not take the file away; before, it is there or not.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`], [`Error::NotFound`] for a directory that is gone, [`Error::NameTooLong`], [`Error::Invalid`], [`Error::Full`],
    /// [`Error::TooManyDirectories`], [`Error::Corrupt`], [`Error::Nand`].
    pub fn create(&mut self, directory: Directory, name: &[u8], permissions: Permissions) -> Result<File, N> {
        Self::check_name(name)?;
        self.change(|fs| {
            let directory = fs.number_of(directory)?;
            let place = fs.prepare_name(directory, name, 0)?;
            let number = fs.number;
            fs.number = fs.number.checked_add(1).ok_or(Error::Full)?;
            fs.new_inode(Kind::File, number, directory, name, permissions)?;
            let page = fs.append(Area::File, NODE)?;
            fs.insert(directory, place, page.0 + POINTER_BASE)?;
            Ok(File::at(directory, number, place))
        })
    }

    /// Makes a directory. Costs two programs, its page and its parent's; three as [`create`](Dffs::create) does. Wholly or not at all, as that.
    ///
    /// # Errors
    ///
    /// As [`create`](Dffs::create).
    pub fn mkdir(&mut self, directory: Directory, name: &[u8], permissions: Permissions) -> Result<Directory, N> {
        Self::check_name(name)?;
        self.change(|fs| {
            let directory = fs.number_of(directory)?;
            let place = fs.prepare_name(directory, name, 1)?;
            let id = fs.free_logical()?;
            if crate::options::broken!(fs, parent_before_directory) {
                fs.set_mapped(id, PageAddr(1));
                fs.insert(directory, place, id)?;
                fs.set_mapped(id, PageAddr(0));
            }
            fs.new_inode(Kind::Directory, id, directory, name, permissions)?;
            let made = Directory::of(&fs.fields(NODE)?);
            // O1: the inode first. Cut after it, no bucket leads to it, and recovery takes its number back. The other way round a name
            // would lead to a number without a page.
            fs.program_chain(NODE, Fold::None)?;
            if !crate::options::broken!(fs, parent_before_directory) {
                fs.insert(directory, place, id)?;
            }
            Ok(made)
        })
    }

    /// Checks that a name is free and makes room for it and for so many logical numbers.
    fn prepare_name(&mut self, directory: u32, name: &[u8], logical: usize) -> Result<Place, N> {
        self.load_head(directory)?;
        if self.find(directory, name)?.is_some() {
            return Err(Error::Exists);
        }
        let place = self.place_of(name);
        let is_new_page = !self.has_bucket(directory, place.bucket)?;
        self.need_logical(logical + usize::from(is_new_page))?;
        self.prepare(Demand::More)?;
        Ok(place)
    }

    /// Writes a new inode into [`NODE`].
    fn new_inode(&mut self, kind: Kind, id: u32, parent: u32, name: &[u8], permissions: Permissions) -> Result<(), N> {
        let kind_bits = if kind == Kind::File { MODE_FILE } else { MODE_DIRECTORY };
        let fields = Fields {
            id,
            parent,
            mode: kind_bits | (permissions.mode & 0o7777),
            uid: permissions.uid,
            gid: permissions.gid,
            atime: self.now,
            mtime: self.now,
            ctime: self.now,
            // No other directory with this number has the same, since no sequence comes again.
            size: if kind == Kind::Directory && id != ROOT { self.sequence as u32 } else { 0 },
            ..Fields::new(kind)
        };
        self.pages.get_mut(NODE).fill(0);
        self.set_fields(NODE, &fields);
        media::set_name(self.pages.get_mut(NODE), name);
        Ok(())
    }

    /// Writes the root of a new volume.
    pub(crate) fn write_root(&mut self) -> Result<(), N> {
        let permissions = Permissions { mode: 0o755, uid: 0, gid: 0 };
        self.new_inode(Kind::Directory, ROOT, ROOT, b"", permissions)?;
        self.program_chain(NODE, Fold::None)
    }

    /// Removes a file. Costs one program, two where another entry of its bucket fills the hole. When this returns, a power cut does not bring the file back; before, it is there or not.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::IsDirectory`], [`Error::Corrupt`], [`Error::Nand`]; [`Error::Full`] only where the reserve is used up.
    pub fn unlink(&mut self, directory: Directory, name: &[u8]) -> Result<(), N> {
        self.change(|fs| {
            let directory = fs.number_of(directory)?;
            let found = fs.find(directory, name)?.ok_or(Error::NotFound)?;
            if found.fields.kind == Kind::Directory {
                return Err(Error::IsDirectory);
            }
            fs.prepare(Demand::Less)?;
            // Making room may have moved it.
            let found = fs.find(directory, name)?.ok_or(Error::NotFound)?;
            fs.remove(directory, found.place, found.pointer)?;
            fs.bury(&found)
        })
    }

    /// Counts an inode and all that it has as dead, after no bucket leads to it any more. The content of a file that is open stays.
    pub(crate) fn bury(&mut self, found: &Found) -> Result<(), N> {
        self.lags.remove(found.pointer.saturating_sub(POINTER_BASE));
        self.lose(found.page);
        match self.slot_at(found.page) {
            Some(slot) if self.slots[slot].opens > 0 => self.make_orphan(slot),
            Some(slot) => self.bury_orphan(slot),
            None => {
                self.load(found.page, NODE)?;
                for index in 0..self.pointer_count {
                    let page = PageAddr(self.word(NODE, media::FRONT_SIZE + index * 4));
                    self.lose(page);
                }
            }
        }
        Ok(())
    }

    /// Removes an empty directory. Costs as [`unlink`](Dffs::unlink), and is as durable.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NotEmpty`], and those of [`unlink`](Dffs::unlink).
    pub fn rmdir(&mut self, directory: Directory, name: &[u8]) -> Result<(), N> {
        self.change(|fs| {
            let directory = fs.number_of(directory)?;
            let found = fs.find(directory, name)?.ok_or(Error::NotFound)?;
            if found.fields.kind != Kind::Directory {
                return Err(Error::NotDirectory);
            }
            fs.expect_empty()?;
            fs.prepare(Demand::Less)?;
            fs.remove(directory, found.place, found.pointer)?;
            fs.release(found.pointer);
            Ok(())
        })
    }

    /// The directory in [`NODE`] is to have no entries.
    pub(crate) fn expect_empty(&mut self) -> Result<(), N> {
        let fields = self.fields(NODE)?;
        // Pages without entries leave the chain, so further pages mean entries.
        if fields.used == 0 && self.word(NODE, NEXT_AT) == 0 { Ok(()) } else { Err(Error::NotEmpty) }
    }

    /// What is known of a directory or a file. Costs as a [`lookup`](Dffs::lookup) at most.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for what is gone or has another name, [`Error::Corrupt`], [`Error::Nand`].
    pub fn stat(&mut self, node: Node) -> Result<Stat, N> {
        match node {
            Node::Directory(directory) => {
                let number = self.number_of(directory)?;
                let fields = self.load_head(number)?;
                let size = self.page_size() as u64;
                Ok(Self::stat_of(&fields, size, 0))
            }
            Node::File(file) => {
                let frame = match self.find_slot(file.number) {
                    Some(slot) => self.inode_frame(slot),
                    None => {
                        let found = self.find_number(file.directory, file.bucket, Some(file.second), file.number)?;
                        found.ok_or(Error::NotFound)?;
                        NODE
                    }
                };
                let fields = self.fields(frame)?;
                let is_page = |index: &usize| self.word(frame, media::FRONT_SIZE + index * 4) != 0;
                let pages = (0..self.pointer_count).filter(is_page).count();
                Ok(Self::stat_of(&fields, u64::from(fields.size), pages as u32))
            }
        }
    }

    fn stat_of(fields: &Fields, size: u64, pages: u32) -> Stat {
        Stat {
            number: fields.id,
            is_directory: fields.kind == Kind::Directory,
            mode: fields.mode & 0o7777,
            uid: fields.uid,
            gid: fields.gid,
            size,
            pages,
            nlink: fields.nlink,
            atime: fields.atime,
            mtime: fields.mtime,
            ctime: fields.ctime,
        }
    }

    /// Changes permissions, owner or times. A directory's page is programmed at once; a file's inode with the next
    /// [`fsync`](Dffs::fsync) or [`sync`](Dffs::sync).
    ///
    /// # Errors
    ///
    /// As [`stat`](Dffs::stat), and [`Error::Full`].
    pub fn set_attributes(&mut self, node: Node, changes: Changes) -> Result<(), N> {
        self.change(|fs| {
            fs.prepare(Demand::Less)?;
            let frame = match node {
                Node::Directory(directory) => {
                    fs.number_of(directory)?;
                    CHAIN
                }
                Node::File(file) => {
                    let slot = fs.slot_of(file)?;
                    fs.note_changed(slot);
                    fs.inode_frame(slot)
                }
            };
            let mut fields = fs.fields(frame)?;
            if let Some(mode) = changes.mode {
                fields.mode = (fields.mode & !0o7777) | (mode & 0o7777);
            }
            (fields.uid, fields.gid) = (changes.uid.unwrap_or(fields.uid), changes.gid.unwrap_or(fields.gid));
            fields.atime = changes.atime.unwrap_or(fields.atime);
            fields.mtime = changes.mtime.unwrap_or(fields.mtime);
            fields.ctime = fs.now;
            fields.flags &= !media::FLAG_RENAMED;
            fs.set_fields(frame, &fields);
            if matches!(node, Node::Directory(_)) {
                fs.set_word(frame, PREVIOUS_AT, 0);
                fs.program_chain(frame, Fold::All)?;
            }
            Ok(())
        })
    }
}
