//! Making a volume.

use nandu_media::header::header_size;
use nandu_media::table::RECORD_SIZE;
use nandu_media::volume::VolumeId;
use nandu_media::{ANCHOR_COUNT, Anchor, BlockRecord, PageKind};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr};

use crate::anchors::Anchors;
use crate::blocks::{Flag, Stage};
use crate::error::LogError;
use crate::medium::{Header, Probe};
use crate::options::LogOptions;
use crate::search::{AnchorSearch, NewestAnchor};
use crate::volume::{SEQUENCE_MAX, Volume};

/// Sequences of pages on the chip from here on are not left behind, since a volume that begins there could hardly be written: the block is erased.
const OUTDATED_MAX: u64 = SEQUENCE_MAX / 2;

/// By how much a new volume's sequences are ahead of what stands on the chip.
const AHEAD: u64 = 4096;

/// Makes an empty volume, whatever the chip holds. Numbers go on from the old volume, so that a mount can tell its anchors from those of
/// the new one if they did not all stand in the same blocks.
pub(crate) fn format<N: Nand>(volume: &mut Volume<'_, N>, options: &LogOptions) -> Result<(), LogError<N::Error>> {
    let (medium, blocks, shape) = volume.reader();
    if !shape.has_blocks() {
        return Err(LogError::Unsuitable { what: &"too few blocks beside those that may be bad" });
    }
    let old = match AnchorSearch::new(medium, shape).newest() {
        Err(LogError::Nand(error)) => return Err(LogError::Nand(error)),
        found => found.unwrap_or(None),
    };
    blocks.reshape(shape);
    let mut maker = Maker { volume };
    if let Some(old) = &old {
        maker.keep_erase_counts(old)?;
    }
    let (old_volume, old_sequence) = old.map_or((0, 0), |old| (old.found.volume, old.sequence));
    maker.volume.medium_mut().pass_sequence(old_sequence.saturating_add(AHEAD));
    maker.note_bad_blocks()?;
    let anchors = maker.choose_anchors(old.map(|old| maker.volume.shape().block_of(old.found.page)))?;
    maker.volume.begin(anchors);
    let mut id = VolumeId::new(options.salt);
    id.add(old_sequence);
    maker.outdate_pages(&mut id)?;
    volume.medium_mut().set_volume(options.volume.unwrap_or_else(|| id.draw(old_volume)));
    debug_assert!(volume.blocks().live_total() == 0 && volume.medium().volume() != 0);
    volume.checkpoint(false)?;
    while volume.erase_ahead()? {}
    Ok(())
}

struct Maker<'v, 'm, N> {
    volume: &'v mut Volume<'m, N>,
}

impl<N: Nand> Maker<'_, '_, N> {
    /// Takes over the erase counts of a volume that stands on the chip, as far as its block table can be read: wear goes on from there. One read, and one for each page of the block table.
    fn keep_erase_counts(&mut self, old: &NewestAnchor) -> Result<(), LogError<N::Error>> {
        let (medium, blocks, shape) = self.volume.reader();
        if medium.probe_any(old.found.page)?.valid().is_none() {
            return Ok(());
        }
        let block_count = shape.geometry.block_count;
        let mut table_pages = 0;
        if let Ok(parsed) = medium.parsed()
            && let Ok(anchor) = Anchor::parse(&parsed)
            && anchor.block_count() == block_count
            && anchor.table().len() <= usize::from(blocks.table_pages())
        {
            for (index, address) in anchor.table().enumerate() {
                blocks.set_table_address(index as u16, address);
                table_pages += 1;
            }
            for (block, record) in blocks.addresses().zip(anchor.records()) {
                blocks.keep_erases(block, BlockRecord::from_bytes(*record).erase_count);
            }
        }
        let mut first = 0;
        for index in 0..table_pages {
            let page = PageAddr(blocks.table_address(index));
            let is_right = |found: &Header| found.kind == PageKind::Table && found.volume == old.found.volume;
            let is_inside = shape.geometry.contains_page(page);
            if !is_inside || medium.probe_any(page)?.valid().filter(is_right).is_none() {
                break;
            }
            let streams = medium.parsed().map_or(0, |parsed| parsed.stream_count());
            let (records, _) =
                medium.bytes().get(header_size(streams)..).unwrap_or_default().as_chunks::<RECORD_SIZE>();
            for (block, &record) in (first..block_count).zip(records) {
                blocks.keep_erases(BlockAddr(block), BlockRecord::from_bytes(record).erase_count);
            }
            first += records.len() as u32;
        }
        blocks.change_every_table_page();
        Ok(())
    }

