//! Putting right what a cut left.
//!
//! Only the operation that was cut can be incomplete, and its programs are the last ones in the order of sequences. So recovery makes the
//! inodes that were programmed since the checkpoint count, in their order; takes back or completes what the last of them began; programs
//! the very last one again, which the cut may have left so that it reads well now and not later; and makes a checkpoint.
//!
//! Whatever it programs is flagged and counts only with that checkpoint. So a recovery that is cut leaves nothing: the next passes over its
//! pages, finds what it found (or, where the last page faded meanwhile, what was before that), and takes the blocks that it took. Until the
//! checkpoint is whole it erases only blocks that were free at the one before and have nothing newer, so that both are still there. However many
//! recoveries in a row are cut, each has the room of the first. It takes a block for an inode, one for the map, and for the pages of directories two
//! and as many as the buckets that are behind can fill: each area takes a new block once, since none is filled on.

use nandu_media::dffs::{self as media, FLAG_RENAMED, Fields, Kind, NEXT_AT, POINTER_BASE, PREVIOUS_AT};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::blocks::{Area, NEW, SCAN};
use crate::chain::Fold;
use crate::dffs::{Dffs, Head, ROOT, Result};
use crate::error::Error;
use crate::hash::Place;
use crate::lag::Lag;
use crate::mount::SEQUENCE_GAP;
use crate::pages::{CHAIN, NODE, OLD, OTHER};

/// What the pages since the checkpoint left to be done.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// The last page of a directory, by its logical number, and its sequence.
    chain: Option<(u32, u64)>,
    /// The last inode of a file, and its sequence.
    file: Option<(PageAddr, u64)>,
    old_name: Option<OldName>,
}

/// An entry that a rename may have left.
#[derive(Clone, Copy, Debug)]
struct OldName {
    directory: u32,
    place: Place,
    pointer: u32,
    /// How often the entry stands there if the rename left it: twice where the new one is the same.
    count: u32,
}

