//! Pages of files: what a page's record and the fragments over it are together.
//!
//! FORMAT: Pages of files
//!
//! A page of a file is a value of exactly as many bytes as a page of the chip has, or of fewer, behind which it is zero; or, where few of
//! its bytes are not zero, up to 1,024 of them stand in its record. A page without a record is a hole. What lies behind the end of the
//! file is zero. Which of the two it is, the tag in the leaf says: 3 is a page, 2 fewer bytes, and 0 a record as below.
//!
//! ```text
//! offset  size  field   meaning
//!      0     1  kind    1: the bytes that follow, and zeros around them; 2: nothing but zeros, allocated and not written yet
//!      1     2  offset  of the first of them, low byte first
//! ```

use core::ops::{ControlFlow, Range};

use nandu_index::Edit;
use nandu_nand::Nand;
use nandu_tree::{PagePut, TreeError};

use crate::batch::Batch;
use crate::error::Damage;
use crate::fragments::{Fragments, overlay};
use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::{FsError, Ino};

const BYTES: u8 = 1;
const UNWRITTEN: u8 = 2;

/// The record of an allocated page that is not written yet.
pub(crate) const UNWRITTEN_VALUE: [u8; 1] = [UNWRITTEN];

/// Bytes in front of those that stand in a record.
pub(crate) const INLINE_HEAD_SIZE: usize = 3;

/// Most bytes of a page that stand in its record: what a batch has room for beside the rest.
pub(crate) const INLINE_SIZE_MAX: usize = 1024;

/// Part of what is kept, as a divisor, that is left by pages that replace pages.
const OVERWRITTEN_SHARE: u32 = 8;

/// Bytes of the key of a page.
const PAGE_KEY_SIZE: usize = 11;

/// What the record of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// There is none.
    Hole,
    /// Allocated, not written.
    Unwritten,
    /// Some bytes in the record.
    Inline,
    /// A page, or its first bytes.
    Page,
}

#[derive(Clone, Copy)]
pub(crate) struct PageState {
    pub(crate) base: Base,
    pub(crate) fragments: Fragments,
}

impl PageState {
    pub(crate) const HOLE: PageState = PageState { base: Base::Hole, fragments: Fragments::NONE };
}

/// Bytes of a page that stand in its record: where the first is, and them. `None` if it is no such record.
pub(crate) fn inline(value: &[u8], page_size: usize) -> Option<(usize, &[u8])> {
    match value {
        &[UNWRITTEN] => Some((0, &[])),
        [BYTES, low, high, bytes @ ..] => {
            let offset = usize::from(u16::from_le_bytes([*low, *high]));
            let is_sound = bytes.len() <= INLINE_SIZE_MAX && offset + bytes.len() <= page_size;
            is_sound.then_some((offset, bytes))
        }
        _ => None,
    }
}

/// What stands in front of such bytes.
pub(crate) fn inline_head(offset: usize) -> [u8; INLINE_HEAD_SIZE] {
    let [low, high] = (offset as u16).to_le_bytes();
    [BYTES, low, high]
}

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

/// What a record is; `None` if it is none of a page.
pub(crate) fn base_of(value: &[u8], large: Option<usize>, page_size: usize) -> Option<Base> {
    match large {
        Some(size) => (size <= page_size).then_some(Base::Page),
        None if value == UNWRITTEN_VALUE => Some(Base::Unwritten),
        None => inline(value, page_size).map(|_| Base::Inline),
    }
}

impl<N: Nand> Fs<'_, N> {
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

    /// Makes a whole page the content of a page of a file, and other changes, which are none of this page. Programs it.
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
        let put = PagePut { stream: self.place_page(ino), edits, ..PagePut::default() };
        if let Some(owner) = self.tagging.take() {
            match self.try_put_page((ino, index), page, PagePut { stream: None, owner: Some(&owner), ..put }) {
                Err(FsError::Full) => self.tagging.give_up(),
                other => return other,
            }
        }
        let mut has_more = true;
        loop {
            let outcome = match self.try_put_page((ino, index), page, put) {
                Err(FsError::Full) if before == Base::Page && self.has_room_to_overwrite() => {
                    self.try_put_page((ino, index), page, PagePut { frees: true, ..put })
                }
                outcome => outcome,
            };
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

    fn try_put_page(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        put: PagePut<'_>,
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
