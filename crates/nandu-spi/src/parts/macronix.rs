//! Macronix.

use super::{COMMON, QUARTERS_4_TO_7, QUARTERS_4_TO_15, TWO_4_TO_11};
use crate::part::{ContinuousRead, IdMethod, Identity, Part, Times};
use crate::status::StatusScheme;

const MACRONIX: Part = Part { maker: "Macronix", endurance: 65_000, ..COMMON };

pub(super) const MX35LF1GE4AB: Part = Part {
    name: "MX35LF1GE4AB",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc2, 0x12] },
    ecc_bits: 4,
    status: StatusScheme::Macronix4,
    protected: Some(QUARTERS_4_TO_15),
    sources: sources![
        "L: identity, shape, count by 7Ch",
        "A: protected 4 x 4..15 (it uses 4 x 4..7 for the sake of old volumes), marks in the first two pages, 65,000 erases",
        "U: identity, shape, count by 7Ch, protected 4 x 4..15, marks in the first two pages",
        "R: code 11 is reserved",
    ],
    ..MACRONIX
};

pub(super) const MX35LF2GE4AD: Part = Part {
    name: "MX35LF2GE4AD",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc2, 0x26, 0x03] },
    blocks_per_die: 2048,
    bad_block_max: 40,
    ecc_bits: 8,
    status: StatusScheme::Macronix8,
    protected: Some(QUARTERS_4_TO_7),
    continuous_read: ContinuousRead::ConfigBitSet(0x04),
    times: Times::usual(10, 400, 6_000),
    sources: sources![
        "L: identity, shape, count by 7Ch, continuous read by bit 2; refuses code 11",
        "E, R: code 11 is corrected",
        "E: times",
        "A: protected 4 x 4..7, marks in the first two pages, 65,000 erases",
        "U: marks in the first two pages; 128 spare bytes and protected 4 x 4..15, of which the smaller are taken",
    ],
    ..MACRONIX
};

pub(super) const MX35LF4GE4AD: Part = Part {
    name: "MX35LF4GE4AD",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc2, 0x37, 0x03] },
    page_size: 4096,
    spare_size: 128,
    blocks_per_die: 2048,
    bad_block_max: 40,
    ecc_bits: 8,
    status: StatusScheme::Macronix8,
    continuous_read: ContinuousRead::ConfigBitSet(0x04),
    times: Times::usual(12, 440, 6_000),
    protected: Some(TWO_4_TO_11),
    sources: sources![
        "L: identity, shape, count by 7Ch, continuous read by bit 2; refuses code 11",
        "E, R: code 11 is corrected",
        "E: times",
        "R: protected 4..11 and 20..27",
        "U: marks in the first two pages; 256 spare bytes and protected 8 x 4..15, of which the smaller are taken",
    ],
    ..MACRONIX
};
