//! Pages of files that are durable with one program, by their tags.
//!
//! FORMAT: Tags of pages of files
//!
//! On a volume with tags ([`nandu_log`], "The tail"), the page of a file that is written while nothing else waits for a sync says in its
//! tag which page it is:
//!
//! ```text
//! offset  size  field        meaning
//!      0     6  inode        number, low byte first
//!      6     4  index        of the page in its file
//!     10     2  end          byte of the page that was written last: the file reaches there at least
//!     12     8  seconds      time of the write, signed
//!     20     4  nanoseconds
//! ```
//!
//! After a cut the mount writes the same again, in order, from the state of the newest commit on: the page, the size and the times that
//! follow from it, and the fragments that go. The last page is programmed again, since it may be torn (D4); the others are named where they
//! stand. A page that cannot be read any more is named too where its tag can be, so that whoever reads the file is told. A cut may leave half of that: the tail is found by every mount until a checkpoint says that it was taken over.

use nandu_log::Due;
use nandu_nand::{Nand, PageAddr};
use nandu_tree::TAG_OWNER_SIZE;

use crate::batch::{INODE_ROOM, Room};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{INO_END, KEY_SIZE_MAX, Key};
use crate::pages::{Base, UNWRITTEN_VALUE};
use crate::{FsError, Ino, Time};

/// Blocks of pages that have to be free for a page to be tagged: after a cut that many are needed at most to write a tail again, with its
/// leaves and a commit, in blocks that are begun for it.
const SPARE_BLOCKS: u32 = 4;

/// How often a tail is taken over where there is no room, after the collector has made some.
const ATTEMPTS: u32 = 3;

/// What a tag says of the write of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) ino: u64,
    pub(crate) index: u32,
    /// Byte of the page behind the last one that was written, 1 to 65,536.
    pub(crate) end: u32,
    pub(crate) now: Time,
}

impl Tag {
    fn to_bytes(self) -> [u8; TAG_OWNER_SIZE] {
        let mut bytes = [0; TAG_OWNER_SIZE];
        bytes[..6].copy_from_slice(&self.ino.to_le_bytes()[..6]);
        bytes[6..10].copy_from_slice(&self.index.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.end.wrapping_sub(1).to_le_bytes()[..2]);
        bytes[12..20].copy_from_slice(&self.now.seconds.to_le_bytes());
        bytes[20..].copy_from_slice(&self.now.nanoseconds.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no tag of a file's page of this size.
    fn parse(bytes: &[u8; TAG_OWNER_SIZE], page_size: usize) -> Option<Tag> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let ino = bytes[..6].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let seconds = u64::from(u32_at(12)) | u64::from(u32_at(16)) << 32;
        let now = Time { seconds: seconds as i64, nanoseconds: u32_at(20) };
        let end = 1 + u32::from(u16::from_le_bytes([bytes[10], bytes[11]]));
        let tag = Tag { ino, index: u32_at(6), end, now };
        let is_sound = (1..INO_END).contains(&ino)
            && tag.index < u32::MAX
            && tag.end as usize <= page_size
            && now.nanoseconds < 1_000_000_000;
        is_sound.then_some(tag)
    }
}

/// A page of a tail: what its tag says, where it stands and its checksum.
#[derive(Clone, Copy)]
struct DuePage {
    /// `None` if it cannot be read any more.
    tag: Option<Tag>,
    page: PageAddr,
    crc: u32,
    is_readable: bool,
}

/// Whether the write of a page under way is told of by a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagging {
    /// It is not: something else waits, or changed on the way.
    Not,
    /// The page is to be programmed with this tag.
    With([u8; TAG_OWNER_SIZE]),
    /// It was, or may have been.
    Done,
}

impl Tagging {
    /// No write is under way.
    pub(crate) const NONE: Tagging = Tagging::Not;

    /// The tag that the page is to be programmed with, if there is one. From now on it may be on flash.
    pub(crate) fn take(&mut self) -> Option<[u8; TAG_OWNER_SIZE]> {
        let Tagging::With(owner) = *self else { return None };
        *self = Tagging::Done;
        Some(owner)
    }

