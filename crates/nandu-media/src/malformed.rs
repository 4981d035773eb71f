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
    #[error("belongs to another volume")]
    Volume,
    /// The page says that it stands elsewhere.
    #[error("says that it is another page")]
    Misplaced,
    /// The page carries a sequence that cannot have been given out yet, or is older than it may be.
    #[error("its sequence cannot be here")]
    Sequence,
    /// A field is outside its range.
    #[error("field {0} is out of range")]
    Range(Field),
}

/// Which field of a page [`Malformed::Range`] means; each is written as in FORMAT.md. A number and not a text, so that an error
/// stays as small as two registers: every function on the way from the chip to the caller hands it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each says what it is")]
pub enum Field {
    #[error("anchors")]
    Anchors,
    #[error("bad_count")]
    BadCount,
    #[error("raw_streams")]
    RawStreams,
    #[error("base")]
    Base,
    #[error("block_count")]
    BlockCount,
    #[error("blocks since the checkpoint")]
    BlocksSinceTheCheckpoint,
    #[error("child")]
    Child,
    #[error("children")]
    Children,
    #[error("codec")]
    Codec,
    #[error("committed")]
    Committed,
    #[error("count")]
    Count,
    #[error("counts")]
    Counts,
    #[error("entries")]
    Entries,
    #[error("entry_count")]
    EntryCount,
    #[error("fences")]
    Fences,
    #[error("files behind")]
    FilesBehind,
    #[error("flags")]
    Flags,
    #[error("has_journal")]
    HasJournal,
    #[error("head")]
    Head,
    #[error("heads")]
    Heads,
    #[error("height")]
    Height,
    #[error("high")]
    High,
    #[error("id")]
    Id,
    #[error("incompatible")]
    Incompatible,
    #[error("journal")]
    Journal,
    #[error("kind")]
    Kind,
    #[error("layout")]
    Layout,
    #[error("log sectors")]
    LogSectors,
    #[error("low")]
    Low,
    #[error("map")]
    Map,
    #[error("mlc_streams")]
    MlcStreams,
    #[error("mode")]
    Mode,
    #[error("name")]
    Name,
    #[error("next")]
    Next,
    #[error("node")]
    Node,
    #[error("number")]
    Number,
    #[error("op")]
    Op,
    #[error("order")]
    Order,
    #[error("page")]
    Page,
    #[error("parent")]
    Parent,
    #[error("pointer")]
    Pointer,
    #[error("ready")]
    Ready,
    #[error("ready_count")]
    ReadyCount,
    #[error("record_count")]
    RecordCount,
    #[error("records")]
    Records,
    #[error("reserved")]
    Reserved,
    #[error("second hash")]
    SecondHash,
    #[error("sector")]
    Sector,
    #[error("size")]
    Size,
    #[error("stream")]
    Stream,
    #[error("stream_count")]
    StreamCount,
    #[error("table")]
    Table,
    #[error("table_page_count")]
    TablePageCount,
    #[error("tail")]
    Tail,
    #[error("value_size")]
    ValueSize,
    #[error("whole_count")]
    WholeCount,
}
