//! Micron.

use nandu_nand::CopyRule;

use super::COMMON;
use crate::part::{ContinuousRead, IdMethod, Identity, MarkPages, Part, PlaneSelect, PowerUp, SpareRange, Times};
use crate::status::StatusScheme;

const MICRON: Part = Part {
    maker: "Micron",
    spare_size: 128,
    ecc_bits: 8,
    status: StatusScheme::Micron,
    marks: MarkPages::First,
    protected: Some(&[SpareRange { offset: 32, size: 32 }]),
    endurance: 65_000,
    quad_bit: false,
    ..COMMON
};

pub(super) const MT29F1G01ABAFD: Part = Part {
    name: "MT29F1G01ABAFD",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x2c, 0x14] },
    copy: CopyRule::Die,
    times: Times::usual(46, 220, 2_000),
    sources: sources![
        "L: identity, shape, decoding",
        "M, A, U: protected 32..63",
        "R: identity, shape, decoding, protected 32..39",
        "A: mark in the first page, 65,000 erases",
        "E: times, one plane",
    ],
    ..MICRON
};

pub(super) const MT29F2G01ABAGD: Part = Part {
    name: "MT29F2G01ABAGD",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x2c, 0x24] },
    blocks_per_die: 2048,
    plane_count: 2,
    plane_select: PlaneSelect::ColumnBit(12),
    bad_block_max: 40,
    copy: CopyRule::Plane,
    times: Times::usual(55, 220, 2_000),
    sources: sources![
        "L: identity, shape, two planes, decoding",
        "M, A, U: protected 32..63",
        "R: identity, shape, decoding, protected 32..39",
        "A: two planes with a bit in columns, mark in the first page, 65,000 erases",
        "E: plane bit in reads and programs, times",
    ],
    ..MICRON
};

pub(super) const MT29F4G01ABAFD: Part = Part {
    name: "MT29F4G01ABAFD",
    id: Identity { method: IdMethod::Dummy, bytes: &[0x2c, 0x34] },
    page_size: 4096,
    spare_size: 256,
    blocks_per_die: 2048,
    bad_block_max: 40,
    protected: Some(&[SpareRange { offset: 64, size: 64 }]),
    power_up: PowerUp { locked: true, ecc: true, continuous_read: true },
    continuous_read: ContinuousRead::ConfigBitSet(0x01),
    copy: CopyRule::Die,
    times: Times::usual(115, 240, 2_000),
    sources: sources![
        "L: identity, shape, decoding, continuous read by bit 0, on at power-up",
        "M, U: protected 64..127",
        "E: shape, one plane, times",
    ],
    ..MICRON
};