impl<N: Nand> Dffs<'_, N> {
    /// Recovers from the checkpoint that was read. Costs a read for each free block, a few for each inode programmed since the checkpoint, and
    /// the programs of what is put right and of two checkpoints.
    pub(crate) fn recover(&mut self) -> Result<(), N> {
        let has_room = match self.copy_checkpoint() {
            Err(Error::Full) => false,
            result => result.map(|()| true)?,
        };
        self.find_cursors()?;
        let mut left = Left::default();
        self.replay_chains(&mut left)?;
        self.settle_suspects()?;
        self.replay_files(&mut left)?;
        self.claim_blocks()?;
        // What was being filled may end with a page that a cut only left looking erased: it takes no more.
        if !crate::options::broken!(self, heads_kept) {
            self.heads = [Head::NONE; 5];
        }
        // Live counts are those of the checkpoint, and not of what followed.
        self.is_rough = true;
        self.is_writing = true;
        // No page that a cut left has this sequence or a higher one, be it of a recovery.
        self.sequence += SEQUENCE_GAP + self.lags.capacity() as u64;
        self.is_recovering = true;
        let finished = if has_room { self.finish(&left) } else { Err(Error::ReadOnly) };
        match finished.and_then(|()| self.write_checkpoint(false)) {
            // What was found is in memory, and nothing that it leads to was erased.
            Err(Error::Full | Error::ReadOnly) => self.is_read_only = true,
            result => result?,
        }
        self.is_recovering = false;
        Ok(())
    }

    fn suspect(&mut self, id: u32) {
        if let Some(byte) = self.suspects.get_mut(id as usize / 8) {
            *byte |= 1 << (id % 8);
        }
    }

    /// Lets the map lead to the newest page of each logical number. Numbers that a page led to and its successor does not are looked at
    /// afterwards.
    fn replay_chains(&mut self, left: &mut Left) -> Result<(), N> {
        self.rewind()?;
        while let Some((page, fields)) = self.next_new()? {
            self.stats.replayed += 1;
            self.sequence = self.sequence.max(fields.sequence);
            if fields.kind == Kind::File {
                self.number = self.number.max(fields.id.saturating_add(1));
                left.file = Some((page, fields.sequence));
                continue;
            }
            let id = fields.id;
            if id == 0 || id as usize >= self.map.len() {
                return Err(Error::Corrupt { page, why: nandu_media::Malformed::Range(nandu_media::Field::Id) });
            }
            let old = self.mapped(id);
            if old.0 != 0 && old != page && self.inspect_again(old, OLD)?.is_some_and(|old| old.id == id) {
                for bucket in 0..self.bucket_count as u16 {
                    let pointer = self.pointer(OLD, bucket);
                    if pointer != 0 && pointer < POINTER_BASE && self.pointer(NODE, bucket) != pointer {
                        self.suspect(pointer);
                    }
                }
                let next = self.word(OLD, NEXT_AT);
                if next != self.word(NODE, NEXT_AT) {
                    self.suspect(next);
                }
            }
            self.suspect(id);
            self.set_mapped(id, page);
            left.chain = Some((id, fields.sequence));
        }
        Ok(())
    }

    /// Numbers without a counter-pointer lead nowhere from here on: a directory that was not linked yet, or is not any more. One that was
    /// being renamed goes back to what it was.
    pub(crate) fn settle_suspects(&mut self) -> Result<(), N> {
        // Each round but the last takes a page out of a chain, so this ends.
        for _ in 0..self.map.len() {
            let mut is_over = true;
            for id in 1..self.map.len() as u32 {
                if self.suspects[id as usize / 8] & (1 << (id % 8)) != 0 && !self.settle_suspect(id)? {
                    is_over = false;
                }
            }
            if is_over {
                break;
            }
        }
        self.suspects.fill(0);
        Ok(())
    }

    /// As [`settle_suspects`](Dffs::settle_suspects), one of them; `false` if others became suspect by it.
    fn settle_suspect(&mut self, id: u32) -> Result<bool, N> {
        let page = self.mapped(id);
        if page.0 == 0 || self.is_mutual(id)? {
            return Ok(true);
        }
        // If it is lost, whoever asks for it is told.
        let Some(fields) = self.inspect_again(page, OLD)? else { return Ok(true) };
        // The page left its chain with its last entry, or the directory went after all in it: of what was in it before, nothing else may
        // say that it went.
        let mut is_over = true;
        for bucket in 0..=self.bucket_count as u16 {
            let is_next = usize::from(bucket) == self.bucket_count;
            let pointer = if is_next { self.word(OLD, NEXT_AT) } else { self.pointer(OLD, bucket) };
            if pointer != 0 && pointer < POINTER_BASE {
                self.suspect(pointer);
                is_over = false;
            }
        }
        let mut before = PageAddr(0);
        if fields.kind == Kind::Directory && fields.flags & FLAG_RENAMED != 0 {
            let old = PageAddr(self.word(OLD, PREVIOUS_AT));
            if let Ok(earlier) = self.inspect(old, NODE)?
                && earlier.kind == Kind::Directory
                && earlier.sequence < fields.sequence
                && self.is_mutual_page(id, &earlier)?
            {
                before = old;
            }
        }
        self.lose(page);
        self.set_mapped(id, before);
        Ok(is_over)
    }

    /// Reads a page that can be read unless it is lost: where it cannot, the mount begins anew, and the last time makes do without.
    pub(crate) fn inspect_again(&mut self, page: PageAddr, frame: crate::pages::Frame) -> Result<Option<Fields>, N> {
        match self.inspect(page, frame)? {
            Ok(fields) => Ok(Some(fields)),
            Err(_) if self.is_last_attempt => Ok(None),
            Err(why) => Err(Error::Corrupt { page, why }),
        }
    }

    /// Finds the files whose buckets are behind, what data of theirs stands in blocks that count as free, and old names that were not taken away.
    fn replay_files(&mut self, left: &mut Left) -> Result<(), N> {
        self.rewind()?;
        while let Some((page, fields)) = self.next_new()? {
            let name_bucket = self.place_of(media::name(self.pages.get(NODE))).bucket;
            let is_renamed = fields.flags & FLAG_RENAMED != 0;
            match fields.kind {
                Kind::File if is_renamed => {
                    let from = PageAddr(self.word(NODE, NEXT_AT));
                    let pointer = page.0 + POINTER_BASE;
                    if self.find_pointer(fields.parent, name_bucket, pointer, CHAIN)?.is_some() {
                        left.old_name = self.old_file_name(page, from, &fields)?.or(left.old_name);
                    }
                }
                Kind::File => self.note_lag(page, &fields, name_bucket)?,
                Kind::Directory if is_renamed && self.mapped(fields.id) == page => {
                    let from = PageAddr(self.word(NODE, PREVIOUS_AT));
                    let new = (fields.parent, self.place_of(media::name(self.pages.get(NODE))));
                    left.old_name = self.old_directory_name(from, &fields, new)?.or(left.old_name);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The inode of a file tells that the bucket that leads to the page before it is behind, if it does.
    fn note_lag(&mut self, page: PageAddr, fields: &Fields, bucket: u16) -> Result<(), N> {
        let behind = self.word(NODE, PREVIOUS_AT);
        if behind == 0 || self.find_pointer(fields.parent, bucket, behind + POINTER_BASE, CHAIN)?.is_none() {
            return Ok(());
        }
        // The address may be that of another file by now.
        let old = self.inspect(PageAddr(behind), OLD)?;
        if old.is_ok_and(|old| old.id != fields.id || old.kind != Kind::File || old.sequence > fields.sequence) {
            return Ok(());
        }
        let lag = Lag { behind, current: page.0, directory: fields.parent, bucket: bucket.into() };
        if self.lags.set(lag) {
            return Ok(());
        }
        Err(Error::Corrupt { page, why: nandu_media::Malformed::Range(nandu_media::Field::FilesBehind) })
    }

    /// The entry of a file under its old name, if it is still there.
    fn old_file_name(&mut self, page: PageAddr, from: PageAddr, renamed: &Fields) -> Result<Option<OldName>, N> {
        // It was durable when the rename began; where it is gone, nothing led to it any more, so the old name is gone too.
        let Ok(old) = self.inspect(from, OLD)? else { return Ok(None) };
        let number = renamed.id;
        if old.kind != Kind::File || old.id != number || old.sequence > renamed.sequence {
            return Ok(None);
        }
        let place = self.place_of(media::name(self.pages.get(OLD)));
        let found = self.walk(old.parent, OTHER, |fs, _| {
            let pointer = fs.pointer(OTHER, place.bucket);
            if pointer == 0 {
                return Ok(Some(None));
            }
            if pointer < POINTER_BASE || pointer == page.0 + POINTER_BASE {
                return Ok(None);
            }
            let target = fs.target(pointer);
            let is_it = fs
                .inspect_again(target, NODE)?
                .is_some_and(|fields| fields.kind == Kind::File && fields.id == number && fields.parent == old.parent);
            // The same file under its new name, where its inode moved on since, is not the old name.
            let is_old = is_it && media::name(fs.pages.get(NODE)) == media::name(fs.pages.get(OLD));
            Ok(is_old.then_some(Some(OldName { directory: old.parent, place, pointer, count: 1 })))
        });
        match found {
            Err(Error::NotFound) => Ok(None),
            other => other.map(Option::flatten),
        }
    }

    /// The entry of a directory under its old name, should it be there.
    fn old_directory_name(
        &mut self,
        from: PageAddr,
        renamed: &Fields,
        new: (u32, Place),
    ) -> Result<Option<OldName>, N> {
        let Ok(old) = self.inspect(from, OLD)? else { return Ok(None) };
        let id = renamed.id;
        if old.kind != Kind::Directory || old.id != id || old.sequence > renamed.sequence {
            return Ok(None);
        }
        let place = self.place_of(media::name(self.pages.get(OLD)));
        let count = if (old.parent, place) == new { 2 } else { 1 };
        Ok(Some(OldName { directory: old.parent, place, pointer: id, count }))
    }

    /// How often an entry stands in a chain.
    fn count_entries(&mut self, old: &OldName) -> Result<u32, N> {
        let mut count = 0;
        let walked = self.walk(old.directory, OTHER, |fs, _| {
            let bucket = old.place.bucket;
            let is_it = fs.pointer(OTHER, bucket) == old.pointer && fs.second(OTHER, bucket) == old.place.second;
            count += u32::from(is_it);
            Ok(None::<()>)
        });
        match walked {
            Err(Error::NotFound) => Ok(0),
            other => other.map(|_| count),
        }
    }

    /// Blocks that were free at the checkpoint and hold something that lives are none any more: inodes that live, and what these have in
    /// blocks of data.
    fn claim_blocks(&mut self) -> Result<(), N> {
        self.rewind()?;
        while let Some((page, fields)) = self.next_new()? {
            let is_live = match fields.kind {
                Kind::File => {
                    let bucket = self.place_of(media::name(self.pages.get(NODE))).bucket;
                    let pointer = self.lags.behind(page) + POINTER_BASE;
                    // What a bucket leads to is still asked about by whoever is behind.
                    self.find_pointer(fields.parent, bucket, pointer, CHAIN)?.is_some()
                }
                _ => self.mapped(fields.id) == page,
            };
            if is_live {
                self.gain(page);
            }
            // Of files that do not live too, until the last page is safe: should it fade, they may live.
            if fields.kind == Kind::File && !crate::options::broken!(self, data_unclaimed) {
                self.load(page, NODE)?;
                self.claim_data(fields.flags & FLAG_RENAMED != 0, is_live);
            }
        }
        Ok(())
    }

    /// Blocks taken into use since the checkpoint in which nothing lives are free with the checkpoint that ends the recovery. Not before:
    /// should the last page fade, what it replaced is the newest, and that may be in such a block.
    fn set_dead_aside(&mut self) {
        for block in self.blocks.addresses() {
            let entry = self.blocks.get(block);
            let is_used = matches!(entry.area(), Area::Directory | Area::Virtual | Area::File | Area::Data);
            if entry.has(NEW) && is_used && entry.live == 0 && !self.is_head(block) {
                self.set_aside(block);
            }
        }
    }

    /// The inode in [`NODE`] has data in blocks that the checkpoint calls free.
    fn claim_data(&mut self, is_renamed: bool, is_live: bool) {
        for index in 0..self.pointer_count {
            let page = PageAddr(self.word(NODE, media::FRONT_SIZE + index * 4));
            if page.0 == 0 || !self.geometry.contains_page(page) {
                continue;
            }
            let block = self.geometry.block_of(page);
            self.blocks.update(block, |entry| {
                if entry.area() == Area::Free {
                    entry.set_area(Area::Data);
                    entry.flags |= NEW;
                }
                if entry.area() == Area::Data {
                    entry.live = entry.live.saturating_add(u16::from(is_live && entry.has(NEW)));
                    if is_renamed {
                        entry.flags |= SCAN;
                    }
                }
            });
        }
    }

    /// Programs the last page again, and completes what the last operation began.
    fn finish(&mut self, left: &Left) -> Result<(), N> {
        if !crate::options::broken!(self, newest_not_copied) {
            self.copy_newest(left)?;
        }
        if let Some((id, _)) = left.chain
            && self.mapped(id).0 != 0
            && !crate::options::broken!(self, doubles_kept)
        {
            self.clear_doubles(id)?;
        }
        // An old name may have been a double just now.
        if let Some(old) = left.old_name
            && !crate::options::broken!(self, rename_not_finished)
            && self.count_entries(&old)? >= old.count
        {
            self.remove(old.directory, old.place, old.pointer)?;
        }
        self.catch_up_all()?;
        self.set_dead_aside();
        Ok(())
    }

    /// O9: programs the last page again, before a checkpoint leads to it. A cut may have left it so that it reads well now and not later.
    fn copy_newest(&mut self, left: &Left) -> Result<(), N> {
        let is_chain_last = left.chain.map(|(_, sequence)| sequence) > left.file.map(|(_, sequence)| sequence);
        if is_chain_last {
            let id = left.chain.map_or(0, |(id, _)| id);
            if self.mapped(id).0 != 0 {
                // As it is: an entry that stands in two pages has to look the same in both, and a rename that is not complete stays one.
                self.load_chain(id, NODE)?;
                self.program_chain(NODE, Fold::None)?;
            }
        } else if let Some((page, _)) = left.file {
            let fields = self.load(page, NODE)?;
            if self.is_live_file(page, &fields)? {
                self.move_inode(page)?;
            }
        }
        Ok(())
    }

    /// Takes entries out of a chain that a page of it got to fill a hole, and that are still where they were.
    fn clear_doubles(&mut self, id: u32) -> Result<(), N> {
        self.load_chain(id, OLD)?;
        let mut next = self.word(OLD, NEXT_AT);
        for _ in 0..self.map.len() {
            if next == 0 || next == ROOT {
                return Ok(());
            }
            self.load_chain(next, OTHER)?;
            let here = next;
            next = self.word(OTHER, NEXT_AT);
            let buckets = 0..self.bucket_count as u16;
            let same = |bucket: &u16| {
                let pointer = self.pointer(OLD, *bucket);
                let is_double = self.second(OLD, *bucket) == self.second(OTHER, *bucket);
                pointer != 0 && pointer == self.pointer(OTHER, *bucket) && is_double
            };
            let Some(bucket) = buckets.clone().find(same) else { continue };
            self.set_bucket(OTHER, bucket, 0, 0)?;
            if self.fields(OTHER)?.used == 0 {
                self.pages.copy(OTHER, NODE);
                return self.drop_last_loaded(here);
            }
            self.touch(OTHER)?;
            return self.program_chain(OTHER, Fold::All);
        }
        Ok(())
    }
}

/// Blocks of a checkpoint's first pages are never any of these.
pub(crate) fn is_outside(block: BlockAddr) -> bool {
    block.0 >= crate::dffs::CHECKPOINT_BLOCKS
}
