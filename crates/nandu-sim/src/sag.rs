//! Brown-outs: the supply sags before it goes, and what the chip acknowledged last is weak.
//!
//! A chip that programs or erases below its least voltage may say that all went well. So a cut is not the only thing that the power does: some of the last operations before it were
//! acknowledged and hold less charge than they should. Which ones, and how weak, is the caller's choice.

use std::fmt;

use crate::damage::HarmKind;
use crate::history::HistoryEntry;
use crate::state::{Condition, Dirty};
use crate::{HISTORY_LENGTH, OperationKind, Sim};

/// How weak an acknowledged operation is. A weakly erased block always loses what is programmed into it, slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Weakness {
    /// The page reads well at first, and gets worse with reads and time, as after [`Tear::Unstable`](crate::Tear::Unstable).
    Unstable,
    /// Reads of the page cannot be corrected.
    Lost,
}

impl Weakness {
    /// Each of them.
    pub const ALL: [Weakness; 2] = [Weakness::Unstable, Weakness::Lost];
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Weakness::Unstable => "unstable",
            Weakness::Lost => "lost",
        })
    }
}

/// Which of the last acknowledged programs and erases are weak, counted back from the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sag {
    /// The newest ones, which are sound all the same.
    pub sound: u8,
    /// Those before them, which are weak; with the sound ones [`HISTORY_LENGTH`] at most.
    pub weak: u8,
    /// How weak they are.
    pub weakness: Weakness,
}

impl Sag {
    /// How many operations back it reaches.
    pub const fn reach(&self) -> u8 {
        self.sound.saturating_add(self.weak)
    }
}

impl Sim {
    /// Weakens the last acknowledged programs and erases (F25), wherever they went. For use after [`cut_at`](Sim::cut_at) hit, or between two operations.
    /// Returns the number of the oldest one; `None` if the chip did not do so many. What was programmed and erased since is gone and not weak.
    ///
    /// # Panics
    ///
    /// If the sag reaches further back than the history of a block.
    pub fn sag(&mut self, sag: Sag) -> Option<u64> {
        assert!(usize::from(sag.reach()) <= HISTORY_LENGTH, "a sag reaches no further than the history of a block");
        let mut last: Vec<(u32, HistoryEntry)> = Vec::new();
        for (block, state) in self.blocks.iter().enumerate() {
            let history = state.history.iter().flat_map(|history| history.iter());
            let changes = history.filter(|entry| entry.error.is_none() && entry.kind != OperationKind::MarkBad);
            last.extend(changes.map(|entry| (block as u32, *entry)));
        }
        last.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.number));
        last.truncate(sag.reach().into());
        if last.len() < usize::from(sag.reach()) {
            return None;
        }
        let weak = &last[sag.sound.into()..];
        for &(block, entry) in weak {
            let is_erased_since = |(other, later): &(u32, HistoryEntry)| {
                *other == block && later.kind == OperationKind::Erase && later.number > entry.number
            };
            if !last.iter().any(is_erased_since) {
                self.weaken(block, entry, sag.weakness);
            }
        }
        weak.last().map(|(_, entry)| entry.number)
    }

    fn weaken(&mut self, block: u32, entry: HistoryEntry, weakness: Weakness) {
        let unstable = HarmKind::Unstable { since_ns: self.clock_ns, reads: 0 };
        if entry.kind == OperationKind::Erase {
            if self.blocks[block as usize].condition == Condition::Erased {
                self.blocks[block as usize].condition = Condition::WeaklyErased;
            }
            for index in 0..self.chip.geometry.pages_per_block {
                if self.blocks[block as usize].page(index).is_held() {
                    self.harm(block, index, self.whole_page(unstable));
                }
            }
            self.touch(block, Dirty::CONTENT);
            return;
        }
        let kind = if weakness == Weakness::Lost { HarmKind::Lost } else { unstable };
        self.harm(block, entry.index.into(), self.whole_page(kind));
    }
}
