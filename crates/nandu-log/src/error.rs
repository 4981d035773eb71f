//! Errors of the log.

use nandu_media::Malformed;
use nandu_nand::{GeometryError, PageAddr};

/// Why the log refused or failed. Eight bytes on a chip of 32 bits: every call hands it on, so a text is a thin reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError<E: core::error::Error + 'static> {
    /// The chip failed in a way that the log could not work around. After an outage of the bus in a write the log is poisoned, and no block
    /// was retired. Four programs or erases in a row that end with a bus error are an outage, too, although reads get through.
    #[error(transparent)]
    Nand(E),
    /// A page that is needed cannot be read or is not what it should be.
    #[error("page {page} is corrupt: {why}")]
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: Malformed,
    },
    /// There is no room, and none can be made. Nothing was changed.
    #[error("no block can be freed")]
    Full,
    /// The chip is at the end of its life, or the volume uses features that this version does not know: it can be read and not written.
    #[error("the volume can only be read")]
    ReadOnly,
    /// An earlier operation failed so that memory cannot be trusted; mount again.
    #[error("an earlier write failed; mount again")]
    Poisoned,
    /// No volume was found.
    #[error("the chip is not formatted")]
    NotFormatted,
    /// The volume was made for another chip or with other options.
    #[error("the volume on the chip differs in {what}")]
    WrongFormat {
        /// Name of the value that differs.
        what: &'static &'static str,
    },
    /// The options cannot be had on this chip.
    #[error("not possible on this chip: {what}")]
    Unsuitable {
        /// What is in the way.
        what: &'static &'static str,
    },
    /// The chip describes itself as no chip can be.
    #[error(transparent)]
    Geometry(GeometryError),
    /// The memory handed over is too small.
    #[error("{required} bytes of memory are needed")]
    Memory {
        /// Bytes needed.
        required: usize,
    },
}
