//! Reading and writing files.

use nandu_nand::Nand;

use crate::batch::{Batch, PageRoom, batch_in};
use crate::fs::Fs;
use crate::inode::MTIME;
use crate::page_records::{Base, PageState};
use crate::write_buffer::{Span, Written};
use crate::{FsError, Ino};

impl<N: Nand> Fs<'_, N> {
    /// Copies what a file has from `offset` on and returns how many bytes: fewer than asked for at its end, none behind it. Reads a
    /// page for each page of the file that was written and is not in its record, and the leaves of these.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`]; [`FsError::Corrupt`]; errors of the chip.
    pub fn read_at(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, FsError<N::Error>> {
        let page_size = self.page_size();
        let left = usize::try_from(self.file_size(ino)?.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = left.min(out.len());
        let mut at = 0;
        while at < size {
            let (index, start) = self.place(offset + at as u64);
            let count = (page_size - start).min(size - at);
            let part = &mut out[at..at + count];
            at += count;
            let span = self.buffer.of(ino.0, index);
            if span.is_none_or(|span| !span.is_whole) {
                self.read_page(ino.0, index, start, part)?;
            }
            let Some(span) = span else { continue };
            let (from, to) = if span.is_whole { (0, page_size) } else { (span.start, span.end) };
            let (from, to) = (from.max(start), to.min(start + count));
            if from < to {
                part[from - start..to - start].copy_from_slice(&self.buffer.page()[from..to]);
            }
        }
        Ok(size)
    }

    /// Writes bytes at an offset; the file grows as far as needed, and what lies between its old end and the offset is a hole.
    /// Returns how many bytes were written: fewer than given if there is room for no more. Durable at the next sync. Programs a
    /// page for each page of the file that is written wholly, and its [share of collection](Fs#what-calls-cost); parts of pages gather
    /// in memory.
    ///
    /// # Errors
    ///
    /// [`FsError::NoInode`], [`FsError::IsDirectory`] and [`FsError::NotFile`]; [`FsError::FileSize`]; [`FsError::Full`].
    pub fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError<N::Error>> {
        let written = self.write_unpaid(ino, offset, bytes);
        self.ended(written)
    }

    /// The same as a part of a call, which pays for all that it does at its end.
    fn write_unpaid(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError<N::Error>> {
        self.check_writable()?;
        let size_max = self.file_size_max();
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > size_max) {
            return Err(FsError::FileSize { size_max });
        }
        self.file_size(ino)?;
        self.write_pages(ino, offset, bytes)
    }

    fn write_pages(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError<N::Error>> {
        self.finish_truncation(ino, offset + bytes.len() as u64)?;
        let page_size = self.page_size();
        let (mut at, mut paid) = (0, 0);
        // Where what stands in memory alone begins.
        let mut safe = 0;
        while at < bytes.len() {
            if at >= paid + page_size {
                // Each page of bytes is paid for as one that is written alone.
                self.tree.end_call();
                paid = at;
            }
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
        let appended = self.append_unpaid(ino, bytes);
        self.ended(appended)
    }

    fn append_unpaid(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, FsError<N::Error>> {
        let offset = self.file_size(ino)?;
        match self.write_unpaid(ino, offset, bytes)? {
            count if count == bytes.len() => Ok(offset),
            _ => {
                self.truncate_to(ino, offset)?;
                // Some of it may be durable by now, and whoever was told that there is no room must not find it after a cut.
                self.sync_unpaid()?;
                Err(FsError::Full)
            }
        }
    }

    /// Writes a whole page that is not in memory.
    fn write_page(&mut self, ino: Ino, index: u32, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        self.put_whole(ino, index, bytes)?;
        self.end_tagging();
        Ok(())
    }

    #[inline(never)]
    fn put_whole(&mut self, ino: Ino, index: u32, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        let place = (ino.0, index);
        let mut state = PageState::HOLE;
        self.load_state(place, &mut state)?;
        batch_in!(batch: PageRoom);
        self.put_grown(&mut batch, ino, index, bytes.len(), &state)?;
        // S15: a sync between the page and these would leave old fragments over what was written.
        Self::delete_fragments(&mut batch, place, &state);
        self.put_page(place, bytes, batch.edits(), state.base)
    }

    /// Puts the inode of a file of which a page is written.
    #[inline(never)]
    fn put_grown(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        index: u32,
        size: usize,
        state: &PageState,
    ) -> Result<(), FsError<N::Error>> {
        let mut inode = self.file(ino)?;
        inode.grow(self.offset(index, size), self.now);
        self.begin_tagging((ino, index), size, inode.times[MTIME]);
        Self::count_page(state, &mut inode);
        batch.put_inode(ino, &inode);
        Ok(())
    }

    /// Writes a part of a page in memory.
    fn write_part(&mut self, ino: Ino, index: u32, start: usize, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        let end = start + bytes.len();
        let Some(span) = self.buffer.of(ino.0, index) else {
            self.begin_change()?;
            return self.begin_part(ino, index, start, bytes);
        };
        let touches = start <= span.end && end >= span.start;
        if !touches {
            self.load_rest()?;
        }
        let size = self.offset(index, end);
        self.buffer.page_mut()[start..end].copy_from_slice(bytes);
        if let Some(written) = &mut self.buffer.written {
            written.inode.grow(size, self.now);
            (written.span.start, written.span.end) = (span.start.min(start), span.end.max(end));
        }
        Ok(())
    }

    #[inline(never)]
    fn begin_part(&mut self, ino: Ino, index: u32, start: usize, bytes: &[u8]) -> Result<(), FsError<N::Error>> {
        let end = start + bytes.len();
        let mut inode = self.file(ino)?;
        inode.grow(self.offset(index, end), self.now);
        let state = self.page_state(ino.0, index)?;
        let span = Span { start, end, is_whole: false };
        self.buffer.written = Some(Written { ino: ino.0, index, inode, span });
        // A small part of a page that stands on flash may become a fragment, for which the rest need not be read.
        let needs_rest = state.base != Base::Page || bytes.len() > self.fragment_limits().size_max;
        if needs_rest && let Err(error) = self.load_rest() {
            self.buffer.written = None;
            return Err(error);
        }
        self.buffer.page_mut()[start..end].copy_from_slice(bytes);
        Ok(())
    }
}
