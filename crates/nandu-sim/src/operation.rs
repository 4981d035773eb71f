//! What was asked of the chip: operations, their outcomes, their errors, and who may watch them.

use core::fmt;
use std::error::Error;

use nandu_nand::{BlockAddr, Cause, CellMode, NandError, NandErrorKind, PageAddr};

/// The operations of a chip. Each counts as one in [`Sim::operation_count`](crate::Sim::operation_count).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OperationKind {
    /// Reading columns of a page; an LSB recovery read as well.
    Read = 0,
    /// Programming a page or a part of it.
    Program = 1,
    /// Erasing a block.
    Erase = 2,
    /// Looking whether a block is marked bad.
    CheckBad = 3,
    /// Marking a block bad.
    MarkBad = 4,
    /// Copying a page inside the chip.
    Copy = 5,
}

impl OperationKind {
    /// Every kind, in the order of its number.
    pub const ALL: [OperationKind; 6] = [
        OperationKind::Read,
        OperationKind::Program,
        OperationKind::Erase,
        OperationKind::CheckBad,
        OperationKind::MarkBad,
        OperationKind::Copy,
    ];

    /// The kind with this number.
    pub const fn from_index(index: u8) -> Option<OperationKind> {
        if (index as usize) < Self::ALL.len() { Some(Self::ALL[index as usize]) } else { None }
    }

    /// One lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Program => "program",
            OperationKind::Erase => "erase",
            OperationKind::CheckBad => "check-bad",
            OperationKind::MarkBad => "mark-bad",
            OperationKind::Copy => "copy",
        }
    }

    /// Whether the operation programs cells of a page.
    pub(crate) const fn is_program(self) -> bool {
        matches!(self, OperationKind::Program | OperationKind::Copy)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an operation is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A page; for a copy, the page programmed.
    Page(PageAddr),
    /// A block.
    Block(BlockAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Page(page) => write!(f, "page {page}"),
            Address::Block(block) => write!(f, "block {block}"),
        }
    }
}

/// An operation, as an [`Observer`] sees it once it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its number: how many operations were started on this chip before it.
    pub number: u64,
    /// What was asked.
    pub kind: OperationKind,
    /// Of which page or block.
    pub address: Address,
    /// For a copy, the page read.
    pub from: Option<PageAddr>,
    /// First column, for reads and programs.
    pub column: u32,
    /// Bytes moved over the bus.
    pub length: u32,
    /// For an erase, the mode asked for; else the mode of the block.
    pub mode: CellMode,
    /// The cause announced.
    pub cause: Cause,
    /// How it ended, as the caller was told.
    pub outcome: Outcome,
    /// The chip's clock when it ended, nanoseconds.
    pub clock_ns: u64,
}

/// How an operation ended, as the caller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; a read or copy corrected this many bits in its worst codeword.
    Done {
        /// Corrected bits in the worst codeword; 0 for anything but a read or a copy.
        corrected_bits: u16,
    },
    /// A check for a bad-block mark found one.
    Bad,
    /// It failed.
    Failed(NandErrorKind),
}

/// Watches the operations of a chip. See [`Sim::set_observer`](crate::Sim::set_observer).
pub trait Observer {
    /// Called after each operation, failed ones included; not for operations on a chip without power, which are none.
    /// `data` is what the operation moved: the bytes programmed, or those a read delivered (empty if it failed).
    fn operation(&mut self, operation: &Operation, data: &[u8]);
}

/// Why an operation of the simulated chip failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimError {
    /// Number of the operation.
    pub number: u64,
    /// What was asked.
    pub operation: OperationKind,
    /// Of which page or block.
    pub address: Address,
    /// What went wrong.
    pub kind: NandErrorKind,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} (operation {}): {}", self.operation, self.address, self.number, self.kind)
    }
}

impl Error for SimError {}

impl NandError for SimError {
    fn kind(&self) -> NandErrorKind {
        self.kind
    }
}
