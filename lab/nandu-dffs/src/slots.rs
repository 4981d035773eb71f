//! Files in memory: an inode with what changed in it, and one page of data that is being written.

use nandu_media::dffs::{self as media, NEXT_AT, Owner, PREVIOUS_AT};
use nandu_nand::{Nand, PageAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::blocks::Area;
use crate::dffs::{Dffs, Result};
use crate::error::Error;
use crate::hash::Place;
use crate::lag::Lag;
use crate::node::File;
use crate::options::ParentUpdate;
use crate::pages::{FRAME_COUNT, Frame, NODE};
use crate::room::Demand;

/// No page of data is in memory.
pub(crate) const NO_INDEX: u32 = u32::MAX;

/// The inode is to be programmed.
const INODE: u8 = 1;
/// The page of data is.
const DATA: u8 = 2;
/// The name is gone, and the file goes when it is closed.
const ORPHAN: u8 = 4;

/// A file in memory.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SlotEntry {
    used: u64,
    /// How the caller knows the file that has it open, or 0.
    pub(crate) handle: u64,
    /// 0: the slot is free.
    pub(crate) number: u32,
    pub(crate) directory: u32,
    /// Where the inode is on flash.
    pub(crate) page: u32,
    /// Which page of data is in memory.
    pub(crate) data_index: u32,
    pub(crate) opens: u32,
    pub(crate) bucket: u16,
    pub(crate) second: u8,
    flags: u8,
}

impl SlotEntry {
    pub(crate) const EMPTY: SlotEntry = SlotEntry {
        used: 0,
        handle: 0,
        number: 0,
        directory: 0,
        page: 0,
        data_index: NO_INDEX,
        opens: 0,
        bucket: 0,
        second: 0,
        flags: 0,
    };

    pub(crate) fn is_dirty(&self) -> bool {
        self.number != 0 && self.flags & (INODE | DATA) != 0 && self.flags & ORPHAN == 0
    }

    pub(crate) fn is_orphan(&self) -> bool {
        self.flags & ORPHAN != 0
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl<N: Nand> Dffs<'_, N> {
    pub(crate) fn inode_frame(&self, slot: usize) -> Frame {
        Frame(FRAME_COUNT + 2 * slot)
    }

    pub(crate) fn data_frame(&self, slot: usize) -> Frame {
        Frame(FRAME_COUNT + 2 * slot + 1)
    }

    pub(crate) fn find_slot(&self, number: u32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.number == number && number != 0)
    }

    /// The slot of the file whose inode is at this page and has a name.
    pub(crate) fn slot_at(&self, page: PageAddr) -> Option<usize> {
        self.slots.iter().position(|slot| slot.number != 0 && slot.page == page.0 && !slot.is_orphan())
    }

    pub(crate) fn drop_slot(&mut self, slot: usize) {
        self.slots[slot] = SlotEntry::EMPTY;
    }

    /// A file without a name stays in memory.
    pub(crate) fn make_orphan(&mut self, slot: usize) {
        self.slots[slot].flags |= ORPHAN;
        self.slots[slot].page = 0;
    }

    /// The inode is to be programmed.
    pub(crate) fn note_changed(&mut self, slot: usize) {
        self.slots[slot].flags |= INODE;
    }

    /// The page of data in memory is this one, and is to be programmed.
    pub(crate) fn note_data(&mut self, slot: usize, index: u32) {
        self.slots[slot].data_index = index;
        self.slots[slot].flags |= DATA | INODE;
    }

    /// The page of data in memory is not needed.
    pub(crate) fn drop_data(&mut self, slot: usize) {
        self.slots[slot].data_index = NO_INDEX;
        self.slots[slot].flags &= !DATA;
    }

    /// Whether bringing a file into memory takes no programs.
    fn has_slot_for(&self, file: File) -> bool {
        let is_clean = |slot: &SlotEntry| slot.number == 0 || slot.opens == 0 && !slot.is_orphan() && !slot.is_dirty();
        self.find_slot(file.number).is_some() || self.slots.iter().any(is_clean)
    }

    /// Makes room for programs, if bringing a file into memory takes some: where every other file there was changed.
    pub(crate) fn prepare_slot(&mut self, file: File) -> Result<(), N> {
        if self.has_slot_for(file) || self.is_frozen() { Ok(()) } else { self.prepare(Demand::Less) }
    }

    /// As [`slot_of`](Dffs::slot_of), without a program: `None` where every slot was changed. Then the inode is in [`NODE`].
    pub(crate) fn slot_for_reading(&mut self, file: File) -> Result<Option<usize>, N> {
        if self.has_slot_for(file) {
            return self.slot_of(file).map(Some);
        }
        let second = Some(file.second).filter(|&second| second != 0);
        let found = self.find_number(file.directory, file.bucket, second, file.number)?;
        found.map(|_| None).ok_or(Error::NotFound)
    }

    /// The slot of a file, with its inode in it. Costs a lookup if it is not in memory, and where every slot was changed, the programs of
    /// the one that was used least recently; room for them was made.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a file that is gone or has another name.
    pub(crate) fn slot_of(&mut self, file: File) -> Result<usize, N> {
        self.clock += 1;
        if let Some(slot) = self.find_slot(file.number) {
            self.slots[slot].used = self.clock;
            return Ok(slot);
        }
        let slot = self.free_slot()?;
        let found = self.find_number(
            file.directory,
            file.bucket,
            Some(file.second).filter(|&second| second != 0),
            file.number,
        )?;
        let found = found.ok_or(Error::NotFound)?;
        self.pages.copy(NODE, self.inode_frame(slot));
        self.slots[slot] = SlotEntry {
            used: self.clock,
            number: file.number,
            directory: file.directory,
            page: found.page.0,
            bucket: found.place.bucket,
            second: found.place.second,
            ..SlotEntry::EMPTY
        };
        Ok(slot)
    }

