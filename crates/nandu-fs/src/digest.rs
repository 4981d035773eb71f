//! A digest of all that names lead to.
//!
//! FORMAT: Digest of a file system
//!
//! What a caller keeps elsewhere of a file system, and another program can make of the same files. It stands for paths and what they lead to, and for nothing
//! else: neither for the numbers of inodes nor for pages, holes, times or the order of changes. It is the sum, as 64 bits have it, of a hash for each inode with a
//! name and the root. A hash is the SipHash-2-4 of the fields below, whose key is `nandu files 1` and three zero bytes. Numbers have 8 bytes, the low byte first.
//!
//! ```text
//! hash of      fields
//! inode        1, path, mode with its type, owner, group, device, size (0 of a directory), content, attributes
//! name         2, the name
//! block        3, its number, 256 bytes
//! target       4, the target of a symbolic link
//! attribute    5, bytes of the name, the name, bytes of the value, the value
//!
//! path         of the root 0; of a name: path of its directory, exclusive or with the hash of the name, turned left by 23 bits,
//!              times 0x9E3779B97F4A7C15; of an inode the sum of those of its names
//! content      of a file the sum of the hashes of its blocks that are not all zeros, the last one filled up with zeros; of a symbolic link the
//!              hash of its target; else 0
//! attributes   the sum of the hashes of its extended attributes
//! ```

use core::hash::Hasher;
use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;
use siphasher::sip::SipHasher24;

use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{Key, Meaning};
use crate::names::parse as parse_name;
use crate::xattr_records::{Value, long_value, parse as parse_xattr};
use crate::{FileKind, FsError, Ino};

/// The key of the hash, which says whose digest it is and how it is made.
const KEY: [u8; 16] = *b"nandu files 1\0\0\0";

/// Bytes of a block, which every page has some of.
const BLOCK_SIZE: usize = 256;

/// Directories above that the walk keeps in mind. Above more of them a directory is looked for where it has its name.
const KEPT: usize = 8;

/// Bytes of an inode with several names, and of the sum of their path hashes.
const LINK_SIZE: usize = 16;

/// What a hash is of.
#[derive(Clone, Copy)]
enum Of {
    Inode = 1,
    Name = 2,
    Block = 3,
    Target = 4,
    Attribute = 5,
}

struct Hash(SipHasher24);

impl Hash {
    fn new(of: Of) -> Hash {
        let mut hash = Hash(SipHasher24::new_with_key(&KEY));
        hash.number(of as u64);
        hash
    }

    fn number(&mut self, number: u64) {
        self.0.write(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn end(&self) -> u64 {
        self.0.finish()
    }

    fn of_name(name: &[u8]) -> u64 {
        let mut hash = Hash::new(Of::Name);
        hash.bytes(name);
        hash.end()
    }
}

/// What stands for a path. It can be undone, so that the walk finds its way up without a memory of the whole path.
#[derive(Clone, Copy)]
struct PathHash(u64);

impl PathHash {
    const ROOT: PathHash = PathHash(0);
    const TURN: u32 = 23;
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    /// What undoes the factor.
    const INVERSE: u64 = {
        let mut inverse = 1_u64;
        // Each turn doubles the bits that are right.
        let mut right = 1;
        while right < u64::BITS {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(inverse.wrapping_mul(PathHash::FACTOR)));
            right *= 2;
        }
        inverse
    };

    fn below(self, name: u64) -> PathHash {
        PathHash((self.0 ^ name).rotate_left(PathHash::TURN).wrapping_mul(PathHash::FACTOR))
    }

    fn above(self, name: u64) -> PathHash {
        PathHash(self.0.wrapping_mul(PathHash::INVERSE).rotate_right(PathHash::TURN) ^ name)
    }
}

/// Where the walk is: in a directory, before a position of its names.
#[derive(Clone, Copy)]
struct Stand {
    directory: Ino,
    path: PathHash,
    position: u64,
}

/// Where it goes on in the directories above, the nearest ones.
struct Above {
    stands: [Stand; KEPT],
    next: usize,
    count: usize,
}

impl Above {
    fn new(at: Stand) -> Above {
        Above { stands: [at; KEPT], next: 0, count: 0 }
    }

