//! How a part says what error correction made of a page.

use crate::command;

/// How the status after a page read is decoded.
///
/// Bits are numbered from 0. "Status" is register C0h, read when the part is no longer busy. A code that the part's sources call
/// reserved counts as uncorrectable: no data are taken for right on the word of a code that nobody explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusScheme {
    /// Bits 5 and 4: 00 clean; 01 corrected, as many bits as the part can at most; 10 and 11 uncorrectable. On parts that correct a
    /// single bit, 01 is exactly one. Winbond's 1-bit parts say 11 for several bad pages of a continuous read.
    TwoBit,
    /// Bits 5 and 4: 00 clean; 01 and 11 corrected, with the count of the worst codeword in bits 7 to 4 of register 30h; 10
    /// uncorrectable. Winbond's KV parts and Kioxia.
    Count30,
    /// Bits 5 and 4: 00 clean; 01 corrected, 1 to 4, 5, 6 or 7 by bits 5 and 4 of register F0h; 11 corrected, 8; 10 uncorrectable.
    /// GigaDevice's parts that correct 8 bits.
    GigaDevice8,
    /// Bits 5 and 4: 00 clean; 01 corrected, 1, 2, 3 or 4 by bits 5 and 4 of register F0h; 10 uncorrectable, 11 reserved.
    /// GigaDevice's parts that correct 4 bits.
    GigaDevice4,
    /// Bits 6 to 4: 000 clean; 001 corrected, 1 to 3; 011 corrected, 4 to 6; 101 corrected, 7 or 8; 010 uncorrectable, the rest
    /// reserved. Micron.
    Micron,
    /// Bits 5 and 4: 00 clean; 01 corrected, with the count in bits 3 to 0 of what command 7Ch answers; 10 uncorrectable, 11 reserved.
    /// Macronix's parts that correct 4 bits.
    Macronix4,
    /// As [`Macronix4`](StatusScheme::Macronix4), but 11 is corrected too, at or above a threshold. Macronix's parts that correct 8 bits.
    Macronix8,
    /// Bits 5 to 2: 0000 clean; 0001 to 0111 corrected, as many; 1100 corrected, 8; 1000 uncorrectable, the rest reserved. XTX's parts
    /// with suffix A.
    XtxA,
    /// Bits 5 and 4: 00 clean; 01 corrected, 1 to 4, 5, 6 or 7 by bits 7 and 6; 11 corrected, 8; 10 uncorrectable. XTX's parts with
    /// suffix D.
    XtxD,
}

/// What has to be read besides the status before an outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoreStatus {
    /// The register with this address.
    Feature(u8),
    /// What command [`READ_ECC_STATUS`](command::READ_ECC_STATUS) answers.
    EccStatus,
}

/// What error correction made of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EccOutcome {
    /// Nothing had to be corrected.
    Clean,
    /// Bits were corrected. The worst codeword had at least `min` and at most `max`: parts that count are exact, others name a range.
    /// Who has to decide whether the page moves takes `max`.
    Corrected {
        /// At least so many.
        min: u8,
        /// At most so many.
        max: u8,
    },
    /// More bits had flipped than can be corrected.
    Uncorrectable,
}

impl EccOutcome {
    const fn exact(bits: u8) -> EccOutcome {
        EccOutcome::Corrected { min: bits, max: bits }
    }

    /// The count that a part gives with a status that says "corrected"; a count that cannot be is read as the most there can be.
    const fn counted(count: u8, strength: u8) -> EccOutcome {
        if count == 0 || count > strength {
            EccOutcome::Corrected { min: 1, max: strength }
        } else {
            EccOutcome::exact(count)
        }
    }

    /// For a part with one code for 1 to 4 bits and one each for 5, 6 and 7.
    const fn from_four(step: u8) -> EccOutcome {
        if step == 0 { EccOutcome::Corrected { min: 1, max: 4 } } else { EccOutcome::exact(4 + step) }
    }
}

impl StatusScheme {
    /// What else has to be read after this status; `None` where the status says all.
    pub const fn more(self, status: u8) -> Option<MoreStatus> {
        let is_corrected = matches!(status >> 4 & 3, 1 | 3);
        match self {
            StatusScheme::Count30 if is_corrected => Some(MoreStatus::Feature(command::REGISTER_ECC_COUNT)),
            StatusScheme::GigaDevice8 | StatusScheme::GigaDevice4 if status >> 4 & 3 == 1 => {
                Some(MoreStatus::Feature(command::REGISTER_STATUS_2))
            }
            StatusScheme::Macronix4 if status >> 4 & 3 == 1 => Some(MoreStatus::EccStatus),
            StatusScheme::Macronix8 if is_corrected => Some(MoreStatus::EccStatus),
            _ => None,
        }
    }

    /// Decodes a status that was read when the part was no longer busy, with what [`more`](StatusScheme::more) asked for (0 where it
    /// asked for nothing). `strength` is how many bits the part corrects in a codeword.
    pub const fn decode(self, status: u8, more: u8, strength: u8) -> EccOutcome {
        let code = status >> 4 & 3;
        match (self, code) {
            (StatusScheme::Micron, _) => match status >> 4 & 7 {
                0 => EccOutcome::Clean,
                1 => EccOutcome::Corrected { min: 1, max: 3 },
                3 => EccOutcome::Corrected { min: 4, max: 6 },
                5 => EccOutcome::Corrected { min: 7, max: 8 },
                _ => EccOutcome::Uncorrectable,
            },
            (StatusScheme::XtxA, _) => match status >> 2 & 15 {
                0 => EccOutcome::Clean,
                bits @ 1..=7 => EccOutcome::exact(bits),
                0b1100 => EccOutcome::exact(8),
                _ => EccOutcome::Uncorrectable,
            },
            (_, 0) => EccOutcome::Clean,
            (StatusScheme::TwoBit, 1) => EccOutcome::Corrected { min: 1, max: strength },
            (StatusScheme::Count30, 1 | 3) => EccOutcome::counted(more >> 4, strength),
            (StatusScheme::GigaDevice8, 1) => EccOutcome::from_four(more >> 4 & 3),
            (StatusScheme::GigaDevice4, 1) => EccOutcome::exact(1 + (more >> 4 & 3)),
            (StatusScheme::Macronix4, 1) | (StatusScheme::Macronix8, 1 | 3) => EccOutcome::counted(more & 15, strength),
            (StatusScheme::XtxD, 1) => EccOutcome::from_four(status >> 6),
            (StatusScheme::GigaDevice8 | StatusScheme::XtxD, 3) => EccOutcome::exact(8),
            _ => EccOutcome::Uncorrectable,
        }
    }
}
