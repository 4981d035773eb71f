//! Pages of files: reading what records, pages and fragments are together.

use core::ops::{ControlFlow, Range};

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::error::Damage;
use crate::fragments::overlay;
use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::page_records::{INLINE_HEAD_SIZE, INLINE_SIZE_MAX, PageState, base_of, inline, inline_head};
use crate::{FsError, Ino};

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
}

/// Copies what bytes at an offset of a page are of its bytes from `from` on.
fn copy_part(out: &mut [u8], from: usize, offset: usize, bytes: &[u8]) {
    let start = offset.max(from);
    let end = (offset + bytes.len()).min(from + out.len());
    if start < end {
        out[start - from..end - from].copy_from_slice(&bytes[start - offset..end - offset]);
    }
}
