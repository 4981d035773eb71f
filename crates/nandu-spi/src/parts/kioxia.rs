//! Kioxia, which was Toshiba.

use super::COMMON;
use crate::part::{IdMethod, Identity, Part, SpareRange};
use crate::status::StatusScheme;

const KIOXIA: Part = Part { maker: "Kioxia", ecc_bits: 8, status: StatusScheme::Count30, ..COMMON };

pub(super) const TC58CVG0S3HRAIJ: Part = Part {
    name: "TC58CVG0S3HRAIJ",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x98, 0xe2] },
    spare_size: 128,
    protected: Some(&[SpareRange { offset: 4, size: 8 }]),
    sources: sources![
        "L: identity, shape, count in 30h, four lanes by bit 0",
        "U: identity, shape, four lanes by bit 0; protected 2..63, of which the smaller is taken",
        "R: identity, shape, protected 4..11",
    ],
    ..KIOXIA
};

pub(super) const TC58CVG2S0HRAIJ: Part = Part {
    name: "TC58CVG2S0HRAIJ",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x98, 0xed] },
    page_size: 4096,
    spare_size: 256,
    blocks_per_die: 2048,
    bad_block_max: 40,
    protected: Some(&[SpareRange { offset: 4, size: 16 }]),
    sources: sources![
        "L: identity, shape, count in 30h, four lanes by bit 0",
        "U: identity, shape, four lanes by bit 0; protected 2..127, of which the smaller is taken",
        "R: identity, shape, protected 4..19",
    ],
    ..KIOXIA
};
