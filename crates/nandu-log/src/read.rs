//! Reading pages of the owner.

use nandu_media::{Field, Malformed, Page};
use nandu_nand::{Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::block_table::REFRESH;
use crate::error::LogError;
use crate::log::{Condition, Log, PageInfo};

impl<N: Nand> Log<'_, N> {
    /// Reads a page of the owner's into `bytes`, a whole page, and checks everything it says of itself: checksum,
    /// volume, own address, kind, and a sequence that was given out. One read. A page whose bits begin to flip has its
    /// block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read, is erased or is not the owner's; [`LogError::Nand`].
    pub fn read(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<PageInfo, LogError<N::Error>> {
        if self.condition == Condition::Poisoned {
            return Err(LogError::Poisoned);
        }
        let corrupt = |why| Err(LogError::Corrupt { page, why });
        if !self.shape.geometry.contains_page(page) {
            return corrupt(Malformed::Range(Field::Page));
        }
        if bytes.len() != self.page_size() {
            return corrupt(Malformed::Size);
        }
        self.note_read(page);
        let status = match Self::read_page(&mut self.nand, page, bytes) {
            Ok(status) => status,
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => return corrupt(Malformed::Unreadable),
            Err(error) => return Err(self.chip_error(error)),
        };
        let block = self.shape.geometry.block_of(page);
        if status.refresh_advised() && self.blocks.state(block).holds_data() {
            self.blocks.set(block, REFRESH, true);
        }
        let checked = Page::parse(bytes).and_then(|parsed| parsed.expect(self.volume, page.0));
        let parsed = match checked {
            Ok(parsed) => parsed,
            Err(why) => {
                let ecc = self.shape.geometry.ecc;
                let erased = crate::access::is_erased(bytes, ecc.codeword_size, ecc.correctable_bits);
                return corrupt(if erased { Malformed::Erased } else { why });
            }
        };
        if parsed.kind().is_of_the_log() {
            return corrupt(Malformed::Kind(parsed.kind() as u8));
        }
        if parsed.sequence() >= self.sequence {
            return corrupt(Malformed::Sequence);
        }
        Ok(PageInfo {
            kind: parsed.kind(),
            sequence: parsed.sequence(),
            is_commit: parsed.is_commit(),
            stream: parsed.stream(),
            status,
        })
    }

    /// Reads bytes of a bare page, from an offset on. One read, or a part of one. What they are worth is the owner's to know.
    /// A page whose bits begin to flip has its block noted for refresh.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] for a page that cannot be read or is not in a bare block; [`LogError::Nand`].
    pub fn read_bare(
        &mut self,
        page: PageAddr,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<ReadStatus, LogError<N::Error>> {
        if self.condition == Condition::Poisoned {
            return Err(LogError::Poisoned);
        }
        let corrupt = |why| Err(LogError::Corrupt { page, why });
        if !self.is_bare(page) {
            return corrupt(Malformed::Range(Field::Page));
        }
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.page_size()) {
            return corrupt(Malformed::Size);
        }
        // The chip may hold nothing of it.
        if let Some(content) = self.pairs.doubted_content(page) {
            bytes.copy_from_slice(&content[offset..offset + bytes.len()]);
            return Ok(ReadStatus::Clean);
        }
        self.note_read(page);
        let status = match Self::read_part(&mut self.nand, page, offset as u32, bytes) {
            Ok(status) => status,
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => return corrupt(Malformed::Unreadable),
            Err(error) => return Err(self.chip_error(error)),
        };
        if status.refresh_advised() {
            self.blocks.set(self.shape.geometry.block_of(page), REFRESH, true);
        }
        Ok(status)
    }
}
