//! Checking the invariants.

use nandu_media::PageKind;
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::access::Probe;
use crate::block_table::{INEXACT, State};
use crate::error::LogError;
use crate::log::Log;

/// An invariant that does not hold, and where. The numbers are those of the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// Number of the invariant: 1 for L1.
    pub invariant: u8,
    /// The block.
    pub block: BlockAddr,
    /// The page, where it is about one.
    pub page: Option<PageAddr>,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "L{} does not hold in block {}", self.invariant, self.block)?;
        match self.page {
            Some(page) => write!(f, ", page {page}"),
            None => Ok(()),
        }
    }
}

impl<N: Nand> Log<'_, N> {
    /// Walks over every page once, reads only, and reports every violation of the invariants that flash and memory can
    /// show: L1, L2, L5, L7, L10 and, with `mlc_streams`, L12. Returns how many there were. Costs one read for each page of the chip
    /// that may be programmed; with `mlc_streams` one for every page.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u32, LogError<N::Error>> {
        let mut count = 0;
        let mut tell = |invariant, block, page| {
            count += 1;
            report(Violation { invariant, block, page });
        };
        for block in self.blocks.addresses() {
            if self.shape.has_mlc() && self.blocks.live(block) > 0 && self.blocks.mode(block) == CellMode::Slc {
                self.verify_mode(block, &mut tell)?;
            }
            match self.blocks.state(block) {
                // A block that holds nothing may be half erased.
                State::Full | State::Suspect if self.blocks.live(block) == 0 => {}
                State::Open | State::Full | State::Suspect if self.blocks.is_bare(block) => {
                    self.verify_bare_block(block, &mut tell)?;
                }
                State::Open | State::Full | State::Suspect => self.verify_block(block, &mut tell)?,
                State::Ready => {
                    let page = self.shape.data_page(block, 0);
                    let probe = self.for_cause(Cause::Verify, |log| log.probe(page))?;
                    if !matches!(probe, Probe::Erased) {
                        tell(2, block, Some(page));
                    }
                }
                State::Free | State::Listed | State::Failing | State::Bad | State::Anchor => {}
            }
        }
        if let Some(page) = self.committed {
            let block = self.shape.geometry.block_of(page);
            let is_there =
                self.for_cause(Cause::Verify, |log| log.probe(page))? == Probe::Valid && self.found.is_commit;
            if !is_there || self.blocks.live(block) == 0 {
                tell(7, block, Some(page));
            }
        }
        Ok(count)
    }

    /// L12: where there is one bit a cell, no MSB page is programmed.
    fn verify_mode(
        &mut self,
        block: BlockAddr,
        tell: &mut impl FnMut(u8, BlockAddr, Option<PageAddr>),
    ) -> Result<(), LogError<N::Error>> {
        let geometry = self.shape.geometry;
        for index in 0..geometry.pages_per_block {
            let page = geometry.page_at(block, index);
            if !geometry.is_used_in_mode(CellMode::Slc, index)
                && !matches!(self.for_cause(Cause::Verify, |log| log.probe(page))?, Probe::Erased)
            {
                tell(12, block, Some(page));
            }
        }
        Ok(())
    }

    /// L10: what reads as a page of the log in a bare block is a summary. L1: sequences of summaries rise.
    fn verify_bare_block(
        &mut self,
        block: BlockAddr,
        tell: &mut impl FnMut(u8, BlockAddr, Option<PageAddr>),
    ) -> Result<(), LogError<N::Error>> {
        let mut before = None;
        for nth in 0..self.blocks.pages(block) {
            let page = self.nth_page(block, nth);
            if self.for_cause(Cause::Verify, |log| log.probe(page))? != Probe::Valid {
                continue;
            }
            let found = &self.found;
            if found.kind != PageKind::Summary || !self.shape.is_bare_stream(found.stream) {
                tell(10, block, Some(page));
            } else if before.is_some_and(|before| found.sequence <= before) || found.sequence >= self.sequence {
                tell(1, block, Some(page));
            }
            before = Some(found.sequence);
        }
        Ok(())
    }

    /// L1: within a block sequences rise, and each page says where it stands. A page that is neither valid nor erased may
    /// only be the last one.
    fn verify_block(
        &mut self,
        block: BlockAddr,
        tell: &mut impl FnMut(u8, BlockAddr, Option<PageAddr>),
    ) -> Result<(), LogError<N::Error>> {
        let mut before = None;
        let mut damaged = None;
        let mut valid = 0;
        for nth in 0..self.shape.pages {
            let page = self.shape.data_page(block, nth);
            match self.for_cause(Cause::Verify, |log| log.probe(page))? {
                Probe::Valid => {
                    let found = &self.found;
                    if before.is_some_and(|before| found.sequence <= before) || found.sequence >= self.sequence {
                        tell(1, block, Some(page));
                    }
                    if let Some(damaged) = damaged.take() {
                        tell(1, block, Some(damaged));
                    }
                    before = Some(found.sequence);
                    valid += 1;
                }
                Probe::Garbage => damaged = Some(page),
                Probe::Erased => {}
            }
        }
        // L5, as far as it shows: no more pages can be live than there are.
        if !self.blocks.has(block, INEXACT) && self.blocks.live(block) > valid {
            tell(5, block, None);
        }
        Ok(())
    }
}
