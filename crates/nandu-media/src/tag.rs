//! Tags: who owns a bare page, in protected bytes of its spare area.
//!
//! FORMAT: Tag
//!
//! Where the chip has protected bytes in the spare area, a page without header may carry a tag there, programmed together with it.
//! It counts only behind one commit: the pages from where that commit left its stream on, one after the other, up to the first without a
//! tag that fits.
//!
//! ```text
//! offset  size  field     meaning
//!      0     4  checksum  CRC-32C of what stands below
//!      4     4  main      CRC-32C of the main area
//!      8    24  owner     what the owner says of the page
//!
//! under the checksum, little-endian, one after the other
//!     4  volume           id
//!     4  page             the page's own address
//!     8  commit           sequence of the commit behind which the page was programmed
//!     4  place            how many tagged pages there are between the two
//!     4  main
//!    24  owner
//! ```
//!
//! So a tag is known for one also where the main area cannot be read any more, and whose page that was.

use crate::checksum::checksum;

/// Bytes of a tag.
pub const TAG_SIZE: usize = 32;

/// Bytes of a tag that the owner of the page fills.
pub const TAG_OWNER_SIZE: usize = 24;

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

/// What a tag says of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// CRC-32C of the main area, as it was when the page was programmed.
    pub main: u32,
    /// What the owner says of the page.
    pub owner: [u8; TAG_OWNER_SIZE],
}

impl TagPlace {
    fn checksum(&self, tag: &Tag) -> u32 {
        let mut bytes = [0; 24 + TAG_OWNER_SIZE];
        bytes[..4].copy_from_slice(&self.volume.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.page.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.commit.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.place.to_le_bytes());
        bytes[20..24].copy_from_slice(&tag.main.to_le_bytes());
        bytes[24..].copy_from_slice(&tag.owner);
        checksum(&bytes)
    }

    /// The tag of a page with this main area.
    pub fn seal(&self, main: &[u8], owner: &[u8; TAG_OWNER_SIZE]) -> [u8; TAG_SIZE] {
        let told = Tag { main: checksum(main), owner: *owner };
        let mut tag = [0; TAG_SIZE];
        tag[..4].copy_from_slice(&self.checksum(&told).to_le_bytes());
        tag[4..8].copy_from_slice(&told.main.to_le_bytes());
        tag[8..].copy_from_slice(owner);
        tag
    }

    /// What a tag says; `None` if it is not that of this page at this place.
    pub fn open(&self, tag: &[u8; TAG_SIZE]) -> Option<Tag> {
        let (stored, rest) = tag.split_first_chunk::<4>()?;
        let (main, rest) = rest.split_first_chunk::<4>()?;
        let tag = Tag { main: u32::from_le_bytes(*main), owner: *rest.first_chunk()? };
        (self.checksum(&tag).to_le_bytes() == *stored).then_some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::{TAG_OWNER_SIZE, TAG_SIZE, Tag, TagPlace};
    use crate::checksum::checksum;

    const PLACE: TagPlace = TagPlace { volume: 1, page: 2, commit: 3, place: 4 };

    #[test]
    fn the_bytes_of_a_tag_are_frozen() {
        let tag = PLACE.seal(&[7; 64], &[9; TAG_OWNER_SIZE]);
        let mut expected = [9; TAG_SIZE];
        let main = checksum(&[7; 64]).to_le_bytes();
        let mut sealed = [0; 48];
        for (at, byte) in [(0, 1), (4, 2), (8, 3), (16, 4)] {
            sealed[at] = byte;
        }
        sealed[20..24].copy_from_slice(&main);
        sealed[24..].fill(9);
        expected[..4].copy_from_slice(&checksum(&sealed).to_le_bytes());
        expected[4..8].copy_from_slice(&main);
        assert_eq!(tag, expected);
    }

    #[test]
    fn a_tag_counts_for_its_page_and_its_place_alone_and_knows_its_content() {
        let (main, owner) = ([7; 64], [9; TAG_OWNER_SIZE]);
        let tag = PLACE.seal(&main, &owner);
        assert_eq!(PLACE.open(&tag), Some(Tag { main: checksum(&main), owner }));
        let others = [
            TagPlace { volume: 2, ..PLACE },
            TagPlace { page: 3, ..PLACE },
            TagPlace { commit: 4, ..PLACE },
            TagPlace { place: 5, ..PLACE },
        ];
        assert!(others.iter().all(|other| other.open(&tag).is_none()));
        for bit in 0..8 * TAG_SIZE {
            let mut flipped = tag;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PLACE.open(&flipped), None);
        }
        assert_eq!(PLACE.open(&[0xFF; TAG_SIZE]), None);
    }
}
