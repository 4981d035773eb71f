//! What can go wrong.

use core::fmt;

use nandu_nand::{BlockAddr, NandError, NandErrorKind, PageAddr};

use crate::command::IDENTITY_SIZE;
use crate::part::PartError;

/// What the driver waited for when a time limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A page read.
    Read,
    /// A program.
    Program,
    /// An erase.
    Erase,
    /// A reset.
    Reset,
}

/// An error of the driver. `E` is the error of the wire, which is kept.
///
/// After an error of kind [`Bus`](NandErrorKind::Bus) the driver brings the part to a known state before it says anything else to it;
/// every operation may be tried again under the rules of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpiError<E> {
    /// The wire failed.
    Wire(E),
    /// The part stayed busy beyond its time limit.
    Timeout(Operation),
    /// The part answered, but not as one does that was spoken to: it did not take a command, or it has lost its settings, as after its
    /// power was gone for a moment. What was under way may have been carried out or not.
    Silent,
    /// A register does not hold what was written to it, when the part was set up.
    Register {
        /// Its address.
        register: u8,
        /// What it should hold, where the mask is 1.
        expected: u8,
        /// What it holds.
        found: u8,
        /// The bits that matter.
        mask: u8,
    },
    /// No row of the table has this identity. All ones or all zeros: nothing answers.
    UnknownPart {
        /// What was answered.
        identity: [u8; IDENTITY_SIZE],
    },
    /// The part is not the one that it was opened as, or that it was before.
    OtherPart {
        /// The part that was expected.
        expected: &'static str,
        /// What was answered.
        identity: [u8; IDENTITY_SIZE],
    },
    /// The row that was handed over does not fit itself.
    Part(PartError),
    /// More bits of the page had flipped than can be corrected.
    Uncorrectable(PageAddr),
    /// The part reported that the program of this page failed.
    ProgramFailed(PageAddr),
    /// The part reported that the erase of this block failed.
    EraseFailed(BlockAddr),
    /// An address or a range of columns lies outside the part.
    OutOfBounds,
    /// Columns of a program do not fit the program unit.
    NotAligned,
    /// The part does not offer this.
    Unsupported,
}

/// Prints bytes as `EF AA 21`.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{byte:02X}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug> fmt::Display for SpiError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpiError::Wire(error) => write!(f, "the wire failed: {error:?}"),
            SpiError::Timeout(operation) => {
                let name = match operation {
                    Operation::Read => "a page read",
                    Operation::Program => "a program",
                    Operation::Erase => "an erase",
                    Operation::Reset => "a reset",
                };
                write!(f, "the part is busy beyond the time limit of {name}")
            }
            SpiError::Silent => f.write_str("the part did not take a command or lost its settings"),
            SpiError::Register { register, expected, found, mask } => {
                write!(f, "register {register:02X}h holds {found:02X}h, not {expected:02X}h (mask {mask:02X}h)")
            }
            SpiError::UnknownPart { identity } if is_nothing(identity) => {
                write!(f, "no part answers: identity {}", Hex(identity))
            }
            SpiError::UnknownPart { identity } => write!(f, "unknown part: identity {}", Hex(identity)),
            SpiError::OtherPart { expected, identity } => {
                write!(f, "not a {expected}: identity {}", Hex(identity))
            }
            SpiError::Part(error) => error.fmt(f),
            SpiError::Uncorrectable(page) => write!(f, "page {page}: more bits flipped than can be corrected"),
            SpiError::ProgramFailed(page) => write!(f, "page {page}: program failed"),
            SpiError::EraseFailed(block) => write!(f, "block {block}: erase failed"),
            SpiError::OutOfBounds => f.write_str("address outside the part"),
            SpiError::NotAligned => f.write_str("column or length not aligned to the program unit"),
            SpiError::Unsupported => f.write_str("not supported by the part"),
        }
    }
}

/// Whether an identity is what a bus reads as that nobody drives.
pub(crate) fn is_nothing(identity: &[u8; IDENTITY_SIZE]) -> bool {
    matches!(identity, [first @ (0x00 | 0xff), rest @ ..] if rest.iter().all(|byte| byte == first))
}

/// The text, formatted on the target: so errors of every driver are taken, with or without an implementation of their own.
#[cfg(feature = "defmt")]
impl<E: fmt::Debug> defmt::Format for SpiError<E> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

impl<E: fmt::Debug> core::error::Error for SpiError<E> {}

impl<E: fmt::Debug> NandError for SpiError<E> {
    fn kind(&self) -> NandErrorKind {
        match self {
            // A part that is another one for a moment is one whose bus does not work: the table was asked when it was opened.
            SpiError::Wire(_)
            | SpiError::Timeout(_)
            | SpiError::Silent
            | SpiError::Register { .. }
            | SpiError::UnknownPart { .. }
            | SpiError::OtherPart { .. } => NandErrorKind::Bus,
            SpiError::Uncorrectable(_) => NandErrorKind::Uncorrectable,
            SpiError::ProgramFailed(_) => NandErrorKind::ProgramFailed,
            SpiError::EraseFailed(_) => NandErrorKind::EraseFailed,
            SpiError::OutOfBounds => NandErrorKind::OutOfBounds,
            SpiError::NotAligned => NandErrorKind::NotAligned,
            SpiError::Unsupported => NandErrorKind::Unsupported,
            SpiError::Part(_) => NandErrorKind::Other,
        }
    }
}
