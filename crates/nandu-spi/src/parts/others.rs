//! ESMT, Longsys (Foresee), XTX and Dosilicon.

use super::{COMMON, QUARTERS_4_TO_7, QUARTERS_4_TO_15};
use crate::part::{IdMethod, Identity, MarkPages, Part, SpareRange};
use crate::status::StatusScheme;

pub(super) const F50L1G41LB: Part = Part {
    name: "F50L1G41LB",
    maker: "ESMT",
    id: Identity { method: IdMethod::Address, bytes: &[0xc8, 0x01, 0x7f, 0x7f, 0x7f] },
    protected: Some(QUARTERS_4_TO_7),
    endurance: 65_000,
    quad_bit: false,
    sources: sources![
        "L: identity, shape, protected 4 x 4..7",
        "A: decoding, protected 4 x 4..7, marks in the first two pages, 65,000 erases",
        "U: identity, shape, decoding, protected 4 x 4..7, marks in the first two pages",
        "R: identity, shape, decoding, protected 20..23 and 36..39",
    ],
    ..COMMON
};

pub(super) const F35SQA001G: Part = Part {
    name: "F35SQA001G",
    maker: "Longsys",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xcd, 0x71, 0x71] },
    protected: Some(QUARTERS_4_TO_15),
    sources: sources![
        "L: identity, shape, decoding",
        "A: decoding, protected 0..63, 50,000 erases",
        "R: identity, shape, decoding",
        "U: identity, shape, protected 1..63, marks in the first two pages, where A says in the first",
    ],
    ..COMMON
};

pub(super) const XT26G01A: Part = Part {
    name: "XT26G01A",
    maker: "XTX",
    id: Identity { method: IdMethod::Address, bytes: &[0x0b, 0xe1] },
    ecc_bits: 8,
    status: StatusScheme::XtxA,
    marks: MarkPages::First,
    protected: Some(&[SpareRange { offset: 8, size: 16 }]),
    parameter_row: None,
    sources: sources![
        "L: identity, shape, decoding",
        "A: protected 8..23, mark in the first page, 50,000 erases",
        "R: identity, shape, protected 8..15",
        "U: identity, shape, decoding, one program for each page, no parameter page; protected 8..47, of which the smaller is taken",
    ],
    ..COMMON
};

pub(super) const XT26G01D: Part = Part {
    name: "XT26G01D",
    maker: "XTX",
    id: Identity { method: IdMethod::Address, bytes: &[0x0b, 0x31] },
    spare_size: 128,
    ecc_bits: 8,
    status: StatusScheme::XtxD,
    sources: sources![
        "L: identity, shape, decoding",
        "E: decoding (of the 8 Gbit part)",
        "U: decoding, four lanes by bit 0 (of the 1.8 V part), which L does not say",
    ],
    ..COMMON
};

/// All that its sources say of code 01 is that the page should move, so it counts as 1 to 4 corrected bits.
pub(super) const DS35Q1GA: Part = Part {
    name: "DS35Q1GA",
    maker: "Dosilicon",
    id: Identity { method: IdMethod::Dummy, bytes: &[0xe5, 0x71] },
    ecc_bits: 4,
    protected: Some(QUARTERS_4_TO_7),
    endurance: 65_000,
    sources: sources![
        "L: identity, shape, 4 bits",
        "A: decoding, protected 4 x 4..7, marks in the first two pages, 65,000 erases",
        "R: identity, shape, decoding, 4 bits",
        "U: shape, protected 4 x 4..7; says 1 bit and another maker's byte",
    ],
    ..COMMON
};
