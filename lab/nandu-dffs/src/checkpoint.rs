//! Checkpoints: from where a mount goes on.

use nandu_media::dffs::{
    self as media, BLOCK_SIZE, FLAG_CLEAN, FLAG_COPY, FLAG_ROUGH, Fields, Kind, OWNER_SIZE, SuperblockFields,
};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::blocks::{Area, BlockEntry, FAILED, NEW};
use crate::chip::{self, Programmed};
use crate::dffs::{CHECKPOINT_BLOCKS, Dffs, HEADS, Head, NO_BLOCK, Result};
use crate::error::Error;
use crate::pages::{OUT, SUMMARY};

/// A checkpoint on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) sequence: u64,
    pub(crate) is_copy: bool,
    pub(crate) block: BlockAddr,
    /// Place of its first part in the block.
    pub(crate) first: u32,
    pub(crate) parts: u32,
}

/// Content of a checkpoint, byte by byte: what is written is what is read.
struct Layout {
    map_pages: usize,
    blocks: usize,
    owners: usize,
}

/// Bytes in front of the map.
const FIXED: usize = 8 + HEADS.len() * 8;

impl Layout {
    fn size(&self, is_clean: bool) -> usize {
        FIXED + self.map_pages * 4 + self.blocks * BLOCK_SIZE + if is_clean { self.owners * OWNER_SIZE } else { 0 }
    }
}

