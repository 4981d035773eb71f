//! Changes in memory, sorted by key: those that wait, and those that are in their leaf and that a member of the window lists all the same.
//!
//! So memory holds what a mount would make there (W4), and who looks for a key here learns whether a member lists it.
//!
//! Changes of one size lie one after another from the front of the memory; a change that comes or goes moves those behind it, which costs less than the two bytes
//! each that a table takes. Where keys and values have any length changes lie in no order, and a table of their offsets, sorted by key, grows from the back.
//!
//! ```text
//! change:    1  tag           bit 0 put; bits 1 to 4 the member of the window that lists it, by its slot, or 15: none does; bit 5 merged: a page under way holds
//!                             it; bit 6 listed: the commit under way lists it; bit 7 in leaf: its leaf holds it; with merged: its value is what is put at once,
//!                             which stands elsewhere
//!            3  lengths       of key and value, only where they have any length
//!               key, value    where all have one length, a delete takes the room of a value too
//! ```

use core::cmp::Ordering;
use core::ops::Range;

use nandu_index::{Edit, KEY_SIZE_MAX};
use nandu_media::change::{ListedChange, TAG_HERE, TAG_INLINE};
use nandu_media::features::GROUP;
use nandu_media::tree::{CellFormat, Malformed};

use crate::division::{name_raw, names_own_page, set_number};
use crate::edits::Edits;

/// In place of a member's slot: no commit lists the change yet.
pub(crate) const UNSYNCED: u8 = 15;

const TAG_SIZE: usize = 1;
const LENGTHS: usize = 3;
const ENTRY_SIZE: usize = 2;

/// Bytes that a change of the longest key takes of memory at once.
pub(crate) const AT_ONCE_MAX: usize = TAG_SIZE + LENGTHS + KEY_SIZE_MAX + ENTRY_SIZE;

const PUT: u8 = 1;
const HOME: u8 = 15 << 1;
const MERGED: u8 = 1 << 5;
const LISTED: u8 = 1 << 6;
const IN_LEAF: u8 = 1 << 7;
const AT_ONCE: u8 = IN_LEAF | MERGED;

/// Whether a change waits.
const fn waits(tag: u8) -> bool {
    tag & AT_ONCE != IN_LEAF
}

/// Whether the value of a change is what is put at once.
const fn is_at_once(tag: u8) -> bool {
    tag & AT_ONCE == AT_ONCE
}

/// The member that lists a change, by its slot: of what is put at once none does, whatever one lists of its key.
const fn home(tag: u8) -> u8 {
    if is_at_once(tag) { UNSYNCED } else { (tag & HOME) >> 1 }
}

/// Which changes a commit lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    /// Those that none lists yet.
    pub(crate) unsynced: bool,
    /// Those of these members that still wait, a bit for each slot.
    pub(crate) carried: u16,
    /// Of this member as many as take so many bytes.
    pub(crate) part: Option<(u8, usize)>,
}

/// Changes in memory.
pub(crate) struct Changes<'m> {
    memory: &'m mut [u8],
    format: CellFormat,
    count: usize,
    used: usize,
    /// Bytes that the changes of each member that wait take in a list, without those that are merged; last of those that are unsynced, with them.
    sizes: [u32; UNSYNCED as usize + 1],
    /// Bytes of memory of changes that wait.
    waiting: usize,
    /// Bytes of memory of unsynced changes.
    unsynced: usize,
    /// Entries that the unsynced changes add, without those that they remove.
    gain: i64,
    /// Entries that what is put at once adds.
    at_once_gain: i64,
}

