//! An error for drivers that need no other.

use core::error::Error;
use core::fmt;

use crate::{NandError, NandErrorKind};

/// An error of a driver that keeps the error of its bus, for drivers that have no more to say. `E` is whatever the bus reports, such as the
/// error of an `embedded-hal` SPI device; it becomes one of these with `?`.
///
/// ```
/// use nandu_nand::{DriverError, ErrorType};
/// # #[derive(Debug)]
/// # struct Fault;
/// # trait SpiDevice {
/// #     type Error: core::fmt::Debug;
/// #     fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
/// #     fn exchange(&mut self, byte: u8) -> Result<u8, Self::Error>;
/// # }
///
/// struct Chip<S> {
///     spi: S,
/// }
///
/// impl<S: SpiDevice<Error: 'static>> ErrorType for Chip<S> {
///     type Error = DriverError<S::Error>;
/// }
///
/// impl<S: SpiDevice> Chip<S> {
///     fn execute(&mut self, row: u32) -> Result<(), DriverError<S::Error>> {
///         let [_, high, middle, low] = row.to_be_bytes();
///         self.spi.write(&[0x10, high, middle, low])?;
///         for _ in 0..1_000 {
///             let status = self.spi.exchange(0x0f)?;
///             match status & 0x09 {
///                 0x00 => return Ok(()),
///                 0x08 => return Err(DriverError::ProgramFailed),
///                 _ => {}
///             }
///         }
///         Err(DriverError::Timeout)
///     }
/// }
/// # struct Wire(Option<u8>);
/// # impl SpiDevice for Wire {
/// #     type Error = Fault;
/// #     fn write(&mut self, _: &[u8]) -> Result<(), Fault> { Ok(()) }
/// #     fn exchange(&mut self, _: u8) -> Result<u8, Fault> { self.0.ok_or(Fault) }
/// # }
/// # use nandu_nand::{NandError, NandErrorKind};
/// # let kind = |level| Chip { spi: Wire(level) }.execute(3).map_err(|error| error.kind());
/// # assert_eq!(kind(Some(0)), Ok(()));
/// # assert_eq!(kind(Some(0x08)), Err(NandErrorKind::ProgramFailed));
/// # assert_eq!(kind(Some(0x01)), Err(NandErrorKind::Bus));
/// # assert_eq!(kind(None), Err(NandErrorKind::Bus));
/// ```
///
/// A driver whose bus cannot fail takes [`NandErrorKind`] itself for its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverError<E> {
    /// The bus failed with this error: [`NandErrorKind::Bus`].
    Bus(E),
    /// The chip was busy beyond a time limit, or did not take a command: [`NandErrorKind::Bus`] too, since nobody knows what it did.
    Timeout,
    /// See [`NandErrorKind::Uncorrectable`].
    Uncorrectable,
    /// See [`NandErrorKind::ProgramFailed`].
    ProgramFailed,
    /// See [`NandErrorKind::EraseFailed`].
    EraseFailed,
    /// See [`NandErrorKind::OutOfBounds`].
    OutOfBounds,
    /// See [`NandErrorKind::NotAligned`].
    NotAligned,
    /// See [`NandErrorKind::Unsupported`].
    Unsupported,
    /// See [`NandErrorKind::Gone`].
    Gone,
}

impl<E> From<E> for DriverError<E> {
    fn from(error: E) -> DriverError<E> {
        DriverError::Bus(error)
    }
}

impl<E: fmt::Debug> fmt::Display for DriverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Errors of embedded-hal have no text for users.
            DriverError::Bus(error) => write!(f, "the bus failed: {error:?}"),
            DriverError::Timeout => f.write_str("the chip is busy beyond the time limit"),
            other => other.kind().fmt(f),
        }
    }
}

impl<E: fmt::Debug> Error for DriverError<E> {}

impl<E: fmt::Debug> NandError for DriverError<E> {
    fn kind(&self) -> NandErrorKind {
        match self {
            DriverError::Bus(_) | DriverError::Timeout => NandErrorKind::Bus,
            DriverError::Uncorrectable => NandErrorKind::Uncorrectable,
            DriverError::ProgramFailed => NandErrorKind::ProgramFailed,
            DriverError::EraseFailed => NandErrorKind::EraseFailed,
            DriverError::OutOfBounds => NandErrorKind::OutOfBounds,
            DriverError::NotAligned => NandErrorKind::NotAligned,
            DriverError::Unsupported => NandErrorKind::Unsupported,
            DriverError::Gone => NandErrorKind::Gone,
        }
    }
}
