//! Directories: names by hash.
//!
//! FORMAT: Names in directories
//!
//! A name is a record of its directory. Its place is the upper 40 bits of its hash (SipHash-2-4 of its bytes with the volume's key, whose halves have their low
//! byte first) and a probe, the lowest that was free when it came; it never changes. So a lower probe may be free again, and who looks for a name looks at all of its hash. So a directory of any size is looked up in one descent, and a
//! cookie of a listing stays good whatever comes and goes.
//!
//! ```text
//! field  bytes     meaning
//! kind   1         type of what the name leads to, as the upper four bits of a mode
//! inode  variable  its number, as numbers are in inodes
//! name   the rest  1 to 255 bytes, without zeros and slashes
//! ```

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;
use siphasher::sip::SipHasher24;

use crate::batch::Batch;
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::{put_number, take_number};
use crate::keys::{INO_END, Key, Meaning};
use crate::{DirEntry, FileKind, FsError, Ino};

/// Most bytes of a name, where pages are large enough.
pub(crate) const NAME_SIZE_MAX: usize = 255;

/// Bytes of a name's record besides the name.
const HEAD_SIZE: usize = 8;

/// Bytes of a name's key.
const NAME_KEY_SIZE: usize = 13;

/// A name that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundName {
    pub(crate) position: u64,
    pub(crate) ino: Ino,
}

/// Where a name is, or where it can be put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    Found(FoundName),
    /// The position, if one is free.
    Free(Option<u64>),
}

/// What a name's record says; `None` if it is none.
pub(crate) fn parse(value: &[u8]) -> Option<(FileKind, Ino, &[u8])> {
    let (&kind, mut rest) = value.split_first()?;
    let kind = FileKind::of_number(kind)?;
    let ino = take_number(&mut rest).filter(|ino| (1..INO_END).contains(ino))?;
    let is_name =
        !rest.is_empty() && rest.len() <= NAME_SIZE_MAX && !rest.iter().any(|&byte| byte == 0 || byte == b'/');
    (is_name && rest != b"." && rest != b"..").then_some((kind, Ino(ino), rest))
}

