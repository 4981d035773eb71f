//! Checksums: XXH32 of pages with a header, CRC-32C elsewhere.
//!
//! Both find every change of one word. XXH32 (Yann Collet) needs no tables and five instructions for four bytes on a Cortex-M4, where CRC-32C
//! needs 4 KiB of tables and fourteen. What a CRC promises beyond that, three wrong bits anywhere, is the work of the chip's error
//! correction: what passes it wrongly is wrong in many bits.

/// The checksum in the header of a page: the XXH32 of all bytes behind it, with seed 0.
pub fn page_checksum(bytes: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, bytes)
}

/// The CRC-32C of some bytes, by the instructions that the machine has for it.
#[cfg(feature = "std")]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The CRC-32C of some bytes, sixteen of them a step, by 16 KiB of tables.
#[cfg(all(feature = "fast-crc", not(feature = "std")))]
pub fn checksum(bytes: &[u8]) -> u32 {
    static CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    CRC.checksum(bytes)
}

/// The CRC-32C of some bytes, four of them a step, by 4 KiB of tables.
#[cfg(not(any(feature = "fast-crc", feature = "std")))]
pub fn checksum(bytes: &[u8]) -> u32 {
    by_four(bytes)
}

#[cfg(any(test, not(any(feature = "fast-crc", feature = "std"))))]
use tables::by_four;

#[cfg(any(test, not(any(feature = "fast-crc", feature = "std"))))]
mod tables {
    /// What a byte adds to the checksum when so many bytes follow it in its step (slicing by four, of Kounavis and Berry). Each table
    /// is a symbol of its own, so that a register holds where it begins.
    static BEHIND_0: [u32; 256] = table(0);
    static BEHIND_1: [u32; 256] = table(1);
    static BEHIND_2: [u32; 256] = table(2);
    static BEHIND_3: [u32; 256] = table(3);

    const fn table(behind: u32) -> [u32; 256] {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < table.len() {
            let mut sum = byte as u32;
            let mut bit = 0;
            while bit < 8 * (behind + 1) {
                sum = if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ 0x82f6_3b78 };
                bit += 1;
            }
            table[byte] = sum;
            byte += 1;
        }
        table
    }

    pub(super) fn by_four(bytes: &[u8]) -> u32 {
        let entry = |table: &[u32; 256], sum: u32| table[(sum & 0xff) as usize];
        let step = |sum: u32, bytes: [u8; 4]| {
            let sum = sum ^ u32::from_le_bytes(bytes);
            entry(&BEHIND_3, sum)
                ^ entry(&BEHIND_2, sum >> 8)
                ^ entry(&BEHIND_1, sum >> 16)
                ^ entry(&BEHIND_0, sum >> 24)
        };
        // Four steps a turn, since a turn costs a fifth of a step.
        let (turns, rest) = bytes.as_chunks::<16>();
        let sum = turns.iter().fold(!0, |sum, turn| {
            let word = |at: usize| [turn[at], turn[at + 1], turn[at + 2], turn[at + 3]];
            step(step(step(step(sum, word(0)), word(4)), word(8)), word(12))
        });
        !rest.iter().fold(sum, |sum, &byte| sum >> 8 ^ entry(&BEHIND_0, sum ^ u32::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use crc::{CRC_32_ISCSI, Crc, Table};

    use super::{by_four, checksum, page_checksum};

    /// The values that the algorithm's specification gives.
    #[test]
    fn the_checksum_of_a_page_is_xxh32() {
        assert_eq!(page_checksum(b""), 0x02cc_5d05);
        assert_eq!(page_checksum(b"abc"), 0x32d1_53ff);
        assert_eq!(page_checksum(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        for sum in [checksum, by_four] {
            assert_eq!(sum(b"123456789"), 0xe306_9283);
            assert_eq!(sum(&[0; 32]), 0x8a91_36aa);
        }
    }

    /// A volume written on a host is read on a microcontroller, whichever features either was built with.
    #[test]
    fn the_tables_of_a_microcontroller_and_the_instructions_of_a_host_agree() {
        static LARGE: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
        let page: [u8; 4096] = core::array::from_fn(|place| (place * place / 8) as u8);
        for start in 0..17 {
            for end in (start..page.len()).step_by(37) {
                let bytes = &page[start..end];
                let expected = by_four(bytes);
                assert_eq!(checksum(bytes), expected, "bytes {start} to {end}");
                assert_eq!(LARGE.checksum(bytes), expected, "bytes {start} to {end} by sixteen tables");
            }
        }
    }
}
