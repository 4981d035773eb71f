//! Tags: who owns a raw page, in protected bytes of its spare area.
//!
//! FORMAT: Tag
//!
//! Where the chip has protected bytes in the spare area, a page without header may carry a tag there, programmed together with it.
//! It counts only behind one commit: the pages from where that commit left its stream on, one after the other, up to the first without a
//! tag that fits, 15 at most. It is the first of the protected bytes; which columns these are is the driver's, in the simulator those from byte 4 of the spare
//! area on.
//!
//! ```text
//! offset  size  field     meaning
//!      0     4  checksum  CRC-32C of what stands below
//!      4    12  owner     what the owner says of the page
//!
//! under the checksum, little-endian, one after the other
//!     4  volume           id
//!     4  page             the page's own address
//!     8  commit           sequence of the commit behind which the page was programmed
//!     4  place            how many tagged pages there are between the two
//!     4  main             CRC-32C of the main area
//!    12  owner
//! ```
//!
//! 16 bytes (4 in each sector of 512) are what most parts with on-die error correction protect at least. So the checksum covers the main area too, without
//! a second one beside it: a tag says nothing where the main area cannot be read. On such parts that loses nothing, since an uncorrectable
//! sector makes the whole page unreadable, its spare area included.

use crate::checksum::checksum;

/// Bytes of a tag.
pub const TAG_SIZE: usize = 16;

/// Bytes of a tag that the owner of the page fills.
pub const TAG_OWNER_SIZE: usize = 12;

/// What a tag says without holding it: a page that is not just this one has another checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagPlace {
    /// Id of the volume.
    pub volume: u32,
    /// The page's address.
    pub page: u32,
    /// Sequence of the commit behind which it stands.
    pub commit: u64,
    /// Tagged pages between the two.
    pub place: u32,
}

impl TagPlace {
    fn checksum(&self, main: u32, owner: &[u8; TAG_OWNER_SIZE]) -> u32 {
        let mut bytes = [0; 24 + TAG_OWNER_SIZE];
        bytes[..4].copy_from_slice(&self.volume.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.page.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.commit.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.place.to_le_bytes());
        bytes[20..24].copy_from_slice(&main.to_le_bytes());
        bytes[24..].copy_from_slice(owner);
        checksum(&bytes)
    }

    /// The tag of a page whose main area has this CRC-32C.
    pub fn seal(&self, main: u32, owner: &[u8; TAG_OWNER_SIZE]) -> [u8; TAG_SIZE] {
        let mut tag = [0; TAG_SIZE];
        tag[..4].copy_from_slice(&self.checksum(main, owner).to_le_bytes());
        tag[4..].copy_from_slice(owner);
        tag
    }

    /// What the owner said; `None` if it is not the tag of this page, with this CRC-32C of its main area, at this place.
    pub fn open(&self, main: u32, tag: &[u8; TAG_SIZE]) -> Option<[u8; TAG_OWNER_SIZE]> {
        let (stored, owner) = tag.split_first_chunk::<4>()?;
        let owner = owner.first_chunk()?;
        (self.checksum(main, owner).to_le_bytes() == *stored).then_some(*owner)
    }
}

#[cfg(test)]
mod tests {
    use super::{TAG_OWNER_SIZE, TAG_SIZE, TagPlace};
    use crate::checksum::checksum;

    const PLACE: TagPlace = TagPlace { volume: 1, page: 2, commit: 3, place: 4 };

    const MAIN: u32 = 0x0506_0708;

    #[test]
    fn the_bytes_of_a_tag_are_frozen() {
        let tag = PLACE.seal(MAIN, &[9; TAG_OWNER_SIZE]);
        let mut sealed = [0; 36];
        for (at, byte) in [(0, 1), (4, 2), (8, 3), (16, 4)] {
            sealed[at] = byte;
        }
        sealed[20..24].copy_from_slice(&MAIN.to_le_bytes());
        sealed[24..].fill(9);
        let mut expected = [9; TAG_SIZE];
        expected[..4].copy_from_slice(&checksum(&sealed).to_le_bytes());
        assert_eq!(tag, expected);
    }

    #[test]
    fn a_tag_counts_for_its_page_its_content_and_its_place_alone() {
        let owner = [9; TAG_OWNER_SIZE];
        let tag = PLACE.seal(MAIN, &owner);
        assert_eq!(PLACE.open(MAIN, &tag), Some(owner));
        let others = [
            TagPlace { volume: 2, ..PLACE },
            TagPlace { page: 3, ..PLACE },
            TagPlace { commit: 4, ..PLACE },
            TagPlace { place: 5, ..PLACE },
        ];
        assert!(others.iter().all(|other| other.open(MAIN, &tag).is_none()));
        for bit in 0..32 {
            assert_eq!(PLACE.open(MAIN ^ 1 << bit, &tag), None);
        }
        for bit in 0..8 * TAG_SIZE {
            let mut flipped = tag;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PLACE.open(MAIN, &flipped), None);
        }
        assert_eq!(PLACE.open(MAIN, &[0xFF; TAG_SIZE]), None);
    }
}
