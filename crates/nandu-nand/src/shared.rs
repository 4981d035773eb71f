//! A chip that several use, one call after the other.

use core::cell::RefCell;

use crate::{BlockAddr, Cause, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};

/// Holds a chip for several users in one thread, such as two [`Partition`](crate::Partition)s: `&Shared<N>` is a chip, too.
///
/// Each call of the contract is finished before the next one begins, so users do not get in each other's way. Users in several tasks or
/// on several cores need a lock in its place: a type of their own that locks, calls the driver and unlocks, with a copy of the
/// geometry beside the lock.
#[derive(Debug)]
pub struct Shared<N> {
    // A call borrows it and gives it back before it returns. A driver that called back into its own holder would panic here.
    chip: RefCell<N>,
    geometry: Geometry,
}

impl<N: Nand> Shared<N> {
    /// Holds a chip.
    pub fn new(chip: N) -> Shared<N> {
        let geometry = *chip.geometry();
        Shared { chip: RefCell::new(chip), geometry }
    }

    /// The chip, as long as nobody else uses this.
    pub fn get_mut(&mut self) -> &mut N {
        self.chip.get_mut()
    }

    /// Gives the chip back.
    pub fn into_inner(self) -> N {
        self.chip.into_inner()
    }
}

impl<N: Nand> ErrorType for &Shared<N> {
    type Error = N::Error;
}

impl<N: Nand> Nand for &Shared<N> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        self.chip.borrow_mut().read(page, column, buf)
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        self.chip.borrow_mut().read_tagged(page, data, tag)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), Self::Error> {
        self.chip.borrow_mut().program(page, column, data)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), Self::Error> {
        self.chip.borrow_mut().program_tagged(page, data, tag)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), Self::Error> {
        self.chip.borrow_mut().erase(block, mode)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, Self::Error> {
        self.chip.borrow_mut().is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), Self::Error> {
        self.chip.borrow_mut().mark_bad(block)
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, Self::Error> {
        self.chip.borrow_mut().copy(from, to)
    }

    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, Self::Error> {
        self.chip.borrow_mut().recover_lsb(page, buf)
    }

    fn attribute(&mut self, cause: Cause) -> Cause {
        self.chip.borrow_mut().attribute(cause)
    }
}
