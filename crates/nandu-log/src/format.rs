//! Making a volume.

use nandu_media::header::header_size;
use nandu_media::table::RECORD_SIZE;
use nandu_media::volume::VolumeId;
use nandu_media::{ANCHOR_COUNT, Anchor, BlockRecord, Page, PageKind};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr};

use crate::access::Probe;
use crate::block_table::{MARK_SEEN, State};
use crate::error::LogError;
use crate::log::Log;
use crate::mount::{SEQUENCE_GAP, SEQUENCE_MAX};
use crate::options::LogOptions;
use crate::search::NewestAnchor;

/// Sequences of pages on the chip from here on are not left behind, since a volume that begins there could hardly be written: the block
/// is erased.
const OUTDATED_MAX: u64 = SEQUENCE_MAX / 2;

impl<'m, N: Nand> Log<'m, N> {
    /// Makes an empty volume, whatever the chip holds. Respects every bad-block mark, and keeps the erase counts of a volume that
    /// stands there.
    ///
    /// Looks at the mark of every block and at its first two pages, erases the four anchor blocks and the first blocks for data, and
    /// makes a checkpoint. A chip on which this was cut has no volume, or the new one; or the old one, if there was one.
    ///
    /// # Errors
    ///
    /// [`LogError::Geometry`], [`LogError::Memory`] and [`LogError::Unsuitable`] before anything was changed; the last, for
    /// example, for a chip whose block table, four bytes a block, does not fit an anchor block, or on which the first block to go bad
    /// would leave no room for data;
    /// [`LogError::ReadOnly`] if too few blocks are good; [`LogError::Nand`].
    #[inline(never)]
    pub fn format(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, LogError<N::Error>> {
        let place = Self::memory_for(&nand, &options, memory)?;
        let mut log = Log::unopened(nand, options, place);
        log.format_here()?;
        Ok(log)
    }

    /// Makes the volume in place, of a log that is [unopened](Log::unopened). Costs what [`Log::format`] does.
    ///
    /// # Errors
    ///
    /// As [`Log::format`].
    pub fn format_here(&mut self) -> Result<(), LogError<N::Error>> {
        self.nand.attribute(Cause::Format);
        let old = match self.find_anchor() {
            Err(LogError::Nand(error)) => return Err(LogError::Nand(error)),
            found => found.unwrap_or(None),
        };
        self.forget();
        self.make(self.options, old)
    }

    /// Makes the volume in place.
    #[inline(never)]
    fn make(&mut self, options: LogOptions, old: Option<NewestAnchor>) -> Result<(), LogError<N::Error>> {
        // Numbers go on from the old volume, so that a mount can tell its anchors from those of the new one if they did not
        // all stand in the same blocks.
        let (old_volume, old_sequence, old_block) = match old {
            Some(anchor) => {
                let block = self.shape.geometry.block_of(anchor.found.page);
                (anchor.found.volume, anchor.sequence, Some(block))
            }
            None => (0, 0, None),
        };
        if let Some(anchor) = old {
            self.keep_erase_counts(anchor)?;
        }
        self.sequence = old_sequence.saturating_add(SEQUENCE_GAP);
        self.note_bad_blocks()?;
        if self.has_none_to_lose() {
            let what = "too few blocks: the first one to go bad would leave no room (bad_block_max)";
            return Err(LogError::Unsuitable { what });
        }
        self.choose_anchors(old_block)?;
        let mut id = VolumeId::new(options.salt);
        id.add(old_sequence);
        self.outdate_pages(&mut id)?;
        self.volume = options.volume.unwrap_or_else(|| id.draw(old_volume));
        self.write_checkpoint(false)?;
        while let Some(block) = self.erase_ahead() {
            self.erase_listed(block)?;
        }
        self.start_sampling();
        if self.capacity_pages() == 0 {
            return Err(LogError::Unsuitable { what: "too few good blocks" });
        }
        self.nand.attribute(Cause::Other);
        Ok(())
    }

    /// Takes over the erase counts of a volume that stands on the chip, as far as its block table can be read: wear goes on from
    /// there. One read, and one for each page of the block table.
    fn keep_erase_counts(&mut self, anchor: NewestAnchor) -> Result<(), LogError<N::Error>> {
        let geometry = self.shape.geometry;
        let page = anchor.found.page;
        if self.buffer_page(page)? != Probe::Valid {
            return Ok(());
        }
        let bytes = core::mem::take(&mut self.blocks.page);
        let mut table_pages = 0;
        if let Ok(parsed) = Page::parse(bytes).and_then(|parsed| Anchor::parse(&parsed))
            && parsed.block_count() == geometry.block_count
            && parsed.table().len() <= self.blocks.table_page_count() as usize
        {
            for (index, address) in parsed.table().enumerate() {
                self.blocks.set_table_address(index as u16, address, true);
                table_pages += 1;
            }
            for (block, record) in self.blocks.addresses().zip(parsed.records()) {
                self.blocks.keep_erase_count(block, BlockRecord::from_bytes(*record).erase_count);
            }
        }
        self.blocks.page = bytes;
        let mut first = 0;
        for index in 0..table_pages {
            let page = PageAddr(self.blocks.table_address(index));
            if self.probe_any(page)? != Probe::Valid
                || self.found.kind != PageKind::Table
                || self.found.volume != anchor.found.volume
            {
                return Ok(());
            }
            let bytes = core::mem::take(&mut self.blocks.page);
            let body = Page::parse(bytes).map(|parsed| header_size(parsed.stream_count())).unwrap_or(bytes.len());
            let (records, _) = bytes[body..].as_chunks::<RECORD_SIZE>();
            for (block, &record) in (first..geometry.block_count).zip(records) {
                self.blocks.keep_erase_count(BlockAddr(block), BlockRecord::from_bytes(record).erase_count);
            }
            first += records.len() as u32;
            self.blocks.page = bytes;
        }
        Ok(())
    }

    fn note_bad_blocks(&mut self) -> Result<(), LogError<N::Error>> {
        for block in self.blocks.addresses() {
            match self.nand.is_bad(block) {
                Ok(false) => self.blocks.set(block, MARK_SEEN, true),
                Ok(true) => self.blocks.set_state(block, State::Bad),
                // A mark that cannot be read is taken for set: the factory's marks are all that tells those blocks.
                Err(error) if error.kind() == NandErrorKind::Uncorrectable => self.blocks.set_state(block, State::Bad),
                Err(error) => return Err(self.chip_error(error)),
            }
        }
        Ok(())
    }

    /// Whether data would have no room once one more block has gone bad, where one more may: such a volume could only be read, for ever, after
    /// the first program that failed.
    fn has_none_to_lose(&self) -> bool {
        let left = self.blocks.good().saturating_sub(ANCHOR_COUNT as u32 + 1);
        self.blocks.count(State::Bad) < self.shape.geometry.bad_block_max && left <= self.shape.reserve_blocks(left)
    }

    /// Sees to it that no page on the chip passes for one of the new volume. One may have its volume id, if that was asked for, or by
    /// chance; and a block is erased only when it is opened. Until then, mounts look at its first two pages, so sequences begin behind
    /// those, of whatever volume. A block with a page that is far ahead is erased.
    ///
    /// What is found goes into the id, and so does which blocks are bad: a format that was cut after it had erased the anchors is
    /// followed by one that knows of no volume before.
    ///
    /// One read for each block, two where the first page is programmed.
    fn outdate_pages(&mut self, id: &mut VolumeId) -> Result<(), LogError<N::Error>> {
        for block in self.blocks.addresses() {
            if self.blocks.state(block) == State::Bad {
                id.add(block.0.into());
            }
            if self.blocks.state(block) != State::Free {
                continue;
            }
            for nth in 0..2 {
                match self.probe_any(self.shape.data_page(block, nth))? {
                    Probe::Erased => break,
                    Probe::Garbage => {}
                    Probe::Valid if self.found.sequence < OUTDATED_MAX => {
                        let found = &self.found;
                        id.add(u64::from(found.volume) << 32 | u64::from(found.page.0));
                        id.add(found.sequence);
                        self.sequence = self.sequence.max(found.sequence + SEQUENCE_GAP);
                    }
                    Probe::Valid => {
                        if !self.erase(block, self.shape.mode)? {
                            self.retire(block);
                        }
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the first good blocks for anchors and erases them; the one with the newest anchor of an old volume last, since
    /// the older ones alone would pass for a volume that is long gone.
    fn choose_anchors(&mut self, old: Option<BlockAddr>) -> Result<(), LogError<N::Error>> {
        let mut chosen = 0;
        for block in (0..self.shape.anchor_window()).map(BlockAddr) {
            if chosen == ANCHOR_COUNT {
                break;
            }
            if self.blocks.state(block) == State::Bad {
                continue;
            }
            if Some(block) == old || self.erase(block, CellMode::Slc)? {
                self.blocks.set_state(block, State::Anchor);
                self.anchors.blocks[chosen] = Some(block);
                chosen += 1;
            } else {
                self.retire(block);
            }
        }
        if let Some(block) = old
            && self.blocks.state(block) != State::Bad
        {
            let is_erased = self.erase(block, CellMode::Slc)?;
            let place = self.anchors.blocks.iter().position(|&anchor| anchor == Some(block));
            match (is_erased, place) {
                (true, _) => {}
                (false, Some(place)) => {
                    self.anchors.blocks[place] = None;
                    self.retire(block);
                }
                (false, None) => self.retire(block),
            }
        }
        let Some(first) = self.anchors.blocks.iter().position(|block| block.is_some()) else {
            return Err(LogError::Unsuitable { what: "no good block for anchors" });
        };
        self.anchors.current = first;
        self.anchors.base = first;
        self.anchors.next = 0;
        self.anchors.is_trusted = true;
        Ok(())
    }
}
