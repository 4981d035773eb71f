//! Finding the newest checkpoint.

use core::ops::Range;

use nandu_media::{ANCHOR_COUNT, Anchor, Field, Malformed, PageKind};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::error::LogError;
use crate::medium::{Header, Medium, Probe};
use crate::shape::Shape;

/// The newest anchor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewestAnchor {
    pub(crate) found: Header,
    /// Highest sequence seen on the way.
    pub(crate) sequence: u64,
}

/// Reads one chip for anchors.
pub(crate) struct AnchorSearch<'s, 'm, N> {
    medium: &'s mut Medium<'m, N>,
    shape: &'s Shape,
}

impl<'s, 'm, N: Nand> AnchorSearch<'s, 'm, N> {
    pub(crate) fn new(medium: &'s mut Medium<'m, N>, shape: &'s Shape) -> Self {
        AnchorSearch { medium, shape }
    }

    /// The newest anchor on the chip, or `None` on a chip without one.
    ///
    /// Reads the first pages of the first blocks until one is part of a checkpoint, and of as many blocks behind it as there are other anchor blocks; searches the one that was
    /// begun last; and looks at the first pages of anchor blocks that it names elsewhere. About 5 reads and the binary logarithm of the pages in a block.
    pub(crate) fn newest(&mut self) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let mut begun = [None; ANCHOR_COUNT];
        let (mut seen, mut count, mut looked) = (0, 0, 0);
        for block in (0..self.shape.anchor_window()).map(BlockAddr) {
            if count > 0 && seen == ANCHOR_COUNT {
                break;
            }
            looked = block.0;
            begun[count] = self.candidate(block)?;
            count += usize::from(begun[count].is_some());
            seen += usize::from(count > 0);
        }
        let Some(newest) = self.newest_of(&mut begun, None)? else { return Ok(None) };
        // Bad blocks may have driven the anchor blocks apart.
        let listed = self.listed_anchors(newest.found.page)?;
        for (place, block) in begun.iter_mut().zip(listed) {
            *place = match block {
                Some(block) if block.0 > looked => self.candidate(block)?,
                _ => None,
            };
        }
        self.newest_of(&mut begun, Some(newest))
    }

    /// The newest anchor of a block, if it holds one.
    pub(crate) fn newest_in(&mut self, block: BlockAddr) -> Result<Option<Header>, LogError<N::Error>> {
        let Some(candidate) = self.candidate(block)? else { return Ok(None) };
        Ok(self.newest_of_block(candidate)?.map(|newest| newest.found))
    }

    /// The newest anchor of these blocks, which it takes, if it is newer than one known before. Blocks begun before it cannot hold a newer one.
    fn newest_of(
        &mut self,
        candidates: &mut [Option<Header>; ANCHOR_COUNT],
        before: Option<NewestAnchor>,
    ) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let mut newest = before;
        let begun = |candidate: &Option<Header>| candidate.map(|candidate| candidate.sequence);
        while let Some(candidate) =
            candidates.iter_mut().max_by_key(|candidate| begun(candidate)).and_then(Option::take)
        {
            if newest.is_some_and(|newest| candidate.sequence < newest.found.sequence) {
                break;
            }
            let Some(mut other) = self.newest_of_block(candidate)? else { continue };
            if let Some(known) = newest {
                other.sequence = other.sequence.max(known.sequence);
                if known.found.sequence > other.found.sequence {
                    other.found = known.found;
                }
            }
            newest = Some(other);
        }
        Ok(newest)
    }

    /// The first valid page of a block, if it seems to hold anchors.
    fn candidate(&mut self, block: BlockAddr) -> Result<Option<Header>, LogError<N::Error>> {
        // If the first page was torn or has decayed, the rest of the block may be sound.
        for nth in 0..2 {
            match self.medium.probe_any(self.shape.page(block, nth))? {
                Probe::Valid(found) if found.kind.is_of_the_log() => return Ok(Some(found)),
                Probe::Valid(_) | Probe::Erased => return Ok(None),
                Probe::Garbage => {}
            }
        }
        Ok(None)
    }

    /// The anchor blocks that an anchor names.
    fn listed_anchors(&mut self, page: PageAddr) -> Result<[Option<BlockAddr>; ANCHOR_COUNT], LogError<N::Error>> {
        self.medium.probe_any(page)?;
        let anchors = self.medium.parsed().and_then(|page| Anchor::parse(&page).map(|anchor| anchor.anchors()));
        let geometry = &self.shape.geometry;
        match anchors {
            Ok(blocks) => Ok(blocks.map(|block| block.map(BlockAddr).filter(|&block| geometry.contains_block(block)))),
            Err(why) => Err(bad_anchor(page, why)),
        }
    }

    /// The newest complete anchor of the block that begins with this page.
    fn newest_of_block(&mut self, candidate: Header) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let shape = self.shape;
        let block = shape.block_of(candidate.page);
        let first = (shape.nth_of(candidate.page), candidate);
        // The first checkpoint of a block has every page of the block table, those behind it fewer, and after cuts there are rarely
        // more than a few. Looking there first takes one read more than halves do where the end is far behind.
        let size = shape.table_pages + 1;
        let likely = [4 * size, 2 * size - 1, size, size - 1, 2 * size];
        let last = self.medium.last(first.0 + 1..shape.pages, likely, false, |medium, pages| {
            valid_at_or_after(medium, shape, block, pages)
        })?;
        let (mut nth, mut found) = last.unwrap_or(first);
        let sequence = found.sequence;
        // A checkpoint that a cut stopped left pages of the block table and no anchor. They name the anchor before them, in this
        // block or, if it is the first checkpoint here, in another one.
        if found.kind != PageKind::Anchor {
            let before = found.committed.filter(|&page| self.shape.geometry.contains_page(page));
            let Some(page) = before else { return Ok(None) };
            let is_right = |anchor: &Header| {
                anchor.kind == PageKind::Anchor && anchor.volume == found.volume && anchor.sequence < found.sequence
            };
            match self.medium.probe_any(page)?.valid().filter(is_right) {
                Some(anchor) => found = anchor,
                None if self.shape.block_of(page) != block => return Ok(None),
                None => {
                    // It has decayed: the one before is older than what was acknowledged, but may be all there is.
                    while found.kind != PageKind::Anchor {
                        let Some(before) = nth.checked_sub(1) else { return Ok(None) };
                        nth = before;
                        if let Probe::Valid(other) = self.medium.probe_any(self.shape.page(block, nth))? {
                            found = other;
                        }
                    }
                }
            }
        }
        Ok(Some(NewestAnchor { found, sequence }))
    }
}

/// The first of these pages, or the one after it if this one is neither valid nor erased: a single damaged page must not pass for the end of the block. What is behind them is not valid.
fn valid_at_or_after<N: Nand>(
    medium: &mut Medium<'_, N>,
    shape: &Shape,
    block: BlockAddr,
    pages: Range<u16>,
) -> Result<Option<(u16, Header)>, LogError<N::Error>> {
    for nth in pages.take(2) {
        match medium.probe_any(shape.page(block, nth))? {
            Probe::Valid(found) if found.kind.is_of_the_log() => return Ok(Some((nth, found))),
            Probe::Erased => return Ok(None),
            Probe::Valid(_) | Probe::Garbage => {}
        }
    }
    Ok(None)
}

/// The error for an anchor that cannot be used.
pub(crate) fn bad_anchor<E: core::error::Error>(page: PageAddr, why: Malformed) -> LogError<E> {
    match why {
        Malformed::Range(Field::Incompatible) => LogError::WrongFormat { what: &"features" },
        why => LogError::Corrupt { page, why },
    }
}
