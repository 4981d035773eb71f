//! What the tag of a page of a file says.
//!
//! FORMAT: Tags of pages of files
//!
//! On a volume with tags, the page of a file that is written while nothing else waits for a sync says in its
//! tag which page it is:
//!
//! ```text
//! offset  size  field
//!      0     4  time, lower 32 bits
//!      4     8  place, little-endian, from the lowest bit on:
//!                 10 bits       time, upper bits: 42 bits of milliseconds since the beginning of 1970
//!                 E bits        end: byte of the page that was written last; the file reaches there at least
//!                 P bits        index of the page in its file
//!                 54 - E - P    twice the number of the inode, and 1 more if the page comes in place of a hole
//! ```
//!
//! E is the number of bits of the page size minus 1, P that of the chip's pages minus 1. On 1 Gbit with pages of 2 KiB these are 11 and 16, so
//! that 27 bits are left for that. What does not fit (a page of a sparse file far beyond the size of the chip, an inode number above, a
//! time before 1970 or after 2109) is durable with a commit, as on a chip without tags. So that times fit, those that [`Fs::set_now`] takes count in whole
//! milliseconds.

use nandu_nand::Geometry;

use crate::below::TAG_OWNER_SIZE;
use crate::keys::INO_END;
use crate::{Ino, Time};

/// What a tag says of the write of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageTag {
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

impl PageTag {
    /// The write of a page up to this byte, at this time.
    pub(crate) fn of((ino, index): (Ino, u32), end: usize, now: Time) -> PageTag {
        PageTag { ino: ino.0, index, end: end as u32, now }
    }

    /// What the tag of a page of this chip says; `None` if it does not fit.
    pub(crate) fn sealed(self, geometry: &Geometry) -> Option<[u8; TAG_OWNER_SIZE]> {
        self.to_bytes(Widths::of(geometry))
    }

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
    pub(crate) fn parse(bytes: &[u8; TAG_OWNER_SIZE], geometry: &Geometry) -> Option<PageTag> {
        let (time, place) = bytes.split_first_chunk::<4>()?;
        let widths = Widths::of(geometry);
        let (time_high, place) = split(u64::from_le_bytes(*place.first_chunk()?), TIME_HIGH_BITS);
        let (end, place) = split(place, widths.end);
        let (index, ino) = split(place, widths.index);
        let milliseconds = time_high << u32::BITS | u64::from(u32::from_le_bytes(*time));
        let seconds = (milliseconds / 1000) as i64;
        let now = Time { seconds, nanoseconds: (milliseconds % 1000) as u32 * 1_000_000 };
        let tag = PageTag { ino, index: index as u32, end: end as u32 + 1, now };
        let is_sound = (1..INO_END).contains(&ino) && tag.index < u32::MAX;
        is_sound.then_some(tag)
    }
}

#[cfg(test)]
mod tests {
    use nandu_nand::Geometry;
    use nandu_sim::Chip;

    use super::{PageTag, Widths};
    use crate::Time;

    const CHIP: Geometry = Chip::W25N01GV.geometry;

    const TAG: PageTag = PageTag {
        ino: (1 << 27) - 1,
        index: u32::MAX >> 16,
        end: 2048,
        now: Time { seconds: (1 << 42) / 1000, nanoseconds: 103_000_000 },
    };

    fn bytes(tag: PageTag) -> Option<[u8; 12]> {
        tag.to_bytes(Widths::of(&CHIP))
    }

    #[test]
    fn a_tag_comes_back() {
        let least = PageTag { ino: 1, index: 0, end: 1, now: Time::EPOCH };
        for tag in [TAG, least, PageTag { ino: 77, ..TAG }, PageTag { index: 77, ..TAG }, PageTag { end: 77, ..TAG }] {
            assert_eq!(PageTag::parse(&bytes(tag).unwrap(), &CHIP), Some(tag));
        }
        assert_eq!(bytes(least), Some([0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0]));
    }

    #[test]
    fn what_a_tag_has_no_room_for_has_none() {
        let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
        for tag in [
            PageTag { ino: 1 << 27, ..TAG },
            PageTag { index: 1 << 16, ..TAG },
            PageTag { end: 2049, ..TAG },
            PageTag { now: time(-1, 0), ..TAG },
            PageTag { now: time((1 << 42) / 1000, 104_000_000), ..TAG },
            PageTag { now: time(i64::MAX, 0), ..TAG },
            PageTag { now: time(1, 1), ..TAG },
        ] {
            assert_eq!(bytes(tag), None, "{tag:?}");
        }
    }

    #[test]
    fn what_is_no_page_of_a_file_is_no_tag() {
        assert_eq!(PageTag::parse(&[0; 12], &CHIP), None);
    }
}
