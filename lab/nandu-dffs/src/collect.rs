//! Garbage collection by mutual pointers, area by area.
//!
//! A page lives if what it names as its parent, its predecessor or its owner leads to it. Pages that live are appended to the area they are in,
//! so hot and cold stay apart. A collected block is not free before a checkpoint says so: until then a mount finds in it what the last
//! checkpoint leads to, and since what it looks for is in blocks that were free then, it looks nowhere else.

use nandu_media::Malformed;
use nandu_media::dffs::{self as media, Fields, Kind, NEXT_AT, Owner, PREVIOUS_AT};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::blocks::{Area, FAILED, KEPT, PENDING, REFRESH, SCAN};
use crate::chain::Fold;
use crate::chip;
use crate::dffs::{Dffs, Result};
use crate::error::Error;
use crate::lag::Lag;
use crate::node::File;
use crate::pages::{COPY, NODE, OLD};

impl<N: Nand> Dffs<'_, N> {
    /// Collects a block. Costs a read for each page, those of the counter-pointers, and a program for each page that lives; a page of data takes
    /// its inode along, and an inode its directory, once for all that are collected until a checkpoint.
    pub(crate) fn collect(&mut self, block: BlockAddr) -> Result<(), N> {
        debug_assert!(!self.is_rough, "what lives is counted before");
        let cause = self.nand.attribute(Cause::Gc);
        let before = core::mem::replace(&mut self.is_collecting, true);
        let area = self.blocks.get(block).area();
        let result = match area {
            Area::Map => self.collect_map(block),
            Area::Directory | Area::Virtual => self.collect_directories(block),
            Area::File => self.collect_files(block),
            Area::Data => self.collect_data(block),
            Area::Free | Area::Checkpoint | Area::Bad => Ok(()),
        };
        self.is_collecting = before;
        self.nand.attribute(cause);
        let is_lost = matches!(result, Err(Error::Corrupt { .. }));
        if !is_lost {
            result?;
        }
        self.stats.collected[area as usize] += 1;
        if is_lost || self.blocks.get(block).live > 0 {
            // A page that lives cannot be read: the block stays, and whoever asks for the page is told.
            self.blocks.update(block, |entry| entry.flags = (entry.flags | KEPT) & !REFRESH);
            return Ok(());
        }
        self.set_aside(block);
        if crate::options::broken!(self, erase_before_checkpoint) {
            self.free_pending()?;
        }
        Ok(())
    }

    /// The content of a block is not needed; a checkpoint makes it free.
    pub(crate) fn set_aside(&mut self, block: BlockAddr) {
        self.blocks.update(block, |entry| {
            entry.live = 0;
            entry.flags = (entry.flags | PENDING) & !(SCAN | REFRESH);
        });
    }

    /// What waited for a checkpoint is free, or bad where a program failed.
    pub(crate) fn free_pending(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            let entry = *self.blocks.get(block);
            if entry.area() == Area::Checkpoint && entry.has(FAILED) {
                self.mark_bad(block)?;
                continue;
            }
            if !entry.has(PENDING) {
                continue;
            }
            if entry.has(FAILED) {
                self.mark_bad(block)?;
                continue;
            }
            self.blocks.update(block, |entry| {
                entry.set_area(Area::Free);
                entry.flags &= crate::blocks::SEEN;
            });
        }
        Ok(())
    }

    fn collect_map(&mut self, block: BlockAddr) -> Result<(), N> {
        for index in 0..self.map_pages.len() {
            let page = PageAddr(self.map_pages[index]);
            if page.0 != 0 && self.geometry.block_of(page) == block {
                self.write_map_page(index)?;
            }
        }
        Ok(())
    }

    pub(crate) fn collect_directories(&mut self, block: BlockAddr) -> Result<(), N> {
        for nth in 0..self.block_pages {
            let page = self.page_of(block, nth);
            let fields = match self.inspect(page, NODE)? {
                Ok(fields) => fields,
                Err(Malformed::Erased) => break,
                Err(_) => continue,
            };
            let is_chain = matches!(fields.kind, Kind::Directory | Kind::Virtual);
            if !is_chain || self.mapped(fields.id) != page {
                continue;
            }
            if !self.is_mutual_page(fields.id, &fields)? {
                self.release(fields.id);
                continue;
            }
            self.load(page, NODE)?;
            self.forget_rename(NODE, &fields);
            self.program_chain(NODE, Fold::All)?;
        }
        Ok(())
    }

    /// A directory's page that is programmed again is no rename.
    pub(crate) fn forget_rename(&mut self, frame: crate::pages::Frame, fields: &Fields) {
        let fields = Fields { flags: fields.flags & !media::FLAG_RENAMED, ..*fields };
        self.set_fields(frame, &fields);
        if fields.kind == Kind::Directory {
            self.set_word(frame, PREVIOUS_AT, 0);
        }
    }

    pub(crate) fn collect_files(&mut self, block: BlockAddr) -> Result<(), N> {
        for nth in 0..self.block_pages {
            let page = self.page_of(block, nth);
            let fields = match self.inspect(page, NODE)? {
                Ok(fields) => fields,
                Err(Malformed::Erased) => break,
                Err(_) => continue,
            };
            if fields.kind == Kind::File && self.is_live_file(page, &fields)? {
                self.move_inode(page)?;
            }
        }
        Ok(())
    }

    /// Programs an inode that lives again; its directory is behind then.
    pub(crate) fn move_inode(&mut self, page: PageAddr) -> Result<(), N> {
        if let Some(slot) = self.slot_at(page) {
            self.note_changed(slot);
            return self.write_slot(slot);
        }
        self.make_lag_room(page)?;
        let fields = self.load(page, NODE)?;
        let bucket = self.place_of(media::name(self.pages.get(NODE))).bucket;
        let behind = self.lags.behind(page);
        self.set_fields(NODE, &Fields { flags: 0, ..fields });
        self.set_word(NODE, PREVIOUS_AT, behind);
        self.set_word(NODE, NEXT_AT, 0);
        let new = self.append(Area::File, NODE)?;
        self.lose(page);
        let lag = Lag { behind, current: new.0, directory: fields.parent, bucket: bucket.into() };
        self.lags.set(lag);
        if self.options.parent_update == crate::ParentUpdate::Each { self.catch_up(lag) } else { Ok(()) }
    }

    fn collect_data(&mut self, block: BlockAddr) -> Result<(), N> {
        let summary = self.page_of(block, self.block_pages - 1);
        let has_summary = matches!(self.inspect(summary, OLD)?, Ok(Fields { kind: Kind::Summary, .. }));
        // Orphans are found in memory alone, and files that were renamed or not noted by asking all inodes.
        for slot in 0..self.slots.len() {
            self.move_data_of(slot, block)?;
        }
        if has_summary {
            let mut last: Option<Owner> = None;
            for nth in 0..self.block_pages - 1 {
                let Some(owner) = media::owner(self.pages.get(OLD), nth as usize) else { continue };
                if last.is_some_and(|last| last.number == owner.number) {
                    continue;
                }
                last = Some(owner);
                if self.find_slot(owner.number).is_some() {
                    continue;
                }
                let found = self.find_number(owner.directory, owner.bucket, None, owner.number)?;
                let Some(found) = found else { continue };
                let file = File::at(owner.directory, owner.number, found.place);
                if self.leads_into(NODE, block) {
                    let slot = self.slot_of(file)?;
                    self.move_data_of(slot, block)?;
                }
            }
        }
        if has_summary && !self.blocks.get(block).has(SCAN) { Ok(()) } else { self.scan_files(block) }
    }

    /// Whether the inode in a frame has data in a block.
    fn leads_into(&self, frame: crate::pages::Frame, block: BlockAddr) -> bool {
        let words = (0..self.pointer_count).map(|index| self.word(frame, media::FRONT_SIZE + index * 4));
        words.into_iter().any(|page| page != 0 && self.geometry.block_of(PageAddr(page)) == block)
    }

    /// Moves what a file in memory has in a block.
    fn move_data_of(&mut self, slot: usize, block: BlockAddr) -> Result<(), N> {
        if self.slots[slot].number == 0 {
            return Ok(());
        }
        for index in 0..self.pointer_count as u32 {
            let page = self.data_pointer(slot, index);
            if page.0 == 0 || self.geometry.block_of(page) != block {
                continue;
            }
            self.stats.reads += 1;
            if chip::read(&mut self.nand, page, 0, self.pages.get_mut(COPY))?.is_none() {
                continue;
            }
            let File { directory, number, bucket, .. } = self.file_at(slot);
            let new = self.append_data(COPY, Owner { number, directory, bucket, index: index as u16 })?;
            self.set_data_pointer(slot, index, new);
        }
        Ok(())
    }

    /// Moves what any file has in a block: reads the inodes of all files, which stand in the area of files.
    fn scan_files(&mut self, block: BlockAddr) -> Result<(), N> {
        self.stats.scans += 1;
        for inodes in self.blocks.addresses() {
            if self.blocks.get(inodes).area() != Area::File {
                continue;
            }
            for nth in 0..self.block_pages {
                let page = self.page_of(inodes, nth);
                let fields = match self.inspect(page, NODE)? {
                    Ok(fields) => fields,
                    Err(Malformed::Erased) => break,
                    Err(_) => continue,
                };
                if fields.kind != Kind::File || !self.leads_into(NODE, block) || self.find_slot(fields.id).is_some() {
                    continue;
                }
                let place = self.place_of(media::name(self.pages.get(NODE)));
                if self.is_live_file(page, &fields)? {
                    let slot = self.slot_of(File::at(fields.parent, fields.id, place))?;
                    self.move_data_of(slot, block)?;
                }
            }
        }
        Ok(())
    }

    /// Counts the live pages of every block, if that was left open by a cut. Costs a read for each page of each directory and for each
    /// inode of a file.
    pub(crate) fn count_again(&mut self) -> Result<(), N> {
        if !self.is_rough {
            return Ok(());
        }
        for block in self.blocks.addresses() {
            self.blocks.update(block, |entry| entry.live = 0);
        }
        self.count_all()?;
        self.is_rough = false;
        Ok(())
    }

    /// Adds every page that lives to the count of its block.
    pub(crate) fn count_all(&mut self) -> Result<(), N> {
        for index in 0..self.map_pages.len() {
            self.count(PageAddr(self.map_pages[index]));
        }
        for id in 1..self.map.len() as u32 {
            let page = self.mapped(id);
            self.count(page);
            let Ok(Fields { kind: Kind::Directory | Kind::Virtual, .. }) = self.inspect(page, COPY)? else { continue };
            for bucket in 0..self.bucket_count as u16 {
                let pointer = self.pointer(COPY, bucket);
                if pointer < media::POINTER_BASE {
                    continue;
                }
                let page = self.target(pointer);
                self.count(page);
                if self.slot_at(page).is_some()
                    || !matches!(self.inspect(page, NODE)?, Ok(Fields { kind: Kind::File, .. }))
                {
                    continue;
                }
                self.count_data(NODE);
            }
        }
        for slot in 0..self.slots.len() {
            if self.slots[slot].number != 0 {
                self.count_data(self.inode_frame(slot));
            }
        }
        Ok(())
    }

    fn count(&mut self, page: PageAddr) {
        if page.0 != 0 && self.geometry.contains_page(page) {
            self.gain(page);
        }
    }

    fn count_data(&mut self, frame: crate::pages::Frame) {
        for index in 0..self.pointer_count {
            self.count(PageAddr(self.word(frame, media::FRONT_SIZE + index * 4)));
        }
    }
}
