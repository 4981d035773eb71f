//! The checksum of pages: CRC-32C, the Castagnoli polynomial.

/// Sixteen bytes a step, by 16 KiB of tables.
#[cfg(all(feature = "fast-crc", not(feature = "std")))]
type Tables = crc::Table<16>;
/// A byte a step, by 1 KiB of tables.
#[cfg(all(not(feature = "fast-crc"), not(feature = "std")))]
type Tables = crc::Table<1>;

/// The CRC-32C of some bytes, by the instructions that the machine has for it.
#[cfg(feature = "std")]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The CRC-32C of some bytes.
#[cfg(not(feature = "std"))]
pub fn checksum(bytes: &[u8]) -> u32 {
    static CRC: crc::Crc<u32, Tables> = crc::Crc::<u32, Tables>::new(&crc::CRC_32_ISCSI);
    CRC.checksum(bytes)
}

#[cfg(test)]
mod tests {
    use crc::{CRC_32_ISCSI, Crc, Table};

    use super::checksum;

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
    }

    /// A volume written on a host is read on a microcontroller, whichever features either was built with.
    #[test]
    fn the_tables_of_a_microcontroller_and_the_instructions_of_a_host_agree() {
        static SMALL: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
        static LARGE: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
        let page: [u8; 4096] = core::array::from_fn(|place| (place * place / 8) as u8);
        for start in 0..17 {
            for end in (start..page.len()).step_by(37) {
                let bytes = &page[start..end];
                let expected = SMALL.checksum(bytes);
                assert_eq!(checksum(bytes), expected, "bytes {start} to {end}");
                assert_eq!(LARGE.checksum(bytes), expected, "bytes {start} to {end} by sixteen tables");
            }
        }
    }
}
