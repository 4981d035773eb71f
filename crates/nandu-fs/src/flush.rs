//! Bringing the page that is being written to the tree: as a fragment over its page, as a record, or as a page.

use core::ops::Range;

use nandu_nand::Nand;

use crate::batch::{Batch, BatchRoom, PageRoom, batch_in};
use crate::commit::Commit;
use crate::fragments::{BYTES, FRAGMENTS_FOUND_MAX};
use crate::fs::Fs;
use crate::inode::{Inode, MTIME};
use crate::keys::{KEY_SIZE_MAX, Key};
use crate::page_records::{Base, PageState, inline_head};
use crate::tagging::Tagging;
use crate::write_buffer::{Written, with_head};
use crate::{FsError, Ino, Time};

impl<N: Nand> Fs<'_, N> {
    /// Reads what the memory lacks of the page that is being written. Reads it, twice if it was written in its middle.
    pub(crate) fn load_rest(&mut self) -> Result<(), FsError<N::Error>> {
        let Some(&Written { ino, index, span, .. }) = self.buffer.written.as_ref() else { return Ok(()) };
        if span.is_whole {
            return Ok(());
        }
        self.with_memory(|fs, memory| {
            let (front, rest) = memory.split_at_mut(span.start);
            fs.read_page(ino, index, 0, front)?;
            fs.read_page(ino, index, span.end, &mut rest[span.end - span.start..])
        })?;
        if let Some(written) = &mut self.buffer.written {
            written.span.is_whole = true;
        }
        Ok(())
    }

    /// Where room is short, what was written goes to the tree at once, so that the call that wrote it says that there is none. Later
    /// calls, which may be to delete, then have nothing to write.
    pub(crate) fn spare_room(&mut self) -> Result<(), FsError<N::Error>> {
        if self.buffer.written.is_none() || self.has_spare_room()? {
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
        let Some(&Written { ino, index, .. }) = self.buffer.written.as_ref() else { return Ok(()) };
        let place = (ino, index);
        let mut state = PageState::HOLE;
        self.load_state(place, &mut state)?;
        if state.base != Base::Page || !self.flush_fragment(place, &state)? {
            self.load_rest()?;
            let page = self.buffer.page();
            let first = page.iter().position(|&byte| byte != 0).unwrap_or(0);
            let behind = page.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            if behind - first <= self.inline_size_max() {
                self.flush_inline(place, &state, first..behind)?;
            } else {
                self.flush_page(place, &state, behind)?;
                self.end_tagging();
            }
        }
        self.buffer.written = None;
        Ok(())
    }

    /// Makes what was written a fragment over its page, if it is small enough and the page has not too many of them. Together with
    /// those that it overlaps, if it does.
    #[inline(never)]
    fn flush_fragment(&mut self, (ino, index): (u64, u32), state: &PageState) -> Result<bool, FsError<N::Error>> {
        let Some(span) = self.buffer.of(ino, index) else { return Ok(true) };
        let limits = self.fragment_limits();
        let (mut start, mut end) = (span.start, span.end);
        for other in state.fragments.overlapping(start, end) {
            start = start.min(usize::from(other.start()));
            end = end.max(other.end());
        }
        if !state.fragments.admit(start, end, end - start, &limits) {
            return Ok(false);
        }
        if start < span.start || end > span.end {
            self.load_rest()?;
        }
        let outcome = self.with_written(start..end, [BYTES], |fs, value| {
            batch_in!(batch: PageRoom);
            for other in state.fragments.overlapping(start, end) {
                batch.delete(Key::fragment(ino, index, other.start()));
            }
            if let Some(written) = &fs.buffer.written {
                batch.put_inode(Ino(ino), &written.inode);
            }
            batch.put_lent(Key::fragment(ino, index, start as u16), value);
            fs.commit(&batch, Commit::Data)
        });
        match outcome {
            // The page with it takes no more room than the page has.
            Err(FsError::Full) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    /// Calls with a value that is a head and these bytes of the page that is being written. It is made where they stand.
    fn with_written<T, const HEAD: usize>(
        &mut self,
        bytes: Range<usize>,
        head: [u8; HEAD],
        call: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> T {
        self.with_memory(|fs, memory| with_head(memory, bytes, head, |value| call(fs, value)))
    }

    /// Makes a page of what was written and the rest, of which the bytes behind an offset are zero. What lay over it goes in the same
    /// commit (S15).
    #[inline(never)]
    fn flush_page(&mut self, place: (u64, u32), state: &PageState, behind: usize) -> Result<(), FsError<N::Error>> {
        if let Some(&Written { ino, index, span, inode: Inode { times, .. } }) = self.buffer.written.as_ref() {
            self.begin_tagging((Ino(ino), index), span.end, times[MTIME]);
        }
        batch_in!(batch: PageRoom);
        self.put_written_inode(&mut batch, place, state);
        self.put_front(place, behind, batch.edits(), state.base)
    }

    /// Makes a record of the bytes of the page that are not zero.
    #[inline(never)]
    fn flush_inline(
        &mut self,
        (ino, index): (u64, u32),
        state: &PageState,
        bytes: Range<usize>,
    ) -> Result<(), FsError<N::Error>> {
        let head = inline_head(bytes.start);
        self.with_written(bytes, head, |fs, value| {
            batch_in!(batch: PageRoom);
            fs.put_written_inode(&mut batch, (ino, index), state);
            batch.put_lent(Key::page(ino, index), value);
            fs.commit(&batch, Commit::Data)
        })
    }

    /// Puts the inode of the page that is being written, as it is with that page, and deletes the fragments over the page.
    #[inline(never)]
    fn put_written_inode(&self, batch: &mut Batch<'_>, place: (u64, u32), state: &PageState) {
        Self::delete_fragments(batch, place, state);
        if let Some(&Written { ino, mut inode, .. }) = self.buffer.written.as_ref() {
            Self::count_page(state, &mut inode);
            batch.put_inode(Ino(ino), &inode);
        }
    }

    /// An inode counts a page that comes in place of a hole.
    pub(crate) fn count_page(state: &PageState, inode: &mut Inode) {
        inode.blocks = inode.blocks.saturating_add(u64::from(state.base == Base::Hole));
    }

    /// What lay over a page goes, since the page has it.
    #[inline(never)]
    pub(crate) fn drop_fragments(&mut self, place: (u64, u32), state: &PageState) -> Result<(), FsError<N::Error>> {
        if state.fragments.as_slice().is_empty() {
            return Ok(());
        }
        batch_in!(batch: BatchRoom<FRAGMENTS_FOUND_MAX, { FRAGMENTS_FOUND_MAX * KEY_SIZE_MAX }>);
        Self::delete_fragments(&mut batch, place, state);
        self.commit(&batch, Commit::Freeing)
    }

    /// Puts the deletion of what lies over a page into a batch.
    pub(crate) fn delete_fragments(batch: &mut Batch<'_>, (ino, index): (u64, u32), state: &PageState) {
        for fragment in state.fragments.as_slice() {
            batch.delete(Key::fragment(ino, index, fragment.start()));
        }
    }

    /// Before the first change of the write of a page: whether a tag can tell of all of it.
    pub(crate) fn begin_tagging(&mut self, page: (Ino, u32), end: usize, now: Time) {
        let is_placed = self.placing.is_some();
        self.tagging = if is_placed { Tagging::NONE } else { Tagging::begin(page, end, now) };
    }

    /// Behind the last change of the write of a page.
    pub(crate) fn end_tagging(&mut self) {
        self.tagging.end();
    }
}
