//! Bringing the page that is being written to the tree: as a fragment over its page, as a record, or as a page.

use core::ops::Range;

use nandu_index::Edit;
use nandu_nand::Nand;

use crate::batch::{Batch, InodeRoom, PageRoom, Room};
use crate::fragments::{BYTES, FRAGMENTS_FOUND_MAX};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{KEY_SIZE_MAX, Key};
use crate::pages::{Base, PageState, inline_head};
use crate::write_buffer::{Written, with_head};
use crate::{FsError, Ino};

/// Blocks of pages that have to be free for a part of a page to wait in memory.
const SPARE_BLOCKS: u32 = 3;

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
        let Some(&Written { ino, index, .. }) = self.buffer.written.as_ref() else { return Ok(()) };
        let state = self.page_state(ino, index)?;
        let is_fragment = state.base == Base::Page && self.flush_fragment((ino, index), &state)?;
        if !is_fragment && self.flush_whole((ino, index), &state)? {
            self.drop_fragments(ino, index, &state)?;
            self.end_tagging();
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
            let mut room = PageRoom::new();
            let mut batch = room.batch();
            for other in state.fragments.overlapping(start, end) {
                batch.delete(Key::fragment(ino, index, other.start()));
            }
            if let Some(written) = &fs.buffer.written {
                Self::put_inode(&mut batch, Ino(ino), &written.inode);
            }
            batch.put_lent(Key::fragment(ino, index, start as u16), value);
            fs.commit_data(&batch)
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

    /// Calls with the memory of the page that is being written, which is nowhere else meanwhile.
    pub(crate) fn with_memory<T>(&mut self, call: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        let memory = core::mem::take(&mut self.buffer.memory);
        let result = call(self, memory);
        self.buffer.memory = memory;
        result
    }

    /// Makes a page of what was written and the rest, or a record if few bytes of it are not zero. Returns whether it is a page, under which
    /// fragments are left.
    #[inline(never)]
    fn flush_whole(&mut self, (ino, index): (u64, u32), state: &PageState) -> Result<bool, FsError<N::Error>> {
        self.load_rest()?;
        let Some(written) = &self.buffer.written else { return Ok(false) };
        let (mut inode, end) = (written.inode, written.span.end);
        self.begin_tagging(Ino(ino), index, end, &inode);
        Self::count_page(state, &mut inode);
        let page = self.buffer.page();
        let first = page.iter().position(|&byte| byte != 0).unwrap_or(0);
        let behind = page.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if behind - first <= self.inline_size_max() {
            self.tagging.give_up();
            return self.flush_inline((ino, index), &inode, state, first..behind).map(|()| false);
        }
        self.put_page_of(Ino(ino), &inode, |fs, edits| fs.put_front((ino, index), behind, edits, state.base))
            .map(|()| true)
    }

    /// Makes a record of the bytes of the page that are not zero.
    #[inline(never)]
    fn flush_inline(
        &mut self,
        (ino, index): (u64, u32),
        inode: &Inode,
        state: &PageState,
        bytes: Range<usize>,
    ) -> Result<(), FsError<N::Error>> {
        let head = inline_head(bytes.start);
        self.with_written(bytes, head, |fs, value| {
            let mut room = PageRoom::new();
            let mut batch = room.batch();
            Self::put_inode(&mut batch, Ino(ino), inode);
            batch.put_lent(Key::page(ino, index), value);
            Self::delete_fragments(&mut batch, ino, index, state);
            fs.commit_data(&batch)
        })
    }

    /// An inode counts a page that comes in place of a hole.
    pub(crate) fn count_page(state: &PageState, inode: &mut Inode) {
        inode.blocks = inode.blocks.saturating_add(u64::from(state.base == Base::Hole));
    }

    /// What lay over a page goes, since the page has it.
    #[inline(never)]
    pub(crate) fn drop_fragments(&mut self, ino: u64, index: u32, state: &PageState) -> Result<(), FsError<N::Error>> {
        if state.fragments.as_slice().is_empty() {
            return Ok(());
        }
        let mut room = Room::<FRAGMENTS_FOUND_MAX, { FRAGMENTS_FOUND_MAX * KEY_SIZE_MAX }>::new();
        let mut batch = room.batch();
        Self::delete_fragments(&mut batch, ino, index, state);
        self.commit_freeing(&batch)
    }

    /// Puts the deletion of what lies over a page into a batch.
    pub(crate) fn delete_fragments(batch: &mut Batch<'_>, ino: u64, index: u32, state: &PageState) {
        for fragment in state.fragments.as_slice() {
            batch.delete(Key::fragment(ino, index, fragment.start()));
        }
    }

    /// Calls with a change of an inode, which goes with a page of it.
    pub(crate) fn put_page_of(
        &mut self,
        ino: Ino,
        inode: &Inode,
        put: impl FnOnce(&mut Self, &[Edit<'_>]) -> Result<(), FsError<N::Error>>,
    ) -> Result<(), FsError<N::Error>> {
        let mut room = InodeRoom::new();
        let mut batch = room.batch();
        Self::put_inode(&mut batch, ino, inode);
        put(self, batch.edits())
    }
}
