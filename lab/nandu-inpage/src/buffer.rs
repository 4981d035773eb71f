//! The buffer: units, each of which is what memory holds of a node.
//!
//! A unit has a *base*, the node with all its changes, or *changes* that are not on flash, or both. Clean: a base alone.
//! Semi-clean: both. Dirty: changes alone; or the base of a node that was never programmed.

use nandu_media::inpage::record::{Cells, Record, Records};
use nandu_media::inpage::sector::HEADER_SIZE;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::arena::{Arena, Chunk, Frame};
use crate::nodes::NONE;

/// The lists of units. What was used last stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum List {
    /// Used lately.
    Hot = 0,
    /// Inner nodes, as far as they have a share of their own.
    Inner = 1,
    /// In the window, with a base that can be dropped.
    Clean = 2,
    /// In the window, with nothing but changes.
    Dirty = 3,
}

const LIST_COUNT: usize = 4;
const NO_LIST: u8 = 255;

/// What memory holds of a node.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Unit {
    /// Entry of the node; [`NONE`]: the unit is free.
    pub(crate) node: u32,
    before: u32,
    after: u32,
    base: u32,
    chunk: u32,
    /// Bytes of the records in the chunk.
    used: u16,
    /// Records in the chunk.
    records: u8,
    list: u8,
    /// Journal pages with the first and the last of its changes, the low half of their numbers.
    first_journal: u32,
    last_journal: u32,
}

impl Unit {
    pub(crate) fn base(&self) -> Option<Frame> {
        (self.base != NONE).then_some(Frame(self.base))
    }

    pub(crate) fn chunk(&self) -> Option<Chunk> {
        (self.chunk != NONE).then_some(Chunk(self.chunk))
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.records > 0
    }

    pub(crate) fn record_count(&self) -> u8 {
        self.records
    }

    /// The journal pages with the first and the last of its changes.
    pub(crate) fn journal(&self) -> (u32, u32) {
        (self.first_journal, self.last_journal)
    }

    /// The journal page with the last of its changes.
    pub(crate) fn last_journal(&self) -> u32 {
        self.last_journal
    }

    /// Whether the first of its changes stands in a journal page, or one before it. The ring is short, so the low halves of
    /// numbers tell, wherever they begin anew.
    pub(crate) fn is_in_journal_until(&self, page: u32) -> bool {
        page.wrapping_sub(self.first_journal) < 1 << 31
    }
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    /// Bytes of the list's units.
    size: usize,
}

/// Units and their memory.
#[derive(Debug)]
pub(crate) struct Buffer<'m> {
    units: &'m mut [Unit],
    lists: [Ends; LIST_COUNT],
    free: u32,
    fresh: u32,
    pub(crate) arena: Arena<'m>,
    /// Units that the operation under way needs.
    pins: [u32; 3],
    node_size: usize,
    chunk_size: usize,
    pub(crate) capacity: usize,
    /// Bytes of units that have changes alone.
    pub(crate) dirty_size: usize,
}

impl core::ops::Index<u32> for Buffer<'_> {
    type Output = Unit;

    fn index(&self, unit: u32) -> &Unit {
        &self.units[unit as usize]
    }
}

