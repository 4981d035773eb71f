//! Chips to test on.

use nandu_nand::{Ecc, Geometry};
use nandu_sim::Chip;

/// The smallest pages that file systems of any kind go on, in a chip of 384 KiB.
pub const SMALL: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 512,
        program_unit: 512,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.with_blocks(96).geometry
    },
    ..Chip::TINY
};

/// Sizes of pages that tests go through.
pub const PAGE_SIZES: [u32; 5] = [512, 2048, 4096, 8192, 16_384];

/// A chip with pages of this size, and so many blocks of 8 of them.
pub const fn sized(page_size: u32, blocks: u32) -> Chip {
    let ecc = Ecc { codeword_size: 512, correctable_bits: 4 };
    let geometry = Geometry { page_size, program_unit: page_size, ecc, ..SMALL.geometry };
    Chip { name: "sized", geometry, ..SMALL }.with_blocks(blocks)
}
