//! Orphans: inodes without a name that are open or too large to be removed at once, truncations under way, and long values of attributes that
//! are not named yet or any more.
//!
//! The batch that takes the last name, or cuts the size, puts a record that names the inode; the batch that removes the last of its
//! pages deletes it. So a cut in between loses nothing: after the next mount the rest is removed, a step with each change.
//!
//! A file without a name that is open keeps its record and its inode, whatever is cut off it: of that only what lies behind its end is
//! removed, and what no attribute names.

use core::ops::ControlFlow;

use nandu_nand::Nand;

use crate::batch::{Batch, BatchRoom, INODE_ROOM, batch_in};
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{KEY_SIZE_MAX, Key, Meaning};
use crate::xattr_records::long_value;
use crate::{FsError, Ino};

/// Most records that one step removes.
const STEP_COUNT: usize = 32;

/// Records that a step removes however little memory there is.
const STEP_LEAST: usize = 4;

/// Most records of an inode that go with its last name.
pub(crate) const REMOVED_COUNT: usize = STEP_COUNT / 2;

/// Bytes of a page for each record that a step removes, so that the step fits a page of changes.
const STEP_SHARE: usize = 32;

/// Bytes of memory for changes for each of them, so that the step goes to its leaves beside what waits, and nothing else has to go there before.
const STEP_MEMORY: usize = 64;

/// A step's room: what it deletes, the inode and the orphan's record.
pub(crate) type StepRoom = BatchRoom<{ STEP_COUNT + 2 }, { (STEP_COUNT + 1) * KEY_SIZE_MAX + INODE_ROOM }>;

/// What of some records is going to be deleted.
pub(crate) struct Doomed {
    /// How many are pages, without fragments.
    pub(crate) pages: u64,
    /// Whether there are no more.
    pub(crate) is_all: bool,
}

