//! The contract, spoken to the kernel.

use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};
use rustix::io::Errno;

use crate::device::Mtd;
use crate::door::Door;
use crate::error::MtdError;

impl<D: Door> ErrorType for Mtd<D> {
    type Error = MtdError;
}

impl<D: Door> Mtd<D> {
    fn block_offset(&self, block: BlockAddr) -> Result<u64, MtdError> {
        let geometry = &self.shape.geometry;
        if !geometry.contains_block(block) {
            return Err(MtdError::OutOfBounds);
        }
        self.offset(geometry.first_page(block))
    }

    /// What a program ends with. Nobody tries one again: some of it may be programmed.
    fn programmed(&mut self, page: PageAddr, outcome: Result<(), Errno>) -> Result<(), MtdError> {
        outcome.map_err(|error| match error {
            Errno::IO => {
                self.counters.failures += 1;
                MtdError::ProgramFailed(page)
            }
            error => MtdError::Program(page, error),
        })
    }

    /// The parts of a range of columns: those of the main area, and those of the tag, which begin at its first.
    fn parts(&self, column: u32, size: usize) -> Result<(usize, usize), MtdError> {
        let geometry = &self.shape.geometry;
        let end = u64::from(column) + size as u64;
        if end > u64::from(geometry.column_count()) {
            return Err(MtdError::OutOfBounds);
        }
        if end <= u64::from(geometry.page_size) {
            return Ok((size, 0));
        }
        let tag = geometry.tag_column();
        if column >= tag && end <= u64::from(tag + geometry.tag_size) {
            Ok((0, size))
        } else {
            Err(MtdError::Unsupported)
        }
    }
}

impl<D: Door> Nand for Mtd<D> {
    fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, MtdError> {
        let (main, tag) = self.parts(column, buf.len())?;
        if main > 0 || tag == 0 {
            return self.fetch(page, column, buf, &mut []);
        }
        // The kernel hands out free spare bytes from the first on.
        let skipped = (column - self.shape.geometry.tag_column()) as usize;
        let mut whole = vec![0; skipped + tag];
        let status = self.fetch(page, 0, &mut [], &mut whole)?;
        buf.copy_from_slice(&whole[skipped..]);
        Ok(status)
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, MtdError> {
        let geometry = &self.shape.geometry;
        if tag.len() > geometry.tag_size as usize {
            return Err(MtdError::Unsupported);
        }
        if data.len() != geometry.page_size as usize {
            return Err(MtdError::OutOfBounds);
        }
        self.fetch(page, 0, data, tag)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), MtdError> {
        let offset = self.offset(page)?;
        let page_size = self.shape.geometry.page_size as usize;
        if column > 0 || data.len() != page_size {
            let is_inside = column as usize + data.len() <= page_size;
            return Err(if is_inside { MtdError::NotAligned } else { MtdError::Unsupported });
        }
        self.counters.programs += 1;
        match self.door.write(offset, data) {
            Ok(count) if count != data.len() => Err(MtdError::Short(page)),
            outcome => self.programmed(page, outcome.map(|_| ())),
        }
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), MtdError> {
        let offset = self.offset(page)?;
        let geometry = &self.shape.geometry;
        if geometry.tag_size == 0 || tag.len() > geometry.tag_size as usize {
            return Err(MtdError::Unsupported);
        }
        if data.len() != geometry.page_size as usize {
            return Err(MtdError::NotAligned);
        }
        self.counters.programs += 1;
        let outcome = self.door.write_spare(offset, data, tag);
        self.programmed(page, outcome)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), MtdError> {
        let offset = self.block_offset(block)?;
        let geometry = &self.shape.geometry;
        if !geometry.supports(mode) {
            return Err(MtdError::Unsupported);
        }
        let length = u64::from(geometry.pages_per_block) * u64::from(geometry.page_size);
        self.counters.erases += 1;
        self.door.erase(offset, length).map_err(|error| match error {
            Errno::IO => {
                self.counters.failures += 1;
                MtdError::EraseFailed(block)
            }
            error => MtdError::Erase(block, error),
        })
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, MtdError> {
        let offset = self.block_offset(block)?;
        self.door.is_bad(offset).map_err(|error| MtdError::Mark(block, error))
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), MtdError> {
        let offset = self.block_offset(block)?;
        self.door.mark_bad(offset).map_err(|error| MtdError::Mark(block, error))
    }
}
