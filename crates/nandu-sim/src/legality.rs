//! Illegal use: bugs of the caller, answered with a panic that tells the block's history.

use std::fmt::Write;

use nandu_nand::{BlockAddr, CopyRule, PageAddr};

use crate::state::Condition;
use crate::trace::IllegalUse;
use crate::{OperationKind, Sim};

impl Sim {
    /// # Panics
    ///
    /// If the block is outside the chip.
    #[inline]
    pub(crate) fn locate_block(&self, block: BlockAddr) {
        assert!(self.chip.geometry.contains_block(block), "illegal use: block {block} is outside the chip");
    }

    /// # Panics
    ///
    /// If the columns are outside the page.
    #[inline]
    pub(crate) fn check_columns(&self, page: PageAddr, column: u32, length: usize) {
        let columns = u64::from(self.chip.geometry.column_count());
        assert!(
            u64::from(column) + length as u64 <= columns,
            "illegal use: columns {column}+{length} of page {page} are outside its {columns} columns"
        );
    }

    /// # Panics
    ///
    /// If the program breaks a rule of the contract. [`Sim::may_program`] says what the rules are.
    #[inline]
    pub(crate) fn check_program(&self, at: (u32, u32), column: u32, length: usize) {
        let page = self.chip.geometry.page_at(BlockAddr(at.0), at.1);
        if let Err(why) = self.may_program(page, column, length) {
            self.refuse_program(at, column, length, why);
        }
    }

    /// Says which rule a program breaks.
    #[cold]
    #[inline(never)]
    fn refuse_program(&self, at: (u32, u32), column: u32, length: usize, why: IllegalUse) -> ! {
        let (block, index) = at;
        let geometry = &self.chip.geometry;
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        let columns = geometry.column_count();
        let reason = match why {
            IllegalUse::Columns if u64::from(column) + length as u64 > u64::from(columns) => {
                format!("columns {column}+{length} are outside its {columns} columns")
            }
            IllegalUse::Columns => {
                format!("columns {column}+{length} are not aligned to program units of {}", geometry.program_unit)
            }
            IllegalUse::NotErased if state.condition == Condition::EraseFailed => {
                "the last erase of the block failed".into()
            }
            IllegalUse::NotErased => "the block was never erased".into(),
            IllegalUse::Programmed if page.written & self.units(column, length).0 != 0 => {
                format!("columns {column}+{length} hold programmed bytes")
            }
            IllegalUse::Programmed => {
                format!("it was programmed {} of {} times", page.programs, geometry.programs_per_page)
            }
            IllegalUse::Order => {
                format!("page {} of the block was programmed before it", state.next_index.saturating_sub(1))
            }
            IllegalUse::Address | IllegalUse::Bad | IllegalUse::Mode | IllegalUse::Copy => why.to_string(),
        };
        self.refuse(OperationKind::Program, block, Some(index), &reason)
    }

    /// # Panics
    ///
    /// If the chip does not copy from the one block into the other.
    pub(crate) fn check_copy(&self, from: PageAddr, to: PageAddr) {
        if self.off || self.may_copy(from, to).is_ok() {
            return;
        }
        let geometry = &self.chip.geometry;
        let place = |page| {
            let block = geometry.block_of(page);
            format!("block {block} in plane {} of die {}", geometry.plane_of(block), geometry.die_of(block))
        };
        let rule = match geometry.copies {
            CopyRule::Never | CopyRule::Die => "inside a die",
            CopyRule::Plane => "inside a plane",
            CopyRule::Parity => "inside a plane, from even to even and from odd to odd blocks",
        };
        let reason =
            format!("it is copied from page {from} of {} to {}, and the chip copies {rule}", place(from), place(to));
        let (block, index) = self.locate(to);
        self.refuse(OperationKind::Copy, block, Some(index), &reason)
    }

    /// # Panics
    ///
    /// If the block reads as bad: erasing it would wipe the mark.
    pub(crate) fn check_erase(&self, block: BlockAddr) {
        if self.blocks[block.0 as usize].mark.reads_bad() {
            self.refuse(OperationKind::Erase, block.0, None, "the block is bad");
        }
    }

    /// Panics with the reason and the block's history.
    #[cold]
    #[inline(never)]
    #[expect(clippy::panic, reason = "illegal use is a bug of the caller, which must not go on")]
    pub(crate) fn refuse(&self, kind: OperationKind, block: u32, index: Option<u32>, reason: &str) -> ! {
        let mut text = format!("illegal use: {kind} of ");
        // Writing to a string cannot fail.
        if let Some(index) = index {
            let page = self.chip.geometry.page_at(BlockAddr(block), index);
            let _ = write!(text, "page {page} (page {index} of block {block}): {reason}");
        } else {
            let _ = write!(text, "block {block}: {reason}");
        }
        let state = &self.blocks[block as usize];
        let _ = write!(
            text,
            "\n{} is operation {}, cause {}; block {block}: {:?}, {:?} mode, {} erases; its last operations:",
            kind,
            self.operations,
            self.cause.name(),
            state.condition,
            state.mode,
            state.counters.erases
        );
        match &state.history {
            None => text.push_str(" none"),
            Some(history) => {
                for entry in history.iter() {
                    let _ = write!(text, "\n  {entry}");
                }
            }
        }
        panic!("{text}")
    }
}
