//! Single operations on the chip.

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr};

use crate::blocks::State;
use crate::error::Error;
use crate::inpage::{InPage, Result};

/// How often an operation that may be repeated is tried.
const ATTEMPTS: u32 = 3;

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Fine,
    /// The bytes are right, and should be programmed elsewhere soon.
    Worn,
    /// There are no bytes.
    Unreadable,
}

/// Whether bytes are those of an erased page, in which as many bits may have flipped in each codeword as could be
/// corrected in a programmed one.
pub(crate) fn is_erased(bytes: &[u8], codeword_size: u32, tolerance: u16) -> bool {
    bytes.chunks(codeword_size.max(1) as usize).all(|codeword| {
        let zeros: u32 = codeword.iter().map(|byte| byte.count_zeros()).sum();
        zeros <= u32::from(tolerance)
    })
}

impl<N: Nand> InPage<'_, N> {
    /// Reads a part of a page. Takes the chip and not the index, so that the buffer may be the index's own.
    pub(crate) fn read(nand: &mut N, page: PageAddr, column: u32, bytes: &mut [u8]) -> Result<Read, N> {
        let mut attempt = 0;
        loop {
            match nand.read(page, column, bytes) {
                Ok(status) if status.refresh_advised() => return Ok(Read::Worn),
                Ok(_) => return Ok(Read::Fine),
                Err(error) => match error.kind() {
                    NandErrorKind::Uncorrectable => return Ok(Read::Unreadable),
                    NandErrorKind::Bus if attempt < ATTEMPTS => attempt += 1,
                    _ => return Err(Error::Nand(error)),
                },
            }
        }
    }

    /// Programs a part of a page; `false` if the block is to be emptied and retired. What was programmed is not to be
    /// relied on then.
    pub(crate) fn program(nand: &mut N, page: PageAddr, column: u32, bytes: &[u8]) -> Result<bool, N> {
        match nand.program(page, column, bytes) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                NandErrorKind::ProgramFailed | NandErrorKind::Bus => Ok(false),
                _ => Err(Error::Nand(error)),
            },
        }
    }

    /// A program failed in a block that holds nodes: it takes no more, and is emptied as soon as can be.
    pub(crate) fn note_failing(&mut self, block: BlockAddr) {
        if self.blocks[block].state() != State::Failing {
            self.blocks.set_state(block, State::Failing);
            self.failing += 1;
        }
    }

    /// Erases a block that holds nothing needed; `false` if it cannot be erased and was retired.
    pub(crate) fn erase(&mut self, block: BlockAddr) -> Result<bool, N> {
        for _ in 0..ATTEMPTS {
            match self.nand.erase(block, CellMode::Slc) {
                Ok(()) => {
                    let entry = &mut self.blocks[block];
                    entry.erase_count = entry.erase_count.saturating_add(1);
                    entry.clear();
                    self.blocks.set_state(block, State::Erased);
                    self.stats.erases += 1;
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    NandErrorKind::EraseFailed => break,
                    NandErrorKind::Bus => {}
                    _ => return Err(Error::Nand(error)),
                },
            }
        }
        self.retire(block)?;
        Ok(false)
    }

    /// Takes a block out of use for good.
    ///
    /// The anchor first and the mark after it: a block whose mark is on the chip and which the anchor does not list would be
    /// erased after a cut, and a marked block must not be. Without the mark the anchor is enough.
    pub(crate) fn retire(&mut self, block: BlockAddr) -> Result<(), N> {
        self.blocks[block].clear();
        self.blocks.set_state(block, State::Bad);
        self.write_anchor(false)?;
        match self.nand.mark_bad(block) {
            Err(error) if error.kind() == NandErrorKind::Gone => Err(Error::Nand(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_erased;

    #[test]
    fn an_erased_page_may_have_as_many_flipped_bits_as_can_be_corrected() {
        let mut bytes = [0xff; 64];
        assert!(is_erased(&bytes, 32, 1));
        bytes[3] = 0xfe;
        bytes[40] = 0x7f;
        assert!(is_erased(&bytes, 32, 1) && !is_erased(&bytes, 64, 1));
        bytes[5] = 0xfe;
        assert!(!is_erased(&bytes, 32, 1) && is_erased(&bytes, 32, 2));
    }
}
