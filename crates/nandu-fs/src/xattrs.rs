//! Extended attributes.
//!
//! FORMAT: Extended attributes
//!
//! An attribute is some records of its inode: the first holds its name, the others its value in order. Its place is 32 bits of the
//! name's hash and a probe, as with names in directories.
//!
//! ```text
//! part 0  bytes 0 to 1  bytes of the value, low byte first
//!         the rest      name, 1 to 255 bytes
//! part n  all           a piece of the value
//! ```

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;
use siphasher::sip::SipHasher24;

use crate::attributes;
use crate::batch::Batch;
use crate::commit::Commit;
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::{CTIME, INODE_SIZE_MAX};
use crate::keys::{KEY_SIZE_MAX, Key, Meaning};
use crate::{FsError, Ino, SetAttributes, XattrMode};

/// Most bytes of names and values of one inode.
const TOTAL_SIZE_MAX: usize = 4096;

/// Most records that a value takes.
const PART_COUNT_MAX: usize = 32;

/// Most bytes of a name.
pub(crate) const NAME_SIZE_MAX: usize = 255;

/// Where an attribute is.
#[derive(Clone, Copy)]
struct Place {
    hash: u32,
    probe: u8,
    /// Bytes of its value; `None` if it is not there.
    size: Option<usize>,
}

/// What a first part says: name and bytes of the value; `None` if it is none.
pub(crate) fn parse(value: &[u8]) -> Option<(&[u8], usize)> {
    let (&[low, high], name) = value.split_first_chunk::<2>()?;
    let size = usize::from(u16::from_le_bytes([low, high]));
    (!name.is_empty() && name.len() <= NAME_SIZE_MAX && size <= TOTAL_SIZE_MAX).then_some((name, size))
}

