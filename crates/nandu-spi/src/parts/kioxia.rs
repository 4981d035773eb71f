//! Kioxia, which was Toshiba.

use super::COMMON;
use crate::part::{IdMethod, Identity, Part};
use crate::status::StatusScheme;

const KIOXIA: Part = Part { maker: "Kioxia", ecc_bits: 8, status: StatusScheme::Count30, ..COMMON };

pub(super) const TC58CVG0S3HRAIJ: Part = Part {
    name: "TC58CVG0S3HRAIJ",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x98, 0xe2] },
    spare_size: 128,
    sources: &["L: identity, shape, count in 30h, four lanes by bit 0"],
    ..KIOXIA
};

pub(super) const TC58CVG2S0HRAIJ: Part = Part {
    name: "TC58CVG2S0HRAIJ",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x98, 0xed] },
    page_size: 4096,
    spare_size: 256,
    blocks_per_die: 2048,
    bad_block_max: 40,
    sources: &["L: identity, shape, count in 30h, four lanes by bit 0"],
    ..KIOXIA
};
