//! Single operations on the chip.

use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr};

use crate::blocks::{Area, REFRESH, SEEN};
use crate::dffs::{Dffs, Result};
use crate::error::Error;

/// How often an operation that may be repeated is tried.
const ATTEMPTS: u32 = 3;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programmed {
    Fine,
    /// Whether it was done is not known.
    Unknown,
    /// The block is to be emptied and retired.
    Failed,
}

/// Reads a part of a page; `None` if there are no bytes to be had, else whether it is to be moved soon.
pub(crate) fn read<N: Nand>(nand: &mut N, page: PageAddr, column: u32, bytes: &mut [u8]) -> Result<Option<bool>, N> {
    let mut attempt = 0;
    loop {
        match nand.read(page, column, bytes) {
            Ok(status) => return Ok(Some(status.refresh_advised())),
            Err(error) => match error.kind() {
                NandErrorKind::Uncorrectable => return Ok(None),
                NandErrorKind::Bus if attempt < ATTEMPTS => attempt += 1,
                _ => return Err(Error::Nand(error)),
            },
        }
    }
}

/// Programs a page.
pub(crate) fn program<N: Nand>(nand: &mut N, page: PageAddr, bytes: &[u8]) -> Result<Programmed, N> {
    match nand.program(page, 0, bytes) {
        Ok(()) => Ok(Programmed::Fine),
        Err(error) => match error.kind() {
            NandErrorKind::ProgramFailed => Ok(Programmed::Failed),
            NandErrorKind::Bus => Ok(Programmed::Unknown),
            _ => Err(Error::Nand(error)),
        },
    }
}

/// Whether bytes are those of an erased page, in which as many bits may have flipped in each codeword as can be corrected.
pub(crate) fn is_erased(bytes: &[u8], codeword_size: u32, tolerance: u16) -> bool {
    bytes.chunks(codeword_size.max(1) as usize).all(|codeword| {
        let zeros: u32 = codeword.iter().map(|byte| byte.count_zeros()).sum();
        zeros <= u32::from(tolerance)
    })
}

impl<N: Nand> Dffs<'_, N> {
    /// Whether the chip's mark lets a block be used. One read for a block that was not looked at since the mount.
    fn may_use(&mut self, block: BlockAddr) -> Result<bool, N> {
        for _ in 0..ATTEMPTS {
            if self.blocks.get(block).has(SEEN) {
                return Ok(true);
            }
            match self.nand.is_bad(block) {
                Ok(true) => return Ok(false),
                Ok(false) => self.blocks.update(block, |entry| entry.flags |= SEEN),
                Err(error) if error.kind() == NandErrorKind::Gone => return Err(Error::Nand(error)),
                Err(_) => {}
            }
        }
        // A mark that cannot be read says nothing: the checkpoint calls the block good.
        Ok(true)
    }

    /// Erases a block whose content is not needed; `false` if it cannot be erased: then it is bad from here on.
    pub(crate) fn erase(&mut self, block: BlockAddr) -> Result<bool, N> {
        if self.may_use(block)? {
            for _ in 0..ATTEMPTS {
                match self.nand.erase(block, CellMode::Slc) {
                    Ok(()) => {
                        self.blocks.update(block, |entry| entry.erase_count = entry.erase_count.saturating_add(1));
                        self.stats.erases += 1;
                        self.forget_block(block);
                        return Ok(true);
                    }
                    Err(error) => match error.kind() {
                        NandErrorKind::EraseFailed => break,
                        NandErrorKind::Bus => {}
                        _ => return Err(Error::Nand(error)),
                    },
                }
            }
        }
        self.mark_bad(block)?;
        Ok(false)
    }

    /// Takes a block out of use for good, on the chip too. What lists it as anything but bad is corrected by the mark.
    pub(crate) fn mark_bad(&mut self, block: BlockAddr) -> Result<(), N> {
        self.blocks.update(block, |entry| {
            entry.set_area(Area::Bad);
            (entry.live, entry.flags) = (0, 0);
        });
        self.stats.retired += 1;
        let before = self.nand.attribute(Cause::Retire);
        let result = self.nand.mark_bad(block);
        self.nand.attribute(before);
        match result {
            Err(error) if error.kind() == NandErrorKind::Gone => Err(Error::Nand(error)),
            _ => Ok(()),
        }
    }

    /// A page's bits begin to flip: its block is collected soon.
    pub(crate) fn note_worn(&mut self, page: PageAddr) {
        let block = self.geometry.block_of(page);
        if !self.blocks.get(block).is_free() && !self.blocks.get(block).has(REFRESH) {
            self.blocks.update(block, |entry| entry.flags |= REFRESH);
            self.refreshes += 1;
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
    }
}
