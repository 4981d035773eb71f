//! FORMAT: Pages of BFTL
//!
//! What the log-scattering B-tree BFTL of `nandu-baselines` puts on flash. All numbers are little-endian. Behind the header
//! of 56 bytes stand index units of 24 bytes each; a settle page has none. What an index unit is:
//!
//! ```text
//! offset  size  field      meaning
//!      0     4  node       number of the node, 0 is the root
//!      4     4  key        of a record, or the separator of a child
//!      8     4  value      of the record, or the number of the child; zero for operations 0, 2 and 3
//!     12     1  operation  0 nothing, 1 put, 2 delete, 3 delete everything from the key on
//!     13     1  level      of the node, leaves are 0
//!     14     1  ordinal    place of the unit's group in the list of the node; 0 makes the node from nothing
//!     15     1  zero       zero
//!     16     8  sequence   of the group: the units of a node that were committed together. A copy keeps it.
//! ```

use nandu_media::checksum::checksum;
use nandu_nand::PageAddr;

use super::unit::SEQUENCE_MAX;

/// Bytes of the header.
pub(super) const HEADER_SIZE: usize = 56;

const MAGIC: [u8; 4] = *b"nduF";
const VERSION: u8 = 1;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Units of a commit, which counts once all its pages are there.
    Data = 1,
    /// Copies of groups whose block was cleaned.
    Move = 2,
    /// Copies of groups whose page the last cut may have torn. It counts once a page calls it complete.
    Repair = 3,
    /// The end of a mount or format.
    Settle = 4,
}

/// First bytes of every page.
///
/// ```text
/// offset  size  field        meaning
///      0     4  magic        "nduF"
///      4     4  crc          CRC-32C from `commit` to the last byte of the page
///      8     8  commit       rises with each commit, copy and settle page
///     16     8  complete_to  all commits up to this are complete, but for the void ones
///     24     8  void_from    commits from this on are void; zero where none is, and in all but settle pages
///     32     8  records      in the tree, once the commit is done
///     40     4  void_count   so many commits are void
///     44     4  page         address of this page
///     48     1  kind         1 data, 2 copies by the collector, 3 copies by a mount, 4 settle
///     49     1  version      1
///     50     2  unit_count   units in the page
///     52     2  index        place among the pages of the commit
///     54     2  page_count   pages of the commit
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) commit: u64,
    pub(super) complete_to: u64,
    pub(super) void_from: u64,
    pub(super) records: u64,
    pub(super) void_count: u32,
    pub(super) page: PageAddr,
    pub(super) kind: Kind,
    pub(super) unit_count: u16,
    pub(super) index: u16,
    pub(super) page_count: u16,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

impl Header {
    /// Writes the header to a page that is complete but for it.
    pub(super) fn seal(&self, page: &mut [u8], volume: u32) {
        page[..4].copy_from_slice(&MAGIC);
        page[8..16].copy_from_slice(&self.commit.to_le_bytes());
        page[16..24].copy_from_slice(&self.complete_to.to_le_bytes());
        page[24..32].copy_from_slice(&self.void_from.to_le_bytes());
        page[32..40].copy_from_slice(&self.records.to_le_bytes());
        page[40..44].copy_from_slice(&self.void_count.to_le_bytes());
        page[44..48].copy_from_slice(&self.page.0.to_le_bytes());
        page[48] = self.kind as u8;
        page[49] = VERSION;
        page[50..52].copy_from_slice(&self.unit_count.to_le_bytes());
        page[52..54].copy_from_slice(&self.index.to_le_bytes());
        page[54..56].copy_from_slice(&self.page_count.to_le_bytes());
        // The volume is no field: a page of another one fails its checksum.
        let crc = checksum(&page[8..]) ^ volume;
        page[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The header of a page that verifies: what was read at an address is what was programmed there.
    pub(super) fn parse(page: &[u8], at: PageAddr, volume: u32) -> Option<Header> {
        if page[..4] != MAGIC || word(page, 4) != checksum(&page[8..]) ^ volume || page[49] != VERSION {
            return None;
        }
        let kinds = [Kind::Data, Kind::Move, Kind::Repair, Kind::Settle];
        let header = Header {
            commit: long(page, 8),
            complete_to: long(page, 16),
            void_from: long(page, 24),
            records: long(page, 32),
            void_count: word(page, 40),
            page: PageAddr(word(page, 44)),
            kind: kinds.into_iter().find(|&kind| kind as u8 == page[48])?,
            unit_count: half(page, 50),
            index: half(page, 52),
            page_count: half(page, 54),
        };
        let is_sound = header.page == at
            && header.commit <= SEQUENCE_MAX
            && header.complete_to < header.commit
            && header.void_from <= header.commit
            && header.index < header.page_count
            && (header.kind == Kind::Data || header.page_count == 1);
        is_sound.then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_any_bit_flipped_at_another_address_or_of_another_volume_is_refused() {
        let header = Header {
            commit: 9,
            complete_to: 8,
            void_from: 3,
            records: 70,
            void_count: 2,
            page: PageAddr(5),
            kind: Kind::Data,
            unit_count: 4,
            index: 1,
            page_count: 2,
        };
        let mut page = vec![0xA5; 256];
        header.seal(&mut page, 7);
        assert_eq!(Header::parse(&page, PageAddr(5), 7), Some(header));
        assert_eq!(Header::parse(&page, PageAddr(6), 7), None);
        assert_eq!(Header::parse(&page, PageAddr(5), 8), None);
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&page, PageAddr(5), 7), None, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