impl<N: Nand> Fs<'_, N> {
    /// Bytes of a value in one record.
    pub(crate) fn xattr_part_size(&self) -> usize {
        self.tree.entry_size_max() - KEY_SIZE_MAX
    }

    fn xattr_total_max(&self) -> usize {
        TOTAL_SIZE_MAX.min(PART_COUNT_MAX * self.xattr_part_size())
    }

    fn check_xattr_name(&self, name: &[u8]) -> Result<(), FsError<N::Error>> {
        let size_max = NAME_SIZE_MAX.min(self.xattr_part_size() - 2);
        match name {
            b"" => Err(FsError::Name),
            _ if name.contains(&0) => Err(FsError::Name),
            _ if name.len() > size_max => Err(FsError::NameSize { size: name.len(), size_max }),
            _ => Ok(()),
        }
    }

    /// The first half of an attribute's place.
    pub(crate) fn xattr_hash(&self, name: &[u8]) -> u32 {
        let hash = (SipHasher24::new_with_key(&self.hash_key).hash(name) >> 32) as u32;
        #[cfg(feature = "_broken")]
        let hash = if self.options.broken.hash_zeros >= 40 { 0 } else { hash };
        hash
    }

    /// Whether an attribute is found where it stands.
    pub(crate) fn is_xattr_found(
        &mut self,
        ino: u64,
        name: &[u8],
        (hash, probe): (u32, u8),
    ) -> Result<bool, FsError<N::Error>> {
        if self.xattr_hash(name) != hash {
            return Ok(false);
        }
        match self.find_xattr(Ino(ino), name) {
            Ok(place) => Ok(place.probe == probe && place.size.is_some()),
            Err(FsError::Corrupt { .. } | FsError::XattrSize { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where an attribute is, or can be put. Reads the leaf.
    fn find_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<Place, FsError<N::Error>> {
        let hash = self.xattr_hash(name);
        let (from, to) = (Key::xattr(ino.0, hash, 0, 0), Key::xattr(ino.0, hash, 0xFF, 0xFF));
        let mut free = 0_u16;
        let mut found = None;
        let mut is_sound = true;
        let bounds = (Bound::Included(from.as_slice()), Bound::Included(to.as_slice()));
        self.tree.range(bounds.0, bounds.1, Direction::Forward, |entry| {
            let Some(Meaning::Xattr { probe, part: 0, .. }) = Meaning::of(entry.key) else {
                return ControlFlow::Continue(());
            };
            let Some((other, size)) = parse(entry.value) else {
                is_sound = false;
                return ControlFlow::Break(());
            };
            if other == name {
                found = Some(Place { hash, probe, size: Some(size) });
                return ControlFlow::Break(());
            }
            free += u16::from(u16::from(probe) == free);
            ControlFlow::Continue(())
        })?;
        match (found, u8::try_from(free)) {
            _ if !is_sound => Err(FsError::Corrupt { ino, why: Damage::Xattr }),
            (Some(place), _) => Ok(place),
            (None, Ok(probe)) => Ok(Place { hash, probe, size: None }),
            (None, Err(_)) => Err(FsError::XattrSize { size_max: self.xattr_total_max() }),
        }
    }

    /// Copies the value of an attribute and returns how many bytes it has; with an empty buffer it only returns that. Reads the
    /// leaves that it is in.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`] and [`FsError::NoXattr`]; [`FsError::BufferSize`]; [`FsError::Name`] and [`FsError::NameSize`].
    pub fn get_xattr(&mut self, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize, FsError<N::Error>> {
        self.check_xattr_name(name)?;
        self.inode(ino)?;
        let Place { hash, probe, size } = self.find_xattr(ino, name)?;
        let size = size.ok_or(FsError::NoXattr(ino))?;
        if out.is_empty() {
            return Ok(size);
        }
        let out = out.get_mut(..size).ok_or(FsError::BufferSize { required: size })?;
        let is_whole = self.read_parts(out, 1..u8::MAX, |part| Key::xattr(ino.0, hash, probe, part))?;
        if is_whole { Ok(size) } else { Err(FsError::Corrupt { ino, why: Damage::Xattr }) }
    }

    /// Sets an attribute. Durable at the next sync, or at once where it takes more than a page.
    ///
    /// # Errors
    ///
    /// [`FsError::XattrExists`] and [`FsError::NoXattr`], by the mode; [`FsError::XattrSize`] if names and values of the inode would
    /// take more than 4,096 bytes; [`FsError::NoInode`]; [`FsError::Name`] and [`FsError::NameSize`]; [`FsError::Full`].
    pub fn set_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<(), FsError<N::Error>> {
        self.set_xattr_with(ino, name, value, mode, SetAttributes::default())
    }

    /// Sets an attribute and changes its inode, both or, if this is cut, neither: so an access list and the permissions that say the same do
    /// at each moment. Durable as [`Fs::set_xattr`] is.
    ///
    /// # Errors
    ///
    /// As [`Fs::set_xattr`] and [`Fs::set_attributes`].
    pub fn set_xattr_with(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
        set: SetAttributes,
    ) -> Result<(), FsError<N::Error>> {
        self.change_xattr(ino, name, Some(value), mode, set)
    }

    /// Sets an attribute, or removes it where there is no value.
    fn change_xattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
        set: SetAttributes,
    ) -> Result<(), FsError<N::Error>> {
        self.check_xattr_name(name)?;
        attributes::check(&set)?;
        self.begin_change()?;
        self.change(&[(name, value.unwrap_or_default())], &mut |fs, batch, lent| {
            fs.prepare_xattr(batch, ino, lent[0], value.is_some(), mode, &set)
        })
    }

    fn prepare_xattr<'a>(
        &mut self,
        batch: &mut Batch<'a>,
        ino: Ino,
        (name, value): (&[u8], &'a [u8]),
        is_put: bool,
        mode: XattrMode,
        set: &SetAttributes,
    ) -> Result<Commit, FsError<N::Error>> {
        let mut inode = self.inode(ino)?;
        let Place { hash, probe, size } = self.find_xattr(ino, name)?;
        match (mode, size) {
            (XattrMode::Create, Some(_)) => return Err(FsError::XattrExists(ino)),
            (XattrMode::Replace, None) => return Err(FsError::NoXattr(ino)),
            _ => {}
        }
        let mut total = (inode.xattr_size as usize).saturating_sub(size.map_or(0, |size| name.len() + size));
        let part_size = self.xattr_part_size();
        let mut part = 0;
        if is_put {
            total += name.len() + value.len();
            let size_max = self.xattr_total_max();
            if total > size_max {
                return Err(FsError::XattrSize { size_max });
            }
            part = Self::put_xattr(batch, (ino, hash, probe), name, value, part_size);
        }
        let old_parts = size.map_or(0, |size| size.div_ceil(part_size)).min(PART_COUNT_MAX) as u8;
        for part in part..=old_parts {
            batch.delete(Key::xattr(ino.0, hash, probe, part));
        }
        inode.xattr_size = total as u32;
        inode.set(set);
        inode.times[CTIME] = self.now;
        batch.put_inode(ino, &inode);
        Ok(if is_put { Commit::Records } else { Commit::Freeing })
    }

    /// Puts the records of an attribute; returns the part behind its last.
    fn put_xattr<'v>(
        batch: &mut Batch<'v>,
        (ino, hash, probe): (Ino, u32, u8),
        name: &[u8],
        value: &'v [u8],
        part_size: usize,
    ) -> u8 {
        let [low, high] = (value.len() as u16).to_le_bytes();
        batch.put(Key::xattr(ino.0, hash, probe, 0), &[low, high], name);
        let mut part = 1;
        for bytes in value.chunks(part_size) {
            batch.put_lent(Key::xattr(ino.0, hash, probe, part), bytes);
            part += 1;
        }
        part
    }

    /// Puts the records of all attributes of an inode that is being made, where the batch has room for them.
    pub(crate) fn put_first_xattrs<'v>(
        &self,
        batch: &mut Batch<'v>,
        ino: Ino,
        xattrs: &[(&[u8], &'v [u8])],
    ) -> Result<(), FsError<N::Error>> {
        let part_size = self.xattr_part_size();
        for (index, &(name, value)) in xattrs.iter().enumerate() {
            let hash = self.xattr_hash(name);
            let before = xattrs[..index].iter().filter(|(other, _)| self.xattr_hash(other) == hash);
            let (Ok(probe), true) = (u8::try_from(before.count()), Self::has_xattr_room(batch, name, value, part_size))
            else {
                return Err(FsError::XattrSize { size_max: self.xattr_total_max() });
            };
            Self::put_xattr(batch, (ino, hash, probe), name, value, part_size);
        }
        Ok(())
    }

    /// Whether a batch has room for an attribute, and for an inode behind it.
    fn has_xattr_room(batch: &Batch<'_>, name: &[u8], value: &[u8], part_size: usize) -> bool {
        batch.has_room(2 + value.len().div_ceil(part_size), 2 + name.len() + INODE_SIZE_MAX)
    }

    /// Bytes of attributes that an inode is to be made with, names included.
    pub(crate) fn first_xattrs_size(&self, xattrs: &[(&[u8], &[u8])]) -> Result<u32, FsError<N::Error>> {
        let mut total = 0_usize;
        for (index, &(name, value)) in xattrs.iter().enumerate() {
            self.check_xattr_name(name)?;
            if xattrs[..index].iter().any(|&(other, _)| other == name) {
                return Err(FsError::Name);
            }
            total = total.saturating_add(name.len() + value.len());
        }
        let size_max = self.xattr_total_max();
        if total > size_max { Err(FsError::XattrSize { size_max }) } else { Ok(total as u32) }
    }

    /// Removes an attribute. Durable at the next sync.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`] and [`FsError::NoXattr`]; [`FsError::Name`] and [`FsError::NameSize`].
    pub fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<(), FsError<N::Error>> {
        self.remove_xattr_with(ino, name, SetAttributes::default())
    }

    /// Removes an attribute and changes its inode, both or, if this is cut, neither. Durable at the next sync.
    ///
    /// # Errors
    ///
    /// As [`Fs::remove_xattr`] and [`Fs::set_attributes`].
    pub fn remove_xattr_with(&mut self, ino: Ino, name: &[u8], set: SetAttributes) -> Result<(), FsError<N::Error>> {
        self.change_xattr(ino, name, None, XattrMode::Replace, set)
    }

    /// Visits the names of an inode's attributes. Reads the leaves that they are in.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`]; [`FsError::Corrupt`].
    pub fn list_xattrs(&mut self, ino: Ino, mut visit: impl FnMut(&[u8])) -> Result<(), FsError<N::Error>> {
        self.inode(ino)?;
        let mut is_sound = true;
        self.records((Key::xattr(ino.0, 0, 0, 0), Key::xattrs_end(ino.0)), |entry| {
            match (Meaning::of(entry.key), parse(entry.value)) {
                (Some(Meaning::Xattr { part: 0, .. }), Some((name, _))) => visit(name),
                (Some(Meaning::Xattr { part, .. }), _) if part > 0 => {}
                _ => is_sound = false,
            }
            if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if is_sound { Ok(()) } else { Err(FsError::Corrupt { ino, why: Damage::Xattr }) }
    }
}
