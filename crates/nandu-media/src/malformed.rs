//! Why bytes are refused.

/// Why bytes read from flash are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The page is erased: nothing was programmed since.
    #[error("the page is erased")]
    Erased,
    /// More bits flipped than can be corrected, so there are no bytes to look at.
    #[error("more bits flipped than can be corrected")]
    Unreadable,
    /// The buffer is shorter than the structure.
    #[error("too short for what it should hold")]
    Size,
    /// The page does not begin as pages of nandu do.
    #[error("wrong magic")]
    Magic,
    /// The checksum is not that of the bytes.
    #[error("wrong checksum")]
    Checksum,
    /// The page was written in a format that this version does not know.
    #[error("format version {0} is not known")]
    Version(u8),
    /// The page says that it is another kind than can be.
    #[error("page kind {0} is wrong here")]
    Kind(u8),
    /// The page belongs to another volume, such as one that was on the chip before it was formatted.
    #[error("belongs to volume {0:#010x}")]
    Volume(u32),
    /// The page says that it stands elsewhere.
    #[error("says that it is page {0}")]
    Misplaced(u32),
    /// The page carries a sequence that cannot have been given out yet, or is older than it may be.
    #[error("its sequence cannot be here")]
    Sequence,
    /// A field is outside its range.
    #[error("field {0} is out of range")]
    Range(&'static str),
}
