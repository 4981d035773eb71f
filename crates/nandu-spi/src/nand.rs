//! The contract.

use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};

use crate::device::SpiNand;
use crate::error::SpiError;
use crate::wire::Wire;

/// Zero bits that a mark has at least. Factories write 00h; a single bit may have flipped by itself, since nothing corrects it, and a
/// good block that is taken for bad is lost with what it holds.
const MARK_ZEROS_MIN: u32 = 2;

impl<W: Wire> SpiNand<W> {
    fn check_page(&self, page: PageAddr) -> Result<(), SpiError<W::Error>> {
        if self.shape().contains_page(page) { Ok(()) } else { Err(SpiError::OutOfBounds) }
    }

    fn check_block(&self, block: BlockAddr) -> Result<(), SpiError<W::Error>> {
        if self.shape().contains_block(block) { Ok(()) } else { Err(SpiError::OutOfBounds) }
    }

    fn check_columns(&self, page: PageAddr, column: u32, size: usize) -> Result<(), SpiError<W::Error>> {
        self.check_page(page)?;
        let room = self.shape().column_count().checked_sub(column);
        if room.is_some_and(|room| size <= room as usize) { Ok(()) } else { Err(SpiError::OutOfBounds) }
    }
}

impl<W: Wire> ErrorType for SpiNand<W> {
    type Error = SpiError<W::Error>;
}

impl<W: Wire> Nand for SpiNand<W> {
    fn geometry(&self) -> &Geometry {
        self.shape()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        self.check_columns(page, column, buf.len())?;
        self.run(|chip| chip.read_page(page, &mut [(column, buf)]))
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        self.check_columns(page, 0, data.len())?;
        let column = self.shape().tag_column();
        self.check_columns(page, column, tag.len())?;
        self.run(|chip| chip.read_page(page, &mut [(0, data), (column, tag)]))
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), Self::Error> {
        self.check_columns(page, column, data.len())?;
        let geometry = self.shape();
        let is_in_main = column as usize + data.len() <= geometry.page_size as usize;
        let unit = geometry.program_unit;
        if !column.is_multiple_of(unit) || is_in_main && !data.len().is_multiple_of(unit as usize) {
            return Err(SpiError::NotAligned);
        }
        self.run(|chip| chip.program_page(page, &[(column, data)]))
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), Self::Error> {
        let geometry = *self.shape();
        if geometry.tag_size == 0 {
            return Err(SpiError::Unsupported);
        }
        self.check_page(page)?;
        if data.len() != geometry.page_size as usize {
            return Err(SpiError::NotAligned);
        }
        if tag.len() > geometry.tag_size as usize {
            return Err(SpiError::OutOfBounds);
        }
        self.run(|chip| chip.program_page(page, &[(0, data), (geometry.tag_column(), tag)]))
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), Self::Error> {
        self.check_block(block)?;
        if !self.shape().supports(mode) {
            return Err(SpiError::Unsupported);
        }
        self.run(|chip| chip.erase_block(block))
    }

    /// Costs one array read for each page that may have the mark.
    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, Self::Error> {
        self.check_block(block)?;
        let mark = self.run(|chip| chip.read_marks(block))?;
        Ok(mark.count_zeros() >= MARK_ZEROS_MIN)
    }

    /// Costs one program for each page that may have the mark.
    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), Self::Error> {
        self.check_block(block)?;
        self.run(|chip| chip.write_marks(block))
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, Self::Error> {
        self.check_page(from)?;
        self.check_page(to)?;
        let geometry = self.shape();
        if !geometry.may_copy(geometry.block_of(from), geometry.block_of(to)) {
            return Ok(None);
        }
        self.run(|chip| chip.copy_page(from, to).map(Some))
    }
}