    fn push(&mut self, stand: Stand) {
        self.stands[self.next] = stand;
        self.next = (self.next + 1) % KEPT;
        self.count = (self.count + 1).min(KEPT);
    }

    fn pop(&mut self) -> Option<Stand> {
        self.count = self.count.checked_sub(1)?;
        self.next = (self.next + KEPT - 1) % KEPT;
        Some(self.stands[self.next])
    }
}

/// A name that was found in a directory.
struct NextName {
    position: u64,
    ino: Ino,
    kind: FileKind,
    hash: u64,
}

/// What counts of an inode. It is smaller, and on the stack while a file is read.
struct CountedInode {
    kind: FileKind,
    mode: u32,
    uid: u32,
    gid: u32,
    rdev: u64,
    /// 0 of a directory, whose names count.
    size: u64,
    parent: Ino,
    has_links: bool,
    has_xattrs: bool,
}

/// What a name, or none, leads to.
struct Named {
    ino: Ino,
    kind: FileKind,
    path: PathHash,
}

/// What is done with each name of a file system `F`.
type VisitName<'v, F, E> = dyn FnMut(&mut F, &Named) -> Result<(), FsError<E>> + 'v;

/// Inodes with several names, in rising order, each with the sum of the path hashes of those that were met.
struct Links<'a> {
    memory: &'a mut [[u8; LINK_SIZE]],
    count: usize,
}

impl Links<'_> {
    fn get(&self, index: usize) -> (u64, u64) {
        let bytes = u128::from_le_bytes(self.memory[index]);
        (bytes as u64, (bytes >> 64) as u64)
    }

    fn set(&mut self, index: usize, ino: u64, sum: u64) {
        self.memory[index] = (u128::from(sum) << 64 | u128::from(ino)).to_le_bytes();
    }

    /// Adds an inode, which is above those before it; false if there is no room.
    fn push(&mut self, ino: u64) -> bool {
        let has_room = self.count < self.memory.len();
        if has_room {
            self.set(self.count, ino, 0);
            self.count += 1;
        }
        has_room
    }

    /// Meets a name of an inode, if it is one of these.
    fn meet(&mut self, ino: u64, path: PathHash) {
        let index = self.memory[..self.count].partition_point(|bytes| (u128::from_le_bytes(*bytes) as u64) < ino);
        if index < self.count
            && let (other, sum) = self.get(index)
            && other == ino
        {
            self.set(index, ino, sum.wrapping_add(path.0));
        }
    }
}

