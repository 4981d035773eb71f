//! What a user's call owes of collecting, and what it has spent.

use nandu_log::{Budget, Log};
use nandu_nand::Nand;

/// Programs and erases that a call may take with its share of collecting.
pub(crate) type Most = (u32, u32);

/// Those of a put or a delete.
pub(crate) const PUT: Most = (6, 2);

/// Those of the last page of a value, whose head is another call.
pub(crate) const LAST_PAGE: Most = (PUT.0 / 2, PUT.1 / 2);

/// Those of any other call.
pub(crate) const CALL: Most = (16, 2);

/// Programs of a call behind which nothing is removed of a snapshot that was released.
pub(crate) const REMOVING_MAX: u32 = 4;

/// How often something is removed of such a snapshot behind a call.
pub(crate) const REMOVALS_MAX: u32 = 4;

/// How often something is freed for a call that finds no room.
pub(crate) const REFUSALS_MAX: u32 = 16;

/// The debt of the call under way.
#[derive(Debug)]
pub(crate) struct Debt {
    /// Pages that it appended.
    pages: u32,
    /// Moves that calls before had no programs left for.
    due: u32,
    /// What the log had spent when the call began.
    begun: (u64, u64),
}

impl Debt {
    pub(crate) const NONE: Debt = Debt { pages: 0, due: 0, begun: (0, 0) };

    /// Another call begins: what is spent from here on is its.
    pub(crate) fn begin<N: Nand>(&mut self, log: &Log<'_, N>) {
        self.begun = log.spent();
    }

    /// Programs and erases of the call.
    pub(crate) fn spent<N: Nand>(&self, log: &Log<'_, N>) -> Most {
        let (programs, erases) = log.spent();
        debug_assert!((programs, erases) >= self.begun, "nothing is taken back");
        ((programs - self.begun.0) as u32, (erases - self.begun.1) as u32)
    }

    /// It appended so many pages.
    pub(crate) fn appended(&mut self, pages: u32) {
        self.pages += pages;
    }

    /// What is to be collected at the end of a call that may take so many programs and erases; `None` if nothing is owed.
    pub(crate) fn instalment<N: Nand>(&mut self, log: &mut Log<'_, N>, most: Most) -> Option<Budget> {
        let (programs, erases) = self.spent(log);
        let pages = core::mem::take(&mut self.pages);
        // One is left for a commit that lets deaths count.
        let left = (most.0.saturating_sub(programs + 1), most.1.saturating_sub(erases));
        debug_assert!(left <= most, "a call has spent something");
        (pages + self.due > 0).then(|| log.instalment((pages, self.due), left))
    }

    /// That was collected, and this is left.
    pub(crate) fn collected(&mut self, left: &Budget) {
        self.due = left.left_due();
    }
}
