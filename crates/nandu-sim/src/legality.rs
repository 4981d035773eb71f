//! Illegal use: bugs of the caller, answered with a panic that tells the block's history.

use std::fmt::Write;

use nandu_nand::{BlockAddr, CellMode, PageAddr, PageGroup, ProgramOrder};

use crate::state::{Condition, PageState};
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
    /// If the program breaks a rule of the contract.
    #[inline]
    pub(crate) fn check_program(&self, at: (u32, u32), column: u32, length: usize) {
        let (block, index) = at;
        let geometry = &self.chip.geometry;
        let in_page = u64::from(column) + length as u64 <= u64::from(geometry.column_count());
        let whole = column == 0 && length as u32 == geometry.page_size;
        let aligned = whole || in_page && self.is_aligned(column, length as u32);
        if !aligned {
            self.refuse_program(at, column, length);
        }
        let (units, spare) = self.units(column, length);
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        let legal = matches!(state.condition, Condition::Erased | Condition::WeaklyErased)
            && !state.mark.reads_bad()
            && (state.mode == CellMode::Mlc || self.roles[index as usize].group == PageGroup::Lsb)
            && (geometry.order == ProgramOrder::Any || index + 1 >= state.next_index)
            && page.programs < geometry.programs_per_page
            && page.written & units == 0
            && page.flags & spare & PageState::SPARE_WRITTEN == 0;
        if !legal {
            self.refuse_program(at, column, length);
        }
    }

    /// Whether the main-area part of a range starts and ends on program units, and what lies in the spare area follows
    /// on main-area bytes.
    fn is_aligned(&self, column: u32, length: u32) -> bool {
        let geometry = &self.chip.geometry;
        let end = (column + length).min(geometry.page_size);
        length > 0
            && column < geometry.page_size
            && column.is_multiple_of(geometry.program_unit)
            && end.is_multiple_of(geometry.program_unit)
    }

    /// Says which rule a program breaks.
    #[cold]
    #[inline(never)]
    fn refuse_program(&self, at: (u32, u32), column: u32, length: usize) -> ! {
        let (block, index) = at;
        let geometry = &self.chip.geometry;
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        let end = u64::from(column) + length as u64;
        let (units, spare) =
            if end <= u64::from(geometry.column_count()) { self.units(column, length) } else { (0, 0) };
        let reason = if end > u64::from(geometry.column_count()) {
            format!("columns {column}+{length} are outside its {} columns", geometry.column_count())
        } else if !self.is_aligned(column, length as u32) {
            format!("columns {column}+{length} are not aligned to program units of {}", geometry.program_unit)
        } else if state.mark.reads_bad() {
            "the block is bad".into()
        } else if state.condition == Condition::NeverErased {
            "the block was never erased".into()
        } else if state.condition == Condition::EraseFailed {
            "the last erase of the block failed".into()
        } else if page.written & units != 0 || page.flags & spare != 0 {
            format!("columns {column}+{length} hold programmed bytes")
        } else if page.programs >= geometry.programs_per_page {
            format!("it was programmed {} of {} times", page.programs, geometry.programs_per_page)
        } else if state.mode == CellMode::Slc && self.role(index).group == PageGroup::Msb {
            "it is an MSB page of a block in SLC mode".into()
        } else {
            format!("page {} of the block was programmed before it", state.next_index.saturating_sub(1))
        };
        self.refuse(OperationKind::Program, block, Some(index), &reason)
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