impl<N: Nand> Dffs<'_, N> {
    fn layout(&self) -> Layout {
        Layout {
            map_pages: self.map_pages.len(),
            blocks: self.geometry.block_count as usize,
            owners: self.block_pages as usize,
        }
    }

    fn part_size(&self) -> usize {
        self.page_size() - media::ATTRIBUTES_SIZE - media::BACK_SIZE
    }

    /// Parts of the largest checkpoint.
    pub(crate) fn parts_max(&self) -> u32 {
        self.layout().size(true).div_ceil(self.part_size()) as u32
    }

    /// One byte of the content.
    fn content(&self, at: usize, is_clean: bool) -> u8 {
        let layout = self.layout();
        let word = |value: u32, at: usize| value.to_le_bytes()[at % 4];
        let blocks_at = FIXED + layout.map_pages * 4;
        let owners_at = blocks_at + layout.blocks * BLOCK_SIZE;
        match at {
            0..4 => word(self.number, at),
            4..8 => word(self.mapped(crate::dffs::ROOT).0, at),
            _ if at < FIXED => {
                let head = self.heads[(at - 8) / 8];
                word(if at % 8 < 4 { head.block } else { head.index }, at)
            }
            _ if at < blocks_at => word(self.map_pages[(at - FIXED) / 4], at - FIXED),
            _ if at < owners_at => {
                let (nth, byte) = ((at - blocks_at) / BLOCK_SIZE, (at - blocks_at) % BLOCK_SIZE);
                self.blocks.get(BlockAddr(nth as u32)).to_bytes()[byte]
            }
            _ if is_clean => self.pages.get(SUMMARY)[media::ATTRIBUTES_SIZE + at - owners_at],
            _ => 0,
        }
    }

    /// Makes everything durable and programs a checkpoint: afterwards a mount looks at what is newer than this. What was collected
    /// before is free then. Costs the programs of all that waits, a program for each page of the map that changed, and the checkpoint's own:
    /// five bytes for each block of the chip.
    pub(crate) fn write_checkpoint(&mut self, is_clean: bool) -> Result<(), N> {
        let collecting = core::mem::replace(&mut self.is_collecting, false);
        let cause = self.nand.attribute(Cause::Checkpoint);
        let result = self.write_checkpoint_inner(is_clean);
        self.nand.attribute(cause);
        self.is_collecting = collecting;
        result
    }

    fn write_checkpoint_inner(&mut self, is_clean: bool) -> Result<(), N> {
        self.is_busy = true;
        // What is in memory alone may lead into blocks that are free from here on.
        self.write_slots()?;
        self.catch_up_all()?;
        // O7: the pages of the map first, since the checkpoint names them.
        let is_broken = crate::options::broken!(self, checkpoint_before_map);
        if !is_broken {
            self.write_map()?;
        }
        self.sequence += 1;
        match self.program_parts(is_clean, false) {
            // Blocks for checkpoints only become fewer. All that was programmed is found by the next mount.
            Err(Error::Full) if self.checkpoint != 0 => {
                self.is_read_only = true;
                return Err(Error::ReadOnly);
            }
            result => result?,
        }
        if is_broken {
            self.write_map()?;
        }
        self.checkpoint = self.sequence;
        (self.since, self.opened) = (0, 0);
        for block in self.blocks.addresses() {
            if self.blocks.get(block).has(NEW) {
                self.blocks.update(block, |entry| entry.flags &= !NEW);
            }
        }
        self.is_writing = !is_clean;
        self.stats.checkpoints += 1;
        self.free_pending()
    }

    /// Programs the parts of a checkpoint with the sequence that the file system has. If the block of checkpoints has no room, or one fails, they go to
    /// another block.
    fn program_parts(&mut self, is_clean: bool, is_copy: bool) -> Result<(), N> {
        let size = self.layout().size(is_clean);
        let parts = size.div_ceil(self.part_size()) as u32;
        for _ in 0..2 * CHECKPOINT_BLOCKS {
            if self.anchor.block == NO_BLOCK || self.anchor.index + parts > self.block_pages {
                self.open_anchor()?;
            }
            let mut done = 0;
            while done < parts && self.anchor.block != NO_BLOCK {
                let start = done as usize * self.part_size();
                let end = size.min(start + self.part_size());
                self.pages.get_mut(OUT).fill(0);
                for at in start..end {
                    let byte = self.content(at, is_clean);
                    self.pages.get_mut(OUT)[media::ATTRIBUTES_SIZE + at - start] = byte;
                }
                let flags = [(is_clean, FLAG_CLEAN), (self.is_rough, FLAG_ROUGH), (is_copy, FLAG_COPY)];
                let fields = Fields {
                    id: done,
                    parent: self.volume,
                    size: size as u32,
                    nlink: parts as u16,
                    sequence: self.sequence,
                    flags: flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).sum(),
                    ..Fields::new(Kind::Checkpoint)
                };
                self.set_fields(OUT, &fields);
                self.program_anchor()?;
                done += 1;
            }
            if done == parts && self.anchor.block != NO_BLOCK {
                return Ok(());
            }
        }
        Err(Error::Full)
    }

    /// Programs the page in [`OUT`] into the block of checkpoints; that is closed if it fails.
    fn program_anchor(&mut self) -> Result<(), N> {
        let page = self.page_of(BlockAddr(self.anchor.block), self.anchor.index);
        media::seal(self.pages.get_mut(OUT), 0, page.0);
        let programmed = chip::program(&mut self.nand, page, self.pages.get(OUT))?;
        self.stats.programs[Area::Checkpoint as usize] += 1;
        self.anchor.index += 1;
        match programmed {
            Programmed::Fine => {}
            Programmed::Unknown => self.anchor = Head::NONE,
            Programmed::Failed => {
                // It may have the newest checkpoint, so it is retired only when there is one elsewhere.
                let block = BlockAddr(self.anchor.block);
                self.anchor = Head::NONE;
                self.blocks.update(block, |entry| entry.flags |= FAILED);
            }
        }
        Ok(())
    }

    /// Begins a block of checkpoints: one that has neither the newest checkpoint nor the one before it, which is needed if a cut made the
    /// newest only look whole.
    fn open_anchor(&mut self) -> Result<(), N> {
        for _ in 0..CHECKPOINT_BLOCKS {
            let kept = self.kept_anchors()?;
            let candidates = (0..CHECKPOINT_BLOCKS).map(BlockAddr);
            let usable = candidates.filter(|&block| {
                let entry = self.blocks.get(block);
                entry.area() != Area::Bad
                    && !entry.has(FAILED)
                    && !kept.contains(&Some(block))
                    && block.0 != self.anchor.block
            });
            let Some(block) = usable.min_by_key(|&block| self.blocks.get(block).erase_count) else {
                return Err(Error::Full);
            };
            if !self.erase(block)? {
                continue;
            }
            self.blocks.update(block, |entry| entry.set_area(Area::Checkpoint));
            self.anchor = Head { block: block.0, index: 0 };
            self.pages.get_mut(OUT).fill(0);
            let fields = Fields { parent: self.volume, sequence: self.sequence, ..Fields::new(Kind::Superblock) };
            self.set_fields(OUT, &fields);
            let superblock = SuperblockFields {
                volume: self.volume,
                page_size: self.geometry.page_size,
                pages_per_block: self.geometry.pages_per_block,
                block_count: self.geometry.block_count,
                directory_max: self.options.directory_max,
            };
            superblock.write(self.pages.get_mut(OUT));
            self.program_anchor()?;
            if self.anchor.block != NO_BLOCK {
                return Ok(());
            }
        }
        Err(Error::Full)
    }

    /// Blocks whose checkpoints are needed until the next is whole: that of the newest, and of the newest among those with a lower sequence.
    /// A copy is needed only where what it copies cannot be read.
    fn kept_anchors(&mut self) -> Result<[Option<BlockAddr>; 4], N> {
        let mut kept = [None; 4];
        if self.checkpoint == 0 {
            return Ok(kept);
        }
        let mut below = 0;
        for block in (0..CHECKPOINT_BLOCKS).map(BlockAddr) {
            let Some(found) = self.newest_in(block)? else { continue };
            if found.sequence < self.checkpoint {
                below = below.max(found.sequence);
            }
        }
        let mut original = false;
        let mut at = 0;
        for block in (0..CHECKPOINT_BLOCKS).map(BlockAddr) {
            let Some(found) = self.newest_in(block)? else { continue };
            let is_kept =
                found.sequence == self.checkpoint && (!found.is_copy || self.is_copied) || found.sequence == below;
            original |= is_kept && found.sequence == self.checkpoint;
            if is_kept && at < kept.len() {
                kept[at] = Some(block);
                at += 1;
            }
        }
        if !original {
            for block in (0..CHECKPOINT_BLOCKS).map(BlockAddr) {
                let Some(found) = self.newest_in(block)? else { continue };
                if found.sequence == self.checkpoint && at < kept.len() {
                    kept[at] = Some(block);
                    at += 1;
                }
            }
        }
        Ok(kept)
    }

    /// O8: repeats the checkpoint from which a recovery starts, before anything is programmed or erased. A cut may have left it so that it reads
    /// well now and not later; what it leads to, the one before it does not.
    pub(crate) fn copy_checkpoint(&mut self) -> Result<(), N> {
        let sequence = core::mem::replace(&mut self.sequence, self.checkpoint);
        let result = self.program_parts(false, true);
        self.sequence = sequence;
        self.is_copied = true;
        result
    }

    /// The newest whole checkpoint of a block. Costs a read for the superblock and, where there is one, about seven to find its last page, and
    /// one for each page from there back to the checkpoint.
    pub(crate) fn newest_in(&mut self, block: BlockAddr) -> Result<Option<Found>, N> {
        if self.blocks.get(block).area() == Area::Bad || self.read_anchor(block, 0)?.is_none() {
            return Ok(None);
        }
        // Pages are programmed one after the other: the first that is erased has erased ones behind it.
        let (mut programmed, mut erased) = (0, self.block_pages);
        while programmed + 1 < erased {
            let middle = (programmed + erased) / 2;
            if self.is_anchor_erased(block, middle)? { erased = middle } else { programmed = middle }
        }
        let mut needed: Option<(u64, u32)> = None;
        let mut nth = erased;
        while nth > 1 {
            nth -= 1;
            let Some(fields) = self.read_anchor(block, nth)? else {
                needed = None;
                continue;
            };
            let parts = u32::from(fields.nlink);
            let is_next = match needed {
                Some((sequence, part)) => fields.sequence == sequence && fields.id == part,
                None => parts > 0 && fields.id + 1 == parts,
            };
            if !is_next {
                needed = None;
                // It may be the last part of an older one.
                if fields.id + 1 != parts {
                    continue;
                }
            }
            if fields.id == 0 {
                let is_copy = fields.flags & FLAG_COPY != 0;
                return Ok(Some(Found { sequence: fields.sequence, is_copy, block, first: nth, parts }));
            }
            needed = Some((fields.sequence, fields.id - 1));
        }
        Ok(None)
    }

    fn is_anchor_erased(&mut self, block: BlockAddr, nth: u32) -> Result<bool, N> {
        let page = self.page_of(block, nth);
        self.stats.reads += 1;
        let read = chip::read(&mut self.nand, page, 0, self.pages.get_mut(OUT))?;
        let ecc = self.geometry.ecc;
        Ok(read.is_some() && chip::is_erased(self.pages.get(OUT), ecc.codeword_size, ecc.correctable_bits))
    }

    /// Reads a page of a block of checkpoints into [`OUT`]; `None` if it is none, or of another volume once that is known.
    pub(crate) fn read_anchor(&mut self, block: BlockAddr, nth: u32) -> Result<Option<Fields>, N> {
        let page = self.page_of(block, nth);
        self.stats.reads += 1;
        if chip::read(&mut self.nand, page, 0, self.pages.get_mut(OUT))?.is_none() {
            return Ok(None);
        }
        let Ok(fields) = media::open(self.pages.get(OUT), 0, page.0) else { return Ok(None) };
        let kind = if nth == 0 { Kind::Superblock } else { Kind::Checkpoint };
        Ok(Some(fields).filter(|fields| fields.kind == kind && (self.volume == 0 || fields.parent == self.volume)))
    }

    /// Takes over what a checkpoint says. Returns whether the volume was unmounted.
    pub(crate) fn read_checkpoint(&mut self, found: Found) -> Result<bool, N> {
        let layout = self.layout();
        let blocks_at = FIXED + layout.map_pages * 4;
        let owners_at = blocks_at + layout.blocks * BLOCK_SIZE;
        let mut entry = [0; BLOCK_SIZE];
        let (mut is_clean, mut at) = (false, 0);
        for part in 0..found.parts {
            let page = self.page_of(found.block, found.first + part);
            let corrupt = |why| Error::Corrupt { page, why };
            let fields = self
                .read_anchor(found.block, found.first + part)?
                .ok_or(corrupt(nandu_media::Malformed::Unreadable))?;
            is_clean = fields.flags & FLAG_CLEAN != 0;
            self.is_rough = fields.flags & FLAG_ROUGH != 0;
            if fields.size as usize != layout.size(is_clean) {
                return Err(corrupt(nandu_media::Malformed::Size));
            }
            let end = (fields.size as usize).min(at + self.part_size());
            for offset in 0..end - at {
                let byte = self.pages.get(OUT)[media::ATTRIBUTES_SIZE + offset];
                let place = at + offset;
                let set = |word: &mut u32, at: usize| {
                    let shift = 8 * (at % 4);
                    *word = *word & !(0xff << shift) | u32::from(byte) << shift;
                };
                match place {
                    0..4 => set(&mut self.number, place),
                    4..8 => {}
                    _ if place < FIXED => {
                        let head = &mut self.heads[(place - 8) / 8];
                        set(if place % 8 < 4 { &mut head.block } else { &mut head.index }, place);
                    }
                    _ if place < blocks_at => set(&mut self.map_pages[(place - FIXED) / 4], place - FIXED),
                    _ if place < owners_at => {
                        let (nth, byte_at) = ((place - blocks_at) / BLOCK_SIZE, (place - blocks_at) % BLOCK_SIZE);
                        entry[byte_at] = byte;
                        if byte_at + 1 == BLOCK_SIZE {
                            let known = BlockEntry::from_bytes(entry);
                            self.blocks.update(BlockAddr(nth as u32), |entry| *entry = known);
                        }
                    }
                    _ => self.pages.get_mut(SUMMARY)[media::ATTRIBUTES_SIZE + place - owners_at] = byte,
                }
            }
            at = end;
        }
        self.check_checkpoint(found)?;
        Ok(is_clean)
    }

    /// What a checkpoint says has to fit the chip.
    fn check_checkpoint(&mut self, found: Found) -> Result<(), N> {
        let page = self.page_of(found.block, found.first);
        let corrupt = |what| Err(Error::Corrupt { page, why: nandu_media::Malformed::Range(what) });
        for (head, area) in self.heads.into_iter().zip(HEADS) {
            if head.block == NO_BLOCK {
                continue;
            }
            let is_there = self.geometry.contains_block(BlockAddr(head.block)) && head.index < self.block_pages;
            if !is_there || self.blocks.get(BlockAddr(head.block)).area() != area {
                return corrupt(nandu_media::Field::Head);
            }
        }
        if self.map_pages.iter().any(|&page| !self.geometry.contains_page(PageAddr(page))) {
            return corrupt(nandu_media::Field::Map);
        }
        Ok(())
    }
}
