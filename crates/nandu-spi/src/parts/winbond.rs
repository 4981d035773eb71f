//! Winbond.

use nandu_nand::CopyRule;

use super::{COMMON, QUARTERS_4_TO_7, QUARTERS_4_TO_15};
use crate::part::{ContinuousRead, DieSelect, IdMethod, Identity, MarkPages, Part, PowerUp, Times};
use crate::status::StatusScheme;

/// Parts of one version, suffix T, wake up in continuous read, which the identity does not tell.
const WINBOND: Part = Part {
    maker: "Winbond",
    marks: MarkPages::First,
    endurance: 65_000,
    power_up: PowerUp { locked: true, ecc: true, continuous_read: true },
    continuous_read: ContinuousRead::BufferBitClear,
    quad_bit: false,
    times: Times::usual(10, 320, 2_500),
    ..COMMON
};

pub(super) const W25N512GV: Part = Part {
    name: "W25N512GV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xaa, 0x20] },
    blocks_per_die: 512,
    bad_block_max: 10,
    protected: Some(QUARTERS_4_TO_7),
    sources: sources![
        "E: identity, decoding, times",
        "U: identity, shape, protected 4 x 4..7",
        "R: identity, shape, decoding, protected 3 x 4..7",
        "L: the GW, BAh 20h, has the same shape, 10 bad blocks and parity where W25N01GV has it",
    ],
    ..WINBOND
};

pub(super) const W25N01GV: Part = Part {
    name: "W25N01GV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xaa, 0x21] },
    protected: Some(QUARTERS_4_TO_7),
    programs_per_page: 4,
    copy: CopyRule::Die,
    sources: sources![
        "L: identity, shape, bad blocks",
        "E: decoding (01 one bit, 10 and 11 uncorrectable), times, BUF",
        "A: protected 4 x 4..7, mark in the first page, 65,000 erases",
        "D, U: protected 4 x 4..7",
        "U: four programs for each page",
        "R: identity, shape, decoding, protected 3 x 4..7",
        "S: parameter page in row 1, unique identity in row 0; a load is taken with write enable only",
        "U: a part with this identity may call itself W25N01KV on its parameter page",
    ],
    ..WINBOND
};

pub(super) const W25N01JW: Part = Part {
    name: "W25N01JW",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xbc, 0x21] },
    quad_bit: true,
    sources: sources![
        "L: identity, shape, four lanes by bit 0",
        "E: decoding, times",
        "U: identity, shape; protected 4 x 8..11, which nobody else says",
    ],
    ..WINBOND
};

/// Two dies of W25N01GV.
pub(super) const W25M02GV: Part = Part {
    name: "W25M02GV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xab, 0x21] },
    die_count: 2,
    die_select: DieSelect::Command,
    bad_block_max: 40,
    protected: Some(QUARTERS_4_TO_7),
    sources: sources![
        "L: identity, shape, 20 bad blocks in a die, die by C2h",
        "U: identity, shape, die by C2h, protected 4 x 4..7",
        "A: 65,000 erases; protected 4 x 4..15, of which the smaller is taken; knows one die only",
    ],
    ..WINBOND
};

pub(super) const W25N01KV: Part = Part {
    name: "W25N01KV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xae, 0x21] },
    spare_size: 96,
    ecc_bits: 4,
    status: StatusScheme::Count30,
    sources: sources!["L: identity, shape, count in 30h", "U: the same; protected 4 x 4..15, which nobody else says"],
    ..WINBOND
};

pub(super) const W25N02KV: Part = Part {
    name: "W25N02KV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xaa, 0x22] },
    spare_size: 128,
    blocks_per_die: 2048,
    ecc_bits: 8,
    status: StatusScheme::Count30,
    bad_block_max: 40,
    protected: Some(QUARTERS_4_TO_15),
    sources: sources![
        "L: identity, shape, count in 30h",
        "E: the same, times",
        "A: protected 4 x 4..15, mark in the first page, 65,000 erases",
        "U: identity, shape, protected 4 x 4..15",
    ],
    ..WINBOND
};

pub(super) const W25N04KV: Part = Part {
    name: "W25N04KV",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xaa, 0x23] },
    spare_size: 128,
    blocks_per_die: 4096,
    plane_count: 2,
    ecc_bits: 8,
    status: StatusScheme::Count30,
    bad_block_max: 40,
    // Copies stay in a plane, and nobody says which block is in which: so none.
    copy: CopyRule::Never,
    protected: Some(QUARTERS_4_TO_7),
    sources: sources![
        "L: identity, shape, two planes",
        "E: decoding, times, no plane bit in columns, no copy from plane to plane",
        "R: protected 4 x 4..7",
        "U: identity, shape; protected 4 x 4..15, of which the smaller is taken",
    ],
    ..WINBOND
};
