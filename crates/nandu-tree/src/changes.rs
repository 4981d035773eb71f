//! Changes that no leaf holds yet, in memory, sorted by key.
//!
//! Changes of one size lie one after another from the front of the memory, sorted by key; a change that comes or goes moves those
//! behind it, which costs less than the two bytes each that a table takes. Where keys and values have any length changes
//! lie in no order, and a table of their offsets, sorted by key, grows from the back. Each change says which journal page
//! holds it, if one does, and at which place there.

use core::ops::Range;

use nandu_media::features::{FILES, GROUP};
use nandu_media::journal::Change;
use nandu_media::tree::CellFormat;
use nandu_media::value::TAG_HERE;

/// In place of a journal page: none holds the change yet.
pub(crate) const UNSYNCED: u8 = 31;

const TAG_SIZE: usize = 2;
const ENTRY_SIZE: usize = 2;
const PUT: u16 = 1;
const UNPROVED: u16 = 2;

/// Where a change is on flash, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Place of the journal page in the list of them, or [`UNSYNCED`].
    pub(crate) journal: u8,
    /// Place of the change in that page.
    pub(crate) index: u16,
    /// Whether a leaf may hold it already.
    pub(crate) is_unproved: bool,
}

impl Home {
    pub(crate) const NONE: Home = Home { journal: UNSYNCED, index: 0, is_unproved: false };

    fn tag(self, is_put: bool) -> u16 {
        let unproved = if self.is_unproved { UNPROVED } else { 0 };
        u16::from(is_put) | unproved | u16::from(self.journal) << 2 | self.index << 7
    }
}

#[derive(Default)]
pub(crate) struct Changes<'m> {
    memory: &'m mut [u8],
    format: Sizes,
    count: usize,
    used: usize,
    /// How many may be in a leaf already.
    unproved: usize,
    /// How many no journal page holds.
    unsynced: usize,
    /// Bytes that these take in a journal page.
    unsynced_size: usize,
    /// How many of these have a value that is to stand in that page: one at most.
    residents: usize,
    /// Counts changes that no journal page holds, as they come.
    stamp: u64,
}

/// Bytes of keys and values; 0 and 0 for any.
#[derive(Clone, Copy, Default)]
struct Sizes {
    key: usize,
    value: usize,
    /// Bytes of the tag that leaves put in front of a value.
    tag: usize,
}

impl Sizes {
    fn is_fixed(self) -> bool {
        self.key > 0
    }

    #[inline]
    fn lengths(self) -> usize {
        if self.is_fixed() { 0 } else { 3 }
    }

    /// Bytes of an entry of the table.
    #[inline]
    fn entry(self) -> usize {
        if self.is_fixed() { 0 } else { ENTRY_SIZE }
    }

    /// Bytes of memory that a change takes, where all take the same.
    fn stride(self) -> usize {
        TAG_SIZE + self.key + self.value
    }
}

// A sync asks every change, in generic code that other crates make: what is not marked is called there, which is smaller for what is long.
impl<'m> Changes<'m> {
    /// `memory` has at most [`PENDING_SIZE_MAX`](crate::memory::PENDING_SIZE_MAX) bytes.
    pub(crate) fn new(memory: &'m mut [u8], format: &CellFormat) -> Changes<'m> {
        let (key, value) = (usize::from(format.key_size), usize::from(format.value_size));
        let format = Sizes { key, value, tag: usize::from(key == 0 && value == 0) };
        Changes { memory, format, ..Changes::default() }
    }

    /// Without the feature `group` there never is a change.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if GROUP { self.count } else { 0 }
    }

    /// How many may be in a leaf already.
    #[inline]
    pub(crate) fn unproved(&self) -> usize {
        if GROUP { self.unproved } else { 0 }
    }

    /// How many no journal page holds.
    #[inline]
    pub(crate) fn unsynced(&self) -> usize {
        if GROUP { self.unsynced } else { 0 }
    }

    /// Bytes that these take in a journal page.
    #[inline]
    pub(crate) fn unsynced_size(&self) -> usize {
        if GROUP { self.unsynced_size } else { 0 }
    }

    /// How many of these have a value that is to stand in that page: one at most.
    #[inline]
    pub(crate) fn residents(&self) -> usize {
        if GROUP && FILES { self.residents } else { 0 }
    }

    /// Counts changes that no journal page holds, as they come.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory in all.
    pub(crate) fn size(&self) -> usize {
        self.memory.len()
    }

    pub(crate) fn free(&self) -> usize {
        self.memory.len() - self.used - self.format.entry() * self.count
    }

