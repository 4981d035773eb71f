//! The records of each inode: what they are together, what is missing, what is too much.

use core::ops::{Bound, ControlFlow};

use nandu_nand::Nand;

use super::{Mended, Teller};
use crate::batch::{WholeRoom, batch_in};
use crate::commit::Commit;
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{Key, Meaning};
use crate::names::parse as parse_name;
use crate::page_records::{Base, base_of};
use crate::super_block::CHUNK_SIZE;
use crate::xattr_records::{HEAD_SIZE_MAX, NAME_SIZE_MAX, Value, long_value, parse as parse_xattr};
use crate::{FileKind, FsError, Ino};

/// Most bytes of a symbolic link's target.
const TARGET_SIZE_MAX: u64 = 4095;

/// Permissions of what was made anew: nobody is let in who might not have been before.
const PERMISSIONS: u32 = 0o600;
const DIRECTORY_PERMISSIONS: u32 = 0o700;
const LINK_PERMISSIONS: u32 = 0o777;

/// What records there are of an inode.
#[derive(Default)]
struct Stock {
    inode: Option<Inode>,
    has_record: bool,
    has_names: bool,
    has_pages: bool,
    /// Behind the last byte of content that there is, or may be.
    end: u64,
    /// Bytes of the target; `None` if its parts are not all there.
    target: Option<u64>,
    target_parts: u64,
}

impl Stock {
    /// The type that the content says, if it is of one type.
    fn kind(&self) -> Option<FileKind> {
        match (self.has_names, self.has_pages, self.target_parts > 0) {
            (true, false, false) => Some(FileKind::Directory),
            (false, true, false) => Some(FileKind::File),
            (false, false, true) => Some(FileKind::Symlink),
            _ => None,
        }
    }
}

/// Where an attribute stands: hash and probe.
type XattrPlace = (u32, u8);

/// An attribute.
struct Seen {
    place: XattrPlace,
    name: [u8; NAME_SIZE_MAX],
    /// 0 if there is no first record that can be understood.
    name_size: usize,
    /// The value; `None` if what stands behind the name is not all there.
    value: Option<Value>,
}

