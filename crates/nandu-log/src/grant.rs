//! What the log and its owner hand to each other: the right to append, and a page to be moved.

use nandu_media::PageKind;
use nandu_media::features::{FILES, TAGS};
use nandu_nand::{Cause, CellMode, PageAddr, ReadStatus};

use crate::collector::Budget;
use crate::room::Claim;
use crate::tail::Tag;

/// What a page holds that promises nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'k> {
    /// A path of the owner's.
    Node,
    /// A user's bytes, with what they belong to.
    Value,
    /// A user's bytes and nothing else, which belong to this key, with so many bits in a cell; a copy goes where its log has those.
    Raw(&'k [u8], CellMode),
    /// The same, with a tag in which the owner says this, if it can have one.
    Tagged(&'k [u8], &'k Tag),
}

impl Kind<'_> {
    /// Whose a raw page is.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self {
            Kind::Raw(key, _) | Kind::Tagged(key, _) if FILES => Some(key),
            _ => None,
        }
    }

    /// Bits in a cell.
    pub(crate) fn mode(&self) -> CellMode {
        if let Kind::Raw(_, mode) = self { *mode } else { CellMode::Slc }
    }

    /// What its tag is to say.
    pub(crate) fn tag(&self) -> Option<&Tag> {
        match self {
            Kind::Tagged(_, tag) if TAGS => Some(tag),
            _ => None,
        }
    }

    /// To what it is booked.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Kind::Node => Cause::Tree,
            Kind::Value | Kind::Raw(..) | Kind::Tagged(..) => Cause::Value,
        }
    }

    /// What the header says, of one that has a header.
    pub(crate) fn of_page(self) -> PageKind {
        match self {
            Kind::Node => PageKind::Node,
            Kind::Value | Kind::Raw(..) | Kind::Tagged(..) => PageKind::Value,
        }
    }
}

/// What a read found out about a page besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// What the page holds: a commit, a node, or a user's bytes.
    pub kind: PageKind,
    /// The page's place in the order of programs.
    pub sequence: u64,
    /// Stream that the page was appended to.
    pub stream: u8,
    /// How many bits had to be corrected.
    pub status: ReadStatus,
}

/// The right to append some pages, the last of them a commit.
///
/// No page is appended without room for it:
///
/// ```compile_fail,E0061
/// # use nandu_log::{Log, LogError};
/// # use nandu_nand::Nand;
/// fn wrong<N: Nand>(log: &mut Log<'_, N>, bytes: &mut [u8]) -> Result<(), LogError<N::Error>> {
///     log.commit(bytes)?; // Nobody claimed room.
///     Ok(())
/// }
/// ```
///
/// And nothing is appended on an old claim, behind the commit that used it up:
///
/// ```compile_fail,E0382
/// # use nandu_log::{Grant, Kind, Log, LogError};
/// # use nandu_nand::Nand;
/// fn wrong<N: Nand>(log: &mut Log<'_, N>, bytes: &mut [u8], mut grant: Grant) -> Result<(), LogError<N::Error>> {
///     log.commit(bytes, grant)?;
///     log.append(bytes, Kind::Node, &mut grant)?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "room that was claimed is used or abandoned"]
pub struct Grant {
    pages: u32,
    want: Claim,
}

impl Grant {
    pub(crate) fn new(pages: u32, want: Claim) -> Grant {
        debug_assert!(pages > 0, "room for nothing is not granted");
        Grant { pages, want }
    }

    /// A page is appended that promises nothing; one is left for the commit.
    pub(crate) fn spend(&mut self) {
        assert!(self.pages > 1, "more pages are appended than were claimed");
        self.pages -= 1;
    }

    pub(crate) fn want(&self) -> Claim {
        debug_assert!(self.pages > 0);
        self.want
    }
}

/// What a claim for room led to.
#[derive(Debug)]
#[must_use = "a claim that was not granted says what is to be done"]
pub enum Claimed {
    /// There is room.
    Granted(Grant),
    /// Pages have to be moved first: [`victim`](crate::Log::victim) with this budget, then claim again.
    Collect(Budget),
    /// Blocks would be free if the deaths that were noted counted: claim a commit ([`Claim::Bury`]) that says what the one before said, then claim again.
    Bury,
    /// Live counts may be too high since a cut: count the pages ([`recount_begin`](crate::Log::recount_begin)), then claim again.
    Recount,
}

/// A page that its owner is asked about.
///
/// An answer uses it up, so that a page is answered for once:
///
/// ```compile_fail,E0382
/// # use nandu_log::{Budget, Fate, Log, Victim};
/// # use nandu_nand::Nand;
/// fn wrong<N: Nand>(log: &mut Log<'_, N>, victim: Victim, budget: &mut Budget) {
///     log.answer(victim, Fate::Dead, budget);
///     log.answer(victim, Fate::Copied(1), budget);
/// }
/// ```
///
/// And only a page that the log asked about is moved:
///
/// ```compile_fail,E0451
/// # use nandu_log::Victim;
/// # use nandu_nand::{Cause, PageAddr};
/// let victim = Victim { page: PageAddr(7), cause: Cause::Gc };
/// ```
#[derive(Debug)]
#[must_use = "the log waits for the answer"]
pub struct Victim {
    page: PageAddr,
    cause: Cause,
}

impl Victim {
    pub(crate) fn new(page: PageAddr, cause: Cause) -> Victim {
        Victim { page, cause }
    }

    /// The page.
    pub fn page(&self) -> PageAddr {
        self.page
    }

    /// To what the owner books reading it.
    pub fn cause(&self) -> Cause {
        self.cause
    }
}

/// What becomes of a page that the owner was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not needed.
    Dead,
    /// It is needed; it was copied, and dies with the next commit, with others of its block: so many in all.
    Copied(u32),
    /// As [`Fate::Copied`], of pages of values.
    Values(u32),
    /// It is needed and was left where it is, since there was no room, or since it must not move.
    Stays,
    /// Nobody knows yet: it is asked for again.
    Later,
    /// As [`Fate::Stays`], and a part of what it held was copied: then it counted for the budget, and lives on all the same.
    Kept,
    /// It is needed and cannot be read: its block is kept for good.
    Unreadable,
    /// It cannot be read, so the owner does not know it. It is needed if more pages of its block live than those that the owner knows: then its block is kept for good.
    Lost,
}