impl<'m> Buffer<'m> {
    pub(crate) fn new(
        units: &'m mut [Unit],
        arena: Arena<'m>,
        node_size: usize,
        chunk_size: usize,
        capacity: usize,
    ) -> Buffer<'m> {
        let lists = [Ends { first: NONE, last: NONE, size: 0 }; LIST_COUNT];
        let pins = [NONE; 3];
        Buffer { units, lists, free: NONE, fresh: 0, arena, pins, node_size, chunk_size, capacity, dirty_size: 0 }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.lists = [Ends { first: NONE, last: NONE, size: 0 }; LIST_COUNT];
        self.pins = [NONE; 3];
        (self.free, self.fresh, self.dirty_size) = (NONE, 0, 0);
        self.arena.clear();
    }

    /// Every unit that may be in use.
    pub(crate) fn indexes(&self) -> core::ops::Range<u32> {
        0..self.fresh
    }

    pub(crate) fn is_used(&self, unit: u32) -> bool {
        self[unit].node != NONE
    }

    /// Makes a unit for a node, in no list, with nothing in it.
    pub(crate) fn create(&mut self, node: u32) -> Option<u32> {
        let unit = if self.free != NONE {
            let unit = self.free;
            self.free = self[unit].after;
            unit
        } else if (self.fresh as usize) < self.units.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.units[unit as usize] = Unit {
            node,
            before: NONE,
            after: NONE,
            base: NONE,
            chunk: NONE,
            used: 0,
            records: 0,
            list: NO_LIST,
            first_journal: 0,
            last_journal: 0,
        };
        Some(unit)
    }

    /// Bytes of a unit as the buffer's size counts them.
    pub(crate) fn size(&self, unit: u32) -> usize {
        let unit = &self[unit];
        let base = if unit.base != NONE { self.node_size } else { 0 };
        base + if unit.chunk != NONE { self.chunk_size } else { 0 }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.arena.accounted()
    }

    /// Bytes of a list's units.
    pub(crate) fn list_size(&self, list: List) -> usize {
        self.lists[list as usize].size
    }

    /// The unit of a list that was not used for longest and is not pinned.
    pub(crate) fn last(&self, list: List) -> Option<u32> {
        self.oldest(list).find(|&unit| !self.is_pinned(unit))
    }

    /// The units of a list from the one not used for longest.
    pub(crate) fn oldest(&self, list: List) -> impl Iterator<Item = u32> {
        let mut at = self.lists[list as usize].last;
        core::iter::from_fn(move || {
            let unit = (at != NONE).then_some(at)?;
            at = self[unit].before;
            Some(unit)
        })
    }

    fn account(&mut self, unit: u32, change: impl FnOnce(&mut Self)) {
        let (before, was_dirty) = (self.size(unit), self[unit].base == NONE);
        change(self);
        let (after, is_dirty) = (self.size(unit), self[unit].base == NONE);
        let list = self[unit].list;
        if list != NO_LIST {
            let ends = &mut self.lists[usize::from(list)];
            ends.size = ends.size + after - before;
        }
        self.dirty_size = self.dirty_size + if is_dirty { after } else { 0 } - if was_dirty { before } else { 0 };
    }

    /// Puts a unit at the front of a list.
    pub(crate) fn enlist(&mut self, unit: u32, list: List) {
        self.delist(unit);
        let size = self.size(unit);
        let first = self.lists[list as usize].first;
        let entry = &mut self.units[unit as usize];
        entry.list = list as u8;
        entry.before = NONE;
        entry.after = first;
        if first != NONE {
            self.units[first as usize].before = unit;
        }
        let ends = &mut self.lists[list as usize];
        ends.first = unit;
        if first == NONE {
            ends.last = unit;
        }
        ends.size += size;
    }

    fn delist(&mut self, unit: u32) {
        let Unit { before, after, list, .. } = self[unit];
        if list == NO_LIST {
            return;
        }
        let size = self.size(unit);
        let ends = &mut self.lists[usize::from(list)];
        ends.size -= size;
        if before == NONE {
            ends.first = after;
        }
        if after == NONE {
            ends.last = before;
        }
        if before != NONE {
            self.units[before as usize].after = after;
        }
        if after != NONE {
            self.units[after as usize].before = before;
        }
        self.units[unit as usize].list = NO_LIST;
    }

    /// Takes a unit away with all it holds.
    pub(crate) fn remove(&mut self, unit: u32) {
        self.delist(unit);
        self.drop_base(unit);
        self.drop_changes(unit);
        let free = self.free;
        let entry = &mut self.units[unit as usize];
        entry.node = NONE;
        entry.after = free;
        self.free = unit;
        for pin in &mut self.pins {
            if *pin == unit {
                *pin = NONE;
            }
        }
    }

    /// Notes in which journal pages the changes of a unit stand.
    pub(crate) fn set_journal(&mut self, unit: u32, first: Option<u32>, last: u32) {
        let unit = &mut self.units[unit as usize];
        unit.first_journal = first.unwrap_or(unit.first_journal);
        unit.last_journal = last;
    }

    /// Gives a unit a frame. `None` if there is none, which a caller that made room does not meet.
    pub(crate) fn add_base(&mut self, unit: u32) -> Option<Frame> {
        let Buffer { units, arena, .. } = self;
        let frame = arena.take_frame(|unit, chunk| units[unit as usize].chunk = chunk.0)?;
        self.account(unit, |buffer| buffer.units[unit as usize].base = frame.0);
        Some(frame)
    }

    pub(crate) fn drop_base(&mut self, unit: u32) {
        if let Some(frame) = self[unit].base() {
            self.account(unit, |buffer| buffer.units[unit as usize].base = NONE);
            self.arena.give_frame(frame);
        }
    }

    /// Forgets the changes of a unit.
    pub(crate) fn drop_changes(&mut self, unit: u32) {
        if let Some(chunk) = self[unit].chunk() {
            self.account(unit, |buffer| {
                let entry = &mut buffer.units[unit as usize];
                entry.chunk = NONE;
                entry.used = 0;
                entry.records = 0;
            });
            self.arena.give_chunk(chunk);
        }
    }

    /// Bytes that another record of a unit may have; all a sector takes if it has none.
    pub(crate) fn room(&self, unit: u32) -> usize {
        if self[unit].records == u8::MAX {
            return 0;
        }
        self.chunk_size - HEADER_SIZE - usize::from(self[unit].used)
    }

    /// Adds a record to the changes of a unit. `None` if there is no room, which a caller that asked does not meet.
    pub(crate) fn note(&mut self, unit: u32, cells: Cells, record: Record<'_>) -> Option<()> {
        if self[unit].chunk == NONE {
            let chunk = self.arena.take_chunk(unit)?;
            self.account(unit, |buffer| buffer.units[unit as usize].chunk = chunk.0);
        }
        let entry = &mut self.units[unit as usize];
        let bytes = &mut self.arena.chunk_mut(Chunk(entry.chunk))[HEADER_SIZE + usize::from(entry.used)..];
        let size = record.write(cells, bytes)?;
        entry.used += size as u16;
        entry.records = entry.records.checked_add(1)?;
        Some(())
    }

    /// The changes of a unit.
    pub(crate) fn changes(&self, unit: u32, cells: Cells) -> Records<'_> {
        let bytes = match self[unit].chunk() {
            Some(chunk) => &self.arena.chunk(chunk)[HEADER_SIZE..HEADER_SIZE + usize::from(self[unit].used)],
            None => &[],
        };
        Records::new(cells, bytes)
    }

    /// Bytes of the changes of a unit.
    pub(crate) fn changes_size(&self, unit: u32) -> usize {
        usize::from(self[unit].used)
    }

    /// Drops those changes of a unit that concern keys from this one on.
    pub(crate) fn drop_changes_from(&mut self, unit: u32, cells: Cells, key: &[u8]) {
        let Some(chunk) = self[unit].chunk() else { return };
        let used = usize::from(self[unit].used);
        let bytes = &mut self.arena.chunk_mut(chunk)[HEADER_SIZE..HEADER_SIZE + used];
        let (mut from, mut to, mut kept) = (0, 0, 0);
        while from < used {
            let Ok((record, rest)) = Record::parse(cells, &bytes[from..]) else { break };
            let size = used - from - rest.len();
            if record.key() < key {
                bytes.copy_within(from..from + size, to);
                to += size;
                kept += 1;
            }
            from += size;
        }
        let entry = &mut self.units[unit as usize];
        entry.used = to as u16;
        entry.records = kept;
        if kept == 0 {
            self.drop_changes(unit);
        }
    }

    /// Keeps a unit in the buffer until [`unpin`](Buffer::unpin). There are three places; the last one pinned takes the
    /// place of what was pinned there.
    pub(crate) fn pin(&mut self, place: usize, unit: u32) {
        self.pins[place] = unit;
    }

    pub(crate) fn unpin(&mut self) {
        self.pins = [NONE; 3];
    }

    pub(crate) fn is_pinned(&self, unit: u32) -> bool {
        self.pins.contains(&unit)
    }
}
