//! `nandu-spi`: a part found by its identity, and what it says of a read.

use nandu_spi::{EccOutcome, PARTS, Part};

/// Uses the crate as a driver does, and folds what comes out into a number, so that nothing is optimised away.
pub(crate) fn exercise(seed: u32) -> u32 {
    let [first, second, third, fourth] = seed.to_be_bytes();
    let Some(part) = Part::identify(&[first, second, third, fourth, 0], PARTS) else { return 0 };
    match part.status.decode(first, second, part.ecc_bits) {
        EccOutcome::Clean => part.block_count(),
        EccOutcome::Corrected { max, .. } => u32::from(max),
        EccOutcome::Uncorrectable => part.tag_size(),
    }
}
