//! What a check of a store finds.

use core::fmt;

use nandu_nand::PageAddr;

/// An invariant that does not hold on the chip, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One of the log.
    Log(nandu_log::Violation),
    /// One of the tree.
    Tree(nandu_index::Violation),
    /// A large value cannot be read as a whole; the root of the tree that has it (T7).
    Value(PageAddr),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Log(violation) => violation.fmt(f),
            Violation::Tree(violation) => violation.fmt(f),
            Violation::Value(root) => write!(f, "T7: a large value of the tree in {root} cannot be read"),
        }
    }
}
