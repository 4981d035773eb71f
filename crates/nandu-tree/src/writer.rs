//! Who may append: an operation that has a grant, or a move of a victim.

use nandu_log::{Claim, Grant, Kind, Log, Victim};
use nandu_media::tree::HEIGHT_MAX;
use nandu_nand::{Nand, PageAddr};

use crate::error::{EngineError, Outcome};
use crate::order::Committed;
use crate::pages::REPLACED_MAX;

/// Deaths that a move or a change of one entry may tell: two leaves, a node of each level, a bare commit.
pub(crate) const DEATHS: usize = HEIGHT_MAX + 3;

/// Deaths that a batch may tell.
pub(crate) const BATCH_DEATHS: usize = REPLACED_MAX + 1;

/// What an operation asks of the log.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    pub(crate) want: Claim,
    /// Pages that it appends at most, the commit among them.
    pub(crate) pages: u32,
    /// Pages that live more after it, at most.
    pub(crate) live: u32,
    /// Pages that die with it, at most.
    pub(crate) deaths: usize,
}

/// An operation under way: a grant of the log, and how much was appended with it. It ends with a commit, or it fails.
pub(crate) struct Change {
    grant: Grant,
    pages: u32,
    appended: u32,
}

impl Change {
    /// A change that may append so many pages, the commit among them.
    pub(crate) fn new(grant: Grant, pages: u32) -> Change {
        debug_assert!(pages > 0, "a change has a commit");
        Change { grant, pages, appended: 0 }
    }

    /// Programs a page that promises nothing.
    ///
    /// # Errors
    ///
    /// [`EngineError::BatchTooLarge`] if no more pages were granted, before anything was programmed; those of the log.
    pub(crate) fn append<N: Nand>(
        &mut self,
        log: &mut Log<'_, N>,
        kind: Kind<'_>,
        bytes: &mut [u8],
    ) -> Outcome<u32, N> {
        if self.appended + 1 >= self.pages {
            return Err(EngineError::BatchTooLarge { pages: self.pages });
        }
        let PageAddr(page) = log.append(bytes, kind, &mut self.grant)?;
        self.appended += 1;
        debug_assert!(self.appended < self.pages, "the commit is still granted");
        Ok(page)
    }

    /// Pages appended yet.
    pub(crate) fn appended(&self) -> u32 {
        self.appended
    }

    /// Programs the page that makes all that was appended count.
    pub(crate) fn commit<N: Nand>(self, log: &mut Log<'_, N>, bytes: &mut [u8]) -> Outcome<Committed, N> {
        debug_assert!(self.appended < self.pages, "the commit was granted");
        Ok(Committed::at(log.commit(bytes, self.grant)?))
    }
}

/// A page that the log asks about.
pub(crate) struct Asked<'v> {
    pub(crate) victim: &'v Victim,
    /// Pages that may be moved with it, itself included.
    pub(crate) most: usize,
    /// Whether changes may begin to wait where none does.
    pub(crate) may_begin: bool,
}

/// What pages are appended with.
pub(crate) enum Pen<'a> {
    /// An operation.
    Change(&'a mut Change),
    /// A page that leaves its block.
    Move(&'a Victim),
}

impl Pen<'_> {
    /// Programs a page that promises nothing.
    pub(crate) fn append<N: Nand>(&mut self, log: &mut Log<'_, N>, bytes: &mut [u8]) -> Outcome<u32, N> {
        match self {
            Pen::Change(change) => change.append(log, Kind::Node, bytes),
            Pen::Move(victim) => Ok(log.copy(bytes, Kind::Node, victim)?.0),
        }
    }
}
