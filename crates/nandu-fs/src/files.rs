//! Reading and writing files.

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::fragments::BYTES;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::Key;
use crate::pages::{Base, PageState, UNWRITTEN_VALUE};
use crate::tags::Tagging;
use crate::write_buffer::Written;
use crate::{FsError, Ino};

/// Blocks of pages that have to be free for a part of a page to wait in memory.
const SPARE_BLOCKS: u32 = 3;

impl<N: Nand> Fs<'_, N> {
    /// Bytes that a file may have: as many pages as 32 bits count.
    pub fn file_size_max(&self) -> u64 {
        u64::from(u32::MAX) * self.page_size() as u64
    }

    /// Copies what a file has from `offset` on and returns how many bytes: fewer than asked for at its end, none behind it. Reads a
    /// page for each page of the file that was written and is not in its record, and the leaves of these.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`]; [`FsError::Corrupt`]; errors of the chip.
    pub fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, FsError<N::Error>> {
        let inode = self.file(ino)?;
        let page_size = self.page_size();
        let left = usize::try_from(inode.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = left.min(out.len());
        let mut at = 0;
        while at < size {
            let (index, start) = self.place(offset + at as u64);
            let count = (page_size - start).min(size - at);
            let part = &mut out[at..at + count];
            at += count;
            let written = self.buffer.of(ino.0, index);
            if written.is_none_or(|written| !written.is_whole) {
                self.read_page(ino.0, index, start, part)?;
            }
            let Some(written) = written else { continue };
            let (from, to) = if written.is_whole { (0, page_size) } else { (written.start, written.end) };
            let (from, to) = (from.max(start), to.min(start + count));
            if from < to {
                part[from - start..to - start].copy_from_slice(&self.buffer.page()[from..to]);
            }
        }
        Ok(size)
    }

    /// Writes bytes at an offset; the file grows as far as needed, and what lies between its old end and the offset is a hole.
    /// Returns how many bytes were written: fewer than given if there is room for no more. Durable at the next sync. Programs a
    /// page for each page of the file that is written wholly; parts of pages gather in memory.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`]; [`FsError::FileSize`]; [`FsError::Full`].
    pub fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError<N::Error>> {
        self.check_writable()?;
        let size_max = self.file_size_max();
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > size_max) {
            return Err(FsError::FileSize { size_max });
        }
        self.file(ino)?;
        self.finish_truncation(ino)?;
        let page_size = self.page_size();
        let mut at = 0;
        // Where what stands in memory alone begins.
        let mut safe = 0;
        while at < bytes.len() {
            let (index, start) = self.place(offset + at as u64);
            let count = (page_size - start).min(bytes.len() - at);
            let part = &bytes[at..at + count];
            let is_buffered = count < page_size || self.buffer.of(ino.0, index).is_some();
            let outcome = match is_buffered {
                true => self.write_part(ino, index, start, part),
                false => self.write_page(ino, index, part),
            };
            match outcome {
                Ok(()) => (safe, at) = (at, at + count),
                Err(FsError::Full) if at > 0 => break,
                Err(error) => return Err(error),
            }
        }
        match self.spare_room() {
            Err(FsError::Full) if safe > 0 => Ok(safe),
            outcome => outcome.map(|()| at),
        }
    }

    /// Writes bytes at the end of a file; returns the offset at which they stand. All of them or none are written.
    ///
    /// # Errors
    ///
    /// As [`Fs::write_at`].
    pub fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, FsError<N::Error>> {
        let offset = self.file(ino)?.size;
        match self.write_at(ino, offset, bytes)? {
            count if count == bytes.len() => Ok(offset),
            _ => {
                self.truncate(ino, offset)?;
                // Some of it may be durable by now, and whoever was told that there is no room must not find it after a cut.
                self.sync()?;
                Err(FsError::Full)
            }
        }
    }

    /// The page that an offset is in, and where.
    pub(crate) fn place(&self, offset: u64) -> (u32, usize) {
        let page_size = self.page_size() as u64;
        ((offset / page_size) as u32, (offset % page_size) as usize)
    }

    /// An inode whose content changes, up to this offset.
    fn grown(&self, mut inode: Inode, index: u32, end: usize) -> Inode {
        inode.size = inode.size.max(u64::from(index) * self.page_size() as u64 + end as u64);
        inode.modify(self.now);
        inode
    }

    /// Writes a whole page that is not in memory.
    fn write_page(&mut self, ino: Ino, index: u32, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        let state = self.page_state(ino.0, index)?;
        let mut inode = self.file(ino)?;
        inode = self.grown(inode, index, bytes.len());
        self.begin_tagging(ino, index, bytes.len(), &inode);
        let mut batch = Batch::new();
        Self::count_page(&state, &mut inode);
        Self::put_inode(&mut batch, ino, &inode);
        self.put_page((ino.0, index), bytes, &batch, state.base)?;
        self.drop_fragments(ino.0, index, &state)?;
        self.end_tagging();
        Ok(())
    }

    /// An inode counts a page that comes in place of a hole.
    fn count_page(state: &PageState, inode: &mut Inode) {
        inode.blocks = inode.blocks.saturating_add(u64::from(state.base == Base::Hole));
    }

    /// Puts into the batch of the inode that counts a page in what a page is until it leads to what a tag told of.
    pub(crate) fn announce_page(batch: &mut Batch<'_>, ino: u64, index: u32, state: &PageState, inode: &mut Inode) {
        Self::count_page(state, inode);
        if state.base == Base::Hole {
            batch.put(Key::page(ino, index), &UNWRITTEN_VALUE, &[]);
        }
    }

    /// What lay over a page goes, since the page has it.
    pub(crate) fn drop_fragments(&mut self, ino: u64, index: u32, state: &PageState) -> Result<(), FsError<N::Error>> {
        let mut batch = Batch::new();
        for fragment in state.fragments.as_slice() {
            batch.delete(Key::fragment(ino, index, fragment.start as u16));
        }
        if batch.is_empty() { Ok(()) } else { self.commit_freeing(&batch) }
    }

    /// Writes a part of a page in memory.
    fn write_part(&mut self, ino: Ino, index: u32, start: usize, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        let end = start + bytes.len();
        let Some(written) = self.buffer.of(ino.0, index) else {
            self.begin_change()?;
            let inode = self.file(ino)?;
            let inode = self.grown(inode, index, end);
            let state = self.page_state(ino.0, index)?;
            let mut written = Written { ino: ino.0, index, inode, start, end, is_whole: false };
            // A small part of a page that stands on flash may become a fragment, for which the rest need not be read.
            if state.base != Base::Page || bytes.len() > self.fragment_limits().size_max {
                self.load_rest(&mut written)?;
            }
            self.buffer.page_mut()[start..end].copy_from_slice(bytes);
            self.buffer.written = Some(written);
            return Ok(());
        };
        let mut written = written;
        let touches = start <= written.end && end >= written.start;
        if !touches {
            self.load_rest(&mut written)?;
        }
        self.buffer.page_mut()[start..end].copy_from_slice(bytes);
        written.inode = self.grown(written.inode, index, end);
        (written.start, written.end) = (written.start.min(start), written.end.max(end));
        self.buffer.written = Some(written);
        Ok(())
    }

    /// Reads what the memory lacks of the page that is being written. Reads it, twice if it was written in its middle.
    fn load_rest(&mut self, written: &mut Written) -> Result<(), FsError<N::Error>> {
        if written.is_whole {
            return Ok(());
        }
        let memory = core::mem::take(&mut self.buffer.memory);
        let (front, rest) = memory.split_at_mut(written.start);
        let back = &mut rest[written.end - written.start..];
        let outcome = self
            .read_page(written.ino, written.index, 0, front)
            .and_then(|()| self.read_page(written.ino, written.index, written.end, back));
        self.buffer.memory = memory;
        outcome?;
        written.is_whole = true;
        Ok(())
    }

    /// Where room is short, what was written goes to the tree at once, so that the call that wrote it says that there is none. Later
    /// calls, which may be to delete, then have nothing to write.
    fn spare_room(&mut self) -> Result<(), FsError<N::Error>> {
        let pages = self.tree.pages();
        if self.buffer.written.is_none()
            || pages.has_capacity_for(SPARE_BLOCKS * pages.log().geometry().pages_per_block)
        {
            return Ok(());
        }
        let outcome = self.flush();
        if matches!(outcome, Err(FsError::Full)) {
            // Nothing was in memory before this call, or it would have gone to the tree with that.
            self.buffer.written = None;
        }
        outcome
    }

    /// Brings the page that is being written to the tree.
    pub(crate) fn flush(&mut self) -> Result<(), FsError<N::Error>> {
        let Some(written) = self.buffer.written else { return Ok(()) };
        let state = self.page_state(written.ino, written.index)?;
        if state.base != Base::Page || !self.flush_fragment(&written, &state)? {
            self.flush_whole(written, &state)?;
        }
        self.buffer.written = None;
        Ok(())
    }

    /// Makes what was written a fragment over its page, if it is small enough and the page has not too many of them. Together with
    /// those that it overlaps, if it does.
    fn flush_fragment(&mut self, written: &Written, state: &PageState) -> Result<bool, FsError<N::Error>> {
        let limits = self.fragment_limits();
        let (mut start, mut end) = (written.start, written.end);
        for other in state.fragments.overlapping(written.start, written.end) {
            start = start.min(other.start);
            end = end.max(other.end);
        }
        if !state.fragments.admit(start, end, end - start, &limits) {
            return Ok(false);
        }
        let mut written = *written;
        if start < written.start || end > written.end {
            self.load_rest(&mut written)?;
            self.buffer.written = Some(written);
        }
        let mut batch = Batch::new();
        for other in state.fragments.overlapping(start, end) {
            batch.delete(Key::fragment(written.ino, written.index, other.start as u16));
        }
        Self::put_inode(&mut batch, Ino(written.ino), &written.inode);
        let key = Key::fragment(written.ino, written.index, start as u16);
        batch.put(key, &[BYTES], &self.buffer.page()[start..end]);
        match self.commit_data(&batch) {
            // The page with it takes no more room than the page has.
            Err(FsError::Full) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    /// Makes a page of what was written and the rest, or a record if few bytes of it are not zero.
    fn flush_whole(&mut self, mut written: Written, state: &PageState) -> Result<(), FsError<N::Error>> {
        self.load_rest(&mut written)?;
        self.buffer.written = Some(written);
        let (ino, index) = (written.ino, written.index);
        let mut inode = written.inode;
        self.begin_tagging(Ino(ino), index, written.end, &inode);
        let mut batch = Batch::new();
        Self::count_page(state, &mut inode);
        Self::put_inode(&mut batch, Ino(ino), &inode);
        let page = self.buffer.page();
        let first = page.iter().position(|&byte| byte != 0).unwrap_or(0);
        let behind = page.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if behind - first <= self.inline_size_max() {
            self.tagging = Tagging::Not;
            Self::put_inline(&mut batch, ino, index, first, &page[first..behind]);
            for fragment in state.fragments.as_slice() {
                batch.delete(Key::fragment(ino, index, fragment.start as u16));
            }
            return self.commit_data(&batch);
        }
        self.put_front((ino, index), behind, &batch, state.base)?;
        self.drop_fragments(ino, index, state)?;
        self.end_tagging();
        Ok(())
    }
}
