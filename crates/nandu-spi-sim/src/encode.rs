//! What error correction found, as each part writes it into its registers.
//!
//! This is written from the parts' descriptions and not from the driver's decoder, so that a fault in either shows.

use nandu_spi::StatusScheme;

/// What error correction made of the page in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing to correct, or nothing was read yet.
    #[default]
    Clean,
    /// So many bits of the worst codeword were corrected.
    Corrected(u8),
    /// More than can be corrected.
    Uncorrectable,
}

/// The bits of error correction in the register of status, and the byte that some parts have besides: register 30h, register F0h or what
/// command 7Ch answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) status: u8,
    pub(crate) more: u8,
}

/// A part with a second "corrected" code uses it for counts above three quarters of what it corrects.
const fn is_many(bits: u8, strength: u8) -> bool {
    bits as u32 * 4 > strength as u32 * 3
}

/// How a part with this scheme, which corrects so many bits, says what it found.
pub(crate) const fn encode(scheme: StatusScheme, strength: u8, found: Found) -> Code {
    let bits = match found {
        Found::Clean => return Code { status: 0, more: 0 },
        Found::Uncorrectable => {
            let status = match scheme {
                // 010 in bits 6 to 4 and 10 in bits 5 and 4 are the same byte; the other has four bits from bit 2 on.
                StatusScheme::XtxA => 0b1000 << 2,
                _ => 0b10 << 4,
            };
            let more = match scheme {
                StatusScheme::Macronix4 | StatusScheme::Macronix8 => 0x0F,
                StatusScheme::Count30 => 0xF0,
                _ => 0,
            };
            return Code { status, more };
        }
        Found::Corrected(bits) => bits,
    };
    let (code, more) = match scheme {
        StatusScheme::TwoBit => (1, 0),
        StatusScheme::Count30 => (if is_many(bits, strength) { 3 } else { 1 }, bits << 4),
        StatusScheme::GigaDevice8 => match bits {
            0..=4 => (1, 0),
            5..=7 => (1, (bits - 4) << 4),
            _ => (3, 0),
        },
        StatusScheme::GigaDevice4 => (1, (bits - 1) << 4),
        StatusScheme::Micron => match bits {
            0..=3 => (1, 0),
            4..=6 => (3, 0),
            _ => (5, 0),
        },
        StatusScheme::Macronix4 => (1, bits),
        StatusScheme::Macronix8 => (if is_many(bits, strength) { 3 } else { 1 }, bits),
        StatusScheme::XtxA => return Code { status: if bits < 8 { bits << 2 } else { 0b1100 << 2 }, more: 0 },
        StatusScheme::XtxD => match bits {
            0..=4 => (1, 0),
            5..=7 => return Code { status: (bits - 4) << 6 | 1 << 4, more: 0 },
            _ => (3, 0),
        },
    };
    Code { status: code << 4, more }
}

#[cfg(test)]
mod tests {
    use nandu_spi::{EccOutcome, PARTS};

    use super::*;

    #[test]
    fn every_part_says_what_it_found_so_that_the_decoder_understands() {
        for part in PARTS {
            let read = |found| {
                let code = encode(part.status, part.ecc_bits, found);
                // Register or command, a byte that was not asked for is not looked at.
                let more = if part.status.more(code.status).is_some() { code.more } else { 0 };
                part.status.decode(code.status, more, part.ecc_bits)
            };
            assert_eq!(read(Found::Clean), EccOutcome::Clean, "{}", part.name);
            assert_eq!(read(Found::Uncorrectable), EccOutcome::Uncorrectable, "{}", part.name);
            for bits in 1..=part.ecc_bits {
                let outcome = read(Found::Corrected(bits));
                let EccOutcome::Corrected { min, max } = outcome else { panic!("{}: {bits}: {outcome:?}", part.name) };
                assert!((min..=max).contains(&bits) && max <= part.ecc_bits, "{}: {bits}: {outcome:?}", part.name);
            }
        }
    }
}