impl<N: Nand> Fs<'_, N> {
    /// Repairs an inode as far as its own records tell: its content, what it says of that, and its numbers.
    pub(super) fn repair_records(&mut self, ino: u64, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let stock = self.take_stock(ino)?;
        let Some(inode) = self.repair_inode(ino, &stock, teller)? else { return Ok(()) };
        self.remove_misfits(ino, &inode, teller)?;
        let is_leaving = self.is_leaving(ino, &inode)?;
        let mut right = inode;
        if !is_leaving {
            right.xattr_size = self.repair_xattrs(ino, teller)?;
        }
        match inode.kind() {
            FileKind::Symlink => {
                // A target that is not whole leads elsewhere, which is worse than nowhere.
                if (stock.target != Some(inode.size) || inode.size == 0) && !is_leaving {
                    teller.tell(ino, Mended::TargetLost);
                    return self.remove_inode(ino);
                }
                right.blocks = 0;
            }
            FileKind::File => {
                right.size = if inode.size > self.file_size_max() { stock.end } else { inode.size };
                right.blocks = self.repair_pages(ino, right.size, teller)?;
            }
            FileKind::Directory => {
                right.blocks = 0;
                if !self.is_chunk_free(&inode)? {
                    (right.chunk_next, right.chunk_end) = (0, 0);
                }
            }
            _ => (right.size, right.blocks) = (0, 0),
        }
        if right != inode {
            self.mend(|batch| batch.put_inode(Ino(ino), &right))?;
            teller.tell(ino, Mended::Counts);
        }
        if right.is_file() { self.repair_end(ino, &right, teller) } else { Ok(()) }
    }

    fn take_stock(&mut self, ino: u64) -> Result<Stock, FsError<N::Error>> {
        let page_size = self.page_size();
        let mut stock = Stock { target: Some(0), ..Stock::default() };
        self.records((Key::inode(ino), Key::end(ino)), |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Inode { .. }) => {
                    stock.has_record = true;
                    stock.inode = Inode::parse(entry.value);
                }
                Some(Meaning::Name { .. }) => stock.has_names |= parse_name(entry.value).is_some(),
                Some(Meaning::Page { index, .. } | Meaning::Fragment { index, .. }) => {
                    stock.has_pages = true;
                    let is_unwritten = base_of(entry.value, entry.large, page_size) == Some(Base::Unwritten);
                    if !is_unwritten {
                        stock.end = (u64::from(index) + 1) * page_size as u64;
                    }
                }
                Some(Meaning::Target { part, .. }) => {
                    let size = entry.value.len() as u64;
                    let follows = u64::from(part) == stock.target_parts && size > 0;
                    stock.target = stock.target.filter(|_| follows).map(|sum| sum + size);
                    stock.target_parts += 1;
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        stock.target = stock.target.filter(|&size| size <= TARGET_SIZE_MAX);
        Ok(stock)
    }

    /// The inode as it is to be: as it is, with another type, made anew, or `None` if it is to go.
    fn repair_inode(
        &mut self,
        ino: u64,
        stock: &Stock,
        teller: &mut Teller<'_>,
    ) -> Result<Option<Inode>, FsError<N::Error>> {
        let is_root = ino == Ino::ROOT.0;
        let wanted = if is_root { Some(FileKind::Directory) } else { stock.kind() };
        let (inode, what) = match (stock.inode, wanted) {
            (Some(inode), None) => return Ok(Some(inode)),
            (Some(inode), Some(kind)) if inode.kind() == kind && (!is_root || inode.parent == ino) => {
                return Ok(Some(inode));
            }
            (Some(inode), Some(kind)) => (Self::with_kind(inode, kind), Mended::Kind),
            (None, Some(kind)) => (self.made_anew(kind, stock), Mended::InodeMade),
            // Of several kinds, names are what leads to others.
            (None, None) if stock.has_names => (self.made_anew(FileKind::Directory, stock), Mended::InodeMade),
            (None, None) if stock.has_pages => (self.made_anew(FileKind::File, stock), Mended::InodeMade),
            (None, None) => {
                teller.tell(ino, Mended::InodeLost);
                self.remove_inode(ino)?;
                return Ok(None);
            }
        };
        batch_in!(batch: WholeRoom);
        batch.put_inode(Ino(ino), &inode);
        self.commit(&batch, Commit::Records)?;
        teller.tell(ino, what);
        Ok(Some(inode))
    }

    /// The same inode with another type. Which directory has its name is found out later.
    fn with_kind(mut inode: Inode, kind: FileKind) -> Inode {
        inode.mode = inode.mode & !FileKind::MASK | kind.mode();
        if kind == FileKind::Directory {
            (inode.parent, inode.chunk_next, inode.chunk_end) = (Ino::ROOT.0, 0, 0);
            inode.nlink = inode.nlink.max(2);
        }
        inode
    }

    fn made_anew(&self, kind: FileKind, stock: &Stock) -> Inode {
        let (permissions, size) = match kind {
            FileKind::Directory => (DIRECTORY_PERMISSIONS, 0),
            FileKind::Symlink => (LINK_PERMISSIONS, stock.target.unwrap_or(0)),
            _ => (PERMISSIONS, stock.end),
        };
        let now = self.now;
        let inode = Inode { nlink: 1, size, times: [now; 4], ..Inode::EMPTY };
        Self::with_kind(Inode { mode: permissions, ..inode }, kind)
    }

    /// Removes names and targets that cannot be understood, and content that something of this type cannot have.
    fn remove_misfits(&mut self, ino: u64, inode: &Inode, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let kind = inode.kind();
        let (from, to) = (Key::behind_inode(ino), Key::end(ino));
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.remove_where(bounds.0, bounds.1, |entry| {
            let (fits, is_sound) = match Meaning::of(entry.key) {
                Some(Meaning::Name { .. }) => (kind == FileKind::Directory, parse_name(entry.value).is_some()),
                Some(Meaning::Page { .. } | Meaning::Fragment { .. }) => (kind == FileKind::File, true),
                Some(Meaning::Target { .. }) => (kind == FileKind::Symlink, entry.large.is_none()),
                _ => (true, true),
            };
            if !fits || !is_sound {
                teller.tell(ino, if fits { Mended::Record } else { Mended::Misfit });
            }
            !fits || !is_sound
        })
    }

    /// Removes attributes that are not whole; returns the bytes of those that are.
    fn repair_xattrs(&mut self, ino: u64, teller: &mut Teller<'_>) -> Result<u32, FsError<N::Error>> {
        let mut before = None;
        loop {
            let (size, broken) = self.pass_xattrs(ino)?;
            let Some((hash, probe)) = broken else {
                self.repair_long_values(ino, before.is_some(), teller)?;
                return Ok(size);
            };
            // Where a damaged tree keeps what was removed, this would go on for ever.
            if before.is_some_and(|before| (hash, probe) <= before) {
                return Err(FsError::Corrupt { ino: Ino(ino), why: Damage::Xattr });
            }
            before = Some((hash, probe));
            let behind = match (probe.checked_add(1), hash.checked_add(1)) {
                (Some(probe), _) => Key::xattr(ino, hash, probe, 0),
                (None, Some(hash)) => Key::xattr(ino, hash, 0, 0),
                (None, None) => Key::xattrs_end(ino),
            };
            let first = Key::xattr(ino, hash, probe, 0);
            let name = self.tree.value_len(first.as_slice())?.filter(|&size| size <= HEAD_SIZE_MAX + NAME_SIZE_MAX);
            let mut copy = [0; HEAD_SIZE_MAX + NAME_SIZE_MAX];
            let size = match name {
                Some(_) => self.tree.read(first.as_slice(), 0, &mut copy)?.unwrap_or(0),
                None => 0,
            };
            teller.tell_name(ino, parse_xattr(&copy[..size]).map_or(&[], |(name, _)| name), Mended::XattrLost);
            self.remove_records((first, behind), |_| {})?;
        }
    }

    /// Removes long values that no attribute names, unless a record says that they go anyway. Says so unless an attribute that named one is lost.
    fn repair_long_values(
        &mut self,
        ino: u64,
        is_told: bool,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let mut next = Some(0);
        while let Some(from) = next
            && let Some(number) = self.nobodys_value(ino, from)?
            && !self.has_orphan_record(ino)?
        {
            self.remove_records(long_value(ino, number), |_| {})?;
            if !is_told {
                teller.tell(ino, Mended::Record);
            }
            next = number.checked_add(1);
        }
        Ok(())
    }

    /// The bytes of all attributes, or the place of the first one that is not whole or is not found where it stands.
    pub(in crate::check) fn pass_xattrs(&mut self, ino: u64) -> Result<(u32, Option<XattrPlace>), FsError<N::Error>> {
        let (mut total, mut next) = (0, (0, 0));
        while let Some(seen) = self.next_xattr(ino, next)? {
            let Seen { place: (hash, probe), name, name_size, value } = seen;
            let name = &name[..name_size];
            let Some(Value { size, number }) = value.filter(|_| name_size > 0) else {
                return Ok((total, Some((hash, probe))));
            };
            let is_whole = number.map_or(Ok(true), |number| self.is_value_whole(ino, number, size, (hash, probe)))?;
            if !is_whole || !self.is_xattr_found(ino, name, (hash, probe))? {
                return Ok((total, Some((hash, probe))));
            }
            total = u32::saturating_add(total, (name_size + size) as u32);
            next = match (probe.checked_add(1), hash.checked_add(1)) {
                (Some(probe), _) => (hash, probe),
                (None, Some(hash)) => (hash, 0),
                (None, None) => break,
            };
        }
        Ok((total, None))
    }

    /// The first attribute from a place on.
    fn next_xattr(&mut self, ino: u64, (hash, probe): XattrPlace) -> Result<Option<Seen>, FsError<N::Error>> {
        let mut seen: Option<Seen> = None;
        let (mut parts, mut left) = (0_u16, 0);
        self.records((Key::xattr(ino, hash, probe, 0), Key::xattrs_end(ino)), |entry| {
            let Some(Meaning::Xattr { hash, probe, part, .. }) = Meaning::of(entry.key) else {
                return ControlFlow::Continue(());
            };
            match &mut seen {
                None => {
                    let mut first = Seen { place: (hash, probe), name: [0; NAME_SIZE_MAX], name_size: 0, value: None };
                    if let Some((name, value)) = parse_xattr(entry.value).filter(|_| part == 0) {
                        first.name[..name.len()].copy_from_slice(name);
                        (first.name_size, first.value) = (name.len(), Some(value));
                        left = if value.number.is_some() { 0 } else { value.size };
                    }
                    seen = Some(first);
                }
                Some(first) if first.place != (hash, probe) => return ControlFlow::Break(()),
                Some(first) => {
                    let size = entry.value.len();
                    let follows = u16::from(part) == parts && (1..=left).contains(&size);
                    first.value = first.value.filter(|_| follows);
                    left = left.saturating_sub(size);
                }
            }
            parts += 1;
            ControlFlow::Continue(())
        })?;
        Ok(seen.map(|seen| Seen { value: seen.value.filter(|_| left == 0), ..seen }))
    }

    /// Whether the numbers that a directory has left are the rest of a chunk, and no inode has one of them.
    pub(in crate::check) fn is_chunk_free(&mut self, inode: &Inode) -> Result<bool, FsError<N::Error>> {
        if inode.chunk_next == inode.chunk_end {
            return Ok(true);
        }
        // A chunk gives its first number when it is taken.
        let is_chunk = inode.chunk_end.is_multiple_of(CHUNK_SIZE) && inode.chunk_end - inode.chunk_next < CHUNK_SIZE;
        if !is_chunk || inode.chunk_end > self.chunk_next {
            return Ok(false);
        }
        let next = self.next_inode(inode.chunk_next)?;
        Ok(next.is_none_or(|next| next >= inode.chunk_end))
    }
}
