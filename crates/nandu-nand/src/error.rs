//! Errors that can be told apart without knowing the driver.

use core::error::Error;
use core::fmt;

/// What went wrong, in terms every driver can use.
///
/// The pattern is that of `embedded-storage`: a driver has an error type of its own, which says in detail what
/// happened, and [`NandError::kind`] sorts it into one of these, on which storage code decides what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NandErrorKind {
    /// A read found more flipped bits than can be corrected. The buffer's content has no meaning.
    Uncorrectable,
    /// The chip reported that a program failed. The page is lost; pages programmed before it can still be read, but for
    /// its partner on a chip with paired pages. The block should be emptied and retired.
    ProgramFailed,
    /// The chip reported that an erase failed. The block should be retired.
    EraseFailed,
    /// The address or column lies outside the geometry.
    OutOfBounds,
    /// A program's column or length does not fit [`Geometry::program_unit`](crate::Geometry::program_unit).
    NotAligned,
    /// The chip or driver does not offer this operation.
    Unsupported,
    /// The operation's outcome is not known: a transfer failed, a time limit passed or the chip was reset. It may have
    /// been carried out. A read or an erase may be tried again; a program may not, since the page may be half
    /// programmed: the data goes to another page.
    Bus,
    /// The chip no longer answers, as when its power is gone. No further operation will succeed.
    Gone,
    /// Anything else.
    Other,
}

impl fmt::Display for NandErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NandErrorKind::Uncorrectable => "more bits flipped than can be corrected",
            NandErrorKind::ProgramFailed => "program failed",
            NandErrorKind::EraseFailed => "erase failed",
            NandErrorKind::OutOfBounds => "address outside the chip",
            NandErrorKind::NotAligned => "column or length not aligned to the program unit",
            NandErrorKind::Unsupported => "operation not supported",
            NandErrorKind::Bus => "bus error, outcome unknown",
            NandErrorKind::Gone => "chip does not answer",
            NandErrorKind::Other => "other error",
        })
    }
}

/// An error of a driver.
pub trait NandError: Error {
    /// Sorts the error into one of the kinds on which storage code decides.
    fn kind(&self) -> NandErrorKind;
}

impl NandError for NandErrorKind {
    fn kind(&self) -> NandErrorKind {
        *self
    }
}

impl Error for NandErrorKind {}

/// Names the error type of a driver; apart from [`Nand`](crate::Nand) so that an asynchronous contract can share it.
pub trait ErrorType {
    /// The driver's error.
    type Error: NandError + 'static;
}

impl<T: ErrorType + ?Sized> ErrorType for &mut T {
    type Error = T::Error;
}
