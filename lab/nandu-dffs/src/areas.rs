//! The areas: lists of blocks that take pages at their ends.

use nandu_media::dffs::{self as media, FLAG_RECOVERY, Fields, Kind, Owner};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::blocks::{Area, FAILED, NEW, REFRESH, SCAN, SEEN};
use crate::chip::{self, Programmed};
use crate::dffs::{Dffs, HEADS, Head, NO_BLOCK, Result};
use crate::error::Error;
use crate::pages::{Frame, SUMMARY};

fn head_of(area: Area) -> usize {
    HEADS.iter().position(|&head| head == area).unwrap_or(0)
}

impl<N: Nand> Dffs<'_, N> {
    /// Whether the next page of an area goes to this block.
    pub(crate) fn is_head(&self, block: BlockAddr) -> bool {
        self.heads.iter().any(|head| head.block == block.0)
    }

    /// Takes a block into use: the free one with the fewest erases, erased. It is erased right before its first program and not when it
    /// becomes free, since a cut may leave an erased block only looking so.
    pub(crate) fn take_block(&mut self, area: Area) -> Result<BlockAddr, N> {
        loop {
            let block = self.blocks.least_worn().ok_or(Error::Full)?;
            if self.erase(block)? {
                self.blocks.update(block, |entry| {
                    entry.set_area(area);
                    (entry.live, entry.flags) = (0, NEW | SEEN);
                });
                return Ok(block);
            }
        }
    }

    /// The page that an area's next program goes to.
    pub(crate) fn next_page(&mut self, area: Area) -> Result<PageAddr, N> {
        let at = head_of(area);
        if self.heads[at].block == NO_BLOCK {
            let block = self.take_block(area)?;
            self.heads[at] = Head { block: block.0, index: 0 };
            if matches!(area, Area::Directory | Area::Virtual | Area::File) {
                self.opened += 1;
            }
            if area == Area::Data {
                self.pages.get_mut(SUMMARY).fill(0);
            }
        }
        let Head { block, index } = self.heads[at];
        Ok(self.page_of(BlockAddr(block), index))
    }

    /// What a program did to the head: whether the page counts.
    fn advance(&mut self, area: Area, programmed: Programmed) -> bool {
        let at = head_of(area);
        let block = BlockAddr(self.heads[at].block);
        self.heads[at].index += 1;
        if programmed != Programmed::Fine {
            // What is behind a failed program is not to be relied on: the block takes no more. What is in it is moved soon.
            self.blocks.update(block, |entry| {
                entry.flags |= SCAN | REFRESH;
                if programmed == Programmed::Failed {
                    entry.flags |= FAILED;
                }
            });
            self.refreshes += 1;
            self.heads[at] = Head::NONE;
            return false;
        }
        if self.heads[at].index >= self.block_pages {
            self.heads[at] = Head::NONE;
        }
        true
    }

    fn note_program(&mut self, area: Area) {
        self.stats.programs[area as usize] += 1;
        self.stats.collector_programs[area as usize] += u64::from(self.is_collecting);
    }

    /// Appends the page in a frame to its area, with the next sequence. It lives from here on. Costs a program, and an erase for the
    /// first page of a block.
    pub(crate) fn append(&mut self, area: Area, frame: Frame) -> Result<PageAddr, N> {
        self.is_busy = true;
        loop {
            let page = self.next_page(area)?;
            self.sequence += 1;
            let fields = self.fields(frame)?;
            let flags = fields.flags & !FLAG_RECOVERY | if self.is_recovering { FLAG_RECOVERY } else { 0 };
            let fields = Fields { sequence: self.sequence, flags, ..fields };
            self.set_fields(frame, &fields);
            media::seal(self.pages.get_mut(frame), self.volume, page.0);
            let programmed = chip::program(&mut self.nand, page, self.pages.get(frame))?;
            self.note_program(area);
            if self.advance(area, programmed) {
                self.gain(page);
                self.since += 1;
                if area != Area::Map {
                    self.keep(page, frame);
                }
                return Ok(page);
            }
        }
    }

    /// Appends a page of data, which is all content. Whose it is goes to the summary, the last page of the block.
    pub(crate) fn append_data(&mut self, frame: Frame, owner: Owner) -> Result<PageAddr, N> {
        self.is_busy = true;
        debug_assert!(Self::owner_fits(&owner), "logical numbers are below 32,768");
        loop {
            let page = self.next_page(Area::Data)?;
            let Head { index, .. } = self.heads[head_of(Area::Data)];
            let programmed = chip::program(&mut self.nand, page, self.pages.get(frame))?;
            self.note_program(Area::Data);
            if self.advance(Area::Data, programmed) {
                self.gain(page);
                media::set_owner(self.pages.get_mut(SUMMARY), index as usize, owner);
                if index + 2 == self.block_pages {
                    self.close_data()?;
                }
                return Ok(page);
            }
        }
    }

    /// Programs the summary of the block of data that is being filled, and takes no more into it. Without a summary the block is still
    /// collected, by asking the inodes of all files.
    pub(crate) fn close_data(&mut self) -> Result<(), N> {
        let at = head_of(Area::Data);
        let Head { block, .. } = self.heads[at];
        if block == NO_BLOCK {
            return Ok(());
        }
        self.is_busy = true;
        self.heads[at].index = self.block_pages - 1;
        let page = self.next_page(Area::Data)?;
        self.sequence += 1;
        let fields = Fields { sequence: self.sequence, ..Fields::new(Kind::Summary) };
        self.set_fields(SUMMARY, &fields);
        media::seal(self.pages.get_mut(SUMMARY), self.volume, page.0);
        let programmed = chip::program(&mut self.nand, page, self.pages.get(SUMMARY))?;
        self.note_program(Area::Data);
        self.advance(Area::Data, programmed);
        Ok(())
    }
}