    /// A slot that may be used: a free one, or one that was not changed, or the one used least recently.
    fn free_slot(&mut self) -> Result<usize, N> {
        let oldest = |fs: &Self| {
            let candidates = fs.slots.iter().enumerate().filter(|(_, slot)| slot.opens == 0 && !slot.is_orphan());
            let order = |(_, slot): &(usize, &SlotEntry)| (slot.number != 0, slot.is_dirty(), slot.used);
            candidates.min_by_key(order).map(|(at, _)| at)
        };
        let slot = oldest(self).ok_or(Error::TooManyOpen)?;
        // Where nothing is programmed any more, what was not synced goes, and whoever asks for the file gets what is on flash.
        if self.slots[slot].is_dirty() && !self.is_frozen() {
            self.write_slot(slot)?;
        }
        self.drop_slot(slot);
        Ok(slot)
    }

    /// Programs the page of data that is in memory, if it was changed.
    pub(crate) fn flush_data(&mut self, slot: usize) -> Result<(), N> {
        let SlotEntry { number, directory, bucket, data_index, .. } = self.slots[slot];
        if !self.slots[slot].has(DATA) {
            return Ok(());
        }
        let owner = Owner { number, directory, bucket, index: data_index as u16 };
        let page = self.append_data(self.data_frame(slot), owner)?;
        self.set_data_pointer(slot, data_index, page);
        self.slots[slot].flags &= !DATA;
        Ok(())
    }

    /// Lets a pointer of an inode lead to another page of data.
    pub(crate) fn set_data_pointer(&mut self, slot: usize, index: u32, page: PageAddr) {
        let frame = self.inode_frame(slot);
        let at = media::FRONT_SIZE + index as usize * 4;
        self.lose(PageAddr(self.word(frame, at)));
        self.set_word(frame, at, page.0);
        self.note_changed(slot);
    }

    pub(crate) fn data_pointer(&self, slot: usize, index: u32) -> PageAddr {
        PageAddr(self.word(self.inode_frame(slot), media::FRONT_SIZE + index as usize * 4))
    }

    /// Programs what changed of a file: its page of data, then its inode, then, if the options say so, its directory.
    ///
    /// O4: in this order. Cut after the data, the file is what it was before. The inode first would lead to a page that may not be there.
    pub(crate) fn write_slot(&mut self, slot: usize) -> Result<(), N> {
        if !self.slots[slot].is_dirty() {
            return Ok(());
        }
        if crate::options::broken!(self, inode_before_data) && self.slots[slot].has(DATA) {
            return self.write_slot_backwards(slot);
        }
        self.flush_data(slot)?;
        self.write_inode(slot, false)
    }

    /// Programs the inode of a slot. Renamed: where it was before stands in it, and no bucket leads to it yet.
    pub(crate) fn write_inode(&mut self, slot: usize, is_renamed: bool) -> Result<(), N> {
        if !is_renamed {
            self.make_lag_room(PageAddr(self.slots[slot].page))?;
        }
        let frame = self.inode_frame(slot);
        let old = PageAddr(self.slots[slot].page);
        let behind = self.lags.behind(old);
        let mut fields = self.fields(frame)?;
        fields.flags = if is_renamed { media::FLAG_RENAMED } else { 0 };
        self.set_fields(frame, &fields);
        self.set_word(frame, PREVIOUS_AT, if is_renamed { 0 } else { behind });
        self.set_word(frame, NEXT_AT, if is_renamed { old.0 } else { 0 });
        let page = self.append(Area::File, frame)?;
        self.lose(old);
        let SlotEntry { directory, bucket, .. } = self.slots[slot];
        self.slots[slot].page = page.0;
        self.slots[slot].flags &= !INODE;
        if is_renamed {
            return Ok(());
        }
        let lag = Lag { behind, current: page.0, directory, bucket: bucket.into() };
        self.lags.set(lag);
        if self.options.parent_update == ParentUpdate::Each { self.catch_up(lag) } else { Ok(()) }
    }

    /// As [`write_slot`](Dffs::write_slot), with the inode before the data that it leads to: for tests of O4.
    fn write_slot_backwards(&mut self, slot: usize) -> Result<(), N> {
        let index = self.slots[slot].data_index;
        let old = self.data_pointer(slot, index);
        let page = self.next_page(Area::Data)?;
        self.set_word(self.inode_frame(slot), media::FRONT_SIZE + index as usize * 4, page.0);
        self.write_inode(slot, false)?;
        self.set_word(self.inode_frame(slot), media::FRONT_SIZE + index as usize * 4, old.0);
        self.flush_data(slot)?;
        self.slots[slot].flags &= !INODE;
        Ok(())
    }

    /// The slot goes by another name from here on.
    pub(crate) fn rename_slot(&mut self, slot: usize, directory: u32, place: Place) {
        let entry = &mut self.slots[slot];
        (entry.directory, entry.bucket, entry.second) = (directory, place.bucket, place.second);
    }

    /// The file in a slot.
    pub(crate) fn file_at(&self, slot: usize) -> File {
        let SlotEntry { number, directory, bucket, second, .. } = self.slots[slot];
        File { directory, number, bucket, second }
    }

    /// Programs every file that changed.
    pub(crate) fn write_slots(&mut self) -> Result<(), N> {
        for slot in 0..self.slots.len() {
            self.write_slot(slot)?;
        }
        Ok(())
    }
}
