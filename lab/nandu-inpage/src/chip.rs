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
    /// relied on then. With a buffer, at least as long, it is read back and compared.
    pub(crate) fn program(
        nand: &mut N,
        page: PageAddr,
        column: u32,
        bytes: &[u8],
        read_back: Option<&mut [u8]>,
    ) -> Result<bool, N> {
        match nand.program(page, column, bytes) {
            Ok(()) => {}
            Err(error) => {
                return match error.kind() {
                    NandErrorKind::ProgramFailed | NandErrorKind::Bus => Ok(false),
                    _ => Err(Error::Nand(error)),
                };
            }
        }
        let Some(found) = read_back.and_then(|buffer| buffer.get_mut(..bytes.len())) else { return Ok(true) };
        // Again if it differs: the read may have gone wrong and not the program.
        for _ in 0..ATTEMPTS {
            if Self::read(nand, page, column, found)? != Read::Unreadable && found == bytes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the chip's mark lets a block be used. One read for a block that was not looked at in this session.
    ///
    /// The anchor knows which blocks are bad, but an image may have come to another chip, where others are, and a mark may
    /// have turned.
    pub(crate) fn may_use(&mut self, block: BlockAddr) -> Result<bool, N> {
        for _ in 0..ATTEMPTS {
            if self.blocks[block].is_mark_seen != 0 {
                break;
            }
            match self.nand.is_bad(block) {
                Ok(true) => return Ok(false),
                Ok(false) => self.blocks[block].is_mark_seen = 1,
                Err(error) if error.kind() == NandErrorKind::Gone => return Err(Error::Nand(error)),
                // A mark that cannot be read says nothing: the anchor calls the block good.
                Err(_) => {}
            }
        }
        self.blocks[block].is_mark_seen = 1;
        Ok(true)
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
        if self.try_erase(block)? {
            self.blocks[block].clear();
            self.blocks.set_state(block, State::Erased);
            return Ok(true);
        }
        self.retire(block)?;
        Ok(false)
    }

    /// Erases a block, whatever it is used for; `false` if it cannot be erased, or must not be since it carries a mark.
    pub(crate) fn try_erase(&mut self, block: BlockAddr) -> Result<bool, N> {
        if !self.may_use(block)? {
            return Ok(false);
        }
        for _ in 0..ATTEMPTS {
            match self.nand.erase(block, CellMode::Slc) {
                Ok(()) => {
                    let entry = &mut self.blocks[block];
                    entry.erase_count = entry.erase_count.saturating_add(1);
                    self.stats.erases += 1;
                    self.anchors.erases = self.anchors.erases.saturating_add(1);
                    if !self.options.read_back || self.begins_erased(block)? {
                        return Ok(true);
                    }
                }
                Err(error) => match error.kind() {
                    NandErrorKind::EraseFailed => break,
                    NandErrorKind::Bus => {}
                    _ => return Err(Error::Nand(error)),
                },
            }
        }
        Ok(false)
    }

    /// Whether the first page of a block is erased. It is the first to be programmed, so it shows an erase that was reported and
    /// never happened.
    pub(crate) fn begins_erased(&mut self, block: BlockAddr) -> Result<bool, N> {
        let mut front = [0; 32];
        let page = self.page_of(block, 0);
        let read = Self::read(&mut self.nand, page, 0, &mut front)?;
        Ok(read != Read::Unreadable && is_erased(&front, 32, self.geometry.ecc.correctable_bits))
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