impl<'m> Changes<'m> {
    pub(crate) fn new(memory: &'m mut [u8], format: CellFormat) -> Changes<'m> {
        let most = if format.key_size > 0 { memory.len() } else { memory.len().min(u16::MAX.into()) };
        let memory = &mut memory[..most];
        let sizes = [0; UNSYNCED as usize + 1];
        Changes { memory, format, count: 0, used: 0, sizes, waiting: 0, unsynced: 0, gain: 0, at_once_gain: 0 }
    }

    fn is_fixed(&self) -> bool {
        self.format.key_size > 0
    }

    pub(crate) fn len(&self) -> usize {
        if GROUP { self.count } else { 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory in all.
    pub(crate) fn size(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of memory that changes take.
    pub(crate) fn used(&self) -> usize {
        if self.is_fixed() { self.used } else { self.used + ENTRY_SIZE * self.count }
    }

    /// Bytes of memory that changes take which wait.
    pub(crate) fn waiting(&self) -> usize {
        if GROUP { self.waiting } else { 0 }
    }

    /// Bytes of memory that unsynced changes take.
    pub(crate) fn unsynced(&self) -> usize {
        if GROUP { self.unsynced } else { 0 }
    }

    /// Entries that the unsynced changes add, without those that they remove.
    pub(crate) fn gain(&self) -> i64 {
        if GROUP { self.gain } else { 0 }
    }

    /// Bytes that what still waits of a member takes in a list; with [`UNSYNCED`], what none lists.
    pub(crate) fn bytes_in(&self, slot: u8) -> usize {
        if GROUP { self.sizes[usize::from(slot)] as usize } else { 0 }
    }

    /// A page that the head at a key names is another one, which no member says yet.
    pub(crate) fn set_page(&mut self, index: usize, page: u32) {
        let tag = self.tag(index);
        debug_assert!(tag & (PUT | MERGED) == PUT, "a head, and nothing is under way");
        self.set_tag(index, PUT | UNSYNCED << 1);
        let value = self.parts(self.offset(index)).1;
        set_number(&mut self.memory[value], page);
    }

    /// The value of which the head at a key says where it stands is in a raw page, which has this number and this checksum, which no member says yet.
    pub(crate) fn set_raw(&mut self, index: usize, named: (u32, u32)) {
        self.set_page(index, named.0);
        let value = self.parts(self.offset(index)).1;
        name_raw(&mut self.memory[value], named);
    }

    /// A head that says that its value is in the commit that lists it says from here on which page that is.
    pub(crate) fn name_own_page(&mut self, page: u32) {
        let own = (0..self.len()).find(|&index| self.value(index).is_some_and(names_own_page));
        if let Some(index) = own {
            let value = self.parts(self.offset(index)).1;
            set_number(&mut self.memory[value], page);
        }
    }

    /// Bytes of memory that a change takes.
    fn memory_size(&self, edit: &Edit<'_>) -> usize {
        let value_size = edit.value.map_or(0, <[u8]>::len);
        match self.is_fixed() {
            true => self.stride(),
            false => TAG_SIZE + LENGTHS + edit.key.len() + value_size + ENTRY_SIZE,
        }
    }

    /// Bytes that the change of a key takes of memory and, if none lists it yet, of the next list.
    pub(crate) fn sizes_of(&self, key: &[u8]) -> (usize, usize) {
        let Ok(index) = self.find(key) else { return (0, 0) };
        let edit = self.edit(index);
        let is_unsynced = self.is_unsynced(index..index + 1);
        (self.memory_size(&edit), if is_unsynced { self.list_size(&edit) } else { 0 })
    }

    /// Bytes that the next list takes more if it is to have the change of a key.
    pub(crate) fn listing(&self, key: &[u8]) -> usize {
        let found = self.find(key).ok().filter(|&index| !self.is_unsynced(index..index + 1));
        found.map_or(0, |index| self.list_size(&self.edit(index)))
    }

    /// The same of several, and bytes that they take in a list.
    pub(crate) fn sizes(&self, edits: &Edits<'_>) -> (usize, usize) {
        edits.iter().fold((0, 0), |sum, edit| (sum.0 + self.memory_size(&edit), sum.1 + self.list_size(&edit)))
    }

    /// Bytes that a change takes in a list.
    pub(crate) fn list_size(&self, edit: &Edit<'_>) -> usize {
        as_change(*edit).size(&self.format)
    }

    fn stride(&self) -> usize {
        TAG_SIZE + usize::from(self.format.key_size) + usize::from(self.format.value_size)
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.memory[at], self.memory[at + 1]])
    }

    fn table_at(&self, index: usize) -> usize {
        self.memory.len() - ENTRY_SIZE * (index + 1)
    }

    fn offset(&self, index: usize) -> usize {
        debug_assert!(index < self.count, "a change that is here");
        if self.is_fixed() { index * self.stride() } else { usize::from(self.u16_at(self.table_at(index))) }
    }

    /// Where key and value of the change at an offset are.
    fn parts(&self, offset: usize) -> (Range<usize>, Range<usize>) {
        let at = offset + TAG_SIZE;
        let (start, key_size, value_size) = match self.is_fixed() {
            true => (at, usize::from(self.format.key_size), usize::from(self.format.value_size)),
            false => (at + LENGTHS, usize::from(self.memory[at]), usize::from(self.u16_at(at + 1))),
        };
        (start..start + key_size, start + key_size..start + key_size + value_size)
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        &self.memory[self.parts(self.offset(index)).0]
    }

    /// What is put at the key of a change; `None` if that is deleted.
    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        let offset = self.offset(index);
        (self.memory[offset] & PUT != 0).then(|| &self.memory[self.parts(offset).1])
    }

    pub(crate) fn edit(&self, index: usize) -> Edit<'_> {
        Edit { key: self.key(index), value: self.value(index) }
    }

