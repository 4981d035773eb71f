//! What an operation on a device ends with.

use std::error::Error;
use std::fmt;

use nandu_nand::{BlockAddr, NandError, NandErrorKind, PageAddr};
use rustix::io::Errno;

/// An error of a device that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MtdError {
    /// A page holds more flipped bits than can be corrected.
    Uncorrectable(PageAddr),
    /// The chip says that it could not program a page.
    ProgramFailed(PageAddr),
    /// The chip says that it could not erase a block.
    EraseFailed(BlockAddr),
    /// The kernel did not read a page.
    Read(PageAddr, Errno),
    /// The kernel did not program a page, for another reason than the chip's.
    Program(PageAddr, Errno),
    /// The kernel took a part of a page only.
    Short(PageAddr),
    /// The kernel did not erase a block, for another reason than the chip's.
    Erase(BlockAddr, Errno),
    /// The kernel did not say whether a block is bad, or did not mark it.
    Mark(BlockAddr, Errno),
    /// The address is none of the device's.
    OutOfBounds,
    /// A program of a part of a page.
    NotAligned,
    /// Spare bytes that are not the tag's, a tag where there is none, or a mode of cells that the kernel does not know.
    Unsupported,
}

impl fmt::Display for MtdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MtdError::Uncorrectable(page) => write!(f, "page {page}: more bits flipped than can be corrected"),
            MtdError::ProgramFailed(page) => write!(f, "page {page}: the chip could not program it"),
            MtdError::EraseFailed(block) => write!(f, "block {block}: the chip could not erase it"),
            MtdError::Read(page, error) => write!(f, "page {page}: read: {error}"),
            MtdError::Program(page, error) => write!(f, "page {page}: program: {error}"),
            MtdError::Short(page) => write!(f, "page {page}: the kernel took a part of it only"),
            MtdError::Erase(block, error) => write!(f, "block {block}: erase: {error}"),
            MtdError::Mark(block, error) => write!(f, "block {block}: bad-block mark: {error}"),
            MtdError::OutOfBounds | MtdError::NotAligned | MtdError::Unsupported => self.kind().fmt(f),
        }
    }
}

impl Error for MtdError {}

impl NandError for MtdError {
    fn kind(&self) -> NandErrorKind {
        match self {
            MtdError::Uncorrectable(_) => NandErrorKind::Uncorrectable,
            MtdError::ProgramFailed(_) => NandErrorKind::ProgramFailed,
            MtdError::EraseFailed(_) => NandErrorKind::EraseFailed,
            // The device is not there any more, and a file that was opened stays as it is.
            MtdError::Read(_, Errno::NODEV)
            | MtdError::Program(_, Errno::NODEV)
            | MtdError::Erase(_, Errno::NODEV)
            | MtdError::Mark(_, Errno::NODEV) => NandErrorKind::Gone,
            MtdError::Read(..)
            | MtdError::Program(..)
            | MtdError::Short(_)
            | MtdError::Erase(..)
            | MtdError::Mark(..) => NandErrorKind::Bus,
            MtdError::OutOfBounds => NandErrorKind::OutOfBounds,
            MtdError::NotAligned => NandErrorKind::NotAligned,
            MtdError::Unsupported => NandErrorKind::Unsupported,
        }
    }
}
