//! Errors.

use nandu_media::Malformed;
use nandu_nand::{GeometryError, PageAddr};

/// Why the index refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: core::error::Error + 'static> {
    /// The chip failed in a way that the index could not work around.
    #[error(transparent)]
    Nand(E),
    /// A page that is needed cannot be read or is not what it should be: the keys of its node are lost.
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
    /// Too few blocks are left: the volume can be read and not written.
    #[error("the volume can only be read")]
    ReadOnly,
    /// An earlier write failed so that the state in memory cannot be trusted; open the index again.
    #[error("an earlier write failed; open the index again")]
    Poisoned,
    /// No index of this kind was found.
    #[error("the chip holds no in-page-logging index")]
    NotFormatted,
    /// The volume was made for another chip or with other options.
    #[error("the volume on the chip differs in {what}")]
    WrongFormat {
        /// Name of the value that differs.
        what: &'static str,
    },
    /// The options cannot be had on this chip.
    #[error("not possible on this chip: {what}")]
    Unsuitable {
        /// What is in the way.
        what: &'static str,
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
    /// The key is not of the size that the index has, or too long for it.
    #[error("a key of {0} bytes does not suit this index")]
    KeySize(usize),
    /// The value is not of the size that the index has, or key and value are too long for it.
    #[error("a value of {0} bytes does not suit this index")]
    ValueSize(usize),
    /// The keys of a batch do not strictly ascend; the first that does not is this one, from 0.
    #[error("key {0} of the batch is not above the key before it")]
    NotAscending(usize),
    /// Several changes can be made durable together only by a journal, and one that takes all of them.
    #[error("the batch needs a journal that takes all of it")]
    BatchTooLarge,
}
