//! FORMAT: Block table

/// Bytes of a block's record.
pub const RECORD_SIZE: usize = 4;

/// Highest erase count that can be recorded, more than twice what any part is rated for; a block that reaches it stays there.
pub const ERASE_COUNT_MAX: u32 = (1 << 18) - 1;

/// Scale of recorded live counts.
pub const LIVE_MAX: u8 = u8::MAX;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockState {
    /// Holds nothing that is needed; to be erased before it is used, also where the checkpoint's ready list names it.
    Free = 0,
    /// Erased, and known to be so: it is in the checkpoint's ready list.
    Ready = 1,
    /// Being programmed.
    Open = 2,
    /// Programmed, and to be programmed no further before its next erase.
    Full = 3,
    /// Was open at a power cut or an unexplained failure: as [`BlockState::Full`], and emptied before others.
    Suspect = 4,
    /// A program failed in it: emptied, then retired.
    Failing = 5,
    /// Out of use for good.
    Bad = 6,
    /// Holds anchors.
    Anchor = 7,
}

impl BlockState {
    /// The state with a number of three bits.
    const fn from_bits(bits: u32) -> BlockState {
        match bits & 7 {
            0 => BlockState::Free,
            1 => BlockState::Ready,
            2 => BlockState::Open,
            3 => BlockState::Full,
            4 => BlockState::Suspect,
            5 => BlockState::Failing,
            6 => BlockState::Bad,
            _ => BlockState::Anchor,
        }
    }
}

/// What a checkpoint remembers of a block.
///
/// A block table page holds, behind its page header, the records of consecutive blocks, as many as fit; the rest of the
/// page is zero. A table that fits behind the fields of the anchor stands there instead.
///
/// ```text
///  bits   field        meaning
///  0..18  erase_count  erases so far; stays at its highest value
///     18  mlc          1: two bits a cell, in a volume with streams that use them; only in raw blocks, and in ready ones
///                      that were erased for such a stream
///     19  raw          1: holds pages without header; only in open, full, suspect and failing blocks
/// 20..23  state        0 free, 1 ready, 2 open, 3 full, 4 suspect, 5 failing, 6 bad, 7 anchor
///     23  inexact      1: fewer pages may be needed than `live` says, even when the volume was unmounted
/// 24..32  live         upper bound of the pages that are needed, in 255ths of the pages in a block, rounded up
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// Erases so far, at most [`ERASE_COUNT_MAX`].
    pub erase_count: u32,
    /// What the block is used for.
    pub state: BlockState,
    /// Upper bound of the pages that are needed, in 255ths of a block; see [`scale_live`].
    pub live: u8,
    /// Whether fewer pages may be needed than `live` says.
    pub is_inexact: bool,
    /// Whether the block belongs to a stream of pages without header.
    pub is_raw: bool,
    /// Whether the block was erased for a stream with two bits a cell.
    pub is_mlc: bool,
}

impl BlockRecord {
    /// The bytes on flash.
    pub const fn to_bytes(self) -> [u8; RECORD_SIZE] {
        let erase_count = if self.erase_count > ERASE_COUNT_MAX { ERASE_COUNT_MAX } else { self.erase_count };
        let flags = (self.is_mlc as u32) << 18 | (self.is_raw as u32) << 19 | (self.is_inexact as u32) << 23;
        (erase_count | flags | (self.state as u32) << 20 | (self.live as u32) << 24).to_le_bytes()
    }

    /// Reads a record. Every four bytes are one; whether records agree with each other is the log's to check.
    pub const fn from_bytes(bytes: [u8; RECORD_SIZE]) -> BlockRecord {
        let word = u32::from_le_bytes(bytes);
        BlockRecord {
            erase_count: word & ERASE_COUNT_MAX,
            state: BlockState::from_bits(word >> 20),
            live: (word >> 24) as u8,
            is_inexact: word >> 23 & 1 == 1,
            is_raw: word >> 19 & 1 == 1,
            is_mlc: word >> 18 & 1 == 1,
        }
    }
}

/// Live pages as they are recorded. Never less than they are, and zero only for zero.
pub const fn scale_live(live: u16, pages_per_block: u16) -> u8 {
    if pages_per_block == 0 || live >= pages_per_block {
        return LIVE_MAX;
    }
    (live as u32 * LIVE_MAX as u32).div_ceil(pages_per_block as u32) as u8
}

/// Live pages from their record: an upper bound.
pub const fn unscale_live(live: u8, pages_per_block: u16) -> u16 {
    (live as u32 * pages_per_block as u32 / LIVE_MAX as u32) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_record_are_frozen() {
        let record = BlockRecord {
            erase_count: 0x1_2345,
            state: BlockState::Failing,
            live: 200,
            is_inexact: false,
            is_raw: false,
            is_mlc: false,
        };
        assert_eq!(record.to_bytes(), [0x45, 0x23, 0x51, 200]);
        assert_eq!(BlockRecord { is_inexact: true, ..record }.to_bytes(), [0x45, 0x23, 0xd1, 200]);
        assert_eq!(BlockRecord { is_raw: true, ..record }.to_bytes(), [0x45, 0x23, 0x59, 200]);
        assert_eq!(BlockRecord { is_mlc: true, ..record }.to_bytes(), [0x45, 0x23, 0x55, 200]);
        let worn = BlockRecord { erase_count: u32::MAX, state: BlockState::Free, live: 0, ..record };
        assert_eq!(worn.to_bytes(), [0xff, 0xff, 0x03, 0]);
    }

    #[test]
    fn every_state_survives_the_flash() {
        for bits in 0..8 {
            for flags in 0..8 {
                let state = BlockState::from_bits(bits);
                let (is_inexact, is_raw, is_mlc) = (flags & 1 == 1, flags & 2 == 2, flags & 4 == 4);
                let record = BlockRecord { erase_count: 7, state, live: 3, is_inexact, is_raw, is_mlc };
                assert_eq!(record.state as u32, bits);
                assert_eq!(BlockRecord::from_bytes(record.to_bytes()), record);
            }
        }
    }

    #[test]
    fn recorded_live_counts_are_upper_bounds_and_exact_in_small_blocks() {
        for pages in [1, 4, 8, 64, 128, 255, 256, 1000, 4096] {
            for live in 0..=pages {
                let back = unscale_live(scale_live(live, pages), pages);
                assert!(back >= live && (back == 0) == (live == 0), "{live} of {pages} gives {back}");
                assert!(pages > 255 || back == live, "{live} of {pages} gives {back}");
            }
        }
    }
}
