//! The checksum of pages: CRC-32C, the Castagnoli polynomial.

use crc::{CRC_32_ISCSI, Crc};

#[cfg(feature = "fast-crc")]
type Tables = crc::Table<16>;
#[cfg(not(feature = "fast-crc"))]
type Tables = crc::Table<1>;

static CRC: Crc<u32, Tables> = Crc::<u32, Tables>::new(&CRC_32_ISCSI);

/// The CRC-32C of some bytes.
pub fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(super::checksum(b"123456789"), 0xe306_9283);
        assert_eq!(super::checksum(&[0; 32]), 0x8a91_36aa);
    }
}
