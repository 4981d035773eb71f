//! Extended attributes: the calls.

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
use crate::xattr_records::{
    HEAD_SIZE_MAX, NAME_SIZE_MAX, SHORT_SIZE_MAX, VALUE_SIZE_MAX, Value, long_head, owner, parse,
};
use crate::{FsError, Ino, SetAttributes, XattrMode};

/// Most records that a value takes which is put with one batch.
const PART_COUNT_MAX: usize = 32;

/// Where an attribute is.
#[derive(Clone, Copy)]
struct XattrPlace {
    hash: u32,
    probe: u8,
    /// Its value; `None` if it is not there.
    value: Option<Value>,
}

/// What an attribute is to be.
#[derive(Clone, Copy)]
enum New {
    /// No more.
    Removed,
    /// A value that stands behind it.
    Short,
    /// The long value of this number, which is there by now.
    Long(u32),
}

impl<N: Nand> Fs<'_, N> {
    /// Bytes of a value in one record.
    pub(crate) fn xattr_part_size(&self) -> usize {
        self.tree.entry_size_max() - KEY_SIZE_MAX
    }

    /// Most bytes of a name and a value that are put with one batch.
    fn xattr_short_max(&self) -> usize {
        SHORT_SIZE_MAX.min(PART_COUNT_MAX * self.xattr_part_size())
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
            Ok(place) => Ok(place.probe == probe && place.value.is_some()),
            Err(FsError::Corrupt { .. } | FsError::XattrSize { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where an attribute is, or can be put. Reads the leaf.
    fn find_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<XattrPlace, FsError<N::Error>> {
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
            let Some((other, value)) = parse(entry.value) else {
                is_sound = false;
                return ControlFlow::Break(());
            };
            if other == name {
                found = Some(XattrPlace { hash, probe, value: Some(value) });
                return ControlFlow::Break(());
            }
            free += u16::from(u16::from(probe) == free);
            ControlFlow::Continue(())
        })?;
        match (found, u8::try_from(free)) {
            _ if !is_sound => Err(FsError::Corrupt { ino, why: Damage::Xattr }),
            (Some(place), _) => Ok(place),
            (None, Ok(probe)) => Ok(XattrPlace { hash, probe, value: None }),
            // More names with one hash than there are probes.
            (None, Err(_)) => Err(FsError::Full),
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
        let XattrPlace { hash, probe, value } = self.find_xattr(ino, name)?;
        let Value { size, number } = value.ok_or(FsError::NoXattr(ino))?;
        if out.is_empty() {
            return Ok(size);
        }
        let out = out.get_mut(..size).ok_or(FsError::BufferSize { required: size })?;
        let is_whole = self.read_parts(out, 1..u16::MAX, |part| match number {
            Some(number) => Key::long_value(ino.0, number, part),
            None => Key::xattr(ino.0, hash, probe, part as u8),
        })?;
        if is_whole { Ok(size) } else { Err(FsError::Corrupt { ino, why: Damage::Xattr }) }
    }

    /// Sets an attribute. Durable at the next sync, or at once where it takes more than a page.
    ///
    /// A value that takes more than 4,096 bytes with its name is written in records of its own before the attribute names it, which takes about as
    /// many programs as it has pages, and as many more where it replaces such a value, which is removed. A cut leaves the old value or the new one.
    ///
    /// # Errors
    ///
    /// [`FsError::XattrExists`] and [`FsError::NoXattr`], by the mode; [`FsError::XattrSize`] of a value of more than 65,536 bytes;
    /// [`FsError::NoInode`]; [`FsError::Name`] and [`FsError::NameSize`]; [`FsError::Full`].
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
        self.check_xattr_name(name)?;
        attributes::check(&set)?;
        if value.len() > VALUE_SIZE_MAX {
            return Err(FsError::XattrSize { size_max: VALUE_SIZE_MAX });
        }
        let put = self.give_xattr(ino, (name, value), mode, &set);
        self.ended(put)
    }

    fn give_xattr(
        &mut self,
        ino: Ino,
        (name, value): (&[u8], &[u8]),
        mode: XattrMode,
        set: &SetAttributes,
    ) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        if name.len() + value.len() <= self.xattr_short_max() {
            return self.change_xattr(ino, (name, value), New::Short, mode, set);
        }
        let size_max = self.xattr_part_size() - HEAD_SIZE_MAX;
        if name.len() > size_max {
            return Err(FsError::NameSize { size: name.len(), size_max });
        }
        let XattrPlace { hash, probe, .. } = self.place_xattr(ino, name, mode)?;
        let number = self.free_number(ino)?;
        loop {
            // Whoever makes room meanwhile must not remove what nothing names yet.
            let had_orphans = core::mem::replace(&mut self.has_orphans, false);
            let mut outcome = self.put_long_value(ino, number, &owner(hash, probe), value);
            if outcome.is_ok() {
                outcome = self.change_xattr(ino, (name, value), New::Long(number), mode, set);
            }
            self.has_orphans = had_orphans;
            // What was there before, or what there is of the new one.
            let removed = self.reap(ino);
            match outcome {
                Err(FsError::Full) if had_orphans && removed.is_ok() && self.make_room()? => {}
                outcome => return outcome.and(removed),
            }
        }
    }

    /// Changes an attribute, with one batch; then removes the long value that it had.
    fn change_xattr(
        &mut self,
        ino: Ino,
        (name, value): (&[u8], &[u8]),
        new: New,
        mode: XattrMode,
        set: &SetAttributes,
    ) -> Result<(), FsError<N::Error>> {
        let mut leaves_value = false;
        self.change(&[(name, value)], &mut |fs, batch, lent| {
            let old = fs.prepare_xattr(batch, ino, lent[0], new, mode, set)?;
            leaves_value = old.is_some_and(|old| old.number.is_some());
            if leaves_value {
                // S14: with the batch that no longer names it.
                batch.put(Key::orphan(ino.0), &[], &[]);
            }
            Ok(if matches!(new, New::Removed) { Commit::Freeing } else { Commit::Records })
        })?;
        let is_short = !matches!(new, New::Long(_));
        if leaves_value && is_short { self.reap(ino) } else { Ok(()) }
    }

    /// Where an attribute is or is going to be, if the mode allows to set it.
    fn place_xattr(&mut self, ino: Ino, name: &[u8], mode: XattrMode) -> Result<XattrPlace, FsError<N::Error>> {
        self.inode(ino)?;
        let place = self.find_xattr(ino, name)?;
        match (mode, place.value) {
            (XattrMode::Create, Some(_)) => Err(FsError::XattrExists(ino)),
            (XattrMode::Replace, None) => Err(FsError::NoXattr(ino)),
            _ => Ok(place),
        }
    }

    /// Puts a change of an attribute into a batch; returns the value that was there before.
    fn prepare_xattr<'a>(
        &mut self,
        batch: &mut Batch<'a>,
        ino: Ino,
        (name, value): (&[u8], &'a [u8]),
        new: New,
        mode: XattrMode,
        set: &SetAttributes,
    ) -> Result<Option<Value>, FsError<N::Error>> {
        let XattrPlace { hash, probe, value: old } = self.place_xattr(ino, name, mode)?;
        let mut inode = self.inode(ino)?;
        let size = |value: usize| (name.len() + value) as u32;
        let others = inode.xattr_size.saturating_sub(old.map_or(0, |old| size(old.size)));
        let part_size = self.xattr_part_size();
        let part = match new {
            New::Removed => 0,
            New::Short => Self::put_xattr(batch, (ino, hash, probe), name, value, part_size),
            New::Long(number) => {
                batch.put(Key::xattr(ino.0, hash, probe, 0), &long_head(value.len(), number), name);
                1
            }
        };
        let old_parts = old.filter(|old| old.number.is_none()).map_or(0, |old| old.size.div_ceil(part_size));
        let behind = old.map_or(0, |_| 1 + old_parts.min(PART_COUNT_MAX) as u8);
        for part in part..behind {
            batch.delete(Key::xattr(ino.0, hash, probe, part));
        }
        let own = if matches!(new, New::Removed) { 0 } else { size(value.len()) };
        inode.xattr_size = others.checked_add(own).ok_or(FsError::Full)?;
        inode.set(set);
        inode.times[CTIME] = self.now;
        batch.put_inode(ino, &inode);
        Ok(old)
    }

    /// Puts the records of a long value, with as many batches as that takes. Nothing names it yet, so an orphan's record does (S14).
    fn put_long_value(&mut self, ino: Ino, number: u32, owner: &[u8], value: &[u8]) -> Result<(), FsError<N::Error>> {
        let part_size = self.xattr_part_size();
        let step = PART_COUNT_MAX.min(SHORT_SIZE_MAX / part_size).max(1);
        for (index, bytes) in value.chunks(step * part_size).enumerate() {
            if index > 0 {
                self.tree.end_call();
            }
            self.change(&[(owner, bytes)], &mut |_, batch, lent| {
                let (owner, bytes) = lent[0];
                if index == 0 {
                    batch.put(Key::orphan(ino.0), &[], &[]);
                    batch.put_lent(Key::long_value(ino.0, number, 0), owner);
                }
                for (part, bytes) in (1 + index * step..).zip(bytes.chunks(part_size)) {
                    batch.put_lent(Key::long_value(ino.0, number, part as u16), bytes);
                }
                Ok(Commit::Data)
            })?;
        }
        Ok(())
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
                return Err(FsError::XattrSize { size_max: self.xattr_short_max() });
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
        let size_max = self.xattr_short_max();
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
        self.check_xattr_name(name)?;
        attributes::check(&set)?;
        let begun = self.begin_change();
        let removed = begun.and_then(|()| self.change_xattr(ino, (name, &[]), New::Removed, XattrMode::Replace, &set));
        self.ended(removed)
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
