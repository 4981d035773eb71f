//! Errors of the baselines.

use nandu_nand::PageAddr;

/// Why a baseline refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError<E: core::error::Error + 'static> {
    /// The chip failed.
    #[error(transparent)]
    Nand(E),
    /// A page that is needed is not what it should be.
    #[error("page {page} is corrupt: {why}")]
    Corrupt {
        /// The page.
        page: PageAddr,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no room, and none can be made. Nothing was changed.
    #[error("no block can be freed")]
    Full,
    /// An earlier change failed half way, so that the state in memory cannot be trusted.
    #[error("an earlier change failed")]
    Poisoned,
    /// No tree that can be opened was found on the chip.
    #[error("the chip is not formatted")]
    NotFormatted,
    /// The tree on the chip was made with other options.
    #[error("the tree on the chip differs in {what}")]
    WrongFormat {
        /// Name of the option that differs.
        what: &'static str,
    },
    /// Too many blocks failed.
    #[error("too few blocks are left")]
    Worn,
    /// Keys and values have four bytes.
    #[error("a key or value of {size} bytes, where all have 4")]
    Width {
        /// Bytes of the one refused.
        size: usize,
    },
    /// The keys of a batch do not ascend.
    #[error("the keys of a batch do not ascend")]
    Order,
    /// The options cannot be had on this chip.
    #[error("not possible on this chip: {what}")]
    Unsuitable {
        /// What is in the way.
        what: &'static str,
    },
}
