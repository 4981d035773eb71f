//! The last operations of a block, kept to explain an illegal use.

use core::fmt;

use nandu_nand::{Cause, CellMode, NandErrorKind};

use crate::OperationKind;

/// How many operations of a block are kept.
pub const HISTORY_LENGTH: usize = 16;

/// One operation in the history of a block. Reads are not kept: they would push out what matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Number of the operation.
    pub number: u64,
    /// First column of a program.
    pub column: u32,
    /// Bytes of a program.
    pub length: u32,
    /// For a program, the page's place in its block; for an erase or a mark 0.
    pub index: u16,
    /// What was asked.
    pub kind: OperationKind,
    /// The cause announced.
    pub cause: Cause,
    /// The mode the block was in, or was erased for.
    pub mode: CellMode,
    /// What the caller was told: nothing, if it succeeded.
    pub error: Option<NandErrorKind>,
}

impl fmt::Display for HistoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.number, self.kind)?;
        match self.kind {
            OperationKind::Erase => write!(f, " for {:?} mode", self.mode)?,
            OperationKind::MarkBad => {}
            _ => write!(f, " of page {} in the block, columns {}+{}", self.index, self.column, self.length)?,
        }
        write!(f, " ({})", self.cause.name())?;
        match self.error {
            None => Ok(()),
            Some(kind) => write!(f, ": {kind}"),
        }
    }
}

/// Ring of the last operations of a block.
#[derive(Clone, Debug)]
pub(crate) struct History {
    entries: [HistoryEntry; HISTORY_LENGTH],
    /// Operations ever noted; the next goes to this place of the ring.
    noted: usize,
}

impl History {
    pub(crate) const EMPTY: History = History {
        entries: [HistoryEntry {
            number: 0,
            column: 0,
            length: 0,
            index: 0,
            kind: OperationKind::Read,
            cause: Cause::Other,
            mode: CellMode::Slc,
            error: None,
        }; HISTORY_LENGTH],
        noted: 0,
    };

    #[inline]
    pub(crate) fn note(&mut self, entry: HistoryEntry) {
        self.entries[self.noted % HISTORY_LENGTH] = entry;
        self.noted += 1;
    }

    /// Oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &HistoryEntry> {
        let first = self.noted.saturating_sub(HISTORY_LENGTH);
        (first..self.noted).map(|at| &self.entries[at % HISTORY_LENGTH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_newest_in_order() {
        let mut history = History::EMPTY;
        for number in 0..HISTORY_LENGTH as u64 + 3 {
            history.note(HistoryEntry { number, ..History::EMPTY.entries[0] });
        }
        let numbers: Vec<u64> = history.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, (3..HISTORY_LENGTH as u64 + 3).collect::<Vec<_>>());
    }
}