impl<N: Nand> Fs<'_, N> {
    /// Bytes that a name may have: 255 on pages of 2 KiB and more.
    pub fn name_size_max(&self) -> usize {
        self.tree.entry_size_max().saturating_sub(NAME_KEY_SIZE + HEAD_SIZE).min(NAME_SIZE_MAX)
    }

    /// What a name in a directory leads to; `.` and `..` too. Reads the leaf that the name is in.
    ///
    /// # Errors
    ///
    /// [`FsError::NotFound`]; [`FsError::NoInode`] and [`FsError::NotDirectory`] of the directory; [`FsError::Name`] and
    /// [`FsError::NameSize`].
    pub fn lookup(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, FsError<N::Error>> {
        let inode = self.directory(directory)?;
        match name {
            b"." => return Ok(directory),
            b".." => return Ok(Ino(inode.parent)),
            _ => self.check_name(name)?,
        }
        Ok(self.found(directory, name)?.ino)
    }

    /// Visits the names of a directory, `.` and `..` first, until `visit` breaks off. `cookie` is 0 to begin with, or the cookie of
    /// an entry, to go on behind that: names that were there all the time are visited once, whatever came and went meanwhile.
    /// Reads each leaf concerned once.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`] and [`FsError::NotDirectory`]; [`FsError::Corrupt`].
    pub fn read_dir(
        &mut self,
        directory: Ino,
        cookie: u64,
        mut visit: impl FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), FsError<N::Error>> {
        let inode = self.directory(directory)?;
        let dots = [(&b"."[..], directory, 1), (&b".."[..], Ino(inode.parent), 2)];
        for (name, ino, after) in dots {
            if cookie < after && visit(DirEntry { name, ino, kind: FileKind::Directory, cookie: after }).is_break() {
                return Ok(());
            }
        }
        let first = cookie.saturating_sub(2);
        if first >> 48 != 0 {
            return Ok(());
        }
        self.visit_names(directory, first, &mut visit)
    }

    fn visit_names(
        &mut self,
        directory: Ino,
        first: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), FsError<N::Error>> {
        let mut is_sound = true;
        self.records((Key::name(directory.0, first), Key::names_end(directory.0)), |entry| {
            match (Meaning::of(entry.key), parse(entry.value)) {
                (Some(Meaning::Name { position, .. }), Some((kind, ino, name))) => {
                    visit(DirEntry { name, ino, kind, cookie: position + 3 })
                }
                _ => {
                    is_sound = false;
                    ControlFlow::Break(())
                }
            }
        })?;
        if is_sound { Ok(()) } else { Err(FsError::Corrupt { ino: directory, why: Damage::Name }) }
    }

    pub(crate) fn check_name(&self, name: &[u8]) -> Result<(), FsError<N::Error>> {
        let size_max = self.name_size_max();
        match name {
            _ if name.len() > size_max => Err(FsError::NameSize { size: name.len(), size_max }),
            b"" | b"." | b".." => Err(FsError::Name),
            _ if name.iter().any(|&byte| byte == 0 || byte == b'/') => Err(FsError::Name),
            _ => Ok(()),
        }
    }

    /// The first position that a name could have.
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        let hash = SipHasher24::new_with_key(&self.hash_key).hash(name) >> 24;
        #[cfg(feature = "_broken")]
        let hash = hash >> self.options.broken.hash_zeros << self.options.broken.hash_zeros & ((1 << 40) - 1);
        #[cfg(feature = "_broken")]
        let hash = if self.options.broken.hash_zeros >= 40 { 0 } else { hash };
        hash << 8
    }

    /// Looks a name up. Reads the leaf that it is in, or would be.
    pub(crate) fn search(&mut self, directory: Ino, name: &[u8]) -> Result<Search, FsError<N::Error>> {
        let start = self.hash(name);
        let (from, to) = (Key::name(directory.0, start), Key::name(directory.0, start + 0xFF));
        let mut free = start;
        let mut found = None;
        let mut is_sound = true;
        let bounds = (Bound::Included(from.as_slice()), Bound::Included(to.as_slice()));
        self.tree.range(bounds.0, bounds.1, Direction::Forward, |entry| {
            let (Some(Meaning::Name { position, .. }), Some((_, ino, other))) =
                (Meaning::of(entry.key), parse(entry.value))
            else {
                is_sound = false;
                return ControlFlow::Break(());
            };
            if other == name {
                found = Some(FoundName { position, ino });
                return ControlFlow::Break(());
            }
            free += u64::from(position == free);
            ControlFlow::Continue(())
        })?;
        match found {
            _ if !is_sound => Err(FsError::Corrupt { ino: directory, why: Damage::Name }),
            Some(found) => Ok(Search::Found(found)),
            None => Ok(Search::Free((free <= start + 0xFF).then_some(free))),
        }
    }

    /// Looks up a name that has to be there.
    pub(crate) fn found(&mut self, directory: Ino, name: &[u8]) -> Result<FoundName, FsError<N::Error>> {
        match self.search(directory, name)? {
            Search::Found(found) => Ok(found),
            Search::Free(_) => Err(FsError::NotFound { directory }),
        }
    }

    /// A position for a name that must not be there.
    pub(crate) fn free_position(&mut self, directory: Ino, name: &[u8]) -> Result<u64, FsError<N::Error>> {
        match self.search(directory, name)? {
            Search::Found(FoundName { ino, .. }) => Err(FsError::Exists { directory, ino }),
            // 256 names with one hash come about on purpose only, and the key is not known.
            Search::Free(position) => position.ok_or(FsError::Full),
        }
    }

    pub(crate) fn put_name(
        batch: &mut Batch<'_>,
        directory: Ino,
        position: u64,
        kind: FileKind,
        ino: Ino,
        name: &[u8],
    ) {
        let mut head = [kind as u8; 1 + 10];
        let mut at = 1;
        put_number(&mut head, &mut at, ino.0);
        batch.put(Key::name(directory.0, position), &head[..at], name);
    }
}