    /// Bytes of memory that a change takes.
    pub(crate) fn required(&self, change: &Change<'_>) -> usize {
        if self.format.is_fixed() {
            return self.format.stride();
        }
        let value_size = change.value.map_or(0, |value| self.format.tag + value.len());
        TAG_SIZE + self.format.lengths() + change.key.len() + value_size + ENTRY_SIZE
    }

    #[inline]
    fn table_at(&self, index: usize) -> usize {
        self.memory.len() - ENTRY_SIZE * (index + 1)
    }

    #[inline]
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.memory[at], self.memory[at + 1]])
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self.memory[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn offset(&self, index: usize) -> usize {
        if self.format.is_fixed() {
            return index * self.format.stride();
        }
        usize::from(self.u16_at(self.table_at(index)))
    }

    /// Where the key and what a leaf is to hold for it are, for the change at an offset.
    fn parts(&self, offset: usize) -> (Range<usize>, Range<usize>) {
        let lengths = offset + TAG_SIZE;
        let start = lengths + self.format.lengths();
        let is_put = self.u16_at(offset) & PUT != 0;
        let (key_size, value_size) = match self.format.lengths() {
            0 => (self.format.key, if is_put { self.format.value } else { 0 }),
            _ => (usize::from(self.memory[lengths]), usize::from(self.u16_at(lengths + 1))),
        };
        (start..start + key_size, start + key_size..start + key_size + value_size)
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        &self.memory[self.parts(self.offset(index)).0]
    }

    pub(crate) fn change(&self, index: usize) -> Change<'_> {
        let offset = self.offset(index);
        let (key, value) = self.parts(offset);
        let is_put = self.u16_at(offset) & PUT != 0;
        let tag = if is_put && self.format.tag > 0 { self.memory[value.start] } else { 0 };
        let value = is_put.then(|| &self.memory[value.start + self.format.tag..value.end]);
        Change { key: &self.memory[key], tag, value }
    }

    /// What a leaf is to hold for the key of a change, tag included; `None` if nothing.
    pub(crate) fn stored(&self, index: usize) -> Option<&[u8]> {
        let offset = self.offset(index);
        let is_put = self.u16_at(offset) & PUT != 0;
        is_put.then(|| &self.memory[self.parts(offset).1])
    }

    #[inline]
    pub(crate) fn home(&self, index: usize) -> Home {
        let tag = self.u16_at(self.offset(index));
        Home { journal: (tag >> 2 & 31) as u8, index: tag >> 7, is_unproved: tag & UNPROVED != 0 }
    }

    /// Bytes of a change in a journal page.
    pub(crate) fn journal_size(&self, change: &Change<'_>) -> usize {
        let lengths = match (self.format.lengths(), change.value) {
            (0, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 3,
        };
        1 + lengths + change.key.len() + change.value.map_or(0, <[u8]>::len)
    }

    /// The index of a key, or where it would be.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        if GROUP { self.search(key) } else { Err(0) }
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.key(middle).cmp(key) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Equal => return Ok(middle),
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Index of the first change whose key is not below this one.
    pub(crate) fn lower(&self, key: &[u8]) -> usize {
        let (Ok(index) | Err(index)) = self.find(key);
        index
    }

    fn count_in(&mut self, index: usize, is_in: bool) {
        let home = self.home(index);
        let size = self.journal_size(&self.change(index));
        let (unsynced, unproved) = (usize::from(home.journal == UNSYNCED), usize::from(home.is_unproved));
        let resident = usize::from(self.change(index).tag == TAG_HERE);
        if is_in {
            self.residents += resident;
            self.unsynced += unsynced;
            self.unproved += unproved;
            self.unsynced_size += size * unsynced;
            self.stamp += unsynced as u64;
        } else {
            self.residents -= resident;
            self.unsynced -= unsynced;
            self.unproved -= unproved;
            self.unsynced_size -= size * unsynced;
        }
    }

    pub(crate) fn set_home(&mut self, index: usize, home: Home) {
        self.count_in(index, false);
        let offset = self.offset(index);
        let is_put = self.u16_at(offset) & PUT != 0;
        self.set_u16(offset, home.tag(is_put));
        self.count_in(index, true);
    }

    /// The change whose value waits to stand in a journal page.
    pub(crate) fn resident(&self) -> Option<usize> {
        if self.residents() == 0 {
            return None;
        }
        (0..self.len()).find(|&index| self.change(index).tag == TAG_HERE)
    }

    /// Puts a change in place of what is there of its key. Returns false, with nothing changed, if there is no room.
    pub(crate) fn set(&mut self, change: &Change<'_>, home: Home) -> bool {
        let found = self.find(change.key);
        let gain = found.map_or(0, |index| self.required(&self.change(index)));
        let required = self.required(change);
        if required > self.free() + gain {
            return false;
        }
        if let Ok(index) = found {
            self.remove(index);
        }
        let (Ok(index) | Err(index)) = found;
        let offset = self.make_place(index, required);
        self.set_u16(offset, home.tag(change.value.is_some()));
        let value = change.value.unwrap_or(&[]);
        let tag = if change.value.is_some() { self.format.tag } else { 0 };
        if self.format.lengths() > 0 {
            self.memory[offset + TAG_SIZE] = change.key.len() as u8;
            self.set_u16(offset + TAG_SIZE + 1, (tag + value.len()) as u16);
        }
        let start = offset + TAG_SIZE + self.format.lengths();
        let middle = start + change.key.len();
        self.memory[start..middle].copy_from_slice(change.key);
        self.memory[middle..middle + tag].fill(change.tag);
        self.memory[middle + tag..][..value.len()].copy_from_slice(value);
        self.count_in(index, true);
        true
    }

    /// Makes place for a change that becomes the one of this index, and returns where.
    fn make_place(&mut self, index: usize, required: usize) -> usize {
        self.count += 1;
        if self.format.is_fixed() {
            let offset = index * required;
            self.memory.copy_within(offset..self.used, offset + required);
            self.used += required;
            return offset;
        }
        let offset = self.used;
        self.used += required - ENTRY_SIZE;
        let (first, last) = (self.table_at(self.count - 1), self.table_at(index));
        self.memory.copy_within(first + ENTRY_SIZE..last + ENTRY_SIZE, first);
        self.set_u16(last, offset as u16);
        offset
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.count_in(index, false);
        let offset = self.offset(index);
        let end = if self.format.is_fixed() { offset + self.format.stride() } else { self.parts(offset).1.end };
        self.memory.copy_within(end..self.used, offset);
        self.used -= end - offset;
        if self.format.is_fixed() {
            self.count -= 1;
            return;
        }
        let first = self.table_at(self.count - 1);
        let gone = self.table_at(index);
        self.memory.copy_within(first..gone, first + ENTRY_SIZE);
        self.count -= 1;
        let table = self.memory.len() - ENTRY_SIZE * self.count;
        let (offset, size) = (offset as u16, (end - offset) as u16);
        for entry in self.memory[table..].chunks_exact_mut(ENTRY_SIZE) {
            let at = u16::from_le_bytes([entry[0], entry[1]]);
            let at = if at > offset { at - size } else { at };
            entry.copy_from_slice(&at.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::{Changes, Home};
    use nandu_media::journal::Change;
    use nandu_media::tree::CellFormat;

    /// Both kinds of cells, against a map, with changes of any size coming and going until the memory is full.
    #[test]
    fn changes_are_sorted_and_their_room_is_used_again() {
        for (key_size, value_size) in [(2, 3), (0, 0)] {
            let format = CellFormat { cells: 1, key_size, value_size, page_bits: 9 };
            let mut memory = [0; 400];
            let mut changes = Changes::new(&mut memory, &format);
            let mut model: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
            let mut refused = 0;
            for step in 0..20_000_u32 {
                let random = step.wrapping_mul(0x9E37_79B1) >> 7;
                let key = ((random % 90) as u16).to_be_bytes();
                if random % 3 == 0 {
                    if let Ok(index) = changes.find(&key) {
                        changes.remove(index);
                    }
                    model.remove(&key[..]);
                    continue;
                }
                let size = if value_size > 0 { 3 } else { random as usize / 64 % 9 };
                let value = std::vec![random as u8; size];
                let value = (random / 16 % 4 > 0).then_some(value);
                let change = Change { key: &key, tag: 0, value: value.as_deref() };
                let home = match random / 32 % 3 {
                    0 => Home::NONE,
                    kind => Home { journal: 30, index: 510, is_unproved: kind == 1 },
                };
                if changes.set(&change, home) {
                    let index = changes.find(&key).unwrap();
                    assert_eq!(changes.home(index), home);
                    model.insert(key.to_vec(), value);
                } else {
                    refused += 1;
                }
                let found: Vec<_> = (0..changes.len()).map(|index| changes.change(index)).collect();
                let expected: Vec<_> =
                    model.iter().map(|(key, value)| Change { key, tag: 0, value: value.as_deref() }).collect();
                assert_eq!(found, expected);
                let unproved = (0..changes.len()).filter(|&index| changes.home(index).is_unproved).count();
                assert_eq!(changes.unproved(), unproved);
            }
            assert!(refused > 100, "{refused}");
            while !changes.is_empty() {
                changes.remove(0);
            }
            assert_eq!((changes.free(), changes.unsynced(), changes.unsynced_size()), (400, 0, 0));
        }
    }
}
