//! Errors.

use core::error::Error;
use core::fmt;

use nandu_log::{LogError, Malformed as MalformedPage};
use nandu_media::tree::Malformed;
use nandu_nand::{ErrorType, PageAddr};

/// Most pages that a batch appends.
pub const BATCH_PAGES_MAX: u32 = 256;

/// Most changes that are made with the end of a value.
pub const BESIDE_MAX: usize = 20;

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDamage {
    /// It is not what a page of a volume is.
    Page(MalformedPage),
    /// The node in it contradicts itself.
    Node(Malformed),
}

impl fmt::Display for PageDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageDamage::Page(why) => why.fmt(f),
            PageDamage::Node(why) => why.fmt(f),
        }
    }
}

impl Error for PageDamage {}

/// What can go wrong. Whatever it is, the tree holds what it held before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError<E: Error + 'static> {
    /// The log, or the chip under it.
    Log(LogError<E>),
    /// A page of the tree contradicts itself.
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: Malformed,
    },
    /// The tree on this volume has cells of another kind or size, or belongs to a larger chip.
    OtherFormat,
    /// The memory given is smaller than [`memory_required`](crate::memory_required) says.
    Memory {
        /// Bytes needed.
        required: usize,
    },
    /// Pages of so many bytes are too small, or too large, for this tree.
    PageSize(usize),
    /// The key is not of the size that the cells have, or is longer than [`Engine::key_size_max`](crate::Engine::key_size_max).
    KeySize(usize),
    /// Keys that begin with FF 7F 48 D0 to DF are kept for snapshots.
    ReservedKey,
    /// There are as many snapshots as there can be.
    TooManySnapshots,
    /// There is no snapshot with this number; it was released.
    NoSnapshot(u32),
    /// The value is not of the size that the cells have, or key and value together are larger than [`Engine::entry_size_max`](crate::Engine::entry_size_max).
    ValueSize(usize),
    /// The value has so many bytes, more than are lent: [`Engine::read`](crate::Engine::read) copies any part of it.
    LargeValue(usize),
    /// The keys of a batch do not strictly ascend; the first that does not is this one, from 0.
    NotAscending(usize),
    /// The batch concerns so many leaves that it appends more than [`BATCH_PAGES_MAX`](crate::BATCH_PAGES_MAX) pages. Nothing has changed.
    BatchTooLarge {
        /// Pages that it may append at least.
        pages: u32,
    },
    /// Changes were left waiting, and they do not fit [`Options::pending_size`](crate::Options::pending_size).
    PendingSize,
    /// The tree would become higher than it can be.
    TooHigh,
    /// What is on the volume, or what was asked for, needs a part that was not compiled: the Cargo feature of this name.
    NotCompiled {
        /// The Cargo feature.
        feature: &'static &'static str,
    },
}

impl<E: Error> fmt::Display for EngineError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Log(error) => error.fmt(f),
            EngineError::Corrupt { page, why } => write!(f, "page {page} of the tree is corrupt: {why}"),
            EngineError::OtherFormat => f.write_str("the tree on this volume has another format"),
            EngineError::Memory { required } => write!(f, "the tree needs {required} bytes of memory"),
            EngineError::PageSize(size) => write!(f, "a page of {size} bytes does not suit a tree"),
            EngineError::KeySize(size) => write!(f, "a key of {size} bytes does not suit this tree"),
            EngineError::ReservedKey => f.write_str("keys that begin with FF 7F 48 D0 to DF are kept for snapshots"),
            EngineError::TooManySnapshots => f.write_str("there are as many snapshots as there can be"),
            EngineError::NoSnapshot(number) => write!(f, "there is no snapshot {number}"),
            EngineError::ValueSize(size) => write!(f, "a value of {size} bytes does not suit this tree"),
            EngineError::LargeValue(size) => write!(f, "a value of {size} bytes is not lent"),
            EngineError::NotAscending(index) => write!(f, "key {index} is not above the key before it"),
            EngineError::BatchTooLarge { pages } => {
                write!(f, "the batch appends {pages} pages or more, and {} is the most", BATCH_PAGES_MAX)
            }
            EngineError::PendingSize => f.write_str("changes that were left waiting do not fit the memory for them"),
            EngineError::TooHigh => f.write_str("the tree would become too high"),
            EngineError::NotCompiled { feature } => {
                write!(f, "this needs the feature `{feature}`, which is not compiled")
            }
        }
    }
}

impl<E: Error> Error for EngineError<E> {}

impl<E: Error> From<LogError<E>> for EngineError<E> {
    fn from(error: LogError<E>) -> EngineError<E> {
        EngineError::Log(error)
    }
}

/// A page of the tree contradicts itself.
pub(crate) fn corrupt<E: Error>(page: u32, why: Malformed) -> EngineError<E> {
    EngineError::Corrupt { page: PageAddr(page), why }
}

/// The page that an error calls corrupt.
pub(crate) fn corrupt_page<E: Error>(error: &EngineError<E>) -> Option<PageAddr> {
    match error {
        EngineError::Corrupt { page, .. } | EngineError::Log(LogError::Corrupt { page, .. }) => Some(*page),
        _ => None,
    }
}

/// How something ends that uses a chip of this kind.
pub type Outcome<T, N> = Result<T, EngineError<<N as ErrorType>::Error>>;
