//! Pages of files that are durable with one program, by their tags.
//!
//! FORMAT: Tags of pages of files
//!
//! On a volume with tags ([`nandu_log`], "The tail"), the page of a file that is written while nothing else waits for a sync says in its
//! tag which page it is:
//!
//! ```text
//! offset  size  field
//!      0     4  time, lower 32 bits
//!      4     8  place, little-endian, from the lowest bit on:
//!                 10 bits       time, upper bits: 42 bits of milliseconds since the beginning of 1970
//!                 E bits        end: byte of the page that was written last; the file reaches there at least
//!                 P bits        index of the page in its file
//!                 54 - E - P    number of the inode
//! ```
//!
//! E is the number of bits of the page size minus 1, P that of the chip's pages minus 1. On 1 Gbit with pages of 2 KiB these are 11 and 16, so
//! that 27 bits are left for the inode. What does not fit (a page of a sparse file far beyond the size of the chip, an inode number above, a
//! time before 1970 or after 2109) is durable with a commit, as on a chip without tags. So that times fit, those that [`Fs::set_now`] takes count in whole
//! milliseconds.
//!
//! After a cut the mount writes the same again, in order, from the state of the newest commit on: the page, the size and the times that
//! follow from it, and the fragments that go. The last page is programmed again, since it may be torn (D4); the others are named where they
//! stand. A cut may leave half of that: the tail is found by every mount until a checkpoint says that it was taken over.

use nandu_log::Due;
use nandu_nand::{Geometry, Nand, PageAddr};
use nandu_tree::TAG_OWNER_SIZE;

use crate::batch::{INODE_ROOM, Room};
use crate::fs::{Commit, Fs};
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

/// Bits of a tag that the time, upper bits, takes beside what says the page.
const TIME_HIGH_BITS: u32 = 10;

/// How many bits the fields of a tag have: what one chip needs.
#[derive(Clone, Copy)]
struct Widths {
    end: u32,
    index: u32,
}

impl Widths {
    fn of(geometry: &Geometry) -> Widths {
        let bits = |count: u32| u32::BITS - count.saturating_sub(1).leading_zeros();
        Widths { end: bits(geometry.page_size), index: bits(geometry.page_count()) }
    }
}

/// The lowest bits of a word, as many as `bits`, and the rest.
fn split(word: u64, bits: u32) -> (u64, u64) {
    (word & ((1 << bits) - 1), word >> bits)
}

impl Tag {
    /// `None` if it does not fit.
    fn to_bytes(self, widths: Widths) -> Option<[u8; TAG_OWNER_SIZE]> {
        let seconds = u64::try_from(self.now.seconds).ok()?;
        let milliseconds = seconds.checked_mul(1000)?.checked_add(u64::from(self.now.nanoseconds / 1_000_000))?;
        let (time, time_high) = split(milliseconds, u32::BITS);
        let mut place = time_high;
        let mut shift = TIME_HIGH_BITS;
        let fields = [(u64::from(self.end) - 1, widths.end), (u64::from(self.index), widths.index)];
        for (field, bits) in fields.into_iter().chain([(self.ino, u64::BITS - shift - widths.end - widths.index)]) {
            if field >> bits != 0 {
                return None;
            }
            place |= field << shift;
            shift += bits;
        }
        let is_whole = time_high >> TIME_HIGH_BITS == 0 && self.now.nanoseconds.is_multiple_of(1_000_000);
        let mut bytes = [0; TAG_OWNER_SIZE];
        bytes[..4].copy_from_slice(&(time as u32).to_le_bytes());
        bytes[4..].copy_from_slice(&place.to_le_bytes());
        is_whole.then_some(bytes)
    }

