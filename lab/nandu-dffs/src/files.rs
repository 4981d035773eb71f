//! Content of files.

use nandu_media::dffs as media;
use nandu_media::{Field, Malformed};
use nandu_nand::{Nand, PageAddr};

use crate::chip;
use crate::dffs::{Dffs, Result};
use crate::error::Error;
use crate::node::File;
use crate::pages::{Frame, NODE};
use crate::room::Demand;
use crate::slots::NO_INDEX;

impl<N: Nand> Dffs<'_, N> {
    /// Bytes that a file may have: as many pages as its inode has pointers.
    pub fn file_size_max(&self) -> u64 {
        (self.pointer_count * self.page_size()) as u64
    }

    /// Copies what a file has from an offset on; returns how many bytes: fewer at its end, none behind it. Costs a read for each page, and
    /// those of a lookup if the inode is not in memory.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a file that is gone or has another name, [`Error::Corrupt`], [`Error::Nand`].
    pub fn read(&mut self, file: File, offset: u64, bytes: &mut [u8]) -> Result<usize, N> {
        self.access(|fs| {
            let slot = fs.slot_for_reading(file)?;
            let frame = slot.map_or(NODE, |slot| fs.inode_frame(slot));
            let size = u64::from(fs.fields(frame)?.size);
            let count = (bytes.len() as u64).min(size.saturating_sub(offset)) as usize;
            let page_size = fs.page_size();
            let mut done = 0;
            while done < count {
                let at = offset as usize + done;
                let (index, start) = (at / page_size, at % page_size);
                let end = page_size.min(start + count - done);
                let part = &mut bytes[done..done + end - start];
                match slot.filter(|&slot| fs.slots[slot].data_index == index as u32) {
                    Some(slot) => part.copy_from_slice(&fs.pages.get(fs.data_frame(slot))[start..end]),
                    None => fs.read_part(frame, index, start, part)?,
                }
                done += end - start;
            }
            Ok(count)
        })
    }

    /// Reads a part of a page of the file whose inode is in a frame, as it is on flash.
    fn read_part(&mut self, frame: Frame, index: usize, start: usize, bytes: &mut [u8]) -> Result<(), N> {
        let page = PageAddr(self.word(frame, media::FRONT_SIZE + index * 4));
        if page.0 == 0 {
            bytes.fill(0);
            return Ok(());
        }
        if !self.geometry.contains_page(page) {
            return Err(Error::Corrupt { page, why: Malformed::Range(Field::Pointer) });
        }
        self.stats.reads += 1;
        match chip::read(&mut self.nand, page, start as u32, bytes)? {
            Some(is_worn) => {
                if is_worn {
                    self.note_worn(page);
                }
                Ok(())
            }
            None => Err(Error::Corrupt { page, why: Malformed::Unreadable }),
        }
    }

    /// Writes bytes at an offset; returns how many: fewer where there is no more room. The file grows as far as needed, and what lies
    /// between its old end and the offset reads as zeros and takes no flash. A program for each page that is full; the last one stays in
    /// memory until the file is synced, closed, or pushed out of memory by others.
    ///
    /// # Errors
    ///
    /// [`Error::FileTooLarge`], [`Error::Full`] if nothing was written, and those of [`read`](Dffs::read).
    pub fn write(&mut self, file: File, offset: u64, bytes: &[u8]) -> Result<usize, N> {
        let max = self.file_size_max();
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > max) {
            return Err(Error::FileTooLarge { max });
        }
        self.change(|fs| {
            let page_size = fs.page_size();
            let mut done = 0;
            while done < bytes.len() {
                let at = offset as usize + done;
                let (index, start) = (at / page_size, at % page_size);
                let count = (page_size - start).min(bytes.len() - done);
                match fs.write_part(file, index as u32, start, &bytes[done..done + count]) {
                    Ok(()) => done += count,
                    Err(Error::Full) if done > 0 && !fs.is_busy => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(done)
        })
    }

    fn write_part(&mut self, file: File, index: u32, start: usize, bytes: &[u8]) -> Result<(), N> {
        self.prepare(Demand::More)?;
        let slot = self.slot_of(file)?;
        let (page_size, inode, data) = (self.page_size(), self.inode_frame(slot), self.data_frame(slot));
        if self.slots[slot].data_index != index {
            self.flush_data(slot)?;
            self.load_data(slot, index, bytes.len() == page_size)?;
        }
        self.pages.get_mut(data)[start..start + bytes.len()].copy_from_slice(bytes);
        self.note_data(slot, index);
        let mut fields = self.fields(inode)?;
        let end = index as usize * page_size + start + bytes.len();
        fields.size = fields.size.max(end as u32);
        (fields.mtime, fields.ctime) = (self.now, self.now);
        self.set_fields(inode, &fields);
        // What was written is whole in memory or on flash: an error from here on concerns something else.
        self.is_busy = false;
        Ok(())
    }

    /// Brings a page of data into memory; nothing of another may wait there.
    fn load_data(&mut self, slot: usize, index: u32, is_overwritten: bool) -> Result<(), N> {
        let frame = self.data_frame(slot);
        self.slots[slot].data_index = NO_INDEX;
        let page = self.data_pointer(slot, index);
        if is_overwritten || page.0 == 0 {
            self.pages.get_mut(frame).fill(0);
        } else {
            if !self.geometry.contains_page(page) {
                return Err(Error::Corrupt { page, why: Malformed::Range(Field::Pointer) });
            }
            self.stats.reads += 1;
            if chip::read(&mut self.nand, page, 0, self.pages.get_mut(frame))?.is_none() {
                return Err(Error::Corrupt { page, why: Malformed::Unreadable });
            }
        }
        self.slots[slot].data_index = index;
        Ok(())
    }

    /// Makes a file shorter, or longer by what reads as zeros. Costs a read where the new end is within a page. Durable with the next
    /// [`fsync`](Dffs::fsync).
    ///
    /// # Errors
    ///
    /// As [`write`](Dffs::write).
    pub fn truncate(&mut self, file: File, size: u64) -> Result<(), N> {
        let max = self.file_size_max();
        if size > max {
            return Err(Error::FileTooLarge { max });
        }
        self.change(|fs| {
            fs.prepare(Demand::Less)?;
            let slot = fs.slot_of(file)?;
            let (page_size, frame) = (fs.page_size(), fs.inode_frame(slot));
            let mut fields = fs.fields(frame)?;
            let (tail, kept) = (size as usize / page_size, size as usize % page_size);
            if size < u64::from(fields.size) {
                // The rest of the last page has to be zeros, should the file grow again.
                if kept > 0 && (fs.slots[slot].data_index == tail as u32 || fs.data_pointer(slot, tail as u32).0 != 0) {
                    if fs.slots[slot].data_index != tail as u32 {
                        fs.flush_tail(slot, tail as u32)?;
                        fs.load_data(slot, tail as u32, false)?;
                    }
                    let data = fs.data_frame(slot);
                    fs.pages.get_mut(data)[kept..].fill(0);
                    fs.note_data(slot, tail as u32);
                }
                let first = tail + usize::from(kept > 0);
                if fs.slots[slot].data_index != NO_INDEX && fs.slots[slot].data_index >= first as u32 {
                    fs.drop_data(slot);
                }
                for index in first..fs.pointer_count {
                    if fs.word(frame, media::FRONT_SIZE + index * 4) != 0 {
                        fs.set_data_pointer(slot, index as u32, PageAddr(0));
                    }
                }
            }
            fields.size = size as u32;
            (fields.mtime, fields.ctime) = (fs.now, fs.now);
            fs.set_fields(frame, &fields);
            fs.note_changed(slot);
            fs.is_busy = false;
            Ok(())
        })
    }

    /// Makes room for the last page: what waits behind it is cut off, and what waits before it is programmed.
    fn flush_tail(&mut self, slot: usize, tail: u32) -> Result<(), N> {
        if self.slots[slot].data_index > tail {
            self.drop_data(slot);
            return Ok(());
        }
        self.flush_data(slot)
    }

    /// Makes a file durable: a program for its inode, one for a page of data that waits, and one for its directory if the options say
    /// so. Nothing if nothing changed.
    ///
    /// # Errors
    ///
    /// [`Error::Nand`]; [`Error::Full`] only where the reserve is used up.
    pub fn fsync(&mut self, file: File) -> Result<(), N> {
        self.access(|fs| {
            let Some(slot) = fs.find_slot(file.number).filter(|&slot| fs.slots[slot].is_dirty()) else { return Ok(()) };
            fs.expect_writable()?;
            fs.prepare(Demand::Less)?;
            fs.write_slot(slot)
        })
    }

    /// Makes everything durable, as [`fsync`](Dffs::fsync) of every file that changed.
    ///
    /// # Errors
    ///
    /// As [`fsync`](Dffs::fsync).
    pub fn sync(&mut self) -> Result<(), N> {
        self.access(|fs| {
            if !fs.slots.iter().any(|slot| slot.is_dirty()) {
                return Ok(());
            }
            fs.expect_writable()?;
            fs.prepare(Demand::Less)?;
            fs.write_slots()
        })
    }

    /// Opens a file: it keeps its place in memory, and stays there when its name goes, until it is closed as often as it was opened.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyOpen`]: three places are kept for files that are not open. [`Error::NotFound`].
    pub fn open(&mut self, file: File) -> Result<(), N> {
        self.access(|fs| {
            let others = fs.slots.iter().filter(|slot| slot.opens > 0 && slot.number != file.number).count();
            if others + 3 >= fs.slots.len() {
                return Err(Error::TooManyOpen);
            }
            fs.prepare_slot(file)?;
            let slot = fs.slot_of(file)?;
            fs.slots[slot].opens += 1;
            Ok(())
        })
    }

    /// Closes a file: what changed is programmed, and its directory, if that is behind. A file without a name goes.
    ///
    /// # Errors
    ///
    /// As [`fsync`](Dffs::fsync).
    pub fn close(&mut self, file: File) -> Result<(), N> {
        self.access(|fs| {
            let Some(slot) = fs.find_slot(file.number) else { return Ok(()) };
            fs.slots[slot].opens = fs.slots[slot].opens.saturating_sub(1);
            if fs.slots[slot].opens > 0 {
                return Ok(());
            }
            fs.slots[slot].handle = 0;
            if fs.slots[slot].is_orphan() {
                fs.bury_orphan(slot);
                return Ok(());
            }
            let page = PageAddr(fs.slots[slot].page);
            if !fs.slots[slot].is_dirty() && (fs.lags.behind(page) == page.0 || fs.is_frozen()) {
                return Ok(());
            }
            fs.expect_writable()?;
            fs.prepare(Demand::Less)?;
            fs.write_slot(slot)?;
            let page = fs.slots[slot].page;
            let lag = fs.lags.all().iter().find(|lag| lag.current == page).copied();
            lag.map_or(Ok(()), |lag| fs.catch_up(lag))
        })
    }

    /// What a file without a name has is dead.
    pub(crate) fn bury_orphan(&mut self, slot: usize) {
        for index in 0..self.pointer_count as u32 {
            let page = self.data_pointer(slot, index);
            self.lose(page);
        }
        self.drop_slot(slot);
    }
}
