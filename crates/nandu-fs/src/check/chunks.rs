//! Which directories have which chunk of inode numbers left to give.
//!
//! A chunk is [`CHUNK_SIZE`] numbers, of which the first is a multiple of that, and one directory gives them away. Which chunk a directory
//! has stands in its inode and nowhere else, so that no two have the same is found out by asking all of them, a window of chunks at a
//! time.

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{Key, Meaning};
use crate::super_block::CHUNK_SIZE;
use crate::{FsError, Ino};

/// More than one directory has numbers of the chunk left.
const SHARED: u8 = 0x80;

/// The directory that may keep them was passed.
const PASSED: u8 = 0x40;

/// What a directory that shares its chunk is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkClaim {
    /// Of all that have numbers of the chunk left it has gone furthest: no other has given away what it has left.
    Keeps,
    /// Another one has gone further, or as far.
    Yields,
}

/// The first number of a chunk that is still to be given, counted from its beginning: 1 to 63, since a chunk that is taken has given its
/// first. 0 if there is none.
type Next = u8;

/// A window of chunks: of each the furthest number that some directory goes on with.
struct ChunkWindow<'a> {
    chunks: &'a mut [u8],
    first: u64,
}

impl ChunkWindow<'_> {
    /// The chunk from which a directory has numbers left, and the next of them.
    fn claim(inode: &Inode) -> Option<(u64, Next)> {
        let is_left = inode.is_directory() && inode.chunk_next < inode.chunk_end;
        let chunk = is_left.then(|| (inode.chunk_end - 1) / CHUNK_SIZE)?;
        // One that begins before its chunk is wrong by itself.
        let next = inode.chunk_next.saturating_sub(chunk * CHUNK_SIZE);
        Some((chunk, (next as u8).clamp(1, CHUNK_SIZE as u8 - 1)))
    }

    fn place(&mut self, chunk: u64) -> Option<&mut u8> {
        self.chunks.get_mut(usize::try_from(chunk.checked_sub(self.first)?).ok()?)
    }

    fn note(&mut self, chunk: u64, next: Next) {
        if let Some(place) = self.place(chunk) {
            let is_shared = if *place == 0 { 0 } else { SHARED };
            *place = (*place & !SHARED).max(next) | is_shared;
        }
    }

    /// What this directory is to others, if it shares its chunk; in the order of inodes.
    fn decide(&mut self, inode: &Inode) -> Option<ChunkClaim> {
        let (chunk, next) = ChunkWindow::claim(inode)?;
        let place = self.place(chunk).filter(|place| **place & SHARED != 0)?;
        if *place & !SHARED != next {
            return Some(ChunkClaim::Yields);
        }
        *place |= PASSED;
        Some(ChunkClaim::Keeps)
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Calls with every directory that shares the numbers it has left with another one.
    ///
    /// Walks all records twice for as many chunks as `scratch` has bytes, if there are directories with numbers of them left.
    pub(super) fn for_each_shared_chunk(
        &mut self,
        scratch: &mut [u8],
        mut call: impl FnMut(&mut Self, u64, &Inode, ChunkClaim) -> Result<(), FsError<N::Error>>,
    ) -> Result<(), FsError<N::Error>> {
        let mut first = Some(0).filter(|_| !scratch.is_empty());
        while let Some(from) = first {
            scratch.fill(0);
            let mut window = ChunkWindow { chunks: &mut *scratch, first: from };
            first = self.note_chunks(&mut window)?;
            if !window.chunks.iter().any(|place| place & SHARED != 0) {
                continue;
            }
            let mut next = Ino::ROOT.0;
            while let Some((ino, inode)) = self.next_claim(next)? {
                if let Some(claim) = window.decide(&inode) {
                    call(self, ino, &inode, claim)?;
                }
                next = ino + 1;
            }
        }
        Ok(())
    }

    /// Notes the chunks of a window; returns the first chunk behind it of which a directory has numbers left.
    fn note_chunks(&mut self, window: &mut ChunkWindow<'_>) -> Result<Option<u64>, FsError<N::Error>> {
        let end = window.first.saturating_add(window.chunks.len() as u64);
        let mut behind: Option<u64> = None;
        self.for_each_claim(Ino::ROOT.0, |_, _, chunk, next| {
            window.note(chunk, next);
            if chunk >= end {
                behind = Some(behind.map_or(chunk, |behind| behind.min(chunk)));
            }
            ControlFlow::Continue(())
        })?;
        Ok(behind)
    }

    /// The first directory from this number on that has numbers left.
    fn next_claim(&mut self, from: u64) -> Result<Option<(u64, Inode)>, FsError<N::Error>> {
        let mut found = None;
        self.for_each_claim(from, |ino, inode, _, _| {
            found = Some((ino, inode));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    fn for_each_claim(
        &mut self,
        from: u64,
        mut call: impl FnMut(u64, Inode, u64, Next) -> ControlFlow<()>,
    ) -> Result<(), FsError<N::Error>> {
        let from = Key::inode(from);
        self.tree.range(Bound::Included(from.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
            let Some(Meaning::Inode { ino }) = Meaning::of(entry.key) else { return ControlFlow::Continue(()) };
            let Some(inode) = Inode::parse(entry.value) else { return ControlFlow::Continue(()) };
            match ChunkWindow::claim(&inode) {
                Some((chunk, next)) => call(ino, inode, chunk, next),
                None => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }
}
