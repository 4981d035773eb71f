//! Making, mounting and unmounting a volume.

use nandu_media::dffs::SuperblockFields;
use nandu_media::volume::VolumeId;
use nandu_nand::{BlockAddr, Cause, Nand, NandError, NandErrorKind};

use crate::blocks::{Area, SEEN};
use crate::checkpoint::Found;
use crate::dffs::{CHECKPOINT_BLOCKS, Dffs, ROOT, Result};
use crate::error::Error;
use crate::options::Options;
use crate::pages::OUT;

/// How often a mark is asked for that cannot be read.
const MARK_ATTEMPTS: u32 = 3;

/// How often a mount begins anew.
const MOUNT_ATTEMPTS: u32 = 4;

/// Sequences left out between an old volume and a new one, and between what a cut left and a recovery.
pub(crate) const SEQUENCE_GAP: u64 = 1 << 16;

impl<'m, N: Nand> Dffs<'m, N> {
    /// Makes an empty volume, whatever the chip holds. Respects every bad-block mark.
    ///
    /// Looks at the mark of every block, erases those for checkpoints, and programs the root, the map and a checkpoint. A chip on which this
    /// was cut has no volume, or the new one.
    ///
    /// # Errors
    ///
    /// [`Error::Geometry`], [`Error::Unsuitable`], [`Error::Memory`] before anything was changed; [`Error::Nand`].
    pub fn format(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Dffs<'m, N>, N> {
        let mut fs = Dffs::blank(nand, options, memory)?;
        let before = fs.nand.attribute(Cause::Format);
        fs.note_marks()?;
        let good = fs.blocks.addresses().filter(|&block| fs.blocks.get(block).area() != Area::Bad);
        let outside = good.filter(|&block| crate::recover::is_outside(block)).count() as u32;
        let anchors = fs.blocks.count(Area::Checkpoint);
        let room = fs.block_pages - 1;
        if anchors < 4 || outside < fs.reserve() + 8 || fs.parts_max() > room {
            return Err(Error::Unsuitable {
                what: "too few good blocks, or too few pages in a block for a checkpoint",
            });
        }
        let old = fs.find_checkpoint()?;
        let mut id = VolumeId::new(options.salt);
        id.add(old.map_or(0, |old| old.0.sequence));
        let is_bad = |block: &BlockAddr| fs.blocks.get(*block).area() == Area::Bad;
        fs.blocks.addresses().filter(is_bad).for_each(|block| id.add(block.0.into()));
        fs.volume = id.draw(old.map_or(0, |old| old.1.volume));
        fs.sequence = old.map_or(1, |old| old.0.sequence.saturating_add(SEQUENCE_GAP));
        // The old volume goes first: what it leads to is erased soon.
        for block in (0..CHECKPOINT_BLOCKS).map(BlockAddr) {
            if fs.blocks.get(block).area() == Area::Checkpoint {
                fs.erase(block)?;
            }
        }
        fs.write_root()?;
        fs.write_checkpoint(false)?;
        fs.nand.attribute(before);
        fs.is_busy = false;
        Ok(fs)
    }

