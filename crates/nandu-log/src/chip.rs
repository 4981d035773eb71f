//! Single operations on the chip, and what its answers mean.
//!
//! A program or an erase that fails is a fault of its block, one whose outcome nobody knows is a fault of its block or of nothing at all, and an outage of the bus is a fault of
//! no block: none is retired for it, and memory is not to be trusted any more. A read gets through when the bus works, so a short read tells the second from the third. Where the
//! chip takes reads and no programs or erases in a row, its line for write protection is loose or the driver's time limit too short; that passes for an outage, too.

use nandu_media::features::TAGS;
use nandu_media::tag::TAG_SIZE;
use nandu_nand::{BlockAddr, Cause, CellMode, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::error::LogError;

/// How often an operation that may be repeated is tried; and how many programs and erases in a row may be lost.
const ATTEMPTS: u8 = 3;

/// Bytes that are read to see whether a program arrived: header fields with address, sequence and checksum.
const PROOF_SIZE: usize = 32;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Programmed {
    Done,
    /// The chip said that it failed: the block is failing.
    Failed,
    /// Nobody knows, or it did not arrive: the block is not to be trusted before its next erase.
    Unknown,
}

/// How an erase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct Erasure {
    /// Whether the block is erased; if not, it is to be retired.
    pub(crate) is_done: bool,
    /// Erases that the block went through.
    pub(crate) count: u32,
}

/// Programs and erases in a row of which nobody knows how they ended.
///
/// Apart, since a chip may take the ones and not the others. A dead line for both is found by both together, so that an erase behind
/// a lost program does not pass for a block that cannot be erased.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    programs: u8,
    erases: u8,
}

impl Losses {
    fn are_few(self) -> bool {
        self.programs + self.erases <= ATTEMPTS
    }
}

/// What was done since the mount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) programs: [u64; Cause::COUNT],
    pub(crate) erases: u64,
    /// Programs and erases that failed.
    pub(crate) failures: u32,
}

/// A chip, and whether it can still be written.
pub(crate) struct Chip<N> {
    nand: N,
    counters: Counters,
    losses: Losses,
    reads_back: bool,
    is_lost: bool,
}

impl<N: Nand> Chip<N> {
    pub(crate) fn new(nand: N, reads_back: bool) -> Chip<N> {
        let counters = Counters { programs: [0; Cause::COUNT], erases: 0, failures: 0 };
        Chip { nand, counters, losses: Losses::default(), reads_back, is_lost: false }
    }

    pub(crate) fn nand(&self) -> &N {
        &self.nand
    }