impl<N: Nand> Fs<'_, N> {
    /// 64 bits over all that names lead to: alike for the same files, however they came about and on whatever chip, and different for others, but for one in
    /// 2^64. Kept elsewhere, on another chip or a server, it tells later whether anything was lost, or the whole chip put back to an older state, which
    /// [`verify`](Fs::verify) cannot know.
    ///
    /// It is over every path and what it leads to: type, permissions, owner, group, device, size, content, target, extended attributes, and which paths are names
    /// of one file. Holes are zeros. **Times do not count**, so that a copy of the files has the same digest; nor do numbers of inodes, what is allocated and not written, files
    /// without a name, and snapshots: one that is [mounted](crate::Options::snapshot) has its own. It notices accidents and not attackers, who can make other files with the same
    /// digest. How it is made stands in `FORMAT.md`, and stays so: a program elsewhere may make it of the same files.
    ///
    /// It is over what is read now: call [`sync`](Fs::sync) before for one that a power cut does not change. What is partly written in memory goes to the tree first,
    /// which may program a page; nothing else is programmed.
    ///
    /// Reads each page of a file that was written, and for each the leaf of its records; for each name the leaf that it is in and that of its inode. Leaves that are in memory
    /// are not read. Where files have several names it reads all leaves once more, and for each so many of these files, a 32nd of the bytes of a page, all names. Below more than 8
    /// directories it looks for the name of each directory when it leaves that.
    ///
    /// # Errors
    ///
    /// A page that cannot be read, which [`FsError::CorruptPage`] names, or what cannot be understood, [`FsError::Corrupt`]; errors of the chip. There is no digest of a part. [`FsError::Full`]
    /// if there is no room for what is partly written.
    pub fn digest(&mut self) -> Result<u64, FsError<N::Error>> {
        if self.buffer.written.is_some() {
            self.flush_alone()?;
        }
        self.with_memory(|fs, memory| fs.digest_in(memory))
    }

    /// Apart, so that what it takes of the stack is free when files are read.
    #[inline(never)]
    fn flush_alone(&mut self) -> Result<(), FsError<N::Error>> {
        let flushed = self.flush();
        self.ended(flushed)
    }

    /// The same in memory of a page.
    fn digest_in(&mut self, memory: &mut [u8]) -> Result<u64, FsError<N::Error>> {
        let (mut sum, mut has_links) = (0_u64, false);
        self.walk(&mut |fs, &Named { ino, kind, path }| {
            let inode = fs.counted_inode(ino)?;
            if inode.kind != kind {
                return Err(FsError::Corrupt { ino, why: Damage::Name });
            }
            if inode.has_links {
                has_links = true;
            } else {
                sum = sum.wrapping_add(fs.hash_inode(ino, &inode, path, memory)?);
            }
            Ok(())
        })?;
        let mut next = has_links.then_some(1);
        while let Some(from) = next {
            let of_links;
            (of_links, next) = self.hash_links(from, memory)?;
            sum = sum.wrapping_add(of_links);
        }
        Ok(sum)
    }

    /// The sum of the hashes of inodes with several names, from a number on, as many as there is memory for; and the first one that found no room.
    #[inline(never)]
    fn hash_links(&mut self, from: u64, memory: &mut [u8]) -> Result<(u64, Option<u64>), FsError<N::Error>> {
        let (table, memory) = memory.split_at_mut(memory.len() / 2);
        let mut links = Links { memory: table.as_chunks_mut().0, count: 0 };
        let mut next = None;
        let from = Key::inode(from);
        self.tree.range(Bound::Included(from.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Inode { ino })
                    if Inode::parse(entry.value).is_some_and(|inode| inode.has_links()) && !links.push(ino) =>
                {
                    next = Some(ino);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        })?;
        self.walk(&mut |_, named| {
            links.meet(named.ino.0, named.path);
            Ok(())
        })?;
        let mut sum = 0_u64;
        for index in 0..links.count {
            let (ino, path) = links.get(index);
            // One that no name leads to cannot be seen.
            if path != 0 {
                let ino = Ino(ino);
                let inode = self.counted_inode(ino)?;
                sum = sum.wrapping_add(self.hash_inode(ino, &inode, PathHash(path), memory)?);
            }
        }
        Ok((sum, next))
    }

    /// Visits the root and what each name leads to, directories before what is in them. Whatever the records say, it ends: no more names are visited than there are records.
    #[inline(never)]
    fn walk(&mut self, visit: &mut VisitName<'_, Self, N::Error>) -> Result<(), FsError<N::Error>> {
        let mut left = self.tree.count()?;
        let mut stand = Stand { directory: Ino::ROOT, path: PathHash::ROOT, position: 0 };
        let mut above = Above::new(stand);
        visit(self, &Named { ino: Ino::ROOT, kind: FileKind::Directory, path: PathHash::ROOT })?;
        loop {
            let Some(NextName { position, ino, kind, hash }) = self.find_name(&stand, None)? else {
                if stand.directory == Ino::ROOT {
                    return Ok(());
                }
                stand = match above.pop() {
                    Some(stand) => stand,
                    None => self.go_up(&stand)?,
                };
                continue;
            };
            left = left.checked_sub(1).ok_or(FsError::Inconsistent)?;
            stand.position = position + 1;
            let path = stand.path.below(hash);
            visit(self, &Named { ino, kind, path })?;
            if kind == FileKind::Directory {
                if ino == Ino::ROOT || self.counted_inode(ino)?.parent != stand.directory {
                    return Err(FsError::Corrupt { ino, why: Damage::Parent });
                }
                above.push(stand);
                stand = Stand { directory: ino, path, position: 0 };
            }
        }
    }

    /// The next name from where the walk is, or the next one of an inode.
    #[inline(never)]
    fn find_name(&mut self, stand: &Stand, of: Option<Ino>) -> Result<Option<NextName>, FsError<N::Error>> {
        let Stand { directory, position, .. } = *stand;
        if position >> 48 != 0 {
            return Ok(None);
        }
        let (mut found, mut is_sound) = (None, true);
        self.records((Key::name(directory.0, position), Key::names_end(directory.0)), |entry| {
            match (Meaning::of(entry.key), parse_name(entry.value)) {
                (Some(Meaning::Name { position, .. }), Some((kind, ino, name))) => {
                    if of.is_some_and(|of| of != ino) {
                        return ControlFlow::Continue(());
                    }
                    found = Some(NextName { position, ino, kind, hash: Hash::of_name(name) });
                }
                _ => is_sound = false,
            }
            ControlFlow::Break(())
        })?;
        if is_sound { Ok(found) } else { Err(FsError::Corrupt { ino: directory, why: Damage::Name }) }
    }

    /// Behind the name of a directory, in the one above.
    #[inline(never)]
    fn go_up(&mut self, stand: &Stand) -> Result<Stand, FsError<N::Error>> {
        let ino = stand.directory;
        let directory = self.counted_inode(ino)?.parent;
        let first = Stand { directory, path: PathHash::ROOT, position: 0 };
        let found = self.find_name(&first, Some(ino))?.ok_or(FsError::Corrupt { ino, why: Damage::Parent })?;
        Ok(Stand { directory, path: stand.path.above(found.hash), position: found.position + 1 })
    }

    #[inline(never)]
    fn counted_inode(&mut self, ino: Ino) -> Result<CountedInode, FsError<N::Error>> {
        let inode = self.named_inode(ino)?;
        let Inode { mode, uid, gid, rdev, .. } = inode;
        Ok(CountedInode {
            kind: inode.kind(),
            mode,
            uid,
            gid,
            rdev,
            size: if inode.is_directory() { 0 } else { inode.size },
            parent: Ino(inode.parent),
            has_links: inode.has_links(),
            has_xattrs: inode.xattr_size > 0,
        })
    }

    /// The hash of an inode, in memory for a part of a page.
    #[inline(never)]
    fn hash_inode(
        &mut self,
        ino: Ino,
        inode: &CountedInode,
        path: PathHash,
        memory: &mut [u8],
    ) -> Result<u64, FsError<N::Error>> {
        let size = inode.size;
        let content = match inode.kind {
            FileKind::File => self.hash_content(ino, size, memory)?,
            FileKind::Symlink => self.hash_target(ino, size)?,
            _ => 0,
        };
        let attributes = if inode.has_xattrs { self.hash_xattrs(ino)? } else { 0 };
        let mut hash = Hash::new(Of::Inode);
        let [mode, uid, gid] = [inode.mode, inode.uid, inode.gid].map(u64::from);
        for number in [path.0, mode, uid, gid, inode.rdev, size, content, attributes] {
            hash.number(number);
        }
        Ok(hash.end())
    }

    /// The sum of the hashes of the blocks of a file.
    #[inline(never)]
    fn hash_content(&mut self, ino: Ino, size: u64, memory: &mut [u8]) -> Result<u64, FsError<N::Error>> {
        debug_assert!(memory.len().is_multiple_of(BLOCK_SIZE), "whole blocks");
        let page_size = self.page_size();
        let mut sum = 0_u64;
        let mut next = Some(0);
        while let Some(from) = next
            && let Some(index) = self.next_page(ino.0, from)?
        {
            next = index.checked_add(1);
            for at in (0..page_size).step_by(memory.len()) {
                let offset = self.offset(index, at);
                let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
                // Behind the end there may be what was allocated, or what a truncation cut off.
                if left == 0 {
                    return Ok(sum);
                }
                let (part, behind) = memory.split_at_mut(left.min(memory.len()));
                self.read_page(ino.0, index, at, part)?;
                behind.fill(0);
                for (number, block) in (offset / BLOCK_SIZE as u64..).zip(memory.chunks_exact(BLOCK_SIZE)) {
                    if block.iter().any(|&byte| byte != 0) {
                        let mut hash = Hash::new(Of::Block);
                        hash.number(number);
                        hash.bytes(block);
                        sum = sum.wrapping_add(hash.end());
                    }
                }
            }
        }
        Ok(sum)
    }

    #[inline(never)]
    fn hash_target(&mut self, ino: Ino, size: u64) -> Result<u64, FsError<N::Error>> {
        let mut hash = Hash::new(Of::Target);
        match self.hash_records(&mut hash, (Key::target(ino.0, 0), Key::end(ino.0)), size)? {
            true => Ok(hash.end()),
            false => Err(FsError::Corrupt { ino, why: Damage::Target }),
        }
    }

    /// The sum of the hashes of the extended attributes of an inode.
    #[inline(never)]
    fn hash_xattrs(&mut self, ino: Ino) -> Result<u64, FsError<N::Error>> {
        let mut sum = 0_u64;
        let mut from = Key::xattr(ino.0, 0, 0, 0);
        loop {
            let mut hash = Hash::new(Of::Attribute);
            let (mut found, mut is_sound) = (None, true);
            self.records((from, Key::xattrs_end(ino.0)), |entry| {
                match (Meaning::of(entry.key), parse_xattr(entry.value)) {
                    (Some(Meaning::Xattr { hash: at, probe, part: 0, .. }), Some((name, value))) => {
                        hash.number(name.len() as u64);
                        hash.bytes(name);
                        found = Some((at, probe, value));
                    }
                    _ => is_sound = false,
                }
                ControlFlow::Break(())
            })?;
            let Some((at, probe, Value { size, number })) = found.filter(|_| is_sound) else {
                return if is_sound { Ok(sum) } else { Err(FsError::Corrupt { ino, why: Damage::Xattr }) };
            };
            hash.number(size as u64);
            let behind = Key::xattr(ino.0, at, probe, 0xFF);
            let parts = match number {
                Some(number) => (Key::long_value(ino.0, number, 1), long_value(ino.0, number).1),
                None => (Key::xattr(ino.0, at, probe, 1), behind),
            };
            if !self.hash_records(&mut hash, parts, size as u64)? {
                return Err(FsError::Corrupt { ino, why: Damage::Xattr });
            }
            sum = sum.wrapping_add(hash.end());
            from = behind;
        }
    }

    /// Adds what records hold to a hash, one after the other. Whether they have so many bytes together.
    fn hash_records(&mut self, hash: &mut Hash, range: (Key, Key), size: u64) -> Result<bool, FsError<N::Error>> {
        let mut left = size;
        let mut is_sound = true;
        self.records(range, |entry| {
            match left.checked_sub(entry.value.len() as u64) {
                Some(rest) => left = rest,
                None => is_sound = false,
            }
            hash.bytes(entry.value);
            if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(is_sound && left == 0)
    }
}

impl Inode {
    /// Whether it may have several names. A directory has one.
    fn has_links(&self) -> bool {
        self.nlink > 1 && !self.is_directory()
    }
}

#[cfg(test)]
mod tests {
    use super::PathHash;

    #[test]
    fn the_place_of_a_directory_is_found_again_from_below() {
        let names = [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF];
        let mut path = PathHash::ROOT;
        for name in names {
            path = path.below(name);
        }
        for name in names.into_iter().rev() {
            path = path.above(name);
        }
        assert_eq!(path.0, PathHash::ROOT.0);
    }
}