    fn note_marks(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            let mut is_good = false;
            for _ in 0..MARK_ATTEMPTS {
                match self.nand.is_bad(block) {
                    Ok(is_bad) => {
                        is_good = !is_bad;
                        break;
                    }
                    Err(error) if error.kind() == NandErrorKind::Gone => return Err(Error::Nand(error)),
                    Err(_) => {}
                }
            }
            let area = match (is_good, crate::recover::is_outside(block)) {
                // A mark that cannot be read is taken for set: the factory's marks are all that tells those blocks.
                (false, _) => Area::Bad,
                (true, false) => Area::Checkpoint,
                (true, true) => Area::Free,
            };
            self.blocks.update(block, |entry| {
                entry.set_area(area);
                entry.flags |= SEEN;
            });
        }
        Ok(())
    }

    /// The newest checkpoint, and what its block says of the volume.
    fn find_checkpoint(&mut self) -> Result<Option<(Found, SuperblockFields)>, N> {
        let mut best: Option<Found> = None;
        for block in (0..CHECKPOINT_BLOCKS).map(BlockAddr) {
            let Some(found) = self.newest_in(block)? else { continue };
            let order = |found: &Found| (found.sequence, !found.is_copy);
            if best.as_ref().is_none_or(|best| order(&found) > order(best)) {
                best = Some(found);
            }
        }
        let Some(best) = best else { return Ok(None) };
        if self.read_anchor(best.block, 0)?.is_none() {
            return Ok(None);
        }
        Ok(SuperblockFields::read(self.pages.get(OUT)).ok().map(|superblock| (best, superblock)))
    }

    /// Mounts a volume: reads its newest checkpoint, superblock, map and root. That takes the same memory and, but for the pages of the map, as many
    /// reads whatever the number of files. After a cut it puts right what that left: a read for each free block, and a few for each
    /// inode programmed since the checkpoint. Where that finds no free block, the mount is [read-only](Dffs::is_read_only).
    ///
    /// # Errors
    ///
    /// [`Error::NotFormatted`]; [`Error::WrongFormat`] of another chip or other options; [`Error::Corrupt`] for what is needed and cannot be
    /// read; those of [`format`](Dffs::format).
    pub fn mount(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Dffs<'m, N>, N> {
        let mut fs = Dffs::blank(nand, options, memory)?;
        let before = fs.nand.attribute(Cause::Mount);
        let mut attempt = 1;
        loop {
            fs.is_last_attempt = attempt == MOUNT_ATTEMPTS;
            match fs.find_and_recover() {
                // A page that a cut left unstable may be read once and not again. Nothing was made of it that the next attempt does not find.
                Err(Error::Corrupt { .. }) if attempt < MOUNT_ATTEMPTS => attempt += 1,
                result => break result?,
            }
            fs.forget_all();
        }
        fs.is_last_attempt = true;
        fs.load_head(ROOT)?;
        fs.nand.attribute(before);
        fs.is_busy = false;
        Ok(fs)
    }

    /// Takes over what the newest checkpoint says, and what is newer.
    fn find_and_recover(&mut self) -> Result<(), N> {
        let (found, superblock) = self.find_checkpoint()?.ok_or(Error::NotFormatted)?;
        let geometry = self.geometry;
        for (what, there, here) in [
            ("page size", superblock.page_size, geometry.page_size),
            ("pages per block", superblock.pages_per_block, geometry.pages_per_block),
            ("block count", superblock.block_count, geometry.block_count),
            ("directory_max", superblock.directory_max, self.options.directory_max),
        ] {
            if there != here {
                return Err(Error::WrongFormat { what });
            }
        }
        self.volume = superblock.volume;
        (self.checkpoint, self.sequence) = (found.sequence, found.sequence);
        let is_clean = self.read_checkpoint(found)?;
        self.read_map()?;
        if is_clean {
            return Ok(());
        }
        self.stats.was_cut = true;
        self.nand.attribute(Cause::Recovery);
        self.recover()
    }

    /// Makes everything durable, notes that the volume was left in order, and gives the chip back. Costs a checkpoint.
    ///
    /// # Errors
    ///
    /// Those of [`sync`](Dffs::sync).
    pub fn unmount(mut self) -> Result<N, N> {
        if self.is_read_only && !self.slots.iter().any(|slot| slot.is_dirty()) {
            return Ok(self.nand);
        }
        self.change(|fs| {
            for slot in 0..fs.slots.len() {
                fs.slots[slot].opens = 0;
                if fs.slots[slot].is_orphan() {
                    fs.bury_orphan(slot);
                }
            }
            if fs.is_writing || fs.slots.iter().any(|slot| slot.is_dirty()) {
                fs.prepare(crate::room::Demand::Less)?;
                fs.write_checkpoint(true)?;
            }
            Ok(())
        })?;
        Ok(self.nand)
    }
}
