//! Finding the newest commit after the newest checkpoint, in a bounded number of reads.
//!
//! Commits stand in one stream, and that stream opened the first entries of the ready list, one after the other (N3). So the last block with a commit is found among them, and
//! the last commit in that block. Nobody looks for other pages: the commit says where the other streams stood, and what they programmed after it promises nothing (R1).

use core::ops::Range;

use nandu_media::{Malformed, PageKind, Position};
use nandu_nand::{BlockAddr, CellMode, Nand};

use crate::anchors::Standing;
use crate::blocks::{Blocks, Stage};
use crate::error::LogError;
use crate::medium::{Header, Medium, Probe};
use crate::shape::Shape;
use crate::tail::Tail;

/// What a roll forward found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rolled {
    /// Entries of the ready list that stream 0 opened.
    pub(crate) front: usize,
    /// The newest commit, if there is one behind the checkpoint.
    pub(crate) newest: Option<Header>,
}

/// A roll forward from a checkpoint.
pub(crate) struct Roll<'r> {
    pub(crate) shape: &'r Shape,
    pub(crate) standing: &'r Standing,
}

impl Roll<'_> {
    /// Finds the newest commit. Two reads more than the binary logarithms of the ready list and of a block, at most; and where the options
    /// want what is programmed to be read back, four more.
    pub(crate) fn forward<N: Nand>(&self, medium: &mut Medium<'_, N>) -> Result<Rolled, LogError<N::Error>> {
        let ready = self.standing.ready.all();
        let (pages, is_confirmed) = (self.shape.pages, medium.chip().reads_back());
        let (mut front, mut newest) = (0, None);
        loop {
            // Blocks that held raw pages begin with what is no commit, too: the next page is looked at only in the one that ends the search.
            let mut damaged = None;
            let opened = medium.last(front..ready.len() as u16, [], is_confirmed, |medium, entries| {
                let look = self.look(medium, ready[usize::from(entries.start)], 0)?;
                damaged = matches!(look, Probe::Garbage).then_some(entries.start).or(damaged);
                Ok(look.valid().map(|found| (entries.start, found)))
            })?;
            (front, newest) = opened.map_or((front, newest), |(entry, found)| (entry + 1, Some(found)));
            debug_assert!(damaged.is_none_or(|entry| entry >= front), "what ends the search is behind what was found");
            let Some(entry) = damaged.filter(|&entry| entry == front) else { break };
            let Some(found) = self.look(medium, ready[usize::from(entry)], 1)?.valid() else { break };
            (front, newest) = (entry + 1, Some(found));
        }
        let front = usize::from(front);
        let at = match newest {
            Some(found) => Some((self.shape.block_of(found.page), self.shape.nth_of(found.page) + 1)),
            None => self.standing.heads.open(0).map(|head| (head.block, head.next)),
        };
        let Some((block, next)) = at else { return Ok(Rolled { front, newest }) };
        let last = medium.last(next..pages, [], is_confirmed, |medium, pages| {
            let found = self.current(medium, block, pages)?;
            Ok(found.map(|found| (self.shape.nth_of(found.page), found)))
        })?;
        Ok(Rolled { front, newest: last.map(|(_, found)| found).or(newest) })
    }

    /// The tail behind a commit that was found behind the checkpoint: where that says that the stream of raw pages stood.
    pub(crate) fn tail_behind(&self, found: &Header) -> Tail {
        debug_assert!(found.kind == PageKind::Commit);
        let Roll { shape, standing } = self;
        let Some(raw) = standing.heads.raw(CellMode::Slc).filter(|_| shape.has_tags()) else { return Tail::NONE };
        let position = found.positions[usize::from(raw)];
        let at_checkpoint = || standing.heads.open(raw).map(|head| head.block);
        let block = position.slot().and_then(|slot| standing.ready.at(slot).or_else(at_checkpoint));
        let next = position.last() + 1;
        match block.filter(|_| next < shape.pages) {
            Some(block) => Tail::stored(shape.page(block, next), found.sequence),
            None => Tail::NONE,
        }
    }

    /// Whether nothing was programmed after a clean checkpoint. If something was committed, a newer checkpoint has decayed. If the first listed block is erased and something stands there, a mount to which this checkpoint was not shown
    /// began to recover. Two reads, or some more where pages are damaged.
    pub(crate) fn is_clean<N: Nand>(
        &self,
        medium: &mut Medium<'_, N>,
        blocks: &Blocks<'_>,
    ) -> Result<bool, LogError<N::Error>> {
        if let Some(head) = self.standing.heads.open(0) {
            self.current(medium, head.block, head.next..self.shape.pages)?;
        }
        let Some(&block) = self.standing.ready.unopened().first() else { return Ok(true) };
        self.current(medium, block, 0..self.shape.pages)?;
        // This page was read last.
        let is_erased = matches!(medium.probe(self.shape.page(block, 0))?, Probe::Erased);
        Ok(is_erased || blocks.state(block) == Stage::Listed)
    }

    /// The first of these pages if it is a commit behind the checkpoint; the one after it if this one is damaged. What is behind them is none.
    fn current<N: Nand>(
        &self,
        medium: &mut Medium<'_, N>,
        block: BlockAddr,
        pages: Range<u16>,
    ) -> Result<Option<Header>, LogError<N::Error>> {
        for nth in pages.take(2) {
            match self.look(medium, block, nth)? {
                Probe::Garbage => {}
                look => return Ok(look.valid()),
            }
        }
        Ok(None)
    }

    /// What stands in a page; one that is no commit behind the checkpoint passes for erased.
    fn look<N: Nand>(
        &self,
        medium: &mut Medium<'_, N>,
        block: BlockAddr,
        nth: u16,
    ) -> Result<Probe, LogError<N::Error>> {
        match medium.probe(self.shape.page(block, nth))? {
            Probe::Valid(found) if self.is_of_a_lost_checkpoint(&found) => {
                Err(LogError::Corrupt { page: found.page, why: Malformed::Sequence })
            }
            Probe::Valid(found) if !self.is_current(&found) => Ok(Probe::Erased),
            probe => Ok(probe),
        }
    }

    /// Whether a page is a commit that was made after the checkpoint.
    ///
    /// A copy made by a recovery that was cut carries the number of the checkpoint that was never completed. It has no positions, so that it
    /// passes for nothing newer if that number is given out again before its block is erased.
    fn is_current(&self, found: &Header) -> bool {
        let is_sound = |position: &Position| match position.slot() {
            Some(Position::SLOT_OPEN) | None => true,
            Some(slot) => self.standing.ready.at(slot).is_some(),
        };
        found.kind == PageKind::Commit
            && found.stream == 0
            && found.checkpoint == self.standing.anchors.number()
            && found.sequence > self.standing.anchors.sequence()
            && found.positions[0].slot().is_some()
            && found.positions[..usize::from(self.shape.streams)].iter().all(is_sound)
    }

    /// Whether a page was committed after a checkpoint newer than the newest one found, so that that one must have decayed.
    /// What is left is too old to build on. A copy made by a recovery that was cut has no positions, and is no such page.
    fn is_of_a_lost_checkpoint(&self, found: &Header) -> bool {
        found.checkpoint > self.standing.anchors.number()
            && found.sequence > self.standing.anchors.sequence()
            && found.positions.iter().any(|position| position.slot().is_some())
    }
}
