//! The checksum of pages: CRC-32C, the Castagnoli polynomial.

/// The CRC-32C of some bytes, by the instructions that the machine has for it.
#[cfg(feature = "fast-crc")]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The CRC-32C of some bytes.
#[cfg(not(feature = "fast-crc"))]
pub fn checksum(bytes: &[u8]) -> u32 {
    by_table(bytes)
}

#[cfg(any(test, not(feature = "fast-crc")))]
fn by_table(bytes: &[u8]) -> u32 {
    static CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    CRC.checksum(bytes)
}

#[cfg(test)]
mod tests {
    use super::{by_table, checksum};

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn the_table_of_a_microcontroller_and_the_instructions_of_a_host_agree() {
        let page: [u8; 4096] = core::array::from_fn(|place| (place * place / 8) as u8);
        for start in 0..17 {
            for end in (start..page.len()).step_by(37) {
                assert_eq!(checksum(&page[start..end]), by_table(&page[start..end]), "bytes {start} to {end}");
            }
        }
    }
}