impl<N: Nand> Fs<'_, N> {
    /// Puts the deletion of records from one key up to another into a batch, of as many as are room for in a step. They lie behind the last
    /// one that the step before deleted: where a damaged tree keeps what was, a removal in steps would go on for ever.
    fn doom(
        &mut self,
        batch: &mut Batch<'_>,
        last: &mut Key,
        range: (Key, Key),
        room: usize,
    ) -> Result<Doomed, FsError<N::Error>> {
        let memory = (self.options.pending_size / STEP_MEMORY).max(STEP_LEAST);
        let room = room.min(STEP_COUNT).min(self.page_size() / STEP_SHARE).min(memory);
        let mut doomed = Doomed { pages: 0, is_all: true };
        let mut count = 0;
        let mut is_sound = true;
        self.records(range, |entry| {
            let key = Key::new(entry.key).filter(|key| key.as_slice() > last.as_slice());
            let Some(key) = key else {
                is_sound = false;
                return ControlFlow::Break(());
            };
            if count == room {
                doomed.is_all = false;
                return ControlFlow::Break(());
            }
            doomed.pages += u64::from(matches!(Meaning::of(entry.key), Some(Meaning::Page { .. })));
            batch.delete(key);
            *last = key;
            count += 1;
            ControlFlow::Continue(())
        })?;
        if is_sound { Ok(doomed) } else { Err(FsError::Corrupt { ino: Ino(0), why: Damage::Page }) }
    }

    /// The same for a step of a removal, of which `last` is the last key that was deleted, empty at first.
    pub(crate) fn doom_next(
        &mut self,
        batch: &mut Batch<'_>,
        last: &mut Key,
        range: (Key, Key),
    ) -> Result<Doomed, FsError<N::Error>> {
        self.doom(batch, last, range, STEP_COUNT)
    }

    /// The same of all of them, where so many fit; of none where they do not.
    pub(crate) fn doom_all(
        &mut self,
        batch: &mut Batch<'_>,
        range: (Key, Key),
        room: usize,
    ) -> Result<Doomed, FsError<N::Error>> {
        let doomed = self.doom(batch, &mut { Key::EMPTY }, range, room)?;
        if !doomed.is_all {
            batch.forget(range.0, range.1);
        }
        Ok(doomed)
    }

    /// Puts the deletion of every record of an inode but the inode itself into a batch. Returns whether they fit.
    pub(crate) fn delete_records(&mut self, batch: &mut Batch<'_>, ino: Ino) -> Result<bool, FsError<N::Error>> {
        // Room for the orphan's record and for the inode.
        let room = batch.room().saturating_sub(4).min(REMOVED_COUNT);
        Ok(self.doom_all(batch, (Key::behind_inode(ino.0), Key::end(ino.0)), room)?.is_all)
    }

    /// Whether an inode is an orphan that is noted as one: it goes in steps, so that a part of its attributes or of its target may be gone.
    pub(crate) fn is_leaving(&mut self, ino: u64, inode: &Inode) -> Result<bool, FsError<N::Error>> {
        Ok(inode.nlink == 0 && self.has_orphan_record(ino)?)
    }

    /// Removes an orphan, or what a truncation or an attribute left, to the end.
    pub(crate) fn reap(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        let had_orphans = core::mem::replace(&mut self.has_orphans, true);
        let mut last = Key::EMPTY;
        while !self.reap_step(ino, &mut last)? {
            self.tree.end_call();
        }
        self.open.set_cut(ino.0, false);
        self.has_orphans = had_orphans;
        Ok(())
    }

    /// Removes an orphan that nobody uses any more, or begins to.
    pub(crate) fn remove_orphan(&mut self, ino: Ino) -> Result<(), FsError<N::Error>> {
        self.has_orphans |= !self.reap_step(ino, &mut { Key::EMPTY })?;
        Ok(())
    }

    /// Removes a part of it. Returns whether that was the last one.
    #[inline(never)]
    pub(crate) fn reap_step(&mut self, ino: Ino, last: &mut Key) -> Result<bool, FsError<N::Error>> {
        let page_size = self.page_size() as u64;
        let mut inode = self.find_inode(ino)?;
        // Who has it open goes on using it without a name.
        let is_open = self.open.is_open(ino.0);
        let size = inode.as_ref().filter(|inode| inode.nlink > 0 || is_open).map(|inode| inode.size);
        let (from, to) = match size {
            Some(size) => {
                let first = u32::try_from(size.div_ceil(page_size)).unwrap_or(u32::MAX);
                (Key::page(ino.0, first), Key::pages_end(ino.0))
            }
            None => (Key::behind_inode(ino.0), Key::end(ino.0)),
        };
        batch_in!(batch: StepRoom);
        let mut doomed = self.doom_next(&mut batch, last, (from, to))?;
        if size.is_some()
            && doomed.is_all
            && let Some(number) = self.nobodys_value(ino.0, 0)?
        {
            doomed.is_all = batch.is_empty() && self.doom_value(&mut batch, last, ino, number)?;
        }
        match &mut inode {
            Some(inode) if inode.nlink == 0 && !is_open && doomed.is_all => {
                batch.delete(Key::inode(ino.0));
                self.forget_hotness(ino);
            }
            Some(inode) => {
                inode.blocks = inode.blocks.saturating_sub(doomed.pages);
                batch.put_inode(ino, inode);
            }
            None => {}
        }
        // Without a name and open it stays an orphan: after a cut nobody has it open.
        if doomed.is_all && inode.as_ref().is_none_or(|inode| inode.nlink > 0 || !is_open) {
            batch.delete(Key::orphan(ino.0));
        }
        // Not `commit_freeing`: were everything removed to make room for this step, it would bring a part of the inode back.
        self.tree.batch_freeing(batch.edits())?;
        Ok(doomed.is_all)
    }

    /// Puts the deletion of a long value that no attribute names into a batch. Returns whether it is all of it, and the last such value.
    fn doom_value(
        &mut self,
        batch: &mut Batch<'_>,
        last: &mut Key,
        ino: Ino,
        number: u32,
    ) -> Result<bool, FsError<N::Error>> {
        let is_all = self.doom_next(batch, last, long_value(ino.0, number))?.is_all;
        match number.checked_add(1) {
            Some(next) if is_all => Ok(self.nobodys_value(ino.0, next)?.is_none()),
            _ => Ok(is_all),
        }
    }

    /// Removes a step of what a cut left over.
    pub(crate) fn reap_some(&mut self) -> Result<(), FsError<N::Error>> {
        if self.has_orphans {
            let Some(ino) = self.first_orphan(0)? else {
                self.has_orphans = false;
                return Ok(());
            };
            match self.reap_step(ino, &mut { Key::EMPTY }) {
                // What cannot be understood cannot be removed, and keeps nothing else from being changed.
                Err(FsError::Corrupt { .. }) => self.has_orphans = false,
                outcome => outcome.map(|_| ())?,
            }
        }
        Ok(())
    }

    /// The first orphan from a number on that nobody uses. Who has a file open that has a name does not use what a truncation left of it.
    fn first_orphan(&mut self, mut from: u64) -> Result<Option<Ino>, FsError<N::Error>> {
        while let Some(ino) = self.next_orphan(from)? {
            let is_used = self.open.is_open(ino)
                && match self.find_inode(Ino(ino)) {
                    Ok(inode) => inode.is_none_or(|inode| inode.nlink == 0),
                    Err(FsError::Corrupt { .. }) => false,
                    Err(error) => return Err(error),
                };
            if !is_used {
                return Ok(Some(Ino(ino)));
            }
            from = ino + 1;
        }
        Ok(None)
    }

    /// On a full chip: removes some of what waits to be, and frees what deletions that wait hold; more of both with the next call. Returns whether there was anything.
    pub(crate) fn make_room(&mut self) -> Result<bool, FsError<N::Error>> {
        // What is removed here no tag tells of.
        self.tagging.end();
        let any = self.has_orphans;
        self.reap_some()?;
        match self.tree.free_some().map_err(FsError::from) {
            Err(FsError::Full) => Ok(any),
            outcome => Ok(outcome? || any),
        }
    }

    /// The same of all of it, for what must not be refused.
    pub(crate) fn make_all_room(&mut self) -> Result<bool, FsError<N::Error>> {
        self.tagging.end();
        let any = self.has_orphans && self.reap_all()?;
        if self.tree.pending_count() == 0 {
            return Ok(any);
        }
        match self.tree.merge().map_err(FsError::from) {
            Err(FsError::Full) => Ok(any),
            outcome => outcome.map(|()| true),
        }
    }

    fn reap_all(&mut self) -> Result<bool, FsError<N::Error>> {
        let mut any = false;
        let mut next = 0;
        while let Some(ino) = self.first_orphan(next)? {
            self.reap(ino)?;
            next = ino.0 + 1;
            any = true;
        }
        self.has_orphans = false;
        if any {
            self.tree.sync()?;
        }
        Ok(any)
    }
}