    pub(crate) fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    pub(crate) fn release(self) -> N {
        self.nand
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether programs, and what a mount does not find, are looked at a second time.
    pub(crate) fn reads_back(&self) -> bool {
        self.reads_back
    }

    /// Whether memory and chip may differ, since the chip is gone or nobody knows what a write left.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Does something that is booked to a cause.
    fn for_cause<T>(&mut self, cause: Cause, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.nand.attribute(cause);
        let result = work(self);
        self.nand.attribute(before);
        result
    }

    /// An error of a read.
    pub(crate) fn error(&mut self, error: N::Error) -> LogError<N::Error> {
        self.is_lost |= error.kind() == NandErrorKind::Gone;
        LogError::Nand(error)
    }

    /// An error of a program or an erase, or of a read that was to tell how one ended.
    fn write_error(&mut self, error: N::Error) -> LogError<N::Error> {
        self.is_lost |= error.kind() == NandErrorKind::Bus;
        self.error(error)
    }

    /// Reads a part of a page, again where the transfer failed.
    pub(crate) fn read(&mut self, page: PageAddr, column: u32, bytes: &mut [u8]) -> Result<ReadStatus, N::Error> {
        let mut attempt = 1;
        loop {
            match self.nand.read(page, column, bytes) {
                Err(error) if error.kind() == NandErrorKind::Bus && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Reads a page and its tag, again where the transfer failed.
    pub(crate) fn read_tagged(
        &mut self,
        page: PageAddr,
        bytes: &mut [u8],
        tag: &mut [u8; TAG_SIZE],
    ) -> Result<ReadStatus, N::Error> {
        let mut attempt = 1;
        loop {
            match self.nand.read_tagged(page, bytes, tag) {
                Err(error) if error.kind() == NandErrorKind::Bus && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Programs a page, and its tag. With `check`, and where the options say so, it is looked at afterwards: one short read.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`] for an outage.
    pub(crate) fn program(
        &mut self,
        page: PageAddr,
        (bytes, tag): (&[u8], Option<&[u8; TAG_SIZE]>),
        cause: Cause,
        check: bool,
    ) -> Result<Programmed, LogError<N::Error>> {
        debug_assert!(!self.is_lost, "a chip that is lost is not programmed");
        debug_assert!(self.geometry().contains_page(page) && bytes.len() == self.geometry().page_size as usize);
        let outcome = self.for_cause(cause, |chip| chip.program_once(page, (bytes, tag), check));
        self.counters.programs[cause as usize] += 1;
        if !matches!(outcome, Ok(Programmed::Done)) {
            self.counters.failures += 1;
        }
        outcome
    }

    fn program_once(
        &mut self,
        page: PageAddr,
        (bytes, tag): (&[u8], Option<&[u8; TAG_SIZE]>),
        check: bool,
    ) -> Result<Programmed, LogError<N::Error>> {
        let programmed = match tag.filter(|_| TAGS) {
            Some(tag) => self.nand.program_tagged(page, bytes, tag),
            None => self.nand.program(page, 0, bytes),
        };
        match programmed {
            Ok(()) => self.losses.programs = 0,
            Err(error) if self.is_outage(&error, page) => return Err(self.write_error(error)),
            Err(error) => match error.kind() {
                NandErrorKind::ProgramFailed => return Ok(Programmed::Failed),
                NandErrorKind::Bus => {
                    self.losses.programs += 1;
                    return if self.losses.are_few() { Ok(Programmed::Unknown) } else { Err(self.write_error(error)) };
                }
                _ => return Err(self.write_error(error)),
            },
        }
        if !check && !self.reads_back {
            return Ok(Programmed::Done);
        }
        let is_there = self.proof(page)?.is_some_and(|proof| bytes.starts_with(&proof));
        Ok(if is_there { Programmed::Done } else { Programmed::Unknown })
    }

    /// The first bytes of a page that was just programmed or erased; `None` if they cannot be read.
    fn proof(&mut self, page: PageAddr) -> Result<Option<[u8; PROOF_SIZE]>, LogError<N::Error>> {
        let mut proof = [0; PROOF_SIZE];
        match self.read(page, 0, &mut proof) {
            Ok(_) => Ok(Some(proof)),
            Err(error) if is_loss(&error) => Err(self.write_error(error)),
            Err(_) => Ok(None),
        }
    }

    /// Erases the block of which this is the first page. Where the options say so, the page is looked at afterwards: one short read.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`] for an outage.
    pub(crate) fn erase(
        &mut self,
        first: PageAddr,
        (mode, cause): (CellMode, Cause),
    ) -> Result<Erasure, LogError<N::Error>> {
        debug_assert!(!self.is_lost, "a chip that is lost is not erased");
        debug_assert!(self.geometry().index_in_block(first) == 0, "page {first} is not the first of its block");
        let outcome = self.for_cause(cause, |chip| chip.erase_repeatedly(first, mode));
        if let Ok(erasure) = &outcome {
            debug_assert!(erasure.count > 0 && erasure.count <= u32::from(ATTEMPTS));
            self.counters.erases += u64::from(erasure.count);
            self.counters.failures += u32::from(!erasure.is_done);
        }
        outcome
    }

    fn erase_repeatedly(&mut self, first: PageAddr, mode: CellMode) -> Result<Erasure, LogError<N::Error>> {
        let block = self.geometry().block_of(first);
        let mut count = 0;
        for _ in 0..ATTEMPTS {
            count += 1;
            match self.nand.erase(block, mode) {
                Ok(()) => {
                    self.losses.erases = 0;
                    // An erase that was reported and never happened leaves the first page programmed.
                    if !self.reads_back || self.proof(first)?.is_some_and(|proof| self.is_erased(&proof)) {
                        return Ok(Erasure { is_done: true, count });
                    }
                }
                // An outage that lasts for all attempts must not pass for a block that cannot be erased.
                Err(error) if self.is_outage(&error, first) => return Err(self.write_error(error)),
                Err(error) => match error.kind() {
                    NandErrorKind::EraseFailed => break,
                    NandErrorKind::Bus => {
                        self.losses.erases += 1;
                        if !self.losses.are_few() {
                            return Err(self.write_error(error));
                        }
                    }
                    _ => return Err(self.write_error(error)),
                },
            }
        }
        Ok(Erasure { is_done: false, count })
    }

    /// Whether bytes of a page are those of an erased one.
    pub(crate) fn is_erased(&self, bytes: &[u8]) -> bool {
        let ecc = self.geometry().ecc;
        is_erased(bytes, ecc.codeword_size, ecc.correctable_bits)
    }

    /// Whether the chip's mark calls the block bad of which this is the first page. A mark that cannot be read says nothing.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`] for an outage.
    pub(crate) fn is_marked(&mut self, first: PageAddr) -> Result<bool, LogError<N::Error>> {
        let block = self.geometry().block_of(first);
        for _ in 0..ATTEMPTS {
            match self.nand.is_bad(block) {
                Ok(is_bad) => return Ok(is_bad),
                Err(error) if self.is_outage(&error, first) => return Err(self.write_error(error)),
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// Marks a block. A mark that cannot be put is not needed where the block table remembers.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`] for a chip that is gone.
    pub(crate) fn mark(&mut self, block: BlockAddr) -> Result<(), LogError<N::Error>> {
        debug_assert!(self.geometry().contains_block(block));
        match self.for_cause(Cause::Retire, |chip| chip.nand.mark_bad(block)) {
            Err(error) if error.kind() == NandErrorKind::Gone => Err(self.error(error)),
            _ => Ok(()),
        }
    }

    /// Whether the bus is lost, and not only one operation on this page or its block: a read gets through no more than what failed with this error.
    fn is_outage(&mut self, error: &N::Error, page: PageAddr) -> bool {
        let is_gone = |error: N::Error| is_loss(&error);
        match error.kind() {
            NandErrorKind::Bus => self.read(page, 0, &mut [0; PROOF_SIZE]).is_err_and(is_gone),
            kind => kind == NandErrorKind::Gone,
        }
    }
}

/// Whether nothing got through to the chip, or nothing came back.
fn is_loss(error: &impl NandError) -> bool {
    matches!(error.kind(), NandErrorKind::Bus | NandErrorKind::Gone)
}

/// Whether bytes are those of an erased page, in which as many bits may have flipped in each codeword as could be corrected in a programmed one.
fn is_erased(bytes: &[u8], codeword_size: u32, tolerance: u16) -> bool {
    bytes.chunks(codeword_size.max(1) as usize).all(|codeword| {
        let zeros: u32 = codeword.iter().map(|byte| byte.count_zeros()).sum();
        zeros <= u32::from(tolerance)
    })
}

#[cfg(test)]
mod tests {
    use super::{Losses, is_erased};

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

    #[test]
    fn programs_and_erases_are_lost_together() {
        assert!(Losses { programs: 1, erases: 2 }.are_few());
        assert!(!Losses { programs: 1, erases: 3 }.are_few());
        assert!(!Losses { programs: 4, erases: 0 }.are_few());
    }
}
