//! The caller's memory, divided.

use nandu_media::features::{BLOBS, FILES};

/// How a tree uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes for nodes kept in memory; may be 0.
    pub cache_size: usize,
    /// Pages that an operation may append or supersede and still tell the medium about each. A batch that goes beyond
    /// is done all the same, but pages superseded by it stay counted as live until the collector looks at them. At
    /// least 64.
    pub journal_pages: usize,
    /// When a change is durable.
    pub durability: Durability,
    /// Bytes for changes that no leaf holds yet, of which 65,535 at most are used; with [`Durability::Immediate`] only needed to
    /// open a tree that such changes were left in.
    pub pending_size: usize,
    /// Pages put by [`put_page`](crate::Tree::put_page) that may wait to be named by a Summary in their block, 21 bytes each; 0: there
    /// are no such values. With
    /// as many as a block has pages, few Summaries are written but the one that ends each block. If not 0, at least 8.
    pub note_count: usize,
    /// Page values that may be copied to cells with two bits and wait there for a commit that names them, 26 bytes each; 0 where
    /// there are no such cells. The more there are, the fewer leaves are programmed for them. If not 0, at least 8.
    pub copy_count: usize,
    /// Whether a leaf that overflows while changes wait for a sync leaves a part in its page: a split then costs no page of its own, and leaves
    /// are less full than where neighbours share first. For trees that grow here and there, as with files; where
    /// entries are changed more than they come, full leaves cost less.
    pub parts_leaves: bool,
}

impl Options {
    /// 8 KiB of cache, every change durable at once, no page values.
    pub const DEFAULT: Options = Options {
        cache_size: 8192,
        journal_pages: 64,
        durability: Durability::Immediate,
        pending_size: 0,
        note_count: 0,
        copy_count: 0,
        parts_leaves: false,
    };
}

/// When a change is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the call that makes it returns.
    #[default]
    Immediate,
    /// At the next sync. After a power cut all changes up to one of them are there and none after it: that is the last
    /// synced one at least. Many changes then cost few programs. Where memory for changes or a page of them is full,
    /// the tree syncs without being asked.
    OnSync,
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// Least [`Options::journal_pages`]: what one change can append and supersede.
pub(crate) const JOURNAL_PAGES_MIN: usize = 64;

/// Most bytes for changes: as far as offsets of two bytes reach.
pub(crate) const PENDING_SIZE_MAX: usize = u16::MAX as usize;

impl Options {
    /// Bytes for changes that are used.
    pub(crate) const fn pending_size_used(&self) -> usize {
        if self.pending_size < PENDING_SIZE_MAX { self.pending_size } else { PENDING_SIZE_MAX }
    }
}

/// Bytes of the buffer for values: a page of a value with pages of its own, or a small value with its tag, which is an entry at most.
pub(crate) const fn value_buffer_size(page_size: usize) -> usize {
    if BLOBS || FILES { page_size } else { page_size / 4 }
}

/// Bytes of memory that a tree needs on pages of this size. Nothing else is allocated. Buffers for pages come first, so that each is as
/// aligned as the memory, to 32 bytes and more.
pub const fn memory_required(page_size: usize, options: &Options) -> usize {
    let journal_pages =
        if options.journal_pages < JOURNAL_PAGES_MIN { JOURNAL_PAGES_MIN } else { options.journal_pages };
    let waiting = crate::notes::memory_size(options.note_count) + crate::copies::memory_size(options.copy_count);
    3 * page_size
        + value_buffer_size(page_size)
        + options.cache_size
        + 4 * journal_pages
        + options.pending_size_used()
        + waiting
}

/// Pages that the operation under way appended and pages that it supersedes.
///
/// Neither may be told to the medium before the commit decides which of them are dead: the old ones if it succeeds, the
/// new ones if it does not. The old ones are listed from the front of the memory, the new ones from the back.
pub(crate) struct Journal<'m> {
    memory: &'m mut [u8],
    old_count: usize,
    new_count: usize,
    /// Pages were forgotten that stay counted as live.
    is_short: bool,
}

impl<'m> Journal<'m> {
    pub(crate) fn new(memory: &'m mut [u8]) -> Journal<'m> {
        Journal { memory, old_count: 0, new_count: 0, is_short: false }
    }

    pub(crate) fn has_room(&self) -> bool {
        4 * (self.old_count + self.new_count + 1) <= self.memory.len()
    }

    /// Notes a page superseded if the operation commits. Without room it is forgotten, which keeps it counted as live.
    pub(crate) fn supersede(&mut self, page: u32) {
        if self.has_room() {
            self.memory[4 * self.old_count..][..4].copy_from_slice(&page.to_le_bytes());
            self.old_count += 1;
        } else {
            self.is_short = true;
        }
    }

    /// Whether pages were forgotten since this was asked last.
    pub(crate) fn take_short(&mut self) -> bool {
        core::mem::take(&mut self.is_short)
    }

    /// Notes a page appended, superseded if the operation fails.
    pub(crate) fn append(&mut self, page: u32) {
        if self.has_room() {
            self.new_count += 1;
            let at = self.memory.len() - 4 * self.new_count;
            self.memory[at..][..4].copy_from_slice(&page.to_le_bytes());
        }
    }

    /// Whether a page is superseded if the operation commits.
    pub(crate) fn is_old(&self, page: u32) -> bool {
        self.memory[..4 * self.old_count].chunks_exact(4).any(|old| old == page.to_le_bytes())
    }

    /// Takes out a page that is dead after a commit, or after a failure.
    pub(crate) fn take(&mut self, committed: bool) -> Option<u32> {
        let at = if committed {
            self.old_count = self.old_count.checked_sub(1)?;
            4 * self.old_count
        } else {
            self.new_count = self.new_count.checked_sub(1)?;
            self.memory.len() - 4 * (self.new_count + 1)
        };
        let bytes = &self.memory[at..at + 4];
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn clear(&mut self) {
        (self.old_count, self.new_count, self.is_short) = (0, 0, false);
    }
}
