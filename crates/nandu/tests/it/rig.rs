//! What the tests of stores stand on.

use nandu::nand::{Ecc, Geometry};
use nandu_sim::Chip;

/// Pages of 1 KiB, so that a head names many pages beside long keys.
pub(crate) const SMALL: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 1024,
        spare_size: 32,
        program_unit: 1024,
        ecc: Ecc { codeword_size: 1024, correctable_bits: 4 },
        ..Chip::TINY.geometry
    },
    ..Chip::TINY
};
