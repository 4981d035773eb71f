//! Pages of files: reading what records, pages and fragments are together, and putting them.

use core::ops::{ControlFlow, Range};

use nandu_index::Edit;
use nandu_nand::Nand;
use nandu_tree::{PagePut, TreeError};

use crate::batch::Batch;
use crate::error::Damage;
use crate::fragments::overlay;
use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::page_records::{Base, INLINE_HEAD_SIZE, INLINE_SIZE_MAX, PageState, base_of, inline, inline_head};
use crate::{FsError, Ino};

/// Part of what is kept, as a divisor, that is left by pages that replace pages.
const OVERWRITTEN_SHARE: u32 = 8;

/// Bytes of the key of a page.
const PAGE_KEY_SIZE: usize = 11;

impl Batch<'_> {
    /// Puts bytes that stand at an offset of a page into its record, of which a part becomes zero; zeros around them are left out.
    pub(crate) fn put_inline(&mut self, key: Key, offset: usize, bytes: &[u8], zeros: Range<usize>) {
        let value = self.take(INLINE_HEAD_SIZE + bytes.len());
        let part = &mut value[INLINE_HEAD_SIZE..];
        part.copy_from_slice(bytes);
        let clip = |at: usize| at.saturating_sub(offset).min(bytes.len());
        part[clip(zeros.start)..clip(zeros.end)].fill(0);
        let first = part.iter().position(|&byte| byte != 0);
        let behind = part.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let (offset, first) = first.map_or((0, 0), |first| (offset + first, first));
        value[first..first + INLINE_HEAD_SIZE].copy_from_slice(&inline_head(offset));
        self.put_lent(key, &value[first..behind + INLINE_HEAD_SIZE]);
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Bytes that a file may have: as many pages as 32 bits count.
    pub fn file_size_max(&self) -> u64 {
        u64::from(u32::MAX) * self.page_size() as u64
    }

    /// The page that an offset is in, and where.
    pub(crate) fn place(&self, offset: u64) -> (u32, usize) {
        let page_size = self.page_size() as u64;
        ((offset / page_size) as u32, (offset % page_size) as usize)
    }

    /// The offset in a file of a place in a page.
    pub(crate) fn offset(&self, index: u32, at: usize) -> u64 {
        u64::from(index) * self.page_size() as u64 + at as u64
    }

    /// Most bytes of a page that stand in its record.
    pub(crate) fn inline_size_max(&self) -> usize {
        self.tree.entry_size_max().saturating_sub(PAGE_KEY_SIZE + INLINE_HEAD_SIZE).min(INLINE_SIZE_MAX)
    }

    /// The key behind every record of a page.
    pub(crate) fn page_end(ino: u64, index: u32) -> Key {
        index.checked_add(1).map_or(Key::pages_end(ino), |next| Key::page(ino, next))
    }

    /// What there is of a page. Reads the leaf of its records.
    pub(crate) fn page_state(&mut self, ino: u64, index: u32) -> Result<PageState, FsError<N::Error>> {
        let mut state = PageState::HOLE;
        self.load_state((ino, index), &mut state).map(|()| state)
    }

    /// The same, where it stays.
    #[inline(never)]
    pub(crate) fn load_state(
        &mut self,
        (ino, index): (u64, u32),
        state: &mut PageState,
    ) -> Result<(), FsError<N::Error>> {
        let page_size = self.page_size();
        let mut damage = None;
        self.records((Key::page(ino, index), Self::page_end(ino, index)), |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Page { .. }) => match base_of(entry.value, entry.large, page_size) {
                    Some(base) => state.base = base,
                    None => damage = Some(Damage::Page),
                },
                Some(Meaning::Fragment { offset, .. }) if entry.large.is_none() => {
                    if !state.fragments.push(usize::from(offset), entry.value, page_size) {
                        damage = Some(Damage::Fragments);
                    }
                }
                _ => damage = Some(Damage::Page),
            }
            if damage.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match damage {
            Some(why) => Err(FsError::Corrupt { ino: Ino(ino), why }),
            None => Ok(()),
        }
    }

    /// Reads a part of a page, from the tree alone. Reads the leaf of its records, and the page if it is one.
    pub(crate) fn read_page(
        &mut self,
        ino: u64,
        index: u32,
        from: usize,
        out: &mut [u8],
    ) -> Result<(), FsError<N::Error>> {
        if out.is_empty() {
            return Ok(());
        }
        let corrupt = FsError::Corrupt { ino: Ino(ino), why: Damage::Page };
        out.fill(0);
        let (is_page, is_covered) = self.overlay_records(ino, index, from, out, true)?;
        if !is_page {
            return Ok(());
        }
        let key = Key::page(ino, index);
        // A shorter one ends before the page does, and zeros follow.
        if self.tree.read(key.as_slice(), from, out)?.is_none() {
            return Err(corrupt);
        }
        if is_covered {
            self.overlay_records(ino, index, from, out, false)?;
        }
        Ok(())
    }

    /// Copies what records hold of a part of a page; with `stops`, only up to a page that has to be read first. Returns whether
    /// there is such a page, and whether fragments lie over it.
    fn overlay_records(
        &mut self,
        ino: u64,
        index: u32,
        from: usize,
        out: &mut [u8],
        stops: bool,
    ) -> Result<(bool, bool), FsError<N::Error>> {
        let page_size = self.page_size();
        let (mut is_page, mut is_covered, mut is_sound) = (false, false, true);
        self.records((Key::page(ino, index), Self::page_end(ino, index)), |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Page { .. }) => match entry.large {
                    Some(size) => (is_page, is_sound) = (true, size <= page_size),
                    None => match inline(entry.value, page_size) {
                        Some((offset, bytes)) => copy_part(out, from, offset, bytes),
                        None => is_sound = false,
                    },
                },
                Some(Meaning::Fragment { offset, .. }) => {
                    is_covered = true;
                    if is_page && stops {
                        return ControlFlow::Break(());
                    }
                    is_sound = overlay(out, from, usize::from(offset), entry.value);
                }
                _ => is_sound = false,
            }
            if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let corrupt = FsError::Corrupt { ino: Ino(ino), why: Damage::Page };
        if is_sound { Ok((is_page, is_covered)) } else { Err(corrupt) }
    }

    /// Makes a whole page the content of a page of a file, and other changes, none of which is of the record of that page. Programs it.
    ///
    /// The page is programmed before the commit that holds its record (T13): otherwise a cut between the two would leave a record
    /// that leads to nothing. The inode with its size goes with the same commit as the record: with the size first, a cut would leave zeros
    /// in place of the bytes, and with the page first, bytes behind the end of the file, which would come to light when it grows.
    ///
    /// One that replaces a page is possible on a full chip too.
    pub(crate) fn put_page(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        let owner = self.tagging.take();
        let mut put = PagePut { edits, owner: owner.as_ref(), ..PagePut::default() };
        if owner.is_some() {
            match self.try_put_page((ino, index), page, &put) {
                Err(FsError::Full) => self.tagging.give_up(),
                other => return other,
            }
        }
        (put.owner, put.stream) = (None, self.place_page(ino));
        let mut has_more = true;
        loop {
            let mut outcome = self.try_put_page((ino, index), page, &put);
            if matches!(outcome, Err(FsError::Full)) && before == Base::Page && self.has_room_to_overwrite() {
                put.frees = true;
                outcome = self.try_put_page((ino, index), page, &put);
                put.frees = false;
            }
            match outcome {
                Err(FsError::Full) if has_more && self.make_room()? => has_more = false,
                outcome => return outcome,
            }
        }
    }

    /// What is overwritten takes its room twice until it is synced, and where it stood beside others for as long as they live.
    fn has_room_to_overwrite(&self) -> bool {
        self.tree.pages().has_capacity_for_records(1, OVERWRITTEN_SHARE)
    }

    #[inline(never)]
    fn try_put_page(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        put: &PagePut<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let key = Key::page(ino, index);
        match self.tree.put_page_with(key.as_slice(), page, put) {
            Err(TreeError::NotesFull) if put.owner.is_none() => {
                // Recoveries that were cut have left blocks half full, whose pages are noted until the collector has been there.
                self.collect_all()?;
                self.tree.put_page_with(key.as_slice(), page, put)?;
            }
            outcome => drop(outcome?),
        }
        Ok(())
    }

    /// The same with the page that is being written.
    pub(crate) fn put_buffer(
        &mut self,
        place: (u64, u32),
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        self.with_memory(|fs, memory| fs.put_page(place, memory, edits, before))
    }

    /// The same, where behind so many bytes it is zero: these go into the page of the next sync, if they have room there.
    #[inline(never)]
    pub(crate) fn put_front(
        &mut self,
        (ino, index): (u64, u32),
        size: usize,
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        let key = Key::page(ino, index);
        let outcome = self.tree.put_resident_with(key.as_slice(), &self.buffer.page()[..size], edits);
        match outcome.map_err(FsError::from) {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(FsError::Full) => self.put_buffer((ino, index), edits, before),
            Err(error) => Err(error),
        }
    }
}

/// Copies what bytes at an offset of a page are of its bytes from `from` on.
fn copy_part(out: &mut [u8], from: usize, offset: usize, bytes: &[u8]) {
    let start = offset.max(from);
    let end = (offset + bytes.len()).min(from + out.len());
    if start < end {
        out[start - from..end - from].copy_from_slice(&bytes[start - offset..end - offset]);
    }
}
