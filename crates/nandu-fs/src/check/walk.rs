//! Going through inodes, names and pages with changes in between, and counting names.

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::names::{NAME_SIZE_MAX, parse as parse_name};
use crate::{FileKind, FsError, Ino};

/// Bytes of an inode's number and of how many names lead to it.
const TALLY_SIZE: usize = 12;

/// A name with its place, copied.
pub(crate) struct NameAt {
    pub(crate) position: u64,
    pub(crate) kind: FileKind,
    pub(crate) ino: Ino,
    bytes: [u8; NAME_SIZE_MAX],
    size: u8,
}

impl NameAt {
    pub(crate) fn name(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}

/// How many names lead to inodes of a window of numbers.
pub(crate) struct Tally<'a> {
    memory: &'a mut [u8],
    count: usize,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(memory: &'a mut [u8]) -> Tally<'a> {
        Tally { memory, count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// An inode of the window and its names.
    pub(crate) fn get(&self, at: usize) -> (u64, u32) {
        let (ino, names) = self.memory[at * TALLY_SIZE..][..TALLY_SIZE].split_at(8);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        (number(ino), number(names) as u32)
    }

    fn set(&mut self, at: usize, ino: u64, names: u32) {
        let bytes = &mut self.memory[at * TALLY_SIZE..][..TALLY_SIZE];
        bytes[..8].copy_from_slice(&ino.to_le_bytes());
        bytes[8..].copy_from_slice(&names.to_le_bytes());
    }

    /// Adds an inode, which is above those before it; false if there is no room.
    fn push(&mut self, ino: u64) -> bool {
        let has_room = self.count < self.memory.len() / TALLY_SIZE;
        if has_room {
            self.set(self.count, ino, 0);
            self.count += 1;
        }
        has_room
    }

    /// Counts a name that leads to an inode.
    fn count_name(&mut self, ino: u64) {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let (other, names) = self.get(middle);
            match other.cmp(&ino) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => return self.set(middle, ino, names.saturating_add(1)),
            }
        }
    }
}

impl<N: Nand> Fs<'_, N> {
    /// The first inode from this number on of which there is any record.
    pub(crate) fn next_inode(&mut self, from: u64) -> Result<Option<u64>, FsError<N::Error>> {
        let mut found = None;
        let from = Key::inode(from);
        self.tree.range(Bound::Included(from.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
            found = Some(Key::owner(entry.key)).filter(|&ino| ino > 0);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// The first name of a directory from a position on that can be understood.
    pub(crate) fn next_name(&mut self, directory: u64, position: u64) -> Result<Option<NameAt>, FsError<N::Error>> {
        let mut found = None;
        self.records((Key::name(directory, position), Key::names_end(directory)), |entry| {
            let (Some(Meaning::Name { position, .. }), Some((kind, ino, name))) =
                (Meaning::of(entry.key), parse_name(entry.value))
            else {
                return ControlFlow::Continue(());
            };
            let mut bytes = [0; NAME_SIZE_MAX];
            bytes[..name.len()].copy_from_slice(name);
            found = Some(NameAt { position, kind, ino, bytes, size: name.len() as u8 });
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The first page of a file from an index on of which there is any record.
    pub(crate) fn next_page(&mut self, ino: u64, index: u32) -> Result<Option<u32>, FsError<N::Error>> {
        self.first_record((Key::page(ino, index), Key::pages_end(ino)), |meaning| match meaning {
            Meaning::Page { index, .. } | Meaning::Fragment { index, .. } => Some(index),
            _ => None,
        })
    }

    /// Counts the names that lead to the inodes from a number on, as many as there is memory for; returns the first inode that
    /// found no room. Walks all records, reading what the tree reads for that.
    pub(crate) fn count_names(&mut self, from: u64, tally: &mut Tally<'_>) -> Result<Option<u64>, FsError<N::Error>> {
        let mut next = None;
        tally.count = 0;
        let first = Key::inode(from);
        self.tree.range(Bound::Included(first.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Inode { ino }) if !tally.push(ino) => {
                    next = Some(ino);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        })?;
        self.tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            if let (Some(Meaning::Name { .. }), Some((_, ino, _))) = (Meaning::of(entry.key), parse_name(entry.value)) {
                tally.count_name(ino.0);
            }
            ControlFlow::Continue(())
        })?;
        Ok(next.filter(|_| tally.len() > 0))
    }
}
