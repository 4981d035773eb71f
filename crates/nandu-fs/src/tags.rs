//! After a cut: what tags tell of is made again.

use nandu_log::Due;
use nandu_nand::{Nand, PageAddr};
use nandu_tree::TreeError;

use crate::FsError;
use crate::Ino;
use crate::batch::{Batch, PageRoom, batch_in};
use crate::fs::Fs;
use crate::inode::{CTIME, MTIME};
use crate::keys::{Key, TAIL};
use crate::tag::Tag;

/// How often a tail is taken over where there is no room, after the collector has made some.
const ATTEMPTS: u32 = 3;

/// Bytes of the record that says that a tail was taken over.
const TAIL_RECORD_SIZE: usize = 12;

/// A page of a tail: what its tag says, where it stands and its checksum.
#[derive(Clone, Copy)]
struct DuePage {
    /// `None` if it cannot be read any more.
    tag: Option<Tag>,
    page: PageAddr,
    crc: u32,
}

impl<N: Nand> Fs<'_, N> {
    /// Makes the changes again that tags tell of. Reads each page and its tag, programs the last page, a commit and a checkpoint; nothing if
    /// there is no tail.
    #[inline(never)]
    pub(crate) fn take_over_tail(&mut self) -> Result<(), FsError<N::Error>> {
        if !self.tree.pages().log().has_due_tail() {
            return Ok(());
        }
        // What it says is kept for a mount that can write.
        if self.tree.pages().log().is_read_only() {
            self.options.read_only = true;
            return Ok(());
        }
        #[cfg(feature = "_broken")]
        if self.options.broken.without_tail {
            return Ok(self.tree.pages_mut().log_mut().end_tail()?);
        }
        // Recoveries that were cut leave many blocks half full, and many pages noted in them, until the collector has been there.
        for attempt in 0..=ATTEMPTS {
            // At first nothing is moved, so that a mount stays short: the first change behind it moves what has to be.
            self.tree.defer_rescue(attempt == 0);
            let outcome = self.take_over_pages();
            self.tree.defer_rescue(false);
            match outcome {
                Err(FsError::Full) if attempt == 0 => continue,
                Err(FsError::Full) => {}
                outcome => return outcome,
            }
            self.collect_all()?;
        }
        // Nothing is lost: a mount with more memory for notes finds the tail.
        self.options.read_only = true;
        Ok(())
    }

    #[inline(never)]
    fn take_over_pages(&mut self) -> Result<(), FsError<N::Error>> {
        let is_done = self.has_taken_over()?;
        // Whether a page is the last one is known when the next was read.
        let mut before = None;
        for place in 0..=nandu_log::TAIL_MAX {
            let found = self.read_due(place)?;
            if let Some(due) = before.filter(|_| !is_done) {
                match self.write_again(&due, place - 1, found.is_none()) {
                    // A file that is damaged, or an image that says anything: the others are not.
                    Ok(()) | Err(FsError::NoInode(_) | FsError::NotFile(_) | FsError::IsDirectory(_)) => {}
                    Err(
                        FsError::Corrupt { .. } | FsError::CorruptPage { why: nandu_tree::PageDamage::Node(_), .. },
                    ) => {}
                    Err(error) => return Err(error),
                }
            }
            before = found;
            if before.is_none() {
                break;
            }
        }
        self.tree.sync()?;
        Ok(self.tree.pages_mut().log_mut().end_tail()?)
    }

    /// Reads a page of the tail to the buffer.
    #[inline(never)]
    fn read_due(&mut self, place: u16) -> Result<Option<DuePage>, FsError<N::Error>> {
        let log = self.tree.pages_mut().log_mut();
        let Some(page) = log.due_address(place) else { return Ok(None) };
        let (owner, crc) = match log.due_page(place, self.buffer.page_mut())? {
            None => return Ok(None),
            Some(Due::Lost) => return Ok(Some(DuePage { tag: None, page, crc: 0 })),
            Some(Due::Whole { owner, checksum }) => (owner, checksum),
        };
        Ok(Tag::parse(&owner, log.geometry()).map(|tag| DuePage { tag: Some(tag), page, crc }))
    }

    /// Whether a mount that was cut made every change that the tail tells of (S16).
    #[inline(never)]
    fn has_taken_over(&mut self) -> Result<bool, FsError<N::Error>> {
        let stated = self.tail_record();
        let key = Key::of_volume(TAIL);
        match self.tree.get(key.as_slice()) {
            Err(TreeError::LargeValue(_)) => Ok(false),
            found => Ok(found?.is_some_and(|bytes| bytes == stated)),
        }
    }

    /// The record that says that the tail that is due was taken over.
    fn tail_record(&self) -> [u8; TAIL_RECORD_SIZE] {
        let (commit, first) = self.tree.pages().log().due_tail().unwrap_or((0, PageAddr(0)));
        let mut bytes = [0; TAIL_RECORD_SIZE];
        bytes[..8].copy_from_slice(&commit.to_le_bytes());
        bytes[8..].copy_from_slice(&first.0.to_le_bytes());
        bytes
    }

    /// Makes the change again that a tag tells of.
    #[inline(never)]
    fn write_again(&mut self, due: &DuePage, place: u16, is_last: bool) -> Result<(), FsError<N::Error>> {
        let DuePage { tag: Some(tag), page, crc } = *due else { return Ok(()) };
        // Something else was read since. A page that was torn may be gone by now, and then nobody was told that it was there.
        if is_last && self.read_due(place)?.is_none_or(|found| found.tag != Some(tag)) {
            return Ok(());
        }
        let key = Key::page(tag.ino, tag.index);
        let record = self.tail_record();
        batch_in!(batch: PageRoom);
        if is_last {
            // The next mount may find this page torn, and would make the changes before it on top of this one.
            batch.put_lent(Key::of_volume(TAIL), &record);
        }
        if !self.put_tagged(&mut batch, &tag, crc)? {
            return Ok(());
        }
        let is_named = !is_last && self.tree.adopt_page(key.as_slice(), page, crc, batch.edits())?;
        if !is_named && (is_last || self.read_due(place)?.is_some()) {
            self.tree.put_page_again(key.as_slice(), self.buffer.page_mut(), batch.edits())?;
        }
        Ok(())
    }

    /// Puts what changes with the page that a tag tells of into a batch: the inode, and the fragments over the page, which go. False if all of it
    /// was done.
    #[inline(never)]
    fn put_tagged(&mut self, batch: &mut Batch<'_>, tag: &Tag, crc: u32) -> Result<bool, FsError<N::Error>> {
        let state = self.page_state(tag.ino, tag.index)?;
        let mut inode = self.file(Ino(tag.ino))?;
        let size = u64::from(tag.index) * self.page_size() as u64 + u64::from(tag.end);
        // A mount that was cut did it; the copy then made was followed by a commit. Cut after cut, copies would fill a small chip.
        let is_same = inode.size >= size && (inode.times[MTIME], inode.times[CTIME]) == (tag.now, tag.now);
        let key = Key::page(tag.ino, tag.index);
        if is_same && state.fragments.as_slice().is_empty() && self.tree.has_page(key.as_slice(), crc)? {
            return Ok(false);
        }
        inode.size = inode.size.max(size);
        inode.modify(tag.now);
        Self::count_page(&state, &mut inode);
        batch.put_inode(Ino(tag.ino), &inode);
        Self::delete_fragments(batch, (tag.ino, tag.index), &state);
        Ok(true)
    }
}
