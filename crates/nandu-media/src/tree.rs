//! What every page of a tree says of it, and what may be wrong with one.

use core::fmt;

/// No tree is higher.
pub const HEIGHT_MAX: usize = 8;

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The page ends before its content does.
    Short,
    /// Height, lowest level and number of levels do not fit each other.
    Levels,
    /// A reserved byte is not zero.
    Reserved,
    /// The nodes are larger than the page.
    NodeSizes,
    /// The page holds no node of the level that was looked for.
    LevelMissing,
    /// The content of a node contradicts its size.
    Node,
    /// A page number lies outside the chip.
    PageNumber,
    /// Cells of another kind or size than the tree has.
    Cells,
    /// The path from the root to a node does not fit a page.
    PathTooLarge,
    /// The checksum of a page value is another one.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Short => "it ends before its content does",
            Malformed::Levels => "its levels contradict each other",
            Malformed::Reserved => "a reserved byte is not zero",
            Malformed::NodeSizes => "its nodes are larger than the page",
            Malformed::LevelMissing => "it lacks the level looked for",
            Malformed::Node => "a node contradicts its size",
            Malformed::PageNumber => "a page number lies outside the chip",
            Malformed::Cells => "its cells are of another kind",
            Malformed::PathTooLarge => "the path to it does not fit a page",
            Malformed::Checksum => "its checksum is wrong",
        })
    }
}

/// Kind and sizes of the cells of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellFormat {
    /// 1 fixed width, 2 byte strings.
    pub cells: u8,
    /// Bytes of a key; 0 where keys have any length.
    pub key_size: u8,
    /// Bytes of a value; 0 where values have any length.
    pub value_size: u16,
    /// Bits of a page number in an inner node.
    pub page_bits: u8,
}
