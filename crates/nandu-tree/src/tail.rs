//! Page values that are durable by themselves: the tail of the newest commit.
//!
//! Where the medium has tags ([`Pages::can_tag`](crate::Pages::can_tag)), a page value is programmed with what its owner has to know to make
//! the same change again. As long as everything that waits for a sync is in such tags, a sync has nothing to program. The commit that
//! ends the tail names all of it, as if nothing had been durable before.
//!
//! The tree does not know what the owner changes besides, so that the owner says it: [`Tree::can_tag`] before the first change of an
//! operation, [`Tree::put_page_tagged`] in it, and [`Tree::end_tagged`] behind the last one. After a cut the owner makes the changes
//! again that tags tell of, before any other.
//!
//! The order that makes it safe: the tag is programmed with the page, so neither is there without the other, and what a tag says holds from the
//! commit on that it names. An operation in which a commit falls between its page and its last change is therefore not over with
//! the tag, and waits for the next sync as others do.

use nandu_index::Edit;
use nandu_media::journal::Change;
use nandu_media::notes::Note;
use nandu_media::tag::TAG_OWNER_SIZE;
use nandu_media::value::{PageValue, TAG_PAGE};
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::page_values::{PagePut, small_change};
use crate::pages::Pages;
use crate::tree::Tree;
use nandu_cells::Cells;

/// Journal pages and pages of a tail that a mount reads, together. So a tail is short where there are many journal pages. On Postmark with synced
/// pages that costs nothing; 16 in place of 20 would cost a seventh more programs when its files are removed.
const MOUNT_PAGES_MAX: usize = 20;

/// What is known of the tail.
#[derive(Clone, Copy, Default)]
pub(crate) struct TailState {
    /// The count of changes up to which everything that waits is in tags.
    covered: u64,
    /// Pages of the tail when the one of the operation under way was the last.
    pub(crate) length: u16,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Whether a page value put now can be durable by its tag: the medium has room for one, and all that waits is in tags.
    pub fn can_tag(&self) -> bool {
        let is_short = self.journals.count() + usize::from(self.pages.tail_len()) < MOUNT_PAGES_MAX;
        self.pages.can_tag() && self.is_covered() && is_short
    }

    fn is_covered(&self) -> bool {
        self.changes.unsynced() == 0 || (self.tail.covered == self.changes.stamp() && self.pages.tail_len() > 0)
    }

    /// As [`put_page_to`](Tree::put_page_to), to where the medium puts new pages, with a tag that says what the owner changes together with it.
    ///
    /// # Errors
    ///
    /// As [`put_page`](Tree::put_page).
    pub fn put_page_tagged(
        &mut self,
        key: &[u8],
        page: &[u8],
        owner: &[u8; TAG_OWNER_SIZE],
    ) -> Result<bool, TreeError<P::Error>> {
        self.put_page_with(key, page, &PagePut { owner: Some(owner), ..PagePut::default() })
    }

    /// While `defers`, no change moves pages out of blocks that were open at a cut. The first change afterwards does.
    pub fn defer_rescue(&mut self, defers: bool) {
        self.notes.is_rescuing = defers;
    }

    /// Puts a page value again of which a tag told at a cut, with changes that become durable in the same commit, also where there is no room
    /// but for deletions: it had room before.
    ///
    /// # Errors
    ///
    /// As [`put_page_with`](Tree::put_page_with).
    pub fn put_page_again(&mut self, key: &[u8], page: &[u8], edits: &[Edit<'_>]) -> Result<bool, TreeError<P::Error>> {
        self.put_page_with(key, page, &PagePut { edits, frees: true, ..PagePut::default() })
    }

    /// Has a key lead to a page with this checksum that stands there already, of which a tag told at a cut, with changes that become durable in the same
    /// commit; false if there is no room to remember it, and then the page has to be put again. Programs nothing. The medium counts the page as live.
    ///
    /// # Errors
    ///
    /// As [`put_page_with`](Tree::put_page_with).
    pub fn adopt_page(
        &mut self,
        key: &[u8],
        page: PageAddr,
        crc: u32,
        edits: &[Edit<'_>],
    ) -> Result<bool, TreeError<P::Error>> {
        self.check_key(key)?;
        self.check_edits(edits)?;
        if self.tag_size() == 0 || page.0 >= self.page_count || !self.pages.is_bare(page) {
            return Ok(false);
        }
        let value = PageValue { page: page.0, crc };
        if self.page_value(key)? == Some(value) {
            return self.batch_freeing(edits).map(|()| true);
        }
        let stored = value.to_bytes();
        let change = Change { key, tag: TAG_PAGE, value: Some(&stored[1..]) };
        let Some(note) = Note::new(page.0, key) else { return Ok(false) };
        let room = self.room_of(core::iter::once(change).chain(edits.iter().map(small_change)));
        if !self.can_wait(&room) {
            return Ok(false);
        }
        let existed = self.contains(key)?;
        let records = self.records_with(edits)? + u64::from(!existed);
        self.make_room_for_doomed(core::iter::once(key).chain(edits.iter().map(|edit| edit.key)))?;
        self.make_room(room, true)?;
        let is_noted = self.notes.find(page.0).is_some();
        if !is_noted && !self.notes.has_room(true) {
            return Ok(false);
        }
        self.replace_change(&change);
        self.replace_small(edits, records);
        if !is_noted {
            let has_place = self.notes.push(&note);
            assert!(has_place, "there is room for the note");
        }
        // What was taken over by a mount that was cut, and is written over and again: it lives on.
        self.notes.spare(page.0);
        Ok(true)
    }

    /// Whether a key leads to a page with this checksum. Reads its leaf.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    pub fn has_page(&mut self, key: &[u8], crc: u32) -> Result<bool, TreeError<P::Error>> {
        Ok(self.page_value(key)?.is_some_and(|value| value.crc == crc))
    }

    /// A tagged page was programmed, or was to be: notes whether it was, and is part of the tail.
    pub(crate) fn note_tagged(&mut self, before: u16) {
        let after = self.pages.tail_len();
        self.tail.length = if after == before.wrapping_add(1) { after } else { 0 };
    }

    /// Says that the change is complete of which the last tagged page tells. If nothing was committed since, it is durable.
    pub fn end_tagged(&mut self) {
        let length = core::mem::take(&mut self.tail.length);
        if length > 0 && self.pages.tail_len() == length {
            self.tail.covered = self.changes.stamp();
        }
    }

    /// As [`sync`](Tree::sync), but for what tags make durable: that may wait. Programs nothing if there is nothing else.
    ///
    /// # Errors
    ///
    /// As [`sync`](Tree::sync).
    pub fn sync_untagged(&mut self) -> Result<(), TreeError<P::Error>> {
        if self.is_covered() { Ok(()) } else { self.sync() }
    }
}
