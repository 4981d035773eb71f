//! Single operations on the chip, with what they mean for the log.

use nandu_media::{Malformed, Page};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::block_table::MARK_SEEN;
use crate::error::LogError;
use crate::found::Found;
use crate::log::{Condition, Log};
use crate::losses::{LOSSES_MAX, Losses};

/// How often an operation that may be repeated is tried.
const ATTEMPTS: u32 = LOSSES_MAX as u32;

/// What stands in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// A page whose header stands in `Log::found`, from where it is copied by who needs it beyond the next read.
    Valid,
    Erased,
    /// Neither erased nor a page of this volume: torn, decayed, or from before.
    Garbage,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programmed {
    Done,
    /// The chip said that it failed: the block is failing.
    Failed,
    /// Nobody knows, or it did not arrive: the block is not to be trusted before its next erase.
    Unknown,
}

/// Whether bytes are those of an erased page, in which as many bits may have flipped in each codeword as could be
/// corrected in a programmed one.
pub(crate) fn is_erased(bytes: &[u8], codeword_size: u32, tolerance: u16) -> bool {
    bytes.chunks(codeword_size.max(1) as usize).all(|codeword| {
        let zeros: u32 = codeword.iter().map(|byte| byte.count_zeros()).sum();
        zeros <= u32::from(tolerance)
    })
}

