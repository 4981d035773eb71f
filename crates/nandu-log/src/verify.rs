//! Checking the invariants.

use nandu_media::PageKind;
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::blocks::Stage;
use crate::error::LogError;
use crate::gap::is_left_out;
use crate::medium::Probe;
use crate::volume::Volume;

/// An invariant that does not hold, and where. The numbers are those of the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// Number of the invariant: 1 for N1.
    pub invariant: u8,
    /// The block.
    pub block: BlockAddr,
    /// The page, where it is about one.
    pub page: Option<PageAddr>,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "N{} does not hold in block {}", self.invariant, self.block)?;
        match self.page {
            Some(page) => write!(f, ", page {page}"),
            None => Ok(()),
        }
    }
}

/// Walks over every page that may be programmed, and reports what does not hold.
pub(crate) fn verify<N: Nand>(
    volume: &mut Volume<'_, N>,
    report: &mut dyn FnMut(Violation),
) -> Result<u32, LogError<N::Error>> {
    let mut count = 0;
    let mut tell = |invariant, block, page| {
        count += 1;
        report(Violation { invariant, block, page });
    };
    for block in volume.blocks().addresses() {
        match volume.blocks().state(block) {
            // A block that holds nothing may be half erased.
            Stage::Closed if volume.blocks().live(block) == 0 => {}
            Stage::Open | Stage::Closed => verify_block(volume, block, &mut tell)?,
            Stage::Ready => {
                let page = volume.shape().page(block, 0);
                if !matches!(volume.medium_mut().probe(page)?, Probe::Erased) {
                    tell(2, block, Some(page));
                }
            }
            Stage::Free | Stage::Listed | Stage::Failing | Stage::Bad | Stage::Anchor => {}
        }
    }
    if let Some(page) = volume.committed() {
        let block = volume.shape().block_of(page);
        let is_there = volume.medium_mut().probe(page)?.valid().is_some_and(|found| found.kind == PageKind::Commit);
        if !is_there || volume.blocks().live(block) == 0 {
            tell(7, block, Some(page));
        }
    }
    Ok(count)
}

/// N1: within a block sequences rise, and each page says where it stands. A page that is neither valid nor erased may only be the last one, or one that was left out behind a cut.
fn verify_block<N: Nand>(
    volume: &mut Volume<'_, N>,
    block: BlockAddr,
    tell: &mut impl FnMut(u8, BlockAddr, Option<PageAddr>),
) -> Result<(), LogError<N::Error>> {
    if volume.blocks().is_raw(block) {
        if volume.is_exact() && volume.blocks().live(block) > volume.blocks().owned(block) {
            tell(5, block, None);
        }
        return Ok(());
    }
    let (mut before, mut valid) = (0, 0);
    // The first one behind the last page that is valid.
    let mut damaged = None;
    for nth in 0..volume.shape().pages {
        let page = volume.shape().page(block, nth);
        match volume.medium_mut().probe(page)? {
            Probe::Valid(found) => {
                if found.sequence <= before || found.sequence >= volume.medium().sequence() {
                    tell(1, block, Some(page));
                }
                for place in damaged.take().into_iter().flat_map(|first| first..nth) {
                    let (medium, _, shape) = volume.reader();
                    let page = shape.page(block, place);
                    if matches!(medium.probe(page)?, Probe::Garbage) && !is_left_out(medium, shape, page)? {
                        tell(1, block, Some(page));
                    }
                }
                before = found.sequence;
                valid += 1;
            }
            Probe::Garbage => damaged = damaged.or(Some(nth)),
            Probe::Erased => {}
        }
    }
    // N5, as far as it shows: no more pages can be live than there are.
    if volume.is_exact() && volume.blocks().live(block) > valid {
        tell(5, block, None);
    }
    Ok(())
}
