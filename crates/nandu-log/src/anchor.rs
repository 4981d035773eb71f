//! Finding the newest checkpoint.

use nandu_media::{Anchor, Malformed, Page, PageKind};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::access::{Found, Probe};
use crate::error::LogError;
use crate::log::Log;

/// The newest anchor of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewestAnchor {
    pub(crate) found: Found,
    /// Highest sequence seen on the way.
    pub(crate) sequence: u64,
}

impl<N: Nand> Log<'_, N> {
    /// The newest anchor on the chip, or `None` on a chip without one.
    ///
    /// Reads the first pages of the first blocks until one is part of a checkpoint, searches that block, and looks at the
    /// first pages of the other anchor blocks that it names: about 4 reads and twice the binary logarithm of the pages in
    /// a block.
    pub(crate) fn find_anchor(&mut self) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let Some(mut newest) = self.first_anchor()? else { return Ok(None) };
        let others = self.listed_anchors(newest.found.page)?;
        for block in others.into_iter().flatten() {
            if block == self.shape.geometry.block_of(newest.found.page) {
                continue;
            }
            let may_be_newer = match self.probe_any(self.shape.anchor_page(block, 0))? {
                Probe::Valid(found) => found.kind.is_of_the_log() && found.sequence > newest.found.sequence,
                Probe::Erased => false,
                // The first page was torn or has decayed; the rest of the block may be sound.
                Probe::Garbage => true,
            };
            if may_be_newer && let Some(other) = self.newest_anchor_in(block)? {
                let sequence = newest.sequence.max(other.sequence);
                if other.found.sequence > newest.found.sequence {
                    newest = other;
                }
                newest.sequence = sequence;
            }
        }
        Ok(Some(newest))
    }

    /// The newest anchor of the first block that has one.
    fn first_anchor(&mut self) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        for block in (0..self.shape.anchor_window()).map(BlockAddr) {
            let page = self.shape.anchor_page(block, 0);
            let may_be = match self.probe_any(page)? {
                Probe::Valid(found) => found.kind.is_of_the_log(),
                Probe::Erased => false,
                Probe::Garbage => {
                    let second = self.shape.anchor_page(block, 1);
                    matches!(self.probe_any(second)?, Probe::Valid(found) if found.kind.is_of_the_log())
                }
            };
            if may_be && let Some(newest) = self.newest_anchor_in(block)? {
                return Ok(Some(newest));
            }
        }
        Ok(None)
    }

    /// The anchor blocks that an anchor names.
    fn listed_anchors(
        &mut self,
        page: PageAddr,
    ) -> Result<[Option<BlockAddr>; nandu_media::ANCHOR_COUNT], LogError<N::Error>> {
        // The search may have read other pages since.
        self.probe_any(page)?;
        let parsed = Page::parse(self.blocks.page).and_then(|page| Anchor::parse(&page).map(|anchor| anchor.anchors()));
        let inside = |block: Option<u32>| {
            block.map(BlockAddr).filter(|&block| self.shape.geometry.contains_block(block))
        };
        match parsed {
            Ok(blocks) => Ok(blocks.map(inside)),
            Err(why) => Err(Self::bad_anchor(page, why)),
        }
    }

    /// The error for an anchor that cannot be used.
    pub(crate) fn bad_anchor(page: PageAddr, why: Malformed) -> LogError<N::Error> {
        match why {
            Malformed::Range("incompatible") => LogError::WrongFormat { what: "features" },
            why => LogError::Corrupt { page, why },
        }
    }

    /// The newest complete anchor of a block.
    fn newest_anchor_in(&mut self, block: BlockAddr) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let Some((mut nth, mut found)) = self.last_valid_anchor_page(block)? else { return Ok(None) };
        let sequence = found.sequence;
        // A checkpoint that a cut stopped left pages of the block table and no anchor. They name the anchor before them.
        if found.kind != PageKind::Anchor {
            let before = found.committed.map(PageAddr).filter(|&page| self.shape.geometry.contains_page(page));
            let Some(page) = before.filter(|&page| self.shape.geometry.block_of(page) == block) else {
                return Ok(None);
            };
            match self.probe_any(page)? {
                Probe::Valid(anchor) if anchor.kind == PageKind::Anchor => found = anchor,
                _ => {
                    // It has decayed: the one before is older than what was acknowledged, but may be all there is.
                    while found.kind != PageKind::Anchor {
                        let Some(before) = nth.checked_sub(1) else { return Ok(None) };
                        nth = before;
                        if let Probe::Valid(earlier) = self.probe_any(self.shape.anchor_page(block, nth))? {
                            found = earlier;
                        }
                    }
                }
            }
        }
        Ok(Some(NewestAnchor { found, sequence }))
    }

    /// The last page of an anchor block that is valid, by binary search.
    fn last_valid_anchor_page(&mut self, block: BlockAddr) -> Result<Option<(u16, Found)>, LogError<N::Error>> {
        let mut last = None;
        let (mut low, mut high) = (0, self.shape.anchor_pages);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.valid_at_or_after(block, middle)? {
                Some((nth, found)) => {
                    last = Some((nth, found));
                    low = nth + 1;
                }
                None => high = middle,
            }
        }
        Ok(last)
    }

    /// The page, or the one after it if this one is neither valid nor erased: a single damaged page must not pass for the
    /// end of the block.
    fn valid_at_or_after(&mut self, block: BlockAddr, nth: u16) -> Result<Option<(u16, Found)>, LogError<N::Error>> {
        for nth in nth..self.shape.anchor_pages.min(nth + 2) {
            match self.probe_any(self.shape.anchor_page(block, nth))? {
                Probe::Valid(found) if found.kind.is_of_the_log() => return Ok(Some((nth, found))),
                Probe::Erased => return Ok(None),
                Probe::Valid(_) | Probe::Garbage => {}
            }
        }
        Ok(None)
    }
}