    fn note_bad_blocks(&mut self) -> Result<(), LogError<N::Error>> {
        let (medium, blocks, _) = self.volume.reader();
        for block in blocks.addresses() {
            match medium.chip_mut().nand_mut().is_bad(block) {
                Ok(false) => blocks.set(block, Flag::Mark, true),
                // A mark that cannot be read is taken for set: the factory's marks are all that tells those blocks.
                Ok(true) => blocks.found_bad(block),
                Err(error) if error.kind() == NandErrorKind::Uncorrectable => blocks.found_bad(block),
                Err(error) => return Err(medium.chip_mut().error(error)),
            }
        }
        Ok(())
    }

    /// Takes the first good blocks for anchors and erases them; the one with the newest anchor of an old volume last, since the older ones alone would pass for a volume that is long gone.
    fn choose_anchors(&mut self, old: Option<BlockAddr>) -> Result<Anchors, LogError<N::Error>> {
        let mut chosen = [None; ANCHOR_COUNT];
        let mut count = 0;
        for block in (0..self.volume.shape().anchor_window()).map(BlockAddr) {
            if count == ANCHOR_COUNT {
                break;
            }
            if self.volume.blocks().state(block) == Stage::Bad {
                continue;
            }
            if Some(block) == old || self.erase(block)? {
                self.volume.blocks_mut().make_anchor(block);
                chosen[count] = Some(block);
                count += 1;
            }
        }
        if let Some(block) = old.filter(|&block| self.volume.blocks().state(block) != Stage::Bad)
            && !self.erase(block)?
        {
            chosen.iter_mut().for_each(|place| *place = place.filter(|&anchor| anchor != block));
        }
        Anchors::chosen(chosen).ok_or(LogError::Unsuitable { what: &"no good block for anchors" })
    }

    /// Erases a block that no volume needs any more; `false` if it is out of use now.
    fn erase(&mut self, block: BlockAddr) -> Result<bool, LogError<N::Error>> {
        let (medium, blocks, shape) = self.volume.reader();
        let erasure = medium.erase(shape.page(block, 0), (CellMode::Slc, Cause::Format))?;
        blocks.count_erases(block, erasure.count);
        if !erasure.is_done {
            blocks.retire(block);
        }
        Ok(erasure.is_done)
    }

    /// Sees to it that no page on the chip passes for one of the new volume. One may have its volume id, if that was asked for, or by chance; and a block is erased only when it
    /// is opened. Until then, mounts look at its first two pages, so sequences begin behind those, of whatever volume. A block with a page that is far ahead is erased.
    ///
    /// What is found goes into the id, and so does which blocks are bad: a format that was cut after it had erased the anchors is followed by one that knows of no volume before.
    ///
    /// One read for each block, two where the first page is programmed.
    fn outdate_pages(&mut self, id: &mut VolumeId) -> Result<(), LogError<N::Error>> {
        for block in self.volume.blocks().addresses() {
            let state = self.volume.blocks().state(block);
            if state == Stage::Bad {
                id.add(block.0.into());
            }
            for nth in (0..2).filter(|_| state == Stage::Free) {
                let page = self.volume.shape().page(block, nth);
                match self.volume.medium_mut().probe_any(page)? {
                    Probe::Erased => break,
                    Probe::Garbage => {}
                    Probe::Valid(found) if found.sequence < OUTDATED_MAX => {
                        id.add(u64::from(found.volume) << 32 | u64::from(found.page.0));
                        id.add(found.sequence);
                        self.volume.medium_mut().pass_sequence(found.sequence + AHEAD);
                    }
                    Probe::Valid(_) => {
                        self.erase(block)?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
