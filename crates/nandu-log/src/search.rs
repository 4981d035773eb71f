//! Finding the newest checkpoint.

use core::ops::Range;

use nandu_media::{ANCHOR_COUNT, Anchor, Field, Malformed, Page, PageKind};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::access::Probe;
use crate::error::LogError;
use crate::found::Found;
use crate::log::Log;

/// A block that seems to hold anchors.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    block: BlockAddr,
    /// Its first valid page, and which that is.
    first: Found,
    nth: u16,
}

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
    /// Reads the first pages of the first blocks until one is part of a checkpoint, and of as many blocks behind it as there
    /// are other anchor blocks; searches the one that was begun last; and looks at the first pages of anchor blocks that it
    /// names elsewhere. About 5 reads and the binary logarithm of the pages in a block.
    pub(crate) fn find_anchor(&mut self) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
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

    /// The newest anchor of these blocks, which it takes, if it is newer than one known before. Blocks begun before it cannot hold a newer
    /// one.
    fn newest_of(
        &mut self,
        candidates: &mut [Option<Candidate>; ANCHOR_COUNT],
        before: Option<NewestAnchor>,
    ) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let mut newest = before;
        let begun = |candidate: &Option<Candidate>| candidate.map(|candidate| candidate.first.sequence);
        while let Some(candidate) =
            candidates.iter_mut().max_by_key(|candidate| begun(candidate)).and_then(Option::take)
        {
            if newest.is_some_and(|newest| candidate.first.sequence < newest.found.sequence) {
                break;
            }
            let Some(mut other) = self.newest_anchor_in(candidate)? else { continue };
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

    /// Whether a block holds anchors, by its first page.
    fn candidate(&mut self, block: BlockAddr) -> Result<Option<Candidate>, LogError<N::Error>> {
        // If the first page was torn or has decayed, the rest of the block may be sound.
        for nth in 0..2 {
            match self.probe_any(self.shape.anchor_page(block, nth))? {
                Probe::Valid if self.found.kind.is_of_the_log() => {
                    self.stash_anchor();
                    return Ok(Some(Candidate { block, first: self.found, nth }));
                }
                Probe::Valid | Probe::Erased => return Ok(None),
                Probe::Garbage => {}
            }
        }
        Ok(None)
    }

    /// The newest anchor of a block, if it holds one.
    pub(crate) fn newest_anchor_of(&mut self, block: BlockAddr) -> Result<Option<Found>, LogError<N::Error>> {
        let Some(candidate) = self.candidate(block)? else { return Ok(None) };
        Ok(self.newest_anchor_in(candidate)?.map(|newest| newest.found))
    }

    /// The anchor blocks that an anchor names.
    fn listed_anchors(&mut self, page: PageAddr) -> Result<[Option<BlockAddr>; ANCHOR_COUNT], LogError<N::Error>> {
        // The search may have read other pages since.
        self.buffer_page(page)?;
        let parsed = Page::parse(self.blocks.page).and_then(|page| Anchor::parse(&page).map(|anchor| anchor.anchors()));
        let inside =
            |block: Option<u32>| block.map(BlockAddr).filter(|&block| self.shape.geometry.contains_block(block));
        match parsed {
            Ok(blocks) => Ok(blocks.map(inside)),
            Err(why) => Err(Self::bad_anchor(page, why)),
        }
    }

    /// The error for an anchor that cannot be used.
    pub(crate) fn bad_anchor(page: PageAddr, why: Malformed) -> LogError<N::Error> {
        match why {
            Malformed::Range(Field::Incompatible) => LogError::WrongFormat { what: "features" },
            why => LogError::Corrupt { page, why },
        }
    }

    /// The newest complete anchor of a block.
    fn newest_anchor_in(&mut self, candidate: Candidate) -> Result<Option<NewestAnchor>, LogError<N::Error>> {
        let block = candidate.block;
        let (mut nth, mut found) = self.last_valid_anchor_page(candidate)?;
        let sequence = found.sequence;
        // A checkpoint that a cut stopped left pages of the block table and no anchor. They name the anchor before them, in this
        // block or, if it is the first checkpoint here, in another one.
        if found.kind != PageKind::Anchor {
            let before = found.committed.map(PageAddr).filter(|&page| self.shape.geometry.contains_page(page));
            let Some(page) = before else { return Ok(None) };
            match self.buffer_page(page)? {
                Probe::Valid
                    if self.found.kind == PageKind::Anchor
                        && self.found.volume == found.volume
                        && self.found.sequence < found.sequence =>
                {
                    found = self.found;
                }
                _ if self.shape.geometry.block_of(page) != block => return Ok(None),
                _ => {
                    // It has decayed: the one before is older than what was acknowledged, but may be all there is.
                    while found.kind != PageKind::Anchor {
                        let Some(before) = nth.checked_sub(1) else { return Ok(None) };
                        nth = before;
                        if self.probe_any(self.shape.anchor_page(block, nth))? == Probe::Valid {
                            found = self.found;
                        }
                    }
                }
            }
        }
        Ok(Some(NewestAnchor { found, sequence }))
    }

    /// The last page of an anchor block that is valid, by binary search.
    fn last_valid_anchor_page(&mut self, candidate: Candidate) -> Result<(u16, Found), LogError<N::Error>> {
        let mut last = (candidate.nth, candidate.first);
        let (mut low, mut high) = (candidate.nth + 1, self.shape.anchor_pages);
        // The first checkpoint of a block has every page of the block table, those behind it fewer, and after cuts there are rarely
        // more than a few. Looking there first takes no more reads than halves do, wherever the end is.
        let size = self.shape.table_pages + 1;
        let mut likely = [4 * size, 2 * size - 1, size].into_iter();
        while low < high {
            let middle = likely.next().filter(|nth| (low..high).contains(nth)).unwrap_or(low + (high - low) / 2);
            match self.valid_at_or_after(candidate.block, middle..high)? {
                Some(nth) => {
                    self.stash_anchor();
                    last = (nth, self.found);
                    low = nth + 1;
                }
                None => high = middle,
            }
        }
        Ok(last)
    }

    /// The newest anchor is read again soon: if the page just read is one, it is kept in the memory of the block table, as
    /// far as it fits there, which is not in use before that.
    fn stash_anchor(&mut self) {
        if self.found.kind == PageKind::Anchor && self.blocks.stash() {
            self.stashed = Some(self.found.page);
        }
    }

    /// The first of these pages, or the one after it if this one is neither valid nor erased: a single damaged page must not pass
    /// for the end of the block. What is behind them is not valid.
    fn valid_at_or_after(&mut self, block: BlockAddr, pages: Range<u16>) -> Result<Option<u16>, LogError<N::Error>> {
        for nth in pages.take(2) {
            match self.probe_any(self.shape.anchor_page(block, nth))? {
                Probe::Valid if self.found.kind.is_of_the_log() => return Ok(Some(nth)),
                Probe::Erased => return Ok(None),
                Probe::Valid | Probe::Garbage => {}
            }
        }
        Ok(None)
    }
}
