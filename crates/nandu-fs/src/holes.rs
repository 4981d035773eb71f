//! Sizes, holes and what is allocated.

use core::ops::ControlFlow;

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::commit::Commit;
use crate::error::Damage;
use crate::fragments::{BYTES, FRAGMENT_COUNT_MAX, FRAGMENTS_FOUND_MAX, parse, zeros};
use crate::fs::Fs;
use crate::keys::{Key, Meaning};
use crate::page_records::{Base, UNWRITTEN_VALUE, base_of, inline};
use crate::write_buffer::{Span, Written};
use crate::{Allocation, FsError, Ino};

/// What is left of a truncation when its first part is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftToCut {
    Nothing,
    OfFile,
    /// Of a file without a name.
    OfOrphan,
}

/// Pages that one step allocates or gives back.
const STEP_PAGES: u32 = 16;

impl<N: Nand> Fs<'_, N> {
    /// Makes a file shorter, or longer by a hole. Durable at the next sync; the pages behind the new end of a large file are removed
    /// in steps. Programs no page for itself, on a full chip either.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`]; [`FsError::FileSize`].
    pub fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), FsError<N::Error>> {
        let size_max = self.file_size_max();
        if size > size_max {
            return Err(FsError::FileSize { size_max });
        }
        let truncated = self.truncate_to(ino, size);
        self.ended(truncated)
    }

    pub(crate) fn truncate_to(&mut self, ino: Ino, size: u64) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        self.finish_truncation(ino, size)?;
        let mut left = LeftToCut::Nothing;
        self.change(&[], &mut |fs, batch, _| {
            let how;
            (how, left) = fs.prepare_cut(batch, ino, size)?;
            Ok(how)
        })?;
        if left == LeftToCut::OfOrphan {
            // Its record says that it is an orphan, and not that it was cut.
            self.open.set_cut(ino.0, true);
        }
        if left == LeftToCut::Nothing { Ok(()) } else { self.remove_cut_off(ino) }
    }

    /// The first part of it, which is durable as one.
    fn prepare_cut(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        size: u64,
    ) -> Result<(Commit, LeftToCut), FsError<N::Error>> {
        let mut inode = self.file(ino)?;
        let old_size = core::mem::replace(&mut inode.size, size);
        inode.modify(self.now);
        if size >= old_size {
            batch.put_inode(ino, &inode);
            return Ok((Commit::Records, LeftToCut::Nothing));
        }
        let page_size = self.page_size();
        let (index, start) = self.place(size);
        let first = if start > 0 { index + 1 } else { index };
        if start > 0 {
            self.zero_part(batch, ino, index, start, page_size)?;
        }
        let room = batch.room().saturating_sub(2);
        let doomed = self.doom_all(batch, (Key::page(ino.0, first), Key::pages_end(ino.0)), room)?;
        if doomed.is_all {
            inode.blocks = inode.blocks.saturating_sub(doomed.pages);
        } else {
            batch.put(Key::orphan(ino.0), &[], &[]);
        }
        batch.put_inode(ino, &inode);
        let left = match doomed.is_all {
            true => LeftToCut::Nothing,
            false if inode.nlink > 0 => LeftToCut::OfFile,
            false => LeftToCut::OfOrphan,
        };
        Ok((Commit::Freeing, left))
    }

    /// Makes a part of a page zero. The page itself is not programmed; zeros lie over it.
    pub(crate) fn zero_part(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        index: u32,
        start: usize,
        end: usize,
    ) -> Result<(), FsError<N::Error>> {
        let state = self.page_state(ino.0, index)?;
        match state.base {
            Base::Hole | Base::Unwritten => Ok(()),
            Base::Inline => {
                let page_size = self.page_size();
                let key = Key::page(ino.0, index);
                let Some((offset, bytes)) = self.tree.get(key.as_slice())?.and_then(|value| inline(value, page_size))
                else {
                    return Err(FsError::Corrupt { ino, why: Damage::Page });
                };
                if !state.fragments.as_slice().is_empty() {
                    return Err(FsError::Corrupt { ino, why: Damage::Fragments });
                }
                batch.put_inline(key, offset, bytes, start..end);
                Ok(())
            }
            Base::Page => {
                for fragment in state.fragments.overlapping(start, end) {
                    batch.delete(Key::fragment(ino.0, index, fragment.start()));
                    let from = usize::from(fragment.start());
                    let front = from..fragment.end().min(start);
                    let back = from.max(end)..fragment.end();
                    for part in [front, back].into_iter().filter(|part| !part.is_empty()) {
                        self.keep_part(batch, ino, index, from, part)?;
                    }
                }
                batch.put(Key::fragment(ino.0, index, start as u16), &zeros(end - start), &[]);
                Ok(())
            }
        }
    }

    /// A part of a fragment becomes one of its own.
    fn keep_part(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        index: u32,
        offset: usize,
        part: core::ops::Range<usize>,
    ) -> Result<(), FsError<N::Error>> {
        let key = Key::fragment(ino.0, index, part.start as u16);
        let value = self.tree.get(Key::fragment(ino.0, index, offset as u16).as_slice())?;
        match value.and_then(parse) {
            Some((_, None)) => batch.put(key, &zeros(part.len()), &[]),
            Some((size, Some(bytes))) if part.end <= offset + size => {
                batch.put(key, &[BYTES], &bytes[part.start - offset..part.end - offset]);
            }
            _ => return Err(FsError::Corrupt { ino, why: Damage::Fragments }),
        }
        Ok(())
    }

    /// Allocates a part of a file, or makes it a hole or zero. Durable at the next sync; a large part is done in steps.
    ///
    /// # Errors
    ///
    /// [`FsError::Range`] if the length is 0; [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`];
    /// [`FsError::FileSize`]; [`FsError::Full`].
    pub fn allocate(&mut self, ino: Ino, what: Allocation, offset: u64, size: u64) -> Result<(), FsError<N::Error>> {
        let size_max = self.file_size_max();
        let end = offset.checked_add(size).filter(|&end| end <= size_max).ok_or(FsError::FileSize { size_max })?;
        if size == 0 {
            return Err(FsError::Range);
        }
        let allocated = self.allocate_range(ino, what, (offset, end));
        self.ended(allocated)
    }

    fn allocate_range(
        &mut self,
        ino: Ino,
        what: Allocation,
        (offset, end): (u64, u64),
    ) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        // What is allocated behind the end is to stay.
        self.finish_truncation(ino, u64::MAX)?;
        let old_size = self.file_size(ino)?;
        let page_size = self.page_size() as u64;
        let (mut index, last) = ((offset / page_size) as u32, ((end - 1) / page_size) as u32);
        if what.zeroes() {
            self.zero_ends(ino, index, offset, end)?;
        }
        while index <= last {
            let behind = index.saturating_add(STEP_PAGES).min(last + 1);
            self.change(&[], &mut |fs, batch, _| {
                let how;
                (how, index) = fs.prepare_allocation(batch, ino, what, (offset, end), index..behind)?;
                Ok(how)
            })?;
            if index <= last {
                self.tree.end_call();
            }
        }
        if what.grows() && end > old_size {
            self.change(&[], &mut |fs, batch, _| {
                let mut inode = fs.inode(ino)?;
                inode.grow(end, fs.now);
                batch.put_inode(ino, &inode);
                Ok(Commit::Records)
            })?;
        }
        Ok(())
    }

    /// Makes zero what of the first and the last page is to be zero and is not the whole page.
    #[inline(never)]
    fn zero_ends(&mut self, ino: Ino, first: u32, offset: u64, end: u64) -> Result<(), FsError<N::Error>> {
        let page_size = self.page_size() as u64;
        let last = ((end - 1) / page_size) as u32;
        for index in [first, last] {
            let base = u64::from(index) * page_size;
            let (from, to) = (offset.max(base) - base, end.min(base + page_size) - base);
            if (from, to) == (0, page_size) || (index == last && index == first && from >= to) {
                continue;
            }
            let (from, to) = (from as usize, to as usize);
            if self.begin_full_page(ino, index, from, to)? {
                self.flush()?;
            } else {
                self.change(&[], &mut |fs, batch, _| {
                    fs.zero_part(batch, ino, index, from, to)?;
                    Ok(Commit::Freeing)
                })?;
            }
            if first == last {
                break;
            }
        }
        Ok(())
    }

    /// A page with so many fragments that zeros among them would be one too many is written anew. Returns whether it is one.
    #[inline(never)]
    fn begin_full_page(&mut self, ino: Ino, index: u32, from: usize, to: usize) -> Result<bool, FsError<N::Error>> {
        let state = self.page_state(ino.0, index)?;
        // Zeros in the middle of a fragment make two of it.
        if state.base != Base::Page || state.fragments.as_slice().len() + 2 <= FRAGMENT_COUNT_MAX {
            return Ok(false);
        }
        let mut inode = self.file(ino)?;
        inode.modify(self.now);
        self.with_memory(|fs, memory| fs.read_page(ino.0, index, 0, memory))?;
        self.buffer.page_mut()[from..to].fill(0);
        let span = Span { start: 0, end: self.page_size(), is_whole: true };
        self.buffer.written = Some(Written { ino: ino.0, index, inode, span });
        Ok(true)
    }

    /// Puts so much of it as fits into a batch; returns the first page that is still to be done.
    fn prepare_allocation(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        what: Allocation,
        (offset, end): (u64, u64),
        pages: core::ops::Range<u32>,
    ) -> Result<(Commit, u32), FsError<N::Error>> {
        let page_size = self.page_size() as u64;
        let mut inode = self.file(ino)?;
        inode.modify(self.now);
        let mut how = Commit::Freeing;
        let mut behind = pages.end;
        for index in pages {
            let base = u64::from(index) * page_size;
            let is_whole = offset <= base && base + page_size <= end;
            let state = self.page_state(ino.0, index)?;
            if batch.room() < 2 + FRAGMENTS_FOUND_MAX {
                behind = index;
                break;
            }
            let key = Key::page(ino.0, index);
            match (state.base, what) {
                (Base::Hole, Allocation::PunchHole) => {}
                (Base::Hole, _) => {
                    batch.put(key, &UNWRITTEN_VALUE, &[]);
                    inode.blocks = inode.blocks.saturating_add(1);
                    how = Commit::Data;
                }
                (_, Allocation::Extend | Allocation::KeepSize) => {}
                _ if !is_whole => {}
                (_, Allocation::PunchHole) => {
                    batch.delete(key);
                    inode.blocks = inode.blocks.saturating_sub(1);
                }
                _ => batch.put(key, &UNWRITTEN_VALUE, &[]),
            }
            if is_whole && what.zeroes() {
                Self::delete_fragments(batch, (ino.0, index), &state);
            }
        }
        batch.put_inode(ino, &inode);
        Ok((how, behind))
    }

    /// The first offset from this one on at which the file has data.
    ///
    /// # Errors
    ///
    /// [`FsError::NoMoreData`] if there is only a hole up to the end; [`FsError::NoInode`], [`FsError::IsDirectory`] and
    /// [`FsError::NotFile`].
    pub fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, FsError<N::Error>> {
        self.seek(ino, offset, true)
    }

    /// The first offset from this one on at which the file has a hole; one begins at its end.
    ///
    /// # Errors
    ///
    /// [`FsError::NoMoreData`] if the offset is not in the file; as [`Fs::seek_data`].
    pub fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, FsError<N::Error>> {
        self.seek(ino, offset, false)
    }

    fn seek(&mut self, ino: Ino, offset: u64, wants_data: bool) -> Result<u64, FsError<N::Error>> {
        let size = self.file_size(ino)?;
        if offset >= size {
            return Err(FsError::NoMoreData);
        }
        let written = self.buffer.written.as_ref().filter(|written| written.ino == ino.0).map(|written| written.index);
        let page_size = self.page_size();
        let (first, _) = self.place(offset);
        // The page that was found, or the one behind the data that was passed.
        let mut next = first;
        let mut found = None;
        self.records((Key::page(ino.0, first), Key::pages_end(ino.0)), |entry| {
            let Some(Meaning::Page { index, .. }) = Meaning::of(entry.key) else { return ControlFlow::Continue(()) };
            let is_data = !matches!(base_of(entry.value, entry.large, page_size), Some(Base::Unwritten) | None);
            if !is_data {
                return ControlFlow::Continue(());
            }
            if wants_data {
                found = Some(index);
                return ControlFlow::Break(());
            }
            // A page in memory alone joins what lies before it and behind.
            if written == Some(next) && next < index {
                next += 1;
            }
            if index != next {
                return ControlFlow::Break(());
            }
            next = index.saturating_add(1);
            ControlFlow::Continue(())
        })?;
        if wants_data {
            let in_memory = written.filter(|&index| index >= first);
            let index = found.into_iter().chain(in_memory).min().ok_or(FsError::NoMoreData)?;
            let at = offset.max(u64::from(index) * page_size as u64);
            return if at < size { Ok(at) } else { Err(FsError::NoMoreData) };
        }
        if written == Some(next) {
            next += 1;
        }
        Ok(offset.max(u64::from(next) * page_size as u64).min(size))
    }
}
