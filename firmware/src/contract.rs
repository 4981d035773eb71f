//! `nandu-nand`: geometry, pairing, and every operation of the contract.

use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageGroup, Pairing, Partition, Shared};

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

/// Uses the crate as storage code would, and folds what comes out into a number, so that nothing is optimised away.
pub(crate) fn exercise(seed: u32) -> u32 {
    let mut chip = SpiNand::new(ONE_BIT, Pins);
    let work = operations(&mut chip, BlockAddr(seed));
    work.unwrap_or_else(|error| u32::from(error.kind() == NandErrorKind::Bus)) ^ pairing(seed) ^ parts(chip, seed)
}

/// Two partitions of one chip.
fn parts(chip: SpiNand<Pins>, seed: u32) -> u32 {
    let chip = Shared::new(chip);
    let mut bits = 0;
    for first in [seed, 512] {
        let Ok(mut part) = Partition::new(&chip, BlockAddr(first), 512) else { continue };
        bits ^= operations(&mut part, BlockAddr(seed))
            .unwrap_or_else(|error| u32::from(error.kind() == NandErrorKind::Bus));
    }
    bits
}

fn operations<N: Nand>(chip: &mut N, block: BlockAddr) -> Result<u32, N::Error> {
    let geometry = *chip.geometry();
    if geometry.validate().is_err() || !geometry.contains_block(block) {
        return Ok(0);
    }
    let before = chip.attribute(Cause::Format);
    if chip.is_bad(block)? {
        return Ok(1);
    }
    if chip.erase(block, CellMode::Slc).is_err() {
        chip.mark_bad(block)?;
    }
    let mut buffer = [0x5a; 512];
    let mut bits = 0;
    for nth in 0..geometry.pages_in_mode(CellMode::Slc) {
        let Some(index) = geometry.nth_in_mode(CellMode::Slc, nth) else { break };
        let page = geometry.page_at(block, index);
        chip.program(page, 0, &buffer)?;
        bits += u32::from(chip.read(page, 0, &mut buffer)?.corrected_bits());
    }
    chip.attribute(before);
    Ok(bits)
}

fn pairing(seed: u32) -> u32 {
    let schemes = [Pairing::None, Pairing::SchemeA, Pairing::Dist3];
    let scheme = &schemes[seed as usize % schemes.len()];
    let partner = scheme.partner_of(seed, 128).unwrap_or(0);
    scheme.page_of(partner, PageGroup::Msb, 128).unwrap_or(partner)
}
