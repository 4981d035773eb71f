//! What can go wrong in a store.

use nandu_log::LogError;
use nandu_nand::{GeometryError, PageAddr};
use nandu_tree::{EngineError, PageDamage};

/// What can go wrong in a store, by the error `E` of the chip's driver. Whatever it is, the store holds what it held before the
/// call, but where a call says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: core::error::Error + 'static> {
    /// The chip failed in a way that could not be worked around. Of kind [`Bus`](nandu_nand::NandErrorKind::Bus) it was an outage: try
    /// again when it is over, and where the answer is [`Error::Poisoned`] then, open the store again.
    #[error(transparent)]
    Chip(E),
    /// There is no room, and none can be made. Deleting works on, and makes room.
    #[error("no block can be freed")]
    Full,
    /// The chip is at the end of its life, or the volume has features that this version does not know: it can be read and not
    /// written.
    #[error("the volume can only be read")]
    ReadOnly,
    /// A page that is needed cannot be read, or is not what it should be.
    #[error("page {page} is corrupt: {why}")]
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: PageDamage,
    },
    /// An earlier write failed so that what is in memory cannot be trusted, as in an outage of the bus: open the store again. All that was
    /// durable is there, and of the change that failed all or nothing.
    #[error("an earlier write failed; open the store again")]
    Poisoned,
    /// No volume was found on the chip.
    #[error("the chip is not formatted")]
    NotFormatted,
    /// The volume was made for another chip, with other options, or is not a store of such records.
    #[error("the volume on the chip differs in {what}")]
    OtherFormat {
        /// What differs.
        what: &'static str,
    },
    /// The volume, or what was asked for, needs a part of nandu that this build leaves out.
    #[error("feature `{feature}` is not compiled")]
    NotCompiled {
        /// The Cargo feature that is missing.
        feature: &'static str,
    },
    /// The options, or what was asked for, cannot be had on this chip.
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
    /// A key of so many bytes is too long, or not of the size that this store has:
    /// [`Store::key_size_max`](crate::Store::key_size_max).
    #[error("a key of {0} bytes does not suit this store")]
    KeySize(usize),
    /// A value of so many bytes is too long, or not of the size that this store has:
    /// [`Store::value_size_max`](crate::Store::value_size_max).
    #[error("a value of {0} bytes does not suit this store")]
    ValueSize(usize),
    /// The value has so many bytes, which stand in pages of their own and cannot be lent: [`Store::read`](crate::Store::read)
    /// copies any part of it.
    #[error("the value has {0} bytes, too many to be lent; `read` copies any part of it")]
    LargeValue(usize),
    /// A batch concerns too many leaves, or replaces more large values than it can keep in mind.
    #[error("the batch concerns too many leaves or large values")]
    BatchSize,
    /// The keys of a batch or of a load do not strictly ascend; the first that does not is this one, from 0.
    #[error("key {0} is not above the key before it")]
    NotAscending(usize),
    /// Keys that begin with FF 7F 48 D0 to DF are kept for snapshots.
    #[error("keys that begin with FF 7F 48 D0 to DF are kept for snapshots")]
    ReservedKey,
    /// There are as many snapshots as there can be.
    #[error("there are as many snapshots as there can be")]
    TooManySnapshots,
    /// There is no snapshot with this number; it was released.
    #[error("there is no snapshot {0}")]
    NoSnapshot(u32),
    /// Changes were left waiting, and they do not fit [`Options::pending_size`](crate::Options::pending_size).
    #[error("changes that were left waiting do not fit the memory for them")]
    PendingSize,
    /// The tree cannot become higher: too many keys of such a length for pages of this size.
    #[error("the tree would become too high")]
    TooHigh,
}

/// The text, formatted on the target: so errors of every driver are taken, with or without an implementation of their own.
#[cfg(feature = "defmt")]
impl<E: core::error::Error + 'static> defmt::Format for Error<E> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

impl<E: core::error::Error + 'static> From<LogError<E>> for Error<E> {
    fn from(error: LogError<E>) -> Error<E> {
        match error {
            LogError::Nand(error) => Error::Chip(error),
            LogError::Corrupt { page, why } => Error::Corrupt { page, why: PageDamage::Page(why) },
            LogError::Full => Error::Full,
            LogError::Poisoned => Error::Poisoned,
            LogError::NotFormatted => Error::NotFormatted,
            LogError::WrongFormat { what } => Error::OtherFormat { what },
            LogError::Unsuitable { what } => Error::Unsuitable { what },
            LogError::Geometry(error) => Error::Geometry(error),
            LogError::Memory { required } => Error::Memory { required },
            // Of what is not known here, this says least: nothing more is written.
            LogError::ReadOnly | _ => Error::ReadOnly,
        }
    }
}

impl<E: core::error::Error + 'static> From<EngineError<E>> for Error<E> {
    fn from(error: EngineError<E>) -> Error<E> {
        match error {
            EngineError::Log(error) => Error::from(error),
            EngineError::Corrupt { page, why } => Error::Corrupt { page, why: PageDamage::Node(why) },
            EngineError::OtherFormat => Error::OtherFormat { what: "cells" },
            EngineError::Memory { required } => Error::Memory { required },
            EngineError::PageSize(_) => Error::Unsuitable { what: "pages of this size" },
            EngineError::KeySize(size) => Error::KeySize(size),
            EngineError::ReservedKey => Error::ReservedKey,
            EngineError::TooManySnapshots => Error::TooManySnapshots,
            EngineError::NoSnapshot(number) => Error::NoSnapshot(number),
            EngineError::ValueSize(size) => Error::ValueSize(size),
            EngineError::LargeValue(size) => Error::LargeValue(size),
            EngineError::NotAscending(index) => Error::NotAscending(index),
            EngineError::BatchTooLarge { .. } => Error::BatchSize,
            EngineError::PendingSize => Error::PendingSize,
            EngineError::TooHigh => Error::TooHigh,
            EngineError::NotCompiled { feature } => Error::NotCompiled { feature },
            // The tree says nothing else yet.
            _ => Error::ReadOnly,
        }
    }
}