impl<N: Nand> Log<'_, N> {
    /// Runs something with another cause in the chip's ledger.
    pub(crate) fn for_cause<T>(&mut self, cause: Cause, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.nand.attribute(cause);
        let result = work(self);
        self.nand.attribute(before);
        result
    }

    /// Turns an error of the chip into one of the log; a chip that is gone poisons the log.
    pub(crate) fn chip_error(&mut self, error: N::Error) -> LogError<N::Error> {
        if error.kind() == NandErrorKind::Gone {
            self.condition = Condition::Poisoned;
        }
        LogError::Nand(error)
    }

    /// The same for an error of a program or an erase, or of a read that was to tell how one ended. An outage of the bus poisons the
    /// log, too: nobody knows what the chip holds, while memory and chip agree after a mount. It says nothing about any block, so
    /// none is retired, and what the driver said is kept.
    pub(crate) fn write_error(&mut self, error: N::Error) -> LogError<N::Error> {
        if error.kind() == NandErrorKind::Bus {
            self.condition = Condition::Poisoned;
        }
        self.chip_error(error)
    }

    /// Whether the bus is lost, and not only one operation on this page or its block: a read gets through no more than what failed
    /// with this error. Reads a few bytes after a bus error, up to [`ATTEMPTS`] times.
    fn is_outage(nand: &mut N, error: &N::Error, page: PageAddr) -> bool {
        let is_lost = |kind| matches!(kind, NandErrorKind::Bus | NandErrorKind::Gone);
        match error.kind() {
            NandErrorKind::Bus => Self::read_page(nand, page, &mut [0; 32]).is_err_and(|error| is_lost(error.kind())),
            kind => is_lost(kind),
        }
    }

    /// Whether the chip's mark lets a block be used. One read for a block that was not looked at in this session.
    ///
    /// The block table remembers which blocks are bad, but an image may have come to another chip, where others are.
    pub(crate) fn may_use(&mut self, block: BlockAddr) -> Result<bool, LogError<N::Error>> {
        if self.blocks.has(block, MARK_SEEN) {
            return Ok(true);
        }
        for _ in 0..ATTEMPTS {
            match self.nand.is_bad(block) {
                Ok(true) => return Ok(false),
                Ok(false) => break,
                Err(error) if Self::is_outage(&mut self.nand, &error, self.shape.geometry.first_page(block)) => {
                    return Err(self.write_error(error));
                }
                // A mark that cannot be read says nothing: the table called the block good.
                Err(_) => {}
            }
        }
        self.blocks.set(block, MARK_SEEN, true);
        Ok(true)
    }

    /// Reads a page, again if the transfer failed.
    pub(crate) fn read_page(nand: &mut N, page: PageAddr, bytes: &mut [u8]) -> Result<ReadStatus, N::Error> {
        Self::read_part(nand, page, 0, bytes)
    }

    /// Reads a part of a page, again if the transfer failed.
    pub(crate) fn read_part(
        nand: &mut N,
        page: PageAddr,
        column: u32,
        bytes: &mut [u8],
    ) -> Result<ReadStatus, N::Error> {
        Self::try_reads(|| nand.read(page, column, bytes))
    }

    /// Reads again where the bus failed.
    pub(crate) fn try_reads(mut read: impl FnMut() -> Result<ReadStatus, N::Error>) -> Result<ReadStatus, N::Error> {
        let mut attempt = 1;
        loop {
            match read() {
                Err(error) if error.kind() == NandErrorKind::Bus && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Reads a page into the log's buffer and says what stands in it. One read.
    pub(crate) fn probe(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        let probe = self.probe_any(page)?;
        let is_foreign = probe == Probe::Valid && self.found.volume != self.volume;
        Ok(if is_foreign { Probe::Garbage } else { probe })
    }

    /// As [`Log::probe`], of any volume.
    pub(crate) fn probe_any(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        self.note_read(page);
        // A sound page from elsewhere was read before, or another place was read: torn and decayed pages look otherwise. So once
        // more, since after a cut the newest page would pass for torn.
        for _ in 0..2 {
            self.buffered = None;
            match Self::read_page(&mut self.nand, page, self.blocks.page) {
                Ok(_) => self.buffered = Some(page),
                Err(error) if error.kind() == NandErrorKind::Uncorrectable => return Ok(Probe::Garbage),
                Err(error) => return Err(self.chip_error(error)),
            }
            if !Page::parse(self.blocks.page).is_ok_and(|parsed| parsed.page() != page.0) {
                break;
            }
        }
        Ok(self.judge_buffer(page))
    }

    /// As [`Log::probe`], where it matters that a page is not there: if the options want what is programmed to be read back, they do
    /// not believe a single read either. One read, and for a page that is not there another one.
    pub(crate) fn probe_twice(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        match self.probe(page)? {
            Probe::Erased | Probe::Garbage if self.options.read_back => self.probe(page),
            probe => Ok(probe),
        }
    }

    /// Has a page in the log's buffer: reads it unless it was the last one read.
    pub(crate) fn buffer_page(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        if self.buffered != Some(page) && self.stashed == Some(page) {
            self.blocks.unstash();
            self.buffered = Some(page);
        }
        if self.buffered == Some(page) { Ok(self.judge_buffer(page)) } else { self.probe_any(page) }
    }

    /// What the log's buffer holds, read from this page.
    fn judge_buffer(&mut self, page: PageAddr) -> Probe {
        let bytes = &*self.blocks.page;
        match Page::parse(bytes) {
            Ok(parsed) if parsed.page() == page.0 => {
                self.found = Found::of(&parsed);
                Probe::Valid
            }
            Ok(_) => Probe::Garbage,
            Err(_) => {
                let ecc = self.shape.geometry.ecc;
                let erased = is_erased(bytes, ecc.codeword_size, ecc.correctable_bits);
                if erased { Probe::Erased } else { Probe::Garbage }
            }
        }
    }

    /// Reads a page that has to be there into the log's buffer, unless it was the last one read, and its header into `Log::found`.
    pub(crate) fn load(&mut self, page: PageAddr) -> Result<(), LogError<N::Error>> {
        let why = match self.buffer_page(page)? {
            Probe::Valid if self.found.volume == self.volume => return Ok(()),
            Probe::Valid => Malformed::Volume,
            Probe::Erased => Malformed::Erased,
            Probe::Garbage => Malformed::Unreadable,
        };
        Err(LogError::Corrupt { page, why })
    }

    /// Programs a sealed page. If the options or `check` want it, reads it back.
    pub(crate) fn program(
        nand: &mut N,
        losses: &mut Losses,
        page: PageAddr,
        bytes: &[u8],
        check: bool,
    ) -> Result<Programmed, N::Error> {
        let result = nand.program(page, 0, bytes);
        let outcome = Self::judge_program(nand, losses, page, result)?;
        if !check || outcome != Programmed::Done {
            return Ok(outcome);
        }
        // The header holds address, sequence and checksum: if they are there, this program is.
        let mut header = [0; 32];
        match Self::read_page(nand, page, &mut header) {
            Ok(_) if header == bytes[..32] => Ok(Programmed::Done),
            Ok(_) => Ok(Programmed::Unknown),
            Err(error) if matches!(error.kind(), NandErrorKind::Bus | NandErrorKind::Gone) => Err(error),
            Err(_) => Ok(Programmed::Unknown),
        }
    }

    /// What the chip's answer to a program of a page means. After a bus error up to three short reads.
    pub(crate) fn judge_program(
        nand: &mut N,
        losses: &mut Losses,
        page: PageAddr,
        result: Result<(), N::Error>,
    ) -> Result<Programmed, N::Error> {
        match result {
            Ok(()) => {
                losses.forget_programs();
                Ok(Programmed::Done)
            }
            Err(error) if Self::is_outage(nand, &error, page) => Err(error),
            Err(error) => match error.kind() {
                NandErrorKind::ProgramFailed => Ok(Programmed::Failed),
                NandErrorKind::Bus if losses.bear_program() => Ok(Programmed::Unknown),
                _ => Err(error),
            },
        }
    }

    /// Erases a block; `false` if it cannot be erased, or must not be since it carries a mark, and is to be retired.
    pub(crate) fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<bool, LogError<N::Error>> {
        if !self.may_use(block)? {
            return Ok(false);
        }
        for _ in 0..ATTEMPTS {
            match self.nand.erase(block, mode) {
                Ok(()) => {
                    self.losses.forget_erases();
                    self.blocks.count_erase(block);
                    self.stats.erases += 1;
                    if self.options.read_back && !self.looks_erased(block, mode)? {
                        continue;
                    }
                    return Ok(true);
                }
                // An outage that lasts for all attempts must not pass for a block that cannot be erased.
                Err(error) if Self::is_outage(&mut self.nand, &error, self.shape.page(mode, block, 0)) => {
                    return Err(self.write_error(error));
                }
                Err(error) => match error.kind() {
                    NandErrorKind::EraseFailed => break,
                    NandErrorKind::Bus if self.losses.bear_erase() => {}
                    _ => return Err(self.write_error(error)),
                },
            }
        }
        self.blocks.count_erase(block);
        self.stats.erase_failures += 1;
        Ok(false)
    }

    /// Whether a block looks erased: an erase that was reported and never happened leaves its first page programmed. One short read.
    ///
    /// A bare page may be all ones, so of a block that was bare the last page is read too, a summary. Where that is missing as well, the
    /// programs find it, which are read back.
    fn looks_erased(&mut self, block: BlockAddr, mode: CellMode) -> Result<bool, LogError<N::Error>> {
        let ecc = self.shape.geometry.ecc;
        let mut bytes = [0; 32];
        let last = if self.blocks.was_bare(block) { self.shape.pages_in(mode) - 1 } else { 0 };
        for page in [0, last].map(|nth| self.shape.page(mode, block, nth)).into_iter().take(1 + usize::from(last > 0)) {
            match Self::read_part(&mut self.nand, page, 0, &mut bytes) {
                Ok(_) if is_erased(&bytes, ecc.codeword_size.min(bytes.len() as u32), ecc.correctable_bits) => {}
                Err(error) if matches!(error.kind(), NandErrorKind::Bus | NandErrorKind::Gone) => {
                    return Err(self.write_error(error));
                }
                Ok(_) | Err(_) => return Ok(false),
            }
        }
        Ok(true)
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
