//! Asking beforehand whether an operation would be illegal.

use std::fmt;

use nandu_nand::{BlockAddr, CellMode, PageAddr, PageGroup, ProgramOrder};

use crate::Sim;
use crate::state::{Condition, PageState};

/// Why the simulator would refuse an operation with a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IllegalUse {
    /// The page or the block is outside the chip.
    Address,
    /// The columns are outside the page, or not those that a program may take.
    Columns,
    /// The block is marked bad.
    Bad,
    /// The block was not erased.
    NotErased,
    /// The page holds programmed bytes there, or took all its programs.
    Programmed,
    /// The page is an MSB page of a block in SLC mode.
    Mode,
    /// A later page of the block was programmed before.
    Order,
    /// The chip does not copy between these two blocks.
    Copy,
}

impl fmt::Display for IllegalUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IllegalUse::Address => "it is outside the chip",
            IllegalUse::Columns => "the columns are not those that it may take",
            IllegalUse::Bad => "the block is bad",
            IllegalUse::NotErased => "the block is not erased",
            IllegalUse::Programmed => "the page is programmed",
            IllegalUse::Mode => "the page is an MSB page and the block is in SLC mode",
            IllegalUse::Order => "a later page of the block is programmed",
            IllegalUse::Copy => "the chip does not copy between these two blocks",
        })
    }
}

impl std::error::Error for IllegalUse {}

/// What users ask of a chip is a wish of theirs and no bug of the program: tools look before they do it.
impl Sim {
    /// Whether a read of these columns is legal. Costs nothing and counts as no operation, as the next two.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn may_read(&self, page: PageAddr, column: u32, length: usize) -> Result<(), IllegalUse> {
        let geometry = &self.chip.geometry;
        if !geometry.contains_page(page) {
            return Err(IllegalUse::Address);
        }
        let in_page = u64::from(column) + length as u64 <= u64::from(geometry.column_count());
        if in_page { Ok(()) } else { Err(IllegalUse::Columns) }
    }

    /// Whether an erase is legal.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn may_erase(&self, block: BlockAddr) -> Result<(), IllegalUse> {
        if !self.chip.geometry.contains_block(block) {
            Err(IllegalUse::Address)
        } else if self.blocks[block.0 as usize].mark.reads_bad() {
            Err(IllegalUse::Bad)
        } else {
            Ok(())
        }
    }

    /// Whether the chip copies a page of the one block into the other inside itself. Whether the second page may be
    /// programmed is a question of its own.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn may_copy(&self, from: PageAddr, to: PageAddr) -> Result<(), IllegalUse> {
        let geometry = &self.chip.geometry;
        if !geometry.contains_page(from) || !geometry.contains_page(to) {
            return Err(IllegalUse::Address);
        }
        let may = geometry.may_copy(geometry.block_of(from), geometry.block_of(to));
        if may { Ok(()) } else { Err(IllegalUse::Copy) }
    }

    /// Whether a program of these columns is legal.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn may_program(&self, page: PageAddr, column: u32, length: usize) -> Result<(), IllegalUse> {
        self.may_read(page, column, length)?;
        let geometry = &self.chip.geometry;
        let (block, index) = self.locate(page);
        let end = (column + length as u32).min(geometry.page_size);
        let unit = geometry.program_unit;
        if length == 0 || column >= geometry.page_size || !column.is_multiple_of(unit) || !end.is_multiple_of(unit) {
            return Err(IllegalUse::Columns);
        }
        let (units, spare) = self.units(column, length);
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        if state.mark.reads_bad() {
            Err(IllegalUse::Bad)
        } else if !matches!(state.condition, Condition::Erased | Condition::WeaklyErased) {
            Err(IllegalUse::NotErased)
        } else if state.mode == CellMode::Slc && self.role(index).group == PageGroup::Msb {
            Err(IllegalUse::Mode)
        } else if page.written & units != 0
            || page.flags & spare & PageState::SPARE_WRITTEN != 0
            || page.programs >= geometry.programs_per_page
        {
            Err(IllegalUse::Programmed)
        } else if geometry.order == ProgramOrder::Ascending && index + 1 < state.next_index {
            Err(IllegalUse::Order)
        } else {
            Ok(())
        }
    }
}