    /// Something else changed on the way.
    pub(crate) fn give_up(&mut self) {
        *self = Tagging::Not;
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Before the first change of the write of a page: whether a tag can tell of all of it.
    pub(crate) fn begin_tagging(&mut self, ino: Ino, index: u32, end: usize, inode: &Inode) {
        let pages = self.tree.pages();
        let can_tag = self.placing.is_none()
            && self.tree.can_tag()
            && pages.has_capacity_for(SPARE_BLOCKS * pages.log().geometry().pages_per_block);
        let tag = Tag { ino: ino.0, index, end: end as u32, now: inode.mtime };
        self.tagging = if can_tag { Tagging::With(tag.to_bytes()) } else { Tagging::Not };
    }

    /// Behind the last change of the write of a page.
    pub(crate) fn end_tagging(&mut self) {
        if core::mem::replace(&mut self.tagging, Tagging::Not) == Tagging::Done {
            self.tree.end_tagged();
        }
    }

    /// Makes the changes again that tags tell of. Reads each page and its tag, programs the last page, a commit and a checkpoint; nothing if
    /// there is no tail.
    pub(crate) fn take_over_tail(&mut self) -> Result<(), FsError<N::Error>> {
        if !self.tree.pages().log().has_due_tail() {
            return Ok(());
        }
        // What it says is kept for a mount that can write.
        if self.tree.pages().log().is_read_only() {
            self.options.read_only = true;
            return Ok(());
        }
        #[cfg(feature = "broken")]
        if self.options.broken.without_tail {
            return Ok(self.tree.pages_mut().log_mut().end_tail()?);
        }
        // Recoveries that were cut leave many blocks half full, and many pages noted in them, until the collector has been there.
        for _ in 0..ATTEMPTS {
            match self.take_over_pages() {
                Err(FsError::Full) => {}
                outcome => return outcome,
            }
            self.collect_all()?;
        }
        // Nothing is lost: a mount with more memory for notes finds the tail.
        self.options.read_only = true;
        Ok(())
    }

    fn take_over_pages(&mut self) -> Result<(), FsError<N::Error>> {
        // Whether a page is the last one is known when the next was read.
        let mut before = None;
        for place in 0..=nandu_log::TAIL_MAX {
            let found = self.read_due(place)?;
            if let Some(due) = before {
                match self.write_again(&due, place - 1, found.is_none()) {
                    // A file that is damaged, or an image that says anything: the others are not.
                    Ok(()) | Err(FsError::NoInode(_) | FsError::NotFile(_) | FsError::IsDirectory(_)) => {}
                    Err(
                        FsError::Corrupt { .. } | FsError::CorruptPage { why: nandu_tree::PageDamage::Node(_), .. },
                    ) => {}
                    Err(error) => return Err(error),
                }
            }
            before = found;
            if before.is_none() {
                break;
            }
        }
        self.tree.sync()?;
        Ok(self.tree.pages_mut().log_mut().end_tail()?)
    }

    /// Reads a page of the tail to the buffer.
    fn read_due(&mut self, place: u16) -> Result<Option<DuePage>, FsError<N::Error>> {
        let page_size = self.page_size();
        let log = self.tree.pages_mut().log_mut();
        let Some(page) = log.due_address(place) else { return Ok(None) };
        let (owner, crc, is_readable) = match log.due_page(place, self.buffer.memory)? {
            None => return Ok(None),
            Some(Due::Lost) => return Ok(Some(DuePage { tag: None, page, crc: 0, is_readable: false })),
            Some(Due::Unreadable { owner, checksum }) => (owner, checksum, false),
            Some(Due::Whole { owner, checksum }) => (owner, checksum, true),
        };
        Ok(Tag::parse(&owner, page_size).map(|tag| DuePage { tag: Some(tag), page, crc, is_readable }))
    }

    /// Makes the change again that a tag tells of.
    fn write_again(&mut self, due: &DuePage, place: u16, is_last: bool) -> Result<(), FsError<N::Error>> {
        let DuePage { tag: Some(tag), page, crc, is_readable } = *due else { return Ok(()) };
        // Something else was read since. A page that was torn may be gone by now, and then nobody was told that it was there.
        if is_last && self.read_due(place)?.is_none_or(|found| found.tag != Some(tag)) {
            return Ok(());
        }
        let ino = Ino(tag.ino);
        let state = self.page_state(tag.ino, tag.index)?;
        let mut inode = self.file(ino)?;
        let key = Key::page(tag.ino, tag.index);
        let size = u64::from(tag.index) * self.page_size() as u64 + u64::from(tag.end);
        // A mount that was cut did it; the copy then made was followed by a commit. Cut after cut, copies would fill a small chip.
        let is_same = inode.size >= size && (inode.mtime, inode.ctime) == (tag.now, tag.now);
        if is_same && state.fragments.as_slice().is_empty() && self.tree.has_page(key.as_slice(), crc)? {
            return Ok(());
        }
        inode.size = inode.size.max(size);
        inode.modify(tag.now);
        let mut room = Room::<2, { INODE_ROOM + KEY_SIZE_MAX + 1 }>::new();
        let mut batch = room.batch();
        Self::count_page(&state, &mut inode);
        if state.base == Base::Hole {
            // What the page is until its record leads to what the tag told of.
            batch.put(key, &UNWRITTEN_VALUE, &[]);
        }
        Self::put_inode(&mut batch, ino, &inode);
        self.commit_freeing(&batch)?;
        let is_named = !is_last && self.tree.adopt_page(key.as_slice(), page, crc)?;
        if !is_named && !is_readable {
            // There is nothing to put again, so that there has to be room to name it.
            self.tree.sync()?;
            if !self.tree.adopt_page(key.as_slice(), page, crc)? {
                return Err(FsError::Full);
            }
        } else if !is_named && (is_last || self.read_due(place)?.is_some()) {
            self.tree.put_page_again(key.as_slice(), self.buffer.memory)?;
        }
        self.drop_fragments(tag.ino, tag.index, &state)
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;
    use crate::Time;

    #[test]
    fn a_tag_comes_back_and_what_is_out_of_range_is_none() {
        let now = Time { seconds: -7, nanoseconds: 999_999_999 };
        let tag = Tag { ino: (1 << 48) - 2, index: u32::MAX - 1, end: 4096, now };
        let bytes = tag.to_bytes();
        assert_eq!(Tag::parse(&bytes, 4096), Some(tag));
        assert_eq!(Tag::parse(&bytes, 2048), None);
        for (at, value) in [(6, 0xFF), (11, 0xFF), (23, 0xFF)] {
            let mut changed = bytes;
            changed[at] = value;
            assert_eq!(Tag::parse(&changed, 4096), None, "byte {at}");
        }
        assert_eq!(Tag::parse(&[0; 24], 4096), None);
    }
}