    /// `None` if the bytes are no tag of a file's page of this chip.
    fn parse(bytes: &[u8; TAG_OWNER_SIZE], geometry: &Geometry) -> Option<Tag> {
        let (time, place) = bytes.split_first_chunk::<4>()?;
        let widths = Widths::of(geometry);
        let (time_high, place) = split(u64::from_le_bytes(*place.first_chunk()?), TIME_HIGH_BITS);
        let (end, place) = split(place, widths.end);
        let (index, ino) = split(place, widths.index);
        let milliseconds = time_high << u32::BITS | u64::from(u32::from_le_bytes(*time));
        let seconds = (milliseconds / 1000) as i64;
        let now = Time { seconds, nanoseconds: (milliseconds % 1000) as u32 * 1_000_000 };
        let tag = Tag { ino, index: index as u32, end: end as u32 + 1, now };
        let is_sound = (1..INO_END).contains(&ino) && tag.index < u32::MAX;
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
    pub(crate) fn begin_tagging(&mut self, (ino, index): (Ino, u32), end: usize, now: Time) {
        let pages = self.tree.pages();
        let can_tag = self.placing.is_none()
            && self.tree.can_tag()
            && pages.has_capacity_for(SPARE_BLOCKS * pages.log().geometry().pages_per_block);
        let tag = Tag { ino: ino.0, index, end: end as u32, now };
        let owner = if can_tag { tag.to_bytes(Widths::of(pages.log().geometry())) } else { None };
        self.tagging = owner.map_or(Tagging::Not, Tagging::With);
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
        #[cfg(feature = "_broken")]
        if self.options.broken.without_tail {
            return Ok(self.tree.pages_mut().log_mut().end_tail()?);
        }
        // Recoveries that were cut leave many blocks half full, and many pages noted in them, until the collector has been there.
        for attempt in 0..=ATTEMPTS {
            // At first nothing is moved, so that a mount stays short: the first change behind it moves what has to be.
            self.tree.defer_rescue(attempt == 0);
            let outcome = self.take_over_pages();
            self.tree.defer_rescue(false);
            match outcome {
                Err(FsError::Full) if attempt == 0 => continue,
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
        let log = self.tree.pages_mut().log_mut();
        let Some(page) = log.due_address(place) else { return Ok(None) };
        let (owner, crc) = match log.due_page(place, self.buffer.page_mut())? {
            None => return Ok(None),
            Some(Due::Lost) => return Ok(Some(DuePage { tag: None, page, crc: 0 })),
            Some(Due::Whole { owner, checksum }) => (owner, checksum),
        };
        Ok(Tag::parse(&owner, log.geometry()).map(|tag| DuePage { tag: Some(tag), page, crc }))
    }

    /// Makes the change again that a tag tells of.
    fn write_again(&mut self, due: &DuePage, place: u16, is_last: bool) -> Result<(), FsError<N::Error>> {
        let DuePage { tag: Some(tag), page, crc } = *due else { return Ok(()) };
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
        batch.put_inode(ino, &inode);
        self.commit(&batch, Commit::Freeing)?;
        let is_named = !is_last && self.tree.adopt_page(key.as_slice(), page, crc)?;
        if !is_named && (is_last || self.read_due(place)?.is_some()) {
            self.tree.put_page_again(key.as_slice(), self.buffer.page_mut())?;
        }
        self.drop_fragments((tag.ino, tag.index), &state)
    }
}

#[cfg(test)]
mod tests {
    use nandu_nand::Geometry;
    use nandu_sim::Chip;

    use super::{Tag, Widths};
    use crate::Time;

    const CHIP: Geometry = Chip::W25N01GV.geometry;

    const TAG: Tag = Tag {
        ino: (1 << 27) - 1,
        index: u32::MAX >> 16,
        end: 2048,
        now: Time { seconds: (1 << 42) / 1000, nanoseconds: 103_000_000 },
    };

    fn bytes(tag: Tag) -> Option<[u8; 12]> {
        tag.to_bytes(Widths::of(&CHIP))
    }

    #[test]
    fn a_tag_comes_back() {
        let least = Tag { ino: 1, index: 0, end: 1, now: Time::EPOCH };
        for tag in [TAG, least, Tag { ino: 77, ..TAG }, Tag { index: 77, ..TAG }, Tag { end: 77, ..TAG }] {
            assert_eq!(Tag::parse(&bytes(tag).unwrap(), &CHIP), Some(tag));
        }
        assert_eq!(bytes(least), Some([0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0]));
    }

    #[test]
    fn what_a_tag_has_no_room_for_has_none() {
        let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
        for tag in [
            Tag { ino: 1 << 27, ..TAG },
            Tag { index: 1 << 16, ..TAG },
            Tag { end: 2049, ..TAG },
            Tag { now: time(-1, 0), ..TAG },
            Tag { now: time((1 << 42) / 1000, 104_000_000), ..TAG },
            Tag { now: time(i64::MAX, 0), ..TAG },
            Tag { now: time(1, 1), ..TAG },
        ] {
            assert_eq!(bytes(tag), None, "{tag:?}");
        }
    }

    #[test]
    fn what_is_no_page_of_a_file_is_no_tag() {
        assert_eq!(Tag::parse(&[0; 12], &CHIP), None);
    }
}