    /// Changes of these indexes.
    pub(crate) fn edits(&self, indexes: Range<usize>) -> impl Iterator<Item = Edit<'_>> + Clone {
        debug_assert!(indexes.end <= self.count, "changes that are here");
        indexes.map(|index| self.edit(index))
    }

    /// Changes that are merged with what is under way; these are put at once, in the order of their keys.
    pub(crate) fn merged<'e>(&'e self, at_once: &'e Edits<'e>) -> impl Iterator<Item = Edit<'e>> {
        let edit = move |index| {
            let edit = self.edit(index);
            let put = if is_at_once(self.tag(index)) { at_once.find(edit.key) } else { None };
            put.unwrap_or(edit)
        };
        (0..self.len()).filter(|&index| self.tag(index) & MERGED != 0).map(edit)
    }

    fn tag(&self, index: usize) -> u8 {
        self.memory[self.offset(index)]
    }

    /// The index of a key, or where it would be.
    pub(crate) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Index of the first change whose key is not below this one.
    pub(crate) fn lower(&self, key: &[u8]) -> usize {
        let (Ok(index) | Err(index)) = self.find(key);
        index
    }

    /// A change enters the sums or leaves them.
    fn count_in(&mut self, index: usize, is_in: bool) {
        let (tag, edit) = (self.tag(index), self.edit(index));
        let (home, memory) = (home(tag), self.memory_size(&edit));
        let size = self.listed(index).size(&self.format) as u32;
        let counts = home == UNSYNCED || tag & (MERGED | IN_LEAF) == 0;
        let sum = &mut self.sizes[usize::from(home)];
        debug_assert!(is_in || !counts || *sum >= size, "what leaves a sum was in it");
        match (is_in, counts) {
            (_, false) => {}
            (true, true) => *sum += size,
            (false, true) => *sum -= size,
        }
        if waits(tag) {
            self.waiting = if is_in { self.waiting + memory } else { self.waiting - memory };
        }
        if home == UNSYNCED {
            self.unsynced = if is_in { self.unsynced + memory } else { self.unsynced - memory };
        }
    }

    fn set_tag(&mut self, index: usize, tag: u8) {
        self.count_in(index, false);
        let offset = self.offset(index);
        debug_assert!((tag ^ self.memory[offset]) & PUT == 0, "a change stays what it is");
        self.memory[offset] = tag;
        self.count_in(index, true);
    }

    /// Puts a change in place of what is there of its key. Returns false, with nothing changed, if there is no room.
    pub(crate) fn set(&mut self, edit: &Edit<'_>, home: u8) -> bool {
        debug_assert!(home <= UNSYNCED, "a slot of the window");
        let found = self.find(edit.key);
        let gain = found.map_or(0, |index| self.memory_size(&self.edit(index)));
        let required = self.memory_size(edit);
        if self.used() - gain + required > self.memory.len() {
            return false;
        }
        if let Ok(index) = found {
            self.remove(index);
        }
        let (Ok(index) | Err(index)) = found;
        let offset = self.make_place(index, required);
        self.memory[offset] = home << 1 | u8::from(edit.value.is_some());
        let value = edit.value.unwrap_or_default();
        if !self.is_fixed() {
            let [low, high] = (value.len() as u16).to_le_bytes();
            self.memory[offset + TAG_SIZE..][..LENGTHS].copy_from_slice(&[edit.key.len() as u8, low, high]);
        }
        let (key_at, value_at) = self.parts(offset);
        self.memory[key_at].copy_from_slice(edit.key);
        self.memory[value_at.start..][..value.len()].copy_from_slice(value);
        self.count_in(index, true);
        debug_assert!(self.find(edit.key) == Ok(index), "changes are sorted");
        true
    }

    /// A change that none lists yet; with it the tree has so many entries more.
    pub(crate) fn set_unsynced(&mut self, edit: &Edit<'_>, gain: i64) {
        let is_set = self.set(edit, UNSYNCED);
        debug_assert!(is_set, "room was made");
        self.gain += gain;
    }

    /// What is put at once at a key, of which nothing is unsynced, is merged with what is under way, in place of what waits of it; the tree has so many entries more.
    pub(crate) fn set_at_once(&mut self, key: &[u8], gain: i64) {
        debug_assert!(!self.is_unsynced_at(key), "what is there of the key a member lists");
        if self.find(key).is_err() {
            let is_set = self.set(&Edit { key, value: None }, UNSYNCED);
            debug_assert!(is_set, "room was made");
        }
        let Ok(index) = self.find(key) else { return };
        self.set_tag(index, self.tag(index) | AT_ONCE);
        debug_assert!(self.is_here(self.tag(index)), "a list says that it is in its leaf");
        (self.gain, self.at_once_gain) = (self.gain + gain, self.at_once_gain + gain);
    }

    /// Bytes that what is put at once at a key takes in memory, beside what is there of the key, and in a list.
    pub(crate) fn at_once_sizes(&self, key: &[u8]) -> (usize, usize) {
        let memory = if self.find(key).is_ok() { 0 } else { self.memory_size(&Edit { key, value: None }) };
        (memory, as_here(key).size(&self.format))
    }

    /// Bytes that what is put at once takes in memory and in a list, at most.
    pub(crate) fn at_once_size(&self, key: &[u8]) -> usize {
        self.memory_size(&Edit { key, value: Some(&[]) })
    }

    /// Whether a commit lists of a change only that it is in its leaf: of what is put at once, and, where a list has a word for that, of what is merged and unsynced.
    fn is_here(&self, tag: u8) -> bool {
        is_at_once(tag) || !self.is_fixed() && tag & MERGED != 0 && home(tag) == UNSYNCED
    }

    /// The change as a commit lists it.
    fn listed(&self, index: usize) -> ListedChange<'_> {
        let Edit { key, value } = self.edit(index);
        match self.is_here(self.tag(index)) {
            false => ListedChange { key, tag: TAG_INLINE, value },
            true => as_here(key),
        }
    }

    /// Bytes that the next list takes less if these changes are merged with its commit.
    pub(crate) fn merging_spares(&self, indexes: Range<usize>) -> usize {
        let unsynced = indexes.filter(|&index| !self.is_fixed() && self.is_unsynced(index..index + 1));
        let spared =
            |index| self.list_size(&self.edit(index)).saturating_sub(as_here(self.key(index)).size(&self.format));
        unsynced.map(spared).sum()
    }

    /// Makes place for a change that becomes the one of this index, and returns where.
    fn make_place(&mut self, index: usize, required: usize) -> usize {
        self.count += 1;
        if self.is_fixed() {
            let offset = index * required;
            self.memory.copy_within(offset..self.used, offset + required);
            self.used += required;
            return offset;
        }
        let offset = self.used;
        self.used += required - ENTRY_SIZE;
        let (first, last) = (self.table_at(self.count - 1), self.table_at(index));
        self.memory.copy_within(first + ENTRY_SIZE..last + ENTRY_SIZE, first);
        self.memory[last..last + ENTRY_SIZE].copy_from_slice(&(offset as u16).to_le_bytes());
        debug_assert!(self.used <= first, "changes and their table do not overlap");
        offset
    }

    fn remove(&mut self, index: usize) {
        self.count_in(index, false);
        let offset = self.offset(index);
        let end = if self.is_fixed() { offset + self.stride() } else { self.parts(offset).1.end };
        if !self.is_fixed() {
            let (first, gone) = (self.table_at(self.count - 1), self.table_at(index));
            self.memory.copy_within(first..gone, first + ENTRY_SIZE);
        }
        self.memory.copy_within(end..self.used, offset);
        self.used -= end - offset;
        self.count -= 1;
        if !self.is_fixed() {
            let table = self.memory.len() - ENTRY_SIZE * self.count;
            let (offset, size) = (offset as u16, (end - offset) as u16);
            for entry in self.memory[table..].chunks_exact_mut(ENTRY_SIZE) {
                let at = u16::from_le_bytes([entry[0], entry[1]]);
                entry.copy_from_slice(&(if at > offset { at - size } else { at }).to_le_bytes());
            }
        }
        debug_assert!(self.used() <= self.memory.len(), "less is used than before");
    }

    /// Whether no commit lists the change of a key.
    pub(crate) fn is_unsynced_at(&self, key: &[u8]) -> bool {
        self.find(key).is_ok_and(|index| home(self.tag(index)) == UNSYNCED)
    }

    /// How many of these changes wait.
    pub(crate) fn waits_in(&self, indexes: Range<usize>) -> usize {
        indexes.filter(|&index| waits(self.tag(index))).count()
    }

    /// The first change that waits.
    pub(crate) fn first_waiting(&self) -> Option<usize> {
        (0..self.len()).find(|&index| waits(self.tag(index)))
    }

    /// So many of these changes that wait at most, the first ones, and how many these are.
    pub(crate) fn first_of(&self, indexes: Range<usize>, most: usize) -> (Range<usize>, usize) {
        debug_assert!(indexes.end <= self.len(), "changes that are here");
        let mut waiting = indexes.clone().filter(|&index| waits(self.tag(index)));
        let count = waiting.by_ref().take(most).count();
        let end = waiting.next().unwrap_or(indexes.end);
        (indexes.start..end, count)
    }

    /// Those of these changes that wait are merged with what is under way.
    pub(crate) fn merge(&mut self, indexes: Range<usize>) {
        debug_assert!(indexes.end <= self.len(), "changes that are here");
        for index in indexes {
            if waits(self.tag(index)) {
                self.set_tag(index, self.tag(index) | MERGED);
            }
        }
    }

    /// What was under way did not happen. What was to be put at once in the place of a change that a member lists waits again, in its leaf or not.
    pub(crate) fn undo(&mut self) {
        for index in (0..self.len()).rev() {
            let tag = self.tag(index);
            match (is_at_once(tag), tag & HOME == UNSYNCED << 1) {
                (true, true) => self.remove(index),
                (true, false) => self.set_tag(index, tag & (PUT | HOME)),
                (false, _) => self.set_tag(index, tag & !(MERGED | LISTED)),
            }
        }
        self.gain -= core::mem::take(&mut self.at_once_gain);
    }

    /// What is merged is in its leaf: it stays here while a member lists it, if it is to.
    pub(crate) fn merged_is_in_leaf(&mut self, stays: bool) {
        for index in (0..self.len()).rev() {
            if self.tag(index) & MERGED != 0 {
                self.is_in_leaf(index, stays);
            }
        }
    }

    /// A change is in its leaf.
    fn is_in_leaf(&mut self, index: usize, stays: bool) {
        let tag = self.tag(index);
        if stays && tag & HOME != UNSYNCED << 1 && !is_at_once(tag) {
            self.set_tag(index, tag & !MERGED | IN_LEAF);
        } else {
            self.remove(index);
        }
    }

    /// Whether none of these changes is listed.
    pub(crate) fn is_unsynced(&self, mut indexes: Range<usize>) -> bool {
        indexes.all(|index| home(self.tag(index)) == UNSYNCED)
    }

    /// Whether none lists one of these changes.
    pub(crate) fn has_unsynced(&self, mut indexes: Range<usize>) -> bool {
        indexes.any(|index| home(self.tag(index)) == UNSYNCED)
    }

    /// Whether a change that none lists is merged with what is under way.
    pub(crate) fn has_merged_unsynced(&self) -> bool {
        (0..self.len()).any(|index| self.has_unsynced(index..index + 1) && self.tag(index) & MERGED != 0)
    }

    /// Whether a change that none lists is not merged with what is under way.
    pub(crate) fn has_others(&self) -> bool {
        (0..self.len()).any(|index| home(self.tag(index)) == UNSYNCED && self.tag(index) & MERGED == 0)
    }

    /// Chooses what the commit under way lists. Returns how many bytes the list takes.
    pub(crate) fn choose(&mut self, choice: Listing) -> usize {
        let mut size = 0;
        let mut part_left = choice.part.map_or(0, |(_, left)| left);
        for index in 0..self.len() {
            let tag = self.tag(index);
            let home = home(tag);
            let bytes = self.listed(index).size(&self.format);
            let waits = tag & (MERGED | IN_LEAF) == 0;
            let is_part = waits && choice.part.is_some_and(|(slot, _)| slot == home) && bytes <= part_left;
            part_left -= if is_part { bytes } else { 0 };
            let is_listed = match home {
                UNSYNCED => choice.unsynced,
                home => is_part || waits && choice.carried >> home & 1 != 0,
            };
            self.set_tag(index, if is_listed { tag | LISTED } else { tag & !LISTED });
            size += if is_listed { bytes } else { 0 };
        }
        size
    }

    /// Writes the list of what was chosen.
    pub(crate) fn write_listed(&self, out: &mut [u8]) {
        let mut at = 0;
        for index in (0..self.len()).filter(|&index| self.tag(index) & LISTED != 0) {
            at += self.listed(index).write(&self.format, &mut out[at..]);
        }
        debug_assert!(at == out.len(), "the list is as long as it was counted");
    }

    /// The commit is durable: what it lists is recorded in the member of this slot, and what was merged is in its leaf, where it stays here, if it is to, until its member leaves. These members leave, a bit for each slot.
    pub(crate) fn committed(&mut self, slot: u8, (leaving, stays): (u16, bool)) {
        for index in (0..self.len()).rev() {
            let tag = self.tag(index);
            let is_here = self.is_here(tag);
            debug_assert!(!is_here || tag & MERGED != 0, "it is in a leaf of the commit");
            if tag & LISTED != 0 {
                self.set_tag(index, tag & !(HOME | LISTED) | slot << 1);
            }
            let tag = self.tag(index);
            let leaves = leaving >> ((tag & HOME) >> 1) & 1 != 0;
            if tag & MERGED != 0 {
                // Of what is listed so a mount makes nothing in memory.
                self.is_in_leaf(index, stays && !leaves && !is_here);
            } else if leaves && !waits(tag) {
                self.remove(index);
            }
        }
        debug_assert!(self.unsynced == 0, "every change is in a leaf or in a list");
        debug_assert!(self.waiting <= self.used(), "what waits is a part of what is here");
        (self.gain, self.at_once_gain) = (0, 0);
    }

    /// Makes a list of changes, which the member of this slot has; one that says that a value is in its leaf takes out what older members have of the key. Returns whether there is room.
    ///
    /// All that the list takes the place of goes before any of it comes: so no more memory is taken on the way than when the list was programmed.
    pub(crate) fn replay(
        &mut self,
        list: &[u8],
        (slot, heeds_heads): (u8, bool),
        is_sound: impl Fn(&[u8], Option<&[u8]>) -> bool,
    ) -> Result<bool, Malformed> {
        let mut rest = list;
        while !rest.is_empty() {
            let change = ListedChange::parse(&self.format, rest)?;
            rest = change.1;
            let ListedChange { key, tag, value } = change.0;
            if !matches!(tag, TAG_INLINE | TAG_HERE) || !is_sound(key, value) {
                return Err(Malformed::Node);
            }
            if tag == TAG_HERE && !heeds_heads {
                continue;
            }
            if let Ok(index) = self.find(key) {
                self.remove(index);
            }
        }
        let mut rest = list;
        while !rest.is_empty() {
            let change = ListedChange::parse(&self.format, rest)?;
            rest = change.1;
            let ListedChange { key, tag, value } = change.0;
            if tag == TAG_HERE {
                continue;
            }
            if self.find(key).is_ok() {
                return Err(Malformed::Node);
            }
            if !self.set(&Edit { key, value }, slot) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The value of a key is in its leaf, or there is none.
fn as_here(key: &[u8]) -> ListedChange<'_> {
    ListedChange { key, tag: TAG_HERE, value: Some(&[]) }
}

fn as_change(edit: Edit<'_>) -> ListedChange<'_> {
    ListedChange { key: edit.key, tag: TAG_INLINE, value: edit.value }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use nandu_index::Edit;
    use nandu_media::tree::CellFormat;

    use super::{Changes, Listing, UNSYNCED};

    /// Both kinds of cells, against a map, with changes of any size coming and going until the memory is full.
    #[test]
    fn changes_are_sorted_and_their_room_is_used_again() {
        for (key_size, value_size) in [(2, 3), (0, 0)] {
            let format = CellFormat { cells: 1, key_size, value_size, page_bits: 9 };
            let mut memory = [0; 250];
            let mut changes = Changes::new(&mut memory, format);
            let mut model: BTreeMap<Vec<u8>, (u8, Option<Vec<u8>>)> = BTreeMap::new();
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
                let value = (random / 16 % 4 > 0).then(|| std::vec![random as u8; size]);
                let home = [UNSYNCED, 0, 14][random as usize / 32 % 3];
                if changes.set(&Edit { key: &key, value: value.as_deref() }, home) {
                    model.insert(key.to_vec(), (home, value));
                } else {
                    refused += 1;
                }
                let found: Vec<_> = changes.edits(0..changes.len()).collect();
                let expected: Vec<_> =
                    model.iter().map(|(key, (_, value))| Edit { key, value: value.as_deref() }).collect();
                assert_eq!(found, expected);
                for slot in [0, 14, UNSYNCED] {
                    let of_slot = model.iter().filter(|(_, (home, _))| *home == slot);
                    let sum: usize = of_slot
                        .map(|(key, (_, value))| changes.list_size(&Edit { key, value: value.as_deref() }))
                        .sum();
                    assert_eq!(changes.bytes_in(slot), sum);
                }
            }
            assert!(refused > 100, "{refused}");
            while !changes.is_empty() {
                changes.remove(0);
            }
            assert_eq!((changes.used(), changes.unsynced(), changes.bytes_in(UNSYNCED)), (0, 0, 0));
        }
    }

    /// Room in a list is made before changes are merged. Deletes once took more of it behind that, and a call was refused.
    #[test]
    fn what_is_merged_takes_no_more_of_a_list() {
        let format = CellFormat { cells: 1, key_size: 0, value_size: 0, page_bits: 9 };
        let mut memory = [0; 250];
        let mut changes = Changes::new(&mut memory, format);
        for key in 0..8 {
            changes.set_unsynced(&Edit { key: &[key], value: (key > 5).then_some(&[key]) }, 0);
        }
        let before = changes.bytes_in(UNSYNCED);
        changes.merge(0..6);
        assert_eq!(changes.bytes_in(UNSYNCED), before);
        changes.merge(6..8);
        assert!(changes.bytes_in(UNSYNCED) < before);
    }

    #[test]
    fn what_a_commit_lists_is_recorded_in_it_and_comes_back() {
        let format = CellFormat { cells: 1, key_size: 1, value_size: 1, page_bits: 9 };
        let (mut memory, mut other) = ([0; 60], [0; 60]);
        let mut changes = Changes::new(&mut memory, format);
        let put = |key: &'static [u8], value: &'static [u8]| Edit { key, value: Some(value) };
        changes.set(&put(b"a", b"1"), 3);
        changes.set(&put(b"b", b"2"), 4);
        changes.set_unsynced(&put(b"c", b"3"), 1);
        changes.set_unsynced(&Edit { key: b"d", value: None }, -1);
        changes.merge(2..3);
        assert!(changes.has_others(), "d is in no leaf");
        assert_eq!(changes.choose(Listing { unsynced: true, carried: 1 << 3, part: None }), 8);
        let mut list = [0; 8];
        changes.write_listed(&mut list);
        assert_eq!(&list, b"\x01a1\x01c3\x00d");
        changes.committed(5, (1 << 3, true));
        assert_eq!((changes.len(), changes.waits_in(0..4), changes.gain()), (4, 3, 0), "c is in its leaf");
        assert_eq!([3, 4, 5, UNSYNCED].map(|slot| changes.bytes_in(slot)), [0, 3, 5, 0]);
        let mut opened = Changes::new(&mut other, format);
        assert_eq!(opened.replay(&list, (0, true), |_, _| true), Ok(true));
        assert_eq!(opened.value(1), Some(&b"3"[..]));
        assert!(opened.replay(&list[..7], (1, true), |_, _| true).is_err());
        assert!(opened.replay(&list, (2, true), |key, _| key != b"c").is_err());
    }
}
