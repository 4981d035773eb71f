//! Errors.

use core::error::Error;
use core::fmt;

use nandu_nand::PageAddr;

use crate::Malformed;

/// What can go wrong. Whatever it is, the tree holds what it held before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError<E> {
    /// The medium failed, or is full.
    Pages(E),
    /// A page of the tree contradicts itself.
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: Malformed,
    },
    /// There is no tree on this medium.
    NotFound,
    /// A tree is to be created where there is something already.
    AlreadyThere,
    /// The tree on this medium has cells of another kind or size, or belongs to a larger chip.
    OtherFormat,
    /// The memory given is smaller than [`memory_required`](crate::memory_required) says.
    MemoryTooSmall {
        /// Bytes needed.
        required: usize,
    },
    /// The page is too small, or too large, for this tree.
    PageSize(usize),
    /// The key is not of the size that the cells have, or is longer than [`Tree::key_size_max`](crate::Tree).
    KeySize(usize),
    /// The value is not of the size that the cells have, or key and value together are larger than
    /// [`Tree::entry_size_max`](crate::Tree).
    ValueSize(usize),
    /// The value has so many bytes, too many to be lent: [`Tree::read`](crate::Tree::read) copies any part of it.
    LargeValue(usize),
    /// A batch replaces more large values than the journal can hold; nothing has changed.
    JournalFull,
    /// There are [`SNAPSHOT_COUNT_MAX`](crate::SNAPSHOT_COUNT_MAX) snapshots.
    TooManySnapshots,
    /// There is no snapshot with this number; it was released.
    NoSnapshot(u32),
    /// The keys of a batch or of a bulk load do not strictly ascend; the first that does not is this one, from 0.
    NotAscending(usize),
    /// Changes were left that no leaf holds yet, and they do not fit [`Options::pending_size`](crate::Options::pending_size).
    PendingSize,
    /// The tree would become higher than it can be.
    TooHigh,
    /// Page values need a medium with bare pages, cells of byte strings, and [`Options::note_count`](crate::Options::note_count).
    NoPageValues,
    /// Pages were left that no Summary names yet, so many, and [`Options::note_count`](crate::Options::note_count) has too little
    /// memory for that.
    NoteCount(usize),
    /// Page values wait to be moved, and there is no room to do so: nothing has changed.
    NotesFull,
    /// A tree on a medium with bare pages takes no snapshots.
    NoSnapshots,
    /// What is on the medium, or what was asked for, needs a part that was not compiled: the Cargo feature of this name.
    NotCompiled {
        /// The feature.
        feature: &'static str,
    },
}

impl<E: fmt::Display> fmt::Display for TreeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::Pages(error) => error.fmt(f),
            TreeError::Corrupt { page, why } => write!(f, "page {page} of the tree is corrupt: {why}"),
            TreeError::AlreadyThere => f.write_str("the medium is not empty"),
            TreeError::NotFound => f.write_str("there is no tree on this medium"),
            TreeError::OtherFormat => f.write_str("the tree on this medium has another format"),
            TreeError::MemoryTooSmall { required } => write!(f, "the tree needs {required} bytes of memory"),
            TreeError::PageSize(size) => write!(f, "a page of {size} bytes does not suit a tree"),
            TreeError::KeySize(size) => write!(f, "a key of {size} bytes does not suit this tree"),
            TreeError::ValueSize(size) => write!(f, "a value of {size} bytes does not suit this tree"),
            TreeError::LargeValue(size) => write!(f, "the value has {size} bytes and must be read in parts"),
            TreeError::JournalFull => f.write_str("the batch replaces more large values than the journal holds"),
            TreeError::TooManySnapshots => f.write_str("there are as many snapshots as there can be"),
            TreeError::NoSnapshot(number) => write!(f, "there is no snapshot {number}"),
            TreeError::NotAscending(index) => write!(f, "key {index} is not above the key before it"),
            TreeError::PendingSize => f.write_str("changes that no leaf holds yet do not fit the memory for them"),
            TreeError::NoPageValues => f.write_str("page values need bare pages, byte strings and memory for notes"),
            TreeError::NoteCount(count) => write!(f, "notes of {count} pages do not fit the memory for them"),
            TreeError::NotesFull => f.write_str("no more pages can wait for a summary"),
            TreeError::NoSnapshots => f.write_str("a tree on a medium with bare pages takes no snapshots"),
            TreeError::NotCompiled { feature } => {
                write!(f, "this needs the feature `{feature}`, which is not compiled")
            }
            TreeError::TooHigh => f.write_str("the tree would become too high"),
        }
    }
}

impl<E: Error> Error for TreeError<E> {}

impl<E> From<E> for TreeError<E> {
    fn from(error: E) -> TreeError<E> {
        TreeError::Pages(error)
    }
}

/// What can be wrong with a page, for errors that do not tell log and tree apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageDamage {
    /// Its bits, or what every page of nandu begins with.
    Page(nandu_log::Malformed),
    /// The nodes of the tree in it, or a value.
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
