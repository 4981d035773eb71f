//! GigaDevice.

use nandu_nand::CopyRule;

use super::{COMMON, QUARTERS_4_TO_11, QUARTERS_4_TO_15, TWO_4_TO_11};
use crate::part::{DieSelect, IdMethod, Identity, MarkPages, Part, Times};
use crate::status::StatusScheme;

const GIGADEVICE: Part = Part {
    maker: "GigaDevice",
    spare_size: 128,
    marks: MarkPages::First,
    times: Times::usual(25, 380, 3_200),
    ..COMMON
};

pub(super) const GD5F1GQ4UE: Part = Part {
    name: "GD5F1GQ4UE",
    id: Identity { method: IdMethod::Address, bytes: &[0xc8, 0xd1] },
    ecc_bits: 8,
    status: StatusScheme::GigaDevice8,
    protected: Some(QUARTERS_4_TO_11),
    parameter_row: None,
    sources: sources![
        "L: identity, shape, decoding with F0h",
        "A: protected 4 x 4..11, mark in the first page, 50,000 erases",
        "R: identity, shape, protected 4..11",
        "U: protected 4 x 4..15, of which the smaller is taken; one program for each page; no parameter page",
    ],
    ..GIGADEVICE
};

pub(super) const GD5F1GQ5UE: Part = Part {
    name: "GD5F1GQ5UE",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc8, 0x51] },
    ecc_bits: 4,
    status: StatusScheme::GigaDevice4,
    protected: Some(QUARTERS_4_TO_15),
    copy: CopyRule::Die,
    parameter_row: Some(4),
    sources: sources![
        "L: identity, shape, decoding with F0h, 11 reserved",
        "A: protected 4 x 4..15, mark in the first page, 50,000 erases",
        "U: protected 4 x 4..15; one program for each page; parameter page in row 4, unique identity in row 6",
        "E: copies without a rule of parity, times",
        "R: identity, shape, 4 bits",
    ],
    ..GIGADEVICE
};

pub(super) const GD5F2GQ5UE: Part = Part {
    name: "GD5F2GQ5UE",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc8, 0x52] },
    blocks_per_die: 2048,
    bad_block_max: 40,
    copy: CopyRule::Parity,
    sources: sources![
        "L: identity, shape, 4 bits, decoding with F0h",
        "A: protected 4 x 4..15, mark in the first page, 50,000 erases",
        "U: identity, shape, 4 bits, protected 4 x 4..15; one program for each page; parameter page in row 4",
        "E: 4 bits, copies between blocks of the same parity, times",
        "R: identity, shape, 4 bits",
    ],
    ..GD5F1GQ5UE
};

pub(super) const GD5F4GQ6UE: Part = Part {
    name: "GD5F4GQ6UE",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc8, 0x55] },
    blocks_per_die: 2048,
    die_count: 2,
    die_select: DieSelect::Row,
    bad_block_max: 80,
    copy: CopyRule::Parity,
    protected: Some(TWO_4_TO_11),
    sources: sources![
        "L: identity, two units of 2,048 blocks with 40 bad ones each",
        "E: 4 bits, copies between blocks of the same parity and unit, times",
        "R: protected 4..11 and 20..27",
        "U: shape, 4 bits, one program for each page, parameter page in row 4; protected 4 x 4..15, of which the smaller is taken",
    ],
    ..GD5F1GQ5UE
};

pub(super) const GD5F1GM7UE: Part = Part {
    name: "GD5F1GM7UE",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc8, 0x91] },
    ecc_bits: 8,
    status: StatusScheme::GigaDevice8,
    copy: CopyRule::Die,
    protected: Some(QUARTERS_4_TO_15),
    sources: sources![
        "L: identity, shape, decoding with F0h",
        "E: decoding, copies without a rule of parity, times",
        "R: identity, shape; takes code 11 for reserved, where L, E and U say 8 corrected",
        "U: identity, shape, protected 1..63; parameter page in row 1",
        "A: of the 2 Gbit part: protected 0..63, mark in the first page, 50,000 erases",
    ],
    ..GIGADEVICE
};

pub(super) const GD5F4GM8UE: Part = Part {
    name: "GD5F4GM8UE",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xc8, 0x95] },
    blocks_per_die: 4096,
    bad_block_max: 80,
    ecc_bits: 8,
    status: StatusScheme::GigaDevice8,
    // Copies also stay in one half of the part, and this table has no word for halves that are not dies: so none.
    copy: CopyRule::Never,
    sources: sources![
        "L: identity, shape, decoding with F0h",
        "E: decoding, rule of copies, times",
        "U: identity, shape; parameter page in row 1; protected 1..63, which nobody else says",
    ],
    ..GIGADEVICE
};
