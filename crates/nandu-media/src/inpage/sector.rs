//! FORMAT: Log sectors of the in-page-logging index
//!
//! In a volume with sectors, the last pages of a block are filled from the last one backwards, sector by sector. In a volume
//! that programs whole pages, a log page begins as every page does and holds such sectors one behind the other, each as
//! long as it is.

use core::mem::size_of;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::record::{Cells, Records};
use crate::checksum::checksum;
use crate::{Field, Malformed};

/// Magic of a log sector, "LS" in memory order.
pub const MAGIC: u16 = u16::from_le_bytes(*b"LS");

/// Bytes in front of the records.
pub const HEADER_SIZE: usize = size_of::<SectorHeader>();

/// First bytes of a log sector.
///
/// ```text
/// offset  size  field     meaning
///      0     2  magic     "LS"
///      2     1  flags     0
///      3     1  count     records
///      4     4  node      the node that they change
///      8     8  sequence  of the program, as in every page
///     16     2  size      bytes of the records
///     18     2  reserved  zero
///     20     4  crc       CRC-32C of volume (4), page (4), column (4), the 20 bytes above, and the CRC-32C of the records (4)
///     24        records
/// ```
///
/// So a sector that is read from another place, or was left by another volume, fails its checksum although it spends no
/// bytes on its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SectorHeader {
    magic: U16,
    flags: u8,
    count: u8,
    node: U32,
    sequence: U64,
    size: U16,
    reserved: U16,
    crc: U32,
}

const _: () = assert!(HEADER_SIZE == 24);

/// Where a sector stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Id of the volume.
    pub volume: u32,
    /// Address of the page.
    pub page: u32,
    /// First byte of the sector in the page.
    pub column: u32,
}

/// A log sector that was checked. Made by [`Sector::parse`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sector<'a> {
    /// The node that the records change.
    pub node: u32,
    /// Place in the order of programs.
    pub sequence: u64,
    /// Bytes with header and records.
    pub size: usize,
    records: &'a [u8],
}

impl<'a> Sector<'a> {
    /// Checks the sector at the front of some bytes: magic, size, checksum, then the rest.
    ///
    /// # Errors
    ///
    /// The first check that fails.
    pub fn parse(bytes: &'a [u8], place: Place) -> Result<Sector<'a>, Malformed> {
        let (header, rest) = SectorHeader::ref_from_prefix(bytes).map_err(|_| Malformed::Size)?;
        if header.magic.get() != MAGIC {
            return Err(Malformed::Magic);
        }
        let records = rest.get(..usize::from(header.size.get())).ok_or(Malformed::Size)?;
        if header.crc.get() != crc(&bytes[..HEADER_SIZE - 4], records, place) {
            return Err(Malformed::Checksum);
        }
        if header.flags != 0 || header.reserved.get() != 0 || header.node.get() == 0 {
            return Err(Malformed::Range(Field::Sector));
        }
        let size = HEADER_SIZE + records.len();
        Ok(Sector { node: header.node.get(), sequence: header.sequence.get(), size, records })
    }

    /// Its records.
    pub fn records(&self, cells: Cells) -> Records<'a> {
        Records::new(cells, self.records)
    }

    /// Bytes of the records.
    pub fn payload(&self) -> &'a [u8] {
        self.records
    }
}

/// Writes the header of a sector whose records stand behind it, and returns the bytes of both. A buffer that is too short
/// is a bug.
pub fn seal(bytes: &mut [u8], node: u32, sequence: u64, count: u8, size: usize, place: Place) -> usize {
    assert!(node != 0 && HEADER_SIZE + size <= bytes.len() && size <= usize::from(u16::MAX));
    let mut header = SectorHeader {
        magic: U16::new(MAGIC),
        flags: 0,
        count,
        node: U32::new(node),
        sequence: U64::new(sequence),
        size: U16::new(size as u16),
        reserved: U16::ZERO,
        crc: U32::ZERO,
    };
    let (front, records) = bytes.split_at_mut(HEADER_SIZE);
    header.crc = U32::new(crc(&header.as_bytes()[..HEADER_SIZE - 4], &records[..size], place));
    front.copy_from_slice(header.as_bytes());
    HEADER_SIZE + size
}

fn crc(header: &[u8], records: &[u8], place: Place) -> u32 {
    // The checksum of the records instead of the records: joining the parts would take a copy of all.
    let mut parts = [0; 12 + HEADER_SIZE - 4 + 4];
    for (part, value) in parts.chunks_exact_mut(4).zip([place.volume, place.page, place.column]) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    parts[12..12 + header.len()].copy_from_slice(header);
    parts[12 + header.len()..].copy_from_slice(&checksum(records).to_le_bytes());
    checksum(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inpage::record::Record;

    const PLACE: Place = Place { volume: 1, page: 0x203, column: 64 };
    const CELLS: Cells = Cells::Fixed { key: 2, value: 1 };

    fn sector() -> [u8; 32] {
        let mut bytes = [0xFF; 32];
        let mut size = 0;
        for record in [Record::Put(b"ab", b"x"), Record::Delete(b"cd")] {
            size += record.write(CELLS, &mut bytes[HEADER_SIZE + size..]).unwrap();
        }
        assert_eq!(seal(&mut bytes, 9, 0x0102, 2, size, PLACE), 31);
        bytes
    }

    #[test]
    fn the_bytes_of_a_sector_are_frozen() {
        let bytes = sector();
        assert_eq!(bytes[..20], *b"LS\0\x02\x09\0\0\0\x02\x01\0\0\0\0\0\0\x07\0\0\0");
        assert_eq!(bytes[24..], *b"\x01abx\x02cd\xFF");
        assert_eq!(bytes[20..24], 0x4CDA_9626_u32.to_le_bytes());
        let sector = Sector::parse(&bytes, PLACE).unwrap();
        assert_eq!((sector.node, sector.sequence, sector.size), (9, 0x0102, 31));
        assert_eq!(sector.records(CELLS).count(), 2);
    }

    #[test]
    fn every_flipped_bit_and_every_other_place_is_refused() {
        let good = sector();
        for bit in 0..31 * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Sector::parse(&bad, PLACE).is_err(), "bit {bit}");
        }
        for place in [Place { volume: 2, ..PLACE }, Place { page: 7, ..PLACE }, Place { column: 0, ..PLACE }] {
            assert_eq!(Sector::parse(&good, place), Err(Malformed::Checksum));
        }
        assert_eq!(Sector::parse(&good[..30], PLACE), Err(Malformed::Size));
    }
}
